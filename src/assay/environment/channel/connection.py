"""One connection of a client: what it says is read, done by the front, and answered."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from assay.environment.channel.frames import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MOST_BYTES,
    NATIVE,
    NOT_JSON,
    UNAUTHORIZED,
    ChannelCall,
    Wire,
    bug,
    decode,
    encode,
    failure,
    request_of,
    success,
)
from assay.environment.channel.hud_form import for_hud
from assay.environment.channel.sessions import ServedSession
from assay.errors import AssayError, ChannelError, nearest
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from assay.environment.channel.front import Front

_MOST_BEFORE_HELLO = 1 << 16
_MOST_REPLYING = 64
_METHODS = [
    "hello",
    "tasks.list",
    "tasks.start",
    "tasks.step",
    "tasks.call",
    "tasks.grade",
    "tasks.cancel",
    "bye",
]


class _HangUpError(Exception):
    """The connection is to be closed, once its reply is sent."""


class Connection:
    """One connection, which has at most one session at a time."""

    def __init__(self, front: Front, wire: Wire, peer: str, *, is_trusted: bool) -> None:
        self.wire = wire
        self.peer = peer
        self.session: ServedSession | None = None
        self._front = front
        self._is_trusted = is_trusted
        self._is_native = False
        self._connected = 0.0
        self._waits_since: float | None = None  # None while a frame of its is being taken
        self._replying: set[asyncio.Future[None]] = set()

    async def serve(self) -> None:
        """Answer frame by frame, until somebody hangs up."""
        limits, loop = self._front.limits, asyncio.get_running_loop()
        self._connected = loop.time()
        self._watching = loop.call_later(limits.hello, self._watch)
        try:
            while True:
                most = MOST_BYTES if self.session is not None else _MOST_BEFORE_HELLO
                self._waits_since = loop.time()
                data = await self.wire.receive(most, limits.frame)
                self._waits_since = None
                if data is None:
                    return
                await self._take(data)
        except ChannelError as error:
            await self.wire.send(encode(failure(None, error)))
        except _HangUpError:
            while self._replying:
                await asyncio.wait(self._replying)
        finally:
            self._watching.cancel()

    def _watch(self) -> None:
        """Hang up on a client that has been silent for too long: one timer for all its frames."""
        limits, loop = self._front.limits, asyncio.get_running_loop()
        left = self._connected + limits.hello - loop.time()
        if self.session is not None:
            since = self._waits_since
            left = limits.idle if since is None else since + limits.idle - loop.time()
        if left > 0:
            self._watching = loop.call_later(left, self._watch)
        else:
            self.wire.close()

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
            request = request_of(decode(data), len(data))
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
            while len(self._replying) >= _MOST_REPLYING:  # it asks, and reads no reply
                await asyncio.wait(self._replying, return_when=asyncio.FIRST_COMPLETED)
            replying: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            result.add_done_callback(partial(self._reply, request, replying))
            self._replying.add(replying)
            replying.add_done_callback(self._replying.discard)
        elif number is not None:
            await self.wire.send(encode(success(number, result)))
        if request.method == "bye":
            raise _HangUpError

    def _call(self, request: ChannelCall) -> dict[str, Json] | asyncio.Task[dict[str, Json]]:
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
        front = self._front
        long = {
            "tasks.start": front.start_task,
            "tasks.step": front.move,
            "tasks.call": front.move,
            "tasks.grade": front.grade_task,
        }
        if method == "tasks.start" and not self._is_native:
            front.require_foreign(request.text("id"))
        if call := long.get(method):
            return call(session, request)
        if method == "tasks.list":
            return {"tasks": front.templates, "tools": front.manifest.get("tools") or []}
        if method == "tasks.cancel":
            front.cancel_task(session)
            return {"cancelled": True}
        self.session = None
        front.bye(session)
        return {"goodbye": True}

    def _hello(self, request: ChannelCall) -> dict[str, Json]:
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

    def _reply(
        self,
        request: ChannelCall,
        replied: asyncio.Future[None],
        result: asyncio.Task[dict[str, Json]],
    ) -> None:
        if replied.cancelled():
            return
        if request.id is not None:
            data = encode(self._said(request, request.id, result))
            if not self.wire.offer(data):
                sending = asyncio.create_task(self.wire.send(data))
                self._replying.add(sending)
                sending.add_done_callback(self._replying.discard)
        replied.set_result(None)

    def _said(
        self, request: ChannelCall, number: int | str, result: asyncio.Task[dict[str, Json]]
    ) -> dict[str, Json]:
        if result.cancelled():
            error = ChannelError("cancelled", code=INVALID_REQUEST, kind="CancelledError")
            return failure(number, error)
        if fault := result.exception():
            return failure(number, fault if isinstance(fault, AssayError) else bug(fault))
        value = result.result()
        is_foreign = request.method == "tasks.grade" and not self._is_native
        return success(number, for_hud(value) if is_foreign else value)


def _unauthorized(*, is_wrong: bool) -> ChannelError:
    return ChannelError(
        "the token is wrong" if is_wrong else "this server wants a token",
        code=UNAUTHORIZED,
        hint='hello with {"token": …}, or an Authorization header on the WebSocket',
    )
