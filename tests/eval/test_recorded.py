"""Datasets of recorded answers, from rows in a file to cells in the store."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import IO

import pytest

from assay.errors import InputError, StoreError
from assay.eval.rows import recorded, store_sink
from assay.eval.rows.directory_sink import PartDirectory
from assay.eval.rows.recorded import grade_rows, plan_rows
from assay.eval.rows.store_sink import RowStore
from assay.graders.spec import GraderSpec
from assay.scoring import Json
from assay.store import CellRecord, RunRecord, Store

EXACT = [GraderSpec(type="exact_match")]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(str(tmp_path / "home")) as opened:
        yield opened


async def grade(
    store: Store,
    tmp_path: Path,
    *rows: Json | str,
    graders: list[GraderSpec] = EXACT,
    workers: int = 1,
) -> tuple[RunRecord, dict[str, CellRecord]]:
    file = tmp_path / "data.jsonl"
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    file.write_text("\n".join(texts))
    to = RowStore(store)
    with plan_rows(str(file), graders, to) as planned:
        await grade_rows(planned, workers=workers)
    return to.run, {cell.case: cell for cell in store.cells(to.run.id)}


async def test_every_row_is_stored_and_what_cannot_be_graded_is_an_error_that_stops_nothing(
    store: Store, tmp_path: Path
) -> None:
    run, seen = await grade(
        store,
        tmp_path,
        {"id": "good", "answer": "Oslo", "expected": "Oslo", "question": "Where?"},
        {"id": "null", "answer": None, "expected": "Oslo"},
        {"id": "bad", "answer": "Rome", "expected": "Oslo"},
        {"id": "no reference", "answer": "Oslo"},
        {"id": "empty", "answer": "", "expected": "Oslo"},
    )
    assert {name: (c.status, c.reward, c.passed) for name, c in seen.items()} == {
        "good": ("graded", 1.0, True),
        "null": ("error", None, None),
        "bad": ("graded", 0.0, False),
        "no reference": ("error", None, None),
        "empty": ("graded", 0.0, False),
    }
    assert "the recorded answer is null" in seen["null"].error
    assert "needs 'expected'" in seen["no reference"].error
    assert store.run(run.id).finished
    assert (seen["good"].answer, seen["good"].harness) == ("Oslo", "recorded")
    assert seen["good"].file == f"{tmp_path / 'data.jsonl'}:1"


@pytest.mark.parametrize(
    "answer",
    [
        "lone \\ud800 surrogate",
        "nul \\u0000 character",
        "x" * 3_000_000,
        "\\u202e right to left",
        "sk-" + "a1" * 20,
    ],
    ids=["surrogate", "nul", "huge", "bidi", "key"],
)
async def test_attack_answer_that_breaks_the_store(
    answer: str, store: Store, tmp_path: Path
) -> None:
    """One row that nobody can store would take the whole run with it."""
    run, seen = await grade(
        store,
        tmp_path,
        f'{{"id": "odd", "answer": "{answer}", "expected": "{answer}"}}',
        {"id": "good", "answer": "Oslo", "expected": "Oslo"},
    )
    assert seen["good"].reward == 1.0
    assert seen["odd"].status == "graded"
    assert len(list(store.cells(run.id))) == 2
    assert len(seen["odd"].answer) < 3_000


async def test_a_label_that_is_nowhere_and_one_that_is_empty_are_told_apart(
    store: Store, tmp_path: Path
) -> None:
    file = tmp_path / "data.jsonl"
    file.write_text('{"answer": "a", "expected": "a", "correct": null}\n')
    for label, said in (
        ("corect", "has a field 'corect' (did you mean 'correct'?)"),
        ("correct", "is labelled: 'correct' is null wherever it is"),
    ):
        with (
            pytest.raises(InputError) as caught,
            plan_rows(str(file), EXACT, RowStore(store), label=label),
        ):
            pass
        assert said in str(caught.value)
    assert list(store.runs()) == []


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le"])
async def test_attack_a_row_in_another_encoding_can_be_read_in_its_report(
    encoding: str, store: Store, tmp_path: Path
) -> None:
    file, row = tmp_path / "data.jsonl", {"answer": "a", "expected": "a"}
    file.write_bytes(json.dumps(row).encode(encoding))
    to = RowStore(store)
    with plan_rows(str(file), EXACT, to) as planned:
        await grade_rows(planned)
    assert store.detail(to.run.id, ("1", "recorded", "", 1))["row"] == row


@pytest.mark.parametrize("grader", ["exact_match", "math_equal"])
async def test_attack_a_row_that_is_replaced_while_it_is_graded_is_not_stored(
    grader: str, store: Store, tmp_path: Path
) -> None:
    """Its run would be gone on with once the old row is back, and keep the result of the other."""
    file = tmp_path / "data.jsonl"
    good, bad = (f'{{"answer": "{word}", "expected": "1"}}\n' for word in ("1", "2"))
    graders = [GraderSpec(type=grader)]
    file.write_text(bad)
    first, second = RowStore(store), RowStore(store)
    with plan_rows(str(file), graders, first) as planned:
        file.write_text(good)
        with pytest.raises(InputError, match="changed while it was being graded"):
            await grade_rows(planned)
    file.write_text(bad)
    with plan_rows(str(file), graders, second) as again:
        assert (second.run.id, second.before) == (first.run.id, 0)
        file.write_text(bad + good)  # what is appended is for another run
        await grade_rows(again)
    assert store.cells_of(second.run.id, ["1"])["1"].reward == 0.0


@pytest.mark.parametrize("workers", [1, 2])
async def test_attack_a_dataset_that_is_away_for_a_while_loses_no_row(
    workers: int, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_sink, "_ROWS", 10)
    monkeypatch.setattr(recorded, "_AT_HOME", 0)
    file, away = tmp_path / "data.jsonl", tmp_path / "away"

    def leave(_: object) -> None:
        if file.exists():
            file.rename(away)

    file.write_text('{"answer": "a", "expected": "a"}\n' * 50)
    first, second = RowStore(store), RowStore(store)
    with plan_rows(str(file), EXACT, first) as planned:
        # A second worker may have read its rows by then, which are not kept either.
        with pytest.raises(InputError, match=r"cannot read|changed while it was being graded"):
            await grade_rows(planned, on_ended=leave, workers=workers)
        file.write_text("{")
        with pytest.raises(InputError, match=r"not a JSON object|now has 0 rows"):
            await grade_rows(planned, workers=workers)
    assert not store.run(first.run.id).finished
    away.rename(file)
    with plan_rows(str(file), EXACT, second) as again:
        assert second.run.id == first.run.id
        assert 10 <= second.before < 50
        await grade_rows(again, workers=workers)
    cells = list(store.cells(second.run.id))
    assert [cell.passed for cell in cells] == [True] * 50
    assert {len(store.history(second.run.id, cell.key)) for cell in cells} == {1}


def test_without_room_for_hashes_on_the_disk_nothing_is_graded(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def full() -> Generator[tuple[IO[bytes], str]]:
        with Path("/dev/full").open("r+b") as file:
            yield file, ""

    monkeypatch.setattr("assay.eval.rows.repeated_ids.unnamed", full)
    file, graders = tmp_path / "rows.jsonl", [GraderSpec(type="math_equal")]
    file.write_text('{"id": "a", "answer": "1"}\n' * 2)
    for to in (RowStore(store), PartDirectory(str(tmp_path / "out"))):
        with (
            pytest.raises(StoreError, match=r"ids cannot be compared: .*No space left"),
            plan_rows(str(file), graders, to),
        ):
            pass
    assert list(store.runs()) == []


_FUNCTION = (
    "def grade(thread):\n    return float(thread.completion() == thread.metadata['expected'])"
)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("f1_score", {}),
        pytest.param("function", {"source": _FUNCTION}, marks=pytest.mark.slow),
        pytest.param(
            "function", {"source": _FUNCTION, "isolation": "batch"}, marks=pytest.mark.slow
        ),
    ],
)
async def test_other_processes_give_what_this_one_does(
    kind: str,
    options: dict[str, Json],
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graders = [GraderSpec(type=kind, options=options)]
    texts = ["1/2", r"\\frac{1}{2}", "2x", "x + x", None, "no", "0.5 \ud83d\ude00"]
    rows = [
        json.dumps({"id": f"{number}", "answer": answer, "expected": expected})
        for number, (answer, expected) in enumerate(product(texts, ["0.5", "x*2", None]))
    ]
    monkeypatch.setattr(store_sink, "_COSTLY_ROWS", 5)
    _, here = await grade(store, tmp_path, *rows, graders=graders)
    monkeypatch.setattr(recorded, "_AT_HOME", 0)
    _, there = await grade(store, tmp_path, *rows, graders=graders, workers=2)
    assert len(here) == len(rows)
    found = [{name: plain(cell) for name, cell in cells.items()} for cells in (here, there)]
    assert found[0] == found[1]


def plain(cell: CellRecord) -> str:
    """A cell without what differs from run to run: its run and times."""
    shown = repr(replace(cell, run_id="", seconds=0.0))
    return re.sub(r"'(cpu|wall)_seconds': [^,}]*", "", shown)
