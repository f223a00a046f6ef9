"""Two runs side by side: who has a partner, what a difference is, and what may be said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from assay.errors import InputError
from assay.reports.comparing.comparison import RunComparison, chance, comparison_verdict, signed
from assay.reports.comparing.pairing import Side, compare
from assay.reports.summary import summarize
from assay.statistics.intervals import mean_interval
from assay.store.records import CellRecord, RunRecord
from tests.each import each


def cell(case: str, reward: float | None, **more: object) -> CellRecord:
    """A graded cell; without a reward, an error."""
    made = CellRecord(
        run_id="r",
        case=case,
        harness="h",
        model="m",
        status="error" if reward is None else "graded",
        reward=reward,
        passed=None if reward is None else reward >= 1.0,
        digest="d",
    )
    return replace(made, **more)


def side(cells: Sequence[CellRecord], **more: object) -> Side:
    run = replace(RunRecord(id="r", created_at="", finished=True), **more)
    agents = sorted({(one.harness, one.model) for one in cells})
    return Side(run=run, agents=agents, cells=sorted(cells, key=lambda one: one.key))


def compared(before: Sequence[float | None], after: Sequence[float | None]) -> RunComparison:
    """A case for each pair of rewards."""
    sides = [
        side([cell(f"c{number:03}", reward) for number, reward in enumerate(rewards)])
        for rewards in (before, after)
    ]
    return compare(*sides)


def test_the_difference_is_that_of_the_paired_cases() -> None:
    before, after = [0.2, 0.5, 0.9, 0.4, 0.7, 0.6, 0.1], [0.4, 0.7, 0.9, 0.7, 0.8, 0.9, 0.3]
    found = compared(before, after)
    apart = [y - x for x, y in zip(before, after, strict=True)]
    assert found.interval == mean_interval(apart, bounds=(-1.0, 1.0))
    assert (found.better, found.worse, found.same, found.pairs) == (6, 0, 1, 7)
    assert found.finding == "better"
    assert found.sign_p == 2 / 2**6
    assert [round(change.difference, 9) for change in found.improved] == sorted(
        (round(d, 9) for d in apart if d), reverse=True
    )


@pytest.mark.parametrize("cases", [1, 2, 5])
def test_few_cases_never_make_a_claim_however_large_the_difference(cases: int) -> None:
    after = [1.0 - number / 1_000 for number in range(cases)]
    found = compared([0.0] * cases, after)
    assert found.finding == "too few cases to tell"
    assert (found.difference.p_value, found.sign_p) == (None, None)


def test_five_wins_among_many_ties_are_too_few_to_tell_and_ties_alone_no_difference() -> None:
    found = compared([0.0] * 100, [1.0] * 5 + [0.0] * 95)
    assert found.interval.low is not None
    assert found.interval.low > 0  # Student's t would claim it
    assert found.finding == "too few cases to tell"
    equal = compared([0.5] * 30, [0.5] * 30)
    assert equal.finding == "no clear difference"
    assert (equal.interval.low or 0) < 0 < (equal.interval.high or 0)


def test_errors_and_skips_are_counted_and_never_a_zero() -> None:
    before = side([cell("a", 1.0), cell("b", 1.0), cell("c", 1.0), cell("d", None)])
    skipped = cell("c", None, status="skipped")
    after = side([cell("a", 1.0), cell("b", None), skipped, cell("d", 0.0)])
    found = compare(before, after)
    assert (found.pairs, found.interval.mean) == (1, 0.0)
    assert found.after.lost == {"error": 1, "skipped": 1}
    assert found.before.lost == {"error": 1}
    assert (found.after.lost_in, found.before.lost_in) == (("b", "c"), ("d",))


def test_a_drop_that_hides_behind_errors_is_no_verdict() -> None:
    found = compared([1.0] * 8, [1.0] * 7 + [None])
    assert comparison_verdict(found).code == 0
    decided = comparison_verdict(found, max_drop=0.5)
    assert decided.code == 3
    assert "1 cell graded before has no reward now (1 could not be graded)" in decided.line
    decided = comparison_verdict(compared([1.0], [None]))
    assert (decided.code, "no cell has a reward on both sides" in decided.line) == (3, True)


def test_cells_that_an_unfinished_run_lacks_are_no_verdict() -> None:
    for finished, code in ((True, 0), (False, 3)):
        before = side([cell("a", 1.0), cell("b", 1.0)])
        found = compare(before, side([cell("a", 1.0)], finished=finished))
        assert (found.before.alone, found.before.alone_in) == (1, ("b",))
        assert comparison_verdict(found, max_drop=0.1).code == code


@each(("bar", "code"), [(0.0, 1), (0.2, 1), (0.25, 0), (1.0, 0)])
def test_a_drop_as_measured_decides(bar: float, code: int) -> None:
    found = compared([1.0] * 4, [1.0, 1.0, 1.0, 0.0])
    assert comparison_verdict(found, max_drop=bar).code == code
    rounded = compared([0.1 + 0.2], [0.3])
    assert (rounded.same, comparison_verdict(rounded, max_drop=0.0).code) == (1, 0)


def test_every_case_counts_the_same_however_many_trials_it_has() -> None:
    before = [cell("a", 0.0, trial=n) for n in (1, 2, 3)] + [cell("b", 1.0)]
    after = [cell("a", 1.0, trial=n) for n in (1, 2)] + [cell("b", 1.0), cell("b", 0.0, trial=2)]
    found = compare(side(before), side(after))
    assert (found.pairs, found.interval.mean, found.interval.n) == (3, 0.5, 2)
    assert (found.before.alone, found.after.alone) == (1, 1)


def test_agents_are_compared_where_each_side_has_one_and_otherwise_with_themselves() -> None:
    before = side([cell("a", 0.0), cell("b", 0.0)])
    after = side([cell("a", 1.0, model="other"), cell("b", 0.0, model="other")])
    found = compare(before, after)
    assert found.pairs == 2
    assert found.reasons[0] == "agent: h · m → h · other"
    many = [cell("a", 0.0), cell("a", 1.0, model="other")]
    found = compare(side(many), side([replace(one, reward=1.0) for one in many]))
    assert (found.pairs, found.interval.mean) == (2, 0.5), "each is compared with itself"
    strangers = side([cell("a", 0.0, model="x"), cell("a", 0.0, model="y")])
    with pytest.raises(InputError, match=r"none of the same case, model and trial.*h · x, h · y"):
        compare(side(many), strangers)


def test_what_changed_beside_the_work_is_said() -> None:
    def scored(digest: str, grader: str) -> CellRecord:
        score = {"name": "tests", "value": 1.0, "weight": 1.0, "metadata": {"_digest": grader}}
        return cell("a", 1.0, digest=digest, subscores=(score,))

    one: dict[str, object] = {"config": {"request": {"trials": 1}}, "assay": "0.0.9"}
    two: dict[str, object] = {"config": {"request": {"trials": 3}}, "assay": "0.1.0"}
    before = side([scored("d1", "g1")], digests={"a": "1"}, **one)
    after = side([scored("d2", "g2")], digests={"a": "2"}, **two)
    found = compare(before, after)
    assert found.reasons == (
        "1 case changed: a",
        "graders changed: tests (1 case)",
        "assay: 0.0.9 → 0.1.0",
        "trials: 1 → 3",
    )
    assert found.graded_otherwise == 1


def test_cost_and_time_are_those_of_the_pairs() -> None:
    before = [cell("a", 1.0, cost_usd=1.0, seconds=2.0), cell("b", 1.0, cost_usd=8.0)]
    after = [cell("a", 1.0, cost_usd=3.0, seconds=5.0), cell("b", None, cost_usd=8.0)]
    found = compare(side(before), side(after))
    assert (found.before.paired.cost_usd, found.after.paired.cost_usd) == (1.0, 3.0)
    assert (found.before.paired.seconds, found.after.paired.seconds) == (2.0, 5.0)


def test_no_more_changes_are_kept_than_can_be_shown() -> None:
    found = compared([1.0] * 500, [number / 1_000 for number in range(500)])
    assert (found.worse, len(found.worsened)) == (500, 200)
    assert found.worsened[0].case == "c000"
    assert found.worsened[-1].case == "c199"


def test_small_numbers_are_not_written_as_none() -> None:
    assert [chance(p) for p in (0.0, 1e-9, 0.0312, 1.0)] == [
        "p < 0.0001",
        "p < 0.0001",
        "p = 0.031",
        "p = 1",
    ]
    assert [signed(d) for d in (0.0, -0.0204, 0.5, 0.0001)] == [
        "0",
        "\N{MINUS SIGN}0.020",
        "+0.500",
        "+1e-04",
    ]


def test_the_totals_of_a_side_are_those_of_its_report() -> None:
    """Seven cases were counted as seven trials of one: "pass@7" was a number of the run."""
    cells = [cell(f"c{n}", float(n % 2)) for n in range(7)]
    for config in ({}, {"kind": "dataset"}):
        one = side(cells, config=config)
        found, said = compare(one, one).before, summarize(cells, run=one.run).totals
        assert said.cases == 7
        assert found.totals == found.paired == said
