"""A collector of OpenTelemetry on a real socket: it keeps spans that it takes, and has faults."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.endpoint_servers import Asked, faulty, raw

__all__ = ["Collector", "Taken", "collector"]


@dataclass(frozen=True, slots=True)
class Taken:
    """A span that was taken; the parent of the outermost is empty."""

    trace: str
    id: str
    parent: str
    name: str
    about: dict[str, Any]
    resource: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    error: str


@dataclass(slots=True)
class Collector:
    """What a collector took, unless it has a fault; and the headers of the last request."""

    url: str = ""
    spans: list[Taken] = field(default_factory=list[Taken])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    requests: int = 0
    fault: str = ""
    let_go: threading.Event = field(default_factory=threading.Event)
    _change: threading.Condition = field(default_factory=threading.Condition)

    def wait_for(self, count: int, seconds: float = 30.0) -> list[Taken]:
        """The spans, once there are so many."""
        with self._change:
            assert self._change.wait_for(lambda: len(self.spans) >= count, seconds), self.spans
            return list(self.spans)

    def of(self, trace: str) -> list[Taken]:
        """The spans of one trace."""
        return [span for span in self.spans if span.trace == trace]

    @property
    def roots(self) -> list[Taken]:
        """The outermost spans."""
        return [span for span in self.spans if not span.parent]

    def reply(self, connection: socket.socket, asked: Asked, over: threading.Event) -> None:
        """Take a request's spans, or have the fault."""
        self.requests += 1
        self.headers = asked.headers
        if self.fault == "hang":
            self.let_go.wait(60)
            return
        if not self.fault:
            assert asked.path == "/v1/traces"
            is_packed = asked.headers.get("content-encoding") == "gzip"
            self._take(gzip.decompress(asked.body) if is_packed else asked.body)
        _FAULTS.get(self.fault, raw(b""))(connection, asked, over)

    def _take(self, body: bytes) -> None:
        asked = ExportTraceServiceRequest.FromString(body)
        with self._change:
            for resource in asked.resource_spans:
                about = _attributes(resource.resource.attributes)
                for scope in resource.scope_spans:
                    self.spans += [_taken(span, about) for span in scope.spans]
            self._change.notify_all()


def _taken(span: Any, resource: dict[str, Any]) -> Taken:
    return Taken(
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        name=span.name,
        about=_attributes(span.attributes),
        resource=resource,
        events=[(event.name, _attributes(event.attributes)) for event in span.events],
        error=span.status.message,
    )


def _attributes(listed: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in listed}


def _partial() -> bytes:
    reply = ExportTraceServiceResponse()
    reply.partial_success.rejected_spans = 1
    reply.partial_success.error_message = "too \x1b[31mlarge"
    return reply.SerializeToString()


_FAULTS = {
    "503": raw(b"", 503, Retry_After="3600"),
    "401": raw(b"", 401),
    "redirect": raw(b"", 302, Location="http://127.0.0.1:1/"),
    "garbage": raw(b"\xff<html>" * 100_000),
    "partial": raw(_partial()),
}


@contextmanager
def collector(fault: str = "") -> Generator[Collector]:
    """A collector while the block lasts."""
    found = Collector(fault=fault)
    with faulty(found.reply) as server:
        found.url = server.url
        try:
            yield found
        finally:
            found.let_go.set()
