"""Spans as OpenTelemetry's own exporter sends them; for one thread.

What the exporter has to say it logs, batch by batch: that is kept from standard error here, because
who exports is told once, at the end.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol, Self, cast

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from assay.agents.transcripts.telling import SCOPE, ToldSpan
from assay.scoring.json_safe import Json

__all__ = ["Sender"]

_LOGGERS = ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "urllib3.connectionpool")
_KEY = " (OTEL_EXPORTER_OTLP_HEADERS gives it a key: Authorization=Bearer KEY)"
_MOST_REPLY = 64 << 10
_MOST_SHOWN = 200
_MOST_WHOLE = (1 << 63) - 1
_UNNAMED = "unknown_service"


class _Failed(Protocol):
    def __call__(self, why: str, *, is_unreachable: bool = False) -> None: ...


class Sender:
    """Sends batches.

    Args:
        address: Where.
        failed: Told why a request was not taken, when it is not.
    """

    def __init__(self, address: str, failed: _Failed) -> None:
        self._session = _Session(failed)
        self._exporter = OTLPSpanExporter(endpoint=address, session=self._session)
        self._everyones = Resource.create()
        self._resources: dict[tuple[str, str], Resource] = {}
        self._thread = threading.get_ident()
        self._is_stopped = False

    def __enter__(self) -> Self:
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self._is_others)
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self._is_others)

    def stop(self) -> None:
        """Try nothing again; from any thread."""
        if not self._is_stopped:
            self._is_stopped = True
            self._exporter.shutdown()

    def _is_others(self, record: logging.LogRecord) -> bool:
        return record.thread != self._thread

    def send(self, batch: Sequence[tuple[ToldSpan, Mapping[str, Json]]]) -> int:
        """Send a batch; how many spans of it were taken."""
        self._session.rejected = 0
        spans = [self._span(told, about) for told, about in batch]
        if self._exporter.export(spans) is not SpanExportResult.SUCCESS:
            return 0
        return len(spans) - max(0, min(self._session.rejected, len(spans)))

    def _span(self, told: ToldSpan, about: Mapping[str, Json]) -> ReadableSpan:
        own = _context(told.trace, told.id)
        return ReadableSpan(
            name=_text(told.name),
            context=own,
            parent=_context(told.trace, told.parent) if told.parent else None,
            resource=self._resource(about),
            attributes=_attributes(told.attributes),
            events=[Event(name, _attributes(said), told.end) for name, said in told.events],
            kind=SpanKind.CLIENT if told.calls else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, _text(told.error)) if told.error else Status(),
            start_time=told.start,
            end_time=told.end,
            instrumentation_scope=InstrumentationScope(*SCOPE),
        )

    def _resource(self, about: Mapping[str, Json]) -> Resource:
        key = (str(about["assay.run"]), str(about["assay.cell"]))
        if key not in self._resources:
            if len(self._resources) > _MOST_SHOWN:
                self._resources.clear()
            said = _attributes(about)
            named = str(self._everyones.attributes.get("service.name", _UNNAMED))
            if not named.startswith(_UNNAMED):  # as OTEL_SERVICE_NAME says
                del said["service.name"]
            self._resources[key] = self._everyones.merge(Resource(said))
        return self._resources[key]


class _Session(requests.Session):
    """Reads no more of a reply than one needs, and keeps what it says.

    Attributes:
        rejected: Spans of the last request that were not taken although it was answered.
    """

    def __init__(self, failed: _Failed) -> None:
        super().__init__()
        self.rejected = 0
        self._failed = failed

    def request(self, *given: object, **named: object) -> requests.Response:
        """Send a request."""
        named["stream"] = True
        try:
            response = super().request(*given, **named)  # type: ignore[arg-type]
            body = cast("bytes", response.raw.read(_MOST_REPLY + 1, decode_content=True))
        except Exception as error:
            slow = isinstance(error, requests.Timeout)
            why = "it did not answer in time" if slow else f"it cannot be reached: {_cause(error)}"
            self._failed(why, is_unreachable=not slow)
            raise
        if len(body) > _MOST_REPLY:
            response.close()
        self.rejected = 0
        if not response.ok or response.is_redirect:
            self.rejected = _MOST_WHOLE
            said = _text(str(response.reason or ""))[:_MOST_SHOWN]
            mend = _KEY if response.status_code in (401, 403) else ""
            self._failed(f"it answered {response.status_code} {said}".strip() + mend)
        elif refused := _partial(body):
            self.rejected, why = refused
            self._failed(f"it took a part only{f': {why}' if why else ''}")
        return response


def _partial(body: bytes) -> tuple[int, str] | None:
    """How many spans a reply says were rejected, and why; what cannot be read says nothing."""
    try:
        told = ExportTraceServiceResponse.FromString(body).partial_success
    except Exception:  # of whatever a collector sends
        return None
    if told.rejected_spans <= 0:
        return None
    return told.rejected_spans, told.error_message[:_MOST_SHOWN]


def _cause(error: BaseException) -> str:
    """What is at the bottom of an error of many layers."""
    found = error
    while (under := found.__cause__ or found.__context__) is not None:
        found = under
    said = found.strerror if isinstance(found, OSError) else None
    return (said or str(found) or type(found).__name__)[:_MOST_SHOWN]


def _context(trace: str, span: str) -> SpanContext:
    return SpanContext(
        trace_id=int(trace, 16),
        span_id=int(span, 16),
        is_remote=False,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )


def _attributes(given: Mapping[str, Json]) -> dict[str, str | bool | int | float | list[str]]:
    return {key: _value(one) for key, one in given.items() if one is not None}


def _value(value: Json) -> str | bool | int | float | list[str]:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return [_text(str(one)) for one in value]
    if isinstance(value, int) and abs(value) > _MOST_WHOLE:
        return str(value)
    return value if isinstance(value, bool | int | float) else _text(str(value))


def _text(text: str) -> str:
    """A text that can be encoded: one that an agent wrote may hold half a character."""
    return text.encode("utf-8", "replace").decode()
