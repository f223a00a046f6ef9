"""The database on a thread of its own, so that no request waits for another one's disk.

The thread runs an event loop: plain work is done there in one go, and grading, which awaits
sandboxes between its reads and writes, takes turns with it. A database that fails is let go of and
opened anew by the next one who needs it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from assay.errors import StoreError
from assay.store.database import Database

__all__ = ["Storage"]

T = TypeVar("T")


class Storage:
    """The thread that owns the database; usable from any event loop.

    Args:
        location: As `Database.open` takes it.
    """

    def __init__(self, location: str) -> None:
        self._location = location
        self._database: Database | None = None
        self._file: tuple[int, int] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread; the database is opened by the first who needs it."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._work, args=(self._loop,), name="assay-store", daemon=True
        )
        self._thread.start()

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            self._let_go()
            loop.close()

    async def run(self, work: Callable[[Database], T]) -> T:
        """Do something with the database in one go.

        Raises:
            StoreError: If the database cannot be opened, read or written.
        """

        async def once(database: Database) -> T:
            return work(database)

        return await self.follow(once)

    async def follow(self, work: Callable[[Database], Awaitable[T]]) -> T:
        """Do something with the database that awaits other things meanwhile.

        Raises:
            StoreError: If the database cannot be opened, read or written.
        """
        if self._loop is None:
            raise StoreError("the server has not started, or has ended")
        future = asyncio.run_coroutine_threadsafe(self._guarded(work), self._loop)
        return await asyncio.wrap_future(future)

    async def _guarded(self, work: Callable[[Database], Awaitable[T]]) -> T:
        database = self._opened()
        try:
            return await work(database)
        except StoreError:
            if self._database is database:
                self._let_go()
            raise

    def _opened(self) -> Database:
        if self._database is None:
            self._database = Database.open(self._location)
            self._file = self._identity()
        elif self._identity() != self._file:
            # SQLite would go on writing to a file that has no name any more, and that ends with us.
            raise StoreError(
                f"the file of the store {self._database.place} was removed or replaced",
                hint="put it back, or start the server again",
            )
        return self._database

    def _identity(self) -> tuple[int, int] | None:
        """Which file the database is in; None where it is in none."""
        if "://" in self._location:
            return None
        try:
            status = Path(self._location, "assay.db").stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def _let_go(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            with suppress(StoreError):
                database.close()

    async def close(self) -> None:
        """End the thread; what runs there is cancelled."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_cancel_others(), loop))
        loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join)


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
