"""Objects, as the solution's side has them.

Of its own, the judge is told their classes and their content, found without running either. Of the
judge's, it has numbers that can be asked about.
"""

from __future__ import annotations

import enum
import functools
import importlib
import os
import sys
import types

from assay.graders.testing.inside.boundary.wire import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_STANDARD = frozenset(getattr(sys, "stdlib_module_names", ())) | {"builtins"}
_BASES = (str, bytes, bytearray, int, float, complex, tuple, list, dict, set, frozenset)
DECIDING = ("__bool__", "__contains__", "__lt__", "__hash__", "__len__")


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


def is_record(kind: Any) -> bool:
    """Whether an instance holds what it was made of, because `dataclasses` wrote how."""
    if equality(kind) != "fields" or kind.__new__ is not object.__new__:
        return False
    own = ("__post_init__", "__attrs_post_init__", "__attrs_pre_init__")
    if not is_written(vars(kind).get("__init__")) or any(hasattr(kind, one) for one in own):
        return False
    return all(
        one.init
        and not one.name.startswith("_")
        and not getattr(one, "kw_only", False)
        and getattr(one, "converter", None) is None
        and getattr(one, "validator", None) is None
        for one in fields_of(kind)
    )


def fields_of(kind: Any) -> Any:
    """The fields of a class of `dataclasses` or attrs."""
    made = getattr(kind, "__attrs_attrs__", None)
    return _dataclasses().fields(kind) if made is None else made


def is_compared(field: Any) -> bool:
    """Whether a field takes part in comparisons."""
    made = _dataclasses()
    return bool(field.compare if made and isinstance(field, made.Field) else field.eq)


def _dataclasses() -> Any:
    """The module, if it is loaded; else nothing was made by it."""
    return sys.modules.get("dataclasses")


def is_written(method: object) -> bool:
    """Whether `dataclasses` or attrs wrote a method."""
    place = getattr(getattr(method, "__code__", None), "co_filename", "")
    return place == "<string>" or place.startswith("<attrs generated")


def owner_of(kind: type, name: str) -> type:
    """The class of its bases that defines a name."""
    return next((one for one in kind.__mro__ if name in vars(one)), object)


def is_own(kind: type, name: str) -> bool:
    """Whether code of its own, not of a built-in type, decides."""
    owner = owner_of(kind, name)
    return owner is not object and owner.__module__ != "builtins" and vars(owner)[name] is not None


def equality(kind: type) -> str:
    """What decides on equality: identity, the content, the fields, or code of its own."""
    if issubclass(kind, enum.Enum):
        return "enum" if owner_of(kind, "__eq__") in (object, *_BASES, enum.Enum) else "own"
    owner = owner_of(kind, "__eq__")
    if owner is object:
        return "identity"
    if owner.__module__ == "builtins":
        return "base" if owner in _BASES else "identity"
    method = vars(owner)["__eq__"]
    place = getattr(getattr(method, "__code__", None), "co_filename", "")
    is_dataclass = place == "<string>" and hasattr(kind, "__dataclass_fields__")
    if is_dataclass or place.startswith("<attrs generated"):
        return "fields"
    return "own"


def content_of(value: Any) -> Any:
    """What a value of a subclass of a plain class holds, by that class alone."""
    kind = next((base for base in _BASES if base in type(value).__mro__), None)
    read = _CONTENTS.get(kind)
    if read is None:
        raise TypeError(f"{type(value).__name__} has no content")
    return read(value)


_CONTENTS: dict[Any, Callable[[Any], Any]] = {
    dict: lambda value: dict(dict.items(value)),
    list: lambda value: [*list.__iter__(value)],
    tuple: lambda value: (*tuple.__iter__(value),),
    set: lambda value: {*set.__iter__(value)},
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    bytearray: lambda value: bytearray.__getitem__(value, slice(None)),
    int: int.__int__,
    float: float.__float__,
    complex: lambda value: complex.__add__(value, 0j),
}


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

    return operate


@functools.cache
def handle_kind(operators: tuple[str, ...], is_async: object) -> type[Handle]:
    """The class of the handles whose objects have these operators."""
    space = {name: _handle_operator(name) for name in operators if name in OPERATORS}
    if "__call__" in space:
        space["__call__"] = _await_handle if is_async else _call_handle
    if "__eq__" in space and "__hash__" not in space:
        space["__hash__"] = object.__hash__
    return type("Handle", (Handle,), space)


def opener(file: Any, place: str) -> Callable[[], int]:
    """What gives this process a descriptor for a file that a test has opened: a copy to read."""
    import tempfile

    @functools.cache
    def fileno() -> int:
        if not file.readable():
            return os.open(place, os.O_WRONLY)
        bytes_of = getattr(file, "buffer", file)
        at = file.tell()
        bytes_of.seek(0)
        with tempfile.TemporaryFile() as made:
            made.write(bytes_of.read())
            made.flush()
            copy = os.dup(made.fileno())
        file.seek(at)
        os.lseek(copy, at, os.SEEK_SET)
        return copy

    return fileno


def _call_handle(self: Handle, *arguments: object, **named: object) -> Any:
    return session().ask("call", self._assay_handle, list(arguments), named)


async def _await_handle(self: Handle, *arguments: object, **named: object) -> Any:
    import asyncio

    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, lambda: _call_handle(self, *arguments, **named))


def function_of(number: int, form: dict[str, Any]) -> Any:
    """A function that stands for one of the judge's."""

    def call(*arguments: Any, **named: Any) -> Any:
        return session().ask("call", number, list(arguments), named)

    async def wait(*arguments: Any, **named: Any) -> Any:
        import asyncio

        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, lambda: call(*arguments, **named))

    def generate(*arguments: Any, **named: Any) -> Any:
        return (yield from call(*arguments, **named))

    function: Any = generate if form.get("generator") else wait if form.get("async") else call
    function.__name__ = function.__qualname__ = str(form.get("name", "function"))
    function.__module__ = str(form.get("module", "__judge__"))
    function.__doc__ = form.get("doc")
    function._assay_handle = number
    parameters = form.get("parameters")
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


_DEFAULT = None
