"""Where in a source something stands: what gives a name a meaning, and which lines to look at.

Standard library only: this file also runs in the sandbox.
"""

from __future__ import annotations

import ast
import contextlib
import io
import tokenize
from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

__all__ = ["Place", "bindings", "deepest", "guilty_lines", "own_nodes"]

Place: TypeAlias = "ast.stmt | ast.expr | ast.excepthandler | ast.pattern"
"""A part of a source that has a line."""

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_BETWEEN = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)


def bindings(tree: ast.Module, name: str) -> Iterator[Place]:
    """What gives a global name a meaning, or takes it away, in the order of the file.

    It is the statement at the top level where that says enough; else the part of it, such as an
    ``except ... as`` or a pattern of ``match``; and ``global`` in a function or class.
    """
    for statement in tree.body:
        if isinstance(statement, (*_DEFINITIONS, *_IMPORTS, ast.Assign, ast.AnnAssign)):
            if name in _bound(statement) or _stores(statement, name):
                yield statement
        else:
            yield from _inside(statement, name)
        yield from (
            node
            for node in ast.walk(statement)
            if isinstance(node, ast.Global) and name in node.names
        )


def _inside(statement: ast.AST, name: str) -> Iterator[Place]:
    """The parts of a statement that set a name at its own level: not in functions inside it."""
    waiting = [statement]
    while waiting:
        node = waiting.pop()
        if name in _bound(node):
            assert isinstance(node, ast.stmt | ast.expr | ast.excepthandler | ast.pattern)
            yield node
        if not isinstance(node, (*_DEFINITIONS, ast.Lambda)):
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def _stores(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, (*_DEFINITIONS, *_IMPORTS)):
        return False
    return next(_inside(statement, name), None) is not None


def _bound(node: ast.AST) -> list[str | None]:
    """The names that one node by itself sets or deletes."""
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, _IMPORTS):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.MatchMapping):
        return [node.rest]
    if isinstance(node, (*_DEFINITIONS, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [node.name]
    return []


def own_nodes(function: ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """What stands in a function, but not in a function or class inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_DEFINITIONS, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))


def guilty_lines(tree: ast.Module, function: ast.AsyncFunctionDef) -> dict[str, int]:
    """Which lines to look at, should a run go wrong.

    Returns:
        ``grade``: of the function. ``loads``: the first that does something when the file is
        loaded, beyond imports, definitions and plain values; the function's if there is none.
        ``returns``: of its only ``return``, else of the function. ``nothing``: of the first
        ``return`` without a value, else of the function.
    """
    returns = [node for node in own_nodes(function) if isinstance(node, ast.Return)]
    lines = sorted(node.lineno for node in returns)
    empty = sorted(node.lineno for node in returns if _is_none(node.value))
    acting = (statement.lineno for statement in tree.body if _acts(statement))
    return {
        "grade": function.lineno,
        "loads": next(acting, function.lineno),
        "returns": lines[0] if len(lines) == 1 else function.lineno,
        "nothing": empty[0] if empty else function.lineno,
    }


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _acts(statement: ast.stmt) -> bool:
    """Whether a statement outside of functions computes something."""
    if isinstance(statement, (*_IMPORTS, ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    if isinstance(statement, ast.ClassDef):
        return any(_acts(inner) for inner in statement.body)
    busy = (ast.Call, ast.BinOp, ast.While, ast.For, ast.comprehension)
    return any(isinstance(node, busy) for node in ast.walk(statement))


def deepest(tree: ast.Module | None, text: str) -> int:
    """The line of what is nested most deeply.

    Args:
        tree: The source as Python has read it; None where already that was too much.
        text: The source.
    """
    if tree is None:
        return _longest(text)
    line, level = 1, list[ast.AST]([tree])
    while level:  # level by level: recursion is what deep sources attack
        line = next((n.lineno for n in level if isinstance(n, ast.stmt | ast.expr)), line)
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return line


def _longest(text: str) -> int:
    """The fullest line of the statement that has the most tokens: what is deep is long."""
    longest: list[int] = []
    lines: list[int] = []  # of each token of the statement
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NEWLINE:
                longest, lines = max(longest, lines, key=len), []
            elif token.type not in _BETWEEN:
                lines.append(token.start[0])
    fullest = Counter(max(longest, lines, key=len)).most_common(1)
    return fullest[0][0] if fullest else 1
