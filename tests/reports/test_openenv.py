"""`assay selftest --format openenv`: the report of RFC 008, check by check.

What its package reads of it is asked in `tests/real/test_openenv_report.py`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cases_to_prove import write, write_set
from tests.command_line import assay

_LONG = "the quick brown fox jumps over the lazy dog, and over nothing else"
_READS = """
    id: reads
    task: {prompt: "%s"}
    matrix: {harnesses: [replay], models: [reference]}
    source: {path: ../src}
    expected: "%s"
    graders: [{type: exact_match}]
"""
_QUIZ = """
from dataclasses import replace

from assay import Environment
from assay.graders import exact_match

env = Environment("quiz")


@env.template()
async def city(name: str = "Lima"):
    answer = yield "Which city?"
    yield exact_match(answer, name)


tasks = [
    replace(city(), slug="unknown"),
    replace(city(), slug="known", metadata={"solution": "Lima"}),
]
"""
_TOLD = ("oracle_max", "floor_gap", "canary_floor", "no_solution_leakage", "verifier_determinism")
_NAMES = {"p": "pass", "f": "fail", "s": "skip", "e": "error"}


def reports(cwd: Path, *words: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit status, and the reports by the last part of their targets."""
    done = assay("selftest", *words, "--format", "openenv", cwd=cwd)
    read = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {str(one["target"]).rpartition("/")[2]: one for one in read}


def told(report: dict[str, Any]) -> str:
    """The first letters of what the checks came to that a self-test tells."""
    by_id = {one["check_id"]: one["status"] for one in report["results"]}
    assert all(one["evidence"] for one in report["results"]), "each says why"
    letters = {word: letter for letter, word in _NAMES.items()}
    return "".join(letters[by_id[f"semantic.{name}"]] for name in _TOLD)


def check(report: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in report["results"] if one["check_id"] == name)


def test_each_check_of_theirs_follows_what_was_measured(tmp_path: Path) -> None:
    write_set(tmp_path / "evals")
    status, found = reports(tmp_path, "evals")
    assert status == 1
    assert {name: (told(one), one["verdict"]) for name, one in found.items()} == {
        **{f"sound-{number}": ("pppsp", "warn") for number in range(12)},
        "gold": ("fppsp", "fail"),
        "easy": ("pffsp", "fail"),
        "unsteady": ("ssssf", "fail"),
        "unsolved": ("fssss", "fail"),
        "lost": ("sssss", "fail"),
        "torn": ("sssss", "fail"),
        "gone": ("eeese", "fail"),
    }
    gap = check(found["easy"], "semantic.floor_gap")
    assert gap["measured"] == {"measured_floor": 1.0, "declared_margin": 0.5}
    assert check(found["gold"], "semantic.oracle_max")["measured"] == {
        "oracle_reward": 0.0,
        "declared_tolerance": 0.0,
    }
    assert check(found["torn"], "static.manifest")["status"] == "fail"
    assert all(one["levels_run"] == [3] for one in found.values())


def test_what_was_not_told_never_passes(tmp_path: Path) -> None:
    """Graders that ran once were compared with nothing, and a warning alone proves nothing."""
    write_set(tmp_path / "evals")
    one = ("evals", "--repeats", "1", "--case")
    status, found = reports(tmp_path, *one, "sound-1")
    assert (status, told(found["sound-1"]), found["sound-1"]["verdict"]) == (3, "sssss", "warn")
    status, found = reports(tmp_path, *one, "easy")
    assert (status, told(found["easy"])) == (1, "sffss"), "what fails is not hidden"
    assert reports(tmp_path, "evals", "--case", "sound-1")[0] == 0


@pytest.mark.parametrize(
    ("prompt", "beside", "letter"),
    [
        ("What did he see?", "nothing", "p"),
        (f"Say after me. {_LONG}", "nothing", "f"),
        ("What did he see?", f"# {_LONG}", "f"),
    ],
)
def test_right_work_that_can_be_read_beforehand_is_a_leak(
    tmp_path: Path, prompt: str, beside: str, letter: str
) -> None:
    write(tmp_path / "evals/reads", _READS % (prompt, _LONG))
    (tmp_path / "evals/src").mkdir()
    (tmp_path / "evals/src/notes.txt").write_text(f"first\n{beside}\n")
    (tmp_path / "evals/reads/recordings/reference").mkdir(parents=True)
    (tmp_path / "evals/reads/recordings/reference/answer.txt").write_text(_LONG)
    status, found = reports(tmp_path, "evals/reads")
    assert (status, told(found["reads"])) == (int(letter == "f"), f"ppp{letter}p")
    shown = " ".join(assay("selftest", "evals/reads", cwd=tmp_path).stdout.split())
    assert ("right work can be read before it is done" in shown) == (letter == "f")


def test_a_task_of_an_environment_without_right_work_fails(tmp_path: Path) -> None:
    (tmp_path / "quiz.py").write_text(_QUIZ)
    status, found = reports(tmp_path, "quiz.py")
    assert status == 1
    assert {name: told(one)[0] for name, one in found.items()} == {
        "quiz.py#unknown": "f",
        "quiz.py#known": "p",
    }
    assert all(one["signature"] == "openenv.yaml" for one in found.values())


def test_a_link_in_a_case_is_followed_into_no_digest_and_a_pipe_is_not_waited_for(
    tmp_path: Path,
) -> None:
    write_set(tmp_path / "evals")
    (tmp_path / "evals/sound-1/more").symlink_to("/etc")
    os.mkfifo(tmp_path / "evals/sound-2/pipe")
    _, found = reports(tmp_path, "evals", *(f"--case=sound-{number}" for number in range(3)))
    assert len(str(found["sound-0"]["source_digest"])) == 64
    for name, said in (("sound-1", "more is a link"), ("sound-2", "pipe is neither a file nor a")):
        assert found[name]["source_digest"] == ""
        why = check(found[name], "static.manifest")["evidence"][-1]
        assert why.startswith(f"there is no source_digest: evals/{name}/{said}")
    done = assay("selftest", "evals", "--format", "openenv", "--json", cwd=tmp_path)
    assert (done.returncode, "two forms of one report" in done.stderr) == (2, True)
