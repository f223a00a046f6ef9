"""Find the tests that a benchmark names among those that a runner reports.

SWE-bench's lists were read from console logs. Most of their names are the runner's own; some are
not: parametrised names were cut at the first space, a ``- message`` was left behind, and unittest
printed ``test_x (module.Class)``; others hold a time or a directory of the machine that wrote the
list. A name is only ever taken for a test that it can mean; where it
can mean several, it stands for all of them (cut names) or for none.
"""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from assay.errors import InputError
from assay.graders.stubs.python import parse_python
from assay.scoring.json_safe import Json

_WORDS = ("xfail", "expectedFailure")


def expects_failure(text: str, inner: tuple[str, ...]) -> bool:
    """Look for an ``xfail`` or ``expectedFailure`` on a test, in it, or on what it is in.

    Any code that a test calls can end it as xfailed, so a runner's word is not enough. A text
    that is not Python says nothing.
    """
    if not any(word in text for word in _WORDS):
        return False
    tree = parse_python(text)
    if isinstance(tree, str):
        return False
    level: ast.AST = tree
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


_NODE = re.compile(r"[^\s:\[\]]+\.py(::\w+)*::\w+(\[.*\])?")
_IN_CLASS = re.compile(r"(\w+) \(([\w.]+)\)(?:\s.*)?")
_DOTTED = re.compile(r"\w+(\.\w+)+")
_MOST_COMPARED = 5_000
_CHANGING = re.compile(
    r"0x[0-9a-fA-F]+"  # an address
    r"|(?<![\w/])(?:/[^/\s\]:]+){2,}"  # an absolute path
    r"|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?|\d\d:\d\d:\d\d(?:\.\d+)?"
)
"""What in the values of a test's id is another in each run, or on each machine."""


def read_ids(given: object, *, what: str) -> tuple[str, ...]:
    """Read a list of test names: a list, or the text of one as JSON or as Python writes it."""
    items = _parsed(given, what) if isinstance(given, str) else given
    if items is None:
        return ()
    if not isinstance(items, list | tuple):
        raise InputError(f"{what} is a list of test ids, or its text in JSON")
    names: dict[str, None] = {}
    for item in items:  # pyright: ignore[reportUnknownVariableType] - each is checked in the next line
        if not isinstance(item, str) or not item.strip() or re.search(r"[\0\r\n]", item):
            raise InputError(f"{what}: {item!r} is not a test id")
        if item.startswith("-"):
            raise InputError(f"{what}: {item!r} would be an option of the test runner")
        names[item.strip()] = None
    return tuple(names)


def _parsed(text: str, what: str) -> object:
    for parse in (json.loads, ast.literal_eval):
        try:
            parsed: Json = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(parsed, list):
            return parsed
    raise InputError(
        f"{what} is not a list: {text[:80]!r}", hint='write ["tests/test_a.py::test_x"]'
    )


def is_node_id(name: str) -> bool:
    """Whether a name is one that pytest takes on its command line, in full."""
    return _NODE.fullmatch(name) is not None


def module_of(name: str) -> str:
    """The dotted module path, and perhaps a class, that a unittest name has; else empty."""
    if "::" in name:
        return ""
    return ".".join(_parts(name)[:-1])


def resolve_ids(wanted: Iterable[str], seen: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Find what each name means."""
    index = _Index(seen)
    return {name: index.find(name) for name in wanted}


def nearest_ids(name: str, seen: Collection[str]) -> list[str]:
    """Up to three reported ids that look like a name that was not found."""
    import difflib

    few = sorted(seen)[:_MOST_COMPARED]
    return difflib.get_close_matches(name, few, n=3, cutoff=0.5)


class _Index:
    """Reported ids, found by what the benchmarks' names keep of them."""

    def __init__(self, seen: Collection[str]) -> None:
        self._seen = frozenset(seen)
        self._by_start: dict[str, list[str]] = defaultdict(list)
        self._by_test: dict[str, list[tuple[tuple[str, ...], str]]] = defaultdict(list)
        self._by_lasting: dict[str, list[str]] = defaultdict(list)
        for name in sorted(self._seen):
            if " " in name and "[" in name:
                self._by_start[name.partition(" ")[0]].append(name)
            if (lasting := _lasting(name)) != name:
                self._by_lasting[lasting].append(name)
            if parts := _parts(name):
                self._by_test[parts[-1]].append((parts, name))

    def find(self, name: str) -> tuple[str, ...]:
        if name in self._seen:
            return (name,)
        if "[" in name and not name.endswith("]") and name in self._by_start:
            return tuple(self._by_start[name])
        for bare in _without_message(name):
            if bare in self._seen:
                return (bare,)
        if (lasting := _lasting(name)) in self._by_lasting:
            return tuple(self._by_lasting[lasting])
        return self._find_elsewhere(name)

    def _find_elsewhere(self, name: str) -> tuple[str, ...]:
        """The one test whose path ends like the name's, or the other way round."""
        parts = _parts(name)
        if len(parts) < 2:
            return ()
        fitting = [
            (found, seen)
            for found, seen in self._by_test.get(parts[-1], ())
            if len(found) >= 2 and _ends_alike(parts, found)
        ]
        same = [seen for found, seen in fitting if found == parts]
        chosen = same or [seen for _, seen in fitting]
        return (chosen[0],) if len(chosen) == 1 else ()


def _lasting(name: str) -> str:
    """A name without the times, addresses and absolute paths among its values."""
    base, bracket, values = name.partition("[")
    return f"{base}{bracket}{_CHANGING.sub('*', values)}"


def _without_message(name: str) -> Iterable[str]:
    pieces = name.split(" - ")
    return (" - ".join(pieces[:count]) for count in range(len(pieces) - 1, 0, -1))


def _parts(name: str) -> tuple[str, ...]:
    """Packages, module, classes and test of a name, whichever runner wrote it."""
    if "::" in name:
        base, bracket, values = name.partition("[")
        file, *inner = base.removeprefix("./").split("::")
        parts = [*file.removesuffix(".py").split("/"), *inner]
        return (*parts[:-1], f"{parts[-1]}{bracket}{values}")
    if said := _IN_CLASS.fullmatch(name):
        test, place = said[1], said[2].split(".")
        # Since Python 3.11 the place repeats the name of the test.
        return (*(place[:-1] if place[-1] == test and len(place) > 1 else place), test)
    return tuple(name.split(".")) if _DOTTED.fullmatch(name) else ()


def _ends_alike(one: Sequence[str], other: Sequence[str]) -> bool:
    shorter = min(len(one), len(other))
    return tuple(one[-shorter:]) == tuple(other[-shorter:])
