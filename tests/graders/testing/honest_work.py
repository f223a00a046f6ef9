"""Honest work: what hidden tests and a submission may do, whichever process each of them is in.

A theme is a module of the submission and a hidden test module that imports it as ``kit``. All
themes of a group are graded in one run. Every test must pass, but for those named ``test_..._fails``.
"""

# ruff: noqa: E501 - programs are shown as they are

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["GROUPS", "files_of", "unexpected"]

THEMES: dict[str, tuple[str, str]] = {}

THEMES["values"] = (
    """
import collections

def same(value): return value
def wrap(value): return {"inner": [value, (value,)]}
def made(): return collections.OrderedDict(a=1), collections.Counter("aab"), collections.deque([1], 3)
def groups():
    found = collections.defaultdict(list)
    found["a"].append(1)
    return found
def deep(n):
    found = []
    for _ in range(n): found = [found]
    return found
def view(): return memoryview(b"abc")
def sort(items): items.sort()
def keys(): return {"b": 1, "a": 2}.keys()
def lazy(): return map(str, [1, 2])
""",
    """
import collections, datetime, decimal, fractions, math, pathlib, uuid
import pytest
import kit

VALUES = [
    None, True, False, 0, -1, 2**70, 1.5, "text", "\\x00\\u2028\\U0001f600", b"\\x00\\xff",
    bytearray(b"ab"), 3 + 4j, (), (1,), [], [1, [2, [3]]], {}, {"a": {"b": [1]}}, {1: 2, (1, 2): 3},
    set(), {1, 2}, frozenset("ab"), range(3), range(1, 9, 2), slice(1, None, 2), ..., NotImplemented,
    decimal.Decimal("1.10"), fractions.Fraction(1, 3), datetime.date(2024, 2, 29),
    datetime.datetime(2024, 1, 2, 3, 4, 5, 6), datetime.time(1, 2, 3), datetime.timedelta(1, 2, 3),
    datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc), datetime.timezone.utc,
    uuid.UUID(int=5), pathlib.Path("a/b"), collections.deque([1, 2]), collections.Counter("aab"),
    collections.OrderedDict(b=1, a=2), [None, True, 1.0], [int, dict, ValueError],
    "\\ud800", 7 ** 9000, -(2 ** 40000), slice("a", None, "b"),
]

@pytest.mark.parametrize("value", VALUES, ids=[str(n) for n in range(len(VALUES))])
def test_same(value):
    found = kit.same(value)
    assert type(found) is type(value)
    assert found == value
    assert kit.wrap(value) == {"inner": [value, (value,)]}

def test_what_equality_does_not_tell():
    assert math.isnan(kit.same(math.nan)) and math.copysign(1, kit.same(-0.0)) == -1
    zone = datetime.timezone(datetime.timedelta(hours=2))
    when = kit.same(datetime.datetime(2024, 1, 1, fold=1, tzinfo=zone))
    assert when.fold == 1 and when.utcoffset() == datetime.timedelta(hours=2)
def test_wrong_value_fails(): assert kit.same(1) == 2
def test_collections():
    ordered, counter, queue = kit.made()
    assert ordered == {"a": 1} and counter["a"] == 2 and list(queue) == [1]
    assert counter.most_common(1) == [("a", 2)]
def test_defaultdict(): assert kit.groups() == {"a": [1]} and kit.groups()["a"] == [1]
def test_deep():
    found = kit.deep(40)
    for _ in range(40): (found,) = found
    assert found == []
def test_view(): assert kit.view() == b"abc"
def test_keys(): assert list(kit.keys()) == ["b", "a"] and sorted(kit.keys()) == ["a", "b"]
def test_lazy(): assert list(kit.lazy()) == ["1", "2"]
""",
)

THEMES["numpy"] = (
    """
import numpy as np
def double(a): return a * 2
def shape(a): return a.shape
def make(): return np.arange(6, dtype="float32").reshape(2, 3)
def total(a): return a.sum()
def names(): return np.array(["a", "bc"])
""",
    """
np = __import__("pytest").importorskip("numpy")
import kit
def test_double(): np.testing.assert_array_equal(kit.double(np.array([1, 2])), [2, 4])
def test_double_fails(): np.testing.assert_array_equal(kit.double(np.array([1, 2])), [2, 5])
def test_dtype(): assert kit.make().dtype == np.float32 and kit.make().shape == (2, 3)
def test_all(): assert (kit.make() == np.arange(6).reshape(2, 3)).all()
def test_total(): assert kit.total(np.ones(3)) == 3 and float(kit.total(np.ones(3))) == 3.0
def test_names(): assert list(kit.names()) == ["a", "bc"]
def test_empty(): assert kit.shape(np.array([])) == (0,) and len(kit.double(np.array([]))) == 0
def test_shape(): assert kit.shape(np.zeros((2, 0, 3))) == (2, 0, 3)
""",
)

THEMES["records"] = (
    """
import dataclasses, enum, typing, collections
@dataclasses.dataclass
class Point:
    x: int
    y: int = 0
    def length(self): return abs(self.x) + abs(self.y)
    def moved(self, by): return dataclasses.replace(self, x=self.x + by)
@dataclasses.dataclass(frozen=True, order=True)
class Version:
    major: int
    minor: int = 0
@dataclasses.dataclass
class Tree:
    value: int
    children: list = dataclasses.field(default_factory=list)
class Pair(typing.NamedTuple):
    left: int
    right: str = "r"
Old = collections.namedtuple("Old", "a b")
class Color(enum.Enum):
    RED = 1
    BLUE = "b"
class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5
class Flag(enum.Flag):
    A = 1
    B = 2
def points(): return [Point(1, 2), Point(3)]
def pair(): return Pair(1)
def color(name): return Color[name]
def level(): return Level.HIGH
def tree(): return Tree(1, [Tree(2), Tree(3)])
def lookup(): return {Color.RED: Pair(1, "x"), Version(1): Point(1)}
def is_red(c): return c is Color.RED
def is_point(p): return isinstance(p, Point) and p.x
""",
    """
import dataclasses
import pytest
import kit
from kit import Color, Flag, Level, Old, Pair, Point, Tree, Version
def test_equal(): assert Point(1, 2) == Point(1, 2) and kit.points() == [Point(1, 2), Point(3, 0)]
def test_unequal(): assert Point(1, 2) != Point(1, 3) and Point(1) != 1
def test_equal_fails(): assert Point(1, 2) == Point(1, 3)
def test_fields(): assert Point(1).x == 1 and Point(y=4, x=3).length() == 7
def test_method(): assert Point(1).moved(4) == Point(5)
def test_change():
    point = Point(1)
    point.x = 9
    assert point.x == 9 and point == Point(9) and point.length() == 9
def test_replace(): assert dataclasses.replace(Point(1, 2), y=5) == Point(1, 5)
def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError): Version(1).major = 2
def test_less(): assert Version(1) < Version(2) and max(Version(1), Version(3)).major == 3
def test_hash(): assert len({Version(1), Version(1), Version(2)}) == 2
def test_tree(): assert kit.tree() == Tree(1, [Tree(2), Tree(3)])
def test_namedtuple():
    pair = kit.pair()
    assert pair == (1, "r") and pair.left == 1 and isinstance(pair, tuple)
    left, right = pair
    assert (left, right) == (1, "r") and pair == Pair(1) and pair._asdict() == {"left": 1, "right": "r"}
def test_old(): assert Old(1, b=2) == (1, 2) and Old._fields == ("a", "b") and Old(1, 2)._replace(a=3) == (3, 2)
def test_enum(): assert kit.color("RED") is Color.RED and kit.color("BLUE") == Color.BLUE and Color.RED != Color.BLUE
def test_enum_value(): assert Color.RED.value == 1 and Color("b") is Color.BLUE and Color.RED.name == "RED"
def test_enum_all(): assert [c.name for c in Color] == ["RED", "BLUE"] and len(Color) == 2 and Color["RED"] is Color.RED
def test_enum_bad():
    with pytest.raises(ValueError): Color("zzz")
    with pytest.raises(KeyError): Color["zzz"]
def test_enum_repr(): assert repr(Color.RED) == "<Color.RED: 1>" and str(Color.RED) == "Color.RED"
def test_enum_in(): assert Color.RED in Color and kit.color("RED") in (Color.RED, Color.BLUE)
def test_intenum(): assert kit.level() == 5 and kit.level() > Level.LOW and Level.HIGH == Level(5)
def test_flag(): assert (Flag.A | Flag.B).value == 3 and (Flag.A & Flag.B).value == 0
def test_lookup(): assert kit.lookup()[Color.RED] == (1, "x")
def test_passed(): assert kit.is_red(Color.RED) and kit.is_point(Point(4)) == 4
def test_isinstance(): assert isinstance(Point(1), Point) and not isinstance(1, Point) and type(Point(1)) is Point
def test_repr(): assert repr(Point(1, 2)) == "Point(x=1, y=2)"
def test_bad():
    with pytest.raises(TypeError): Point()
@pytest.mark.parametrize("color, value", [(Color.RED, 1), (Color.BLUE, "b")])
def test_parametrized(color, value): assert color.value == value
@pytest.mark.parametrize("point", [Point(1), Point(2)], ids=str)
def test_parametrized_records(point): assert point.y == 0
""",
)

THEMES["attrs"] = (
    """
import attr
@attr.s(auto_attribs=True)
class Thing:
    name: str
    size: int = attr.ib(default=1, eq=False)
@attr.define
class New:
    a: int
    b: list = attr.field(factory=list)
""",
    """
attr = __import__("pytest").importorskip("attr")
from kit import New, Thing
def test_equal(): assert Thing("a", 1) == Thing("a", 1) and Thing("a") != Thing("b")
def test_equal_fails(): assert Thing("a") == Thing("b")
def test_define(): assert New(1, [2]) == New(1, [2]) and New(1).b == []
""",
)

THEMES["errors"] = (
    """
import json
class KitError(Exception):
    def __init__(self, message, code=3):
        super().__init__(message)
        self.code = code
    def describe(self): return f"{self.code}: {self.args[0]}"
class Missing(KitError, KeyError): pass
class Quiet(Exception):
    def __str__(self): return "quiet please"
def builtin(): raise ValueError("bad 7")
def own(): raise KitError("own", code=5)
def missing(): raise Missing("key")
def quiet(): raise Quiet()
def group(): raise ExceptionGroup("several", [ValueError("a"), KitError("b")])
def leave(): raise SystemExit(3)
def decode(): return json.loads("{")
def index(): return [][1]
def attribute(): return None.nothing
def key(): return {}["k"]
def zero(): return 1 / 0
def os_error(): open("/nowhere/at/all")
def unicode(): return b"\\xff".decode()
def stop(): raise StopIteration(4)
def interrupt(): raise KeyboardInterrupt
def asserts(): assert 1 == 2, "inside"
def not_implemented(): raise NotImplementedError
def recursion(): return recursion()
def returns(): return KitError("value", 8)
def notes():
    error = ValueError("n")
    error.add_note("noted")
    raise error
def call(function):
    try: return function()
    except ValueError as error: return "caught " + str(error)
    except LookupError: return "lookup"
def call_all(function): return function()
def swallow(function):
    try: function()
    except BaseException: pass
def wrap(function):
    try: function()
    except Exception as error: raise KitError("wrapped") from error
""",
    """
import json
import pytest
import kit
def test_builtin():
    with pytest.raises(ValueError, match=r"bad \\d") as info: kit.builtin()
    assert info.value.args == ("bad 7",) and type(info.value) is ValueError
def test_own():
    with pytest.raises(kit.KitError, match="own") as info: kit.own()
    assert info.value.code == 5 and str(info.value) == "own" and info.value.describe() == "5: own"
    assert isinstance(info.value, Exception) and info.type is kit.KitError
def test_own_fails():
    with pytest.raises(kit.Missing): kit.own()
def test_bases():
    with pytest.raises(KeyError): kit.missing()
    with pytest.raises(kit.KitError): kit.missing()
    assert issubclass(kit.Missing, KeyError) and issubclass(kit.Missing, kit.KitError)
def test_text():
    with pytest.raises(kit.Quiet) as info: kit.quiet()
    assert str(info.value) == "quiet please"
def test_group():
    with pytest.raises(ExceptionGroup) as info: kit.group()
    assert [str(one) for one in info.value.exceptions] == ["a", "b"]
    assert isinstance(info.value.exceptions[1], kit.KitError)
def test_exit():
    with pytest.raises(SystemExit) as info: kit.leave()
    assert info.value.code == 3
def test_exit_fails(): kit.leave()
def test_after_exit(): assert kit.call_all(lambda: 1) == 1
def test_json():
    with pytest.raises(json.JSONDecodeError) as info: kit.decode()
    assert info.value.pos == 1
@pytest.mark.parametrize("name, kind", [
    ("index", IndexError), ("attribute", AttributeError), ("key", KeyError), ("zero", ZeroDivisionError),
    ("os_error", FileNotFoundError), ("unicode", UnicodeDecodeError), ("stop", StopIteration),
    ("interrupt", KeyboardInterrupt), ("asserts", AssertionError), ("not_implemented", NotImplementedError),
    ("recursion", RecursionError),
])
def test_kinds(name, kind):
    with pytest.raises(kind): getattr(kit, name)()
def test_returned():
    error = kit.returns()
    assert isinstance(error, kit.KitError) and error.code == 8
def test_made():
    error = kit.KitError("m", code=9)
    assert error.code == 9 and isinstance(error, kit.KitError)
    with pytest.raises(kit.KitError): raise error
def test_notes():
    with pytest.raises(ValueError) as info: kit.notes()
    assert info.value.__notes__ == ["noted"]
def test_callback_raises_own_kind():
    class Mine(LookupError): pass
    def bad(): raise Mine
    assert kit.call(bad) == "lookup"
def test_callback_error_comes_back():
    class Mine(Exception): pass
    error = Mine("x")
    def bad(): raise error
    with pytest.raises(Mine) as info: kit.call_all(bad)
    assert info.value is error
def test_callback_raises_submissions():
    def bad(): raise kit.KitError("theirs")
    with pytest.raises(kit.KitError, match="theirs"): kit.call_all(bad)
def test_callback_wrapped():
    def bad(): raise ValueError("deep")
    with pytest.raises(kit.KitError) as info: kit.wrap(bad)
    assert str(info.value.__cause__) == "deep"
def test_callback_assertion_fails():
    def bad(): assert 1 == 2
    kit.swallow(bad)
def test_pytest_fail_fails(): kit.call_all(lambda: pytest.fail("no"))
""",
)

THEMES["calls"] = (
    """
import functools, threading
def apply(function, *args, **named): return function(*args, **named)
def compose(*functions): return lambda x: functools.reduce(lambda y, f: f(y), functions, x)
def sort(items, key): return sorted(items, key=key)
def traced(function):
    @functools.wraps(function)
    def inner(*args, **named):
        inner.calls += 1
        return function(*args, **named)
    inner.calls = 0
    return inner
def memo(function): return functools.lru_cache(maxsize=None)(function)
class Bus:
    def __init__(self): self.listeners = []
    def on(self, listener): self.listeners.append(listener); return listener
    def emit(self, *args): return [one(*args) for one in self.listeners]
    def off(self, listener): self.listeners.remove(listener)
def read(file): return file.read()
def set_attribute(thing): thing.size = 9
def in_thread(function):
    out = []
    thread = threading.Thread(target=lambda: out.append(function()))
    thread.start(); thread.join()
    return out
def identity(value): return value
class Plain:
    def __init__(self, value): self.value = value
    def double(self): return self.value * 2
    @property
    def half(self): return self.value / 2
    @classmethod
    def make(cls, value): return cls(value)
    @staticmethod
    def helper(value): return value + 1
    def __call__(self, by): return self.value + by
    def __len__(self): return self.value
    def __getitem__(self, key): return (self.value, key)
    def __iter__(self): return iter(range(self.value))
    def __contains__(self, item): return item == self.value
    def __add__(self, other): return Plain(self.value + other.value)
    def __int__(self): return self.value
    def __str__(self): return f"<{self.value}>"
    def __neg__(self): return Plain(-self.value)
""",
    """
import io
import pytest
from unittest import mock
import kit
from kit import Plain
def test_apply(): assert kit.apply(lambda a, b=2: a + b, 1) == 3 and kit.apply(max, 1, 5) == 5
def test_named_call(): assert kit.apply(lambda _call=1, _default=2: (_call, _default), _default=3) == (1, 3)
def test_compose(): assert kit.compose(lambda x: x + 1, str)(4) == "5"
def test_sort(): assert kit.sort(["bb", "a"], key=len) == ["a", "bb"]
def test_decorator():
    @kit.traced
    def add(a, b=1):
        "Adds."
        return a + b
    assert add(1) == 2 and add(1, b=5) == 6 and add.calls == 2
    assert add.__name__ == "add" and add.__doc__ == "Adds."
def test_memo():
    seen = []
    @kit.memo
    def slow(n): seen.append(n); return n
    assert slow(1) == slow(1) == 1 and seen == [1]
    assert slow.cache_info().hits == 1
    slow.cache_clear()
def test_bus():
    bus = kit.Bus()
    seen = []
    @bus.on
    def first(x): seen.append(x); return x * 2
    assert bus.emit(4) == [8] and seen == [4]
    bus.off(first)
    assert bus.emit(1) == []
def test_mock():
    fake = mock.Mock(return_value=5)
    assert kit.apply(fake, 1, a=2) == 5
    fake.assert_called_once_with(1, a=2)
def test_mock_fails():
    fake = mock.Mock(return_value=5)
    kit.apply(fake, 1)
    fake.assert_called_once_with(2)
def test_file(): assert kit.read(io.StringIO("text")) == "text"
def test_object_set():
    class Thing: size = 3
    thing = Thing()
    kit.set_attribute(thing)
    assert thing.size == 9
def test_object_back():
    thing = object()
    assert kit.identity(thing) is thing
def test_function_back():
    def function(): pass
    assert kit.identity(function) is function and kit.identity([function])[0] is function
def test_thread(): assert kit.in_thread(lambda: 5) == [5]
def test_thread_fails():
    def bad(): assert False
    kit.in_thread(bad)
def test_methods(): assert Plain(3).double() == 6 and Plain(3).half == 1.5 and Plain.make(2).value == 2 and Plain.helper(1) == 2
def test_operators():
    plain = Plain(3)
    assert plain(4) == 7 and len(plain) == 3 and plain["k"] == (3, "k") and list(plain) == [0, 1, 2]
    assert (Plain(1) + Plain(2)).value == 3 and int(plain) == 3 and str(plain) == "<3>" and (-plain).value == -3
    assert f"{plain}" == "<3>" and plain
def test_set_to_a_word_of_ours():
    plain = Plain(1)
    plain.value = "on loop"
    assert plain.value == "on loop"
def test_slice(): assert Plain(1)[1:2] == (1, slice(1, 2))
def test_hasattr(): assert hasattr(Plain(1), "value") and not hasattr(Plain(1), "nothing") and hasattr(kit, "apply")
def test_getattr(): assert getattr(kit, "nothing", 5) == 5
def test_callable(): assert callable(kit.apply) and callable(Plain) and callable(Plain(1))
def test_signature():
    import inspect
    assert list(inspect.signature(kit.apply).parameters) == ["function", "args", "named"]
def test_name(): assert kit.apply.__name__ == "apply" and Plain.__name__ == "Plain" and kit.__name__ == "kit"
def test_subclass():
    class Mine(Plain):
        def double(self): return super().double() + 1
        def extra(self): return self.value
    assert Mine(2).double() == 5 and Mine(2).extra() == 2 and isinstance(Mine(1), Plain) and issubclass(Mine, Plain)
def test_subclass_init():
    class Mine(Plain):
        def __init__(self, a, b):
            super().__init__(a + b)
            self.b = b
    assert Mine(1, 2).value == 3 and Mine(1, 2).b == 2 and Mine(1, 2).double() == 6
def test_spec():
    fake = mock.create_autospec(kit.apply, return_value=3)
    assert fake(len, 1) == 3
def test_spec_class():
    fake = mock.Mock(spec=Plain)
    fake.double.return_value = 8
    assert fake.double() == 8
    with pytest.raises(AttributeError): fake.nothing
""",
)

THEMES["lazy"] = (
    """
import contextlib, itertools
def count(n):
    for one in range(n): yield one
def echo():
    got = []
    while True:
        value = yield len(got)
        if value is None: return got
        got.append(value)
def endless(): return itertools.count(3)
def breaks():
    yield 1
    raise ValueError("later")
class Steps:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n == 0: raise StopIteration
        self.n -= 1
        return self.n
log = []
@contextlib.contextmanager
def opened(name):
    log.append(f"+{name}")
    try: yield name.upper()
    finally: log.append(f"-{name}")
@contextlib.contextmanager
def quiet():
    try: yield
    except ValueError: pass
class Suppress:
    def __enter__(self): return self
    def __exit__(self, kind, error, trace):
        self.seen = kind
        return kind is not None and issubclass(kind, ValueError)
def boom(): raise ValueError("own")
def consume(items): return list(items)
def first(items): return next(iter(items))
def cleanup():
    try: yield 1
    finally: log.append("closed")
""",
    """
import itertools
import pytest
import kit
def test_list(): assert list(kit.count(3)) == [0, 1, 2] and sum(kit.count(4)) == 6
def test_next():
    it = kit.count(2)
    assert next(it) == 0 and next(it) == 1 and next(it, None) is None
    with pytest.raises(StopIteration): next(it)
def test_islice(): assert list(itertools.islice(kit.endless(), 3)) == [3, 4, 5]
def test_send():
    it = kit.echo()
    assert next(it) == 0 and it.send("a") == 1
    with pytest.raises(StopIteration) as info: it.send(None)
    assert info.value.value == ["a"]
def test_breaks():
    it = kit.breaks()
    assert next(it) == 1
    with pytest.raises(ValueError, match="later"): next(it)
def test_steps(): assert list(kit.Steps(3)) == [2, 1, 0] and next(kit.Steps(1)) == 0
def test_close():
    kit.log.clear()
    it = kit.cleanup()
    next(it); it.close()
    assert kit.log == ["closed"]
def test_is_generator():
    import types, collections.abc
    assert isinstance(kit.count(1), collections.abc.Iterator)
def test_manager_error():
    kit.log.clear()
    with pytest.raises(KeyError), kit.opened("a") as name:
        assert name == "A"
        raise KeyError("x")
    assert kit.log == ["+a", "-a"]
def test_suppress_own():
    with kit.Suppress() as s: kit.boom()
    assert s.seen is ValueError
    with kit.quiet(): kit.boom()
def test_suppress_assertion_fails():
    with kit.Suppress(): assert 1 == 2
def test_consume():
    def gen():
        yield 1
        yield 2
    assert kit.consume(gen()) == [1, 2] and kit.first(iter([7])) == 7 and kit.first({"k": 1}) == "k"
def test_consume_stops_early():
    seen = []
    def gen():
        for n in range(5): seen.append(n); yield n
    assert kit.first(gen()) == 0 and seen == [0]
""",
)

THEMES["async"] = (
    """
import asyncio
async def add(a, b):
    await asyncio.sleep(0)
    return a + b
async def bad(): raise ValueError("async")
async def count(n):
    for one in range(n):
        await asyncio.sleep(0)
        yield one
class Conn:
    async def __aenter__(self): self.open = True; return self
    async def __aexit__(self, *error): self.open = False
    async def get(self): return 5
async def call(function, *args): return await function(*args)
async def slow(): await asyncio.sleep(0.5)
def run(): return asyncio.run(add(1, 2))
async def limited(jobs, n):
    gate, most, now = asyncio.Semaphore(n), 0, 0
    async def one(job):
        async with gate: return await job()
    return await asyncio.gather(*map(one, jobs))
""",
    """
import asyncio
import pytest
from unittest import mock
import kit
def test_await(): assert asyncio.run(kit.add(1, 2)) == 3
def test_error():
    with pytest.raises(ValueError, match="async"): asyncio.run(kit.bad())
def test_async_for():
    async def main(): return [one async for one in kit.count(3)]
    assert asyncio.run(main()) == [0, 1, 2]
def test_async_with():
    async def main():
        async with kit.Conn() as conn:
            assert conn.open and await conn.get() == 5
        return conn.open
    assert asyncio.run(main()) is False
def test_callback():
    async def mine(x):
        await asyncio.sleep(0)
        return x * 2
    assert asyncio.run(kit.call(mine, 4)) == 8
def test_async_mock():
    fake = mock.AsyncMock(return_value=6)
    assert asyncio.run(kit.call(fake, 1)) == 6
    fake.assert_awaited_once_with(1)
def test_timeout():
    async def main(): await asyncio.wait_for(kit.slow(), 0.05)
    with pytest.raises(asyncio.TimeoutError): asyncio.run(main())
def test_run_there(): assert kit.run() == 3
def test_limited():
    async def main():
        async def job(): return 1
        return await kit.limited([job, job, job], 2)
    assert asyncio.run(main()) == [1, 1, 1]
def test_coroutine_object():
    import inspect
    made = kit.add(1, 2)
    assert inspect.iscoroutine(made)
    assert asyncio.run(made) == 3
""",
)

THEMES["patches"] = (
    """
import os, time
LIMIT = 3
TABLE = {"a": 1}
def now(): return time.time()
def helper(): return "real"
def uses_helper(): return helper()
def limit(): return LIMIT
def table(): return TABLE["a"]
def home(): return os.environ.get("KIT_HOME")
def wait(): time.sleep(99); return "waited"
def get(url):
    import urllib.request
    with urllib.request.urlopen(url) as answer: return answer.read()
def ask(): return input("name? ")
class Client:
    timeout = 5
    def fetch(self): return "real"
    def run(self): return self.fetch() + str(self.timeout)
""",
    """
import os, time
from unittest import mock
import pytest
import kit
def test_time(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 5.0)
    assert kit.now() == 5.0
def test_own(monkeypatch):
    monkeypatch.setattr(kit, "helper", lambda: "fake")
    assert kit.uses_helper() == "fake" and kit.helper() == "fake"
def test_own_is_back(): assert kit.uses_helper() == "real"
def test_constant(monkeypatch):
    monkeypatch.setattr(kit, "LIMIT", 10)
    assert kit.limit() == 10 and kit.LIMIT == 10
def test_through(monkeypatch):
    monkeypatch.setattr("kit.time.time", lambda: 7.0)
    assert kit.now() == 7.0
def test_dict(monkeypatch):
    monkeypatch.setitem(kit.TABLE, "a", 9)
    assert kit.table() == 9
def test_mock_patch():
    with mock.patch("kit.helper", return_value="mocked") as fake:
        assert kit.uses_helper() == "mocked"
    fake.assert_called_once_with()
    assert kit.uses_helper() == "real"
@mock.patch("kit.time.sleep")
def test_mock_sleep(fake):
    assert kit.wait() == "waited"
    fake.assert_called_once_with(99)
def test_mock_object():
    with mock.patch.object(kit.Client, "fetch", return_value="fake"):
        assert kit.Client().run() == "fake5"
    assert kit.Client().run() == "real5"
def test_mock_environ():
    with mock.patch.dict(os.environ, {"KIT_HOME": "/h"}): assert kit.home() == "/h"
    assert kit.home() is None
def test_delenv(monkeypatch):
    monkeypatch.delenv("KIT_HOME", raising=False)
    assert kit.home() is None
def test_class_attribute(monkeypatch):
    monkeypatch.setattr(kit.Client, "timeout", 7)
    assert kit.Client().run() == "real7"
def test_instance_attribute(monkeypatch):
    client = kit.Client()
    monkeypatch.setattr(client, "fetch", lambda: "inst")
    assert client.run() == "inst5"
def test_urlopen():
    fake = mock.MagicMock()
    fake.__enter__.return_value.read.return_value = b"body"
    with mock.patch("urllib.request.urlopen", return_value=fake): assert kit.get("http://x") == b"body"
def test_input(monkeypatch):
    monkeypatch.setattr("builtins.input", lambda prompt="": "Ada")
    assert kit.ask() == "Ada"
def test_delattr(monkeypatch):
    monkeypatch.delattr(kit, "LIMIT")
    with pytest.raises(NameError): kit.limit()
def test_delattr_is_back(): assert kit.limit() == 3
""",
)

THEMES["streams"] = (
    """
import logging, os, sys, warnings, pathlib
log = logging.getLogger("kit.sub")
class KitWarning(UserWarning): pass
def say(text): print(text)
def err(text): print(text, file=sys.stderr)
def raw(text): os.write(1, text.encode())
def ask():
    return sys.stdin.readline()
def info(text): log.info("said %s", text)
def error():
    try: 1 / 0
    except ZeroDivisionError: log.exception("failed")
def warn(text): warnings.warn(text, DeprecationWarning, stacklevel=2); return 1
def warn_own(): warnings.warn("own", KitWarning)
def save(path, text): pathlib.Path(path).write_text(text); return pathlib.Path(path)
def read(path): return pathlib.Path(path).read_text()
def here(): return os.listdir(".")
def relative(text): pathlib.Path("made.txt").write_text(text)
def main(argv=None):
    args = sys.argv[1:] if argv is None else argv
    print("args", *args)
    return len(args)
if __name__ == "__main__":
    sys.exit(main())
""",
    """
import logging, sys, warnings, contextlib, io
import pytest
import kit
def test_order(capsys):
    print("a"); kit.say("b"); print("c")
    assert capsys.readouterr().out == "a\\nb\\nc\\n"
def test_err(capsys):
    kit.err("bad")
    assert capsys.readouterr() == ("", "bad\\n")
def test_capfd(capfd):
    kit.raw("raw"); kit.say("x")
    assert capfd.readouterr().out == "rawx\\n"
def test_redirect():
    with contextlib.redirect_stdout(io.StringIO()) as out: kit.say("r")
    assert out.getvalue() == "r\\n"
def test_caplog(caplog):
    with caplog.at_level(logging.INFO): kit.info("x")
    assert caplog.messages == ["said x"] and caplog.records[0].name == "kit.sub"
    assert caplog.record_tuples == [("kit.sub", logging.INFO, "said x")]
def test_caplog_level(caplog):
    kit.info("y")
    assert "said y" not in caplog.text
def test_caplog_exception(caplog):
    kit.error()
    assert "ZeroDivisionError" in caplog.text and caplog.records[0].levelname == "ERROR"
def test_warns():
    with pytest.warns(DeprecationWarning, match="old"): assert kit.warn("old") == 1
def test_warns_own():
    with pytest.warns(kit.KitWarning): kit.warn_own()
def test_warns_fails():
    with pytest.warns(DeprecationWarning): kit.say("nothing")
def test_catch():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        kit.warn("c"); kit.warn("c")
    assert [str(one.message) for one in seen] == ["c", "c"]
@pytest.mark.filterwarnings("error")
def test_error():
    with pytest.raises(DeprecationWarning): kit.warn("e")
def test_tmp_path(tmp_path):
    place = kit.save(tmp_path / "a.txt", "content")
    assert (tmp_path / "a.txt").read_text() == "content" and place == tmp_path / "a.txt"
    (tmp_path / "b.txt").write_text("mine")
    assert kit.read(tmp_path / "b.txt") == "mine" and kit.read(str(tmp_path / "b.txt")) == "mine"
def test_chdir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").touch()
    assert kit.here() == ["x"]
    kit.relative("rel")
    assert (tmp_path / "made.txt").read_text() == "rel"
def test_main(capsys):
    assert kit.main(["a", "b"]) == 2 and capsys.readouterr().out == "args a b\\n"
def test_stdin(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("line\\n"))
    assert kit.ask() == "line\\n"
""",
)

THEMES["state"] = (
    """
REGISTRY = {}
ITEMS = [1]
SEEN = set()
COUNT = 0
def register(name, value): REGISTRY[name] = value
def registered(): return sorted(REGISTRY)
def items(): return list(ITEMS)
def bump():
    global COUNT
    COUNT += 1
    return COUNT
def extend(target, *more): target.extend(more)
class Box:
    shared = []
    def __init__(self): self.items = []; self.options = {}
    def add(self, item): self.items.append(item)
    def first(self): return self.items[0]
    def __eq__(self, other): return isinstance(other, Box) and self.items == other.items
    def __hash__(self): return 1
class Stack(list):
    def push(self, item): self.append(item)
class Config(dict):
    def __getattr__(self, name): return self[name]
class Name(str):
    def shout(self): return self.upper() + "!"
class Money(int):
    pass
""",
    """
import copy, importlib
import pytest
import kit
def test_dict():
    kit.register("a", 1)
    assert kit.REGISTRY == {"a": 1} and kit.REGISTRY["a"] == 1 and "a" in kit.REGISTRY and len(kit.REGISTRY) == 1
    kit.REGISTRY.clear()
    assert kit.registered() == []
    kit.REGISTRY["b"] = 2
    assert kit.registered() == ["b"]
    del kit.REGISTRY["b"]
    assert not kit.REGISTRY
def test_list():
    kit.ITEMS.append(2)
    assert kit.items() == [1, 2]
    kit.ITEMS[:] = [5]
    assert kit.items() == [5] and kit.ITEMS == [5]
    kit.ITEMS += [6]
    assert kit.items() == [5, 6]
def test_set():
    kit.SEEN.add(1)
    assert kit.SEEN == {1} and 1 in kit.SEEN
def test_set_global():
    kit.COUNT = 40
    assert kit.bump() == 41
def test_instance():
    box = kit.Box()
    box.items.append(3)
    box.add(4)
    assert box.items == [3, 4] and box.first() == 3
    box.options["k"] = 1
    assert box.options == {"k": 1}
    box.items = [9]
    assert box.first() == 9
def test_class_state():
    kit.Box.shared.append(1)
    assert kit.Box().shared == [1]
def test_held():
    box = kit.Box()
    items = box.items
    box.add(1)
    assert items == [1]
def test_reload():
    kit.COUNT = 77
    importlib.reload(kit)
    assert kit.COUNT == 0
def test_copy():
    box = kit.Box()
    box.add([1])
    other, deep = copy.copy(box), copy.deepcopy(box)
    box.items[0].append(2) if False else box.add(2)
    assert other.items == [[1], 2] and deep.items == [[1]]
def test_list_subclass():
    stack = kit.Stack([1])
    stack.push(2)
    assert stack == [1, 2] and len(stack) == 2 and stack[0] == 1 and list(stack) == [1, 2] and isinstance(stack, list)
    stack.append(3)
    assert stack == [1, 2, 3] and stack.pop() == 3
def test_list_subclass_fails(): assert kit.Stack([1]) == [2]
def test_dict_subclass():
    config = kit.Config(a=1)
    assert config == {"a": 1} and config.a == 1 and config["a"] == 1 and isinstance(config, dict) and dict(config) == {"a": 1}
def test_str_subclass():
    name = kit.Name("ab")
    assert name == "ab" and name.shout() == "AB!" and name + "c" == "abc" and isinstance(name, str) and name.upper() == "AB"
def test_int_subclass(): assert kit.Money(3) == 3 and kit.Money(3) + 1 == 4 and kit.Money(2) < 3
""",
)

THEMES["pack"] = (  # a package: its files are in PACKAGE
    "",
    """
import pytest
from kit import *
from kit.sub import deep
from kit.sub.deep import value as named
import kit.sub.deep as aliased
import kit
def test_star(): assert public() == "public"
def test_star_gives_what_is_named_like_pythons_own(): assert sum([1, 2]) == "own"
def test_module_back(): assert kit.is_kit(kit) and not kit.is_kit(pytest)
def test_star_leaves_private():
    with pytest.raises(NameError): _private()
def test_deep(): assert deep.value() == 5 and named() == 5 and aliased.value() == 5 and kit.sub.deep.value() == 5
def test_relative(): assert deep.up() == "public"
def test_version(): assert kit.__version__ == "1.2" and kit.__doc__ == "A package."
def test_missing():
    with pytest.raises(ImportError): from kit import nothing
    with pytest.raises(ModuleNotFoundError): import kit.nowhere
def test_data(): assert kit.data() == "data here"
def test_import_inside():
    from kit.sub.other import Other
    assert Other().x == 1
""",
)

PACKAGE = {
    "__init__.py": '"""A package."""\n__version__ = "1.2"\n__all__ = ["public", "data", "sum"]\n'
    "import pathlib, sys\ndef public(): return 'public'\ndef _private(): return 'p'\n"
    "def data(): return (pathlib.Path(__file__).parent / 'data.txt').read_text()\n"
    "def sum(items): return 'own'\ndef is_kit(module): return module is sys.modules[__name__]\n",
    "data.txt": "data here",
    "sub/__init__.py": "",
    "sub/deep.py": "from .. import public\ndef value(): return 5\ndef up(): return public()\n",
    "sub/other.py": "class Other:\n    x = 1\n",
}

THEMES["fixtures"] = (
    """
class Store:
    def __init__(self, path): self.path = path; self.open = True
    def put(self, key): (self.path / key).write_text(key); return key
    def close(self): self.open = False
class Base:
    kind = "base"
    def area(self): raise NotImplementedError
class Square(Base):
    def __init__(self, side): self.side = side
    def area(self): return self.side ** 2
def plugin(register): register("x", Square)
class Visitor:
    def visit(self, node): return getattr(self, "visit_" + node)()
""",
    """
import unittest
import pytest
import kit
@pytest.fixture
def store(tmp_path):
    made = kit.Store(tmp_path)
    yield made
    made.close()
    assert not made.open
@pytest.fixture(scope="module")
def square(): return kit.Square(3)
def test_store(store, tmp_path): assert store.put("k") == "k" and (tmp_path / "k").exists() and store.open
def test_module_scope(square): assert square.area() == 9
def test_from_conftest(helper): assert helper(kit.Square(2)) == 4
class TestSquare:
    def setup_method(self): self.square = kit.Square(4)
    @pytest.mark.parametrize("side, area", [(1, 16), (2, 64)])
    def test_areas(self, side, area): assert kit.Square(side * self.square.side).area() == area
class TestUnit(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.square = kit.Square(2)
    def test_area_fails(self): self.assertEqual(self.square.area(), 5)
    def test_raises(self):
        with self.assertRaises(NotImplementedError): kit.Base().area()
class Double(kit.Base):
    kind = "double"
    def area(self): return 2
def test_subclass(): assert Double().area() == 2 and Double.kind == "double" and isinstance(Double(), kit.Base)
def test_plugin():
    found = {}
    kit.plugin(lambda name, kind: found.update({name: kind}))
    assert found["x"] is kit.Square
def test_visitor():
    class Mine(kit.Visitor):
        def visit_a(self): return "a!"
    assert Mine().visit("a") == "a!"
@pytest.mark.xfail(raises=NotImplementedError)
def test_xfail(): kit.Base().area()
@pytest.mark.skip
def test_skipped(): pass
def test_issubclass(): assert issubclass(kit.Square, kit.Base) and kit.Square.__bases__ == (kit.Base,) and kit.Square.__mro__[1] is kit.Base
""",
)

THEMES["hypothesis"] = (
    """
def encode(text): return [ord(one) for one in text]
def decode(codes): return "".join(map(chr, codes))
def wrong(n): return abs(n) if n < 50 else 0
""",
    """
import pytest
hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings, strategies as st
import kit
@settings(max_examples=15, deadline=None, derandomize=True, database=None)
@given(st.text("ab\\x00\\u2028\\ud7ff\\U0001f600", max_size=8))
def test_round_trip(text): assert kit.decode(kit.encode(text)) == text
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 1000))
def test_wrong_fails(n): assert kit.wrong(n) == n
""",
)

THEMES["dies"] = (
    """
import os, signal
def fine(): return 1
def leave(): os._exit(0)
def kill(): os.kill(os.getpid(), signal.SIGKILL)
def close():
    os.closerange(3, 200)
    return 1
""",
    """
import kit
def test_a(): assert kit.fine() == 1
def test_leave_fails(): kit.leave()
def test_b(): assert kit.fine() == 1
def test_kill_fails():
    try: kit.kill()
    except BaseException: pass
def test_c(): assert kit.fine() == 1
def test_closed_fails(): kit.close()
def test_e(): assert kit.fine() == 1
def test_without(): assert 1 + 1 == 2
""",
)

THEMES["projects"] = (  # traits of real projects' suites, seen in their bug fixes
    """
import decimal, enum, http, inspect, ipaddress, zoneinfo
__all__ = ["Mode", "parse", "str"]
str = str

class Mode(enum.Enum):
    UNSET = object()
    FAST = "fast"

class Wrong(ValueError): pass

def parse(text):
    try:
        return decimal.Decimal(text)
    except decimal.InvalidOperation as error:
        raise Wrong("no number") from error
def fail_twice():
    try:
        raise Wrong("first")
    except Wrong as error:
        raise Wrong("second")
def first(kinds): return len(kinds)
def address(text): return ipaddress.ip_address(text)
def network(one): return one.version, str(one)
def zone_of(zone):
    import datetime
    return datetime.datetime(2024, 7, 1, tzinfo=zone)
def zone(): return zoneinfo.ZoneInfo("UTC")
def status(code): return http.HTTPStatus(code)
def is_gone(status): return status is http.HTTPStatus.GONE
def pages(source):
    if inspect.isgeneratorfunction(source):
        source = source()
    return [source] if isinstance(source, str) else list(source)
def hook(thing, name): return getattr(thing, name)()
class Only:
    def __copy__(self): return self
    def __deepcopy__(self, _): return self
ONLY = Only()
""",
    """
import copy, decimal, http, ipaddress, zoneinfo
import pytest
import kit
from kit import *

@pytest.mark.parametrize("mode", [kit.Mode.UNSET, kit.Mode.FAST])
def test_named(mode): assert mode in (kit.Mode.UNSET, kit.Mode.FAST)
def test_all(): assert kit.__all__ == ["Mode", "parse", "str"]
def test_star(): assert parse is kit.parse and str is not kit.str or type("") is str
def test_error_of_a_library_within():
    with pytest.raises(kit.Wrong) as found: kit.parse("abc")
    assert isinstance(found.value.__cause__, decimal.InvalidOperation)
def test_error_within_its_like():
    with pytest.raises(kit.Wrong) as found: kit.fail_twice()
    assert str(found.value.__context__) == "first"
def test_class_told_in_an_argument(): assert kit.first([kit.Mode, kit.Wrong]) == 2
def test_class_afterwards():
    assert kit.Mode.FAST.value == "fast" and issubclass(kit.Wrong, ValueError)
def test_address():
    found = kit.address("10.0.0.1")
    assert isinstance(found, ipaddress.IPv4Address) and found == ipaddress.ip_address("10.0.0.1")
    assert kit.network(ipaddress.ip_network("10.0.0.0/8")) == (4, "10.0.0.0/8")
def test_address_fails(): assert kit.address("10.0.0.1") == ipaddress.ip_address("10.0.0.2")
def test_zone():
    assert kit.zone_of(zoneinfo.ZoneInfo("UTC")).utcoffset().total_seconds() == 0
    assert kit.zone() is zoneinfo.ZoneInfo("UTC")
def test_member_of_python():
    assert kit.status(410) is http.HTTPStatus.GONE and kit.is_gone(http.HTTPStatus.GONE)
def test_member_of_python_fails(): assert kit.status(404) is http.HTTPStatus.GONE
def test_generator_function():
    def pages():
        yield "a"
        yield "b"
    assert kit.pages(pages) == ["a", "b"]
def test_copies(): assert copy.deepcopy(kit.ONLY) is kit.ONLY and copy.copy(kit.ONLY) is kit.ONLY
class Hooks:
    def _on(self): return "on"
def test_hook():
    hooks = Hooks()
    hooks._secret = lambda: 1
    assert kit.hook(hooks, "_on") == "on"
    for name in ("_secret", "__class__x"):
        with pytest.raises(AttributeError): kit.hook(hooks, name)
""",
)

CONFTEST = """
import pytest
@pytest.fixture
def helper():
    def area(shape): return shape.area()
    return area
"""


GROUPS = [tuple(THEMES)[first::3] for first in range(3)]
"""Themes that are graded together."""


def files_of(*themes: str) -> tuple[dict[str, str], dict[str, str]]:
    """The submission and the hidden tests of some themes, each with a module of its own."""
    submission, hidden = dict[str, str](), {"conftest.py": CONFTEST}
    for theme in themes:
        name = f"kit_{theme}"
        kit, tests = (re.sub(r"\bkit\b", name, text) for text in THEMES[theme])
        if theme == "pack":
            submission |= {f"{name}/{path}": text for path, text in PACKAGE.items()}
        else:
            submission[f"{name}.py"] = kit
        hidden[f"test_{theme}.py"] = tests
    return submission, hidden


def unexpected(outcomes: Mapping[str, str]) -> dict[str, str]:
    """What did not come out as its name says."""
    special = {"test_skipped": "skipped", "test_xfail": "xfailed"}

    def expected(name: str) -> str:
        fails = name.partition("[")[0].endswith("_fails")
        return special.get(name.rpartition("::")[2], "failed" if fails else "passed")

    return {name: said for name, said in outcomes.items() if said != expected(name)}
