"""Catches objects that answer every comparison with "equal".

A hidden test that says ``assert add(2, 3) == 5`` asks the submission's own object whether it equals
5. So each side of an equality in a test goes through ``_@checked[...]``, which asks an object of
the submission whether it also equals an object made for this one question. No honest value does.
"""

from __future__ import annotations

import ast
import os
import sys
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

CHECKED = "_@checked"
"""The name of the check in a test module: no identifier, so nothing uses it by accident."""

_ASKING = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
_EQUAL = """
    assertEqual assertEquals assertAlmostEqual assertMultiLineEqual assertSequenceEqual
    assertListEqual assertTupleEqual assertSetEqual assertDictEqual assertCountEqual assertIn
    eq_ assert_equal assert_almost_equal assert_array_equal assert_allclose
"""
_ASSERTIONS = frozenset(_EQUAL.split())
_CONTAINERS = (list, tuple, set, frozenset)
_PLAIN = frozenset({int, float, complex, str, bytes, bool, type(None), *_CONTAINERS, dict})


class DishonestAnswerError(AssertionError):
    """An object of the submission claims to be equal to everything."""


def check_equalities(tree: ast.Module) -> None:
    """Send both sides of each equality in a parsed test module through the check."""
    _Check().visit(tree)


class _Check(ast.NodeTransformer):
    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if any(isinstance(one, _ASKING) for one in node.ops):
            node.left = _checked(node.left)
            node.comparators = [_checked(one) for one in node.comparators]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in _ASSERTIONS:
            node.args[:2] = [_checked(one) for one in node.args[:2]]
        return node


def _checked(value: ast.expr) -> ast.expr:
    if isinstance(value, (ast.Constant, ast.Starred)):
        return value
    index = value if sys.version_info >= (3, 9) else ast.Index(value=value)
    check = ast.copy_location(ast.Name(id=CHECKED, ctx=ast.Load()), value)
    return ast.copy_location(ast.Subscript(value=check, slice=index, ctx=ast.Load()), value)


class EqualityCheck:
    """What ``_@checked`` is: its items are the values that it was asked for, once they are checked.

    Args:
        is_trusted: Whether the code of a file is no submission's.
        loose: Classes of the submission, as ``module.Class``, that may equal what they like.
        report: Takes a sentence about each class that was caught.

    Attributes:
        allows_any: Whether the tests themselves speak of the ``ANY`` of `unittest.mock`.
    """

    def __init__(
        self,
        is_trusted: Callable[[str], bool],
        loose: Collection[str],
        report: Callable[[str], None],
    ) -> None:
        self._is_trusted = is_trusted
        self._loose = frozenset(loose)
        self._report = report
        self.allows_any = False
        self._known: dict[object, bool] = {}

    def __getitem__(self, value: object) -> object:
        """The value itself.

        Raises:
            DishonestAnswerError: If it would have been equal to anything.
        """
        __tracebackhide__ = True
        for one in _parts(value):
            self._ask(one)
        return value

    def _ask(self, value: object) -> None:
        __tracebackhide__ = True
        kind = type(value)
        # `__eq__` may be replaced while tests run, so it, and not the class, is what is known.
        answer = getattr(kind, "__eq__", None)
        code = getattr(answer, "__code__", None)
        is_any = kind.__module__ == "unittest.mock" and kind.__name__ == "_ANY"
        if code is None or (self.allows_any if is_any else self._is_free(kind, code)):
            return
        try:
            told: object = value == object()
        except Exception:
            return
        # An expression of some query language is true, too, but no answer.
        if told is True or (type(told) is int and told):
            text = f"answers equal to everything: {kind.__module__}.{kind.__qualname__}"
            self._report(text)
            raise DishonestAnswerError(f"an object of the submission {text}")

    def _is_free(self, kind: type, code: object) -> bool:
        known = self._known.get(code)
        if known is None:
            path = cast("str", getattr(code, "co_filename", ""))
            # What is made of a string, such as a dataclass's own, has no file.
            known = self._known[code] = path.startswith(os.sep) and self._is_trusted(path)
        return known or f"{kind.__module__}.{kind.__qualname__}" in self._loose


def _parts(value: object) -> Collection[object]:
    """A value, or what a plain container holds, as far as anything in it answers for itself."""
    kind = type(value)
    if kind is dict:
        value = list(cast("dict[object, object]", value).values())
    elif kind not in _CONTAINERS:
        return (value,)
    parts = cast("Collection[object]", value)
    return () if _PLAIN.issuperset(map(type, parts)) else parts
