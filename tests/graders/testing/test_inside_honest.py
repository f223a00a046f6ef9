"""Honest work with the means of those who search the memory of their process."""

from __future__ import annotations

import importlib.util

import pytest

from assay.graders.testing.inside.hidden_modules import Compiler, EqualityCheck, Finder
from tests.inside_runner import Heard, Runner

pytestmark = pytest.mark.slow


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
@given(st.text("ab\\u00e9\\u2028"))
def test_reverse(text):
    assert reverse(reverse(text)) == text
""",
    ),
}


@pytest.mark.parametrize(("solution", "tests"), HONEST.values(), ids=HONEST.keys())
def test_honest_use_of_the_same_means_is_no_sign(run: Runner, solution: str, tests: str) -> None:
    heard = run({"solution.py": solution}, {"test_hidden.py": tests}, "-q")
    assert _is_believed(heard), (heard.tampering, heard.output)


def test_an_import_of_a_package_that_is_not_compiled_was_tampering(run: Runner) -> None:
    library = run.place / "venv" / "site-packages" / "library"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text("from library.parts import one\n")
    (library / "parts.py").write_text("one = eval(compile('1', 'parts', 'eval'))\n")
    heard = run(
        {"solution.py": "from library import one\n"},
        {"test_hidden.py": "import solution\ndef test_one(): assert solution.one == 1\n"},
        "-q",
        env={"ASSAY_PYTHONPATH": str(library.parent)},
    )
    assert _is_believed(heard), (heard.tampering, heard.output)


TOOL = """
import builtins, contextlib, io, time
from unittest import mock
@contextlib.contextmanager
def faked(texts):
    real = builtins.open
    with mock.patch("builtins.open", lambda name, *a: io.StringIO(texts[name])), \\
            mock.patch("time.time", lambda: 7.0), mock.patch("builtins.print"):
        yield
    assert builtins.open is real
"""
FAKED = """
import solution, time
def test_faked():
    with solution.faked({"a": "text"}):
        print("not seen")
        assert (open("a").read(), time.time()) == ("text", 7.0)
"""


def test_a_tool_that_fakes_functions_for_a_while_was_tampering(run: Runner) -> None:
    heard = run({"solution.py": TOOL}, {"test_hidden.py": FAKED}, "-q")
    assert _is_believed(heard), (heard.tampering, heard.output)


def test_tests_of_a_package_were_empty_in_the_import_mode_importlib(run: Runner) -> None:
    """Before 9.2 pytest asks for ``tests.test_it`` with the root, not the package, as its path."""
    place = run.place / "workspace" / "tests" / "test_it.py"
    place.parent.mkdir(parents=True)
    for file in (place, place.parent / "__init__.py"):
        file.touch()
    check = EqualityCheck(lambda path: True, (), lambda what: None)
    finder = Finder({str(place): "one = 1\n"}, str(place.parent.parent), Compiler(check, None))
    spec = finder.find_spec("tests.test_it", [str(place.parent.parent)])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert vars(module)["one"] == 1
    assert finder.find_spec("tests.test_other", [str(place.parent.parent)]) is None
