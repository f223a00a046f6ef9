"""Objects, as the solution's side has them.

Of its own, the judge is told their classes and their content, found without running either. Of the
judge's, it has numbers that can be asked about.
"""

from __future__ import annotations

import enum
import functools
import importlib
import sys
import types

from assay.graders.testing.inside.boundary.wire import CONTENTS, OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_STANDARD = frozenset(getattr(sys, "stdlib_module_names", ())) | {"builtins"}


def by_name(module: str, path: list[str]) -> Any:
    """Something of a module."""
    found: Any = sys.modules.get(module) or importlib.import_module(module)
    for step in path:
        found = getattr(found, step)
    return found


def is_of_both(module: str) -> bool:
    """Whether a module is of Python's library or installed: the judge has it, too."""
    place = getattr(sys.modules.get(module), "__file__", None) or ""
    is_installed = "site-packages" in place or "dist-packages" in place
    return is_installed or module.partition(".")[0] in _STANDARD


def described(kind: Any) -> dict[str, Any]:
    """What the judge is told of a class."""
    kinds = (types.FunctionType, property, classmethod, staticmethod)
    bases = [one for one in kind.__mro__ if one.__module__ == "builtins"]
    methods = [
        name
        for name, member in list(vars(kind).items())
        # A field of a named tuple may be called `count`, which is a method of all tuples.
        if isinstance(member, kinds) or any(name in vars(one) for one in bases)
    ]
    return {
        "operators": _operators(kind),
        "equal": _equality(kind),
        "own": sorted(one for one in (*OPERATORS, "__new__") if is_own(kind, one)),
        "methods": [one for one in methods if one == "__init__" or is_plain_name(one)],
        "meta": _operators(type(kind)),
        "doc": kind.__doc__ if type(kind.__doc__) is str else None,
    }


def is_plain_name(name: object) -> bool:
    """Whether it is none of Python's own names, for which the judge would not ask."""
    return type(name) is str and not name.startswith("__")


def _operators(kind: Any) -> list[str]:
    """The operators that a class has, and not all have."""
    names = {name for one in kind.__mro__ if one not in (object, type) for name in vars(one)}
    return sorted(OPERATORS & (names - {"__hash__"} if kind.__hash__ is None else names))


def _owner(kind: type, name: str) -> type:
    """The class of its bases that defines a name."""
    return next((one for one in kind.__mro__ if name in vars(one)), object)


def of_super(kind: type, value: object, name: str) -> Any:
    """What `super()` of a class of the tests finds in one of the submission's."""
    return vars(_owner(kind, name))[name].__get__(value, type(value))


def is_own(kind: type, name: str) -> bool:
    """Whether code of its own, not of a built-in type, decides."""
    owner = _owner(kind, name)
    return owner.__module__ != "builtins" and vars(owner)[name] is not None


def shadowing(value: Any) -> list[str]:
    """Attributes of an instance that are in the place of a method of its built-in type."""
    base = next((one for one in type(value).__mro__ if one in _IMMUTABLE), None)
    names = getattr(value, "__dict__", ()) if base else ()
    return [one for one in names if is_plain_name(one) and hasattr(base, one)]


_IMMUTABLE = [one for one in CONTENTS if one.__hash__]


def _equality(kind: type) -> str:
    """What decides on equality: identity, the content, or code of its own."""
    owner = _owner(kind, "__eq__")
    if owner.__module__ != "builtins":
        return "own"
    return "enum" if issubclass(kind, enum.Enum) else "base" if owner in CONTENTS else "identity"


CURRENT: list[Any] = []
"""The session of this process, once there is one."""


def ask(*question: object) -> Any:
    """Ask the judge."""
    return CURRENT[0].ask(*question)


class Handle:
    """An object of the judge's, of which this side has only a number."""

    def __init__(self, number: int) -> None:
        object.__setattr__(self, "_assay_handle", number)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return ask("attribute", self._assay_handle, name)

    def __setattr__(self, name: str, value: object) -> None:
        if ask("assign", self._assay_handle, name, value) is not True:
            object.__setattr__(self, name, value)  # a mark that no test sees


def _later(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same to be awaited: another thread waits for the judge."""

    async def wait(*arguments: Any, **named: Any) -> Any:
        import asyncio

        doing = functools.partial(function, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(None, doing)

    return wait


def handle(number: int, form: dict[str, Any]) -> Any:
    """What stands for something of the judge's."""
    if form.get("kind") == "coroutine":
        return _later(ask)("operate", number, "__await__", [])
    if "kind" in form:
        return _function(number, form)
    return _handle_kind(tuple(form["operators"]), form["async"], tuple(form["abcs"]))(number)


@functools.lru_cache(maxsize=1_000)
def _handle_kind(operators: tuple[str, ...], is_async: object, abcs: tuple[str, ...]) -> Any:
    """The class of the handles whose objects have these operators."""
    awaited = ("__aenter__", "__aexit__", "__anext__", *(["__call__"] if is_async else []))

    def operator(name: str) -> Callable[..., Any]:
        def operate(self: Handle, *arguments: object, **named: object) -> Any:
            if name == "__call__":
                return ask("call", self._assay_handle, list(arguments), named)
            return ask("operate", self._assay_handle, name, list(arguments))

        if name == "__await__":
            return lambda self: _later(operate)(self).__await__()
        return _later(operate) if name in awaited else operate

    space = {name: operator(name) for name in operators if name in OPERATORS}
    made = type("Handle", (Handle,), space)
    for one in abcs:
        getattr(importlib.import_module("collections.abc"), one).register(made)
    return made


_DEFAULT: Any = type("Default", (), {"__repr__": lambda _: "..."})()
"""Stands for the default of a parameter of the test's."""
_ANY = [["arguments", 2, False], ["named", 4, False]]
_FORMS = {
    "async": "async def made({}): return await _assay_call({})",
    "generator": "def made({}): return (yield from _assay_call({}))",
    "function": "def made({}): return _assay_call({})",
}


def _function(number: int, form: dict[str, Any]) -> Any:
    """A function that stands for one of the judge's; who looks at its code sees its parameters."""

    def call(*arguments: Any, **named: Any) -> Any:
        # What was not given is filled in by the judge: a default may be what the test expects.
        count = next((at for at, one in enumerate(arguments) if one is _DEFAULT), len(arguments))
        named.update(zip(names[count:], arguments[count:]))
        named = {name: one for name, one in named.items() if one is not _DEFAULT}
        return ask("call", number, list(arguments[:count]), named)

    what = form["kind"]
    space = {"_assay_call": _later(call) if what == "async" else call, "_assay_default": _DEFAULT}
    parameters = form.get("parameters", _ANY)
    names = [name for name, kind, _ in parameters if kind < 2]
    exec(_FORMS[what].format(*_written(parameters)), space)
    made: Any = space["made"]
    made.__name__ = made.__qualname__ = form["name"]
    made.__module__, made.__doc__ = "__judge__", form["doc"]
    made._assay_handle = number
    return made


def _written(parameters: list[Any]) -> tuple[str, str]:
    """The parameters of a function, and how it passes them on."""
    stars = {2: "*", 4: "**"}
    words: list[list[str]] = [[], [], [], [], []]
    for name, kind, has in parameters:
        words[kind].append(stars.get(kind, "") + name + ("=_assay_default" if has else ""))
    if words[0]:
        words[0].append("/")
    if words[3] and not words[2]:
        words[2].append("*")
    passed = [{**stars, 3: f"{name}="}.get(kind, "") + name for name, kind, _ in parameters]
    return ", ".join(one for group in words for one in group), ", ".join(passed)
