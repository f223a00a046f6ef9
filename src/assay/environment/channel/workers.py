"""The front's side of its workers: started, asked, watched, and started again when they die."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

from assay.environment.channel.frames import TcpWire, decode, encode, fault_of
from assay.environment.channel.worker import MOST_BEGINS, MOST_INSIDE, Begins
from assay.errors import AssayError, ChannelError, GradingTimeoutError, InputError
from assay.scoring.json_safe import Json

_LOG = logging.getLogger("assay.channel")
_START_SECONDS = 120.0
_GRACE_SECONDS = 5.0
_NAP_SECONDS = 0.5
_MOST_ALONE = 8


class WorkerGoneError(Exception):
    """The worker died, or was killed, before it answered."""

    def __init__(self, *, was_begun: bool) -> None:
        super().__init__("the worker died")
        self.was_begun = was_begun


class _LateError(Exception):
    """The time to answer is up."""


class _Asked:
    """What a worker was asked: when it began that, if that is noted here, and its answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.began: float | None = None
        self.answered: asyncio.Future[Json] = loop.create_future()

    def take(self, frame: Mapping[str, Json]) -> None:
        if self.answered.done():
            return
        if "error" in frame:
            self.answered.set_exception(fault_of(frame["error"]))
        elif "result" in frame:
            self.answered.set_result(cast("dict[str, Json]", frame["result"])["value"])

    def fail(self, error: Exception) -> None:
        if not self.answered.done():
            self.answered.set_exception(error)


class Worker:
    """One process that runs templates."""

    def __init__(self, process: subprocess.Popen[bytes], wire: TcpWire, begins: Begins) -> None:
        self.manifest: dict[str, Json] = {}
        self.tasks: set[int] = set()
        self._process = process
        self._wire = wire
        self._begins = begins
        self._numbers = itertools.count(1)
        self._asked: dict[int, _Asked] = {}
        self._listening: asyncio.Task[None] | None = None
        self._is_gone = asyncio.Event()

    @classmethod
    async def start(cls, file: str, name: str) -> Worker:
        """Start one, and wait until it has loaded the file."""
        ours, theirs = socket.socketpair()
        with theirs, Begins.shared() as memory:
            begins = Begins(memory)
            passed = theirs.fileno(), memory
            words = [sys.executable, "-m", "assay.environment.channel.worker"]
            words += [*map(str, passed), str(os.getpid()), file, name]
            process = subprocess.Popen(  # noqa: ASYNC220 - a vfork; in a thread, it would die with it
                words,
                stdin=subprocess.DEVNULL,
                stdout=sys.__stderr__.fileno() if sys.__stderr__ else subprocess.DEVNULL,
                pass_fds=passed,
                start_new_session=True,
            )
        try:
            reader, writer = await asyncio.open_connection(sock=ours)
        except BaseException:
            process.kill()
            process.wait()
            ours.close()
            raise
        worker = cls(process, TcpWire(reader, writer), begins)
        try:
            async with asyncio.timeout(_START_SECONDS):
                worker.manifest = await worker._hello(file)
        except TimeoutError:
            await worker.kill()
            raise ChannelError(f"{file} took longer than {_START_SECONDS:g} s to load") from None
        except BaseException:
            await worker.kill()
            raise
        worker._listening = asyncio.create_task(worker._listen())
        return worker

    @property
    def is_gone(self) -> bool:
        """Whether it has died."""
        return self._is_gone.is_set()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def load(self) -> tuple[int, int]:
        """How much it has to do: what it has not answered yet, then what has begun."""
        return len(self._asked), len(self.tasks)

    async def gone(self) -> None:
        """Wait until it has died."""
        await self._is_gone.wait()

    async def ask(self, method: str, params: Mapping[str, Json], seconds: float) -> Json:
        """Ask it something."""
        if self.is_gone:
            raise WorkerGoneError(was_begun=False)
        loop = asyncio.get_running_loop()
        number = next(self._numbers)
        if number - MOST_BEGINS in self._asked:
            self._began(number - MOST_BEGINS)  # noted, before another takes its place
        asked = self._asked[number] = _Asked(loop)
        timer = loop.call_later(seconds, self._look_at, number, seconds)
        try:
            self._wire.post(encode({"id": number, "method": method, "params": dict(params)}))
            return await asked.answered
        except _LateError:
            await self._require_answers(number)
            raise GradingTimeoutError(f"{method} took longer than {seconds:g} s") from None
        finally:
            timer.cancel()
            del self._asked[number]

    def _began(self, number: int) -> float | None:
        """When it began what it was asked; None if it has not."""
        asked = self._asked[number]
        if asked.began is None:
            asked.began = self._begins.when(number)
        return asked.began

    def _look_at(self, number: int, seconds: float) -> None:
        """See whether its time to answer is up, and when else that would be."""
        asked = self._asked.get(number)
        if asked is None:
            return
        loop = asyncio.get_running_loop()
        began = self._began(number)
        left = seconds if began is None else began + seconds - loop.time()
        if left > 0:
            loop.call_later(left, self._look_at, number, seconds)
        else:
            asked.fail(_LateError())

    async def end(self, task: int, patience: float = _GRACE_SECONDS) -> None:
        """End a task; a worker that does not come to that hangs, and is killed.

        ``patience``: How long something else may hold the worker up.
        """
        self.tasks.discard(task)
        with suppress(WorkerGoneError, AssayError):
            try:
                async with asyncio.timeout(patience):
                    await self.ask("end", {"task": task}, patience)
            except TimeoutError:
                _LOG.warning("worker %d does not end a task, and is killed", self.pid)
                await self.kill()

    async def _require_answers(self, late: int) -> None:
        """Kill it if it hangs."""
        try:
            async with asyncio.timeout(_GRACE_SECONDS):
                await self.ask("ping", {}, _GRACE_SECONDS)
        except TimeoutError:
            others = [n for n in self._asked if n != late and self._began(n) is not None]
            _LOG.warning("worker %d does not answer any more, and is killed", self.pid)
            await self.kill()
            if others:
                raise WorkerGoneError(was_begun=True) from None

    async def kill(self) -> None:
        """Kill it, and whatever its tasks have started in its session."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._wire.close()
        await asyncio.to_thread(self._process.wait)
        if self._listening is not None and self._listening is not asyncio.current_task():
            await asyncio.wait({self._listening})
        self._is_gone.set()

    async def stop(self) -> None:
        """Let it end by itself, shutdown hooks and all, and kill it if it does not."""
        self._wire.finish()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_SECONDS):
                await self.gone()
        await self.kill()

    async def _hello(self, file: str) -> dict[str, Json]:
        """What it says when it has loaded its file."""
        said = await self._wire.receive(MOST_INSIDE, _START_SECONDS)
        if said is None:
            raise ChannelError(f"{file} ended the process that loaded it")
        frame = decode(said, bounded=False)
        if "error" in frame:
            fault = fault_of(frame["error"])
            raise InputError(fault.message, hint=fault.hint)
        return cast("dict[str, dict[str, dict[str, Json]]]", frame)["result"]["value"]

    async def _listen(self) -> None:
        try:
            while (data := await self._wire.receive(MOST_INSIDE, 600.0)) is not None:
                frame = decode(data, bounded=False)
                if asked := self._asked.get(cast("int", frame["id"])):
                    asked.take(frame)
        except (ChannelError, KeyError):  # what it wrote is no frame: it is of no use any more
            _LOG.exception("worker %d wrote what is no frame", self.pid)
        finally:
            self._wire.close()
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
            await asyncio.to_thread(self._process.wait)
            self._is_gone.set()
            for number, asked in self._asked.items():
                asked.fail(WorkerGoneError(was_begun=self._began(number) is not None))


class Workers:
    """A fixed number of workers of one file; whichever dies is started again."""

    def __init__(self, file: str, name: str, count: int) -> None:
        self._file = str(Path(file).resolve())
        self._name = name
        self._count = count
        self._living: set[Worker] = set()
        self._keeping: list[asyncio.Task[None]] = []
        self._changed = asyncio.Condition()
        self._alone = asyncio.Semaphore(max(_MOST_ALONE, count))
        self._idle: list[Worker] = []
        self._fault: AssayError | None = None

    @property
    def living(self) -> list[Worker]:
        """Those that live now."""
        return [worker for worker in self._living if not worker.is_gone]

    async def start(self) -> dict[str, Json]:
        """Start them; what the environment offers."""
        first = await Worker.start(self._file, self._name)
        self._living.add(first)
        self._keeping = [
            asyncio.create_task(self._keep(first if number == 0 else None))
            for number in range(self._count)
        ]
        return first.manifest

    async def stop(self) -> None:
        """End them all."""
        for keeping in self._keeping:
            keeping.cancel()
        if self._keeping:
            await asyncio.wait(self._keeping)
        await asyncio.gather(*(worker.stop() for worker in (*self._living, *self._idle)))
        self._living.clear()

    async def least_busy(self) -> Worker:
        """The one that has the least to do; waits for one where none lives."""
        if living := self.living:
            return min(living, key=lambda worker: worker.load)
        async with self._changed:
            while not (living := self.living):
                if self._fault is not None:
                    raise self._fault
                await self._changed.wait()
        return min(living, key=lambda worker: worker.load)

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[Worker]:
        """One that does nothing else meanwhile, for a task that was in others when they died."""
        async with self._alone:
            idle = [worker for worker in self._idle if not worker.is_gone]
            self._idle = idle[1:]
            worker = idle[0] if idle else await Worker.start(self._file, self._name)
            try:
                yield worker
            finally:
                self._idle.append(worker)
                if len(self._idle) > self._count:
                    await self._idle.pop(0).stop()

    async def _keep(self, worker: Worker | None) -> None:
        """Keep one worker alive."""
        while True:
            if worker is None:
                try:
                    worker = await Worker.start(self._file, self._name)
                except (AssayError, OSError) as error:
                    _LOG.error("a worker cannot be started: %s", error)
                    await self._tell(ChannelError(f"no worker can be started: {error}"))
                    await asyncio.sleep(_NAP_SECONDS)
                    continue
                self._living.add(worker)
            await self._tell(None)
            await worker.gone()
            _LOG.warning("worker %d has died, and is started again", worker.pid)
            self._living.discard(worker)
            worker = None

    async def _tell(self, fault: AssayError | None) -> None:
        async with self._changed:
            self._fault = fault
            self._changed.notify_all()
