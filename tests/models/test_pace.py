"""How fast an endpoint is asked: the limit that adapts, pauses for all, the breaker, rates."""

from __future__ import annotations

import asyncio
import gc
import random
import weakref

import pytest

from assay.errors import ModelError
from assay.models.pace import (
    Bucket,
    EndpointClosedError,
    Gate,
    Lane,
    Limiter,
    Timing,
    asked_pause,
    gate_of,
    lane_of,
    share_limits,
)
from tests.each import each
from tests.model_servers import FakeTime


def gate(time: FakeTime) -> Gate:
    return Gate("http://h", timing=time.timing)


def lane(time: FakeTime, **limits: float) -> Lane:
    return Lane(
        gate(time),
        breaker_after=3,
        requests_per_minute=limits.get("requests_per_minute"),
        tokens_per_minute=limits.get("tokens_per_minute"),
    )


DOWN = ModelError("http://h cannot be reached", kind="unreachable", status=503, hint="look")


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


def test_the_limit_grows_by_one_for_a_full_clean_window() -> None:
    limiter = Limiter(4, 6)
    limiter.busy = 4
    for expected in (4, 4, 4, 5, 5, 5, 5, 5, 6):
        limiter.succeeded()
        assert limiter.limit == expected
        limiter.busy = max(limiter.busy, expected)
    limiter.busy = 6
    idle = Limiter(4, 8)
    idle.busy = 1  # a limit that is never reached does not grow
    for _ in range(100):
        limiter.succeeded()
        idle.succeeded()
    assert (limiter.limit, idle.limit) == (6, 4)


def test_a_burst_of_refusals_halves_the_limit_once() -> None:
    limiter = Limiter(16, 256)
    sent_at = limiter.epoch
    for _ in range(16):
        limiter.crowded(sent_at)
    assert (limiter.limit, limiter.epoch) == (8, sent_at + 1)
    limiter.busy = 8
    for _ in range(7):
        limiter.succeeded()
    limiter.crowded(sent_at)  # what was sent before says nothing new, and ends the window
    limiter.succeeded()
    assert limiter.limit == 8
    limits = list[int]()
    for _ in range(4):
        limiter.crowded(limiter.epoch)
        limits.append(limiter.limit)
    assert (limits, limiter.epoch) == ([4, 2, 1, 1], sent_at + 5)


def test_attack_no_place_is_free_while_anybody_waits_and_none_is_lost() -> None:
    async def random_walk(chance: random.Random) -> None:
        limiter = Limiter(chance.randint(1, 4), 6)
        held, tasks = 0, list[asyncio.Task[None]]()
        for _ in range(200):
            step = chance.randrange(6)
            if step == 0:
                held += limiter.try_acquire()
            elif step == 1:
                tasks.append(asyncio.create_task(limiter.acquire()))
            elif step == 2 and held:
                held -= 1
                limiter.release()
            elif step == 3 and tasks:
                chance.choice(tasks).cancel()
            elif step == 4:
                limiter.succeeded()
            else:
                limiter.crowded(limiter.epoch)
            if chance.random() < 0.5:
                await asyncio.sleep(0)
                done = [task for task in tasks if task.done()]
                held += sum(not task.cancelled() for task in done)
                tasks = [task for task in tasks if not task.done()]
                await asyncio.sleep(0)
                if any(not task.done() for task in tasks):
                    assert not limiter.try_acquire()
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(held + ended.count(None)):
            limiter.release()
        assert limiter.busy == 0

    for seed in range(40):
        asyncio.run(random_walk(random.Random(seed)))


async def test_one_refusal_makes_everybody_wait() -> None:
    time = FakeTime()
    shared = gate(time)
    assert shared.is_calm
    shared.cool(10.0)
    assert not shared.is_calm
    waited = await asyncio.gather(*(shared.wait(object(), 60.0) for _ in range(3)))
    assert all(seconds >= 0.0 for seconds in waited)
    assert time.slept[0] == pytest.approx(11.0)  # and up to a second more, by chance
    assert shared.is_calm
    assert await shared.wait(object(), 60.0) == 0.0
    shared.cool(1e300)  # a server cannot shut an endpoint for ever
    assert shared.cooling() <= 600.0


async def test_nobody_waits_for_longer_than_it_has_time() -> None:
    time = FakeTime()
    shared = gate(time)
    shared.cool(100.0)
    with pytest.raises(ModelError, match="100 seconds") as failure:
        await shared.wait(object(), 60.0)
    assert (failure.value.kind, failure.value.status) == ("rate_limited", 429)
    assert str(failure.value).startswith("http://h asks to wait")
    assert await shared.wait(object(), 100.0) > 100.0  # to the last second


async def test_a_short_pause_is_waited_for_and_as_often_as_it_is_asked_for() -> None:
    time = FakeTime()
    shared = gate(time)
    shared.cool(0.4)
    # A quarter more, by chance: not all ask in the same moment.
    assert await shared.wait(object(), 60.0) == pytest.approx(0.5)
    shared.cool(10.0)
    waiting = asyncio.create_task(shared.wait(object(), 60.0))
    await asyncio.sleep(0)
    shared.cool(10.0)
    assert await waiting == pytest.approx(22.0)
    shared.cool(10.0)
    for _ in range(3):
        shared.failed(DOWN, breaker_after=3)
    time.at += 30.0
    asker = object()
    assert await shared.wait(asker, 60.0) == 0.0  # it finds out for all
    shared.cool(10.0)
    assert await shared.wait(asker, 60.0) == pytest.approx(11.0)


async def test_the_breaker_opens_half_opens_and_closes() -> None:
    time = FakeTime()
    way = lane(time)
    shared = way.gate
    one, other = object(), object()
    for _ in range(2):
        way.failed(DOWN)
    shared.succeeded()  # not in a row
    for _ in range(3):
        assert shared.is_calm
        way.failed(DOWN)
    assert not shared.is_calm
    time.at += 10.0
    told = "http://h failed 3 times in a row and is not asked for 20 seconds; the last time: "
    with pytest.raises(EndpointClosedError, match=told + DOWN.message) as failure:
        await shared.wait(one, 60.0)
    assert (failure.value.kind, failure.value.status) == ("unreachable", 503)
    assert failure.value.hint == DOWN.hint
    time.at += 19.5
    with pytest.raises(EndpointClosedError, match="for 1 seconds"):
        await shared.wait(one, 60.0)
    time.at += 0.5
    await shared.wait(one, 60.0)  # one finds out
    with pytest.raises(ModelError):
        await shared.wait(other, 60.0)  # for the others
    await shared.wait(one, 60.0)  # with as many tries as it takes
    way.failed(DOWN)
    with pytest.raises(ModelError):
        await shared.wait(one, 60.0)
    time.at += 31.0
    await shared.wait(one, 60.0)
    shared.ended(one)  # it was cancelled: the next one finds out
    await shared.wait(other, 60.0)
    shared.succeeded()
    assert shared.is_calm


async def test_a_straggler_does_not_send_a_second_one_to_find_out() -> None:
    time = FakeTime()
    way = lane(time)
    for _ in range(3):
        way.failed(DOWN)
    time.at += 31.0
    await way.wait(prober := object(), 1, 60.0)
    way.gate.ended(object())  # it was sent before the breaker opened
    with pytest.raises(EndpointClosedError):
        await way.wait(object(), 1, 60.0)
    way.gate.ended(prober)
    await way.wait(object(), 1, 60.0)


async def test_what_waits_while_the_breaker_opens_is_not_sent() -> None:
    time = FakeTime()
    way = lane(time)
    way.gate.cool(10.0)
    waiting = asyncio.create_task(way.wait(object(), 1, 60.0))
    await asyncio.sleep(0)
    for _ in range(3):
        way.failed(DOWN)
    with pytest.raises(EndpointClosedError):
        await waiting


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
    bucket.keep_to(2)  # what was taken before is not given again
    assert bucket.take(1.0) == pytest.approx(4.0)
    time.at += 8.0
    assert bucket.take(2.0) == 0.0
    assert bucket.take(1.0) == pytest.approx(2.0)


async def test_rates_of_requests_and_tokens_are_waited_for() -> None:
    time = FakeTime()
    assert lane(time).is_free
    assert not lane(time, requests_per_minute=60.0).is_free
    assert not lane(time, tokens_per_minute=60.0).is_free
    assert await lane(time).wait(object(), 600, 60.0) == 0.0
    way = lane(time, requests_per_minute=60.0, tokens_per_minute=6_000.0)
    assert await way.wait(object(), 600, 60.0) == 0.0
    assert await way.wait(object(), 600, 60.0) == pytest.approx(6.0)
    assert time.slept == [pytest.approx(6.0)]
    quick = lane(time, requests_per_minute=600.0)
    waits = [await quick.wait(object(), 1, 60.0) for _ in range(62)]
    assert waits == [*[0.0] * 60, pytest.approx(0.1), pytest.approx(0.1)]


def test_a_gate_is_shared_and_forgotten() -> None:
    first = gate_of(("x",), lambda: gate(FakeTime()))
    assert gate_of(("x",), lambda: gate(FakeTime())) is first
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None


def test_backoff_doubles_up_to_a_bound_and_is_all_chance() -> None:
    most = Timing(uniform=lambda low, high: high)
    assert [most.backoff(tries) for tries in (1, 2, 3, 7, 99)] == [0.5, 1.0, 2.0, 30.0, 30.0]
    least = Timing(uniform=lambda low, high: low)
    assert least.backoff(5) == 0.0


@each("limit", [{"requests_per_minute": 600.0}, {"tokens_per_minute": 6000.0}])
async def test_processes_that_share_limits_keep_to_them_together(limit: dict[str, float]) -> None:
    time = FakeTime()
    lanes = [lane(time, **limit) for _ in range(5)]
    for one in lanes:
        one.keep_to(5)
    sent: list[float] = []
    for number in range(300):  # by turns, all at once, ten tokens each
        before = time.at
        await lanes[number % 5].wait(object(), 10, 60.0)
        sent.append(time.at)
        time.at = before
    # A tenth of a minute's worth at once, then one every tenth of a second.
    for at in sent:
        assert sum(at <= other < at + 10.0 for other in sent) <= 60 + 100 + 5
    assert max(sent) - time.at == pytest.approx((300 - 60) / 10)


async def test_a_process_has_more_in_flight_again_when_others_have_ended() -> None:
    shared = Lane(gate(FakeTime()), first=7, most=9)
    assert (shared.limiter().limit, shared.limiter().most) == (7, 9)
    shared = Lane(gate(FakeTime()), first=7, most=9)
    shared.keep_to(2)
    limiter, found = shared.limiter(), list[tuple[int, int]]()
    for others in (2, 4, 3, 20):
        shared.keep_to(others)
        found.append((limiter.limit, limiter.most))
    assert repr(found) == "[(3, 4), (2, 2), (2, 3), (1, 1)]"  # in whole requests
    shared.keep_to(1)
    assert limiter.most == 9


def test_lanes_that_are_made_later_keep_to_the_same_part() -> None:
    share_limits(3)
    try:
        later = lane_of(("later",), lambda: lane(FakeTime(), requests_per_minute=30.0))
        assert later.requests is not None
        assert later.requests.take(1.0) == 0.0
        assert later.requests.take(1.0) == pytest.approx(6.0)
    finally:
        share_limits(1)


@each(
    "headers, pause",
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, 10.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "x", "retry-after": "2"}, 2.0),
    ],
)
def test_how_long_to_wait_is_read(headers: dict[str, str], pause: float | None) -> None:
    assert asked_pause(headers, 20.0) == pause
