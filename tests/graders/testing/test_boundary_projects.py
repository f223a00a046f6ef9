"""Traits of real projects' suites under ``isolation: process``, seen in their bug fixes.

Every test must pass, but for those named ``test_..._fails``.
"""

from __future__ import annotations

import pytest

from tests.boundary_runs import grade, outcomes

pytestmark = pytest.mark.slow

KIT = """
import contextlib, decimal, enum, http, inspect, ipaddress, os, tempfile, zoneinfo
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
def choose(kind, text):
    if not (isinstance(kind, type) and issubclass(kind, enum.Enum)):
        raise TypeError("no enumeration")
    return next(one for one in kind if one.name.lower() == text)
def described(one): return one.label(), one.name, one.value, isinstance(one, str)
@contextlib.contextmanager
def inside():
    before = os.getcwd()
    place = tempfile.mkdtemp()
    os.chdir(place)
    try: yield place
    finally: os.chdir(before)
def size(file): return os.fstat(file.fileno()).st_size, file.read()
def hook(thing, name): return getattr(thing, name)()
class Only:
    def __copy__(self): return self
    def __deepcopy__(self, _): return self
ONLY = Only()
class Base:
    def __init__(self, n=0): self.n = n
    def twice(self): return self.n * 2
def total(things): return sum(one.twice() for one in things)
def is_here(name): return os.path.isdir(name)
"""

TESTS = """
import copy, decimal, enum, http, ipaddress, os, zoneinfo
import pytest
import kit
from kit import *

class Size(str, enum.Enum):
    SMALL = "s"
    LARGE = "l"
    def label(self): return f"size {self.value}"

class Bits(enum.Flag):
    READ = 1
    WRITE = 2

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
"""


def test_traits_of_real_suites_cross_the_boundary() -> None:
    score = grade({"kit.py": KIT}, {"test_kit.py": TESTS})
    found = {name.partition("::")[2]: said for name, said in outcomes(score).items()}
    assert {"test_named[Mode.UNSET]", "test_named[Mode.FAST]"} <= set(found)
    wrong = {
        name: said
        for name, said in found.items()
        if said[0] != ("failed" if name.endswith("_fails") else "passed")
    }
    assert not wrong


def test_helpers_that_hold_the_submissions_objects_serve_every_test_module() -> None:
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
    found = outcomes(grade({"kit.py": KIT}, hidden))
    assert {name: said[0] for name, said in found.items()} == {
        f"tests/test_{one}.py::test_total{end}": "failed" if end else "passed"
        for one in "ab"
        for end in ("", "_fails")
    }
