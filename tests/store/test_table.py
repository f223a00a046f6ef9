"""`Table`: what conditions mean, and that none is forgotten where rows are changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.store import Database, TraceRecord
from assay.store.table import LIVE, Table, Where, conditions
from tests.postgres import KINDS, new_location


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Table[TraceRecord]]:
    with Database.open(new_location(request, request.param, tmp_path)) as database:
        traces = Table(database, "trace", TraceRecord)
        with database.writing():
            traces.insert_many([traces.written(_trace(name)) for name in "abc"])
        yield traces


def _trace(name: str) -> TraceRecord:
    gen_ai = name == "a"
    return TraceRecord(project="default", id=name, size=ord(name) - 96, gen_ai=gen_ai)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ({}, "abc"),
        ({"id": "b"}, "b"),
        ({"id": "b\ud800"}, ""),
        ({"id": ["c", "a"]}, "ac"),
        ({"id": list[str]()}, ""),
        ({"size >": 1, "project": "default"}, "bc"),
        ({"size + ? > 3": 1}, "c"),
        ({"size BETWEEN ? AND ?": (1, 2)}, "ab"),
        ({"name = ''": ()}, "abc"),
        ({"id": None, "gen_ai": True}, "a"),
    ],
)
def test_conditions_say_which_rows_are_meant(
    table: Table[TraceRecord], where: Where, found: str
) -> None:
    assert "".join(one.id for one in table.select(where, order="seq")) == found
    assert table.count(where) == len(found)


def test_a_row_comes_back_as_the_record_that_it_was(table: Table[TraceRecord]) -> None:
    (first, *_) = table.select({}, order="seq")
    assert first == TraceRecord(seq=first.seq, project="default", id="a", size=1, gen_ai=True)
    assert table.find({"id": "d"}) is None
    assert table.column("size", {"id": ["b"]}) == [2]


def test_a_condition_that_is_missing_changes_no_row(table: Table[TraceRecord]) -> None:
    database = table._database
    with database.writing():
        for forgotten in (
            lambda: table.delete({"id": None}),
            lambda: table.update({"id": None}, name="x"),
            lambda: table.find({"id": None}),
        ):
            with pytest.raises(TypeError, match="nothing is said of 'id'"):
                forgotten()
    assert table.count({"name = ''": ()}) == 3


def test_what_was_deleted_is_found_by_its_index(tmp_path: Path) -> None:
    """Bound, the condition would not be the index's, and each look-up would read the table."""
    said, values = conditions({"project": "p", "key": "k", **LIVE})
    with Database.open(tmp_path) as database:
        (plan,) = database.rows(f"EXPLAIN QUERY PLAN SELECT name FROM grader{said}", *values)
    assert "USING INDEX grader_of_key" in plan[-1]
