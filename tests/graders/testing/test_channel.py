"""The host's end of the private channel: what it believes, and whom it answers."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import sys
from asyncio import create_subprocess_exec, to_thread
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.graders.testing.channel import (
    LONGEST_LINE,
    Brief,
    FrameReader,
    RunnerChannel,
    open_channel,
)
from assay.graders.testing.outcomes import TestOutcome
from assay.sandbox import Mount, run_command
from assay.scoring.json_safe import Json
from tests.each import each

KEY = b"k" * 32
RUN: list[dict[str, Json]] = [
    {"event": "collected", "ids": ["a", "b"], "errors": [{"id": "c", "message": "broken"}]},
    {"event": "start", "id": "a"},
    {"event": "result", "id": "a", "outcome": "passed", "seconds": 0.5, "message": "ok"},
    {"event": "canary", "name": "canary1", "outcome": "failed", "message": "planted"},
    {"event": "ready"},
    {"event": "tamper", "what": "the runner was changed"},
    {"event": "undecided", "what": "object:kit.add"},
    {"event": "note", "what": "a callback"},
    {"event": "needs", "test": "a", "what": "class:kit.Point"},
    {"event": "end", "exit": 1},
]


def line(number: int, event: Json, key: bytes = KEY) -> bytes:
    return signed(number, json.dumps(event).encode(), key)


def signed(number: int, payload: bytes, key: bytes = KEY) -> bytes:
    text = b"%d\n" % number + payload
    code = hmac.new(key, text, hashlib.sha256).hexdigest().encode()
    return code + b" %d " % number + payload + b"\n"


def lines(*events: Json) -> bytes:
    return b"".join(line(number, event) for number, event in enumerate(events))


@given(st.integers(1, 60) | st.just(10_000))
def test_a_genuine_report_is_heard_however_it_is_cut(size: int) -> None:
    report = lines(*RUN)
    reader = FrameReader(KEY)
    assert all(reader.feed(report[start : start + size]) for start in range(0, len(report), size))
    heard = reader.heard
    assert heard.collected == ["a", "b"]
    assert heard.errors == {"c": "broken"}
    assert heard.started is None
    passed = TestOutcome(id="a", outcome="passed", seconds=0.5, message="ok")
    assert heard.outcomes == {"a": passed}
    assert heard.canaries == {"canary1": ("failed", "planted")}
    assert heard.ready
    assert heard.tampering == ["the runner was changed"]
    assert (heard.undecided, heard.notes) == (["object:kit.add"], ["a callback"])
    assert heard.needs == {"a": ["class:kit.Point"]}
    assert heard.exit == 1
    assert reader.forged == ""


@each(
    ("report", "why"),
    [
        (line(0, RUN[0], key=b"guessed"), "not the runner's"),
        (line(0, RUN[0]) + line(0, RUN[0]), "wrong number"),
        (line(0, RUN[0]) + line(2, RUN[1]), "wrong number"),
        (b"3 passed in 0.01s\n", "wrong number"),
        (b"\n", "wrong number"),
        (b"x" * LONGEST_LINE, "too long"),
        (b"x" * LONGEST_LINE + b"\n", "too long"),
        (lines({"event": "end", "exit": 0}, RUN[2]), "after its end"),
        (lines([]), "no sense"),
        (signed(0, b"[" * 200_000), "no sense"),
        (lines({"event": "won"}), "no sense"),
        (lines({"event": "end", "exit": True}), "no sense"),
        (lines({"event": "result", "id": "a", "outcome": "excellent"}), "no sense"),
        (lines({"event": "result", "id": 1, "outcome": "passed"}), "no sense"),
        (lines({"event": "collected", "ids": [1]}), "no sense"),
        (lines({"event": "collected", "ids": [], "errors": ["x"]}), "no sense"),
        (lines({"event": "canary", "name": "x"}), "no sense"),
    ],
)
def test_a_forged_report_is_known_as_one(report: bytes, why: str) -> None:
    reader = FrameReader(KEY)
    assert not reader.feed(report)
    assert why.replace("after", "on after") in reader.forged
    assert not reader.feed(lines(*RUN))


def test_a_report_has_a_size() -> None:
    reader = FrameReader(KEY)
    number = 0
    event: Json = {"event": "start", "id": "x" * 900_000}
    while reader.feed(line(number, event)):
        number += 1
    assert reader.forged == "the report is too long"
    assert number < 80


def test_of_two_results_for_a_test_the_worse_counts() -> None:
    def result(outcome: str) -> Json:
        return {"event": "result", "id": "a", "outcome": outcome}

    for outcomes in (["passed", "failed"], ["failed", "passed"]):
        reader = FrameReader(KEY)
        reader.feed(lines(*map(result, outcomes)))
        assert reader.heard.outcomes["a"].outcome == "failed"


@each("seconds", [-1, True, "1", None, 1e999, 10**400])
def test_impossible_seconds_are_no_seconds(seconds: Json) -> None:
    event: Json = {"event": "result", "id": "a", "outcome": "passed", "seconds": seconds}
    reader = FrameReader(KEY)
    assert reader.feed(lines(event))
    assert reader.heard.outcomes["a"].seconds is None


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_nothing_that_arrives_raises_or_is_believed(chunks: list[bytes]) -> None:
    reader = FrameReader(KEY)
    for chunk in chunks:
        reader.feed(chunk)
    assert reader.heard.exit is None
    assert not reader.heard.outcomes


class Client:
    """A runner's end of the channel."""

    def __init__(self, path: str) -> None:
        self.link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.link.connect(path)
        self.brief: dict[str, Json] = json.loads(self.link.makefile().readline())

    def say(self, *events: Json) -> None:
        key = bytes.fromhex(str(self.brief["key"]))
        self.link.sendall(b"".join(line(n, event, key) for n, event in enumerate(events)))


async def connect(channel: RunnerChannel) -> Client:
    return await to_thread(Client, channel.path)


async def test_the_first_to_connect_gets_the_brief() -> None:
    hidden = {"test_a.py": "assert 'ä'", "large.py": "x" * 3_000_000}
    brief = Brief(hidden=hidden, shuffle=False, skip=["x"], loose=["k.K"])
    async with open_channel(brief) as channel:
        assert Path(channel.path).is_socket()
        client = await connect(channel)
        with client.link:
            client.say({"event": "end", "exit": 0})
    assert channel.connected
    assert not Path(channel.path).exists()
    assert channel.heard.exit == 0
    told = client.brief
    assert told["hidden"] == hidden
    assert (told["v"], told["shuffle"], told["skip"]) == (1, False, ["x"])
    assert told["loose"] == ["k.K"]
    assert told["canary"] == {"name": channel.canary[0], "planted": channel.canary[1]}


async def test_keys_and_canaries_are_never_the_same() -> None:
    seen: set[str] = set()
    for _ in range(2):
        async with open_channel(Brief()) as channel:
            client = await connect(channel)
            client.link.close()
        seen |= {str(client.brief["key"]), *channel.canary}
    assert len(seen) == 6


async def test_a_connection_left_open_is_not_waited_for() -> None:
    async with open_channel(Brief()) as channel:
        client = await connect(channel)
        client.say({"event": "start", "id": "a"})
    assert channel.heard.started == "a"
    assert channel.heard.exit is None
    client.link.close()


async def test_who_never_speaks_holds_nothing_up() -> None:
    async with open_channel(Brief(hidden={"a": "x" * 3_000_000})) as channel:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
            await to_thread(silent.connect, channel.path)
    assert channel.heard.exit is None


async def test_garbage_is_a_forged_report() -> None:
    async with open_channel(Brief()) as channel:
        client = await connect(channel)
        await to_thread(client.link.sendall, b"3 passed in 0.01s\n" * 10)
        assert await to_thread(client.link.recv, 1) == b""  # hung up on
        client.link.close()
    assert channel.forged


async def test_a_second_connection_of_the_runner_is_refused_and_noted() -> None:
    async with open_channel(Brief()) as channel:
        first = await connect(channel)
        second = await connect(channel)
        assert "refused" in second.brief
        assert (channel.nested, channel.rivals) == (1, 0)
        first.link.close()
        second.link.close()


_HOLD = """
import socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
link.makefile().readline()
print("connected", flush=True)
sys.stdin.read()
"""


async def test_an_impostor_that_connects_before_the_runner_is_exposed() -> None:
    async with open_channel(Brief()) as channel:
        words = [sys.executable, "-c", _HOLD, channel.path]
        impostor = await create_subprocess_exec(*words, stdin=PIPE, stdout=PIPE)
        assert impostor.stdout
        await impostor.stdout.readline()
        runner = await connect(channel)
        assert "refused" in runner.brief
        runner.link.close()
        await impostor.communicate(b"")
    assert channel.rivals == 1


async def test_a_flood_of_connections_is_answered_only_so_often() -> None:
    def flood(path: str) -> None:
        for _ in range(1000):
            Client(path).link.close()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one_more:
            one_more.connect(path)

    async with open_channel(Brief()) as channel:
        first = await connect(channel)
        await to_thread(flood, channel.path)
        first.link.close()
    assert channel.nested == 1000


@pytest.mark.sandbox
async def test_a_command_in_the_sandbox_reaches_the_channel() -> None:
    script = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/opt/assay/channel'); "
        "print(s.makefile().readline()); s.sendall(b'hello')"
    )
    async with open_channel(Brief(hidden={"a.py": "pass"})) as channel:
        result = await run_command(
            ["/usr/bin/python3", "-c", script],
            workspace=None,
            mounts=[Mount(source=channel.path, target="/opt/assay/channel")],
        )
    assert json.loads(result.stdout)["hidden"] == {"a.py": "pass"}, result.stderr
    assert channel.connected
