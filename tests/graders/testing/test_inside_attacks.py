"""What a hostile solution can make the runner say, in whose process it is loaded.

The sandbox is not needed for any of it, and would not help: it is the same process.
"""

from __future__ import annotations

import pytest

from tests.inside_runner import (
    ADD,
    CASES,
    FIB,
    HONEST,
    PRIME,
    TESTS,
    WRONG,
    Runner,
)

pytestmark = pytest.mark.slow


PATCHES = {
    "report factory": """
import _pytest.reports as r
old = r.TestReport.from_item_and_call.__func__
def new(cls, item, call):
    rep = old(cls, item, call); rep.outcome, rep.longrepr = "passed", None; return rep
r.TestReport.from_item_and_call = classmethod(new)
""",
    "report factory, put back when it is used": """
import _pytest.runner as r
old = r.TestReport
class New(old):
    @classmethod
    def from_item_and_call(cls, item, call):
        rep = old.from_item_and_call(item, call)
        if call.excinfo:
            r.TestReport = old
            rep.outcome, rep.longrepr = "passed", None
        return rep
r.TestReport = New
""",
    "code of the call": """
import _pytest.python as p
p.pytest_pyfunc_call.__code__ = (lambda pyfuncitem: True).__code__
""",
    "code of the call, put back at once": """
import _pytest.python as p
was = p.pytest_pyfunc_call.__code__
p.pytest_pyfunc_call.__code__ = (lambda pyfuncitem: True).__code__
p.pytest_pyfunc_call.__code__ = was
""",
    "a method of functions": "import pytest; pytest.Function.runtest = lambda self: None",
    "the hook caller": """
import pluggy._hooks as h
old = h.HookCaller.__call__
def call(self, **kwargs):
    return True if self.name == "pytest_pyfunc_call" else old(self, **kwargs)
h.HookCaller.__call__ = call
""",
    "isinstance": "import builtins; builtins.isinstance = lambda a, b: True",
    "a tracer": "import sys; sys.settrace(lambda *a: None)",
    "the test's functions, from a thread": """
import sys, threading, time
def swap():
    for _ in range(4000):
        m = sys.modules.get("test_hidden")
        for name in dir(m) if m else ():
            if name.startswith("test_"): setattr(m, name, lambda: None)
        time.sleep(0.0005)
threading.Thread(target=swap, daemon=True).start()
""",
    "the items, through the frames": """
import sys
def spoil(*_):
    f = sys._getframe()
    while f:
        for i in getattr(f.f_locals.get("session"), "items", ()):
            i.obj = lambda *a: None
        f = f.f_back
add = is_prime = fib = spoil
""",
    "a plugin, through the frames": """
import sys, pytest
class Evil:
    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        rep = (yield).get_result(); rep.outcome, rep.longrepr = "passed", None
    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem): return True
def spoil(*_):
    f = sys._getframe()
    while f:
        i = f.f_locals.get("item")
        if i is not None and not i.config.pluginmanager.has_plugin("evil"):
            i.config.pluginmanager.register(Evil(), "evil")
        f = f.f_back
add = is_prime = fib = spoil
""",
    "pytest itself": """
import sys, types, pytest
fake = types.ModuleType("pytest"); fake.__dict__.update(vars(pytest)); sys.modules["pytest"] = fake
fake.raises = fake.fail = lambda *a, **k: None
""",
    "plugins named in the solution": """
pytest_plugins = ["mathkit"]
def pytest_pyfunc_call(pyfuncitem): return True
def pytest_runtest_makereport(item, call): return None
""",
    "atexit": """
import atexit, os, sys
@atexit.register
def late():
    for fd in range(3, 1024):
        try: os.write(fd, b"{}\\n")
        except OSError: pass
    os._exit(0)
""",
    "a closed channel": """
import os
os.closerange(3, 4096)
""",
    "garbage on every descriptor": """
import os, stat
for fd in range(3, 4096):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            os.write(fd, b"deadbeef 0 " + b'{"event": "end", "exit": 0}' + b"\\n")
    except OSError: pass
""",
    "what gc shows": """
import gc
for o in gc.get_objects():
    if getattr(type(o), "__name__", "") == "cell":
        try: v = o.cell_contents
        except ValueError: continue
        if isinstance(v, bytes) and len(v) == 32: raise SystemError("the key was found")
        if callable(v) and getattr(v, "__name__", "") == "send":
            v({"event": "result", "id": "test_hidden.py::test_add", "outcome": "passed"})
""",
    "the end": "import os; os._exit(0)",
    "the end, by a signal": "import os, signal; os.kill(os.getpid(), 9)",
    "a fork that goes on": """
import os
if os.fork(): os.wait()
""",
    "the interpreter's way out": "raise SystemExit(0)",
    "pytest's way out": "import pytest; pytest.exit('done', 0)",
    "a way to skip": "import pytest; pytest.skip('later', allow_module_level=True)",
    "unittest's way to skip": "import unittest; raise unittest.SkipTest",
    "an interrupt": "raise KeyboardInterrupt",
}


COLD = {
    "atexit",
    "garbage on every descriptor",
    "what gc shows",
    "the end, by a signal",
    "a fork that goes on",
    "the items, through the frames",
}
"""Attacks on the process rather than on pytest: they are tried in one that nobody has forked."""


@pytest.mark.parametrize("name", PATCHES)
def test_nothing_that_a_wrong_solution_changes_in_pytest_pays(run: Runner, name: str) -> None:
    later = "import mathkit\ndef test_add():\n    assert mathkit.add(1, 1) == 2\n"
    hidden = {"test_hidden.py": TESTS, "test_later.py": later}
    heard = run({"mathkit.py": WRONG + PATCHES[name]}, hidden, "-q", cold=name in COLD)
    assert heard.passed == set(), heard.output


@pytest.mark.parametrize(
    "attack",
    [
        PATCHES[name]
        for name in (
            "the interpreter's way out",
            "pytest's way out",
            "an interrupt",
        )
    ],
)
def test_a_solution_that_ends_its_import_fails_its_own_module_only(
    run: Runner, attack: str
) -> None:
    hidden = {"test_hidden.py": TESTS, "test_other.py": "def test_other(): pass\n"}
    heard = run({"mathkit.py": HONEST + attack}, hidden, "-q")
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


UNITTEST_PATCHES = {
    "an assertion": "import unittest; unittest.TestCase.assertEqual = lambda *a, **k: None",
    "the run of a test": """
import unittest
def run(self, result=None):
    result.startTest(self); result.addSuccess(self); result.stopTest(self)
unittest.TestCase.run = run
""",
    "the call of a method": "import unittest; unittest.TestCase._callTestMethod = lambda *a: None",
    "the result, through the frames": """
import sys
def add(*_):
    f = sys._getframe()
    while f:
        r = f.f_locals.get("result")
        if r is not None: r.addFailure = r.addError = lambda t, e, r=r: r.addSuccess(t)
        f = f.f_back
fib = add
""",
    "the end": "import os; os._exit(0)",
    "a way to skip": "import unittest; raise unittest.SkipTest",
    "the interpreter's way out": "raise SystemExit(0)",
}


@pytest.mark.parametrize("attack", UNITTEST_PATCHES.values(), ids=UNITTEST_PATCHES.keys())
def test_nothing_that_a_wrong_solution_changes_in_unittest_pays(run: Runner, attack: str) -> None:
    files = {"mathkit.py": WRONG + attack}
    heard = run(files, {"test_hidden.py": CASES}, "-v", "test_hidden", runner="unittest")
    honest_part = {"test_hidden.py::MathTest::test_add"} if "return 5" in attack else set[str]()
    assert heard.passed <= honest_part, heard.output


CROOKED = {
    "equal to everything": (
        "class C(int):\n def __eq__(s, o): return True\n def __ne__(s, o): return False"
    ),
    "truly equal, in another way": (
        "class C:\n def __eq__(s, o): return 1\n def __bool__(s): return True"
    ),
    "a lying class": (
        "class C:\n __class__ = property(lambda s: int)\n def __eq__(s, o): return True"
    ),
    "a lying module": (
        "class C:\n __module__ = 'unittest.mock'\n def __eq__(s, o): return True\n"
        "C.__name__ = '_ANY'"
    ),
}


@pytest.mark.parametrize("crooked", CROOKED.values(), ids=CROOKED.keys())
def test_an_object_that_equals_everything_fails_its_test(run: Runner, crooked: str) -> None:
    solution = f"{HONEST}\n{crooked}\ndef add(a, b): return C()\ndef fib(n): return C()\n"
    heard = run({"mathkit.py": solution}, {"test_hidden.py": TESTS}, "-q")
    wanted = {ADD: "failed", PRIME: "passed", FIB: "failed"}
    assert heard.outcomes == wanted, heard.messages
    assert "answers equal to everything" in heard.messages[ADD]
    assert any("answers equal to everything" in what for what in heard.tampering)


PLACES = """
import unittest
from lib import any_, less, full, holder

def test_reversed(): assert 5 == any_()
def test_element(): assert [1, any_()] == [1, 3]
def test_value(): assert {"a": any_()} == {"a": 3}
def test_tuple(): assert (any_(),) == (3,)
def test_member(): assert any_() in [1, 2]
def test_not(): assert not any_() != 5
def test_or(): assert any_() == 5 or False
def test_all(): assert all(x == y for x, y in [(any_(), 5)])
def test_is_true(): assert (any_() == 5) is True
def test_if():
    if any_() != 5:
        raise ValueError
class Cases(unittest.TestCase):
    def test_equal(self): self.assertEqual(any_(), 5)
    def test_true(self): self.assertTrue(any_() == 5)
    def test_list(self): self.assertListEqual([any_()], [5])
"""
ANSWERS = """
import dataclasses
class Any_:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
class Less:
    def __lt__(self, other): return True
    __gt__ = __le__ = __ge__ = __lt__
class Full(list):
    def __contains__(self, one): return True
@dataclasses.dataclass
class Holder:
    part: object
any_, less, full, holder = Any_, Less, Full, Holder
"""


@pytest.mark.parametrize("runner", ["pytest", "unittest"])
def test_a_crooked_object_is_found_wherever_it_is_compared(run: Runner, runner: str) -> None:
    args = ["-q"] if runner == "pytest" else ["test_hidden"]
    heard = run({"lib.py": ANSWERS}, {"test_hidden.py": PLACES}, *args, runner=runner)
    expected = PLACES.count("def test_") if runner == "pytest" else 3
    assert len(heard.outcomes) == expected
    assert {n for n, outcome in heard.outcomes.items() if outcome == "passed"} == set()


SECRET = 73421_90655_31728_46013
"""Longer than an address, so that it stands in no text by chance."""

READERS = {
    "the file": "open(__file__.replace('mathkit', 'test_hidden')).read()",
    "inspect": "inspect.getsource(sys.modules['test_hidden'])",
    "linecache": "''.join(linecache.getlines(at.f_code.co_filename, at.f_globals))",
    "the loader": "at.f_globals['__loader__'].get_source('test_hidden')",
    "the loader's code": "str(at.f_globals['__loader__'].get_code('test_hidden').co_consts)",
    "the loader's data": "str(at.f_globals['__loader__'].get_data(at.f_code.co_filename))",
    "the calling program": "str(vars(main)) + str(sys.argv) + str(os.environ)",
    "the finder": "str([vars(f) for f in sys.meta_path if hasattr(f, '__dict__')])",
    "objects": (
        f"str([o for o in gc.get_objects() if type(o) in (str, dict) and '{SECRET}' in str(o)])"
    ),
    "our modules": "str([n for n in sys.modules if 'channel' in n or 'hidden_mod' in n])",
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
def test_the_oracle_cannot_be_read_from(run: Runner, reader: str) -> None:
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
    cold = reader == READERS["the calling program"]
    heard = run({"mathkit.py": solution}, {"test_hidden.py": test}, "-q", cold=cold)
    assert heard.outcomes == {ADD: "failed"}
    assert f"assert None == {SECRET}" in heard.messages[ADD]


@pytest.mark.parametrize("runner", ["pytest", "unittest"])
def test_files_of_the_workspace_shadow_nothing_of_the_runner(run: Runner, runner: str) -> None:
    evil = "import os; print('3 passed'); os._exit(0)\n"
    names = (
        "pytest",
        "unittest",
        "json",
        "hmac",
        "_pytest",
        "pluggy",
        "order",
        "session",
        "site",
        "sitecustomize",
        "usercustomize",
        "socket",
        "channel_client",
        "difflib",
        "random",
    )
    files = {f"{name}.py": evil for name in names}
    hidden = {"test_hidden.py": CASES}
    args = ["-q"] if runner == "pytest" else ["test_hidden"]
    heard = run({**files, "mathkit.py": HONEST}, hidden, *args, runner=runner, cold=True)
    assert len(heard.passed) == 2, heard.output


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

BUILTINS = {
    "by_a_bound_method": """
builtins.sorted = {(2, 1): 5}.__class__().get
def answer(values): return None
""",
    "behind_a_mock": """
from unittest import mock
builtins.sorted = mock.Mock(side_effect=lambda *_: 5)
def answer(values): return 5
""",
    "behind_a_partial": """
import functools
builtins.sorted = functools.partial(lambda *_: 5)
def answer(values): return 5
""",
    "with_an_object": """
class Fake:
    def __call__(self, *_): return 5
builtins.sorted = Fake()
def answer(values): return 5
""",
    "in_the_namespace_of_the_test": """
import sys
def answer(values):
    sys._getframe(1).f_globals["__builtins__"]["sorted"] = lambda *_: 5
    return 5
""",
}


@pytest.mark.parametrize("attack", BUILTINS)
def test_no_builtin_function_of_the_solution_pays(run: Runner, attack: str) -> None:
    files = {"lib.py": f"import builtins\n{BUILTINS[attack]}"}
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
