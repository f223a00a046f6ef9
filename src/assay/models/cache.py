"""The cache of replies, which is also the recording that tests and CI replay.

A question asked again is answered from a file: a grading that was interrupted goes on where it
was, a rubric with one new criterion pays for that one, and ``replay`` grades without a network.
Only finished, valid replies are kept; errors, refusals and cut-off replies are asked again.

Equal requests of an event loop that are under way at the same time are asked once. The first one
asks; the others wait until it is done and find its reply in the cache. Where it leaves no reply
because the endpoint failed, those that waited fail with it: asked one after the other they would
wait for the same again and again. Where its reply was invalid, the next one asks.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TypeAlias

from assay.conversation.messages import Reply
from assay.errors import AssayError, ModelError, StoreError
from assay.models.faults import ENDPOINT_FAULTS
from assay.models.forking import ForkSafe
from assay.models.records import STORABLE, RecordError, pack, unpack
from assay.models.reply_file import ReplyFile
from assay.models.settings import CacheMode

_SHARED = ENDPOINT_FAULTS | {"rate_limited"}

_Rows: TypeAlias = list[tuple[bytes, bytes]]
_Ending: TypeAlias = "asyncio.Future[ModelError | bool]"
"""What came of a request: a reply that can be found, none, or an error of those that are shared."""


class ReplyCache:
    """Replies of models in one file, for the threads and event loops of any number of processes.

    The file is opened when it is first needed. Replies of an event loop that are stored at the same
    time share one transaction, so one wait for the disk.

    Args:
        file: The file's path; it is made when the first reply is stored.
        mode: What may be done with it.
    """

    def __init__(self, file: str, mode: CacheMode) -> None:
        self.file = file
        self.mode: CacheMode = mode
        # Two connections, so that nobody who reads waits for the disk that another one writes to.
        self._reader = ReplyFile(file, writable=mode == "readwrite")
        self._writer = ReplyFile(file, writable=True)
        self._loops = _Loops()

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
        value = self._reader.get(bytes.fromhex(digest))
        if value is not None:
            try:
                return unpack(value, digest=digest)
            except RecordError as error:
                raise StoreError(
                    f"the reply {digest[:12]} recorded in {self.file} is damaged: {error}",
                    hint="move the file away to begin anew",
                ) from None
        if self.mode == "replay":
            raise ModelError(
                f"{model or 'a model'} was asked a question that {self.file} has no recording of "
                f"(request {digest[:12]})",
                kind="not_recorded",
                hint="run once with ASSAY_CACHE=readwrite and the model's key; keep the file",
            )
        return None

    async def put(self, digest: str, reply: Reply) -> None:
        """Store a reply; when this returns it will survive whatever happens to the process.

        It takes the place of one that was there, and that was asked again because it was invalid.
        Replies that did not end by themselves are not stored, nor are hits.

        Raises:
            StoreError: It could not be written.
        """
        if self.mode != "readwrite" or reply.is_hit or reply.finish not in STORABLE:
            return
        try:
            value = pack(reply)
        except RecordError as error:
            raise StoreError(f"a reply of {reply.model} cannot be recorded: {error}") from None
        here = self._loops.here()
        if here.next is None:
            rows: _Rows = []
            here.next = rows, asyncio.create_task(self._write(here, rows, here.last))
            here.last = here.next[1]
        rows, writing = here.next
        rows.append((bytes.fromhex(digest), value))
        error = await asyncio.shield(writing)
        if error is not None:
            raise StoreError(error.message, hint=error.hint)

    async def _write(
        self, here: _Loop, rows: _Rows, before: asyncio.Task[AssayError | None] | None
    ) -> AssayError | None:
        if before is not None:
            await asyncio.wait([before])
        here.next = None  # what comes from now on is written next
        try:
            await self._put(rows)
        except AssayError as error:
            return error
        finally:
            if here.last is asyncio.current_task():
                here.last = None  # a task would keep its loop, and the loop this
        return None

    async def _put(self, rows: _Rows) -> None:
        try:
            writing = asyncio.get_running_loop().run_in_executor(None, self._writer.put, rows)
        except RuntimeError:  # the program ends, and begins no thread: these replies are paid for
            self._writer.put(rows)
        else:
            await writing

    @asynccontextmanager
    async def sharing(self, digest: str, patience: float = 180.0) -> AsyncGenerator[None]:
        """Let equal requests of this event loop wait for the first one, then `get` its reply.

        Where the first one leaves no reply the next one asks, unless the endpoint failed: then
        those that wait fail as well. Modes that store nothing do not make anybody wait.

        Args:
            digest: The request's.
            patience: Its timeout in seconds. Those whose timeouts differ do not wait for each
                other; who has waited for so long does not wait for one more: it asks beside them.

        Raises:
            ModelError: On entering; the one that an equal request ended with.
        """
        if self.mode != "readwrite":
            yield
            return
        here, key, begun = self._loops.here(), (digest, patience), time.monotonic()
        while (asking := here.asking.get(key)) and time.monotonic() - begun < patience:
            ended = await asyncio.shield(asking)
            if isinstance(ended, ModelError):
                raise ModelError(
                    ended.message, kind=ended.kind, status=ended.status, hint=ended.hint
                )
            if ended:
                yield
                return
        if asking:
            yield
            return
        here.asking[key] = asking = asyncio.get_running_loop().create_future()
        ending: ModelError | bool = False
        try:
            yield
            ending = True
        except ModelError as error:
            if error.kind in _SHARED:
                ending = error
            raise
        finally:
            del here.asking[key]
            asking.set_result(ending)

    def close(self) -> None:
        """Close the file; using the cache again opens it again."""
        self._reader.close()
        self._writer.close()


class _Loop:
    """What is under way in one event loop."""

    def __init__(self) -> None:
        self.asking: dict[tuple[str, float], _Ending] = {}
        self.next: tuple[_Rows, asyncio.Task[AssayError | None]] | None = None
        self.last: asyncio.Task[AssayError | None] | None = None


class _Loops(ForkSafe):
    """What is under way in each event loop, for as long as the loop is there."""

    def __init__(self) -> None:
        super().__init__()
        self._known: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = (
            weakref.WeakKeyDictionary()
        )

    def renew(self) -> None:
        """Nobody asks in a forked process what its parent asks."""
        super().renew()
        self._known = weakref.WeakKeyDictionary()

    def here(self) -> _Loop:
        """That of the running loop."""
        loop = asyncio.get_running_loop()
        with self.lock:
            known = self._known.get(loop)
            if known is None:
                known = self._known[loop] = _Loop()
        return known
