"""A store as where graded rows go: the rows of a dataset are the cells of a run.

Each shard is stored in one transaction. The next grading of the same rows by the same graders goes
on with the rows that are not stored yet, and those that could not be graded.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Self, TypeAlias, cast

from assay.errors import AssayError, InputError
from assay.eval.batch import in_batches
from assay.eval.records import (
    digest_with_files,
    graders_digest,
    row_record,
    shortened,
    start_run,
)
from assay.eval.rows.grading import computes, is_pure
from assay.eval.rows.recorded import RowTerms
from assay.eval.rows.shard_work import Block, ShardWork, batch_size
from assay.eval.rows.shards import Shard, read_row_of, read_shard
from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult
from assay.scoring.strict_json import json_encoding
from assay.shown import Ended
from assay.store.checks import plain
from assay.store.kept_files import at_work, held, rows_lock
from assay.store.records import CellColumns, Packer, RunRecord, StoredCell, cell_row
from assay.store.row_pictures import put_aside
from assay.store.runs import Store
from assay.tasks.rows import Row

OnRows: TypeAlias = "Callable[[Sequence[CellColumns]], None]"
"""Told of rows that are stored: the columns of their results, see `assay.store.records`."""

_BYTES = 4 << 20
_ROWS, _COSTLY_ROWS = 500, 256
"""Rows of a shard: what is killed repeats those under way, of graders that only compare or
compute. Of functions and mathematics, which take up to milliseconds each, they are fewer."""
_ASKED = 256
"""Rows of which the store is asked together whether they are there."""


class RowStore:
    """Where graded rows become the cells of a run.

    Args:
        store: The store.
        on_rows: Told of what is stored.

    Attributes:
        run: The run, once its rows are planned.
        before: Rows of it that an interrupted process has stored.
    """

    by_batches = True
    is_shared = False

    def __init__(self, store: Store, *, on_rows: OnRows = lambda _: None) -> None:
        self._store, self._on_rows = store, on_rows
        self.run: RunRecord
        self.before = 0
        self._terms: RowTerms

    def shard_size(self, graders: Sequence[GraderSpec]) -> tuple[int, int]:
        """Bytes and rows that a shard has at most."""
        return _BYTES, _ROWS if is_pure(graders) else _COSTLY_ROWS

    @contextmanager
    def agreed(self, terms: RowTerms) -> Generator[_CellsOut]:
        """Find the run of the same that was interrupted, or begin one; it is held until the end.

        What was refused before its first row is no run: it would be the latest one.
        """
        store, data = self._store, terms.data
        self._terms = terms
        config: dict[str, Json] = {
            "kind": "dataset",
            "file": data.name,
            "label": data.label,
            "threshold": terms.threshold,
            "graders": digest_with_files(terms.graders),
            **_how_read(terms),
            **terms.notes,
        }
        versions = [data.versions[source.path].digest for source in data.sources]
        digest = versions[0] if len(versions) == 1 else _digest_of(versions)
        digests = {Path(data.name).name: digest}
        with ExitStack() as stack:

            def hold(run: str) -> int | None:
                return stack.enter_context(held(rows_lock(store, run)))

            earlier = store.interrupted(config, digests, data.rows)
            if earlier is not None and hold(earlier.id) is not None:
                self.run, self.before = earlier, store.cell_count(earlier.id)
            else:
                self.before = 0
                self.run = start_run(
                    store, config=config, digests=digests, planned=data.rows, holding=hold
                )
            try:
                yield _CellsOut(self.run.id, graders_digest(terms.graders))
            except AssayError:
                self.forget_if_empty()
                raise

    def forget_if_empty(self) -> bool:
        """Forget the run, unless any of its rows is stored; whether it is forgotten."""
        if self._store.cell_count(self.run.id):
            return False
        self._store.forget_run(self.run.id)
        return True

    def todo(self) -> Iterator[Shard]:
        """Rows that have no result yet, or could not be graded.

        Of graders that wait, a few at a time: what has been paid for is stored at once.
        """
        terms = self._terms
        is_whole = computes(terms.graders) and not self.before
        for shard in terms.data.shards:
            if is_whole:
                yield shard
                continue
            size = shard.rows if computes(terms.graders) else batch_size(terms.graders)
            for lines in in_batches(self._missing(shard), max(1, size)):
                yield replace(shard, lines=lines, rows=len(lines))

    def _missing(self, shard: Shard) -> Iterator[tuple[int, bytes]]:
        twins, data = frozenset(shard.twins), self._terms.data
        lines = (one for lines, _ in read_shard(shard) for one in lines)
        for some in in_batches(lines, _ASKED):
            ids: dict[int, str] = {}
            for number, line in some:
                try:
                    ids[number] = read_row_of(line, number, shard.source, label=data.label)[0].id
                except InputError:  # it is left out
                    if not data.may_skip:
                        raise
            found = self._store.cells_of(self.run.id, list(ids.values())) if self.before else {}
            ended = {case for case, cell in found.items() if cell.status != "error"}
            for number, line in some:
                if number in ids and ids[number] not in ended and number not in twins:
                    yield number, cast("bytes", line)

    def keep(self, shard: Shard, made: object) -> Counter[Ended]:
        """Store the rows of a shard, all or none; how they ended."""
        del shard
        cells = cast("list[StoredCell]", made)
        with at_work(self._store.home) if any(map(_is_pictured, cells)) else nullcontext():
            self._store.add_rows(self.run.id, list(map(self._put_aside, cells)))
        rows = [columns for columns, _, _ in cells]
        self._on_rows(rows)
        return Counter[Ended](map(_ended, rows))

    def _put_aside(self, cell: StoredCell) -> StoredCell:
        """A cell whose pictures are files of the store."""
        columns, _, body = cell
        if not _is_pictured(cell):
            return cell
        if self._store.database.is_shared:
            return columns, "", body
        detail, snapshot = put_aside(self._store.home, Packer().unpack(body, "a row"))
        return columns, snapshot, _packer().pack(detail, f"row {columns.case_id}")

    def refuse(self, shard: Shard) -> None:
        """Nothing of it is stored."""

    def finish(self, seconds: float) -> None:
        """Note that all rows are stored."""
        del seconds
        self._store.finish_run(self.run.id)


def _how_read(terms: RowTerms) -> dict[str, Json]:
    """What of a dataset was not taken as it is."""
    data, noted = terms.data, dict[str, Json]()
    if data.reading.mapping:
        noted["map"] = dict[str, Json](data.reading.mapping)
    if data.left_out:
        noted["malformed"] = {"rows": data.left_out, "first": data.first_left_out}
    return noted


def _digest_of(versions: Sequence[str]) -> str:
    return hashlib.blake2b("\n".join(versions).encode(), digest_size=32).hexdigest()


def _ended(columns: CellColumns) -> Ended:
    if columns.status != "graded":
        return columns.status
    return "scored" if columns.passed and columns.threshold <= 0.0 else _PASSED[columns.passed]


_PASSED: dict[int | None, Ended] = {1: "pass", 0: "fail"}


@dataclass(frozen=True, slots=True)
class _CellsOut:
    """Makes cells of rows, for whoever grades.

    Attributes:
        run_id: The run that they are of.
        digest: That of the graders.
    """

    run_id: str
    digest: str

    def prepare(self) -> None:
        """Nothing has to be loaded."""

    def writing(self, work: ShardWork, shard: Shard) -> _Cells:
        """Begin a shard."""
        del shard
        return _Cells(self, work)


class _Cells:
    """The rows of a shard as the store keeps them."""

    def __init__(self, out: _CellsOut, work: ShardWork) -> None:
        self._out, self._work = out, work
        self._cells: list[StoredCell] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """Nothing is held."""

    def ended(self, count: int) -> Sequence[int]:
        """None: those that are stored are not handed out."""
        del count
        return ()

    def put(self, block: Block, results: Sequence[EvaluationResult | None], seconds: float) -> None:
        """Make cells; of rows that share a result, they differ in few columns."""
        written: dict[tuple[int, str, str], CellColumns] = {}
        for (row, line), result in zip(block.rows, results, strict=True):
            assert result is not None, "no row has a grade already"
            key = (id(result), repr(row.label), row.group)
            if key in written:
                columns = _with_row(written[key], row)
            else:
                columns = written[key] = self._columns(row, result, seconds)
            mark = _PICTURED if b"data:image/" in line else ""
            self._cells.append((columns, mark, _packer().compress(_detail(line))))

    def _columns(self, row: Row, result: EvaluationResult, seconds: float) -> CellColumns:
        record = row_record(
            row,
            result,
            run_id=self._out.run_id,
            threshold=self._work.threshold,
            digest=self._out.digest,
            seconds=seconds,
        )
        columns = cell_row(record)
        if place := self._work.place:  # files that travelled are told by the paths of their author
            columns = CellColumns._make(
                one.replace(place, "") if isinstance(one, str) else one for one in columns
            )
        return columns

    def made(self) -> list[StoredCell]:
        """The cells."""
        return self._cells


_PICTURED = "pictures"
"""Stands for the snapshot of a row that has pictures, until they are files of the store."""


def _is_pictured(cell: StoredCell) -> bool:
    return cell[1] == _PICTURED


@cache
def _packer() -> Packer:
    return Packer(level=1)


_CASE, _FILE, _ANSWER = map(CellColumns._fields.index, ("case_id", "file", "answer"))


def _with_row(columns: CellColumns, row: Row) -> CellColumns:
    """The columns of another row whose result, label and group are the same."""
    made = [*columns]  # `_replace` takes four times as long
    made[_CASE], made[_FILE] = row.id, plain(row.file)
    made[_ANSWER] = plain(shortened(row.submission.answer or ""))
    return CellColumns._make(made)


def _detail(line: bytes) -> bytes:
    """What is kept of a row: its line as it is, which was read, strictly, and so is JSON."""
    if not line.isascii() or b"\0" in line:  # UTF-16 without a mark is ASCII and NUL
        text = line.decode(json_encoding(line), "surrogatepass")
        line = text.encode("utf-8", "surrogatepass")
    return b'{"row":%b}' % line.strip()
