"""Examples for the OpenAPI document that are made as the real ones are."""

from __future__ import annotations

from dataclasses import replace

from assay.reports.comparing.pairing import Side, compare
from assay.reports.comparing.shown import shown
from assay.reports.run_records import AgentName
from assay.reports.score_pairs import score_pair
from assay.reports.scores import score_table
from assay.reports.trainability import trainability
from assay.scoring.results import SubScore
from assay.service.compare import AgentList
from assay.store.records import CellRecord, RunRecord

_RUN = RunRecord(
    id="20261121-090830-ab12", created_at="2026-11-21T09:08:30+00:00", finished=True, planned=2
)


def _cell(case: str, reward: float, trial: int = 1) -> CellRecord:
    tests = SubScore(name="tests", value=reward, metadata={"seconds": 1.2})
    style = SubScore(name="style", value=0.5)
    return CellRecord(
        run_id=_RUN.id,
        case=case,
        harness="replay",
        model="fix",
        trial=trial,
        status="graded",
        reward=reward,
        passed=reward >= 1.0,
        seconds=1.5,
        answer="4",
        subscores=(tests.to_dict(), style.to_dict()),
    )


def compared() -> tuple[object, ...]:
    """An example of each record of `assay.service.compare`."""
    cells = [_cell("kit", 1.0), _cell("kit", 0.5, 2), _cell("sum", 0.0)]
    agents = [("replay", "fix")]
    taught = trainability(cells, run=_RUN.id, floor="20261120-070000-ef56", floors={"kit": 0.5})
    later = replace(_RUN, id="20261122-101500-cd34")
    after = [_cell("kit", 1.0), _cell("kit", 1.0, 2), _cell("sum", 0.0)]
    return (
        AgentList(_RUN.id, (AgentName("replay", "fix"),)),
        score_table(_RUN.id, cells),
        taught,
        taught.ends[0],
        taught.seconds,
        score_pair(_RUN.id, cells, "/tests", "/style", question=lambda _: "What is 2 + 2?"),
        shown(
            compare(
                Side(run=_RUN, agents=agents, cells=cells),
                Side(run=later, agents=agents, cells=after),
            )
        ),
    )
