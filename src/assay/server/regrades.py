"""Runs that are graded again in the background of a server, each in a process of its own.

How far they are is known to the server that began them, until it ends; results are stored as they
come, so that one which is stopped has lost nothing.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import Process
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from assay.errors import ConflictError
from assay.eval.regrading import TOLD, RegradeState
from assay.store.records import CellKey

_MOST_AT_ONCE = 2
_MOST_REMEMBERED = 200
_ENDING_SECONDS = 3.0


class Regrades:
    """The regrades of one server. Belongs to its loop.

    Args:
        location: Its store, as `Database.open` takes it.
    """

    def __init__(self, location: str) -> None:
        self._location = location
        self._states: OrderedDict[str, RegradeState] = OrderedDict()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_ending = False

    def of(self, run: str) -> RegradeState | None:
        """How far the newest one of a run is; None where there was none."""
        return self._states.get(run)

    async def begin(self, run: str, cells: Sequence[CellKey] | None, by: str) -> RegradeState:
        """Begin one.

        Raises:
            ConflictError: If the run is being graded again, or too many are.
        """
        if run in self._tasks:
            raise ConflictError(f"run {run} is being graded again", hint="wait until it has ended")
        if len(self._tasks) >= _MOST_AT_ONCE or self._is_ending:
            raise ConflictError(
                f"{len(self._tasks)} runs are being graded again", hint="wait until one has ended"
            )
        state = RegradeState(run=run, status="running", by=by)
        self._tell(state)
        self._tasks[run] = asyncio.create_task(self._carry_out(cells, state))
        return state

    async def stop(self) -> None:
        """Interrupt those that run; what they graded is kept."""
        self._is_ending = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=2 * _ENDING_SECONDS)

    def _tell(self, state: RegradeState) -> None:
        self._states[state.run] = state
        self._states.move_to_end(state.run)
        while len(self._states) > _MOST_REMEMBERED:
            self._states.popitem(last=False)

    async def _carry_out(self, cells: Sequence[CellKey] | None, state: RegradeState) -> None:
        child: Process | None = None
        try:
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "assay.eval.regrading"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            assert child.stdin is not None
            assert child.stdout is not None
            asked = {"location": self._location, "run": state.run, "cells": cells}
            child.stdin.write(json.dumps(asked).encode())
            child.stdin.close()
            async for line in child.stdout:
                told = cast("dict[str, Any]", json.loads(line))
                state = replace(state, **{name: told[name] for name in TOLD})
                if state.status == "running":  # it ends when the process does
                    self._tell(state)
            await child.wait()
        finally:
            if child is not None:
                await _end(child)
            self._tasks.pop(state.run, None)
            if state.status == "running":
                why = "it was interrupted; what was graded is kept"
                state = replace(state, status="failed", message=why)
            self._tell(state)


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
