"""Which cells a run consists of: every task with the harnesses, models and trials asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import InputError, Location
from assay.eval.harnesses import (
    declared_harnesses,
    require_harnesses,
    require_recordings,
    require_turns,
    usable_harnesses,
)
from assay.eval.work import own_model
from assay.frozen import frozen
from assay.graders.apply import require_parts
from assay.graders.spec import own_seconds
from assay.scoring.results import SubScore
from assay.tasks.blocks import NO_MATRIX, HarnessSpec, Matrix
from assay.tasks.case import Case
from assay.tasks.task import Agent, RunOptions, Task
from assay.types.run import Run

if TYPE_CHECKING:
    from assay.store.records import CellKey, CellRecord

UNSAID = NO_MATRIX.models[0]
"""The model of a cell for which nobody has named one."""


@frozen(kw_only=True)
class MatrixRequest:
    """What to run; kept with the run, so that it can be resumed.

    Attributes:
        paths: Case files, directories of cases, Python files of environments, URLs where they are
            served, and rows for them.
        env: The Python file or URL that rows belong to.
        cases: Ids of cases, or of tasks, to run; all by default.
        harnesses: Harnesses to run instead of those that the cases list; one that is called
            ``file.py:name`` is an agent of a Python file.
        models: Models to run instead of those that the cases list.
        trials: Repeats, instead of what the cases say.
        label: The user's own name for the run.
    """

    paths: tuple[str, ...]
    env: str = ""
    cases: tuple[str, ...] = ()
    harnesses: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    trials: int | None = None
    label: str = ""

    def __post_init__(self) -> None:
        if self.trials is not None and self.trials < 1:
            raise InputError(f"trials must be at least 1, got {self.trials}")


@frozen
class Planned:
    """A cell that is to be done.

    Attributes:
        task: What is to be done.
        harness: What does it.
        model: The model it is asked to use.
        trial: 1-based repeat.
        asks: Whether the model is asked through the cell's gateway.
        agent: Who does it, where that is not what the harness is declared as.
        spec: How the harness is declared, where it is.
        version: Digest of what the task is now, and of what grades it; empty where nobody asks.
        again: Gives what an agent did before: that is graded again, and nobody works.
        keep: Scores that are taken over then.
    """

    task: Task
    harness: str
    model: str = ""
    trial: int = 1
    asks: bool = False
    agent: Agent | None = None
    spec: HarnessSpec | None = None
    version: str = ""
    again: Callable[[], Run] | None = None
    keep: Mapping[int, SubScore] = field(default_factory=dict[int, "SubScore"])

    @property
    def key(self) -> CellKey:
        """The cell's key in the store."""
        return (self.task.slug, self.harness, self.model, self.trial)

    def record(self, run: Run, run_id: str = "") -> CellRecord:
        """The narrow row of the cell's run."""
        from assay.eval.records import record_of

        conditions = self.task.conditions
        made = record_of(
            run,
            run_id=run_id,
            case=self.task.slug,
            expect=conditions.expect,
            version=self.version,
            file=conditions.file,
            metadata=self.task.metadata,
        )
        # An agent that says which model it asked is still the cell that it was begun as.
        return replace(made, model=self.model)


def plan_cells(
    tasks: Sequence[Task], request: MatrixRequest, agents: Mapping[str, Agent]
) -> tuple[list[Planned], dict[str, Mapping[str, HarnessSpec]]]:
    """Every cell, in order, and the harnesses that each task can use."""
    plan: list[Planned] = []
    found: dict[str, Mapping[str, HarnessSpec]] = {}
    for task in tasks:
        case, conditions = task.work, task.conditions
        if isinstance(case, Case):
            require_case_parts(case)
        cells = _cells(conditions.matrix, request)
        _require_trials(task, request.trials or conditions.matrix.trials)
        names = {harness for harness, _, _ in cells}
        declared = declared_harnesses(conditions)
        usable = found[task.slug] = usable_harnesses(task, names, declared)
        require_harnesses(task, names - agents.keys(), usable)
        if isinstance(case, Case):
            require_turns(case, names & agents.keys(), agents)
            played = dict.fromkeys(m for h, m, _ in cells if h == "replay" and m in request.models)
            require_recordings(case, usable, played)
        for harness, model, trial in cells:
            agent = agents.get(harness)
            asked, asks = _asked(model, harness, agent, usable.get(harness))
            if asked == UNSAID:
                raise _nobody_asked(task, harness, request)
            plan.append(Planned(task, harness, asked, trial, asks=asks, agent=agent))
    return plan, found


def _require_trials(task: Task, trials: int) -> None:
    """Refuse a pass rate of fewer trials than it is about."""
    conditions = task.conditions
    if trials >= (least := conditions.expect.least_trials):
        return
    names = " and ".join(conditions.expect.rates)
    raise InputError(
        f"case {task.slug!r} asks for {names} of {least} trials or more, and each agent has "
        f"{trials}",
        location=Location(file=conditions.file) if conditions.file else None,
        hint=f"give the case matrix.trials: {max(least, 10)}, or run it with "
        f"--trials {max(least, 10)}",
    )


def _asked(
    model: str, harness: str, agent: Agent | None, spec: HarnessSpec | None
) -> tuple[str, bool]:
    """The model of a cell, and whether it is asked through the cell's gateway."""
    if agent is not None:  # it asks a model that was named, or its own
        return (own_model(agent), False) if model == UNSAID else (model, True)
    if spec is None:
        asks, takes_one = harness == "agent", harness != "echo"
    else:
        words = (*spec.argv, *spec.resume)
        asks, takes_one = spec.gateway, spec.gateway or any("{model" in word for word in words)
    return ("" if model == UNSAID and not takes_one else model), asks


def _nobody_asked(task: Task, harness: str, request: MatrixRequest) -> InputError:
    """The error of a cell that nobody gave the model that it is to ask."""
    name, file = task.slug, task.conditions.file
    if isinstance(task.work, Case):
        said = f"case {name!r} has no matrix, so nothing says who does its work"
        other = "give the case a matrix"
    else:
        said = f"task {name!r}: nothing says who does its work"
        other = "an agent: --harness agent.py:NAME"
    if request.harnesses:
        said = f"case or task {name!r}: nothing says which model the harness {harness!r} asks"
    hint = f"name a model: --model anthropic:NAME; or {other}"
    if harness == "replay":
        from assay.agents.replay import recordings_of

        found = recordings_of(str(Path(task.conditions.root, "recordings")))
        hint = f"name a recording: --model {' or '.join(sorted(found)) or 'NAME'}"
    return InputError(said, location=Location(file=file) if file else None, hint=hint)


def _cells(matrix: Matrix, request: MatrixRequest) -> list[tuple[str, str, int]]:
    """Harness, model and trial of each cell of a case: each harness and model that is named is run.

    What the case lists of them is selected; what it does not list is added.
    """
    pairs = list(matrix.pairs())
    if request.harnesses:
        models = dict.fromkeys(model for _, model in pairs)
        listed = {harness for harness, _ in pairs}
        added = [(name, m) for name in request.harnesses if name not in listed for m in models]
        pairs = [pair for pair in pairs if pair[0] in request.harnesses] + added
    if request.models:
        harnesses = dict.fromkeys(harness for harness, _ in pairs)
        listed = {model for _, model in pairs}
        added = [(h, name) for h in harnesses for name in request.models if name not in listed]
        pairs = [pair for pair in pairs if pair[1] in request.models] + added
    trials = request.trials or matrix.trials
    # What is named twice on a command line is meant once: a cell is stored once, too.
    return [(h, m, trial) for h, m in dict.fromkeys(pairs) for trial in range(1, trials + 1)]


def require_case_parts(case: Case) -> None:
    """Refuse graders that need what the case does not have.

    Raises:
        InputError: Naming case, grader and part.
    """
    available = {"answer", "question", "workspace", "trace", "metadata"}
    if case.expected is not None:
        available.add("expected")
    try:
        require_parts(case.graders, available)
    except InputError as error:
        where = Location(file=case.file)
        raise InputError(error.message, location=where, hint=error.hint) from error
    if case.container is not None and case.environment is not None:
        both = case.environment.container is not None
        if both or case.environment.kind != "command":
            kind = "container" if both else f"kind {case.environment.kind}"
            raise InputError(
                f"case {case.id!r} has a container, and an environment with {kind} beside it",
                location=Location(file=case.file),
                hint="the image brings what is installed: container: {setup: [...]}",
            )


def options_of(task: Task) -> RunOptions:
    """How long a task's agent and graders may take.

    What the graders' commands may take by their own limits comes on top of ours: otherwise a
    submission that hangs every command would be our time-out, an error that leaves the mean, and
    not the 0 that it is.
    """
    limits = task.conditions.limits
    own = own_seconds(task.work.graders) if isinstance(task.work, Case) else 0.0
    return RunOptions(
        agent_timeout=limits.agent_timeout_s, grading_timeout=limits.grading_timeout_s + own
    )


def unused_parts(case: Case, cells: Iterable[Planned]) -> list[str]:
    """What a case says that none of its cells' harnesses acts on; for a note before the run."""
    listed = list(cells)
    is_agent = any(one.harness == "agent" for one in listed)
    specs = [one.spec for one in listed if one.spec is not None]
    asks = any(spec.acp for spec in specs)
    traces = is_agent or asks or any(spec.gateway or spec.trace for spec in specs)
    artifacts = replace(case.artifacts, mcp=None) if is_agent else case.artifacts
    observe = case.observe
    said = {
        # A command that does not go on was refused.
        "task.turns": bool(case.task.turns) and not (is_agent or specs),
        "task.user": case.task.user is not None and not is_agent,
        "artifacts": artifacts != type(case.artifacts)(),
        "observe.tracing": observe is not None and observe.tracing and not traces,
        "observe.interaction": observe is not None and bool(observe.interaction) and not asks,
    }
    return [name for name, there in said.items() if there]
