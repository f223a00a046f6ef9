"""The limits of several processes that one office keeps: each client here stands for a process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from assay.errors import ModelError
from assay.models import Budget, ModelClient, ModelSettings
from assay.models.ledger import Entry
from assay.models.messages import Usage
from assay.models.office import LEASE_SECONDS, Answer, Money, Note, Office, Pass, Places, Terms
from assay.models.pace import OPEN_SECONDS, EndpointClosedError
from assay.models.shared import Courier, SharedLane, SharedLedger
from tests.model_servers import FakeTime, error, question, scripted, verdict


def terms(**changes: Any) -> Terms:
    values: dict[str, Any] = {
        "address": "openai http://h",
        "name": "http://h",
        "limits_of": "",
        "first": 4,
        "most": 8,
        "breaker_after": 3,
        "requests_per_minute": None,
        "tokens_per_minute": None,
    }
    return Terms(**(values | changes))


def places(office: Office, who: str, count: int, *notes: Note, **limits: Any) -> int:
    return office.exchange(who, notes, [Places(terms(**limits), count)])[0].count


async def test_processes_together_have_no_more_in_flight_than_one_may() -> None:
    office = Office(timing=FakeTime().timing)
    lanes = [SharedLane(terms(), Courier(office.exchange), FakeTime().timing) for _ in range(3)]
    busy = most = 0

    async def request(number: int) -> None:
        nonlocal busy, most
        limiter = lanes[number % 3].limiter()
        await limiter.acquire()
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0)
        busy -= 1
        limiter.release()

    await asyncio.gather(*(request(number) for number in range(60)))
    assert 1 <= most <= 4


@pytest.mark.parametrize("limit", [{"requests_per_minute": 600.0}, {"tokens_per_minute": 6000.0}])
async def test_the_rates_are_of_all_processes(limit: dict[str, float]) -> None:
    time = FakeTime()
    office = Office(timing=time.timing)
    sent: list[float] = []
    for number in range(300):  # by turns, all at once, ten tokens each
        asked = Pass(terms(**limit), number, 10)
        [answer] = office.exchange(f"process {number % 5}", [], [asked])
        sent.append(time.at + answer.seconds)
    # A tenth of a minute's worth at once, then one every tenth of a second.
    for at in sent:
        assert sum(at <= other < at + 10.0 for other in sent) <= 60 + 100 + 1
    assert max(sent) - time.at == pytest.approx((300 - 60) / 10)


async def test_too_much_for_one_process_makes_all_wait() -> None:
    time = FakeTime()
    office = Office(timing=time.timing)
    ours, theirs = (SharedLane(terms(), Courier(office.exchange), time.timing) for _ in range(2))
    ours.gate.cool(7.0)
    assert await ours.wait(object(), 1, 60.0) >= 7.0
    ours.gate.cool(7.0)
    await ours._courier.flush()
    with pytest.raises(ModelError, match="asks to wait 7 seconds"):
        await theirs.wait(object(), 1, 5.0)
    assert await theirs.wait(object(), 1, 60.0) >= 7.0


async def test_failures_of_all_processes_open_one_breaker_and_one_of_them_finds_out() -> None:
    time = FakeTime()
    office = Office(timing=time.timing)
    down = ModelError("http://h cannot be reached", kind="unreachable")
    for number in range(3):
        office.exchange(f"process {number}", [("failed", terms(), down)], [])
    lane = SharedLane(terms(), Courier(office.exchange), time.timing)
    with pytest.raises(EndpointClosedError, match="cannot be reached") as closed:
        await lane.wait(object(), 1, 60.0)
    assert closed.value.kind == "unreachable"
    time.at += OPEN_SECONDS + 1.0
    ask = [Pass(terms(), 1, 1)]
    assert office.exchange("first", [], ask)[0].says == "yes"
    assert office.exchange("second", [], ask)[0].says == "closed"
    assert office.exchange("second", [("ended", terms(), 1)], ask)[0].says == "closed"
    assert office.exchange("first", [("ended", terms(), 1)], [])[:] == []
    assert office.exchange("second", [], ask)[0].says == "yes"
    assert office.exchange("second", [("good", terms(), None)], ask)[0].says == "yes"
    assert office.exchange("first", [], ask)[0].says == "yes"


async def test_a_busy_process_does_not_keep_the_others_from_their_turn() -> None:
    office = Office(timing=FakeTime().timing)
    assert places(office, "busy", 9, first=2) == 2
    assert places(office, "other", 3, first=2) == 0
    # It gives one back and wants another in the same moment: that one is the other's.
    assert places(office, "busy", 8, ("back", terms(first=2), None), first=2) == 0
    assert places(office, "other", 3, first=2) == 1
    # Both have one now; the next is of who has waited longer.
    assert places(office, "other", 2, ("back", terms(first=2), None), first=2) == 1


async def test_who_waited_and_is_gone_keeps_no_place_free() -> None:
    time = FakeTime()
    office = Office(timing=time.timing)
    assert places(office, "busy", 2, first=2) == 2
    assert places(office, "gone", 1, first=2) == 0
    assert places(office, "busy", 1, ("back", terms(first=2), None), first=2) == 0
    time.at += 2.0
    assert places(office, "busy", 1, first=2) == 1


async def test_what_a_dead_process_had_comes_back_and_its_money_counts_as_spent() -> None:
    time = FakeTime()
    office = Office(Budget(1.0), timing=time.timing)
    assert places(office, "dead", 4) == 4
    assert office.exchange("dead", [], [Money(0.4, "judge")])[0].says == "yes"
    time.at += LEASE_SECONDS - 1.0
    assert places(office, "other", 1) == 0
    time.at += 2.0
    assert places(office, "other", 4) == 4
    assert office.ledger.summary().spent_usd == pytest.approx(0.4)
    assert office.ledger.summary().reserved_usd == 0.0
    # It was only slow, and gives back what is no longer its own.
    back: list[Note] = [("back", terms(), None)] * 4
    office.exchange("dead", [*back, ("settled", None, (0.4, 0.1))], [])
    assert places(office, "third", 4) == 0


async def test_a_budget_is_of_all_processes() -> None:
    office = Office(Budget(1.0))
    ledgers = [SharedLedger(Courier(office.exchange), Budget(1.0)) for _ in range(4)]
    spent, refused = list[float](), list[str]()

    async def request(number: int) -> None:
        try:
            reservation = await ledgers[number % 4].set_aside(0.3, "judge")
        except ModelError as error:
            refused.append(error.kind)
            return
        with reservation:
            reservation.sent()
            await asyncio.sleep(0)
            reservation.settle(0.2)
            spent.append(0.2)

    await asyncio.gather(*(request(number) for number in range(40)))
    await asyncio.gather(*(ledger._courier.flush() for ledger in ledgers))
    assert set(refused) == {"budget"}
    assert sum(spent) == pytest.approx(0.8)  # of the 0.2 that are left no 0.3 can be set aside
    assert office.ledger.summary().spent_usd == pytest.approx(0.8)
    assert office.report()[1] == pytest.approx(0.8)
    assert office.report()[1] == 0.0


async def test_who_stops_waiting_leaves_nothing_taken() -> None:
    office = Office(Budget(1.0))
    courier = Courier(office.exchange)
    lane, ledger = SharedLane(terms(), courier, FakeTime().timing), SharedLedger(courier, Budget(1))
    for _ in range(50):
        tasks = [asyncio.create_task(lane.limiter().acquire()) for _ in range(3)]
        tasks.append(asyncio.create_task(_set_aside(ledger)))
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        for one in ended[:3]:
            if not isinstance(one, BaseException):
                lane.limiter().release()
    await courier.flush()
    await courier.flush()
    assert places(office, "other", 4) == 4
    assert office.ledger.summary().reserved_usd == pytest.approx(0.0)


async def _set_aside(ledger: SharedLedger) -> None:
    with await ledger.set_aside(0.1, "judge"):
        pass


async def test_without_the_office_nothing_is_asked() -> None:
    def gone(who: str, notes: Sequence[Note], asks: Sequence[object]) -> list[Answer]:
        del who, notes, asks
        raise ConnectionError

    async with scripted([verdict()]) as server:
        client = ModelClient(ModelSettings(), courier=Courier(gone))
        with pytest.raises(ModelError, match="without it no model is asked") as failure:
            await client.ask(question(server.model))
    assert failure.value.kind == "unreachable"
    assert not server.seen


async def test_an_office_that_was_away_for_a_moment_gets_its_places_back() -> None:
    time = FakeTime()
    office, is_away = Office(timing=time.timing), False

    def exchange(who: str, notes: Sequence[Note], asks: Sequence[Any]) -> list[Answer]:
        answers = office.exchange(who, notes, asks)
        if is_away:
            raise TimeoutError
        return answers

    lane = SharedLane(terms(first=1), Courier(exchange), time.timing)
    is_away = True
    with pytest.raises(ModelError, match="does not answer"):
        await lane.limiter().acquire()
    is_away = False
    time.at += LEASE_SECONDS + 1.0
    await lane.limiter().acquire()


async def test_what_clients_of_one_office_ask_a_real_server_is_told_to_it() -> None:
    office = Office()
    async with scripted([verdict()]) as server:
        clients = [ModelClient(ModelSettings(), courier=Courier(office.exchange)) for _ in range(3)]
        replies = await asyncio.gather(
            *(clients[number % 3].ask(question(server.model)) for number in range(9))
        )
        assert [reply.data is not None for reply in replies] == [True] * 9
        for client in clients:
            await client._courier.flush()  # pyright: ignore[reportOptionalMemberAccess]
    entries, _ = office.report()
    assert [entry.kind for entry in entries] == ["call"] * 9
    assert isinstance(entries[0], Entry)
    assert entries[0].usage != Usage()


async def test_429_of_a_real_server_halves_the_places_of_all() -> None:
    time = FakeTime()
    office = Office(timing=time.timing)
    crowded = error(429, "slow down", headers={"Retry-After": "3"})
    async with scripted([crowded, verdict()]) as server:
        ours, theirs = (
            ModelClient(ModelSettings(), timing=time.timing, courier=Courier(office.exchange))
            for _ in range(2)
        )
        await ours.ask(question(server.model))
        assert max(time.slept) >= 3.0
        await theirs.ask(question(server.model))
    [shared] = office._lanes.values()
    assert shared.limiter.limit == 8
