"""Templates of several steps: actions and observations, and how they end whoever ends them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, cast

import pytest

from assay.agents import ModelAgent
from assay.agents.transcripts.telling import as_otel
from assay.agents.transcripts.writing import Told, as_atif, as_chat
from assay.environment import Answer, Environment, Observation, Template
from assay.errors import AgentEndedError, AgentError, InputError, ScoreError, TaskEndedError
from assay.testing import calls, says
from assay.types import ActionStep, AgentStep, Run, Submission, Trace
from tests.each import each
from tests.environment.playing import playing

Steps = AsyncGenerator[Any, Any]
Agent = Callable[[Run], Awaitable[object]]


def guessing(*, max_steps: int = 4) -> Template[[]]:
    """A number between 1 and 9 is to be guessed: the reward falls with each guess."""
    env = Environment("games")

    @env.template(max_steps=max_steps)
    async def guess() -> Steps:
        said = yield "Guess."
        for number in range(max_steps):
            if said == "7":
                yield 1 - number / 10
                return
            said = yield Observation("more" if said < "7" else "less", reward=-0.1)
        yield 0.25

    return guess


def acting(*actions: str, answer: str | None = None) -> Agent:
    async def agent(run: Run) -> None:
        for action in actions:
            await run.step(action)
        if answer is not None:
            run.trace.content = answer

    return agent


async def one(template: Template[[]], agent: Agent, **options: Any) -> Run:
    (run,) = (await template().run(agent, **options)).runs
    return run


async def test_an_agent_acts_and_sees_what_comes_of_it() -> None:
    seen: list[Observation] = []

    async def agent(run: Run) -> None:
        assert run.max_steps == 4
        seen.extend([await run.step(action) for action in ("3", "9", "7")])

    run = await one(guessing(), agent)
    assert run.reward == 0.8
    assert seen == [
        Observation("more", reward=-0.1),
        Observation("less", reward=-0.1),
        Observation(done=True),
    ]
    assert run.trace.content == "7"
    actions = [step for step in run.trace.steps if isinstance(step, ActionStep)]
    assert [(step.action, step.observation, step.reward, step.done) for step in actions] == [
        ("3", "more", -0.1, False),
        ("9", "less", -0.1, False),
        ("7", "", None, True),
    ]
    assert [step.step_id for step in run.trace.steps] == [1, 2, 3, 4, 5, 6]
    assert Run.from_dict(run.to_dict()).trace == run.trace
    assert run.max_steps == 0


ENDS: list[tuple[tuple[str, ...], str | None, float, str]] = [
    ((), "7", 1.0, ""),  # an agent that knows nothing of steps
    ((), "3", 0.0, "the agent ended after 1 action, and the task was not finished"),
    ((), None, 0.0, "the agent ended after 1 action"),
    (("3",), "3", 0.0, "the agent ended after 1 action"),  # said again, not done again
    (("3",), "7", 0.9, ""),
    (("3", "4", "5"), None, 0.0, "the agent ended after 3 actions"),
    (("3", "4", "5", "6"), None, 0.0, "not finished after 4 actions, the most that it takes"),
    (("3", "4", "5", "6"), "7", 0.0, "not finished after 4 actions, the most that it takes"),
    (("7",), "I won", 1.0, ""),
]


@each("actions, answer, reward, why", ENDS)
async def test_who_ends_early_is_graded(
    actions: tuple[str, ...], answer: str | None, reward: float, why: str
) -> None:
    run = await one(guessing(), acting(*actions, answer=answer))
    assert run.reward == pytest.approx(reward)
    assert why in (run.grade.content or "")
    assert (run.grade.info.get("unfinished") is True) == (not run.grade.done) == bool(why)


async def test_an_agent_may_return_what_it_does_last() -> None:
    async def returns(run: Run) -> str:
        await run.step("3")
        return "7"

    async def narrates(run: Run) -> str:
        await run.step("7")
        return "I won."

    assert (await one(guessing(), returns)).reward == 0.9
    won = await one(guessing(), narrates)
    assert (won.reward, won.trace.content) == (1.0, "I won.")


@each("actions", [("7",), ("1", "2", "3", "4")])
async def test_nobody_acts_in_a_task_that_is_over(actions: tuple[str, ...]) -> None:
    async def agent(run: Run) -> None:
        with pytest.raises(AgentError, match="an action must be text, got int"):
            await run.step(cast("Any", 7))
        seen = [await run.step(action) for action in actions]
        assert seen[-1].done
        with pytest.raises(TaskEndedError, match=f"no more actions after {len(actions)} action"):
            await run.step("7")

    run = await one(guessing(), agent)
    assert run.reward == (1.0 if actions == ("7",) else 0.0)
    steps = [step for step in run.trace.steps if isinstance(step, ActionStep)]
    assert [step.action for step in steps if not step.error] == list(actions)


async def test_a_task_of_one_answer_can_be_stepped_too_and_a_case_cannot() -> None:
    env = Environment()

    @env.template()
    async def asks() -> Steps:
        yield float((yield "a?") == "a")

    async def agent(run: Run) -> None:
        assert run.max_steps == 1
        assert (await run.step("a")) == Observation(done=True)

    assert (await one(asks, agent)).reward == 1.0
    with pytest.raises(TaskEndedError, match="takes no actions"):
        await Run().step("a")


def told_of_end(how: str) -> Template[[]]:
    """A template that does something when no more actions come."""
    env = Environment()

    @env.template(max_steps=3)
    async def plays() -> Steps:
        score = 0.0
        yield_again = True
        said = yield "Go."
        try:
            while said != "stop":
                score += 0.25
                try:
                    if how == "in a group":
                        async with asyncio.TaskGroup():
                            said = yield Observation("on")
                    else:
                        said = yield Observation("on")
                except Exception:
                    if how != "swallows" or not yield_again:
                        raise
        except AgentEndedError:
            if how == "grades":
                yield score
            elif how == "fails":
                raise ValueError("its own") from None
            elif how == "lets pass":
                raise
            return
        yield 1.0

    return plays


@each(
    "how, reward",
    [
        ("grades", 0.5),
        ("lets pass", 0.0),
        ("returns", 0.0),
        ("swallows", 0.0),
        ("in a group", 0.0),
        ("fails", None),
    ],
)
async def test_a_template_is_told_that_no_more_actions_come(how: str, reward: float | None) -> None:
    for actions in (("a", "b"), ("stop",)):
        run = await one(told_of_end(how), acting(*actions))
        assert run.reward == (1.0 if actions == ("stop",) else reward)
    assert (await one(told_of_end("grades"), acting("a", "b", "c"))).reward == 0.75


async def test_a_last_observation_may_be_shown_before_the_reward() -> None:
    env = Environment()

    @env.template(max_steps=3)
    async def plays() -> Steps:
        yield "Go."
        yield Observation("You fell.", done=True)
        yield 0.5

    @env.template(max_steps=3)
    async def forgets() -> Steps:
        yield "Go."
        yield Observation("You fell.", done=True)

    async def agent(run: Run) -> None:
        assert await run.step("jump") == Observation("You fell.", done=True)
        with pytest.raises(TaskEndedError):
            await run.step("jump")

    assert (await one(plays, agent)).reward == 0.5
    assert (await one(plays, acting(answer="jump"))).reward == 0.5
    assert "ended without a second yield" in str((await one(forgets, agent)).trace.error)


async def test_a_task_that_fails_has_no_grade_though_its_agent_looks_away() -> None:
    env = Environment()

    @env.template(max_steps=3)
    async def breaks() -> Steps:
        said = yield "Go."
        if said == "break":
            raise KeyError("the task's own")
        if said == "exit":
            raise SystemExit(3)
        yield Observation(cast("Any", [3] if said == "list" else 3))
        yield 1.0

    @env.template(max_steps=3)
    async def shows_text() -> Steps:
        yield "Go."
        yield "more"
        yield 1.0

    @env.template()
    async def undeclared() -> Steps:
        yield "Go."
        yield Observation("more")
        yield 1.0

    async def agent(run: Run) -> None:
        for action in ("break", "again"):
            with pytest.raises((KeyError, TaskEndedError)):
                await run.step(action)
        run.trace.content = "and now it is fine"

    run = await one(breaks, agent)
    assert run.reward is None
    assert "the task's own" in str(run.trace.error)
    (failed,) = (step for step in run.trace.steps if isinstance(step, ActionStep))
    assert (failed.action, failed.observation) == ("break", None)
    for action in ("go", "list"):
        strange = await one(breaks, acting(action))
        assert "an observation that cannot be shown" in str(strange.trace.error)
    ended = await one(breaks, acting("exit"))
    assert "tried to end the process: SystemExit(3)" in str(ended.trace.error)
    text = await one(shows_text, acting("go"))
    assert "what is shown is an Observation(...)" in str(text.trace.error)
    declared = await one(undeclared, acting("go"))
    assert "say how many it takes: @env.template(max_steps=20)" in str(declared.trace.error)


async def test_what_an_agent_began_goes_on_when_its_time_is_over() -> None:
    env, cut_off = Environment(), asyncio.Event()

    @env.template(max_steps=3)
    async def slow() -> Steps:
        yield "Go."
        await cut_off.wait()
        yield Observation("late")
        yield 1.0

    async def agent(run: Run) -> None:
        try:
            await run.step("a")
        finally:
            cut_off.set()

    run = await one(slow, agent, agent_timeout=0.05)
    assert (run.reward, run.trace.stop_reason) == (0.0, "timeout")
    assert "ended after 1 action" in str(run.grade.content)


async def test_all_of_a_template_runs_in_one_task_and_is_closed_there() -> None:
    env = Environment()
    tasks: list[object] = []
    began = asyncio.Event()

    @env.template(max_steps=3)
    async def held() -> Steps:
        tasks.append(asyncio.current_task())
        try:
            async with asyncio.timeout(60), asyncio.TaskGroup():
                yield "Go."
                tasks.append(asyncio.current_task())
                yield Observation("on")
        finally:
            tasks.append(asyncio.current_task())
        yield 1.0

    async def agent(run: Run) -> None:
        await run.step("a")
        began.set()
        await asyncio.Event().wait()

    assert (await one(held, acting("a", "b"))).reward == 1.0
    rollout = asyncio.create_task(one(held, agent))
    await began.wait()
    rollout.cancel()
    with pytest.raises(asyncio.CancelledError):
        await rollout
    assert len(tasks) == 6
    assert len(set(tasks[:3])) == len(set(tasks[3:])) == 1


@each("times", [1, 9])
async def test_a_task_group_that_is_closed_hides_no_grade_and_no_error(times: int) -> None:
    env = Environment()

    @env.template(max_steps=2)
    async def stubborn() -> Steps:
        yield "Go."
        async with asyncio.TaskGroup():
            while True:
                try:
                    yield Observation("on")
                except AgentEndedError:
                    continue

    run = await one(stubborn, acting(*["a"] * times))
    assert run.reward == (0.0 if times == 1 else None)
    assert times == 1 or "no more actions after 2 actions" in str(run.trace.error)


async def test_a_step_that_is_cancelled_with_its_session_ends_the_generator() -> None:
    env, ended = Environment(), list[str]()
    began = asyncio.Event()

    @env.template(max_steps=3)
    async def hangs() -> Steps:
        yield "Go."
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            ended.append("closed")
        yield 1.0

    rollout = asyncio.create_task(one(hangs, acting("a")))
    await began.wait()
    rollout.cancel()
    with pytest.raises(asyncio.CancelledError):
        await rollout
    assert ended == ["closed"]
    timed_out = await one(hangs, acting("a"), agent_timeout=0.02, grading_timeout=0.02)
    assert timed_out.reward is None
    assert "grading took longer" in str(timed_out.trace.error)
    assert ended == ["closed", "closed"]


async def test_nobody_acts_once_the_task_is_graded_or_closed() -> None:
    async with cast("Any", guessing()().work).open() as session:
        assert (await session.step("3")).content == "more"
        first = await session.grade(Submission(answer="7"))
        assert await session.grade(Submission(answer="8")) == first
        assert first.reward == 0.9
    async with cast("Any", guessing()().work).open() as session:
        await session.step("3")
        assert (await session.grade(Submission())).reward == 0.0
        with pytest.raises(TaskEndedError, match="no more actions after 1 action"):
            await session.step("7")
        assert (await session.grade(Submission())).reward == 0.0
    for late in (session.step("7"), session.grade(Submission())):
        with pytest.raises(TaskEndedError, match="the session is closed"):
            await late


def test_what_is_declared_is_checked_and_told() -> None:
    assert guessing().manifest()["max_steps"] == 4
    for wrong in (0, -1, True, 2.0):
        with pytest.raises(InputError, match="max_steps must be at least 1"):
            guessing(max_steps=cast("Any", wrong))
    with pytest.raises(ScoreError, match="the reward of an observation"):
        Observation("x", reward=float("nan"))


# ---- a model that plays ------------------------------------------------------------------------


async def test_a_model_plays_and_is_shown_what_it_did() -> None:
    with playing("3", "9", "7") as fake:
        run = await one(guessing(), ModelAgent(), model=fake.model)
    assert (run.reward, run.trace.stop_reason, run.trace.content) == (0.8, "done", "7")
    asked = fake.conversations[-1]
    assert [(turn.speaker, turn.text) for turn in asked.turns][-5:] == [
        ("user", "Guess."),
        ("assistant", "3"),
        ("user", "more"),
        ("assistant", "9"),
        ("user", "less"),
    ]
    assert "is your next action" in asked.system
    kinds = [step.TAG for step in run.trace.work]
    assert kinds == ["step", "agent", "action", "agent", "action", "agent", "action"]


async def test_a_model_that_has_no_more_replies_has_ended() -> None:
    with playing("3", "3") as fake:
        run = await one(guessing(), ModelAgent(steps=2), model=fake.model)
    assert (run.reward, run.trace.stop_reason) == (0.0, "max_steps")
    assert "ended after 2 actions" in str(run.grade.content)


async def test_what_a_model_says_between_its_actions_is_no_action() -> None:
    env, got = Environment(), list[object]()

    @env.tool
    def look() -> str:
        return "nothing"

    @env.template(max_steps=5)
    async def listens() -> Steps:
        got.append((yield "Go."))
        try:
            while True:
                got.append((yield Observation("on")))
        except AgentEndedError:
            yield 0.5

    with playing("north", says("Let me look.", calls("look"))) as fake:
        run = await one(listens, ModelAgent(steps=2), model=fake.model)
    assert (run.reward, got, run.trace.content) == (0.5, ["north"], "north")


async def test_typed_actions_are_submitted_one_after_the_other() -> None:
    env, got = Environment(), list[object]()

    @env.template(returns=int, max_steps=4)
    async def adds() -> Steps:
        said: Answer[int] = yield "1?"
        got.append(said.content)
        said = yield Observation()
        said = yield Observation([{"type": "text", "text": "2?"}])
        got.append(said.content)
        yield 1.0

    with playing(*(calls("submit", answer=number) for number in (1, 9, 2))) as fake:
        run = await one(adds, ModelAgent(), model=fake.model)
    assert (run.reward, got) == (1.0, [1, 2])
    assert fake.conversations[-1].turns[-1].text == "2?"


def test_others_read_actions_as_turns() -> None:
    trace = Trace(content="b")
    trace.record(ActionStep(action="a", observation="one"))
    trace.record(AgentStep(content="I do b", usage=None))
    trace.record(ActionStep(action="b", observation="two", done=True))
    told = Told(id="x", run="r", trace=trace, prompt="Go.")
    assert as_chat(told)["messages"] == [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "I do b"},
        {"role": "user", "content": "two"},
    ]
    steps = cast("list[dict[str, Any]]", as_atif(told)["steps"])
    assert [(step["source"], step["message"]) for step in steps] == [
        ("user", "Go."),
        ("agent", "a"),
        ("user", "one"),
        ("agent", "I do b"),
        ("user", "two"),
    ]
    assert '"one' in str(as_otel(told))


async def test_actions_stay_in_the_trace_of_what_passed_a_gateway() -> None:
    """Those of the task, that is: a transcript may tell of any."""
    import openai

    async def agent(run: Run) -> None:
        assert run.gateway is not None
        run.record(ActionStep(action="forged", observation="you won", reward=9.0, done=True))
        url, token = run.gateway.openai_url, run.gateway.token
        async with openai.AsyncOpenAI(base_url=url, api_key=token) as client:
            seen = Observation("Guess.")
            while not seen.done:
                reply = await client.chat.completions.create(
                    model="any", messages=[{"role": "user", "content": str(seen.content)}]
                )
                seen = await run.step(reply.choices[0].message.content or "")

    with playing("3", "7") as fake:
        run = await one(guessing(), agent, model=fake.model)
    assert run.reward == 0.9
    kinds = [step.TAG for step in run.trace.work if step.TAG != "step"]
    assert kinds.count("action") == kinds.count("agent") + kinds.count("subagent") == 2
