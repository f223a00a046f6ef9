"""`Table`: what conditions mean, and that none is forgotten where rows are changed."""

from __future__ import annotations

import pytest

from assay.errors import StoreError
from assay.scoring.graded import Graded
from assay.store import (
    CellRecord,
    Database,
    Datasets,
    RunRecord,
    ScoreRecord,
    Scores,
    Store,
    TraceLimits,
    TraceRecord,
    Traces,
)
from assay.store.cards import CardRecord, Cards
from assay.store.catalog import Catalog
from assay.store.labels import LabelRecord, Labels
from assay.store.table import LIVE, Table, Where, conditions
from assay.store.traces import NewSpan
from tests.each import each


@pytest.fixture
def table(database: Database) -> Table[TraceRecord]:
    traces = Table(database, "trace", TraceRecord)
    with database.writing():
        traces.insert_many([traces.written(_trace(name)) for name in "abc"])
    return traces


def _trace(name: str) -> TraceRecord:
    gen_ai = name == "a"
    return TraceRecord(project="default", id=name, size=ord(name) - 96, gen_ai=gen_ai)


@each(
    "where, found",
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


def test_what_was_deleted_is_found_by_its_index(any_database: Database) -> None:
    """Bound, the condition would not be the index's, and each look-up would read the table."""
    said, values = conditions({"project": "p", "key": "k", **LIVE})
    (plan,) = any_database.rows(f"EXPLAIN QUERY PLAN SELECT name FROM grader{said}", *values)
    assert "USING INDEX grader_of_key" in plan[-1]


def test_what_is_appended_is_never_rewritten_even_by_hand(location: str) -> None:
    span = NewSpan(
        trace="1" * 32, id="1" * 16, text="{}", digest="d", name="n",
        is_outermost=True, gen_ai=False, why="",
    )  # fmt: skip
    with Store.open(location) as store:
        store.create_run(RunRecord(id="r", created_at=""))
        store.add_cell(CellRecord(run_id="r", case="a", status="skipped"), {})
    with Database.open(location) as database:
        Catalog(database).create("default", "g", kind="x", definition={}, digest="d")
        Datasets(database).create("default", "d", "", [{"answer": "1"}])
        Scores(database).add("default", [ScoreRecord(item="i", graded=Graded.failed("i", "x"))])
        Labels(database).add(
            "default", LabelRecord(item="i", field="f", rater="ada", label="PASS"), {}
        )
        Cards(database).add("default", CardRecord(grader="g", digest="d"))
        Traces(database).add("default", [span], TraceLimits())
        appended = ("result", "detail", "score", "grader_version", "label", "card")
        for change in (
            *(f"UPDATE {table} SET seq = seq" for table in appended),
            "UPDATE dataset_row SET data = '{}'",
            "UPDATE span SET data = '{}'",
            "DELETE FROM grader_version",
        ):
            with pytest.raises(StoreError, match=r"never|as it came first"), database.writing():
                database.change(change)
