"""The database on a thread of its own, so that no request waits for another one's disk.

A database that fails is let go of and opened anew by the next one who needs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
        self._thread: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Start the thread; the database is opened by the first who needs it."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="assay-store")

    async def run(self, work: Callable[[Database], T]) -> T:
        """Do something with the database in one go.

        Raises:
            StoreError: If the database cannot be opened, read or written.
        """
        if self._thread is None:
            raise StoreError("the server has not started, or has ended")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._do, work)

    def _do(self, work: Callable[[Database], T]) -> T:
        database = self._opened()
        try:
            return work(database)
        except StoreError:
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
        """End the thread, once what was asked of it is done."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.submit(self._let_go)
            await asyncio.to_thread(thread.shutdown)
