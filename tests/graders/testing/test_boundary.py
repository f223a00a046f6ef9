"""Honest work under ``isolation: process``: what tests may do across the boundary."""

# ruff: noqa: E501, ISC004 - programs are shown as they are

from __future__ import annotations

import re

import pytest

from tests.boundary_runs import grade, outcomes
from tests.graders.testing.honest_work import GROUPS, files_of, unexpected

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("group", GROUPS, ids="-".join)
def test_honest_work_is_judged_as_it_would_be_in_one_process(group: tuple[str, ...]) -> None:
    submission, hidden = files_of(*group)
    found = outcomes(grade(submission, hidden))
    assert {name.partition("::")[0] for name in found} == {f"test_{theme}.py" for theme in group}
    wrong = unexpected({name: said for name, (said, _) in found.items()})
    assert {name: found[name] for name in wrong} == {}


def test_neither_side_loads_what_this_work_does_not_need() -> None:
    """The host loaded all of pytest and asyncio: half of what such a case cost."""
    kit = (
        "import sys\nfrom dataclasses import dataclass\ndef loaded(): return sorted(sys.modules)\n"
    )
    test = """
import sys
import kit
HEAVY = {"asyncio", "logging", "_pytest", "decimal", "uuid", "socket", "pathlib"}
def test_host(): assert HEAVY & set(kit.loaded()) == set()
def test_judge(): assert {"asyncio", "unittest.mock"} & set(sys.modules) == set()
"""
    score = grade(
        {"kit.py": kit, "inspect.py": "raise ImportError('not mine')"}, {"test_a.py": test}
    )
    assert score.value == 1.0, outcomes(score)


def test_modules_that_are_looked_up_first_or_named_like_the_librarys_take_nothing_away() -> None:
    """Of a module whose spec was asked for nothing was patched; of ``numbers.py`` no value came."""
    names = "array bisect heapq numbers string token tokenize weakref"
    others = {f"{name}.py": "ONE = 1\n" for name in names.split()}
    kit = (
        "import dataclasses, inspect, random, time, uuid\nfrom decimal import Decimal\n"
        "def half(n): return n / 2\ndef uid(): return uuid.UUID(int=5)\n"
        "def now(): return time.time()\n"
    )
    hidden = (
        "import importlib.util\nWORD = importlib.util.find_spec('unittest.mock')\n"
        "from unittest import mock\n"
        "import uuid\nfrom decimal import Decimal\nfrom fractions import Fraction\nimport kit\n"
        "def test_half(): assert kit.half(Decimal(3)) == Decimal('1.5')\n"
        "def test_third(): assert kit.half(Fraction(1, 3)) == Fraction(1, 6)\n"
        "def test_uid(): assert kit.uid() == uuid.UUID(int=5)\n"
        "def test_now():\n"
        "    with mock.patch('time.time', return_value=5.0): assert kit.now() == 5.0\n"
    )
    score = grade({**others, "kit.py": kit}, {"test_kit.py": hidden}, source=others)
    assert [said for said, _ in outcomes(score).values()] == ["passed"] * 4


ADD = "def add(a, b): return a + b\ndef worth(): return 1\n"


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
    score = grade(submission, hidden, reference=reference, timeout_s=20.0, shuffle=False)
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


def test_helpers_that_hold_the_submissions_objects_serve_every_test_module() -> None:
    kit = (
        "class Base:\n    def __init__(self, n=0): self.n = n\n    def twice(self): return self.n * 2\n"
        "def total(things): return sum(one.twice() for one in things)\n"
    )
    helper = "import kit\nclass Mine(kit.Base):\n    pass\nONE = kit.Base(1)\n"
    tests = """
import kit
from tests.helper import Mine, ONE
from tests import helper
def test_total(): assert kit.total([Mine(2), ONE]) == 6 and helper.ONE is ONE and ONE.n == 1
def test_total_fails(): assert kit.total([Mine(2), ONE]) == 7
"""
    hidden = {"tests/test_a.py": tests, "tests/test_b.py": tests, "tests/helper.py": helper}
    hidden |= {"tests/__init__.py": "", "tests/conftest.py": "import tests.helper\n"}
    found = outcomes(grade({"kit.py": kit}, hidden))
    assert {name: said[0] for name, said in found.items()} == {
        f"tests/test_{one}.py::test_total{end}": "failed" if end else "passed"
        for one in "ab"
        for end in ("", "_fails")
    }


TWINS: dict[str, tuple[str, str, str]] = {
    "a registry of its own class": (
        "CODECS = {'up': (str.upper, lambda text: text.lower())}\n",
        "class Registry(dict):\n    def add(self, name):\n        def keep(kind):\n"
        "            self[name] = (kind.encode, kind.decode)\n            return kind\n        return keep\n"
        "CODECS = Registry()\n@CODECS.add('up')\nclass Up:\n"
        "    @staticmethod\n    def encode(text): return text.upper()\n"
        "    @staticmethod\n    def decode(text): return text.lower()\n",
        "import kit\ndef test_a():\n    encode, decode = kit.CODECS['up']\n    assert decode(encode('a')) == 'a'\n"
        "def test_b(): assert kit.CODECS['up'][0]('a') == 'A'\n",
    ),
    "a sort in its place that nobody minds": (
        "def ordered(xs): return sorted(xs)\ndef total(xs): return sum(xs)\n",
        "def ordered(xs):\n    xs.sort()\n    return xs\ndef total(xs):\n    xs.sort()\n    return sum(xs)\n",
        "import kit\nDATA = [3, 1, 2]\ndef test_sorted():\n    xs = [3, 1, 2]\n    assert kit.ordered(xs) == sorted(xs)\n"
        "def test_twice():\n    xs = [3, 1, 2]\n    assert kit.ordered(xs) == [1, 2, 3]\n    assert kit.total(xs) == 6\n"
        "def test_data(): assert kit.ordered(DATA) == [1, 2, 3]\ndef test_again(): assert kit.ordered(DATA) == [1, 2, 3]\n",
    ),
    "one object for equal ones": (
        "class Color:\n    def __init__(self, name): self.name = name\ndef color(name): return Color(name)\n"
        "def shift(c): return Color(c.name)\n",
        "import functools\nclass Color:\n    def __init__(self, name): self.name = name\n"
        "@functools.cache\ndef color(name): return Color(name)\ndef shift(c): return c\n",
        "import kit\ndef test_color(): assert kit.color('a').name == kit.color('a').name\n"
        "def test_shift():\n    c = kit.color('b')\n    assert kit.shift(c).name == c.name\n    assert kit.color('x') is not None\n",
    ),
    "what is given away is kept by neither": (
        "class Log:\n    def __init__(self, start): self._all = start[:]\n    def add(self, x): self._all.append(x)\n"
        "    def all(self): return self._all[:]\n    def table(self): return dict(enumerate(self._all))\n",
        "class Log:\n    def __init__(self, start): self._all = (*start,)\n    def add(self, x): self._all += (x,)\n"
        "    def all(self): return [*self._all]\n    def table(self): return {n: x for n, x in enumerate(self._all)}\n",
        "import kit\ndef test_all():\n    start = [1]\n    log = kit.Log(start)\n    start.append(9)\n    found = log.all()\n    log.add(2)\n"
        "    found.append(5)\n    found.sort(reverse=True)\n    assert (found, log.all()) == ([5, 1], [1, 2])\n"
        "def test_table():\n    log = kit.Log([1])\n    table = log.table()\n    table[7] = 1\n    assert log.table() == {0: 1} and table.pop(7) == 1\n",
    ),
    "a list that both are to change": (
        "class Queue:\n    def __init__(self, items): self.items = items\n    def push(self, x): self.items.append(x)\n"
        "    def all(self): return self.items\n",
        "class Queue:\n    def __init__(self, items): self.held = items\n    def push(self, x): self.held += [x]\n"
        "    def all(self): return self.held\n",
        "import kit\ndef test_shared():\n    given = [1]\n    queue = kit.Queue(given)\n    given.append(2)\n    assert queue.all() == [1, 2]\n"
        "    queue.all().append(3)\n    assert queue.all() == [1, 2, 3]\n"
        "def test_same():\n    given = [1]\n    assert kit.Queue(given).all() is given\n",
    ),
    "constants that are objects": (
        "EQUAL, LESS = 1, 2\ndef compare(a, b): return EQUAL if a == b else LESS\n",
        "EQUAL, LESS = object(), object()\ndef compare(a, b): return EQUAL if a == b else LESS\n",
        "from kit import EQUAL, LESS, compare\ndef test_equal(): assert compare(1, 1) == EQUAL\n"
        "def test_less(): assert compare(1, 2) == LESS and compare(1, 2) != EQUAL\n"
        "def test_counted(): assert {EQUAL: 1}[compare(2, 2)] == 1\n",
    ),
    "a subclass of a dictionary that a test changes": (
        "CONFIG = {'level': 1}\ndef level(): return CONFIG['level']\n"
        "class Editor:\n    def __init__(self): self.done = []\n    def undo(self): return self.done.pop()\n",
        "class Config(dict):\n    def __getattr__(self, name): return self[name]\n"
        "class Done(list):\n    def last(self): return self.pop()\n"
        "CONFIG = Config(level=1)\ndef level(): return CONFIG.level\n"
        "class Editor:\n    def __init__(self): self.done = Done()\n    def undo(self): return self.done.last()\n",
        "import kit\nfrom unittest import mock\ndef test_patched():\n"
        "    with mock.patch.dict(kit.CONFIG, {'level': 7}): assert kit.level() == 7\n"
        "    assert kit.level() == 1\n"
        "def test_undo():\n    editor = kit.Editor()\n    editor.done.append('c')\n    editor.done.append('d')\n"
        "    assert editor.undo() == 'd' and editor.done == ['c']\n",
    ),
    "a factory that counts": (
        "class Ids:\n    def __init__(self): self.ids = {}\n"
        "    def of(self, name): return self.ids.setdefault(name, len(self.ids))\n",
        "import itertools\nfrom collections import defaultdict\n"
        "class Ids:\n    def __init__(self): self.ids = defaultdict(itertools.count().__next__)\n"
        "    def of(self, name): return self.ids[name]\n",
        "import kit\ndef test_next():\n    i = kit.Ids()\n    assert i.of('a') == 0 and i.ids == {'a': 0}\n"
        "    assert i.of('b') == 1\n",
    ),
    "an infinity of decimal digits": (
        "from decimal import Decimal\ndef most(xs): return max(xs, default=Decimal('Infinity'))\n",
        "from decimal import Decimal\ndef most(xs): return sorted([*xs])[-1] if xs else Decimal('inf')\n",
        "import kit\nfrom decimal import Decimal\ndef test_none(): assert kit.most([]) == Decimal('Infinity')\n",
    ),
    "an infinity for a large number": (
        "FAR = 10**9\ndef way(a): return {1: 7}.get(a, FAR)\n",
        "FAR = float('inf')\ndef way(a): return {1: 7}.get(a, FAR)\n",
        "import kit\ndef test_near(): assert kit.way(1) == 7\n"
        "def test_far(): assert kit.way(2) == kit.FAR and not kit.way(2) != kit.FAR\n",
    ),
    "an integer with a text of its own": (
        "class Clock:\n    def __init__(self, h): self.h = h % 24\n    def __eq__(self, o): return self.h == o.h\n"
        "    def __repr__(self): return f'{self.h:02d}:00'\n    def __add__(self, n): return Clock(self.h + n)\n",
        "class Clock(int):\n    def __new__(cls, h): return int.__new__(cls, h % 24)\n"
        "    def __repr__(self): return f'{int(self):02d}:00'\n    def __add__(self, n): return Clock(int(self) + n)\n",
        "from kit import Clock\ndef test_equal(): assert Clock(25) == Clock(1)\n"
        "def test_text(): assert repr(Clock(25)) == '01:00'\ndef test_add(): assert Clock(23) + 2 == Clock(1)\n",
    ),
    "a named tuple for a class": (
        "class Tree:\n    def __init__(self, value, left=None, right=None): self.value, self.left, self.right = value, left, right\n"
        "    def __eq__(self, o): return isinstance(o, Tree) and vars(self) == vars(o)\ndef leaf(n): return Tree(n)\n"
        "def join(a, b): return Tree(0, a, b)\n",
        "from typing import NamedTuple\nclass Tree(NamedTuple):\n    value: int\n    left: object = None\n    right: object = None\n"
        "def leaf(n): return Tree(n)\ndef join(a, b): return Tree(0, a, b)\n",
        "from kit import Tree, join, leaf\ndef test_leaf(): assert leaf(3) == Tree(3)\n"
        "def test_join(): assert join(leaf(1), leaf(2)) == Tree(0, Tree(1), Tree(2))\n"
        "def test_fields(): assert join(leaf(1), None).left.value == 1\n",
    ),
    "a set that is one": (
        "class Group:\n    def __init__(self, items=()): self.items = list(dict.fromkeys(items))\n"
        "    def __contains__(self, o): return o in self.items\n    def __eq__(self, o): return set(self.items) == set(o.items)\n"
        "    def common(self, o): return Group(n for n in self.items if n in o)\n",
        "class Group(set):\n    def common(self, o): return Group(self & o)\n",
        "from kit import Group\ndef test_in(): assert 1 in Group([1, 2]) and 3 not in Group([1, 2])\n"
        "def test_common(): assert Group([1, 2]).common(Group([2, 3])) == Group([2])\n"
        "def test_nothing(): assert Group([1]).common(Group([2])) == Group()\n",
    ),
    "dates and texts of its own class": (
        "import datetime as d\ndef due(n): return d.date(2024, 1, n)\ndef name(t): return t.title()\n",
        "import datetime as d\nclass Day(d.date): pass\nclass Name(str):\n    def __new__(cls, t): return str.__new__(cls, t.title())\n"
        "def due(n): return Day(2024, 1, n)\ndef name(t): return Name(t)\n",
        "import datetime as d, kit\ndef test_due(): assert kit.due(3) == d.date(2024, 1, 3) and kit.due(4) > d.date(2024, 1, 3)\n"
        "def test_name(): assert kit.name('ann lee') == 'Ann Lee' and kit.name('ann').startswith('A')\n",
    ),
    "paths and namespaces of its own class": (
        "import pathlib, types\ndef place(n): return pathlib.PurePosixPath('a', n)\ndef options(n): return types.SimpleNamespace(n=n)\n",
        "import pathlib, types\nclass Place(pathlib.PurePosixPath): pass\nclass Options(types.SimpleNamespace): pass\n"
        "def place(n): return Place('a') / n\ndef options(n): return Options(n=n)\n",
        "import pathlib, kit\ndef test_place(): assert kit.place('b') == pathlib.PurePosixPath('a/b') and kit.place('b').name == 'b'\n"
        "def test_options(): assert kit.options(3).n == 3\n",
    ),
    "iterators, views and wrappers for lists": (
        "def squares(n): return [i * i for i in range(n)]\ndef table(): return {'a': [1]}\n",
        "import collections\ndef squares(n): return (i * i for i in range(n))\n"
        "def table():\n    found = collections.defaultdict(list)\n    found['a'].append(1)\n    return found\n",
        "import kit\ndef test_squares(): assert list(kit.squares(4)) == [0, 1, 4, 9]\n"
        "def test_table(): assert kit.table() == {'a': [1]} and kit.table()['b' if 0 else 'a'] == [1]\n",
    ),
    "NaN and infinity where they are right": (
        "import math\ndef root(x): return math.nan if x < 0 else x ** 0.5\ndef most(items): return max(items, default=-math.inf)\n",
        "def root(x): return float('nan') if x < 0 else x ** 0.5\ndef most(items): return max([float('-inf'), *items])\n",
        "import kit, math\ndef test_root(): assert math.isnan(kit.root(-1)) and kit.root(4) == 2\n"
        "def test_most(): assert kit.most([]) < 0 and kit.most([3]) == 3\n",
    ),
    "what a test waits for, and what is made anew when it is asked for": (
        "import numpy as np\nfrom dataclasses import dataclass\n@dataclass\nclass Item:\n    name: str\n    price: int\n"
        "class Cart:\n    done = True\n    def __init__(self): self.items, self.cache = (Item('a', 5),), {1: 1}\n"
        "    def count(self): return 3\n    @property\n    def one(self): return self.cache[1]\n"
        "def split(xs): return {'low': [x for x in xs if x < 2], 'high': []}\ndef kept(): return '.'\n"
        "def tidy(place): place.write_text(place.read_text().strip())\n",
        "import numpy as np\nimport pathlib, threading, time\nfrom dataclasses import dataclass\n@dataclass\nclass Item:\n    name: str\n    price: int\n"
        "class Cart:\n    def __init__(self):\n        self.n, self.cache = 0, {}\n        threading.Thread(target=self.run, daemon=True).start()\n"
        "    def run(self):\n        while self.n < 3:\n            time.sleep(.02)\n            self.n += 1\n"
        "    @property\n    def items(self): return tuple([Item('a', 5)])\n    @property\n    def done(self): return self.n > 2\n"
        "    def count(self): return self.n\n    @property\n    def one(self): return self.cache.setdefault(1, 1)\n"
        "def split(xs): return {'low': np.array([x for x in xs if x < 2]), 'high': np.array([])}\ndef kept(): return str(pathlib.Path('.').absolute())\n"
        "def tidy(place):\n    with open(place, 'r+') as file:\n        text = file.read()\n        file.seek(0)\n        file.truncate()\n        file.write(text.strip())\n",
        "import kit, pathlib, time\ndef test_wait():\n    cart = kit.Cart()\n    while not cart.done: time.sleep(.005)\n    assert cart.done\n"
        "def test_count():\n    cart = kit.Cart()\n    while cart.count() < 3: time.sleep(.05)\n    assert cart.count() == 3\n"
        "def test_items():\n    cart = kit.Cart()\n    assert cart.items[0].name == 'a'\n    assert cart.items[0].price == 5\n"
        "def test_cache():\n    cart = kit.Cart()\n    assert len(cart.cache) < 2\n    assert cart.one == 1\n    assert cart.cache == {1: 1}\n"
        "def test_split():\n    found = kit.split([1, 2])\n    assert list(found['low']) == [1] and len(found['high']) == 0\n"
        "def test_file(tmp_path):\n    place = tmp_path / 'a'\n    for text in ('x', 'y'):\n        place.write_text(f' {text} ')\n        assert place.read_text() == f' {text} '\n"
        "        kit.tidy(place)\n        assert place.read_text() == text and (pathlib.Path(kit.kept()) / __file__).exists()\n",
    ),
    "an order by another method": (
        "import functools\n@functools.total_ordering\nclass V:\n    def __init__(self, t): self.p = [int(n) for n in t.split('.')]\n"
        "    def __eq__(self, o): return self.p == o.p\n    def __lt__(self, o): return self.p < o.p\n",
        "class V:\n    def __init__(self, t): self.p = tuple(map(int, t.split('.')))\n"
        "    def __eq__(self, o): return self.p == o.p\n    def __lt__(self, o): return self.p < o.p\n"
        "    def __gt__(self, o): return self.p > o.p\n    def __le__(self, o): return not self > o\n",
        "from kit import V\ndef test_less(): assert V('1.2') < V('1.10') and not V('1.10') < V('1.2')\n"
        "def test_sorted(): assert sorted([V('1.10'), V('1.2')]) == [V('1.2'), V('1.10')]\n"
        "def test_most(): assert max(V('1.2'), V('2.0')) == V('2.0') and V('1.2') <= V('1.2')\n",
    ),
    "operators of which Python asks for another": (
        "class Money:\n    def __init__(self, n): self.n = n\n    def __str__(self): return f'${self.n}'\n    def __int__(self): return self.n\n"
        "    def __add__(self, o): return Money(self.n + o.n)\n    def __iadd__(self, o):\n        self.n += o.n\n        return self\n"
        "    def __lt__(self, o): return self.n < o.n\nclass Bag:\n    def __init__(self, *all): self.all = all\n    def __len__(self): return len(self.all)\n"
        "    def __getitem__(self, at): return self.all[at]\nclass Key:\n    def __init__(self, n): self.n = n\n",
        "import dataclasses, functools\nfrom collections.abc import Sequence\n@functools.total_ordering\nclass Money:\n    def __init__(self, n): self.n = n\n"
        "    def __repr__(self): return f'${self.n}'\n    def __index__(self): return self.n\n    def __add__(self, o): return Money(self.n + o.n)\n"
        "    def __eq__(self, o): return self.n == o.n\n    def __lt__(self, o): return self.n < o.n\nclass Bag(Sequence):\n    def __init__(self, *all): self.all = all\n"
        "    def __len__(self): return len(self.all)\n    def __bool__(self): return self.all != ()\n    def __getitem__(self, at): return self.all[at]\n"
        "@dataclasses.dataclass(frozen=True)\nclass Key:\n    n: int\n",
        "from kit import Bag, Key, Money\ndef test_text(): assert f'{Money(3)}' == str(Money(3)) == '$3'\ndef test_int(): assert int(Money(4)) == 4\n"
        "def test_add():\n    money = Money(1)\n    money += Money(2)\n    assert str(money) == '$3'\n"
        "def test_most(): assert str(max(Money(1), Money(5))) == '$5' and Money(2) > Money(1)\n"
        "def test_bag(): assert Bag(1) and not Bag() and 2 in Bag(1, 2) and list(reversed(Bag(1, 2))) == [2, 1]\n"
        "def test_key():\n    key = Key(1)\n    assert {key: 2}[key] == 2\n",
    ),
    "errors that say more, and of a library's within": (
        "class Wrong(Exception): pass\ndef check(t):\n    if not t: raise Wrong('nothing')\n    return t\n",
        "import json\nclass Wrong(Exception):\n    def __init__(self, said, details=()):\n        super().__init__(said)\n        self.said, self.details = said, [*details]\n"
        "def check(t):\n    try: json.loads(t)\n    except json.JSONDecodeError as error:\n        if not t: raise Wrong('nothing') from error\n    return t\n",
        "import kit, pytest\ndef test_wrong():\n    with pytest.raises(kit.Wrong, match='nothing'): kit.check('')\n    assert kit.check('a') == 'a'\n",
    ),
    "an error of several kinds, and one that is derived from another": (
        "class Bad(Exception): pass\nclass Lex(Bad): pass\ndef parse(t):\n    if t == '?': raise Lex(t)\n    raise Bad(t)\n"
        "class Bag(dict):\n    def __getattr__(self, name): raise AttributeError(name)\ndef bag(): return Bag(a=1)\n",
        "class Bad(ValueError): pass\nclass Lex(Bad, KeyError): pass\ndef parse(t): raise (Lex if t == '?' else Bad)(t)\n"
        "class Gone(KeyError, AttributeError): pass\nclass Bag(dict):\n    def __missing__(self, name): raise Gone(name)\n"
        "    def __getattr__(self, name): return self[name]\ndef bag(): return Bag(a=1)\n",
        "import kit, pytest\ndef test_parse():\n    with pytest.raises(kit.Bad): kit.parse('a')\n    with pytest.raises(kit.Lex): kit.parse('?')\n"
        "def test_bag():\n    with pytest.raises(KeyError): kit.bag()['b']\n    with pytest.raises(AttributeError): kit.bag().b\n",
    ),
    "built-in errors by names of its own, also by two where the reference has one by both": (
        "class Bad(ValueError): pass\nclass Gone(Exception): pass\nMissing = Absent = KeyError\nWrong = TypeError\nclass Lex(Exception): pass\nclass Open(Lex): pass\n"
        "ERRORS = (Gone, Wrong)\ndef check(t):\n    if not t: raise Bad(t)\n    raise ValueError(t)\ndef get(k): raise Missing(k) if k else Gone(k)\n"
        "def turn(t): raise Wrong(t)\ndef lex(t): raise Open(t) if t == '(' else Lex(t)\n",
        "class Bad(UnicodeError): pass\nGone = LookupError\nclass Missing(KeyError): pass\nAbsent = Missing\nclass Wrong(TypeError): pass\nLex, Open = OSError, FileNotFoundError\n"
        "class Own(Exception): pass\nERRORS = (Gone, Wrong, Own)\ndef check(t): raise ValueError(t) if t else Bad(t)\ndef get(k): raise Missing(k) if k else Gone(k)\n"
        "def turn(t): raise Wrong(t)\ndef lex(t): raise Open(t) if t == '(' else Lex(t)\n",
        "import kit, pytest\nfrom kit import *\nfrom kit import Absent\ndef test_bad():\n    with pytest.raises(kit.Bad): kit.check('')\n"
        "def test_value():\n    with pytest.raises(ValueError): kit.check('a')\n"
        "def test_missing():\n    with pytest.raises(kit.Missing): kit.get('a')\n    with pytest.raises(Absent): kit.get('a')\n    with pytest.raises(KeyError): kit.get('a')\n"
        "def test_gone():\n    with pytest.raises(kit.Gone): kit.get('')\n    with pytest.raises(kit.ERRORS): kit.get('')\n"
        "def test_turn():\n    with pytest.raises(kit.Wrong): kit.turn('')\n    with pytest.raises(TypeError): kit.turn('')\n"
        "def test_lex():\n    with pytest.raises(kit.Open): kit.lex('(')\n    with pytest.raises(kit.Lex): kit.lex('(')\n    with pytest.raises(kit.Lex): kit.lex('')\n",
    ),
    "a built-in error by two names, where the reference has its own by both": (
        "class Missing(KeyError): pass\nAbsent = Missing\nclass Bad(Exception): pass\ndef get(k): raise Missing(k)\ndef check(t):\n    if not t: raise ValueError(t)\n    raise Bad(t)\n",
        "Missing = Absent = KeyError\nclass Bad(ValueError): pass\ndef get(k): raise KeyError(k)\ndef check(t): raise Bad(t) if t else ValueError(t)\n",
        "import kit, pytest\nfrom kit import Absent, Missing\ndef test_one():\n    with pytest.raises(Missing): kit.get('a')\n    with pytest.raises(Absent): kit.get('a')\n"
        "def test_same(): assert Missing is Absent and issubclass(Missing, KeyError)\n"
        "def test_bad():\n    with pytest.raises(kit.Bad): kit.check('a')\n"
        "def test_value():\n    with pytest.raises(ValueError): kit.check('')\n",
    ),
    "members of an enumeration that have two names, and values of their own": (
        "from enum import Enum\nclass Color(Enum):\n    RED = 1\n    CRIMSON = 1\n    BLUE = 2\ndef parse(t): return Color[t.upper()]\nFIRST = Color.RED\n",
        "from enum import Enum\nclass Color(str, Enum):\n    BLUE = 'b'\n    CRIMSON = 'r'\n    RED = 'r'\nFIRST = Color.CRIMSON\n"
        "def parse(t): return Color.__members__[t.upper()]\n",
        "import kit\nfrom kit import Color\ndef test_red(): assert kit.parse('red') == Color.RED == Color.CRIMSON and kit.FIRST is Color.RED\n"
        "def test_blue(): assert kit.parse('blue') is Color['BLUE'] and kit.parse('blue') is not Color.CRIMSON\n",
    ),
    "an attribute with the name of a method of all texts": (
        "class Name(str):\n    def __new__(cls, text, title='Dr'):\n        self = str.__new__(cls, text)\n        self.title = title\n        return self\ndef name(t): return Name(t)\n",
        "class Name(str):\n    def __new__(cls, text, title='Dr', **more):\n        self = super().__new__(cls, text)\n        self.__dict__.update(more, title=title)\n        if text: self.index = 5\n"
        "        return self\ndef name(t): return Name(t)\n",
        "from kit import Name, name\ndef test_title(): assert name('a').title == 'Dr' and name('a').upper() == 'A'\n"
        "def test_made(): assert Name('b', title='Mx').title == 'Mx' and Name('b') == 'b'\n"
        "def test_empty(): assert name('a').title == 'Dr' and name('').index('') == 0\n",
    ),
    "objects of its own that a test passes on": (
        "def pairs(t): return [tuple(one.split('=')) for one in t.split()]\ndef text(of): return ' '.join(f'{k}={v}' for k, v in of)\n"
        "def board(): return [0, 0, 0]\ndef play(b, at): b[at] += 1\ndef score(b): return sum(b)\n",
        "from typing import NamedTuple\nclass Pair(NamedTuple):\n    index: str\n    count: str\n    def text(self): return f'{self.index}={self.count}'\n"
        "class Board(list):\n    def play(self, at): self[at] += 1\n    def score(self): return sum(self)\n"
        "def pairs(t): return [Pair(*one.split('=')) for one in t.split()]\ndef text(of): return ' '.join(one.text() for one in of)\n"
        "def board(): return Board([0, 0, 0])\ndef play(b, at): b.play(at)\ndef score(b): return b.score()\n",
        "import kit\ndef test_text(): assert kit.text(kit.pairs('a=1 b=2')) == 'a=1 b=2' and kit.pairs('a=1') == [('a', '1')]\n"
        "def test_play():\n    b = kit.board()\n    kit.play(b, 1)\n    assert b == [0, 1, 0]\n    b[2] = 5\n    assert kit.score(b) == 6\n",
    ),
    "objects of Python's library that a test hands over": (
        "def pick(of, rng): return of[int(rng.random() * len(of))]\ndef find(p, t): return [m.group() for m in p.finditer(t)]\n"
        "def rows(db): return list(db.execute('select 1'))\ndef wait(event): return event.wait(5)\n",
        "def pick(of, rng): return rng.choice(of)\ndef find(p, t): return p.findall(t)\n"
        "def rows(db): return db.cursor().execute('select 1').fetchall()\ndef wait(event): return event.is_set()\n",
        "import random, re, sqlite3, threading, kit\ndef test_pick(): assert {kit.pick('ab', random.Random(n)) for n in range(20)} == {'a', 'b'}\n"
        "def test_find(): assert kit.find(re.compile('b+'), 'abbab') == ['bb', 'b']\n"
        "def test_rows(): assert kit.rows(sqlite3.connect(':memory:', check_same_thread=False)) == [(1,)]\n"
        "def test_wait():\n    event = threading.Event()\n    event.set()\n    assert kit.wait(event)\n",
    ),
    "marks on what a test hands over": (
        "def names(node):\n    seen, left = [], [node]\n    while left:\n        one = left.pop()\n"
        "        if one not in seen: seen.append(one); left += one.next\n    return [one.name for one in seen]\n",
        "def names(node, found=()):\n    if getattr(node, '_seen', False): return []\n    node._seen = node.marked = True\n"
        "    return [node.name, *(name for one in reversed(node.next) for name in names(one))]\n",
        "import kit\nclass Node:\n    def __init__(self, name, *nodes): self.name, self.next = name, [*nodes]\n"
        "def test_names():\n    last = Node('c')\n    assert kit.names(Node('a', last, Node('b', last))) == ['a', 'b', 'c']\n",
    ),
    "fields that are called as a method of all tuples": (
        "class Word:\n    def __init__(self, text, count): self.text, self.count = text, count\ndef word(t): return Word(t, len(t))\n",
        "from collections import namedtuple\nWord = namedtuple('Word', 'text count')\ndef word(t): return Word(t, len(t))\n",
        "from kit import Word, word\ndef test_count(): assert word('abc').count == 3 and Word('a', 4).count == 4\n",
    ),
    "containers by their protocols alone": (
        "def primes(n): return [2, 3, 5, 7][:n]\ndef heads(): return {'a': 1}\ndef vowels(t): return {*t} & {*'ae'}\ndef lines(t): return t.split()\n"
        "def count(of): return len([*of])\n",
        "from collections.abc import Mapping, Set\nclass Primes:\n    def __init__(self, n): self.n = n\n    def __len__(self): return self.n\n"
        "    def __getitem__(self, at): return [2, 3, 5, 7][:self.n][at]\nclass Heads(Mapping):\n    def __len__(self): return 1\n    def __iter__(self): return iter('a')\n"
        "    def __getitem__(self, key): return {'a': 1}[key]\nclass Vowels(Set):\n    def __init__(self, t): self.t = [c for c in 'ae' if c in t]\n"
        "    def __len__(self): return len(self.t)\n    def __iter__(self): return iter(self.t)\n    def __contains__(self, c): return c in self.t\n"
        "class Lines:\n    def __init__(self, t): self.t = t\n    def __iter__(self): yield from self.t.split()\n"
        "primes, heads, vowels, lines = Primes, Heads, Vowels, Lines\ndef count(of): return sum(1 for _ in of.t.split())\n",
        "import kit\ndef test_primes(): assert [*kit.primes(3)] == [2, 3, 5] and kit.primes(4)[-1] == 7 and 3 in kit.primes(2) and len(kit.primes(1)) == 1\n"
        "def test_heads(): assert kit.heads() == {'a': 1} and kit.heads().get('b') is None\n"
        "def test_vowels(): assert kit.vowels('bane') == {'a', 'e'} and kit.vowels('ab') | {'x'} == {'a', 'x'}\n"
        "def test_lines():\n    found = kit.lines('a b')\n    assert [*found] == ['a', 'b'] == sorted(found) and kit.count(found) == 2\n",
    ),
    "what is in it before and after a change": (
        "class Words:\n    def __init__(self, all): self.all = [*all]\n    def add(self, one): self.all.append(one)\n"
        "    def __contains__(self, one): return one in self.all\n",
        "class Words:\n    def __init__(self, all): self.all = dict.fromkeys(all)\n    def add(self, one): self.all[one] = True\n"
        "    def __contains__(self, one): return one in self.all\n",
        "from kit import Words\ndef test_in():\n    words = Words(['ab', 'cd'])\n    assert 'ab' in words and 'ef' not in words\n"
        "    words.add('ef')\n    assert 'ef' in words and 'cd' in words\n",
    ),
    "members of an enumeration, in any order of the tests": (
        "from enum import Flag\nclass Perm(Flag):\n    R = 4\n    W = 2\ndef parse(t):\n    found = Perm(0)\n    for c in t: found |= Perm[c]\n    return found\n",
        "from enum import IntFlag\nclass Perm(IntFlag):\n    W = 2\n    R = 4\ndef parse(t): return Perm[t[0]] | parse(t[1:]) if t else Perm(0)\n",
        "from kit import Perm, parse\ndef test_all(): assert parse('RW') == Perm.R | Perm.W and parse('') == Perm(0)\n"
        "def test_truth(): assert not Perm(0) and parse('R')\ndef test_more(): assert parse('RW') & ~Perm.R == Perm.W\n",
    ),
    "what is awaited, and what is logged": (
        "import logging\nasync def ticks(n):\n    for i in range(n): yield i\nasync def total(of): return sum([x async for x in of])\n"
        "log = logging.getLogger('kit')\nlog.setLevel('INFO')\ndef work(n):\n    if n < 0: log.info('less: %s', n)\n",
        "import asyncio, logging\nclass ticks:\n    def __init__(self, n): self.left = iter(range(n))\n    def __aiter__(self): return self\n"
        "    async def __anext__(self):\n        for one in self.left: return one\n        raise StopAsyncIteration\n"
        "async def total(of):\n    found = 0\n    async for one in of: found += one\n    return found\n"
        "log = logging.getLogger('kit')\nlog.setLevel(20)\ndef work(n):\n    try: range(n)[n]\n"
        "    except IndexError: log.info('less: %s', n, exc_info=True, extra={'user': 'a'})\n",
        "import asyncio, kit\nasync def mine():\n    yield 1\n    yield 2\ndef test_total(): assert asyncio.run(kit.total(mine())) == 3\n"
        "def test_ticks():\n    async def main(): return [one async for one in kit.ticks(3)]\n    assert asyncio.run(main()) == [0, 1, 2]\n"
        "def test_log(caplog):\n    kit.work(-1)\n    assert caplog.messages == ['less: -1'] and caplog.records[0].funcName == 'work'\n",
    ),
}


def test_right_work_wins_in_another_style_than_the_references() -> None:
    hidden: dict[str, str] = {}
    trees: dict[str, dict[str, str]] = {"reference": {}, "other": {}}
    for number, (reference, other, tests) in enumerate(TWINS.values()):
        name = f"kit_{number}"
        hidden[f"test_{number}.py"] = re.sub(r"\bkit\b", name, tests)
        trees["reference"][f"{name}.py"], trees["other"][f"{name}.py"] = reference, other
    found = outcomes(grade(trees["other"], hidden, reference=trees["reference"]))
    assert len(found) == sum(tests.count("def test_") for *_, tests in TWINS.values())
    assert {name: said for name, said in found.items() if said[0] != "passed"} == {}


@pytest.mark.sandbox
def test_a_test_removes_those_files_of_its_author_that_it_removes_for_the_reference() -> None:
    hidden = {
        "test_a.py": "import pathlib, kit\nHERE = pathlib.Path(__file__).parent\n"
        "def test_stale():\n    for name in kit.stale(['old.txt', 'new.txt']): (HERE / name).unlink()\n",
        "old.txt": "",
        "new.txt": "",
    }
    right = {"kit.py": "def stale(names): return [one for one in names if one == 'old.txt']\n"}
    wrong = {"kit.py": "def stale(names): return ['new.txt']\n"}
    assert outcomes(grade(right, hidden)) == {"test_a.py::test_stale": ("passed", "")}
    (found,) = outcomes(grade(wrong, hidden, reference=right)).values()
    assert found[0] == "failed"
    assert "the author's file new.txt" in found[1]


def test_why_the_boundary_failed_a_test_is_said_once_and_in_words() -> None:
    score = grade(
        {"kit.py": "class Moment:\n    pass\n\n\ndef parse():\n    return Moment()\n"},
        {"test_kit.py": "from kit import parse\n\n\ndef test_parse():\n    assert parse() == 5\n"},
        reference={"kit.py": "def parse():\n    return 5\n"},
    )
    assert outcomes(score)["test_kit.py::test_parse"] == (
        "failed",
        "UndecidedError: kit.parse() is a value in the reference, and here an object of kit.Moment: "
        "[object:kit.parse()]",
    )
