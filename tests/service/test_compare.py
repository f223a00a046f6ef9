"""How scores lie and agree, and two runs compared, as the page and the client are told it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from assay.client import AsyncClient
from assay.errors import InputError, NotFoundError
from assay.registry.policy import Permissions
from assay.reports.scores import BINS, score_table
from assay.scoring.json_safe import Json
from assay.scoring.records import as_json
from assay.scoring.results import SubScore
from assay.service import compare
from assay.service.local import ask
from assay.service.operation import LOCAL, Desk
from assay.statistics.intervals import Interval
from assay.store.database import Database
from assay.store.records import CellRecord, RunRecord
from assay.store.runs import Store
from tests.command_line import assay, result

Parts = Mapping[str, float | None]


def cell(case: str, reward: float | None, parts: Parts | None = None, **more: Any) -> CellRecord:
    """A graded cell with a score tree; None is what could not be graded."""
    nodes = [
        SubScore.error(name, "no answer of the judge")
        if value is None
        else SubScore(name=name, value=value, passed=value >= 0.5, reason=f"{name} says {value}")
        for name, value in (parts or {}).items()
    ]
    given: dict[str, Any] = {
        "run_id": "one",
        "case": case,
        "harness": "h",
        "model": "m",
        "status": "error" if reward is None else "graded",
        "reward": reward,
        "passed": None if reward is None else reward >= 0.5,
        "threshold": 0.5,
        "subscores": tuple(node.to_dict() for node in nodes),
    }
    return CellRecord(**(given | more))


def store_run(
    database: Database,
    run: str,
    cells: Sequence[CellRecord],
    *,
    detail: dict[str, Json] | None = None,
    **more: Any,
) -> None:
    store = Store(database)
    store.create_run(RunRecord(id=run, created_at="2026-11-21T09:00:00Z", **more))
    with database.writing():
        for number, one in enumerate(cells):
            store.add_cell(replace(one, run_id=run), detail or {"prompt": f"question {number}"})
    store.finish_run(run)


@pytest.fixture
def desk(database: Database) -> Desk:
    return Desk(database, "", LOCAL, Permissions())


def test_errors_and_skips_are_beside_the_histogram_and_never_in_its_zeros() -> None:
    cells = [cell("a", 0.0, {"judge": 0.0}), cell("b", None, {"judge": None})]
    cells += [cell("c", None, {}, status="skipped"), cell("d", 1.0, {"judge": 1.0})]
    table = score_table("one", cells)
    reward, judge = table.graders
    assert (reward.bins[0], reward.bins[-1], reward.n) == (1, 1, 2)
    assert (reward.errors, reward.skipped, judge.errors, judge.n) == (1, 1, 1, 2)
    assert (judge.key, judge.name, judge.depth) == ("/judge", "judge", 1)
    assert reward.mean.mean == 0.5
    assert score_table("one", [cell("a", None)]).graders[0].mean == Interval(None, None, None, 0)
    # The ends of bins are where people expect them.
    values = [*(number / BINS for number in range(BINS)), 1.0, 0.1 + 0.2]
    (reward, *_) = score_table("one", [cell(f"c{v}", v) for v in values]).graders
    twice = (BINS - 1, round(0.3 * BINS))
    assert reward.bins == tuple(2 if place in twice else 1 for place in range(BINS))


def test_nodes_are_told_apart_by_the_whole_of_their_place() -> None:
    inner = SubScore(name="a/b", value=1.0, children=[SubScore(name="x", value=0.0)])
    other = SubScore(name="a", value=1.0, children=[SubScore(name="b", value=0.5)])
    twice = SubScore(name="a", value=0.25)
    nodes = tuple(node.to_dict() for node in (inner, other, twice))
    keys = [one.key for one in score_table("one", [cell("c", 1.0, subscores=nodes)]).graders]
    assert keys == ["", "/a~1b", "/a~1b/x", "/a", "/a/b", "/a-2"]


def test_a_rubric_for_each_case_is_cut_to_what_has_most_scores() -> None:
    cells = [cell(f"c{n}", 1.0, {"tests": 1.0, f"only {n}": 0.0}) for n in range(3_000)]
    table = score_table("one", cells)
    assert [one.name for one in table.graders[:2]] == ["reward", "tests"]
    assert (len(table.graders), table.left_out) == (100, 3_002 - 100)
    name = "criterion " * 10_000
    (_, _, long) = score_table("one", [cell("c", 1.0, {"tests": 1.0, name: 0.0})]).graders
    assert (len(long.key), len(long.name)) == (201, 120)


async def test_what_makes_no_sense_is_refused(desk: Desk) -> None:
    store_run(desk.database, "one", [cell("a", 1.0, {"tests": 1.0})])
    store_run(desk.database, "two", [cell("b", 1.0)])
    with pytest.raises(NotFoundError):
        await ask(compare.show_scores, desk, "none")
    with pytest.raises(InputError, match="both sides are the same"):
        await ask(compare.compare_runs, desk, before="one")
    with pytest.raises(InputError, match="no case is in both"):
        await ask(compare.compare_runs, desk, before="one", after="two")
    with pytest.raises(InputError, match="no model 'x'"):
        await ask(compare.compare_runs, desk, before="one", after="two", after_model="x")


async def test_numbers_are_those_of_the_command_and_of_the_client(tmp_path: Path) -> None:
    home = str(tmp_path / ".assay")
    with Database.open(home) as database:
        rewards = [1.0] * 9 + [0.5] * 3
        later = [0.2] * 8 + [1.0] * 3 + [None]
        for run, given in (("one", rewards), ("two", later)):
            cells = [cell(f"c{n:02}", r, {"tests": r}) for n, r in enumerate(given)]
            store_run(database, run, cells, label=f"l{run}")
        desk = Desk(database, "", LOCAL, Permissions())
        told = await ask(compare.compare_runs, desk, before="lone", after="two")
        agents = await ask(compare.list_agents, desk, "one")
    said = result(assay("compare", "one", "two", "--json", cwd=tmp_path))
    found = cast("dict[str, Any]", as_json(told))
    assert said == found
    assert told.sentence.startswith(
        f"{told.finding.capitalize()}, by more than chance would explain"
    )
    assert [one.case for one in told.unchanged] == ["c08"]
    assert (agents.agents[0].harness, agents.agents[0].model) == ("h", "m")
    async with AsyncClient(store=home) as client:
        assert await client.runs.compare("one", "two") == told
        assert (await client.runs.scores("one")).cells == 12


async def test_a_long_answer_is_cut_and_so_are_many_trials(desk: Desk) -> None:
    for run, reward in (("one", 1.0), ("two", 0.0)):
        cells = [cell("c", reward, trial=n, answer="x" * 2_000) for n in range(1, 9)]
        store_run(desk.database, run, cells)
    told = await ask(compare.compare_runs, desk, before="one", after="two", limit=1)
    (case,) = told.worsened
    assert (len(case.pairs), case.more) == (5, 3)
    assert len(case.pairs[0].before.answer) < 700
    assert told.sentence.startswith("Too few cases to tell: 1 case compared, and it takes 6;")
