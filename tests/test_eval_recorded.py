"""Datasets of recorded answers, from rows in a file to cells in the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.errors import InputError
from assay.eval.recorded import grade_rows, plan_rows
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
    threshold: float = 1.0,
) -> tuple[RunRecord, dict[str, CellRecord]]:
    file = tmp_path / "data.jsonl"
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    file.write_text("\n".join(texts))
    with plan_rows(str(file), graders, store, threshold=threshold) as planned:
        await grade_rows(planned, store, on_rows=lambda _: None)
    return planned.run, {cell.case: cell for cell in store.cells(planned.run.id)}


async def test_every_row_is_graded_stored_and_handed_over(store: Store, tmp_path: Path) -> None:
    run, seen = await grade(
        store,
        tmp_path,
        {"id": "good", "answer": "Oslo", "expected": "Oslo", "question": "Where?"},
        {"id": "bad", "answer": "Rome", "expected": "Oslo"},
        {"id": "empty", "answer": "", "expected": "Oslo"},
    )
    assert {name: (c.status, c.reward, c.passed) for name, c in seen.items()} == {
        "good": ("graded", 1.0, True),
        "bad": ("graded", 0.0, False),
        "empty": ("graded", 0.0, False),
    }
    kept = seen
    assert store.run(run.id).finished
    assert (kept["good"].answer, kept["good"].harness) == ("Oslo", "recorded")
    assert kept["good"].file == f"{tmp_path / 'data.jsonl'}:1"


async def test_what_cannot_be_graded_is_an_error_and_stops_nothing(
    store: Store, tmp_path: Path
) -> None:
    _, seen = await grade(
        store,
        tmp_path,
        {"id": "null", "answer": None, "expected": "Oslo"},
        {"id": "no reference", "answer": "Oslo"},
        {"id": "good", "answer": "Oslo", "expected": "Oslo"},
    )
    assert {name: (c.status, c.reward) for name, c in seen.items()} == {
        "null": ("error", None),
        "no reference": ("error", None),
        "good": ("graded", 1.0),
    }
    assert "the recorded answer is null" in seen["null"].error
    assert "needs 'expected'" in seen["no reference"].error


async def test_the_threshold_forgives_rounding_and_no_more(store: Store, tmp_path: Path) -> None:
    graders = [GraderSpec(type="f1_score")]
    rows: list[Json] = [{"answer": "a b c x", "expected": "b c x y"}]
    _, seen = await grade(store, tmp_path, *rows, graders=graders, threshold=0.9)
    reward = seen["1"].reward
    assert reward is not None
    for threshold, passed in ((reward, True), (reward + 1e-10, True), (reward + 1e-6, False)):
        _, again = await grade(store, tmp_path, *rows, graders=graders, threshold=threshold)
        assert again["1"].passed is passed


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


async def test_of_a_dataset_with_a_malformed_row_nothing_is_stored(
    store: Store, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"data.jsonl:2: not a JSON object"):
        await grade(store, tmp_path, {"answer": "a", "expected": "a"}, "{")
    assert list(store.runs()) == []
