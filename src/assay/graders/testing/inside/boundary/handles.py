"""Objects of the judge's, as the solution's side has them: numbers that can be asked about."""

from __future__ import annotations

import functools
import os

from assay.graders.testing.inside.boundary.wire import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


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
