"""Code as people know it from HUD's pages runs here with the import path changed, and no more.

Not here: what asks a model.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator
from pathlib import Path
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
    Grader,
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


@each(
    ("score", "value"),
    [
        (exact_match("  The Fjord! ", "fjord"), 1.0),
        (exact_match("Fjord!", "fjord", normalize_text=False), 0.0),
        (contains("in Bergen, Norway", "bergen"), 1.0),
        (contains("in Bergen, Norway", "bergen", case_sensitive=True), 0.0),
        (contains_any("red and blue", ["green", "blue"]), 1.0),
        (contains_all("red and blue", ["green", "blue"]), 0.0),
        (numeric_match("about 41.5 km", 42, tolerance=0.5), 1.0),
        (numeric_match("about 41.5 km", 42), 0.0),
        (f1_score("salt and pepper", "salt pepper"), 0.8),
    ],
)
def test_comparisons_are_floats_to_yield_as_they_are(score: float, value: float) -> None:
    assert score == pytest.approx(value)
    assert type(score) is float


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


async def test_a_template_yields_the_value_of_a_command(tmp_path: Path) -> None:
    env = Environment("repair")
    (tmp_path / "sums.py").write_text("assert 1 + 1 == 3\n")

    @env.template()
    async def fix_tests() -> Steps:
        yield "Make sums.py run."
        command = "/usr/bin/env python3 sums.py"
        result = await BashGrader.grade(weight=1.0, command=command, cwd=str(tmp_path))
        yield result.value

    async def repairs(run: Run) -> None:
        (tmp_path / "sums.py").write_text("assert 1 + 1 == 2\n")

    assert (await fix_tests().run(says("It is fine."))).reward == 0.0
    assert (await fix_tests().run(repairs)).reward == 1.0


async def test_a_template_yields_several_graders_combined() -> None:
    env = Environment("mixed")

    @env.template()
    async def composed() -> Steps:
        answer = yield "What is six times seven?"
        yield await combine(
            BashGrader.grade(weight=0.5, command="true"),
            LengthGrader.grade(weight=0.3, answer=answer, target=10),
            SubScore(name="format", value=exact_match(answer, "42"), weight=0.2),
        )

    (run,) = (await composed().run(says("42"))).runs
    assert run.reward == pytest.approx(0.7)
    names = [(node.name, node.value, node.weight) for node in run.grade.subscores]
    assert names == [("BashGrader", 1.0, 0.5), ("length", 0.0, 0.3), ("format", 1.0, 0.2)]
    assert cast("Any", run.grade.subscores[0].info)["exit_code"] == 0
    assert run.grade.info == {}


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


class LengthGrader(Grader):
    name = "length"

    @classmethod
    async def compute_score(cls, answer: str = "", target: int = 100, **kwargs: Any) -> float:
        return 1.0 if len(answer) >= target else 0.0


class SpellingGrader(Grader):
    name = "spelling"

    @classmethod
    async def compute_score(cls, answer: str = "") -> tuple[float, dict[str, object]]:
        wrong = [word for word in answer.split() if "ie" in word]
        return 1.0 - len(wrong) / 4, {"wrong": wrong}


async def test_a_grader_of_ones_own() -> None:
    long = await LengthGrader.grade(weight=1.0, answer="x" * 150, target=200)
    assert (long.name, long.value, long.weight) == ("length", 0.0, 1.0)
    assert (await LengthGrader.grade(weight=1.0, answer="x" * 150)).value == 1.0
    spelled = await SpellingGrader.grade(weight=0.5, answer="recieve the cheese")
    assert spelled.value == 0.75
    assert dict(spelled.metadata or {})["wrong"] == ["recieve"]


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


def test_any_and_all_of_a_grader() -> None:
    parts = [SubScore(name="a", value=0.2), SubScore(name="b", value=0.9)]
    assert LengthGrader.any(1.0, parts).value == 0.9
    assert LengthGrader.all(1.0, parts).value == 0.2
    assert Grader.all(2.0, parts).weight == 2.0


# --- the page of types ----------------------------------------------------------------------------


async def test_a_run_and_what_it_tells() -> None:
    env = Environment("letters")

    @env.template(returns=int)
    async def count(word: str = "fjord") -> Steps:
        answer = yield [{"role": "user", "content": f"Count the letters of {word!r}."}]
        assert isinstance(answer, Answer)
        yield 1.0 if answer.content == len(word) else 0.0

    job = await count(word="skerry").run(says("6"), group=2)
    assert [run.reward for run in job.runs] == [1.0, 1.0]
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


async def test_a_rollout_that_never_began_and_one_that_broke() -> None:
    env = Environment("broken")

    @env.template()
    async def never(prompt: str = "") -> Steps:
        if not prompt:
            raise OSError("no display")
        yield prompt
        yield 1.0

    async def breaks(run: Run) -> None:
        run.record(AgentStep(content="first thought"))
        raise OSError("connection lost")

    (unborn,) = (await never().run(says("x"))).runs
    assert (unborn.prompt, unborn.runtime, unborn.trace.is_error) == (None, None, True)
    (broken,) = (await never(prompt="go").run(breaks)).runs
    assert broken.prompt == "go"
    assert broken.runtime
    assert len(broken.trace.work) == 2
    assert "connection lost" in str(broken.trace.error)
    assert (unborn.reward, broken.reward) == (None, None)
