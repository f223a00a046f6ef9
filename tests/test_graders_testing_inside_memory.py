"""Submissions that look for the expected values in the memory of the process they share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.inside_runner import Heard, Runner, workspace

pytestmark = pytest.mark.slow


@pytest.fixture
def run() -> Iterator[Runner]:
    with workspace() as runner:
        yield runner


TESTS = """
from answers import answer

def test_first():
    assert answer(1) == 271828

def test_second():
    assert answer(2) == "euler"

def test_third():
    got = answer(3)
    assert got == [577215, 664901]
"""

SEARCH = """
import sys

def known(kind):
    for value in found():
        try:
            if type(value) is int and 1000 < value < 10**6 or value == "euler":
                yield value
        except Exception:
            pass

def answer(n):
    values = list(known(n))
    ints = [v for v in values if type(v) is int]
    try:
        if n == 2:
            return next(v for v in values if type(v) is str)
        if n == 1:
            return next(v for v in ints if v == 271828)
        return [next(v for v in ints if v == 577215), next(v for v in ints if v == 664901)]
    except StopIteration:
        return None
"""
"""The attacks that have to find the answers; that they know what they look for only helps them."""

FINDS = {
    "an attribute": """
def witnesses():
    frame = sys._getframe(1)
    while not frame.f_code.co_filename.endswith("test_hidden.py"):
        frame = frame.f_back
    return [*frame.f_globals.values(), *frame.f_code.co_consts]
def found():
    for one in witnesses():
        for name in ("_constants", "_held", "constants"):
            yield from getattr(one, name, ())
""",
    "object.__getattribute__ and vars": """
def found():
    frame = sys._getframe(3)
    for one in (*frame.f_globals.values(), *frame.f_code.co_consts):
        kind = type(one)
        for name in [*dir(kind), *getattr(one, "__dict__", ())]:
            try:
                value = object.__getattribute__(one, name)
                yield from value if isinstance(value, (list, dict, tuple)) else [value]
                if isinstance(value, dict): yield from value.values()
            except Exception:
                pass
""",
    "closures": """
def found():
    pending, seen = [*sys._getframe(3).f_code.co_consts], set()
    while pending and len(seen) < 20000:
        one = pending.pop()
        if id(one) in seen: continue
        seen.add(id(one))
        yield one
        if isinstance(one, (list, tuple)): pending += one
        elif isinstance(one, dict): pending += one.values()
        for name in ("__closure__", "cell_contents", "__func__", "__self__", "__wrapped__"):
            try: pending.append(getattr(one, name))
            except Exception: pass
        for owner in (one, type(one)):
            if "assay" in str(getattr(owner, "__module__", "")):
                pending += getattr(owner, "__dict__", {}).values()
                pending += [getattr(one, n, None) for n in getattr(owner, "__slots__", ())]
""",
    "items": """
def found():
    for one in sys._getframe(3).f_code.co_consts:
        for index in (*range(50), *sys._getframe(3).f_code.co_consts):
            try: yield one[index]
            except Exception: pass
""",
    "gc.get_referents": """
import gc
def found():
    frame = sys._getframe(3)
    pending = [*frame.f_globals.values(), *frame.f_code.co_consts]
    seen = set()
    while pending and len(seen) < 20000:
        one = pending.pop()
        if id(one) in seen: continue
        seen.add(id(one))
        yield one
        pending += gc.get_referents(one)
""",
    "gc.unfreeze": """
import gc
def found():
    gc.unfreeze()
    for one in gc.get_objects():
        yield one
        if type(one) in (list, tuple): yield from one
        if type(one) is dict: yield from list(one.values())
        if type(one).__name__ == "cell":
            try:
                held = one.cell_contents
                if type(held) is dict: yield from list(held.values())
            except ValueError: pass
""",
    "an audit hook": """
heard = []
def hook(event, arguments):
    for argument in arguments:
        if type(argument) is list: heard.append(argument)
sys.addaudithook(hook)
def found():
    for one in heard: yield from one
""",
}

RUNS = {
    "a copy of the test among its own names": """
import types
class Spy:
    def __init__(self): self.heard = []
    def __eq__(self, other): self.heard.append(other); return True
def answer(n):
    frame = sys._getframe(1)
    spy = Spy()
    spied = {**frame.f_globals, "answer": lambda n: spy}
    for name, value in list(frame.f_globals.items()):
        if name == frame.f_code.co_name:
            try: types.FunctionType(value.__code__, spied)()
            except BaseException: pass
    return spy.heard[-1] if spy.heard else None
""",
    "a copy made of the frame's code": """
import types
class Spy:
    def __init__(self): self.heard = []
    def __eq__(self, other): self.heard.append(other); return True
def answer(n):
    frame = sys._getframe(1)
    spy = Spy()
    try: types.FunctionType(frame.f_code, {**frame.f_globals, "answer": lambda n: spy})()
    except BaseException: pass
    return spy.heard[-1] if spy.heard else None
""",
    "exec of its code": """
class Spy:
    def __init__(self): self.heard = []
    def __eq__(self, other): self.heard.append(other); return True
def answer(n):
    frame = sys._getframe(1)
    spy = Spy()
    try: exec(frame.f_code, {**frame.f_globals, "answer": lambda n: spy})
    except BaseException: pass
    return spy.heard[-1] if spy.heard else None
""",
    "the test itself, called again": """
class Spy:
    def __init__(self): self.heard = []
    def __eq__(self, other): self.heard.append(other); return False
spy = None
def answer(n):
    global spy
    if spy is not None: return spy
    spy = Spy()
    frame = sys._getframe(1)
    try: frame.f_globals[frame.f_code.co_name]()
    except BaseException: pass
    heard, spy = spy.heard, None
    return heard[-1] if heard else None
""",
    "the test itself, in a thread": """
import threading
class Spy:
    def __init__(self): self.heard = []
    def __eq__(self, other): self.heard.append(other); return False
spy = None
def answer(n):
    global spy
    if spy is not None: return spy
    spy = Spy()
    frame = sys._getframe(1)
    thread = threading.Thread(target=frame.f_globals[frame.f_code.co_name])
    thread.run = thread.run
    thread.start(); thread.join()
    heard, spy = spy.heard, None
    return heard[-1] if heard else None
""",
    "witnesses of its own": """
class Spy:
    def __getitem__(self, value): heard.append(value); return value
heard = []
def answer(n):
    names = sys._getframe(1).f_globals
    for name in list(names):
        if name.startswith("_@"): names[name] = Spy()
    for value in heard:
        if value in (271828, "euler", [577215, 664901]): return value
""",
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    "attack",
    [*(SEARCH + one for one in FINDS.values()), *(f"import sys\n{one}" for one in RUNS.values())],
    ids=[*FINDS, *RUNS],
)
def test_no_oracle_in_memory(run: Runner, attack: str) -> None:
    heard = run({"answers.py": attack}, {"test_hidden.py": TESTS}, "-q")
    assert heard.passed == set(), heard.output
    assert not heard.forged


SPEAKS = {
    "in the name of a plugin": """
def reach():
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()):
            manager = getattr(getattr(value, "config", None), "pluginmanager", None)
            for plugin in manager.get_plugins() if manager else ():
                yield getattr(plugin, "_session", None)
        yield from frame.f_locals.values()
        frame = frame.f_back
def answer(n):
    for one in reach():
        say = getattr(one, "_send", None)
        if getattr(one, "__name__", "") == "send": say = one
        if callable(say):
            for name in ("first", "second", "third"):
                say({"event": "result", "id": f"test_hidden.py::test_{name}", "outcome": "passed"})
""",
    "through the encoder of JSON": """
import json, json.encoder
old = json.JSONEncoder.encode
def encode(self, told):
    if isinstance(told, dict) and "outcome" in told and "id" in told:
        told = {**told, "outcome": "passed"}
    return old(self, told)
json.JSONEncoder.encode = encode
json.dumps = lambda told, **k: encode(json.JSONEncoder(), told)
answer = lambda n: None
""",
    "with the key": """
import hmac, hashlib
keys = []
old = hmac.HMAC.__init__
def init(self, key, *args, **kwargs):
    keys.append(key); old(self, key, *args, **kwargs)
hmac.HMAC.__init__ = init
def answer(n):
    assert not keys, "the key was found"
""",
    "by a hook of its own in the hidden module": """
def pytest_pyfunc_call(pyfuncitem): return True
def pytest_generate_tests(metafunc):
    metafunc.fixturenames.append("again")
    metafunc.parametrize("again", range(50))
frame = sys._getframe()
while frame:
    if frame.f_code.co_filename.endswith("_hidden.py"):
        frame.f_globals.update(pytest_generate_tests=pytest_generate_tests)
    frame = frame.f_back
answer = lambda n: None
""",
    "under another name": """
import _pytest.python
code = compile("def call(pyfuncitem): return True", _pytest.python.__file__, "exec")
space = {}
exec(code, space)
_pytest.python.pytest_pyfunc_call = space["call"]
answer = lambda n: None
""",
}


@pytest.mark.parametrize("attack", SPEAKS.values(), ids=SPEAKS.keys())
def test_no_submission_speaks_for_the_runner(run: Runner, attack: str) -> None:
    heard = run({"answers.py": f"import sys\n{attack}"}, {"test_hidden.py": TESTS}, "-q")
    assert heard.passed == set(), heard.output
    assert "the key was found" not in heard.output
    assert not heard.forged


def test_an_object_that_looks_who_compares_it_is_caught(run: Runner) -> None:
    solution = """
import sys
class Agreeable:
    def __eq__(self, other):
        return sys._getframe(1).f_code.co_filename.endswith("_hidden.py")
def answer(n): return Agreeable()
"""
    heard = run({"answers.py": solution}, {"test_hidden.py": TESTS}, "-q")
    assert heard.passed == set()
    assert any("who compares it" in sign for sign in heard.tampering)


def _is_believed(heard: Heard) -> bool:
    return not heard.tampering and {*heard.outcomes.values()} == {"passed"}


HONEST = {
    "deep sizes": (
        """
import gc, sys, types
def deep(value):
    seen, pending, size = set(), [value], 0
    while pending:
        pending = [one for one in pending if id(one) not in seen
                   and not isinstance(one, (type, types.ModuleType, types.FunctionType))]
        seen.update(map(id, pending))
        size += sum(map(sys.getsizeof, pending))
        pending = gc.get_referents(*pending)
    return size
class Node:
    def __init__(self, *parts): self.parts = parts
""",
        """
from solution import Node, deep
def test_sizes():
    assert deep(Node(Node(), Node([1, 2], {"a": "b"}))) > deep(Node())
""",
    ),
    "cycles and weak references": (
        """
import gc, weakref
class Node:
    def __init__(self): self.me = self
def collected():
    node = Node(); link = weakref.ref(node); del node
    gc.collect()
    return link() is None, len(gc.get_objects()) > 0, gc.get_referrers(Node()) is not None
""",
        """
from solution import collected
def test_all():
    assert collected() == (True, True, True)
""",
    ),
    "who calls": (
        """
import inspect, logging, sys, warnings, functools, collections, dataclasses
def caller(): return sys._getframe(1).f_code.co_name
def stack(): return inspect.stack()[1].function
def log():
    logging.getLogger("x").warning("said")
    warnings.warn("old", DeprecationWarning, stacklevel=2)
def deprecated(function):
    @functools.wraps(function)
    def wrapper(*args):
        warnings.warn(f"{function.__code__.co_name} from {caller()}", DeprecationWarning)
        return function(*args)
    return wrapper
@deprecated
def old(n): return n + 1
Pair = collections.namedtuple("Pair", "a b")
@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: int = 0
""",
        """
import pytest
from solution import Pair, Point, caller, log, old, stack
def test_callers(caplog):
    assert caller() == "test_callers" and stack() == "test_callers"
    with pytest.warns(DeprecationWarning):
        log()
    assert "said" in caplog.text
    with pytest.warns(DeprecationWarning):
        assert old(1) == 2
    assert Pair(1, 2) == (1, 2) and Point(1) < Point(2) and Point(3) == Point(3, 0)
""",
    ),
    "code from templates": (
        """
import types
def make(name, body):
    space = {}
    exec(compile(f"def {name}(x):\\n    return {body}\\n", "<template>", "exec"), space)
    made = space[name]
    return types.FunctionType(made.__code__, space, name)
def arity(function): return function.__code__.co_argcount
""",
        """
from solution import arity, make
def test_made():
    assert make("double", "x * 2")(21) == 42
    assert arity(lambda a, b: a) == 2
    def inner(a): return a
    assert arity(inner) == 1
""",
    ),
    "mocks, doctests and decorated tests": (
        """
import functools, time
def now(): return time.time()
def twice(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        function(*args, **kwargs)
        return function(*args, **kwargs)
    return wrapper
def add(a, b):
    '''
    >>> add(1, 2)
    3
    '''
    return a + b
""",
        """
import doctest
from unittest import mock
import solution
from solution import twice
ran = []
@mock.patch("solution.time.time", return_value=12345.5)
def test_now(patched):
    assert solution.now() == 12345.5
    assert doctest.testmod(solution).failed == 0
@twice
def test_twice():
    ran.append(1)
    assert solution.add(40, 2) == 42
def test_calls_others():
    test_patched_name(mock.Mock())
def test_ran():
    assert len(ran) in (0, 2)
def test_patched_name(monkeypatch):
    monkeypatch.setattr(solution, "now", lambda: 7)
    assert solution.add(1, 1) == 2
""",
    ),
    "threads and coroutines": (
        """
import asyncio, threading
async def later(n):
    await asyncio.sleep(0)
    return n * 2
def threaded(function):
    out = []
    thread = threading.Thread(target=lambda: out.append(function()))
    thread.start(); thread.join()
    return out[0]
""",
        """
import asyncio
from solution import later, threaded
def test_all():
    assert asyncio.run(later(21)) == 42
    assert threaded(lambda: 99) == 99
""",
    ),
    "generated cases": (
        "def reverse(text): return text[::-1]\n",
        """
from hypothesis import given, settings, strategies as st
from solution import reverse
@settings(max_examples=20, deadline=None, database=None)
@given(st.text())
def test_reverse(text):
    assert reverse(reverse(text)) == text
""",
    ),
}


@pytest.mark.parametrize(("solution", "tests"), HONEST.values(), ids=HONEST.keys())
def test_honest_use_of_the_same_means_is_no_sign(run: Runner, solution: str, tests: str) -> None:
    heard = run({"solution.py": solution}, {"test_hidden.py": tests}, "-q")
    assert _is_believed(heard), (heard.tampering, heard.output)
