"""The side of a gateway that agents speak to: HTTP, in four protocols, streamed or whole."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from assay.conversation.protocols import Codec, ProtocolError, addressed, codec_at, codec_of
from assay.conversation.protocols.shapes import MOST_DEPTH
from assay.errors import AgentError, AssayError, ModelError
from assay.gateway.allowance import LimitReachedError
from assay.gateway.gateway import Gateway, refusal
from assay.models.passing import AgentRequest, Passed, tokens_asked
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.sockets import accepted

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.web_protocol import RequestHandler

MCP = "/mcp"
"""Path of the run's tools, by MCP's streamable HTTP."""

_MOST_BYTES = 32 << 20
_MOST_VALUES = 250_000
"""Of the JSON of a request: an agent's body is read on the loop that all cells share."""

_MOST_HELD_BYTES = 4 * _MOST_BYTES
"""Of all requests that come in or wait for their replies, also those whose asker hung up."""

_MOST_ASKING = 256
_MOST_CONNECTIONS = 32
_BACKLOG = 1024
_BODY_SECONDS = 60.0
_GRACE_SECONDS = 0.05
_LINGERING_SECONDS = 0.2  # in which the rest of a body that was refused may still come
_PATIENCE_SECONDS = 10.0
"""A streamed reply that takes longer begins with remarks, so that nobody takes it for dead."""

_MOST_UNREAD = 12 << 20
"""Of a streamed reply: who has more to read still is not given the rest."""

_HALVES = (b"\\ud", b"\\uD", b"\xed", b"\0")
"""What every half of a surrogate pair is written with, and all JSON that is not UTF-8."""

_SENT_ON = ("anthropic-beta", "anthropic-version", "openai-beta")
_KEY_HEADERS = ("x-api-key", "api-key", "x-goog-api-key")
_COUNT, _GOOGLES_COUNT = "/messages/count_tokens", ":countTokens"


class GatewayDoor:
    """Serves one gateway on any number of listening sockets."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._room = asyncio.Semaphore(_MOST_CONNECTIONS)
        self._resting: dict[RequestHandler, None] = {}
        self._server = _server(self._answer, self._left)
        self._serving: list[asyncio.Task[None]] = []
        self._asking: set[asyncio.Task[Any]] = set()
        self._held_bytes = 0

    def open(self, listener: socket.socket) -> None:
        """Serve a socket from now on."""
        listener.setblocking(False)
        self._serving.append(asyncio.create_task(self._serve(listener)))

    async def _serve(self, listener: socket.socket) -> None:
        """Take connections one after the other; while there is no room, they wait in the kernel."""
        loop = asyncio.get_running_loop()
        with listener:
            listener.listen(_BACKLOG)
            while True:
                connection = await accepted(listener)
                try:
                    if self._room.locked() and self._resting:
                        longest = next(iter(self._resting))
                        del self._resting[longest]
                        longest.force_close()
                    await self._room.acquire()
                    await loop.connect_accepted_socket(self._server, connection)
                except BaseException:
                    connection.close()
                    raise

    def _left(self, connection: RequestHandler) -> None:
        self._resting.pop(connection, None)
        self._room.release()

    async def aclose(self) -> None:
        """Close every socket and connection."""
        for task in (*self._serving, *self._asking):
            task.cancel()
        await asyncio.gather(*self._serving, *self._asking, return_exceptions=True)
        await self._server.shutdown(_GRACE_SECONDS)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self._resting.pop(request.protocol, None)
        response = await self._reply(request)
        if self._room.locked():
            response.force_close()  # others wait
        await response.prepare(request)
        await response.write_eof()
        if response.keep_alive and request.transport is not None:
            self._resting[request.protocol] = None
        return response

    async def _reply(self, request: web.BaseRequest) -> web.StreamResponse:
        codec = codec_at(request.path)
        try:
            self._require_token(request.headers, request.query.get("key", ""))
            if request.path == MCP:
                return await self._offer(request)
            if request.method == "GET":
                return _models(request.path, self._gateway.model)
            if request.path.endswith((_COUNT, _GOOGLES_COUNT)) and request.method == "POST":
                return _json(await self._count(request))
            if codec is None or request.method != "POST":
                where = f"{request.method} {request.path}"
                raise ProtocolError(404, f"there is no {where} here")  # noqa: TRY301 - one way out
            received = await self._read(request)
            if len(self._asking) >= _MOST_ASKING:
                message = f"{_MOST_ASKING} requests wait for their replies already"
                raise ProtocolError(429, message)  # noqa: TRY301 - one way out
            body = addressed(request.path, _object(received))
            asked = codec.read_request(body)
            self._gateway.served += 1
        except ProtocolError as error:
            if error.status == 400:
                self._gateway.malformed(error)
            if codec is None:
                is_googles = "/v1beta/" in request.path or "/models/" in request.path
                codec = codec_of("google" if is_googles else "chat")
            return _json(codec.write_error(error), error.status)
        passing = AgentRequest(
            asked=asked,
            protocol=codec.NAME,
            body=body,
            raw=received if _is_plain(received) else b"",
            headers={name: request.headers[name] for name in _SENT_ON if name in request.headers},
        )
        return await self._pass(request, codec, passing, len(received))

    async def _offer(self, request: web.BaseRequest) -> web.Response:
        """Answer a frame of MCP."""
        if request.method != "POST":
            raise ProtocolError(405, "frames are posted here, one at a time")
        frame = _object(await self._read(request))
        offered = self._gateway.offered
        if offered is None:
            raise ProtocolError(404, "the task is over, or offers no tools")
        reply = await offered.answer(frame)
        return _sent(b"", 202) if reply is None else _json(reply)

    async def _read(self, request: web.BaseRequest) -> bytes:
        """The body of a request.

        Raises:
            ProtocolError: If it is too long, too slow or packed, or if too much is held already.
        """
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise ProtocolError(415, "send the body as it is, not packed")
        if (request.content_length or 0) > _MOST_BYTES:
            raise ProtocolError(413, f"a request may have {_MOST_BYTES >> 20} MiB")
        received = bytearray()
        try:
            if request.content.is_eof():  # as with most: the body came with its head
                self._take(received, request.content.read_nowait())
                return bytes(received)
            async with asyncio.timeout(_BODY_SECONDS):
                async for chunk in request.content.iter_any():
                    self._take(received, chunk)
        except TimeoutError:
            raise ProtocolError(408, "the body did not arrive in time") from None
        finally:
            self._held_bytes -= len(received)
        return bytes(received)

    def _take(self, received: bytearray, chunk: bytes) -> None:
        received += chunk
        self._held_bytes += len(chunk)
        if len(received) > _MOST_BYTES:
            raise ProtocolError(413, f"a request may have {_MOST_BYTES >> 20} MiB")
        if self._held_bytes > _MOST_HELD_BYTES:
            raise ProtocolError(503, "too much is being sent at once")

    def _require_token(self, headers: Mapping[str, str], queried: str) -> None:
        scheme, _, key = headers.get("Authorization", "").partition(" ")
        given = [queried] if queried else []
        given += [key.strip()] if scheme.lower() == "bearer" else []
        given += [headers[name] for name in _KEY_HEADERS if name in headers]
        token = self._gateway.token.encode()
        if not any(hmac.compare_digest(one.encode("utf-8", "replace"), token) for one in given):
            self._gateway.denials += 1
            raise ProtocolError(401, "this gateway takes the key that its agent was given")

    async def _count(self, request: web.BaseRequest) -> dict[str, Json]:
        """What a request would have in tokens, roughly: agents plan their context by it."""
        body = addressed(request.path, _object(await self._read(request)))
        if request.path.endswith(_GOOGLES_COUNT):
            from assay.conversation.protocols.google import read_count

            return {"totalTokens": tokens_asked(read_count(body))}
        asked = codec_of("anthropic").read_request({"max_tokens": 1, **body})
        return {"input_tokens": tokens_asked(asked)}

    async def _pass(
        self, request: web.BaseRequest, codec: Codec, passing: AgentRequest, size: int
    ) -> web.StreamResponse:
        asked = passing.asked
        if not asked.is_streamed:  # goes on where an agent hangs up, so that it is recorded
            return _whole(codec, await self._ask(passing, size))
        outlet = _Outlet()
        asking = asyncio.create_task(self._ask(passing, size, give=outlet.put))
        asking.add_done_callback(outlet.end)
        try:
            return await self._stream(request, codec, asking, outlet, wants_usage=asked.wants_usage)
        finally:
            outlet.close()

    async def _ask(
        self, passing: AgentRequest, size: int, *, give: Callable[[bytes], None] | None = None
    ) -> Passed | ProtocolError:
        task = asyncio.current_task()
        assert task
        self._asking.add(task)
        self._held_bytes += size
        try:
            passed, _ = await self._gateway.ask(passing, give=give)
        except (ModelError, LimitReachedError) as error:
            return refusal(error)
        except Exception as error:  # whatever it is, it is not the agent's: no reward comes of it
            failure = error if isinstance(error, AssayError) else AgentError(f"{error!r}")
            self._gateway.failure = failure
            return refusal(failure)
        finally:
            self._asking.discard(task)
            self._held_bytes -= size
        return passed

    async def _stream(
        self,
        request: web.BaseRequest,
        codec: Codec,
        asking: asyncio.Task[Passed | ProtocolError],
        outlet: _Outlet,
        *,
        wants_usage: bool,
    ) -> web.StreamResponse:
        from aiohttp import web

        events = await outlet.take()
        if asking.done() and not events and isinstance(failed := asking.result(), ProtocolError):
            return _whole(codec, failed)
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        )
        await response.prepare(request)
        while not (asking.done() or outlet.is_lost):
            await response.write(events or b": waiting for the model\n\n")
            events = await outlet.take()
        if outlet.is_lost:  # what came between was let go of: there is no end to give
            if request.transport is not None:
                request.transport.abort()
            return response
        got = asking.result()
        if isinstance(got, ProtocolError):
            events += codec.write_error_event(got)
        else:
            whole = codec.write_stream(got.body, wants_usage=wants_usage)
            events += got.ending or b"".join(whole)
        await response.write(events)
        await response.write_eof()
        return response


class _Outlet:
    """Events on their way to an agent: who reads slowly, or not at all, holds up nobody else."""

    def __init__(self) -> None:
        self._events: list[bytes] = []
        self._size = 0
        self._came = asyncio.Event()
        self.is_lost = False

    def put(self, events: bytes) -> None:
        """More events."""
        self._size += len(events)
        if self.is_lost or self._size > _MOST_UNREAD:
            self.close()
            return
        self._events.append(events)
        self._came.set()

    def end(self, _: object) -> None:
        """Nothing more comes."""
        self._came.set()

    def close(self) -> None:
        """Nobody reads on, or not fast enough."""
        self.is_lost = True
        self._events.clear()

    async def take(self) -> bytes:
        """What came since, as soon as something did; nothing if nothing does for some time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._came.wait()
        self._came.clear()
        events = b"".join(self._events)
        self._events.clear()
        self._size = 0
        return events


def _server(
    answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
    left: Callable[[RequestHandler], None],
) -> web.Server:
    """What answers on connections, and tells of each that has ended."""
    from aiohttp import web

    class Server(web.Server):
        def connection_lost(
            self, handler: RequestHandler, exc: BaseException | None = None
        ) -> None:
            super().connection_lost(handler, exc)
            left(handler)

    return Server(
        answer,
        access_log=None,
        # What an agent sends and breaks off is no news for the terminal of whoever runs it.
        logger=logging.Logger("assay.gateway", logging.CRITICAL + 1),  # noqa: LOG001
        keepalive_timeout=75.0,
        lingering_time=_LINGERING_SECONDS,
        read_bufsize=1 << 18,
    )


def _is_plain(received: bytes) -> bool:
    """Whether a body is UTF-8 that holds no half of a surrogate pair, which servers break at."""
    return received[:1] == b"{" and not any(half in received for half in _HALVES)


def _object(received: bytes) -> dict[str, Json]:
    """The JSON object that a body is.

    Raises:
        ProtocolError: If it is none.
    """
    try:
        body = decode_json(received, max_depth=MOST_DEPTH, max_values=_MOST_VALUES)
    except NotJsonError as error:
        if error.kind == "values":
            raise ProtocolError(413, f"the body: {error}") from None
        raise ProtocolError(400, f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise ProtocolError(400, "the body has to be a JSON object")
    return body


def _whole(codec: Codec, got: Passed | ProtocolError) -> web.Response:
    if isinstance(got, ProtocolError):
        return _json(codec.write_error(got), got.status)
    return _sent(got.raw) if got.raw else _json(got.body)


def _json(body: Mapping[str, Json], status: int = 200) -> web.Response:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return _sent(text.encode("utf-8", "replace"), status)


def _sent(body: bytes, status: int = 200) -> web.Response:
    from aiohttp import web

    return web.Response(body=body, status=status, content_type="application/json")


def _models(path: str, model: str) -> web.Response:
    """The one model that there is here, as each provider lists models.

    Raises:
        ProtocolError: For any other path.
    """
    one: Json = {"id": model, "object": "model", "type": "model", "display_name": model,
                 "owned_by": "assay", "created": 0, "name": f"models/{model}"}  # fmt: skip
    place = path.rstrip("/")
    if place.endswith("/models"):
        return _json({"object": "list", "data": [one], "has_more": False, "models": [one]})
    if "/models/" in place:
        return _json(cast("dict[str, Json]", one))
    raise ProtocolError(404, f"there is no GET {path} here")
