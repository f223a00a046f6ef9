"""Results of cells: appended, streamed in order, whole, and safe from what agents claim."""

from __future__ import annotations

import math
import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError, StoreError
from assay.scoring.json_safe import Json
from assay.store import CellRecord, Counts, RunRecord, Store
from assay.store.records import Packer, cell_row
from assay.store.sqlite import SqliteEngine
from tests.postgres import KINDS, new_location, shared_server

RUN = "20261121-090830-ab12"


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with _filled(new_location(request, request.param, tmp_path)) as opened:
        yield opened


def _open(directory: Path) -> Store:
    return _filled(str(directory / "home"))


def _filled(location: str) -> Store:
    store = Store.open(location)
    store.create_run(RunRecord(id=RUN, created_at="2026-11-21T09:08:30Z"))
    return store


def _graded(case: str = "a", reward: float = 1.0, trial: int = 1) -> CellRecord:
    return CellRecord(
        run_id=RUN, case=case, trial=trial, status="graded", reward=reward, passed=reward >= 1.0
    )


def _error(case: str = "a") -> CellRecord:
    return CellRecord(run_id=RUN, case=case, status="error", error="the judge is down")


def _skipped(case: str = "a") -> CellRecord:
    return CellRecord(run_id=RUN, case=case, status="skipped")


FULL = CellRecord(
    run_id=RUN,
    case="cases/add",
    harness="echo",
    model="a/b",
    trial=2,
    status="graded",
    reward=0.25,
    passed=False,
    threshold=0.5,
    error="",
    flags=("canary passed",),
    seconds=1.5,
    cost_usd=0.01,
    tokens=1234,
    digest="d" * 64,
    subscores=({"name": "tests", "value": 0.25, "children": [{"name": "one", "value": None}]},),
    content="1 of 4 tests passed",
    answer="größer als",
    file="cases/add/case.yaml",
)


@pytest.mark.parametrize("cell", [FULL, _error(), _skipped()], ids=lambda cell: cell.status)
def test_a_cell_comes_back_as_it_was(store: Store, cell: CellRecord) -> None:
    detail: dict[str, Json] = {"prompt": "do it", "trace": {"steps": [1, 2.5, None, True]}}
    store.add_cell(cell, detail, "5" * 64)
    assert list(store.cells(RUN)) == [cell]
    assert store.detail(RUN, cell.key) == detail
    assert _snapshots(store) == ["5" * 64]


def test_a_null_character_is_kept_or_shown(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """PostgreSQL's texts cannot hold one; an answer that has one must not cost its result."""
    cell = replace(FULL, answer="be\0fore")
    for kind, answer in zip(KINDS, ("be\0fore", "be␀fore"), strict=True):
        with _filled(new_location(request, kind, tmp_path)) as store:
            store.add_cell(cell, {"answer": cell.answer})
            assert list(store.cells(RUN)) == [replace(cell, answer=answer)]
            assert store.detail(RUN, cell.key) == {"answer": "be\0fore"}


def _snapshots(store: Store) -> list[object]:
    return [row[0] for row in store._database.rows("SELECT snapshot FROM newest")]


def test_everything_is_there_for_the_next_process(tmp_path: Path) -> None:
    with _open(tmp_path) as store:
        store.add_cell(FULL, {"prompt": "do it"})
    with Store.open(str(tmp_path / "home")) as store:
        assert list(store.cells(RUN)) == [FULL]
        assert store.detail(RUN, FULL.key) == {"prompt": "do it"}
        assert _snapshots(store) == [""]


def test_cells_are_ordered_by_case_harness_model_and_trial(store: Store) -> None:
    keys = [
        ("a", "g", "m", 1),
        ("a", "h", "m", 1),
        ("a", "h", "m", 2),
        ("a", "h", "m", 10),
        ("a", "h", "n", 1),
        ("a/b", "", "", 1),
        ("ab", "", "", 1),
        ("ä", "", "", 1),
    ]
    for case, harness, model, trial in reversed(keys):
        cell = replace(_graded(case, trial=trial), harness=harness, model=model)
        store.add_cell(cell, {})
    assert [cell.key for cell in store.cells(RUN)] == keys


def test_names_that_join_alike_are_different_cells(store: Store) -> None:
    for harness, model in (("x", "a/b"), ("x", "a-b"), ("x__a", "b"), ("x/a", "b")):
        store.add_cell(replace(_graded(), harness=harness, model=model), {"of": model})
    assert len(list(store.cells(RUN))) == 4
    assert store.detail(RUN, ("a", "x", "a-b", 1)) == {"of": "a-b"}


def test_cells_of_another_run_are_not_seen(store: Store) -> None:
    store.create_run(RunRecord(id="other", created_at="2026-11-21T10:00:00Z"))
    store.add_cell(replace(_graded("b", 0.0), run_id="other"), {})
    store.add_cell(_graded(), {})
    assert [cell.case for cell in store.cells(RUN)] == ["a"]
    assert store.finished(RUN) == {("a", "", "", 1)}
    assert store.counts(RUN) == Counts(passed=1)


def test_every_page_is_read(store: Store) -> None:
    with store._database.writing():
        for trial in range(1, 300):
            store.add_cell(_graded(trial=trial), {})
    assert [cell.trial for cell in store.cells(RUN)] == list(range(1, 300))


def test_the_newest_result_is_the_one_that_is_read(store: Store) -> None:
    first, second = _graded(reward=0.0), replace(_graded(), digest="new grader")
    store.add_cell(first, {"attempt": 1}, "1" * 64)
    store.add_cell(second, {"attempt": 2}, "2" * 64)
    assert list(store.cells(RUN)) == [second]
    assert store.counts(RUN) == Counts(passed=1)
    assert store.detail(RUN, first.key) == {"attempt": 2}
    assert _snapshots(store) == ["2" * 64]


def test_older_results_stay_in_the_history(store: Store) -> None:
    results = [_error(), _graded(reward=0.0), _graded()]
    for cell in results:
        store.add_cell(cell, {})
    assert store.history(RUN, ("a", "", "", 1)) == results
    assert store.history(RUN, ("b", "", "", 1)) == []


@pytest.mark.parametrize("table", ["result", "detail"])
def test_a_result_cannot_be_rewritten_even_by_hand(tmp_path: Path, table: str) -> None:
    with _open(tmp_path) as store:
        store.add_cell(_graded(reward=0.0), {})
    connection = sqlite3.connect(tmp_path / "home" / "assay.db")
    with pytest.raises(sqlite3.IntegrityError, match="never overwritten"):
        connection.execute(f"UPDATE {table} SET seq = 7")
    connection.close()


@pytest.mark.parametrize("table", ["result", "detail"])
def test_a_result_on_a_server_cannot_be_rewritten_even_by_hand(
    request: pytest.FixtureRequest, table: str
) -> None:
    server = shared_server(request)
    database = server.emptied()
    with _filled(server.address(database)) as store:
        store.add_cell(_graded(reward=0.0), {})
    with pytest.raises(RuntimeError, match="never overwritten"):
        server.run(f"UPDATE assay.{table} SET seq = 7", database)


def test_a_resumed_run_repeats_errors_and_nothing_else(store: Store) -> None:
    for cell in (_graded("a", 0.0), _error("b"), _skipped("c"), _error("d"), _graded("d")):
        store.add_cell(cell, {})
    assert store.finished(RUN) == {("a", "", "", 1), ("c", "", "", 1), ("d", "", "", 1)}


def test_counts_say_how_cells_ended(store: Store) -> None:
    for cell in (_graded("a"), _graded("b", 0.0), _graded("c", 0.5), _error("d"), _skipped("e")):
        store.add_cell(cell, {})
    counts = store.counts(RUN)
    assert counts == Counts(passed=1, failed=2, errors=1, skipped=1)
    assert counts.total == 5


def test_grading_again_while_reading_ends(store: Store) -> None:
    """A result added for the cell that was just read must not be read as yet another one."""
    with store._database.writing():
        for trial in range(1, 261):  # more than a page
            store.add_cell(_graded(reward=0.0, trial=trial), {})
    seen = 0
    for cell in store.cells(RUN):
        seen += 1
        assert seen <= 260
        store.add_cell(replace(cell, reward=1.0, passed=True), {})
    assert seen == 260
    assert store.counts(RUN) == Counts(passed=260)


def test_reading_a_large_run_takes_the_memory_of_one_page(tmp_path: Path) -> None:
    subscores: tuple[dict[str, Json], ...] = ({"name": "tests", "metadata": "x" * 20_000},)
    with _open(tmp_path) as store:
        for trial in range(1, 2001):
            store.add_cell(replace(_graded(trial=trial), subscores=subscores), {})
        tracemalloc.start()
        try:
            assert sum(1 for _ in store.cells(RUN)) == 2000
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 20 << 20  # all of it would be more than 40 MB


_KEY = ("a", "", "", 1)
_USES: dict[str, Callable[[Store], object]] = {
    "cells": lambda store: store.cells("nope"),
    "finished": lambda store: store.finished("nope"),
    "counts": lambda store: store.counts("nope"),
    "history": lambda store: store.history("nope", _KEY),
    "detail": lambda store: store.detail("nope", _KEY),
    "add_cell": lambda store: store.add_cell(replace(_graded(), run_id="nope"), {}),
}


@pytest.mark.parametrize("use", _USES)
def test_an_unknown_run_is_never_an_empty_one(store: Store, use: str) -> None:
    with pytest.raises(InputError, match="there is no run 'nope'"):
        _USES[use](store)


def test_a_cell_without_a_result_has_no_detail(store: Store) -> None:
    with pytest.raises(InputError, match="no result for cell"):
        store.detail(RUN, ("a", "", "", 1))


def test_an_answer_with_broken_unicode_is_stored(store: Store) -> None:
    hostile = "before \ud800 after \udcff"
    cell = replace(_graded(), answer=hostile, content=hostile, error=hostile, file=hostile)
    store.add_cell(replace(cell, subscores=({"name": hostile},)), {"answer": hostile})
    (kept,) = store.cells(RUN)
    assert {kept.answer, kept.content, kept.error, kept.file} == {"before ? after ?"}
    assert kept.subscores == ({"name": hostile},)
    assert store.detail(RUN, kept.key) == {"answer": hostile}


def test_a_trace_that_claims_impossible_measurements_is_stored_as_unknown(store: Store) -> None:
    cell = replace(_graded(), cost_usd=math.inf, tokens=10**40, seconds=math.nan)
    store.add_cell(cell, {"cost": math.inf, "tokens": 10**40})
    (kept,) = store.cells(RUN)
    assert (kept.cost_usd, kept.tokens, kept.seconds) == (None, None, 0.0)
    assert store.detail(RUN, kept.key) == {"cost": math.inf, "tokens": 10**40}


@pytest.mark.parametrize(
    "cell",
    [
        replace(_graded(), reward=math.nan),  # would be stored as NULL: "not graded"
        replace(_graded(), reward=1.5),
        replace(_graded(), reward=-0.5),
        replace(_graded(), reward=None),
        replace(_graded(), passed=None),
        replace(_error(), reward=0.0),
        replace(_skipped(), passed=False),
        replace(_graded(), trial=0),
    ],
)
def test_a_row_that_contradicts_itself_is_refused(store: Store, cell: CellRecord) -> None:
    with pytest.raises(StoreError, match="refused what was to be stored"):
        store.add_cell(cell, {})
    assert list(store.cells(RUN)) == []


@pytest.mark.parametrize(
    "cell",
    [
        replace(_graded(), case="\udcff"),
        replace(_graded(), harness="\udcff"),
        replace(_graded(), model="\udcff"),
    ],
)
def test_a_key_must_be_valid_unicode(store: Store, cell: CellRecord) -> None:
    with pytest.raises(InputError, match="cannot name a cell"):
        store.add_cell(cell, {})


def _circle() -> dict[str, Json]:
    circle: dict[str, Json] = {}
    circle["self"] = circle
    return circle


def _deep() -> dict[str, Json]:
    deep: dict[str, Json] = {}
    for _ in range(100_000):
        deep = {"in": deep}
    return deep


@pytest.mark.parametrize(
    "detail", [_circle(), _deep(), {"set": {1}}], ids=["circle", "deep", "set"]
)
def test_a_detail_that_is_no_json_leaves_no_row(store: Store, detail: dict[str, Json]) -> None:
    with pytest.raises(StoreError, match="cannot be written as JSON"):
        store.add_cell(_graded(), detail)
    assert list(store.cells(RUN)) == []


def test_any_mapping_is_written(store: Store) -> None:
    frozen = MappingProxyType({"inner": MappingProxyType({"a": 1})})
    store.add_cell(replace(_graded(), subscores=(frozen,)), frozen)  # pyright: ignore[reportArgumentType] - nested mappings come from frozen records
    assert store.detail(RUN, ("a", "", "", 1)) == {"inner": {"a": 1}}


def test_a_detail_that_cannot_be_written_takes_its_row_with_it(tmp_path: Path) -> None:
    with _open(tmp_path) as store:
        store.add_cell(_graded("before"), {})
        engine = store._database._engine
        assert isinstance(engine, SqliteEngine)
        engine._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2_000)
        incompressible: dict[str, Json] = {"numbers": [math.sin(n) for n in range(1000)]}
        with pytest.raises(StoreError, match="cannot hold a value that large"):
            store.add_cell(_graded(), incompressible)
        store.add_cell(_graded("after"), {})
        assert [cell.case for cell in store.cells(RUN)] == ["after", "before"]


@pytest.mark.parametrize("body", [b"", b"not zstd", b"\x28\xb5\x2f\xfd\x00"])
def test_a_damaged_detail_is_a_store_error(store: Store, body: bytes) -> None:
    store.add_cell(_graded(), {})
    with store._database.writing():
        store._database.change("DELETE FROM detail")
        ((seq,),) = store._database.rows("SELECT seq FROM result")
        store._database.change("INSERT INTO detail (seq, body) VALUES (?, ?)", seq, body)
    with pytest.raises(StoreError, match="is damaged"):
        store.detail(RUN, ("a", "", "", 1))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


def test_any_json_and_any_text_comes_back(store: Store) -> None:
    runs = (f"run-{number}" for number in count())

    @given(detail=st.dictionaries(st.text(), _JSON, max_size=4), case=_TEXT, answer=_TEXT)
    def check(detail: dict[str, Json], case: str, answer: str) -> None:
        run = next(runs)
        store.create_run(RunRecord(id=run, created_at="2026-11-21T09:08:30Z"))
        cell = replace(_graded(case), run_id=run, answer=answer)
        store.add_cell(cell, detail)
        assert list(store.cells(run)) == [cell]
        assert store.detail(run, cell.key) == detail
        assert store.finished(run) == {cell.key}

    check()


def test_every_result_is_read_in_the_order_in_which_it_came(store: Store) -> None:
    for number, snapshot in enumerate(["s1", "", "s2"]):
        store.add_cell(_graded(reward=number / 2), {"n": number}, snapshot)
    results = list(store.every_result(RUN))
    assert [(cell.reward, kept, detail) for cell, kept, detail in results] == [
        (0.0, "s1", {"n": 0}),
        (0.5, "", {"n": 1}),
        (1.0, "s2", {"n": 2}),
    ]
    assert store.snapshots(RUN) == {"s1", "s2"}
    assert store.agents(RUN) == [("", "")]


def test_of_many_rows_the_first_are_those_that_people_count_first(store: Store) -> None:
    """A report of 200 rows began with 1, 10, 100, 1000."""
    for case in ("1", "10", "100", "2", "9"):
        store.add_cell(replace(_graded(), case=case), {})
    found = store.first_cells(_graded().run_id, "graded", passed=None, limit=3)
    assert [cell.case for cell in found] == ["1", "2", "9"]


def test_results_of_many_cells_each_have_their_own_detail(store: Store) -> None:
    names, pack = [f"r{number}" for number in range(40)], Packer().pack
    rows = [(cell_row(_graded(name)), name, pack({"of": name}, "a cell")) for name in names]
    store.add_rows(RUN, rows[:1])
    store.add_rows(RUN, rows[1:])
    found = {cell.case: (snapshot, detail) for cell, snapshot, detail in store.every_result(RUN)}
    assert found == {name: (name, {"of": name}) for name in names}


def test_attack_answers_that_mean_something_to_a_bulk_insert_are_kept_as_they_are(
    store: Store,
) -> None:
    answers = ["\\N", "\\.", "a\tb\\tc", "1\n2\r\n3", "'); DROP TABLE result; --", "%s ? {}", ""]
    cells = [
        replace(_graded(f"r{number}"), answer=answer, content=answer)
        for number, answer in enumerate(answers)
    ]
    body = Packer().pack({}, "a cell")
    store.add_rows(RUN, [(cell_row(cell), "", body) for cell in cells])
    assert list(store.cells(RUN)) == cells
