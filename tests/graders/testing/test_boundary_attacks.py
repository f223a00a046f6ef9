"""Cheats and honest work at the boundary of ``isolation: process`` that need a run of their own.

What is tried beside others stands in ``tests/attacks/apart.yaml``.
"""

from __future__ import annotations

import re

import pytest

from tests.boundary_runs import grade, outcomes

pytestmark = pytest.mark.slow

ADD = "def add(a, b): return a + b\ndef worth(): return 1\n"


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
