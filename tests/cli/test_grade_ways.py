"""`assay grade` into the store and into a directory: one verdict, one exit status.

That malformed rows are told before anything is graded: tests/contract and tests/eval.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from assay.scoring.json_safe import Json
from tests.command_line import assay, numbers_of

WAYS = ("store", "directory")
EXACT = "- {type: exact_match}\n"
JUDGE = "- {type: model_judge, model: gpt-5, rubric: rubric.md}\n"
HALF = EXACT + JUDGE
GOOD: dict[str, Json] = {"answer": "a", "expected": "a"}
BAD: dict[str, Json] = {"answer": "b", "expected": "a"}
BROKEN: dict[str, Json] = {"answer": "a"}


def grade(root: Path, way: str, *more: str, data: str = "rows.jsonl") -> tuple[int, str]:
    """Grade what is there; the exit status and the line of the verdict."""
    out = ("--out", "parts/") if way == "directory" else ()
    done = assay("grade", data, *out, *more, cwd=root)
    lines = [line for line in done.stdout.splitlines() if _is_verdict(line)]
    return done.returncode, lines[-1] if lines else done.stderr


def _is_verdict(line: str) -> bool:
    return any(word in line for word in ("PASS", "FAIL", "NO VERDICT"))


def write(root: Path, *rows: Json | str, graders: str = EXACT) -> None:
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    (root / "rows.jsonl").write_text("".join(line + "\n" for line in lines))
    (root / "g.yaml").write_text(graders)
    (root / "rubric.md").write_text("Is the answer right?\n")


CASES: dict[str, tuple[tuple[Json, ...], str, tuple[str, ...], int, str]] = {
    "passed": ((GOOD, GOOD), EXACT, (), 0, "PASS: all of 2 graded cells passed"),
    "failed": ((GOOD, BAD), EXACT, (), 1, "FAIL: 1 of 2 graded cells failed"),
    "error": ((GOOD, BROKEN), EXACT, (), 3, "NO VERDICT: 1 of 2 cells could not be graded; "),
    "partly": ((GOOD,), HALF, (), 0, "PASS, BUT 0.50 of the weight was not graded (model_judge"),
    "partly strict": ((GOOD,), HALF, ("--strict",), 3, "NO VERDICT: 0.50 of the weight was not"),
    "skipped": ((GOOD,), JUDGE, (), 3, "the cell was skipped: model_judge: there"),
    "reached": ((GOOD, BAD), EXACT, ("--fail-under", "0.5"), 0, "PASS: mean reward 0.50 over 2"),
    "missed": ((GOOD, BAD), EXACT, ("--fail-under", "0.6"), 1, "FAIL: mean reward 0.50 over 2"),
    "scored": ((BAD,), EXACT, ("--threshold", "0"), 0, "1 graded cell scored, mean reward 0.00"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_a_verdict_and_an_exit_status_are_the_same_wherever_rows_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, name: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    rows, graders, options, code, said = CASES[name]
    write(tmp_path, *rows, graders=graders)
    found, line = grade(tmp_path, way, "g.yaml", *options)
    assert (found, said in line) == (code, True), line


@pytest.mark.parametrize("data", ["rows.jsonl", "rows.parquet"])
def test_what_nobody_graded_is_told_from_the_parts_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    write(tmp_path, GOOD, graders=HALF)
    table: Any = import_module("pyarrow").Table.from_pylist([GOOD])
    import_module("pyarrow.parquet").write_table(table, tmp_path / "rows.parquet")
    for tallies in ("kept", "lost"):
        if tallies == "lost":
            (tally,) = (tmp_path / "parts" / "tallies").iterdir()
            tally.unlink()
        code, line = grade(tmp_path, "directory", "g.yaml", "--strict", data=data)
        assert (code, "0.50 of the weight was not graded (model_judge: " in line) == (3, True), line
    done = assay("report", "parts/", cwd=tmp_path)
    assert (done.returncode, "BUT 0.50 of the weight" in done.stdout) == (0, True), done.stdout


def test_where_any_score_passes_parts_have_passed_nothing(tmp_path: Path) -> None:
    write(tmp_path, GOOD, BAD)
    command = ("grade", "rows.jsonl", "g.yaml", "--threshold", "0", "--out", "parts/")
    done = assay(*command, cwd=tmp_path)
    assert (done.returncode, "passed" in done.stdout) == (0, False), done.stdout
    assert "2 scored" in done.stdout


@pytest.mark.parametrize("way", WAYS)
def test_the_summary_is_the_same_wherever_rows_go(tmp_path: Path, way: str) -> None:
    write(tmp_path, GOOD, BAD, BROKEN, "{", GOOD)
    out = ("--out", "parts/") if way == "directory" else ()
    more = ("--on-bad-row", "skip", "--json")
    done = assay("grade", "rows.jsonl", "g.yaml", *out, *more, cwd=tmp_path)
    found = numbers_of(json.loads(done.stdout))
    names = ("total", "graded", "passed", "failed", "scored", "errors", "skipped", "malformed")
    assert [found[name] for name in names] == [4, 3, 2, 1, 0, 1, 0, 1]
    assert found["reward"]["mean"] == pytest.approx(2 / 3)
    (cause,) = found["causes"]
    assert (cause["count"], "needs 'expected'" in cause["text"]) == (1, True)
    grounds = "1 of 4 cells could not be graded; 1 of 3 graded cells failed"
    line = f"NO VERDICT: {grounds}; 1 malformed row left out"
    assert (done.returncode, found["code"], found["verdict"]) == (3, 3, line)
