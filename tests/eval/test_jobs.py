"""Jobs that are begun in Python and kept: resumed, reported and graded again like other runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from assay import Environment, Job, Run, Taskset
from assay.agents import ModelAgent
from assay.environment import Observation
from assay.errors import InputError
from assay.eval import group_relative
from assay.graders.kinds import load_file
from assay.models import ModelClient, ModelSettings, using
from assay.scoring.json_safe import Json
from assay.store.runs import Store
from assay.testing import FakeModel, calls
from assay.types import ActionStep, ToolCall, ToolResult, ToolStep
from assay.types.run import Rewarded
from tests.command_line import assay, cells, echo_case
from tests.each import each

env = Environment("sums")
"""At module level: a job is graded again by running the file that defines its templates."""


@env.template()
async def add(a: int = 1, b: int = 2) -> AsyncGenerator[str | float, str]:
    """Add two numbers."""
    answer = yield f"{a} + {b} = ?"
    yield 1.0 if answer == str(a + b) else 0.25


TASKS = Taskset("sums", [replace(add(), slug="small"), replace(add(a=20, b=22), slug="large")])


class Adds:
    """Knows small sums; for large ones it needs help."""

    def __init__(self, *, helped: bool = False) -> None:
        self.helped = helped
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, run: Run) -> str:
        self.asked.append((run.slug, run.trial))
        if run.slug == "large" and not self.helped:
            raise RuntimeError("too large")
        return str(sum(int(word) for word in run.prompt_text.split() if word.isdecimal()))


def _stored(home: str, ref: str = "latest") -> list[tuple[str, int, str, float | None]]:
    with Store.open(home) as store:
        found = store.cells(store.run(ref).id)
        return [(cell.case, cell.trial, cell.status, cell.reward) for cell in found]


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / ".assay")


def _regraded(root: Path) -> tuple[Json, Json]:
    """What the only cell of the newest run has come to, graded again."""
    (cell,) = cells(assay("regrade", "latest", "--json", cwd=root))
    return cell["status"], cell["reward"]


def test_a_job_is_kept_run_by_run_and_resumed_by_name(home: str) -> None:
    job = asyncio.run(TASKS.run(Adds(), group=2, store=home, job=Job(name="nightly")))
    assert (job.coverage, job.name) == ((2, 4), "nightly")
    assert _stored(home, job.id) == [
        ("large", 1, "error", None),
        ("large", 2, "error", None),
        ("small", 1, "graded", 1.0),
        ("small", 2, "graded", 1.0),
    ]
    helped = Adds(helped=True)
    again = asyncio.run(TASKS.run(helped, group=2, store=home, resume="nightly"))
    assert helped.asked == [("large", 1), ("large", 2)]
    assert (again.id, again.coverage) == (job.id, (4, 4))
    assert [(run.slug, run.trial) for run in again] == [
        ("small", 1),
        ("small", 2),
        ("large", 1),
        ("large", 2),
    ]
    assert again.runs[0].to_dict() == job.runs[0].to_dict()


def test_a_job_that_was_interrupted_goes_on_where_it_was_given(home: str) -> None:
    job = Job()

    async def stops(run: Run) -> str:
        if run.slug == "large":
            raise KeyboardInterrupt
        return "3"

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(TASKS.run(stops, max_concurrent=1, store=home, job=job))
    assert [run.slug for run in job] == ["small"]
    stops_now = Adds(helped=True)
    stops_now.__dict__["name"] = "stops"
    asyncio.run(TASKS.run(stops_now, store=home, job=job))
    assert (stops_now.asked, job.reward) == ([("large", 1)], 1.0)


def test_every_command_takes_a_job(tmp_path: Path, home: str) -> None:
    first = asyncio.run(TASKS.run(Adds(), group=2, store=home, job=Job(name="first")))
    asyncio.run(TASKS.run(Adds(helped=True), group=2, store=home, job=Job(name="second")))
    done = assay("report", "first", "--json", cwd=tmp_path)
    assert (done.returncode, len(cells(done))) == (3, 4)
    done = assay("compare", "first", "second", cwd=tmp_path)
    assert "tasks:" not in done.stdout
    assert "test_jobs.py" in assay("runs", cwd=tmp_path).stdout
    done = assay("regrade", "second", "--json", cwd=tmp_path)
    assert (done.returncode, len(cells(done))) == (0, 4), done.stderr
    for form in ("chat", "atif"):
        told = assay("runs", "export", "second", "--format", form, cwd=tmp_path)
        assert all('"42"' in line or '"3"' in line for line in told.stdout.splitlines()), form
    done = assay("run", "--resume", "first", cwd=tmp_path)
    assert (done.returncode, f"resume={first.id!r}" in done.stderr) == (2, True)


def test_a_case_of_a_job_is_kept_with_its_workspace(tmp_path: Path, home: str) -> None:
    echo_case(tmp_path)
    tasks = Taskset.from_file(str(tmp_path / "evals"))

    async def writes(run: Run) -> str:
        assert run.workspace is not None
        Path(run.workspace.path, "a.txt").write_text("hello")
        return "done"

    job = asyncio.run(tasks.run(writes, store=home))
    assert job.reward == 1.0
    done = assay("report", "latest", "--case", "c1", "--workspace", "left", cwd=tmp_path)
    assert (tmp_path / "left" / "a.txt").read_text() == "hello", done.stderr


@each(
    ("changed", "said"),
    [
        ({"group": 3}, "was begun with another group"),
        ({"agent": "other"}, "was begun with another agent"),
        ({"tasks": list(TASKS)[:1]}, "was begun with other tasks"),
        ({"resume": "nothing"}, "no run"),
        ({"tasks": [replace(add(a=5), slug="small"), TASKS[1]]}, "tasks changed, or assay did"),
    ],
)
def test_only_the_same_work_is_resumed(home: str, changed: dict[str, Any], said: str) -> None:
    asyncio.run(TASKS.run(Adds(), store=home))
    tasks, agent = Taskset("sums", changed.get("tasks", TASKS)), Adds()
    agent.__dict__["name"] = changed.get("agent", "Adds")
    again = {"group": changed.get("group", 1), "resume": changed.get("resume", "latest")}
    with pytest.raises(InputError, match=said):
        asyncio.run(tasks.run(agent, store=home, **again))
    assert agent.asked == []


def test_a_run_of_the_command_line_is_not_resumed_in_python(tmp_path: Path, home: str) -> None:
    echo_case(tmp_path)
    assay("run", "evals", cwd=tmp_path)
    with pytest.raises(InputError, match="assay run --resume"):
        asyncio.run(add().run(Adds(), store=home, resume="latest"))
    with pytest.raises(InputError, match="resume goes with store"):
        asyncio.run(add().run(Adds(), resume="latest"))


def test_a_job_in_memory_asks_the_models_that_a_kept_one_asks(home: str) -> None:
    """In memory there was no fake model, and a run did not say which model its agent asks."""

    class Asks(Adds):
        model = "its-own"

    solved = replace(add(), metadata={"solution": "3"})
    for store in ("", home):
        (played,) = asyncio.run(solved.run(ModelAgent(), model="fake", store=store))
        assert (played.model, played.reward) == ("fake", 1.0)
        (own,) = asyncio.run(add().run(Asks(), store=store))
        assert (own.model, own.reward) == ("its-own", 1.0)


def test_groups_are_ready_for_a_trainer(home: str) -> None:
    """A run without a reward is masked: never a 0 that its siblings would gain from."""

    async def wavers(run: Run) -> str:
        # Written into its run, it would make another cell of it, which is run again for ever.
        run.model = f"other-{run.trial}"
        if run.trial == 3:
            raise RuntimeError("lost")
        return "3" if run.trial == 1 else "4"

    for store in ("", home):
        job = asyncio.run(add().run(wavers, group=3, store=store))
        ((group_id, runs),) = job.groups.items()
        assert {run.group_id for run in runs} == {group_id}
        assert all(isinstance(run, Rewarded) for run in runs)
        assert [run.reward for run in runs] == [1.0, 0.25, None]
        assert group_relative([run.reward for run in runs]) == [1.0, -1.0, 0.0]
    again = asyncio.run(add().run(wavers, group=3, store=home, job=job))
    assert (again.coverage, len(_stored(home))) == ((2, 3), 3)


game = Environment("game")
SHOWN: list[str] = []
"""What the game says of itself; a test changes it between two gradings."""


@game.template(max_steps=3)
async def climb() -> AsyncGenerator[str | Observation | float, str]:
    """Climb a stair in three steps."""
    height = 0
    said = yield "Climb."
    while height < 2:
        height += said == "up"
        said = yield Observation(f"{''.join(SHOWN)}height {height}")
    yield 1.0 if said == "up" else 0.5


@pytest.mark.parametrize(("shown", "is_same"), [("", True), ("other ", False)])
def test_actions_are_done_again_to_be_graded_again(
    tmp_path: Path, home: str, monkeypatch: pytest.MonkeyPatch, shown: str, *, is_same: bool
) -> None:
    """The last action alone was taken for all of the work, and earned nothing."""

    async def climbs(run: Run) -> None:
        for _ in range(3):
            await run.step("up")

    job = asyncio.run(climb().run(climbs, store=home))
    assert job.reward == 1.0
    again = load_file(__file__)  # what a command runs is this file once more
    monkeypatch.setattr(again, "SHOWN", [shown])
    done = assay("regrade", "latest", cwd=tmp_path)
    assert done.returncode == (0 if is_same else 3)
    assert ("shows something else after action 1" in done.stderr) is not is_same
    (cell,) = cells(assay("report", "latest", "--json", cwd=tmp_path))
    assert (cell["status"], cell["reward"]) == ("graded", 1.0)


shop = Environment("shop")
cart = shop.state(list[str])
GREETING: list[str] = []


@shop.tool
def put(item: str) -> str:
    """Put something into the cart."""
    cart().append(item)
    return f"{''.join(GREETING)}{len(cart())} in the cart"


@shop.template()
async def buy() -> AsyncGenerator[str | float, str]:
    """Buy tea."""
    yield "Buy tea."
    yield 1.0 if cart() == ["tea"] else 0.0


@pytest.mark.parametrize(("greeting", "code"), [("", 0), ("hello, ", 3)])
def test_calls_of_a_tasks_tools_are_made_again_to_be_graded_again(
    tmp_path: Path, home: str, monkeypatch: pytest.MonkeyPatch, greeting: str, code: int
) -> None:
    """The state that they had made was gone, and with it what had been earned."""

    async def buys(run: Run) -> str:
        assert not (await run.call("put", {"item": "tea"})).is_error
        return "done"

    assert asyncio.run(buy().run(buys, store=home)).reward == 1.0
    monkeypatch.setattr(load_file(__file__), "GREETING", [greeting])
    assert assay("regrade", "latest", cwd=tmp_path).returncode == code
    (cell,) = cells(assay("report", "latest", "--json", cwd=tmp_path))
    assert cell["reward"] == 1.0


def test_attack_calls_that_a_trace_makes_up_are_not_made_to_grade_again(
    tmp_path: Path, home: str
) -> None:
    """They were made then: what had earned nothing earned everything when it was graded again."""

    async def tells(run: Run) -> str:
        call = ToolCall(name="put", arguments={"item": "tea"})
        run.record(ToolStep(call=call, result=ToolResult(content="1 in the cart")))
        run.record(ActionStep(action="up", observation="height 1"))
        return "done"

    assert asyncio.run(buy().run(tells, store=home)).reward == 0.0
    assert _regraded(tmp_path) == ("graded", 0.0)


def test_a_call_that_was_never_made_is_not_made_to_grade_again(tmp_path: Path, home: str) -> None:
    """A model that once called with wrong arguments lost what it had earned when graded again."""
    script = [calls("put", what=1), calls("put", item="tea"), "Done."]
    with FakeModel(script) as fake, using(ModelClient(ModelSettings(cache="off"))):
        job = asyncio.run(buy().run(ModelAgent(), model=fake.model, store=home))
    assert job.reward == 1.0
    assert _regraded(tmp_path) == ("graded", 1.0)


def test_a_verifier_still_verifies_what_is_graded_again(tmp_path: Path, home: str) -> None:
    """Without it the task's own grade would have come back."""
    tasks = Taskset("verified", [add().verified_by(doubts())])
    job = asyncio.run(tasks.run(Adds(), store=home))
    assert job.reward == 0.5
    (run,) = job
    own = cast("dict[str, Json]", run.grade.info["verified"])
    assert own["score"] == 1.0, "its own grade is told beside it"
    assert _regraded(tmp_path) == ("graded", 0.5)


@env.template()
async def doubts() -> AsyncGenerator[str | float, str]:
    """Believes half of every grade."""
    told = yield "What came of it?"
    yield float(json.loads(told)["score"]) / 2


def test_a_job_whose_tasks_run_elsewhere_is_the_same_job(tmp_path: Path, home: str) -> None:
    """Its tasks would have had no file: no version, and nothing to be graded again by."""
    (tmp_path / "sums.py").write_text(
        "from assay import Environment\n"
        "env = Environment('sums')\n\n\n"
        "@env.template()\n"
        "async def add(a: int = 1, b: int = 2):\n"
        "    answer = yield f'{a} + {b} = ?'\n"
        "    yield 1.0 if answer == str(a + b) else 0.25\n",
        "utf-8",
    )
    tasks = Taskset.from_file(str(tmp_path / "sums.py"))
    job = asyncio.run(tasks.run(Adds(), store=home, runtime="subprocess"))
    assert (job.reward, job.runs[0].runtime) == (1.0, "subprocess")
    again = asyncio.run(tasks.run(Adds(), store=home, job=job))
    assert again.coverage == (1, 1)
    assert _regraded(tmp_path) == ("graded", 1.0)
