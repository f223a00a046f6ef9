"""`assay regrade`: a second pass over what was kept."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree, rmtree
from subprocess import CompletedProcess
from typing import Any

import pytest

from assay.types.trace import AgentStep, Trace
from tests.command_line import assay, cells_of
from tests.written_files import write_files

pytestmark = pytest.mark.sandbox

CASE = """\
id: kit
task: {prompt: Solve it.}
source: {path: source}
matrix: {harnesses: [replay], models: [good, bad]}
graders:
  - {type: command, name: solved, cmd: "grep -q 2 kit.py"}
  - {type: command, name: tidy, cmd: "test ! -e conftest.py", weight: 0.5}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return write_suite(tmp_path)


def write_suite(root: Path) -> Path:
    files = {
        "case.yaml": CASE,
        "source/kit.py": "x = 1\n",
        "source/big.txt": "same\n" * 1000,
        "recordings/good/files/kit.py": "x = 2\n",
        "recordings/bad/files/kit.py": "x = 3\n",
        "recordings/bad/files/conftest.py": "evil\n",
    }
    write_files(root / "evals" / "kit", files)
    return root


@pytest.fixture(scope="module")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The suite with a run of it, and what that came to."""
    root = write_suite(tmp_path_factory.mktemp("suite"))
    return root, result(root, "run", "evals")


@pytest.fixture
def before(run_once: tuple[Path, dict[str, Any]], tmp_path: Path) -> dict[str, Any]:
    """What the run of `suite` came to, a copy of which is here."""
    copytree(run_once[0], tmp_path, dirs_exist_ok=True)
    return run_once[1]


def result(suite: Path, *words: str) -> dict[str, Any]:
    done = assay(*words, "--json", cwd=suite)
    assert done.returncode in (0, 1), done.stderr
    told = json.loads(done.stdout)
    return {**told, "cells": cells_of(told)}


def rewards(found: dict[str, Any]) -> dict[str, float]:
    return {cell["model"]: round(cell["reward"], 2) for cell in found["cells"]}


def change_case(suite: Path, old: str, new: str) -> None:
    file = suite / "evals" / "kit" / "case.yaml"
    file.write_text(file.read_text().replace(old, new))


def test_what_was_kept_is_graded_without_agent_or_source_and_a_changed_grader_says_why(
    tmp_path: Path, before: dict[str, Any]
) -> None:
    suite = tmp_path
    (suite / "evals" / "kit" / "source" / "kit.py").unlink()
    (suite / "evals" / "kit" / "recordings" / "good" / "files" / "kit.py").unlink()
    after = result(suite, "regrade", "latest")
    assert rewards(after) == rewards(before) == {"good": 1.0, "bad": 0.33}
    assert [c["notes"] for c in after["cells"]] == [c["notes"] for c in before["cells"]]
    assert "conftest.py: test runner configuration" in str(after["cells"][0]["notes"])
    change_case(suite, "grep -q 2", "grep -q 3")
    after = result(suite, "regrade", "latest")
    assert rewards(after) == {"good": 0.33, "bad": 1.0}
    assert {c["digest"] for c in before["cells"]}.isdisjoint(c["digest"] for c in after["cells"])
    reasons = [reason for change in after["changes"] for reason in change["reasons"]]
    assert any(r.startswith("solved 1.00 → 0.00: its grader changed") for r in reasons)
    assert "2 changed" in assay("report", "latest", cwd=suite).stdout


def test_what_counts_as_passing_is_what_the_case_says_now(suite: Path) -> None:
    change_case(suite, "graders:", "expect: {pass_threshold: 0.3}\ngraders:")
    before = result(suite, "run", "evals", "--trials", "2")
    assert verdicts(before) == {True}
    change_case(suite, "pass_threshold: 0.3", "pass_threshold: 0.9")
    after = result(suite, "regrade", "latest")
    assert rewards(after) == rewards(before)
    assert verdicts(after) == {True, False}
    reasons = [reason for change in after["changes"] for reason in change["reasons"]]
    assert "it passes at 0.90, not at 0.30" in reasons
    change_case(suite, "pass_threshold: 0.9", "pass_threshold: 0.3, pass_rate: 0.5")
    rated = result(suite, "run", "--resume", "latest", "--regrade")
    assert {rate["needed"] for rate in rated["overview"]["rates"]} == {0.5}
    change_case(suite, ", pass_rate: 0.5", ", min_assurance: separate")
    unsure = result(suite, "regrade", "latest")
    assert (unsure["overview"]["rates"], verdicts(unsure)) == ([], {False})


def verdicts(found: dict[str, Any]) -> set[bool]:
    return {cell["passed"] for cell in found["cells"]}


@pytest.mark.usefixtures("before")
def test_one_grader_or_others_may_judge_what_was_kept(tmp_path: Path) -> None:
    change_case(tmp_path, "grep -q 2", "grep -q 3")
    after = result(tmp_path, "regrade", "latest", "--only", "solved")
    assert rewards(after) == {"good": 0.33, "bad": 1.0}, "those of tidy are taken over"
    change_case(tmp_path, "conftest.py", "kit.py")
    refused = assay("regrade", "latest", "--only", "solved", cwd=tmp_path)
    assert (refused.returncode, "--only tidy" in refused.stderr) == (2, True)
    (tmp_path / "g.yaml").write_text('- {type: command, cmd: "grep -q 3 kit.py"}\n')
    other = result(tmp_path, "regrade", "latest", "g.yaml")
    assert rewards(other) == {"good": 0.0, "bad": 1.0}


def test_a_dataset_is_graded_again_by_graders_of_a_file(tmp_path: Path) -> None:
    suite = tmp_path
    (suite / "d.jsonl").write_text('{"id": "a", "answer": "Yes", "expected": "yes"}\n')
    (suite / "g.yaml").write_text("- {type: exact_match}\n")
    (suite / "h.yaml").write_text("- {type: exact_match, expected: no}\n")
    before = result(suite, "grade", "d.jsonl", "g.yaml")
    refused = assay("regrade", "latest", cwd=suite)
    assert refused.returncode == 2
    assert "assay regrade RUN graders.yaml" in refused.stderr
    after = result(suite, "regrade", "latest", "h.yaml")
    assert (before["cells"][0]["reward"], after["cells"][0]["reward"]) == (1.0, 0.0)


_CHAT = """[
  {"role": "user", "content": "Which files are there?"},
  {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"},
  {"type": "function_call_output", "call_id": "c", "output": "lamp.py"},
  {"type": "message", "role": "assistant",
   "content": [{"type": "output_text", "text": "There is lamp.py."}]}
]"""


@pytest.mark.parametrize("data", ["traces", "traces/one.json"])
def test_a_run_of_traces_is_graded_again_without_them(tmp_path: Path, data: str) -> None:
    file = tmp_path / "traces" / "one.json"
    file.parent.mkdir()
    file.write_text(_CHAT)
    (tmp_path / "g.yaml").write_text(
        "- {type: contains, substring: lamp.py}\n- {type: tool_correctness, expected: [execute]}\n"
    )
    (tmp_path / "h.yaml").write_text("- {type: tool_correctness, expected: [write]}\n")
    before = result(tmp_path, "grade", data, "g.yaml")
    file.unlink()
    same = result(tmp_path, "regrade", "latest", "g.yaml")
    other = result(tmp_path, "regrade", "latest", "h.yaml")
    found = [one["cells"][0] for one in (before, same, other)]
    assert [cell["reward"] for cell in found] == [1.0, 1.0, 0.0]
    assert len({cell["case"] for cell in found}) == 1
    only = assay("regrade", "latest", "g.yaml", "--only", "contains", cwd=tmp_path)
    assert (only.returncode, "--only tool_correctness" in only.stderr) == (2, True)


def test_what_was_kept_is_graded_again_and_not_what_a_dataset_says_now(tmp_path: Path) -> None:
    data = tmp_path / "d.csv"
    data.write_text("response,expected,right\nyes,yes,true\n,no,false\n")
    (tmp_path / "g.yaml").write_text("- {type: exact_match}\n")
    first = result(
        tmp_path, "grade", "d.csv", "g.yaml", "--map", "answer=response", "--label", "right"
    )
    data.write_text("something else")
    again = result(tmp_path, "regrade", "latest", "g.yaml")
    (tmp_path / "t.yaml").write_text("- {type: tool_correctness, expected: [write]}\n")
    refused = assay("regrade", "latest", "t.yaml", cwd=tmp_path)

    def told(found: dict[str, Any]) -> list[object]:
        return [(c["case"], c["reward"], c["notes"], c["file"]) for c in found["cells"]]

    assert told(again) == told(first)
    assert [c["reward"] for c in again["cells"]] == [1.0, 0.0]
    assert (refused.returncode, "needs 'trace'" in refused.stderr) == (2, True)


def test_attack_a_row_whose_id_comes_first_keeps_none_from_being_graded_again(
    tmp_path: Path,
) -> None:
    trace = Trace(steps=[AgentStep(step_id=1, content="4")], content="4", status="completed")
    rows = [{"id": "z", "answer": "4", "trace": trace.to_dict()}, {"id": "a", "answer": "4"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "g.yaml").write_text("- {type: trace, max_tool_calls: {execute: 3}}\n")
    first = assay("grade", "rows.jsonl", "g.yaml", "--json", cwd=tmp_path)
    again = assay("regrade", "latest", "g.yaml", "--json", cwd=tmp_path)

    def told(done: CompletedProcess[str]) -> list[object]:
        return [(cell["case"], cell["reward"]) for cell in json.loads(done.stdout)["cells"]]

    assert told(again) == told(first) == [("a", None), ("z", 1.0)]


def test_who_deletes_a_tool_of_the_task_s_own_is_worth_nothing_the_second_time_too(
    suite: Path,
) -> None:
    change_case(suite, '"grep -q 2 kit.py"', '"python3 -m nox"')
    (suite / "evals/kit/source/nox.py").write_text("import kit; assert kit.x == 2\n")
    (suite / "evals/kit/recordings/bad/deleted.txt").write_text("nox.py\n")
    before = result(suite, "run", "evals")
    assert rewards(before) == {"good": 1.0, "bad": 0.33}
    assert rewards(result(suite, "regrade", "latest")) == rewards(before)


def test_attack_a_backup_that_lacks_something_takes_no_earned_reward_away(
    tmp_path: Path, before: dict[str, Any]
) -> None:
    aside = tmp_path / "aside"
    for lost in ("sources", "snapshots", "blobs"):
        kept = tmp_path / ".assay" / lost
        kept.rename(aside)
        rmtree(tmp_path / ".assay" / "cache", ignore_errors=True)
        refused = assay("regrade", "latest", cwd=tmp_path)
        assert refused.returncode == 3, lost
        assert "keep the results that they have" in refused.stderr
        assert rewards(result(tmp_path, "report", "latest")) == rewards(before)
        rmtree(kept, ignore_errors=True)
        aside.rename(kept)
    assert rewards(result(tmp_path, "regrade", "latest")) == rewards(before)
