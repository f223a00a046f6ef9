"""Which runner a line starts, and which tests its hidden files hold: read, never run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import GraderError, InputError
from assay.graders.testing import prerequisites
from assay.graders.testing.attempt import RunnerPlan, TestCommand
from assay.graders.testing.channel import RunnerReport
from assay.graders.testing.commands import (
    first_program,
    implied_report,
    programs_of,
    read_command,
)
from assay.graders.testing.expected import LEFT_OUT, answer_given, expect
from assay.graders.testing.outcomes import Outcome, TestOutcome, is_separable, mode_of
from assay.graders.testing.python_ids import PythonTests, read_python_tests
from assay.graders.testing.runners import find_python, has_editable_pytest
from assay.graders.tests import TestsGrader
from assay.types import Workspace
from tests.each import each


@each(
    ("line", "runner", "args", "cwd", "exact"),
    [
        ("python3 -m pytest -q a.py", "pytest", "-q a.py", "", True),
        ("python3 -mpytest", "pytest", "", "", True),
        ("python -W error -X dev -um pytest x", "pytest", "x", "", True),
        ("pytest", "pytest", "", "", True),
        ("cd sub && pytest -q", "pytest", "-q", "sub", True),
        ("cd /opt/kit && pytest -q", "pytest", "-q", "", True),
        ("FOO=1 env BAR=2 timeout 60 pytest", "pytest", "", "", True),
        ("sh -c 'pytest -q'", "pytest", "-q", "", True),
        ("python3 setup.py build; py.test", "pytest", "", "", True),
        ("pytest -q 2>&1 > log", "pytest", "-q", "", True),
        ("pytest # the tests", "pytest", "", "", True),
        ("pytest | tee log", "pytest", "", "", False),
        ("pytest || true", "pytest", "", "", False),
        ("pytest; true", "pytest", "", "", False),
        ("! pytest", "pytest", "", "", False),
        ("pytest &", "pytest", "", "", False),
        ("python3 -m unittest -v t", "unittest", "-v t", "", True),
        ("node --test a.js", "node", "--test a.js", "", True),
        ("make test", "unknown", "test", "", False),
        ("make test; ls", "unknown", "test", "", False),
        ("npm test --silent", "unknown", "test --silent", "", False),
        ("./run.sh", "unknown", "", "", False),
        ("sh run.sh", "unknown", "run.sh", "", False),
        ("cargo test", None, "test", "", True),
        ("python3 run_tests.py", None, "run_tests.py", "", True),
        ("python3 -c 'import pytest; pytest.main()'", None, None, "", True),
        ("/usr/bin/python3 -m pytest", None, "-m pytest", "", True),
        ("", None, "", "", False),
    ],
)
def test_the_runner_of_a_line(
    line: str, runner: str | None, args: str | None, cwd: str, *, exact: bool
) -> None:
    found = read_command(line)
    assert (found.runner, found.cwd, found.exact) == (runner, cwd, exact)
    if args is not None:
        assert " ".join(found.args) == args


@each(
    "line, program",
    [
        ("kit-test -q", "kit-test"),
        ("cd x && export A=1; kit-test", "kit-test"),
        ("env A=1 timeout 5 kit-test", "kit-test"),
        ("PATH=/opt/kit kit-test", ""),
        ("./kit-test", ""),
        ("$KIT test", ""),
        ("", ""),
    ],
)
def test_the_program_that_a_line_wants_to_find_is_known(line: str, program: str) -> None:
    assert first_program(line) == program


@each(
    ("line", "programs"),
    [
        ("kit-test -q && other \\\n run", "kit-test other"),
        ("A=1 timeout 60 kit-test", "kit-test"),
        ("timeout -k 5 60 kit-test; env", "timeout env"),
        ("bash -c 'mapfile x; kit' | tee log", "kit bash tee"),
        ("sh -c 'mapfile x'", "mapfile sh"),
        ("kit || exit 1; kit", "kit"),
        # What a line need not have, or may find elsewhere.
        *[(line, "") for line in ("kit || other", "command -v kit", "PATH=/x kit", "./kit")],
        *[
            (line, "")
            for line in ("if true; then kit; fi", "x=$(kit)", "f() { kit; }", "kit 'open")
        ],
    ],
)
def test_the_programs_that_a_line_cannot_do_without_are_known(line: str, programs: str) -> None:
    assert " ".join(programs_of(line)) == programs


def test_scripts_that_a_line_runs_are_known() -> None:
    assert read_command("python3 gen.py && pytest").scripts == ("gen.py",)
    assert read_command("node build.js && node --test").scripts == ("build.js",)


@each("line", ["pytest a && pytest b", "pytest; node --test", "pytest 'a"])
def test_a_line_that_cannot_be_reported_is_refused(line: str) -> None:
    with pytest.raises(InputError):
        read_command(line)


@each(
    "script, runner",
    [
        ("node --test", "node"),
        ("jest", None),
        ("npm run unit", "node"),
        ("npm run test", "unknown"),
    ],
)
def test_scripts_of_a_package_are_looked_up(
    script: str, runner: str | None, tmp_path: Path
) -> None:
    scripts = {"test": script, "unit": "node --test"}
    (tmp_path / "package.json").write_text(json.dumps({"scripts": scripts}), encoding="utf-8")
    for line in ("npm test", "npm t", "npm run-script tst", "yarn test", "pnpm -s test"):
        found = read_command(line, str(tmp_path))
        assert (found.runner, found.exact) == (runner, False)


@each("manifest", ["", "[]", '{"scripts": []}', '{"scripts": {"test": 1}}', "{"])
def test_an_odd_package_stays_unknown(manifest: str, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text(manifest, encoding="utf-8")
    assert read_command("npm test", str(tmp_path)).runner == "unknown"


def test_a_recipe_in_plain_words_is_looked_up(tmp_path: Path) -> None:
    recipes = "all:\n\techo\n\ntest: all\n\techo testing\n\t@cd py && python3 -m pytest -q\n"
    (tmp_path / "Makefile").write_text(recipes, encoding="utf-8")
    found = read_command("make test", str(tmp_path))
    assert (found.runner, found.cwd, found.exact) == ("pytest", "py", False)
    assert read_command("make all", str(tmp_path)).runner == "unknown"
    (tmp_path / "GNUmakefile").write_text("test:: all\n\tnode --test\n", encoding="utf-8")
    assert read_command("make test", str(tmp_path)).runner == "node"  # as make itself chooses


@each(
    ("line", "report"),
    [
        ("cargo test --no-fail-fast", "format: cargo"),
        ("cd x && cargo +nightly test", "format: cargo"),
        ("go test ./...", "format: go-json"),
        ("go test -json ./... | tee log", "format: go-json"),
        ("jest", "format: jest"),
        ("npx -y jest --ci", "format: jest"),
        ("npx vitest run", "format: vitest"),
        ("mocha test", "format: mocha"),
        ("mvn -o -q test", "junit_xml: **/target/surefire-reports/TEST-*.xml"),
        ("./mvnw verify", "junit_xml: **/target/surefire-reports/TEST-*.xml"),
        ("./gradlew :app:test", "junit_xml: **/build/test-results/test/*.xml"),
        # What prints something else, several of them, and what runs no tests.
        ("cargo test -q", None),
        ("mocha --reporter=tap", None),
        ("npx jest --json", None),
        ("cargo test && go test ./...", None),
        ("cargo build", None),
        ("make test", None),
        ("GOFLAGS=-count=1 go test", None),
        ("dotnet test", None),
    ],
)
def test_what_a_command_says_by_its_name_is_no_guess(line: str, report: str | None) -> None:
    found = implied_report(line)
    assert (found and str(found)) == report
    assert found is None or all(word in line for word in found.program.split())
    if report is None and line != "make test":
        with pytest.raises(InputError, match="nothing declares how"):
            TestsGrader.check_options({"cmd": line})
    else:
        TestsGrader.check_options({"cmd": line})
    assert TestsGrader.implied({"cmd": line, "format": "tap"}) is None


def test_tests_are_judged_apart_where_it_is_said_and_can_be() -> None:
    for cmd in ("pytest -q", "python3 -m unittest", "node --test"):
        assert mode_of("process", cmd) == "process"
        assert mode_of("auto", cmd) == mode_of("shared", cmd) == "shared"
    for cmd in ("cargo test", "pytest 'a"):
        assert not is_separable(cmd)
    with pytest.raises(InputError, match="not available for 'cargo'") as raised:
        mode_of("process", "cargo test")
    assert "pytest, unittest and node --test have it" in raised.value.hint


def test_the_script_of_a_package_says_whether_it_can_be_judged_apart(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"scripts": {"test": "node --test"}}', "utf-8")
    assert mode_of("process", "npm test", str(tmp_path)) == "process"
    assert not is_separable("npm test")


HIDDEN = """
import os
import sys
import unittest
import pytest
from solution import *
from solution import TestImported

def test_a(): pass
async def test_b(): pass
def helper(): pass
@pytest.fixture
def test_data(): pass
@pytest.mark.skip(reason="later")
def test_skipped(): pass
@pytest.mark.xfail
def test_bug(): pass
@pytest.mark.skipif(sys.platform == "win32", reason="")
def test_posix(): pass
@pytest.mark.skipif(is_slow(), reason="")
def test_slow(): pass
if sys.version_info > (3, 8):
    def test_new(): pass
class TestPlain:
    def test_c(self): pass
class TestHelper:
    __test__ = False
    def test_no(self): pass
class TestInit:
    def __init__(self): pass
    def test_no(self): pass
class Base(unittest.TestCase):
    def test_d(self): pass
class Derived(Base):
    @unittest.skipUnless(os.name == "posix", "")
    def test_e(self): pass
    @unittest.expectedFailure
    def test_g(self): pass
class TestMarked:
    pytestmark = [pytest.mark.skip(reason="later")]
    def test_h(self): pass
class TestForeign(SolutionBase):
    def test_f(self): pass
Machine = make_machine()
"""


def test_the_tests_of_a_file_are_known_without_running_it() -> None:
    tests = read_python_tests({"test_h.py": HIDDEN})["test_h.py"]
    assert sorted(tests.required) == [
        "Base::test_d",
        "Derived::test_d",
        "Derived::test_e",
        "TestForeign::test_f",
        "TestPlain::test_c",
        "test_a",
        "test_b",
        "test_posix",
        "test_slow",
    ]
    left_out = {"test_skipped", "test_bug", "Derived::test_g", "TestMarked::test_h"}
    assert tests.possible == {*left_out, "test_new"}
    cases = {"Base::test_d", "Derived::test_d", "Derived::test_e", "Derived::test_g"}
    assert tests.cases == cases
    assert tests.skips == {
        **dict.fromkeys(left_out, True),
        "test_posix": False,
        "Derived::test_e": False,
    }
    for name in ("TestForeign::test_x", "Machine::runTest", "TestImported::test_y", "test_new"):
        assert tests.knows(name)
    for name in ("test_free", "TestPlain::test_free", "TestStar::test_free", "test_data"):
        assert not tests.knows(name)


def test_examples_of_docstrings_are_known() -> None:
    source = """'>>> 1'\ndef f():\n    '>>> 2  # doctest: +SKIP'\ndef g():\n    '>>> ('\n"""
    tests = read_python_tests({"kit.py": source})["kit.py"]
    assert (tests.doctests, tests.possible) == (["kit", "kit.g"], {"kit", "kit.f", "kit.g"})
    assert tests.skips == {"kit.f": True}


@each(
    "source",
    ["globals()['test_x'] = f", "setattr(T, 'test_x', f)", "def load_tests(l, t, p): pass", "(("],
)
def test_a_file_that_makes_its_tests_is_open(source: str) -> None:
    assert read_python_tests({"test_h.py": source})["test_h.py"].open


def test_a_hidden_helper_is_the_authors() -> None:
    files = {
        "tests/base.py": "class Contract:\n    def test_x(self): pass\n",
        "tests/test_h.py": "from base import Contract\nclass TestY(Contract):\n    pass\n",
    }
    tests = read_python_tests(files)["tests/test_h.py"]
    assert tests.required == ["TestY::test_x"]
    assert not tests.knows("TestY::test_free")


@each(
    "entries, count",
    [
        ("[1, 2, 3]", 3),
        ("[*range(1, 3), 3]", 3),
        ("range(0, 9, 3)", 3),
        ("ROWS + [5]", 3),
        ("[n for n in ROWS]", 2),
        ("list({'p': 1, 'q': 2}.items())", 2),
        ("sorted(ROWS)", 2),
        # What the source does not say counts once.
        *[(entries, 1) for entries in ("kit.NAMES", "[*kit.NAMES, 1]", "[n for n in ROWS if n]")],
        *[(entries, 1) for entries in ("range(kit.MOST)", "ROWS + kit.NAMES", "{**kit.NAMED}")],
    ],
)
def test_variants_are_those_that_the_source_itself_lists(entries: str, count: int) -> None:
    source = (
        "import kit, pytest\nROWS = [1, 2]\n"
        f"@pytest.mark.parametrize('n', {entries})\ndef test_n(n): pass\n"
    )
    found = read_python_tests({"test_h.py": source})["test_h.py"].variants
    assert found == ({"test_n": count} if count > 1 else {})


def test_fixtures_with_variants_are_those_that_pytest_would_find() -> None:
    def fixture(name: str, *params: int) -> str:
        return f"import pytest\n@pytest.fixture(params={[*params]})\ndef {name}(): pass\n"

    test = "def test_it(two, lone, three): pass\n"
    files = {
        "conftest.py": fixture("two", 1, 2),
        "sub/conftest.py": fixture("two", 1, 2, 3),
        "other/conftest.py": fixture("lone", 1, 2),
        "helpers.py": fixture("three", 1, 2, 3, 4, 5),
        "test_above.py": test,
        "sub/test_near.py": test,
        "test_imports.py": f"from helpers import three\n{test}",
        "test_own.py": fixture("two", 1) + test,
    }
    found = read_python_tests(files)
    assert {path: one.variants for path, one in found.items() if "test_" in path} == {
        "test_above.py": {"test_it": 2},
        "sub/test_near.py": {"test_it": 3},
        "test_imports.py": {"test_it": 2 * 5},
        "test_own.py": {},
    }


@given(st.text())
def test_any_line_or_source_is_read_or_refused(text: str) -> None:
    assert "test_h.py" in read_python_tests({"test_h.py": text})
    with suppress(InputError):
        assert read_command(text).runner != ""


def heard(**outcomes: Outcome) -> RunnerReport:
    """A runner's report about tests of ``test_h.py``; two underscores stand for ``::``."""
    found = RunnerReport()
    for name, outcome in outcomes.items():
        full = "test_h.py::" + name.replace("__", "::")
        found.collected.append(full)
        found.outcomes[full] = TestOutcome(id=full, outcome=outcome)
    return found


def expected(
    source: str,
    report: RunnerReport,
    line: str = "pytest test_h.py",
    *,
    changed: Sequence[str] = (),
) -> list[str]:
    hidden = read_python_tests({"test_h.py": source})
    found = expect(report, hidden, read_command(line), changed=changed)
    return [name.removeprefix("test_h.py::") for name in found.ids]


TWO = "def test_a(): pass\ndef test_b(): pass\n"


@each(
    "report",
    [
        heard(),
        heard(test_a="passed"),
        # ``from solution import *`` brings the solution's own tests along.
        heard(test_a="failed", test_free1="passed", test_free2="passed"),
        heard(test_a="skipped", test_b="xpassed"),
        heard(test_a="xfailed", test_b="passed"),
        RunnerReport(collected=["mine_test.py::test_free"]),
        RunnerReport(errors={"test_h.py": "ImportError"}),
    ],
)
def test_the_tests_of_a_file_are_expected_whatever_is_heard(report: RunnerReport) -> None:
    for line in ("pytest test_h.py", "pytest", "make test"):
        assert expected(TWO, report, line, changed=("mine_test.py",)) == ["test_a", "test_b"]


def test_a_file_that_is_not_loaded_is_missing_where_a_command_selects() -> None:
    report = RunnerReport(errors={"test_h.py": "ImportError"})
    assert expected(TWO, report, "pytest -k a") == ["test_h.py"]


def test_variants_of_a_test_count_each() -> None:
    report = RunnerReport(
        collected=["test_h.py::test_a[x::y]", "test_h.py::test_a[2]", "test_h.py::test_b"]
    )
    assert expected(TWO, report) == ["test_a[2]", "test_a[x::y]", "test_b"]


def test_a_file_that_a_runner_names_from_another_directory_is_the_one() -> None:
    report = RunnerReport(collected=["kit/test_h.py::test_a"])
    assert expected(TWO, report) == ["kit/test_h.py::test_a", "test_b"]
    hidden = read_python_tests({"a/test_h.py": TWO, "b/test_h.py": TWO})
    report = RunnerReport(collected=["test_h.py::test_a"])  # of which of them?
    found = expect(report, hidden, read_command("pytest"), changed=["test_h.py"])
    assert found.notes == ("test_h.py::test_a: not among the author's tests, so not counted",)


def test_a_skip_by_the_author_does_not_count() -> None:
    source = f"import sys, pytest\n{TWO}@pytest.mark.skip\ndef test_c(): pass\n"
    report = heard(test_a="passed", test_b="passed", test_c="skipped")
    assert expected(source, report) == ["test_a", "test_b"]
    hidden = read_python_tests({"test_h.py": source})
    found = expect(report, hidden, read_command("pytest"))
    assert found.left_out == ("test_h.py::test_c",)
    assert [line.partition(": ")[2] for line in found.notes] == [LEFT_OUT]
    report = heard(test_a="passed", test_b="passed", test_c="failed")
    assert "test_c" in expected(source, report)


@each(
    "mark",
    [
        "@pytest.mark.skipif(\"sys.platform == 'win32'\")",
        "@pytest.mark.parametrize('n', [1, pytest.param(2, marks=pytest.mark.skip)])",
        "@pytest.mark.parametrize('n', [])",
    ],
)
def test_a_skip_that_depends_counts_unless_a_mark_made_it(mark: str) -> None:
    source = f"import sys, pytest\n{mark}\ndef test_c(n=0): pass\n"
    report = heard(test_c="skipped")
    assert expected(source, report) == ["test_c"]
    report.marked.add("test_h.py::test_c")
    assert expected(source, report) == []
    assert expected(source.replace("sys.platform", "kit.platform"), report) == (
        ["test_c"] if "sys.platform" in mark else []
    )


@each(
    ("line", "names"),
    [
        ("pytest test_h.py::test_a", ["test_a"]),
        ("pytest 'test_h.py::test_a[1]'", ["test_a"]),
        ("cd a/b && pytest ../../test_h.py", ["test_a", "test_b"]),
        ("cd a/b && pytest ../test_h.py", []),
        ("pytest other/", []),
        ("pytest .", ["test_a", "test_b"]),
        *[(f"pytest {option}", []) for option in ("-k test_a", "-ktest_a", "-mslow", "--lf")],
        ("pytest -p no:cacheprovider", ["test_a", "test_b"]),
        ("python3 -m unittest", []),
    ],
)
def test_tests_that_the_command_leaves_out_are_not_expected(line: str, names: list[str]) -> None:
    assert expected(TWO, heard(), line) == names


CASE = """
import unittest
class T(unittest.TestCase):
    def test_a(self): pass
    def test_b(self): pass
"""


@each(
    "line",
    [
        *("python3 -m unittest", "python3 -m unittest -v test_h", "python3 -m unittest test_h.py"),
        "make test",  # which runs it: what is heard of has its form
    ],
)
def test_ids_of_unittest(line: str) -> None:
    report = RunnerReport(collected=["test_h.T.test_a"])
    assert expected(CASE, report, line) == ["test_h.T.test_a", "test_h.T.test_b"]
    hidden = read_python_tests({"sub/test_h.py": CASE})
    found = expect(report, hidden, read_command("cd sub && python3 -m unittest"))
    assert found.ids == ("sub.test_h.T.test_b", "test_h.T.test_a")


def test_a_module_that_unittest_is_not_told_of_is_not_expected() -> None:
    assert expected(CASE, heard(), "python3 -m unittest test_other") == []


def test_given_ids_are_answered_by_variants_and_by_the_end_of_a_path() -> None:
    told: list[tuple[str, Outcome]] = [
        ("a/test_h.py::test_a[1]", "passed"),
        ("a/test_h.py::test_a[2]", "failed"),
        ("a/test_h.py::test_b", "passed"),
        ("b/test_x.py::test_c", "passed"),
        ("c/test_x.py::test_c", "passed"),
    ]
    outcomes = {name: TestOutcome(id=name, outcome=outcome) for name, outcome in told}
    wanted = ["a/test_h.py::test_a", "test_h.py::test_b", "test_x.py::test_c", "test_none"]
    wanted += ["test_b", "test_c"]
    answers = answer_given(wanted, outcomes)
    assert answers["a/test_h.py::test_a"].outcome == "failed"
    assert answers["test_h.py::test_b"].outcome == answers["test_b"].outcome == "passed"
    assert "test_c" not in answers  # of which file?
    assert "test_x.py::test_c" not in answers
    assert "test_none" not in answers


def test_a_file_was_parsed_once_for_each_id_that_the_command_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_h.py").write_text(TWO)
    line = "pytest test_h.py::test_a test_h.py::test_b 'test_h.py::test_b[1]'"
    plan = RunnerPlan(
        command=TestCommand(cmd=line),
        workspace=Workspace(path=str(tmp_path), source=str(tmp_path)),
        invocation=read_command(line),
        layer=str(tmp_path),
        told={},
        deadline=0.0,
    )
    read: list[Mapping[str, str]] = []

    def reading(files: Mapping[str, str]) -> dict[str, PythonTests]:
        read.append(files)
        return read_python_tests(files)

    monkeypatch.setattr(prerequisites, "read_python_tests", reading)
    prerequisites.require_targets(plan)
    assert len(read) == 1


def test_an_editable_pytest_was_no_pytest(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    place = Workspace(path=str(tmp_path), env={"VIRTUAL_ENV": str(tmp_path)})
    with pytest.raises(GraderError, match="has no pytest"):
        find_python(place, pytest=True)
    (packages / "pytest-9.1.0.dist-info").mkdir()
    assert find_python(place, pytest=True).path == f"{tmp_path}/bin/python"
    assert has_editable_pytest(place)
    (packages / "pytest").mkdir()
    assert not has_editable_pytest(place)
