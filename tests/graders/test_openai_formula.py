"""The formulas of `multi`: read like mathematics, bounded, and never a number that is none."""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScoreError
from assay.graders.openai.formula import FUNCTIONS, FormulaError, parse_formula
from tests.each import each

VALUES = {"a": 0.5, "b": 3.0, "min": 7.0, "ähnlich": 0.25}


@each(
    ("formula", "value"),
    [
        ("1", 1.0),
        (".5", 0.5),
        ("2.", 2.0),
        ("1e3 + 1E-3", 1000.001),
        ("a + b * 2", 6.5),
        ("(a + b) * 2", 7.0),
        ("8 - 3 - 2", 3.0),
        ("8 / 4 / 2", 1.0),
        ("2^3^2", 512.0),
        ("-2^2", -4.0),
        ("(-2)^2", 4.0),
        ("2^-1", 0.5),
        ("2^-2^2", 0.0625),
        ("- - 3", 3.0),
        ("+3 - +2", 1.0),
        ("2*-3+1", -5.0),
        ("-a*b", -1.5),
        ("min(b, a, 2)", 0.5),
        ("max(a)", 0.5),
        ("min + min(min)", 14.0),
        ("abs(-3) + floor(2.7) + ceil(2.1)", 8.0),
        ("floor(-0.5)", -1.0),
        ("exp(0) + sqrt(9) + log(exp(2))", 6.0),
        ("ähnlich * 4", 1.0),
        ("0.5*a\n+ 0.5 * b", 1.75),
    ],
)
def test_formulas_are_read_as_mathematics(formula: str, value: float) -> None:
    assert parse_formula(formula)(VALUES) == pytest.approx(value)


@each(
    ("formula", "message", "column"),
    [
        ("", "ends too early", 1),
        ("  ", "ends too early", 3),
        ("a +", "ends too early", 4),
        ("a b", "does not expect 'b' here", 3),
        ("a + * b", r"does not expect '\*' here", 5),
        ("2**3", r"does not know '\*\*'", 2),
        ("a $ b", r"does not understand '\$'", 3),
        ("(a", "does not close the bracket of column 1", 3),
        ("a)", r"does not expect '\)' here", 2),
        ("min()", "gives min no number", 5),
        ("min(a,)", r"does not expect '\)' here", 7),
        ("sqrt(a, b)", "gives sqrt 2 numbers instead of one", 1),
        ("pow(a, b)", "has no function 'pow'", 1),
        ("1.2.3", "does not expect '.3' here", 4),
        ("1e999", "a number too large", 1),
        ("a.b", r"does not understand '\.'", 2),
        ("a[0]", r"does not understand '\['", 2),
        ("__import__('os')", "has no function '__import__'", 1),
        ("a if b else a", "does not expect 'if' here", 3),
        ("a == b", "does not understand '='", 3),
        ("a, b", "does not expect ',' here", 2),
    ],
)
def test_what_is_no_formula_is_refused_with_its_column(
    formula: str, message: str, column: int
) -> None:
    with pytest.raises(FormulaError, match=message) as caught:
        parse_formula(formula)
    assert f"(column {column})" in str(caught.value)


@each(
    "formula",
    [
        "1/0",
        "a/(b-b)",
        "log(0)",
        "log(-1)",
        "sqrt(-1)",
        "exp(1000)",
        "(-8)^(1/3)",
        "0^-1",
        "1e308 * 10",
        "1e308 + 1e308",
        "9^9^9^9",
        "-9^9^9^9",
    ],
)
def test_a_step_without_a_finite_value_is_an_error_and_no_score(formula: str) -> None:
    with pytest.raises(ScoreError, match="formula"):
        parse_formula(formula)(VALUES)


@each(
    "formula",
    [
        "(" * 1_000_000,
        "(" * 5_000,
        "-" * 9_000 + "1",
        "^".join("9" * 4_000),
        "(" * 500 + "1" + ")" * 500,
        "min(" * 2_000 + "1" + ")" * 2_000,
        " " * 9_999 + "$",
        "1" * 10_000,
    ],
)
def test_hostile_formulas_are_refused_at_once(formula: str) -> None:
    started = time.process_time()
    with pytest.raises(FormulaError):
        parse_formula(formula)
    assert time.process_time() - started < 2


def test_a_long_sum_is_no_deep_one() -> None:
    assert parse_formula("+".join("1" * 4_000))({}) == 4_000


def test_variables_are_listed_once_in_order() -> None:
    assert parse_formula("b + a * b + min(c, min)").names == ("b", "a", "c", "min")


# --- An oracle: trees are computed directly, and written with brackets only where they must be ----

_STRENGTH = {"+": 1, "-": 1, "*": 2, "/": 2, "neg": 3, "^": 4, "atom": 5}
_BINARY: dict[str, Callable[[float, float], float]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "^": math.pow,
}
_UNARY: dict[str, Callable[[float], float]] = {
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "log": math.log,
}


@dataclass(frozen=True)
class Node:
    kind: str
    parts: tuple[Node, ...] = ()
    text: str = ""

    def value(self) -> float:
        found = self._value()
        if not math.isfinite(found):
            raise OverflowError
        return found

    def _value(self) -> float:
        given = [part.value() for part in self.parts]
        if self.kind == "atom":
            return VALUES[self.text] if self.text in VALUES else float(self.text)
        if self.kind == "neg":
            return -given[0]
        if self.kind in _BINARY:
            return _BINARY[self.kind](*given)
        if self.kind in _UNARY:
            return float(_UNARY[self.kind](*given))
        return min(given) if self.kind == "min" else max(given)

    def written(self) -> str:
        if self.kind == "atom":
            return self.text
        if self.kind == "neg":
            inner = self.parts[0]
            return "-" + inner.bracketed(3)
        if self.kind in _BINARY:
            left, right = self.parts
            strength = _STRENGTH[self.kind]
            if self.kind == "^":
                # An exponent may have a sign; a base may not.
                exponent = right.written() if right.kind == "neg" else right.bracketed(4)
                return f"{left.bracketed(5)} ^ {exponent}"
            return f"{left.bracketed(strength)} {self.kind} {right.bracketed(strength + 1)}"
        return f"{self.kind}({', '.join(part.written() for part in self.parts)})"

    def bracketed(self, least: int) -> str:
        strength = _STRENGTH.get(self.kind, 5)
        return self.written() if strength >= least else f"({self.written()})"


_ATOMS = st.sampled_from(["0", "1", "2", "0.5", "3.25", "10", "1e2", "a", "b"]).map(
    lambda text: Node("atom", text=text)
)


def _larger(smaller: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    two = st.tuples(smaller, smaller)
    some = st.lists(smaller, min_size=1, max_size=4).map(tuple)
    return st.one_of(
        st.builds(Node, st.sampled_from(sorted(_BINARY)), two),
        st.builds(Node, st.just("neg"), st.tuples(smaller)),
        st.builds(Node, st.sampled_from(sorted(_UNARY)), st.tuples(smaller)),
        st.builds(Node, st.sampled_from(["min", "max"]), some),
    )


@given(st.recursive(_ATOMS, _larger, max_leaves=20))
def test_a_formula_computes_what_its_tree_does(tree: Node) -> None:
    formula = parse_formula(tree.written())
    try:
        expected = tree.value()
    except (ValueError, OverflowError, ZeroDivisionError):
        with pytest.raises(ScoreError):
            formula(VALUES)
    else:
        assert formula(VALUES) == expected


def _least(*numbers: float) -> float:
    return min(numbers)


def _most(*numbers: float) -> float:
    return max(numbers)


@given(
    st.lists(
        st.sampled_from(["1.0", "2.0", "3.0", "a", "b", *"+-*/^()", ",", *FUNCTIONS]), max_size=12
    )
)
def test_what_is_accepted_reads_as_in_python(tokens: list[str]) -> None:
    text = " ".join(tokens)
    try:
        formula = parse_formula(text)
    except FormulaError:
        return
    names: dict[str, object] = {
        **_UNARY,
        **{name: VALUES.get(name, 1.0) for name in formula.names},
        "__builtins__": {},
    }
    if any(name in FUNCTIONS for name in formula.names):
        return  # a variable called like a function means two things to Python
    names |= {"min": _least, "max": _most}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(text.replace("^", "**"), "formula", "eval")
    try:
        expected = eval(code, names)
    except (ValueError, OverflowError, ZeroDivisionError):
        expected = None
    if isinstance(expected, float | int) and math.isfinite(expected):
        assert formula({**VALUES, **dict.fromkeys(formula.names, 1.0), **VALUES}) == expected
    else:
        with pytest.raises(ScoreError):
            formula({**dict.fromkeys(formula.names, 1.0), **VALUES})


@given(st.text(max_size=40))
def test_no_text_does_anything_but_parse_or_be_refused(text: str) -> None:
    with contextlib.suppress(FormulaError, ScoreError):
        formula = parse_formula(text)
        formula(dict.fromkeys(formula.names, 1.0))
