"""The kind ``swebench``: how its two lists are read, looked up and scored.

Most tests stand at the grader's own door with a prepared run, because the point is what the grader
makes of it; the last ones run pytest in the sandbox.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import AssayError, GraderError, InputError
from assay.graders.swebench import SweBenchGrader
from assay.graders.swebench_ids import expects_failure, nearest_ids, read_ids, resolve_ids
from assay.graders.testing import run as testing_run
from assay.graders.testing.outcomes import Outcome, TestOutcome, TestRun
from assay.graders.testing.run import TestCommand
from assay.sandbox import CommandResult
from assay.scoring.combine import combine_scores
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.types import Workspace
from tests.attacks.scenes import scenes
from tests.each import each
from tests.written_files import write_files

SAID = {"stdout": "", "stderr": "", "tier": "test"}
RESULT = CommandResult(status="exited", exit_code=0, truncated=False, seconds=0.5, **SAID)


def ran(outcomes: Mapping[str, Outcome], *, why: str = "", flags: tuple[str, ...] = ()) -> TestRun:
    """A run that reported some outcomes."""
    return TestRun(
        outcomes={i: TestOutcome(id=i, outcome=o, message=f"it {o}") for i, o in outcomes.items()},
        expected=tuple(outcomes),
        why=why,
        flags=flags,
        channel="private",
        result=RESULT,
    )


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[TestCommand]]:
    """Prepare what the runs come to, one after the other; gives the commands that were run."""

    def prepare(*prepared: TestRun) -> list[TestCommand]:
        commands: list[TestCommand] = []

        async def run_tests(command: TestCommand, workspace: Workspace) -> TestRun:
            commands.append(command)
            return prepared[len(commands) - 1]

        monkeypatch.setattr(testing_run, "run_tests", run_tests)
        return commands

    return prepare


def grade(workspace: Path, **options: object) -> SubScore:
    source = options.pop("source", None)
    place = Workspace(path=str(workspace), source=None if source is None else str(source))
    return asyncio.run(SweBenchGrader.grade(workspace=place, **options))  # type: ignore[arg-type]


def child(score: SubScore, name: str) -> SubScore:
    return next(c for c in score.children or () if c.name == name)


def rows(score: SubScore, name: str) -> dict[str, dict[str, Json]]:
    metadata = child(score, name).metadata or {}
    table = metadata["tests"]
    assert isinstance(table, list)
    return {str(row["id"]): row for row in table if isinstance(row, dict)}


BUG = ["test_a.py::test_new", "test_a.py::test_newer"]
OLD = ["test_a.py::test_old", "test_b.py::test_old"]
ALL_PASS: dict[str, Outcome] = dict.fromkeys([*BUG, *OLD], "passed")

Runs = Callable[..., list[TestCommand]]


@pytest.mark.parametrize(
    ("outcomes", "value", "gate"),
    [
        ({}, 1.0, 1.0),
        ({BUG[0]: "failed", "test_a.py::test_own": "passed"}, 0.5, 1.0),
        ({BUG[0]: "error", BUG[1]: "failed"}, 0.0, 1.0),
        ({BUG[0]: "skipped"}, 0.5, 1.0),
        ({BUG[0]: "xpassed"}, 0.5, 1.0),
        ({OLD[1]: "failed"}, 1.0, 0.5),
        ({OLD[1]: "skipped"}, 1.0, 0.5),
        ({BUG[0]: "missing"}, 0.5, 1.0),
        ({OLD[1]: "missing"}, 1.0, 0.5),
    ],
)
def test_score_is_the_share_of_the_bug_s_tests_and_the_rest_is_a_gate(
    runs: Runs, workspace: Path, outcomes: dict[str, str], value: float, gate: float
) -> None:
    all_of = {**ALL_PASS, **outcomes}
    seen: dict[str, Any] = {name: said for name, said in all_of.items() if said != "missing"}
    runs(ran(seen))
    score = grade(workspace, fail_to_pass=BUG, pass_to_pass=OLD)
    assert (score.value, score.assurance) == (value, "shared")
    regression = child(score, "pass_to_pass")
    assert (regression.gate, regression.value) == (True, gate)
    assert score.passed is (value == gate == 1.0)
    combined = combine_scores([score, *(c for c in score.children or () if c.gate)])
    assert combined.reward == (value if gate == 1.0 else 0.0)
    if gate < 1.0:  # what failed comes first in the table
        table = rows(score, "pass_to_pass")
        first = next(iter(table))
        assert (first, table[first]["outcome"]) == (OLD[1], outcomes[OLD[1]])
        assert table[first].get("message") == (f"it {outcomes[first]}" if first in seen else None)
        assert table[OLD[0]] == {"id": OLD[0], "outcome": "passed"}
    assert ("1 not found" in str(score.children)) is (len(seen) < 4)


@pytest.mark.parametrize(
    "run",
    [
        ran(ALL_PASS, why="it did not reach its end"),
        ran(ALL_PASS, flags=("canary passed",), why="canary passed"),
        ran(ALL_PASS, flags=("forged report",)),
    ],
)
def test_run_that_is_not_to_be_believed_is_worth_nothing(
    runs: Runs, workspace: Path, run: TestRun
) -> None:
    runs(run)
    score = grade(workspace, fail_to_pass=BUG, pass_to_pass=OLD)
    assert score.status == "scored"
    assert [c.value for c in score.children or ()] == [0.0, 0.0]
    assert (score.value, tuple(score.flags)) == (0.0, run.flags)
    assert (run.why or "tampering") in score.reason


def test_without_old_tests_there_is_no_gate_and_a_threshold_says_what_passes(
    runs: Runs, workspace: Path
) -> None:
    runs(ran({**ALL_PASS, BUG[0]: "failed"}))
    score = grade(workspace, fail_to_pass=BUG, pass_threshold=0.5)
    assert [c.name for c in score.children or ()] == ["fail_to_pass"]
    assert (score.value, score.passed) == (0.5, True)


# What is run.


def test_both_lists_take_one_run_by_id_also_in_the_benchmark_s_own_spelling(
    runs: Runs, workspace: Path
) -> None:
    commands = runs(ran(ALL_PASS))
    ids = ["test_a.py::test_new[it's; rm -rf]", *OLD]
    own = {"FAIL_TO_PASS": json.dumps(ids[:1]), "PASS_TO_PASS": json.dumps(OLD)}
    score = grade(workspace, **own, cmd_prefix="pytest -q", timeout_s=9)
    assert len(score.children or ()) == 2
    (command,) = commands
    assert command.cmd == "pytest -q 'test_a.py::test_new[it'\"'\"'s; rm -rf]' " + " ".join(OLD)
    assert (command.ids, command.timeout_s, command.shuffle) == (tuple(ids), 9, False)


def test_too_many_ids_are_run_by_file(runs: Runs, workspace: Path) -> None:
    (workspace / "test_a.py").touch()
    ids = [f"test_a.py::test_{'x' * 90}_{n}" for n in range(1500)]
    commands = runs(ran(dict.fromkeys(ids, "passed")))
    assert grade(workspace, fail_to_pass=ids[:1], pass_to_pass=ids).value == 1.0
    assert [c.cmd for c in commands] == ["python3 -m pytest -q -p no:cacheprovider test_a.py"]


def test_ids_that_pytest_does_not_take_are_run_by_file(runs: Runs, workspace: Path) -> None:
    write_files(workspace, {"tests/test_a.py": ""})
    commands = runs(ran({"tests/test_a.py::T::test_x": "passed"}))
    score = grade(workspace, fail_to_pass=["test_x (tests.test_a.T)"])
    assert score.value == 1.0
    assert commands[0].cmd.endswith(" tests/test_a.py")
    assert rows(score, "fail_to_pass")["test_x (tests.test_a.T)"]["found_as"] == [
        "tests/test_a.py::T::test_x"
    ]
    # To unittest dotted names are given, whatever file they are in.
    (workspace / "tests/test_a.py").unlink()
    commands = runs(ran({"tests.test_a.T.test_x": "passed"}))
    prefix = "python3 -m unittest"
    score = grade(workspace, fail_to_pass=["test_x (tests.test_a.T)"], cmd_prefix=prefix)
    assert (score.value, commands[0].cmd) == (1.0, "python3 -m unittest tests.test_a.T.test_x")


def test_run_that_knew_no_id_is_run_by_file(runs: Runs, workspace: Path) -> None:
    (workspace / "test_a.py").touch()
    nothing = ran({}, why="canary missing", flags=("canary missing",))
    commands = runs(nothing, ran({"test_a.py::test_new": "passed"}))
    ids = ["test_a.py::test_new", "test_a.py::test_nwe"]
    score = grade(workspace, fail_to_pass=ids, timeout_s=10)
    assert (score.value, [c.cmd.split()[-1] for c in commands]) == (0.5, [ids[1], "test_a.py"])
    assert commands[1].timeout_s == 9.5
    assert rows(score, "fail_to_pass")[ids[1]]["nearest"] == [ids[0]]
    # One that was tampered with is not run again.
    commands = runs(ran({}, why="x", flags=("canary passed",)), ran(ALL_PASS))
    assert (grade(workspace, fail_to_pass=BUG).value, len(commands)) == (0.0, 1)


def test_test_file_that_nobody_brings_is_the_author_s_mistake(
    runs: Runs, workspace: Path, tmp_path: Path
) -> None:
    runs(ran({}))
    (source := tmp_path / "source").mkdir()
    with pytest.raises(GraderError, match=r"no test file 'test_a\.py'") as caught:
        grade(workspace, fail_to_pass=BUG, source=source)
    assert "inject" in str(caught.value)


# A test may only end as xfailed where its author says so.

XFAIL = """
import pytest
@pytest.mark.xfail
def test_new(): ...
def test_plain(): ...
"""


def test_solution_that_ends_tests_as_xfailed_earns_nothing(
    runs: Runs, workspace: Path, tmp_path: Path
) -> None:
    hidden = tmp_path / "test_a.py"
    hidden.write_text(XFAIL, encoding="utf-8")
    ids = ["test_a.py::test_new", "test_a.py::test_plain"]
    runs(ran(dict.fromkeys(ids, "xfailed")))
    score = grade(workspace, fail_to_pass=ids[:1], pass_to_pass=ids[1:], inject=[str(hidden)])
    assert [c.value for c in score.children or ()] == [1.0, 0.0]
    # What unittest expects to fail passes.
    hidden.write_text("class T:\n    @unittest.expectedFailure\n    def test_x(self): ...\n")
    runs(ran({"tests.test_a.T.test_x": "xfailed"}))
    inject = [{"src": str(hidden), "dest": "tests/test_a.py"}]
    options = {"fail_to_pass": ["test_x (tests.test_a.T)"], "cmd_prefix": "python3 -m unittest"}
    assert grade(workspace, inject=inject, **options).value == 1.0


def test_mark_in_a_file_of_the_submission_means_nothing(
    runs: Runs, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "test_a.py").write_text(XFAIL, encoding="utf-8")
    source = write_files(
        tmp_path / "source", {"test_a.py": XFAIL.replace("@pytest.mark.xfail", "")}
    )
    runs(ran({"test_a.py::test_new": "xfailed"}), ran({"test_a.py::test_new": "xfailed"}))
    assert grade(workspace, fail_to_pass=["test_a.py::test_new"], source=source).value == 0.0
    assert grade(workspace, fail_to_pass=["test_a.py::test_new"]).value == 0.0


IN_CLASS = "class T:\n    {}\n    def test_a(self): ...\n    def test_b(self): ...\n"


@each(
    ("text", "test", "found"),
    [
        ("@pytest.mark.xfail(reason='x')\ndef test_a(): ...", "test_a", True),
        ("@pytest.mark.xfail\nasync def test_a(): ...", "test_a", True),
        ("def test_a():\n    pytest.xfail('x')", "test_a", True),
        ("pytestmark = [pytest.mark.xfail]\ndef test_a(): ...", "test_a", True),
        (IN_CLASS.format("pytestmark = pytest.mark.xfail"), "T::test_a", True),
        (IN_CLASS.format("@unittest.expectedFailure"), "T::test_a", True),
        ("@unittest.expectedFailure\n" + IN_CLASS.format("x = 1"), "T::test_a", True),
        ("@xfail\ndef test_b(): ...\ndef test_a(): ...", "test_a", False),
        (IN_CLASS.format("@xfail"), "T::test_b", False),
        (IN_CLASS.format("pytestmark = pytest.mark.xfail"), "U::test_a", False),
        ("def helper():\n    pytest.xfail('x')\ndef test_a(): ...", "test_a", False),
        ("'xfail'\ndef test_a(): ...", "test_a", False),
        ("def test_a(): # xfail", "test_a", False),
        ("", "test_a", False),
    ],
)
def test_an_author_s_mark_of_the_test_itself_is_found(text: str, test: str, *, found: bool) -> None:
    assert expects_failure(text, tuple(test.split("::"))) is found


# Names.

SEEN = [
    "tests/test_a.py::test_x",
    "tests/test_a.py::test_p[a b-1]",
    "tests/test_a.py::test_p[a c-2]",
    "tests/test_a.py::test_p[z]",
    "tests/test_a.py::test_q[one two]",
    "tests/test_a.py::test_d[a - b]",
    "tests/test_a.py::T::test_y",
    "tests/sub/test_b.py::T::test_y",
    "tests/sub/test_b.py::U::test_z",
    "app.tests.test_c.V.test_w",
]


@each(
    ("name", "found"),
    [
        ("tests/test_a.py::test_x", [0]),
        ("tests/test_a.py::test_p[a b-1]", [1]),
        ("tests/test_a.py::test_q[one", [4]),
        ("tests/test_a.py::test_p[a", [1, 2]),  # cut at its space: it stands for both
        ("tests/test_a.py::test_x - AssertionError: no - really", [0]),
        ("tests/test_a.py::test_d[a - b] - boom", [5]),
        ("./tests/test_a.py::test_x", [0]),
        ("test_a.py::test_x", [0]),
        ("repo/tests/test_a.py::test_x", [0]),
        ("test_y (tests.test_a.T)", [6]),
        ("test_y (T)", []),  # two classes of that name
        ("test_z (U)", [8]),
        ("test_z (tests.sub.test_b.U.test_z)", [8]),  # as Python 3.11 and later print it
        ("test_w (app.tests.test_c.V) ... ok", [9]),
        ("app.tests.test_c.V.test_w", [9]),
        ("app/tests/test_c.py::V::test_w", [9]),
        ("A sentence that a docstring has.", []),
        ("", []),
    ],
)
def test_name_is_found_among_the_reported(name: str, found: list[int]) -> None:
    assert resolve_ids([name], SEEN)[name] == tuple(sorted(SEEN[n] for n in found))


@given(st.lists(st.text(max_size=30), max_size=8), st.text(max_size=30))
def test_name_is_only_ever_taken_for_a_reported_test(seen: list[str], name: str) -> None:
    found = resolve_ids([name], seen)[name]
    assert set(found) <= set(seen)
    if name in seen:
        assert found == (name,)
    assert set(nearest_ids(name, seen)) <= set(seen)


def test_cut_name_passes_only_if_all_that_it_stands_for_do(runs: Runs, workspace: Path) -> None:
    write_files(workspace, {"tests/test_a.py": ""})
    cut = "tests/test_a.py::test_p[a"
    runs(ran({SEEN[1]: "passed", SEEN[2]: "failed"}))
    assert grade(workspace, fail_to_pass=[cut]).value == 0.0
    runs(ran({SEEN[1]: "passed", SEEN[2]: "passed"}))
    assert grade(workspace, fail_to_pass=[cut]).value == 1.0


@each(
    ("given", "read"),
    [
        (None, ()),
        ('["a", "b", "a "]', ("a", "b")),
        ("['a', \"b\"]", ("a", "b")),
    ],
)
def test_list_is_read_however_it_is_written(given: object, read: tuple[str, ...]) -> None:
    assert read_ids(given, what="ids") == read


@each(
    "given",
    ["a.py::test_x", '"a"', "[" * 9999, [1], [""], ["a\nb"], ["--co"], 5, ["a\0"]],
)
def test_list_that_is_none_is_refused(given: object) -> None:
    with pytest.raises(InputError, match="ids"):
        read_ids(given, what="ids")


@each(
    ("options", "message"),
    [
        ({"pass_to_pass": ["a"]}, "needs fail_to_pass"),
        ({"fail_to_pass": ["a"], "FAIL_TO_PASS": ["a"]}, "given twice"),
        ({"fail_to_pass": "a"}, "is not a list"),
        ({"fail_to_pass": ["a"], "inject": [{"src": "/x", "dest": "../x"}]}, "not a path inside"),
    ],
)  # fmt: skip
def test_options_are_checked_when_a_case_is_read(options: dict[str, Json], message: str) -> None:
    with pytest.raises(AssayError, match=message):
        SweBenchGrader.check_options(options)


# In the sandbox, with pytest and unittest themselves.

HIDDEN = """\
import unittest
import pytest
from solution import double

@pytest.mark.parametrize("text", ["a b", "a c"])
def test_texts(text):
    assert double(text) == text + text

def test_numbers():
    assert double(4) == 8

@pytest.mark.xfail
def test_bytes_one_day():
    assert double(b"") is None

class Lists(unittest.TestCase):
    def test_list(self):
        self.assertEqual(double([1]), [1, 1])
"""
GOOD = "def double(x):\n    return x + x\n"
IDS = [
    "tests/test_it.py::test_numbers",
    "tests/test_it.py::test_texts[a b]",
    "tests/test_it.py::test_texts[a c]",
    "tests/test_it.py::test_bytes_one_day",
    "tests/test_it.py::Lists::test_list",
]


LISTS = {"fail_to_pass": ["test_list (tests.test_it.Lists)"]}


def grade_files(tmp_path: Path, files: Mapping[str, str], **options: object) -> SubScore:
    hidden = tmp_path / "hidden.py"
    hidden.write_text(HIDDEN, encoding="utf-8")
    workspace = tmp_path / "tree"
    write_files(workspace, files)
    inject = [{"src": str(hidden), "dest": "tests/test_it.py"}]
    return grade(workspace, **{"fail_to_pass": IDS, "inject": inject, "timeout_s": 60.0} | options)


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({}, 1.0),
        ({"fail_to_pass": [*IDS, "tests/test_it.py::test_nowhere"]}, 5 / 6),
        ({"fail_to_pass": ["tests/test_it.py::test_texts[a"]}, 1.0),
        (LISTS, 1.0),
        ({**LISTS, "cmd_prefix": "python3 -m unittest"}, 1.0),
    ],
)
def test_right_work_passes_under_every_spelling(
    tmp_path: Path, options: dict[str, object], value: float
) -> None:
    files = {"solution.py": GOOD, "tests/__init__.py": ""}
    score = grade_files(tmp_path, files, **options)
    assert score.value == pytest.approx(value), score.to_dict()
    assert list(score.flags) == []


CHEATS = {agent.name: agent.files for agent in scenes("swebench")[0].agents}


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.parametrize("name", CHEATS)
def test_cheat_earns_no_more_than_its_work(tmp_path: Path, name: str) -> None:
    left = {path: str(text) for path, text in CHEATS[name].items()}
    score = grade_files(tmp_path, {"tests/__init__.py": "", **left}, pass_to_pass=IDS)
    assert score.status == "scored"
    # At most test_numbers, and test_bytes_one_day, which is expected to fail.
    assert (score.value or 0.0) <= 2 / 5, score.to_dict()
    assert (child(score, "pass_to_pass").value or 0.0) < 1.0
    assert not score.passed


@each(
    ("listed", "reported"),
    [
        ("t.py::test_a[/home/ci/repo/x-1]", "t.py::test_a[/workspace/repo/x-1]"),
        ("t.py::test_a[2024-01-05T10:11:12.345]", "t.py::test_a[2026-11-22 09:00:01]"),
        ("t.py::test_a[<f at 0x7f01ab>]", "t.py::test_a[<f at 0x55cd20>]"),
    ],
)
def test_an_id_with_a_time_or_a_directory_was_never_found(listed: str, reported: str) -> None:
    other = "t.py::test_a[plain]"
    assert resolve_ids([listed, other], [reported, other]) == {listed: (reported,), other: (other,)}
    assert resolve_ids([listed], [reported.replace("test_a", "test_b")]) == {listed: ()}
