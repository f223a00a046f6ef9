"""What is compared: the cells of a run, or of one of its agents."""

from __future__ import annotations

from collections.abc import Sequence

from assay.errors import InputError, nearest
from assay.reports.breakdown import Grouping
from assay.reports.comparing.pairing import Side
from assay.store.database import Database
from assay.store.records import CellRecord, RunRecord
from assay.store.runs import Store


def side_of(
    database: Database,
    run: RunRecord,
    *,
    harness: str | None = None,
    model: str | None = None,
    cases: Sequence[str] = (),
    by: str = "",
) -> Side:
    """The cells of a run that are compared.

    Args:
        database: Where they are.
        run: The run.
        harness: Only this one.
        model: Only this one.
        cases: Only these; without any, all.
        by: The field that they are told apart by; empty for none.

    Raises:
        InputError: For a harness or model that the run does not have.
    """
    store = Store(database)
    agents = store.agents(run.id)
    _require("harness", harness, [one for one, _ in agents], run.id)
    _require("model", model, [one for _, one in agents], run.id)

    def is_meant(agent: tuple[str, str]) -> bool:
        return harness in (None, agent[0]) and model in (None, agent[1])

    def is_chosen(cell: CellRecord) -> bool:
        return is_meant((cell.harness, cell.model)) and (not cases or cell.case in cases)

    cells = filter(is_chosen, store.cells(run.id))
    return Side(
        run=run,
        agents=[agent for agent in agents if is_meant(agent)],
        cells=cells,
        grouping=Grouping(store, run, by) if by else None,
    )


def are_same(before: Side, after: Side) -> bool:
    """Whether both sides have the same cells, which are no better and no worse than themselves."""
    return before.run.id == after.run.id and list(before.agents) == list(after.agents)


def _require(part: str, name: str | None, known: Sequence[str], run: str) -> None:
    if name is not None and name not in known:
        raise InputError(
            f"no {part} {name!r} in run {run}", hint=nearest(name, sorted(filter(None, known)))
        )
