"""What a hostile solution can make the runner say, in whose process it is loaded.

The sandbox is not needed for any of it, and would not help: it is the same process.
"""

from __future__ import annotations

import pytest

from tests.attacks.scenes import scenes
from tests.graders.testing.inside_runner import (
    ADD,
    CASES,
    FIB,
    HONEST,
    PRIME,
    TESTS,
    WRONG,
    Runner,
)
from tests.graders.testing.test_inside_honest import GIVEN

pytestmark = pytest.mark.slow


SCENES = {scene.name: {one.name: one for one in scene.agents} for scene in scenes("inside")}


def left(scene: str, attack: str) -> str:
    """The module that an agent of ``tests/attacks/inside.yaml`` leaves."""
    (text,) = SCENES[scene][attack].files.values()
    return str(text)


COLD = {
    "atexit",
    "garbage on every descriptor",
    "what gc shows",
    "the end, by a signal",
    "a fork that goes on",
    "the items, through the frames",
    "the way out",
}
"""Attacks on the process rather than on pytest: they are tried in one that nobody has forked."""


ENDS_ITS_IMPORT = ("the interpreter's way out", "pytest's way out", "an interrupt")


@pytest.mark.parametrize("name", [one for one in SCENES["inside"] if one not in ENDS_ITS_IMPORT])
def test_nothing_that_a_wrong_solution_changes_in_pytest_pays(run: Runner, name: str) -> None:
    later = "import mathkit\ndef test_add():\n    assert mathkit.add(1, 1) == 2\n"
    hidden = {"test_hidden.py": TESTS, "test_later.py": later}
    heard = run({"mathkit.py": WRONG + left("inside", name)}, hidden, "-q", cold=name in COLD)
    assert heard.passed == set(), heard.output


@pytest.mark.parametrize("attack", ENDS_ITS_IMPORT)
def test_a_solution_that_ends_its_import_fails_its_own_module_only(
    run: Runner, attack: str
) -> None:
    hidden = {"test_hidden.py": TESTS, "test_other.py": "def test_other(): pass\n"}
    heard = run({"mathkit.py": HONEST + left("inside", attack)}, hidden, "-q")
    assert heard.passed == {"test_other.py::test_other"}
    assert "test_hidden.py" in heard.errors
    assert heard.status == heard.frames[-1]["exit"] == 1


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("raise SystemExit(0)", "failed"),
        ("raise KeyboardInterrupt", "failed"),
        ("import pytest; pytest.exit('done')", "failed"),
        ("import pytest; pytest.skip('no')", "skipped"),
        ("import pytest; pytest.xfail('no')", "xfailed"),
        ("import unittest; raise unittest.SkipTest('no')", "skipped"),
        ("raise GeneratorExit", "failed"),
    ],
)
def test_a_solution_that_leaves_its_test_fails_that_test_only(
    run: Runner, body: str, outcome: str
) -> None:
    solution = HONEST.replace("return a + b", body)
    heard = run({"mathkit.py": solution}, {"test_hidden.py": TESTS}, "-q")
    assert heard.passed == {PRIME, FIB}
    assert heard.outcomes[ADD] == outcome


@pytest.mark.parametrize("name", SCENES["inside, unittest"])
def test_nothing_that_a_wrong_solution_changes_in_unittest_pays(run: Runner, name: str) -> None:
    attack = left("inside, unittest", name)
    files = {"mathkit.py": WRONG + attack}
    heard = run(files, {"test_hidden.py": CASES}, "-v", "test_hidden", runner="unittest")
    honest_part = {"test_hidden.py::MathTest::test_add"} if "return 5" in attack else set[str]()
    assert heard.passed <= honest_part, heard.output


@pytest.mark.parametrize("name", SCENES["inside, objects"])
def test_an_object_that_equals_everything_fails_its_test(run: Runner, name: str) -> None:
    crooked = left("inside, objects", name)
    solution = f"{HONEST}\n{crooked}\ndef add(a, b): return C()\ndef fib(n): return C()\n"
    heard = run({"mathkit.py": solution}, {"test_hidden.py": TESTS}, "-q")
    wanted = {ADD: "failed", PRIME: "passed", FIB: "failed"}
    assert heard.outcomes == wanted, heard.messages
    assert "answers equal to everything" in heard.messages[ADD]
    assert any("answers equal to everything" in what for what in heard.tampering)


@pytest.mark.parametrize("name", SCENES["inside, answers"])
def test_an_answer_that_agrees_with_more_than_one_thing_passes_nothing(
    run: Runner, name: str
) -> None:
    makes = "answer()" if "Agreeable" in (text := left("inside, answers", name)) else "answer"
    solution = f"{text}\ndef add(*_): return {makes}\nis_prime = fib = add\n"
    heard = run({"mathkit.py": solution}, {"test_hidden.py": TESTS}, "-q")
    assert heard.passed == set(), heard.output


PLACES = """
import unittest
from lib import Any

def test_reversed(): assert 5 == Any()
def test_element(): assert [1, Any()] == [1, 3]
def test_value(): assert {"a": Any()} == {"a": 3}
def test_member(): assert Any() in [1, 2]
def test_not(): assert not Any() != 5
class Cases(unittest.TestCase):
    def test_equal(self): self.assertEqual(Any(), 5)
    def test_true(self): self.assertTrue(Any() == 5)
    def test_list(self): self.assertListEqual([Any()], [5])
"""
ANSWERS = """
class Any:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
"""


@pytest.mark.parametrize("runner", ["pytest", "unittest"])
def test_a_crooked_object_is_found_wherever_it_is_compared(run: Runner, runner: str) -> None:
    args = ["-q"] if runner == "pytest" else ["test_hidden"]
    heard = run({"lib.py": ANSWERS}, {"test_hidden.py": PLACES}, *args, runner=runner)
    expected = PLACES.count("def test_") if runner == "pytest" else 3
    assert len(heard.outcomes) == expected
    assert {n for n, outcome in heard.outcomes.items() if outcome == "passed"} == set()


SECRET = 73421_90655_31728_46013
"""Longer than an address, so that it stands in no text by chance; a reader looks for it."""


@pytest.mark.parametrize("name", SCENES["inside, readers"])
def test_the_oracle_cannot_be_read_from(run: Runner, name: str) -> None:
    reader = left("inside, readers", name)
    solution = f"""
import gc, inspect, linecache, os, re, sys
def look():
    at, main = sys._getframe(2), sys.modules["__main__"]
    try: text = {reader}
    except (OSError, ImportError, TypeError, LookupError): return None
    found = re.search("{SECRET}|channel_client", text)
    return {SECRET} if found else None
def add(a, b): return look()
"""
    test = f"from mathkit import add\ndef test_add():\n    assert add(2, 3) == {SECRET}\n"
    cold = name == "the calling program"
    heard = run({"mathkit.py": solution}, {"test_hidden.py": test}, "-q", cold=cold)
    assert heard.outcomes == {ADD: "failed"}
    assert f"assert None == {SECRET}" in heard.messages[ADD]


@pytest.mark.parametrize("runner", ["pytest", "unittest"])
def test_files_of_the_workspace_shadow_nothing_of_the_runner(run: Runner, runner: str) -> None:
    evil = "import os; print('3 passed'); os._exit(0)\n"
    names = (
        "pytest unittest json hmac _pytest pluggy order session site sitecustomize usercustomize "
        "socket channel_client difflib random ast types"
    )
    files = {f"{name}.py": evil for name in names.split()}
    hidden = {"test_hidden.py": CASES}
    args = ["-q"] if runner == "pytest" else ["test_hidden"]
    heard = run({**files, "mathkit.py": HONEST}, hidden, *args, runner=runner, cold=True)
    assert len(heard.passed) == 2, heard.output


def test_a_start_up_hook_that_installed_packages_lead_to_is_not_run(run: Runner) -> None:
    """Such as packages that are installed as a link to the workspace."""
    files = {"mathkit.py": HONEST, "sitecustomize.py": "import os; os._exit(0)\n"}
    env = {"PYTHONPATH": str(run.place / "workspace")}
    heard = run(files, {"test_hidden.py": TESTS}, "-q", env=env, cold=True)
    assert heard.passed == {ADD, PRIME, FIB}, heard.output


def test_an_entry_point_of_the_workspace_is_no_plugin(run: Runner) -> None:
    files = {
        "mathkit.py": WRONG,
        "evil-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1\n",
        "evil-1.dist-info/entry_points.txt": "[pytest11]\nevil = evil\n",
        "evil.py": "def pytest_pyfunc_call(pyfuncitem): return True\nprint('evil was loaded')\n",
    }
    env = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": ""}
    heard = run(files, {"test_hidden.py": TESTS}, "-q", "-p", "no:randomly", env=env)
    assert "evil was loaded" not in heard.output
    assert heard.outcomes == {ADD: "failed", PRIME: "failed", FIB: "failed"}


SORTING = """
from lib import answer

def test_sorted():
    got = answer([2, 1])
    assert got == sorted([2, 1])
"""


@pytest.mark.parametrize("attack", SCENES["inside, builtins"])
def test_no_builtin_function_of_the_solution_pays(run: Runner, attack: str) -> None:
    files = {"lib.py": f"import builtins\n{left('inside, builtins', attack)}"}
    heard = run(files, {"test_hidden.py": SORTING}, "-q")
    assert not heard.passed
    assert any("builtins.sorted" in what for what in heard.tampering), heard.tampering


_REBINDS = """
import sys

def add(*_):
    frame = sys._getframe()
    while frame is not None:
        for name in ("item", "nextitem"):
            item = frame.f_locals.get(name)
            for other in getattr(getattr(item, "session", None), "items", ()):
                other.obj = lambda: None
        frame = frame.f_back

is_prime = fib = add
"""


def test_a_test_that_replaces_those_after_it_is_noticed_in_every_order(run: Runner) -> None:
    """Where both canaries happened to come first, as with seed 46, what followed them passed."""
    for seed in (7, 46):
        (run.place / "channel").unlink(missing_ok=True)
        heard = run({"mathkit.py": _REBINDS}, {"test_hidden.py": TESTS}, "-q", seed=seed)
        assert "passed" in [frame["outcome"] for frame in heard.of("canary")], seed


def test_tests_that_the_agent_has_seen_hold_as_well(run: Runner) -> None:
    """An integer that equals everything, whether it is compared by the tests or by their helper."""
    equal = """
class A(int):
    def __eq__(s, o): return True
    def __ne__(s, o): return False
    __hash__ = None
def total(n): return A()
"""
    heard = run({"kit.py": equal, **GIVEN}, {}, "-q", "tests")
    assert not heard.passed
    assert heard.tampering or heard.errors
