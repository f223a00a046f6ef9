"""`Store`: runs and the results of their cells.

Results are appended, never overwritten: a second result of a cell (it was resumed after an error,
or graded again) is a new row, and readers see the newest. A cell's narrow row and its full detail
are one transaction, so a process killed at any moment leaves whole cells only. After a power cut
the last few may be missing, never torn.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Self, cast

from assay.errors import InputError, StoreError, nearest
from assay.scoring.json_safe import Json
from assay.store.checks import plain
from assay.store.database import Database
from assay.store.pages import FIRST, Order, Page, Stretch
from assay.store.records import (
    BY_CELL,
    CELL_KEY,
    UNREAD,
    CellColumns,
    CellKey,
    CellRecord,
    Cells,
    CellStatus,
    Packer,
    RunRecord,
    StoredCell,
    cell_row,
    of_cell,
    read_cell,
    run_json,
)
from assay.store.row_pictures import put_aside, put_back
from assay.store.table import Rows, Table, Where

_NAMED = 3
_RESULT = (*CellColumns._fields, "snapshot")
_NO_RUNS = "nothing was run yet"
_PAGE = 256
"""Cells fetched at a time: bounds memory, and no read is left open while a caller thinks."""

_NEWEST_FIRST = Order("created_at, seq", (str, int), descending=True)
_NEWEST_RUN = _NEWEST_FIRST.sql
_FAILED = "(status = 'error' OR passed = 0)"
_JUDGED = ('%"cost_usd"%', '%"error_kind"%')
"""What only the scores of judges have; see `assay.reports.totals`."""
_OF_JUDGES = "CASE WHEN subscores LIKE ? OR subscores LIKE ? THEN subscores ELSE '[]' END"
# A stretch of a run, with what is told apart by nothing else.
_STRETCH_OF = """(
    SELECT *, CASE WHEN status = 'error' THEN content ELSE '' END AS trouble,
      flags <> '[]' OR subscores LIKE ? OR subscores LIKE ? AS odd
    FROM newest WHERE run_id = ? AND seq BETWEEN ? AND ?) AS cells"""
_ALIKE = (
    "run_id, harness, model, status, reward, passed, threshold, cost_usd, tokens, digest, error, "
    "notes, trouble"
)
_MERGED = {  # what is shown of cells that are alike
    **UNREAD,
    "case_id": "''",
    "trial": "1",
    "flags": "'[]'",
    "file": "''",
    "seconds": "sum(seconds)",
    "content": "trouble",
}
_WORTH_A_LOOK = f"({_FAILED} OR flags <> '[]')"
_LONGEST_HINT = 300
_STRETCH = 10_000
"""Cells that are looked through at a time for those that are alike."""


def new_run_id(now: datetime) -> str:
    """An id for a run that starts now: ``YYYYMMDD-HHMMSS-xxxx`` in UTC: ids sort by time."""
    if now.utcoffset() is None:
        raise InputError("a run id needs a time with its zone", hint="use datetime.now(UTC)")
    return f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{os.urandom(2).hex()}"


def listed(cells: Sequence[CellRecord]) -> str:
    """Name cells of one case by agent and trial; the first five."""
    names = (" ".join(filter(None, (c.harness, c.model, f"trial {c.trial}"))) for c in cells[:5])
    return "; ".join(names) + (f"; and {len(cells) - 5} more" if len(cells) > 5 else "")


class Store:
    """Runs and results; made by `Store.open`, closed by ``with``.

    Several processes may write to one store at once. A `Store` itself belongs to the thread and
    the process that opened it (for a runner: the thread of its event loop, where a write takes a
    fraction of a millisecond); others open their own.

    Attributes:
        home: The directory of what is kept as files, such as snapshots.
    """

    def __init__(self, database: Database) -> None:
        self.home = database.home
        self._database = database
        self._packer = Packer()
        self._runs = Table(database, "run", RunRecord)
        self._newest = Cells(database)
        self._results = Cells(database, "result")

    @classmethod
    def open(cls, location: str, *, home: str = "") -> Store:
        """Open the store at a location, usually the directory ``.assay``; see `Database.open`."""
        return cls(Database.open(location, home=home))

    @property
    def database(self) -> Database:
        """Where the runs are stored."""
        return self._database

    def close(self) -> None:
        """Give the database back; nothing can be read or written afterwards."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create_run(self, run: RunRecord) -> None:
        """Record a launch before its first cell.

        Raises:
            InputError: If the label is the reserved word ``latest``.
            StoreError: If the id is taken, or the database cannot be written.
        """
        if run.label == "latest":
            raise InputError(
                "a run cannot be labelled 'latest'", hint="the word stands for the newest run"
            )
        row = {**self._runs.written(run, "config", "digests"), **run_json(run)}
        with self._database.writing():
            if self._has_run(run.id):
                raise StoreError(f"there is already a run {run.id}", hint="resume it, or retry")
            self._runs.insert(row)

    def finish_run(self, run_id: str) -> None:
        """Record that every planned cell was stored."""
        with self._database.writing():
            if not self._runs.update({"id": run_id}, finished=1):
                raise self._unknown_run(run_id)

    def is_finished(self, run_id: str) -> bool:
        """Whether a run has ended by now; not so if there is none."""
        return bool(self._runs.count({"id": run_id, "finished": 1}))

    def forget_run(self, run_id: str) -> None:
        """Remove a run with all that is stored of it."""
        own = "seq IN (SELECT seq FROM result WHERE run_id = ?)"
        with self._database.writing():
            self._database.change(f"DELETE FROM detail WHERE {own}", run_id)
            self._results.delete({"run_id": run_id})
            self._database.change("DELETE FROM regrade WHERE run_id = ?", run_id)
            if not self._runs.delete({"id": run_id}):
                raise self._unknown_run(run_id)

    def run(self, ref: str) -> RunRecord:
        """Find a run by what people call it.

        That is an id, a label (the newest run that has it), ``latest``, or the unambiguous
        beginning of an id; tried in this order.

        Raises:
            InputError: If nothing, or more than one run, is meant by it; names the nearest.
        """
        name = plain(ref)
        attempts: list[tuple[Where, str, int]] = []
        if name:
            attempts += [({"id": name}, "", 1), ({"label": name}, _NEWEST_RUN, 1)]
        if name == "latest":
            attempts.append(({}, _NEWEST_RUN, 1))
        if name:
            attempts.append(({"substr(id, 1, ?) = ?": (len(name), name)}, "id", 5))
        for where, order, limit in attempts:
            found = self._runs.select(where, order=order, limit=limit)
            if len(found) == 1:
                return found[0]
            if found:
                ids = ", ".join(run.id for run in found)
                raise InputError(f"{ref!r} may mean several runs", hint=f"say which: {ids}")
        raise self._unknown_run(ref)

    def interrupted(
        self, config: Mapping[str, Json], digests: Mapping[str, str], planned: int
    ) -> RunRecord | None:
        """The newest unfinished run of exactly this, to be gone on with, if there is one."""
        for run in self._runs.select({"finished": 0}, order=_NEWEST_RUN, limit=50):
            if (run.config, run.digests, run.planned) == (config, digests, planned):
                return run
        return None

    def newest_unfinished(self) -> str:
        """The id of the newest run of cases that has not ended; empty where all have."""
        found = self._runs.select({"finished": 0}, order=_NEWEST_RUN, limit=50)
        return next((run.id for run in found if run.config.get("kind") != "dataset"), "")

    def runs(self, wanted: Stretch = FIRST) -> Page[RunRecord]:
        """The runs, newest first."""
        return self._runs.page({}, _NEWEST_FIRST, wanted)

    def add_cell(self, cell: CellRecord, detail: Mapping[str, Json], snapshot: str = "") -> None:
        """Append a result: its row and its detail land together, or not at all.

        Measurements that make no sense (a cost of infinity, tokens beyond 64 bits: an agent's
        trace may claim anything) are stored as unknown, and unpaired surrogates in texts as ``?``;
        the detail keeps both as they came.

        Args:
            cell: The narrow row.
            detail: The whole `Run` as JSON.
            snapshot: Digest of the workspace that was left, or empty.

        Raises:
            InputError: For an unknown run, or a key that is not valid Unicode.
            StoreError: If the detail is not JSON, the row contradicts itself (graded without a
                reward, a reward outside [0, 1]), or the database cannot be written.
        """
        if not snapshot and "row" in detail and not self.database.is_shared:
            detail, snapshot = put_aside(self.home, detail)
        body = self._packer.pack(detail, f"the detail of cell {cell.key}")
        self.add_rows(cell.run_id, [(cell_row(cell), snapshot, body)])

    def add_rows(self, run_id: str, rows: Sequence[StoredCell]) -> None:
        """Append results of a run that are rows already: all of them land, or none does."""
        with self._database.writing():
            if not self._has_run(run_id):
                raise self._unknown_run(run_id)
            results = [(*row, snapshot) for row, snapshot, _ in rows]
            places = self._database.insert_numbered("result", _RESULT, results)
            details = [(seq, body) for seq, (_, _, body) in zip(places, rows, strict=True)]
            self._database.insert_many("detail", ("seq", "body"), details)

    def add_again(self, cell: CellRecord) -> None:
        """Append a result of what was kept with the newest one of its cell."""
        newest = Rows(self._database, "newest JOIN detail USING (seq)")
        where = of_cell(cell.run_id, cell.key)
        ((snapshot, body),) = newest.rows("snapshot, body", where)
        self.add_rows(cell.run_id, [(cell_row(cell), snapshot, bytes(body))])

    def cells(self, run_id: str) -> Iterator[CellRecord]:
        """The newest result of every cell, ordered by case, harness, model and trial.

        Read a page at a time: memory stays constant, and results may be added while it is read
        (those of cells that were already passed are not seen). Errors are failures.
        """
        self._require_run(run_id)
        return self._pages(self._newest, run_id)

    def counted_cells(self, run_id: str) -> Iterator[CellRecord]:
        """As `cells`, with what totals need: no answers, and no score trees but those of judges."""
        self._require_run(run_id)
        shown = {"answer": "''", "subscores": _OF_JUDGES}
        return self._pages(Cells(self._database, shown=shown, bound=_JUDGED), run_id)

    def _pages(self, cells: Cells, run_id: str) -> Iterator[CellRecord]:
        after: CellKey = ("", "", "", 0)
        while True:
            where: Where = {"run_id": run_id, BY_CELL.behind: after}
            page = cells.within(cells.columns, where, BY_CELL.by, limit=_PAGE)
            for row in page:  # read one by one, which is quicker than many at once
                cell = read_cell(row)
                after = cell.key
                yield cell
            if not page:
                return

    def alike_cells(self, run_id: str) -> Iterator[tuple[CellRecord, int]]:
        """The cells of a dataset's run, those that no total tells apart as one, and how many.

        Such a cell has no name, answer or score tree, and the seconds of all of them. What is
        flagged, and what judges scored, comes cell by cell as it is.
        """
        self._require_run(run_id)
        ((first, last),) = self._results.rows("min(seq), max(seq)", {"run_id": run_id})
        # In the order in which they lie in the file: in any other, each is a page to be read.
        for start in () if first is None else range(first, last + 1, _STRETCH):
            bound = (*_JUDGED, run_id, start, start + _STRETCH - 1)
            alike = Cells(self._database, _STRETCH_OF, shown=_MERGED, bound=bound)
            merged = f"{alike.columns}, count(*), odd"
            has_odd = False
            for *row, times, odd in alike.rows(merged, {}, group=f"{_ALIKE}, odd"):
                if odd:
                    has_odd = True
                else:
                    yield read_cell(row), times
            odd_ones = Cells(self._database, _STRETCH_OF, bound=bound)
            for cell in odd_ones.select({"odd": ()}) if has_odd else ():
                yield cell, 1

    def first_cells(
        self, run_id: str, status: CellStatus, *, passed: bool | None, limit: int
    ) -> list[CellRecord]:
        """The first cells that ended in one way; `r9` comes before `r10`."""
        where = {"run_id": run_id, "status": status, "passed": passed}
        return self._newest.select(where, order=f"length(case_id), {CELL_KEY}", limit=limit)

    def against_labels(self, run_id: str, limit: int) -> list[CellRecord]:
        """The first rows that people labelled true or false, and graders the other way."""
        said = ('%"label":false%', '%"label":true%')
        where: Where = {"run_id": run_id, "status": "graded"}
        otherwise: Where = {"notes LIKE CASE passed WHEN 1 THEN ? ELSE ? END": said}
        return self._newest.select(
            {**where, **otherwise}, order="length(case_id), case_id", limit=limit
        )

    def cells_of(self, run_id: str, cases: Sequence[str]) -> dict[str, CellRecord]:
        """The newest results of some cases, those that have one.

        For at most a few hundred that have one cell each, as rows of a dataset do.
        """
        found = self._newest.select({"run_id": run_id, "case_id": list(cases)}) if cases else []
        return {cell.case: cell for cell in found}

    def cells_of_case(
        self,
        run_id: str,
        case: str,
        *,
        harness: str | None = None,
        model: str | None = None,
        trial: int | None = None,
    ) -> list[CellRecord]:
        """The newest results of the cells of a case, those of one agent or trial if asked for."""
        self._require_run(run_id)
        cells = self._newest.select({"run_id": run_id, "case_id": case}, order=CELL_KEY)
        if not cells:
            some = "SELECT DISTINCT case_id FROM result WHERE run_id = ? LIMIT 1000"
            names = [str(name) for (name,) in self._database.rows(some, run_id)]
            close = nearest(case, names)
            hint = close if len(close) <= _LONGEST_HINT else f"it has {len(names):,} cases or more"
            raise InputError(f"no case {case!r} in run {run_id}", hint=hint)
        wanted = {"harness": harness, "model": model, "trial": trial}
        given = {name: value for name, value in wanted.items() if value is not None}
        found = [c for c in cells if all(getattr(c, n) == value for n, value in given.items())]
        if not found:
            said = " and ".join(f"{name} {value!r}" for name, value in given.items())
            raise InputError(
                f"no cell of case {case!r} in run {run_id} has {said}",
                hint=f"it has {listed(cells)}",
            )
        return found

    def history(self, run_id: str, key: CellKey, *, noted: str = "") -> list[CellRecord]:
        """Every result a cell ever had, oldest first; empty for a cell that has none.

        Args:
            run_id: The run.
            key: The cell.
            noted: Only those whose notes have this, and without their answers and score trees.
        """
        self._require_run(run_id)
        if not noted:
            return self._results.select(of_cell(run_id, key), order="seq")
        with_note: Where = {**of_cell(run_id, key), "notes LIKE ?": f'%"{noted}":%'}
        return Cells(self._database, "result", shown=UNREAD).select(with_note, order="seq")

    def regraded(self, run_id: str) -> list[CellKey]:
        """Keys of the cells that have more than one result, in order."""
        self._require_run(run_id)
        again = f"{CELL_KEY} HAVING count(*) > 1"
        return self._results.rows(CELL_KEY, {"run_id": run_id}, group=again, order=CELL_KEY)

    def snapshots(self, run_id: str) -> set[str]:
        """Digests of the workspaces that the results of a run, also earlier ones, left behind."""
        kept: Where = {"run_id": run_id, "snapshot <> ''": ()}
        return set(self._results.column("DISTINCT snapshot", kept))

    def every_result(self, run_id: str) -> Iterator[tuple[CellRecord, str, dict[str, Json]]]:
        """All results of a run, also earlier ones of a cell, in the order in which they came.

        Yields:
            The narrow row, the digest of its snapshot or an empty text, and the whole detail.
        """
        self._require_run(run_id)
        whole, after = Rows(self._database, "result JOIN detail USING (seq)"), 0
        columns = f"seq, snapshot, body, {self._results.columns}"
        while page := whole.rows(
            columns, {"run_id": run_id, "seq >": after}, order="seq", limit=64
        ):
            for seq, snapshot, body, *row in page:
                cell, after = read_cell(row), seq
                detail = self._packer.unpack(body, f"the detail of cell {cell.key}")
                yield cell, snapshot, detail

    def detail(self, run_id: str, key: CellKey) -> dict[str, Json]:
        """The full detail of a cell's newest result."""
        return self.unpacked(self.packed(run_id, key), f"the detail of cell {key}")

    def unpacked(self, body: bytes, what: str) -> dict[str, Json]:
        """A detail as it was before it was packed, its pictures in it."""
        return put_back(self.home, self._packer.unpack(body, what))

    def packed(self, run_id: str, key: CellKey) -> bytes:
        """The same as it is kept, which `Packer` reads."""
        self._require_run(run_id)
        whole = Rows(self._database, "newest JOIN detail USING (seq)")
        found = whole.column("body", of_cell(run_id, key))
        if not found:
            raise InputError(f"run {run_id} has no result for cell {key}")
        return bytes(found[0])

    def beside(self, run_id: str, key: CellKey, *, forward: bool) -> CellKey | None:
        """The next cell, or the one before, that failed, is an error, or is flagged."""
        way, order = (">", "") if forward else ("<", " DESC")
        where: Where = {
            "run_id": run_id,
            f"({CELL_KEY}) {way} (?, ?, ?, ?)": key,
            _WORTH_A_LOOK: (),
        }
        order = ", ".join(f"{name}{order}" for name in CELL_KEY.split(", "))
        found = self._newest.rows(CELL_KEY, where, order=order, limit=1)
        return cast("CellKey", found[0]) if found else None

    def worth_a_look(self, run_id: str, key: CellKey) -> tuple[int, int]:
        """How many cells failed, are errors or flagged: up to a cell, and in all."""
        upto = f"sum(CASE WHEN ({CELL_KEY}) <= (?, ?, ?, ?) THEN 1 ELSE 0 END)"
        where: Where = {"run_id": run_id, _WORTH_A_LOOK: ()}
        ((before, every),) = Rows(self._database, "newest", key).rows(f"{upto}, count(*)", where)
        return before or 0, every

    def finished(self, run_id: str) -> set[CellKey]:
        """Keys of the cells that need not be run again: newest result graded or skipped."""
        self._require_run(run_id)
        return set(self._newest.rows(CELL_KEY, {"run_id": run_id, "status <>": "error"}))

    def cell_count(self, run_id: str) -> int:
        """How many cells of a run have a result so far."""
        self._require_run(run_id)
        return self._newest.count({"run_id": run_id})

    def agents(self, run_id: str) -> list[tuple[str, str]]:
        """Harness and model of each agent of a run that has a result, in order."""
        self._require_run(run_id)
        agents = "harness, model"
        return self._results.rows(agents, {"run_id": run_id}, group=agents, order=agents)

    def _has_run(self, run_id: str) -> bool:
        return bool(self._database.rows("SELECT 1 FROM run WHERE id = ?", plain(run_id)))

    def _require_run(self, run_id: str) -> None:
        if not self._has_run(run_id):
            raise self._unknown_run(run_id)

    def _unknown_run(self, ref: str) -> InputError:
        runs = self.runs(Stretch(20)).items
        names = [name for run in runs for name in (run.id, run.label, "latest") if name]
        hint = nearest(ref, names)
        if not hint.startswith("did"):  # so many names would help nobody
            newest = ", ".join(run.id for run in runs[:_NAMED])
            hint = f"the newest: {newest}; `assay runs` lists them" if runs else _NO_RUNS
        return InputError(f"there is no run {ref!r} in {self._database.place}", hint=hint)
