"""A sandboxed command that one talks to while it runs: a server or an agent on standard streams."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import IO, Self, Unpack

from assay.errors import SandboxError
from assay.sandbox.command import (
    Capture,
    Command,
    CommandOptions,
    CommandResult,
    in_thread,
    our_failure,
)
from assay.sandbox.run import carry_out, make_plan

_LINE_BYTES = 4 * 1024 * 1024


def open_command(
    argv: Sequence[str], *, line_bytes: int = _LINE_BYTES, **options: Unpack[CommandOptions]
) -> OpenCommand:
    """A command in a sandbox to talk to; it runs within ``async with``.

    Args:
        argv: As for `run_command`.
        line_bytes: The longest line that ``stdout.readline`` returns. At most about twice as much
            is held in memory, however much the command writes.
        options: As `Command` has them. The limit ``wall_seconds`` is the time of the whole talk. Of
            the output, only standard error counts: what is not read on standard output keeps the
            command waiting.

    Raises:
        InputError: The arguments make no sense.
        SandboxUnavailableError: This machine cannot isolate the command.
    """
    return OpenCommand(Command(argv, **options), line_bytes)


class OpenCommand:
    """A command that runs until its ``async with`` is left, and then is killed with all it started.

    A failure of the sandbox is raised by `wait` and on leaving, in the place of whatever error the
    silence of the command has led to.

    Attributes:
        stdin: To the command, as `asyncio` has it: ``write`` and ``await drain()``; ``close`` ends
            its input. Once it has ended, ``drain`` raises ConnectionError.
        stdout: From the command: ``await readline()``, ``read(n)``, and ``b""`` at its end. A line
            longer than ``line_bytes`` is a ValueError.
    """

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader

    def __init__(self, command: Command, line_bytes: int) -> None:
        self._command, self._plan = command, make_plan(command)
        self._line_bytes = line_bytes
        self._stderr = Capture(0)
        self._pipes: list[IO[bytes]] = []
        self._transports: list[asyncio.WriteTransport | asyncio.ReadTransport] = []
        self._result: CommandResult | None = None
        self._fault: BaseException | None = None

    @property
    def stderr(self) -> str:
        """What it has written to standard error so far: head and tail, up to ``output_bytes``."""
        return self._stderr.text()

    async def wait(self) -> CommandResult:
        """Wait for its end. Read ``stdout`` first: a command that nobody reads may never end.

        The result has no ``stdout``, and no ``exit_code`` where leaving ``async with`` was its end.
        """
        await asyncio.wait([self._task])
        if self._fault is not None:
            raise self._fault
        if self._result is None:
            raise SandboxError("the command was never started")
        return self._result

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[None] = loop.create_future()
        self._task = asyncio.create_task(in_thread(lambda cancel: self._run(cancel, loop, opened)))
        try:
            await asyncio.wait([self._task, opened], return_when=asyncio.FIRST_COMPLETED)
            if not opened.done():
                await self._task  # which says why
            await self._connect(loop)
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(self, _: object, error: BaseException | None, *__: object) -> None:
        await self._end()
        fault = self._fault
        if fault is not None and fault is not error and isinstance(error, Exception | None):
            raise fault from error

    def _run(
        self, cancel: int, loop: asyncio.AbstractEventLoop, opened: asyncio.Future[None]
    ) -> CommandResult:
        """On a thread of its own: all of the command's life."""

        def talk(stdout: int, stderr: Capture) -> None:
            self._pipes.append(os.fdopen(stdout, "rb", buffering=0))
            self._stderr = stderr
            loop.call_soon_threadsafe(opened.set_result, None)

        try:
            with our_failure("cannot start a command"):
                given, stdin = os.pipe()
            self._pipes.append(os.fdopen(stdin, "wb", buffering=0))
            self._result = carry_out(
                self._command, self._plan, stdin=given, cancel=cancel, talk=talk
            )
        except BaseException as error:
            # Kept here as well: of a task that is being cancelled it would be lost.
            self._fault = error
            raise
        return self._result

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> None:
        to_it, from_it = self._pipes
        self.stdout = asyncio.StreamReader(self._line_bytes)
        reading, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self.stdout), from_it
        )
        self._transports.append(reading)
        self._nothing = asyncio.StreamReader()  # a protocol that knows back-pressure has a reader
        writing, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(self._nothing), to_it
        )
        self._transports.append(writing)
        self.stdin = asyncio.StreamWriter(writing, protocol, None, loop)

    async def _end(self) -> None:
        """Kill it; return when nothing of it is left, however often this is cancelled."""
        for transport in self._transports:
            if not isinstance(transport, asyncio.WriteTransport):
                transport.close()
            elif not transport.is_closing() or transport.get_write_buffer_size():
                transport.abort()  # `close` waits until all is written
        self._task.cancel()
        cancelled: asyncio.CancelledError | None = None
        while True:
            try:
                await asyncio.sleep(0)  # once at least: transports close their files in the loop
                await asyncio.wait([self._task])
                break
            except asyncio.CancelledError as error:
                cancelled = error
        if not self._task.cancelled():
            self._task.exception()  # seen: it must not be reported as never retrieved
        for pipe in self._pipes:
            pipe.close()
        if cancelled is not None:
            raise cancelled
