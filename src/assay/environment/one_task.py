"""One task that does one thing after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import Context
from typing import Any, TypeAlias, TypeVar

__all__ = ["OneTask"]

T = TypeVar("T")
_Asked: TypeAlias = "tuple[Callable[[], Awaitable[object]], asyncio.Future[Any]]"

_GRACE_SECONDS = 5.0
"""How long what was cancelled may take to end before it is left behind."""


class OneTask:
    """Moves a generator on, always in the same task, and closes it there.

    What a generator holds open across its yields (a task group, a time limit, a client that is
    built of these) can only be left in the task that entered it; and who asks it to go on comes
    from wherever the agent runs, and may be cancelled there: what was begun goes on.

    Args:
        generator: Closed when the task ends.
        context: What it runs in; by default a copy of the present one.
    """

    def __init__(self, generator: AsyncGenerator[Any, Any], context: Context | None = None) -> None:
        self._generator = generator
        self._asked: asyncio.Queue[_Asked | None] = asyncio.Queue()
        self._at_work = False
        self._task = asyncio.create_task(self._live(), context=context)

    @property
    def is_over(self) -> bool:
        """Whether the task has ended, as it also does with its event loop."""
        return self._task.done()

    async def do(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something when all that was asked for before is done.

        Raises:
            BaseException: Whatever it raises.
        """
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._asked.put_nowait((work, done))
        return await asyncio.shield(done)

    async def close(self) -> None:
        """Close the generator, and end; what is at work is cancelled.

        Raises:
            BaseException: Whatever the generator raises when it is closed.
        """
        was_at_work = self._at_work
        if was_at_work:
            self._task.cancel()
        else:
            self._asked.put_nowait(None)
        try:
            await asyncio.wait([self._task], timeout=_GRACE_SECONDS if was_at_work else None)
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        if self._task.done() and not self._task.cancelled():
            self._task.result()

    async def _live(self) -> None:
        try:
            while asked := await self._asked.get():
                work, done = asked
                self._at_work = True
                try:
                    result = await work()
                except BaseException as error:
                    if self._is_stopped():
                        done.cancel()
                        raise
                    done.set_exception(error)
                else:
                    done.set_result(result)
                self._at_work = False
                if self._is_stopped():
                    break
        finally:
            await self._generator.aclose()

    def _is_stopped(self) -> bool:
        """Whether somebody cancelled the task, as opposed to what it does cancelling itself."""
        return self._task.cancelling() > 0
