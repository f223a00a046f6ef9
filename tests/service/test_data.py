"""Rows and results as people look at them, two jobs compared, and what runs came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from assay.errors import NotFoundError
from assay.registry.policy import Permissions
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.service import datasets, graders, site
from assay.service import jobs as job_operations
from assay.service.local import ask
from assay.service.operation import LOCAL, Desk
from assay.store.datasets import Datasets
from assay.store.jobs import JobRecord, Jobs
from assay.store.scores import ScoreRecord

EXACT: dict[str, Json] = {"graders": [{"type": "exact_match"}]}
LONG = "x" * 1_000_000


def stored(desk: Desk, key: str, *given: Mapping[str, Json]) -> None:
    Datasets(desk.database).create("default", key, "", given)


async def job_with(desk: Desk, *scores: float | str | None) -> JobRecord:
    """A job over as many rows: a score, an error in words, or None for a skip."""
    made = await ask(job_operations.create_job, desk, "exact", "d")
    found: list[tuple[int, ScoreRecord]] = []
    for number, score in enumerate(scores, start=1):
        if isinstance(score, str):
            graded = Graded.failed(f"r{number}", score)
        elif score is None:
            graded = Graded(id=f"r{number}", status="skipped", reason="not for it")
        else:
            graded = Graded(id=f"r{number}", status="scored", score=score, reason=f"got {score}")
        found.append((number, ScoreRecord(item=f"r{number}", graded=graded)))
    return Jobs(desk.database).add_scores(made.id, found)


@pytest.fixture
async def jobs(desk: Desk) -> tuple[JobRecord, JobRecord]:
    """One job before, and one after a change: row 2 got better, row 4 cannot be graded."""
    await ask(graders.create_grader, desk, "exact", "declared", EXACT)
    stored(desk, "d", *({"id": f"r{n}", "answer": "4", "expected": "4"} for n in range(1, 6)))
    before = await job_with(desk, 1.0, 0.0, 0.5, 1.0, None)
    return before, await job_with(desk, 1.0, 1.0, 0.5, "timed out after 31 s", None)


async def test_rows_are_told_from_any_place_on_and_never_whole_in_a_list(desk: Desk) -> None:
    turns: list[Json] = [
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": "4"},
    ]
    stored(
        desk,
        "d",
        {"id": "a", "answer": LONG, "expected": {"x": 1}, "level": 3},
        {"messages": turns},
        {"answer": "\x1b[2Jclean\u202e"},
    )
    window = await ask(datasets.list_rows, desk, "d", offset=0, limit=2)
    assert (window.total, [row.number for row in window]) == (3, [1, 2])
    first, second = window
    assert len(first.answer) == 300
    assert (first.expected, first.others) == ('{ "x": 1 }', ("level",))
    assert (second.id, second.question, second.answer, second.turns) == ("2", "2 + 2?", "4", 2)
    (third,) = (await ask(datasets.list_rows, desk, "d", offset=2)).items
    assert third.answer == "clean\\u202e"

    opened = await ask(datasets.show_row, desk, "d", 1)
    assert "[800,000 characters cut]" in (opened.answer or "")
    assert opened.metadata == '{\n  "level": 3\n}'
    assert [turn.role for turn in (await ask(datasets.show_row, desk, "d", 2)).turns] == [
        "user",
        "assistant",
    ]
    for number in (4, 2**31 - 1):
        with pytest.raises(NotFoundError, match="has no row"):
            await ask(datasets.show_row, desk, "d", number)


async def test_a_file_is_read_before_it_is_stored(desk: Desk) -> None:
    lines = '{"output": "4", "target": "4", "k": 1}\n\n{"output": 5.0}\n[]\n{"answer": "\u2028"}\n'
    found = await ask(datasets.read_lines, desk, lines)
    assert [(row.number, bool(row.fault)) for row in found.rows] == [
        (1, True),
        (3, True),
        (4, True),
        (5, False),
    ]
    assert found.wrong == 3
    assert found.fields == ("output", "answer", "k", "target")
    assert found.likely == {"expected": "target"}
    mapped = await ask(datasets.read_lines, desk, lines, {"answer": "output", "expected": "target"})
    assert (mapped.rows[0].answer, mapped.rows[0].expected) == ("4", "4")
    assert "must be text, got float" in mapped.rows[1].fault
    assert list(Datasets(desk.database).page("default")) == []


async def test_what_depends_on_a_dataset_is_told_before_it_is_deleted(
    desk: Desk, jobs: tuple[JobRecord, JobRecord]
) -> None:
    use = await ask(datasets.show_dataset_use, desk, "d")
    assert (use.jobs, use.active, use.scores) == (2, 2, 10)
    assert len((await ask(job_operations.list_jobs, desk, dataset="d")).items) == 2
    await ask(datasets.delete_dataset, desk, "d", force=True)
    with pytest.raises(NotFoundError):
        await ask(datasets.show_dataset_use, desk, "d")
    summary = await ask(job_operations.show_job_summary, desk, jobs[1].id)
    assert not summary.is_stored
    assert (await ask(job_operations.show_result, desk, jobs[1].id, 1)).row is None
    stored(desk, "d", {"answer": "another"})
    assert (await ask(job_operations.show_result, desk, jobs[1].id, 1)).row is None, "not that row"
    assert (await ask(job_operations.list_jobs, desk, dataset="d")).items == []


async def test_errors_and_skips_are_no_part_of_a_mean(
    desk: Desk, jobs: tuple[JobRecord, JobRecord]
) -> None:
    found = await ask(job_operations.show_job_summary, desk, jobs[1].id)
    assert (found.scored, found.skipped, found.errors) == (3, 1, 1)
    assert found.mean.mean == pytest.approx(2.5 / 3)
    assert found.mean.n == 3
    assert [(bar.count, bar.high) for bar in found.bars if bar.count] == [(1, 0.6), (2, 1.0)]
    assert [(cause.count, cause.text) for cause in found.causes] == [(1, "timed out after 31 s")]
    assert "mean score 0.83" in found.line
    assert "1 could not be graded" in found.line


async def test_results_are_filtered_and_sorted_from_any_place_on(
    desk: Desk, jobs: tuple[JobRecord, JobRecord]
) -> None:
    async def numbers(**given: Any) -> tuple[list[int], int | None]:
        found = await ask(job_operations.list_results, desk, jobs[0].id, **given)
        return [one.number for one in found], found.total

    assert await numbers() == ([1, 2, 3, 4, 5], 5)
    assert await numbers(offset=3) == ([4, 5], 5)
    assert await numbers(order="score") == ([2, 3, 1, 4, 5], 5)
    assert await numbers(status="skipped") == ([5], 1)
    assert await numbers(status="error") == ([], 0)
    opened = await ask(job_operations.show_result, desk, jobs[1].id, 4)
    assert (opened.result.graded.score, opened.result.graded.error) == (
        None,
        "timed out after 31 s",
    )
    assert opened.row is not None
    assert opened.row.id == "r4"


async def test_attack_a_job_of_another_project_is_nobodys_business(
    desk: Desk, jobs: tuple[JobRecord, JobRecord]
) -> None:
    await ask(site.create_project, desk, "qa")
    there = Desk(desk.database, "qa", LOCAL, Permissions())
    operations = job_operations
    for asked in (
        ask(operations.show_job, there, jobs[0].id),
        ask(operations.show_job_summary, there, jobs[0].id),
        ask(operations.list_results, there, jobs[0].id),
        ask(operations.show_result, there, jobs[0].id, 1),
        ask(operations.cancel_job, there, jobs[0].id),
        ask(operations.delete_job, there, jobs[0].id),
    ):
        with pytest.raises(NotFoundError):
            await asked


async def test_a_key_expires_when_it_was_said_and_changes_are_found(desk: Desk) -> None:
    made = await ask(site.create_key, desk, "ci", "editor", "default", 30)
    assert made.expires_at > made.created_at
    assert (await ask(site.create_key, desk, "old", "editor", "default")).expires_at == ""
    await ask(site.revoke_key, desk, made.id)
    only = await ask(site.list_all_changes, desk, what="revoke_key")
    assert [one.what["id"] for one in only.items] == [made.id]
    assert (await ask(site.list_all_changes, desk, by="nobody")).items == []
    assert len((await ask(site.list_all_changes, desk, by="local")).items) == 3
