"""Rows and results as people look at them, two jobs compared, and what runs came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from assay.errors import ConflictError, NotFoundError
from assay.registry.policy import Permissions
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.service import data, environments, graders, results, rows, runs, site
from assay.service.operation import LOCAL, Desk, ask
from assay.store.database import Database
from assay.store.datasets import Datasets
from assay.store.jobs import JobRecord, Jobs
from assay.store.records import CellRecord, RunRecord
from assay.store.runs import Store
from assay.store.scores import ScoreRecord
from tests.postgres import KINDS, new_location

EXACT: dict[str, Json] = {"graders": [{"type": "exact_match"}]}
LONG = "x" * 1_000_000


@pytest.fixture(params=KINDS)
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    with Database.open(new_location(request, str(request.param), tmp_path)) as database:
        yield Desk(database, "default", LOCAL, Permissions())


def stored(desk: Desk, key: str, *given: Mapping[str, Json]) -> None:
    Datasets(desk.database).create("default", key, "", given)


async def job_with(desk: Desk, *scores: float | str | None) -> JobRecord:
    """A job over as many rows: a score, an error in words, or None for a skip."""
    made = await ask(data.create_job, desk, "exact", "d")
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
    window = await ask(rows.show_rows, desk, "d", offset=0, limit=2)
    assert (window.total, [row.number for row in window.rows]) == (3, [1, 2])
    first, second = window.rows
    assert len(first.answer) == 300
    assert (first.expected, first.others) == ('{ "x": 1 }', ("level",))
    assert (second.id, second.question, second.answer, second.turns) == ("2", "2 + 2?", "4", 2)
    (third,) = (await ask(rows.show_rows, desk, "d", offset=2)).rows
    assert third.answer == "clean\\u202e"

    opened = await ask(rows.show_row, desk, "d", 1)
    assert "[800,000 characters cut]" in (opened.answer or "")
    assert opened.metadata == '{\n  "level": 3\n}'
    assert [turn.role for turn in (await ask(rows.show_row, desk, "d", 2)).turns] == [
        "user",
        "assistant",
    ]
    for number in (4, 2**31 - 1):
        with pytest.raises(NotFoundError, match="has no row"):
            await ask(rows.show_row, desk, "d", number)


async def test_a_file_is_read_before_it_is_stored(desk: Desk) -> None:
    lines = '{"output": "4", "target": "4", "k": 1}\n\n{"output": 5}\n[]\n{"answer": "\u2028"}\n'
    found = await ask(rows.read_lines, desk, lines)
    assert [(row.number, bool(row.fault)) for row in found.rows] == [
        (1, True),
        (3, True),
        (4, True),
        (5, False),
    ]
    assert found.wrong == 3
    assert found.fields == ("output", "answer", "k", "target")
    assert found.likely == {"expected": "target"}
    mapped = await ask(rows.read_lines, desk, lines, {"answer": "output", "expected": "target"})
    assert (mapped.rows[0].answer, mapped.rows[0].expected) == ("4", "4")
    assert "must be text, got int" in mapped.rows[1].fault
    assert Datasets(desk.database).page("default") == []


async def test_what_depends_on_a_dataset_is_told_before_it_is_deleted(
    desk: Desk, jobs: tuple[JobRecord, JobRecord]
) -> None:
    use = await ask(rows.show_dataset_use, desk, "d")
    assert (use.jobs, use.active, use.scores) == (2, 2, 10)
    assert len((await ask(data.list_jobs, desk, dataset="d")).items) == 2
    await ask(data.delete_dataset, desk, "d", force=True)
    with pytest.raises(NotFoundError):
        await ask(rows.show_dataset_use, desk, "d")
    summary = await ask(results.show_job_summary, desk, jobs[1].id)
    assert not summary.is_stored
    assert (await ask(results.show_result, desk, jobs[1].id, 1)).row is None
    stored(desk, "d", {"answer": "another"})
    assert (await ask(results.show_result, desk, jobs[1].id, 1)).row is None, "not that row"
    assert (await ask(data.list_jobs, desk, dataset="d")).items == []


async def test_errors_and_skips_are_no_part_of_a_mean(
    desk: Desk, jobs: tuple[JobRecord, JobRecord]
) -> None:
    found = await ask(results.show_job_summary, desk, jobs[1].id)
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
    async def numbers(**given: object) -> tuple[list[int], int]:
        found = await ask(results.show_results, desk, jobs[0].id, **given)
        return [one.number for one in found.results], found.total

    assert await numbers() == ([1, 2, 3, 4, 5], 5)
    assert await numbers(offset=3) == ([4, 5], 5)
    assert await numbers(order="score") == ([2, 3, 1, 4, 5], 5)
    assert await numbers(status="skipped") == ([5], 1)
    assert await numbers(status="error") == ([], 0)
    opened = await ask(results.show_result, desk, jobs[1].id, 4)
    assert (opened.result.graded.score, opened.result.graded.error) == (
        None,
        "timed out after 31 s",
    )
    assert opened.row is not None
    assert opened.row.id == "r4"


async def test_jobs_are_compared_row_by_row_and_only_on_the_same_rows(
    desk: Desk, jobs: tuple[JobRecord, JobRecord]
) -> None:
    before, after = jobs
    found = await ask(results.compare_jobs, desk, after.id, other=before.id)
    assert (found.better, found.worse, found.same, found.unpaired) == (1, 0, 2, 2)
    assert found.difference.mean == pytest.approx(1 / 3)
    assert found.line == "No clear difference: the interval includes 0."
    assert [(row.number, row.item, row.before, row.after) for row in found.changed] == [
        (2, "r2", 0.0, 1.0)
    ]
    stored(desk, "e", {"answer": "other"})
    other = await ask(data.create_job, desk, "exact", "e")
    with pytest.raises(ConflictError, match="other rows"):
        await ask(results.compare_jobs, desk, after.id, other=other.id)


async def test_a_job_of_another_project_is_nobodys_business(
    desk: Desk, jobs: tuple[JobRecord, JobRecord]
) -> None:
    await ask(site.create_project, desk, "qa")
    there = Desk(desk.database, "qa", LOCAL, Permissions())
    for asked in (
        ask(results.show_job_summary, there, jobs[0].id),
        ask(results.show_results, there, jobs[0].id),
        ask(results.show_result, there, jobs[0].id, 1),
        ask(results.compare_jobs, there, jobs[0].id, other=jobs[1].id),
    ):
        with pytest.raises(NotFoundError):
            await asked


def run_of(desk: Desk, name: str, config: dict[str, Json], rewards: Sequence[float | None]) -> None:
    cases = [f"t{n}" for n in range(len(rewards))]
    store = Store(desk.database)
    store.create_run(
        RunRecord(
            id=name,
            created_at=f"2026-11-21T09:0{name[-1]}:00+00:00",
            config=config,
            digests=dict.fromkeys(cases, "d"),
        )
    )
    for case, reward in zip(cases, rewards, strict=True):
        store.add_cell(
            CellRecord(
                run_id=name,
                case=case,
                status="error" if reward is None else "graded",
                error="broke" if reward is None else "",
                reward=reward,
                passed=None if reward is None else reward >= 1.0,
            ),
            {},
        )


async def test_what_runs_came_from_is_told_without_running_or_asking_it(desk: Desk) -> None:
    tasks: list[Json] = [
        {"env": "office", "id": "mail", "slug": f"t{n}", "file": "/x/o ffice.py", "url": ""}
        for n in range(2)
    ]
    url = "tcp://ada:secret@10.0.0.7:8765"
    served: list[Json] = [{"env": "far", "id": "t0", "slug": "t0", "file": "", "url": url}]
    run_of(desk, "20261121-1", {"kind": "job", "request": {}, "tasks": tasks}, [1.0, 1.0])
    run_of(
        desk,
        "20261121-2",
        {"kind": "job", "request": {"harnesses": ["solve"]}, "tasks": tasks},
        [0.5, None],
    )
    run_of(desk, "20261121-3", {"kind": "job", "request": {}, "tasks": served}, [1.0])
    run_of(desk, "20261121-4", {"kind": "matrix", "request": {"paths": ["evals"]}}, [0.0])
    run_of(desk, "20261121-5", {"kind": "matrix", "request": {"paths": ["env.py"]}}, [0.0])
    run_of(desk, "20261121-6", {"kind": "dataset", "file": "a.jsonl"}, [0.0])
    found = (await ask(environments.list_environments, desk)).environments
    assert [(one.name, one.kind, one.run_count) for one in found] == [
        ("env.py", "python", 1),
        ("evals", "cases", 1),
        ("far", "served", 1),
        ("office", "python", 2),
    ]
    office = found[-1]
    assert (office.mean.mean, office.graded, office.errors) == (0.5, 1, 1)
    assert [(task.slug, task.template, task.mean.mean) for task in office.tasks] == [
        ("t0", "mail", 0.5),
        ("t1", "mail", None),
    ]
    assert office.runs[0].harnesses == ("solve",)
    assert office.serve_command == "assay env serve '/x/o ffice.py'"
    assert "secret" not in str(found)
    assert found[2].run_command == "assay run tcp://10.0.0.7:8765"


async def test_attack_a_path_is_one_word_of_a_command_and_an_import_is_no_environment(
    desk: Desk,
) -> None:
    evil = "evals/a b; touch gone\n\x03"
    run_of(desk, "20261121-1", {"kind": "matrix", "request": {"paths": [evil]}}, [0.0])
    run_of(desk, "20261121-2", {"kind": "matrix", "request": {"paths": [evil, "b"]}}, [0.0])
    theirs: list[Json] = [{"env": "e", "id": "t", "slug": "t0", "file": "/x/theirs.py", "url": ""}]
    job: dict[str, Json] = {"kind": "job", "request": {}, "tasks": theirs, "imported": True}
    run_of(desk, "20261121-3", job, [0.0])
    paths: dict[str, Json] = {"paths": ["theirs.py"]}
    run_of(desk, "20261121-4", {"kind": "matrix", "request": paths, "imported": True}, [0.0])
    found = (await ask(environments.list_environments, desk)).environments
    assert [one.run_command for one in found] == [
        r"assay run $'evals/a b; touch gone\x0a\x03' b",
        r"assay run $'evals/a b; touch gone\x0a\x03'",
    ]


async def test_an_environment_has_the_reward_that_its_newest_run_has(desk: Desk) -> None:
    config: dict[str, Json] = {"kind": "matrix", "request": {"paths": ["evals"]}}
    run_of(desk, "20261121-1", config, [0.0, 1.0])
    for trial in (2, 3):
        cell = CellRecord(
            run_id="20261121-1", case="t1", trial=trial, status="graded", reward=1.0, passed=True
        )
        Store(desk.database).add_cell(cell, {})
    (found,) = (await ask(environments.list_environments, desk)).environments
    reward = (await ask(runs.show_run_overview, desk, "latest")).totals.reward
    assert (found.mean.mean, found.mean.low, found.mean.n) == (0.5, reward.low, 2)


async def test_a_key_expires_when_it_was_said_and_changes_are_found(desk: Desk) -> None:
    made = await ask(site.create_key, desk, "ci", "editor", "default", 30)
    assert made.expires_at > made.created_at
    assert (await ask(site.create_key, desk, "old", "editor", "default")).expires_at == ""
    await ask(site.revoke_key, desk, made.id)
    only = await ask(site.list_all_changes, desk, what="revoke_key")
    assert [one.what["id"] for one in only.items] == [made.id]
    assert (await ask(site.list_all_changes, desk, by="nobody")).items == []
    assert len((await ask(site.list_all_changes, desk, by="local")).items) == 3
