"""The ledger: what was asked, what it cost, and that no budget is overrun."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.conversation.messages import Purpose, ReplyUsage
from assay.errors import ModelError
from assay.models.ledger import Budget, Entry, EntryKind, Ledger
from assay.turns import charging, told_of_charges
from tests.each import each


def entry(
    kind: EntryKind = "call",
    cost: float | None = 0.5,
    *,
    model: str = "openai:judge",
    purpose: Purpose = "judge",
    would_cost: float | None = None,
) -> Entry:
    return Entry(
        model=model,
        served="judge-1",
        purpose=purpose,
        kind=kind,
        usage=ReplyUsage(input_tokens=100, cached_tokens=60, output_tokens=10, reasoning_tokens=4),
        cost_usd=cost,
        would_cost_usd=would_cost,
        seconds=2.0,
        digest="d" * 64,
    )


# --- Totals --------------------------------------------------------------------------------------


def recorded(*entries: Entry, **options: Any) -> Ledger:
    ledger = Ledger(**options)
    for one in entries:
        ledger.record(one)
    return ledger


def test_totals_are_kept_apart() -> None:
    unknown = ReplyUsage()  # tokens that are not known count nothing
    summary = recorded(
        entry(),
        replace(entry(cost=None), usage=unknown),
        entry("retry", 0.25),
        entry("repair", 0.125),
        entry("hit", 0.0, would_cost=0.5),
        entry("hit", 0.0),
        entry(model="anthropic:other", cost=2.0),
        entry(purpose="agent", cost=8.0),
    ).summary()
    assert summary.total().count == 8
    assert summary.total().cost_usd == 10.875
    assert summary.total().unknown == 1
    assert summary.total().would_cost_usd == 0.5
    assert summary.total(purpose="agent").cost_usd == 8.0
    assert summary.total(kind="call").count == 4
    assert summary.total(kind="hit").cost_usd == 0.0
    assert summary.total(kind="hit", model="anthropic:other").count == 0
    assert summary.total(model="anthropic:other").cost_usd == 2.0
    call = summary.total(purpose="judge", kind="call", model="openai:judge")
    assert (call.count, call.unknown, call.seconds) == (2, 1, 4.0)
    assert (call.input_tokens, call.cached_tokens) == (100, 60)
    assert (call.output_tokens, call.reasoning_tokens) == (10, 4)
    hits = summary.total(kind="hit")
    assert (hits.input_tokens, hits.cached_tokens) == (200, 120)
    assert (hits.output_tokens, hits.reasoning_tokens) == (20, 8)


def test_a_summary_is_json() -> None:
    ledger = recorded(entry(), budget=Budget(3.0))
    ledger.reserve(1.0, "judge").settle(0.5)
    ledger.reserve(0.25, "judge")
    document: dict[str, Any] = ledger.summary().to_dict()
    assert json.loads(json.dumps(document)) == document
    amounts = [document[name] for name in ("spent_usd", "reserved_usd", "max_cost_usd")]
    assert amounts == [0.5, 0.25, 3.0]
    assert document["total"] == asdict(ledger.summary().total())
    first = document["groups"][0]
    assert (first["purpose"], first["kind"], first["model"]) == ("judge", "call", "openai:judge")
    assert first["cost_usd"] == 0.5


@each(
    "entries, line",
    [
        ([], "0 judgements asked, $0.00"),
        ([entry()], "1 judgement asked, $0.50"),
        (
            [entry(cost=0.0)] * 1_240 + [entry("hit", 0.0)] * 310 + [entry(cost=0.42)]
            + [entry(cost=None)] * 12,
            "1,253 judgements asked, 310 from cache, $0.42 (12 of unknown price)",
        ),
        (
            [entry(), entry("retry", None), entry("repair"), entry(purpose="agent", cost=10.0)],
            "1 judgement asked, 1 agent call asked, 2 asked again, $11.00 (1 of unknown price)",
        ),
        ([entry(purpose="agent")] * 2, "2 agent calls asked, $1.00"),
        ([entry(purpose="user", cost=0.01)], "1 user's turn asked, $0.01"),
        ([entry(cost=0.0012)], "1 judgement asked, $0.0012"),
        ([entry(cost=0.0001)], "1 judgement asked, $0.0001"),
        ([entry(cost=0.00009)], "1 judgement asked, less than $0.0001"),
        ([entry("retry", 0.0)] * 5, "nothing was answered, 5 tries failed, $0.00"),
        ([entry("lost", None)], "nothing was answered, 1 never answered, of unknown price"),
    ],
)  # fmt: skip
def test_a_summary_is_one_line_of_progress(entries: list[Entry], line: str) -> None:
    assert str(recorded(*entries).summary()) == line


def test_why_nobody_answers_is_known_until_somebody_does() -> None:
    refused = "m cannot be reached: connection refused"
    ledger = recorded(replace(entry("retry", 0.0), why=refused))
    summary = ledger.summary()
    assert summary.is_unanswered
    assert summary.trouble == refused
    ledger.record(entry("lost", None))
    assert ledger.summary().trouble == summary.trouble
    ledger.record(entry())
    assert (ledger.summary().is_unanswered, ledger.summary().trouble) == (False, "")


def test_attack_names_from_outside_take_bounded_memory() -> None:
    summary = recorded(*(entry(model=f"model-{n}", cost=1.0) for n in range(5_000))).summary()
    assert len(summary.groups) <= 201
    assert summary.total().cost_usd == 5_000.0
    assert summary.total(model="(others)").count == 4_800


def test_the_listener_hears_every_entry_and_may_look_at_the_ledger() -> None:
    heard: list[tuple[Entry, str]] = []
    ledger = Ledger(listener=lambda one: heard.append((one, str(ledger.summary()))))
    first, second = entry(), entry("hit", 0.0)
    ledger.record(first)
    ledger.record(second)
    line = "1 judgement asked, $0.50"
    assert heard == [(first, line), (second, line.replace(", $", ", 1 from cache, $"))]


def test_what_an_item_asks_is_charged_to_it() -> None:
    ledger, told = Ledger(), list[tuple[int, float | None]]()
    with told_of_charges(lambda charges: told.append((charges.calls, charges.usd))):
        for made in ([entry(), entry("repair", 0.25)], [entry(cost=None)]):
            with charging():
                for one in made:
                    ledger.record(one)
        ledger.record(entry())  # of no item
    assert told == [(1, 0.75), (1, None)]


# --- Budgets -------------------------------------------------------------------------------------


def test_without_a_budget_everything_may_be_asked() -> None:
    ledger = Ledger()
    for estimate in (None, 1e9):
        with ledger.reserve(estimate, "judge") as reservation:
            reservation.settle(1e9)
    assert ledger.summary().spent_usd == 2e9


def test_what_is_under_way_counts_before_it_is_paid() -> None:
    ledger = Ledger(Budget(1.0))
    first = ledger.reserve(0.6, "openai:judge")
    with pytest.raises(ModelError) as caught:
        ledger.reserve(0.6, "openai:judge")
    assert caught.value.kind == "budget"
    for part in ("$1.00", "$0.60", "openai:judge", "ASSAY_MAX_COST_USD"):
        assert part in str(caught.value)
    first.settle(0.1)
    assert ledger.reserve(0.6, "openai:judge").amount == 0.6


@given(
    st.lists(
        st.tuples(
            st.integers(0, 40),
            st.sampled_from(["settled", "not sent", "not answered", "under way"]),
            st.integers(0, 40),
        ),
        max_size=20,
    )
)
def test_no_order_of_requests_overruns_a_budget(asked: list[tuple[int, str, int]]) -> None:
    ledger, spent, reserved = Ledger(Budget(1.0)), 0, 0  # in cents
    for estimate, end, cost in asked:
        amount, left = estimate / 100, 100 - spent - reserved
        assert ledger.may_suffice_later(amount) == (left < estimate <= left + reserved)
        if estimate > left:
            with pytest.raises(ModelError, match="used up"):
                ledger.reserve(amount, "judge")
            continue
        reservation = ledger.reserve(amount, "judge")
        if end == "under way":
            reserved += estimate
            continue
        with reservation:
            if end != "not sent":
                reservation.sent()
            if end == "settled":
                reservation.settle(cost / 100)
        spent += {"settled": cost, "not sent": 0, "not answered": estimate}[end]
        summary = ledger.summary()
        assert summary.spent_usd == pytest.approx(spent / 100)
        assert summary.reserved_usd == pytest.approx(reserved / 100)


async def test_what_is_under_way_is_waited_for_only_where_it_may_leave_enough() -> None:
    ledger, slept = Ledger(Budget(1.0)), list[float]()
    held = [ledger.reserve(0.4, "judge"), ledger.reserve(0.4, "judge")]

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        held.pop().settle(0.1)

    await ledger.wait_for(1.5, sleep)  # it never will
    await ledger.wait_for(0.2, sleep)  # it does already
    assert slept == []
    await ledger.wait_for(0.8, sleep)
    assert len(slept) == 2
    assert all(0 < seconds < 1 for seconds in slept)
    assert not Ledger().may_suffice_later(1e9)
    await ledger.wait_for(None, sleep)


@each("cost", [None, -5.0, float("nan"), float("inf")])
def test_attack_a_cost_that_is_no_amount_takes_all_that_was_set_aside(cost: float | None) -> None:
    ledger = Ledger(Budget(1.0))
    ledger.reserve(0.7, "judge").settle(cost)
    assert ledger.summary().spent_usd == 0.7


def test_a_reservation_ends_once() -> None:
    ledger = Ledger(Budget(1.0))
    with ledger.reserve(0.5, "judge") as reservation:
        reservation.settle(0.25)
        reservation.settle(0.25)
        reservation.release()
    reservation.release()
    assert ledger.summary().spent_usd == 0.25
    assert ledger.summary().reserved_usd == 0.0


def test_what_has_no_known_price_is_not_asked_under_a_budget() -> None:
    ledger = Ledger(Budget(1.0))
    with pytest.raises(ModelError, match="no known price") as caught:
        ledger.reserve(None, "http://127.0.0.1/v1#judge")
    assert (caught.value.kind, "cannot hold" in str(caught.value)) == ("budget", True)
    assert "name a price for 'http://127.0.0.1/v1#judge' in a file" in str(caught.value)
    allowed = Ledger(Budget(1.0, allow_unknown=True))
    allowed.reserve(None, "http://127.0.0.1/v1#judge").settle(None)
    assert allowed.summary().spent_usd == 0.0


@each("amount", [-5.0, float("nan"), float("inf")])
def test_attack_what_is_no_amount_makes_no_room(amount: float) -> None:
    ledger = Ledger(Budget(1.0))
    with pytest.raises(ModelError):
        ledger.reserve(amount, "judge")
    assert ledger.summary().reserved_usd == 0.0
    with pytest.raises(ValueError, match="max_cost_usd"):
        Budget(amount)
    assert Budget(0.0).max_cost_usd == 0.0


def test_many_threads_together_do_not_overrun_a_budget() -> None:
    ledger = Ledger(Budget(10.0))
    refused: list[ModelError] = []

    def work() -> None:
        for _ in range(100):
            try:
                with ledger.reserve(0.125, "judge") as reservation:
                    reservation.settle(0.125)
            except ModelError as error:
                refused.append(error)
            ledger.record(entry(cost=0.125))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    summary = ledger.summary()
    assert summary.spent_usd == 10.0
    assert len(refused) == 400 - 80
    assert summary.total().count == 400
    assert summary.total().cost_usd == 50.0
