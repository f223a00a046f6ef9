"""A session with a served environment that outlives its connections.

When a connection breaks, it is made again and the session resumed within `PATIENCE_SECONDS`; what
was asked is asked once more, which the server takes for the same.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Self, cast
from urllib.parse import urlsplit

from assay import errors
from assay.environment.channel.frames import (
    MOST_BYTES,
    NATIVE,
    NOT_JSON,
    UNAUTHORIZED,
    TcpWire,
    WebSocketWire,
    Wire,
    decode,
    encode,
    fault_of,
)
from assay.errors import ChannelError, InputError
from assay.frozen import frozen
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from aiohttp import ClientSession

PATIENCE_SECONDS = 60.0
"""How long a connection that broke is made again."""
_FIRST_SECONDS = 5.0
"""How long one that never was is tried: a server may be starting, but the URL may be wrong, too."""
_NO_TOKEN = "give it: connect(URL, token=…), or runtime=Address(URL, token)"  # noqa: S105
_NO_ENVIRONMENT = "is it the right port? assay serve env FILE.py says where it serves"
_CONNECT_SECONDS = 10.0
_HEARTBEAT_SECONDS = 30.0
_REPLY_SECONDS = 20.0
_BYE_SECONDS = 2.0
_FRAME_SECONDS = 120.0
_NAPS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_MOST_BREAKS = 8
_MOST_STARTS = 32
"""Tasks in one session; a server bears twice that unless it is told otherwise."""
_MOST_RESTING = 32
"""Sessions that rest: a server has only so many."""


@frozen
class Address:
    """Where an environment is served."""

    url: str
    token: str = ""

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            port = parts.port
        except ValueError as error:
            raise InputError(f"{self.url!r} is no URL: {error}") from error
        if parts.scheme not in ("tcp", "ws", "wss") or not parts.hostname:
            raise InputError(
                f"{self.url!r} is not where an environment is served",
                hint="tcp://HOST:PORT, ws://HOST:PORT or wss://HOST",
            )
        if parts.username is not None or parts.password is not None:
            raise InputError("a URL with a secret in it is written down", hint="give token=")
        if parts.scheme == "tcp" and port is None:
            raise InputError(f"{self.url!r} has no port", hint="tcp://HOST:PORT")

    def __repr__(self) -> str:
        return f"Address({self.url!r})"

    async def dial(self) -> tuple[Wire, ClientSession | None]:
        """Connect."""
        parts = urlsplit(self.url)
        async with asyncio.timeout(_CONNECT_SECONDS):
            if parts.scheme == "tcp":
                opened = await asyncio.open_connection(parts.hostname, parts.port)
                return TcpWire(*opened), None
            return await self._dial_web()

    async def _dial_web(self) -> tuple[Wire, ClientSession]:
        import aiohttp

        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        session = aiohttp.ClientSession()
        try:
            opened = await session.ws_connect(
                self.url, headers=headers, max_msg_size=4 * MOST_BYTES, compress=0
            )
        except aiohttp.WSServerHandshakeError as error:
            await session.close()
            if error.status in (401, 403):
                raise ChannelError(
                    "the token is wrong" if self.token else "the server wants a token",
                    code=UNAUTHORIZED,
                    hint=_NO_TOKEN,
                ) from None
            raise OSError(f"it answers {error.status}, not a WebSocket") from error
        except aiohttp.ClientError as error:
            await session.close()
            raise OSError(str(error)) from error
        except BaseException:
            await session.close()
            raise
        # Of a connection that broke nothing else releases it: aiohttp leaves it to the collector.
        response = opened._response  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        return WebSocketWire(opened, response.close), session


class _BrokenError(Exception):
    """The connection is gone before the reply came."""


class _Link:
    """One connection: calls, and their replies."""

    def __init__(self, wire: Wire, session: ClientSession | None) -> None:
        self._wire = wire
        self._session = session
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[dict[str, Json]]] = {}
        self._listening = asyncio.create_task(self._listen())

    @property
    def is_broken(self) -> bool:
        return self._listening.done()

    @property
    def is_waiting(self) -> bool:
        return bool(self._asked)

    async def ask(self, method: str, params: Mapping[str, Json]) -> dict[str, Json]:
        """Call a method."""
        if self.is_broken:
            raise _BrokenError
        number = next(self._numbers)
        answered = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            data = encode(
                {"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params)}
            )
            if len(data) > MOST_BYTES:
                raise ChannelError(
                    f"{method}: the frame has {len(data):,} bytes, and may have {MOST_BYTES:,}"
                )
            await self._wire.send(data)
            frame = await answered
        finally:
            self._asked.pop(number, None)
        if "error" in frame:
            raise _named(fault_of(frame["error"]))
        result = frame.get("result")
        if not isinstance(result, dict):
            raise ChannelError(f"{method}: the reply is no object")
        return cast("dict[str, Json]", result)

    async def close(self) -> None:
        self._listening.cancel()
        await asyncio.wait({self._listening})
        self._wire.close()
        if self._session is not None:
            await self._session.close()

    async def _listen(self) -> None:
        fault: Exception = _BrokenError()
        try:
            while (data := await self._wire.receive(4 * MOST_BYTES, _FRAME_SECONDS)) is not None:
                frame = decode(data)
                number = frame.get("id")
                if number is None and "error" in frame:
                    raise _named(fault_of(frame["error"]))
                answered = self._asked.get(number) if isinstance(number, int) else None
                if answered is None or isinstance(number, bool):
                    continue  # of a call that nobody waits for any more
                if not answered.done():
                    answered.set_result(frame)
        except ChannelError as error:
            fault = error
        finally:
            for answered in self._asked.values():
                if not answered.done():
                    answered.set_exception(fault)


def _named(fault: ChannelError) -> ChannelError:
    """What a task raised there, with its kind, as it would be shown here."""
    if fault.kind and not hasattr(errors, fault.kind):
        said = f"{fault.kind}: {fault.message}"
        return ChannelError(said, code=fault.code, kind=fault.kind, hint=fault.hint)
    return fault


class Channel:
    """A session with a served environment, over as many connections as it takes."""

    def __init__(
        self, address: Address, *, patience: float = PATIENCE_SECONDS, is_known: bool = False
    ) -> None:
        self.address = address
        self.hello: dict[str, Json] = {}
        self.patience = patience
        self._is_known = is_known  # whether somebody has answered there before
        self._link: _Link | None = None
        self._linking = asyncio.Lock()
        self._beating: asyncio.Task[None] | None = None
        self._has_started = False
        self._is_closed = False
        self.starts = 0

    @property
    def session_id(self) -> str:
        """The right to go on with the session."""
        return str(self.hello.get("session_id") or "")

    @property
    def is_native(self) -> bool:
        """Whether the server is one of ours."""
        return self.hello.get("form") == NATIVE

    @classmethod
    @asynccontextmanager
    async def open(
        cls, address: Address, *, patience: float = PATIENCE_SECONDS
    ) -> AsyncGenerator[Channel]:
        """A session, ended with the context."""
        channel = await cls.begin(address, patience=patience)
        try:
            yield channel
        finally:
            await channel.close()

    @classmethod
    async def begin(
        cls, address: Address, *, patience: float = PATIENCE_SECONDS, is_known: bool = False
    ) -> Channel:
        """A session, to be closed by its owner."""
        channel = cls(address, patience=patience, is_known=is_known)
        try:
            await channel._linked()
        except BaseException:
            await channel.close()
            raise
        channel._beating = asyncio.create_task(channel._beat())
        return channel

    def rest(self) -> None:
        """Its task is graded: if the session is lost now, nothing is lost with it."""
        self._has_started = False

    async def call(self, method: str, params: Mapping[str, Json]) -> dict[str, Json]:
        """Call a method; again, where the connection breaks before the reply."""
        is_start = method == "tasks.start"
        self.starts += is_start
        for _ in range(_MOST_BREAKS):
            link = self._link
            if link is None or link.is_broken or self._is_closed or self._linking.locked():
                link = await self._linked()
            self._has_started = self._has_started or is_start
            try:
                return await link.ask(method, params)
            except _BrokenError:
                continue
        raise ChannelError(f"{self.address.url} broke off {method} {_MOST_BREAKS} times")

    async def _linked(self) -> _Link:
        """The connection, with the session in it; made again if it broke."""
        async with self._linking:
            if self._is_closed:
                raise ChannelError("this client is closed")
            if self._link is not None and not self._link.is_broken:
                return self._link
            if self._link is not None:
                await self._link.close()
                self._link = None
            loop = asyncio.get_running_loop()
            first = self.patience if self._is_known else min(self.patience, _FIRST_SECONDS)
            deadline = loop.time() + first
            for nap in itertools.chain(_NAPS, itertools.repeat(_NAPS[-1])):
                try:
                    self._link = await self._enter()
                except (_BrokenError, OSError, TimeoutError) as error:
                    if loop.time() + nap >= deadline:
                        reason = str(error) or "it does not answer"
                        raise ChannelError(
                            f"cannot reach {self.address.url}: {reason}",
                            hint="is it served there? assay serve env FILE.py",
                        ) from error
                    await asyncio.sleep(nap)
                else:
                    self._is_known = True
                    return self._link
            raise AssertionError  # the naps have no end

    async def _enter(self) -> _Link:
        wire, session = await self.address.dial()
        link = _Link(wire, session)
        try:
            async with asyncio.timeout(_REPLY_SECONDS):
                self.hello = await self._hello(link)
        except BaseException:
            await link.close()
            raise
        return link

    async def _hello(self, link: _Link) -> dict[str, Json]:
        params: dict[str, Json] = {"form": NATIVE}
        if self.address.token:
            params["token"] = self.address.token
        if self.session_id:
            params["session_id"] = self.session_id
        try:
            said = await link.ask("hello", params)
        except ChannelError as error:
            if error.code == UNAUTHORIZED:
                raise ChannelError(
                    error.message, code=error.code, kind=error.kind, hint=_NO_TOKEN
                ) from None
            if error.code == NOT_JSON:
                said = f"what answers at {self.address.url} is no environment: {error.message}"
                raise ChannelError(said, code=error.code, hint=_NO_ENVIRONMENT) from None
            if not self.session_id:
                raise
            if "live connection" in error.message:  # HUD's server has not seen it break yet
                raise _BrokenError from error
            if self._has_started:
                raise ChannelError(
                    f"the session is lost: {error.message}",
                    code=error.code,
                    kind="SessionLostError",
                    hint=error.hint,
                ) from error
            del params["session_id"]  # nothing was begun in it
            said = await link.ask("hello", params)
        if not isinstance(said.get("session_id"), str) or not isinstance(said.get("env"), dict):
            raise ChannelError("hello: the reply names no session or environment")
        return said

    async def _beat(self) -> None:
        """Notice a connection that is dead without having been closed."""
        while True:
            await asyncio.sleep(_HEARTBEAT_SECONDS)
            link = self._link
            if link is None or link.is_broken or (link.is_waiting and not self.is_native):
                continue  # HUD's server answers one call after the other
            with suppress(ChannelError, _BrokenError):
                try:
                    async with asyncio.timeout(_REPLY_SECONDS):
                        await self._hello(link)
                except TimeoutError:
                    await link.close()

    async def close(self) -> None:
        """End the session."""
        self._is_closed = True
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait({self._beating})
        link, self._link = self._link, None
        if link is None:
            return
        if not link.is_broken:
            with suppress(ChannelError, _BrokenError, TimeoutError):
                async with asyncio.timeout(_BYE_SECONDS):
                    await link.ask("bye", {})
        await link.close()


class Channels:
    """Sessions with one server, used by one task after the other: a task's start is its own.

    A connection costs more than a quick task. While the context lasts, one whose task was graded is
    kept for the next, if the server is one of ours; before and after, each is ended with its task.
    """

    def __init__(
        self, address: Address, *, patience: float = PATIENCE_SECONDS, is_known: bool = False
    ) -> None:
        self._address = address
        self._patience = patience
        self._is_known = is_known
        self._resting: list[Channel] = []
        self._is_open = False

    async def __aenter__(self) -> Self:
        self._is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_open = False
        resting, self._resting = self._resting, []
        await asyncio.gather(*(channel.close() for channel in resting))

    async def take(self) -> Channel:
        """One that rests, or a new one; to be given back."""
        if self._resting:
            return self._resting.pop()
        channel = await Channel.begin(
            self._address, patience=self._patience, is_known=self._is_known
        )
        self._is_known = True
        return channel

    async def give(self, channel: Channel, *, is_graded: bool) -> None:
        """Give one back; one whose task was not graded is of no more use."""
        is_good = is_graded and channel.is_native and channel.starts < _MOST_STARTS
        if self._is_open and is_good and len(self._resting) < _MOST_RESTING:
            channel.rest()
            self._resting.append(channel)
        else:
            await channel.close()
