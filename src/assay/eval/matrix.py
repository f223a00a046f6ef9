"""A matrix run: every case with every harness, model and trial; resumable at any point."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import InputError, Location, nearest
from assay.eval.case_session import Keep, Kept, case_session, has_tests, kept_session
from assay.eval.harnesses import (
    FAKE,
    agent_for,
    asks_through_gateway,
    declared_harnesses,
    fake_models,
    gateway_for,
    harnesses_in_images,
    require_harnesses,
    require_model,
    usable_harnesses,
)
from assay.eval.journals import (
    forget_journal,
    forget_journals,
    journal_of,
    label_of,
    salvage,
)
from assay.eval.records import graded_by, record_of, start_run
from assay.eval.rollout import WATCH, Cell
from assay.eval.runner import run_cells
from assay.frozen import frozen
from assay.graders.apply import require_parts
from assay.scoring.json_safe import Json
from assay.store.kept import at_work
from assay.store.records import CellKey, CellRecord, RunRecord
from assay.store.runs import Store
from assay.tasks.blocks import NO_MATRIX, HarnessSpec
from assay.tasks.case import Case, load_cases
from assay.tasks.task import Agent, RunOptions, Session, case_task
from assay.types.codec import from_json, to_json
from assay.types.run import Run

if TYPE_CHECKING:
    from assay.eval.isolation import Settle

__all__ = [
    "Coordinate",
    "Launch",
    "MatrixRequest",
    "cases_of",
    "give_back",
    "kept_of",
    "launch",
    "options_of",
    "regraded_cell",
    "require_case_parts",
    "resume",
    "unused_parts",
]

OnCell = Callable[[CellRecord], None]


@frozen(kw_only=True)
class MatrixRequest:
    """What to run; kept with the run, so that it can be resumed.

    Attributes:
        paths: Case files, or directories of cases.
        cases: Ids to run; all by default.
        harnesses: Harnesses to run instead of those that the cases list.
        models: Models to run instead of those that the cases list.
        trials: Repeats, instead of what the cases say.
        label: The user's own name for the run.
    """

    paths: tuple[str, ...]
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
    """One cell of the matrix."""

    case: Case
    harness: str
    model: str
    trial: int

    @property
    def key(self) -> tuple[str, str, str, int]:
        """The cell's key in the store."""
        return (self.case.id, self.harness, self.model, self.trial)


@frozen
class Launch:
    """A run that is ready to go.

    Attributes:
        run: Its record.
        total: Cells in all.
        todo: Cells that are still to be run.
        regrade: Finished cells whose case changed and that are to be graded again.
        digests: Case id to the digest of the case as it is now.
        harnesses: Case id to the harnesses that were declared for it.
    """

    run: RunRecord
    total: int
    todo: Sequence[Coordinate]
    regrade: Sequence[Coordinate]
    digests: Mapping[str, str]
    harnesses: Mapping[str, Mapping[str, HarnessSpec]]

    async def go(
        self,
        store: Store,
        *,
        workers: int,
        on_cell: OnCell,
        on_begin: Callable[[CellKey], None] = lambda _: None,
    ) -> None:
        """Run and grade what is to be done; each cell is stored as soon as it is finished."""
        planned = [*self.regrade, *self.todo]

        def done(number: int, run: Run) -> None:
            case = planned[number].case
            record = record_of(
                run,
                run_id=self.run.id,
                case=case.id,
                threshold=case.expect.pass_threshold,
                min_assurance=case.expect.min_assurance,
                min_coverage=case.expect.min_coverage,
                digest=graded_by(self.digests[case.id]),
                file=case.file,
            )
            store.add_cell(record, run.to_dict(), str(run.metadata.get("snapshot") or ""))
            forget_journal(store.home, self.run.id, record.key)
            if (watch := WATCH.get()) is not None and number >= len(self.regrade):
                watch.end(run, record)
            on_cell(record)

        asking = _asking(self.todo, self.harnesses)
        faked = {one.case.id: one.case for one in asking if one.model == FAKE}
        with at_work(store.home), fake_models(faked.values()) as fakes:
            cells = self._cells(store, on_begin, fakes)
            await run_cells(cells, done, max_concurrent=workers)
        forget_journals(store.home, self.run.id)
        store.finish_run(self.run.id)

    def _cells(
        self, store: Store, on_begin: Callable[[CellKey], None], fakes: Mapping[str, str]
    ) -> Iterator[Cell]:
        cache = str(Path(store.home, "cache"))
        for coordinate in self.regrade:
            on_begin(coordinate.key)
            yield regraded_cell(coordinate, self.run.id, store)
        for coordinate in self.todo:
            case = coordinate.case
            on_begin(coordinate.key)
            declared = self.harnesses[case.id]
            agent = agent_for(coordinate.harness, case, declared)
            session = case_session(case, cache=cache, home=store.home)
            cell = _cell(coordinate, self.run.id, session, agent)
            journal = journal_of(store.home, self.run.id, coordinate.key)
            model = fakes[case.id] if coordinate.model == FAKE and fakes else coordinate.model
            gateway = gateway_for(
                coordinate.harness,
                model,
                case,
                declared,
                journal=journal,
                journal_of=label_of(coordinate.key),
            )
            yield replace(cell, gateway=gateway)


def launch(request: MatrixRequest, store: Store, settle: Settle | None = None) -> Launch:
    """Load the cases, plan the matrix, settle how tests are isolated, and record the run.

    What nobody settles is settled by lock files alone.

    Raises:
        InputError: For whatever is wrong with the cases or the request.
    """
    plan, harnesses, digests = _settled(request, store, settle, {})
    _require_models(plan, harnesses)
    config: dict[str, Json] = {"kind": "matrix", "request": to_json(request)}
    run = start_run(store, config=config, digests=digests, planned=len(plan), label=request.label)
    return Launch(run, len(plan), plan, (), digests, harnesses)


def resume(
    ref: str, store: Store, *, regrade: bool = False, settle: Settle | None = None
) -> Launch:
    """Take an unfinished run up again: what is finished is not repeated, errors are.

    Raises:
        InputError: If the run is unknown or not a matrix, or finished cells of it were graded by
            another version of their case or of assay and ``regrade`` is not asked for.
    """
    run = store.run(ref)
    request = _request_of(run)
    # Of a tag that has moved since, the cells to come take what those before had.
    # Those that ended early, or with assay, may know none.
    images = ((cell.case, cell.notes.get("image")) for cell in store.cells(run.id))
    had = {case: str(image) for case, image in images if image}
    plan, harnesses, digests = _settled(request, store, settle, {} if regrade else had)
    salvage(store, run.id)
    finished = store.finished(run.id)
    graded = {cell.key: cell.digest for cell in store.cells(run.id)}
    current = {name: graded_by(digest) for name, digest in digests.items()}
    redo = [c for c in plan if c.key in finished and graded[c.key] != current[c.case.id]]
    if redo and not regrade:
        changed = dict.fromkeys(c.case.id for c in redo)
        raise InputError(
            f"cases changed, or assay did, since cells of run {run.id} were graded: "
            f"{', '.join(changed)}",
            hint="--regrade grades what was kept by the new case; or start a new run",
        )
    todo = [c for c in plan if c.key not in finished]
    _require_models(todo, harnesses)
    return Launch(run, len(plan), todo, redo, digests, harnesses)


def _asking(
    cells: Iterable[Coordinate], harnesses: Mapping[str, Mapping[str, HarnessSpec]]
) -> Iterator[Coordinate]:
    """The cells whose agents ask a model through a gateway."""
    return (one for one in cells if asks_through_gateway(one.harness, harnesses[one.case.id]))


def _require_models(
    cells: Iterable[Coordinate], harnesses: Mapping[str, Mapping[str, HarnessSpec]]
) -> None:
    """Refuse models that cannot be asked, before anything is run."""
    for one in {one.model: one for one in _asking(cells, harnesses)}.values():
        require_model(one.model, one.case)


def cases_of(run: RunRecord) -> list[Case]:
    """The cases of a stored run, as they are now.

    Raises:
        InputError: If it is not a matrix run, or its cases are gone or malformed.
    """
    request = _request_of(run)
    return _select(load_cases(list(request.paths)), request.cases)


def _request_of(run: RunRecord) -> MatrixRequest:
    saved = run.config.get("request")
    if run.config.get("kind") != "matrix" or not isinstance(saved, dict):
        raise InputError(f"run {run.id} is not a matrix run, so it cannot be resumed")
    return from_json(MatrixRequest, saved)


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


def _select(cases: list[Case], ids: Sequence[str]) -> list[Case]:
    known = [case.id for case in cases]
    for wanted in ids:
        if wanted not in known:
            raise InputError(f"no case {wanted!r}", hint=nearest(wanted, known))
    return [case for case in cases if not ids or case.id in ids]


def _settled(
    request: MatrixRequest, store: Store, settle: Settle | None, images: Mapping[str, str]
) -> tuple[list[Coordinate], dict[str, Mapping[str, HarnessSpec]], dict[str, str]]:
    """Every cell, in order, with its case's modes resolved; harnesses and digests by case."""
    cases = _select(load_cases(list(request.paths)), request.cases)
    plan, harnesses = _plan(cases, request)  # whatever is wrong is told before anything is played
    cases = [_with_image(case, store, images.get(case.id, "")) for case in cases]
    harnesses = harnesses_in_images(cases, harnesses, str(Path(store.home, "cache")))
    resolved = {case.id: case for case in cases}
    digests = {case.id: case.digest for case in cases}
    if tested := [case for case in cases if has_tests(case)]:
        from assay.eval.isolation import CaseLock, oracle_digest, settle_by_locks

        cache = str(Path(store.home, "cache"))
        for case in (settle or settle_by_locks)([CaseLock(case, cache) for case in tested]):
            resolved[case.id], digests[case.id] = case, oracle_digest(case)
    return [replace(one, case=resolved[one.case.id]) for one in plan], harnesses, digests


def _with_image(case: Case, store: Store, digest: str) -> Case:
    if case.image is None:
        return case
    from assay.eval.images import pinned

    return pinned(case, str(Path(store.home, "cache")), digest)


def _plan(
    cases: Sequence[Case], request: MatrixRequest
) -> tuple[list[Coordinate], dict[str, Mapping[str, HarnessSpec]]]:
    """Every cell, in order, and the harnesses that each case can use."""
    plan: list[Coordinate] = []
    declared = {case.id: declared_harnesses(case) for case in cases}
    for case in cases:
        require_case_parts(case)
        if case.matrix == NO_MATRIX and not request.models:
            raise InputError(
                f"case {case.id!r} has no matrix, so nothing says who does its work",
                location=Location(file=case.file),
                hint="name a model: --model anthropic:NAME; or give the case a matrix",
            )
        own = [(c.harness, c.model, c.trial) for c in case.cells()]
        cells = _narrow(own, request)
        names = {harness for harness, _, _ in cells}
        declared[case.id] = usable_harnesses(case, names, declared[case.id])
        require_harnesses(case, names, declared[case.id])
        plan += [Coordinate(case, harness, model, trial) for harness, model, trial in cells]
    return plan, declared


def _narrow(
    own: Sequence[tuple[str, str, int]], request: MatrixRequest
) -> list[tuple[str, str, int]]:
    """Apply the request to a case's own matrix.

    Harnesses and models that the case lists are selected; where it lists none of those asked for,
    they are used instead.
    """
    pairs = list(dict.fromkeys((harness, model) for harness, model, _ in own))
    if request.harnesses:
        kept = [pair for pair in pairs if pair[0] in request.harnesses]
        models = dict.fromkeys(model for _, model in pairs)
        pairs = kept or [(harness, model) for harness in request.harnesses for model in models]
    if request.models:
        kept = [pair for pair in pairs if pair[1] in request.models]
        harnesses = dict.fromkeys(harness for harness, _ in pairs)
        pairs = kept or [(harness, model) for harness in harnesses for model in request.models]
    trials = request.trials or max(trial for _, _, trial in own)
    return [(h, m, trial) for h, m in pairs for trial in range(1, trials + 1)]


def _cell(
    coordinate: Coordinate, run_id: str, session: AbstractAsyncContextManager[Session], agent: Agent
) -> Cell:
    return Cell(
        task=case_task(coordinate.case),
        agent=agent,
        session=session,
        options=options_of(coordinate.case),
        harness=coordinate.harness,
        model=coordinate.model,
        trial=coordinate.trial,
        job_id=run_id,
        group_id=f"{run_id}/{coordinate.case.id}/{coordinate.harness}/{coordinate.model}",
    )


def options_of(case: Case) -> RunOptions:
    """How long a case's agent and graders may take.

    What the graders' commands may take by their own limits comes on top of ours: otherwise a
    submission that hangs every command would be our time-out, an error that leaves the mean, and
    not the 0 that it is.
    """
    return RunOptions(
        agent_timeout=case.limits.agent_timeout_s,
        grading_timeout=case.limits.grading_timeout_s + _own_timeouts(case),
    )


def _own_timeouts(case: Case) -> float:
    """Seconds that the graders' commands may take by their own limits, one after the other."""
    total = 0.0
    for spec in case.graders:
        parameter = spec.kind.parameters.get("timeout_s")
        seconds = spec.options.get("timeout_s") or (parameter.default if parameter else 0.0)
        total += float(seconds) if isinstance(seconds, int | float) else 0.0
    return total


def regraded_cell(
    coordinate: Coordinate, run_id: str, store: Store, keep: Keep | None = None
) -> Cell:
    """A cell that grades what was kept: no agent runs."""
    before = Run.from_dict(store.detail(run_id, coordinate.key))
    cache = str(Path(store.home, "cache"))
    session = kept_session(
        coordinate.case, kept_of(before), cache=cache, home=store.home, keep=keep
    )
    cell = _cell(coordinate, run_id, session, give_back(before))
    return replace(cell, is_live=False)


def kept_of(before: Run) -> Kept:
    """What was kept of a run's workspace."""
    found = before.metadata
    return Kept(*(str(found.get(name) or "") for name in ("snapshot", "source", "image")))


def give_back(before: Run) -> Agent:
    """An agent that does nothing but hand over what was recorded before."""

    async def agent(run: Run) -> None:
        run.trace = replace(before.trace, steps=before.trace.work)
        run.trace_id = before.trace_id or run.trace_id
        run.cost_usd, run.tokens = before.cost_usd, before.tokens
        run.metadata = {**before.metadata, "regraded": True}

    return agent
