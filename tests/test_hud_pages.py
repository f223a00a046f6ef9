"""Code as people know it from HUD's pages runs here with the import path changed, and no more.

Not here: what asks a model.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

import assay
import assay.graders
import assay.native
from assay import Grade, Run, Trace
from assay.agents.types import AgentStep, MCPToolCall, MCPToolResult
from assay.environment import Answer, Environment
from assay.errors import InputError
from assay.eval import group_relative
from assay.graders import (
    BashGrader,
    EvaluationResult,
    LLMJudgeGrader,
    SubScore,
    combine,
    combine_all,
    combine_any,
    contains,
    contains_all,
    contains_any,
    exact_match,
    f1_score,
    normalize,
    numeric_match,
)
from assay.native import Grade as Combiner
from assay.types import ToolCall, ToolResult
from tests.each import each

Steps = AsyncGenerator[Any, Any]


def says(text: str | None) -> Any:
    async def agent(run: Run) -> None:
        run.record(AgentStep(content=text, done=True))
        run.trace.content = text

    return agent


# --- the page of graders --------------------------------------------------------------------------


def test_comparisons_are_floats_to_yield_as_they_are() -> None:
    """A bool, which is as good as one to whoever compares it, is no reward."""
    scores = [exact_match("4", "4"), contains("4", "4"), numeric_match("4", 4), f1_score("4", "4")]
    scores += [one("4", ["4"]) for one in (contains_any, contains_all)]
    assert [type(score) for score in scores] == [float] * 6


@each(
    ("function", "signature"),
    [
        (exact_match, ["answer", "expected", "normalize_text"]),
        (contains, ["answer", "substring", "case_sensitive"]),
        (contains_any, ["answer", "substrings", "case_sensitive"]),
        (contains_all, ["answer", "substrings", "case_sensitive"]),
        (numeric_match, ["answer", "expected", "tolerance"]),
        (f1_score, ["answer", "reference"]),
        (normalize, ["text"]),
        (combine_any, ["weight", "subscores"]),
        (combine_all, ["weight", "subscores"]),
        (BashGrader.compute_score, ["command", "cwd", "timeout_seconds"]),
        (group_relative, ["rewards", "normalize_std"]),
    ],
)
def test_parameters_have_the_names_and_the_order_that_people_know(
    function: Any, signature: list[str]
) -> None:
    assert list(inspect.signature(function).parameters)[: len(signature)] == signature


def test_older_names_are_there() -> None:
    assert all(getattr(assay.native, name) for name in assay.native.__all__)
    assert (MCPToolCall, MCPToolResult) == (ToolCall, ToolResult)
    assert assay.graders.Grade is Combiner


async def test_a_judge_takes_a_missing_answer_for_an_empty_one() -> None:
    judged = await LLMJudgeGrader.grade(criteria=["It names Oslo"])
    assert (judged.status, judged.value) == ("scored", 0.0)


def test_a_frame_may_say_more_than_we_read() -> None:
    frame: Any = {"score": 0.5, "done": True, "extra": 1}
    grade = Grade.from_dict(frame)
    assert (grade.reward, grade.raw["extra"]) == (0.5, 1)
    assert Grade.from_dict(grade.to_dict()) == grade


async def test_a_scenario_is_a_template_that_can_be_driven_by_hand() -> None:
    env = Environment("older")

    @env.scenario("checked")
    async def checked(word: str = "done") -> Steps:
        answer = yield f"Say {word}."
        yield await Combiner.gather(SubScore("said", exact_match(answer, word)))

    assert (await checked().run(says("done"))).reward == 1.0
    assert await env.run_scenario_setup("checked", {"word": "yes"}) == "Say yes."
    session = cast("Any", env)._active_session
    session.answer = "yes"
    assert (await env.run_scenario_evaluate("checked")).reward == 1.0
    with pytest.raises(InputError, match="was not begun"):
        await env.run_scenario_evaluate("checked")


def test_a_score_is_written_and_read_by_the_names_that_people_know() -> None:
    leaf = SubScore(name="tests", value=1.0, info={"exit_code": 0})
    node = SubScore(name="any", value=1.0, children=[leaf], info={"by": "me"})
    written = cast("Any", node.model_dump(mode="json"))
    assert (written["info"], written["children"][0]["info"]) == ({"by": "me"}, {"exit_code": 0})
    short = cast("Any", node.to_summary())
    assert (short["name"], short["children"][0]["name"]) == ("any", "tests")
    for one in (written, short, written["children"][0], short["children"][0]):
        assert "metadata" not in one
    assert "info" not in {**short, **short["children"][0]}
    assert SubScore.model_validate(written) == node
    result = EvaluationResult(reward=1.0, subscores=[node])
    assert cast("Any", result.model_dump(mode="json"))["subscores"] == [written]
    assert EvaluationResult.model_validate(result.model_dump()) == result


async def test_what_bash_grader_computes_is_a_node() -> None:
    node = await BashGrader.compute_score(command="echo hello; exit 3")
    assert (node.name, node.value, node.assurance) == ("BashGrader", 0.0, "status")
    info = cast("Any", node.info)
    assert (info["exit_code"], info["stdout"]) == (3, "hello\n")
    for nothing in (None, "", " \n"):  # the last two would exit 0 for everybody
        with pytest.raises(ValueError, match="requires command"):
            await BashGrader.compute_score(command=nothing)
    assert (await combine(BashGrader.grade())).reward is None


# --- the older page: hud.native -------------------------------------------------------------------


async def test_gather_combines_and_copies_metadata_into_the_info() -> None:
    result = await Combiner.gather(
        assay.native.BashGrader.grade(weight=1.0, name="build", command="echo built"),
        SubScore(name="notes", value=0.5, weight=1.0, metadata={"by": "me"}),
        SubScore(name="bare", value=0.0, weight=2.0),
    )
    assert result.reward == 0.375
    info: dict[str, Any] = dict(result.info)
    assert sorted(info) == ["build", "notes"]
    assert info["notes"] == {"by": "me"}
    assert info["build"]["stdout"] == "built\n"
    assert info["build"]["_parameters"] == {"command": "echo built"}


def test_from_subscores_makes_repeated_names_unique() -> None:
    parts = [SubScore(name="x", value=1.0, metadata={"n": n}) for n in range(2)]
    result = Combiner.from_subscores([*parts, SubScore(name="late", value=1.0, weight=-0.5)])
    assert result.reward == 0.5
    assert [node.name for node in result.subscores or ()] == ["x-1", "x-2", "late"]
    assert result.info == {"x-1": {"n": 0}, "x-2": {"n": 1}}
    with pytest.raises(ValueError, match="must not be empty"):
        Combiner.from_subscores([])


# --- the page of types ----------------------------------------------------------------------------


async def test_a_run_and_what_it_tells() -> None:
    env = Environment("letters")

    @env.template(returns=int)
    async def count(word: str = "fjord") -> Steps:
        answer = yield [{"role": "user", "content": f"Count the letters of {word!r}."}]
        assert isinstance(answer, Answer)
        yield 1.0 if answer.content == len(word) else 0.0

    job = await count(word="skerry").run(says("6"), group=2)
    run = job.runs[0]
    assert run.prompt == [{"role": "user", "content": "Count the letters of 'skerry'."}]
    assert [(m.role, m.content) for m in run.prompt_messages] == [("user", run.prompt_text)]
    assert isinstance(run.trace, Trace)
    assert isinstance(run.grade, Grade)
    assert run.evaluation["score"] == 1.0
    assert (run.trace.content, run.trace.status, run.trace.is_error) == ("6", "completed", False)
    assert (run.job_id, run.group_id) == (job.id, job.runs[1].group_id)
    assert run.trace_id
    assert run.runtime
    assert isinstance(run, assay.Rewarded)
