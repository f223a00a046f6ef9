"""The thread that owns the server's database."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary, ref

from assay.errors import AssayError, DamagedError, StoreError
from assay.server.problems import SlowStoreError
from assay.store.database import Database

T = TypeVar("T")

_LOG = logging.getLogger("assay.server")
_CLOSING_SECONDS = 3.0


class _Replies:
    """What the database's thread has to tell a loop; the loop is woken once for many of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)
        self._waiting: deque[tuple[asyncio.Future[Any], object, BaseException | None]] = deque()
        self._is_called = False

    def put(self, reply: asyncio.Future[Any], found: object, error: BaseException | None) -> None:
        """Tell it; from the thread."""
        self._waiting.append((reply, found, error))
        loop = self._loop()
        if loop is not None and not self._is_called:
            self._is_called = True
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        self._is_called = False  # first: what comes meanwhile calls again
        while self._waiting:
            reply, found, error = self._waiting.popleft()
            if reply.done():
                continue
            if error is None:
                reply.set_result(found)
            else:
                reply.set_exception(error)


@dataclass(frozen=True, slots=True)
class _Asked(Generic[T]):
    """What the database's thread is asked for."""

    work: Callable[[], T]
    reply: asyncio.Future[T]
    replies: _Replies

    def give_up(self) -> None:
        """Wait no longer."""
        if not self.reply.done():
            self.reply.set_exception(SlowStoreError("the database does not answer"))


@dataclass(slots=True)
class _Patience:
    """How many seconds a request may still wait for the database."""

    left: float


_PATIENCE: ContextVar[_Patience | None] = ContextVar("assay_patience", default=None)


class Storage:
    """The thread that owns the database, so that no request waits for another one's disk.

    Usable from any event loop. A database that fails is let go of and opened anew by the next one
    who needs it.

    Args:
        location: As `Database.open` takes it.
        seconds: How long anybody waits for it.
    """

    def __init__(self, location: str, seconds: float = 30.0) -> None:
        self._location = location
        self._path = f"{location}/assay.db"
        self._seconds = seconds
        self._database: Database | None = None
        self._file: tuple[int, int] | None = None
        self._damage: DamagedError | None = None
        self._asked: SimpleQueue[_Asked[Any] | None] | None = None
        self._replies: WeakKeyDictionary[asyncio.AbstractEventLoop, _Replies] = WeakKeyDictionary()

    async def check(self, patience: float = 5.0) -> None:
        """Have the file looked through for damage, beside all other work where it takes long.

        Args:
            patience: Seconds to wait for the end of that.
        """
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def look() -> None:
            try:
                with Database.open(self._location) as database:
                    database.check()
            except DamagedError as error:
                self._note(error)
            except AssayError:  # whoever asks it for something is told
                pass
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(ended.set)

        Thread(target=look, name="assay-check", daemon=True).start()
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), patience)

    def _note(self, damage: DamagedError) -> None:
        """Nothing more is asked of a damaged database: what it acknowledges could be lost."""
        if self._damage is None:
            _LOG.error("%s", damage)
        self._damage = damage

    def start(self) -> None:
        """Start the thread; the database is opened by the first who needs it."""
        self._asked = SimpleQueue()
        # Whoever ends the server waits for it as long as he likes, and no longer.
        Thread(target=self._serve, args=(self._asked,), name="assay-store", daemon=True).start()

    async def run(self, work: Callable[[Database], T], *, seconds: float | None = None) -> T:
        """Do something with the database in one go.

        Args:
            work: What is done.
            seconds: How long to wait for it, if less than the server's.

        Raises:
            SlowStoreError: If it does not answer in time.
            StoreError: If the database cannot be opened, read or written.
        """
        if self._asked is None:
            raise StoreError("the server has not started, or has ended")
        patience = _PATIENCE.get()
        left = self._seconds if patience is None else patience.left
        began = time.monotonic()
        try:
            most = min(seconds or self._seconds, left)
            return await self._ask(self._asked, lambda: self._do(work), most)
        finally:
            if patience is not None:
                patience.left = max(0.0, patience.left - (time.monotonic() - began))

    @contextmanager
    def patience(self) -> Generator[None]:
        """Within it, all that is asked of the database is waited for so long together."""
        token = _PATIENCE.set(_Patience(self._seconds))
        try:
            yield
        finally:
            _PATIENCE.reset(token)

    async def _ask(
        self, thread: SimpleQueue[_Asked[Any] | None], work: Callable[[], T], seconds: float
    ) -> T:
        loop = asyncio.get_running_loop()
        if (replies := self._replies.get(loop)) is None:
            replies = self._replies[loop] = _Replies(loop)
        asked = _Asked(work, loop.create_future(), replies)
        thread.put(asked)
        timer = loop.call_later(seconds, asked.give_up)
        try:
            return await asked.reply
        finally:
            timer.cancel()

    def _serve(self, thread: SimpleQueue[_Asked[Any] | None]) -> None:
        while (asked := thread.get()) is not None:
            if asked.reply.done():  # nobody waits for it any more
                continue
            try:
                asked.replies.put(asked.reply, asked.work(), None)
            except BaseException as error:  # the boundary: raised where it was asked
                asked.replies.put(asked.reply, None, error)
            del asked  # and what it holds
        self._let_go()  # where it hung, nobody waited for that

    def _do(self, work: Callable[[Database], T]) -> T:
        database = self._opened()
        try:
            return work(database)
        except StoreError as error:
            if isinstance(error, DamagedError):
                self._note(error)
            self._let_go()
            raise

    def _opened(self) -> Database:
        if self._damage is not None:
            raise DamagedError(self._damage.message, hint=self._damage.hint)
        if self._database is None:
            self._database = Database.open(self._location)
            self._file = self._identity()
        elif self._identity() != self._file:
            # SQLite would go on writing to a file that has no name any more, and that ends with us.
            gone = f"the file of the store {self._database.place} was removed or replaced"
            raise StoreError(gone, hint="put it back, or start the server again")
        return self._database

    def _identity(self) -> tuple[int, int] | None:
        """Which file the database is in; None where it is in none."""
        if "://" in self._location:
            return None
        try:
            status = os.stat(self._path)  # noqa: PTH116 - for every request
        except FileNotFoundError:
            return None
        except OSError as error:
            why = f"the file of the store {self._path} cannot be looked at: {error.strerror}"
            raise StoreError(why, hint="see that its directory may be read") from error
        return status.st_dev, status.st_ino

    def _let_go(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            with suppress(StoreError):
                database.close()

    async def close(self) -> None:
        """End the thread, once what was asked of it is done; a database that hangs is left."""
        thread, self._asked = self._asked, None
        if thread is not None:
            with suppress(SlowStoreError):
                await self._ask(thread, self._let_go, _CLOSING_SECONDS)
            thread.put(None)
