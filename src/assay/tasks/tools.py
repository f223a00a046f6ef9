"""Python functions as tools: what a model is told of one, and how it is called."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, cast

from assay.errors import InputError
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.types.typed import problem_of, type_adapter

Arguments: TypeAlias = Mapping[str, Json]


class ArgumentsError(InputError):
    """A tool was called with arguments that it does not take."""


@frozen(kw_only=True)
class FunctionTool:
    """A Python function as a tool.

    Attributes:
        name: What it is called.
        description: Its docstring.
        schema: JSON schema of its arguments, an object.
        in_thread: Whether it runs in a thread, which goes on when the call is cancelled.
        parallel: Whether its calls may run beside others of the same session.
        call: Calls it. Raises `ArgumentsError`, or whatever it raises.
    """

    name: str
    description: str
    schema: Mapping[str, Json]
    call: Callable[[Arguments], Awaitable[object]]
    in_thread: bool = False
    parallel: bool = False


def function_tool(
    function: Callable[..., object],
    *,
    name: str = "",
    description: str = "",
    parallel: bool = False,
) -> FunctionTool:
    """A function as a tool: its name, its docstring, its parameters.

    One that is not a coroutine function runs in a thread when it is called, and in the caller's
    context.

    Args:
        function: It.
        name: Another name.
        description: What to say instead of its docstring.
        parallel: As for `FunctionTool`.

    Raises:
        InputError: If its parameters cannot be told to a model.
    """
    import pydantic
    from pydantic_core import ArgsKwargs

    name = name or getattr(function, "__name__", type(function).__name__)
    adapter = type_adapter(function, what=f"the tool {name!r}", finite=True)
    try:
        schema = cast("dict[str, Json]", adapter.json_schema())
    except pydantic.PydanticUserError as error:
        raise InputError(
            f"the tool {name!r} has parameters that cannot be told to a model: {error.message}",
            hint="give it parameters with names, of types that JSON can say",
        ) from error
    if schema.get("type") != "object":
        raise InputError(f"the tool {name!r} has parameters without names")
    is_async = inspect.iscoroutinefunction(function)

    def called(given: Arguments) -> object:
        return adapter.validate_python(ArgsKwargs((), dict(given)))

    async def call(given: Arguments) -> object:
        try:
            found = called(given) if is_async else await asyncio.to_thread(called, given)
            return await found if inspect.isawaitable(found) else found
        except pydantic.ValidationError as error:
            raise ArgumentsError(problem_of(error)) from error

    description = description or inspect.getdoc(function) or ""
    return FunctionTool(
        name=name,
        description=description,
        schema=schema,
        call=call,
        in_thread=not is_async,
        parallel=parallel,
    )
