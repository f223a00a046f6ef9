"""Formulas of ``multi``: ``0.7 * exact + 0.3 * min(similar, 1 - penalty ^ 2)``.

Read by operator precedence (Pratt 1973) into instructions for a stack, so that neither a long sum
nor a hostile one can overflow anything. Numbers are floats throughout: ``9^9^9^9`` is too large at
once instead of computing for ever.

Highest first: ``^`` (to the right), the sign, ``*`` and ``/``, ``+`` and ``-`` (to the left). So
``-2^2`` is -4, ``2^-1`` is 0.5 and ``2^3^2`` is 512.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from assay.errors import InputError, Location, ScoreError, nearest

MAX_LENGTH = 10_000
"""Characters of a formula."""

MAX_NESTING = 100
"""Brackets, signs and powers that may be open at once."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*)|(?P<sign>\*\*|[-+*/^(),])|(?P<end>\Z))"
)
_SUM, _PRODUCT, _SIGN, _POWER = 1, 2, 3, 4

_BINARY: Mapping[str, tuple[int, Callable[[float, float], float]]] = {
    "+": (_SUM, lambda left, right: left + right),
    "-": (_SUM, lambda left, right: left - right),
    "*": (_PRODUCT, lambda left, right: left * right),
    "/": (_PRODUCT, lambda left, right: left / right),
    "^": (_POWER, math.pow),
}
_VARIADIC: Mapping[str, Callable[..., float]] = {"min": min, "max": max}
_UNARY: Mapping[str, Callable[[float], float]] = {
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "log": math.log,
}

FUNCTIONS = (*_VARIADIC, *_UNARY)
"""Every function: ``min`` and ``max`` of one number or more, the others of one number each.

``log`` is the natural logarithm.
"""


class FormulaError(InputError):
    """A formula cannot be read; its message has the column."""


@dataclass(frozen=True, slots=True)
class _Step:
    """Replaces the last ``takes`` values of the stack by one; a variable or a number takes none."""

    text: str
    takes: int
    apply: Callable[..., float]


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula that was read."""

    names: tuple[str, ...]
    _steps: tuple[_Step, ...]

    def __call__(self, values: Mapping[str, float]) -> float:
        """Compute it."""
        stack: list[float] = []
        for step in self._steps:
            if not step.takes:
                stack.append(float(values[step.text]) if step.text else step.apply())
                continue
            given = stack[-step.takes :]
            del stack[-step.takes :]
            stack.append(_computed(step, given))
        return stack[0]


def _computed(step: _Step, given: list[float]) -> float:
    shown = f"{step.text}({', '.join(f'{number:g}' for number in given[:4])})"
    try:
        outcome = float(step.apply(*given))
    except ZeroDivisionError:
        raise ScoreError(f"the formula divides {given[0]:g} by zero") from None
    except (ValueError, OverflowError) as error:
        raise ScoreError(f"the formula has no value: {shown}: {error}") from None
    if not math.isfinite(outcome):
        raise ScoreError(f"the formula has no finite value: {shown} is {outcome}")
    return outcome


@functools.lru_cache(maxsize=32)
def parse_formula(text: str) -> Formula:
    """Read a formula."""
    if len(text) > MAX_LENGTH:
        raise _wrong(f"is longer than {MAX_LENGTH:,} characters", MAX_LENGTH)
    parser = _Parser(text)
    parser.expression(0)
    if parser.kind != "end":
        raise _wrong(f"does not expect {parser.text!r} here", parser.column)
    return Formula(tuple(dict.fromkeys(parser.names)), tuple(parser.steps))


def _wrong(message: str, column: int, hint: str = "") -> FormulaError:
    place = Location(field="calculate_output")
    return FormulaError(f"{message} (column {column})", location=place, hint=hint)


class _Parser:
    """Reads tokens from left to right; `steps` is what it has understood so far."""

    def __init__(self, formula: str) -> None:
        self.steps: list[_Step] = []
        self.names: list[str] = []
        self._formula = formula
        self._place = 0
        self._open = 0
        self.kind = self.text = ""
        self.column = 1
        self._advance()

    def expression(self, binding: int) -> None:
        """Read an operand and every operator behind it that binds tighter than ``binding``."""
        self._open += 1
        if self._open > MAX_NESTING:
            raise _wrong(f"is nested more than {MAX_NESTING} deep", self.column)
        self._operand()
        while self.kind == "sign" and (found := _BINARY.get(self.text)) and found[0] > binding:
            sign, (strength, apply) = self.text, found
            self._advance()
            # To the right, an equally strong operator belongs to the operand that follows.
            self.expression(strength - 1 if sign == "^" else strength)
            self.steps.append(_Step(sign, 2, apply))
        self._open -= 1

    def _operand(self) -> None:
        kind, text, column = self.kind, self.text, self.column
        self._advance()
        if kind == "number":
            number = float(text)
            if not math.isfinite(number):
                raise _wrong(f"has a number too large for a float: {text[:40]}", column)
            self.steps.append(_Step("", 0, lambda: number))
        elif kind == "name" and self.text == "(":
            self._call(text, column)
        elif kind == "name":
            self.names.append(text)
            self.steps.append(_Step(text, 0, float))
        elif text in ("-", "+"):
            self.expression(_SIGN)
            if text == "-":
                self.steps.append(_Step("-", 1, _negative))
        elif text == "(":
            self.expression(0)
            self._close(column)
        else:
            said = "ends too early" if kind == "end" else f"does not expect {text!r} here"
            raise _wrong(said, column, "write ^ for a power" if text == "**" else "")

    def _call(self, name: str, column: int) -> None:
        apply = _VARIADIC.get(name) or _UNARY.get(name)
        if apply is None:
            hint = nearest(name, list(FUNCTIONS))
            raise _wrong(f"has no function {name!r}", column, hint)
        opened = self.column
        self._advance()
        if self.text == ")":
            raise _wrong(f"gives {name} no number", self.column)
        self.expression(0)
        count = 1
        while self.text == ",":
            self._advance()
            self.expression(0)
            count += 1
        self._close(opened)
        if count > 1 and name in _UNARY:
            raise _wrong(f"gives {name} {count} numbers instead of one", column)
        # min and max of floats want a sequence where there is only one.
        variadic = name in _VARIADIC
        self.steps.append(_Step(name, count, _over(apply) if variadic else apply))

    def _close(self, opened: int) -> None:
        if self.text != ")":
            raise _wrong(f"does not close the bracket of column {opened}", self.column)
        self._advance()

    def _advance(self) -> None:
        token = _TOKEN.match(self._formula, self._place)
        if token is None:
            stranger = re.compile(r"\s*").match(self._formula, self._place)
            place = stranger.end() if stranger else self._place
            character = self._formula[place]
            raise _wrong(f"does not understand {character!r}", place + 1)
        self.kind = token.lastgroup or "end"
        self.text = token[self.kind]
        self.column = token.start(self.kind) + 1
        self._place = token.end()
        if self.text == "**":
            raise _wrong("does not know '**'", self.column, "write ^ for a power")


def _negative(number: float) -> float:
    return -number


def _over(function: Callable[..., float]) -> Callable[..., float]:
    return lambda *numbers: function(numbers)
