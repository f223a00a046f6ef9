"""What sessions have: a state of their own each, and resources that all of them share.

Both are functions without arguments that give the thing itself, wherever it is needed: in a
template, in a tool, in a function that they call.
"""

from __future__ import annotations

import asyncio
import inspect
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, Callable
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from assay.environment.one_task import OneTask
from assay.errors import InputError, TemplateError
from assay.types.submission import Workspace

T = TypeVar("T")


@dataclass(slots=True)
class SessionScope:
    """What one session has."""

    loop: AbstractEventLoop
    states: dict[object, object] = field(default_factory=dict[object, object])
    declared: object = None
    workspace: Workspace | None = None


_SCOPE: ContextVar[SessionScope | None] = ContextVar("assay_session", default=None)


def new_session(declared: object = None) -> tuple[Context, SessionScope]:
    """A context in which everything belongs to one new session, and what that has."""
    context, scope = copy_context(), SessionScope(asyncio.get_running_loop(), declared=declared)
    context.run(_SCOPE.set, scope)
    return context, scope


def scope_of_session() -> SessionScope | None:
    """What the session has that is at work here; None where none is."""
    return _SCOPE.get()


class State(Generic[T]):
    """A session's own object, made when the session first asks for it.

    Args:
        make: Makes one.

    Raises:
        InputError: If it takes arguments, or cannot be called at once.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self.name = _name(make)
        if inspect.iscoroutinefunction(make) or inspect.isasyncgenfunction(make):
            raise InputError(
                f"state {self.name!r} must be made by a plain function",
                hint="what has to be awaited is opened in the template, by `async with`",
            )
        _require_no_arguments("state", self.name, make)
        self._make = make

    def __call__(self) -> T:
        """The object of the session that is at work here."""
        scope = _SCOPE.get()
        if scope is None:
            raise InputError(
                f"state {self.name!r} is a session's, and none is at work here",
                hint="ask for it in a template or a tool",
            )
        if self not in scope.states:
            scope.states.setdefault(self, self._make())
        return cast("T", scope.states[self])


class Resource(Generic[T]):
    """An object that all sessions share, made once and closed when its environment stops.

    Args:
        function: An async generator function that yields the object, once; what follows closes it.

    Raises:
        InputError: If it is none, or takes arguments.
    """

    def __init__(self, function: Callable[[], AsyncGenerator[T, None]]) -> None:
        self.name = _name(function)
        if not inspect.isasyncgenfunction(function):
            raise InputError(
                f"resource {self.name!r} must be an async generator function",
                hint="write `async def`, yield the resource once, and close it after that",
            )
        _require_no_arguments("resource", self.name, function)
        self._function = function
        # A loop that ends has ended all that was begun in it.
        self._begun: dict[AbstractEventLoop, _Begun[T]] = {}

    def __call__(self) -> T:
        """The object."""
        scope = _SCOPE.get()  # a tool in a thread has no loop of its own
        loop = asyncio.get_running_loop() if scope is None else scope.loop
        begun = self._begun.get(loop)
        if begun is None or not begun.is_ready:
            raise InputError(
                f"resource {self.name!r} is not started",
                hint="it starts with the environment: with its first task, or `async with env`",
            )
        return begun.start.result()

    @property
    def is_ready(self) -> bool:
        """Whether it is started in this event loop."""
        begun = self._begun.get(asyncio.get_running_loop())
        return begun is not None and begun.is_ready

    async def start(self) -> None:
        """Make it, once; who comes meanwhile waits for it, and who gives up does not end it.

        Raises:
            TemplateError: If it yields nothing.
            Exception: Whatever it raises; it can then be started again.
        """
        loop = asyncio.get_running_loop()
        begun = self._begun.get(loop)
        for ended in [other for other in self._begun if other.is_closed()]:
            del self._begun[ended]
        if begun is None or begun.has_failed:
            begun = self._begun[loop] = _Begun(self._function())
        await asyncio.shield(begun.start)

    async def stop(self) -> None:
        """Close it, if it is started.

        Raises:
            TemplateError: If it yields twice.
        """
        begun = self._begun.pop(asyncio.get_running_loop(), None)
        if begun is not None:
            await begun.stop(self.name)


class _Begun(Generic[T]):
    """A resource in one event loop."""

    def __init__(self, generator: AsyncGenerator[T, None]) -> None:
        self._generator = generator
        self._task = OneTask(generator)
        self.start: asyncio.Task[T] = asyncio.create_task(self._start())

    @property
    def is_ready(self) -> bool:
        return self.start.done() and not self.has_failed

    @property
    def has_failed(self) -> bool:
        done = self.start.done() and (self.start.cancelled() or self.start.exception() is not None)
        return done or self._task.is_over

    async def stop(self, name: str) -> None:
        try:
            if self.is_ready and not await self._task.do(self._ends):
                raise TemplateError(f"resource {name!r} yielded twice", hint="yield once")
        finally:
            self.start.cancel()
            await self._task.close()

    async def _start(self) -> T:
        try:
            return await self._task.do(self._first)
        except BaseException:
            await self._task.close()
            raise

    async def _first(self) -> T:
        try:
            return await anext(self._generator)
        except StopAsyncIteration:
            raise TemplateError("it ended without yielding", hint="yield the resource") from None

    async def _ends(self) -> bool:
        try:
            await anext(self._generator)
        except StopAsyncIteration:
            return True
        return False


def _name(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _require_no_arguments(what: str, name: str, function: Callable[..., object]) -> None:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a class written in C, such as dict
        return
    needed = [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if needed:
        raise InputError(f"{what} {name!r} must take no arguments, and needs {needed[0]!r}")
