"""Whether the author of a Python test says that it fails."""

from __future__ import annotations

import ast

__all__ = ["expects_failure"]

_WORDS = ("xfail", "expectedFailure")


def expects_failure(text: str, inner: tuple[str, ...]) -> bool:
    """Look for an ``xfail`` or ``expectedFailure`` on a test, in it, or on what it is in.

    Any code that a test calls can end it as xfailed, so a runner's word is not enough. A text
    that is not Python says nothing.

    Args:
        text: The test file, as its author wrote it.
        inner: Classes and function that lead to the test.
    """
    if not any(word in text for word in _WORDS):
        return False
    try:
        level: ast.AST = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    for name in inner:
        if _says_so(_marks(level)):
            return True
        below = [
            node
            for node in ast.iter_child_nodes(level)
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name == name
        ]
        if not below:
            return False
        level = below[-1]
    return _says_so([level])


def _marks(level: ast.AST) -> list[ast.AST]:
    """What marks everything in a module or class: its decorators and ``pytestmark``."""
    if not isinstance(level, ast.ClassDef | ast.Module):
        return []
    decorators = level.decorator_list if isinstance(level, ast.ClassDef) else []
    assigned = [
        node
        for node in level.body
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)
    ]
    return [*decorators, *assigned]


def _says_so(places: list[ast.AST]) -> bool:
    return any(
        (isinstance(node, ast.Attribute) and node.attr in _WORDS)
        or (isinstance(node, ast.Name) and node.id in _WORDS)
        for place in places
        for node in ast.walk(place)
    )
