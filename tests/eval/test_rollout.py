"""What becomes of a rollout that fails: always a run, never an exception, never a silent 0."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from assay.errors import AgentError, AgentTimeoutError, GraderError, InputError
from assay.eval import run_tasks
from assay.graders.usage import USAGE
from assay.scoring import EvaluationResult, Json, SubScore
from assay.tasks import RunOptions, Session, Task
from assay.types import (
    AgentStep,
    Job,
    Run,
    Step,
    Submission,
    TaskCall,
    ToolCall,
    ToolStep,
    Trace,
    Workspace,
)
from assay.types.thread import StringThread
from assay.types.trace import TOLD_BY
from tests.each import each

SOON = 0.05
"""Seconds after which a limit of these tests strikes; what it strikes waits for ever."""


async def for_ever() -> None:
    await asyncio.Event().wait()


class Scripted:
    """A piece of work that begins, grades and ends as a test wants."""

    def __init__(self, reward: object = 1.0, *, begin: object = None, end: object = None) -> None:
        self.prompt = "do it"
        self.workspace: Workspace | None = None
        self.notes: dict[str, Json] = {"kept": "always"}
        self.graded: list[Submission] = []
        self._reward, self._begin, self._end = reward, begin, end

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Session]:
        await _act(self._begin)
        yield self
        await _act(self._end)

    async def grade(self, submission: Submission) -> EvaluationResult:
        self.graded.append(submission)
        reward = await _act(self._reward)
        return reward if isinstance(reward, EvaluationResult) else EvaluationResult(reward=reward)


async def _act(what: object) -> Any:
    if isinstance(what, BaseException):
        raise what
    return await cast("Callable[[], Awaitable[object]]", what)() if callable(what) else what


async def works(run: Run) -> None:
    run.record(AgentStep(content="thinking"))
    run.trace.content = "done"


async def hangs(run: Run) -> None:
    run.trace.content = "so far"
    await for_ever()


def raising(error: BaseException) -> Any:
    async def agent(run: Run) -> None:
        run.record(AgentStep(content="thinking"))
        run.trace.content = "half"
        raise error

    return agent


async def roll(work: Scripted, agent: Any = works, **options: Any) -> Run:
    task = Task(id="t", work=work, slug="t-1")
    (run,) = await task.run(agent, **options)
    json.dumps(run.to_dict(), allow_nan=False)
    assert (run.task_id, run.slug, run.trial) == ("t", "t-1", 1)
    return run


def test_attack_work_that_is_marked_as_the_runner_s_stays_work() -> None:
    call = ToolCall(name="rm")
    marked = ToolStep(call=call, task_call=TaskCall(phase="setup"), extra={"prompt": True})
    assert Trace(steps=[marked]).work == [marked]


async def test_a_good_rollout() -> None:
    part = SubScore("part", 0.5)
    work = Scripted(EvaluationResult(reward=0.5, subscores=[part], done=False))
    run = await roll(work)
    assert (run.reward, run.grade.is_error) == (0.5, False)
    assert (run.prompt, run.runtime, run.harness) == ("do it", "local", "works")
    assert (run.trace.status, run.trace.stop_reason, run.trace.error) == ("completed", None, None)
    assert run.trace_id == run.trace.trace_id is not None
    assert run.seconds >= 0
    assert run.metadata == {"kept": "always"}
    assert isinstance(run.trace.work[0], AgentStep)
    assert [step.step_id for step in run.trace.steps] == [*range(1, len(run.trace) + 1)]
    setup, shown = run.trace.steps[0].task_call, run.trace.steps[1]
    assert setup is not None
    assert (setup.phase, setup.name) == ("setup", "t")
    assert (shown.source, shown.messages) == ("user", ({"role": "user", "content": "do it"},))
    call = run.trace.steps[-1].task_call
    assert call is not None
    assert (call.phase, call.name) == ("evaluate", "t")
    whole = cast("dict[str, Json]", call.result)
    assert (whole["score"], whole["done"], whole["isError"]) == (0.5, False, False)
    assert whole["subscores"] == [{"name": "part", "status": "scored", "value": 0.5, "weight": 1.0}]
    (submission,) = work.graded
    assert (submission.answer, submission.question) == ("done", "do it")
    assert (submission.trace, submission.thread) == (run.trace, None)
    cast("Any", silent := Scripted()).prompt = None
    run = await roll(silent)
    assert (run.prompt, run.runtime, run.reward) == (None, "local", 1.0), "it has begun"


async def test_graders_are_given_what_was_said_with_a_user_and_told_what_was_used() -> None:
    async def talks(run: Run) -> None:
        run.trace.status, run.trace.stop_reason = "completed", "max_steps"
        run.record(AgentStep(content="Which size?"))
        said: Json = {"role": "user", "content": "57"}
        run.record(Step(source="user", messages=(said,), extra={TOLD_BY: "user"}))
        run.tokens, run.cost_usd = 70, 0.25

    run = await roll(work := Scripted(), talks)
    (submission,) = work.graded
    assert submission.thread is not None
    said = [("user", "do it"), ("assistant", "Which size?"), ("user", "57")]
    assert submission.thread.turns == StringThread(said).turns
    used = cast("dict[str, Json]", run.trace.extra[USAGE])
    assert (used["tokens"], used["cost_usd"]) == (70, 0.25)
    assert run.trace.stop_reason == "max_steps", "what it says itself stays"


@each("error", [OSError("no image"), GraderError("no image"), TimeoutError("no")])
async def test_what_fails_before_it_is_live_is_a_synthesized_run(error: Exception) -> None:
    run = await roll(Scripted(begin=error))
    assert (run.prompt, run.runtime, run.reward, run.grade.is_error) == (None, None, None, True)
    assert (run.trace.status, len(run.trace)) == ("error", 1)
    assert str(run.trace.error).startswith("[starting task] ")
    assert str(error) in str(run.trace.error)
    assert run.grade.content == run.trace.error


@each(
    "error", [AgentError("no key"), KeyError("x"), TimeoutError("model is slow"), SystemError("x")]
)
async def test_an_agent_that_fails_keeps_its_run_and_is_not_graded(error: Exception) -> None:
    work = Scripted(1.0)
    run = await roll(work, raising(error), agent_timeout=60, rollout_timeout=60)
    assert work.graded == []
    assert (run.prompt, run.runtime) == ("do it", "local")
    assert (run.reward, run.grade.is_error) == (None, True)
    assert (run.trace.status, run.trace.stop_reason) == ("error", None)
    assert run.trace.content == "half"
    assert isinstance(run.trace.work[0], AgentStep)
    assert str(run.trace.error).startswith("[agent] ")
    last = run.trace.steps[-1]
    assert (last.source, last.error) == ("system", run.trace.error)
    assert cast("Any", run.to_dict())["trace"]["steps"][-1]["error"] == last.error


async def test_an_agent_that_is_no_async_function_is_told() -> None:
    def agent(_: Run) -> int:
        return 5

    run = await roll(Scripted(1.0), agent)
    assert str(run.trace.error) == (
        "[agent] an agent is awaited, and this one returned int (write it as `async def`)"
    )


@each("limits", [{}, {"agent_timeout": 60}, {"rollout_timeout": 60}])
@each("where", ["agent", "grading", "starting task"])
async def test_a_time_out_of_the_code_itself_is_not_taken_for_ours(
    where: str, limits: dict[str, Any]
) -> None:
    slow = TimeoutError("backend said 504")
    work = Scripted(
        slow if where == "grading" else 1.0, begin=slow if where == "starting task" else None
    )
    run = await roll(work, raising(slow) if where == "agent" else works, **limits)
    assert (run.trace.error or "").startswith(f"[{where}] TimeoutError: backend said 504 (")
    assert "backend said 504" in str(run.trace.steps[-1].extra["traceback"])
    assert run.trace.stop_reason is None


async def test_an_agent_out_of_time_is_graded_and_marked_also_where_it_says_so_itself() -> None:
    work = Scripted(0.25)
    run = await roll(work, hangs, agent_timeout=SOON)
    assert (run.reward, run.grade.is_error) == (0.25, False)
    assert (run.trace.status, run.trace.stop_reason) == ("error", "timeout")
    assert run.trace.error == "the agent worked longer than 0.05 s"
    assert run.trace.is_truncated
    assert work.graded[0].answer == "so far"
    for message in ("replay took longer than 3 s", ""):
        run = await roll(work, raising(AgentTimeoutError(message)))
        assert (run.reward, run.trace.stop_reason) == (0.25, "timeout")
        assert message in str(run.trace.error)


@each("phase", ["agent", "grading", "starting task"])
async def test_a_rollout_or_its_grading_out_of_time_is_an_error_whatever_it_was_at(
    phase: str,
) -> None:
    work = Scripted(
        for_ever if phase == "grading" else 1.0,
        begin=for_ever if phase == "starting task" else None,
    )
    run = await roll(work, hangs if phase == "agent" else works, rollout_timeout=SOON)
    assert (run.reward, run.grade.is_error) == (None, True)
    assert (run.trace.status, run.trace.stop_reason) == ("error", "timeout")
    assert run.trace.error == "the rollout took longer than 0.05 s"
    assert (run.prompt is None) == (phase == "starting task")
    if phase == "grading":
        run = await roll(work, grading_timeout=SOON)
        assert (run.reward, run.grade.is_error) == (None, True)
        assert str(run.trace.error).startswith("[grading] grading took longer than 0.05 s (limits.")
        assert (run.trace.content, run.metadata) == ("done", {"kept": "always"})


@each(
    ("work", "error", "status"),
    [
        (Scripted(GraderError("judge is gone")), "[grading] judge is gone", "error"),
        (Scripted(ZeroDivisionError("x")), "[grading] ZeroDivisionError: x", "error"),
        (Scripted(EvaluationResult.from_error("judge is gone")), "judge is gone", "completed"),
        (Scripted(1.0, end=OSError("busy")), "", "error"),
    ],
)
async def test_what_goes_wrong_after_the_work_leaves_no_reward(
    work: Scripted, error: str, status: str
) -> None:
    run = await roll(work)
    assert (run.reward, run.grade.is_error, run.trace.content) == (None, True, "done")
    assert run.trace.status == status
    assert str(run.grade.content).startswith(error)


def _sets(path: str, value: object) -> Any:
    """An agent that says what counts, and leaves something else in its run."""

    async def agent(run: Run) -> str:
        owner, _, name = path.rpartition(".")
        setattr(run.trace if owner else run, name, value)
        return "done"

    return agent


@each(
    ("path", "value", "said"),
    [
        ("trace", "x", "run.trace must be a Trace, got str"),
        ("trace.content", 5, "run.trace.content must be text, got int"),
        ("trace.steps", None, "run.trace.steps must be a list of steps, got NoneType"),
        ("trace.steps", [{"x": 1}], "run.trace.steps must be steps, got dict among them"),
        ("trace.steps", [Step(error=cast("str", 5))], "run.trace.steps must be steps"),
        ("prompt", 5, "run.prompt must be text or a list of messages, got int"),
        ("metadata", None, "run.metadata must be a mapping, got NoneType"),
        ("tokens", "5", "run.tokens must be a whole number, got str"),
        ("cost_usd", math.nan, "run.cost_usd must be a finite number, got float"),
    ],
)
@each("ends", ["well", "badly"])
async def test_what_an_agent_leaves_of_another_type_is_an_error_of_its_run(
    path: str, value: object, said: str, ends: str
) -> None:
    """It raised out of the run where the cell was kept, and again at every resume."""
    work, leaves = Scripted(1.0), _sets(path, value)

    async def breaks(run: Run) -> None:
        await leaves(run)
        raise AgentTimeoutError("too slow")

    run = await roll(work, breaks if ends == "badly" else leaves)
    assert (run.reward, run.grade.is_error, work.graded) == (None, True, [])
    assert str(run.trace.error).startswith(f"[agent] {said}")
    assert run.trace.trace_id == run.trace_id is not None


@each("said", [0, ["5"], b"5"])
async def test_what_an_agent_returns_that_is_no_text_is_an_error_and_no_empty_answer(
    said: object,
) -> None:
    """It was dropped, and the answer that was none got a 0."""

    async def returns(run: Run) -> object:
        run.trace.content = given
        return said

    given = None
    work = Scripted(0.0)
    run = await roll(work, returns)
    assert (run.reward, run.grade.is_error, work.graded) == (None, True, [])
    assert f"this one returned {type(said).__name__} (return str(...), or " in str(run.trace.error)
    given = "done"  # beside an answer, what it returns is its own
    assert (await roll(work, returns)).reward == 0.0
    assert work.graded[0].answer == "done"


async def test_what_an_agent_leaves_is_kept_also_where_it_raises(tmp_path: Path) -> None:
    leaves = _sets("trace.content", 5)

    async def raises(run: Run) -> None:
        await leaves(run)
        raise KeyError("x")

    task = Task(id="t", work=Scripted(1.0), slug="t-1")
    job = await task.run(raises, store=tmp_path, group=2)
    assert [str(run.trace.error).startswith("[agent] KeyError") for run in job] == [True, True]


# --- many at once ---------------------------------------------------------------------------------


def tasks(count: int) -> list[Task]:
    return [Task(id="t", work=Scripted(), slug=f"t-{n}") for n in range(count)]


async def test_runs_come_back_in_planned_order_share_their_groups_and_go_on() -> None:
    first_is_last = asyncio.Event()

    async def backwards(run: Run) -> None:
        if run.slug == "t-0" and run.trial == 1:
            await first_is_last.wait()
        if run.slug == "t-2" and run.trial == 2:
            first_is_last.set()

    job = await run_tasks(tasks(3), backwards, RunOptions(group=2, max_concurrent=6))
    assert [(run.slug, run.trial) for run in job] == [
        (f"t-{n}", t) for n in range(3) for t in (1, 2)
    ]
    groups = [run.group_id for run in job]
    assert groups[0] == groups[1]
    assert len(set(groups)) == 3
    assert [len(runs) for runs in job.groups.values()] == [2, 2, 2]
    assert {run.job_id for run in job} == {job.id}
    assert len({run.trace_id for run in job}) == 6
    assert job.group == 2
    before = list(job.runs)
    again = await run_tasks(tasks(1), works, RunOptions(), job)
    assert (again, again.runs[:6], len(again)) == (job, before, 7)
    with pytest.raises(InputError, match=r"async callable agent\(run\), got str"):
        await run_tasks(tasks(1), cast("Any", "three"), RunOptions())


@each(("limit", "peak"), [(1, 1), (3, 3), (50, 6)])
async def test_no_more_than_asked_for_work_at_once(limit: int, peak: int) -> None:
    working, most = 0, 0

    async def counts(run: Run) -> None:
        nonlocal working, most
        working += 1
        most = max(most, working)
        for _ in range(10):
            await asyncio.sleep(0)
        working -= 1

    job = await run_tasks(tasks(6), counts, RunOptions(max_concurrent=limit))
    assert (most, job.coverage) == (peak, (6, 6))


async def test_what_is_done_outlives_the_cancelling_of_a_launch() -> None:
    job, all_stuck, cancelled = Job(), asyncio.Event(), list[Run]()

    async def half_hangs(run: Run) -> None:
        if run.slug in ("t-0", "t-2"):
            return
        if run.slug == "t-3":  # so t-2 is done: two are worked on at once
            all_stuck.set()
        try:
            await for_ever()
        finally:
            cancelled.append(run)

    options = RunOptions(max_concurrent=2)
    launch = asyncio.create_task(run_tasks(tasks(4), half_hangs, options, job))
    await all_stuck.wait()
    launch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await launch
    assert [(run.slug, run.reward) for run in job] == [("t-0", 1.0), ("t-2", 1.0)]
    assert sorted(run.slug for run in cancelled) == ["t-1", "t-3"]
    assert {run.trace.status for run in cancelled} == {"cancelled"}
