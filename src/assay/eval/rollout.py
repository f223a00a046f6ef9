"""One rollout: begin the task, let the agent work, grade what it left.

A failure becomes a run, never an exception:

* The task cannot begin: a synthesized failed run, without a prompt.
* The task does not apply here (`SkippedError`, before the agent starts): a run without a reward.
* The agent raises: the real run with its partial trace, and no reward. Nobody knows what the work
  would have been worth, so it is not a 0.
* The agent is out of time: that is its own doing, so what it left is graded.
* Grading raises or is out of time: the real run, and no reward.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Protocol, cast

from assay.errors import (
    AgentError,
    AgentTimeoutError,
    GradingTimeoutError,
    SkippedError,
    reason_of,
    traceback_of,
)
from assay.eval.task_actions import Moves
from assay.frozen import frozen
from assay.graders.driver import OutOfTimeError, within
from assay.graders.usage import USAGE, totals_of
from assay.scoring.graded import Grade
from assay.scoring.json_safe import Json, plain
from assay.scoring.results import EvaluationResult
from assay.tasks.task import Agent, RunOptions, Session, Task
from assay.types.run import Run
from assay.types.submission import Submission
from assay.types.thread import StringThread
from assay.types.trace import PROMPT, ActionStep, Step, TaskCall, Trace

if TYPE_CHECKING:
    from assay.gateway import Gateway
    from assay.gateway.journal import Entry
    from assay.store.records import CellRecord

ANSWERED = "answered"
"""Note of a session whose agent's answer can be graded again; it reaches the run with the rest."""

MOVES = "moves"
"""Where a run has what its agent did in the task, to be done again."""

_SHAPES = (
    ("trace", Trace, "a Trace"),
    ("trace.content", str | None, "text"),
    ("trace.steps", list, "a list of steps"),
    ("trace.extra", dict, "a mapping"),
    ("prompt", (str, list, type(None)), "text or a list of messages"),
    ("metadata", dict, "a mapping"),
    ("tokens", int | None, "a whole number"),
    ("cost_usd", int | float | None, "a finite number"),
)
"""What an agent may write of its run, and what readers of a run find there."""


@frozen(kw_only=True)
class Cell:
    """One run to be made.

    Attributes:
        task: What to do.
        agent: Who does it.
        session: Begins the task.
        options: Its limits.
        verifier: Begins the task's verifier, if it has one.
        gateway: Makes the way to its model, for agents that have one.
        harness: The agent's name.
        model: The model it is asked to use.
        trial: 1-based repeat.
        job_id: The launch.
        group_id: Shared by the repeats of one task.
        is_live: Whether an agent works; else what one did before is graded again.
    """

    task: Task
    agent: Agent
    session: AbstractAsyncContextManager[Session]
    options: RunOptions
    verifier: AbstractAsyncContextManager[Session] | None = None
    gateway: Callable[[], Gateway] | None = None
    harness: str = ""
    model: str = ""
    trial: int = 1
    job_id: str | None = None
    group_id: str | None = None
    is_live: bool = True


class Live(Protocol):
    """Whoever is told of one rollout while it goes on; nothing that they do may fail."""

    def passed(self, entry: Entry) -> None:
        """Something passed the agent's gateway."""
        ...

    def worked(self) -> None:
        """The agent's work is over, and its trace is whole."""
        ...


class Watch(Protocol):
    """Whoever is told of all rollouts."""

    def begin(self, run: Run, cell: Cell) -> Live:
        """An agent is about to begin."""
        ...

    def end(self, run: Run, cell: CellRecord) -> None:
        """It is graded."""
        ...


WATCH: ContextVar[Watch | None] = ContextVar("assay_watch", default=None)
"""Who watches the rollouts that are begun here."""


async def rollout(cell: Cell) -> Run:
    """Make one run. Raises nothing but cancellation."""
    started = time.monotonic()
    progress = _Progress()
    limit = cell.options.rollout_timeout
    try:
        run = await within(_work(cell, progress), limit)
    except OutOfTimeError:
        run = progress.failed(f"the rollout took longer than {limit:g} s", cell)
        run.trace.stop_reason = "timeout"
    except (Exception, BaseExceptionGroup) as error:
        if isinstance(error, SkippedError) and progress.phase == STARTING:
            result = EvaluationResult(reward=None, content=str(error))
            return _identify(Run(grade=Grade.from_result(result)), cell)
        run = progress.failed(f"[{progress.phase}] {reason_of(error)}", cell, traceback_of(error))
    run.seconds = time.monotonic() - started
    return _identify(run, cell)


STARTING = "starting task"


class _Progress:
    """How far a rollout has come, so that a failure is put down to its phase."""

    def __init__(self) -> None:
        self.phase = STARTING
        self.run: Run | None = None

    def failed(self, reason: str, cell: Cell, trace: str = "") -> Run:
        if self.run is None:
            return Run.failed(reason, slug=cell.task.slug, task_id=cell.task.id, traceback=trace)
        _mend(self.run)
        _frame(self.run, cell)
        self.run.record(Step.of_error(reason, trace))
        self.run.trace.status = "error"
        self.run.grade = Grade.ungraded(reason)
        return self.run


async def _work(cell: Cell, progress: _Progress) -> Run:
    async with cell.session as session:
        runtime = str(getattr(cell.task.work, "runtime", "local"))
        run = progress.run = _identify(
            Run(prompt=session.prompt, workspace=session.workspace, runtime=runtime), cell
        )
        run.trace_id = run.trace.trace_id = secrets.token_hex(16)
        watch = WATCH.get()
        live = None if watch is None or not cell.is_live else watch.begin(run, cell)
        progress.phase = "agent"
        moves = Moves()
        run.stepping, run.tools = moves.stepping(session), moves.tools(session)
        try:
            if cell.gateway is None:
                await _let_agent_work(cell, run)
            else:
                from assay.eval.witness import witnessed

                gateway = cell.gateway()
                if live is not None:
                    gateway.listen(live.passed)
                async with witnessed(run, gateway):
                    await _let_agent_work(cell, run)
        finally:
            run.stepping, run.tools = None, {}
            if live is not None:
                live.worked()
        progress.phase = "grading"
        _tell_usage(run)
        talk = run.trace.conversation(run.prompt_text)
        submission = Submission(
            answer=run.trace.content,
            question=run.prompt_text,
            workspace=session.workspace,
            trace=run.trace,
            thread=StringThread(talk) if talk else None,
        )
        limit = cell.options.grading_timeout
        try:
            result = await within(_graded(cell, session, submission), limit)
        except OutOfTimeError:
            raise GradingTimeoutError(
                f"grading took longer than {limit:g} s",
                hint="limits.grading_timeout_s of a case gives it more, or grading_timeout",
            ) from None
        finally:
            run.metadata.update(session.notes)
            if moves.made and ANSWERED in session.notes:
                run.metadata[MOVES] = moves.made
        result = _with_flags(result, run, cell, is_talk=bool(talk))
        run.grade = Grade.from_result(result)
        _frame(run, cell)
        call = TaskCall(phase="evaluate", name=cell.task.id, result=_outcome(run.grade))
        run.record(Step(source="task", task_call=call))
        return run


def _with_flags(
    result: EvaluationResult, run: Run, cell: Cell, *, is_talk: bool
) -> EvaluationResult:
    """A result with what was odd about the work; its score stays as it is."""
    flags: list[Json] = []
    # Work that is graded again is the same work: what was odd about it stays odd.
    if cell.gateway is not None or run.metadata.get("regraded") is True:
        from assay.eval.witness import gateway_flags

        flags += gateway_flags(run.trace)
    if is_talk:
        from assay.eval.user_audit import user_flags

        flags += user_flags(cell.task, run.trace)
    if flags:
        before = result.info.get("flags")
        flags = [*(before if isinstance(before, list) else []), *flags]
        result = replace(result, info={**result.info, "flags": flags})
    return result


async def _graded(cell: Cell, session: Session, submission: Submission) -> EvaluationResult:
    """The task's own grade, or that of its verifier."""
    result = await session.grade(submission)
    if cell.verifier is None or result.reward is None:
        return result
    frame = Grade.from_result(result).to_dict()
    told = json.dumps(plain({**frame, "answer": submission.answer}), ensure_ascii=False)
    # Half a character of an answer must not keep the verifier from reading the frame.
    told = told.encode("utf-8", "replace").decode()
    async with cell.verifier as verifier:
        verified = await verifier.grade(
            Submission(answer=told, question=submission.question, trace=submission.trace)
        )
    own = {key: frame[key] for key in ("score", "content", "done") if key in frame}
    return replace(verified, info={**verified.info, "verified": own})


def _begun(work: object) -> Awaitable[object]:
    """An agent's work, which an agent that is a plain function does not give."""
    if isinstance(work, Awaitable):
        return cast("Awaitable[object]", work)
    raise AgentError(
        f"an agent is awaited, and this one returned {type(work).__name__}",
        hint="write it as `async def`",
    )


async def _let_agent_work(cell: Cell, run: Run) -> None:
    limit = cell.options.agent_timeout
    try:
        said = await within(_begun(cell.agent(run)), limit)
        _require_shape(run)
        _take_answer(run, said)
    except (OutOfTimeError, AgentTimeoutError) as error:
        _require_shape(run)
        reason = str(error) or f"the agent worked longer than {limit} s"
        run.record(Step(source="system", error=reason))
        run.trace.status, run.trace.stop_reason = "error", "timeout"
    except asyncio.CancelledError:
        _mend(run)
        run.trace.status = "cancelled"
        raise
    else:
        run.trace.status = run.trace.status or "completed"


def _take_answer(run: Run, said: object) -> None:
    """An agent may also just return its answer."""
    if isinstance(said, str) and run.trace.content in (None, _newest_action(run)):
        run.trace.content = str.__str__(said)
    elif said is not None and run.trace.content is None:
        raise AgentError(
            f"an agent returns its answer as text, and this one returned {type(said).__name__}",
            hint="return str(...), or json.dumps(...) where the task wants JSON; or nothing",
        )


def _newest_action(run: Run) -> str | None:
    actions = (step.action for step in reversed(run.answered) if isinstance(step, ActionStep))
    return next(actions, None)


def _frame(run: Run, cell: Cell) -> None:
    """Put the task's set-up and its prompt before the agent's steps: a trace is training data.

    After the grading, so that graders see what the agent did and nothing else.
    """
    setup = TaskCall(phase="setup", name=cell.task.id, arguments=cell.task.args)
    messages = tuple[Json, ...](
        {"role": message.role, "content": message.content} for message in run.prompt_messages
    )
    prompt = Step(source="user", messages=messages, extra={PROMPT: True})
    steps = enumerate((Step(source="task", task_call=setup), prompt, *run.trace.work), 1)
    run.trace.steps = [replace(step, step_id=number) for number, step in steps]


def _outcome(grade: Grade) -> Json:
    """The whole grade, without the evidence that stands beside it in the run."""
    parts: list[Json] = [
        {"name": node.name, "status": node.status, "value": node.value, "weight": node.weight}
        for node in grade.subscores
    ]
    return {
        "score": grade.reward,
        "done": grade.done,
        "isError": grade.is_error,
        "content": grade.content,
        "subscores": parts,
    }


def _tell_usage(run: Run) -> None:
    """Let the graders of the trace know what the agent says that it used."""
    if USAGE in run.trace.extra:
        return
    if run.tokens is not None or run.cost_usd is not None:
        seen = totals_of(run.trace)
        tokens = seen.tokens if run.tokens is None else run.tokens
        cost = seen.cost_usd if run.cost_usd is None else run.cost_usd
        totals = replace(seen, tokens=tokens, cost_usd=cost)
        run.trace.extra[USAGE] = totals.to_dict()


def _require_shape(run: Run) -> None:
    """Refuse what an agent left of its run in no shape to be graded or kept.

    Raises:
        AgentError: With its name.
    """
    if wrong := _mend(run):
        raise AgentError(wrong[0], hint="str(...) it" if "must be text," in wrong[0] else "")


def _mend(run: Run) -> list[str]:
    """Give a run the shape again that its agent took from it; and say what had another."""
    wrong: list[str] = []
    fresh = Run(trace=Trace(trace_id=run.trace_id))
    for path, kind, words in _SHAPES:
        owner, _, name = path.rpartition(".")
        held, usual = (run.trace, fresh.trace) if owner else (run, fresh)
        value: object = getattr(held, name, ...)
        if not isinstance(value, kind) or (isinstance(value, float) and not isfinite(value)):
            wrong.append(f"run.{path} must be {words}, got {type(value).__name__}")
            setattr(held, name, getattr(usual, name))
    steps = run.trace.steps
    if others := [type(step).__name__ for step in steps if not _is_step(step)]:
        wrong.append(f"run.trace.steps must be steps, got {others[0]} among them")
        run.trace.steps = [step for step in steps if _is_step(step)]
    if run.trace.content is not None:  # a subclass of text could call itself equal to anything
        run.trace.content = str.__str__(run.trace.content)
    return wrong


def _is_step(value: object) -> bool:
    return isinstance(value, Step) and isinstance(cast("object", value.error), str | None)


def _identify(run: Run, cell: Cell) -> Run:
    run.task_id, run.slug = cell.task.id, cell.task.slug
    run.harness, run.model, run.trial = cell.harness, cell.model or run.model, cell.trial
    run.job_id, run.group_id = cell.job_id, cell.group_id
    return run
