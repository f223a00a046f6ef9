"""Connections that say nothing, small replies, and the end: on real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from assay.endpoint.listening import ListeningLimits, _in_time, _Joined, server_for
from assay.endpoint.problems import ProblemError
from assay.sockets import listen
from tests.each import each

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


@asynccontextmanager
async def listening(
    limits: ListeningLimits, *, ends: bool = True
) -> AsyncGenerator[tuple[str, int]]:
    """A server of one reply, or of none where it never ``ends``."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        if not ends:
            await asyncio.Event().wait()
        if scope["method"] == "POST":
            while (await receive()).get("more_body"):
                pass
        who = [(b"from", scope["client"][0].encode())]
        await send({"type": "http.response.start", "status": 204, "headers": who})
        await send({"type": "http.response.body", "body": b""})

    async with serving(app, limits) as address:
        yield address


@asynccontextmanager
async def serving(app: ASGIApp, limits: ListeningLimits) -> AsyncGenerator[tuple[str, int]]:
    """A server of an app."""
    started = asyncio.Event()
    server = server_for(app, limits, start=started.set)
    with listen("127.0.0.1", 0) as opened:
        serving = asyncio.create_task(server.serve([opened]))
        await started.wait()
        yield opened.getsockname()
        server.should_exit = True
        await serving


@asynccontextmanager
async def connected(
    limits: ListeningLimits, *, ends: bool = True
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to such a server."""
    async with listening(limits, ends=ends) as address:
        reader, writer = await asyncio.open_connection(*address)
        yield reader, writer
        writer.close()


async def answered(address: tuple[str, int]) -> bytes:
    """The first line of the reply to a request on a connection of its own."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(REQUEST)
        return await reader.readline()
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_half_open_connections_keep_nobody_out() -> None:
    async with listening(ListeningLimits(connections=3)) as address:
        silent = [await asyncio.open_connection(*address) for _ in range(20)]
        silent[-1][1].write(REQUEST[:9])
        assert await answered(address) == b"HTTP/1.1 204 No Content\r\n"
        for reader, _ in silent[:10]:
            with suppress(ConnectionError):
                assert await reader.read() == b""
        for _, writer in silent:
            writer.close()


@pytest.mark.parametrize("before", [b"", REQUEST], ids=["first", "second"])
async def test_half_a_request_is_not_waited_for(before: bytes) -> None:
    async with connected(ListeningLimits(header_seconds=0.2)) as (reader, writer):
        if before:
            writer.write(before)
            assert b"204" in await reader.readuntil(b"\r\n\r\n")
        writer.write(REQUEST[:20])
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 60) == b""


@each("head", ["Content-Length: 100\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"])
async def test_half_a_body_is_not_waited_for(head: str) -> None:
    async with connected(ListeningLimits(body_seconds=0.02)) as (reader, writer):
        writer.write(f"POST / HTTP/1.1\r\nHost: here\r\n{head}".encode())
        said = await asyncio.wait_for(reader.read(), 60)  # to the end of the connection
        assert said.startswith(b"HTTP/1.1 408 ")
        assert b"the rest of the body did not come" in said


@each(
    "parts",
    [
        # Without end: lines, a line, an address; of two meanings: hosts, lengths.
        [b"GET / HTTP/1.1\r\nHost: here\r\n", *[b"X-More: " + b"x" * 8_000 + b"\r\n"] * 100],
        [b"GET / HTTP/1.1\r\nHost: here\r\nX-More: ", *[b"x" * 8_000] * 100],
        [b"GET /", *[b"x" * 8_000] * 100],
        [b"GET / HTTP/1.1\r\nHost: here\r\nHost: there\r\n\r\n"],
        [b"GET / HTTP/1.1\r\n\r\n"],
        [b"GET /\xff HTTP/1.1\r\nHost: here\r\n\r\n"],
        [b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
        [
            b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ],
    ],
)
async def test_a_head_without_end_or_of_two_meanings_is_not_answered(parts: list[bytes]) -> None:
    async with connected(ListeningLimits(header_seconds=60.0)) as (reader, writer):
        with suppress(ConnectionError):
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)
        said = b""
        with suppress(ConnectionError):
            said = await asyncio.wait_for(reader.read(), 30)  # to the end of the connection
        assert said == b"" or said.startswith(b"HTTP/1.1 400 ")


@each("size", [1_000, 70_000, 3_000_000])
async def test_a_large_body_is_no_large_head(size: int) -> None:
    request = f"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: {size}\r\n\r\n".encode()
    async with connected(ListeningLimits()) as (reader, writer):
        for _ in range(2):
            writer.write(request + b"x" * size)
            assert await reader.readline() == b"HTTP/1.1 204 No Content\r\n"
            await reader.readuntil(b"\r\n\r\n")


async def test_lines_behind_a_body_are_no_part_of_the_head() -> None:
    seen: list[list[tuple[bytes, bytes]]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        while (await receive()).get("more_body"):
            pass
        seen.append(list(scope["headers"]))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async with serving(app, ListeningLimits()) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"1\r\na\r\n0\r\nAuthorization: Bearer theirs\r\n\r\n")
        assert b"204" in await reader.readline()
        writer.close()
    assert [name for name, _ in seen[0]] == [b"host", b"transfer-encoding"]


async def test_requests_that_are_sent_ahead_are_answered_in_their_order_or_not_kept() -> None:
    async with connected(ListeningLimits()) as (reader, writer):
        writer.write(REQUEST * 20)
        for _ in range(20):
            assert b"204" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
        writer.write(REQUEST * 5_000)
        with suppress(ConnectionError):
            said = await asyncio.wait_for(reader.read(), 30)
            assert said.count(b"204") < 100


async def test_a_drip_of_bytes_buys_no_time_and_a_steady_sender_gets_it() -> None:
    limits = ListeningLimits(body_seconds=10.0, body_rate=100)
    clock = asyncio.get_running_loop()

    async def sending(size: int, seconds: float) -> int:
        """How many parts of a body are taken, each of which comes after so many seconds."""
        now = clock.time()
        parts = 0

        async def receive() -> Message:
            nonlocal now
            now += seconds
            return {"type": "http.request", "body": b"x" * size, "more_body": True}

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(clock, "time", lambda: now)
            taken = _in_time(receive, limits)
            with suppress(ProblemError):
                while parts < 50:
                    await taken()
                    parts += 1
        return parts

    assert await sending(1, 3.0) < 5
    assert await sending(400, 3.0) == 50


async def test_a_request_that_is_cut_off_at_the_end_is_told_so() -> None:
    async with listening(ListeningLimits(grace_seconds=0.5), ends=False) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(REQUEST)
        await asyncio.sleep(0)
    said = await reader.read()
    assert said.startswith(b"HTTP/1.1 503 ")
    assert b"content-type: application/problem+json" in said.lower()
    writer.close()


@each(("proxies", "seen"), [((), b"127.0.0.1"), (("127.0.0.1",), b"192.0.2.7")])
async def test_who_asks_is_believed_of_proxies_alone(proxies: tuple[str, ...], seen: bytes) -> None:
    async with connected(ListeningLimits(proxies=proxies)) as (reader, writer):
        writer.write(REQUEST[:-2] + b"X-Forwarded-For: 192.0.2.7\r\n\r\n")
        assert b"from: " + seen + b"\r\n" in await reader.readuntil(b"\r\n\r\n")


async def test_a_small_reply_is_one_packet_and_much_is_not_held_back() -> None:
    class Wire(asyncio.Transport):
        def __init__(self) -> None:
            super().__init__()
            self.sent: list[bytes] = []

        def write(self, data: bytes | bytearray | memoryview) -> None:
            self.sent.append(bytes(data))

        def close(self) -> None:
            self.sent.append(b"closed")

    wire = Wire()
    joined = _Joined(wire, asyncio.get_running_loop())
    for part in (b"head ", b"body", b""):
        joined.write(part)
    assert wire.sent == []
    await asyncio.sleep(0)
    assert wire.sent == [b"head body"]
    joined.write(b"head of a stream")
    await asyncio.sleep(0)
    assert wire.sent[1:] == [b"head of a stream"], "nobody waits for the first event"
    for _ in range(100):  # without a pause
        joined.write(b"x" * 100)
    assert sum(map(len, wire.sent[2:])) > 8_000
    joined.close()
    assert (sum(map(len, wire.sent[2:-1])), wire.sent[-1]) == (10_000, b"closed")
    await asyncio.sleep(0)
    assert wire.sent[-1] == b"closed"


def test_small_replies_are_not_held_back() -> None:
    with listen("127.0.0.1", 0) as opened:
        assert opened.proto == socket.IPPROTO_TCP  # or asyncio leaves Nagle's algorithm on


@pytest.mark.slow
async def test_who_reads_nothing_of_a_reply_is_not_waited_for() -> None:
    limits, has_ended = ListeningLimits(write_seconds=0.2), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        if scope["type"] == "lifespan":
            return
        try:
            await send({"type": "http.response.start", "status": 200})
            for _ in range(1_000):
                await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
        finally:
            has_ended.set()

    async with serving(app, limits) as address:
        reader, writer = await asyncio.open_connection(*address, limit=1)
        writer.write(REQUEST)
        await asyncio.wait_for(has_ended.wait(), 30)
        with suppress(ConnectionError):
            assert len(await reader.read()) < 1_000 * 65_536
        writer.close()
