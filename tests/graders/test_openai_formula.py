"""The formulas of `multi`: read like mathematics, bounded, and never a number that is none."""

from __future__ import annotations

import ast
import contextlib
import math
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import ScoreError
from assay.graders.openai.formula import FormulaError, parse_formula
from tests.each import each

VALUES = {"a": 0.5, "b": 3.0, "min": 7.0, "ähnlich": 0.25}


@each(
    ("formula", "value"),
    [
        (".5", 0.5),
        ("2.", 2.0),
        ("1e3 + 1E-3", 1000.001),
        ("2^-2^2", 0.0625),
        ("+3 - +2", 1.0),
        ("min + min(min)", 14.0),
        ("abs(-3) + floor(2.7) + ceil(2.1)", 8.0),
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
        ("a +", "ends too early", 4),
        ("a + * b", r"does not expect '\*' here", 5),
        ("2**3", r"does not know '\*\*'", 2),
        ("a $ b", r"does not understand '\$'", 3),
        ("(a", "does not close the bracket of column 1", 3),
        ("min()", "gives min no number", 5),
        ("min(a", "does not close the bracket of column 4", 6),
        ("min(a,)", r"does not expect '\)' here", 7),
        ("sqrt(a, b)", "gives sqrt 2 numbers instead of one", 1),
        ("1.2.3", "does not expect '.3' here", 4),
        ("1e999", "a number too large", 1),
        ("a.b", r"does not understand '\.'", 2),
        ("__import__('os')", "has no function '__import__'", 1),
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
        "a/(b-b)",
        "log(-1)",
        "sqrt(-1)",
        "exp(1000)",
        "(-8)^(1/3)",
        "1e308 * 10",
        "1e308 + 1e308",
    ],
)
def test_a_step_without_a_finite_value_is_an_error_and_no_score(formula: str) -> None:
    with pytest.raises(ScoreError, match="formula"):
        parse_formula(formula)(VALUES)


@each(
    "formula",
    [
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


# --- An oracle: Python, which reads the same, computes each step ----------------------------------

_UNARY: dict[str, Callable[[float], float]] = {
    "abs": abs,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "log": math.log,
    "floor": lambda x: float(math.floor(x)),
    "ceil": lambda x: float(math.ceil(x)),
}
_MANY: dict[str, Callable[..., float]] = {"min": lambda *x: min(x), "max": lambda *x: max(x)}


def _python(text: str) -> float | None:
    """What Python computes, or nothing where a step has no finite value."""
    names: dict[str, object] = {**VALUES, **_UNARY, **_MANY}
    for step in ast.walk(ast.parse(text.replace("^", "**"), mode="eval").body):
        if isinstance(step, ast.BinOp | ast.UnaryOp | ast.Call):
            try:
                value = eval(compile(ast.Expression(step), "formula", "eval"), names)
            except (ValueError, OverflowError, ZeroDivisionError, TypeError):
                return None
            if not isinstance(value, float) or not math.isfinite(value):
                return None
    return float(eval(text.replace("^", "**"), names))


def _larger(smaller: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    some = st.lists(smaller, min_size=1, max_size=4).map(", ".join)
    return st.one_of(
        st.tuples(smaller, st.sampled_from("+-*/^"), smaller).map(" ".join),
        smaller.map("-{}".format),
        smaller.map("({})".format),
        st.builds("{}({})".format, st.sampled_from(sorted(_UNARY)), smaller),
        st.builds("{}({})".format, st.sampled_from(sorted(_MANY)), some),
    )


_ATOMS = st.sampled_from(["0.0", "1.0", "2.0", ".5", "3.25", "10.", "1e2", "a", "b"])


@settings(max_examples=200)
@given(st.recursive(_ATOMS, _larger, max_leaves=20))
def test_a_formula_computes_what_python_does(text: str) -> None:
    formula, expected = parse_formula(text), _python(text)
    if expected is None:
        with pytest.raises(ScoreError):
            formula(VALUES)
    else:
        assert formula(VALUES) == expected


@given(st.text(max_size=40))
def test_no_text_does_anything_but_parse_or_be_refused(text: str) -> None:
    with contextlib.suppress(FormulaError, ScoreError):
        formula = parse_formula(text)
        formula(dict.fromkeys(formula.names, 1.0))
