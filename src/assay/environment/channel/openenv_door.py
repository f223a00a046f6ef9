"""The door for OpenEnv's clients: its HTTP routes and its WebSocket, onto the same sessions.

A WebSocket has episodes of its own, which end with it. What is done in single HTTP calls belongs
together by a ``session_id``, which whoever began it was told, and nobody else.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from assay.environment.channel.episodes import ClientEpisodes, default_rows, schemas, tools_of
from assay.environment.channel.frames import (
    BUSY,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MOST_BYTES,
    NOT_JSON,
    SESSION_LOST,
    WebSocketWire,
    accepted_websocket,
    bug,
    decode,
    encode,
    failure,
    request_of,
    success,
    type_of,
)
from assay.environment.channel.sessions import ServedSession
from assay.errors import AssayError, ChannelError
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from aiohttp import web

    from assay.environment.channel.front import Front

_CHUNK = 1 << 16
_CLOSE_SECONDS = 2.0
_SPLIT = "tasks"


class _Nothing:
    """What there is to hang up on between single calls."""

    def close(self) -> None:
        """See `Wire`."""


class _Client:
    """Whose an episode is."""

    def __init__(self, peer: str, wire: WebSocketWire | _Nothing) -> None:
        self.peer = peer
        self.wire = wire
        self.session: ServedSession | None = None


class OpenEnvDoor:
    """Answers OpenEnv's clients."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._kept: dict[str, tuple[_Client, ClientEpisodes]] = {}
        self._get: dict[str, Callable[[web.BaseRequest], Json]] = {
            "/metadata": self._metadata,
            "/schema": lambda _: schemas(front.manifest),
            "/state": lambda request: self._state(request.query.get("session_id", "")),
            "/list_environments": lambda _: [self._name],
            f"/{self._name}/splits": lambda _: [{"name": _SPLIT, "type": "validation"}],
        }

    @property
    def _name(self) -> str:
        return str(self._front.manifest["name"])

    def health(self) -> web.Response:
        """What anybody may ask, such as whoever started the server's container."""
        return _json(200, {"status": "healthy"})

    async def answer(self, request: web.BaseRequest, peer: str) -> web.StreamResponse:
        """Answer one request."""
        if request.path == "/ws":
            return await self._websocket(request, peer)
        try:
            return _json(200, await self._said(request, peer))
        except AssayError as error:
            return _json(_status(error), {"detail": error.message, "hint": error.hint})
        except TimeoutError:
            return _json(408, {"detail": "the request took too long"})

    async def _said(self, request: web.BaseRequest, peer: str) -> Json:
        path = request.path
        if request.method == "GET":
            if path not in self._get:
                raise _unknown(path)
            return self._get[path](request)
        if request.method != "POST":
            raise _unknown(f"{request.method} {path}")
        body = decode(await self._body(request) or b"{}")
        if path == "/mcp":
            return await self._called(body, peer)
        if path == "/reset":
            return await self._reset(body, peer)
        if path == "/step":
            return await self._step(body)
        return self._tasks(path, body)

    async def _body(self, request: web.BaseRequest) -> bytes:
        held, taken, data = self._front.held, 0, bytearray()
        try:
            async with asyncio.timeout(self._front.limits.frame):
                async for chunk in request.content.iter_chunked(_CHUNK):
                    held.take(len(chunk))
                    taken += len(chunk)
                    data += chunk
                    if taken > MOST_BYTES:
                        raise ChannelError(
                            f"a body is larger than {MOST_BYTES:,} bytes", code=INVALID_REQUEST
                        )
        finally:
            held.give(taken)
        return bytes(data)

    def _metadata(self, _: web.BaseRequest) -> Json:
        rows = cast("list[dict[str, Json]]", self._front.templates)
        described = [f"{row['id']}: {row['description']}".removesuffix(": ") for row in rows]
        return {
            "name": self._name,
            "description": "\n".join(described),
            "readme_content": None,
            "version": str(self._front.manifest["version"]),
            "author": None,
            "documentation_url": None,
        }

    def _tasks(self, path: str, body: Mapping[str, Json]) -> Json:
        """The task API: the templates that need no arguments, as `reset` takes them."""
        found: list[Json] = [
            {"task": row["id"], "args": {}} for row in default_rows(self._front.manifest)
        ]
        what = path.removeprefix(f"/{self._name}/")
        if what not in ("tasks", "num_tasks", "task", "task_range"):
            raise _unknown(path)
        if body.get("split") != _SPLIT:
            raise ChannelError(f"there is one split, {_SPLIT!r}", code=INVALID_PARAMS)
        if what == "tasks":
            return {"tasks": found, "env_name": self._name}
        if what == "num_tasks":
            return {"num_tasks": len(found)}
        if what == "task_range":
            start, stop = body.get("start"), body.get("stop")
            bounds = [None if end is None else _index(end, len(found)) for end in (start, stop)]
            return {"tasks": found[bounds[0] : bounds[1]]}
        index = _index(body.get("index"), len(found) - 1)
        return {"task": found[index]}

    def _keep(self, peer: str) -> str:
        """Begin what single calls do."""
        for key, (client, _) in list(self._kept.items()):
            if client.session is None or not self._front.is_session(client.session.id):
                del self._kept[key]
        client = _Client(peer, _Nothing())
        key = secrets.token_hex(16)
        self._kept[key] = client, ClientEpisodes(self._front, client)
        self._park(client)
        return key

    def _found(self, key: Json) -> tuple[_Client, ClientEpisodes]:
        kept = self._kept.get(key) if isinstance(key, str) else None
        if kept is None:
            if not key:
                raise ChannelError(
                    "a single call must say what it belongs to",
                    code=INVALID_PARAMS,
                    hint="session_id, of the metadata of /reset; or use the WebSocket at /ws",
                )
            raise ChannelError("unknown session", code=SESSION_LOST, hint="it has ended")
        return kept

    def _park(self, client: _Client) -> None:
        if client.session is not None:
            self._front.park(client, client.session)

    def _resume(self, client: _Client) -> None:
        session = client.session
        if session is not None and self._front.is_session(session.id):
            self._front.enter(client, session.id)
        else:
            client.session = None

    async def _reset(self, body: Mapping[str, Json], peer: str) -> Json:
        key = self._keep(peer)
        client, episodes = self._kept[key]
        self._resume(client)
        try:
            seen = await episodes.reset(body)
        except BaseException:
            del self._kept[key]
            episodes.end()
            raise
        self._park(client)
        metadata = {**cast("dict[str, Json]", seen["metadata"]), "session_id": key}
        return {**seen, "metadata": metadata}

    async def _step(self, body: Mapping[str, Json]) -> Json:
        client, episodes = self._found(body.get("session_id"))
        action = body.get("action")
        if not isinstance(action, dict):
            raise ChannelError("'action' must be an object", code=INVALID_PARAMS)
        self._resume(client)
        try:
            return await episodes.step(action)
        finally:
            self._park(client)

    def _state(self, key: str) -> Json:
        return self._found(key)[1].state()

    async def _called(
        self, frame: Mapping[str, Json], peer: str, own: ClientEpisodes | None = None
    ) -> dict[str, Json]:
        """Answer a call of MCP's tools, as OpenEnv frames it."""
        number: int | str | None = None
        try:
            request = request_of(frame)
            number, params = request.id, request.params
            if request.method == "tools/list":
                return success(number, {"tools": cast("Json", tools_of(self._front.manifest))})
            if request.method == "tools/call":
                return success(number, await self._tool(params, own))
            if own is None and request.method == "openenv/session/create":
                return success(number, {"session_id": self._keep(peer)})
            if own is None and request.method == "openenv/session/close":
                key = request.text("session_id", needed=True)
                client, episodes = self._found(key)
                del self._kept[key]
                episodes.end()
                client.wire.close()
                return success(number, {"session_id": key, "closed": True})
            raise ChannelError(f"method not found: {request.method[:80]}", code=METHOD_NOT_FOUND)
        except AssayError as error:
            return failure(number, error)

    async def _tool(
        self, params: Mapping[str, Json], own: ClientEpisodes | None
    ) -> dict[str, Json]:
        if own is None:
            client, episodes = self._found(params.get("session_id"))
            is_parked = client.session is not None and client.session.parked is not None
            if is_parked:
                self._resume(client)
            try:
                seen = await episodes.call(params.get("name"), params.get("arguments"))
            finally:
                if is_parked:
                    self._park(client)
        else:
            seen = await own.call(params.get("name"), params.get("arguments"))
        said = cast("dict[str, Json]", seen["observation"])
        if isinstance(wrong := said["error"], dict):
            raise ChannelError(str(wrong["message"]), kind=str(wrong.get("error_type") or ""))
        return {"data": said["result"], "isError": False}

    async def _websocket(self, request: web.BaseRequest, peer: str) -> web.StreamResponse:
        accepted = await accepted_websocket(request, self._front.limits.frame, _CLOSE_SECONDS)
        if accepted is None:
            return _json(426, {"detail": "/ws speaks WebSocket"})
        opened, wire = accepted
        try:
            await self._converse(wire, request.query.get("session_id", ""), peer)
            with suppress(OSError, RuntimeError, TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await opened.close()
        finally:
            wire.close()
        return opened

    async def _converse(self, wire: WebSocketWire, key: str, peer: str) -> None:
        """Answer message by message, each after the one before, until somebody hangs up.

        One more is waited for meanwhile: so it is seen that the client hangs up, and its pings are
        answered.
        """
        try:
            client, episodes = self._entered(wire, key, peer)
        except AssayError as error:
            await wire.send(encode(_failed(error, is_session=True)))
            return
        limits = self._front.limits
        ahead = asyncio.create_task(wire.receive(MOST_BYTES, limits.frame))
        working: asyncio.Task[bool] | None = None
        try:
            while (await asyncio.wait({ahead}, timeout=limits.idle))[0]:
                if (data := ahead.result()) is None:
                    return
                ahead = asyncio.create_task(wire.receive(MOST_BYTES, limits.frame))
                working = asyncio.create_task(self._take(wire, episodes, data))
                await asyncio.wait({working, ahead}, return_when=asyncio.FIRST_COMPLETED)
                if not working.done() and ahead.result() is not None:
                    await asyncio.wait({working})
                if not working.done() or not working.result():
                    return
        except ChannelError as error:
            await wire.send(encode(_failed(error)))
        finally:
            left = {task for task in (ahead, working) if task is not None}
            for task in left:
                task.cancel()
            await asyncio.wait(left)
            if key:
                client.wire = _Nothing()
                self._park(client)
            else:
                episodes.end()

    def _entered(self, wire: WebSocketWire, key: str, peer: str) -> tuple[_Client, ClientEpisodes]:
        """Who has connected: somebody new, or who knows what was begun in single calls."""
        if not key:
            new = _Client(peer, wire)
            return new, ClientEpisodes(self._front, new)
        client, episodes = self._found(key)
        if not isinstance(client.wire, _Nothing):
            raise ChannelError("the session has a WebSocket", code=INVALID_REQUEST)
        self._resume(client)
        client.wire = wire
        return client, episodes

    async def _take(self, wire: WebSocketWire, episodes: ClientEpisodes, data: str | bytes) -> bool:
        """Answer one message; whether the client stays."""
        try:
            said = await self._reply(episodes, decode(data))
        except AssayError as error:
            said = _failed(error)
        except Exception as error:  # a bug of ours, which must not look like an answer
            said = _failed(bug(error))
        if said is not None:
            await wire.send(encode(said))
        return said is not None

    async def _reply(
        self, episodes: ClientEpisodes, message: Mapping[str, Json]
    ) -> dict[str, Json] | None:
        kind, data = message.get("type"), message.get("data")
        known = {"type", "data"} if kind in ("reset", "step", "mcp") else {"type"}
        if kind not in ("reset", "step", "state", "close", "mcp"):
            raise ChannelError(f"unknown message type: {str(kind)[:80]}", code=METHOD_NOT_FOUND)
        if extra := [name for name in message if name not in known]:
            raise ChannelError(f"{kind} has no {extra[0][:80]!r}", code=INVALID_PARAMS)
        if kind == "close":
            return None
        if kind == "state":
            return {"type": "state", "data": episodes.state()}
        if kind == "reset" and "data" not in message:
            data = {}
        if not isinstance(data, dict):
            raise ChannelError(f"{kind}: 'data' must be an object", code=INVALID_PARAMS)
        if kind == "mcp":
            return {"type": "mcp", "data": await self._called(data, "", episodes)}
        work = episodes.reset if kind == "reset" else episodes.step
        return {"type": "observation", "data": await work(data)}


def _failed(error: AssayError, *, is_session: bool = False) -> dict[str, Json]:
    """An error as OpenEnv frames it."""
    code = error.code if isinstance(error, ChannelError) else 0
    kind = type_of(error)
    named = _CODES.get(code, "SESSION_ERROR" if is_session else "EXECUTION_ERROR")
    if code == BUSY and kind == "TaskEndedError":
        named = "EXECUTION_ERROR"
    # Its clients show the message and the code, and nothing else.
    message = f"{error.message} ({error.hint})" if error.hint else error.message
    data: dict[str, Json] = {"message": message, "code": named, "kind": kind}
    if named == "VALIDATION_ERROR":
        data["errors"] = [{"type": kind, "loc": [], "msg": error.message}]
    return {"type": "error", "data": data}


_CODES = {
    NOT_JSON: "INVALID_JSON",
    METHOD_NOT_FOUND: "UNKNOWN_TYPE",
    INVALID_PARAMS: "VALIDATION_ERROR",
    BUSY: "CAPACITY_REACHED",
}
_STATUS = {
    NOT_JSON: 400,
    METHOD_NOT_FOUND: 404,
    INVALID_PARAMS: 422,
    INVALID_REQUEST: 409,
    SESSION_LOST: 404,
    BUSY: 503,
}


def _status(error: AssayError) -> int:
    return _STATUS.get(error.code, 500) if isinstance(error, ChannelError) else 500


def _unknown(what: str) -> ChannelError:
    return ChannelError(f"there is no {what[:200]}", code=METHOD_NOT_FOUND)


def _index(value: Json, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ChannelError(f"there is no task {str(value)[:40]}", code=INVALID_PARAMS)
    return value


def _json(status: int, value: Json) -> web.Response:
    from aiohttp import web

    body = encode(value) if isinstance(value, dict) else encode({"value": value})[9:-1]
    response = web.Response(status=status, body=body, content_type="application/json")
    response.force_close()
    return response
