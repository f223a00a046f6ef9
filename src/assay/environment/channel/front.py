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
from typing import TypeVar, cast

from assay.environment.channel.frames import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MOST_BYTES,
    NOT_JSON,
    SESSION_LOST,
    UNAUTHORIZED,
    Held,
    Request,
    Wire,
    decode,
    encode,
    failure,
    request_of,
    success,
)
from assay.environment.channel.sessions import Attempt, Ending, Ledger, Limits, ServedSession
from assay.environment.channel.workers import Worker, WorkerGoneError, Workers
from assay.errors import AssayError, ChannelError, nearest
from assay.scoring.json_safe import Json

__all__ = ["NATIVE", "Front"]

T = TypeVar("T")

NATIVE = "assay"
"""What a client calls the form of grades that says all; others get HUD's."""

_LOG = logging.getLogger("assay.channel")
_MOST_BEFORE_HELLO = 1 << 16
_MOST_DEATHS = 3
_SHARED_DEATHS = 2
_METHODS = ["hello", "tasks.list", "tasks.start", "tasks.grade", "tasks.cancel", "bye"]


class Front:
    """Serves the tasks of some workers to whoever connects.

    Args:
        workers: Where templates run.
        limits: What it bears.
        token: The secret that clients must know; empty for none.
        audit: Is told how each task ended.
    """

    def __init__(
        self,
        workers: Workers,
        *,
        limits: Limits | None = None,
        token: str = "",
        audit: Callable[[dict[str, Json]], object] | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.held = Held(self.limits.held_bytes)
        self._workers = workers
        self._token = token.encode()
        self._audit = audit or _log
        self._ledger = Ledger(self.limits)
        self._manifest: dict[str, Json] = {}
        self._strangers: dict[_Connection, None] = {}  # the oldest first
        self._live: dict[str, _Connection] = {}
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
        """Start the workers.

        Raises:
            InputError: If the environment's file cannot be loaded.
        """
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
        """Serve one connection to its end.

        Args:
            wire: The connection.
            peer: Who it is, for the audit.
            is_trusted: Whether it has shown the token already.
        """
        connection = _Connection(self, wire, peer, is_trusted=is_trusted or not self._token)
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

    def enter(self, connection: _Connection, session_id: str) -> ServedSession:
        """Give a connection its session: a new one, or the one whose id it knows.

        Raises:
            ChannelError: If there is none of that id, or no more can be opened.
        """
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

    def park(self, connection: _Connection, session: ServedSession) -> None:
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

    def start_task(self, session: ServedSession, request: Request) -> asyncio.Task[dict[str, Json]]:
        """Start a task, in place of what the session did before.

        Raises:
            ChannelError: If it cannot be started.
        """
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
        return self._run(attempt, self._start(session, attempt))

    def grade_task(self, session: ServedSession, request: Request) -> asyncio.Task[dict[str, Json]]:
        """Grade the task of a session, once: what is asked again gets the grade that there is.

        Raises:
            ChannelError: If there is none, or another answer was graded.
        """
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

    def _require_idle(self, attempt: Attempt | None) -> None:
        if attempt is not None and attempt.number in self._running:
            raise ChannelError(
                "a task call is still running",
                code=INVALID_REQUEST,
                hint="wait for its reply, or tasks.cancel",
            )

    def _run(
        self, attempt: Attempt, work: Coroutine[object, object, dict[str, Json]]
    ) -> asyncio.Task[dict[str, Json]]:
        running = self._running[attempt.number] = asyncio.create_task(work)

        def ended(_: object) -> None:
            if self._running.get(attempt.number) is running:
                del self._running[attempt.number]
            if not running.cancelled():
                running.exception()  # seen: whoever waits for it is told, and nobody may

        running.add_done_callback(ended)
        return running

    async def _start(self, session: ServedSession, attempt: Attempt) -> dict[str, Json]:
        try:
            await self._doing(attempt, _nothing)
        except AssayError as error:
            if session.attempt is attempt:
                session.attempt = None
            self._end(session, attempt, "error", error)
            raise
        return cast("dict[str, Json]", attempt.prompt)

    async def _grade(
        self, session: ServedSession, attempt: Attempt, answer: str | None
    ) -> dict[str, Json]:
        async def grade(worker: Worker) -> Json:
            params: dict[str, Json] = {"task": attempt.number, "answer": answer}
            return await worker.ask("grade", params, self.limits.grading)

        try:
            attempt.grade = cast("dict[str, Json]", await self._doing(attempt, grade))
        except AssayError as error:
            attempt.fault = (
                error
                if isinstance(error, ChannelError)
                else ChannelError(error.message, kind=type(error).__name__, hint=error.hint)
            )
            self._end(session, attempt, "error", error)
            raise attempt.fault from error
        self._end(session, attempt, "graded")  # recorded before it is sent
        return attempt.grade

    async def _doing(self, attempt: Attempt, call: Callable[[Worker], Awaitable[Json]]) -> Json:
        """Do something where the task lives, and where it has died, where it lives again.

        A task that was doing something when its worker died may be what killed it, or not: after
        the second time it gets a worker of its own, where it can harm nobody else.
        """
        while True:
            try:
                return await call(await self._begun(attempt))
            except WorkerGoneError as gone:
                attempt.deaths += gone.was_begun
                self._places.pop(attempt.number, None)
                if attempt.deaths >= _MOST_DEATHS:
                    raise ChannelError(
                        f"{attempt.task!r} was in {attempt.deaths} workers when they died",
                        kind="WorkerLostError",
                        hint="it ran out of memory, or ended its process",
                    ) from None

    async def _begun(self, attempt: Attempt) -> Worker:
        """The worker that the task lives in; it is begun again if that has died."""
        place = self._places.get(attempt.number)
        if place is not None and not place.is_gone:
            return place
        is_suspect = attempt.deaths >= _SHARED_DEATHS
        worker = await (self._workers.own() if is_suspect else self._workers.least_busy())
        self._places[attempt.number] = worker
        worker.tasks.add(attempt.number)
        params: dict[str, Json] = {
            "task": attempt.number,
            "id": attempt.task,
            "args": attempt.args,
        }
        prompt = await worker.ask("start", params, self.limits.start)
        if attempt.prompt is None:
            attempt.prompt = prompt
        elif prompt != attempt.prompt:
            raise ChannelError(
                f"session lost: its worker died, and {attempt.task!r}, begun again, asked "
                "something else",
                code=SESSION_LOST,
                kind="SessionLostError",
                hint="make what the task asks depend on its arguments alone",
            )
        return worker

    def _end(
        self,
        session: ServedSession,
        attempt: Attempt,
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
            self._later(self._leave(worker, attempt.number, is_ended=ending == "graded"))
        if not was_over:
            self._note(session, attempt, ending, error)

    async def _leave(self, worker: Worker, number: int, *, is_ended: bool) -> None:
        if is_ended:
            worker.tasks.discard(number)
        else:
            await worker.end(number)
        if self._workers.is_own(worker):
            await worker.stop()

    def _remove(self, session: ServedSession, ending: Ending) -> None:
        self._ledger.remove(session)
        if session.attempt is not None:
            self._end(session, session.attempt, ending)
        elif not session.starts:
            self._note(session, None, "never started", None)

    def _note(
        self,
        session: ServedSession,
        attempt: Attempt | None,
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
            "ended": ending,
            "reward": grade.get("score"),
            "is_error": grade.get("isError") is True or error is not None,
            "error": type_of(error) if error else None,
            "workers_died": attempt.deaths if attempt else 0,
            "seconds": round(time.monotonic() - (attempt or session).started, 3),
        }
        self._audit(line)

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


async def _nothing(_: Worker) -> Json:
    return None


def type_of(error: AssayError) -> str:
    """What kind of fault it is."""
    kind = error.kind if isinstance(error, ChannelError) else ""
    return kind or type(error).__name__


def _log(line: Mapping[str, Json]) -> None:
    _LOG.info("%s", json.dumps(line, ensure_ascii=False))


class _HangUpError(Exception):
    """The connection is to be closed, once its reply is sent."""


class _Connection:
    """One connection, which has at most one session at a time."""

    def __init__(self, front: Front, wire: Wire, peer: str, *, is_trusted: bool) -> None:
        self.wire = wire
        self.peer = peer
        self.session: ServedSession | None = None
        self._front = front
        self._is_trusted = is_trusted
        self._is_native = False
        self._replying: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        limits = self._front.limits
        deadline = time.monotonic() + limits.hello
        try:
            while True:
                is_known = self.session is not None
                patience = limits.idle if is_known else max(0.0, deadline - time.monotonic())
                async with asyncio.timeout(patience):
                    most = MOST_BYTES if is_known else _MOST_BEFORE_HELLO
                    data = await self.wire.receive(most, limits.frame)
                if data is None:
                    return
                await self._take(data)
        except TimeoutError:
            return
        except ChannelError as error:
            await self.wire.send(encode(failure(None, error)))
        except _HangUpError:
            if self._replying:
                await asyncio.wait(self._replying)

    def leave(self) -> None:
        """The connection is gone."""
        for replying in self._replying:
            replying.cancel()
        if self.session is not None:
            self._front.park(self, self.session)

    async def _take(self, data: str | bytes) -> None:
        """Answer one frame; what takes long is answered when it is done."""
        number: int | str | None = None
        try:
            request = request_of(decode(data))
            number = request.id
            result = self._call(request)
        except ChannelError as error:
            if error.code == NOT_JSON:
                raise  # nobody knows where the next frame begins
            await self.wire.send(encode(failure(number, error)))
            if error.code == UNAUTHORIZED:
                raise _HangUpError from None
            return
        if isinstance(result, asyncio.Task):
            replying = asyncio.create_task(self._reply(request, result))
            self._replying.add(replying)
            replying.add_done_callback(self._replying.discard)
        elif number is not None:
            await self.wire.send(encode(success(number, result)))
        if request.method == "bye":
            raise _HangUpError

    def _call(self, request: Request) -> dict[str, Json] | asyncio.Task[dict[str, Json]]:
        method = request.method
        if method == "hello":
            return self._hello(request)
        if method not in _METHODS:
            raise ChannelError(
                f"method not found: {method[:80]}",
                code=METHOD_NOT_FOUND,
                hint=nearest(method, _METHODS),
            )
        session = self._entered()
        if method == "tasks.list":
            return {"tasks": self._front.templates}
        if method == "tasks.start":
            return self._front.start_task(session, request)
        if method == "tasks.grade":
            return self._front.grade_task(session, request)
        if method == "tasks.cancel":
            self._front.cancel_task(session)
            return {"cancelled": True}
        self.session = None
        self._front.bye(session)
        return {"goodbye": True}

    def _hello(self, request: Request) -> dict[str, Json]:
        wanted, token = request.text("session_id"), request.text("token")
        if not self._is_trusted:
            # Whoever knows the id of a session was let in when it was opened.
            is_known = bool(wanted) and self._front.is_session(wanted)
            if not (token and self._front.knows(token)) and not is_known:
                raise _unauthorized(is_wrong=bool(token))
            self._is_trusted = True
        self._is_native = request.text("form") == NATIVE
        session = self.session
        if session is None or (wanted and wanted != session.id):
            entered = self._front.enter(self, wanted)
            if session is not None:
                self._front.park(self, session)
            session = self.session = entered
        manifest = self._front.manifest
        return {
            "session_id": session.id,
            "env": {"name": manifest["name"], "version": manifest["version"]},
            "bindings": manifest.get("bindings") or [],
            "form": NATIVE if self._is_native else "hud",
        }

    def _entered(self) -> ServedSession:
        """The session; a client that does not say hello gets a new one, if it needs no token."""
        if self.session is None:
            if not self._is_trusted:
                raise _unauthorized(is_wrong=False)
            self.session = self._front.enter(self, "")
        return self.session

    async def _reply(self, request: Request, result: asyncio.Task[dict[str, Json]]) -> None:
        await asyncio.wait({result})
        if request.id is None:
            return
        if result.cancelled():
            error = ChannelError("cancelled", code=INVALID_REQUEST, kind="CancelledError")
            frame = failure(request.id, error)
        elif fault := result.exception():
            known = fault if isinstance(fault, AssayError) else _bug(fault)
            frame = failure(request.id, known)
        else:
            value = result.result()
            is_foreign = request.method == "tasks.grade" and not self._is_native
            frame = success(request.id, for_hud(value) if is_foreign else value)
        await self.wire.send(encode(frame))


def _unauthorized(*, is_wrong: bool) -> ChannelError:
    return ChannelError(
        "the token is wrong" if is_wrong else "this server wants a token",
        code=UNAUTHORIZED,
        hint='hello with {"token": …}, or an Authorization header on the WebSocket',
    )


def _bug(fault: BaseException) -> ChannelError:
    _LOG.error("a call failed", exc_info=fault)
    return ChannelError("the server failed", code=-32603, kind=type(fault).__name__)


def for_hud(grade: Mapping[str, Json]) -> dict[str, Json]:
    """A grade in HUD's form, whose readers refuse what they do not know.

    That form has a score in every frame: one without a reward is an error there.
    """
    score = grade.get("score")
    content = grade.get("content")
    nodes = grade.get("subscores")
    return {
        "score": score if score is not None else 0.0,
        "done": grade.get("done") is not False,
        "content": content if score is not None or content else "nothing applied",
        "info": grade.get("info") or {},
        "isError": score is None,
        "subscores": _hud_nodes(nodes) if isinstance(nodes, list) else None,
    }


def _hud_nodes(nodes: list[Json]) -> list[Json]:
    """Nodes that have a value; their own fields beyond HUD's go into ``info``."""
    found: list[Json] = []
    for node in nodes:
        if not isinstance(node, dict) or node.get("status", "scored") != "scored":
            continue
        metadata, children = node.get("metadata"), node.get("children")
        more = {key: node.get(key) for key in ("gate", "reason", "flags", "assurance")}
        info = {**(metadata if isinstance(metadata, dict) else {})}
        info.update({key: value for key, value in more.items() if value})
        found.append(
            {
                "name": node.get("name"),
                "weight": node.get("weight"),
                "value": node.get("value"),
                "children": _hud_nodes(children) if isinstance(children, list) else None,
                "info": info or None,
            }
        )
    return found
