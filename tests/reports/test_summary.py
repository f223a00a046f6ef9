"""A run in numbers, and the verdict that is both the printed line and the exit code."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.reports.summary import Summary, Tally, summarize, verdict
from assay.scoring.records import as_json
from assay.statistics.intervals import clustered_interval, mean_interval, wilson
from assay.store.records import CellRecord, RunRecord
from tests.each import each


def graded(case: str, reward: float, *, passed: bool | None = None, **more: Any) -> CellRecord:
    return CellRecord(
        run_id="r",
        case=case,
        status="graded",
        reward=reward,
        passed=passed,
        **more,
    )


def error(case: str, text: str = "GraderError: down", **more: Any) -> CellRecord:
    return CellRecord(run_id="r", case=case, status="error", error=text, **more)


def skipped(case: str) -> CellRecord:
    return CellRecord(run_id="r", case=case, status="skipped", content="no trace")


def test_counts_and_coverage() -> None:
    summary = summarize([graded("a", 1.0), graded("b", 0.5), error("c"), skipped("d")])
    totals = summary.totals
    assert (totals.total, totals.graded, totals.passed, totals.failed) == (4, 2, 1, 1)
    assert (totals.errors, totals.skipped, totals.cases) == (1, 1, 2)
    assert totals.coverage == 0.5
    assert totals.reward == mean_interval([1.0, 0.5])
    assert totals.pass_rate == wilson(1, 2)


def test_cells_may_come_from_a_function() -> None:
    assert summarize(lambda: iter([graded("a", 1.0)])).totals.passed == 1


def test_an_error_is_never_a_zero_in_the_mean() -> None:
    assert summarize([graded("a", 1.0), error("b")]).totals.reward.mean == 1.0


@each("reward", [None, nan, inf, -0.5, 1.5, True])
def test_graded_without_a_usable_reward_is_an_error(reward: float | None) -> None:
    cell = CellRecord(run_id="r", case="a", status="graded", reward=reward, passed=True)
    summary = summarize([cell])
    assert (summary.totals.errors, summary.totals.graded) == (1, 0)
    assert "not a reward" in summary.causes[0].text


def test_pass_is_derived_where_it_was_not_recorded() -> None:
    cells = [graded("a", 0.7, threshold=0.7), graded("b", 0.69, threshold=0.7)]
    assert summarize(cells).totals.passed == 1


def test_trials_of_a_case_are_one_cluster() -> None:
    cells = [graded("a", 1.0, trial=t) for t in (1, 2, 3)] + [graded("b", 0.0, trial=1)]
    totals = summarize(cells).totals
    assert totals.reward == clustered_interval([[1.0, 1.0, 1.0], [0.0]])
    assert totals.pass_rate.mean == 0.75
    assert totals.pass_rate.n == 2
    naive = wilson(3, 4)
    assert totals.pass_rate.low is not None
    assert naive.low is not None
    assert totals.pass_rate.low < naive.low


def test_with_one_case_its_trials_are_the_sample() -> None:
    cells = [graded("a", r, trial=t, threshold=0.5) for t, r in enumerate((0.0, 0.5, 1.0), 1)]
    totals = summarize(cells).totals
    assert totals.reward == mean_interval([0.0, 0.5, 1.0])
    assert totals.pass_rate == wilson(2, 3)


def test_pass_at_k_is_unbiased_and_says_what_it_covers() -> None:
    cells = [graded("a", float(t > 1), trial=t) for t in (1, 2, 3)]  # 2 of 3
    cells += [graded("b", 0.0, trial=t) for t in (1, 2, 3)]  # 0 of 3
    cells += [graded("c", 1.0, trial=1), error("c", trial=2), error("c", trial=3)]
    one, three = summarize(cells).totals.pass_k
    assert (one.k, one.groups, one.of) == (1, 3, 3)
    assert one.at_k == pytest.approx((2 / 3 + 0 + 1) / 3)
    assert (three.k, three.groups, three.of) == (3, 2, 3)
    assert three.at_k == pytest.approx(0.5)
    assert three.hat_k == 0.0


def test_pass_at_k_of_a_single_trial_is_given_once() -> None:
    assert [each.k for each in summarize([graded("a", 1.0)]).totals.pass_k] == [1]


def test_an_unknown_cost_is_counted_and_not_added_as_zero() -> None:
    cells = [graded("a", 1.0, cost_usd=0.5, tokens=10), graded("b", 1.0), skipped("c")]
    totals = summarize([*cells, graded("d", 1.0, cost_usd=nan, tokens=-1)]).totals
    assert (totals.cost_usd, totals.cost_unknown) == (0.5, 2)
    assert (totals.tokens, totals.tokens_unknown) == (10, 2)
    none = summarize([graded("b", 1.0)]).totals
    assert (none.cost_usd, none.cost_unknown, none.tokens) == (None, 1, None)


def test_groups_know_their_trials_and_whether_they_are_flaky() -> None:
    cells = [graded("a", 1.0, trial=1), graded("a", 0.0, trial=2), error("a", trial=3)]
    (row,) = summarize(cells).groups
    assert row.ended == ("pass", "fail", "error")
    assert row.flaky
    assert not summarize(cells[:1]).groups[0].flaky
    assert not summarize([cells[0], cells[2]]).groups[0].flaky


def test_leaderboard_is_by_mean_reward_and_ungraded_agents_come_last() -> None:
    cells = [
        graded("a", 0.2, harness="h", model="low"),
        graded("a", 0.9, harness="h", model="high"),
        error("a", harness="h", model="broken"),
    ]
    board = summarize(cells).leaderboard
    assert [row.model for row in board] == ["high", "low", "broken"]
    assert board[2].totals.reward.mean is None


def test_coordinates_that_look_alike_when_joined_stay_apart() -> None:
    cells = [graded("a", 1.0, harness="x/y", model="z"), graded("a", 0.0, harness="x", model="y/z")]
    assert [row.totals.total for row in summarize(cells).leaderboard] == [1, 1]


def test_different_graders_never_average_silently() -> None:
    same = [graded("a", 1.0, digest="d1", trial=1), graded("a", 0.0, digest="d1", trial=2)]
    other = graded("a", 0.0, digest="d2", trial=3)
    assert summarize([*same, graded("b", 1.0, digest="d9")]).mixed == ()
    summary = summarize([*same, other, graded("b", 1.0, digest="d9")])
    assert summary.mixed == ("a",)
    assert [row.mixed for row in summary.groups] == [True, False]
    assert summary.leaderboard[0].mixed
    # A cell without a grade was not graded by anything.
    assert summarize([*same, error("a", digest="d2")]).mixed == ()


def test_errors_are_grouped_by_cause_whatever_their_numbers() -> None:
    cells = [error(f"c{n}", f"GraderError: 503 after {n} tries") for n in range(3)]
    causes = summarize([*cells, error("x", "SandboxError: no bwrap")]).causes
    assert [(cause.count, cause.text) for cause in causes] == [
        (3, "GraderError: 503 after 0 tries"),
        (1, "SandboxError: no bwrap"),
    ]


def test_a_flood_of_different_errors_is_bounded() -> None:
    words = ["".join(random.Random(n).choices("abcdefgh", k=12)) for n in range(300)]
    causes = summarize([error("c", word) for word in words]).causes
    assert len(causes) == 101
    assert sum(cause.count for cause in causes) == 300
    assert causes[0].text == "other causes"


@given(st.permutations(list(range(12))))
def test_numbers_do_not_depend_on_the_order(order: list[int]) -> None:
    cells = [
        graded(f"c{n % 4}", n / 12, trial=n // 4 + 1, seconds=n / 7, cost_usd=n / 3)
        for n in range(12)
    ]
    expected = summarize(cells).totals
    assert summarize([cells[n] for n in order]).totals == expected


def test_a_summary_is_plain_json_even_when_empty() -> None:
    cells = [graded("a", 0.5, cost_usd=0.1, trial=t) for t in (1, 2)] + [error("b"), skipped("c")]
    cells.append(graded("d", 1.0, notes={"label": True}))
    for summary in (summarize(cells), summarize([])):
        written = as_json(summary)
        assert json.loads(json.dumps(written, allow_nan=False)) == written


def test_labels_measure_verdicts() -> None:
    yes, no = {"label": True}, {"label": False}
    cells = [graded("a", 1.0, notes=yes), graded("b", 0.0, notes=no), graded("c", 1.0, notes=no)]
    found = summarize([*cells, error("d", notes=yes), graded("x", 1.0)]).agreement
    assert found is not None
    assert (found["kind"], found["n"], found["unscored"]) == ("verdict", 3, 1)
    assert (found["tp"], found["fp"], found["tn"], found["fn"]) == (1, 1, 1, 0)
    assert found["kappa"] == pytest.approx(0.4)


def test_labels_measure_scores() -> None:
    said = {0.1: 0.2, 0.5: 0.6, 1.0: 0.9}
    cells = [graded(f"c{score}", score, notes={"label": label}) for score, label in said.items()]
    found = summarize(cells).agreement
    assert found is not None
    assert found["kind"] == "score"
    assert found["mean_absolute_error"] == pytest.approx(0.1)


def summary_of(*, passed: int = 0, failed: int = 0, errors: int = 0, skips: int = 0) -> Summary:
    cells = [graded(f"p{n}", 1.0) for n in range(passed)]
    cells += [graded(f"f{n}", 0.0) for n in range(failed)]
    cells += [error(f"e{n}") for n in range(errors)]
    return summarize([*cells, *(skipped(f"s{n}") for n in range(skips))])


@each(
    ("counts", "code", "line"),
    [
        ({"passed": 3}, 0, "PASS: all of 3 graded cells passed"),
        ({"passed": 1}, 0, "PASS: the 1 graded cell passed"),
        ({"passed": 2, "skips": 1}, 0, "PASS: all of 2 graded cells passed (1 skipped)"),
        ({"passed": 2, "failed": 1}, 1, "FAIL: 1 of 3 graded cells failed"),
        (
            {"passed": 2, "errors": 1},
            3,
            "NO VERDICT: 1 of 3 cells could not be graded; all of 2 graded cells passed",
        ),
        (
            {"passed": 1, "failed": 1, "errors": 1},
            3,
            "NO VERDICT: 1 of 3 cells could not be graded; 1 of 2 graded cells failed",
        ),
        ({"skips": 1}, 3, "NO VERDICT: nothing was graded: the cell was skipped: no trace"),
        ({"skips": 2}, 3, "NO VERDICT: nothing was graded: all 2 cells were skipped: no trace"),
        ({}, 3, "NO VERDICT: nothing was graded: there are no cells"),
        (
            {"errors": 2},
            3,
            "NO VERDICT: nothing was graded: 2 of 2 cells could not be graded",
        ),
    ],
)
def test_code_and_line_come_from_one_decision(counts: dict[str, int], code: int, line: str) -> None:
    decided = verdict(summary_of(**counts))
    assert (decided.code, decided.line) == (code, line)


def test_strict_takes_no_skipped_cell_for_a_verdict() -> None:
    decided = verdict(summary_of(passed=2, skips=1), strict=True)
    line = "NO VERDICT: 1 cell was skipped; all of 2 graded cells passed"
    assert (decided.code, decided.line) == (3, line)
    assert verdict(summary_of(passed=2), strict=True).code == 0


def test_fail_under_judges_the_mean_and_not_single_cells() -> None:
    half = summary_of(passed=1, failed=1)
    assert verdict(half, fail_under=0.5).code == 0
    assert verdict(half, fail_under=0.51).code == 1
    assert "1 failed" in verdict(half, fail_under=0.5).line
    low_bar = summarize([graded("a", 0.4, threshold=0.2)])
    assert verdict(low_bar, fail_under=0.5).line.startswith("FAIL: mean reward 0.40 over 1 graded")


def test_fail_under_shows_digits_enough_to_tell() -> None:
    line = verdict(summarize([graded("a", 0.6996)]), fail_under=0.7).line
    assert "0.6996" in line
    assert "is below 0.7000" in line


def test_fail_under_does_not_stumble_over_rounding() -> None:
    cells = [graded("a", 0.1), graded("b", 0.7)]
    assert 0.1 + 0.7 < 0.8
    assert verdict(summarize(cells), fail_under=0.4).code == 0


def test_fail_under_cannot_hide_an_error() -> None:
    decided = verdict(summary_of(passed=1, errors=1), fail_under=0.0)
    assert decided.code == 3


@each("bar", [nan, -0.1, 1.1, inf])
def test_fail_under_must_be_a_reward(bar: float) -> None:
    with pytest.raises(InputError, match="fail_under"):
        verdict(summary_of(passed=1), fail_under=bar)


def test_an_interrupted_run_does_not_pass() -> None:
    run = RunRecord(id="r", created_at="", planned=3)
    decided = verdict(summarize([graded("a", 1.0)], run=run))
    assert decided.code == 3
    assert "2 planned cells have no result" in decided.line


def test_a_tally_keeps_no_cell() -> None:
    tally = Tally()
    text = "x" * 10_000
    for n in range(50):
        tally.add(graded("a", 1.0, trial=n, answer=text, content=text))
    assert text not in repr(vars(tally))
    assert tally.summary().totals.total == 50
    assert len(tally.summary().groups[0].ended) == 50


def _trials(case: str, passed: int, failed: int, **rates: float) -> list[CellRecord]:
    notes = {"rates": {name.replace("_", " "): least for name, least in rates.items()}}
    return [
        graded(case, float(n < passed), trial=n + 1, notes=notes if rates else {})
        for n in range(passed + failed)
    ]


def test_one_flake_fails_no_run_where_its_case_asks_for_a_rate() -> None:
    found = verdict(summarize(_trials("a", 9, 1, pass_rate=0.9)))
    assert found.code == 0
    assert found.line == (
        "PASS: a: 9 of 10 trials passed, pass rate 0.90 "
        "(95 % interval 0.60\N{EN DASH}0.98) reaches 0.90"
    )
    found = verdict(summarize(_trials("a", 0, 2, pass_rate=1e-9)))
    assert (found.code, "is below" in found.line) == (1, True)
    found = verdict(summarize(_trials("a", 0, 1, pass_rate=0.5)))
    assert (found.code, "1 graded trial is too few for pass rate" in found.line) == (3, True)
    found = verdict(summarize(_trials("a", 8, 2, pass_rate=0.9)))
    assert (found.code, "pass rate 0.80" in found.line) == (1, True)
    assert verdict(summarize(_trials("a", 9, 1))).code == 1


def test_each_rate_and_every_other_cell_decides() -> None:
    rated = _trials("a", 9, 1, pass_rate=0.8)
    found = verdict(summarize([*rated, graded("b", 1.0)]))
    assert (found.code, found.line.endswith("; 1 other graded cell passed")) == (0, True)
    found = verdict(summarize([*rated, graded("b", 0.0)]))
    assert (found.code, "; 1 of 1 other graded cell failed" in found.line) == (1, True)
    found = verdict(summarize([*rated, *_trials("b", 5, 5, pass_rate=0.8)]))
    assert (found.code, "1 of 2 pass rates missed: b: 5 of 10" in found.line) == (1, True)
    other = [replace(cell, harness="x") for cell in _trials("a", 1, 9, pass_rate=0.8)]
    assert verdict(summarize([*rated, *other])).code == 1  # each agent by itself


@each(
    ("name", "least", "code"),
    [("pass@2", 0.77, 0), ("pass@2", 0.79, 1), ("pass^2", 0.22, 0), ("pass^2", 0.23, 1)],
)
def test_the_chance_of_one_or_of_each_of_k_trials_is_asked_for(
    name: str, least: float, code: int
) -> None:
    cells = _trials("a", 5, 5, **{name: least})
    # 1 - C(5, 2) / C(10, 2) is 0.78, C(5, 2) / C(10, 2) is 0.22.
    found = verdict(summarize(cells))
    assert found.code == code
    assert name in found.line


def test_a_rate_of_trials_that_were_not_graded_is_no_verdict() -> None:
    cells = _trials("a", 2, 0, **{"pass^3": 0.5})
    found = verdict(summarize(cells))
    assert (found.code, "2 graded trials are too few for pass^3" in found.line) == (3, True)
    assert verdict(summarize([*_trials("a", 9, 0, pass_rate=0.8), error("a", trial=10)])).code == 3
    skip = replace(skipped("a"), notes={"rates": {"pass rate": 0.8}})
    assert verdict(summarize([skip, graded("b", 1.0)])).code == 0


def test_the_mean_decides_alone_where_it_is_asked_for() -> None:
    cells = _trials("a", 5, 5, pass_rate=0.8)
    assert verdict(summarize(cells), fail_under=0.5).code == 0
