"""Spans as OpenTelemetry's own processor and exporter send them.

What the exporter has to say it logs, batch by batch: that is kept from standard error here, because
who exports is told once, at the end.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode
from requests.adapters import HTTPAdapter

from assay.agents.transcripts.telling import SCOPE, ToldSpan
from assay.scoring.json_safe import Json

_MOST_WAITING = 8_192
_MOST_WAITING_BYTES = 64 << 20
_BATCH = 64
_EVERY_SECONDS = 1.0
_LOGGERS = ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "urllib3.connectionpool")
_KEY = " (OTEL_EXPORTER_OTLP_HEADERS gives it a key: Authorization=Bearer KEY)"
_MOST_REPLY = 64 << 10
_MOST_SHOWN = 200
_MOST_WHOLE = (1 << 63) - 1
_UNNAMED = "unknown_service"

_HERE = threading.local()


def _is_others(record: logging.LogRecord) -> bool:
    del record
    return not getattr(_HERE, "is_quiet", False)


@contextmanager
def _quiet() -> Generator[None]:
    """Log nothing of OpenTelemetry's in this thread."""
    _HERE.is_quiet = True
    try:
        yield
    finally:
        _HERE.is_quiet = False


for _name in _LOGGERS:
    logging.getLogger(_name).addFilter(_is_others)


class Sender:
    """Sends spans in batches, from a thread of OpenTelemetry's.

    Args:
        address: Where.
        took: Told how many spans of each batch were taken, and why others were not.
    """

    def __init__(self, address: str, took: Callable[[int, str], None]) -> None:
        self._everyones = Resource.create()
        self._resources: dict[tuple[str, str], Resource] = {}
        self._exporter = _Exporter(address, took)
        self._processor = BatchSpanProcessor(
            self._exporter,
            max_queue_size=_MOST_WAITING,
            schedule_delay_millis=_EVERY_SECONDS * 1000,
            max_export_batch_size=_BATCH,
        )

    def put(self, told: ToldSpan, about: Mapping[str, Json]) -> bool:
        """Have a span sent; False if too many are waiting."""
        span = self._span(told, about)
        if not self._exporter.has_room(span):
            return False
        self._processor.on_end(span)
        return True

    def close(self, seconds: float) -> None:
        """Send what is waiting, and forget what is not sent in that time."""
        # The processor has thirty seconds of its own for that.
        closing = threading.Thread(target=self._processor.shutdown, daemon=True)
        closing.start()
        closing.join(seconds)
        self._exporter.shutdown()

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


class _Exporter(OTLPSpanExporter):
    """OpenTelemetry's own, which counts what waits for it and what became of it."""

    def __init__(self, address: str, took: Callable[[int, str], None]) -> None:
        session = requests.Session()
        session.stream = True  # a reply is read as far as one needs
        session.hooks["response"].append(self._hear)
        self._wire = _Wire()
        for scheme in ("http://", "https://"):
            session.mount(scheme, self._wire)
        super().__init__(endpoint=address, session=session)
        self._took = took
        self._lock = threading.Lock()
        self._waiting = self._waiting_bytes = 0
        self._rejected: int | None = None  # of the last batch; None where nothing was answered

    def has_room(self, span: ReadableSpan) -> bool:
        """Whether one more may wait; it is counted then."""
        size = _size(span)
        with self._lock:
            if self._waiting >= _MOST_WAITING or self._waiting_bytes + size > _MOST_WAITING_BYTES:
                return False
            self._waiting += 1
            self._waiting_bytes += size
            return True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch."""
        self._rejected = None
        with _quiet():
            result = super().export(spans)
        if self._rejected is None:
            self._took(0, self._wire.why or "it does not answer")
        elif result is SpanExportResult.SUCCESS:
            self._took(max(0, len(spans) - self._rejected), "")
        with self._lock:
            self._waiting -= len(spans)
            self._waiting_bytes -= sum(map(_size, spans))
        return result

    def shutdown(self) -> None:
        """Try nothing again; from any thread, also twice."""
        with _quiet():
            super().shutdown()

    def _hear(self, response: requests.Response, **_: object) -> None:
        """Keep what a reply says."""
        body = cast("bytes", response.raw.read(_MOST_REPLY + 1, decode_content=True))
        if len(body) > _MOST_REPLY:
            response.close()
        self._rejected, why = _partial(body) or (0, "")
        if not response.ok or response.is_redirect:
            self._rejected = _MOST_WHOLE
            said = _text(str(response.reason or ""))[:_MOST_SHOWN]
            mend = _KEY if response.status_code in (401, 403) else ""
            self._took(0, f"it answered {response.status_code} {said}".strip() + mend)
        elif self._rejected:
            self._took(0, f"it took a part only{f': {why}' if why else ''}")


class _Wire(HTTPAdapter):
    """Keeps why a request got no reply.

    Attributes:
        why: Of the last one; empty where it got one.
    """

    why = ""

    def send(self, *given: object, **named: object) -> requests.Response:
        """Send a request."""
        self.why = ""
        try:
            return super().send(*given, **named)  # type: ignore[arg-type]
        except requests.RequestException as error:
            self.why = f"it cannot be reached: {_cause(error)}"
            if isinstance(error, requests.Timeout):
                self.why = "it did not answer in time"
            raise


def _cause(error: BaseException) -> str:
    """What is at the bottom of an error of many layers."""
    while (under := error.__cause__ or error.__context__) is not None:
        error = under
    said = error.strerror if isinstance(error, OSError) else None
    return (said or str(error) or type(error).__name__)[:_MOST_SHOWN]


def _partial(body: bytes) -> tuple[int, str] | None:
    """How many spans a reply says were rejected, and why; what cannot be read says nothing."""
    try:
        told = ExportTraceServiceResponse.FromString(body).partial_success
    except Exception:  # of whatever a collector sends
        return None
    if told.rejected_spans <= 0:
        return None
    return told.rejected_spans, told.error_message[:_MOST_SHOWN]


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


def _size(span: ReadableSpan) -> int:
    """About how many bytes a span takes."""
    said = [*(span.attributes or {}).values()]
    said += [one for event in span.events for one in (event.attributes or {}).values()]
    return 500 + sum(len(one) if isinstance(one, str) else 16 for one in said)
