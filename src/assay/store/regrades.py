"""`Regrades`: how far runs are graded again, told beside the runs: it outlives who does the work.

Whoever grades a run again holds its lock, and so nobody else does, and everybody sees when the
process has ended without a word.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

from assay.errors import ConflictError
from assay.frozen import frozen
from assay.store.database import Database
from assay.store.kept_files import held, is_held
from assay.store.table import Table


@frozen(kw_only=True)
class RegradeState:
    """How far a regrade is.

    Attributes:
        run: Id of the run.
        status: ``none`` where none was begun.
        total: Cells that are graded again; 0 until that is known.
        done: How many of them have their new result.
        left_out: Cells of which nothing was kept that could be graded.
        message: Why it failed.
        by: Who wanted it.
    """

    run: str
    status: Literal["none", "running", "finished", "failed"] = "none"
    total: int = 0
    done: int = 0
    left_out: int = 0
    message: str = ""
    by: str = ""


class Regrades:
    """The newest regrade of each run of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table = Table(database, "regrade", RegradeState, run="run_id", by="wanted_by")

    @contextmanager
    def held(self, run: str) -> Generator[int]:
        """Hold a run while it is graded again, by an open file that is yielded."""
        with held(self._lock(run)) as lock:
            if lock is None:
                raise ConflictError(
                    f"run {run} is being graded again", hint="wait until it has ended"
                )
            yield lock

    def note(self, state: RegradeState) -> None:
        """Store how far one is."""
        with self._database.writing():
            if not self._table.update({"run_id": state.run}, **self._table.written(state)):
                self._table.insert_new(self._table.written(state), unless="(run_id)")

    def of(self, run: str) -> RegradeState:
        """How far the newest one is; one that nobody is at any more has failed.

        It is running until its process has let go of the run: before that no other can be begun.
        """
        was_held = is_held(self._lock(run))  # looked at first: states are noted while it is held
        state = self._table.find({"run_id": run})
        if state is None:
            return RegradeState(run=run)
        if was_held:
            return replace(state, status="running")
        if state.status != "running" or is_held(self._lock(run)):  # begun a moment ago
            return state
        is_shared = "://" in self._database.place
        why = "it was interrupted" + (", or another machine is at it" if is_shared else "")
        return replace(state, status="failed", message=f"{why}; what was graded is kept")

    def _lock(self, run: str) -> Path:
        return Path(self._database.home, f"{run}.regrade.lock")
