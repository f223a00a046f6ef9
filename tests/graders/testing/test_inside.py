"""The runner that works inside the sandbox: what it says of honest tests, from its own process."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.each import each
from tests.graders.testing.inside_runner import (
    ADD,
    CANARY,
    CASES,
    FIB,
    HONEST,
    INSIDE,
    PRIME,
    TESTS,
    Runner,
)


def test_an_honest_solution_passes_and_says_so_in_order(run: Runner) -> None:
    heard = run({"mathkit.py": HONEST}, {"test_hidden.py": TESTS}, "-q")
    assert heard.ids == [ADD, PRIME, FIB]
    assert heard.passed == {ADD, PRIME, FIB}
    assert not heard.tampering
    assert [frame["event"] for frame in heard.frames[:2]] == ["ready", "collected"]
    assert heard.frames[-1] == {"event": "end", "exit": 0}
    assert heard.status == 0
    started = [frame["id"] for frame in heard.of("start")]
    assert started == [frame["id"] for frame in heard.of("result")]


def test_failures_say_what_was_compared(run: Runner) -> None:
    wrong = HONEST.replace("a + b\n\ndef is", "a - b\n\ndef is")
    heard = run({"mathkit.py": wrong}, {"test_hidden.py": TESTS}, "-q")
    assert heard.passed == {PRIME, FIB}
    assert "assert -1 == 5" in heard.messages[ADD]
    assert heard.frames[-1] == {"event": "end", "exit": 1}
    assert heard.status == 1


def test_canaries_fail_with_the_planted_value_and_are_no_results(run: Runner) -> None:
    heard = run({"mathkit.py": HONEST}, {"test_hidden.py": TESTS}, "-q", "-x", "--maxfail=1")
    names = [frame["name"] for frame in heard.of("canary")]
    assert len(names) == len({*names}) == 2
    assert all(CANARY in name for name in names)
    assert not any(CANARY in name for name in (*heard.ids, *heard.outcomes))
    assert len(heard.passed) == 3  # a planted failure does not stop -x


def test_there_is_a_canary_where_nothing_is_hidden(run: Runner) -> None:
    heard = run({"mathkit.py": HONEST, "test_own.py": TESTS}, {}, "-q")
    assert len(heard.of("canary")) == 2
    assert heard.passed == {f"test_own.py::test_{name}" for name in ("add", "is_prime", "fib")}


PATCHING = """
from functools import partial
from unittest import mock

import lib

def test_open():
    with mock.patch("builtins.open", mock.mock_open(read_data="d")):
        assert open("x").read() == "d" == lib.load("x")

def test_sum(monkeypatch):
    monkeypatch.setattr("builtins.sum", mock.Mock(return_value=7))
    assert sum([1]) == 7
    monkeypatch.setattr("builtins.sum", partial(lambda *given: given, 3))
    assert sum(1) == (3, 1)

def test_round():
    with mock.patch("builtins.round", side_effect=AssertionError):
        assert lib.load.__name__ == "load"
"""


@pytest.mark.parametrize("order", ["-q", "--import-mode=importlib"])
def test_what_tests_patch_among_the_builtins_they_see(run: Runner, order: str) -> None:
    lib = "def load(path): return open(path).read()\n"
    heard = run({"lib.py": lib}, {"test_patching.py": PATCHING}, order)
    assert heard.tampering == []
    assert len(heard.passed) == 3, heard.output


@pytest.mark.parametrize("mode", ["prepend", "append", "importlib"])
def test_hidden_files_load_in_every_import_mode(run: Runner, mode: str) -> None:
    hidden = {
        "tests/conftest.py": "import pytest\n@pytest.fixture\ndef five():\n    return 5\n",
        "tests/unit/test_hidden.py": (
            "from mathkit import add\ndef test_add(five):\n    assert add(2, 3) == five\n"
        ),
    }
    if mode != "importlib":
        hidden["tests/unit/expected_values.py"] = "FIVE = 5\n"
        hidden["tests/unit/test_helped.py"] = (
            "import expected_values\ndef test_it():\n    assert expected_values.FIVE == 5\n"
        )
    heard = run({"mathkit.py": HONEST}, hidden, f"--import-mode={mode}", "tests")
    assert len(heard.passed) == len(hidden) // 2, heard.output


def test_hidden_packages_with_relative_imports_load(run: Runner) -> None:
    hidden = {
        "tests/__init__.py": "SCALE = 2\n",
        "tests/data.py": "from . import SCALE\nFIVE = 5 * SCALE // 2\n",
        "tests/test_hidden.py": (
            "from mathkit import add\nfrom .data import FIVE\n"
            "class TestAdd:\n    def test_add(self):\n        assert add(2, 3) == FIVE\n"
        ),
    }
    heard = run({"mathkit.py": HONEST}, hidden, "-q", "tests/test_hidden.py::TestAdd::test_add")
    assert heard.passed == {"tests/test_hidden.py::TestAdd::test_add"}, heard.output


def test_ids_are_relative_to_the_workspace_wherever_the_command_runs(run: Runner) -> None:
    files = {"sub/mathkit.py": HONEST, "sub/pytest.ini": "[pytest]\n"}
    heard = run(files, {"sub/tests/test_hidden.py": TESTS}, "-q", "tests", cwd="sub")
    assert "sub/tests/test_hidden.py::test_add" in heard.passed, heard.output


def test_a_script_has_no_working_directory_on_its_path(run: Runner) -> None:
    files = {"sub/mathkit.py": HONEST, "lib/mathkit.py": HONEST}
    hidden = {"tests/test_hidden.py": TESTS}
    heard = run(files, hidden, "-q", "../tests", cwd="sub", env={"ASSAY_SCRIPT": "1"})
    assert "tests/test_hidden.py" in heard.errors
    (run.place / "channel").unlink()
    env = {"ASSAY_SCRIPT": "1", "ASSAY_PYTHONPATH": "lib"}
    assert len(run(files, hidden, "-q", "tests", env=env).passed) == 3


def test_skipped_ids_are_not_run(run: Runner) -> None:
    heard = run({"mathkit.py": HONEST}, {"test_hidden.py": TESTS}, "-q", skip=[FIB])
    assert heard.ids == [ADD, PRIME]
    assert heard.passed == {ADD, PRIME}


def test_the_seed_makes_the_order(run: Runner) -> None:
    body = "\n".join(f"def test_{n}(): pass" for n in range(12))
    orders: list[list[str]] = []
    for seed, shuffle in ((1, True), (1, True), (2, True), (1, False)):
        (run.place / "channel").unlink(missing_ok=True)
        heard = run({}, {"test_hidden.py": body}, "-q", seed=seed, shuffle=shuffle)
        orders.append([frame["id"] for frame in heard.of("start")])
    written = [f"test_hidden.py::test_{n}" for n in range(12)]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert orders[3] == written != orders[0]


def test_the_tests_of_a_class_stay_together(run: Runner) -> None:
    hidden = """
import pytest

class TestSteps:
    seen = []

    @pytest.fixture(scope="class", autouse=True)
    def once(self, request):
        request.cls.seen.append("set up")

    def test_one(self): self.seen.append(1)
    def test_two(self): self.seen.append(2)
    def test_all(self): assert self.seen == ["set up", 1, 2]

def test_a(): pass
def test_b(): pass
"""
    heard = run({}, {"test_hidden.py": hidden}, "-q")
    assert len(heard.passed) == 5


OUTCOMES = """
import pytest
import unittest

def test_pass(): pass
def test_fail(): assert 1 == 2
def test_raise(): raise ValueError("no")
def test_skip(): pytest.skip("why")
@pytest.mark.xfail
def test_xfail(): assert 0
@pytest.mark.xfail
def test_xpass(): pass
@pytest.fixture
def broken(): raise OSError("set up")
def test_error(broken): pass
@pytest.fixture
def leaving():
    yield
    raise OSError("torn down")
def test_teardown(leaving): pass
@pytest.mark.parametrize("n", [1, 2, 3])
def test_param(n): assert n < 3
class Sub(unittest.TestCase):
    def test_parts(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertNotEqual(n, 1)
"""


def test_every_outcome_of_pytest_has_its_word(run: Runner) -> None:
    heard = run({}, {"test_hidden.py": OUTCOMES}, "-q", flags=("-I", "-B"))
    found = {
        name.partition("::")[2].removeprefix("test_"): one for name, one in heard.outcomes.items()
    }
    assert found == {
        "pass": "passed",
        "fail": "failed",
        "raise": "failed",
        "skip": "skipped",
        "xfail": "xfailed",
        "xpass": "xpassed",
        "error": "error",
        "teardown": "error",
        "param[1]": "passed",
        "param[2]": "passed",
        "param[3]": "failed",
        "Sub::test_parts": "failed",
    }
    assert not heard.tampering
    assert "why" in heard.messages["test_hidden.py::test_skip"]


UNITTEST_OUTCOMES = """
import unittest

def setUpModule(): pass

class Base(unittest.TestCase):
    ready = 0

    @classmethod
    def setUpClass(cls): cls.ready += 1

class Good(Base):
    def test_pass(self): self.assertEqual(self.ready, 1)
    def test_fail(self): self.assertEqual(1, 2)
    def test_raise(self): raise ValueError("no")
    def test_skip(self): self.skipTest("why")
    @unittest.expectedFailure
    def test_xfail(self): self.fail()
    @unittest.expectedFailure
    def test_xpass(self): pass
    def test_sub(self):
        for n in range(3):
            with self.subTest(n=n): self.assertNotEqual(n, 1)

class Async(unittest.IsolatedAsyncioTestCase):
    async def test_await(self): self.assertEqual(await self.five(), 5)
    async def five(self): return 5

class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise OSError("set up")
    def test_never(self): pass
"""


def test_every_outcome_of_unittest_has_its_word(run: Runner) -> None:
    hidden = {"tests/__init__.py": "", "tests/test_hidden.py": UNITTEST_OUTCOMES}
    heard = run({}, hidden, "discover", "-v", runner="unittest")
    found = {name.removeprefix("tests/test_hidden.py::"): o for name, o in heard.outcomes.items()}
    assert found == {
        "Good::test_pass": "passed",
        "Good::test_fail": "failed",
        "Good::test_raise": "error",
        "Good::test_skip": "skipped",
        "Good::test_xfail": "xfailed",
        "Good::test_xpass": "xpassed",
        "Good::test_sub": "failed",
        "Async::test_await": "passed",
    }
    assert "tests/test_hidden.py::Broken::test_never" in heard.ids
    assert not heard.tampering
    assert len(heard.of("canary")) == 1
    assert heard.frames[-1] == {"event": "end", "exit": 1}


@pytest.mark.parametrize(
    "args",
    [["test_hidden"], ["test_hidden.MathTest"], ["discover"], [], ["-f", "test_hidden.py"]],
    ids=" ".join,
)
def test_unittest_is_understood_however_it_is_called(run: Runner, args: list[str]) -> None:
    heard = run({"mathkit.py": HONEST}, {"test_hidden.py": CASES}, *args, runner="unittest")
    names = {f"test_hidden.py::MathTest::test_{name}" for name in ("add", "fib")}
    assert heard.passed == {*heard.ids} == names, heard.output
    assert heard.status == 0


def test_a_unittest_module_that_cannot_be_loaded_leaves_the_others(run: Runner) -> None:
    hidden = {"test_hidden.py": CASES, "test_other.py": "import gone\n" + CASES}
    files = {"mathkit.py": HONEST, "gone.py": "raise SystemExit(0)\n"}
    heard = run(files, hidden, "test_hidden", "test_other", runner="unittest")
    assert len(heard.passed) == 2
    assert "SystemExit" in heard.errors["test_other.py"]
    assert heard.status == 1


def test_an_id_that_is_lost_with_its_module_leaves_the_others(run: Runner) -> None:
    hidden = {"test_a.py": "import gone\ndef test_a(): pass\n", "test_b.py": "def test_b(): pass\n"}
    heard = run({}, hidden, "-q", "test_a.py::test_a", "test_b.py::test_b")
    assert heard.passed == {"test_b.py::test_b"}
    assert "test_a.py" in heard.errors
    assert heard.status != 0


def test_the_environment_adds_nothing_to_the_command(run: Runner) -> None:
    env = {"PYTEST_ADDOPTS": "-k nothing", "PYTEST_PLUGINS": "evil"}
    files = {"mathkit.py": HONEST, "evil.py": "raise SystemExit"}
    assert len(run(files, {"test_hidden.py": TESTS}, "-q", env=env).passed) == 3


def test_a_second_runner_of_a_command_is_a_plain_one(run: Runner) -> None:
    nested = """
import os, subprocess, sys
def test_nested():
    again = subprocess.run([sys.executable, BOOT, "pytest", "-q", "test_plain.py"],
        env={**os.environ, "ASSAY_CHANNEL": CHANNEL}, capture_output=True, text=True)
    assert "1 passed" in again.stdout
""".replace("BOOT", repr(str(INSIDE / "boot.py")))
    nested = nested.replace("CHANNEL}", f"{str(run.place / 'channel')!r}}}")
    heard = run(
        {"test_plain.py": "def test_x(): pass"}, {"test_nested.py": nested}, "test_nested.py"
    )
    assert heard.passed == {"test_nested.py::test_nested"}, heard.messages


def test_without_a_host_nothing_runs(run: Runner) -> None:
    done = subprocess.run(
        [sys.executable, str(INSIDE / "boot.py"), "pytest"],
        cwd=run.place,
        env={"ASSAY_CHANNEL": str(run.place / "none")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 70
    assert "cannot report" in done.stderr


HONEST_LIBRARY = """
import dataclasses, functools
from collections import UserDict, deque, namedtuple
from types import SimpleNamespace

@dataclasses.dataclass
class Point:
    x: int
    y: object = None

@functools.total_ordering
class Money:
    def __init__(self, cents): self.cents = cents
    def __eq__(self, other):
        return self.cents == (other.cents if isinstance(other, Money) else other)
    def __lt__(self, other):
        return self.cents < (other.cents if isinstance(other, Money) else other)
    __hash__ = None

class Caseless(str):
    def __eq__(self, other): return isinstance(other, str) and self.lower() == other.lower()
    __hash__ = str.__hash__

class Strict:
    def __eq__(self, other): return self.mark == other.mark
    mark = 1

class Vector(list):
    def __eq__(self, other): return Vector(a == b for a, b in zip(self, other))
    def all(self): return all(list(self))

class Column:
    def __init__(self, name): self.name = name
    def __eq__(self, other): return SimpleNamespace(sql=f"{self.name} = {other}")

class Evens:
    def __contains__(self, n): return n % 2 == 0

class Row(UserDict): pass

Pair = namedtuple("Pair", "a b")
def fails(): raise KeyError("k")
def nested(): return {"a": [Point(1, Money(3)), (2, deque([3]))], "when": object()}
"""
HONEST_TESTS = '''
"""Comparisons of every kind."""
import unittest
from unittest.mock import ANY
import pytest
import lib

class Wild:
    def __eq__(self, other): return True

def check(n): assert n * n == 4

def test_any(): assert lib.nested() == {"a": ANY, "when": ANY}
def test_wildcard_of_the_test(): assert [lib.Point(1), 3] == [Wild(), Wild()]
def test_approx(): assert 0.1 + 0.2 == pytest.approx(0.3)
def test_approx_in_dict(): assert {"a": 0.1 + 0.2} == {"a": pytest.approx(0.3)}
def test_dataclass(): assert lib.Point(1, [2]) == lib.Point(1, [2]) != lib.Point(2)
def test_money(): assert lib.Money(3) == 3 and lib.Money(3) < 4 and lib.Money(5) > lib.Money(4)
def test_money_in(): assert lib.Money(3) in [1, 2, 3] and 3 in [lib.Money(3)]
def test_caseless(): assert lib.Caseless("A") == "a"
def test_strict(): assert lib.Strict() == lib.Strict()
def test_vector(): assert (lib.Vector([1, 2]) == [1, 2]).all()
def test_column(): assert (lib.Column("a") == 5).sql == "a = 5"
def test_evens(): assert 4 in lib.Evens() and 3 not in lib.Evens()
def test_pair(): assert lib.Pair(1, 2) == (1, 2)
def test_row(): assert [lib.Row(a=1)] == [{"a": 1}] and float("nan") != float("nan")
def test_generator(): assert 2 in (n for n in range(4))
def test_chain(): assert 1 < 2 <= 2 < len("abcd")
def test_helper(): check(2)
class Cases(unittest.TestCase):
    def setUp(self): self.n = 5
    def test_equal(self):
        self.assertEqual(self.n, 5); self.assertIn(5, [5]); self.assertGreater(6, self.n)
        self.assertCountEqual([1, 2], [2, 1]); self.assertEqual(first=1, second=1)
        self.assertAlmostEqual(0.1 + 0.2, 0.3, places=5); self.assertTrue(self.n == 5)
        with self.assertRaises(KeyError): lib.fails()
'''


def test_honest_tests_and_solutions_pass(run: Runner) -> None:
    heard = run(
        {"lib.py": HONEST_LIBRARY}, {"tests/test_honest.py": HONEST_TESTS}, "-q", "-W", "error"
    )
    assert heard.tampering == []
    assert {n: m for n, m in heard.messages.items() if heard.outcomes[n] != "passed"} == {}
    assert len(heard.outcomes) == HONEST_TESTS.count("def test_")


def test_a_plugin_of_the_author_may_wrap_and_patch_the_runner(run: Runner) -> None:
    conftest = """
import pytest, _pytest.runner, _pytest.unittest
pytest_plugins = ["pytester"]
class Extra:
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        yield
def pytest_configure(config):
    config.pluginmanager.register(Extra())
    old = _pytest.runner.pytest_runtest_call
    _pytest.runner.pytest_runtest_call = lambda item: old(item)
"""
    hidden = {
        "test_hidden.py": TESTS,
        "test_plugin.py": (
            "def test_inner(pytester):\n    pytester.makepyfile('def test_x(): assert 0')\n"
            "    pytester.runpytest().assert_outcomes(failed=1)\n"
        ),
    }
    heard = run({"mathkit.py": HONEST, "conftest.py": conftest}, hidden, "-q")
    assert heard.tampering == []
    assert len(heard.passed) == 4, heard.output


def test_what_the_solution_leaves_running_holds_nothing_up(run: Runner) -> None:
    solution = (
        HONEST
        + """
import atexit, os, subprocess, sys, threading
subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE,
    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
threading.Thread(target=threading.Event().wait).start()
atexit.register(print, "at exit")
"""
    )
    heard = run({"mathkit.py": solution}, {"test_hidden.py": TESTS}, "-q")
    assert len(heard.passed) == 3
    assert "at exit" not in heard.output


def test_nothing_tells_the_tests_of_the_channel(run: Runner) -> None:
    test = """
import os, sys
def test_environment(): assert [n for n in os.environ if "ASSAY" in n] == []
def test_path(): assert [p for p in (*sys.path, os.environ["PATH"]) if "inside" in p] == []
def test_descriptors():
    low = []
    for fd in range(3, 300):
        try: low.append(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError: pass
    assert [name for name in low if "socket" in name] == []
"""
    env = {"PATH": f"{INSIDE}/bin:/usr/bin:/bin"}
    assert len(run({}, {"test_hidden.py": test}, "-q", env=env).passed) == 3


@each("path", sorted(INSIDE.glob("*.py")))
def test_the_files_are_of_python_3_8_and_need_only_each_other(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    allowed = {*sys.stdlib_module_names, "pytest", "_pytest", "pluggy"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        ours = [name for name in names if name.startswith("assay.graders.testing.inside")]
        assert ours == names or {name.partition(".")[0] for name in names} <= allowed
