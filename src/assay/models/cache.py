"""The cache of replies, which is also the recording that tests and CI replay.

A question asked again is answered from a file: a grading that was interrupted goes on where it
was, a rubric with one new criterion pays for that one, and ``replay`` grades without a network.
Only finished, valid replies are kept; errors, refusals and cut-off replies are asked again.

Equal requests of this process that are under way at the same time are asked once.

The first one asks; the others wait until it is done and find its reply in the cache. Where it
leaves no reply because the endpoint failed, those that waited fail with it: asked one after the
other they would wait for the same again and again. Where its reply was invalid, the next one asks.
Requests may be in different event loops and threads.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
import weakref
from collections import deque
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from assay.errors import AssayError, ModelError, StoreError
from assay.models.faults import ENDPOINT_FAULTS
from assay.models.forking import ForkSafe
from assay.models.messages import Reply
from assay.models.recordings import (
    RecordError,
    ReplyFile,
    pack,
    reply_of,
    to_json,
    unpack,
)
from assay.models.settings import CacheMode

_MOST_AT_ONCE = 1_024


# --- The cache -----------------------------------------------------------------------------------


class ReplyCache(ForkSafe):
    """Replies of models in one file, for the threads and event loops of any number of processes.

    The file is opened when it is first needed. Replies stored at the same time share one
    transaction, made by a thread of the cache's own.

    Args:
        file: The file's path; it is made when the first reply is stored.
        mode: What may be done with it.
    """

    def __init__(self, file: str, mode: CacheMode) -> None:
        self.file = file
        self.mode: CacheMode = mode
        self._flights = InFlight()
        super().__init__()  # what is open is the parent's in a fork, and `_open` sees that
        self._opened: _Opened | None = None

    async def get(self, digest: str, *, model: str = "") -> Reply | None:
        """Look for the reply to a request.

        Args:
            digest: The request's; see `request_digest`.
            model: What is asked, for the error's sake.

        Returns:
            A hit: with the usage it had, at no cost; or None.

        Raises:
            ModelError: Of kind ``not_recorded``, when nothing but recordings may be used.
            StoreError: The file cannot be read, or what it holds is not a reply.
        """
        if self.mode == "off":
            return None
        reader = self._open().reader()
        value = None if reader is None else reader.get(_key(digest))
        if value is not None:
            return self._hit(digest, value)
        if self.mode == "replay":
            raise ModelError(
                f"{model or 'a model'} was asked a question that {self.file} has no recording of "
                f"(request {digest[:12]})",
                kind="not_recorded",
                hint="record it: run once with the cache in mode 'readwrite' (--judge-cache "
                "readwrite, or ASSAY_CACHE=readwrite) and the model's key, then keep the file",
            )
        return None

    async def put(self, digest: str, reply: Reply) -> None:
        """Store a reply; when this returns it will survive whatever happens to the process.

        It takes the place of one that was there, and that was asked again because it was invalid.
        Replies that did not end by themselves are not stored, nor are hits.

        Raises:
            StoreError: It could not be written.
        """
        if self.mode != "readwrite" or reply.is_hit or reply.finish not in ("stop", "tool"):
            return
        try:
            value = pack(to_json(reply))
        except RecordError as error:
            raise StoreError(f"a reply of {reply.model} cannot be recorded: {error}") from None
        loop = asyncio.get_running_loop()
        written = loop.create_future()
        self._open().write(_Write((_key(digest), value), loop, written))
        await written
        self._flights.answered(digest)

    def sharing(
        self, digest: str, patience: float = 180.0
    ) -> AbstractAsyncContextManager[Turn | None]:
        """Let equal requests of this process wait for the first one, then `get` its reply.

        Where the first one leaves no reply the next one asks, unless the endpoint failed: then
        those that wait fail as well. Modes that store nothing do not make anybody wait.

        Args:
            digest: The request's.
            patience: Its timeout in seconds; see `InFlight.sharing`.

        Raises:
            ModelError: On entering; the one that an equal request ended with.
        """
        return self._flights.sharing(digest, patience) if self.mode == "readwrite" else _ALONE

    def close(self) -> None:
        """Write what is under way and close the file; using the cache again opens it again."""
        with self.lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def _hit(self, digest: str, value: bytes) -> Reply:
        try:
            return reply_of(unpack(value), digest=digest)
        except RecordError as error:
            raise StoreError(
                f"the reply {digest[:12]} recorded in {self.file} is damaged: {error}",
                hint="move the file away to begin anew",
            ) from None

    def _open(self) -> _Opened:
        opened = self._opened
        if opened is not None and opened.process == os.getpid():
            return opened
        with self.lock:
            if self._opened is None or self._opened.process != os.getpid():
                self._opened = _Opened(
                    self.file, is_writable=self.mode == "readwrite", parents=self._opened
                )
                weakref.finalize(self, self._opened.close)
            return self._opened


_ALONE: AbstractAsyncContextManager[None] = nullcontext()


def _key(digest: str) -> bytes:
    return bytes.fromhex(digest)


class _Opened:
    """What a cache holds open in one process: a connection to read, and a thread that writes."""

    def __init__(self, file: str, *, is_writable: bool, parents: _Opened | None) -> None:
        self.process = os.getpid()
        # A connection may not be used, not even closed, in a process forked from its own.
        self._parents = parents
        self._file = file
        self._is_writable = is_writable
        self._lock = threading.Lock()
        self._reader: ReplyFile | None = None
        self._writes: queue.SimpleQueue[_Write | None] | None = None
        self._thread: threading.Thread | None = None

    def reader(self) -> ReplyFile | None:
        """The connection to read; None while there is no file to read."""
        with self._lock:
            if self._reader is None and (self._is_writable or Path(self._file).exists()):
                self._reader = ReplyFile(self._file, writable=self._is_writable)
            return self._reader

    def write(self, write: _Write) -> None:
        """Hand a reply to the thread that writes."""
        with self._lock:  # so that nothing comes after the mark that ends the thread
            if self._writes is None:
                file = ReplyFile(self._file, writable=True)
                self._writes = queue.SimpleQueue()
                self._thread = threading.Thread(
                    target=_write_all, args=(file, self._writes), name="assay-replies", daemon=True
                )
                self._thread.start()
            self._writes.put(write)

    def close(self) -> None:
        """Write what waits, and close the connections of this process."""
        if self.process != os.getpid():
            return
        with self._lock:
            reader, self._reader = self._reader, None
            writes, self._writes = self._writes, None
            thread, self._thread = self._thread, None
        if writes is not None and thread is not None:
            writes.put(None)
            thread.join()
        if reader is not None:
            reader.close()


@dataclass(slots=True)
class _Write:
    """One reply to write, and who waits for it."""

    row: tuple[bytes, bytes]
    loop: asyncio.AbstractEventLoop
    written: asyncio.Future[None]


def _write_all(file: ReplyFile, writes: queue.SimpleQueue[_Write | None]) -> None:
    """The writer's thread: everything that waits goes into one transaction, so into one sync."""
    goes_on = True
    while goes_on:
        batch = [writes.get()]
        while batch[-1] is not None and len(batch) < _MOST_AT_ONCE and not writes.empty():
            batch.append(writes.get_nowait())
        goes_on = batch[-1] is not None
        entries = [entry for entry in batch if entry is not None]
        error = _written(file, entries)
        for loop in {entry.loop for entry in entries}:
            theirs = [entry.written for entry in entries if entry.loop is loop]
            try:
                loop.call_soon_threadsafe(_tell, theirs, error)
            except RuntimeError:  # the loop is closed: nobody waits any more
                continue
    file.close()


def _written(file: ReplyFile, entries: list[_Write]) -> AssayError | None:
    try:
        if entries:
            file.put(entry.row for entry in entries)
    except AssayError as error:
        return error
    except Exception as error:  # told to those who wait, who would wait for ever
        return StoreError(f"replies could not be recorded: {error!r}")
    return None


def _tell(waiting: list[asyncio.Future[None]], error: AssayError | None) -> None:
    for written in waiting:
        if written.done():
            continue
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(StoreError(error.message, hint=error.hint))


# --- Requests under way ---------------------------------------------------------------------------

_SHARED = ENDPOINT_FAULTS | {"rate_limited"}
# A request and one that waits for it have the same deadline: the one that waits hears of it first.
_GRACE_SECONDS = 1.0


class InFlight(ForkSafe):
    """Who asks, and who waits, for each digest."""

    def __init__(self) -> None:
        super().__init__()
        self._slots: dict[str, _Slot] = {}

    def renew(self) -> None:
        """Nobody asks in a forked process what its parent asks."""
        super().renew()
        self._slots = {}

    def sharing(self, digest: str, patience: float) -> Turn:
        """Wait for the turn to ask; in the block, look into the cache first.

        Args:
            digest: The request's.
            patience: Seconds that it may take to be answered, once it is asked. Who has waited for
                so long while others asked does not wait for one more: it asks beside them.
        """
        return Turn(self, digest, patience)

    def answered(self, digest: str) -> None:
        """The reply can be found: whoever waits may look, all at once."""
        with self.lock:
            if slot := self._slots.get(digest):
                slot.is_answered = True

    def asked(self, digest: str) -> None:
        """Whoever has the slot is being asked from now on, and does not wait for a turn itself."""
        with self.lock:
            if (slot := self._slots.get(digest)) and slot.asked_at is None:
                slot.asked_at = time.monotonic()

    def enter(self, digest: str, turn: Turn) -> asyncio.Future[None] | None:
        """Take the slot, or a place in its queue."""
        with self.lock:
            slot = self._slots.get(digest)
            if slot is None:
                self._slots[digest] = _Slot()
                turn.is_asking = True
                return None
            turn.loop = asyncio.get_running_loop()
            turn.wake = turn.loop.create_future()
            slot.waiting.append(turn)
            return turn.wake

    def leave(self, digest: str, turn: Turn, error: BaseException | None = None) -> None:
        """Give up the slot, or the place in its queue."""
        with self.lock:
            slot = self._slots.get(digest)
            if slot is None or not turn.is_asking:
                if slot is not None and turn in slot.waiting:
                    slot.waiting.remove(turn)
                return
            turn.is_asking = False
            if slot.is_answered:
                del self._slots[digest]
                for waiting in slot.waiting:
                    waiting.call()
                return
            if isinstance(error, ModelError) and error.kind in _SHARED:
                slot.fail(error, turn.patience)
            while slot.waiting:
                following = slot.waiting.popleft()
                following.is_asking = True
                if following.call():
                    return
                following.is_asking = False
            del self._slots[digest]

    def has_to_wait(self, digest: str, turn: Turn, since: float) -> float:
        """Seconds that one who waits still has to; at 0 it has left the queue."""
        with self.lock:
            slot = self._slots.get(digest)
            if slot is None or turn not in slot.waiting:
                return 0.0  # it was called in this moment
            if slot.asked_at is None:
                return turn.patience
            ends = max(since, slot.asked_at) + turn.patience + _GRACE_SECONDS
            if (left := ends - time.monotonic()) <= 0.0:
                slot.waiting.remove(turn)
            return max(0.0, left)


class _Slot:
    """A digest that somebody asks for."""

    __slots__ = ("asked_at", "is_answered", "waiting")

    def __init__(self) -> None:
        self.asked_at: float | None = None
        self.is_answered = False
        self.waiting: deque[Turn] = deque()

    def fail(self, error: ModelError, patience: float) -> None:
        """End those who wait with an error; but not who may wait longer than who met it."""
        others = [waiting for waiting in self.waiting if waiting.patience > patience]
        for waiting in self.waiting:
            if waiting.patience <= patience:
                waiting.error = error
                waiting.call()
        self.waiting = deque(others)


class Turn(AbstractAsyncContextManager["Turn"]):
    """One request's turn: it asks, or waits, or looks for what another one asked."""

    def __init__(self, flights: InFlight, digest: str, patience: float) -> None:
        self._flights = flights
        self._digest = digest
        self.patience = patience
        self.is_asking = False
        self.error: ModelError | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.wake: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        wake = self._flights.enter(self._digest, self)
        if wake is not None:
            await self._wait(wake)
        return self

    def asked(self) -> None:
        """The request is being asked from now on."""
        if self.is_asking:
            self._flights.asked(self._digest)

    async def _wait(self, wake: asyncio.Future[None]) -> None:
        loop, since = asyncio.get_running_loop(), time.monotonic()
        timer: asyncio.TimerHandle | None = None

        def look() -> None:
            nonlocal timer
            if left := self._flights.has_to_wait(self._digest, self, since):
                timer = loop.call_later(left, look)
            else:
                _finish(wake)

        timer = loop.call_later(self.patience, look)
        try:
            await wake
        except BaseException:  # also when it is cancelled after it was given its turn
            self._flights.leave(self._digest, self)
            raise
        finally:
            timer.cancel()
        if (error := self.error) is not None:
            raise ModelError(error.message, kind=error.kind, status=error.status, hint=error.hint)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._flights.leave(self._digest, self, error)

    def call(self) -> bool:
        """Wake the request in its own loop; False when that loop is gone."""
        if self.loop is None or self.wake is None:
            return False
        try:
            self.loop.call_soon_threadsafe(_finish, self.wake)
        except RuntimeError:
            return False
        return True


def _finish(wake: asyncio.Future[None]) -> None:
    if not wake.done():
        wake.set_result(None)
