"""`assay runs promote`: the work of a cell becomes a recording that is worth the same.

What it refuses: tests/contract.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.store.restore import read_snapshot
from assay.store.runs import Store
from assay.types.trace import AgentStep, Trace
from tests.command_line import assay, cells_of, result
from tests.written_files import write_files

CASE = """\
id: kit
task: {prompt: Solve it.}
source: {path: source}
matrix: {harnesses: [replay], models: [work]}
graders:
  - {type: files, name: solved, patterns: ["x = 2"]}
  - {type: contains, name: told, substring: done, weight: 2}
  - {type: efficiency, name: cheap, target_tool_calls: 1}
"""
SCRIPT = """\
set -e
echo 'x = 2' > kit.py
rm gone.txt
rm -r old
echo now a file > old
rm plain
mkdir plain
echo inside > plain/file
ln -s kit.py link
ln -s /etc/passwd out
mkdir empty
printf 'odd\\n' > 'a name'
"""


def write(root: Path, name: str, text: str) -> None:
    write_files(root / "evals" / "kit", {name: text})


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for name in ("gone.txt", "old/one.txt", "plain", "same.txt"):
        write(tmp_path, f"source/{name}", "as it was\n")
    write(tmp_path, "source/kit.py", "x = 1\n")
    write(tmp_path, "case.yaml", CASE)
    write(tmp_path, "recordings/work/run.sh", SCRIPT)
    write(tmp_path, "recordings/work/answer.txt", "It is done.\n")
    return tmp_path


def cells(suite: Path, *words: str) -> list[dict[str, Any]]:
    done = assay("run", "evals", *words, "--json", cwd=suite)
    assert done.returncode in (0, 1, 3), done.stderr
    return cells_of(result(done))


def tree(suite: Path) -> dict[str, Any]:
    """What the newest run's only cell left behind."""
    with Store.open(str(suite / ".assay")) as store:
        (digest,) = store.snapshots(store.run("latest").id)
        return dict(read_snapshot(store.home, digest))


@pytest.mark.sandbox
def test_a_promoted_cell_is_played_with_the_same_score_and_the_same_work(suite: Path) -> None:
    (before,) = cells(suite)
    left = tree(suite)
    done = assay("runs", "promote", "latest", "kit", "--name", "kept/one", cwd=suite)
    assert done.returncode == 0, done.stderr
    assert "assay run evals/kit --harness replay --model kept/one" in done.stdout
    assert "left out: out: it leads out of the directory" in done.stderr
    (after,) = cells(suite, "--harness", "replay", "--model", "kept/one")
    assert (before["reward"], after["reward"]) == (1.0, 1.0), (before["error"], after["error"])
    assert [part["value"] for part in after["subscores"]] == [1.0, 1.0, 1.0]
    assert after["answer"] == before["answer"]
    del left["out"]
    assert tree(suite) == left


@pytest.fixture
def answered(tmp_path: Path) -> Path:
    """A run whose agent has no workspace to speak of, and says nothing of what it did."""
    case = CASE.replace("source: {path: source}\n", "").replace("[replay]", "[teller]")
    write(tmp_path, "case.yaml", case)
    write(tmp_path, "harnesses.yaml", "teller: {argv: [printf, 'It is done.\\r\\n\\n']}\n")
    return tmp_path


@pytest.mark.sandbox
def test_what_a_harness_does_not_tell_is_not_known_of_its_recording_either(answered: Path) -> None:
    (before,) = cells(answered)
    assay("runs", "promote", "latest", "kit", "--name", "kept", cwd=answered)
    (after,) = cells(answered, "--harness", "replay", "--model", "kept")
    skipped = [part["status"] for part in before["subscores"]]
    assert "skipped" in skipped
    assert [part["status"] for part in after["subscores"]] == skipped
    assert after["reward"] == before["reward"]
    assert after["answer"] == before["answer"]


def test_a_recording_is_replaced_where_that_is_asked_for_and_a_trace_that_is_none_is_named(
    tmp_path: Path,
) -> None:
    words = ("runs", "promote", "latest", "kit", "--trial", "1", "--name", "kept")
    root = tmp_path
    write(root, "case.yaml", CASE.replace("source: {path: source}\n", "").replace("replay", "echo"))
    cells(root, "--trials", "2")
    write(root, "recordings/kept/answer.txt", "before")
    write(root, "recordings/kept/mine.txt", "mine")
    kept = root / "evals/kit/recordings/kept"
    assert assay(*words, cwd=root).returncode == 2
    assert [path.read_text() for path in sorted(kept.iterdir())] == ["before", "mine"]
    assert assay(*words, "--force", "--json", cwd=root).returncode == 0
    assert (kept / "answer.txt").read_text() == "Solve it.\n"
    assert not (kept / "mine.txt").exists()
    traces = {"torn": "{", "list": "[]", "number": '{"steps": 3}'}
    for name, text in traces.items():
        write(root, f"recordings/{name}/trace.json", text)
    models = [word for name in traces for word in ("--model", name)]
    found = cells(root, "--harness", "replay", *models, "--trials", "1")
    assert [cell["status"] for cell in found] == ["error"] * 3
    assert all("trace.json: not a trace" in cell["error"] for cell in found)


def test_a_promoted_cell_takes_as_long_as_the_work_did(tmp_path: Path) -> None:
    budget = CASE.replace("source: {path: source}\n", "").partition("graders:")[0]
    budget += "graders:\n  - {type: trace, name: quick, max_seconds: 100}\n"
    write(tmp_path, "case.yaml", budget)
    began, ended = (f"2026-11-21T09:00:{seconds}+00:00" for seconds in ("00", "50"))
    step = AgentStep(content="It is done.", done=True, started_at=began, ended_at=ended)
    text = json.dumps(Trace(steps=[step]).to_dict())
    write(tmp_path, "recordings/work/trace.json", text)
    (before,) = cells(tmp_path)
    promoted = assay("runs", "promote", "latest", "kit", "--name", "kept", cwd=tmp_path)
    assert promoted.returncode == 0, promoted.stderr
    (after,) = cells(tmp_path, "--harness", "replay", "--model", "kept")
    assert (before["reward"], after["reward"]) == (1.0, 1.0), (before["error"], after["error"])
