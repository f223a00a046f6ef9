"""The one way of cells: what is begun, what comes of it and who is told, and in which order."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from assay.agents import EchoAgent
from assay.conversation.turns import Conversation, Turn
from assay.environment import Environment
from assay.errors import SkippedError
from assay.eval import runner
from assay.eval.harnesses import FAKE
from assay.eval.planning import Planned, options_of
from assay.eval.rollout import WATCH
from assay.eval.runner import Plan, agent_name, fitted, run_tasks
from assay.gateway import Gateway
from assay.models import ModelClient, ModelSettings, using
from assay.store.records import CellKey, CellRecord
from assay.tasks import Task
from assay.tasks.task import RunOptions
from assay.testing import FakeModel
from assay.types import Run

env = Environment("letters")


@env.template()
async def count(word: str) -> AsyncGenerator[Any, Any]:
    answer = yield f"How long is {word}?"
    yield float(answer == str(len(word)))


@env.template()
async def breaks() -> AsyncGenerator[Any, Any]:
    raise ValueError("boom")
    yield


@env.template()
async def elsewhere() -> AsyncGenerator[Any, Any]:
    raise SkippedError("not on this machine")
    yield


async def three(run: Run) -> str:
    return "3"


class Watched:
    """Who watches rollouts: what is begun, and what has ended."""

    def __init__(self) -> None:
        self.ended: list[CellRecord] = []
        self.begun: list[str] = []

    def begin(self, run: Run, cell: object) -> None:
        del cell
        self.begun.append(run.prompt_text)

    def end(self, run: Run, record: CellRecord) -> None:
        assert run.reward == record.reward
        self.ended.append(record)


def nobody(planned: Planned, run: Run) -> None:
    """A sink of which nobody asks what it keeps."""
    del planned, run


def planned(word: str, trial: int = 1, **more: Any) -> Planned:
    return Planned(count(word), "three", trial=trial, agent=three, **more)


@pytest.mark.parametrize("is_shown", [True, False])
async def test_each_cell_goes_to_the_sink_and_who_watches_is_told(*, is_shown: bool) -> None:
    cells = [planned("abc"), planned("abc", 2), planned("ab")]
    begun: list[CellKey] = []
    kept: list[CellRecord] = []
    told: list[CellRecord] = []

    def sink(one: Planned, run: Run) -> CellRecord | None:
        assert (run.harness, run.trial, run.job_id) == ("three", one.trial, "r")
        assert run.group_id == f"g/{one.task.slug}/three/"
        kept.append(one.record(run, "r"))
        return kept[-1]

    watched = Watched()
    token = WATCH.set(cast("Any", watched))
    try:
        plan = Plan(cells=cells, sink=sink, run_id="r", group="g", is_shown=is_shown)
        await plan.go(workers=1, on_begin=begun.append, on_cell=told.append)
    finally:
        WATCH.reset(token)
    assert begun == [one.key for one in cells]
    assert [cell.key for cell in kept] == begun
    assert [cell.reward for cell in kept] == [1.0, 1.0, 0.0]
    assert told == kept
    assert watched.ended == (kept if is_shown else [])
    assert len(watched.begun) == (3 if is_shown else 0)
    # What the sink keeps for itself nobody is told of.
    await Plan(cells=cells, sink=nobody).go(workers=0, on_cell=told.append)
    assert told == kept


def test_a_cell_has_its_tasks_limits_unless_all_have_others() -> None:
    one, other = planned("abc"), RunOptions(agent_timeout=1.0)
    cell = Plan(cells=[one], sink=nobody).cell(one, {})
    assert (cell.options, cell.gateway, cell.job_id, cell.group_id) == (
        options_of(one.task), None, None, None,
    )  # fmt: skip
    cell = Plan(cells=[one], sink=nobody, run_id="r", options=other).cell(one, {})
    assert (cell.options, cell.job_id) == (other, "r")
    assert cell.group_id == f"r/{one.task.slug}/three/"
    assert cell.is_live
    assert not Plan(cells=[one], sink=nobody, is_shown=False).cell(one, {}).is_live


async def test_a_cell_asks_its_model_or_the_fake_one_of_its_task_and_is_kept_where_it_is_told(
    tmp_path: Path,
) -> None:
    with FakeModel(["3", "3"]) as fake, using(ModelClient(ModelSettings(cache="off"))):

        async def asks(run: Run) -> str:
            assert isinstance(run.gateway, Gateway)
            question = Conversation(model="any", turns=(Turn.of("user", "How long?"),))
            await run.gateway.ask(question)
            return "3"

        runs: list[Run] = []
        asked = Planned(count("abc"), "asks", fake.model, asks=True, agent=asks)
        for home in ("", str(tmp_path / "home")):
            plan = Plan(cells=[asked], sink=lambda _, run: runs.append(run), run_id="r", home=home)
            await plan.go(workers=1)
            assert (runs[-1].reward, runs[-1].model) == (1.0, fake.model), runs[-1].trace.error
        silent = Planned(count("abc"), "three", fake.model, agent=three)
        assert plan.cell(silent, {}).gateway is None
        assert plan.cell(asked, {}).gateway is not None
    assert fake.count == 2


async def test_who_watches_is_told_of_the_runs_of_a_job() -> None:
    watched = Watched()
    token = WATCH.set(cast("Any", watched))
    try:
        job = await run_tasks([count("abc"), count("ab")], three, RunOptions(max_concurrent=1))
    finally:
        WATCH.reset(token)
    assert [cell.reward for cell in watched.ended] == [run.reward for run in job.runs]
    assert {cell.run_id for cell in watched.ended} == {job.id}


async def test_a_task_that_does_not_begin_is_an_error_or_skipped_and_says_why() -> None:
    failed, skipped = (await run_tasks([breaks(), elsewhere()], three, RunOptions())).runs
    assert (failed.task_id, failed.slug, failed.reward) == ("breaks", breaks().slug, None)
    assert failed.grade.is_error
    assert "ValueError: boom" in str(failed.trace.error)
    assert (skipped.task_id, skipped.reward) == ("elsewhere", None)
    assert (skipped.grade.is_error, skipped.grade.content) == (False, "not on this machine")


async def test_only_cells_that_ask_the_fake_model_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    faked: list[list[str]] = []

    @contextmanager
    def fakes(tasks: Iterable[Task]) -> Generator[dict[str, str]]:
        faked.append([task.slug for task in tasks])
        yield {}

    monkeypatch.setattr(runner, "fake_models", fakes)
    cells = [planned("a", model=FAKE), planned("ab")]
    await Plan(cells=cells, sink=nobody).go(workers=1)
    assert faked == [[]]
    echo = Planned(count("abc"), "echo")
    assert isinstance(Plan(cells=[echo], sink=nobody).cell(echo, {}).agent, EchoAgent)


def test_an_agent_is_called_by_its_name_and_fitted_to_its_task() -> None:
    class Named:
        name = "careful"

        async def __call__(self, run: Run) -> None: ...

    class Fits(Named):
        name = ""

        def for_task(self, task: Task) -> Named:
            assert task.id == "count"
            return Named()

    assert [agent_name(cast("Any", one)) for one in (three, Named(), Fits())] == [
        "three", "careful", "Fits",
    ]  # fmt: skip
    assert fitted(three, count("abc")) is three
    assert type(fitted(cast("Any", Fits()), count("abc"))) is Named
