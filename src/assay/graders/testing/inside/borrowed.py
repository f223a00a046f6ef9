"""Notices that what hidden tests borrow is exchanged: functions of modules, and names of their own.

A test relies on more than its runner: on ``math.isclose``, on ``range``, on helpers beside it. All
of that is in reach of the code it tests.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import os
import sys
from operator import is_
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, NamedTuple, cast

from assay.graders.testing.inside.origins import Origins, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import FrameType

_BUILTINS = frozenset(name for name in vars(builtins) if not name.startswith("_"))
_PATCHING = frozenset({"patch", "object", "dict", "multiple", "setattr", "setitem", "spy", "stub"})
_HOOKS = ("hook", "showwarning", "formatwarning", "set_trace")
"""Ends of names that a program is meant to put functions of its own into."""

_LEFT_OUT = frozenset({"builtins", "__future__", "__main__"})
_METHODS = (FunctionType, staticmethod, classmethod, property)
_LARGEST_CONFTEST = 256 * 1024
_FULL_EVERY = 50


class Use(NamedTuple):
    """What the source of a test says of the names it uses.

    Attributes:
        modules: Modules that it imports, by their full names.
        imports: Name it gives to what it imports: the module, and the name there, if any.
        defined: Functions and classes that it defines, once.
        bound: Every name that it binds for the whole module.
        spoken: Names that it patches, or may patch.
        stars: Modules that it takes every name of; with leading dots.
    """

    modules: frozenset[str]
    imports: dict[str, tuple[str, str]]
    defined: frozenset[str]
    bound: frozenset[str]
    spoken: frozenset[str]
    stars: tuple[str, ...]


class _Held:
    """The names of one module or class, as they were."""

    __slots__ = ("first", "label", "names", "now", "values")

    def __init__(self, label: str, now: Mapping[str, object], names: Iterable[str]) -> None:
        self.label = label
        self.now = now
        self.names = tuple(names)
        self.values = [now[name] for name in self.names]
        self.first = {name: now[name] for name in self.names}

    def is_same(self) -> bool:
        return all(map(is_, self.values, map(self.now.get, self.names)))


class _Module(NamedTuple):
    """A hidden module: its functions and imports, and the built-in names that it leaves alone."""

    held: _Held
    absent: frozenset[str]
    is_test: bool


class Borrowed:
    """Compares what hidden tests borrow with what it was when it was loaded.

    Args:
        origins: Knows whose a function is.
        report: Takes a sentence about each change; once for each name.
    """

    def __init__(self, origins: Origins, report: Callable[[str], None]) -> None:
        self._origins = origins
        self._report = report
        self._wanted: set[str] = set()
        self._spoken: set[str] = set()
        self._known: dict[str, ModuleType] = {}
        self._outer: dict[str, list[_Held]] = {}
        self._hidden: dict[str, _Module] = {}
        self._kept: list[dict[str, object]] = []
        self._reported: set[str] = set()
        self._marks: dict[str, object] = {}
        self._checks = 0

    def want(self, use: Use) -> None:
        """Look after the modules that a source imports."""
        self._wanted |= use.modules - _LEFT_OUT
        self._spoken |= use.spoken
        for name in use.modules - self._known.keys():
            module = sys.modules.get(name)
            if (
                name not in _LEFT_OUT
                and type(module) is ModuleType
                and self.is_package(getattr(module, "__file__", None))
            ):
                self.note(name, module)

    def hear_conftests(self, paths: Iterable[str], root: str) -> None:
        """Learn what the ``conftest.py`` above some files may patch."""
        seen: set[str] = set()
        for path in paths:
            directory = path.rpartition(os.sep)[0]
            while directory.startswith(root) and directory not in seen:
                seen.add(directory)
                self._spoken |= _spoken_in_file(f"{directory}{os.sep}conftest.py")
                directory = directory.rpartition(os.sep)[0]

    def wants(self, name: str) -> bool:
        """Whether a module is to be noted when it is loaded."""
        return name in self._wanted and name not in self._known

    def note(self, name: str, module: ModuleType) -> None:
        """Remember a module as it is now: just loaded."""
        space, package = vars(module), name.partition(".")[0]
        found = [_Held(name, space, [key for key in space if _is_borrowed(key, space[key])])]
        for value in list(space.values()):
            if isinstance(value, type) and value.__module__.partition(".")[0] == package:
                inner = cast("Mapping[str, object]", vars(value))
                keys = [key for key, one in inner.items() if isinstance(one, _METHODS)]
                found.append(_Held(f"{name}.{value.__qualname__}", inner, keys))
        self._known[name], self._outer[name] = module, found
        if name == "pytest":
            self._marks = vars(space["mark"])

    def settle(self, path: str, space: dict[str, object], use: Use) -> None:
        """Remember the names of a hidden module, which has just been run."""
        absent = _BUILTINS - use.bound
        for star in use.stars:
            module = self._trusted_star(star, space)
            absent -= vars(module).keys() if module else set()
        for name, (source, part) in use.imports.items():
            if name in space and not self._is_right(space[name], source, part):
                self._tell(f"{name} of {path.rpartition(os.sep)[2]}")
        names = [name for name in use.defined if name in space]
        names += [
            name
            for name, (source, _) in use.imports.items()
            if name in space and self._is_sound(source)
        ]
        label = path.rpartition(os.sep)[2]
        base = label.startswith("test") or label.endswith("_test.py")
        self._hidden[path] = _Module(_Held(label, space, names), absent, base)
        self._check_module(self._hidden[path])

    def check(self, path: str = "") -> None:
        """Report what the submission changed.

        Args:
            path: Of the file whose test starts or ends; empty: every file.
        """
        self._checks += 1
        everything = not path or self._checks % _FULL_EVERY == 0
        for held in [one for several in self._outer.values() for one in several]:
            if not held.is_same():
                self._compare(held)
        for place, module in list(self._hidden.items()):
            if everything or place == path or not module.is_test:
                self._check_module(module)
        if len(self._marks) > 2:  # its own two attributes
            self._tell("pytest.mark")

    def before_star(self, frame: FrameType) -> None:
        """A hidden module is about to take every name of another."""
        self._kept.append(dict(frame.f_globals))

    def after_star(self, star: str, frame: FrameType) -> None:
        """It has taken them: those stay out that would replace built-in or imported names."""
        space = frame.f_globals
        before = self._kept.pop() if self._kept else {}
        if self._trusted_star(star, space):
            return
        for name, value in list(space.items()):
            if name not in before:
                if name in _BUILTINS:
                    del space[name]
            elif before[name] is not value and not self._is_submissions(before[name]):
                space[name] = before[name]

    def _check_module(self, module: _Module) -> None:
        space = module.held.now
        if space.get("__builtins__") is not vars(builtins):
            self._tell(f"__builtins__ of {module.held.label}")
        if not module.held.is_same():
            self._compare(module.held)
        if not module.absent.isdisjoint(space):
            for name in sorted(module.absent.intersection(space)):
                if not self._accepts(name, space[name], None):
                    self._tell(f"{name} of {module.held.label}")

    def _compare(self, held: _Held) -> None:
        for name, first in held.first.items():
            value = held.now.get(name)
            if value is not first and not self._accepts(name, value, first):
                self._tell(f"{held.label}.{name}")

    def _accepts(self, name: str, value: object, first: object) -> bool:
        """Whether a change is a test's, a plug-in's, or that of a package made for it."""
        origins = self._origins
        plain = getattr(value, "__func__", value)
        if isinstance(plain, FunctionType) and origins.is_hidden_code(plain.__code__):
            return True
        if not callable(value):  # a test may take something away
            return value is first or name in self._spoken
        if not origins.trusts_callable(value):
            return False
        if name in self._spoken:
            return True
        path = source_of(plain) or ""
        if not origins.is_package(path):
            return bool(path)
        # Any function of any package is at hand: `contextlib.suppress` for `pytest.raises`.
        return name.lower() in _written_name(plain).lower()

    def _is_right(self, value: object, source: str, part: str) -> bool:
        """Whether a name that a hidden module imported is what the module then had."""
        module = self._known.get(source)
        if module is None or not part:
            expected = self._known.get(source.partition(".")[0] if not part else source)
            return module is None or value is module or value is expected
        first = self._outer[source][0].first.get(part, value)
        return value is first or value is vars(module).get(part)

    def _is_sound(self, source: str) -> bool:
        module = self._known.get(source) or sys.modules.get(source)
        return module is not None and (
            source in self._known or self._origins.is_hidden_space(vars(module))
        )

    def _trusted_star(self, star: str, space: Mapping[str, object]) -> ModuleType | None:
        """The module of a star import, if it is not the submission's."""
        package = space.get("__package__")
        try:
            name = importlib.util.resolve_name(star, package if isinstance(package, str) else "")
        except (ImportError, ValueError):
            return None
        module = sys.modules.get(name)
        known = module is not None and self._known.get(name) is module
        hidden = type(module) is ModuleType and self._origins.is_hidden_space(vars(module))
        return module if known or hidden else None

    def _is_submissions(self, value: object) -> bool:
        path = source_of(value)
        return path is not None and self._origins.is_workspace(path)

    def is_package(self, path: str | None) -> bool:
        """Whether a file belongs to Python or an installed package; None: it is built in."""
        return path is None or self._origins.is_package(path)

    def _tell(self, what: str) -> None:
        if what not in self._reported:
            self._reported.add(what)
            self._report(f"what the tests rely on was exchanged: {what}")


def read_use(tree: ast.Module) -> Use:
    """What a source says of the names it uses."""
    modules: set[str] = set()
    imports: dict[str, tuple[str, str]] = {}
    stars: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                modules.update(_and_above(alias.name))
                name = alias.asname or alias.name.partition(".")[0]
                imports[name] = (alias.name if alias.asname else name, "")
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            modules.update(_and_above(source) if not node.level else ())
            for alias in node.names:
                if alias.name == "*":
                    stars.append(source)
                else:
                    imports[alias.asname or alias.name] = (source, alias.name)
    top = _module_names(tree)
    once = {name for name, count in top.items() if count == 1}
    defined = {
        node.name
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    return Use(
        modules=frozenset(modules),
        imports={name: of for name, of in imports.items() if name in once},
        defined=frozenset(defined & once),
        bound=frozenset(top),
        spoken=_spoken(tree),
        stars=tuple(stars),
    )


def _and_above(name: str) -> list[str]:
    steps = name.split(".")
    return [".".join(steps[: index + 1]) for index in range(len(steps))]


def _module_names(tree: ast.Module) -> dict[str, int]:
    """The names that a module binds, and how often."""
    found: dict[str, int] = {}

    def count(name: str | None) -> None:
        if name:
            found[name] = found.get(name, 0) + 1

    pending: list[ast.AST] = list(tree.body)
    for node in ast.walk(tree):
        for name in node.names if isinstance(node, ast.Global) else ():
            found[name] = found.get(name, 0) + 2
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            count(node.name)
            continue
        if isinstance(node, ast.alias):
            count(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            count(node.id)
        elif not isinstance(node, ast.Name):
            for field in ("name", "rest"):  # of handlers and patterns
                value = getattr(node, field, None)
                count(value if isinstance(value, str) else None)
        pending.extend(ast.iter_child_nodes(node))
    return found


def _spoken(tree: ast.Module) -> frozenset[str]:
    """The names that a source assigns to attributes and items, or hands to what patches them."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            found.add(node.attr)
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            found |= _last_names(node)
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in _PATCHING:
                found |= _last_names(node)
                found |= {keyword.arg for keyword in node.keywords if keyword.arg}
    return frozenset(found)


def _last_names(node: ast.AST) -> set[str]:
    return {
        one.value.rpartition(".")[2]
        for one in ast.walk(node)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }


def _spoken_in_file(path: str) -> frozenset[str]:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - no pathlib yet
            text = file.read(_LARGEST_CONFTEST)
        return _spoken(ast.parse(text))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return frozenset()


def _is_borrowed(name: str, value: object) -> bool:
    if name.startswith("_") or name.endswith(_HOOKS):
        return False
    return callable(value) or isinstance(value, (ModuleType, float)) or name == "mark"


def _written_name(value: object) -> str:
    """The name of a function or class as it was written."""
    if isinstance(value, MethodType):
        value = value.__func__
    if isinstance(value, FunctionType):
        return value.__code__.co_name
    if isinstance(value, (type, BuiltinFunctionType)):
        return value.__name__
    return ""
