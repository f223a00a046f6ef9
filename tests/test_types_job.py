"""Jobs: the mean of what was graded, with its coverage beside it."""

from __future__ import annotations

import json

import pytest

from assay.scoring import EvaluationResult, Grade
from assay.types import Job, Run


def run(slug: str, reward: float | None, *, error: bool = False, group: str | None = None) -> Run:
    result = EvaluationResult.from_error("gone") if error else EvaluationResult(reward=reward)
    return Run(slug=slug, grade=Grade.from_result(result), group_id=group)


def test_the_mean_is_over_graded_runs_and_says_how_many() -> None:
    job = Job(runs=[run("a", 1.0), run("b", 0.0), run("c", None), run("d", 1.0, error=True)])
    assert job.reward == 0.5
    assert job.coverage == (2, 4)
    assert [r.slug for r in job.graded] == ["a", "b"]
    assert [r.slug for r in job.errors] == ["d"]
    assert [r.slug for r in job] == ["a", "b", "c", "d"]
    assert len(job) == 4


@pytest.mark.parametrize("runs", [[], [run("a", None)], [run("a", 1.0, error=True)]])
def test_where_nothing_was_graded_there_is_no_mean(runs: list[Run]) -> None:
    assert Job(runs=runs).reward is None


def test_runs_by_task_and_by_group() -> None:
    first, second, alone = run("a", 1.0, group="g1"), run("a", 0.0, group="g2"), run("b", 0.5)
    job = Job(runs=[first, second, alone])
    assert job.results == {"a": [first, second], "b": [alone]}
    assert job.groups == {"g1": [first], "g2": [second], "b": [alone]}


def test_ids_are_unique_and_a_job_survives_its_json() -> None:
    job = Job(name="nightly", group=3, runs=[run("a", 1.0), run("b", 1.0, error=True)])
    assert job.id != Job().id
    assert Job.from_dict(json.loads(json.dumps(job.to_dict()))) == job


def test_a_job_is_printed_as_a_short_table_and_a_run_as_a_line() -> None:
    job = Job(name="nightly", runs=[run("a", 1.0), run("b", 0.5), run("c", 1.0, error=True)])
    assert str(job).splitlines() == [
        "nightly: reward 0.75; 2 of 3 graded; c: gone",
        "task  reward  why",
        "a     1.00",
        "b     0.50",
        "c     error   gone",
    ]
    assert str(Job(id="job-1")) == "job-1: no reward; 0 of 0 graded"
    assert [str(r) for r in job] == [
        "a, trial 1: reward 1.00",
        "b, trial 1: reward 0.50",
        "c, trial 1: gone",
    ]
