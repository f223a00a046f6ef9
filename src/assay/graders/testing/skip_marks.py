"""Under which conditions an author skips a test, or some of its variants, read from its marks."""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Iterator, Sequence
from itertools import product

__all__ = ["Marks", "last_name"]

_MOST_VARIANTS = 10_000
_DEEPEST = 5


class Marks:
    """Reads the marks of one hidden file.

    Args:
        tree: The file.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._stdlib = frozenset(_stdlib_imports(tree))
        self._values = dict(_assigned_once(tree))

    def conditions(self, marks: Sequence[ast.expr]) -> list[str]:
        """The conditions, as Python expressions, under each of which marks leave a test out."""
        found: list[str] = []
        for mark in map(self._resolved, marks):
            word = last_name(mark.func if isinstance(mark, ast.Call) else mark)
            if word == "skip" or (word in ("xfail", "expectedFailure") and _unconditional(mark)):
                found.append("True")
            elif word in ("skipif", "skipIf", "skipUnless") and isinstance(mark, ast.Call):
                condition = self._condition(mark)
                if condition:
                    found.append(f"not ({condition})" if word == "skipUnless" else condition)
        return found

    def variants(self, marks: Sequence[ast.expr]) -> list[tuple[str, ...]]:
        """The conditions of each variant of a parametrized test, in the order of pytest.

        Args:
            marks: Of the module, its class and the test, as they are written.

        Returns:
            One entry for each variant; nothing where no variant has conditions of its own, or the
            source does not say how many variants there are.
        """
        axes: list[list[tuple[str, ...]]] = []
        for mark in reversed([self._resolved(mark) for mark in marks]):  # the lowest comes first
            if isinstance(mark, ast.Call) and last_name(mark.func) == "parametrize":
                axis = self._axis(mark)
                if axis is None:
                    return []
                axes.append(axis)
        if math.prod(map(len, axes)) > _MOST_VARIANTS:
            return []
        found = [tuple(one for part in parts for one in part) for parts in product(*axes)]
        return found if any(found) else []

    def _axis(self, mark: ast.Call) -> list[tuple[str, ...]] | None:
        given = mark.args[1:2] or [one.value for one in mark.keywords if one.arg == "argvalues"]
        values = self._resolved(given[0]) if given else None
        if not isinstance(values, ast.List | ast.Tuple):
            return None
        if not values.elts:
            return [("True",)]  # pytest makes one variant, and skips it
        if any(isinstance(value, ast.Starred) for value in values.elts):
            return None
        return [tuple(self.conditions(self._marks_of(value))) for value in values.elts]

    def _marks_of(self, value: ast.expr) -> list[ast.expr]:
        value = self._resolved(value)
        if not isinstance(value, ast.Call) or last_name(value.func) != "param":
            return []
        marks = [self._resolved(one.value) for one in value.keywords if one.arg == "marks"]
        return [
            inner
            for mark in marks
            for inner in (mark.elts if isinstance(mark, ast.List | ast.Tuple) else (mark,))
        ]

    def _resolved(self, node: ast.expr) -> ast.expr:
        """What a name stands for, where the file says so once and for all."""
        for _ in range(_DEEPEST):
            if not isinstance(node, ast.Name) or node.id not in self._values:
                break
            node = self._values[node.id]
        return node

    def _condition(self, mark: ast.Call) -> str:
        """The condition of a skip, if it depends on nothing but the standard library."""
        given = mark.args[:1] or [word.value for word in mark.keywords if word.arg == "condition"]
        if not given:
            return ""
        condition = given[0]
        if isinstance(condition, ast.Constant) and isinstance(condition.value, str):
            try:
                condition = ast.parse(condition.value, mode="eval").body
            except (SyntaxError, ValueError):
                return ""
        names = {node.id for node in ast.walk(condition) if isinstance(node, ast.Name)}
        calls = any(isinstance(node, ast.Lambda | ast.Await) for node in ast.walk(condition))
        return ast.unparse(condition) if names <= self._stdlib and not calls else ""


def last_name(node: ast.expr) -> str:
    """The last step of a dotted name; empty for what is no name."""
    if isinstance(node, ast.Subscript):
        return last_name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _assigned_once(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    stored = [
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del)
    ]
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name) and stored.count(target.id) == 1:
                yield target.id, node.value


def _stdlib_imports(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname is None and alias.name in sys.stdlib_module_names:
                    yield alias.name


def _unconditional(mark: ast.expr) -> bool:
    if not isinstance(mark, ast.Call):
        return True
    return not mark.args and not any(word.arg == "condition" for word in mark.keywords)
