"""Which cells a run consists of: every task with the harnesses, models and trials asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from assay.errors import InputError, Location
from assay.eval.harnesses import (
    asks_through_gateway,
    declared_harnesses,
    require_harnesses,
    require_recordings,
    require_turns,
    usable_harnesses,
)
from assay.eval.work import own_model
from assay.frozen import frozen
from assay.graders.apply import require_parts
from assay.store.records import CellKey
from assay.tasks.blocks import NO_MATRIX, Conditions, HarnessSpec, Matrix
from assay.tasks.case import Case
from assay.tasks.task import Agent, Task

__all__ = [
    "Coordinate",
    "MatrixRequest",
    "plan_cells",
    "require_case_parts",
    "unused_parts",
]

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
class Coordinate:
    """One cell of the matrix.

    Attributes:
        task: What is to be done.
        harness: What does it.
        model: The model it is asked to use.
        trial: 1-based repeat.
        asks: Whether the model is asked through the cell's gateway.
    """

    task: Task
    harness: str
    model: str
    trial: int
    asks: bool = False

    @property
    def key(self) -> CellKey:
        """The cell's key in the store."""
        return (self.task.slug, self.harness, self.model, self.trial)

    @property
    def conditions(self) -> Conditions:
        """What holds for the work on the task."""
        return self.task.conditions


def plan_cells(
    tasks: Sequence[Task], request: MatrixRequest, agents: Mapping[str, Agent]
) -> tuple[list[Coordinate], dict[str, Mapping[str, HarnessSpec]]]:
    """Every cell, in order, and the harnesses that each task can use."""
    plan: list[Coordinate] = []
    found: dict[str, Mapping[str, HarnessSpec]] = {}
    for task in tasks:
        case, conditions = task.work, task.conditions
        if isinstance(case, Case):
            require_case_parts(case)
        cells = _cells(conditions.matrix, request)
        names = {harness for harness, _, _ in cells}
        declared = declared_harnesses(conditions)
        found[task.slug] = usable_harnesses(task, names, declared)
        require_harnesses(task, names - agents.keys(), found[task.slug])
        if isinstance(case, Case):
            require_turns(case, names & agents.keys(), agents)
            asked = dict.fromkeys(m for h, m, _ in cells if h == "replay" and m in request.models)
            require_recordings(case, found[task.slug], asked)
        for harness, model, trial in cells:
            coordinate = Coordinate(task, harness, model, trial)
            if harness in agents:
                coordinate = _of_agent(coordinate, agents[harness])
            else:
                asks = asks_through_gateway(harness, found[task.slug])
                coordinate = replace(coordinate, asks=asks)
                if _takes_no_model(harness, found[task.slug]) and model == UNSAID:
                    coordinate = replace(coordinate, model="")
            if coordinate.model == UNSAID:
                raise _nobody_asked(coordinate, request)
            plan.append(coordinate)
    return plan, found


def _of_agent(coordinate: Coordinate, agent: Agent) -> Coordinate:
    """The cell of a Python agent: with a model that was named, or with the agent's own."""
    if coordinate.model != UNSAID:
        return replace(coordinate, asks=True)
    return replace(coordinate, model=own_model(agent))


def _takes_no_model(harness: str, declared: Mapping[str, HarnessSpec]) -> bool:
    if harness not in declared:
        return harness == "echo"
    spec = declared[harness]
    return not spec.gateway and not any("{model" in word for word in (*spec.argv, *spec.resume))


def _nobody_asked(coordinate: Coordinate, request: MatrixRequest) -> InputError:
    """The error of a cell that nobody gave the model that it is to ask."""
    name, harness = coordinate.task.slug, coordinate.harness
    file = coordinate.conditions.file
    if isinstance(coordinate.task.work, Case):
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

        found = recordings_of(str(Path(coordinate.conditions.root, "recordings")))
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


def unused_parts(
    case: Case, harnesses: Collection[str], declared: Mapping[str, HarnessSpec]
) -> list[str]:
    """What a case says that none of its harnesses acts on; for a note before the run."""
    is_agent = "agent" in harnesses
    specs = [declared[name] for name in harnesses if name in declared]
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
