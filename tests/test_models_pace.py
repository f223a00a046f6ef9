"""How fast an endpoint is asked: the limit that adapts, pauses for all, the breaker, rates."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from assay.errors import ModelError
from assay.models.pace import Bucket, Gate, Limiter, Timing, gate_of
from tests.model_servers import FakeTime


def gate(time: FakeTime, **values: float | None) -> Gate:
    return Gate(
        "http://h",
        breaker_after=3,
        timing=time.timing,
        requests_per_minute=values.get("requests_per_minute"),
        tokens_per_minute=values.get("tokens_per_minute"),
    )


DOWN = ModelError("http://h cannot be reached", kind="unreachable")


async def test_no_more_are_in_flight_than_the_limit_and_turns_are_kept() -> None:
    limiter, order, most = Limiter(2, 2), list[int](), 0

    async def work(number: int) -> None:
        nonlocal most
        await limiter.acquire()
        most = max(most, limiter.busy)
        order.append(number)
        await asyncio.sleep(0)
        limiter.release()

    await asyncio.gather(*(work(number) for number in range(20)))
    assert (most, limiter.busy, order) == (2, 0, list(range(20)))


async def test_who_comes_late_does_not_overtake_who_waits() -> None:
    limiter = Limiter(1, 1)
    await limiter.acquire()
    waiting = asyncio.create_task(limiter.acquire())
    await asyncio.sleep(0)
    limiter.release()
    assert not limiter.try_acquire()
    await waiting


async def test_cancelled_requests_give_their_places_back() -> None:
    limiter = Limiter(1, 1)
    await limiter.acquire()
    waiting = [asyncio.create_task(limiter.acquire()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    limiter.release()  # the place goes to the second
    waiting[1].cancel()  # which is cancelled in the same moment
    await asyncio.gather(*waiting[:2], return_exceptions=True)
    await waiting[2]
    limiter.release()
    assert limiter.busy == 0
    assert limiter.try_acquire()


def test_the_limit_grows_by_one_for_a_full_clean_window() -> None:
    limiter = Limiter(4, 6)
    limiter.busy = 4
    for expected in (4, 4, 4, 5, 5):
        limiter.succeeded()
        assert limiter.limit == expected
    limiter.busy = 6
    for _ in range(100):
        limiter.succeeded()
    assert limiter.limit == 6


def test_a_limit_that_is_never_reached_does_not_grow() -> None:
    limiter = Limiter(4, 8)
    limiter.busy = 1
    for _ in range(100):
        limiter.succeeded()
    assert limiter.limit == 4


def test_a_burst_of_refusals_halves_the_limit_once() -> None:
    limiter = Limiter(16, 256)
    sent_at = limiter.epoch
    for _ in range(16):
        limiter.crowded(sent_at)
    assert limiter.limit == 8
    for _ in range(10):
        limiter.crowded(limiter.epoch)
    assert limiter.limit == 1


async def test_one_refusal_makes_everybody_wait() -> None:
    time = FakeTime()
    shared = gate(time)
    assert shared.is_calm
    shared.cool(10.0)
    assert not shared.is_calm
    waited = await asyncio.gather(*(shared.wait(1, 60.0) for _ in range(3)))
    assert all(seconds >= 0.0 for seconds in waited)
    assert time.slept[0] == pytest.approx(11.0)  # and up to a second more, by chance
    assert shared.is_calm
    assert await shared.wait(1, 60.0) == 0.0


async def test_nobody_waits_for_longer_than_it_has_time() -> None:
    time = FakeTime()
    shared = gate(time)
    shared.cool(100.0)
    with pytest.raises(ModelError, match="100 seconds") as failure:
        await shared.wait(1, 60.0)
    assert failure.value.kind == "rate_limited"


async def test_a_server_cannot_shut_an_endpoint_for_ever() -> None:
    time = FakeTime()
    shared = gate(time)
    shared.cool(1e300)
    assert shared.cooling() <= 600.0


async def test_the_breaker_opens_half_opens_and_closes() -> None:
    time = FakeTime()
    shared = gate(time)
    for _ in range(2):
        shared.failed(DOWN)
    shared.succeeded()  # not in a row
    for _ in range(3):
        assert shared.is_calm
        shared.failed(DOWN)
    with pytest.raises(ModelError, match="failed 3 times in a row") as failure:
        await shared.wait(1, 60.0)
    assert failure.value.kind == "unreachable"
    time.at += 31.0
    await shared.wait(1, 60.0)  # one finds out
    with pytest.raises(ModelError):
        await shared.wait(1, 60.0)  # for the others
    shared.failed(DOWN)
    with pytest.raises(ModelError):
        await shared.wait(1, 60.0)
    time.at += 31.0
    await shared.wait(1, 60.0)
    shared.given_up()  # it was cancelled: the next one finds out
    await shared.wait(1, 60.0)
    shared.succeeded()
    assert shared.is_calm


def test_pauses_and_the_breaker_are_those_of_all_threads() -> None:
    time = FakeTime()
    shared = gate(time)
    threads = [threading.Thread(target=shared.failed, args=(DOWN,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def ask() -> None:
        await shared.wait(1, 60.0)

    with pytest.raises(ModelError, match="in a row"):
        asyncio.run(ask())


def test_each_loop_has_its_own_places() -> None:
    shared = gate(FakeTime())

    async def limiter() -> Limiter:
        assert shared.limiter(4, 8) is shared.limiter(4, 8)
        return shared.limiter(4, 8)

    assert asyncio.run(limiter()) is not asyncio.run(limiter())


def test_a_rate_is_kept_and_what_is_given_back_counts() -> None:
    time = FakeTime()
    bucket = Bucket(60.0, lambda: time.at)
    assert [bucket.take(1.0) for _ in range(8)] == [0.0] * 6 + [1.0, 2.0]
    time.at += 3.0
    assert bucket.take(1.0) == 0.0
    bucket.take(-5.0)
    assert bucket.take(5.0) == 0.0
    time.at += 3_600.0
    assert bucket.take(6.0) == 0.0
    assert bucket.take(1.0) == pytest.approx(1.0)


async def test_rates_of_requests_and_tokens_are_waited_for() -> None:
    time = FakeTime()
    shared = gate(time, requests_per_minute=60.0, tokens_per_minute=6_000.0)
    assert not shared.is_calm
    assert await shared.wait(600, 60.0) == 0.0
    assert await shared.wait(600, 60.0) == pytest.approx(6.0)
    assert time.slept == [pytest.approx(6.0)]


def test_a_gate_is_shared_and_forgotten() -> None:
    first = gate_of(("x",), lambda: gate(FakeTime()))
    assert gate_of(("x",), lambda: gate(FakeTime())) is first
    number = id(first)
    del first
    gc.collect()
    second = gate_of(("x",), lambda: gate(FakeTime()))
    assert gate_of(("x",), lambda: gate(FakeTime())) is second
    del number


def test_backoff_doubles_up_to_a_bound_and_is_all_chance() -> None:
    most = Timing(uniform=lambda low, high: high)
    assert [most.backoff(tries) for tries in (1, 2, 3, 7, 99)] == [0.5, 1.0, 2.0, 30.0, 30.0]
    least = Timing(uniform=lambda low, high: low)
    assert least.backoff(5) == 0.0
