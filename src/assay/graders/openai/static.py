"""What can be said of a python grader's source without running it.

Standard library only, and never called in our own process: Python's parser takes minutes over some
texts and gigabytes over others, so this runs in the sandbox (`assay.graders.openai.source`), where
it finds `imports` beside it.
"""

from __future__ import annotations

import ast
import warnings

from assay.graders.openai.imports import foreign_imports

__all__ = ["examine"]

_MOST, _LONGEST = 50, 100  # what is said must fit into what is kept of a call's output


class _FaultError(Exception):
    """What is wrong."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


def examine(source: str) -> dict[str, object]:
    """Check a source.

    Returns:
        Plain JSON: ``fault`` (what is wrong, or empty), ``hint`` (the mend, or empty) and
        ``foreign`` (packages it imports that are not in the standard library, sorted).
    """
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
    found = [node for node in tree.body if _is_grade(node)]
    if not found:
        raise _FaultError("does not define grade()", "def grade(sample, item): ...")
    if (count := _positional(found[-1])) != 2:
        message = f"grade() takes {count} positional parameters"
        raise _FaultError(message, "exactly two: def grade(sample, item): ...")


def _is_grade(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "grade"


def _positional(node: ast.stmt) -> int:
    taken = getattr(node, "args", None)
    if not isinstance(taken, ast.arguments):
        return 0
    return len(taken.posonlyargs) + len(taken.args)
