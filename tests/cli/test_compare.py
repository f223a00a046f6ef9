"""`assay compare`: two runs, or two agents of one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.store.records import CellRecord, RunRecord
from assay.store.runs import Store
from tests.command_line import assay, result, write_case
from tests.report_files import ReportFile


def told(root: Path, *words: str) -> dict[str, Any]:
    """The object that a command prints."""
    return result(assay(*words, "--json", cwd=root))


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


def test_two_models_of_one_run_or_of_two_are_compared(root: Path) -> None:
    found = told(root, "compare", "one", "--model", "b", "--model", "a")
    assert (found["finding"], found["better"]) == ("better", 8)
    assert found["after"]["agents"] == [{"harness": "h", "model": "a"}]
    found = told(root, "compare", "one", "two", "--model", "a", "--model", "b")
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


_ROWS = """
{"id": "s1", "answer": "4", "expected": 4, "topic": "sums", "tags": ["easy"]}
{"id": "s2", "answer": "5", "expected": 5, "topic": "sums", "tags": ["easy", "short"]}
{"id": "p1", "answer": "7", "expected": 6, "topic": "products", "tags": ["hard"]}
{"id": "p2", "answer": "8", "expected": 8, "about": {"level": 2}, "topic": "products"}
{"id": "w1", "answer": "none", "topic": "words"}
"""


def _graded(root: Path, rows: str, *more: str) -> dict[str, Any]:
    (root / "rows.jsonl").write_text(rows.lstrip())
    (root / "g.yaml").write_text("- {type: numeric_match}\n")
    return told(root, "grade", "rows.jsonl", "g.yaml", *more)["overview"]


def _slices(overview: dict[str, Any]) -> dict[str, tuple[int, int, float | None]]:
    found = ((one["value"], one["totals"]) for one in overview["broken_down"]["slices"])
    return {value: (t["total"], t["graded"], t["reward"]["mean"]) for value, t in found}


def test_a_run_is_broken_down_by_a_field_of_its_rows(tmp_path: Path) -> None:
    overview = _graded(tmp_path, _ROWS, "--by", "topic")
    assert _slices(overview) == {
        "products": (2, 2, 0.5),
        "sums": (2, 2, 1.0),
        "words": (1, 0, None),
    }
    (first,) = [one["text"] for one in overview["lines"] if one["label"] == "By topic"]
    assert first.startswith("products: 0.50 95 % interval")

    def by(field: str) -> dict[str, tuple[int, int, float | None]]:
        return _slices(told(tmp_path, "report", "--by", field)["overview"])

    assert by("metadata.tags") == {
        "hard": (1, 1, 0.0),
        "easy": (2, 2, 1.0),
        "short": (1, 1, 1.0),
        "(none)": (2, 1, 1.0),
    }
    assert set(by("about.level")) == {"2", "(none)"}
    assert _graded(tmp_path, _ROWS.replace("7", "6"))["broken_down"] is None


def test_long_values_that_begin_alike_are_told_apart(tmp_path: Path) -> None:
    begin = "What is the sum of these numbers, " * 6
    rows = [
        {"topic": begin + end, "answer": "4", "expected": expected}
        for end, expected in (("a", 4), ("b", 5))
    ]
    overview = _graded(tmp_path, "\n".join(map(json.dumps, rows)), "--by", "topic")
    assert [found[1:] for found in _slices(overview).values()] == [(1, 0.0), (1, 1.0)]
    shown = [one["text"] for one in overview["lines"] if "What is the sum" in one["text"]]
    assert len({text.partition(": ")[0] for text in shown}) == 2


def test_a_comparison_says_where_two_runs_differ_most(tmp_path: Path) -> None:
    _graded(tmp_path, _ROWS)
    _graded(tmp_path, _ROWS.replace('"answer": "4"', '"answer": "9"').replace('"5", "e', '"9", "e'))
    after, before = (str(run["id"]) for run in told(tmp_path, "runs")["items"])
    done = assay("compare", before, after, "--by", "topic", cwd=tmp_path)
    assert "they differ most in sums: 1.00 → 0.00" in " ".join(done.stdout.split())
    slices = told(tmp_path, "compare", before, after, "--by", "topic")["slices"]
    assert [(one["value"], one["cases"], one["before"], one["after"]) for one in slices] == [
        ("sums", 2, 1.0, 0.0),
        ("products", 2, 0.5, 0.5),
    ]
    assert slices[0]["low"] is not None
    done = assay("compare", before, after, "--by", "tpic", cwd=tmp_path)
    assert (done.returncode, "did you mean 'topic'?" in done.stderr) == (2, True)


def test_cases_are_told_apart_by_their_metadata(tmp_path: Path) -> None:
    for name, word in (("one", "hello"), ("two", "never")):
        write_case(
            tmp_path,
            f"""
            id: {name}
            task: {{prompt: hello}}
            metadata: {{topic: {name}s, tags: [a, {name}], solution: secret}}
            matrix: {{harnesses: [echo], models: [none]}}
            graders: [{{type: contains, substring: {word}}}]
            """,
            name,
        )
    found = told(tmp_path, "run", "evals", "--by", "topic")
    assert _slices(found["overview"]) == {"twos": (1, 1, 0.0), "ones": (1, 1, 1.0)}
    assert "secret" not in str(found["cells"][0]["record"]["notes"])
    assay("regrade", "latest", cwd=tmp_path)
    assert _slices(told(tmp_path, "report", "--by", "tags")["overview"])["a"] == (2, 2, 0.5)


def test_what_nothing_can_be_said_of_is_not_blamed_on_the_field(root: Path) -> None:
    store_run(root, "three", {"c": []})
    overview = told(root, "report", "three", "--by", "x")["overview"]
    assert overview["broken_down"] == {"by": "x", "slices": [], "more": 0}
    done = assay("compare", "one", "two", "--model", "b", "--case", "c7", "--by", "x", cwd=root)
    assert (done.returncode, "NO VERDICT" in done.stdout) == (3, True), done.stderr
