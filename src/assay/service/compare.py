"""Operations on what cells were given: how scores lie and agree, and two runs compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from assay.errors import InputError, Location
from assay.reports.comparing.comparison import RunComparison
from assay.reports.run_records import AgentName
from assay.reports.scores import ScoreTable, score_table
from assay.reports.trainability import Trainability, trainability_of
from assay.service.operation import Desk, Section, Spec
from assay.service.runs import By, Run, of_runs, show_run
from assay.store.runs import Store

_Part = Annotated[str | None, Spec("Only this one of that side.", max_length=500)]


@dataclass(frozen=True, slots=True)
class AgentList:
    """The agents of a run, and the fields that tell its cells apart.

    Attributes:
        run: Its id.
        agents: Those that have a result.
        fields: Names in the metadata of its first cells, which may be a `by`.
    """

    run: str
    agents: tuple[AgentName, ...]
    fields: tuple[str, ...]


@of_runs("GET", "/{run}/agents")
def list_agents(desk: Desk, run: Run) -> AgentList:
    """Harness and model of each agent of a run that has a result, and its fields."""
    from assay.reports.breakdown import fields_of

    found, store = show_run.function(desk, run), Store(desk.database)
    agents = tuple(AgentName(*agent) for agent in store.agents(found.id))
    return AgentList(found.id, agents, fields_of(store, found))


@of_runs("GET", "/{run}/scores", apart=True)
def show_scores(desk: Desk, run: Run) -> ScoreTable:
    """How the scores of a run lie: a histogram for its rewards and for each of its graders."""
    found = show_run.function(desk, run)
    return score_table(found.id, Store(desk.database).cells(found.id))


@of_runs("GET", "/{run}/trainability", apart=True)
def show_trainability(
    desk: Desk,
    run: Run,
    *,
    floor: Annotated[
        str, Spec("A run of the same cases in which nothing is done.", max_length=200)
    ] = "",
    tolerance: Annotated[
        float, Spec("Rewards that differ by no more are equal.", ge=0, le=1)
    ] = 1e-6,
) -> Trainability:
    """Which of a run's groups of trials would teach a trainer anything."""
    found, store = show_run.function(desk, run), Store(desk.database)
    below = show_run.function(desk, floor).id if floor else ""
    return trainability_of(store, found.id, floor=below, tolerance=tolerance)


@Section("/compare", tag="runs", where="default")("GET", faults=(404,), apart=True)
def compare_runs(
    desk: Desk,
    *,
    before: Run,
    after: Annotated[
        str, Spec("The other run; without one, agents of the first.", max_length=200)
    ] = "",
    before_harness: _Part = None,
    before_model: _Part = None,
    after_harness: _Part = None,
    after_model: _Part = None,
    by: By = "",
    limit: Annotated[int, Spec("Most cases of each sort.", ge=1, le=200)] = 200,
) -> RunComparison:
    """Two runs, or two agents of one, paired by case and trial: what `assay compare` says.

    Harness and model have to be the same, too, unless each side has only one.
    """
    from assay.reports.comparing.compared_cells import are_same, side_of
    from assay.reports.comparing.pairing import compare

    runs = [show_run.function(desk, run) for run in (before, after or before)]
    one = side_of(desk.database, runs[0], harness=before_harness, model=before_model, by=by)
    other = side_of(desk.database, runs[1], harness=after_harness, model=after_model, by=by)
    if are_same(one, other):
        raise InputError(
            f"both sides are the same: run {runs[0].id}",
            location=Location(field="after"),
            hint="choose another run, or another agent for one of the sides",
        )
    found = compare(one, other)
    return replace(
        found,
        worsened=found.worsened[:limit],
        improved=found.improved[:limit],
        unchanged=found.unchanged[:limit],
    )
