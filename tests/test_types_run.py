"""Runs: the prompt in the forms that agents want, and the whole run through its JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScoreError
from assay.scoring import EvaluationResult, Grade, Json, SubScore
from assay.types import AgentStep, Prompt, Rewarded, Run, Trace, Workspace
from assay.types.codec import ShapeError

IMAGE: Json = {"type": "image_url", "image_url": {"url": "x"}}


@pytest.mark.parametrize(
    ("prompt", "messages", "text"),
    [
        (None, [("user", "")], ""),
        ("hello", [("user", "hello")], "hello"),
        ([], [], ""),
        (["a", "b"], [("user", "a"), ("user", "b")], "a\n\nb"),
        ([{"role": "assistant", "content": "a"}], [("assistant", "a")], "a"),
        ([{"role": "system", "content": "a"}], [("system", "a")], "a"),
        ([{"role": "tool", "content": "a"}, "b"], [("user", "a"), ("user", "b")], "a\n\nb"),
        (
            [{"role": "user", "content": [{"type": "text", "text": "a"}, IMAGE, {"text": "b"}]}],
            [("user", "a"), ("user", "b")],
            "a\n\nb",
        ),
        (
            [{"role": "user", "content": {"type": "text", "text": "a"}}, {"content": IMAGE}, "b"],
            [("user", "a"), ("user", "b")],
            "a\n\nb",
        ),
        ([{"role": "user", "content": [IMAGE]}], [], ""),
        ([{"role": "user"}], [], ""),
        ([{"content": "a"}], [("user", "a")], "a"),
        ([7, None], [("user", "7"), ("user", "None")], "7\n\nNone"),
    ],
)
def test_the_prompt_as_turns_and_as_text(
    prompt: Prompt, messages: list[tuple[str, str]], text: str
) -> None:
    run = Run(prompt=prompt)
    assert [(m.role, m.content) for m in run.prompt_messages] == messages
    assert run.prompt_text == text


def test_a_new_run_has_no_reward_rather_than_a_0() -> None:
    run = Run()
    assert (run.reward, run.grade.is_error, run.evaluation) == (None, True, {})
    assert isinstance(run, Rewarded)


def test_a_run_that_never_began_is_synthesized() -> None:
    run = Run.failed("no such image", slug="s", task_id="t")
    assert (run.prompt, run.runtime, run.reward) == (None, None, None)
    assert (run.trace.status, run.trace.error, run.grade.content) == (
        "error",
        "no such image",
        "no such image",
    )
    assert (run.slug, run.task_id) == ("s", "t")


GRADES = st.one_of(
    st.builds(Grade.from_result, st.builds(EvaluationResult, reward=st.floats(-2, 1))),
    st.just(Grade.from_result(EvaluationResult.from_error("gone"))),
    st.just(Grade.ungraded()),
    st.just(
        Grade.from_result(
            EvaluationResult(reward=0.5, subscores=(SubScore(name="x", value=0.5, weight=2),))
        )
    ),
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


MALFORMED: list[tuple[dict[str, Json], type[Exception]]] = [
    ({"promt": "x"}, ShapeError),
    ({"trial": "1"}, ShapeError),
    ({"trace": {"steps": [{}]}}, ShapeError),
    ({"grade": {"score": True}}, ScoreError),
    ({"grade": {"score": 2, "isErr": True}}, ScoreError),
]


@pytest.mark.parametrize(
    ("change", "error"),
    MALFORMED,
)
def test_a_malformed_run_is_refused(change: dict[str, Json], error: type[Exception]) -> None:
    with pytest.raises(error):
        Run.from_dict({**Run(prompt="x").to_dict(), **change})
