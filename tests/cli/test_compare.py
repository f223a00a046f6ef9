"""`assay compare`: two runs, or two agents of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from assay.store.records import CellRecord, RunRecord
from assay.store.runs import Store
from tests.command_line import assay, result
from tests.report_files import ReportFile


def store_run(root: Path, run: str, rewards: Mapping[str, Sequence[float | None]]) -> None:
    """A finished run: for each model, the rewards of its cases; None is an error."""
    with Store.open(str(root / ".assay")) as store:
        store.create_run(RunRecord(id=run, created_at="2026-11-21T09:00:00Z", label=f"l{run}"))
        for model, given in rewards.items():
            for number, reward in enumerate(given):
                cell = CellRecord(
                    run_id=run,
                    case=f"c{number}",
                    harness="h",
                    model=model,
                    status="error" if reward is None else "graded",
                    reward=reward,
                    passed=None if reward is None else reward >= 1.0,
                    answer=f"{reward}",
                )
                store.add_cell(cell, {})
        store.finish_run(run)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    store_run(tmp_path, "one", {"a": [1.0] * 8, "b": [0.0] * 8})
    store_run(tmp_path, "two", {"a": [1.0] * 5 + [0.5] * 3, "b": [0.0] * 7 + [None]})
    return tmp_path


def test_a_drop_beyond_the_bar_exits_with_1_and_says_where(root: Path) -> None:
    done = assay("compare", "one", "ltwo", "--model", "a", "--max-drop", "0.02", cwd=root)
    assert done.returncode == 1, done.stderr
    assert "FAIL: a drop of 0.19 is more than 0.02" in done.stdout
    assert "1.00 → 0.50  c5" in done.stdout
    assert "answer: 1.0 → 0.5" in done.stdout
    assert "too few" not in done.stdout
    assert assay("compare", "one", "two", "--model", "a", cwd=root).returncode == 0


def test_two_models_of_one_run_are_compared(root: Path) -> None:
    done = assay("compare", "one", "--model", "b", "--model", "a", "--json", cwd=root)
    found = cast("dict[str, Any]", result(done))
    assert (done.returncode, found["finding"], found["better"]) == (0, "better", 8)
    assert found["after"]["agents"] == [{"harness": "h", "model": "a"}]


def test_one_model_against_another_across_runs(root: Path) -> None:
    words = ("one", "two", "--model", "a", "--model", "b", "--json")
    found = cast("dict[str, Any]", result(assay("compare", *words, cwd=root)))
    assert (found["pairs"], found["after"]["lost"]) == (7, {"error": 1})


def test_html_is_one_file_in_which_nothing_recorded_runs(root: Path) -> None:
    store_run(root, "evil", {"<script>alert(1)</script>": [0.0] * 8})
    words = ("one", "evil", "--model", "a", "--model", "<script>alert(1)</script>")
    done = assay("compare", *words, "--html", "c.html", cwd=root)
    page = ReportFile(root / "c.html")
    assert done.returncode == 0
    assert "WORSE" in page.text
    assert page.data["ending"] == "fail"
    assert page.data["comparison"]["after"]["agents"][0]["model"] == "<script>alert(1)</script>"
    assert len(page.all("script")) == 2


def test_rows_of_grade_compare_too(tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text("- {type: exact_match}\n", "utf-8")
    for name, answer in (("old", "yes"), ("new", "no")):
        rows = [f'{{"id": "{n}", "answer": "{answer}", "expected": "yes"}}\n' for n in range(7)]
        (tmp_path / f"{name}.jsonl").write_text("".join(rows), "utf-8")
    ids = [
        cast("dict[str, Any]", result(done)["run"])["id"]
        for name in ("old", "new")
        for done in [assay("grade", f"{name}.jsonl", "g.yaml", "--json", cwd=tmp_path)]
    ]
    done = assay("compare", *ids, cwd=tmp_path)
    assert "WORSE: mean reward 1.00 to 0.00 over 7 cases" in done.stdout
    assert "old.jsonl → " in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("one",), "nothing to compare it with"),
        (("one", "tow"), "did you mean 'two'"),
        (("two", "latest", "--max-drop", "0"), "two and latest are the same run"),
        (("one", "two", "--model", "aa"), "did you mean 'a'"),
        (("one", "two", "--model", "a", "--model", "b", "--model", "a"), "given 3 times"),
        (("one", "two", "--case", "none"), "no cell in common"),
    ],
)
def test_what_makes_no_sense_is_refused(root: Path, words: tuple[str, ...], says: str) -> None:
    done = assay("compare", *words, cwd=root)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr
