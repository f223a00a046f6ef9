"""Catches objects that answer every comparison with "equal".

A hidden test that says ``assert add(2, 3) == 5`` asks the submission's own object whether it equals
5. So whoever answers is asked more: whether it also equals an object made a moment ago, or a value
beside the expected one. No honest value does.
"""

from __future__ import annotations

import operator
import random
from types import FunctionType, WrapperDescriptorType
from typing import TYPE_CHECKING, cast

from assay.graders.testing.inside.containers import NOTHING, SCALARS, beside, fields, inner_pairs
from assay.graders.testing.inside.keeper import look
from assay.graders.testing.inside.nearness import (
    ARITHMETIC,
    distant_numbers,
    is_near_everything,
)
from assay.graders.testing.inside.origins import Origins, frame_above

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterator

    _Operation = Callable[[object, object], object]
    _Question = Callable[[_Operation, object, object], bool]

_EQUALITY = ("__eq__", "__ne__")
_ORDER = ("__lt__", "__le__", "__gt__", "__ge__")
_ASKED = (*_EQUALITY, *_ORDER, *ARITHMETIC)
_DEEPEST = 20
_LONGEST_SHOWN = 40
_MOST_VALUES = 200_000
_ORDERS: tuple[tuple[_Operation, _Operation], ...] = (
    (lambda a, b: cast("int", a) < cast("int", b), lambda a, b: cast("int", a) >= cast("int", b)),
    (lambda a, b: cast("int", a) <= cast("int", b), lambda a, b: cast("int", a) > cast("int", b)),
)
"""Of each pair only one can be true of two values."""


class DishonestAnswerError(AssertionError):
    """An object of the submission claims to be equal to everything."""


class Comparisons:
    """Watches the two sides of each comparison that a hidden test relies on.

    The source of ``a == b`` is changed to ``LEFT[a] == RIGHT[b]``, so that the runner still sees,
    and explains, the comparison itself.

    Args:
        origins: Knows which classes the hidden tests define themselves.
        report: Takes a sentence about each class that was caught.
    """

    def __init__(self, origins: Origins, report: Callable[[str], None]) -> None:
        self._origins = origins
        self._imported: frozenset[str] = frozenset()
        self._loose: frozenset[str] = frozenset()
        self._told: set[str] = set()
        self._report = report
        self._pending: dict[int, list[object]] = {}
        draw = random.SystemRandom()
        self._pairs = _unrelated_pairs(draw)
        self._numbers = distant_numbers(draw)

    def choose(self, imported: Collection[str], loose: Collection[str] = ()) -> None:
        """Trust some packages' objects to equal everything: they are meant to.

        Args:
            imported: Packages that the hidden tests import. ``ANY`` stands for that of
                `unittest.mock`.
            loose: Classes of the submission that the author lets equal what they like.
        """
        self._imported = frozenset(imported)
        self._loose = frozenset(loose)

    def forget(self) -> None:
        """Drop what a broken-off comparison left behind."""
        self._pending.clear()

    def push(self, value: object) -> object:
        """Take the left side; returns it."""
        look()
        self._pending.setdefault(id(frame_above(2)), []).append(value)
        return value

    def pop(self) -> object:
        """The left side that belongs to the right side now at hand."""
        look()
        frame = id(frame_above(2))
        waiting = self._pending.get(frame)
        if not waiting:
            return NOTHING
        value = waiting.pop()
        if not waiting:
            del self._pending[frame]
        return value

    def examine(self, left: object, right: object, *, ordered: bool = False) -> None:
        """Look at both sides of a comparison.

        Raises:
            DishonestAnswerError: If one of them would have been equal to anything.
        """
        __tracebackhide__ = True
        if left is right or (type(left) in SCALARS and type(right) in SCALARS):
            return
        for value, other, is_part in self._values(left, right):
            if not is_part:
                self._probe_nearness(value, other)
            self._probe(value, other, ordered=ordered, holds=_says if is_part else _holds)

    def examine_difference(self, left: object, right: object) -> None:
        """Look at both sides of ``left - right``.

        Raises:
            DishonestAnswerError: If one of them is near to everything.
        """
        __tracebackhide__ = True
        for value, other in ((left, right), (right, left)):
            if type(value) not in SCALARS and value is not NOTHING:
                self._probe_nearness(value, other)

    def examine_within(self, value: object, container: object) -> None:
        """Look at both sides of ``value in container``.

        Raises:
            DishonestAnswerError: If the one equals, or the other contains, anything.
        """
        __tracebackhide__ = True
        self.examine(value, NOTHING)
        if type(container) in SCALARS:
            return
        if (
            self._asks_submission(container, ("__contains__",))
            and _holds(_contains, container, object())
            and _holds(_contains, container, value)
        ):
            self._refuse(container, "contains everything", "even an object made a moment ago")
        for one, _, is_part in self._values(container, NOTHING):
            self._probe(one, value, holds=_says if is_part else _holds)

    def _values(self, left: object, right: object) -> Iterator[tuple[object, object, bool]]:
        """Every value on either side that answers for itself.

        Yields:
            The value, what it is compared to, and whether it is only a part of an object that
            answers in its place.
        """
        pending = [(left, right, 0, False)]
        seen: set[tuple[int, int]] = set()
        while pending and len(seen) < _MOST_VALUES:
            one, other, depth, is_part = pending.pop()
            if one is other or (type(one) in SCALARS and type(other) in SCALARS):
                continue
            if (id(one), id(other)) in seen or depth > _DEEPEST:
                continue
            seen.add((id(one), id(other)))
            pending.extend((a, b, depth + 1, is_part) for a, b in inner_pairs(one, other))
            for value, partner in ((one, other), (other, one)):
                if value is not NOTHING and self._asks_submission(value, _ASKED):
                    yield value, partner, is_part
                    pending.extend((a, b, depth + 1, True) for a, b in fields(value, partner))

    def _asks_submission(self, value: object, operations: tuple[str, ...]) -> bool:
        """Whether code that the hidden tests did not choose answers these operations."""
        kind = type(value)
        if kind in SCALARS or f"{kind.__module__}.{kind.__qualname__}" in self._loose:
            return False
        return any(
            not _is_built_in(answer, name) and not self._is_chosen(kind, answer)
            for name, answer in [(name, _resolve(kind, name)) for name in operations]
        )

    def _is_chosen(self, kind: type, answer: object) -> bool:
        if answer is None:
            return True
        if not isinstance(answer, FunctionType):
            return False
        if self._origins.is_hidden_code(answer.__code__):
            return True
        if not self._origins.is_package(answer.__code__.co_filename):
            return False
        module = answer.__module__
        if module == "unittest.mock" and kind.__name__ == "_ANY":
            return "ANY" in self._imported
        return module.partition(".")[0] in self._imported

    def _probe(
        self, value: object, other: object, *, holds: _Question, ordered: bool = False
    ) -> None:
        __tracebackhide__ = True
        near = beside(other)
        pairs = self._pairs if near is NOTHING else [*self._pairs, (other, near)]
        what = "answers equal to everything"
        if holds(operator.eq, value, object()):
            self._refuse(value, what, "it equals an object made a moment ago")
        for one, two in pairs:
            if holds(operator.eq, value, one) and holds(operator.eq, value, two):
                self._refuse(value, what, f"it equals {_shown(one)} and {_shown(two)}")
        if ordered and other is not NOTHING:
            for low, high in _ORDERS:
                if holds(low, value, other) and holds(high, value, other):
                    self._refuse(value, "answers both less and greater", f"than {_shown(other)}")

    def _probe_nearness(self, value: object, other: object) -> None:
        __tracebackhide__ = True
        if self._asks_submission(value, ARITHMETIC) and is_near_everything(
            value, other, self._numbers
        ):
            self._refuse(value, "answers near to everything", "its difference to any is nothing")

    def _refuse(self, value: object, what: str, how: str) -> None:
        __tracebackhide__ = True
        kind = type(value)
        text = f"{what}: {kind.__module__}.{kind.__qualname__}"
        told = f"{text} ({how})"
        if text not in self._told:  # the values differ each time
            self._told.add(text)
            self._report(told)
        raise DishonestAnswerError(f"an object of the submission {told}")


class Left:
    """What ``LEFT[value]`` is."""

    def __init__(self, comparisons: Comparisons) -> None:
        self._comparisons = comparisons

    def __getitem__(self, value: object) -> object:
        return self._comparisons.push(value)


class Right:
    """What ``RIGHT[value]`` is, after ``==``, an order, ``-`` or ``in``."""

    def __init__(self, comparisons: Comparisons, operation: str) -> None:
        self._comparisons = comparisons
        self._operation = operation

    def __getitem__(self, value: object) -> object:
        __tracebackhide__ = True
        left = self._comparisons.pop()
        if self._operation == "within":
            self._comparisons.examine_within(left, value)
        elif self._operation == "near":
            self._comparisons.examine_difference(left, value)
        else:
            self._comparisons.examine(left, value, ordered=self._operation == "order")
        return value


def _resolve(kind: type, name: str) -> object:
    """What a class answers an operation with, past whatever its metaclass claims."""
    lineage = cast("tuple[type, ...]", type.__dict__["__mro__"].__get__(kind))
    for base in lineage:
        answer = type.__dict__["__dict__"].__get__(base).get(name, NOTHING)
        if answer is not NOTHING:
            return answer
    return None


def _is_built_in(answer: object, name: str) -> bool:
    """Whether it is C code that does what it is called; `int.__ne__` is no ``__eq__``."""
    return isinstance(answer, WrapperDescriptorType) and answer.__name__ == name


def _shown(value: object) -> str:
    """A value as a report shows it; only of plain ones, for ``repr`` would run foreign code."""
    if type(value) in SCALARS:
        text = repr(value)
        return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
    return f"a {type(value).__name__}"


def _contains(container: object, value: object) -> bool:
    return value in cast("Container[object]", container)


def _holds(operation: _Operation, one: object, two: object) -> bool:
    """Whether an operation's result passes for true."""
    try:
        return bool(operation(one, two))
    except Exception:
        return False


def _says(operation: _Operation, one: object, two: object) -> bool:
    """Whether an operation's result is true in so many words.

    The ``==`` of an expression in some query language returns a new expression, which is no lie.
    """
    try:
        result = operation(one, two)
    except Exception:
        return False
    return type(result) in SCALARS and bool(result)


def _unrelated_pairs(draw: random.Random) -> list[tuple[object, object]]:
    """Pairs of plain values of which nothing honest equals both."""
    first, second = draw.randrange(10**6, 10**9), draw.randrange(10**9, 10**12)
    return [
        (first, second),
        (-first, first),
        (first + 0.5, second + 0.25),
        (f"{first:x}", f"{second:x}"),
        (f"{first}".encode(), f"{second}".encode()),
        ([first], [second]),
        ((first,), (second,)),
        ({first: 0}, {second: 0}),
        ({first}, {second}),
        (None, first),
    ]
