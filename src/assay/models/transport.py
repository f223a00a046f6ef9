"""HTTP for models: one session for each event loop, which ends with its loop.

Redirects are not followed, since a key would follow them; proxies, cookies and passwords of the
environment are not used; a reply is counted while it is read, before and after it is unpacked.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import os
import zlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from assay.frozen import frozen
from assay.models.faults import CallFault
from assay.models.forking import ForkSafe

if TYPE_CHECKING:
    from aiohttp import BaseConnector, ClientResponse, ClientSession
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.payload import BytesPayload
    from yarl import URL

MAX_REPLY_BYTES = 8 << 20
"""Longest reply, packed and unpacked."""

MAX_STREAM_BYTES = 64 << 20
"""Longest reply that comes in events: each token has one of some hundred bytes."""

_CONNECT_SECONDS = 20.0
_KEEPALIVE_SECONDS = 30.0


@frozen
class HttpReply:
    """What came back: any status.

    Attributes:
        status: The HTTP status.
        headers: The headers; their names are compared without regard to case.
        body: The whole body, unpacked.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


async def post(  # noqa: PLR0911 - one for each way to fail
    url: URL,
    body: bytes,
    headers: Mapping[str, str],
    sent: Callable[[], None],
    take: Callable[[bytes], bool] | None = None,
) -> HttpReply | CallFault:
    """Send a body and read what comes back, or say why nothing usable did.

    There is no deadline but the caller's.

    Args:
        url: Where to.
        body: It.
        headers: Further ones.
        sent: Called when the body begins to go out.
        take: Given a stream of events as it comes, in place of the body; says whether to read on.
    """
    import aiohttp

    session = _SESSIONS.held.get(asyncio.get_running_loop())
    if session is None:
        session = await _new_session()
    began = has_left = False

    def leaves() -> None:
        nonlocal has_left
        has_left = True
        sent()

    try:
        async with session.session.post(
            url, data=_payload_type()(body, leaves), headers=headers, allow_redirects=False
        ) as response:
            began = True
            if take is None or response.status != 200 or not is_stream(response.headers):
                return HttpReply(response.status, response.headers, await read_body(response))
            async with aclosing(_parts(response, MAX_STREAM_BYTES)) as parts:
                async for part in parts:
                    if not take(part):
                        break
            return HttpReply(response.status, response.headers, b"")
    except BodyError as error:
        may_repeat = error.kind == "broken"
        return _failed(error.message, is_reply=True, may_repeat=may_repeat, may_be_paid=True)
    except aiohttp.ClientSSLError as error:
        return _failed(f"cannot be trusted: {connection_cause(error)}", may_repeat=False)
    except aiohttp.ClientResponseError:
        message = "does not speak HTTP"
        return _failed(message, is_reply=True, may_repeat=False, may_be_paid=has_left)
    except (aiohttp.ClientPayloadError, aiohttp.ClientConnectionError, OSError) as error:
        if began:
            return _failed("broke off its reply", may_be_paid=True)
        return _failed(f"cannot be reached: {connection_cause(error)}", may_be_paid=has_left)
    except aiohttp.ClientError as error:
        message = f"cannot be called: {type(error).__name__}"
        return _failed(message, may_repeat=False, may_be_paid=has_left)


def _failed(
    message: str, *, is_reply: bool = False, may_repeat: bool = True, may_be_paid: bool = False
) -> CallFault:
    """A try that brought nothing usable; ``is_reply`` if what came is no HTTP, or too long."""
    return CallFault(
        "unreadable" if is_reply else "unreachable",
        "no HTTP" if is_reply else "connection",
        message,
        may_repeat=may_repeat,
        may_be_paid=may_be_paid,
        hint="" if may_be_paid else "check the base URL, and that the server runs",
    )


@functools.cache
def _payload_type() -> Callable[[bytes, Callable[[], None]], BytesPayload]:
    """The type of a body that says when it begins to go out.

    From then on a server may have it, and work on it, and be paid for it.
    """
    from aiohttp.payload import BytesPayload

    class Payload(BytesPayload):
        def __init__(self, body: bytes, sent: Callable[[], None]) -> None:
            super().__init__(body)
            self._sent = sent

        async def write_with_length(
            self, writer: AbstractStreamWriter, content_length: int | None
        ) -> None:
            self._sent()
            await super().write_with_length(writer, content_length)

    return Payload


class BodyError(Exception):
    """A body that cannot be read whole.

    Attributes:
        message: What its sender did.
        kind: ``packed`` in a way that was not asked for, or badly; too ``long``; or ``broken`` off.
    """

    def __init__(self, message: str, kind: Literal["packed", "long", "broken"]) -> None:
        super().__init__(message)
        self.message = message
        self.kind: Literal["packed", "long", "broken"] = kind


async def read_body(response: ClientResponse) -> bytes:
    """The body, unpacked; at most `MAX_REPLY_BYTES` of it, packed and unpacked.

    Raises:
        BodyError: If it cannot be read whole.
    """
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    length = response.content_length
    if encoding in ("identity", "") and length is not None and length <= MAX_REPLY_BYTES:
        return await response.read()
    return b"".join([part async for part in _parts(response, MAX_REPLY_BYTES)])


def is_stream(headers: Mapping[str, str]) -> bool:
    """Whether a reply is a stream of events."""
    return headers.get("Content-Type", "").lower().startswith("text/event-stream")


async def _parts(response: ClientResponse, most: int) -> AsyncGenerator[bytes]:
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "", "gzip", "deflate"):
        raise BodyError("compressed its reply in a way that was not requested", "packed")
    unpack = zlib.decompressobj(wbits=47) if encoding in ("gzip", "deflate") else None
    size = packed = 0
    async for received in response.content.iter_any():
        packed += len(received)
        part = received
        if unpack is not None:
            try:
                part = unpack.decompress(received, most - size + 1)
            except zlib.error:
                raise BodyError("compressed its reply wrongly", "broken") from None
        size += len(part)
        if size > most or packed > most:
            raise BodyError(f"sent more than {most >> 20} MiB", "long")
        yield part
    if unpack is not None and not unpack.eof:
        raise BodyError("broke off its reply", "broken")


# --- Sessions ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Held:
    """A loop's session, and the generator that closes it when the loop ends."""

    session: ClientSession
    owner: AsyncGenerator[ClientSession, None]


class _Sessions(ForkSafe):
    """The sessions of this process, by loop; whoever does more than look one up holds the lock."""

    def __init__(self) -> None:
        self.held: dict[asyncio.AbstractEventLoop, _Held] = {}
        self.of_parents: list[_Held] = []
        super().__init__()

    def renew(self) -> None:
        """Leave the parent its sessions.

        They are kept, untouched, as long as this process lives: to close one would take its
        sockets out of the parent's selector, which a fork shares.
        """
        super().renew()
        self.of_parents += self.held.values()
        self.held = {}

    def take_closed(self) -> list[_Held]:
        """Those whose loops were closed."""
        with self.lock:
            return [self.held.pop(loop) for loop in list(self.held) if loop.is_closed()]


_SESSIONS = _Sessions()


async def _new_session() -> _Held:
    loop = asyncio.get_running_loop()
    for held in _SESSIONS.take_closed():
        _abandon(held)
    # A loop knows the asynchronous generators that were begun in it, and closes them when it ends
    # (`asyncio.run` does): so the session's end needs nobody to remember it.
    owner = _own(loop)
    session = await anext(owner)
    held = _Held(session, owner)
    with _SESSIONS.lock:
        _SESSIONS.held[loop] = held
    return held


def new_session(
    connector: BaseConnector,
    *,
    connect_seconds: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> ClientSession:
    """A session that uses no cookies, proxies or passwords of the environment, and no deadline."""
    import aiohttp

    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds),
        headers=headers,
        auto_decompress=False,
        trust_env=False,
    )


async def _own(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[ClientSession, None]:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE_SECONDS)
    session = new_session(
        connector,
        connect_seconds=_CONNECT_SECONDS,
        headers={
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "assay",
        },
    )
    try:
        yield session
    finally:
        with _SESSIONS.lock:
            _SESSIONS.held.pop(loop, None)
        await session.close()


def _abandon(held: _Held) -> None:
    """Let go of a session whose loop was closed without ending its generators."""
    connector = held.session.connector
    held.session.detach()
    if connector is not None:
        with suppress(StopIteration):
            connector.close().__await__().send(None)  # without a loop there is nothing to wait for


@atexit.register
def _end() -> None:
    """Close what nobody closed: loops that were left as they were when the program ended."""
    for loop, held in list(_SESSIONS.held.items()):
        if loop.is_closed() or loop.is_running():
            _abandon(held)
        else:
            loop.run_until_complete(held.owner.aclose())
    _SESSIONS.held.clear()


def connection_cause(error: BaseException) -> str:
    """Why there is no connection, in words that hold no request."""
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "its certificate is not valid"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its host name cannot be resolved"
    if isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError):
        return "it closed the connection"
    if isinstance(error, TimeoutError):
        return "no connection in time"
    number = getattr(error, "errno", None)
    if isinstance(number, int) and number > 0:
        return os.strerror(number).lower()
    return type(error).__name__
