"""Whether groups of trials would teach a trainer anything: by hand, and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.reports.trainability import ENDS, floors_of, trainability
from assay.store import CellRecord, RunRecord, Store
from tests.command_line import assay

RUN = "20261123-040506-ab12"
GROUPS: dict[str, list[float | None]] = {
    "learns": [1.0, 0.0, 0.5, 1.0],
    "half-broken": [1.0, None, 0.0],
    "right": [1.0, 1.0],
    "wrong": [0.0, 0.0, None],
    "alike": [0.5, 0.5 + 1e-9],
    "lone": [0.7],
    "broken": [None, None],
}


def _cells() -> list[CellRecord]:
    return [
        CellRecord(
            run_id=RUN,
            case=case,
            harness="h",
            trial=trial,
            status="error" if reward is None else "graded",
            reward=reward,
            passed=None if reward is None else reward >= 1.0,
            error="it broke" if reward is None else "",
            seconds=float(trial),
            flags=("odd",) if case == "right" else (),
            subscores=({"name": "tests", "value": reward, "metadata": {"seconds": 2.0 * trial}},)
            if reward is not None
            else (),
        )
        for case, rewards in sorted(GROUPS.items())
        for trial, reward in enumerate(rewards, 1)
    ]


def test_groups_come_to_what_a_trainer_would_make_of_them() -> None:
    seen = trainability(_cells(), floors={"learns": 1.0, "half-broken": 0.2, "unknown": 0.0})
    assert dict(seen.ends) == {
        "learnable": 2, "all_right": 1, "all_wrong": 1, "all_alike": 1, "too_few": 2,
    }  # fmt: skip
    assert set(seen.ends) == set(ENDS)
    assert (seen.groups, seen.cells) == (7, 17)
    assert seen.share == pytest.approx(2 / 7)
    assert (seen.ungraded, seen.ungraded_groups, seen.flagged) == (4, 3, 2)
    assert seen.bins == (4, 0, 0, 0, 0, 3, 0, 1, 0, 5)
    assert seen.trials == {1: 1, 2: 3, 3: 2, 4: 1}
    assert seen.spread == pytest.approx((0.5 + 0.41457809879) / 2)
    assert seen.seconds == (2.0, 4.0)
    assert seen.graders == {"tests": (4.0, 8.0)}
    assert seen.unbeaten == 1  # of those the floor is known of


def test_what_counts_as_equal_is_the_callers_choice() -> None:
    assert trainability(_cells(), tolerance=1e-12).ends["all_alike"] == 0
    assert trainability(_cells(), tolerance=1.0).ends["learnable"] == 0


def test_a_run_of_nothing_teaches_nothing() -> None:
    seen = trainability([])
    assert (seen.groups, seen.share, seen.spread, seen.seconds) == (0, None, None, None)
    assert floors_of(_cells()) == {
        "learns": 1.0, "half-broken": 1.0, "right": 1.0, "wrong": 0.0, "alike": 0.5 + 1e-9,
        "lone": 0.7,
    }  # fmt: skip


def test_the_command_shows_it_and_fails_where_too_little_teaches(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / ".assay")) as store:
        store.create_run(RunRecord(id=RUN, created_at="2026-11-23T04:05:06Z", planned=17))
        for cell in _cells():
            store.add_cell(cell, {})
    shown = assay("trainability", "--floor", RUN, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "7 groups of trials: 1 of 1 trial, 3 of 2 trials" in shown.stdout
    assert "learnable       2   29 %" in shown.stdout
    assert "no reward  4 of 17 cells, in 3 groups" in shown.stdout
    assert "floor      5 groups never beat it" not in shown.stdout
    assert "p50 2.0 s, p95 4.0 s a cell" in shown.stdout
    told = assay("trainability", RUN, "--json", "--at-least", "0.5", cwd=tmp_path)
    said = json.loads(told.stdout)
    assert (told.returncode, said["passed"], said["ends"]["learnable"]) == (1, False, 2)
    enough = assay("trainability", "--at-least", "0.25", cwd=tmp_path)
    assert enough.returncode == 0
    wrong = assay("trainability", "nothing", cwd=tmp_path)
    assert (wrong.returncode, "there is no run 'nothing'" in wrong.stderr) == (2, True)
