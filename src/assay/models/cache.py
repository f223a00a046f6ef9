"""The cache of replies, which is also the recording that tests and CI replay.

A question asked again is answered from a file: a grading that was interrupted goes on where it
was, a rubric with one new criterion pays for that one, and ``replay`` grades without a network.
Only finished, valid replies are kept; errors, refusals and cut-off replies are asked again.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import os
import queue
import threading
import weakref
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from assay.errors import AssayError, ModelError, StoreError
from assay.models.forking import ForkSafe
from assay.models.in_flight import InFlight, Turn
from assay.models.messages import Message, Reply, Request
from assay.models.recordings import (
    RecordError,
    ReplyFile,
    export_replies,
    import_replies,
    pack,
    reply_of,
    to_json,
    unpack,
)
from assay.models.schemas import schema_text
from assay.models.settings import CacheMode
from assay.scoring.json_safe import plain

__all__ = ["CacheMode", "ReplyCache", "export_replies", "import_replies", "request_digest"]

_FORMAT = 1
_MOST_AT_ONCE = 1_024


# --- The key -------------------------------------------------------------------------------------


def request_digest(request: Request, *, protocol: str, base_url: str, model: str) -> str:
    """Digest everything that decides what a model would answer.

    Args:
        request: The question. Its `volatile` strings count only by where they stand; its purpose
            and its timeout do not count.
        protocol: What the endpoint speaks.
        base_url: Where it is.
        model: Its name for the model.
    """
    said = [_said(message) for message in request.messages]
    # What stands for a volatile string may not stand in the text itself, or two texts were one.
    marked = bool(request.volatile) and not any("\0" in text for text in said)
    if marked:
        marks = _marks(request.volatile)
        said = [_with_marks(text, marks) for text in said]
    texts = [text.encode("utf-8", "surrogatepass") for text in said]
    head = _head(
        protocol,
        base_url,
        model,
        None if request.schema is None else schema_text(request.schema),
        request.schema_name,
        request.max_tokens,
        _decimal(request.temperature),
        _decimal(request.top_p),
        request.seed,
        request.reasoning_effort,
        request.repeat,
    )
    digest = hashlib.sha256(head)
    digest.update(b"%d" % marked)
    for message, text in zip(request.messages, texts, strict=True):
        digest.update(f"{message.role} {isinstance(message.content, str)} {len(text)} ".encode())
        digest.update(text)
    return digest.hexdigest()


@functools.lru_cache(maxsize=512)
def _head(*decisive: str | float | None) -> bytes:
    """What is the same for many requests, framed."""
    framed = json.dumps([_FORMAT, *decisive]).encode("ascii")
    return b"%d " % len(framed) + framed


def _said(message: Message) -> str:
    content = message.content
    return content if isinstance(content, str) else json.dumps(plain(content))


def _marks(volatile: Sequence[str]) -> list[tuple[str, str]]:
    """What stands for each volatile string; the longest first, since one may hold another."""
    marks = [(name, f"\0{index}\0") for index, name in enumerate(volatile) if name]
    return sorted(marks, key=lambda mark: -len(mark[0]))


def _with_marks(text: str, marks: Sequence[tuple[str, str]]) -> str:
    for name, mark in marks:
        text = text.replace(name, mark)
    return text


def _decimal(number: float | None) -> float | None:
    return None if number is None else float(number)


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
                "readwrite, or ASSAY_CACHE=readwrite) and the model's key, then keep the file or "
                "its export",
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
                hint="move the file away to begin anew, or import its exported JSONL",
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
