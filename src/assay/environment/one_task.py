"""One task that does one thing after the other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import Context
from typing import Any, TypeAlias, TypeVar

from assay.errors import AssayError, TaskEndedError

T = TypeVar("T")
_Asked: TypeAlias = "tuple[Callable[[], Awaitable[object]], asyncio.Future[Any]]"

_GRACE_SECONDS = 5.0
"""How long what was cancelled may take to end before it is left behind."""


class OneTask:
    """Moves a generator on, always in the same task, and closes it there.

    What a generator holds open across its yields (a task group, a time limit, a client that is
    built of these) can only be left in the task that entered it; and who asks it to go on comes
    from wherever the agent runs, and may be cancelled there: what was begun goes on.
    """

    def __init__(self, generator: AsyncGenerator[Any, Any], context: Context | None = None) -> None:
        self._generator = generator
        self._loop = asyncio.get_running_loop()
        self._asked: deque[_Asked | None] = deque()
        self._is_asked = self._loop.create_future()
        self._is_at_work = False
        self._task = self._loop.create_task(self._live(), context=context)

    @property
    def is_over(self) -> bool:
        """Whether the task has ended, as it also does with its event loop."""
        return self._task.done()

    async def do(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something when all that was asked for before is done.

        Raises `BaseException`: Whatever it raises.
        """
        if self._task.done():
            raise TaskEndedError("the session is closed")
        done: asyncio.Future[T] = self._loop.create_future()
        self._ask((work, done))
        return await done  # who is cancelled here cancels the future alone

    async def close(self) -> None:
        """Close the generator, and end; what is at work is cancelled.

        Raises `BaseException`: Whatever the generator raises when it is closed.
        """
        if self._is_at_work or self._asked:
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_GRACE_SECONDS)
        elif not self._task.done():
            self._ask(None)
            await self._task
        if self._task.done() and not self._task.cancelled():
            self._task.result()

    def _ask(self, asked: _Asked | None) -> None:
        self._asked.append(asked)
        if not self._is_asked.done():
            self._is_asked.set_result(None)

    async def _next(self) -> _Asked | None:
        while not self._asked:
            self._is_asked = self._loop.create_future()
            await self._is_asked
        return self._asked.popleft()

    async def _live(self) -> None:
        try:
            while asked := await self._next():
                await self._do(*asked)
                if self._task.cancelling():
                    break
        finally:
            for asked in self._asked:
                if asked is not None and not asked[1].done():
                    asked[1].set_exception(TaskEndedError("the session is closed"))
            await self._close_generator()

    async def _do(self, work: Callable[[], Awaitable[object]], done: asyncio.Future[Any]) -> None:
        self._is_at_work = True
        try:
            result = await work()
        except BaseException as error:
            if self._task.cancelling():  # by us; else it cancels itself
                done.cancel()
                raise
            if isinstance(error, SystemExit):  # out of a task, it would end the process
                error = AssayError(f"tried to end the process: SystemExit({error.code!r})")
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():
                done.set_result(result)
        self._is_at_work = False

    async def _close_generator(self) -> None:
        try:
            await self._generator.aclose()
        except BaseExceptionGroup as group:
            if group.split(GeneratorExit)[1] is not None:  # a task group wraps what closes it
                raise
