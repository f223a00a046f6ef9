"""Notices that the submission changed the runner it runs under."""

from __future__ import annotations

import builtins
import sys
from operator import is_
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, cast

from assay.graders.testing.inside.origins import Origins

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_BUILTINS = """
    all any bool callable dict frozenset getattr hasattr id int isinstance issubclass iter len list
    next property set setattr str super tuple type AssertionError BaseException Exception
"""
_FREE = "print input help exit quit copyright credits license breakpoint __import__"
"""Built-in functions that nothing is decided by: a solution may have its own."""

_FULL_EVERY = 50
_KINDS = (FunctionType, BuiltinFunctionType, ModuleType, type, staticmethod, classmethod, property)


class _Space:
    """The functions and classes of one module or class, as they were."""

    __slots__ = ("first", "label", "names", "now", "size", "values")

    def __init__(self, label: str, now: Mapping[str, object], names: Sequence[str]) -> None:
        self.label = label
        self.now = now
        self.names = list(names)
        self.values = [now[name] for name in names]
        self.size = len(now)
        self.first = {name: now[name] for name in names}

    def is_same(self) -> bool:
        return len(self.now) == self.size and all(
            map(is_, self.values, map(self.now.get, self.names))
        )


class Integrity:
    """Compares the runner's functions with what they were before any submission was loaded.

    What a package, a conftest or a hidden test puts in their place is accepted: plugins do that.
    What the submission puts there is reported, once for each name.

    Args:
        origins: Knows whose a function is.
        report: Takes a sentence about each change.
    """

    def __init__(self, origins: Origins, report: Callable[[str], None]) -> None:
        self._origins = origins
        self._report = report
        self._spaces: list[_Space] = []
        self._core: list[_Space] = []
        self._functions: set[int] = set()
        self._reported: set[str] = set()
        self._checks = 0
        self._tracers = (sys.gettrace, sys.getprofile)
        self._traced: list[object] = [get() for get in self._tracers]
        self._add(_Space("builtins", vars(builtins), _BUILTINS.split()), core=True)
        free = _FREE.split()
        shared = [name for name in _guarded(vars(builtins)) if name not in free]
        self._shared = _Space("builtins", vars(builtins), shared)

    def is_guarded(self, function: object) -> bool:
        """Whether a function is among those that are looked at."""
        return id(function) in self._functions

    def guard(self, packages: tuple[str, ...], *, core: tuple[str, ...]) -> None:
        """Remember the loaded modules of some packages as they are now.

        Args:
            packages: Names of top-level packages.
            core: Modules that are looked at whenever a test ends, not only now and then.
        """
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in packages and type(module) is ModuleType:
                self.guard_module(module, core=name in core)

    def guard_module(self, module: ModuleType, *, core: bool) -> None:
        """Remember one module as it is now."""
        space = vars(module)
        self._add(_Space(module.__name__, space, _guarded(space)), core=core)
        for value in list(space.values()):
            if isinstance(value, type) and value.__module__ == module.__name__:
                inner = cast("Mapping[str, object]", vars(value))
                label = f"{module.__name__}.{value.__qualname__}"
                self._add(_Space(label, inner, _guarded(inner)), core=core)

    def _add(self, space: _Space, *, core: bool) -> None:
        self._spaces.append(space)
        if core:
            self._core.append(space)
        for value in space.values:
            function = getattr(value, "__func__", value)
            if isinstance(function, FunctionType):
                self._functions.add(id(function))

    def check_builtins(self) -> None:
        """Report built-in functions that are the submission's.

        It is cheap, and to be called often: hidden tests call what is there at the time, and who
        put it there may put the right one back. What a test patches for a while is its own.
        """
        shared = self._shared
        if all(map(is_, shared.values, map(shared.now.get, shared.names))):
            return
        for name, first in shared.first.items():
            value = shared.now.get(name, first)
            if value is not first and not self._origins.trusts_callable(value):
                self._tell(f"builtins.{name}")

    def check(self, *, full: bool = False) -> None:
        """Report what the submission changed since the last look."""
        self.check_builtins()
        self._checks += 1
        full = full or self._checks % _FULL_EVERY == 0
        for space in self._spaces if full else self._core:
            if not space.is_same():
                self._compare(space)
        for index, get in enumerate(self._tracers):
            tracer = get()
            if tracer is not self._traced[index]:
                self._traced[index] = tracer
                if tracer is not None and not self._origins.trusts(_function_of(tracer)):
                    self._tell("sys.settrace" if index == 0 else "sys.setprofile")

    def _compare(self, space: _Space) -> None:
        now = dict(space.now)
        wanted = space.first if space.label == "builtins" else {**space.first, **now}
        space.names = [name for name in wanted if name in now and _is_guarded(now[name])]
        for name in wanted:
            value, first = now.get(name), space.first.get(name)
            if value is first or (name not in space.first and not _is_guarded(value)):
                continue
            if not self._origins.trusts(value):
                self._tell(f"{space.label}.{name}")
        space.values = [now[name] for name in space.names]
        space.size = len(now)

    def _tell(self, name: str) -> None:
        if name not in self._reported:
            self._reported.add(name)
            self._report(f"the test runner was changed while tests ran: {name}")


def _guarded(space: Mapping[str, object]) -> list[str]:
    return [name for name, value in space.items() if _is_guarded(value)]


def _is_guarded(value: object) -> bool:
    return isinstance(value, _KINDS)


def _function_of(tracer: object) -> object:
    function = getattr(tracer, "__func__", tracer)
    if isinstance(function, (FunctionType, BuiltinFunctionType)):
        return function
    return cast("object", type(function))
