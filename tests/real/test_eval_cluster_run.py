"""`assay run --engine ray`: cells of a matrix in the actors of a real cluster."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from assay.errors import AssayError, InputError
from assay.eval.cluster.joining import Cluster, connected
from assay.eval.matrix import Launch, launch, resume
from assay.eval.planning import MatrixRequest
from assay.store.records import CellRecord
from assay.store.runs import Store
from tests.graders.test_batch import REWARDS, Jobs, ask, jobs
from tests.model_servers import said, scripted

__all__ = ["jobs"]  # a fixture
pytestmark = pytest.mark.real

CASE = """
id: add
task: {prompt: Write 4 to sum.txt.}
expected: 4
graders:
  - {type: numeric_match, pick: last}
  - {type: command, cmd: 'test "$(cat sum.txt)" = 4', name: written}
matrix: {harnesses: [agent], models: [fake]}
"""

AGENT = """
import os, signal, urllib.request, json
from pathlib import Path
from typing import Any

def ask(url, token):
    body = {"model": "m", "messages": [{"role": "user", "content": "2 + 2?"}]}
    head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    sent = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), head)
    with urllib.request.urlopen(sent) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]

async def right(run):
    Path(run.workspace.path, "sum.txt").write_text("4\\n")
    return "It is 4."

async def dies_once(run):
    import asyncio
    told = await asyncio.to_thread(ask, run.gateway.openai_url, run.gateway.token)
    first = Path(__file__).with_name("died")
    if not first.exists():
        first.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return told

async def dies(run):
    os.kill(os.getpid(), signal.SIGKILL)

async def computes(run):
    with Path(__file__).with_name("log").open("a") as log:
        log.write("begun ")
    import time
    time.sleep(600)

async def waits(run):
    import asyncio
    Path(__file__).with_name(f"waits-{run.trial}").write_text(run.workspace.path)
    await asyncio.sleep(600)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, alone_with_ray: None) -> Generator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        # What the cells of an actor that is killed leave.
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("t")))
        patch.setenv("RAY_ADDRESS", "local")
        with connected("ray") as found:
            yield found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "add").mkdir()
    (tmp_path / "add" / "case.yaml").write_text(CASE)
    (tmp_path / "agent.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan(store: Store, *harnesses: str, **more: object) -> Launch:
    request = MatrixRequest(paths=("add",), harnesses=harnesses, **more)  # pyright: ignore[reportArgumentType]
    return launch(request, store)


def ended(store: Store, run: str) -> list[CellRecord]:
    return sorted(store.cells(run), key=lambda cell: cell.key)


def told(cell: CellRecord) -> object:
    scored = (cell.status, cell.reward, cell.passed, cell.assurance, cell.digest)
    return (*cell.key, *scored, cell.answer, cell.content)


async def test_a_cell_has_the_same_result_as_on_one_machine(cluster: Cluster, place: Path) -> None:
    with Store.open(str(place / ".assay")) as store:
        here = plan(store, "echo", "agent.py:right", trials=2)
        there = plan(store, "echo", "agent.py:right", trials=2)
        begun: list[object] = []
        await here.go(store, workers=2)
        await there.go(store, workers=0, cluster=cluster, on_begin=begun.append)
        ours, theirs = ended(store, here.run.id), ended(store, there.run.id)
        assert len(theirs) == len(begun) == 4
        assert [told(cell) for cell in theirs] == [told(cell) for cell in ours]
        assert {cell.reward for cell in theirs} == {0.5, 1.0}
        for cell in theirs:
            detail = store.detail(there.run.id, cell.key)
            kept = store.detail(here.run.id, cell.key)
            assert detail["metadata"] == kept["metadata"]  # the digest of what was kept among it
        assert not list(place.glob(".assay/*.cluster"))


async def test_a_cell_whose_actor_is_killed_is_begun_again_and_says_what_it_had_asked(
    cluster: Cluster, place: Path
) -> None:
    async with scripted([said("It is 4.")]) as server:
        with Store.open(str(place / ".assay")) as store:
            ready = plan(store, "agent.py:dies_once", models=(server.model,))
            await ready.go(store, workers=1, cluster=cluster)
            [cell] = ended(store, ready.run.id)
            trace = json.dumps(store.detail(ready.run.id, cell.key)["trace"])
        assert len(server.seen) == 2
    assert (cell.status, cell.reward) == ("graded", 0.5)
    assert "had asked its model once, for an unknown price; the cell was run again" in trace
    assert not list(place.glob(".assay/wire/**/*.jsonl"))


async def test_a_cell_over_which_actors_always_die_is_an_error_and_the_others_are_graded(
    cluster: Cluster, place: Path
) -> None:
    with Store.open(str(place / ".assay")) as store:
        ready = plan(store, "agent.py:dies", "echo")
        await ready.go(store, workers=2, cluster=cluster)
        cells = {cell.harness: cell for cell in ended(store, ready.run.id)}
        assert store.run(ready.run.id).finished
    assert (cells["echo"].status, cells["echo"].reward) == ("graded", 0.5)
    assert (cells["agent.py:dies"].status, cells["agent.py:dies"].reward) == ("error", None)
    assert "workers died over it" in cells["agent.py:dies"].error


async def test_a_cell_that_blocks_its_loop_beyond_its_limits_is_given_up(
    cluster: Cluster, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.eval.cluster.actors.SLOW_SECONDS", 0.5)
    monkeypatch.setattr("assay.eval.cluster.actors._ASK_SECONDS", 0.0)
    limits = "limits: {agent_timeout_s: 0.5, grading_timeout_s: 0.5}\n"
    case = CASE.replace(
        "  - {type: command, cmd: 'test \"$(cat sum.txt)\" = 4', name: written}\n", limits
    )
    (place / "add" / "case.yaml").write_text(case)
    with Store.open(str(place / ".assay")) as store:
        ready = plan(store, "agent.py:computes")
        await ready.go(store, workers=1, cluster=cluster)
        [cell] = ended(store, ready.run.id)
    assert (cell.status, cell.reward) == ("error", None)
    assert "3 workers died over it" in cell.error
    # A worker that was too slow for these limits was ended before it began.
    assert (place / "log").read_text() in {"begun " * times for times in (1, 2, 3)}


def _until(flag: Path) -> None:
    while not flag.exists() or not flag.read_text():
        time.sleep(0.05)


async def test_who_is_interrupted_leaves_nothing_and_goes_on_here(
    cluster: Cluster, place: Path
) -> None:
    with Store.open(str(place / ".assay")) as store:
        ready = plan(store, "echo", "agent.py:waits")
        kept = asyncio.Event()
        going = asyncio.create_task(
            ready.go(store, workers=2, cluster=cluster, on_cell=lambda _: kept.set())
        )
        await kept.wait()
        flag = place / "waits-1"
        await asyncio.to_thread(_until, flag)
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        assert not Path(flag.read_text()).exists()
        assert [cell.harness for cell in ended(store, ready.run.id)] == ["echo"]
        (place / "agent.py").write_text(AGENT.replace("asyncio.sleep(600)", "asyncio.sleep(0)"))
        rest = resume(ready.run.id, store)
        assert [one.harness for one in rest.todo] == ["agent.py:waits"]
        await rest.go(store, workers=1, cluster=cluster)
        assert len(ended(store, ready.run.id)) == 2


async def test_what_cannot_be_done_elsewhere_is_refused_before_anything_runs(
    cluster: Cluster, place: Path
) -> None:
    (place / "env.py").write_text(
        "from assay.environment import Environment\n"
        "env = Environment('e')\n"
        "@env.template()\n"
        "async def one():\n    answer = yield 'hello'\n    yield 1.0\n"
    )
    with Store.open(str(place / ".assay")) as store:
        ready = launch(MatrixRequest(paths=("env.py",), harnesses=("agent.py:right",)), store)
        with pytest.raises(InputError, match="is of a Python file or a URL, and cannot be run"):
            await ready.go(store, workers=1, cluster=cluster)


async def test_a_machine_that_does_not_see_the_same_is_named(cluster: Cluster, place: Path) -> None:
    with Store.open(str(place / ".assay")) as store:
        ready = plan(store, "echo", trials=2)

        def change(_: object) -> None:
            (place / "add" / "hidden.txt").write_text("not what it was")

        with pytest.raises(AssayError, match=r"does not see .*add as the machine that began"):
            await ready.go(store, workers=1, cluster=cluster, on_cell=change)
        assert len(ended(store, ready.run.id)) == 1


@pytest.mark.sandbox
def test_every_kind_grades_batches_in_a_worker(cluster: Cluster, jobs: Jobs) -> None:
    del cluster  # connected
    import ray

    variables = {"PYTHONPATH": str(Path(__file__).parents[2])}
    asked: Any = ray.remote(ask).options(runtime_env={"env_vars": variables})
    assert ray.get(asked.remote(jobs)) == REWARDS
