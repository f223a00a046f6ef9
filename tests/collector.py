"""A collector of OpenTelemetry on a real socket: it keeps spans that it takes, and has faults."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

__all__ = ["Collector", "Taken", "collector"]


@dataclass(frozen=True, slots=True)
class Taken:
    """A span that was taken.

    Attributes:
        trace: Its trace, in hexadecimal digits.
        id: Its own.
        parent: That of the span around it; empty for the outermost.
        name: What it is called.
        about: Its attributes.
        resource: Those of what made it.
        events: Each event's name and attributes.
        error: Why it failed.
    """

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
    """What a collector took.

    Attributes:
        url: Where it is.
        spans: What it took.
        headers: Of the last request.
        requests: How many there were.
        fault: What it does instead of taking spans.
        let_go: Set to end requests that hang.
    """

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

    def take(self, body: bytes) -> None:
        """Take a request's spans."""
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


def _handler(found: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            found.requests += 1
            found.headers = {key.lower(): value for key, value in self.headers.items()}
            body = self.rfile.read(int(self.headers["Content-Length"]))
            fault = found.fault
            if fault == "hang":
                found.let_go.wait(60)
                self.close_connection = True
                return
            if fault == "503":
                self.answer(503, b"", {"Retry-After": "3600"})
            elif fault == "401":
                self.answer(401, b"")
            elif fault == "redirect":
                self.answer(302, b"", {"Location": "http://127.0.0.1:1/"})
            elif fault == "garbage":
                self.answer(200, b"\xff<html>" * 100_000)
            elif fault == "partial":
                reply = ExportTraceServiceResponse()
                reply.partial_success.rejected_spans = 1
                reply.partial_success.error_message = "too \x1b[31mlarge"
                self.answer(200, reply.SerializeToString())
            else:
                assert self.path == "/v1/traces"
                is_packed = self.headers.get("Content-Encoding") == "gzip"
                found.take(gzip.decompress(body) if is_packed else body)
                self.answer(200, b"")

        def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:  # whoever asked reads no more of it
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            del format, args

    return cast("type[BaseHTTPRequestHandler]", Handler)


@contextmanager
def collector(fault: str = "") -> Generator[Collector]:
    """A collector while the block lasts."""
    found = Collector(fault=fault)
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(found)) as server:
        found.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield found
        finally:
            found.let_go.set()
            server.shutdown()
            thread.join()
