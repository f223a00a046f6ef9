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
from syrupy.assertion import SnapshotAssertion

from assay.errors import InputError
from assay.reports.plain import one_line
from assay.reports.statistics import pass_k_text
from assay.reports.summary import MAX_ROWS, NotGraded, Summary, Tally, summarize, verdict
from assay.scoring.json_safe import Json
from assay.scoring.records import as_json
from assay.statistics.intervals import clustered_interval, mean_interval, wilson
from assay.store.decisions import HELD
from assay.store.records import NOT_GRADED, UNCLAMPED, CellRecord, RunRecord
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


def test_counts_and_coverage_and_an_error_is_never_a_zero_in_the_mean() -> None:
    cells = [graded("a", 1.0), graded("b", 0.5), error("c"), skipped("d")]
    summary = summarize(lambda: iter(cells))
    assert summary.left_out == 0
    totals = summary.totals
    assert (totals.total, totals.graded, totals.passed, totals.failed) == (4, 2, 1, 1)
    assert (totals.errors, totals.skipped, totals.cases) == (1, 1, 2)
    assert totals.coverage == 0.5
    assert totals.reward == mean_interval([1.0, 0.5])
    assert totals.pass_rate == wilson(1, 2)


@each("reward", [None, nan, inf, -0.5, 1.5, True])
def test_graded_without_a_usable_reward_is_an_error(reward: float | None) -> None:
    cell = CellRecord(run_id="r", case="a", status="graded", reward=reward, passed=True)
    summary = summarize([cell])
    assert (summary.totals.errors, summary.totals.graded) == (1, 0)
    assert "not a reward" in summary.causes[0].text


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
    # With one case its trials are the sample; whether they passed is derived.
    cells = [graded("a", r, trial=t, threshold=0.5) for t, r in enumerate((0.0, 0.5, 1.0), 1)]
    totals = summarize(cells).totals
    assert (totals.reward, totals.pass_rate) == (mean_interval([0.0, 0.5, 1.0]), wilson(2, 3))


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
    assert [each.k for each in summarize([graded("a", 1.0)]).totals.pass_k] == [1]
    (*_, none) = summarize([graded("a", 1.0), error("a", trial=2)]).totals.pass_k
    assert pass_k_text(none) == "no case has 2 graded trials"


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
    assert not summarize([cells[1], replace(cells[1], trial=4)]).groups[0].flaky
    scored = [graded("a", 0.5, threshold=0.0), error("a", trial=2)]
    assert summarize(scored).groups[0].ended == ("scored", "error")


def test_leaderboard_is_by_mean_reward_and_ungraded_agents_come_last() -> None:
    cells = [
        graded("a", 0.2, harness="h", model="low"),
        graded("a", 0.9, harness="h", model="high"),
        error("a", harness="h", model="broken"),
    ]
    board = summarize(cells).leaderboard
    assert [row.model for row in board] == ["high", "low", "broken"]
    assert board[2].totals.reward.mean is None
    alike = [graded("a", 0.0, harness=h, model=m) for h, m in ("bx", "by", "ax")]
    alike.append(error("a", harness="0"))  # by its name it would be first
    board = summarize(alike).leaderboard
    assert [row.harness + row.model for row in board] == ["ax", "bx", "by", "0"]
    assert {(row.case, row.ended, row.flaky) for row in board} == {("", (), False)}
    # Coordinates that look alike when joined stay apart.
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
    assert [(cause.count, cause.text, cause.key) for cause in causes] == [
        (3, "GraderError: 503 after 0 tries", "GraderError: # after # tries"),
        (1, "SandboxError: no bwrap", "SandboxError: no bwrap"),
    ]


def test_a_flood_of_different_errors_is_bounded() -> None:
    words = ["".join(random.Random(n).choices("abcdefgh", k=12)) for n in range(300)]
    causes = summarize([error("c", word) for word in words]).causes
    assert len(causes) == 101
    assert sum(cause.count for cause in causes) == 300
    assert (causes[0].text, causes[0].key) == ("other causes", "")
    (cause,) = summarize([error("c", "why " * 99)]).causes
    assert cause.text == one_line("why " * 99, 300)


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


def test_labels_measure_verdicts(snapshot: SnapshotAssertion) -> None:
    yes, no = {"label": True}, {"label": False}
    cells = [graded("a", 1.0, notes=yes), graded("b", 0.0, notes=no), graded("c", 1.0, notes=no)]
    found = summarize([*cells, error("d", notes=yes), graded("x", 1.0)]).agreement
    assert found is not None
    assert found["kappa"] == pytest.approx(0.4)
    assert found["accuracy_interval"] == [wilson(2, 3).low, wilson(2, 3).high]
    assert {name: str(value)[:9] for name, value in found.items()} == snapshot


def test_labels_measure_scores_and_those_of_both_kinds_are_numbers() -> None:
    alone = summarize([graded("a", 1.0, notes={"label": True})]).agreement
    assert alone is not None
    assert alone["kappa_interval"] is None
    said = {0.1: 0.2, 0.5: 0.6, 1.0: 0.9}
    cells = [graded(f"c{score}", score, notes={"label": label}) for score, label in said.items()]
    found = summarize(cells).agreement
    assert found is not None
    assert found["kind"] == "score"
    assert found["mean_absolute_error"] == pytest.approx(0.1)
    both: list[tuple[float, bool | float]] = [(1.0, True), (0.5, 0.5), (0.0, False)]
    cells = [graded(f"c{reward}", reward, notes={"label": label}) for reward, label in both]
    found = summarize(cells).agreement
    assert found is not None
    assert (found["kind"], found["mean_absolute_error"]) == ("score", 0.0)


def summary_of(*, passed: int = 0, failed: int = 0, errors: int = 0, skips: int = 0) -> Summary:
    cells = [graded(f"p{n}", 1.0) for n in range(passed)]
    cells += [graded(f"f{n}", 0.0) for n in range(failed)]
    cells += [error(f"e{n}") for n in range(errors)]
    return summarize([*cells, *(skipped(f"s{n}") for n in range(skips))])


def run_of(planned: int, malformed: Json = None) -> RunRecord:
    return RunRecord(id="r", created_at="", planned=planned, config={"malformed": malformed})


def partly(share: float = 0.25, **graders: str) -> CellRecord:
    return graded("partly", 1.0, notes={NOT_GRADED: {"share": share, "graders": {**graders}}})


LONG = "why " * 99
ALIKE = [
    *(graded("p", 1.0, threshold=0.5, cost_usd=0.5, tokens=3), graded("f", 0.2, threshold=0.5)),
    *(graded("s", 0.4, threshold=0.0), partly(judge="no model"), partly(0.5, tests="no tests")),
    graded("c", 1.0, flags=("canary",), assurance="model", notes={UNCLAMPED: 1.5}),
    *(error("e", "E: 1"), error("e", "F: 2", notes={"label": True}), skipped("k")),
    *(replace(skipped("k"), notes={HELD: {}}), graded("l", 0.0, notes={"label": False})),
]
DATASET = RunRecord(id="r", created_at="", planned=40, config={"kind": "dataset"})


@given(st.lists(st.tuples(st.sampled_from(ALIKE), st.integers(1, 4)), max_size=8))
def test_rows_that_are_alike_may_be_counted_at_once(rows: list[tuple[CellRecord, int]]) -> None:
    one, many = Tally(run=DATASET), Tally(run=DATASET)
    for cell, times in rows:
        many.count(cell, times)
        for _ in range(times):
            one.count(cell)
    assert many.summary() == one.summary()


@given(st.lists(st.sampled_from(ALIKE), max_size=12))
def test_rows_come_to_what_cells_of_as_many_cases_come_to(cells: list[CellRecord]) -> None:
    cells = [replace(cell, case=f"{n}", harness="h", model="m") for n, cell in enumerate(cells)]
    rows, alone = summarize(cells, run=DATASET), summarize(cells)
    assert rows == replace(alone, missing=40 - len(cells))
    assert verdict(replace(rows, missing=0), strict=True) == verdict(alone, strict=True)


def test_the_first_rows_of_each_outcome_have_groups() -> None:
    tally = Tally(run=DATASET)
    for number in range(MAX_ROWS + 5):
        tally.add(graded(f"p{number}", 1.0))
    tally.count(graded("f", 0.0))
    assert [tally.has(state) for state in ("pass", "fail", "error")] == [True, True, False]
    assert not tally.summary().rates
    tally.show(graded("f", 0.0))
    found = tally.summary()
    assert (len(found.groups), found.left_out, found.missing) == (MAX_ROWS + 1, 5, 0)
    assert (found.groups[-1].case, found.groups[-1].ended) == ("f", ("fail",))
    assert tally.summary(with_groups=False) == replace(found, groups=())
    assert not Tally().has("pass")
    tally.show(graded("x", 1.0, content="fine"))
    assert tally.summary().skipped == ""
    tally.show(skipped("x"))
    assert tally.summary().skipped == "no trace"


SKIPPED = {
    "one cell": NotGraded(cells=1, share=0.25, graders={"a": "no key"}),
    "many cells and graders": NotGraded(
        cells=1_200, share=0.01, graders=dict.fromkeys("abcdefg", "")
    ),
    "five graders": NotGraded(cells=2, share=0.0012, graders=dict.fromkeys("abcde", "")),
    "a gate with a long name": NotGraded(cells=1, share=0.0, graders={"a" * 99: LONG}),
    "all of it": NotGraded(cells=1, share=1.0, graders={}),
}


def test_what_was_skipped_of_graded_cells_is_told(snapshot: SnapshotAssertion) -> None:
    assert {name: str(one) for name, one in SKIPPED.items()} == snapshot


def test_skipped_graders_are_said_as_first_and_their_share_is_the_largest() -> None:
    cells = [partly(0.2, a="1", b="2"), partly(0.5, b="3", c="4", d="5", e="6", f="7")]
    cells += [partly(0.1, g="8"), graded("x", 1.0), replace(PASSED, notes={NOT_GRADED: {}})]
    graders = dict(zip("abcdefg", "1245678", strict=True))
    found = summarize(cells).not_graded
    assert found == NotGraded(cells=4, share=0.5, graders=graders)
    assert str(found).endswith("in 4 cells (a, b, c, d, e and 2 more: 1)")


WAITS = replace(skipped("h"), notes={HELD: {}})
LEFT_OUT = "0.25 of the weight was not graded (judge: no key)"
BY_PASSING = "the 1 graded cell passed"
PASSED, PARTLY = graded("a", 1.0), partly(judge="no key")
NOTHING = "NO VERDICT: nothing was graded: "
NO_WORDS = replace(WAITS, content="", notes={})


def test_strict_takes_no_skipped_cell_for_a_verdict() -> None:
    decided = verdict(summary_of(passed=2, skips=1), strict=True)
    line = "NO VERDICT: 1 cell was skipped; all of 2 graded cells passed"
    assert (decided.code, decided.line) == (3, line)
    assert verdict(summary_of(passed=2), strict=True).code == 0
    cells = [PARTLY, skipped("s"), skipped("t")]
    line = f"NO VERDICT: {LEFT_OUT} and 2 cells were skipped; {BY_PASSING}"
    assert verdict(summarize(cells), strict=True).line == line
    assert verdict(summarize(cells[1:]), strict=True).line == f"{NOTHING}2 cells were skipped"


def test_fail_under_judges_the_mean_and_not_single_cells() -> None:
    half = summary_of(passed=1, failed=1)
    assert verdict(half, fail_under=0.5).code == 0
    assert verdict(half, fail_under=0.51).code == 1
    line = "PASS: mean reward 0.50 over 2 graded cells reaches 0.50; 1 failed"
    assert verdict(half, fail_under=0.5).line == line
    assert [verdict(half, fail_under=bar).code for bar in (0.0, 1.0, 0.5 + 9e-10)] == [0, 1, 0]
    low_bar = summarize([graded("a", 0.4, threshold=0.2)])
    assert verdict(low_bar, fail_under=0.5).line.startswith("FAIL: mean reward 0.40 over 1 graded")

    assert verdict(summary_of(passed=1, errors=1), fail_under=0.0).code == 3  # it hides no error


def test_rounding_decides_nothing_and_digits_enough_are_shown_to_tell() -> None:
    line = verdict(summarize([graded("a", 0.6996)]), fail_under=0.7).line
    assert "0.6996" in line
    assert "is below 0.7000" in line
    cells = [graded("a", 0.1), graded("b", 0.7)]
    assert 0.1 + 0.7 < 0.8
    assert verdict(summarize(cells), fail_under=0.4).code == 0


@each("bar", [nan, -0.1, 1.1, inf])
def test_fail_under_must_be_a_reward(bar: float) -> None:
    with pytest.raises(InputError, match=r"^fail_under is .* \(a mean reward in \[0, 1\]\)$"):
        verdict(summary_of(passed=1), fail_under=bar)


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


RATED, PASSED_B = _trials("a", 9, 1, pass_rate=0.8), graded("b", 1.0)
SKIPPED_RATE = replace(skipped("a"), notes={"rates": {"pass rate": 0.8}})
VERDICTS: dict[str, tuple[Summary, int]] = {
    "all passed": (summary_of(passed=3), 0),
    "one passed": (summary_of(passed=1), 0),
    "one is skipped": (summary_of(passed=2, skips=1), 0),
    "one failed": (summary_of(passed=2, failed=1), 1),
    "one broke": (summary_of(passed=2, errors=1), 3),
    "one broke and one failed": (summary_of(passed=1, failed=1, errors=1), 3),
    "the only one is skipped": (summary_of(skips=1), 3),
    "all are skipped": (summary_of(skips=2), 3),
    "nothing": (summary_of(), 3),
    "all broke": (summary_of(errors=2), 3),
    "any score passes": (summarize([graded("a", 0.5, threshold=0.0)]), 0),
    "a part was not graded": (summarize([PARTLY]), 0),
    "skipped with a long reason": (summarize([replace(NO_WORDS, content=LONG)]), 3),
    "skipped without a reason": (summarize([NO_WORDS]), 3),
    "one waits, one is skipped": (summarize([skipped("a"), WAITS]), 3),
    "two wait, one is not there": (summarize([WAITS, WAITS], run=run_of(3)), 3),
    "two are not there": (summarize([], run=run_of(2)), 3),
    "two are not there beside one that passed": (summarize([PASSED], run=run_of(3)), 3),
    "a malformed row": (summarize([PASSED], run=run_of(0, {"rows": 1})), 0),
    "malformed rows beside one that failed": (
        summarize([graded("a", 0.5)], run=run_of(0, {"rows": 2})),
        1,
    ),
    "malformed rows alone": (summarize([], run=run_of(0, {"rows": 3})), 3),
    "malformed rows, whose number is none": (summarize([PASSED], run=run_of(0, {"rows": "2"})), 0),
    "malformed rows of another form": (summarize([PASSED], run=run_of(0, 2)), 0),
    "all of it": (summarize([PASSED, WAITS, error("e")], run=run_of(3, {"rows": 1})), 3),
    "one flake of ten": (summarize(_trials("a", 9, 1, pass_rate=0.9)), 0),
    "two flakes of ten": (summarize(_trials("a", 8, 2, pass_rate=0.9)), 1),
    "a flake without a rate": (summarize(_trials("a", 9, 1)), 1),
    "none of two for the least rate": (summarize(_trials("a", 0, 2, pass_rate=1e-9)), 1),
    "one trial is too few for a rate": (summarize(_trials("a", 0, 1, pass_rate=0.5)), 3),
    "one trial is too few beside one that passed": (
        summarize([*_trials("a", 0, 1, pass_rate=0.5), PASSED_B]),
        3,
    ),
    "two trials are too few for three": (summarize(_trials("a", 2, 0, **{"pass^3": 0.5})), 3),
    "a rate beside one that passed": (summarize([*RATED, PASSED_B]), 0),
    "a rate beside one that failed": (summarize([*RATED, graded("b", 0.0)]), 1),
    "a rate beside one that passed and two that failed": (
        summarize([*RATED, PASSED_B, graded("c", 0.0), graded("d", 0.0)]),
        1,
    ),
    "a rate beside one that was missed": (
        summarize([*RATED, *_trials("b", 5, 5, pass_rate=0.8)]),
        1,
    ),
    "each agent by itself": (
        summarize(
            [*RATED, *(replace(one, harness="x") for one in _trials("a", 1, 9, pass_rate=1))]
        ),
        1,
    ),
    "a rate of trials of which one broke": (summarize([*RATED, error("a", trial=11)]), 3),
    "a rate of what was skipped": (summarize([SKIPPED_RATE, PASSED_B]), 0),
    # 1 - C(5, 2) / C(10, 2) is 0.78, C(5, 2) / C(10, 2) is 0.22.
    **{
        f"{name} of {least}": (summarize(_trials("a", 5, 5, **{name: least})), code)
        for name, least, code in (
            *(("pass@2", 0.77, 0), ("pass@2", 0.79, 1)),
            *(("pass^2", 0.22, 0), ("pass^2", 0.23, 1)),
        )
    },
    **{
        f"{many} rates": (
            summarize([one for n in range(many) for one in _trials(f"c{n}", 9, 1, pass_rate=0.8)]),
            0,
        )
        for many in (2, 3, 4, 5)
    },
}


def test_code_and_line_come_from_one_decision_and_nothing_left_out_is_missing_in_the_line(
    snapshot: SnapshotAssertion,
) -> None:
    decided = {name: verdict(summary) for name, (summary, _) in VERDICTS.items()}
    assert {name: one.code for name, one in decided.items()} == {
        name: code for name, (_, code) in VERDICTS.items()
    }
    assert {name: one.line for name, one in decided.items()} == snapshot


def test_the_mean_decides_alone_where_it_is_asked_for() -> None:
    half = summarize(_trials("a", 5, 5, pass_rate=0.8))
    assert (verdict(half).code, verdict(half, fail_under=0.5).code) == (1, 0)
