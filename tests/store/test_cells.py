"""Results of cells: appended, streamed in order, whole, and safe from what agents claim."""

from __future__ import annotations

import math
import sqlite3
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError, StoreError
from assay.scoring.json_safe import Json
from assay.store import CellRecord, RunRecord, Store, runs
from assay.store.records import CellKey, Packer, cell_row
from assay.store.sqlite import SqliteEngine
from tests.each import each
from tests.postgres import KINDS, new_location
from tests.store.unwritable import UNWRITABLE

RUN = "20261121-090830-ab12"


@pytest.fixture
def store(location: str) -> Iterator[Store]:
    with _filled(location) as opened:
        yield opened


@pytest.fixture
def any_store(tmp_path: Path) -> Iterator[Store]:
    """For what is the same in every kind of database."""
    with _filled(str(tmp_path / "home")) as opened:
        yield opened


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


def test_cells_come_back_as_they_were(store: Store) -> None:
    detail: dict[str, Json] = {"prompt": "do it", "trace": {"steps": [1, 2.5, None, True]}}
    cells = [_error("a"), _skipped("b"), FULL]
    for cell in cells:
        store.add_cell(cell, detail, "5" * 64)
        assert store.detail(RUN, cell.key) == detail
    assert list(store.cells(RUN)) == cells
    assert _snapshots(store) == ["5" * 64] * 3


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
    for harness, model in (("x", "a/b"), ("x", "a-b"), ("x__a", "b"), ("x/a", "b")):
        store.add_cell(replace(_graded("join"), harness=harness, model=model), {"of": model})
    assert store.detail(RUN, ("join", "x", "a-b", 1)) == {"of": "a-b"}
    assert len(list(store.cells(RUN))) == len(keys) + 4, "names that join alike are apart"


def test_cells_of_another_run_are_not_seen(store: Store) -> None:
    store.create_run(RunRecord(id="other", created_at="2026-11-21T10:00:00Z"))
    store.add_cell(replace(_graded("b", 0.0), run_id="other"), {})
    store.add_cell(_graded(), {})
    assert [cell.case for cell in store.cells(RUN)] == ["a"]
    assert store.finished(RUN) == {("a", "", "", 1)}
    assert store.cell_count(RUN) == 1


def test_the_newest_result_is_read_and_older_ones_stay_in_the_history(store: Store) -> None:
    results = [_error(), _graded(reward=0.0), replace(_graded(), digest="new grader")]
    for number, cell in enumerate(results):
        store.add_cell(cell, {"attempt": number}, f"{number}" * 64)
    key = results[0].key
    assert list(store.cells(RUN)) == [results[-1]]
    assert store.cell_count(RUN) == 1
    assert store.detail(RUN, key) == {"attempt": 2}
    assert _snapshots(store) == ["2" * 64]
    assert store.history(RUN, key) == results
    assert store.history(RUN, ("b", "", "", 1)) == []


def test_a_cell_counts_once_and_a_resumed_run_repeats_errors_alone(store: Store) -> None:
    for cell in (_graded("a"), _graded("b", 0.0), _error("c"), _skipped("d"), _error("e")):
        store.add_cell(cell, {})
    store.add_cell(_graded("e", 0.5), {})
    assert store.cell_count(RUN) == 5
    assert {case for case, *_ in store.finished(RUN)} == {"a", "b", "d", "e"}


def test_every_page_is_read_and_grading_again_while_reading_ends(store: Store) -> None:
    """A result added for the cell that was just read must not be read as yet another one."""
    with store._database.writing():
        for trial in range(1, 261):  # more than a page
            store.add_cell(_graded(reward=0.0, trial=trial), {})
    seen: list[int] = []
    for cell in store.cells(RUN):
        seen.append(cell.trial)
        assert len(seen) <= 260
        store.add_cell(replace(cell, reward=1.0, passed=True), {})
    assert seen == list(range(1, 261))
    assert store.cell_count(RUN) == 260


def test_reading_a_large_run_takes_the_memory_of_one_page(any_store: Store) -> None:
    subscores: tuple[dict[str, Json], ...] = ({"name": "tests", "metadata": "x" * 20_000},)
    for trial in range(1, 2001):
        any_store.add_cell(replace(_graded(trial=trial), subscores=subscores), {})
    tracemalloc.start()
    try:
        assert sum(1 for _ in any_store.cells(RUN)) == 2000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 << 20  # all of it would be more than 40 MB


def test_an_unknown_run_is_never_an_empty_one(store: Store) -> None:
    key = ("a", "", "", 1)
    for use in (
        lambda: store.cells("nope"),
        lambda: store.finished("nope"),
        lambda: store.cell_count("nope"),
        lambda: store.history("nope", key),
        lambda: store.detail("nope", key),
        lambda: store.add_cell(replace(_graded(), run_id="nope"), {}),
    ):
        with pytest.raises(InputError, match="there is no run 'nope'"):
            use()
    with pytest.raises(InputError, match="no result for cell"):
        store.detail(RUN, key)


def test_broken_unicode_is_stored_and_impossible_measurements_as_unknown(store: Store) -> None:
    hostile = "before \ud800 after \udcff"
    cell = replace(_graded(), answer=hostile, content=hostile, error=hostile, file=hostile)
    store.add_cell(replace(cell, subscores=({"name": hostile},)), {"answer": hostile})
    (kept,) = store.cells(RUN)
    assert {kept.answer, kept.content, kept.error, kept.file} == {"before ? after ?"}
    assert kept.subscores == ({"name": hostile},)
    assert store.detail(RUN, kept.key) == {"answer": hostile}
    cell = replace(_graded(), cost_usd=math.inf, tokens=10**40, seconds=math.nan)
    store.add_cell(cell, {"cost": math.inf, "tokens": 10**40})
    (kept,) = store.cells(RUN)
    assert (kept.cost_usd, kept.tokens, kept.seconds) == (None, None, 0.0)
    assert store.detail(RUN, kept.key) == {"cost": math.inf, "tokens": 10**40}


@each(
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


@each("name", ["case", "harness", "model"])
def test_a_key_must_be_valid_unicode(any_store: Store, name: str) -> None:
    with pytest.raises(InputError, match="cannot name a cell"):
        any_store.add_cell(replace(_graded(), **{name: "\udcff"}), {})


@each("detail", UNWRITABLE)
def test_a_detail_that_is_no_json_leaves_no_row(store: Store, detail: dict[str, Json]) -> None:
    with pytest.raises(StoreError, match="cannot be written as JSON"):
        store.add_cell(_graded(), detail)
    assert list(store.cells(RUN)) == []


def test_a_detail_that_cannot_be_written_takes_its_row_with_it(any_store: Store) -> None:
    any_store.add_cell(_graded("before"), {})
    engine = any_store._database._engine
    assert isinstance(engine, SqliteEngine)
    engine._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2_000)
    incompressible: dict[str, Json] = {"numbers": [math.sin(n) for n in range(1000)]}
    with pytest.raises(StoreError, match="cannot hold a value that large"):
        any_store.add_cell(_graded(), incompressible)
    any_store.add_cell(_graded("after"), {})
    assert [cell.case for cell in any_store.cells(RUN)] == ["after", "before"]


def test_a_damaged_detail_is_a_store_error(store: Store) -> None:
    store.add_cell(_graded(), {})
    ((seq,),) = store._database.rows("SELECT seq FROM result")
    for body in (b"", b"not zstd", b"\x28\xb5\x2f\xfd\x00"):
        with store._database.writing():
            store._database.change("DELETE FROM detail")
            store._database.change("INSERT INTO detail (seq, body) VALUES (?, ?)", seq, body)
        with pytest.raises(StoreError, match="is damaged"):
            store.detail(RUN, ("a", "", "", 1))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


def test_any_json_any_mapping_and_any_text_comes_back(store: Store) -> None:
    frozen = MappingProxyType({"inner": MappingProxyType({"a": 1})})
    store.add_cell(replace(_graded(), subscores=(frozen,)), frozen)  # pyright: ignore[reportArgumentType] - nested mappings come from frozen records
    assert store.detail(RUN, ("a", "", "", 1)) == {"inner": {"a": 1}}
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


def test_cells_of_a_case_are_found_by_agent_and_trial(store: Store) -> None:
    for harness, model in (("x", "m"), ("x", "n"), ("y", "m")):
        for trial in (1, 2):
            cell = replace(_graded("add", trial=trial), harness=harness, model=model)
            store.add_cell(cell, {})
    store.add_cell(_graded("other"), {})

    def found(**asked: Any) -> list[CellKey]:
        return [cell.key for cell in store.cells_of_case(RUN, "add", **asked)]

    assert len(found()) == 6
    assert found() == sorted(found())
    assert found(harness="y") == [("add", "y", "m", 1), ("add", "y", "m", 2)]
    assert found(harness="x", model="n", trial=2) == [("add", "x", "n", 2)]
    with pytest.raises(InputError, match=r"no case 'ad' in run .*did you mean 'add'"):
        store.cells_of_case(RUN, "ad")
    with pytest.raises(InputError, match="no cell of case 'add'") as caught:
        store.cells_of_case(RUN, "add", harness="z")
    assert f"in run {RUN} has harness 'z'" in str(caught.value)
    assert "it has x m trial 1; x m trial 2; x n trial 1; x n trial 2; y m trial 1; and 1 more" in (
        str(caught.value)
    )
    with pytest.raises(InputError, match="harness 'x' and trial 9"):
        store.cells_of_case(RUN, "add", harness="x", trial=9)
    found_by_name = store.cells_of(RUN, ["other", "nobody"])
    assert {name: cell.key for name, cell in found_by_name.items()} == {
        "other": ("other", "", "", 1)
    }
    assert store.cells_of(RUN, []) == {}


def test_cells_that_are_worth_a_look_are_gone_through_in_both_ways(store: Store) -> None:
    flagged = replace(_graded("e"), flags=("canary passed",))
    store.create_run(RunRecord(id="other", created_at="2026-11-21T10:00:00Z"))
    for cell in (
        *(_graded("a"), _graded("b", 0.0), _skipped("c"), _error("d"), flagged, _graded("f")),
        replace(_graded("e", 0.0), run_id="other"),
    ):
        store.add_cell(cell, {})

    def beside(case: str, *, forward: bool) -> str:
        key = store.beside(RUN, (case, "", "", 1), forward=forward)
        return "" if key is None else key[0]

    assert [beside(case, forward=True) for case in "abdef"] == ["b", "d", "e", "", ""]
    assert [beside(case, forward=False) for case in "abdef"] == ["", "", "b", "d", "e"]
    looked = [store.worth_a_look(RUN, (case, "", "", 1)) for case in "abcdef"]
    assert looked == [(0, 3), (1, 3), (1, 3), (2, 3), (3, 3), (3, 3)]


def test_what_was_graded_again_is_found_and_its_submission_is_kept(store: Store) -> None:
    for case in "ab":
        store.add_cell(_graded(case, 0.0), {"of": case}, case * 64)
    store.create_run(RunRecord(id="other", created_at="2026-11-21T10:00:00Z"))
    for reward in (0.0, 1.0):
        store.add_cell(replace(_graded("b", reward), run_id="other"), {})
    assert store.regraded(RUN) == []
    store.add_again(_graded("a"))
    assert store.regraded(RUN) == [("a", "", "", 1)]
    assert [cell.reward for cell in store.history(RUN, ("a", "", "", 1))] == [0.0, 1.0]
    assert store.detail(RUN, ("a", "", "", 1)) == {"of": "a"}
    assert {*_snapshots(store)} == {"", "a" * 64, "b" * 64}
    with pytest.raises(InputError, match="there is no run 'nope'"):
        store.regraded("nope")
    with pytest.raises(InputError, match="there is no run 'nope'"):
        list(store.alike_cells("nope"))


def test_rows_that_no_total_tells_apart_are_counted_as_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(store.alike_cells(RUN)) == []
    alike = [replace(_graded(f"r{n}"), seconds=0.5, answer="x") for n in range(3)]
    odd = [replace(_graded("odd"), flags=("canary passed",)), _graded("bad", 0.0), _error("e")]
    for cell in (*alike[:2], *odd, alike[2]):
        store.add_cell(cell, {})
    found = [(cell.case, cell.answer, cell.reward, times) for cell, times in store.alike_cells(RUN)]
    assert ("odd", "", 1.0, 1) in found
    merged = [one for one in found if one[0] == ""]
    assert sorted(times for *_, times in merged) == [1, 1, 3]
    assert {answer for _, answer, *_ in merged} == {""}
    assert sum(times for *_, times in found) == 6
    (three,) = [cell for cell, times in store.alike_cells(RUN) if times == 3]
    assert (three.seconds, three.passed, three.status) == (1.5, True, "graded")
    monkeypatch.setattr(runs, "_STRETCH", 2)  # nothing is counted twice where a stretch ends
    assert sum(times for _, times in store.alike_cells(RUN)) == 6
    assert [cell.case for cell, _ in store.alike_cells(RUN)].count("odd") == 1


def test_rows_are_found_that_people_labelled_the_other_way(store: Store) -> None:
    for case, reward, label in (
        ("10", 1.0, False),
        ("9", 0.0, True),
        ("8", 1.0, True),
        ("7", 0.0, False),
        ("6", 1.0, None),
    ):
        store.add_cell(replace(_graded(case, reward), notes={"label": label}), {})
    assert [cell.case for cell in store.against_labels(RUN, 5)] == ["9", "10"]
    assert [cell.case for cell in store.against_labels(RUN, 1)] == ["9"]


def test_of_many_rows_the_first_are_those_that_people_count_first(store: Store) -> None:
    """A report of 200 rows began with 1, 10, 100, 1000."""
    for case in ("1", "10", "100", "2", "9"):
        store.add_cell(replace(_graded(), case=case), {})
    found = store.first_cells(_graded().run_id, "graded", passed=None, limit=3)
    assert [cell.case for cell in found] == ["1", "2", "9"]


def test_attack_results_that_mean_something_to_a_bulk_insert_are_kept_as_they_are(
    store: Store,
) -> None:
    answers = ["\\N", "\\.", "a\tb\\tc", "1\n2\r\n3", "'); DROP TABLE result; --", "%s ? {}", ""]
    cells = [
        replace(_graded(f"r{number:02}"), answer=answer, content=answer)
        for number, answer in enumerate(answers * 6)
    ]
    pack = Packer().pack
    rows = [(cell_row(cell), cell.case, pack({"of": cell.case}, "a cell")) for cell in cells]
    store.add_rows(RUN, rows[:1])
    store.add_rows(RUN, rows[1:])
    assert list(store.every_result(RUN)) == [(cell, cell.case, {"of": cell.case}) for cell in cells]
