"""What goes wrong with models: what is tried again, what is left out, what is told."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.models import ModelClient, ModelSettings
from assay.models.faults import broken_reply, fault_of, redacted
from assay.models.settings import ModelEntry
from assay.scoring.json_safe import Json
from assay.testing import FakeJudge, Fault
from tests.each import each
from tests.model_servers import (
    MET,
    FakeTime,
    Raw,
    Seen,
    client,
    error,
    failing,
    question,
    said,
    scripted,
    verdict,
)

KEY = "sk-very-secret-key"


# --- What a server says -------------------------------------------------------------------------


def fault(status: int, message: str = "", *, headers: Any = None, **more: Any) -> Any:
    body = json.dumps({"error": {"message": message, **more}}).encode()
    return fault_of(status, headers or {}, body, now=0.0, secrets=("sk-1",))


@each(
    "status, message, code, kind, again",
    [
        (400, "no such thing", "", "rejected", False),
        (400, "maximum context length is 8192 tokens", "", "overflow", False),
        (400, "x", "context_length_exceeded", "overflow", False),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "", "overflow", False),
        (413, "too big", "", "overflow", False),
        (400, "Your credit balance is too low", "", "quota", False),
        (400, "filtered", "content_filter", "refused", False),
        (401, "bad key", "", "auth", False),
        (403, "not you", "", "auth", False),
        (402, "pay", "", "quota", False),
        (404, "no model", "", "rejected", False),
        (302, "", "", "rejected", False),
        (408, "", "", "overloaded", True),
        (409, "", "", "overloaded", True),
        (429, "slow down", "", "rate_limited", True),
        (429, "x", "insufficient_quota", "quota", False),
        (429, "You exceeded your current quota, see billing", "", "rate_limited", True),
        (500, "oops", "", "overloaded", True),
        (501, "never", "", "rejected", False),
        (503, "", "", "overloaded", True),
        (529, "", "overloaded_error", "overloaded", True),
    ],
)
def test_a_refusal_is_told_by_its_kind(
    status: int, message: str, code: str, kind: str, *, again: bool
) -> None:
    found = fault(status, message, code=code)
    assert (found.kind, found.may_repeat) == (kind, again)
    assert not fault(status, message, code=code, headers={"x-should-retry": "false"}).may_repeat


def test_a_pause_that_stands_in_the_message_is_read() -> None:
    assert fault(429, "Please retry in 36.5s.").pause == 36.5
    assert fault(429, "Please try again in 20ms", headers={"retry-after": "3"}).pause == 3.0
    assert fault(429, "try again in 20ms").pause == pytest.approx(0.02)


def test_hostile_error_text_is_one_bounded_line_without_the_key() -> None:
    text = "a\n\x1b[31mred\x07 sk-1 \u202e" + "x" * 5_000
    for body in (json.dumps({"error": {"message": text}}), text, json.dumps([{"error": text}])):
        found = fault_of(401, {}, body.encode(), now=0.0, secrets=("sk-1",))
        assert found.message.isprintable()
        assert len(found.message) < 400
        assert "sk-1" not in found.message
        assert "[redacted]" in found.message
    assert "sk-" not in redacted("x" * 294 + "sk-secret", "sk-secret")  # before it is cut
    page = b"<html><style>p{}</style><body><h1>502 Bad Gateway</h1></body></html>"
    assert fault_of(502, {}, page, now=0.0, secrets=()).message == ("answered 502: 502 Bad Gateway")


@given(st.binary(max_size=60) | st.text().map(str.encode))
def test_any_error_is_told_in_one_line(body: bytes) -> None:
    assert fault_of(400, {}, body, now=0.0, secrets=("key",)).message.isprintable()
    assert broken_reply("application/json", body, secrets=()).message.isprintable()


# --- What is done about it -----------------------------------------------------------------------


@each("kind", ["408", "429", "500", "502", "503", "529", "reset", "truncated"])
async def test_what_passes_is_tried_again(kind: str) -> None:
    with FakeJudge([MET, MET], faults=[Fault(kind, times=3), Fault(kind, at=4, times=3)]) as judge:
        for model in (judge.model, judge.anthropic_model):
            asked, before = client(FakeTime()), judge.count
            reply = await asked.ask(question(model))
            assert reply.data == MET
            assert len(reply.attempts) == 3
            assert judge.count == before + 4
            counted = "lost" if kind in ("reset", "truncated") else "retry"
            assert asked.ledger.summary().total(kind=counted).count == 3
            assert reply.attempts[0].waited <= 2.0


@each(
    "kind, expected, tries",
    [
        *(("429", "rate_limited", 3), ("500", "overloaded", 3), ("reset", "unreachable", 3)),
        # What does not pass is told at once.
        *(("401", "auth", 1), ("html", "unreadable", 1), ("content_type", "unreadable", 1)),
    ],
)
async def test_tries_end(kind: str, expected: str, tries: int) -> None:
    with FakeJudge([MET], faults=[Fault(kind, times=99)]) as judge:
        for model in (judge.model, judge.anthropic_model):
            before = judge.count
            failure = await failing(client(FakeTime(), max_attempts=3), question(model))
            assert failure.kind == expected
            assert judge.count == before + tries
            assert str(failure).isprintable()
            assert ("after 3 tries" in str(failure)) == (tries == 3)


async def test_a_pause_that_is_asked_for_is_kept_where_the_deadline_allows_it() -> None:
    time = FakeTime()
    with FakeJudge([MET], faults=[Fault("429", retry_after=7)]) as judge:
        reply = await client(time).ask(question(judge.model))
        assert sum(time.slept) >= 7.0
        assert reply.attempts[0].waited >= 7.0
    time = FakeTime()
    with FakeJudge([MET], faults=[Fault("429", retry_after=3_000)]) as judge:
        failure = await failing(client(time), question(judge.model))
        assert (failure.kind, "3000 seconds" in str(failure)) == ("rate_limited", True)
        assert time.slept == []


async def test_a_redirect_is_not_followed_nor_given_the_key() -> None:
    async with scripted([verdict()]) as elsewhere:
        away = {"Location": f"{elsewhere.root}/v1/chat/completions"}
        async with scripted([Raw("", status, away) for status in (301, 302, 307, 308)]) as server:
            for _ in range(4):
                failure = await failing(client(), question(server.model))
                assert (failure.kind, "redirects" in str(failure)) == ("rejected", True)
        assert elsewhere.seen == []


async def test_attack_a_reply_without_end_is_not_read_to_it_nor_a_packed_one_unpacked() -> None:
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join([bomb.compress(b" " * (1 << 20)) for _ in range(64)] + [bomb.flush()])
    for reply in (
        Raw(b" " * (1 << 20), chunks=64),
        Raw(packed, headers={"Content-Encoding": "gzip"}),
    ):
        async with scripted([reply]) as server:
            failure = await failing(client(), question(server.model))
            assert (failure.kind, "MiB" in str(failure)) == ("unreadable", True)


async def test_a_reply_that_is_packed_unasked_is_read() -> None:
    body = verdict().body
    assert isinstance(body, dict)
    packed = gzip.compress(json.dumps(body).encode())
    for encoding, reply in (("gzip", packed), ("br", b"x"), ("gzip", b"junk")):
        async with scripted([Raw(reply, headers={"Content-Encoding": encoding})]) as server:
            if reply is packed:
                assert (await client().ask(question(server.model))).data == MET
                continue
            asked = client(FakeTime(), max_attempts=2)
            assert (await failing(asked, question(server.model))).kind == "unreadable"


def _beside(**error: Json) -> Raw:
    """A verdict, and an error beside it."""
    choice: Json = {"finish_reason": "stop", "message": {"content": json.dumps(MET)}}
    return Raw({"choices": [choice], **error})


@each(
    "reply, kind, status",
    [
        (Raw(""), "unreadable", 200),
        (Raw("[" * 100_000), "unreadable", 200),
        (Raw({"choices": []}), "unreadable", 200),
        (Raw("null"), "unreadable", 200),
        (Raw("<h1>hi</h1>", content_type="text/html"), "unreadable", 200),
        (Raw({"error": {"message": "upstream", "code": 429}}), "rate_limited", 429),
        (Raw({"error": {"message": "no", "code": 401}}), "auth", 401),
        (Raw({"error": "upstream"}), "overloaded", 502),
        (_beside(error={"code": 429, "message": "slow"}), "rate_limited", 429),
        (_beside(error={"code": 401, "message": "who?"}), "auth", 401),
        (_beside(error={"message": "x"}), "overloaded", 502),
    ],
)
async def test_attack_what_is_no_reply_is_the_servers_fault(
    reply: Raw, kind: str, status: int
) -> None:
    async with scripted([reply]) as server:
        asked = client(FakeTime(), max_attempts=2)
        failure = await failing(asked, question(server.model))
        assert (failure.kind, failure.status) == (kind, status)
        if (
            isinstance(reply.body, dict) and "choices" in reply.body
        ):  # it may have been worked on: nobody knows what it cost
            assert asked.ledger.summary().total(kind="lost").count == len(server.seen)


# --- Keys --------------------------------------------------------------------------------------


def _echo(seen: Seen) -> Raw:
    told = " ".join(seen.headers.values())
    return error(400, f"your headers were {told}")


async def test_a_key_that_a_server_says_back_is_not_told() -> None:
    async with scripted(_echo) as server:
        settings = ModelSettings(
            endpoints={
                "mine": ModelEntry(
                    base_url=f"{server.root}/v1",
                    key_env="MY_KEY",
                    headers={"x-more": "sk-header-secret"},
                )
            },
            secrets={"MY_KEY": KEY},
        )
        asked = ModelClient(settings)
        failure = await failing(asked, question("mine"))
        assert server.seen[0].headers["Authorization"] == f"Bearer {KEY}"
        assert "[redacted]" in str(failure)
        shown = f"{failure!s} {failure!r} {asked.route('mine')!r} {settings!r} {vars(asked)!r}"
        assert KEY not in shown
        assert "sk-header-secret" not in shown


async def test_each_protocol_has_its_header_for_the_key() -> None:
    async with scripted([verdict()]) as server:
        base = f"{server.root}/v1"
        endpoints = {
            "a": ModelEntry(protocol="anthropic", base_url=server.root, key_env="K"),
            "b": ModelEntry(base_url=base, key_env="K", key_header="api-key"),
        }
        asked = client(FakeTime(), endpoints=endpoints, secrets={"K": KEY}, max_attempts=1)
        await failing(asked, question("a"))  # it answers in the other protocol
        await asked.ask(question("b"))
        first, last = server.seen[0].headers, server.seen[-1].headers
        assert (first["x-api-key"], last["api-key"]) == (KEY, KEY)
        assert "Authorization" not in {**first, **last}
        assert first["anthropic-version"] == "2023-06-01"


# --- What a model takes --------------------------------------------------------------------------


def _picky(seen: Seen) -> Raw:
    body = seen.body
    if "temperature" in body:
        return error(400, "'temperature' is not supported", param="temperature")
    if "max_tokens" in body:
        return error(400, "Use 'max_completion_tokens' instead of 'max_tokens'")
    if "tools" in body:
        return error(422, "tools are not supported")
    if "response_format" in body:
        return error(400, "response_format is not supported by this model")
    return verdict()


async def test_what_a_model_refuses_is_left_out_and_remembered() -> None:
    async with scripted(_picky) as server:
        asked = client()
        reply = await asked.ask(question(server.model))
        assert (reply.data, reply.dropped, reply.rung) == (MET, ("temperature",), "text")
        assert len(server.seen) == 6
        again = await asked.ask(question(server.model))
        assert (len(server.seen), again.dropped) == (7, ("temperature",))
        assert again.attempts == ()
        # What was never asked for was never dropped.
        plain = await asked.ask(question(server.model, temperature=None))
        assert plain.dropped == ()


async def test_many_that_are_refused_at_once_all_learn() -> None:
    async with scripted(_picky) as server:
        asked = client()
        replies = await asyncio.gather(*(asked.ask(question(server.model)) for _ in range(12)))
        assert all(reply.data == MET for reply in replies)


async def test_anthropic_steps_down_to_a_tool() -> None:
    faults = [Fault("400", parameter="output_config")]
    with FakeJudge([MET], faults=faults) as judge:
        reply = await client().ask(question(judge.anthropic_model))
        assert (reply.data, reply.rung) == (MET, "tool")
        assert judge.requests[-1].tool == "verdict"


async def test_a_refusal_that_teaches_nothing_ends() -> None:
    async with scripted([error(400, "temperature response_format max_tokens tools")]) as server:
        failure = await failing(client(), question(server.model))
        assert failure.kind == "rejected"
        assert len(server.seen) < 12


async def test_the_way_to_a_shape_can_be_set() -> None:
    async with scripted(
        [said(None, tool_calls=[{"function": {"arguments": json.dumps(MET)}}])]
    ) as (server):
        endpoint = ModelEntry(base_url=f"{server.root}/v1", structured="tool")
        asked = ModelClient(ModelSettings(endpoints={"x": endpoint}))
        reply = await asked.ask(question("x"))
        assert (reply.data, reply.rung) == (MET, "tool")
