"""``client.runs`` and ``client.environments``: what was run, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from assay.client.scope import Scope, checked_calls
from assay.service import cells as cell_operations
from assay.service import compare as comparing
from assay.service import environments
from assay.service import runs as operations

if TYPE_CHECKING:
    from assay.reports.comparing.shown import RunComparison
    from assay.reports.run_records import AgentName, CellWindow, RunMatrix, RunOverview, RunRows
    from assay.reports.score_pairs import ScorePair
    from assay.reports.scores import ScoreTable
    from assay.reports.trainability import Trainability
    from assay.service.environments import EnvironmentSeen
    from assay.store import RunRecord
    from assay.store.kept import Freed
    from assay.store.regrades import RegradeState
    from assay.store.windows import Order


@checked_calls("runs")
class AsyncRuns:
    """Runs of cases, as `assay run` stored them."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def list(self, *, limit: int = 50) -> Sequence[RunRecord]:
        """The newest runs, newest first."""
        return (await self._scope.backend.call(operations.list_runs, "", limit=limit)).items

    async def find(self, search: str = "", *, limit: int = 50, offset: int = 0) -> RunRows:
        """Runs with how their cells ended, newest first, and how many there are.

        Args:
            search: Stands somewhere in the id, the label or what was run.
            limit: Most of them, up to 200.
            offset: How many are left out before them.
        """
        return await self._scope.backend.call(
            operations.list_run_rows, "", search=search, limit=limit, offset=offset
        )

    async def get(self, run: str) -> RunRecord:
        """What was stored of a run as it began, and whether it has ended.

        Raises:
            NotFoundError: There is none, or more than one.
        """
        return await self._scope.backend.call(operations.show_run, "", run)

    async def overview(self, run: str) -> RunOverview:
        """All that a run comes down to: verdict, totals with intervals, agents, causes of errors.

        Args:
            run: Its id, the beginning of it, its label, or ``latest``.

        Raises:
            NotFoundError: There is none, or more than one.
        """
        return await self._scope.backend.call(operations.show_run_overview, "", run)

    async def cells(
        self,
        run: str,
        *,
        outcome: str = "",
        harness: str | None = None,
        model: str | None = None,
        case: str = "",
        search: str = "",
        flagged: bool = False,
        held: bool = False,
        cause: str = "",
        sort: Order = "case",
        descending: bool = False,
        limit: int = 100,
        offset: int = 0,
        until: int = 0,
    ) -> CellWindow:
        """Some of the cells of a run, with how many there are.

        Args:
            run: Its id, the beginning of it, its label, or ``latest``.
            outcome: How they ended: ``pass``, ``fail``, ``error``, ``skipped``, ``scored``; several
                with commas between.
            harness: Only those of this harness.
            model: Only those of this model.
            case: Only those of this case.
            search: Stands somewhere in the name of their case.
            flagged: Only those with signs of tampering.
            held: Only those that wait for a person.
            cause: Only those that this could not be graded for: the `key` of one of the `causes`
                of `overview`.
            sort: Their order; what is unknown comes last.
            descending: The other way round.
            limit: Most of them.
            offset: How many are left out before them.
            until: `last` of an earlier part: nothing that came later.

        Raises:
            NotFoundError: There is no such run, or more than one.
        """
        return await self._scope.backend.call(
            operations.window_cells,
            "",
            run,
            outcome=outcome,
            harness=harness,
            model=model,
            case=case,
            search=search,
            flagged=flagged,
            held=held,
            cause=cause,
            sort=sort,
            descending=descending,
            limit=limit,
            offset=offset,
            until=until,
        )

    async def matrix(
        self,
        run: str,
        *,
        search: str = "",
        sort: Literal["case", "worst"] = "case",
        limit: int = 100,
        offset: int = 0,
    ) -> RunMatrix:
        """The cells of a run by case and agent, so many cases at a time.

        Args:
            run: Its id, the beginning of it, its label, or ``latest``.
            search: Stands somewhere in the name of a case.
            sort: By name, or those that fail most first.
            limit: Most cases.
            offset: How many are left out before them.

        Raises:
            NotFoundError: There is no such run, or more than one.
        """
        return await self._scope.backend.call(
            operations.show_run_matrix,
            "",
            run,
            search=search,
            sort=sort,
            limit=limit,
            offset=offset,
        )

    async def agents(self, run: str) -> Sequence[AgentName]:
        """Harness and model of each agent of a run that has a result.

        Raises:
            NotFoundError: There is no such run.
        """
        return (await self._scope.backend.call(comparing.list_agents, "", run)).agents

    async def regrade(self, run: str) -> RegradeState:
        """Grade a run again, from what was kept of it; no agent runs.

        On a server it goes on in the background, and `regrading` says how far it is; without one
        it is done before this returns.

        Raises:
            NotFoundError: There is no such run.
            ConflictError: It is being graded again already.
        """
        return await self._scope.backend.call(cell_operations.regrade_run, "", run)

    async def regrading(self, run: str) -> RegradeState:
        """How far the newest regrade of a run is, also of one that has ended.

        Raises:
            NotFoundError: There is no such run.
        """
        return await self._scope.backend.call(cell_operations.show_regrade, "", run)

    async def delete(self, run: str, *, keep_files: bool = False) -> Freed:
        """Delete a run with its results, and the files of workspaces that no other run needs.

        Args:
            run: Its whole id.
            keep_files: Leave the files of workspaces.

        Raises:
            NotFoundError: There is none.
            ConflictError: A process is at work on it, or on runs that may need its files.
        """
        return await self._scope.backend.call(operations.delete_run, "", run, keep_files=keep_files)

    async def compare(
        self,
        before: str,
        after: str = "",
        *,
        harnesses: tuple[str | None, str | None] = (None, None),
        models: tuple[str | None, str | None] = (None, None),
    ) -> RunComparison:
        """Two runs, or two agents of one, paired by case and trial: what `assay compare` says.

        Args:
            before: A run: its id, its label, or `latest`.
            after: The other one; without it, agents of the first.
            harnesses: Only this harness, of the first side and of the second.
            models: Only this model, likewise.

        Raises:
            NotFoundError: There is no such run.
            InputError: They have no cell in common, or are the same.
        """
        return await self._scope.backend.call(
            comparing.compare_runs,
            "",
            before=before,
            after=after,
            before_harness=harnesses[0],
            after_harness=harnesses[1],
            before_model=models[0],
            after_model=models[1],
        )

    async def scores(self, run: str) -> ScoreTable:
        """How the scores of a run lie: a histogram for its rewards and for each of its graders.

        Raises:
            NotFoundError: There is no such run.
        """
        return await self._scope.backend.call(comparing.show_scores, "", run)

    async def score_pair(self, run: str, x: str, y: str) -> ScorePair:
        """Two graders of a run, cell by cell, or one beside what cells cost.

        Args:
            run: Its id, its label, or `latest`.
            x: A grader, by its key in `scores`; empty for the reward.
            y: Another one; or `seconds`, `cost_usd` or `tokens`.

        Raises:
            NotFoundError: There is no such run.
            InputError: No cell has such a score.
        """
        return await self._scope.backend.call(comparing.show_score_pair, "", run, x=x, y=y)

    async def trainability(
        self, run: str, *, floor: str = "", tolerance: float = 1e-6
    ) -> Trainability:
        """Which of a run's groups of trials would teach a trainer anything.

        Args:
            run: Its id, its label, or `latest`.
            floor: A run of the same cases in which nothing is done; empty for none.
            tolerance: Rewards that differ by no more are equal.

        Raises:
            NotFoundError: There is no such run.
        """
        return await self._scope.backend.call(
            comparing.show_trainability, "", run, floor=floor, tolerance=tolerance
        )


@checked_calls("environments")
class AsyncEnvironments:
    """What runs came from: Python files, addresses, case files."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def list(self) -> Sequence[EnvironmentSeen]:
        """The environments of the newest runs, that of the newest run first."""
        found = await self._scope.backend.call(environments.list_environments, "")
        return found.environments
