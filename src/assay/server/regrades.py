"""Runs that are graded again in the background of a server, each in a process of its own.

How far they are stands in the store; results are stored as they come, so that one which is stopped
has lost nothing.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from assay.errors import ConflictError
from assay.store.database import Database
from assay.store.records import CellKey
from assay.store.regrades import Regrades, RegradeState

if TYPE_CHECKING:
    from assay.server.storage import Storage

_MOST_AT_ONCE = 2
_ENDING_SECONDS = 3.0


class Regrading:
    """The regrades of one server. Belongs to its loop.

    Args:
        location: Its store, as `Database.open` takes it.
        storage: The same, opened.
    """

    def __init__(self, location: str, storage: Storage) -> None:
        self._location = location
        self._storage = storage
        self._tasks: set[asyncio.Task[None]] = set()
        self._beginning = asyncio.Lock()
        self._is_ending = False

    async def begin(self, run: str, cells: Sequence[CellKey] | None, by: str) -> RegradeState:
        """Begin one.

        Raises:
            ConflictError: If the run is being graded again, or too many are.
        """
        state = RegradeState(run=run, status="running", by=by)
        async with self._beginning:
            if len(self._tasks) >= _MOST_AT_ONCE or self._is_ending:
                raise ConflictError(
                    f"{len(self._tasks)} runs are being graded again",
                    hint="wait until one has ended",
                )
            await self._begin(state, cells)
        return state

    async def _begin(self, state: RegradeState, cells: Sequence[CellKey] | None) -> None:
        with ExitStack() as stack:

            def note(database: Database) -> int:
                regrades = Regrades(database)
                lock = stack.enter_context(regrades.held(state.run))
                regrades.note(state)
                return lock

            lock = await self._storage.run(note)
            asked = {"location": self._location, "run": state.run, "cells": cells, "by": state.by}
            task = asyncio.create_task(self._carry_out(asked, lock, stack.pop_all()))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Interrupt those that run; what they graded is kept."""
        self._is_ending = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2 * _ENDING_SECONDS)

    async def _carry_out(self, asked: object, lock: int, held: ExitStack) -> None:
        with held:
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "assay.eval.regrading"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,  # what graders of one's own print
                pass_fds=(
                    lock,
                ),  # it holds the run for as long as it lives, whoever has started it
            )
            try:
                await child.communicate(json.dumps(asked).encode())
            finally:
                await _end(child)


async def _end(child: Process) -> None:
    """End it as Ctrl-C does, and if it does not, for good."""
    if child.returncode is not None:
        return
    for number in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            child.send_signal(number)
        with suppress(TimeoutError):
            await asyncio.wait_for(child.wait(), _ENDING_SECONDS)
            return
