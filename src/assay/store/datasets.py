"""`Datasets`: rows that are graded again and again, kept as they came."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import IO, cast

from assay.errors import ConflictError, InputError, Location, NotFoundError, StoreError
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.store.checks import json_text, plain, read_json, valid_key, valid_text
from assay.store.database import Database, Record, Scalar, moment
from assay.store.pages import FIRST, Order, Page, Stretch
from assay.store.projects import Projects
from assay.store.table import LIVE, Table, Where, among

MAX_ROW_BYTES = 16 << 20
"""Most bytes of one row, as JSON."""

_UNFINISHED = "unfinished"
"""Stands where the time of deletion does while rows are still to come."""
_LONGEST = timedelta(days=1)
"""In which a dataset is stored whose rows are there."""

_IN_MEMORY = 8 << 20
_BATCH_ROWS = 500
_BATCH_BYTES = 4 << 20
_BY_KEY = Order("key", (str,))
_BY_NUMBER = Order("r.number", (int,))
_ROWS = "dataset d JOIN dataset_row r ON r.dataset = d.seq"
_SEQ = "SELECT seq FROM dataset WHERE project = ? AND key = ? AND deleted_at = ''"


@frozen(kw_only=True)
class DatasetRecord(Record):
    """A dataset; its rows never change.

    Attributes:
        project: Key of the project.
        key: Its name in addresses and commands.
        name: Its name for people.
        rows: Number of rows.
        size: Bytes of the rows as they are stored.
        digest: SHA-256 of the rows as they are stored, in order.
        created_at: ISO 8601, UTC.
    """

    project: str
    key: str
    name: str = ""
    rows: int = 0
    size: int = 0
    digest: str = ""
    created_at: str = ""


@frozen(kw_only=True)
class DatasetRow(Record):
    """One row of a dataset.

    Attributes:
        number: From 1, in the order in which they came.
        id: The row's own ``id``, or its number.
        data: The row as it came.
    """

    number: int
    id: str
    data: Mapping[str, Json]


@frozen(kw_only=True)
class DatasetUse(Record):
    """What depends on a dataset.

    Attributes:
        jobs: Jobs that grade it, or did.
        active: Those that have not ended: they would be cancelled.
        scores: Scores that jobs have of it, which stay.
    """

    jobs: int = 0
    active: int = 0
    scores: int = 0


class DamagedRow(dict[str, "Json"]):
    """What stands for the data of a row that cannot be read any more."""


def _read(data: str) -> Mapping[str, Json]:
    try:
        found = cast("object", read_json(data))
    except StoreError:
        return DamagedRow()
    return cast("Mapping[str, Json]", found) if isinstance(found, dict) else DamagedRow()


class Datasets:
    """The datasets of a database; their rows are never changed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table = Table(database, "dataset", DatasetRecord, rows='"rows"')
        columns = {"number": "r.number", "id": "r.id", "data": "r.data"}
        self._rows = Table(database, _ROWS, DatasetRow, {"data": _read}, **columns)

    def create(
        self, project: str, key: str, name: str, rows: Iterable[Mapping[str, Json]]
    ) -> DatasetRecord:
        """Store a dataset: all of its rows, or nothing.

        The rows are read one at a time into a temporary file, not into memory; the database is
        written to once the last one was read, however slowly they come. They are written in parts,
        between which others may write, and nobody sees the dataset before it is whole.

        Raises:
            ConflictError: If the key is taken.
            InputError: For a key, a name or a row that cannot be stored, two rows of one id, or no
                row at all; names the row. A row's ``id``, where it has one, is text of at most 512
                characters or a whole number.
        """
        import tempfile

        self.check_free(project, key)
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:
            number, size, digest = _spool(rows, cast("IO[bytes]", spool))
            record = DatasetRecord(
                project=project,
                key=key,
                name=valid_text(name or key, "name", most=200),
                rows=number,
                size=size,
                digest=digest,
                created_at=self._database.now(),
            )
            self._insert(record, cast("IO[bytes]", spool))
        return record

    def check_free(self, project: str, key: str) -> None:
        """Refuse a key that a new dataset cannot have; see `create`."""
        valid_key(key)
        Projects(self._database).get(project)
        if self._database.rows(_SEQ, project, key):
            raise _taken(project, key)

    def get(self, project: str, key: str) -> DatasetRecord:
        """One dataset."""
        found = self._table.find({"project": project, "key": key, **LIVE})
        if found is None:
            raise Projects(self._database).unknown("dataset", project, key)
        return found

    def page(self, project: str, wanted: Stretch = FIRST) -> Page[DatasetRecord]:
        """Datasets of a project, by key."""
        Projects(self._database).get(project)
        return self._table.page({"project": project, **LIVE}, _BY_KEY, wanted)

    def rows(self, project: str, key: str, wanted: Stretch = FIRST) -> Page[DatasetRow]:
        """Rows of a dataset, in order."""
        total = self.get(project, key).rows
        (seen,) = _BY_NUMBER.place(wanted.after) or (0,)
        # They are numbered one by one: nobody need count those before.
        where: Where = {**_of(project, key), "r.number >": int(seen) + wanted.offset}
        found = self._rows.page(where, _BY_NUMBER, Stretch(wanted.limit), counted=False)
        return replace(found, total=total)

    def lines(self, project: str, key: str, *, after: int = 0) -> tuple[int, str]:
        """Rows as they are stored, a line each, up to `PAGE_BYTES`; and the number of the last."""
        self.get(project, key)
        where: Where = {**_of(project, key), "r.number >": after}
        found = self._rows.within("r.number, r.data", where, _BY_NUMBER.by, limit=_BATCH_ROWS)
        return found[-1][0] if found else after, "".join(f"{data}\n" for _, data in found)

    def row(self, project: str, key: str, number: int) -> DatasetRow:
        """One row of a dataset."""
        for found in self.numbered(project, key, [number]):
            return found
        raise NotFoundError(f"dataset {key!r:.80} has no row {number}")

    def use(self, project: str, key: str) -> DatasetUse:
        """What depends on a dataset."""
        self.get(project, key)
        ((jobs, active, scores),) = self._database.rows(
            "SELECT count(*), "
            "coalesce(sum(CASE WHEN j.status IN ('queued', 'running') THEN 1 ELSE 0 END), 0), "
            "coalesce(sum(j.done), 0) FROM job j JOIN dataset d ON d.seq = j.dataset "
            "WHERE d.project = ? AND d.key = ? AND d.deleted_at = ''",
            *(project, key),
        )
        return DatasetUse(jobs=int(jobs), active=int(active), scores=int(scores))

    def numbered(self, project: str, key: str, numbers: Sequence[int]) -> list[DatasetRow]:
        """The rows of a dataset that have these numbers, in order."""
        self.get(project, key)
        these = among("r.number", numbers)
        return self._rows.select({**_of(project, key), **these}, order="r.number")

    def delete(self, project: str, key: str, *, force: bool = False) -> None:
        """Remove a dataset and its rows; its key is free. Results of jobs stay.

        Args:
            project: Key of the project.
            key: Key of the dataset.
            force: Also when jobs use it; those that have not ended are cancelled.
        """
        with self._database.writing():
            now = self._database.now()
            seq = self._database.value(_SEQ, plain(project), plain(key))
            if seq is None or not self._table.update({"seq": seq, **LIVE}, deleted_at=now):
                raise Projects(self._database).unknown("dataset", project, key)
            if not force and self._database.rows(
                "SELECT 1 FROM job WHERE dataset = ? LIMIT 1", seq
            ):
                raise ConflictError(
                    f"dataset {key!r} is used by jobs",
                    hint="delete it by force: what the jobs found stays",
                )
            Projects(self._database).cancel_jobs("dataset", seq)
            self._database.change("DELETE FROM dataset_row WHERE dataset = ?", seq)

    def _insert(self, record: DatasetRecord, spool: IO[bytes]) -> None:
        """Write a dataset that is deleted until its last row is there."""
        self._sweep()
        values = {**self._table.written(record), "deleted_at": _UNFINISHED}
        with self._database.writing():
            (seq,) = self._database.insert_numbered(
                "dataset", tuple(values), [tuple(values.values())]
            )
        columns = ("dataset", "number", "id", "data")
        try:
            for batch in _batches(spool, seq):
                began = time.monotonic()
                with self._database.writing():
                    self._database.insert_many("dataset_row", columns, batch)
                if not self._database.is_writing:  # SQLite's writers have no queue
                    time.sleep((time.monotonic() - began) / 2)
            self._check_ids(seq)
            self._show(record, seq)
        except BaseException:
            with suppress(StoreError):  # then it is swept away later
                self._remove(seq)
            raise

    def _check_ids(self, seq: Scalar) -> None:
        twice = self._database.rows(
            "SELECT id, min(number), max(number) FROM dataset_row WHERE dataset = ? "
            "GROUP BY id HAVING count(*) > 1 ORDER BY 2 LIMIT 1",
            seq,
        )
        if twice:
            name, first, last = twice[0]
            raise _bad_row(last, f"its id {name!r} is also that of row {first}")

    def _show(self, record: DatasetRecord, seq: Scalar) -> None:
        """Give the key to a dataset that is whole."""
        with self._database.writing():
            # Whoever does so with one of the same key at the same time waits here.
            self._database.change("UPDATE project SET key = key WHERE key = ?", record.project)
            if self._database.rows(_SEQ, record.project, record.key):
                raise _taken(record.project, record.key)
            if not self._database.change("UPDATE dataset SET deleted_at = '' WHERE seq = ?", seq):
                raise StoreError("the dataset took longer than a day to store")

    def _sweep(self) -> None:
        """Remove what others began to store and did not live to finish."""
        before = moment(self._database.clock() - _LONGEST)
        dead = "SELECT seq FROM dataset WHERE deleted_at = ? AND created_at < ?"
        for (seq,) in self._database.rows(dead, _UNFINISHED, before):
            self._remove(seq)

    def _remove(self, seq: Scalar) -> None:
        """Remove a dataset that was never seen, in parts."""
        some = "SELECT number FROM dataset_row WHERE dataset = ? LIMIT ?"
        while numbers := self._database.rows(some, seq, _BATCH_ROWS):
            with self._database.writing():
                for (number,) in numbers:
                    gone = "DELETE FROM dataset_row WHERE dataset = ? AND number = ?"
                    self._database.change(gone, seq, number)
        with self._database.writing():
            self._database.change(
                "DELETE FROM dataset WHERE seq = ? AND deleted_at = ?", seq, _UNFINISHED
            )


def _of(project: str, key: str) -> Where:
    return {"d.project": project, "d.key": key, "d.deleted_at = ''": ()}


def _spool(rows: Iterable[Mapping[str, Json]], spool: IO[bytes]) -> tuple[int, int, str]:
    """Write rows to a file, a line each, and say how many they are, their bytes and digest."""
    digest, number, size = hashlib.sha256(), 0, 0
    for number, row in enumerate(rows, start=1):
        name = json.dumps(_row_id(row, number)).encode()
        data = json_text(row, f"row {number}", most=MAX_ROW_BYTES).encode()
        size += len(data)
        digest.update(data + b"\n")
        try:
            spool.write(b"%b\t%b\n" % (name, data))
        except OSError as error:
            raise StoreError(
                f"the dataset cannot be set aside: {error.strerror}",
                hint="free some space in the directory for temporary files",
            ) from error
    if not number:
        raise InputError("a dataset needs at least one row", location=Location(field="rows"))
    return number, size, digest.hexdigest()


def _batches(spool: IO[bytes], dataset: Scalar) -> Iterator[list[tuple[Scalar, ...]]]:
    spool.seek(0)
    batch: list[tuple[Scalar, ...]] = []
    held = 0
    for number, line in enumerate(spool, start=1):
        name, _, data = line[:-1].partition(b"\t")
        batch.append((dataset, number, json.loads(name), data.decode()))
        held += len(line)
        if len(batch) >= _BATCH_ROWS or held >= _BATCH_BYTES:
            yield batch
            batch, held = [], 0
    yield batch


def _row_id(row: Mapping[str, Json], number: int) -> str:
    if not isinstance(row, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - from anyone's JSON
        raise _bad_row(number, "it is not a JSON object")
    name = row.get("id")
    if name is None:
        return str(number)
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise _bad_row(number, "its 'id' is neither text nor a whole number")
    name = str(name)
    if len(name) > 512 or plain(name) != name or "\0" in name:
        raise _bad_row(number, "its 'id' is longer than 512 characters, or not valid Unicode")
    return name


def _bad_row(number: int, what: str) -> InputError:
    return InputError(
        f"row {number} cannot be stored: {what}", location=Location(field=f"rows[{number - 1}]")
    )


def _taken(project: str, key: str) -> ConflictError:
    return ConflictError(
        f"there is already a dataset {key!r} in the project {project!r}",
        location=Location(field="key"),
        hint="choose another key, or delete that one",
    )
