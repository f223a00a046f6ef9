"""A cell, opened: prompt, answer, trajectory, files and evidence, in every form of report."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.command_line import assay, cells, echo_case, result, summary, write_case
from tests.report_files import ReportFile
from tests.written_files import write_rows

STEPS = (
    {"type": "step", "messages": ["Be brief."]},
    {"type": "step", "source": "user", "messages": ["mend main.txt, please"]},
    {"type": "agent", "reasoning": "Look first.", "content": "I look at the file."},
    {"type": "tool", "call": {"name": "read", "arguments": {"path": "main.txt"}, "id": "1"}},
    {
        "type": "tool",
        "call": {"name": "edit", "arguments": {"path": "main.txt", "times": 2}, "id": "2"},
        "result": {"content": "no such line", "is_error": True, "id": "2"},
    },
)


def turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one case by two recordings, the first of which passes, and of a dataset."""
    root = tmp_path_factory.mktemp("opened")
    case = write_case(
        root,
        """
        id: c1
        task: {prompt: "mend main.txt, please"}
        source: {path: source}
        matrix: {harnesses: [replay], models: [fix, lazy]}
        graders:
          - {type: files, name: mended, patterns: ["fixed"]}
          - {type: numeric_match, expected: "42"}
        """,
    )
    (case / "source").mkdir()
    (case / "source" / "main.txt").write_text("one\nbroken\nthree\n", "utf-8")
    (case / "source" / "gone.txt").write_text("old\n", "utf-8")
    fix, lazy = (case / "recordings" / name for name in ("fix", "lazy"))
    (fix / "files").mkdir(parents=True)
    (fix / "files" / "main.txt").write_text("one\nfixed\nthree\n", "utf-8")
    (fix / "files" / "new.bin").write_bytes(b"\0" * 50)
    (fix / "deleted.txt").write_text("gone.txt\n", "utf-8")
    (fix / "answer.txt").write_text("That makes 42.", "utf-8")
    lines = [json.dumps(step) for step in STEPS]
    (fix / "trace.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    lazy.mkdir()
    (lazy / "answer.txt").write_text("I think it is 17.", "utf-8")
    assert assay("run", "evals", "--name", "matrix", cwd=root).returncode == 1
    rows = [
        {"id": "a", "question": "6 * 7?", "answer": "It is 17." + " so" * 1_000, "expected": "42"},
        {
            "id": "b",
            "messages": [turn("user", "6 * 7?"), turn("assistant", "42")],
            "expected": "42",
        },
    ]
    write_rows(root / "rows.jsonl", rows)
    (root / "graders.yaml").write_text("- {type: numeric_match}\n", "utf-8")
    graded = assay("grade", "rows.jsonl", "graders.yaml", cwd=root)
    assert graded.returncode == 1, graded.stderr
    return root


def opened(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return assay("report", *words, cwd=home)


def shown(home: Path, *words: str) -> list[str]:
    """What a report shows, without its name, its times and what differs from run to run."""
    text = opened(home, *words).stdout
    text = re.sub(r"[0-9]{8}-[0-9]{6}-[0-9a-f]+", "RUN", text)
    text = re.sub(r"[<0-9.]+ s\b|[0-9]{4}-[0-9-]+[T ][0-9:Z]+", "TIME", text)
    return [line.rstrip() for line in re.sub(r"\b[0-9a-f]{16,}\b", "DIGEST", text).splitlines()]


def test_a_cell_opens_in_the_terminal(home: Path, snapshot: SnapshotAssertion) -> None:
    """Whole: one that passes with all that its agent did; one that fails says what was read."""
    assert shown(home, "matrix", "--case", "c1", "--model", "fix") == snapshot(name="passing")
    assert shown(home, "matrix") == snapshot(name="failing")
    assert shown(home, "latest") == snapshot(name="rows")


def test_json_of_a_run_holds_its_trajectories_where_that_is_asked_for(home: Path) -> None:
    """A training pipeline reads a whole run, and had to ask for it case by case."""
    done = assay("report", "matrix", "--json", "--all", cwd=home)
    (one,) = cells(assay("report", "matrix", "--case=c1", "--model=fix", "--json", cwd=home))
    found = one["opened"]
    assert found["view"]["prompt"]["text"] == "mend main.txt, please"
    assert (len(found["steps"]["steps"]), len(found["files"]["files"])) == (6, 3)
    assert [cell for cell in cells(done) if cell["model"] == "fix"] == [one]
    assert len(cells(done)) == 2
    assert summary(done) == summary(assay("report", "matrix", "--json", cwd=home))
    old = assay("report", "matrix", "--json", "--full", cwd=home)
    assert (old.returncode, "it is --json --all" in old.stderr) == (2, True)


def test_html_and_junit_show_the_same(home: Path) -> None:
    opened(home, "matrix", "--html", "all.html", "--junit", "all.xml")
    page = ReportFile(home / "all.html")
    for said in ("mend main.txt, please", "+fixed", "17 is not 42: they are 25 apart"):
        assert said in page.said, said
    (cell, *_) = [one for one in page.data["run"]["opened"] if one["files"]["files"]]
    assert (len(cell["steps"]["steps"]), len(cell["outline"]["steps"])) == (6, 6)
    assert len(cell["files"]["files"]) == 3
    (failure,) = ET.parse(home / "all.xml").iter("failure")
    assert "17 is not 42: they are 25 apart" in str(failure.text)
    assert "mend main.txt, please" in str(failure.text)


def _opened(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The cells of a JSON report, opened."""
    return [cell["opened"] for cell in cells(done)]


def test_a_row_is_explained_from_the_whole_of_what_was_graded(home: Path) -> None:
    done = opened(home, "latest", "--case", "a", "--json")
    (found,) = _opened(done)
    assert found["view"]["prompt"]["text"] == "6 * 7?"
    assert len(found["view"]["answer"]["text"]) > 3_000
    (node,) = found["view"]["scores"]
    assert {fact["label"]: fact["text"]["text"] for fact in node["facts"]}["expected"] == "42"
    assert result(done)["run"]["planned"] == 2
    told = summary(done)
    assert (told["code"], told["verdict"]) == (1, "FAIL: 1 of 1 graded cell failed")
    (conversation,) = _opened(opened(home, "latest", "--case", "b", "--json"))
    (step,) = conversation["steps"]["steps"]
    assert (step["label"], step["text"]["text"], step["is_error"]) == ("user", "6 * 7?", False)


def test_a_cell_that_is_not_there_is_named(home: Path) -> None:
    for words, said in (
        ("--case c1 --model fxi", "has model 'fxi' (it has replay fix trial 1; replay lazy trial"),
        ("--case c1 --trial 2", "has trial 2 (it has"),
        ("--model fix", "say which cells of a case"),
    ):
        done = opened(home, "matrix", *words.split())
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_kept_workspace_is_laid_out_to_look_at(home: Path) -> None:
    several = assay("report", "matrix", "--case", "c1", "--workspace", "x", cwd=home)
    assert "say which with --harness, --model and --trial: replay fix trial 1" in several.stderr
    of = ("report", "matrix", "--case", "c1", "--model", "fix", "--workspace")
    done = assay(*of, "one", cwd=home)
    assert (done.returncode, done.stdout) == (0, "one\n"), done.stderr
    laid_out = home / "one"
    assert sorted(path.name for path in laid_out.iterdir()) == ["main.txt", "new.bin"]
    (laid_out / "main.txt").write_text("mine", "utf-8")  # a copy: the store's stays as it was
    again = assay(*of, "two", cwd=home)
    assert (again.returncode, (home / "two" / "main.txt").read_text()) == (0, "one\nfixed\nthree\n")
    assert "one is there already" in assay(*of, "one", cwd=home).stderr
    alone = assay("report", "matrix", "--workspace", "one", cwd=home)
    assert "--workspace is that of a case's cell (--case ID)" in alone.stderr
    rows = assay("report", "latest", "--case", "a", "--workspace", "x", cwd=home)
    assert (rows.returncode, "nothing is kept" in rows.stderr) == (2, True)


def test_a_workspace_that_is_lost_is_said_and_the_rest_is_shown(home: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(home / ".assay", copy / ".assay")
    shutil.rmtree(copy / ".assay" / "snapshots")
    done = assay("report", "matrix", "--case", "c1", "--model", "fix", cwd=copy)
    assert done.returncode == 0, done.stderr
    assert "the workspace that was kept cannot be read" in done.stdout
    assert "mend main.txt, please" in done.stdout


def test_an_exception_in_a_grader_of_ones_own_shows_file_line_and_traceback(
    tmp_path: Path,
) -> None:
    case = write_case(
        tmp_path,
        """
        id: c1
        task: {prompt: hello}
        matrix: {harnesses: [echo], models: [m]}
        graders: [{type: "python:own.py:Own"}]
        """,
    )
    (case / "own.py").write_text(
        "from assay.graders import Grader\n\n\nclass Own(Grader):\n"
        "    @classmethod\n    def compute_score(cls, answer=''):\n        return {}['k']\n",
        "utf-8",
    )
    done = assay("run", "evals", cwd=tmp_path)
    assert done.returncode == 3
    assert "KeyError: 'k' (evals/c1/own.py:7 in compute_score)" in " ".join(done.stdout.split())
    whole = assay("report", "latest", "--case", "c1", "--html", "p.html", cwd=tmp_path)
    assert "return {}['k']" in whole.stdout
    assert "return {}['k']" in ReportFile(tmp_path / "p.html").said


def test_of_many_trials_the_first_are_opened_and_the_rest_is_counted(tmp_path: Path) -> None:
    echo_case(tmp_path, trials=7)
    assay("run", "evals", cwd=tmp_path)
    some = assay("report", "latest", "--case", "c1", cwd=tmp_path).stdout
    assert some.count("✓ c1") == 5
    assert "… and 2 more: say which by --model, --harness or --trial, or --all" in some
    assert "✓ PASS: all of 7 graded cells passed" in some
    every = assay("report", "latest", "--case", "c1", "--all", cwd=tmp_path).stdout
    assert every.count("✓ c1") == 7
