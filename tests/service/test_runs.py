"""Runs looked through by windows: the same as going through all of their cells one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import cast

import pytest

from assay.errors import NotFoundError
from assay.registry.policy import Permissions
from assay.reports.outcome import ended
from assay.reports.review import run_summary
from assay.reports.run_records import CellCounts, CellPage
from assay.reports.summary import verdict
from assay.scoring.results import SubScore
from assay.service import runs
from assay.service.operation import LOCAL, Desk
from assay.statistics.intervals import Interval, wilson
from assay.store.database import Database
from assay.store.decisions import Decision, decide
from assay.store.kept_files import at_work, run_state
from assay.store.records import CellRecord, Packer, RunRecord, cell_row
from assay.store.runs import Store
from tests.each import each
from tests.stored_cells import graded_cell

RUN = "20261121-090830-ab12"
OLDER = "20261120-090830-cd34"


def _cell(number: int) -> CellRecord:
    """Every way to end, with texts that a search must not take for signs."""
    common = CellRecord(
        run_id=RUN,
        case=("100%", "1000", "a_b", "aXb", "Straße", "plain")[number % 6],
        harness=("echo", "replay")[number // 6 % 2],
        model=("", "m")[number // 12 % 2],
        trial=1 + number // 24,
        status="graded",
        reward=round(number % 5 / 4, 2),
        passed=number % 5 == 4,
        seconds=float(number),
        cost_usd=None if number % 4 == 0 else 0.01 * number,
        tokens=None if number % 3 == 0 else number,
    )
    if number % 7 == 3:
        return replace(
            common, status="error", reward=None, passed=None,
            error=f"no key after {number} s" if number % 2 else "refused",
        )  # fmt: skip
    if number % 7 == 5:
        notes = {"held": {"reward": 1.0}} if number % 2 else {"quoted": '"held":'}
        return replace(common, status="skipped", reward=None, passed=None, notes=notes)
    if number % 11 == 0:
        return replace(common, threshold=0.0, passed=True)
    if number % 13 == 0:
        return replace(common, threshold=0.0, passed=True, notes={"min_coverage": 1.0})
    return replace(common, flags=("edited tests",) if number % 9 == 1 else ())


CELLS = [_cell(number) for number in range(72)]
SORTS = ("reward", "cost", "tokens", "seconds", "trial", "case")


@pytest.fixture
def desk(database: Database) -> Desk:
    store = Store(database)
    for run, label in ((OLDER, "old"), (RUN, "new")):
        stored = RunRecord(
            id=run, created_at=f"{run[:4]}-{run[4:6]}-{run[6:8]}T09:08:30+00:00", label=label,
            config={"kind": "matrix", "request": {"paths": ["evals/x"]}}, planned=80,
        )  # fmt: skip
        store.create_run(stored)
    store.add_cell(replace(CELLS[0], run_id=OLDER), {})
    store.add_cell(replace(CELLS[1], reward=0.5, passed=False, flags=()), {})  # graded anew below
    for cell in CELLS:
        store.add_cell(cell, {})
    for cell in CELLS:
        if cell.flags or "held" in cell.notes:
            ruling = "zero" if cell.trial == 1 else "ok"
            decide(store, cell, Decision(ruling=ruling, by="ann"))
            break
    held = next(cell for cell in CELLS if "held" in cell.notes)
    decide(store, held, Decision(ruling="ok", by="ann"))
    return Desk(database, "", LOCAL, Permissions())


def _all(desk: Desk) -> list[CellRecord]:
    return list(Store(desk.database).cells(RUN))


def _window(desk: Desk, **asked: object) -> CellPage:
    return runs.list_cells.function(desk, RUN, **asked)


def _counts(found: CellPage) -> CellCounts:
    assert found.counts is not None
    return found.counts


def _keys(found: CellPage) -> list[tuple[str, str, str, int]]:
    return [(row.case, row.harness, row.model, row.trial) for row in found]


FILTERS: dict[str, tuple[dict[str, object], Callable[[CellRecord], bool]]] = {
    "all": ({}, lambda cell: True),
    "failed": ({"outcome": "fail"}, lambda cell: ended(cell) == "fail"),
    "two": ({"outcome": "pass,scored"}, lambda cell: ended(cell) in ("pass", "scored")),
    "errors": ({"outcome": "error"}, lambda cell: ended(cell) == "error"),
    "harness": ({"harness": "echo"}, lambda cell: cell.harness == "echo"),
    "no model": ({"model": ""}, lambda cell: not cell.model),
    "case": ({"case": "100%"}, lambda cell: cell.case == "100%"),
    "percent": ({"search": "0%"}, lambda cell: cell.case == "100%"),
    "underscore": ({"search": "A_"}, lambda cell: cell.case == "a_b"),
    "flagged": ({"flagged": True}, lambda cell: bool(cell.flags)),
    "held": ({"held": True}, lambda cell: cell.status == "skipped" and "held" in cell.notes),
    "cause": ({"cause": "no key after # s"}, lambda cell: cell.error.startswith("no key")),
    "both": (
        {"outcome": "fail", "flagged": True, "harness": "replay"},
        lambda cell: ended(cell) == "fail" and bool(cell.flags) and cell.harness == "replay",
    ),
}


@each("name", FILTERS)
def test_a_filter_finds_what_a_look_at_every_cell_finds(desk: Desk, name: str) -> None:
    asked, suits = FILTERS[name]
    every = _all(desk)
    wanted = [cell for cell in every if suits(cell)]
    found = _window(desk, **asked, limit=200)
    assert sorted(_keys(found)) == sorted(cell.key for cell in wanted)
    assert (found.total, _counts(found).cells) == (len(wanted), 72)
    by_key = {cell.key: cell for cell in wanted}
    for row, key in zip(found, _keys(found), strict=True):
        cell = by_key[key]
        assert (row.ended, row.reward, row.held) == (
            ended(cell), cell.reward, cell.status == "skipped" and "held" in cell.notes,
        )  # fmt: skip


@each("sort, descending", list(product(SORTS, (False, True))))
def test_parts_follow_each_other_and_what_is_unknown_comes_last(
    desk: Desk,
    sort: str,
    descending: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    asked: dict[str, object] = {"sort": sort, "descending": descending, "limit": 25}
    rows = [row for at in (0, 25, 50, 75) for row in _window(desk, **asked, offset=at)]
    assert len({(row.case, row.harness, row.model, row.trial) for row in rows}) == len(rows) == 72
    name = {"cost": "cost_usd"}.get(sort, sort)
    values: list[object] = [getattr(row, name) for row in rows]
    known = [value for value in values if value is not None]
    assert values == [*known, *[None] * (72 - len(known))]
    if sort != "case":  # databases put letters in orders of their own
        assert known == sorted(known, key=lambda value: cast("float", value), reverse=descending)


def test_a_cell_that_failed_says_which_parts_fell_short_and_why(desk: Desk) -> None:
    parts = (
        SubScore(name="style", value=1.0),
        SubScore(name="tests", value=0.25, reason="1 of 4 passed"),
        SubScore(name="format", value=0.0),
        SubScore(name="noted", value=0.0, weight=0.0),
    )
    failed = CellRecord(
        run_id=RUN, case="short", status="graded", reward=0.4, passed=False,
        subscores=tuple(part.to_dict() for part in parts),
    )  # fmt: skip
    store = Store(desk.database)
    store.add_cell(failed, {})
    store.add_cell(replace(failed, case="enough", passed=True, threshold=0.4), {})
    assert _window(desk, case="short").items[0].why == "format 0.00; tests 0.25: 1 of 4 passed"
    assert _window(desk, case="enough").items[0].why == ""
    gate = SubScore(name="builds", value=0.0, gate=True, reason="exit 2")
    rest = {"content": "gate builds did not pass", "subscores": (gate.to_dict(),)}
    store.add_cell(replace(failed, case="gate", reward=0.0, **rest), {})
    assert _window(desk, case="gate").items[0].why == "gate builds 0.00: exit 2"
    weak = replace(failed, case="weak", reward=1.0, subscores=(), assurance="shared")
    store.add_cell(replace(weak, min_assurance="separate"), {})
    assert "assurance `shared` is below `separate`" in _window(desk, case="weak").items[0].why
    odd = replace(failed, case="odd", reward=1.0, passed=True, notes={"unclamped": 7.0})
    store.add_cell(odd, {})
    assert _window(desk, case="odd").items[0].why == "7.00 was cut to 1.00"


def test_counts_beside_a_choice_are_those_of_the_other_choices(desk: Desk) -> None:
    every = _all(desk)
    found = _window(desk, outcome="fail", harness="echo")
    echo = [ended(cell) for cell in every if cell.harness == "echo"]
    counts = _counts(found)
    assert (counts.ends.passed, counts.ends.failed, counts.ends.errors) == (
        echo.count("pass"), echo.count("fail"), echo.count("error"),
    )  # fmt: skip
    failed = [cell for cell in every if ended(cell) == "fail"]
    assert {(one.harness, one.model): one.count for one in counts.agents} == {
        (harness, model): sum((c.harness, c.model) == (harness, model) for c in failed)
        for harness in ("echo", "replay")
        for model in ("", "m")
    }


def test_what_came_later_is_not_in_a_window_that_was_begun_before(desk: Desk) -> None:
    first = _window(desk, limit=1)
    store = Store(desk.database)
    store.add_cell(replace(CELLS[0], case="aaa-new"), {})
    store.add_cell(replace(CELLS[0], reward=1.0, passed=True), {})
    still = _window(desk, limit=200, until=first.last)
    assert (_counts(still).cells, "aaa-new" in {row.case for row in still}) == (72, False)
    assert _counts(_window(desk, limit=200)).cells == 73


def test_the_overview_is_what_the_report_says(desk: Desk) -> None:
    store = Store(desk.database)
    summary = run_summary(store, store.run(RUN))
    told = runs.show_run_overview.function(desk, "new")
    assert (told.verdict, told.code) == (verdict(summary).line, 3)
    assert told.missing == 8
    assert (told.totals.reward.mean, told.totals.reward.n) == (
        summary.totals.reward.mean, summary.totals.reward.n,
    )  # fmt: skip
    assert [cause.count for cause in told.causes] == [cause.count for cause in summary.causes]
    for cause in told.causes:
        assert _window(desk, cause=cause.key).total == cause.count
    row = told.run
    assert (row.ends, row.total) == (told.totals.ends, 72)
    assert (row.flagged, row.held, row.cases) == (
        told.totals.flagged, told.totals.held, told.totals.cases,
    )  # fmt: skip
    assert row.reward == pytest.approx(told.totals.reward.mean)
    assert row.cost_usd == pytest.approx(told.totals.cost_usd)
    assert (row.cost_unknown, row.seconds) == (told.totals.cost_unknown, told.totals.seconds)
    assert [line.label for line in told.lines][:2] == ["Cells", "Reward"]


def test_the_matrix_has_every_case_once_and_each_agent_in_its_column(desk: Desk) -> None:
    whole = runs.show_run_matrix.function(desk, RUN)
    assert whole.total == 6
    assert [(one.harness, one.model) for one in whole.agents] == [
        ("echo", ""), ("echo", "m"), ("replay", ""), ("replay", "m"),
    ]  # fmt: skip
    every = _all(desk)
    for row in whole:
        for agent, cell in zip(whole.agents, row.cells, strict=True):
            own = [c for c in every if c.key[:3] == (row.case, agent.harness, agent.model)]
            assert cell is not None
            # As reports have it: beside trials that could fail, one that could not has passed.
            told = [ended(one) for one in own]
            if cell.totals.has_verdicts:
                told = ["pass" if state == "scored" else state for state in told]
            assert sorted(cell.ended) == sorted(told)
    parts = [runs.show_run_matrix.function(desk, RUN, limit=4, offset=at) for at in (0, 4)]
    assert [row.case for part in parts for row in part] == [r.case for r in whole]
    worst = runs.show_run_matrix.function(desk, RUN, sort="worst")
    bad = [
        sum(cell.totals.ends.failed + cell.totals.ends.errors for cell in row.cells if cell)
        for row in worst
    ]
    assert bad == sorted(bad, reverse=True)


def test_a_run_says_whether_somebody_is_at_work_on_it(desk: Desk) -> None:
    def states() -> list[str]:
        return [row.state for row in runs.list_runs.function(desk).items]

    store = Store(desk.database)
    stopped = "unfinished" if "://" in desk.database.place else "interrupted"
    assert states() == [stopped, stopped]
    with at_work(store.home):
        assert states() == ["running", "unfinished"], "an older one may be at work, too"
    (row, _) = runs.list_runs.function(desk).items
    assert row.resume == f"assay run --resume {RUN}"
    seen = store.run(RUN)
    store.finish_run(RUN)
    (row, _) = runs.list_runs.function(desk).items
    assert (row.state, row.resume) == ("finished", "")
    assert run_state(store, seen) == "finished", "it ended while it was looked at"


def test_attack_more_decisions_than_a_query_has_parts_hide_no_run(desk: Desk) -> None:
    store, many = Store(desk.database), 600
    for run in ("much", "more"):
        store.create_run(RunRecord(id=run, created_at="2026-11-21T09:08:30+00:00"))
    cells = [graded_cell("much", f"c{n}", flags=("f",)) for n in range(many)]
    pack = Packer().pack
    store.add_rows("much", [(cell_row(cell), "", pack({}, "a cell")) for cell in cells])
    with desk.database.writing():
        for cell in cells:
            decide(store, cell, Decision(ruling="zero", by="ann"))
    found = {row.id: row for row in runs.list_runs.function(desk).items}
    assert (found["much"].ends.failed, found["much"].reward) == (many, 0.0)
    window = runs.list_cells.function(desk, "much", outcome="fail", limit=5)
    assert (window.total, _counts(window).ends.failed, _counts(window).ends.passed) == (
        many,
        many,
        0,
    )


def test_runs_are_found_by_label_id_and_path(desk: Desk) -> None:
    def found(text: str, **more: int) -> list[str]:
        return [row.id for row in runs.list_runs.function(desk, search=text, **more).items]

    assert found("NEW") == [RUN]
    assert found("cd34") == [OLDER]
    assert found("evals") == [RUN, OLDER]
    assert found("evals", limit=1, offset=1) == [OLDER]
    assert runs.list_runs.function(desk, search="evals", limit=1).total == 2
    assert found("nothing") == []
    for operation in (runs.show_run_overview, runs.show_run_matrix, runs.list_cells):
        with pytest.raises(NotFoundError):
            operation.function(desk, "none")


def test_a_pass_rate_in_a_list_has_an_interval_where_cells_are_independent(desk: Desk) -> None:
    store = Store(desk.database)
    for run, trials in (("single", 1), ("repeated", 2)):
        store.create_run(RunRecord(id=run, created_at="2026-11-21T09:08:30+00:00"))
        for case in range(10):
            for trial in range(1, trials + 1):
                store.add_cell(graded_cell(run, f"c{case}", float(case < 7), trial=trial), {})
    found = {row.id: row.pass_rate for row in runs.list_runs.function(desk).items}
    assert found["single"] == wilson(7, 10)
    assert found["repeated"] == Interval(0.7, None, None, 10)
    for run, rate in found.items():
        whole = runs.show_run_overview.function(desk, run).totals.pass_rate
        assert (rate.mean, rate.low or whole.low) == (whole.mean, whole.low)
