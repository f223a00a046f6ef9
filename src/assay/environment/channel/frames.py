"""Frames: JSON-RPC 2.0, one JSON object a line (TCP) or a message (WebSocket), bounded, strict.

Both ends and the workers read and write them here. Whatever comes from a peer is decoded as the
JSON of a stranger: a key that stands twice, NaN, deep nesting and masses of values are refused.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, cast

from assay.errors import AssayError, ChannelError
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

if TYPE_CHECKING:
    from aiohttp import ClientWebSocketResponse, web

_LOG = logging.getLogger("assay.channel")
NATIVE = "assay"
"""What a client calls the form of grades that says all; others get HUD's."""

MOST_BYTES = 16 << 20
"""Of one frame of a client, its line break not counted."""
_MOST_AROUND = 1 << 10
"""Of a frame, what stands around the parameters."""
_MOST_DEPTH = 100
_MOST_VALUES = 500_000
_MOST_SAID = 10_000
_CHUNK = 1 << 16
_PING_SECONDS = 30.0

NOT_JSON = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
TASK_RAISED = -32000
UNAUTHORIZED = -32001
SESSION_LOST = -32002
BUSY = -32003


class Wire(Protocol):
    """One connection, frame by frame."""

    async def receive(self, most: int, seconds: float) -> str | bytes | None:
        """The next frame as it came; None where the peer has hung up."""
        ...

    async def send(self, data: bytes) -> None:
        """Write a frame; the peer may be gone."""
        ...

    def offer(self, data: bytes) -> bool:
        """Write a frame if nothing has to be waited for; whether it was written."""
        ...

    def close(self) -> None:
        """Hang up, now."""
        ...


class FrameBudget:
    """How many bytes of unfinished frames a server holds in all, and may hold."""

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, count: int) -> None:
        """Hold more."""
        if count > self._left:
            raise ChannelError("too much is being sent to this server at once", code=BUSY)
        self._left -= count

    def give(self, count: int) -> None:
        """Hold less."""
        self._left += count


class TcpWire:
    """Frames that end in a line break."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        held: FrameBudget | None = None,
        send_seconds: float | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._ahead = bytearray()
        self._held = held
        self._send_seconds = send_seconds
        self._posted = bytearray()

    async def receive(self, most: int, seconds: float) -> bytes | None:
        """See `Wire`."""
        line = self._line(0, most)
        if line is not None:
            return line
        if not self._ahead:
            if not await self._more():
                return None
            if (line := self._line(0, most)) is not None:
                return line
        taken = 0
        try:
            async with asyncio.timeout(seconds):
                searched = 0
                while (line := self._line(searched, most)) is None:
                    searched = len(self._ahead)
                    if self._held is not None:
                        self._held.take(searched - taken)
                        taken = searched
                    if not await self._more():
                        return None  # half a frame is nothing
                return line
        except TimeoutError:
            raise ChannelError(
                f"a frame took longer than {seconds:g} s", code=INVALID_REQUEST
            ) from None
        finally:
            if self._held is not None:
                self._held.give(taken)

    def _line(self, start: int, most: int) -> bytes | None:
        end = self._ahead.find(b"\n", start)
        if (len(self._ahead) if end < 0 else end) > most:
            raise ChannelError(
                f"a frame is larger than {most:,} bytes",
                code=INVALID_REQUEST,
                hint="keep large data elsewhere, and send its name",
            )
        if end < 0:
            return None
        line = bytes(self._ahead[:end])
        del self._ahead[: end + 1]
        return line

    async def _more(self) -> bool:
        try:
            data = await self._reader.read(_CHUNK)
        except (OSError, asyncio.IncompleteReadError):
            return False
        self._ahead += data
        return bool(data)

    async def send(self, data: bytes) -> None:
        """See `Wire`; whoever does not read what it asked for is hung up on."""
        try:
            self._writer.write(data + b"\n")
            if self._writer.transport.get_write_buffer_size():
                async with asyncio.timeout(self._send_seconds):
                    await self._writer.drain()
        except TimeoutError:
            self.close()
        except OSError:
            pass  # it hangs up: the reader sees it, too

    def offer(self, data: bytes) -> bool:
        """See `Wire`."""
        if self._writer.transport.get_write_buffer_size():
            return False
        self._writer.write(data + b"\n")
        return True

    def post(self, data: bytes) -> None:
        """Send a frame together with those that are posted in this round of the loop."""
        if not self._posted:
            asyncio.get_running_loop().call_soon(self._send_posted)
        self._posted += data
        self._posted += b"\n"

    def _send_posted(self) -> None:
        posted, self._posted = self._posted, bytearray()
        self._writer.write(posted)

    def finish(self) -> None:
        """Say that nothing more will be sent."""
        with suppress(OSError):
            self._writer.write_eof()

    def close(self) -> None:
        """See `Wire`."""
        self._writer.transport.abort()


class WebSocketWire:
    """Frames that are messages of a WebSocket, of either end."""

    def __init__(
        self,
        socket: ClientWebSocketResponse | web.WebSocketResponse,
        abort: Callable[[], object],
        send_seconds: float | None = None,
    ) -> None:
        self._socket = socket
        self._abort = abort
        self._send_seconds = send_seconds

    async def receive(self, most: int, seconds: float) -> str | bytes | None:  # noqa: ARG002
        """See `Wire`; how long a message may take is up to whoever awaits it."""
        from aiohttp import WSMsgType

        message = await self._socket.receive()
        if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            return None
        data = cast("str | bytes", message.data)
        if len(data) > most:
            raise ChannelError(f"a frame is larger than {most:,} bytes", code=INVALID_REQUEST)
        return data

    def offer(self, data: bytes) -> bool:  # noqa: ARG002 - aiohttp alone knows what it has buffered
        """See `Wire`."""
        return False

    async def send(self, data: bytes) -> None:
        """See `Wire`."""
        try:
            async with asyncio.timeout(self._send_seconds):
                await self._socket.send_str(data.decode())
        except TimeoutError:
            self.close()
        except (OSError, RuntimeError):
            pass  # it hangs up: the reader sees it, too

    def close(self) -> None:
        """See `Wire`."""
        self._abort()


async def accepted_websocket(
    request: web.BaseRequest, send_seconds: float, close_seconds: float = 10.0
) -> tuple[web.WebSocketResponse, WebSocketWire] | None:
    """Open the WebSocket that a request asks for; None for one that does not."""
    from aiohttp import web

    opened = web.WebSocketResponse(
        max_msg_size=MOST_BYTES, heartbeat=_PING_SECONDS, compress=False, timeout=close_seconds
    )
    if not opened.can_prepare(request):
        return None
    await opened.prepare(request)
    transport = request.transport
    abort = (lambda: None) if transport is None else transport.abort
    return opened, WebSocketWire(opened, abort, send_seconds)


@frozen
class ChannelCall:
    """One call."""

    id: int | str | None
    method: str
    params: Mapping[str, Json]
    size: int = 0

    def text(self, name: str, *, needed: bool = False) -> str:
        """A parameter that is text."""
        value = self.params.get(name)
        if value is None and not needed:
            return ""
        if not isinstance(value, str):
            raise ChannelError(
                f"{self.method}: {name!r} must be text, got {_kind(value)}", code=INVALID_PARAMS
            )
        return value

    def mapping(self, name: str) -> dict[str, Json]:
        """A parameter that is an object; left out it is empty."""
        value = self.params.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise ChannelError(
                f"{self.method}: {name!r} must be an object, got {_kind(value)}",
                code=INVALID_PARAMS,
            )
        return value


def encode(frame: Mapping[str, Json]) -> bytes:
    """A frame as it is sent."""
    text = json.dumps(frame, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a character, which JSON can hold where UTF-8 cannot
        return json.dumps(frame, separators=(",", ":"), allow_nan=False).encode()


def decode(data: str | bytes, *, bounded: bool = True) -> dict[str, Json]:
    """Read a frame."""
    try:
        frame = decode_json(
            data,
            max_depth=_MOST_DEPTH if bounded else None,
            max_values=_MOST_VALUES if bounded else None,
        )
    except NotJsonError as error:
        raise ChannelError(f"a frame is not JSON: {error}", code=NOT_JSON) from None
    if isinstance(frame, list):
        raise ChannelError("a frame is a list: calls are sent one by one", code=INVALID_REQUEST)
    if not isinstance(frame, dict):
        raise ChannelError(f"a frame must be an object, got {_kind(frame)}", code=INVALID_REQUEST)
    return frame


def unsendable(params: Mapping[str, Json]) -> str:
    """Why the other end would not take a frame with these; empty where it would.

    What somebody says who is graded must not break the connection that brings the grade.
    """
    try:
        data = encode({"params": dict(params)})
        decode(data)
    except ChannelError as error:
        return error.message
    except (ValueError, RecursionError):
        return "it holds what JSON cannot"
    return "it is larger than a frame" if len(data) > MOST_BYTES - _MOST_AROUND else ""


def request_of(frame: Mapping[str, Json], size: int = 0) -> ChannelCall:
    """Read a call, and note how large its frame was."""
    number, method, params = frame.get("id"), frame.get("method"), frame.get("params")
    if isinstance(number, bool) or not isinstance(number, int | str | None):
        raise ChannelError(
            f"'id' must be a whole number or text, got {_kind(number)}", code=INVALID_REQUEST
        )
    if not isinstance(method, str):
        raise ChannelError(f"'method' must be text, got {_kind(method)}", code=INVALID_REQUEST)
    if not isinstance(params, dict | None):
        raise ChannelError(
            f"{method[:80]}: 'params' must be an object, got {_kind(params)}", code=INVALID_PARAMS
        )
    return ChannelCall(number, method, params or {}, size)


def success(number: int | str | None, result: Mapping[str, Json]) -> dict[str, Json]:
    """A reply."""
    return {"jsonrpc": "2.0", "id": number, "result": dict(result)}


def type_of(error: AssayError) -> str:
    """What kind of fault it is."""
    kind = error.kind if isinstance(error, ChannelError) else ""
    return kind or type(error).__name__


def bug(error: BaseException) -> ChannelError:
    """A fault of ours, which is logged, and must not look like an answer."""
    _LOG.error("a call failed", exc_info=error)
    return ChannelError("the server failed", code=-32603, kind=type(error).__name__)


def failure(number: int | str | None, error: AssayError) -> dict[str, Json]:
    """A reply that says what went wrong, of what kind it is and what can be done."""
    code = error.code if isinstance(error, ChannelError) else TASK_RAISED
    message, hint = error.message[:_MOST_SAID], error.hint[:_MOST_SAID]
    data: dict[str, Json] = {"type": type_of(error), "message": message, "hint": hint}
    wrong: dict[str, Json] = {"code": code, "message": message, "data": data}
    return {"jsonrpc": "2.0", "id": number, "error": wrong}


def fault_of(error: Json) -> ChannelError:
    """What a peer's error says."""
    said = error if isinstance(error, dict) else {}
    code, message, data = said.get("code"), said.get("message"), said.get("data")
    more = data if isinstance(data, dict) else {}
    return ChannelError(
        str(message or "it did not say why"),
        code=code if isinstance(code, int) else TASK_RAISED,
        kind=str(more.get("type") or ""),
        hint=str(more.get("hint") or ""),
    )


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return "null" if value is None else kinds.get(cast("type", type(value)), "a number")
