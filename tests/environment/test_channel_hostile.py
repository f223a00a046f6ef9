"""Hostile clients of a served environment: whatever they say, nobody else is harmed."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest

from assay.environment.channel.frames import MOST_BYTES
from assay.environment.channel.serve import serve
from assay.environment.channel.sessions import ChannelLimits
from assay.scoring.json_safe import Json
from tests.each import each
from tests.served_environment import (
    GRADE,
    Raw,
    ServedProcess,
    error_of,
    limited,
    raw,
    started,
    write_env,
)


@asynccontextmanager
async def unharmed(port: int) -> AsyncGenerator[None]:
    """Somebody has a task in progress meanwhile, and it is graded as it should be."""
    async with raw(port) as neighbour:
        await neighbour.result("hello")
        await neighbour.result("tasks.start", id="add", args={})
        yield
        assert (await neighbour.result("tasks.grade", answer="3"))["score"] == 1.0


def _call(**fields: Json) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hello", **fields}).encode() + b"\n"


@each(
    "said, code, stays",
    [
        (b"garbage\n", -32700, False),
        (b"\x00\xff\xfe\x01\n", -32700, False),
        (b"\n", -32700, False),
        (b'{"id": 1, "id": 2, "method": "hello"}\n', -32700, False),
        (b'{"id": 1, "method": "hello", "params": {"x": NaN}}\n', -32700, False),
        (b'{"id": ' + b"9" * 5000 + b', "method": "hello"}\n', -32700, False),
        (b"[" * 30_000 + b"\n", -32700, False),
        (b'{"id": 1, "params": ' + b"[" * 200 + b"]" * 200 + b"}\n", -32700, False),
        (b"[" + _call().strip() + b"]\n", -32600, True),
        (b"5\n", -32600, True),
        (b"{}\n", -32600, True),
        (_call(method=["hello"]), -32600, True),
        (_call(id=True), -32600, True),
        (_call(params=[]), -32602, True),
        (_call(method="tunnel.open", params={"capability": "shell"}), -32601, True),
    ],
)
async def test_frames_that_are_no_calls(
    served: ServedProcess, said: bytes, code: int, stays: object
) -> None:
    async with unharmed(served.port), raw(served.port) as peer:
        await peer.send(said)
        assert error_of(await peer.read())[0] == code
        if stays:
            await peer.result("hello")
        else:
            assert await peer.read() is None


async def test_a_frame_of_the_limit_is_taken_and_one_byte_more_is_not(
    served: ServedProcess,
) -> None:
    async with unharmed(served.port), started(served.port, "count", word="abc") as peer:
        frame = _call(method="tasks.grade", params={"answer": ""})[:-1]
        padding = b" " * (MOST_BYTES - len(frame))
        await peer.send(frame[:-1] + padding + frame[-1:] + b"\n")
        assert (await peer.read() or {})["result"] == GRADE
        await peer.send(frame[:-1] + padding + b" " + frame[-1:] + b"\n")
        code, _, message = error_of(await peer.read())
        assert (code, message) == (-32600, "a frame is larger than 16,777,216 bytes")
        assert await peer.read() is None


async def test_who_has_not_said_hello_may_say_little_and_nobody_masses_of_values(
    served: ServedProcess,
) -> None:
    async with unharmed(served.port), raw(served.port) as peer:
        await peer.send(b'{"x": "' + b"y" * 70_000)
        assert error_of(await peer.read())[0] == -32600
        assert await peer.read() is None
        async with raw(served.port) as known:
            await known.result("hello")
            await known.send(b'{"id": 1, "method": "hello", "params": {"x": [' + b"[]," * 4_000_000)
            await known.send(b"[]]}}\n")
            assert error_of(await known.read())[0] == -32700  # before they are read


async def test_names_of_megabytes_cost_nobody_time(served: ServedProcess) -> None:
    name = "x" * (8 << 20)
    async with unharmed(served.port), raw(served.port) as peer:
        await peer.result("hello")
        calls: list[tuple[str, dict[str, Json]]] = [
            (name, {}),
            ("tasks.start", {"id": name}),
            ("tasks.start", {"id": "add", "args": {name: 1}}),
            ("tasks.start", {"id": "add", "args": {"a": name}}),
        ]
        for method, params in calls:
            _, _, message = await peer.error(method, **params)
            assert len(message) <= 10_000


async def test_what_a_task_is_told_is_bounded(tmp_path: Path) -> None:
    async with limited(tmp_path, kept_bytes=2000) as served, raw(served.port) as peer:
        await peer.result("hello")
        code, _, _ = await peer.error("tasks.start", id="count", args={"word": "x" * 3000})
        assert code == -32003
        await peer.result("tasks.start", id="count", args={"word": "x" * 1000})
        code, kind, _ = await peer.error("tasks.call", name="y", arguments={"z": "x" * 1500})
        assert (code, kind) == (-32003, "TaskEndedError")
        assert (await peer.result("tasks.grade", answer="1000"))["score"] == 1.0


@each(
    "start, call",
    [
        (b"", _call(method="tasks.list")),
        (
            _call(method="tasks.start", params={"id": "large", "args": {"size": 100_000}}),
            _call(method="tasks.grade", params={"answer": "x"}),
        ),
    ],
)
async def test_who_asks_and_reads_nothing_piles_up_nothing_and_is_hung_up_on(
    tmp_path: Path, start: bytes, call: bytes
) -> None:

    def say_for_ever(one: socket.socket) -> None:
        for _ in range(200_000):
            one.sendall(call * 50)

    async with limited(tmp_path, frame=0.2) as served, unharmed(served.port):
        with socket.socket() as deaf:
            deaf.settimeout(100)  # a busy server takes its time to hang up
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)  # the smallest: full soon
            deaf.connect(("127.0.0.1", served.port))
            deaf.sendall(start)
            with pytest.raises(OSError, match=r"reset|Broken pipe"):
                await asyncio.to_thread(say_for_ever, deaf)


async def test_half_a_frame_is_nothing_and_calls_in_any_pieces_are_calls(
    served: ServedProcess,
) -> None:
    async with unharmed(served.port):
        async with raw(served.port) as peer:
            await peer.send(_call()[:-9])
        async with started(served.port) as peer:
            await peer.send(b'{"id": 3, "method": "tasks.grade", "params": {"answer": "3"}}')
            peer.abort()
        async with raw(served.port) as peer:
            calls = (
                _call(id="a") + _call(id="b", method="tasks.list") + _call(id="c", method="nope")
            )
            for byte in calls:
                await peer.send(bytes([byte]))
            assert [(await peer.read() or {})["id"] for _ in range(3)] == ["a", "b", "c"]


async def test_a_notification_is_done_and_not_answered(served: ServedProcess) -> None:
    async with raw(served.port) as peer:
        await peer.send(b'{"method": "tasks.start", "params": {"id": "add"}}\n')
        await peer.send(b'{"method": "nope"}\n{"id": null, "method": "hello"}\n')
        reply = await peer.read()
        assert reply is not None  # an error has nobody else to be told to
        assert (reply["id"], error_of(reply)[0]) == (None, -32601)
        assert (await peer.result("tasks.list"))["tasks"]


async def test_thousands_of_idle_connections_displace_each_other_alone(tmp_path: Path) -> None:
    async with limited(tmp_path, strangers=50) as served, unharmed(served.port):
        sockets: list[socket.socket] = []
        try:
            for number in range(400):
                one = socket.create_connection(("127.0.0.1", served.port))
                sockets.append(one)
                if number % 2:
                    one.send(b"{")
                if not number % 20:
                    await asyncio.sleep(0)
            await asyncio.sleep(0.05)
            async with raw(served.port) as late:
                await late.result("hello")
                await late.result("tasks.start", id="add", args={})
                assert (await late.result("tasks.grade", answer="3"))["score"] == 1.0
            assert _is_closed(sockets[0])
            assert _is_closed(sockets[1])
            assert not _is_closed(sockets[-2])
        finally:
            for one in sockets:
                one.close()


def _is_closed(one: socket.socket) -> bool:
    one.settimeout(0.0)
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


async def test_who_says_nothing_whole_is_hung_up_on(tmp_path: Path) -> None:
    async with limited(tmp_path, hello=0.05) as served:
        for first in (b"", b"{", b'{"id": 1, "method": "hel', b"GET / HTTP/1.1\r\n"):
            async with raw(served.port) as peer:
                await peer.send(first)
                assert await peer.read() is None


async def test_a_slow_drip_is_hung_up_on(tmp_path: Path) -> None:
    async with (
        limited(tmp_path, frame=0.1) as served,
        unharmed(served.port),
        raw(served.port) as peer,
    ):
        await peer.result("hello")
        await peer.send(b"{")
        assert error_of(await peer.read())[2] == "a frame took longer than 0.1 s"


async def test_unfinished_frames_are_bounded_in_all(tmp_path: Path) -> None:
    async with limited(tmp_path, held_bytes=1 << 20) as served, unharmed(served.port):
        async with raw(served.port) as one, raw(served.port) as two:
            reads: dict[asyncio.Task[dict[str, Json] | None], Raw] = {}
            for peer in (one, two):
                await peer.result("hello")
                await peer.send(b"{" + b" " * 900_000)
                reads[asyncio.create_task(peer.read())] = peer
            refused, waiting = await asyncio.wait(reads, return_when=asyncio.FIRST_COMPLETED)
            assert [error_of(read.result())[0] for read in refused] == [-32003]
            for read in waiting:  # what the other held has been given back
                await reads[read].send(b"}\n")
                assert error_of(await read)[0] == -32600
        async with raw(served.port) as peer:  # what was held has been given back
            await peer.result("hello")
            await peer.send(b"{" + b" " * 900_000 + b"}\n")
            assert error_of(await peer.read())[0] == -32600


async def test_sessions_are_bounded_and_graded_ones_make_room(tmp_path: Path) -> None:
    async with (
        limited(tmp_path, sessions=2) as served,
        raw(served.port) as one,
        raw(served.port) as two,
        raw(served.port) as three,
        raw(served.port) as four,
    ):
        session = (await one.result("hello"))["session_id"]
        await one.result("tasks.start", id="add", args={})
        await two.result("hello")
        assert (await three.error("hello"))[0] == -32003
        assert (await three.error("tasks.start", id="add"))[0] == -32003
        await one.result("tasks.grade", answer="3")
        one.abort()
        while "error" in await three.ask("hello"):  # until the server has seen it
            pass
        assert (await four.error("hello", session_id=session))[0] == -32002


async def test_a_parked_session_and_its_task_end_after_a_while(tmp_path: Path) -> None:
    file = write_env(tmp_path)
    lines: asyncio.Queue[dict[str, Json]] = asyncio.Queue()
    limits = ChannelLimits(parked=0.1)
    async with serve(str(file), workers=1, limits=limits, audit=lines.put_nowait) as served:
        async with raw(served.port) as one:
            session = (await one.result("hello"))["session_id"]
            await one.result("tasks.start", id="add", args={"a": 77_777})
        line = await lines.get()
        async with raw(served.port) as two:
            assert (await two.error("hello", session_id=session))[0] == -32002
    assert (line["task"], line["ended"], line["reward"]) == ("add", "abandoned", None)


async def test_the_audit_says_who_and_what_and_no_secret(tmp_path: Path) -> None:
    file = write_env(tmp_path)
    lines: list[dict[str, Json]] = []
    token = "token-token-token"
    async with (
        serve(str(file), workers=1, audit=lines.append, token=token) as served,
        raw(served.port) as peer,
    ):
        session = str((await peer.result("hello", token=token))["session_id"])
        await peer.result("tasks.start", id="add", args={"a": 4321, "b": 0})
        await peer.result("tasks.grade", answer="4321")
        await peer.result("tasks.start", id="raises", args={"what": "s3cret"})
        await peer.error("tasks.grade", answer="x")
        await peer.result("tasks.start", id="add", args={})
        await peer.result("tasks.cancel")
        await peer.result("tasks.start", id="add", args={})
        await peer.result("tasks.start", id="add", args={})
        await peer.result("bye")
    said = [(line["task"], line["ended"], line["reward"], line["error"]) for line in lines]
    assert said == [
        ("add", "graded", 1.0, None),
        ("raises", "error", None, "ValueError"),
        ("add", "cancelled", None, None),
        ("add", "replaced", None, None),
        ("add", "cancelled", None, None),
    ]
    assert all(str(line["peer"]).startswith("127.0.0.1:") for line in lines)
    text = json.dumps(lines)
    for secret in (session, token, "4321", "s3cret"):
        assert secret not in text


async def test_an_audit_that_cannot_be_written_takes_no_grade_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = write_env(tmp_path)

    def full(_: dict[str, Json]) -> None:
        raise OSError(28, "No space left on device")

    async with serve(str(file), workers=1, audit=full) as served, started(served.port) as peer:
        assert (await peer.result("tasks.grade", answer="3"))["score"] == 1.0
    assert "the audit cannot be written" in caplog.text


async def test_without_the_token_nothing_is_told(tmp_path: Path) -> None:
    file = write_env(tmp_path)
    token = "token-token-token"
    async with serve(str(file), workers=1, token=token) as served:
        for method in ("tasks.list", "tasks.start", "tasks.grade", "tasks.cancel", "bye", "hello"):
            async with raw(served.port) as stranger:
                code, _, message = await stranger.error(method, id="add")
                assert (code, message) == (-32001, "this server wants a token")
                assert await stranger.read() is None
        async with raw(served.port) as mine, raw(served.port) as stranger:
            session = (await mine.result("hello", token=token))["session_id"]
            await mine.result("tasks.start", id="add", args={})
            mine.abort()
            code, _, message = await stranger.error("hello", session_id="sess-" + "0" * 32)
            assert code == -32001
        async with raw(served.port) as mine:  # the id is itself the right to go on
            await mine.result("hello", session_id=session)
            assert (await mine.result("tasks.grade", answer="3"))["score"] == 1.0


# WebSockets.


async def test_a_websocket_is_bounded_and_strict_too(served: ServedProcess) -> None:
    async with unharmed(served.port), aiohttp.ClientSession() as web:
        async with web.ws_connect(served.websocket, max_msg_size=1 << 26) as web_socket:
            await web_socket.send_str('{"id": 1, "method": "hello", "params": {}}')
            assert (await web_socket.receive_json())["result"]["env"]["name"] == "demo"
            await web_socket.send_bytes(b'{"id": 2, "method": "nope"}')
            assert (await web_socket.receive_json())["error"]["code"] == -32601
            await web_socket.send_str("[]")
            assert (await web_socket.receive_json())["error"]["code"] == -32600
            with suppress(aiohttp.ClientError, OSError):
                await web_socket.send_str(" " * (MOST_BYTES + 1))
            assert (await web_socket.receive()).type is not aiohttp.WSMsgType.TEXT
        async with web.ws_connect(served.websocket) as web_socket:
            await web_socket.send_str("garbage")
            assert (await web_socket.receive_json())["error"]["code"] == -32700
            assert (await web_socket.receive()).type is not aiohttp.WSMsgType.TEXT


async def test_pages_in_a_browser_are_not_served(tmp_path: Path) -> None:
    async with serve(str(write_env(tmp_path)), workers=1) as served:
        url = f"http://127.0.0.1:{served.port}"
        async with aiohttp.ClientSession() as web:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await web.ws_connect(served.websocket, origin="https://evil.example")
            assert refused.value.status == 403
            for path in ("", "/health"):  # which OpenEnv's clients would ask for
                async with web.get(url + path) as answer:
                    assert answer.status == 426
        async with unharmed(served.port), raw(served.port) as peer:  # nor can a form be posted
            await peer.send(b"POST / HTTP/1.1\r\nHost: x\r\n\r\n" + _call())
            assert error_of(await peer.read())[0] == -32700
            assert await peer.read() is None
