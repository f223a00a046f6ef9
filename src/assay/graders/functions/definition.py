"""Find the text that a function or class was made from, and make sure that it still is."""

from __future__ import annotations

import ast
import linecache
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType

from assay.errors import InputError

__all__ = ["Definition", "definition_of", "imports_of"]

_FEATURES = 0x1FF0000  # every CO_FUTURE_ flag
_REWRITTEN = "@py"  # pytest rewrites the asserts of test files, under names that begin so

_Statement = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Definition:
    """The statement that defines a function or a class.

    Attributes:
        name: What the statement calls it.
        text: The statement, with its decorators, from the left margin on.
        decorators: The decorators, as they are written.
        line: Its first line in the file.
    """

    name: str
    text: str
    decorators: tuple[str, ...]
    line: int


def definition_of(found: FunctionType | type) -> Definition:
    """The definition of a function or a class at the top level of a file or notebook cell.

    Raises:
        InputError: If its source is not to be had, or has been changed since it was loaded.
    """
    file, codes = _origin(found)
    lines = _lines(file)
    if not lines:
        raise InputError(
            f"the source of {found.__name__!r} cannot be found",
            hint="define it in a .py file or a notebook cell, or give the source as text",
        )
    whole = "".join(lines)
    starts = _starts(whole, found.__name__, codes)
    for statement in _statements(_tree(whole).body) if starts else ():
        first = min([statement.lineno, *(d.lineno for d in statement.decorator_list)])
        if statement.name == found.__name__ and starts & {first, statement.lineno}:
            text = textwrap.dedent("".join(lines[first - 1 : statement.end_lineno])).rstrip()
            decorators = tuple(ast.unparse(d) for d in statement.decorator_list)
            return Definition(found.__name__, f"{text}\n", decorators, first)
    raise InputError(
        f"{found.__name__!r} is not what now stands at the top level of {file}",
        hint="the file was changed after it was loaded: load it again",
    )


def imports_of(found: FunctionType | type, name: str) -> list[tuple[str, str, str]]:
    """The imports in a definition's file that give a name its meaning.

    Returns:
        For each the statement for just that name, the module, and what is taken from it (empty
        for the module itself); relative imports are left out.
    """
    file, _ = _origin(found)
    imports: list[tuple[str, str, str]] = []
    for node in ast.walk(_tree("".join(_lines(file)))):
        if isinstance(node, ast.Import):
            aliases = [a for a in node.names if (a.asname or a.name.partition(".")[0]) == name]
            imports += [(ast.unparse(ast.Import([a])), a.name, "") for a in aliases]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            aliases = [a for a in node.names if (a.asname or a.name) == name]
            lines = [ast.unparse(ast.ImportFrom(node.module, [a], 0)) for a in aliases]
            imports += [(t, node.module, a.name) for t, a in zip(lines, aliases, strict=True)]
    return imports


def _origin(found: FunctionType | type) -> tuple[str, list[CodeType]]:
    """The file that something was defined in, and the code that must be the same there."""
    if isinstance(found, FunctionType):
        return found.__code__.co_filename, [found.__code__]
    # Not the methods that a decorator or a base class made: their code stands in no file of ours.
    methods = [
        value.__code__
        for value in vars(found).values()
        if isinstance(value, FunctionType)
        and value.__code__.co_qualname == f"{found.__qualname__}.{value.__code__.co_name}"
        and _lines(value.__code__.co_filename)
    ]
    if methods:
        return methods[0].co_filename, methods
    return getattr(sys.modules.get(found.__module__), "__file__", None) or "", []


def _lines(file: str) -> list[str]:
    linecache.checkcache(file)
    return linecache.getlines(file)


@lru_cache(maxsize=8)
def _tree(text: str) -> ast.Module:
    return ast.parse(text)


def _statements(body: list[ast.stmt]) -> Iterator[_Statement]:
    """Definitions at the top level, also in its ``if``, ``try`` and ``with`` blocks."""
    for node in body:
        if isinstance(node, _Statement):
            yield node
        elif isinstance(node, ast.If | ast.Try | ast.With):
            blocks = [node.body, getattr(node, "orelse", []), getattr(node, "finalbody", [])]
            for block in [*blocks, *(h.body for h in getattr(node, "handlers", []))]:
                yield from _statements(block)


def _starts(whole: str, name: str, codes: list[CodeType]) -> set[int]:
    """The lines of a file on which definitions of that name begin that give the very same code.

    The file is compiled whole: what a call becomes depends on which names are imported.
    """
    try:
        module = _compiled(whole, codes[0].co_flags & _FEATURES if codes else 0)
    except SyntaxError:  # the file is being edited; what was loaded is not in it any more
        return set()
    made = [code for code in _constants(module) if code.co_name == name]
    return {code.co_firstlineno for code in made if _is_all(code, codes)}


@lru_cache(maxsize=8)
def _compiled(text: str, features: int) -> CodeType:
    return compile(text, "grade.py", "exec", features, dont_inherit=True)


def _is_all(made: CodeType, codes: list[CodeType]) -> bool:
    inner = {code.co_name: code for code in [*_constants(made), made]}
    return all(code.co_name in inner and _same(inner[code.co_name], code) for code in codes)


def _same(one: CodeType, other: CodeType) -> bool:
    if any(name.startswith(_REWRITTEN) for name in (*other.co_varnames, *other.co_names)):
        return True
    if (one.co_code, one.co_names, one.co_varnames) != (
        other.co_code,
        other.co_names,
        other.co_varnames,
    ):
        return False
    pairs = zip(one.co_consts, other.co_consts, strict=False)
    return len(one.co_consts) == len(other.co_consts) and all(
        _same(a, b)
        if isinstance(a, CodeType) and isinstance(b, CodeType)
        else type(a) is type(b) and repr(a) == repr(b)
        for a, b in pairs
    )


def _constants(code: CodeType) -> list[CodeType]:
    constants: tuple[object, ...] = code.co_consts
    return [constant for constant in constants if isinstance(constant, CodeType)]
