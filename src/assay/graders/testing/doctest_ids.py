"""Which doctests a hidden Python file holds, read from its docstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

__all__ = ["Doctest", "read_doctests"]

_NEVER_RUN = frozenset({"conftest", "setup", "__main__"})
_KEEPING = frozenset({"property", "staticmethod", "classmethod"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctest:
    """The examples of one docstring.

    Attributes:
        name: As pytest names it, less the packages that the module is in: ``module.Class.method``.
        sure: Whether doctest finds it in any case.
        skipped: Whether its author skips every example.
    """

    name: str
    sure: bool
    skipped: bool


def read_doctests(path: str, tree: ast.Module) -> list[Doctest]:
    """Read the doctests of a file.

    Args:
        path: In the workspace.
        tree: The parsed source.
    """
    place = PurePosixPath(path)
    module = place.parent.name if place.stem == "__init__" else place.stem
    if module in _NEVER_RUN or not module:
        return []
    return list(_of(tree, module, sure=True))


def _of(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
    name: str,
    *,
    sure: bool,
) -> Iterator[Doctest]:
    import doctest

    try:
        examples = doctest.DocTestParser().get_examples(ast.get_docstring(node, clean=False) or "")
    except ValueError:  # malformed, which doctest will say
        examples = []
    if examples:
        skipped = all(one.options.get(doctest.SKIP, False) for one in examples)
        yield Doctest(name=name, sure=sure, skipped=skipped)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    for inner in node.body:
        if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            plain = all(
                isinstance(one, ast.Name) and one.id in _KEEPING for one in inner.decorator_list
            )
            yield from _of(inner, f"{name}.{inner.name}", sure=sure and plain)
