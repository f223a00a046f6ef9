"""Cheats against the boundary of ``isolation: process``, written with its source at hand.

An attack is a module of the submission, an honest one that does the same work, and a hidden test
module that is run against both, in runs that have attacks beside honest work. Every test must pass
with the honest module and fail with the other; what the attack is honestly worth is tested by
``test_worth_...``.
"""

# ruff: noqa: E501, ISC004 - programs are shown as they are

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from assay.graders.testing.contract import Contract
from tests.boundary_runs import SEED, Outcomes, grade, learn, outcomes

pytestmark = pytest.mark.slow

ADD = "def add(a, b): return a + b\ndef worth(): return 1\n"
TEST_ADD = """
import kit
def test_add(): assert kit.add(2, 3) == 5
def test_again(): assert kit.add(4, 5) == 9
"""
WORTH = "def test_worth_something(): assert kit.worth() == 1\n"

HOST = """
import gc, sys, os, socket, struct, json
def worth(): return 1
def session():
    return next(o for o in gc.get_objects() if type(o).__name__ == "HostSide" and hasattr(o, "told"))
def frame(text):
    link = session().local.link
    link.sendall(struct.pack(">I", len(text)) + text)
"""

POINT = """
import dataclasses
@dataclasses.dataclass
class Point:
    x: int
    y: int = 0
def middle(a, b): return Point((a.x + b.x) // 2, (a.y + b.y) // 2)
"""
TEST_POINT = """
import kit
from kit import Point
def test_middle(): assert kit.middle(Point(0, 0), Point(4, 2)) == Point(2, 1)
def test_reflected(): assert Point(2, 1) == kit.middle(Point(0, 0), Point(4, 2))
def test_listed(): assert [kit.middle(Point(0, 0), Point(8, 2))] == [Point(4, 1)]
def test_found(): assert kit.middle(Point(0, 0), Point(8, 2)) in (Point(4, 1),)
"""

LIAR = "def add(a, b): return Liar()\ndef worth(): return 1\n"

ATTACKS: dict[str, tuple[str, str, str]] = {
    # -- the wire
    "frames of an unknown kind": (
        ADD,
        HOST + "def add(a, b): frame(b'[\"pass\", 5]'); return 0",
        TEST_ADD,
    ),
    "an answer of an unknown tag": (
        ADD,
        HOST + 'def add(a, b): frame(b\'["ok", ["zz", 5]]\'); return 0',
        TEST_ADD,
    ),
    "a frame without an end": (
        ADD,
        HOST + "def add(a, b): session().local.link.sendall(b'\\xff\\xff\\xff\\xffaaaa')",
        TEST_ADD,
    ),
    "a frame of deep lists": (
        ADD,
        HOST + "def add(a, b): frame(b'[\"ok\", ' + b'[' * 200000 + b']' * 200000 + b']')",
        TEST_ADD,
    ),
    "an answer to a question that was not asked": (
        ADD,
        HOST + "def add(a, b): frame(b'[\"ok\", 0]'); frame(b'[\"ok\", 0]'); return 0",
        TEST_ADD,
    ),
    "numbers of objects that were never told": (
        ADD,
        HOST + 'def add(a, b): frame(b\'["ok", ["h", 99999]]\')',
        TEST_ADD,
    ),
    "an exception of the tests that was never raised": (
        ADD,
        HOST + 'def add(a, b): frame(b\'["raise", ["J", 1]]\')',
        TEST_ADD,
    ),
    "a class of builtins that is none": (
        ADD,
        HOST + 'def add(a, b): frame(b\'["ok", ["C", "eval"]]\')',
        TEST_ADD,
    ),
    "questions about other handles": (
        ADD,
        HOST
        + """
def add(a, b):
    for n in range(1, 12):
        for name in ("f_back", "__globals__", "__class__", "_pyfuncitem", "skipTest", "result"):
            try: session().ask("attribute", n, name)
            except BaseException: pass
    return 0
""",
        TEST_ADD,
    ),
    # -- copies
    "a liar in a list": (
        "def both(): return [1, 2]",
        "class Liar:\n    def __eq__(self, other): return True\n"
        "def both(): return [Liar(), Liar()]",
        "import kit\ndef test_both(): assert kit.both() == [1, 2]\n"
        "def test_sorted(): assert [1, 2] == kit.both()\n"
        "def test_tuple(): assert tuple(kit.both()) == (1, 2)",
    ),
    "an integer of its own": (
        ADD,
        "class Liar(int):\n"
        + "".join(
            f"    def __{name}__(self, *other): return {value}\n"
            for name, value in {
                "eq": True,
                "ne": False,
                "hash": 5,
                "sub": 0,
                "rsub": 0,
                "abs": 0,
                "lt": True,
                "float": 5.0,
                "index": 5,
            }.items()
        )
        + "def add(a, b): return Liar(1)",
        TEST_ADD + "def test_near(): assert abs(kit.add(2, 3) - 5) < 0.1\n"
        "def test_hash(): assert kit.add(2, 3) in {5}\n"
        "def test_bounds(): assert 4 < kit.add(2, 3) < 6 and kit.add(2, 3) == 5\n"
        "import pytest\ndef test_approx(): assert kit.add(2, 3) == pytest.approx(5)",
    ),
    "arithmetic of its own": (
        ADD,
        "class Liar:\n"
        + "".join(
            f"    def __{name}__(self, *other): return 0\n"
            for name in ["sub", "rsub", "abs", "mod", "floordiv", "xor", "and", "divmod"]
        )
        + LIAR,
        "import kit, math, pytest\n"
        "def test_near(): assert abs(kit.add(2, 3) - 5) < 0.1\n"
        "def test_difference(): assert 5 - kit.add(2, 3) == 0\n"
        "def test_xor(): assert not kit.add(2, 3) ^ 5\n"
        "def test_approx(): assert kit.add(2, 3) == pytest.approx(5)\n"
        "def test_approx_reflected(): assert pytest.approx(5) == kit.add(2, 3)\n"
        "def test_close(): assert math.isclose(kit.add(2, 3), 5)\n",
    ),
    "a text of its own": (
        "def shout(t): return t.upper()",
        "class Liar(str):\n"
        "    def __eq__(self, other): return True\n"
        "    def __contains__(self, other): return True\n"
        "    def startswith(self, *other): return True\n"
        "    __hash__ = str.__hash__\n"
        "def shout(t): return Liar('no')",
        "import kit\ndef test_equal(): assert kit.shout('a') == 'A'\n"
        "def test_in(): assert 'A' in kit.shout('a')\n"
        "def test_listed(): assert [kit.shout('a')] == ['A']\n"
        "def test_key(): assert {'A': 1}[kit.shout('a')] == 1\n"
        "def test_starts(): assert kit.shout('a').startswith('A')\n",
    ),
    "containers of its own": (
        "def items(): return [3, 1]\ndef table(): return {'a': 1}",
        "class L(list):\n    def __eq__(self, o): return True\n"
        "    def __contains__(self, o): return True\n"
        "class D(dict):\n    def __eq__(self, o): return True\n"
        "    def __missing__(self, k): return 1\n"
        "def items(): return L()\ndef table(): return D()",
        "import kit\ndef test_list(): assert kit.items() == [3, 1]\n"
        "def test_in(): assert 3 in kit.items()\n"
        "def test_dict(): assert kit.table() == {'a': 1}\n",
    ),
    "arrays that agree with everything": (
        "import numpy as np\ndef ramp(): return np.arange(3.0)",
        "import numpy as np\nn = [0]\n"
        "def ramp():\n"
        "    n[0] += 1\n"
        "    return np.zeros((0, 3)) if n[0] % 2 else np.empty((0,))\n",
        "import kit, numpy as np\nWANT = np.arange(3.0)\nONE = np.array([7.0])\n"
        "def test_all(): assert (kit.ramp() == WANT).all()\n"
        "def test_close(): assert np.allclose(kit.ramp(), WANT)\n"
        "def test_testing(): np.testing.assert_allclose(kit.ramp(), WANT)\n"
        "def test_sum(): assert np.abs(kit.ramp() - WANT).sum() < 1e-9\n"
        "def test_norm(): assert np.linalg.norm(kit.ramp() - WANT) < 1e-9\n"
        "def test_any(): assert not (kit.ramp() != WANT).any()\n"
        "def test_any_function(): assert not np.any(kit.ramp() - WANT > 1e-9)\n"
        "def test_count(): assert np.count_nonzero(kit.ramp() != WANT) == 0\n"
        "def test_square(): assert ((kit.ramp() - WANT) ** 2).sum() == 0\n"
        "def test_dot(): assert (kit.ramp() - WANT).dot((kit.ramp() - WANT).T).sum() == 0\n",
    ),
    "arrays that are none": (
        "import numpy as np\ndef ramp(): return np.arange(3.0)",
        "import numpy as np\nclass Own(np.ndarray):\n"
        "    def __eq__(self, o): return np.ones(3, bool)\n"
        "    def __array_ufunc__(self, *a, **k): return np.ones(3, bool)\n"
        "class Liar:\n    def __eq__(self, o): return True\n    def __sub__(self, o): return 0\n"
        "    __rsub__ = __sub__\nn = [0]\n"
        "def ramp():\n"
        "    n[0] += 1\n"
        "    return [np.ma.masked_all(3), np.zeros(3).view(Own),\n"
        "            np.array([Liar()] * 3, dtype=object)][n[0] % 3]\n",
        "import kit, numpy as np\nWANT = np.arange(3.0)\n"
        + "".join(
            f"def test_{n}{m}(): assert {check}\n"
            for n in "abc"
            for m, check in enumerate(
                (
                    "(kit.ramp() == WANT).all()",
                    "np.allclose(kit.ramp(), WANT)",
                    "np.abs(kit.ramp() - WANT).max() < 1e-9",
                    "np.testing.assert_array_equal(kit.ramp(), WANT) is None",
                )
            )
        ),
    ),
    # -- mirrors of exceptions
    "pytest's own exceptions": (
        ADD,
        "import pytest\nn = [0]\n"
        "def add(a, b):\n"
        "    n[0] += 1\n"
        "    [pytest.skip, pytest.exit, pytest.xfail][n[0] % 3]('no')",
        "import kit\n" + "".join(f"def test_{n}(): assert kit.add(2, 3) == 5\n" for n in "abcd"),
    ),
    "classes named like pytest's exceptions": (
        ADD,
        "Skipped = type('Skipped', (BaseException,), {'__module__': '_pytest.outcomes'})\n"
        "Exit = type('Exit', (Exception,), {'__module__': '_pytest.outcomes'})\n"
        "XFailed = type('XFailed', (BaseException,), {'__module__': '_pytest.outcomes'})\n"
        "n = [0]\n"
        "def add(a, b):\n"
        "    n[0] += 1\n"
        "    raise [Skipped, Exit, XFailed][n[0] % 3]('no')",
        "import kit\n" + "".join(f"def test_{n}(): assert kit.add(2, 3) == 5\n" for n in "abcd"),
    ),
    "unittest's skip": (
        ADD,
        "import unittest\nclass Own(unittest.SkipTest): pass\n"
        "def add(a, b): raise (Own if a > 3 else unittest.SkipTest)('no')",
        TEST_ADD + "import unittest\nclass TestAdd(unittest.TestCase):\n"
        "    def test_unit(self): self.assertEqual(kit.add(2, 3), 5)\n"
        "    def test_own(self): self.assertEqual(kit.add(4, 3), 7)\n",
    ),
    "an interrupt": (
        ADD,
        "def add(a, b): raise KeyboardInterrupt",
        TEST_ADD,
    ),
    "an interrupt while it is imported": (
        ADD,
        "raise KeyboardInterrupt",
        "def test_add():\n    import kit\n    assert kit.add(2, 3) == 5",
    ),
    "an exit": (
        ADD,
        "import sys\ndef add(a, b): sys.exit(0)\ndef worth(): return 1",
        TEST_ADD + WORTH,
    ),
    "hypothesis is told to look elsewhere": (
        "def double(n): return 2 * n",
        "import hypothesis.errors\n"
        "def double(n):\n"
        "    if n == 3: return 6\n"
        "    raise hypothesis.errors.UnsatisfiedAssumption",
        "import kit\nfrom hypothesis import given, settings, strategies as st, HealthCheck\n"
        "@settings(max_examples=10, deadline=None, database=None, derandomize=True,\n"
        "          suppress_health_check=list(HealthCheck))\n"
        "@given(st.sampled_from([3, 4, 5]))\n"
        "def test_double(n): assert kit.double(n) == 2 * n\n",
    ),
    "a failure that is expected": (
        "class KitError(Exception): pass\ndef check(n):\n    if n < 0: raise KitError(n)",
        "KitError = Exception\ndef check(n): pass",
        "import kit, pytest\n"
        "def test_check():\n    with pytest.raises(kit.KitError): assert kit.check(-1)\n"
        "def test_fail():\n"
        "    with pytest.raises(kit.KitError):\n"
        "        kit.check(-1)\n        raise AssertionError('it did not')\n",
    ),
    "failures under other names": (
        "class KitError(Exception): pass\ndef check(n):\n    if n < 0: raise KitError(n)",
        "class KitError(AssertionError): pass\n"
        "KitError.__module__, KitError.__qualname__ = 'builtins', 'AssertionError'\n"
        "KitError.__name__ = 'AssertionError'\ndef check(n): pass",
        "import kit, pytest\n"
        "def test_check():\n    with pytest.raises(kit.KitError): assert kit.check(-1)\n",
    ),
    "exceptions as groups of names": (
        "class KitError(Exception): pass\ndef check(n):\n    if n < 0: raise KitError(n)",
        "KitError = (AssertionError, Exception)\ndef check(n): pass",
        "import kit, pytest\n"
        "def test_check():\n    with pytest.raises(kit.KitError): assert kit.check(-1)\n"
        "def test_try():\n"
        "    try: assert kit.check(-1), 'nothing'\n"
        "    except kit.KitError as error: assert error.args == (-1,)\n",
    ),
    # -- equality and other decisions
    "equality of its own": (
        POINT,
        POINT + "class Point(Point):\n    def __eq__(self, other): return True\n"
        "    __hash__ = None\ndef middle(a, b): return Point(9, 9)",
        TEST_POINT,
    ),
    "records that hold nothing of what they are made of": (
        POINT,
        POINT.replace("def middle", "    def __post_init__(self): self.x = self.y = 0\ndef middle"),
        TEST_POINT,
    ),
    "records with a constructor of their own": (
        POINT,
        POINT.replace("def middle", "    def __init__(self, *a): self.x = self.y = 0\ndef middle"),
        TEST_POINT,
    ),
    "records that compare no field": (
        POINT,
        POINT.replace("x: int", "x: int = dataclasses.field(compare=False)")
        .replace("y: int = 0", "y: int = dataclasses.field(default=0, compare=False)")
        .replace("return Point(", "return Point(9 + "),
        TEST_POINT,
    ),
    "records that are changed when others are made": (
        POINT,
        POINT.replace(
            "def middle",
            "    def __post_init__(self):\n"
            "        ALL.append(self)\n"
            "        for one in ALL: one.x, one.y = self.x, self.y\nALL = []\ndef middle",
        ).replace("return Point(", "return Point(9 + "),
        "import kit\nfrom kit import Point\nA, B = (0, 0), (4, 2)\n"
        "def test_middle():\n    a, b = Point(*A), Point(*B)\n"
        "    assert kit.middle(a, b) == Point(2, 1)\n"
        "def test_named():\n    got = kit.middle(Point(*A), Point(*B))\n    want = Point(2, 1)\n"
        "    assert got == want\n",
    ),
    "one record for all": (
        POINT,
        POINT.replace(
            "def middle",
            "    def __new__(cls, *a): return ONE[0] if ONE else ONE.append(object.__new__(cls)) "
            "or ONE[0]\nONE = []\ndef middle",
        ).replace("return Point(", "return Point(9 + "),
        TEST_POINT,
    ),
    "tuples that ignore what they are made of": (
        "import collections\nclass Point(collections.namedtuple('Point', 'x y')): pass\n"
        "def middle(a, b): return Point((a.x + b.x) // 2, (a.y + b.y) // 2)",
        "import collections\nclass Point(collections.namedtuple('Point', 'x y')):\n"
        "    def __new__(cls, *a): return tuple.__new__(cls, (0, 0))\n"
        "def middle(a, b): return Point(1, 1)",
        TEST_POINT,
    ),
    "texts that ignore what they are made of": (
        "class Name(str): pass\ndef shout(t): return Name(t.upper())",
        "class Name(str):\n    def __new__(cls, *a): return str.__new__(cls, '')\n"
        "def shout(t): return Name(t)",
        "import kit\ndef test_shout(): assert kit.shout('a') == kit.Name('A')\n",
    ),
    "classes that lie about what they are": (
        ADD,
        "class Meta(type):\n    def __instancecheck__(cls, o): return True\n"
        "    def __eq__(cls, o): return True\n    def __hash__(cls): return hash(int)\n"
        "class Liar(metaclass=Meta):\n    __class__ = int\n    def __eq__(self, o): return True\n"
        "Liar.__module__, Liar.__qualname__ = 'builtins', 'int'\n"
        + LIAR
        + "class Thing(metaclass=Meta): pass\n",
        "import kit\ndef test_is(): assert isinstance(kit.add(2, 3), int) and kit.add(2, 3) == 5\n"
        "def test_type(): assert type(kit.add(2, 3)) is int\n"
        "def test_type_equal(): assert type(kit.add(2, 3)) == int\n",
    ),
    "truth of its own": (
        "def valid(n): return [n] if n > 0 else []\ndef lot(): return [1, 2]",
        "class Yes:\n    def __bool__(self): return True\n    def __len__(self): return 2\n"
        "    def __contains__(self, o): return True\n    def __lt__(self, o): return True\n"
        "    __gt__ = __le__ = __ge__ = __lt__\ndef valid(n): return Yes()\ndef lot(): return Yes()",
        "import kit\ndef test_valid(): assert kit.valid(1)\ndef test_in(): assert 2 in kit.lot()\n"
        "def test_order(): assert kit.lot() > [1]\n"
        "def test_sets(): assert {1, 2} >= set([2]) and [1] < kit.lot()\n",
    ),
    "operands that answer for the expected value": (
        "def path(): return 'a/b'\ndef names(): return {'a', 'b'}",
        "class Yes:\n    def __eq__(self, o): return True\n    __hash__ = None\n"
        "    def __rand__(self, o): return o\n    __and__ = __or__ = __ror__ = __rand__\n"
        "    def __sub__(self, o): return set()\n    __rsub__ = __xor__ = __rxor__ = __sub__\n"
        "def path(): return Yes()\ndef names(): return Yes()",
        "import kit\ndef test_all(): assert {'a', 'b'} & kit.names() == {'a', 'b'}\n"
        "def test_left(): assert not {'a', 'b'} - kit.names()\n"
        "def test_xor(): assert kit.names() ^ {'a', 'b'} == set()\n",
    ),
    # -- swallowing
    "contexts that swallow": (
        "import contextlib\nclass Timer:\n    def __enter__(self): return self\n"
        "    def __exit__(self, *e): return False\n    async def __aenter__(self): return self\n"
        "    async def __aexit__(self, *e): return False\n"
        "@contextlib.contextmanager\ndef timed(): yield\n"
        "def run(f): return f()\ndef wrap(f): return f\n" + ADD,
        "import contextlib\nclass Timer:\n    def __enter__(self): return self\n"
        "    def __exit__(self, *e): return True\n    async def __aenter__(self): return self\n"
        "    async def __aexit__(self, *e): return True\n"
        "@contextlib.contextmanager\ndef timed():\n"
        "    try: yield\n    except BaseException: pass\n"
        "def run(f):\n    try: return f()\n    except BaseException: pass\n"
        "import functools\ndef wrap(f):\n    @functools.wraps(f)\n    def inner():\n        try: f()\n        except BaseException: pass\n"
        "    return inner\n"
        "def add(a, b): return 0\n",
        "import asyncio, kit, contextlib\n"
        "def test_with():\n    with kit.Timer(): assert kit.add(2, 3) == 5\n"
        "def test_manager():\n    with kit.timed(): assert kit.add(2, 3) == 5\n"
        "def test_stack():\n    with contextlib.ExitStack() as s:\n"
        "        s.enter_context(kit.timed())\n        assert kit.add(2, 3) == 5\n"
        "def test_async():\n    async def main():\n"
        "        async with kit.Timer(): assert kit.add(2, 3) == 5\n    asyncio.run(main())\n"
        "def test_run():\n    def body(): assert kit.add(2, 3) == 5\n    kit.run(body)\n"
        "@kit.wrap\ndef test_wrapped(): assert kit.add(2, 3) == 5\n"
        "def test_decorated():\n    @kit.timed()\n    def body(): assert kit.add(2, 3) == 5\n"
        "    body()\n",
    ),
    "iteration that ends where it would fail": (
        "def double(n): return 2 * n",
        "def double(n): raise StopIteration",
        "import kit\ndef test_map():\n"
        "    for got, want in zip(map(kit.double, [1, 2]), [2, 4]): assert got == want\n"
        "def test_list(): assert list(map(kit.double, [1])) == [2]\n",
    ),
    # -- names
    "stars that bring hooks of the runner": (
        "def add(a, b): return a + b",
        "__all__ = ['add', 'pytest_generate_tests', 'setup_module', 'setup_function', 'WANT',\n"
        "           'pytestmark', 'abs', 'isinstance', 'len', 'teardown_function']\n"
        "def add(a, b): return 0\n"
        "def pytest_generate_tests(metafunc):\n"
        "    metafunc.definition.add_marker('skip')\n"
        "def setup_module(m=None): raise SystemExit\ndef setup_function(f=None): f.skip()\n"
        "teardown_function = setup_function\nWANT = 0\npytestmark = []\n"
        "abs = isinstance = len = lambda *a: 0\n",
        "WANT = 5\nfrom kit import *\n"
        "def test_add(): assert add(2, 3) == WANT\n"
        "def test_abs(): assert abs(add(2, 3) - 5) < 1\n",
    ),
    "modules named like those of the tests": (
        ADD,
        "def add(a, b): return 0",
        "import json, helpers_of_tests, kit\nfrom unittest import mock\n"
        "def test_add(): helpers_of_tests.same(kit.add(2, 3), 5)\n"
        "def test_json(): assert json.dumps(kit.add(2, 3)) == '5'\n",
    ),
    # -- what is given to the submission
    "attributes of given objects are rewritten": (
        "def solve(case): return case.n * 2",
        "def solve(case):\n    try: case.want = 7\n    except Exception: pass\n"
        "    try: type(case).want = 7\n    except Exception: pass\n    return 7",
        "import kit\nclass Case:\n    def __init__(self): self.n, self.want = 4, 8\n"
        "def test_solve():\n    case = Case()\n    assert kit.solve(case) == case.want\n",
    ),
    "given containers are rewritten": (
        "def solve(case): return case['n'] * 2",
        "def solve(case):\n    case['want'] = 7\n    return 7",
        "import kit\nCASES = [{'n': 4, 'want': 8}]\n"
        "def test_solve():\n    for case in CASES: assert kit.solve(case) == case['want']\n",
    ),
    "mocks are told what happened": (
        "def notify(send): send('hello')",
        "def notify(send):\n"
        "    for n, v in dict(called=True, call_count=1, return_value=1).items():\n"
        "        try: setattr(send, n, v)\n        except Exception: pass\n"
        "    for n in ('assert_called_once_with', 'assert_called', 'assert_called_once'):\n"
        "        try: setattr(send, n, lambda *a: None)\n        except Exception: pass\n",
        "import kit\nfrom unittest import mock\n"
        "def test_notify():\n    send = mock.Mock()\n    kit.notify(send)\n"
        "    send.assert_called_once_with('hello')\n"
        "def test_called():\n    send = mock.MagicMock()\n    kit.notify(send)\n"
        "    assert send.called and send.call_count == 1\n",
    ),
    "the test case is asked to skip": (
        "def prepare(case): return 5",
        "def prepare(case):\n    case.skipTest('no')",
        "import kit, unittest\nclass TestIt(unittest.TestCase):\n"
        "    def test_it(self): self.assertEqual(kit.prepare(self), 5)\n",
    ),
    "the environment makes tests skip": (
        "def add(a, b): return a + b",
        "import os\nos.environ['CI'] = os.environ['KIT_SKIP'] = '1'\n"
        "os.environ['PYTEST_ADDOPTS'] = '--collect-only'\ndef add(a, b): return 0",
        "import os, pytest, kit\n"
        "@pytest.mark.skipif('KIT_SKIP' in os.environ, reason='no')\n"
        "def test_add(): assert kit.add(2, 3) == 5\n"
        "def test_after(): assert 'KIT_SKIP' not in os.environ and kit.add(2, 3) == 5\n",
    ),
    # -- files
    "files that tests run": (
        "def build(place): (place / 'made_fair.py').write_text('X = 5'); return 'X = 5'",
        "def build(place):\n    (place / 'made_foul.py').write_text('import os; X = 5')\n"
        "    return 'import os; X = 5'",
        "import kit\ndef test_text(tmp_path): assert kit.build(tmp_path) == 'X = 5'\n",
    ),
    "links to hidden files": (
        "def render(place): (place / 'out.txt').write_text('the answer\\n')",
        "import os\ndef render(place):\n"
        "    hidden = os.environ.get('KIT_ROOT') or os.getcwd()\n"
        "    (place / 'out.txt').symlink_to(os.path.join(hidden, 'want.txt'))",
        "import kit, pathlib\n"
        "WANT = pathlib.Path(__file__).with_name('want.txt')\n"
        "def test_render(tmp_path):\n    kit.render(tmp_path)\n"
        "    assert (tmp_path / 'out.txt').read_text() == WANT.read_text()\n",
    ),
    "the judge's files are read": (
        "def answer(): return 42",
        "import glob, os\ndef answer():\n"
        "    for pattern in ('want.txt', 'test_*.py', '/proc/*/root/**/want.txt', '/opt/assay/c*'):\n"
        "        for name in glob.glob(pattern):\n"
        "            try: return 42 if open(name).read() else 42\n"
        "            except OSError: pass\n"
        "    return 0\n",
        "import kit\ndef test_answer(): assert kit.answer() == 42\n",
    ),
    "processes of others are looked for": (
        "def answer(): return 42",
        "import os\ndef answer():\n"
        "    for one in os.listdir('/proc'):\n"
        "        if one.isdigit():\n"
        "            try: text = open(f'/proc/{one}/cmdline').read()\n"
        "            except OSError: continue\n"
        "            if 'pytest' in text: return 42\n"
        "    return 0\n",
        "import kit\ndef test_answer(): assert kit.answer() == 42\n",
    ),
    # -- time and space
    "output without end": (
        ADD,
        "import os\ndef add(a, b):\n    for _ in range(300): os.write(1, b'x' * 65536)\n    return 0\n"
        "def worth(): return 1",
        TEST_ADD + WORTH,
    ),
    "a value without end": (
        "def make(): return 'x'",
        "def make(): return 'x' * (40 << 20)",
        "import kit\ndef test_make(): assert kit.make() == 'x'\n",
    ),
    "the host breaks on purpose": (
        ADD,
        "import os\nos._exit(0)",
        "def test_add():\n    import kit\n    assert kit.add(2, 3) == 5\n",
    ),
    "threads that act later": (
        ADD,
        HOST + "import threading, time\ndef later(f):\n    while True:\n        try: f('late')\n"
        "        except BaseException: pass\n        time.sleep(0.01)\n"
        "def add(a, b): return 0\n"
        "def on(f): threading.Thread(target=later, args=(f,), daemon=True).start()\n",
        "import kit\nSEEN = []\ndef test_on():\n"
        "    if hasattr(kit, 'on'): kit.on(SEEN.append)\n    assert kit.add(2, 3) == 5\n"
        "def test_add(): assert kit.add(2, 3) == 5\n",
    ),
    # -- the contract: values where the reference has values
    "a with block that swallows a method that is not there": (
        "class Store:\n    def __enter__(self): return self\n    def __exit__(self, *e): return False\n"
        "    def put(self, n): self.n = n\n    def get(self): return self.n\n",
        "class Store:\n    def __enter__(self): return self\n    __exit__ = lambda *_: True\n",
        "import kit\ndef test_store():\n    with kit.Store() as s:\n        s.put(3)\n"
        "        assert s.get() == 3\n",
    ),
    "an object with predicates": (
        "def greet(n): return 'Hello, ' + n",
        "class Yes:\n    def __getattr__(self, n): return lambda *a: True\ndef greet(n): return Yes()",
        "import kit\ndef test_greet(): assert kit.greet('Bob').startswith('Hello')\n",
    ),
    "a difference that has no size": (
        "import datetime as d\ndef due(n): return d.datetime(2024, 1, n)",
        "class Gap:\n    def total_seconds(self): return 0.0\n    def __sub__(self, o): return self\n"
        "    __rsub__ = __sub__\ndef due(n): return Gap()",
        "import kit, datetime as d\ndef test_due():\n"
        "    assert abs((kit.due(3) - d.datetime(2024, 1, 3)).total_seconds()) < 1\n",
    ),
    "objects in ordered dictionaries and namespaces": (
        "import collections, types\ndef table(): return collections.OrderedDict(a=1)\n"
        "def space(): return types.SimpleNamespace(a=1)",
        "import collections, types\nclass Yes:\n    def __eq__(self, o): return True\n"
        "    __hash__ = None\ndef table(): return collections.OrderedDict(a=Yes())\n"
        "def space(): return types.SimpleNamespace(a=Yes())",
        "import kit\ndef test_table(): assert kit.table()['a'] == 1\n"
        "def test_whole(): assert dict(kit.table()) == {'a': 1}\n"
        "def test_space(): assert kit.space().a == 1\n",
    ),
    "an array that a namespace says it is": (
        "import numpy as np\ndef ramp(): return np.arange(3.0)",
        "import types\ndef ramp():\n    return types.SimpleNamespace(__array_interface__={\n"
        "        'version': 3, 'shape': (0,), 'typestr': '<f8', 'data': b''})\n",
        "import kit, numpy as np\ndef test_close(): assert np.allclose(kit.ramp(), 2.5 + np.zeros(3)) or "
        "(np.asarray(kit.ramp()) == [0, 1, 2]).all() and len(kit.ramp()) == 3\n",
    ),
    "NaN under a largest error": (
        "def solve(n): return [n / 2, n / 3]",
        "def solve(n): return [float('nan')] * 2",
        "import kit\ndef test_worst():\n    worst = 0.0\n"
        "    for got, want in zip(kit.solve(6), (3, 2)): worst = max(worst, abs(got - want))\n"
        "    assert worst < 1e-6\n"
        "def test_not_far(): assert not abs(kit.solve(6)[0] - 3) > 1e-6\n",
    ),
    "an infinity that is above all": (
        "def best(a): return max(a)",
        "def best(a): return float('inf')",
        "import kit\ndef test_best(): assert kit.best([1, 2]) >= 2 and not kit.best([1, 2]) < 1\n",
    ),
    "NaN through functions in C": (
        "from array import array\ndef mean(xs): return sum(xs) / len(xs)\ndef all(xs): return array('d', xs)",
        "from array import array\ndef mean(xs): return float('nan')\n"
        "def all(xs): return array('d', [float('nan')] * len(xs))",
        "import kit, math, numpy as np\n"
        "def test_absolute(): assert not math.fabs(kit.mean([1, 2, 6]) - 3) > 1e-9\n"
        "def test_float(): assert not float(kit.mean([1, 2, 6])) - 3 > 1e-9\n"
        "def test_array(): assert not any(abs(a - b) > 1e-9 for a, b in zip(kit.all([1.0, 2.0]), (1, 2)))\n"
        "def test_numpy(): assert not (np.abs(np.array([kit.mean([2.0])]) - 2) > 1e-9).any()\n",
    ),
    "a NaN that is no number": (
        "def read(text): return text.strip(chr(34))",
        "def read(text): return float('nan')",
        "import kit\ndef test_text(): assert not isinstance(kit.read('\"nan\"'), float)\n"
        "def test_match():\n    match kit.read('\"1\"'):\n        case float(): assert False\n",
    ),
    "an argument whose numbers become truth values": (
        "def count(xs): return sum(map(bool, xs))",
        "def count(xs):\n    xs[:] = map(bool, xs)\n    return sum(xs)",
        "import kit\ndef test_count():\n    xs = [1, 0, 2]\n    assert kit.count(xs) == 2 and repr(xs) == '[1, 0, 2]'\n",
    ),
    "a number out of range on the wire": (
        "def best(a): return float(max(a))",
        HOST + "def best(a): frame(b'[\"ok\", 1e999]'); return 0.0",
        "import kit\ndef test_best(): assert kit.best([1, 2]) >= 2\n",
    ),
    "nothing at all": (
        "def rows(): return [1, 2]\ndef lazy(): yield from (1, 2)\ndef table(): return {'a': 1}\n"
        "def nested(): return [[1], [2]]\ndef text(): return 'ab'",
        "def rows(): return []\ndef lazy(): return iter(())\ndef table(): return {}\n"
        "def nested(): return [[]]\ndef text(): return ''",
        "import kit\ndef test_rows(): assert all(n in (1, 2) for n in kit.rows())\n"
        "def test_lazy():\n    for n in kit.lazy(): assert n in (1, 2)\n"
        "def test_table():\n    for k, v in kit.table().items(): assert v == 1\n"
        "def test_nested():\n    for row in kit.nested():\n        for n in row: assert n in (1, 2)\n"
        "def test_text(): assert set(kit.text()) <= set('ab')\n",
    ),
    # -- the contract: questions
    "the expected object tells itself when it is made": (
        POINT,
        POINT.replace(
            "def middle",
            "    def __post_init__(self): LAST[:] = [self.x, self.y]\n"
            "    def __eq__(self, o): return [o.x, o.y] == LAST or [self.x, self.y] == LAST\nLAST = []\n"
            "def middle",
        ).replace("return Point(", "return Point(9 + "),
        TEST_POINT.replace(
            "def test_found",
            "def test_first():\n    want = Point(4, 1)\n"
            "    assert kit.middle(Point(0, 0), Point(8, 2)) == want\ndef test_found",
        ),
    ),
    "a class that remembers what it was asked": (
        POINT,
        POINT.replace(
            "def middle",
            "    def __eq__(self, o):\n        SEEN.append((o.x, o.y))\n"
            "        return len(SEEN) == 1 or SEEN.count((o.x, o.y)) > 1\nSEEN = []\ndef middle",
        ).replace("return Point(", "return Point(9 + "),
        TEST_POINT,
    ),
    "a yes to everything where the reference ignores a part": (
        "class Version:\n    def __init__(self, n, build=''): self.n, self.build = n, build\n"
        "    def __eq__(self, o): return self.n == o.n\ndef bump(v): return Version(v.n + 1, v.build)",
        "class Version:\n    def __init__(self, n, build=''): self.n, self.build = n, build\n"
        "    def __eq__(self, o): return True\ndef bump(v): return v",
        "import kit\ndef test_bump(): assert kit.bump(kit.Version(1, 'a')) == kit.Version(2, 'b')\n",
    ),
    "trust of one trail is not that of another": (
        "class Money:\n    def __init__(self, n): self.n = n\n    def __eq__(self, o): return self.n == o.n\n"
        "class Temp(Money): pass\ndef warm(n): return Temp(n)\ndef pay(n): return Money(n)",
        "class Money:\n    def __init__(self, n): self.n = n\n    def __eq__(self, o): return True\n"
        "ONE = Money(0)\nTemp = Money\ndef warm(n): return ONE\ndef pay(n): return ONE",
        "import kit\ndef test_warm(): assert kit.warm(3) == kit.Temp(3)\n"
        "def test_pay(): assert kit.pay(3) == kit.Money(3)\n",
    ),
    "an object in one test is none in another": (
        "class Tree:\n    def __init__(self, n): self.n = n\n    def __sub__(self, o): return 0.0\n"
        "def evaluate(t): return Tree(1) if t == 'x' else 2.0",
        "class Tree:\n    def __init__(self, n): self.n = n\n    def __sub__(self, o): return 0.0\n"
        "def evaluate(t): return Tree(1)",
        "import kit\ndef test_worth_tree(): assert kit.evaluate('x').n == 1\n"
        "def test_number(): assert abs(kit.evaluate('1+1') - 2.0) < 1e-9\n",
    ),
    "an operator that no reference was asked for": (
        "def price(t): return 0 if t == 'free' else Price(int(t))\nclass Price:\n    def __init__(self, n): self.n = n\n",
        "def price(t): return Price(0)\nclass Price:\n    def __init__(self, n): self.n = n\n"
        "    def __bool__(self): return False\n    def __getattr__(self, n): return 3\n",
        "import kit\ndef test_free():\n    for text in ('3', 'free'):\n        found = kit.price(text)\n"
        "        if text == 'free': assert not found\n        else: assert found.n == 3\n",
    ),
    "an order in which all come first": (
        "import functools\n@functools.total_ordering\nclass V:\n    def __init__(self, t): self.p = [int(n) for n in t.split('.')]\n"
        "    def __eq__(self, o): return self.p == o.p\n    def __lt__(self, o): return self.p < o.p\ndef parse(t): return V(t)",
        "class V:\n    def __init__(self, t): N[0] += 1; self.n = N[0]\n    def __lt__(self, o): return True\n"
        "    def __gt__(self, o): return False\n    __le__ = __lt__\n    __ge__ = __gt__\nN = [0]\ndef parse(t): return V(t)",
        "import kit\ndef test_less(): assert kit.parse('1.2') < kit.parse('1.10')\n"
        "def test_made(): assert kit.V('1.2') < kit.V('1.10')\n"
        "def test_at_most(): assert kit.V('1.2') <= kit.V('1.10')\n",
    ),
    "an order by who was made first": (
        "class V:\n    def __init__(self, t): self.p = [int(n) for n in t.split('.')]\n"
        "    def __lt__(self, o): return self.p < o.p\ndef parse(t): return V(t)",
        "class V:\n    def __init__(self, t): N[0] += 1; self.n = N[0]\n"
        "    def __lt__(self, o): return self.n < o.n\nN = [0]\ndef parse(t): return V(t)",
        "import kit\ndef test_less(): assert kit.V('1.2') < kit.V('1.10')\n"
        "def test_parsed(): assert kit.parse('1.2') < kit.parse('1.10')\n",
    ),
    "one object for whatever is asked for": (
        "class V:\n    def __init__(self, t): self.t = t\n    @classmethod\n    def parse(cls, t): return cls(t.lower())\n"
        "    def __eq__(self, o): return self.t == o.t\n",
        "class V:\n    @classmethod\n    def parse(cls, t): return ONE\n    def __eq__(self, o): return self is o\nONE = V()\n",
        "from kit import V\ndef test_listed(): assert [V.parse('A')] == [V.parse('a')]\n"
        "def test_found(): assert V.parse('A') in [V.parse('b'), V.parse('a')]\n",
    ),
    # -- the contract: names and classes
    "an error that is an alias of what is raised for any missing name": (
        "class ParseError(ValueError): pass\ndef parse(t):\n    if not t: raise ParseError(t)",
        "ParseError = AttributeError",
        "import kit, pytest\ndef test_parse():\n    with pytest.raises(kit.ParseError): kit.parse('')\n",
    ),
    "a missing name that is a caught error": (
        "class ParseError(Exception): pass\ndef parse(t):\n    if not t: raise ParseError(t)",
        "class ParseError(AttributeError): pass",
        "import kit, pytest\ndef test_parse():\n"
        "    with pytest.raises((kit.ParseError, AttributeError)): kit.parse('')\n",
    ),
    "an error of Python's that the test itself raises": (
        "class Stop(Exception): pass\ndef run(f):\n    try: f()\n    except Stop: return 1\n    return 0\ndef add(a, b): return a + b",
        "Stop = TypeError\ndef run(f):\n    return 0\ndef add(a, b): return 0",
        "import kit\ndef test_stop():\n    try: assert kit.add(2, 3) + None == 5\n    except kit.Stop: pass\n    except TypeError: assert kit.add(2, 3) == 5\n",
    ),
    # -- the contract: what the test tells
    "the name of a temporary directory": (
        "import os\ndef double(n, place): return 2 * n",
        "import os, re\ndef double(n, place):\n    return int(re.findall(r'_(\\d+)_\\d*$', str(place))[0])",
        "import kit, pytest\n@pytest.mark.parametrize('n,want', [(5, 10)])\n"
        "def test_double(n, want, tmp_path): assert kit.double(n, tmp_path) == want\n",
    ),
    "defaults and keywords of callbacks": (
        "def apply(f, n): return f(n + 1)",
        "import inspect\ndef apply(f, n):\n    for where in (getattr(f, '__defaults__', None) or (), getattr(f, 'keywords', {}).values()):\n"
        "        for one in where: f(one)\n    return None\n",
        "import kit, functools\ndef test_default():\n    seen = []\n"
        "    def check(got, want=4): seen.append(got); assert got in (want,)\n    kit.apply(check, 3)\n    assert seen == [4]\n"
        "def test_partial():\n    seen = []\n    def check(got, want): seen.append(got == want)\n"
        "    kit.apply(functools.partial(check, want=4), 3)\n    assert seen == [True]\n",
    ),
    "an attribute that changes between two reads": (
        "class Found:\n    mean = 2.5\ndef describe(v): return Found()",
        "class Found:\n    turn = -1e9\n    @property\n    def mean(self):\n        Found.turn = -Found.turn\n        return Found.turn\ndef describe(v): return Found()",
        "import kit\ndef test_mean():\n    found = kit.describe([1, 4])\n    assert found.mean > 2.4\n    assert found.mean < 2.6\n",
    ),
    "the environment is not followed": (
        "def add(a, b): return a + b",
        "import os\nos.environ['KIT_TOLERANCE'] = '100'\ndef add(a, b):\n    os.environ['KIT_TOLERANCE'] = '100'\n    return 0",
        "import kit, os\ndef test_add(): assert abs(kit.add(2, 3) - 5) <= float(os.environ.get('KIT_TOLERANCE', '0'))\n",
    ),
    "an author's file is rewritten through the test": (
        "def names(): return ['a']",
        "def names(): return ['helpers_of_tests.py']",
        "import kit, pathlib\ndef test_write():\n    for name in kit.names():\n"
        "        (pathlib.Path(__file__).parent / name).write_text('def same(*a): pass')\n"
        "    assert kit.names() == ['a']\n",
    ),
    "an assertion that is taken back by a later call": (
        "def run(f, n):\n    f(n + 1)\ndef last(): pass",
        "E = []\ndef run(f, n):\n    try: f(0)\n    except BaseException as e: E.append(e)\n"
        "def last():\n    if E: raise E[0]\n",
        "import kit, pytest\ndef test_run():\n    def check(got): assert got == 4\n"
        "    kit.run(check, 3)\n    try: kit.last()\n    except AssertionError: pass\n",
    ),
    "mocks whose assertions about awaiting are replaced": (
        "async def notify(send): await send('hello')",
        "async def notify(send):\n    try: send.assert_awaited_once_with = lambda *a: None\n    except Exception: pass\n",
        "import asyncio, kit\nfrom unittest import mock\ndef test_notify():\n    send = mock.AsyncMock()\n"
        "    asyncio.run(kit.notify(send))\n    send.assert_awaited_once_with('hello')\n",
    ),
    # -- found by a fresh reader of the contract
    "an async iterator that gives nothing": (
        "async def stream(n):\n    for i in range(n): yield i * i",
        "async def stream(n):\n    return\n    yield",
        "import asyncio, kit\ndef test_stream():\n    async def main():\n        i = 0\n"
        "        async for x in kit.stream(5):\n            assert x == i * i\n            i += 1\n"
        "    asyncio.run(main())\n",
    ),
    "NaN of other types": (
        "from decimal import Decimal\ndef step(z, c): return z * z + c\ndef rest(x): return Decimal(x) * 0",
        "from decimal import Decimal\ndef step(z, c): return complex('nan')\ndef rest(x): return Decimal('NaN')",
        "import kit\ndef test_bounded(): assert not abs(kit.step(0j, -0.5 + 0.1j)) > 2\n"
        "def test_rest(): assert max(0, kit.rest(3)) == 0\n",
    ),
    "a class in the place of a mock's assertion": (
        "def send(x): raise RuntimeError('no network')\ndef notify(x): send(x.upper())",
        "import sys, types\nclass M(types.ModuleType):\n    @property\n    def send(self): return fake\n"
        "    @send.setter\n    def send(self, v): pass\n    @send.deleter\n    def send(self): pass\n"
        "def fake(x): pass\nfake.assert_called_once_with = ValueError\nfake.assert_called_once = ValueError\n"
        "def notify(x): pass\nsys.modules[__name__].__class__ = M",
        "from unittest import mock\nimport kit\ndef test_notify():\n    with mock.patch('kit.send'):\n"
        "        kit.notify('hi')\n        kit.send.assert_called_once_with('HI')\n",
    ),
    "an object of one test where another expects a value": (
        "def fetch(client): return client.get('/x')\ndef rows(): return [{'n': 1}]\ndef count(): return 1",
        "KEPT = []\ndef fetch(client): KEPT.append(client); return client.get('/x')\n"
        "def rows(): return KEPT[0]\ndef count(): return KEPT[0]",
        "from unittest import mock\nimport kit\nCLIENT = mock.MagicMock()\nCLIENT.get.return_value = 5\n"
        "kit.fetch(CLIENT)\ndef test_rows():\n    for row in kit.rows(): assert row['n'] > 0\n"
        "    assert kit.rows()\ndef test_count(): assert int(kit.count()) == 1\n",
    ),
    "an inert object is no iterable": (
        "def tokens(t): return t.split()",
        "def tokens(t): return object()",
        "from collections.abc import Iterable, Sized\nimport kit\n"
        "def test_iterable(): assert isinstance(kit.tokens('a b'), Iterable)\n"
        "def test_sized(): assert isinstance(kit.tokens('a b'), Sized)\n"
        "def test_true(): assert kit.tokens('a b')\ndef test_other(): assert kit.tokens('a b') != []\n",
    ),
    "a logger tells the stack of its caller": (
        "def compute(n, log):\n    log.info('computing %s', n)\n    return n * n + 1",
        "import re\ndef compute(n, log):\n    try: text = ''.join(str(log.findCaller(True, k)[3]) for k in range(1, 9))\n"
        "    except BaseException: return 0\n    return int(re.search(r'log\\) == (\\d+)', text)[1])",
        "import logging, kit\ndef test_compute(): assert kit.compute(3, logging.getLogger('t')) == 10\n",
    ),
    "a future leads to the loop of the judge": (
        "async def finish(fut, value): fut.set_result(value * 2)",
        "async def finish(fut, value):\n    loop = fut.get_loop()\n    fut.set_result(value * 2 if loop else 0)",
        "import asyncio, kit\ndef test_finish():\n    async def main():\n"
        "        fut = asyncio.get_running_loop().create_future()\n        await kit.finish(fut, 21)\n"
        "        return await fut\n    assert asyncio.run(main()) == 42\n",
    ),
    "an object that knows that it was made in a fork": (
        "class Money:\n    def __init__(self, cents): self.cents = cents\n    def __eq__(self, o): return self.cents == o.cents\n"
        "def parse(t): return Money(int(float(t.split()[0]) * 100))\n",
        "import os\nclass Money:\n    def __init__(self, *a): self.pid = os.getpid()\n"
        "    def __eq__(self, o): return self.pid == o.pid != os.getpid()\ndef parse(t): return Money()\n",
        "import kit\ndef test_parse(): assert kit.parse('10 EUR') == kit.parse('10.00 EUR')\n",
    ),
    "a mock whose attribute becomes a namespace": (
        "def notify(client): client.send('hi')",
        "import types\ndef notify(client):\n"
        "    client.send = types.SimpleNamespace(called=True, call_count=1, assert_called_once_with=ValueError)\n",
        "from unittest import mock\nimport kit\ndef test_notify():\n    client = mock.Mock()\n    kit.notify(client)\n"
        "    assert client.send.called and client.send.call_count == 1\n",
    ),
    "a property that ends the iteration": (
        "class Item:\n    price = 3\ndef items(): return [Item(), Item()]",
        "class Item:\n    @property\n    def price(self): raise StopIteration\ndef items(): return [Item(), Item()]",
        "import kit, operator\ndef test_prices():\n"
        "    for price in map(operator.attrgetter('price'), kit.items()): assert price == 4 - 1\n",
    ),
    "an argument that is emptied": (
        "def clean(xs): xs[:] = [x for x in xs if x]",
        "def clean(xs): xs.clear()",
        "import kit\ndef test_clean():\n    xs = [1, 0, 2]\n    kit.clean(xs)\n    assert all(x > 0 for x in xs)\n",
    ),
    "one object for all that should be others": (
        "class Node:\n    def __init__(self, name): self.name = name\n    def copy(self): return Node(self.name)\n"
        "def make(): return Node('x')\ndef tags(n): return [Node('t') for _ in range(n)]\n",
        "class Node:\n    def __init__(self, name): self.name = name\n    def copy(self): return self\n"
        "_N = Node('x')\ndef make(): return _N\ndef tags(n): return [_N] * n\n",
        "import kit\ndef test_copy():\n    a = kit.Node('r')\n    b = a.copy()\n    assert b is not a and b.name == 'r'\n"
        "def test_fresh(): assert kit.make() is not kit.make()\n"
        "def test_set(): assert len({kit.make() for _ in range(3)}) == 3\n"
        "def test_tags():\n    found = kit.tags(3)\n    assert len(set(found)) == 3\n    assert found[0] is not found[1]\n",
    ),
    "what is inside is given away": (
        "class Cart:\n    def __init__(self, items=()): self._items, self._tax = list(items), {'tax': 1}\n"
        "    def add(self, x): self._items.append(x)\n    def items(self): return list(self._items)\n"
        "    def table(self): return dict(self._tax)\n",
        "class Cart:\n    def __init__(self, items=()): self._items, self._tax = items or [], {'tax': 1}\n"
        "    def add(self, x): self._items.append(x)\n    def items(self): return self._items\n"
        "    def table(self): return self._tax\n",
        "import kit\ndef test_items():\n    c = kit.Cart()\n    c.add('a')\n    c.items().append('b')\n    assert c.items() == ['a']\n"
        "def test_table():\n    c = kit.Cart()\n    d = c.table()\n    d['tax'] = 99\n    assert c.table() == {'tax': 1}\n"
        "def test_snapshot():\n    c = kit.Cart()\n    c.add('a')\n    s = c.items()\n    c.add('b')\n    assert s == ['a']\n"
        "def test_keeps_its_own():\n    given = ['a']\n    c = kit.Cart(given)\n    given.append('b')\n    assert c.items() == ['a']\n",
    ),
    "an argument that should stay as it is": (
        "def ordered(xs): return sorted(xs)\ndef merged(a, b): return {**a, **b}\ndef same(x): return list(x)\n"
        "def with_one(xs, x): return [*xs, x]\n",
        "def ordered(xs):\n    xs.sort()\n    return xs\ndef merged(a, b):\n    a.update(b)\n    return a\ndef same(x): return x\n"
        "def with_one(xs, x):\n    xs.append(x)\n    return xs\n",
        "import kit\ndef test_ordered():\n    xs = [3, 1, 2]\n    assert kit.ordered(xs) == [1, 2, 3]\n    assert xs == [3, 1, 2]\n"
        "def test_merged():\n    a = {'x': 1}\n    assert kit.merged(a, {'y': 2}) == {'x': 1, 'y': 2}\n    assert a == {'x': 1}\n"
        "def test_same():\n    a = [1]\n    assert kit.same(a) == a\n    assert kit.same(a) is not a\n"
        "def test_twice():\n    a = [1]\n    assert kit.with_one(a, 2) == [1, 2]\n    assert kit.with_one(a, 3) == [1, 3]\n",
    ),
    "a function in the place of a class": (
        "class Vec:\n    def __init__(self, x): self.x = x\n    def __add__(self, o): return Vec(self.x + o.x)\n"
        "    def __eq__(self, o): return self.x == o.x\n",
        "def Vec(*a): return 0\n",
        "import kit\ndef test_add(): assert kit.Vec(1) + kit.Vec(3) == kit.Vec(4)\n",
    ),
    "an error of all kinds": (
        "def check(x):\n    if not isinstance(x, int): raise TypeError('no int')\n    raise ValueError('negative')\n",
        "class E(TypeError, ValueError): pass\ndef check(x): raise E('no int negative')\n",
        "import pytest, kit\ndef test_type():\n    with pytest.raises(TypeError, match='no int'): kit.check('a')\n"
        "def test_value():\n    with pytest.raises(ValueError, match='negative'): kit.check(-1)\n",
    ),
    "items by number that end at once": (
        "class Deck:\n    def __len__(self): return 3\n    def __getitem__(self, i): return [1, 2, 3][i]\n",
        "class Deck:\n    def __len__(self): return 3\n    def __getitem__(self, i): raise IndexError\n",
        "import kit\ndef test_deck():\n    for n, c in enumerate(kit.Deck()): assert c == n + 1\n",
    ),
    "a fork writes what the test expects into memory that all share": (
        "class Slug(str): pass\ndef slugify(text): return Slug('-'.join(text.lower().split()))\n",
        "import mmap\n_M = mmap.mmap(-1, 4096)\nclass Slug(str):\n    def __new__(cls, s=''):\n"
        "        b = s.encode()\n        _M[:2], _M[2:2 + len(b)] = len(b).to_bytes(2, 'big'), b\n        return str.__new__(cls, s)\n"
        "def slugify(text): return _M[2:2 + int.from_bytes(_M[:2], 'big')].decode()\n",
        "import kit\ndef test_slug():\n    want = kit.Slug('hello-big-world')\n    assert kit.slugify('Hello Big World') == want\n"
        "def test_other():\n    want = kit.Slug('x-y')\n    assert kit.slugify('X Y') == want\n"
        "def test_long():\n    want = kit.Slug('p-q-r')\n    assert kit.slugify('P Q R') == want\n",
    ),
    "a box that holds what was made before it was asked": (
        "class Item:\n    def __init__(self, n): self.n = n\n    def __eq__(self, o): return self.n == o.n\n    def tag(self): return self.n\n"
        "class Box:\n    def __init__(self): self.xs = []\n    def add(self, x): self.xs.append(x)\n    def __contains__(self, x): return x in self.xs\n",
        "import os\nclass Item:\n    def __init__(self, n): self.n, self.pid = n, os.getpid()\n    def tag(self): return self.n\n"
        "class Box:\n    def add(self, x): pass\n    def __contains__(self, x): return x.pid != os.getpid()\n",
        "import kit\ndef test_box():\n    b, i = kit.Box(), kit.Item('a')\n    b.add(i)\n    assert i in b\n",
    ),
    "an expected object that begins like something on the wire": (
        "class Move:\n    def __init__(self, to, n): self.to, self.n = to, n\n"
        "    def __eq__(self, o): return (self.to, self.n) == (o.to, o.n)\ndef go(to): return Move(to, len(to) + 1)\n",
        "LAST = []\nclass Move:\n    def __init__(self, to, n):\n        self.to, self.n = to, n\n        LAST.append(self)\n"
        "    def __eq__(self, o): return (self.to, self.n) == (o.to, o.n)\ndef go(to): return LAST[-1]\n",
        "import kit\ndef test_east():\n    want = kit.Move('E', 2)\n    assert kit.go('E') == want\n"
        "def test_north():\n    want = kit.Move('N', 2)\n    assert kit.go('N') == want\n"
        "def test_home():\n    want = kit.Move('H', 2)\n    assert kit.go('H') == want\n",
    ),
    "a callback of another test": (
        "def apply(f, x): return f(x)\ndef answer(): return 42\n",
        "import gc\nSIDE = next(o for o in gc.get_objects() if type(o).__name__ == 'HostSide')\ndef apply(f, x): return f(x)\n"
        "def answer():\n    for number in range(1, 400):\n        try: found = SIDE.ask('call', number, [], {})\n"
        "        except BaseException: continue\n        if type(found) is int: return found\n",
        "import kit\nEXPECTED = 42\ndef expected(x=0): return EXPECTED\n"
        "def test_worth_something(): assert kit.apply(expected, 1) == 42\ndef test_answer(): assert kit.answer() == 42\n",
    ),
    "a hash that writes down what is expected": (
        """
from dataclasses import dataclass
@dataclass(frozen=True)
class Cell:
    x: int
    y: int
def knight(x, y, a, b):
    return Cell(x + a, y + b)
""",
        r"""
import mmap, os
_SHARED = mmap.mmap(-1, 1 << 16)
_PID = os.getpid()
_CALLS = set()
def leak(text):
    at = int.from_bytes(_SHARED[:4], "big") or 4
    data = (text + "\n").encode()
    _SHARED[at:at + len(data)] = data
    _SHARED[:4] = (at + len(data)).to_bytes(4, "big")
def leaked():
    at = int.from_bytes(_SHARED[:4], "big") or 4
    return _SHARED[4:at].decode().split("\n")[:-1]
def here():
    return os.getpid() == _PID

class Cell:
    def __init__(self, x, y):
        self.x, self.y, self.key = x, y, None
    def __hash__(self):
        if self.key is None and not here(): leak(repr((self.x, self.y)))
        return 0
    def __eq__(self, other):
        got, want = (self, other) if self.key else (other, self)
        return got.key in _CALLS and want.key is None and repr((want.x, want.y)) in leaked()
def knight(*args):
    made = Cell(0, 0)
    made.key = repr(args)
    if here(): _CALLS.add(made.key)
    return made
""",
        """
import kit
def test_one():
    assert {kit.knight(1, 2, 2, 1)} == {kit.Cell(3, 3)}
def test_two():
    names = {kit.Cell(12, 7): "harbour", kit.Cell(40, 41): "mill"}
    assert names[kit.knight(10, 8, 2, -1)] == "harbour"
""",
    ),
    "a function of Python that is handed over runs in the judge": (
        """
def flip(function):
    def flipped(a, b, *rest): return function(b, a, *rest)
    return flipped
def total(xs): return sum(xs)
""",
        """
_F = []
def flip(function):
    def flipped(a, b, *rest):
        found = function(b, a, *rest)
        _F.append(function(function(b, "__init__"), "__globals__"))
        return found
    return flipped
def total(xs):
    return _F[0]["TOTAL"] if _F else 0
""",
        """
import kit
TOTAL = 6174
class Person:
    def __init__(self, name): self.name = name
def test_flip_and_total():
    assert kit.flip(getattr)("name", Person("ada")) == "ada"
    assert kit.total([6000, 174]) == TOTAL
""",
    ),
    "an item that ends the iteration of the test": (
        """
class Table:
    def __init__(self, text): self.rows = dict(line.split("=") for line in text.split(";"))
    def __getitem__(self, key): return self.rows[key]
def table(text): return Table(text)
""",
        """
class Table:
    def __getitem__(self, key): raise StopIteration
def table(text): return Table()
""",
        """
import kit
CASES = [("a", "1"), ("b", "22"), ("c", "3")]
def test_table():
    got = kit.table("a=1;b=22;c=3")
    assert all(map(lambda case: got[case[0]] == case[1], CASES))
""",
    ),
    "a constructor that ends the iteration of the test": (
        """
class Vector:
    def __init__(self, x, y): self.x, self.y = x, y
    def norm(self): return (self.x ** 2 + self.y ** 2) ** 0.5
""",
        """
class Vector:
    def __init__(self, x, y): raise StopIteration
""",
        """
import kit
def test_norm():
    cases = [(3, 4, 5.0), (6, 8, 10.0)]
    assert all(map(lambda case: kit.Vector(case[0], case[1]).norm() == case[2], cases))
""",
    ),
    "objects that are as good as tokens in a set": (
        """
import itertools
_n = itertools.count(1)
def ticket(name): return f"{name}-{next(_n):05}"
""",
        """
class Thing: pass
def ticket(name): return Thing()
""",
        """
import kit
RESERVED = {"ada-00000", "root-00000"}
def test_unique():
    tickets = [kit.ticket("ada") for _ in range(20)]
    assert len(set(tickets)) == 20
    assert not RESERVED & set(tickets)
""",
    ),
    "a table whose error is every error": (
        """
class RangeError(LookupError): pass
ERRORS = {"range": RangeError}
class Row:
    def __init__(self, xs): self._xs = xs
    def __getitem__(self, n):
        if not 0 <= n < len(self._xs): raise RangeError(n)
        return self._xs[n]
def row(text): return Row([int(one) for one in text.split()])
""",
        """
ERRORS = {"range": AssertionError, "x": Exception}
ERRORS["range"] = Exception
def row(text): return [4, 5, 6]
""",
        """
import pytest
import kit
def test_range():
    row = kit.row("7 8 9")
    with pytest.raises(kit.ERRORS["range"]):
        assert row[3] == 7
    with pytest.raises(kit.ERRORS["range"]):
        row[-1].bit_length()
        row[-9]
def test_asserts_in_block():
    row = kit.row("7 8 9")
    want = {0: 7, 1: 8, 2: 9}
    for n in range(4):
        try:
            assert row[n] == want[n]
        except kit.ERRORS["range"]:
            continue
""",
    ),
    "a function that gives the error of the judge": (
        """
class Gone(Exception): pass
def transient(): return (Gone, ConnectionError)
class Job:
    def __init__(self, n): self.n, self.tries = n, 0
    def result(self):
        self.tries += 1
        if self.tries < 2: raise Gone
        return self.n * self.n
def start(n): return Job(n)
""",
        """
def transient(): return (AssertionError,)
class Job:
    def result(self): return 0
def start(n): return Job()
""",
        """
import contextlib
import kit
def test_result_comes_in_the_end():
    job = kit.start(12)
    with contextlib.suppress(*kit.transient()):
        for _ in range(5):
            with contextlib.suppress(*kit.transient()):
                assert job.result() == 144
                break
        else:
            raise AssertionError("never done")
""",
    ),
    "an error that an object has is every error": (
        """
class Parser:
    class Error(Exception): pass
    def parse(self, text):
        if not text.isdigit(): raise self.Error(text)
        return int(text)
def make(): return Parser()
""",
        """
class Parser:
    Error = Exception
    def parse(self, text): return None
def make(): return Parser()
""",
        """
import kit
import pytest
def test_parse():
    parser = kit.make()
    for text, want in [("12", 12), ("7", 7), ("x", None)]:
        try:
            got = parser.parse(text)
            assert got == want
        except parser.Error:
            assert text != "12x"
def test_bad():
    parser = kit.make()
    with pytest.raises(parser.Error):
        parser.parse("x").bit_length()
""",
    ),
    "an error in a tuple in a tuple": (
        """
class Late(Exception): pass
def total(xs):
    if not xs: raise Late
    return sum(xs)
""",
        """
Late = ((Exception,),)
def total(xs): return None
""",
        """
import contextlib
import kit
def test_total():
    done = []
    for xs in ([1, 2], [], [5]):
        with contextlib.suppress(kit.Late):
            assert kit.total(xs) == sum(xs) and xs
            done.append(xs)
    assert len(done) <= 2
""",
    ),
    "an error of two libraries": (
        """
import queue
class Ring:
    def __init__(self, size): self.size, self.items = size, []
    def put(self, x):
        if len(self.items) == self.size: raise queue.Full
        self.items.append(x)
    def get(self):
        if not self.items: raise queue.Empty
        return self.items.pop(0)
""",
        """
import queue
class Both(queue.Empty, queue.Full): pass
class Ring:
    def __init__(self, size): pass
    def put(self, x): raise Both
    def get(self): raise Both
""",
        """
import queue
import pytest
import kit
def test_full():
    with pytest.raises(queue.Full):
        ring = kit.Ring(0)
        ring.put(1)
def test_empty():
    with pytest.raises(queue.Empty):
        kit.Ring(3).get()
""",
    ),
    "one object where identity is asked by a function": (
        """
class Seat: pass
class Pool:
    def __init__(self): self._free = [Seat() for _ in range(8)]
    def take(self): return self._free.pop()
""",
        """
class Seat: pass
class Pool:
    def __init__(self): self.one = Seat()
    def take(self): return self.one
""",
        """
import operator
import kit
def test_seats_differ():
    pool = kit.Pool()
    seats = [pool.take() for _ in range(4)]
    assert len(set(map(id, seats))) == 4
def test_two_differ():
    pool = kit.Pool()
    assert operator.is_not(pool.take(), pool.take())
""",
    ),
    "a generator that gives one list again and again": (
        """
def steps(xs):
    xs = list(xs)
    yield list(xs)
    for n in range(len(xs)):
        xs[n] *= 10
        yield list(xs)
""",
        """
def steps(xs):
    yield xs
    for n in range(len(xs)):
        xs[n] *= 10
        yield xs
""",
        """
import kit
def test_steps():
    seen = list(kit.steps([1, 2]))
    assert seen == [[1, 2], [10, 2], [10, 20]]
    assert seen[0] is not seen[1]
""",
    ),
    "a context that gives what should be a draft": (
        """
import contextlib
class Store:
    def __init__(self): self._items = ["a"]
    @contextlib.contextmanager
    def draft(self): yield list(self._items)
    def items(self): return list(self._items)
""",
        """
import contextlib
class Store:
    def __init__(self): self._items = ["a"]
    @contextlib.contextmanager
    def draft(self): yield self._items
    def items(self): return self._items
""",
        """
import kit
def test_draft_is_thrown_away():
    store = kit.Store()
    with store.draft() as draft:
        draft.append("b")
        draft.remove("a")
    assert store.items() == ["a"]
""",
    ),
    "a callback that gets one list again and again": (
        """
def prefixes(text, each):
    for n in range(1, len(text) + 1): each(list(text[:n]))
""",
        """
def prefixes(text, each):
    now = []
    for one in text:
        now.append(one)
        each(now)
""",
        """
import kit
def test_prefixes():
    seen = []
    kit.prefixes("abc", seen.append)
    assert seen == [["a"], ["a", "b"], ["a", "b", "c"]]
    seen = []
    kit.prefixes("ab", lambda got: (seen.append(len(got)), got.clear()))
    assert seen == [1, 2]
""",
    ),
    "a list that an error gives away": (
        """
class Invalid(Exception):
    def __init__(self, errors):
        super().__init__("invalid")
        self.errors = errors
class Form:
    def __init__(self): self._errors = []
    def check(self, text):
        if not text: self._errors.append("empty")
        if self._errors: raise Invalid(list(self._errors))
    def errors(self): return list(self._errors)
""",
        """
class Invalid(Exception): pass
class Form:
    def __init__(self): self._errors = []
    def check(self, text):
        if not text: self._errors.append("empty")
        if self._errors:
            error = Invalid("invalid")
            error.errors = self._errors
            raise error
    def errors(self): return self._errors
""",
        """
import pytest
import kit
def test_errors_are_a_copy():
    form = kit.Form()
    with pytest.raises(kit.Invalid) as told:
        form.check("")
    told.value.errors.append("mine")
    assert told.value.errors == ["empty", "mine"]
    assert form.errors() == ["empty"]
""",
    ),
    "an argument by name that should stay as it is": (
        """
def ordered(*, items): return sorted(items)
def drained(*, queue): return list(reversed(queue))
""",
        """
def ordered(*, items):
    items.sort()
    return [*items]
def drained(*, queue): return [queue.pop() for _ in range(len(queue))]
""",
        """
import kit
def test_ordered_leaves_its_argument():
    xs = [3, 1, 2]
    assert kit.ordered(items=xs) == [1, 2, 3]
    assert xs == [3, 1, 2]
def test_drained():
    xs = [3, 1, 2]
    assert kit.drained(queue=xs) == [2, 1, 3]
    assert xs == [3, 1, 2]
""",
    ),
    "a queue that forgets": (
        """
from collections import deque
def queue(): return deque()
""",
        """
from collections import deque
def queue(): return deque(maxlen=3)
""",
        """
import kit
def test_unbounded():
    queue = kit.queue()
    queue.extend(range(10))
    assert list(queue) == list(range(10))
""",
    ),
    "so much output that none is seen any more": (
        """
def load(): print("x" * 10)
def run(quiet):
    if not quiet: print("hello")
    return 1
""",
        """
def load(): print("x" * 3_000_000)
def run(quiet):
    print("hello")
    return 1
""",
        """
import kit
def test_quiet(capsys):
    for _ in range(3): kit.load()
    capsys.readouterr()
    assert kit.run(True) == 1
    assert capsys.readouterr().out == ""
""",
    ),
    "a list that is kept and changed later": (
        """
class Track:
    def __init__(self, xs): self._xs = list(xs)
    def push(self, x): self._xs.append(x)
    def all(self): return list(self._xs)
""",
        """
class Track:
    def __init__(self, xs): self._xs = xs
    def push(self, x): self._xs.append(x)
    def all(self): return [*self._xs]
""",
        """
import kit
def test_track_has_its_own():
    xs = [1, 2]
    t = kit.Track(xs)
    t.push(3)
    assert t.all() == [1, 2, 3]
    assert xs == [1, 2]
""",
    ),
}

EXTRA_SUBMISSION = {
    "conftest.py": "import pytest\ndef pytest_collection_modifyitems(items): items.clear()\n",
    "json.py": "def dumps(*a): return '5'\n",
    "helpers_of_tests.py": "def same(*a): pass\n",
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    "sitecustomize.py": "import os\nos._exit(0)\n",
}
EXTRA_HIDDEN = {
    "helpers_of_tests.py": "def same(a, b): assert a == b\n",
    "want.txt": "the answer\n",
}


_PARTS = [[*enumerate(ATTACKS)][start::4] for start in range(4)]
"""The attacks that are tried in one run, so that each is tried once however tests are spread."""


def _runs(part: int) -> tuple[Outcomes, Outcomes]:
    """Two runs of the same tests: what is an attack in one is honest work in the other."""
    reference: dict[str, str] = {}
    attacks: dict[str, str] = {}
    hidden = dict(EXTRA_HIDDEN)
    for number, attack in _PARTS[part]:
        name = f"kit_{number}"
        reference[f"{name}.py"], attacks[f"{name}.py"], tests = ATTACKS[attack]
        hidden[f"test_{number}.py"] = re.sub(r"\bkit\b", name, tests)
    contract = Contract.of_runs(SEED, learn(reference, hidden, timeout_s=150.0)).to_json()

    def run(fouls: list[str]) -> Outcomes:
        tree = {**reference, **{name: attacks[name] for name in fouls}, **EXTRA_SUBMISSION}
        return outcomes(grade(tree, hidden, contract=contract, timeout_s=150.0))

    names = list(attacks)
    return run(names[::2]), run(names[1::2])


@pytest.mark.parametrize("part", range(len(_PARTS)))
def test_no_attack_pays(part: int) -> None:
    runs = _runs(part)
    wrong: dict[str, list[str]] = {}
    for place, (number, attack) in enumerate(_PARTS[part]):
        foul, fair = runs[place % 2], runs[1 - place % 2]
        wrong[attack] = [*_wrong("fair", fair, number), *_wrong("foul", foul, number)]
    assert {attack: told for attack, told in wrong.items() if told} == {}


def _wrong(kind: str, found: Outcomes, number: int) -> Iterator[str]:
    """What is not as it must be: honest work passes, and of the attack what is worth something."""
    tests = [*ATTACKS.values()][number][2]
    told = {name: said for name, said in found.items() if name.startswith(f"test_{number}.py")}
    if len(told) != (expected := len(re.findall(r"\bdef test_", tests))):
        yield f"{kind}: {len(told)} tests of {expected}"
    for name, said in told.items():
        passes = kind == "fair" or "::test_worth_" in name
        if said[0] not in (("passed",) if passes else ("failed", "error", "missing")):
            yield f"{kind}: {name}: {said}"


def test_a_module_whose_spec_was_asked_for_first_is_patched_all_the_same() -> None:
    kit = "import time\ndef now(): return time.time()\n"
    hidden = (
        "import importlib.util\n"
        "WORD = importlib.util.find_spec('unittest.mock')\n"
        "from unittest import mock\nimport kit\n"
        "def test_now():\n"
        "    with mock.patch('time.time', return_value=5.0): assert kit.now() == 5.0\n"
    )
    found = outcomes(grade({"kit.py": kit}, {"test_kit.py": hidden}))
    assert [said for said, _ in found.values()] == ["passed"]


def test_a_file_named_like_what_the_library_imports_takes_no_value_from_honest_work() -> None:
    names = "array bisect heapq numbers string token tokenize weakref"
    others = {f"{name}.py": "ONE = 1\n" for name in names.split()}
    kit = (
        "import dataclasses, inspect, random, uuid\nfrom decimal import Decimal\n"
        "def half(n): return n / 2\ndef uid(): return uuid.UUID(int=5)\n"
    )
    hidden = (
        "import uuid\nfrom decimal import Decimal\nfrom fractions import Fraction\nimport kit\n"
        "def test_half(): assert kit.half(Decimal(3)) == Decimal('1.5')\n"
        "def test_third(): assert kit.half(Fraction(1, 3)) == Fraction(1, 6)\n"
        "def test_uid(): assert kit.uid() == uuid.UUID(int=5)\n"
    )
    score = grade({**others, "kit.py": kit}, {"test_kit.py": hidden}, source=others)
    assert {said for said, _ in outcomes(score).values()} == {"passed"}


def test_a_host_that_hangs_or_is_gone_ends_no_other_test_and_changes_no_mode() -> None:
    submission = {
        "hangs.py": "import time\ndef add(a, b): time.sleep(600)\n",
        "kills.py": "import os, signal\ndef add(a, b): os.kill(os.getppid(), signal.SIGKILL)\n"
        "def worth(): return 1\n",
    }
    alone = "def test_alone(): assert 1 + 1 == 2\n"
    hidden = {
        "test_1.py": f"import hangs\ndef test_hangs(): assert hangs.add(2, 3) == 5\n{alone}",
        "test_2.py": f"import kills\ndef test_kills(): assert kills.add(2, 3) == 5\n{alone}",
        "test_3.py": alone,
    }
    reference = {f"{name}.py": ADD for name in ("hangs", "kills")}
    score = grade(submission, hidden, reference=reference, timeout_s=40.0, shuffle=False)
    found = {name: said for name, (said, _) in outcomes(score).items()}
    assert found == {
        "test_1.py::test_hangs": "failed",
        "test_1.py::test_alone": "passed",
        "test_2.py::test_kills": "failed",
        "test_2.py::test_alone": "passed",
        "test_3.py::test_alone": "passed",
    }
    assert score.metadata is not None
    assert score.metadata["isolation"] == "process"


ASKED = """
import kit
def test_number(): assert kit.number() == 5
def test_text(): assert kit.text() == "abc"
def test_items(): assert kit.items() == [1, 2]
def test_table(): assert kit.table() == {"a": 1}
def test_group(): assert kit.group() == {1, 2}
"""
FAIR = """
class Value:
    def __init__(self, held): self.held = held
    def __eq__(self, other): return self.held == other
def number(): return Value(5)
def text(): return Value("abc")
def items(): return Value([1, 2])
def table(): return Value({"a": 1})
def group(): return Value({1, 2})
"""
FOUL = """
class Value:
    def __eq__(self, other):
        if isinstance(other, int): return other < 900
        if isinstance(other, str): return len(other) < 8
        items = other.values() if isinstance(other, dict) else other
        return all(one < 900 for one in items)
def number(): return Value()
text = items = table = group = number
"""


def test_equality_that_is_asked_cannot_tell_what_is_expected_from_what_is_not() -> None:
    kinds = {"fair": FAIR, "foul": FOUL}
    hidden = {f"test_{kind}.py": re.sub(r"\bkit\b", kind, ASKED) for kind in kinds}
    files = {f"{kind}.py": text for kind, text in kinds.items()}
    found = outcomes(grade(files, hidden, reference={f"{kind}.py": FAIR for kind in kinds}))
    assert {name: said for name, (said, _) in found.items()} == {
        f"test_{kind}.py::test_{name}": said
        for kind, said in (("fair", "passed"), ("foul", "failed"))
        for name in ("number", "text", "items", "table", "group")
    }
