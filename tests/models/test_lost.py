"""Requests that are lost on the way, many at once, loops, threads, forks: none hangs or leaks."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import time as clock
from pathlib import Path

import pytest

from assay.errors import ModelError
from assay.models import Message, ModelClient, ModelEntry, ModelSettings, Request
from assay.models import transport as transport_module
from assay.models.cache import ReplyCache
from assay.models.prices import Prices
from assay.scoring.json_safe import Json
from assay.testing import FakeJudge, Fault
from tests.children import alone
from tests.each import each
from tests.model_servers import MET, FakeTime, client, failing, met, priced, question


def asked_for(model: str, *, timeout: float = 20.0, text: str = "Is it so?") -> Request:
    messages = (Message("user", text),)
    return Request(model=model, messages=messages, max_tokens=100, timeout_seconds=timeout)


# --- Money ---------------------------------------------------------------------------------------


@each("fault, tries", [("hang", 1), ("slow", 1), ("reset", 3), ("truncated", 3)])
async def test_attack_what_was_sent_and_lost_is_not_free(
    tmp_path: Path, fault: str, tries: int
) -> None:
    with FakeJudge([MET], faults=[Fault(fault, times=9, seconds=30)]) as judge:
        prices = priced(tmp_path, judge.model, 1_000)
        timing = None if tries == 1 else FakeTime()
        asked = client(timing, max_cost_usd=1_000.0, prices_file=prices, max_attempts=3)
        request = asked_for(judge.model, timeout=0.3 if tries == 1 else 20.0)
        with pytest.raises(ModelError):
            await asked.complete(request)
        each = Prices.load(prices).estimate(judge.model, request)
        assert each is not None
        summary = asked.ledger.summary()
        assert judge.count == tries
        assert summary.spent_usd == pytest.approx(tries * each)
        assert summary.reserved_usd == 0.0
        lost = summary.total(kind="lost")
        assert (lost.count, lost.unknown, lost.cost_usd) == (tries, tries, 0.0)
        assert f"{tries} never answered" in str(summary)


async def test_attack_lost_tries_end_with_the_budget(tmp_path: Path) -> None:
    with FakeJudge([MET], faults=[Fault("reset", times=9)]) as judge:
        prices = priced(tmp_path, judge.model, 1_000)
        request = asked_for(judge.model)
        each = Prices.load(prices).estimate(judge.model, request)
        assert each is not None
        asked = client(FakeTime(), max_cost_usd=2.5 * each, prices_file=prices)
        with pytest.raises(ModelError, match="budget is used up") as failure:
            await asked.complete(request)
        assert (failure.value.kind, judge.count) == ("budget", 2)


async def test_cancelled_requests_count_where_they_were_sent_and_leave_nothing(
    tmp_path: Path,
) -> None:
    async def hang(asked: object) -> Json:
        nonlocal came
        came += 1
        if came == 4:
            loop.call_soon_threadsafe(all_came.set)
        await asyncio.Event().wait()
        return None

    came, all_came, loop = 0, asyncio.Event(), asyncio.get_running_loop()
    with FakeJudge(hang) as judge:
        prices, request = priced(tmp_path, judge.model, 1_000), asked_for(judge.model)
        asked = client(first_concurrency=4, max_cost_usd=1_000.0, prices_file=prices)
        tasks = [asyncio.create_task(asked.complete(request)) for _ in range(10)]
        await all_came.wait()
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended)
        summary, each = asked.ledger.summary(), Prices.load(prices).estimate(judge.model, request)
        assert each is not None
        assert (summary.spent_usd, summary.reserved_usd) == (pytest.approx(4 * each), 0.0)
        assert summary.total(kind="lost").count == 4
        assert asked.route(judge.model).lane.limiter().busy == 0
    assert len(asyncio.all_tasks()) == 1


@each("is_sent", [False, True])
async def test_what_was_not_sent_or_is_refused_is_not_paid(
    tmp_path: Path, *, is_sent: bool
) -> None:
    with FakeJudge([MET], faults=[Fault("500", times=9)]) as judge:
        model = judge.model
        prices = priced(tmp_path, model, 1_000)
        asked = client(FakeTime(), max_cost_usd=1_000.0, prices_file=prices, max_attempts=3)
        if is_sent:
            with pytest.raises(ModelError):
                await asked.complete(asked_for(model))
    if not is_sent:  # nobody listens there any more
        with pytest.raises(ModelError, match=r"cannot be reached.*refused") as failure:
            await asked.complete(asked_for(model))
        assert failure.value.kind == "unreachable"
    summary = asked.ledger.summary()
    assert (summary.spent_usd, summary.reserved_usd) == (0.0, 0.0)
    assert summary.total(kind="lost").count == 0
    assert summary.total(kind="retry").count == 3


# --- The breaker ---------------------------------------------------------------------------------


async def opened(asked: ModelClient, model: str, time: FakeTime) -> None:
    """Have the breaker open, and time pass until it is half open."""
    for _ in range(2):
        assert (await failing(asked, question(model))).kind == "auth"
    assert "in a row" in str(await failing(asked, question(model)))
    time.at += 31.0


async def test_attack_a_probe_that_is_told_to_wait_does_not_lock_the_breaker() -> None:
    time = FakeTime()
    with FakeJudge(met, faults=[Fault("401", times=2)]) as judge:
        asked = client(time, breaker_after=2)
        await opened(asked, judge.model, time)
        asked.route(judge.model).gate.cool(400.0)  # longer than it has patience
        assert (await failing(asked, question(judge.model))).kind == "rate_limited"
        time.at += 500.0
        assert (await asked.ask(question(judge.model))).data == MET


async def test_attack_a_probe_that_is_cancelled_does_not_lock_the_breaker() -> None:
    time = FakeTime()
    with FakeJudge(met, faults=[Fault("401", times=2)]) as judge:
        asked = client(time, breaker_after=2, requests_per_minute=20.0)
        await opened(asked, judge.model, time)
        bucket = asked.route(judge.model).lane.requests
        assert bucket is not None
        bucket.take(60.0)
        task = asyncio.create_task(asked.ask(question(judge.model)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        time.at += 600.0
        assert (await asked.ask(question(judge.model))).data == MET


async def test_what_an_open_breaker_refuses_does_not_keep_it_open() -> None:
    time = FakeTime()
    with FakeJudge(met, faults=[Fault("401", times=2)]) as judge:
        asked = client(time, breaker_after=2)
        await opened(asked, judge.model, time)
        time.at -= 2.0
        assert "in a row" in str(await failing(asked, question(judge.model)))
        time.at += 2.0
        assert (await asked.ask(question(judge.model))).data == MET


# --- Limits --------------------------------------------------------------------------------------


def test_each_entry_has_its_own_limits_and_all_share_the_breaker() -> None:
    base = "http://127.0.0.1:9/v1"
    settings = ModelSettings(
        endpoints={
            "free": ModelEntry(base_url=base, max_concurrency=64),
            "slow": ModelEntry(base_url=base, max_concurrency=1, requests_per_minute=6),
            "plain": ModelEntry(base_url=base),
        }
    )
    asked, other = ModelClient(settings), ModelClient(ModelSettings(requests_per_minute=60))
    free, slow, plain = (asked.route(name) for name in ("free", "slow", "plain"))
    later = other.route(f"{base}#any")
    assert free.gate is slow.gate is plain.gate is later.gate
    assert len({id(route.lane) for route in (free, slow, plain, later)}) == 4
    rates = [
        route.lane.requests and route.lane.requests.per_minute for route in (free, slow, later)
    ]
    assert rates == [None, 6, 60]

    async def most() -> list[int]:
        return [route.lane.limiter().most for route in (free, slow, plain)]

    assert asyncio.run(most()) == [64, 1, 256]
    again = ModelClient(settings)
    assert again.route("slow").lane is slow.lane


async def test_requests_in_flight_are_limited_and_waiting_for_a_turn_costs_no_deadline() -> None:
    now = most = 0

    async def answer(asked: object) -> Json:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.08)
        now -= 1
        return MET

    with FakeJudge(answer) as judge:
        asked = client(first_concurrency=4, max_concurrency=4)
        request = question(judge.model, timeout_seconds=1.0)
        replies = await asyncio.gather(*(asked.ask(request) for _ in range(60)))
        assert [reply.data for reply in replies] == [MET] * 60
        assert most <= 4


# --- Equal requests ------------------------------------------------------------------------------


def cached(tmp_path: Path) -> ModelClient:
    return client(cache="readwrite", cache_file=str(tmp_path / "replies.sqlite"))


async def test_attack_equal_requests_at_a_dead_endpoint_fail_together(tmp_path: Path) -> None:
    with FakeJudge(met, faults=[Fault("hang", times=99)]) as judge:
        asked = cached(tmp_path)
        request = asked_for(judge.model, timeout=0.5)
        begun = clock.monotonic()
        ended = await asyncio.gather(
            *(asked.complete(request) for _ in range(12)), return_exceptions=True
        )
        assert [end.kind for end in ended if isinstance(end, ModelError)] == ["timeout"] * 12
        assert judge.count == 1
        assert clock.monotonic() - begun < 5.5  # one after the other they would take 6


async def test_who_has_more_patience_asks_for_itself(tmp_path: Path) -> None:
    with FakeJudge(["late"], faults=[Fault("hang")]) as judge:
        asked = cached(tmp_path)
        first, other = await asyncio.gather(
            asked.complete(asked_for(judge.model, timeout=0.5)),
            asked.complete(asked_for(judge.model, timeout=20.0)),
            return_exceptions=True,
        )
        assert isinstance(first, ModelError)
        assert not isinstance(other, BaseException)
        assert other.text == "late"


async def test_nobody_waits_for_others_without_an_end(tmp_path: Path) -> None:
    cache = ReplyCache(str(tmp_path / "replies.sqlite"), "readwrite")
    entered = 0

    async def fail() -> None:
        nonlocal entered
        async with cache.sharing("d", 0.05):
            entered += 1
            await asyncio.sleep(0.1)  # longer than the others wait
            raise ModelError("no verdict", kind="unreadable")

    tasks = [asyncio.create_task(fail()) for _ in range(4)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.sleep(0)
    assert entered == 4  # the first one's reply was no good, and all have waited for it
    await asyncio.gather(*tasks, return_exceptions=True)


# --- Loops, threads and forks --------------------------------------------------------------------


def run(
    code: str, *arguments: str, warnings: str = "ignore", **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", warnings, "-c", code, *arguments],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def _eight(asked: ModelClient, model: str) -> None:
    replies = await asyncio.gather(*(asked.ask(question(model)) for _ in range(8)))
    assert all(reply.data == MET for reply in replies)


def test_loops_come_and_go_without_leaks() -> None:
    with FakeJudge(met) as judge:
        asked = client()
        for _ in range(2):
            asyncio.run(_eight(asked, judge.model))
        gc.collect()
        assert not [loop for loop in transport_module._SESSIONS.held if loop.is_closed()]


PROGRAM = """
import asyncio
from assay.models import Message, ModelClient, Request, current_client
async def main():
    reply = await current_client().complete(
        Request(model="gpt-5", messages=(Message("user", "hi"),)))
    print(reply.text)
asyncio.run(main())
asyncio.run(main())
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
loop.run_until_complete(loop.shutdown_asyncgens())
loop.close()
"""


def test_a_program_that_closes_nothing_ends_without_a_warning() -> None:
    with FakeJudge(["a", "b", "c"]) as judge:
        ended = run(PROGRAM, warnings="error", **judge.environment())
    assert (ended.stdout, ended.stderr) == ("a\nb\nc\n", "")


@each(
    "module, absent",
    [
        ("settings", ["asyncio"]),
        ("cache", ["sqlite3"]),
        ("client", ["aiohttp", "yaml", "jsonschema_rs", "yarl", "pydantic", "sqlite3"]),
    ],
)
def test_nothing_is_loaded_before_it_is_needed(module: str, absent: list[str]) -> None:
    code = f"import sys, assay.models.{module}; print(sorted({set(absent)} & sys.modules.keys()))"
    assert alone(code) == "[]\n"


LOOPS = """
import asyncio, sys, threading
from assay.models import Message, ModelClient, ModelSettings, Request
client = ModelClient(ModelSettings())
request = Request(model=sys.argv[1], messages=(Message("user", "hi"),))
failures = set()
def work(number):
    for _ in range(12):
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(client.complete(request))
            if number % 2:
                loop.run_until_complete(loop.shutdown_asyncgens())
        except BaseException as error:
            failures.add(repr(error))
        loop.close()
threads = [threading.Thread(target=work, args=(number,)) for number in range(24)]
sys.setswitchinterval(1e-6)
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sorted(failures))
"""


def test_attack_loops_that_begin_and_end_in_many_threads_do_not_collide() -> None:
    with FakeJudge(lambda asked: "fine") as judge:
        ended = run(LOOPS, judge.model)
    assert (ended.stdout, ended.stderr) == ("[]\n", "")


FORKED = """
import asyncio, os, sys, threading, time
import aiohttp, assay.models.transport  # a fork inside an import hangs whatever we do
from assay.models import Message, ModelClient, ModelSettings, Request
client = ModelClient(ModelSettings(cache="readwrite", cache_file=sys.argv[2]))
request = Request(model=sys.argv[1], messages=(Message("user", "hi"),), timeout_seconds=20.0)
ended = []
thread = threading.Thread(target=lambda: ended.append(asyncio.run(client.complete(request)).text))
thread.start()
loops = client._cache._loops
while not any(loop.asking for loop in list(loops._known.values())):
    time.sleep(0.01)
time.sleep(0.2)
for lock in (client.ledger.lock, loops.lock, client.route(sys.argv[1]).lane.lock):
    lock.acquire()
child = os.fork()
if child == 0:
    text = asyncio.run(asyncio.wait_for(client.complete(request), 15)).text
    os.write(1, f"child {text}\\n".encode())
    sys.exit(0)
for lock in (client.ledger.lock, loops.lock, client.route(sys.argv[1]).lane.lock):
    lock.release()
assert os.waitpid(child, 0)[1] == 0
thread.join()
print("parent", *ended)
"""


def test_attack_a_fork_while_a_request_is_under_way_does_not_hang(tmp_path: Path) -> None:
    with FakeJudge(lambda asked: "fine", faults=[Fault("slow", seconds=1.5)]) as judge:
        ended = run(FORKED, judge.model, str(tmp_path / "replies.sqlite"))
    assert (ended.stdout, ended.stderr) == ("child fine\nparent fine\n", "")
