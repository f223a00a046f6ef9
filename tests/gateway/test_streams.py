"""Replies that pass a gateway as events: as they come, as far as they come, recorded first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from assay.conversation.messages import ReplyUsage
from assay.conversation.protocols import Protocol, codec_of
from assay.conversation.turns import AssistantTurn, Conversation, Turn
from assay.errors import StoreError
from assay.gateway import Allowance, Gateway
from assay.gateway.journal import REDACTED
from assay.models import ModelClient, ModelSettings
from assay.models.pace import Timing
from assay.models.settings import ModelEntry
from assay.types.trace import AgentStep
from tests.each import each
from tests.gateway.asking import read_journal

_PROTOCOLS: list[Protocol] = ["chat", "responses", "anthropic"]
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
_OPEN = _STREAM + b"\r\n"
_BAD = b"HTTP/1.1 %d Bad\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
_ASKED: dict[Protocol, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "count"}]},
    "responses": {"input": "count"},
    "anthropic": {"messages": [{"role": "user", "content": "count"}], "max_tokens": 9},
}
_Piece = bytes | Callable[[], Awaitable[object]]


def _events(
    protocol: Protocol, said: str = "one two three", *, pieces: int = 13, wants_usage: bool = True
) -> list[bytes]:
    usage = ReplyUsage(input_tokens=3, output_tokens=3, cached_tokens=0)
    reply = AssistantTurn(turn=Turn.of("assistant", said), usage=usage, id="r", model="m")
    asked = Conversation(model="m", turns=())
    codec = codec_of(protocol)
    body = codec.write_reply(reply, asked)
    return list(codec.write_stream(body, pieces=pieces, wants_usage=wants_usage))


@dataclass
class _Upstream:
    """A model's server that says what it was told to, and then hangs up."""

    replies: list[list[_Piece]]
    port: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    received: list[bytes] = field(default_factory=list[bytes])

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            self.received.append(await reader.readexactly(length))
            self.asked.append(json.loads(self.received[-1]))
            for piece in self.replies[min(len(self.asked), len(self.replies)) - 1]:
                if isinstance(piece, bytes):
                    writer.write(piece)
                    await writer.drain()
                else:
                    await piece()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def gateway(self, protocol: Protocol, **more: Any) -> Gateway:
        kind = "anthropic" if protocol == "anthropic" else "openai"
        base = f"http://127.0.0.1:{self.port}{'' if kind == 'anthropic' else '/v1'}"
        entry = ModelEntry(
            base_url=base, protocol=kind, model="m", responses=protocol == "responses"
        )
        settings = ModelSettings(endpoints={"mine": entry}, max_attempts=2)
        timing = Timing(uniform=lambda low, high: low)
        return Gateway("mine", client=ModelClient(settings, timing=timing), **more)


@asynccontextmanager
async def _upstream(*replies: list[_Piece]) -> AsyncGenerator[_Upstream]:
    upstream = _Upstream(list(replies))
    server = await asyncio.start_server(upstream.answer, "127.0.0.1", 0)
    upstream.port = server.sockets[0].getsockname()[1]
    async with server:
        yield upstream


@asynccontextmanager
async def _chat(*replies: list[_Piece], **more: Any) -> AsyncGenerator[tuple[_Upstream, Gateway]]:
    async with _upstream(*replies) as upstream, upstream.gateway("chat", **more) as gateway:
        yield upstream, gateway


@asynccontextmanager
async def _asking(
    gateway: Gateway, protocol: Protocol, **more: Any
) -> AsyncGenerator[aiohttp.ClientResponse]:
    path = codec_of(protocol).PATH.removeprefix("/v1")
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{gateway.openai_url}{path}",
            json={"model": "x", "stream": True, **_ASKED[protocol], **more},
            headers={"x-api-key": gateway.token},
        ) as response,
    ):
        yield response


async def _asked(gateway: Gateway, protocol: Protocol, **more: Any) -> bytes:
    async with _asking(gateway, protocol, **more) as response:
        return await response.read()


def _last(gateway: Gateway) -> AgentStep:
    steps = [one for one in gateway.recorded().trace.steps if isinstance(one, AgentStep)]
    return steps[-1]


@each("protocol", _PROTOCOLS)
async def test_events_pass_as_they_come(protocol: Protocol) -> None:
    goes_on = asyncio.Event()
    events = _events(protocol)
    middle = next(at for at, one in enumerate(events) if b'"t"' in one) + 1
    first, rest = b"".join(events[:middle]), b"".join(events[middle:])
    async with (
        _upstream([_OPEN, first[:-9], first[-9:], goes_on.wait, rest]) as upstream,
        upstream.gateway(protocol) as gateway,
    ):
        async with _asking(gateway, protocol, stream_options={"include_usage": True}) as response:
            seen = b""
            while len(seen) < len(first):
                seen += await response.content.readany()
            assert seen == first  # nothing has come to an end yet
            goes_on.set()
            seen += await response.read()

        assert seen == b"".join(events)
        assert upstream.asked[0]["stream"] is True
        last = _last(gateway)
        assert last.usage is not None
        assert (last.content, last.usage.completion_tokens) == ("one two three", 3)
        assert gateway.spent.tokens == 6


async def test_tokens_are_known_and_told_only_to_who_asked(tmp_path: Path) -> None:
    journal = tmp_path / "wire.jsonl"
    async with _chat([_OPEN, *_events("chat")], journal=journal) as (upstream, gateway):
        seen = await _asked(gateway, "chat")

        assert upstream.asked[0]["stream_options"] == {"include_usage": True}
        assert b"total_tokens" not in seen
        assert seen.endswith(b"data: [DONE]\n\n")
        assert gateway.spent.tokens == 6
        assert read_journal(journal) == gateway.recorded()  # kept once


_WHOLE = json.dumps(
    codec_of("chat").write_reply(
        AssistantTurn(turn=Turn.of("assistant", "one two three")), Conversation(model="m", turns=())
    )
).encode()
_PLAIN: list[_Piece] = [_BAD % (200, len(_WHOLE), _WHOLE)]


@each("word", ["stream_options", "stream"])
async def test_a_server_that_knows_no_streams_is_asked_for_whole_replies(word: str) -> None:
    told = json.dumps({"error": {"message": f"Unknown parameter: '{word}'."}}).encode()
    async with _chat([_BAD % (400, len(told), told)], _PLAIN) as (upstream, gateway):
        seen = await _asked(gateway, "chat")

        assert not {"stream", "stream_options"} & upstream.asked[1].keys()
        assert seen.endswith(b"data: [DONE]\n\n")
        assert _last(gateway).content == "one two three"


async def test_a_server_that_tells_no_tokens_of_a_stream_is_asked_for_whole_replies() -> None:
    async with _chat([_OPEN, *_events("chat", wants_usage=False)], _PLAIN) as (upstream, gateway):
        seen = [await _asked(gateway, "chat") for _ in range(2)]

        assert [one.get("stream") for one in upstream.asked] == [True, None]
        assert all(one.endswith(b"data: [DONE]\n\n") for one in seen)


_BODY = '{"model": "%s", "messages": [{"role":"user", "content": "%s"}],  "new_field": 1.50}'


@each(
    "sent, is_same",
    [
        ((_BODY % ("m", "caf\u00e9")).encode(), True),
        ((_BODY % ("another", "count")).encode(), False),
        # A router would ask other models in the place of the cell's own.
        ((_BODY % ("m", "count")).replace("1.50", '1, "models": ["n"]').encode(), False),
        ((_BODY % ("m", "count")).replace("1.50", '1, "fallbacks": ["n"]').encode(), False),
        ((_BODY % ("m", "count")).replace("1.50", '1, "stream": false').encode(), False),
        ((_BODY % ("m", "\\ud800")).encode(), False),
        ((_BODY % ("m", "\\uDFFF")).encode(), False),
        ((_BODY % ("m", "\ud800")).encode("utf-8", "surrogatepass"), False),
        ((_BODY % ("m", "count")).encode("utf-16"), False),
        ((_BODY % ("m", "count")).encode("utf-16-le"), False),
        (b" " + (_BODY % ("m", "count")).encode(), False),
    ],
)
async def test_a_body_of_which_nothing_changes_is_sent_as_it_came(
    *, sent: bytes, is_same: bool
) -> None:
    async with (
        _upstream(_PLAIN) as upstream,
        upstream.gateway("chat") as gateway,
        aiohttp.ClientSession() as session,
    ):
        url = f"{gateway.openai_url}/chat/completions"
        headers = {"x-api-key": gateway.token}
        async with session.post(url, data=sent, headers=headers) as response:
            assert response.status == 200

        assert (upstream.received == [sent]) == is_same
        assert upstream.asked[0]["model"] == "m"
        assert not {"models", "fallbacks"} & upstream.asked[0].keys()
        upstream.received[0].decode()
        assert "\ud800" not in upstream.asked[0]["messages"][0]["content"]
        assert "\udfff" not in upstream.asked[0]["messages"][0]["content"]


_ENDS: dict[str, tuple[bytes, bool]] = {
    "nothing more": (b"", True),
    "an error": (b'event: error\ndata: {"type":"error","error":{"message":"no"}}\n\n', True),
    "no JSON": (b"data: {\n\n", False),
    "half an event": (b'data: {"choices"', True),
    "too long an event": (b"data: " + b"x" * 3_000, False),
    "lines without end": (b"data: x\n" * 400, False),
    "remarks without end": (b": x\n\n" * 4_000, False),
}


@pytest.mark.parametrize("protocol", _PROTOCOLS)
@pytest.mark.parametrize("how", _ENDS)
async def test_a_stream_that_breaks_is_kept_as_far_as_it_came(
    protocol: Protocol, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.models.passing.MAX_REPLY_BYTES", 2_500)
    monkeypatch.setattr("assay.models.transport.MAX_STREAM_BYTES", 15_000)
    ending, is_ours = _ENDS[how]
    goes_on, never = asyncio.Event(), asyncio.Event()
    after: list[_Piece] = [] if how in ("nothing more", "half an event") else [never.wait]
    events = _events(protocol)
    begun = events[: next(at for at, one in enumerate(events) if b'"w"' in one) + 1]
    async with (
        _upstream([_OPEN, *begun, goes_on.wait, ending, *after]) as upstream,
        upstream.gateway(protocol) as gateway,
    ):
        async with _asking(gateway, protocol) as response, asyncio.timeout(60):
            seen = await response.content.readany()
            goes_on.set()
            seen += await response.read()
        never.set()

        assert seen.startswith(begun[0])
        reader = codec_of(protocol).read_stream()
        reader.feed(seen)
        assert reader.error()  # in the protocol's own form
        assert reader.body() is None
        assert len(upstream.asked) == 1  # what was given on cannot be unsaid
        step = _last(gateway)
        assert (step.content, step.done, step.finish_reason) == ("one tw", False, "broken off")
        assert gateway.recorded().trace.steps[-1].error
        assert (gateway.failure is not None) == is_ours
        assert gateway.spent.tokens > 0


async def test_a_connection_that_breaks_in_the_middle_is_nobodys_zero() -> None:
    head = _STREAM + b"Transfer-Encoding: chunked\r\n\r\n"
    events = b"".join(_events("chat")[:3])
    async with _chat([head, b"%x\r\n%s\r\n" % (len(events), events)]) as (upstream, gateway):
        await _asked(gateway, "chat")

        assert gateway.failure is not None
        assert len(upstream.asked) == 1


async def test_what_fails_before_its_first_event_is_asked_again() -> None:
    error = b'data: {"error":{"message":"overloaded","code":529}}\n\n'
    async with _chat([_OPEN, error], [_OPEN, *_events("chat")]) as (upstream, gateway):
        seen = await _asked(gateway, "chat")

        assert seen.endswith(b"data: [DONE]\n\n")
        assert len(upstream.asked) == 2
        assert gateway.failure is None


async def test_a_reply_that_ended_is_whole_however_its_connection_ends() -> None:
    head = _STREAM + b"Transfer-Encoding: chunked\r\n\r\n"
    events = b"".join(_events("chat")[:-1])
    async with _chat([head, b"%x\r\n%s\r\n" % (len(events), events)]) as (_, gateway):
        seen = await _asked(gateway, "chat")

        assert b'"finish_reason":"stop"' in seen
        assert _last(gateway).content == "one two three"


async def test_attack_a_server_that_never_hangs_up_holds_nothing() -> None:
    never = asyncio.Event()
    async with _chat([_OPEN, *_events("chat"), never.wait]) as (_, gateway):
        assert (await _asked(gateway, "chat")).endswith(b"data: [DONE]\n\n")
        never.set()


@each("lie", [-5, "3", 1e300, None, [1]])
async def test_attack_usage_that_cannot_be_is_not_believed(lie: Any) -> None:
    usage = {"prompt_tokens": lie, "completion_tokens": lie}
    told = json.dumps({"choices": [], "usage": usage}).encode()
    *events, done = _events("chat", wants_usage=False)
    async with (
        _upstream([_OPEN, *events, b"data: " + told + b"\n\n", done]) as upstream,
        upstream.gateway("chat", allowance=Allowance(tokens=1_000)) as gateway,
    ):
        await _asked(gateway, "chat")

        assert 0 < gateway.spent.tokens < 20
        assert gateway.spent.unknown == 1


async def test_the_end_of_a_reply_is_given_on_only_when_it_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr("assay.gateway.record.Recorder.answered", full)
    async with _chat([_OPEN, *_events("chat")]) as (_, gateway):
        seen = await _asked(gateway, "chat")

        assert b'"error"' in seen
        assert b"[DONE]" not in seen
        assert b'"finish_reason":"stop"' not in seen
        assert isinstance(gateway.failure, StoreError)


@pytest.mark.parametrize("pieces", [1, 13])
async def test_attack_a_model_is_made_to_say_the_token_until_a_kill(
    pieces: int, tmp_path: Path
) -> None:
    journal = tmp_path / "wire.jsonl"
    goes_on, never = asyncio.Event(), asyncio.Event()
    replies: list[_Piece] = [_OPEN, never.wait]
    async with _upstream(replies) as upstream, upstream.gateway("chat", journal=journal) as gateway:
        said = _events("chat", f"It is {gateway.token}.", pieces=pieces)
        replies[1:] = [*said[:-3], goes_on.wait]
        async with _asking(gateway, "chat") as response:
            seen = b""
            while seen != b"".join(said[:-3]):
                seen += await response.content.readany()
            found, kept = read_journal(journal), journal.read_text()
        goes_on.set()
        never.set()

    assert gateway.token not in kept
    step = found.trace.steps[-1]
    assert isinstance(step, AgentStep)
    assert (step.content, step.finish_reason) == (f"It is {REDACTED}.", "broken off")


@pytest.mark.parametrize("hangs_up", [True, False], ids=["hangs up", "does not read"])
async def test_attack_who_does_not_read_a_stream_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
    *,
    hangs_up: bool,
) -> None:
    monkeypatch.setattr("assay.gateway.door._MOST_UNREAD", 100_000)
    chunk = {"choices": [{"index": 0, "delta": {"content": "x" * 50_000}, "finish_reason": None}]}
    many: list[_Piece] = [b"data: " + json.dumps(chunk).encode() + b"\n\n"] * 400
    goes_on = asyncio.Event()
    async with (
        _upstream([_OPEN, many[0], goes_on.wait, *many, *_events("chat")]) as upstream,
        upstream.gateway("chat") as gateway,
        _asking(gateway, "chat") as response,
    ):
        await response.content.readany()
        if hangs_up:
            response.close()
        goes_on.set()
        while len(gateway.recorded().trace.steps) < 2:  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.01)

        assert len(_last(gateway).content or "") > 20_000_000
        assert gateway.failure is None
        if not hangs_up:  # and it is not given what it left lying
            with pytest.raises(aiohttp.ClientError):
                await response.read()


async def test_attack_a_request_that_breaks_streams_alone_is_the_agents_own() -> None:
    error = b'data: {"error":{"message":"the parser of tools broke","code":500}}\n\n'
    broken: list[_Piece] = [_OPEN, _events("chat")[0], error]
    async with _upstream(broken, _PLAIN, broken, _PLAIN) as upstream:
        async with upstream.gateway("chat") as gateway:
            await _asked(gateway, "chat")
            assert gateway.failure is not None
            await gateway.find_out()

        assert [one.get("stream", False) for one in upstream.asked] == [True, False, True, False]
    assert gateway.failure is None
    assert gateway.recorded().flags == ("its last request makes the model's server fail",)
