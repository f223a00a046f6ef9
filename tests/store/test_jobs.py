"""Jobs: claimed by one worker at a time, resumed after it dies, each row scored once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from assay.errors import ConflictError, InputError, NotFoundError, StoreError
from assay.scoring.graded import Graded
from assay.store import Catalog, Database, Datasets, Jobs, Projects, ScoreRecord, Scores
from assay.store.pages import Stretch
from tests.store.noon import NOON

_MINUTE = timedelta(minutes=1)


@pytest.fixture
def jobs(database: Database) -> Jobs:
    catalog = Catalog(database)
    catalog.create("default", "g", kind="x", definition={}, digest="d1")
    catalog.add_version("default", "g", kind="x", definition={}, digest="d2")
    Datasets(database).create("default", "d", "", ({"answer": str(n)} for n in range(5)))
    return Jobs(database)


def _claimed(jobs: Jobs, worker: str, at: datetime = NOON) -> str | None:
    """The id of the job that a worker has claimed for a minute."""
    taken = jobs.claim(worker, 60, at)
    return taken and taken.id


def _create(jobs: Jobs) -> str:
    return jobs.create("default", grader="g", dataset="d").id


def _scored(number: int, score: float = 1.0) -> tuple[int, ScoreRecord]:
    graded = Graded(id=str(number), status="scored", score=score, grader="g@2", digest="d2")
    return number, ScoreRecord(item=str(number), graded=graded)


def _failed(number: int) -> tuple[int, ScoreRecord]:
    return number, ScoreRecord(item=str(number), graded=Graded.failed(str(number), "no sandbox"))


def test_a_job_comes_back_as_it_was_with_the_version_that_was_newest(
    jobs: Jobs, database: Database
) -> None:
    made = jobs.create("default", grader="g", dataset="d", by="someone")
    assert made == jobs.get(made.id)
    assert made.id.startswith("20261121-120000-")
    assert made.to_dict() == {
        "id": made.id,
        "project": "default",
        "grader": "g",
        "version": 2,
        "dataset": "d",
        "status": "queued",
        "total": 5,
        "done": 0,
        "errors": 0,
        "message": "",
        "created_at": "2026-11-21T12:00:00.000Z",
        "updated_at": "2026-11-21T12:00:00.000Z",
        "created_by": "someone",
    }
    assert jobs.create("default", grader="g", dataset="d", version=1).version == 1
    Catalog(database).add_version("default", "g", kind="x", definition={}, digest="d3")
    assert jobs.get(made.id).version == 2


def test_a_job_needs_what_it_names(jobs: Jobs) -> None:
    asked: dict[str, Any] = {"project": "default", "grader": "g", "dataset": "d"}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"grader": "h"}, "no grader 'h'"),
        ({"dataset": "e"}, "no dataset 'e'"),
        ({"version": 3}, "no version 3"),
        ({"version": 0}, "no version 0"),
        ({"project": "p"}, "no project 'p'"),
    ]
    for changed, complaint in wrong:
        with pytest.raises(NotFoundError, match=complaint):
            jobs.create(**{**asked, **changed})
    assert list(jobs.page("default")) == []


def test_jobs_are_listed_newest_first_a_page_at_a_time(jobs: Jobs, database: Database) -> None:
    made = [_create(jobs) for _ in range(5)]
    jobs.cancel(made[1])
    Projects(database).create("other")
    assert [job.id for job in jobs.page("default", Stretch(2))] == made[:2:-1]
    assert [job.id for job in jobs.page("default", status="cancelled")] == [made[1]]
    assert list(jobs.page("other")) == []


def test_the_oldest_job_is_claimed_first_and_once_unless_its_project_has_enough(jobs: Jobs) -> None:
    made = [_create(jobs), _create(jobs)]
    assert jobs.claim("a", 60, NOON, but_not=["other", "default"]) is None
    with pytest.raises(InputError, match="has no zone"):
        jobs.claim("a", 30, NOON.replace(tzinfo=None))
    first = jobs.claim("a", 60, NOON, but_not=["other"])
    assert [first and first.id, _claimed(jobs, "b"), _claimed(jobs, "c")] == [*made, None]
    assert [job.status for job in jobs.page("default")] == ["running", "running"]


def test_a_claim_that_ran_out_is_taken_over_and_one_that_is_renewed_is_not(jobs: Jobs) -> None:
    job, late = _create(jobs), NOON + _MINUTE + timedelta(milliseconds=1)
    assert _claimed(jobs, "a") == job
    assert _claimed(jobs, "b", NOON + _MINUTE) is None  # to the last moment
    assert _claimed(jobs, "b", late) == job
    assert not jobs.renew(job, "a", 60, late)
    assert jobs.renew(job, "b", 60, late + _MINUTE)
    assert _claimed(jobs, "c", late + 1.5 * _MINUTE) is None
    # A claim of a clock that was fast strands no job.
    assert _claimed(jobs, "d", NOON + 1_000 * _MINUTE) == job
    assert [_claimed(jobs, "e"), _claimed(jobs, "f")] == [job, None]


def test_a_claim_that_is_given_back_is_free_at_once_and_of_a_cancelled_job_lost(jobs: Jobs) -> None:
    job = _create(jobs)
    assert _claimed(jobs, "a") == job
    assert not jobs.release(job, "b")
    assert jobs.release(job, "a")
    assert jobs.get(job).status == "queued"
    assert _claimed(jobs, "b") == job
    jobs.cancel(job)
    assert not jobs.renew(job, "b", 60, NOON)
    assert not jobs.release(job, "b")
    assert _claimed(jobs, "c", NOON + 2 * _MINUTE) is None


def test_a_job_that_kills_its_workers_fails(jobs: Jobs) -> None:
    job, next_one = _create(jobs), _create(jobs)
    for number, worker in enumerate("abcde", start=1):
        assert _claimed(jobs, worker, NOON + 2 * number * _MINUTE) == job
    assert _claimed(jobs, "f", NOON + 12 * _MINUTE) == next_one
    failed = jobs.get(job)
    assert (failed.status, failed.message[:9]) == ("failed", "5 workers")


def test_a_job_that_goes_on_may_lose_any_number_of_workers(jobs: Jobs) -> None:
    job = _create(jobs)
    for number in range(1, 6):
        for worker in "ab":
            assert _claimed(jobs, f"{worker}{number}", NOON + 10 * number * _MINUTE) in (job, None)
        jobs.add_scores(job, [_scored(number)])
    assert jobs.finish(job, "finished").status == "finished"


def test_what_came_of_a_job_is_summed_up_and_found_by_row(jobs: Jobs) -> None:
    assert jobs.waiting() == {}
    job, other = _create(jobs), _create(jobs)
    skipped = ScoreRecord(item="3", graded=Graded(id="3", status="skipped", reason="not here"))
    jobs.add_scores(job, [_scored(5, 0.5)])
    counted = jobs.add_scores(job, [_scored(1, 0.25), _failed(2), (3, skipped)])
    assert (counted.done, counted.errors, counted.total) == (4, 1, 5)
    assert jobs.graded_rows(job) == {1, 2, 3, 5}
    assert [(one.item, one.job) for one in jobs.results(job)] == [(n, job) for n in "1235"]
    assert [one.item for one in jobs.results(job, order="newest")] == ["3", "2", "1", "5"]
    jobs.add_scores(other, [_scored(4, 0.75)])
    assert jobs.waiting() == {"default": 2}
    assert jobs.counts(job) == {"scored": 2, "error": 1, "skipped": 1}
    tally = jobs.tally(job)
    assert (tally.counts, sorted(tally.scores)) == (jobs.counts(job), [0.25, 0.5])
    assert tally.errors == ["no sandbox"]
    assert jobs.scored(job) == {1: 0.25, 2: None, 3: None, 5: 0.5}
    assert jobs.result(job, 5).graded.score == 0.5
    with pytest.raises(NotFoundError, match="row 4 of job"):
        jobs.result(job, 4)
    assert [one.item for one in jobs.results(job, status="scored")] == ["1", "5"]
    jobs.finish(other, "failed", "it broke")
    assert jobs.get(other).message == "it broke"
    assert jobs.waiting() == {"default": 1}


def test_a_row_is_scored_once_and_the_first_counts(jobs: Jobs) -> None:
    """Two workers on one job, or a batch sent again, must neither count nor change a row."""
    job = _create(jobs)
    jobs.add_scores(job, [_scored(1, 0.25), _scored(2, 0.5)])
    again = jobs.add_scores(job, [_scored(2, 0.0), _failed(1), _scored(3, 0.75), _failed(3)])
    assert (again.done, again.errors) == (3, 0)
    assert [s.graded.score for s in jobs.results(job)] == [0.25, 0.5, 0.75]
    assert jobs.add_scores(job, []) == again
    for number in (0, 6, -1, 2**63):
        with pytest.raises(InputError, match=f"has no row {number}"):
            jobs.add_scores(job, [_scored(4), _scored(number)])
    assert jobs.get(job) == again


def test_a_job_is_finished_when_every_row_has_an_outcome(jobs: Jobs) -> None:
    job = _create(jobs)
    jobs.claim("a", 60, NOON)
    jobs.add_scores(job, [_scored(n) for n in (1, 2, 3, 4)])
    with pytest.raises(ConflictError, match="1 row is missing"):
        jobs.finish(job, "finished")
    jobs.add_scores(job, [_failed(5)])
    done = jobs.finish(job, "finished", "well done")
    assert (done.status, done.done, done.errors, done.message) == ("finished", 5, 1, "well done")
    assert jobs.finish(job, "failed", "too late") == done
    assert jobs.claim("b", 60, NOON + 2 * _MINUTE) is None


def test_nothing_is_added_to_a_job_that_ended_which_may_fail_at_any_time(jobs: Jobs) -> None:
    job, other = _create(jobs), _create(jobs)
    jobs.add_scores(job, [_scored(1)])
    assert [jobs.cancel(job).status for _ in range(2)] == ["cancelled", "cancelled"]
    assert jobs.add_scores(job, [_scored(1)]).done == 1  # what is there already is not news
    with pytest.raises(ConflictError, match="is cancelled: nothing can be added"):
        jobs.add_scores(job, [_scored(2)])
    assert jobs.graded_rows(job) == {1}
    assert jobs.finish(job, "finished").status == "cancelled"
    failed = jobs.finish(other, "failed", "x" * 10_000)
    assert (failed.status, len(failed.message)) == ("failed", 4096)
    with pytest.raises(ConflictError, match="is failed: it cannot be cancelled"):
        jobs.cancel(other)


def test_an_unknown_job_is_never_an_empty_one(jobs: Jobs) -> None:
    for use in (
        lambda: jobs.get("nope"),
        lambda: jobs.add_scores("nope", [_scored(1)]),
        lambda: jobs.graded_rows("nope"),
        lambda: jobs.finish("nope", "failed"),
        lambda: jobs.cancel("nope"),
        lambda: jobs.results("nope"),
    ):
        with pytest.raises(NotFoundError, match="there is no job 'nope'"):
            use()


def test_a_failure_in_a_batch_takes_all_of_it_back(jobs: Jobs, database: Database) -> None:
    job = _create(jobs)

    def fail_half_way() -> None:
        with database.writing():
            jobs.add_scores(job, [_scored(1)])
            database.change("UPDATE job SET done = total + 1")

    with pytest.raises(StoreError, match="refused what was to be stored"):
        fail_half_way()
    assert (jobs.get(job).done, jobs.graded_rows(job)) == (0, set())


def test_a_job_that_has_ended_is_deleted_with_its_scores_which_no_age_deletes(
    jobs: Jobs, database: Database
) -> None:
    gone, stays = _create(jobs), _create(jobs)
    for job in (gone, stays):
        jobs.add_scores(job, [_scored(1)])
    assert Scores(database).delete("default", NOON + _MINUTE) == 0
    with pytest.raises(ConflictError, match=r"is queued.*cancel it first"):
        jobs.delete(gone)
    jobs.cancel(gone)
    jobs.delete(gone)
    with pytest.raises(NotFoundError):
        jobs.delete(gone)
    assert [job.id for job in jobs.page("default")] == [stays]
    assert len(jobs.results(stays)) == 1
