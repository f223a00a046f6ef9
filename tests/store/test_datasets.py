"""Datasets: all of their rows or nothing, in order, and as they came."""

from __future__ import annotations

import errno
import math
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from assay.errors import ConflictError, InputError, NotFoundError, StoreError
from assay.scoring.json_safe import Json
from assay.store import Catalog, Database, DatasetRow, Datasets, Jobs, Projects
from assay.store import datasets as store_datasets
from assay.store.database import Scalar
from assay.store.pages import Stretch
from assay.store.sqlite import SqliteEngine
from tests.each import each


def _numbered(count: int) -> Iterator[dict[str, Json]]:
    return ({"answer": str(number)} for number in range(1, count + 1))


def test_rows_come_back_as_they_were(datasets: Datasets) -> None:
    rows: list[dict[str, Json]] = [
        {"id": "a", "answer": "größer\0 als\n\u2028", "metadata": {"z": 1, "a": [None, 1.5, True]}},
        {"id": 7, "answer": "half \ud800 a character"},
        {"answer": ""},
        {"id": None},
    ]
    made = datasets.create("default", "d", "Näher", rows)
    assert made == datasets.get("default", "d")
    assert (made.name, made.rows, len(made.digest)) == ("Näher", 4, 64)
    found = datasets.rows("default", "d").items
    assert found == [
        DatasetRow(number=1, id="a", data=rows[0]),
        DatasetRow(number=2, id="7", data=rows[1]),
        DatasetRow(number=3, id="3", data=rows[2]),
        DatasetRow(number=4, id="4", data=rows[3]),
    ]
    assert list(found[0].data) == ["id", "answer", "metadata"]
    assert list(found[0].data["metadata"]) == ["z", "a"]  # pyright: ignore[reportArgumentType] - it is a mapping
    assert datasets.numbered("default", "d", [2, 4]) == [found[1], found[3]]
    assert found[1].to_dict() == {"number": 2, "id": "7", "data": rows[1]}


def test_the_digest_is_that_of_the_rows_and_datasets_are_listed_by_key(datasets: Datasets) -> None:
    first = datasets.create("default", "b", "A", _numbered(3))
    same = datasets.create("default", "a.b", "B", list(_numbered(3)))
    other = datasets.create("default", "a-b", "A", _numbered(4))
    assert [one.key for one in datasets.page("default")] == ["a-b", "a.b", "b"]
    assert first.digest == same.digest != other.digest
    assert first.size == same.size == len('{"answer":"1"}') * 3


@each(
    "rows, complaint",
    [
        ([], "at least one row"),
        ([{}, []], "row 2 cannot be stored: it is not a JSON object"),
        ([{}, {"answer": math.nan}], "row 2 is not JSON"),
        ([{}, {"id": True}], "'id' is neither text nor a whole number"),
        ([{}, {"id": 1.5}], "'id' is neither text nor a whole number"),
        ([{}, {"id": "x" * 513}], "longer than 512 characters"),
        ([{}, {"id": "\ud800"}], "not valid Unicode"),
        ([{}, {"id": "\0"}], "not valid Unicode"),
        ([{}, {"answer": "ä" * (8 << 20)}], r"row 2 has \d+ bytes; the most is 16777216"),
        (
            [{}, {"id": "a"}, {}, {"id": 1}],
            "row 4 cannot be stored: its id '1' is also that of row 1",
        ),
    ],
)
def test_a_row_that_cannot_be_stored_takes_the_dataset_with_it(
    datasets: Datasets, rows: list[dict[str, Json]], complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        datasets.create("default", "d", "", rows)
    assert list(datasets.page("default")) == []


def test_others_write_while_rows_come_slowly(datasets: Datasets, database: Database) -> None:
    """Rows from a slow client must not lock everybody else out."""

    def rows() -> Iterator[dict[str, Json]]:
        yield {"answer": "1"}
        Projects(database).create("meanwhile")
        assert not database.rows("SELECT 1 FROM dataset")
        yield {"answer": "2"}

    assert datasets.create("default", "d", "", rows()).rows == 2


def test_a_full_temporary_directory_is_a_store_error(
    any_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "write", full)
    with pytest.raises(StoreError, match=r"No space left.*temporary files"):
        Datasets(any_database).create("default", "d", "", _numbered(1))


def test_a_key_is_taken_once_before_a_row_is_read(datasets: Datasets) -> None:
    datasets.create("default", "d", "", _numbered(1))
    untouched = _numbered(1)
    with pytest.raises(ConflictError, match="already a dataset 'd'"):
        datasets.create("default", "d", "", untouched)
    assert next(untouched) == {"answer": "1"}
    datasets.delete("default", "d")

    def rows() -> Iterator[dict[str, Json]]:
        datasets.create("default", "d", "the other", _numbered(2))
        yield {"answer": "1"}

    with pytest.raises(ConflictError, match="already a dataset 'd'"):
        datasets.create("default", "d", "", rows())
    assert datasets.get("default", "d").name == "the other"
    assert len(datasets.rows("default", "d")) == 2


def test_a_dataset_in_a_job_is_deleted_by_force_only(
    datasets: Datasets, database: Database
) -> None:
    Catalog(database).create("default", "g", kind="x", definition={}, digest="d")
    datasets.create("default", "d", "", _numbered(3))
    job = Jobs(database).create("default", grader="g", dataset="d")
    with pytest.raises(ConflictError, match=r"used by jobs.*by force"):
        datasets.delete("default", "d")
    datasets.delete("default", "d", force=True)
    assert database.rows("SELECT count(*) FROM dataset_row") == [(0,)]
    with pytest.raises(NotFoundError):
        datasets.delete("default", "d")
    ended = Jobs(database).get(job.id)
    assert (ended.status, ended.message) == ("cancelled", "its dataset was deleted")


def test_an_unknown_dataset_names_the_nearest(datasets: Datasets) -> None:
    datasets.create("default", "rows", "", _numbered(1))
    for use in (datasets.get, datasets.rows, datasets.delete):
        with pytest.raises(NotFoundError, match="did you mean 'rows'"):
            use("default", "row")


def test_rows_are_read_by_their_bytes_but_always_one(datasets: Datasets) -> None:
    sizes = [1_500_000] * 7 + [9_000_000, 10, 10]
    made = datasets.create("default", "d", "", ({"answer": "é" * (n // 2)} for n in sizes))
    parts = list[list[int]]()
    while found := datasets.rows("default", "d", Stretch(offset=parts[-1][-1] if parts else 0)):
        parts.append([row.number for row in found])
    assert parts == [[1, 2, 3], [4, 5, 6], [7, 8], [9, 10]]
    assert len(datasets.lines("default", "d")[1].encode()) < made.size


def test_a_large_dataset_is_written_in_parts_and_seen_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location, parts, seen = str(tmp_path), list[int](), list[bool]()
    insert, commit = SqliteEngine.insert_many, SqliteEngine.commit

    def inserted(
        engine: SqliteEngine, table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Scalar]]
    ) -> None:
        parts.append(sum(len(str(row[-1])) for row in rows))
        insert(engine, table, columns, rows)

    def committed(engine: SqliteEngine) -> None:
        with Database.open(location) as other:
            seen.append(bool(Datasets(other).page("default")))
        commit(engine)

    with Database.open(location) as database:
        monkeypatch.setattr(SqliteEngine, "insert_many", inserted)
        monkeypatch.setattr(SqliteEngine, "commit", committed)
        rows = ({"answer": "x" * 100_000} for _ in range(200))
        assert Datasets(database).create("default", "d", "", rows).rows == 200
        assert len(seen) >= len(parts) > 3
        assert max(parts) < 8 << 20
        assert not any(seen)
        assert len(Datasets(database).page("default")) == 1


def test_of_a_dataset_that_was_not_stored_whole_nothing_stays(
    database: Database, datasets: Datasets, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left() -> list[int]:
        return [
            int(cast("int", database.rows(f"SELECT count(*) FROM {table}")[0][0]))
            for table in ("dataset", "dataset_row")
        ]

    def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    def broken_off() -> Iterator[dict[str, Json]]:
        yield from _numbered(1_000)
        raise ConnectionError("the client went away")

    with pytest.raises(ConnectionError):
        datasets.create("default", "d", "", broken_off())
    assert left() == [0, 0]
    with monkeypatch.context() as patch:
        patch.setattr(Datasets, "_check_ids", fail)
        with pytest.raises(StoreError, match="full"):
            datasets.create("default", "d", "", _numbered(1_200))
        assert left() == [0, 0]
        patch.setattr(Datasets, "_remove", fail)  # as if it had been killed
        with pytest.raises(StoreError, match="full"):
            datasets.create("default", "d", "", _numbered(1_200))
    assert left() == [1, 1_200]
    with pytest.raises(NotFoundError):
        datasets.get("default", "d")
    assert datasets.create("default", "d", "", _numbered(3)).rows == 3
    assert left() == [2, 1_203]
    now = database.clock()
    monkeypatch.setattr(database, "clock", lambda: now + timedelta(days=2))
    datasets.create("default", "e", "", _numbered(1))
    assert left() == [2, 4]


def test_of_two_datasets_of_one_key_that_come_at_once_one_is_refused(
    datasets: Datasets, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Datasets._check_ids

    def check(self: Datasets, seq: Scalar) -> None:
        real(self, seq)
        with monkeypatch.context() as patch:
            patch.setattr(Datasets, "_check_ids", real)
            datasets.create("default", "d", "quicker", _numbered(1))

    monkeypatch.setattr(Datasets, "_check_ids", check)
    with pytest.raises(ConflictError):
        datasets.create("default", "d", "", _numbered(2))
    assert (datasets.get("default", "d").name, len(datasets.rows("default", "d"))) == ("quicker", 1)


def test_nobody_rests_inside_a_larger_write(
    database: Database, datasets: Datasets, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests, here, sleep = list[float](), threading.get_ident(), time.sleep

    def rest(seconds: float) -> None:  # threads of other tests rest, too
        (rests.append if threading.get_ident() == here else sleep)(seconds)

    monkeypatch.setattr(store_datasets.time, "sleep", rest)
    with database.writing():
        datasets.create("default", "inside", "", _numbered(1_200))
    assert rests == []
    datasets.create("default", "alone", "", _numbered(1_200))
    assert len(rests) == 3
