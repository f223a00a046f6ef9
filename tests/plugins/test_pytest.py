"""The pytest plug-in, in runs of pytest of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import pytest

from tests.command_line import assay, cells, environment, result

_GRADERS = """\
- {type: contains, substring: refund}
- {type: regex_match, pattern: "[0-9]+ days"}
"""
_SUITE = """
import itertools

import pytest

from assay import SubScore
from assay.graders import Grader

count = itertools.count()
GOOD = "a refund within 14 days"


class Never(Grader):
    name = "never"

    @classmethod
    async def compute_score(cls, answer: str):
        return SubScore.skipped("never", "it does not apply")


def test_passes(assay):
    assay.grade(GOOD, graders="refund.yaml").passes()


def test_too_low(assay):
    assay.grade("a refund", graders="refund.yaml").passes()


def test_threshold(assay):
    found = assay.grade("a refund", graders="refund.yaml", threshold=0.5)
    found.passes()
    assert (found.score, found.passed) == (0.5, True)


def test_expected(assay):
    assay.grade("4", graders="same.yaml", question="2 + 2", expected="4").passes()


def test_no_grade(assay):
    assay.grade("4", graders="same.yaml").passes()


def test_skipped(assay):
    assay.grade("x", graders=Never).passes()


def test_stored(assay):
    assay.grade(GOOD, graders="polite@1").passes()


@pytest.mark.assay(trials=10, pass_rate=0.8)
def test_often_enough(assay):
    answer = GOOD if next(count) % 5 else "no"
    assay.grade(answer, graders="refund.yaml").passes()


@pytest.mark.assay(trials=4, pass_rate=0.8)
def test_too_seldom(assay):
    answer = GOOD if next(count) % 2 else "no"
    assay.grade(answer, graders="refund.yaml").passes()


@pytest.mark.assay(trials=2)
def test_a_trial_without_a_grade_decides_nothing(assay):
    given = {"expected": "4"} if next(count) % 2 else {}
    assay.grade("4", graders="same.yaml", **given).passes()


@pytest.mark.assay(trials=2)
def test_attack_a_skipped_trial_hides_no_failure(assay):
    if next(count) % 2:
        assay.grade("x", graders=Never).passes()
    assay.grade("no", graders="refund.yaml").passes()


def test_a_score_that_is_not_there_is_no_wrong_answer(assay):
    assert assay.grade("4", graders="same.yaml").score == 1.0


def test_no_answer(assay):
    assay.grade({"a": 1}, graders="same.yaml").passes()


def test_a_threshold_that_passes_anything(assay):
    assay.grade("no", graders="refund.yaml", threshold=-1).passes()


def test_attack_a_wrong_answer_is_not_true(assay):
    assert assay.grade("no", graders="refund.yaml")


@pytest.mark.assay(trials=2, pass_rate=0.5)
def test_a_fault_of_the_test_is_no_trial(assay):
    raise RuntimeError("the agent could not be reached")


@pytest.mark.assay(trials=0)
def test_wrong_mark(assay):
    pass
"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("suite")
    (place / "refund.yaml").write_text(_GRADERS, "utf-8")
    (place / "same.yaml").write_text("- {type: exact_match}\n", "utf-8")
    (place / "test_suite.py").write_text(textwrap.dedent(_SUITE), "utf-8")
    done = assay("graders", "create", "polite", "refund.yaml", cwd=place)
    assert done.returncode == 0, done.stderr
    return place


def _pytest(suite: Path, *options: str) -> tuple[dict[str, str], str]:
    """What became of each test, with pytest's own words; and what was printed."""
    report = suite / "junit.xml"
    loaded = [f"-p{plugin}" for plugin in ("assay.plugins.pytest", "xdist.plugin")]
    words = ["-q", *loaded, "-pno:cacheprovider", f"--junitxml={report}", *options]
    env = {**os.environ, **environment(suite), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "test_suite.py"],
        cwd=suite, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    ended: dict[str, str] = {}
    for case in ET.parse(report).iter("testcase"):
        (child,) = [c for c in case if c.tag in ("failure", "error", "skipped")] or [None]
        ended[str(case.get("name"))] = "" if child is None else str(child.get("message"))
    return ended, done.stdout


def test_pytest_finds_it_by_itself() -> None:
    (found,) = entry_points(group="pytest11", name="assay")
    assert found.value == "assay.plugins.pytest"


def test_a_grade_is_a_pass_a_failure_or_neither(suite: Path) -> None:
    ended, printed = _pytest(suite, "--assay-db", str(suite / ".assay"))
    right = ("passes", "threshold", "expected", "stored", "often_enough")
    assert [name for name in right if ended.pop(f"test_{name}")] == []
    begins = {
        "test_too_low": "AssertionError: 0.50 = 0.50",
        "test_no_grade": "assay.errors.GraderError: could not be graded: exact_match: needs",
        "test_too_seldom": "AssertionError: 2 of 4 trials passed, and 4 are needed",
        "test_a_trial_without_a_grade_decides_nothing": "assay.errors.GraderError: 1 of 2 trials",
        "test_attack_a_skipped_trial_hides_no_failure": "AssertionError: 0 of 2 trials passed",
        "test_a_score_that_is_not_there_is_no_wrong_answer": "assay.errors.GraderError: could not",
        "test_no_answer": "assay.errors.InputError: ",
        "test_a_threshold_that_passes_anything": "assay.errors.InputError: threshold: must be",
        "test_attack_a_wrong_answer_is_not_true": "TypeError: a grade is neither true nor false",
        "test_a_fault_of_the_test_is_no_trial": "RuntimeError: the agent could not be reached",
        "test_wrong_mark": "Failed: test_suite.py::test_wrong_mark: ",
    }
    for name, words in begins.items():
        assert ended.pop(name).startswith(words), name
    assert "✗ 0.00 regex_match" in printed
    assert "src/assay" not in printed, "nobody reads how assay came upon it"
    assert ended == {"test_skipped": "not graded: never: it does not apply"}
    _is_a_run(str(suite / ".assay"), suite)


@pytest.mark.slow
def test_what_was_graded_becomes_a_run(suite: Path, tmp_path: Path) -> None:
    page, where = tmp_path / "report.html", str(suite / ".assay")
    _, printed = _pytest(suite, "-n", "2", "--assay-db", where, f"--assay-report={page}")
    assert "stored as a run: assay report" in printed
    _is_a_run(where, tmp_path)
    assert "test_too_low" in page.read_text("utf-8")


def _is_a_run(where: str, place: Path) -> None:
    found = cells(assay("report", "latest", "--json", "--all", "--db", where, cwd=place))
    by_case = {f"{cell['case']} {cell['trial']}": cell["reward"] for cell in found}
    assert by_case["test_suite.py::test_too_low 1"] == 0.5
    often = [by_case[f"test_suite.py::test_often_enough {n}"] for n in range(1, 11)]
    assert (often.count(0.0), often.count(1.0)) == (2, 8)
    said = cast("Any", result(assay("report", "latest", "--json", "--db", where, cwd=place)))
    graded = {str(cell["case"]) for cell in found if cell["status"] == "graded"}
    assert said["overview"]["totals"]["cases"] == len(graded), "a trial is no case of its own"
    assert "more cases" not in assay("report", "latest", "--db", where, cwd=place).stdout
    errors = [cell["case"] for cell in found if cell["status"] == "error"]
    assert "test_suite.py::test_no_grade" in errors
