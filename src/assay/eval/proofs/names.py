"""What the modules of a Python program name: functions, classes, constants, without their bodies.

Whoever knows what tests ask for can put something else in its place. So names are read from the
source, from the author's reference, and from hidden tests as far as they import them.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

Names: TypeAlias = "Mapping[str, Named]"

_KINDS = {
    **dict.fromkeys(("str", "bytes"), "text"),
    **dict.fromkeys(("Iterator", "Generator", "Iterable", "AsyncIterator"), "iterator"),
    **dict.fromkeys(("dict", "Mapping", "defaultdict", "OrderedDict", "Counter"), "dict"),
    **dict.fromkeys(("list", "Sequence", "sorted"), "list"),
    "tuple": "tuple",
    "set": "set",
    "bool": "truth",
}
_PREDICATES = ("is_", "has_", "can_")
_FAULTS = ("Error", "Exception", "Warning")
_Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"


@dataclass(frozen=True, slots=True)
class Named:
    """Something that a module names.

    Attributes:
        is_a: ``function``, ``class``, ``fault`` (an exception) or ``constant``.
        kind: What a function gives, or a constant is: ``text``, ``list``, ``dict``, ``tuple``,
            ``set``, ``iterator``, ``truth``; of a class its first base, of a fault one of
            Python's own; empty where that is not known.
        later: Whether a function has to be awaited.
        methods: The functions of a class; not its properties.
    """

    is_a: str
    kind: str = ""
    later: bool = False
    methods: Names = field(default_factory=dict[str, "Named"])


@lru_cache(maxsize=256)
def names_in(text: str) -> Names:
    """What a module names; nothing where it cannot be read."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[str, Named] = {}
    for name, one in _named(tree.body):
        base = found.get(one.kind) if one.is_a == "class" else None
        found[name] = base if base and base.is_a == "fault" else one
    return found


def names_asked_of(test: str, modules: Iterable[str]) -> dict[str, dict[str, Named]]:
    """By the path of a module: what a test imports from it or asks of it; told apart by spelling.

    Args:
        test: Source of the test.
        modules: Paths of the modules that it may mean.
    """
    try:
        nodes = [*ast.walk(ast.parse(test))]
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[str, dict[str, Named]] = {}
    paths = {name: path for path in modules for name in _dotted(path)}
    imported: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (path := paths.get(node.module or "")):
            names = [a.name for a in node.names if f"{node.module}.{a.name}" not in paths]
            found.setdefault(path, {}).update((name, _by_spelling(name)) for name in names)
        if isinstance(node, ast.Import | ast.ImportFrom):
            start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            imported |= {a.asname or a.name: start + a.name for a in node.names}
    for node in nodes:
        if isinstance(node, ast.Attribute):
            path = paths.get(imported.get(ast.unparse(node.value), ""))
            if path:
                found.setdefault(path, {})[node.attr] = _by_spelling(node.attr)
    return found


def _dotted(path: str) -> Iterator[str]:
    """What a module may be imported as, from whatever directory the path begins in."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    yield from (".".join(parts[n:]) for n in range(len(parts)))


def _by_spelling(name: str) -> Named:
    if name.endswith(_FAULTS):
        return Named("fault", "Exception")
    if name.isupper():
        return Named("constant")
    return Named("class") if name[:1].isupper() else Named("function", _predicate(name))


def _predicate(name: str) -> str:
    return "truth" if name.startswith(_PREDICATES) else ""


def _named(body: Iterable[ast.stmt]) -> Iterator[tuple[str, Named]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, _function(node)
        elif isinstance(node, ast.ClassDef):
            yield node.name, _class(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            yield from ((name, Named("constant", _kind(node.value))) for name in names)
        elif isinstance(node, ast.If | ast.Try):
            yield from _named(node.body)


def _function(node: _Function) -> Named:
    kind = _kind(node.returns) or _predicate(node.name)
    if any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node)):
        kind = "iterator"
    return Named("function", kind, later=isinstance(node, ast.AsyncFunctionDef))


def _class(node: ast.ClassDef) -> Named:
    base = ast.unparse(node.bases[0]) if node.bases else ""
    if base.endswith(_FAULTS) or base in ("KeyboardInterrupt", "SystemExit"):
        return Named("fault", base if hasattr(builtins, base) else "Exception")
    inside = [one for one in node.body if not _is_property(one)]
    methods = {name: one for name, one in _named(inside) if one.is_a == "function"}
    return Named("class", base, methods=methods)


def _is_property(node: ast.stmt) -> bool:
    """Whether a method is asked for as if it were a value."""
    marks = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(ast.unparse(mark).endswith(("property", ".setter")) for mark in marks)


def _kind(node: ast.expr | None) -> str:
    """What an annotation, or the value of a constant, says."""
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Name | ast.Attribute):
        return _KINDS.get(node.id if isinstance(node, ast.Name) else node.attr, "")
    return _KINDS.get(type(node).__name__.removesuffix("Comp").lower(), "")
