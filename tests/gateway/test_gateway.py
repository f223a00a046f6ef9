"""A gateway over real sockets: what an agent is given, what it is refused, and what is kept."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from assay.agents.model import ModelAgent
from assay.conversation.messages import ReplyUsage
from assay.conversation.turns import AssistantTurn, Conversation, Turn
from assay.errors import AgentError, InputError, ModelError
from assay.eval.witness import witnessed
from assay.gateway import Allowance, Gateway
from assay.models import ModelClient, ModelSettings
from assay.models.passing import AgentRequest
from assay.testing import FakeModel, Fault
from assay.types.run import Run
from assay.types.trace import AgentStep
from tests.each import each
from tests.gateway.asking import RefusedError, ask
from tests.model_servers import FakeTime, priced

_QUICK = ModelSettings(max_attempts=1)


def _gateway(fake: FakeModel, **limits: Any) -> Gateway:
    allowance = Allowance(**limits)
    return Gateway(fake.model, allowance=allowance, client=ModelClient(_QUICK))


async def _say(
    gateway: Gateway, text: str = "hello", *, most: int | None = None, token: str = ""
) -> str:
    turns = (Turn.of("user", text),)
    asked = Conversation(model="whatever", turns=turns, max_tokens=most)
    return (await ask(gateway, "chat", asked, token=token)).turn.text


async def _raw(gateway: Gateway, sent: bytes) -> bytes:
    """What comes back on one connection before it is closed by either side."""
    port = int(gateway.anthropic_url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
    answer = await reader.read()
    writer.close()
    return answer


@each(
    ("limits", "stop"),
    [({"calls": 2}, "max_steps"), ({"tokens": 60}, "length"), ({"cost_usd": 0.001}, "length")],
)
async def test_past_a_limit_nothing_is_sent_on(
    limits: dict[str, Any], stop: str, tmp_path: Path
) -> None:
    with FakeModel(lambda _: "word " * 8) as fake:
        client = ModelClient(ModelSettings(prices_file=priced(tmp_path, fake.model, 10)))
        gateway = Gateway(fake.model, allowance=Allowance(**limits), client=client)
        async with gateway:
            with pytest.raises(RefusedError, match=r"403.*the limit of"):
                await _say_for_ever(gateway)

        assert 0 < gateway.spent.calls == fake.count
        assert gateway.stop == stop
        assert any("the limit of" in flag for flag in gateway.recorded().flags)


async def _say_for_ever(gateway: Gateway) -> None:
    while True:
        await _say(gateway, most=12)


async def test_attack_many_requests_at_once_do_not_outrun_a_limit() -> None:
    with FakeModel(lambda _: "yes", seconds=0.01) as fake:
        async with _gateway(fake, calls=5) as gateway:
            asked = [_say(gateway, f"number {number}") for number in range(40)]
            ends = await asyncio.gather(*asked, return_exceptions=True)

        assert fake.count == 5
        assert sum(isinstance(end, RefusedError) for end in ends) == 35


async def test_a_limit_that_was_reached_stays_reached() -> None:
    with FakeModel(lambda _: "yes", seconds=0.1) as fake:
        async with _gateway(fake, calls=1) as gateway:
            slow = asyncio.create_task(_say(gateway))
            while not fake.count:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.01)
            with pytest.raises(RefusedError, match="403"):
                await _say(gateway)
            assert await slow == "yes"

    assert gateway.stop == "max_steps"


async def test_dollars_are_limited_only_where_a_price_is_known() -> None:
    with FakeModel(["yes"]) as fake:
        async with _gateway(fake, cost_usd=1.0) as gateway:
            with pytest.raises(InputError, match=r"price of .* is not known") as caught:
                gateway.check()
    assert "prices_file" in str(caught.value)
    assert "prices_file" in {field.name for field in fields(ModelSettings)}


@each("name", ["calls", "tokens", "cost_usd", "seconds"])
def test_a_limit_is_more_than_nothing(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be more than 0"):
        Allowance(**{name: 0})


# --- Attacks -------------------------------------------------------------------------------------


async def test_attack_the_token_of_another_cell_opens_nothing() -> None:
    with FakeModel(["yes"]) as fake:
        async with _gateway(fake) as own, _gateway(fake) as other:
            with pytest.raises(RefusedError, match="401"):
                await _say(other, token=own.token)
            flags = other.recorded().flags

        assert fake.count == 0
        assert flags == ("1 requests without its token",)


async def test_attack_a_key_of_the_agents_own_never_leaves() -> None:
    with FakeModel(["yes"]) as fake:
        async with _gateway(fake) as gateway, aiohttp.ClientSession() as session:
            session.headers.update({"Cookie": "a=b", "X-Secret": "tell me"})
            assert await _send(gateway, session) == 200

        sent = {name.lower() for name in fake.requests[0].headers}

    assert not sent & {"x-secret", "cookie", "x-api-key", "authorization"}


@each(
    "body",
    [
        b"not JSON",
        b'{"model": "m"}',
        b'{"model": "m", "messages": ' + b"[" * 9000 + b"]" * 9000 + b"}",
        # As deep as JSON may be, and deeper than the record may: no error, which is not graded.
        b'{"model": "m", "messages": [{"role": "user", "content": [{"type": "x", "y": '
        + b'{"z":' * 900
        + b"1"
        + b"}" * 900
        + b"}]}]}",
        # Servers differ in which one they keep to.
        b'{"model": "m", "messages": [{"role": "user", "content": "a"}], '  # noqa: ISC004
        b'"max_completion_tokens": 1, "max_tokens": 100000}',
    ],
)
async def test_attack_a_malformed_request_is_refused_and_kept(body: bytes) -> None:
    with FakeModel(["yes"]) as fake:
        async with _gateway(fake) as gateway, aiohttp.ClientSession() as session:
            url = f"{gateway.openai_url}/chat/completions"
            headers = {"Authorization": f"Bearer {gateway.token}"}
            async with session.post(url, data=body, headers=headers) as response:
                told = await response.json()
            assert (response.status, bool(told["error"]["message"])) == (400, True)

        assert fake.count == 0
        assert gateway.failure is None


async def _send(gateway: Gateway, session: aiohttp.ClientSession, **more: Any) -> int:
    body = {"model": "m", "messages": [{"role": "user", "content": "word " * 8}], **more}
    headers = {"x-api-key": gateway.token}
    url = f"{gateway.openai_url}/chat/completions"
    async with session.post(url, json=body, headers=headers) as response:
        return response.status


async def test_a_limit_of_tokens_asks_for_no_more_than_models_write() -> None:
    with FakeModel(lambda _: "yes") as fake:
        async with _gateway(fake, tokens=1_000_000) as gateway:
            await asyncio.gather(*[_say(gateway, f"number {number}") for number in range(4)])
        assert all(one.max_tokens is None for one in fake.conversations)

        async with _gateway(fake, tokens=1_000) as gateway:
            await _say(gateway)
        assert fake.conversations[-1].max_tokens is not None


async def test_attack_a_request_whose_bytes_could_be_sent_on_is_shortened_as_any() -> None:
    with FakeModel(lambda _: "yes") as fake:
        async with _gateway(fake, tokens=1_000) as gateway, aiohttp.ClientSession() as session:
            own = fake.model.rpartition("#")[2]
            assert await _send(gateway, session, model=own, max_tokens=50_000) == 200

        assert (fake.conversations[-1].max_tokens or 50_000) <= 1_000


async def test_attack_tokens_that_nobody_tells_are_limited_by_their_length() -> None:
    said = Turn.of("assistant", "word " * 40)
    with FakeModel(lambda _: AssistantTurn(turn=said, usage=ReplyUsage(cached_tokens=0))) as fake:
        async with _gateway(fake, tokens=200) as gateway:
            with pytest.raises(RefusedError, match=r"403.*the limit of 200 tokens"):
                await _say_for_ever(gateway)

        assert fake.count < 20
        assert gateway.spent.unknown == fake.count


async def test_attack_a_broken_header_is_no_news_for_a_terminal(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with FakeModel(["yes"]) as fake:
        async with _gateway(fake) as gateway:
            answer = await _raw(gateway, b"GET / HTTP/1.1\r\nA: \x01\x1b[2J\r\n\r\n")

    assert answer.startswith(b"HTTP/1.0 400")
    assert not caplog.records


async def test_attack_ask_and_hang_up_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.gateway.door._MOST_ASKING", 3)
    with FakeModel(lambda _: "yes", faults=["hang"] * 3) as fake:
        async with _gateway(fake) as gateway, aiohttp.ClientSession() as session:
            for number in range(1, 4):
                asking = asyncio.create_task(_send(gateway, session))
                while gateway.served < number:  # noqa: ASYNC110 - nobody tells of it
                    await asyncio.sleep(0.01)
                asking.cancel()
            assert await _send(gateway, session) == 429

            monkeypatch.setattr("assay.gateway.door._MOST_HELD_BYTES", 200)
            assert await _send(gateway, session) == 503
        assert gateway.spent.tokens > 0  # what was read is paid


async def test_attack_a_record_without_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("assay.gateway.record._MOST_BYTES", 20_000)
    journal = tmp_path / "wire.jsonl"
    with FakeModel(lambda _: "yes") as fake:
        allowance = Allowance(calls=1)
        gateway = Gateway(
            fake.model, allowance=allowance, journal=journal, client=ModelClient(_QUICK)
        )
        async with gateway, aiohttp.ClientSession() as session:
            for number in range(12):
                said = [{"role": "user", "content": f"{number}" * 2_000}]
                await _send(gateway, session, messages=said)
                await _send(gateway, session, messages=7)

        assert journal.stat().st_size < 30_000
        assert "the record of this work is full" in gateway.recorded().flags


async def test_attack_a_body_that_is_packed_or_without_end_is_refused_unread() -> None:
    with FakeModel(["yes"]) as fake:
        async with _gateway(fake) as gateway:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nx-api-key: {gateway.token}"
            packed = f"{head}\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n".encode()
            endless = f"{head}\r\nContent-Length: 99999999999\r\n\r\n".encode()
            assert (await _raw(gateway, packed + b"\x1f\x8b")).startswith(b"HTTP/1.1 415")
            assert (await _raw(gateway, endless)).startswith(b"HTTP/1.1 413")


@each("path", ["/v1/chat/completions", "/v1/messages/count_tokens"])
async def test_attack_a_body_of_many_values_stops_no_other_cell(path: str) -> None:
    said: list[Any] = [{"role": "user", "content": "hi"}]
    body: dict[str, Any] = {"model": "m", "messages": said, "more": [{}] * 300_000}
    with FakeModel(["yes"]) as fake:
        async with _gateway(fake) as gateway, aiohttp.ClientSession() as session:
            url = gateway.anthropic_url + path
            headers = {"x-api-key": gateway.token}
            many = io.BytesIO(json.dumps(body).encode())
            async with session.post(url, data=many, headers=headers) as response:
                assert (response.status, (await response.json())["error"]["message"]) == (
                    413,
                    "the body: it holds more than 250,000 values",
                )
        assert fake.count == 0
        assert gateway.failure is None


_MUCH = "x" * 100_000


@each(
    "hidden",
    [
        {"messages": [{"role": "user", "content": [
            {"type": "file", "file": {"filename": "a.pdf", "file_data": _MUCH}}]}]},
        {"unheard_of": [[_MUCH]]},
        {_MUCH: None},
    ],
)  # fmt: skip
async def test_attack_what_a_gateway_does_not_know_counts_by_its_length(
    hidden: dict[str, Any], tmp_path: Path
) -> None:
    are_refused = threading.Event()

    async def answer(_: object) -> str:
        await asyncio.to_thread(are_refused.wait, 30)  # an answer makes room for the next request
        return "yes"

    with FakeModel(answer) as fake:
        settings = ModelSettings(max_attempts=1, prices_file=priced(tmp_path, fake.model, 10))
        for allowance in (Allowance(tokens=62_500), Allowance(cost_usd=0.75)):
            client, before = ModelClient(settings), fake.count
            gateway = Gateway(fake.model, allowance=allowance, client=client)
            are_refused.clear()
            async with gateway, aiohttp.ClientSession() as session:
                sent = [_send(gateway, session, max_tokens=16, **hidden) for _ in range(12)]
                codes: list[int] = []
                for done in asyncio.as_completed(sent):
                    codes.append(await done)
                    if len(codes) == 9:
                        are_refused.set()
            assert fake.count - before == codes.count(200)
            assert 0 < codes.count(200) <= 3


async def test_more_connections_than_a_gateway_holds_wait_for_their_turn() -> None:
    """More than 32 at once were hung up on, and a team of agents lost work that it had paid."""
    with FakeModel(lambda _: "yes", seconds=0.02) as fake:
        async with _gateway(fake) as gateway:
            answers = [await _kept_open(gateway) for _ in range(34)]
            answers += await asyncio.gather(*(_kept_open(gateway) for _ in range(70)))
            await _let_go(writer for _, writer in answers)

    assert {status for status, _ in answers} == {b"HTTP/1.1 200 OK"}


async def _let_go(writers: Iterable[asyncio.StreamWriter]) -> None:
    for writer in writers:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def _kept_open(gateway: Gateway) -> tuple[bytes, asyncio.StreamWriter]:
    """How a request is answered on a connection that is let go of by nobody."""
    port = int(gateway.anthropic_url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = b'{"model": "any", "messages": [{"role": "user", "content": "hello"}]}'
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nx-api-key: {gateway.token}\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0], writer


async def test_attack_idle_connections_lock_nobody_out_who_was_answered() -> None:
    """Kept alive after their answers, or never used: the ones make room, the others are the
    agent's own loss until it lets go of one."""
    with FakeModel(lambda _: "yes") as fake:
        async with _gateway(fake) as gateway, aiohttp.ClientSession() as session:
            assert await _send(gateway, session) == 200  # and the connection is kept
            port = int(gateway.anthropic_url.rpartition(":")[2])
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(40)]
            said = asyncio.create_task(_send(gateway, session))
            await asyncio.wait([said], timeout=0.1)
            await _let_go(writer for _, writer in held[:10])
            assert await said == 200
            await _let_go(writer for _, writer in held[10:])


@each("path", ["/v1/files", "/metrics", "/v1/../etc/passwd", "/"])
async def test_attack_there_is_nothing_else_to_be_had(path: str) -> None:
    with FakeModel(["yes"]) as fake:
        async with _gateway(fake) as gateway:
            for method in ("GET", "POST", "PUT", "CONNECT"):
                head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nx-api-key: {gateway.token}\r\n\r\n"
                answer = await _raw(gateway, head.encode())
                assert answer.split(b" ")[1] in (b"404", b"400", b"405")


# --- What is whose fault -------------------------------------------------------------------------


@each(
    "fault, status, is_ours",
    [
        ("500", 503, True),
        ("429", 429, True),
        ("quota", 503, True),
        ("reset", 503, True),
        ("truncated", 503, False),
        ("overflow", 400, False),
        ("400", 400, False),
    ],
)
async def test_a_failure_is_told_apart(fault: str, status: int, is_ours: bool) -> None:  # noqa: FBT001
    with FakeModel(lambda _: "yes", faults=[Fault(fault, at=1)]) as fake:
        async with _gateway(fake) as gateway:
            assert await _say(gateway) == "yes"
            with pytest.raises(RefusedError) as caught:
                await _say(gateway)
            assert caught.value.status == status
            assert fake.root_url not in str(caught.value)
            assert (gateway.failure is not None) == is_ours

            assert await _say(gateway) == "yes"
            assert gateway.failure is None  # it went on


@each("fault", ["400", "html", "truncated"])
async def test_a_model_that_never_answers_is_nobodys_zero(fault: str) -> None:
    """As of a wrong address or name: every cell of such a run was graded, and got a 0."""
    with FakeModel(lambda _: "yes", faults=[Fault(fault, times=2)]) as fake:
        async with _gateway(fake) as gateway:
            for _ in range(2):
                with pytest.raises(RefusedError):
                    await _say(gateway)
                assert isinstance(gateway.failure, ModelError)
            assert await _say(gateway) == "yes"
            assert gateway.failure is None  # it went on


_CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


@each(
    "first, again",
    [
        (b"HTTP/1.1 200 OK\r\n", b"X: " + b"a" * 8_000 + b"\r\n"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"a" * 8_000),
        (_CHUNKED, b"10000\r\n" + b" " * 0x10000 + b"\r\n"),
    ],
)
async def test_attack_a_model_server_that_says_something_without_end(
    first: bytes, again: bytes
) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(first)
        with suppress(ConnectionError):
            while True:
                writer.write(again)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(say, "127.0.0.1", 0)
    model = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1#any"
    gateway = Gateway(model, client=ModelClient(_QUICK))
    async with server, gateway, aiohttp.ClientSession() as session:
        assert await _send(gateway, session) == 503
    assert isinstance(gateway.failure, ModelError)


def _breaks(asked: Conversation, how: str = "500") -> str | Fault:
    return Fault(how) if "break" in asked.turns[-1].text else "yes"


@each("breaker_after", [20, 1])
async def test_attack_a_request_that_breaks_its_server_is_the_agents_own(
    breaker_after: int,
) -> None:
    settings = ModelSettings(max_attempts=1, breaker_after=breaker_after)
    time = FakeTime()
    with FakeModel(_breaks) as fake:
        client = ModelClient(settings, timing=time.timing)
        async with Gateway(fake.model, client=client) as gateway:
            assert await _say(gateway) == "yes"
            with pytest.raises(RefusedError, match="503"):
                await _say(gateway, "break")
            assert gateway.failure is not None
            await gateway.find_out()

    assert gateway.failure is None
    assert gateway.recorded().flags == ("its last request makes the model's server fail",)


async def test_attack_a_request_that_is_made_to_last_is_the_agents_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pass_on = ModelClient.pass_on

    async def impatient(self: ModelClient, model: str, request: AgentRequest, **more: Any) -> Any:
        more["seconds"] = 0.05 if "break" in request.asked.turns[-1].text else 60.0
        return await pass_on(self, model, request, **more)

    monkeypatch.setattr(ModelClient, "pass_on", impatient)
    with FakeModel(lambda asked: _breaks(asked, "hang")) as fake:
        async with _gateway(fake) as gateway:
            with pytest.raises(RefusedError, match=r"504.*timeout"):
                await _say(gateway, "break")
            await gateway.find_out()

    assert gateway.failure is None
    assert gateway.recorded().flags == ("its last request makes the model's server fail",)


@each("fails", [1, 2, 9])
async def test_a_server_that_fails_with_others_too_is_nobodys_zero(fails: int) -> None:
    with FakeModel(lambda _: "yes", faults=[Fault("500", times=fails)]) as fake:
        async with _gateway(fake) as gateway:
            with pytest.raises(RefusedError, match="503"):
                await _say(gateway)
            await gateway.find_out()

    assert isinstance(gateway.failure, ModelError)
    assert gateway.recorded().flags == ()


@each(("hangs", "goes_on"), [(1, False), (9, False), (9, True)])
async def test_a_server_that_hangs_until_the_agent_is_late_is_nobodys_zero(
    monkeypatch: pytest.MonkeyPatch, hangs: int, *, goes_on: bool
) -> None:
    """Unless it answers others, and the agent's request is one that takes too long."""
    monkeypatch.setattr("assay.gateway.gateway._PLAIN_SECONDS", 0.2 if hangs > 1 else 60.0)
    with FakeModel(lambda _: "yes", faults=[Fault("hang", times=hangs)]) as fake:
        async with _gateway(fake) as gateway:
            asking = asyncio.create_task(_say(gateway))
            while not fake.count:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.01)
            if not goes_on:
                asking.cancel()
            await gateway.find_out()
            with pytest.raises((asyncio.CancelledError, aiohttp.ClientError)):
                await asking
    assert (fake.count, gateway.failure is None) == (2, hangs == 1)


async def test_an_agent_that_was_late_for_its_model_has_failed_on_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, timeout, limits = asyncio.get_running_loop(), asyncio.timeout, list[asyncio.Timeout]()

    def kept(seconds: float | None) -> asyncio.Timeout:
        limits.append(timeout(seconds))
        return limits[-1]

    def hang(_: object) -> Fault:
        loop.call_soon_threadsafe(limits[0].reschedule, 0.0)  # the time of the agent is up
        return Fault("hang")

    monkeypatch.setattr(asyncio, "timeout", kept)
    monkeypatch.setattr("assay.gateway.gateway._PLAIN_SECONDS", 0.2)
    refused = pytest.raises(AgentError, match="could not be asked: it does not answer any more")
    with FakeModel(hang) as fake, refused:
        await ModelAgent(model=fake.model, seconds=600.0)(Run(prompt="Say yes."))


@each("kind", ["503", "401", "429"])
async def test_only_what_a_request_can_break_is_looked_into(kind: str) -> None:
    with FakeModel(lambda _: "yes", faults=[kind]) as fake:
        async with _gateway(fake) as gateway:
            with pytest.raises(RefusedError):
                await _say(gateway)
            await gateway.find_out()

        assert (fake.count, gateway.failure is None) == (1, False)


@each("how", ["500", "400"])
async def test_attack_an_error_is_not_to_be_had_for_a_bad_grade(how: str) -> None:
    run = Run()
    with FakeModel(lambda asked: _breaks(asked, how)) as fake:
        async with witnessed(run, _gateway(fake)):
            assert isinstance(run.gateway, Gateway)
            with pytest.raises(RefusedError):
                await _say(run.gateway, "break")

    assert "its last request makes the model's server fail" in str(run.trace.extra)


async def test_what_an_agent_did_not_wait_for_is_kept() -> None:
    loop, came, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def answer(_: object) -> str:
        loop.call_soon_threadsafe(came.set)
        assert go_on.wait(60)
        return "yes"

    with FakeModel(answer) as fake:
        async with _gateway(fake) as gateway:
            asking = asyncio.create_task(_say(gateway))
            await came.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            go_on.set()
            while len(gateway.recorded().trace.steps) < 2:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.01)
            last = gateway.recorded().trace.steps[-1]

    assert isinstance(last, AgentStep)
    assert last.content == "yes"


async def test_what_is_under_way_when_the_agent_ends_is_ended() -> None:
    with FakeModel(["yes"], faults=["hang"]) as fake:
        async with _gateway(fake) as gateway:
            asking = asyncio.create_task(_say(gateway))
            while not fake.count:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.01)
            asking.cancel()
        last = gateway.recorded().trace.steps[-1]

    assert last.error == "the agent ended before the reply came"


async def test_a_journal_that_cannot_be_written_is_our_failure(tmp_path: Path) -> None:
    with FakeModel(["yes"]) as fake:
        gateway = Gateway(fake.model, journal=tmp_path / "none" / "wire.jsonl")
        async with gateway:
            with pytest.raises(RefusedError, match=r"500.*the gateway failed"):
                await _say(gateway)

        assert "cannot record" in str(gateway.failure)
        assert fake.count == 0
