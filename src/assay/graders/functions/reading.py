"""How a source is read: its encoding, what its names refer to, and where things stand in it.

A source is stored, sent and hashed as UTF-8 text. A byte order mark at its beginning says nothing
else, so it is dropped, of a string as of a file. A coding line that names another encoding would
have Python read another program from the same bytes, so it is refused. Names are read off the byte
code, because the compiler has already settled there what each refers to, and which annotations are
evaluated at all. Standard library only: this file also runs in the sandbox.
"""

from __future__ import annotations

import ast
import codecs
import contextlib
import dis
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from types import CodeType
from typing import TypeAlias

MARK = "\ufeff"
_CODING = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(r"[ \t\f]*(?:#.*)?$")
_LINE_END = re.compile(r"\r\n|\r|\n")


def without_mark(text: str) -> str:
    """The text without a byte order mark at its beginning."""
    return text.removeprefix(MARK)


def foreign_coding(text: str) -> tuple[int, str] | None:
    """The line and the name of an encoding that is not UTF-8, where a coding line names one.

    Python looks for it (PEP 263) in the first line, and in the second if the first is blank or a
    comment.
    """
    for number, line in enumerate(_LINE_END.split(text, maxsplit=2)[:2], 1):
        if found := _CODING.match(line):
            return None if _is_utf8(found[1], text) else (number, found[1])
        if not _BLANK.match(line):
            return None
    return None


def _is_utf8(name: str, text: str) -> bool:
    """Whether a text is the same in an encoding of this name as in UTF-8."""
    try:
        known = codecs.lookup(name).name
    except LookupError:
        return False
    return known in ("utf-8", "utf-8-sig") or (known == "ascii" and text.isascii())


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

    Returns ``grade``: of the function. ``loads``: the first that does something when the file is
    loaded, beyond imports, definitions and plain values; the function's if there is none.
    ``returns``: of its only ``return``, else of the function. ``nothing``: of the first ``return``
    without a value, else of the function.
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


def deepest(tree: ast.Module) -> tuple[int, int]:
    """How many levels a source has, and the line of what is nested most deeply."""
    line, depth, level = 1, 0, list[ast.AST]([tree])
    while level:  # level by level: recursion is what deep sources attack
        line = next((n.lineno for n in level if isinstance(n, ast.stmt | ast.expr)), line)
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
    return depth, line


def longest(text: str) -> int:
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


_LOADS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_OPTIMIZED = 1  # CO_OPTIMIZED: the code of a function, whose own names are not globals
_LAZY = "__annotate__"  # evaluated only if somebody asks for the annotations (Python 3.14)


def global_uses(code: CodeType) -> dict[str, int]:
    """The global or built-in names that code reads, each with the first line it is read on."""
    found: dict[str, int] = {}
    _read(code, found, own=frozenset())
    return found


def _read(code: CodeType, found: dict[str, int], own: frozenset[str]) -> None:
    for step in dis.get_instructions(code):
        if step.opname in _LOADS and step.argval not in own:
            line = (step.positions.lineno if step.positions else None) or code.co_firstlineno
            found[step.argval] = min(line, found.get(step.argval, line))
    for inner in _inner(code):
        is_class = not inner.co_flags & _OPTIMIZED
        _read(inner, found, frozenset(_stored(inner, "STORE_NAME")) if is_class else frozenset())


def global_stores(code: CodeType) -> set[str]:
    """The global names that a module's code sets: at its top level, or declared ``global``."""
    found = set(_stored(code, "STORE_NAME"))
    waiting = [code]
    while waiting:
        here = waiting.pop()
        found.update(_stored(here, "STORE_GLOBAL"))
        waiting.extend(_inner(here))
    return found


def _stored(code: CodeType, opname: str) -> list[str]:
    return [step.argval for step in dis.get_instructions(code) if step.opname == opname]


def _inner(code: CodeType) -> list[CodeType]:
    """The functions and classes that code makes; those of branches that never run are not there."""
    made = [step.argval for step in dis.get_instructions(code)]
    return [c for c in made if isinstance(c, CodeType) and c.co_name != _LAZY]
