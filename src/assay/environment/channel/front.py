"""The front of a served environment: connections, sessions, tokens, and the ledger of grades.

No code of an author runs here, so that none can hold up a client of another task. A task that has
begun lives in a worker; if that dies, the task is begun again in another with the same arguments,
and what it says must be what it said.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Protocol, TypeVar, cast

from assay.environment.channel.connection import Connection
from assay.environment.channel.frames import (
    BUSY,
    INVALID_PARAMS,
    INVALID_REQUEST,
    SESSION_LOST,
    ChannelCall,
    FrameBudget,
    Wire,
    bug,
    encode,
    type_of,
)
from assay.environment.channel.sessions import (
    ChannelLimits,
    Ending,
    Move,
    ServedSession,
    SessionLedger,
    StartedTask,
)
from assay.environment.channel.workers import Worker, WorkerGoneError, Workers
from assay.errors import AssayError, ChannelError, nearest
from assay.scoring.json_safe import Json

T = TypeVar("T")

_LOG = logging.getLogger("assay.channel")
_SHARED_DEATHS = 2


class HangUp(Protocol):
    """What can be hung up on."""

    def close(self) -> None:
        """Hang up, now."""
        ...


class SessionOwner(Protocol):
    """Whose a session is: a connection of the channel, or of another door."""

    # Its session; set to None where somebody else has it now, or its time is up.
    session: ServedSession | None

    @property
    def wire(self) -> HangUp:
        """What to hang up on then."""
        ...

    @property
    def peer(self) -> str:
        """Who it is, for the audit."""
        ...


class Front:
    """Serves the tasks of some workers to whoever connects.

    ``token``: The secret that clients must know; empty for none.
    """

    def __init__(
        self,
        workers: Workers,
        *,
        limits: ChannelLimits | None = None,
        token: str = "",
        audit: Callable[[dict[str, Json]], object] | None = None,
    ) -> None:
        self.limits = limits or ChannelLimits()
        self.held = FrameBudget(self.limits.held_bytes)
        self._workers = workers
        self._token = token.encode()
        self._audit = audit or _log
        self._ledger = SessionLedger(self.limits)
        self._manifest: dict[str, Json] = {}
        self._strangers: dict[SessionOwner, None] = {}  # the oldest first
        self._live: dict[str, SessionOwner] = {}
        self._running: dict[int, asyncio.Task[dict[str, Json]]] = {}
        self._places: dict[int, Worker] = {}
        self._behind: set[asyncio.Task[None]] = set()

    @property
    def manifest(self) -> Mapping[str, Json]:
        """What the environment offers."""
        return self._manifest

    @property
    def needs_token(self) -> bool:
        """Whether clients must know a secret."""
        return bool(self._token)

    def knows(self, token: str) -> bool:
        """Whether it is the secret."""
        return hmac.compare_digest(token.encode("utf-8", "replace"), self._token)

    async def start(self) -> None:
        """Start the workers."""
        self._manifest = await self._workers.start()
        self._later(self._sweep())

    async def stop(self) -> None:
        """Hang up on everybody, end every task and stop the workers."""
        for connection in [*self._live.values(), *self._strangers]:
            connection.wire.close()
        for session in self._ledger:
            self._remove(session, "abandoned")
        for task in self._behind:
            if task.get_name() == _SWEEPING:
                task.cancel()
        await self._workers.stop()
        if self._behind:
            await asyncio.wait(self._behind)

    async def connection(self, wire: Wire, peer: str, *, is_trusted: bool = False) -> None:
        """Serve one connection to its end."""
        connection = Connection(self, wire, peer, is_trusted=is_trusted or not self._token)
        if len(self._strangers) >= self.limits.strangers:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.wire.close()
        self._strangers[connection] = None
        try:
            await connection.serve()
        finally:
            self._strangers.pop(connection, None)
            connection.leave()
            wire.close()

    def enter(self, connection: SessionOwner, session_id: str) -> ServedSession:
        """Give a connection its session: a new one, or the one whose id it knows."""
        if session_id:
            session = self._ledger.resume(session_id)
            before = self._live.get(session.id)
            if before is not None and before is not connection:
                before.session = None  # whoever knows the id may go on; a dead peer does not
                before.wire.close()
            session.parked = None
        else:
            if self._ledger.is_full and (spare := self._ledger.spare()):
                self._remove(spare, "abandoned")
            session = self._ledger.open(connection.peer, time.monotonic())
        self._strangers.pop(connection, None)
        self._live[session.id] = connection
        return session

    def park(self, connection: SessionOwner, session: ServedSession) -> None:
        """A session's connection is gone; its task stays."""
        if self._live.get(session.id) is connection:
            del self._live[session.id]
            session.parked = time.monotonic()

    def is_session(self, session_id: str) -> bool:
        """Whether there is a session of that id."""
        return self._ledger.knows(session_id)

    def bye(self, session: ServedSession) -> None:
        """End a session."""
        self._live.pop(session.id, None)
        self._remove(session, "cancelled")

    def start_task(
        self, session: ServedSession, request: ChannelCall
    ) -> asyncio.Task[dict[str, Json]]:
        """Start a task, in place of what the session did before."""
        task, args, key = request.text("id", needed=True), request.mapping("args"), ""
        key = request.text("key")
        before = session.attempt
        if before is not None and key and (before.key, before.task) == (key, task):
            running = self._running.get(before.number)
            return running or self._later_value(before.prompt)
        self._require_idle(before)
        known = [str(cast("dict[str, Json]", row)["id"]) for row in self.templates]
        if task not in known:
            raise ChannelError(
                f"unknown task: {task[:200]!r}", code=INVALID_PARAMS, hint=nearest(task, known)
            )
        if before is not None:
            self._end(session, before, "replaced")
        attempt = self._ledger.start(session, task, args, key, time.monotonic())
        attempt.keep(request.size, self.limits.kept_bytes)
        return self._run(attempt, self._start(session, attempt))

    def require_foreign(self, task: str) -> None:
        """Refuse a task to a client that would not call its tools, and could only fail in it."""
        rows = cast("list[dict[str, Json]]", self.templates)
        if any(row["id"] == task and row.get("workspace") for row in rows):
            raise ChannelError(
                f"{task!r} works in a workspace, by tools that its client is not told of",
                code=INVALID_REQUEST,
                hint='say hello with {"form": "assay"} on the channel, and call them by tasks.call',
            )

    def move(self, session: ServedSession, request: ChannelCall) -> asyncio.Task[dict[str, Json]]:
        """Act in the task of a session, or call a tool of it; sent again it is done once."""
        attempt, method = session.begun(), request.method.removeprefix("tasks.")
        said: dict[str, Json] = {"action": request.text("action", needed=method == "step")}
        if method == "call":
            name, arguments = request.text("name", needed=True), request.mapping("arguments")
            said = {"name": name, "arguments": arguments}
        number, moves = request.params.get("number"), attempt.moves
        if moves and number == len(moves) and (moves[-1].method, moves[-1].said) == (method, said):
            return self._later_value(moves[-1].result)
        running = self._running.get(attempt.number)
        if running and number == len(moves) + 1 and attempt.moving == (method, said):
            return running  # asked again by a client whose connection broke
        self._require_idle(attempt)
        if attempt.answer is not None:
            raise ChannelError("already graded", code=INVALID_REQUEST, kind="TaskEndedError")
        if attempt.fault is not None:
            raise attempt.fault
        if number is not None and number != len(moves) + 1:
            raise ChannelError(f"the next move is number {len(moves) + 1}", code=INVALID_PARAMS)
        if len(moves) >= self.limits.moves:
            raise ChannelError(
                f"a task takes {self.limits.moves:,} moves here", code=BUSY, kind="TaskEndedError"
            )
        attempt.keep(request.size, self.limits.kept_bytes)
        attempt.moving = (method, said)
        return self._run(attempt, self._move(session, attempt, method, said))

    def grade_task(
        self, session: ServedSession, request: ChannelCall
    ) -> asyncio.Task[dict[str, Json]]:
        """Grade the task of a session, once: what is asked again gets the grade that there is."""
        attempt = session.begun()
        given = request.params.get("answer")
        answer = given if isinstance(given, str | None) else json.dumps(given, ensure_ascii=False)
        if attempt.answer is None:
            self._require_idle(attempt)
        if attempt.claim(answer):
            return self._run(attempt, self._grade(session, attempt, answer))
        return self._running.get(attempt.number) or self._later_value(attempt.grade)

    def cancel_task(self, session: ServedSession) -> None:
        """End the task of a session without a grade."""
        attempt, session.attempt = session.attempt, None
        if attempt is not None:
            self._end(session, attempt, "cancelled")

    @property
    def templates(self) -> list[Json]:
        """The rows of the manifest."""
        return cast("list[Json]", self._manifest["templates"])

    def _require_idle(self, attempt: StartedTask | None) -> None:
        if attempt is not None and attempt.number in self._running:
            raise ChannelError(
                "a task call is still running",
                code=INVALID_REQUEST,
                hint="wait for its reply, or tasks.cancel",
            )

    def _run(
        self, attempt: StartedTask, work: Coroutine[object, object, dict[str, Json]]
    ) -> asyncio.Task[dict[str, Json]]:
        running = self._running[attempt.number] = asyncio.create_task(work)

        def ended(_: object) -> None:
            if self._running.get(attempt.number) is running:
                del self._running[attempt.number]
            if not running.cancelled():
                running.exception()  # seen: whoever waits for it is told, and nobody may

        running.add_done_callback(ended)
        return running

    async def _start(self, session: ServedSession, attempt: StartedTask) -> dict[str, Json]:
        try:
            await self._doing(attempt, _nothing)
        except AssayError as error:
            if session.attempt is attempt:
                session.attempt = None
            self._end(session, attempt, "error", error)
            raise
        return cast("dict[str, Json]", attempt.prompt)

    async def _move(
        self, session: ServedSession, attempt: StartedTask, method: str, said: dict[str, Json]
    ) -> dict[str, Json]:
        async def do(worker: Worker) -> Json:
            return await worker.ask(method, {"task": attempt.number, **said}, self.limits.start)

        try:
            seen = cast("dict[str, Json]", await self._doing(attempt, do))
        except Exception as error:
            if isinstance(error, AssayError) and type_of(error) == "TaskEndedError":
                raise
            raise self._fail(session, attempt, error) from error  # whoever goes on has no grade
        attempt.moves.append(Move(method, said, seen))
        attempt.kept_bytes += len(encode(seen))
        return seen

    async def _grade(
        self, session: ServedSession, attempt: StartedTask, answer: str | None
    ) -> dict[str, Json]:
        async def grade(worker: Worker) -> Json:
            params: dict[str, Json] = {"task": attempt.number, "answer": answer}
            return await worker.ask("grade", params, self.limits.grading)

        try:
            attempt.grade = cast("dict[str, Json]", await self._doing(attempt, grade))
        except Exception as error:  # recorded: there is no second try for a better grade
            raise self._fail(session, attempt, error) from error
        self._end(session, attempt, "graded")  # recorded before it is sent
        return attempt.grade

    def _fail(self, session: ServedSession, attempt: StartedTask, error: Exception) -> ChannelError:
        """There will be no grade."""
        if isinstance(error, ChannelError):
            fault = error
        elif isinstance(error, AssayError):
            fault = ChannelError(error.message, kind=type(error).__name__, hint=error.hint)
        else:
            fault = bug(error)
        attempt.fault = fault
        self._end(session, attempt, "error", fault)
        return fault

    async def _doing(self, attempt: StartedTask, call: Callable[[Worker], Awaitable[Json]]) -> Json:
        """Do something where the task lives, and where it has died, where it lives again.

        A task that was doing something when its worker died may be what killed it, or not: after
        the second time it does it in a worker of its own, where it can harm nobody else.
        """
        while attempt.deaths < _SHARED_DEATHS:
            try:
                return await call(await self._begun(attempt))
            except WorkerGoneError as gone:
                attempt.deaths += gone.was_begun
                self._places.pop(attempt.number, None)
        async with self._workers.alone() as worker:
            try:
                await _begin(attempt, worker, self.limits.start)
                value = await call(worker)
            except WorkerGoneError:
                raise ChannelError(
                    f"{attempt.task!r} was in {attempt.deaths + 1} workers when they died",
                    kind="WorkerLostError",
                    hint="it ran out of memory, or ended its process",
                ) from None
            finally:
                await worker.end(attempt.number)
        attempt.deaths = 0  # the next call begins it again among the others
        return value

    async def _begun(self, attempt: StartedTask) -> Worker:
        """The worker that the task lives in; it is begun again if that has died."""
        place = self._places.get(attempt.number)
        if place is not None and not place.is_gone:
            return place
        worker = await self._workers.least_busy()
        self._places[attempt.number] = worker
        worker.tasks.add(attempt.number)
        await _begin(attempt, worker, self.limits.start)
        return worker

    def _end(
        self,
        session: ServedSession,
        attempt: StartedTask,
        ending: Ending,
        error: AssayError | None = None,
    ) -> None:
        """Free what a task holds and put down how it ended."""
        running = self._running.pop(attempt.number, None)
        was_over = attempt.is_over and ending not in ("graded", "error")
        if running is not None and running is not asyncio.current_task():
            running.cancel()
        worker = self._places.pop(attempt.number, None)
        if worker is not None:
            worker.tasks.discard(attempt.number)
            if ending != "graded":
                self._later(worker.end(attempt.number, self.limits.grading))
        if not was_over:
            self._note(session, attempt, ending, error)

    def _remove(self, session: ServedSession, ending: Ending) -> None:
        self._ledger.remove(session)
        if session.attempt is not None:
            self._end(session, session.attempt, ending)
        elif not session.starts:
            self._note(session, None, "never started", None)

    def _note(
        self,
        session: ServedSession,
        attempt: StartedTask | None,
        ending: Ending,
        error: AssayError | None,
    ) -> None:
        """A line of the audit: never an answer, an argument or a secret."""
        grade = (attempt and attempt.grade) or {}
        line: dict[str, Json] = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "session": session.name,
            "peer": session.peer,
            "task": attempt.task if attempt else None,
            "start": session.starts,
            "moves": len(attempt.moves) if attempt else 0,
            "ended": ending,
            "reward": grade.get("score"),
            "is_error": grade.get("isError") is True or error is not None,
            "error": type_of(error) if error else None,
            "workers_died": attempt.deaths if attempt else 0,
            "seconds": round(time.monotonic() - (attempt or session).started, 3),
        }
        try:
            self._audit(line)
        except Exception:  # a full disk must not take away a grade; the log says so
            _LOG.exception("the audit cannot be written: %s", json.dumps(line))

    async def _sweep(self) -> None:
        current = asyncio.current_task()
        if current is not None:
            current.set_name(_SWEEPING)
        nap = max(0.05, min(30.0, self.limits.parked / 4, self.limits.total / 4))
        while True:
            await asyncio.sleep(nap)
            for session in self._ledger.expired(time.monotonic()):
                if connection := self._live.pop(session.id, None):
                    connection.session = None
                    connection.wire.close()
                self._remove(session, "abandoned")

    def _later(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    def _later_value(self, value: Json) -> asyncio.Task[dict[str, Json]]:
        return asyncio.create_task(_given(cast("dict[str, Json]", value)))


_SWEEPING = "sweeping"


async def _given(value: dict[str, Json]) -> dict[str, Json]:
    return value


async def _begin(attempt: StartedTask, worker: Worker, seconds: float) -> None:
    """Begin a task in a worker; one that was begun before must say what it said then."""
    params: dict[str, Json] = {"task": attempt.number, "id": attempt.task, "args": attempt.args}
    prompt = await worker.ask("start", params, seconds)
    if attempt.prompt is None:
        attempt.prompt = prompt
    elif prompt != attempt.prompt:
        raise _lost(attempt, "asked something else")
    for move in attempt.moves:
        again = {"task": attempt.number, **move.said}
        if await worker.ask(move.method, again, seconds) != move.result:
            raise _lost(attempt, "showed something else after the same actions")


def _lost(attempt: StartedTask, what: str) -> ChannelError:
    return ChannelError(
        f"session lost: its worker died, and {attempt.task!r}, begun again, {what}",
        code=SESSION_LOST,
        kind="SessionLostError",
        hint="make what a task says depend on its arguments and the actions alone",
    )


async def _nothing(_: Worker) -> Json:
    return None


def _log(line: Mapping[str, Json]) -> None:
    _LOG.info("%s", json.dumps(line, ensure_ascii=False))
