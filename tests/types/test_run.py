"""Runs and jobs: the prompt as agents want it, what a job's mean is of, and all through JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScoreError
from assay.scoring import EvaluationResult, Grade, Json, SubScore
from assay.types import AgentStep, Job, Prompt, Rewarded, Run, Trace, Workspace
from assay.types.codec import ShapeError
from tests.each import each

IMAGE: Json = {"type": "image_url", "image_url": {"url": "x"}}


PARTS: Json = [{"type": "text", "text": "a"}, IMAGE, {"text": "b"}]
TEXT: Json = {"type": "text", "text": "a"}


@each(
    ("prompt", "messages", "text"),
    [
        (None, [("user", "")], ""),
        ("hello", [("user", "hello")], "hello"),
        ([], [], ""),
        (["a", "b"], [("user", "a"), ("user", "b")], "a\n\nb"),
        ([{"role": "system", "content": "a"}], [("system", "a")], "a"),
        ([{"role": "tool", "content": "a"}, "b"], [("user", "a"), ("user", "b")], "a\n\nb"),
        ([{"role": "user", "content": PARTS}], [("user", "a"), ("user", "b")], "a\n\nb"),
        ([{"content": TEXT}, {"content": IMAGE}, "b"], [("user", "a"), ("user", "b")], "a\n\nb"),
        ([{"role": "user", "content": [IMAGE]}], [], ""),
        ([7, None], [("user", "7"), ("user", "None")], "7\n\nNone"),
    ],
)
def test_the_prompt_as_turns_and_as_text(
    prompt: Prompt, messages: list[tuple[str, str]], text: str
) -> None:
    run = Run(prompt=prompt)
    assert [(m.role, m.content) for m in run.prompt_messages] == messages
    assert run.prompt_text == text


def test_a_run_that_is_new_or_never_began_has_no_reward_rather_than_a_0() -> None:
    new, failed = Run(), Run.failed("no such image", slug="s", task_id="t")
    assert (new.reward, new.grade.is_error, new.evaluation) == (None, True, {})
    assert isinstance(new, Rewarded)
    assert (failed.prompt, failed.runtime, failed.reward) == (None, None, None)
    assert (failed.trace.status, failed.trace.error) == ("error", "no such image")
    assert failed.grade.content == "no such image"
    assert (failed.slug, failed.task_id) == ("s", "t")


HALF = EvaluationResult(reward=0.5, subscores=(SubScore(name="x", value=0.5, weight=2),))
GRADES = st.one_of(
    st.builds(Grade.from_result, st.builds(EvaluationResult, reward=st.floats(-2, 1))),
    st.just(Grade.from_result(EvaluationResult.from_error("gone"))),
    st.just(Grade.ungraded()),
    st.just(Grade.from_result(HALF)),
)
RUNS = st.builds(
    Run,
    prompt=st.none() | st.text() | st.lists(st.text() | st.just({"role": "user"}), max_size=2),
    trace=st.builds(Trace, steps=st.lists(st.builds(AgentStep, content=st.text()), max_size=2)),
    grade=GRADES,
    workspace=st.none() | st.just(Workspace(path="/w", mounts=(("/a", "/b"),), env={"A": "1"})),
    runtime=st.none() | st.text(),
    trace_id=st.none() | st.text(),
    group_id=st.none() | st.text(),
    slug=st.text(),
    trial=st.integers(1, 9),
    seconds=st.floats(0, 1e6),
    cost_usd=st.none() | st.floats(0, 9),
    tokens=st.none() | st.integers(0, 9),
    metadata=st.dictionaries(st.text(), st.integers() | st.booleans(), max_size=2),
)


@given(RUNS)
def test_a_run_survives_its_json_with_its_grade(run: Run) -> None:
    read = Run.from_dict(json.loads(json.dumps(run.to_dict())))
    assert read == run
    assert read.reward == run.reward
    assert not run.evaluation or read.evaluation == run.evaluation


@each(
    ("change", "error"),
    [
        ({"promt": "x"}, ShapeError),
        ({"trace": {"steps": [{}]}}, ShapeError),
        ({"grade": {"score": True}}, ScoreError),
    ],
)
def test_a_malformed_run_is_refused(change: dict[str, Json], error: type[Exception]) -> None:
    with pytest.raises(error):
        Run.from_dict({**Run(prompt="x").to_dict(), **change})


# Jobs.


def run(slug: str, reward: float | None, *, error: bool = False, group: str | None = None) -> Run:
    result = EvaluationResult.from_error("gone") if error else EvaluationResult(reward=reward)
    return Run(slug=slug, grade=Grade.from_result(result), group_id=group)


def test_the_mean_is_over_graded_runs_and_says_how_many() -> None:
    job = Job(runs=[run("a", 1.0), run("b", 0.0), run("c", None), run("d", 1.0, error=True)])
    assert (job.reward, job.coverage, len(job)) == (0.5, (2, 4), 4)
    assert [r.slug for r in job.graded] == ["a", "b"]
    assert [r.slug for r in job.errors] == ["d"]
    assert [r.slug for r in job] == ["a", "b", "c", "d"]
    for none in ([], [run("a", None)], [run("a", 1.0, error=True)]):
        assert Job(runs=none).reward is None


def test_a_job_has_its_runs_by_task_and_by_group_and_survives_its_json() -> None:
    first, second, alone = run("a", 1.0, group="g1"), run("a", 0.0, group="g2"), run("b", 0.5)
    job = Job(name="nightly", group=3, runs=[first, second, alone, run("b", 1.0, error=True)])
    assert job.results == {"a": [first, second], "b": job.runs[2:]}
    assert job.groups == {"g1": [first], "g2": [second], "b": job.runs[2:]}
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
    lines = ["a, trial 1: reward 1.00", "b, trial 1: reward 0.50", "c, trial 1: gone"]
    assert [str(r) for r in job] == lines
