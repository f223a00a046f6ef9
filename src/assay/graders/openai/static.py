"""What can be said of a python grader's source without running it.

Standard library only, and never called in our own process: Python's parser takes minutes over some
texts and gigabytes over others, so this runs in the sandbox (`assay.graders.openai.python`).
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator

_IMPORTERS = ("__import__", "import_module")


def imported_packages(tree: ast.AST) -> tuple[str, ...]:
    """Top-level names that a syntax tree imports anywhere, sorted.

    ``__import__("x")`` and ``import_module("x")`` are found where the name is written out.
    """
    return tuple(sorted({name.partition(".")[0] for node in ast.walk(tree) for name in _of(node)}))


def foreign_imports(tree: ast.AST) -> tuple[str, ...]:
    """Those of `imported_packages` that are not in the standard library."""
    return tuple(name for name in imported_packages(tree) if name not in sys.stdlib_module_names)


def _of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
    elif isinstance(node, ast.Call) and node.args:
        called, first = node.func, node.args[0]
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in _IMPORTERS and isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield first.value


_MOST, _LONGEST = 50, 100  # what is said must fit into what is kept of a call's output


class _FaultError(Exception):
    """What is wrong."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


def examine(source: str) -> dict[str, object]:
    """Check a source."""
    try:
        tree = _parsed(source)
        _check_signature(tree)
    except _FaultError as fault:
        return {"fault": fault.message[:1000], "hint": fault.hint, "foreign": []}
    foreign = [name[:_LONGEST] for name in foreign_imports(tree)[:_MOST]]
    return {"fault": "", "hint": "", "foreign": foreign}


def _parsed(source: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except SyntaxError as error:
        raise _FaultError(f"is not Python: {error.msg} (line {error.lineno})") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise _FaultError(f"is not Python: {error or type(error).__name__}") from None


def _check_signature(tree: ast.Module) -> None:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [one for one in tree.body if isinstance(one, kinds) and one.name == "grade"]
    if not found:
        raise _FaultError("does not define grade()", "def grade(sample, item): ...")
    taken = found[-1].args
    if (count := len(taken.posonlyargs) + len(taken.args)) != 2:
        message = f"grade() takes {count} positional parameters"
        raise _FaultError(message, "exactly two: def grade(sample, item): ...")
