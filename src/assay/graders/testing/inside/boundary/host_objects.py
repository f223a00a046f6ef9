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

from assay.graders.testing.inside.boundary.wire import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_STANDARD = frozenset(getattr(sys, "stdlib_module_names", ())) | {"builtins"}
_BASES = (str, bytes, bytearray, int, float, complex, tuple, list, dict, set, frozenset)


def by_name(module: str, name: str, missing: Any = ...) -> Any:
    """Something of a module; an error, or `missing`, where there is none."""
    try:
        found: Any = sys.modules.get(module) or importlib.import_module(module)
        for step in name.split("."):
            found = getattr(found, step)
    except (ImportError, AttributeError):
        if missing is ...:
            raise
        return missing
    return found


def is_standard(module: str) -> bool:
    """Whether a module is of Python's library."""
    return module.partition(".")[0] in _STANDARD


def is_installed(place: str) -> bool:
    """Whether a file is of an installed package."""
    return "site-packages" in place or "dist-packages" in place


def is_builtin(method: object) -> bool:
    """Whether a method is none that was written in Python."""
    return isinstance(method, (types.WrapperDescriptorType, types.MethodDescriptorType, type(None)))


def beyond_type(meta: Any) -> set[str]:
    """What a metaclass has beyond `type`."""
    return {name for one in meta.__mro__ if one not in (object, type) for name in vars(one)}


def owner_of(kind: type, name: str) -> type:
    """The class of its bases that defines a name."""
    return next((one for one in kind.__mro__ if name in vars(one)), object)


def is_own(kind: type, name: str) -> bool:
    """Whether code of its own, not of a built-in type, decides."""
    owner = owner_of(kind, name)
    return owner is not object and owner.__module__ != "builtins" and vars(owner)[name] is not None


def own_operators(kind: type) -> list[str]:
    """The operators that code of a class's own answers."""
    return sorted(one for one in (*OPERATORS, "__new__") if is_own(kind, one))


def equality(kind: type) -> str:
    """What decides on equality: identity, the content, or code of its own."""
    if issubclass(kind, enum.Enum):
        return "enum" if owner_of(kind, "__eq__") in (object, *_BASES, enum.Enum) else "own"
    owner = owner_of(kind, "__eq__")
    if owner is object:
        return "identity"
    if owner.__module__ == "builtins":
        return "base" if owner in _BASES else "identity"
    return "own"


CURRENT: list[Any] = []
"""The session of this process, once there is one."""


def session() -> Any:
    """The session of this process."""
    return CURRENT[0]


class Handle:
    """An object of the judge's, of which this side has only a number."""

    def __init__(self, number: int) -> None:
        object.__setattr__(self, "_assay_handle", number)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return session().ask("attribute", self._assay_handle, name)

    def __setattr__(self, name: str, value: object) -> None:
        session().ask("assign", self._assay_handle, name, value)


def _handle_operator(name: str) -> Callable[..., Any]:
    def operate(self: Handle, *arguments: object) -> Any:
        return session().ask("operate", self._assay_handle, name, list(arguments))

    async def wait(self: Handle, *arguments: object) -> Any:
        import asyncio

        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, lambda: operate(self, *arguments))

    return wait if name in ("__aenter__", "__aexit__", "__anext__") else operate


@functools.cache
def handle_kind(
    operators: tuple[str, ...], is_async: object, abcs: tuple[str, ...] = ()
) -> type[Handle]:
    """The class of the handles whose objects have these operators."""
    space = {name: _handle_operator(name) for name in operators if name in OPERATORS}
    if "__call__" in space:
        space["__call__"] = _await_handle if is_async else _call_handle
    if "__eq__" in space and "__hash__" not in space:
        space["__hash__"] = object.__hash__
    made = type("Handle", (Handle,), space)
    for one in abcs:
        kind: Any = getattr(importlib.import_module("collections.abc"), one)
        kind.register(made)
    return made


def _call_handle(self: Handle, *arguments: object, **named: object) -> Any:
    return session().ask("call", self._assay_handle, list(arguments), named)


async def _await_handle(self: Handle, *arguments: object, **named: object) -> Any:
    import asyncio

    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, lambda: _call_handle(self, *arguments, **named))


def function_of(number: int, form: dict[str, Any]) -> Any:
    """A function that stands for one of the judge's."""

    def call(*arguments: Any, **named: Any) -> Any:
        # What was not given is filled in by the judge: a default may be what the test expects.
        named = {name: one for name, one in named.items() if one is not _DEFAULT}
        while arguments and arguments[-1] is _DEFAULT:
            arguments = arguments[:-1]
        return session().ask("call", number, list(arguments), named)

    async def wait(*arguments: Any, **named: Any) -> Any:
        import asyncio

        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, lambda: call(*arguments, **named))

    def generate(*arguments: Any, **named: Any) -> Any:
        return (yield from call(*arguments, **named))

    function: Any = generate if form.get("generator") else wait if form.get("async") else call
    parameters = form.get("parameters")
    if parameters is not None and function is call:
        function = _with_parameters(call, parameters)
    function.__name__ = function.__qualname__ = str(form.get("name", "function"))
    function.__module__ = str(form.get("module", "__judge__"))
    function.__doc__ = form.get("doc")
    function._assay_handle = number
    if parameters is not None:
        import inspect

        kinds = list(inspect._ParameterKind)
        function.__signature__ = inspect.Signature(
            [
                inspect.Parameter(
                    name, kinds[kind], default=_DEFAULT if has else inspect.Parameter.empty
                )
                for name, kind, has in parameters
            ]
        )
    return function


def _with_parameters(call: Any, parameters: list[Any]) -> Any:
    """A function of the same parameters: who looks at its code sees as many."""
    if not all(type(name) is str and name.isidentifier() for name, _, _ in parameters):
        return call
    words: list[str] = []
    passed: list[str] = []
    is_starred = False
    for place, (name, kind, has) in enumerate(parameters):
        if kind == 3 and not is_starred:
            words.append("*")
        is_starred = is_starred or kind in (2, 3)
        words.append({2: "*", 4: "**"}.get(kind, "") + name + ("=_default" if has else ""))
        if kind == 0 and (place + 1 == len(parameters) or parameters[place + 1][1] != 0):
            words.append("/")
        passed.append({2: "*", 3: f"{name}=", 4: "**"}.get(kind, "") + name)
    space: dict[str, Any] = {"_call": call, "_default": _DEFAULT}
    try:
        exec(f"def made({', '.join(words)}): return _call({', '.join(passed)})", space)
    except SyntaxError:
        return call
    return space["made"]


class _Default:
    """Stands for the default of a parameter of the test's."""

    def __repr__(self) -> str:
        return "..."


_DEFAULT = _Default()
