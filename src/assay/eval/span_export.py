"""Spans of OpenTelemetry that leave while a run goes on.

What an agent does is told as it does it (`assay.agents.transcripts.telling`), and sent in batches
by OpenTelemetry's own thread. Nothing that a collector does, or does not do, reaches the run: what
cannot be sent is counted and forgotten.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import Token
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from assay.agents.transcripts.telling import Telling, ToldSpan, about_run, spans_of
from assay.agents.transcripts.writing import Told
from assay.errors import InputError, MissingExtraError, reason_of
from assay.eval.rollout import WATCH, Cell, Watch
from assay.eval.told import name_of, told_run
from assay.gateway.journal import AskedEvent, Begun, Entry
from assay.gateway.trace import Lines
from assay.scoring.json_safe import Json
from assay.store.records import CellRecord
from assay.types.run import Run
from assay.types.trace import ActionStep, Step

if TYPE_CHECKING:
    from assay.eval.otlp_sender import Sender

_LAST_SECONDS = 2.0
_PATH = "/v1/traces"
_DEFAULT = "http://localhost:4318"


class SpanExport:
    """Sends what agents do, and what it is worth, to a collector of OpenTelemetry, as it happens.

    ::

        async with SpanExport("http://localhost:4318") as export:
            job = await tasks.run(agent)
        print(export.sent, export.dropped)

    A rollout is a span around all, each step one within it; their trace is the run's ``trace_id``.
    OpenTelemetry's own variables hold (``OTEL_EXPORTER_OTLP_HEADERS``, ``OTEL_SERVICE_NAME``, ...).
    It is over within two seconds of its end, whatever the collector does.

    Args:
        endpoint: A collector's OTLP/HTTP address; by default what ``OTEL_EXPORTER_OTLP_ENDPOINT``
            says, or this machine's port 4318.

    Attributes:
        endpoint: Where spans are sent.
        sent: How many a collector has taken.
        problem: Why some were not; empty where none was.

    Raises:
        InputError: For an address that is none.
        MissingExtraError: If OpenTelemetry is not installed.
    """

    def __init__(self, endpoint: str = "") -> None:
        self.endpoint = _address(endpoint)
        self._shown = _without_password(self.endpoint)
        if not _is_installed():
            raise MissingExtraError("exporting spans", extra="otel")
        self.is_disabled = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
        self.sent = 0
        self.problem = ""
        self._given = 0
        self._open: dict[str, _Live] = {}
        self._lock = threading.Lock()
        self._sender: Sender | None = None
        self._token: Token[Watch | None] | None = None

    @property
    def dropped(self) -> int:
        """How many spans no collector has taken; while the run goes on, also those on their way."""
        return self._given - self.sent

    def __str__(self) -> str:
        if not self.dropped:
            return f"{self.sent:,} spans sent to {self._shown}"
        why = f": {self.problem}" if self.problem else ""
        return f"{self.dropped:,} of {self._given:,} spans were not taken by {self._shown}{why}"

    def __enter__(self) -> Self:
        if not self.is_disabled:
            from assay.eval.otlp_sender import Sender

            self._sender = Sender(self.endpoint, self._took)
        self._token = WATCH.set(None if self.is_disabled else self)
        return self

    def __exit__(self, *raised: object) -> None:
        self._leave()
        self.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *raised: object) -> None:
        self._leave()
        await asyncio.to_thread(self.close)

    def _leave(self) -> None:
        if self._token is not None:
            WATCH.reset(self._token)
            self._token = None

    # ---- what is told ---------------------------------------------------------------------------

    def begin(self, run: Run, cell: Cell) -> _Live:
        """An agent is about to begin."""
        name = name_of(cell.task.slug, cell.harness, cell.model, cell.trial)
        live = _Live(run, about_run(cell.job_id or "", name), self._put)
        self._open[run.trace_id or ""] = live
        run.told = live.recorded
        return live

    def end(self, run: Run, cell: CellRecord) -> None:
        """It is graded."""
        run.told = None
        live = self._open.pop(run.trace_id or "", None)
        name = name_of(cell.case, cell.harness, cell.model, cell.trial)
        self._put(
            _last_spans(run, cell, live), live.about if live else about_run(cell.run_id, name)
        )

    def tell(self, told: Told) -> None:
        """Send all spans of what is over."""
        if self.is_disabled:
            return
        self._put(spans_of(told), about_run(told.run, told.id))

    def _put(self, spans: Iterable[ToldSpan], about: Mapping[str, Json]) -> None:
        with self._lock:
            try:
                for span in spans:
                    self._given += 1
                    if self._sender is None or not self._sender.put(span, about):
                        self.problem = self.problem or "more came than it took"
            except Exception as error:  # the boundary: an agent may record anything
                self._given += 1
                self.problem = f"a step cannot be told: {reason_of(error)}"

    def _took(self, count: int, why: str) -> None:
        """So many spans were taken, or why others were not; from the thread that sends."""
        self.sent += count
        self.problem = why or self.problem

    def close(self) -> None:
        """Send what is waiting, as far as that goes quickly."""
        with self._lock:
            sender, self._sender = self._sender, None
        if sender is not None:
            sender.close(_LAST_SECONDS)
            if self.dropped:
                self.problem = self.problem or "it did not answer in time"


class _Live:
    """One rollout while it goes on.

    What passed its gateway is its work, if anything did: what it records itself is told else.
    """

    def __init__(
        self,
        run: Run,
        about: Mapping[str, Json],
        put: Callable[[Iterable[ToldSpan], Mapping[str, Json]], None],
    ) -> None:
        self.began = _now()
        self.about = about
        self.telling = Telling(
            run.trace_id or "", began=self.began, prompt=run.prompt_text, model=run.model
        )
        self._run, self._put = run, put
        self._lines: Lines | None = None
        self._own_requests: set[int] = set()
        self._recorded: list[Step] = []

    def recorded(self, step: Step) -> None:
        """The agent, or what runs it, recorded a step."""
        is_told_here = self._lines is None or step.error or isinstance(step, ActionStep)
        if is_told_here and step.task_call is None:
            self._recorded.append(step)
            self._put(self.telling.tell(step), self.about)

    def passed(self, entry: Entry) -> None:
        """Something passed its gateway; an agent of this process records its requests itself."""
        if isinstance(entry, Begun):
            return
        if isinstance(entry, AskedEvent) and not entry.protocol:
            self._own_requests.add(entry.number)
        if entry.number in self._own_requests:
            return
        self._lines = self._lines or Lines()
        self._put(self._passing(self._lines, entry), self.about)

    def worked(self) -> None:
        """Its work is over: tell what is known of it only now."""
        self._put(self._left(), self.about)

    def _passing(self, lines: Lines, entry: Entry) -> Iterator[ToldSpan]:
        line, steps = lines.take(entry)
        for step in steps:
            yield from self.telling.tell(step, line)

    def _left(self) -> Iterator[ToldSpan]:
        if self._lines is not None:
            for line, steps in self._lines.end():
                for step in steps:
                    yield from self.telling.tell(step, line)
        else:
            told = set(map(id, self._recorded))
            for step in self._run.trace.work:
                if id(step) not in told:
                    yield from self.telling.tell(step)
        yield from self.telling.close()


def _last_spans(run: Run, cell: CellRecord, live: _Live | None) -> Iterator[ToldSpan]:
    """What is told of a run in the end; all of it, where nobody has seen it begin."""
    if live is None:
        yield from spans_of(told_run(cell, run, _now()))
    else:
        yield live.telling.whole(told_run(cell, run, live.began), _now())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _address(given: str) -> str:
    """The address that spans are sent to."""
    if given:
        hint = "http://HOST:4318; without one, --otel stands behind the paths"
        address, mark, query = given.partition("?")
        address = address.rstrip("/").removesuffix(_PATH) + _PATH + mark + query
    else:
        hint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://HOST:4318"
        base = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or _DEFAULT
        address = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or base.rstrip("/") + _PATH
        protocols = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
        if any(os.environ.get(name) == "grpc" for name in protocols):
            raise InputError(
                "spans are sent over HTTP, and OTEL_EXPORTER_OTLP_PROTOCOL says grpc",
                hint="name the collector's address for HTTP: --otel http://HOST:4318",
            )
    try:
        parts = urlsplit(address)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_address = is_address and (parts.port is None or parts.port > 0)
    except ValueError:
        is_address = False
    if not is_address:
        raise InputError(
            f"{(given or address)!r:.200} is not the address of a collector", hint=hint
        )
    return address


def _without_password(address: str) -> str:
    """An address as it may be shown."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _is_installed() -> bool:
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http.trace_exporter") is not None
    except ModuleNotFoundError:
        return False
