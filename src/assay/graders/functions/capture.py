"""`source_of`: a function of a running program as source that stands by itself.

A function on its own seldom runs: it uses imports, constants and other functions of its module.
They are found by what their names mean while the program runs, and written before it.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import math
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import cast

from assay.errors import InputError
from assay.graders.functions.reading import global_uses

_FEATURES = 0x1FF0000  # every CO_FUTURE_ flag
_REWRITTEN = "@py"  # pytest rewrites the asserts of test files, under names that begin so

_Statement = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class DefiningStatement:
    """The statement that defines a function or a class."""

    name: str
    text: str
    decorators: tuple[str, ...]
    line: int


def definition_of(found: FunctionType | type) -> DefiningStatement:
    """The definition of a function or a class at the top level of a file or notebook cell."""
    file, codes = _origin(found)
    lines = _lines(file)
    whole = "".join(lines)
    starts = _starts(whole, found.__name__, codes)
    for statement in _statements(_tree(whole).body) if starts else ():
        first = min([statement.lineno, *(d.lineno for d in statement.decorator_list)])
        if statement.name == found.__name__ and starts & {first, statement.lineno}:
            text = textwrap.dedent("".join(lines[first - 1 : statement.end_lineno])).rstrip()
            decorators = tuple(ast.unparse(d) for d in statement.decorator_list)
            return DefiningStatement(found.__name__, f"{text}\n", decorators, first)
    # What stands in no file has no file that was changed: since Python 3.13 the text of `python -c`
    # can be had under the name that every text for `exec` has.
    if not lines or file == "<string>":
        raise InputError(
            f"the source of {found.__name__!r} cannot be found",
            hint="define it in a .py file or a notebook cell, or give the source as text",
        )
    raise InputError(
        f"{found.__name__!r} is not what now stands at the top level of {file}",
        hint="the file was changed after it was loaded: load it again",
    )


def imports_of(found: FunctionType | type, name: str) -> list[tuple[str, str, str]]:
    """The imports in a definition's file that give a name its meaning."""
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


_GIVEN = ("StringThread", "StringTurn")
_OURS = ("adaptive_harmony", "assay")
_FUTURE = "from __future__ import annotations\n"
_DEEPEST = 50


def source_of(function: object) -> str:
    """Turn a function into source that can be stored and run elsewhere.

    Its imports from the standard library are taken along, constants that are plain data (with the
    values that they have now), regular expressions, and the functions and classes that it uses,
    with all that they use in turn. It is renamed to ``grade``; its own name keeps its meaning.

    Raises:
        InputError: For what is not such a function, or uses something that cannot be taken along;
            every such name is listed with the reason.
    """
    entry = _plain_function(function)
    definition = definition_of(entry)
    if definition.decorators:
        raise _refusal(entry.__name__, f"it is decorated with @{definition.decorators[0]:.80}")
    return _Capture(entry, definition).text()


def _refusal(name: str, reason: str, hint: str = "") -> InputError:
    hint = hint or "write 'async def grade(thread): ...' at the top level of a file or cell"
    return InputError(f"the source of {name} cannot be taken: {reason}", hint=hint)


def _plain_function(function: object) -> FunctionType:
    """Refuse everything but an ``async def`` at the top level."""
    name = getattr(function, "__name__", type(function).__name__)
    if isinstance(function, functools.partial):
        raise _refusal("a functools.partial", "it is not a function of its own")
    if inspect.ismethod(function):
        raise _refusal(name, "it is a method")
    if isinstance(function, type) or not isinstance(function, FunctionType):
        kind = "a class" if isinstance(function, type) else "not a function but an object"
        raise _refusal(name, f"it is {kind}")
    if name == "<lambda>":
        raise _refusal("a lambda", "a lambda has no statement of its own")
    if hasattr(function, "__wrapped__"):
        raise _refusal(name, "it is decorated")
    if function.__code__.co_freevars:
        names = ", ".join(function.__code__.co_freevars)
        raise _refusal(name, f"it is a closure over {names}")
    if "<locals>" in function.__qualname__:
        raise _refusal(name, "it is defined inside another function")
    if "." in function.__qualname__:
        raise _refusal(name, "it is defined in a class")
    if inspect.isasyncgenfunction(function):
        raise _refusal(name, "it is a generator: it has a 'yield'")
    if not inspect.iscoroutinefunction(function):
        raise _refusal(name, "it must be 'async def'", "write 'async' before 'def'")
    return function


class _Capture:
    """One function and what it needs, as it is put together."""

    def __init__(self, entry: FunctionType, definition: DefiningStatement) -> None:
        self._entry = entry
        self._definition = definition
        self._meant: dict[str, object] = {"grade": entry}
        self._imports: dict[str, None] = {}
        self._constants: list[str] = []
        self._definitions: list[str] = []
        self._aliases: list[str] = []
        self._problems: list[str] = []

    def text(self) -> str:
        """The whole source."""
        own = self._definition
        self._use_names(own, self._entry)
        if self._problems:
            raise _refusal(
                self._entry.__name__,
                "; ".join(self._problems),
                "put what it needs inside the function, or give the source as text",
            )
        head = re.sub(r"(async[\s\\]+def[\s\\]+)\w+", r"\1grade", own.text, count=1)
        parts = [_FUTURE, "".join(f"{line}\n" for line in sorted(self._imports))]
        parts += ["".join(f"{line}\n" for line in self._constants)]
        blocks = [*self._definitions, head, "".join(f"{line}\n" for line in self._aliases)]
        return "\n".join(p for p in parts if p) + "".join(f"\n\n{b}" for b in blocks if b)

    def _use_names(self, definition: DefiningStatement, owner: FunctionType | type) -> None:
        """Take along what a definition uses."""
        if isinstance(owner, FunctionType):
            scope = owner.__globals__
        else:
            scope = vars(sys.modules[owner.__module__])
        for name in global_uses(compile(_FUTURE + definition.text, "grade.py", "exec")):
            self._use(name, scope, owner)

    def _use(self, name: str, scope: dict[str, object], owner: FunctionType | type) -> None:
        is_module_name = name.startswith("__") and name.endswith("__")
        if is_module_name or (name not in scope and hasattr(builtins, name)):
            return
        if name not in scope:
            if name not in _GIVEN:
                self._problems.append(f"{name!r} is not defined")
            return
        value = scope[name]
        if name in self._meant:
            if self._meant[name] is not value:
                self._problems.append(f"{name!r} has two meanings")
            return
        self._meant[name] = value
        if value is self._entry:
            self._aliases.append(f"{name} = grade")
        elif name not in _GIVEN or getattr(value, "__name__", "") != name:
            self._take(name, value, owner)

    def _take(self, name: str, value: object, owner: FunctionType | type) -> None:
        lines = [line for line, home, what in imports_of(owner, name) if _gives(home, what, value)]
        written = _written(value)
        if lines:
            self._imports.update(dict.fromkeys(lines))
        elif isinstance(value, ModuleType):
            self._take_module(name, value)
        elif isinstance(value, re.Pattern):
            self._take_pattern(name, cast("re.Pattern[str]", value))
        elif written is not None:
            self._constants.append(f"{name} = {written}")
        elif line := _standard(name, value):
            self._imports[line] = None
        else:
            self._take_definition(name, value)

    def _take_module(self, name: str, module: ModuleType) -> None:
        full = module.__name__
        if full.partition(".")[0] in sys.stdlib_module_names:
            self._imports[f"import {full}" if full == name else f"import {full} as {name}"] = None
        elif _is_installed(module):
            self._problems.append(f"{name!r} is the package {full}, which is not in the sandbox")
        else:
            fix = f"import what is used of it by name: from {full} import ..."
            self._problems.append(f"{name!r} is a module of yours ({fix})")

    def _take_pattern(self, name: str, pattern: re.Pattern[str]) -> None:
        if self._meant.setdefault("re", re) is not re:
            self._problems.append(f"{name!r} needs 're', which means something else here")
            return
        self._imports["import re"] = None
        flags = pattern.flags & ~re.UNICODE  # which is there for every text, and refused for bytes
        self._constants.append(f"{name} = re.compile({pattern.pattern!r}, {int(flags)})")

    def _take_definition(self, name: str, value: object) -> None:
        found: object = value if isinstance(value, type) else inspect.unwrap(cast("type", value))
        if not isinstance(found, FunctionType | type):
            kind = type(value).__name__
            self._problems.append(f"{name!r} is a {kind}, which is not plain data")
            return
        if _is_installed(sys.modules.get(found.__module__)):
            root = found.__module__.partition(".")[0]
            self._problems.append(f"{name!r} is of the package {root}, which is not in the sandbox")
            return
        if isinstance(found, FunctionType) and (
            found.__code__.co_freevars or "." in found.__qualname__
        ):
            self._problems.append(f"{name!r} is a function inside something else")
            return
        try:
            definition = definition_of(found)
        except InputError as error:
            self._problems.append(f"{name!r}: {error.message}")
            return
        self._use_names(definition, found)
        self._definitions.append(definition.text)
        if definition.name != name:
            if self._meant.setdefault(definition.name, value) is not value:
                self._problems.append(f"{definition.name!r} has two meanings")
            self._definitions.append(f"{name} = {definition.name}\n")


def _gives(module: str, attribute: str, value: object) -> bool:
    """Whether an import works in the sandbox and gives what the name means here."""
    root = module.partition(".")[0]
    here = sys.modules.get(module)
    if root in _OURS:
        return attribute in _GIVEN
    if root not in sys.stdlib_module_names:
        return False
    if attribute:
        return getattr(here, attribute, None) is value
    return value is here or value is sys.modules.get(root)


def _is_installed(module: ModuleType | None) -> bool:
    """Whether a module is of a package that somebody else wrote, or of assay."""
    file = getattr(module, "__file__", None) or ""
    name = module.__name__.partition(".")[0] if module is not None else ""
    return name in _OURS or "site-packages" in file or "dist-packages" in file


def _standard(name: str, value: object) -> str:
    """The import of something of the standard library that a notebook's other cell imported."""
    home, attribute = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not (isinstance(home, str) and isinstance(attribute, str)):
        return ""
    if not _gives(home, attribute, value):
        return ""
    line = f"from {home} import {attribute}"
    return line if attribute == name else f"{line} as {name}"


def _written(value: object, depth: int = 0) -> str | None:  # noqa: PLR0911 - one return per kind
    """Plain data as an expression; None for anything else."""
    if depth > _DEEPEST:
        return None
    if value is None or type(value) in (bool, int, str, bytes):
        return repr(value)
    if type(value) is float:
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if type(value) is dict:
        entries = cast("dict[object, object]", value)
        keys = [_written(key, depth + 1) for key in entries]
        items = [_written(item, depth + 1) for item in entries.values()]
        if None in keys or None in items:
            return None
        return "{" + ", ".join(f"{k}: {v}" for k, v in zip(keys, items, strict=True)) + "}"
    if type(value) not in (list, tuple, set, frozenset):
        return None
    written = [_written(item, depth + 1) for item in cast("list[object]", value)]
    inside = [text for text in written if text is not None]
    if len(inside) < len(written):
        return None
    if isinstance(value, list):
        return f"[{', '.join(inside)}]"
    if isinstance(value, tuple):
        return f"({', '.join(inside)}{',' if len(inside) == 1 else ''})"
    name = type(value).__name__
    return f"{name}([{', '.join(sorted(inside))}])"
