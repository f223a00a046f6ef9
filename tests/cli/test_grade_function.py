"""`assay grade --function`: a dataset through one function, as a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from assay.scoring import Json
from tests.command_line import assay, cells, cells_of, numbers_of, result
from tests.written_files import write_rows

HEAD = "async def grade(thread: StringThread) -> float:\n"
EXACT = """
from adaptive_harmony import StringThread

async def grade(thread: StringThread) -> float:
    completion = thread.completion() or ""
    expected = thread.metadata.get("expected", "")
    return 1.0 if completion.strip() == expected.strip() else 0.0
"""

pytestmark = pytest.mark.sandbox


def write(root: Path, rows: list[dict[str, Json]], function: str = EXACT) -> None:
    """Write a dataset and a function."""
    write_rows(root / "rows.jsonl", rows)
    (root / "grade.py").write_text(function, "utf-8")


def graded(
    root: Path, *more: str, by: str = "grade.py"
) -> tuple[int, list[dict[str, Any]], dict[str, Any]]:
    """Grade, and give the exit status, the cells in the rows' order and everything else."""
    done = assay("grade", "rows.jsonl", by, "--json", *more, cwd=root)
    assert done.stdout, done.stderr
    found = result(done)
    rows = cells_of(found)
    return done.returncode, sorted(rows, key=line_of), found


def line_of(cell: dict[str, Any]) -> int:
    return int(str(cell["file"]).rpartition(":")[2])


def evidence(cell: dict[str, Any]) -> dict[str, Any]:
    """What the function's score has beside it."""
    (node,) = cell["subscores"]
    return cast("dict[str, Any]", node["metadata"])


def message(completion: str, expected: str, **more: Json) -> dict[str, Json]:
    return {
        "messages": [{"role": "user", "content": "2+2?"}],
        "completion": completion,
        "metadata": {"expected": expected},
        **more,
    }


def test_graders_are_named_in_one_way_files_functions_and_stored_ones(tmp_path: Path) -> None:
    """A stored grader could be calibrated and served, and graded no file into a run."""
    (tmp_path / "f.py").write_text("async def grade(thread) -> float:\n    return 0.5\n", "utf-8")
    (tmp_path / "g.yaml").write_text("- {type: exact_match}\n", "utf-8")
    (tmp_path / "rows.jsonl").write_text('{"answer": "a", "expected": "a"}\n', "utf-8")
    for made in (("exact", "g.yaml"), ("half", "f.py")):
        done = assay("graders", "create", *made, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    wanted = [("g.yaml", 1.0, 1.0), ("exact", 1.0, 1.0), ("exact@1", 1.0, 1.0)]
    wanted += [("f.py", 0.5, 0.0), ("half@1", 0.5, 0.0)]
    for named, reward, threshold in wanted:
        (cell,) = cells(assay("grade", "rows.jsonl", named, "--json", cwd=tmp_path))
        assert (cell["reward"], cell["threshold"]) == (reward, threshold), named
    done = assay("grade", "rows.jsonl", "half@1", "--out", "graded/", cwd=tmp_path)
    assert "1 row" in done.stdout, done.stderr
    shown = assay("report", "--case", "1", cwd=tmp_path).stdout
    assert "half@1" in shown
    done = assay("grade", "rows.jsonl", "exact@2", cwd=tmp_path)
    assert (done.returncode, "'exact' has no version 2" in done.stderr) == (2, True)


def test_a_table_labels_and_a_threshold_go_with_a_function_too(tmp_path: Path) -> None:
    rows = [message("4", "4", right=True), message("5", "4", right=False)]
    write(tmp_path, rows)
    done = assay("grade", "rows.jsonl", "grade.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 graded cells scored, mean reward 0.50; any score passes" in done.stdout
    assert "passed  " not in done.stdout.splitlines()[-3]
    assert "✓ 1" not in done.stdout  # the 0.0 is not said to have passed
    assert "2 scored" in done.stderr
    code, found, rest = graded(tmp_path, "--label", "right")
    assert (code, [one["file"] for one in found]) == (1, ["rows.jsonl:1", "rows.jsonl:2"])
    config = rest["run"]["config"]
    assert config["tier"] in ("bwrap", "landlock")
    assert config["limits"]["cpu_seconds"] == 2.0
    agreement = numbers_of(rest)["agreement"]
    assert (agreement["tp"], agreement["tn"], agreement["fp"], agreement["fn"]) == (1, 1, 0, 0)
    assert graded(tmp_path, "--threshold", "1")[0] == 1


def test_an_invalid_function_is_refused_with_its_checks(tmp_path: Path) -> None:
    """For people: tests/contract."""
    write(tmp_path, [message("4", "4")], "def grade(thread):\n    return 1\n")
    done = assay("grade", "rows.jsonl", "grade.py", "--json", cwd=tmp_path)
    assert done.returncode == 2
    assert "grade.py: structure: line 1: 'grade' must be 'async def'" in done.stderr
    found = result(done)
    assert (found["valid"], found["cells"]) == (False, [])
    assert [check["name"] for check in found["checks"]] == ["syntax", "structure"]


@pytest.mark.sandbox
def test_attack_what_a_function_raises_reaches_no_terminal_as_it_is(tmp_path: Path) -> None:
    raising = HEAD + "    raise ValueError('\\x1b[2J\\x1b]0;owned\\x07\\u202esome')\n"
    write(tmp_path, [message("4", "4")], raising)
    done = assay("grade", "rows.jsonl", "grade.py", cwd=tmp_path)
    assert (done.returncode, "some" in done.stderr) == (2, True), done.stderr
    assert not set("\x1b\x07\u202e") & set(done.stderr)
