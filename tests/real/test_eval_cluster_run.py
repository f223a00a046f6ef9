"""`assay run --engine ray`: cells of a matrix, and judges, in the actors of a real cluster.

A judge is asked from all actors within one set of limits and one account; how a budget is shared
out stands in tests/eval/test_cluster_limits.py.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from assay.errors import AssayError, InputError
from assay.eval.cluster.actors import Actors, ray
from assay.eval.cluster.joining import Cluster, connected
from assay.eval.cluster.limits import ClusterLimits
from assay.eval.matrix import Launch, launch, resume
from assay.eval.planning import MatrixRequest
from assay.models import ModelClient, ModelSettings
from assay.store.records import CellRecord
from assay.store.runs import Store
from tests.children import until
from tests.graders.test_batch import Jobs, ask, jobs
from tests.model_servers import Raw, Scripted, Seen, question, said, scripted, verdict
from tests.ray_cluster import ask_model, bare

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
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        bare(patch)
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


async def test_a_cell_over_which_actors_die_is_an_error_and_the_others_are_graded(
    cluster: Cluster, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Begun again it is above, and until it dies as often as it may in test_eval_cluster.py.
    monkeypatch.setattr("assay.eval.cluster.actors._DEATHS", 1)
    with Store.open(str(place / ".assay")) as store:
        ready = plan(store, "agent.py:dies", "echo")
        await ready.go(store, workers=1, cluster=cluster)
        cells = {cell.harness: cell for cell in ended(store, ready.run.id)}
        assert store.run(ready.run.id).finished
    assert (cells["echo"].status, cells["echo"].reward) == ("graded", 0.5)
    assert (cells["agent.py:dies"].status, cells["agent.py:dies"].reward) == ("error", None)
    assert "1 workers died over it" in cells["agent.py:dies"].error


async def test_a_cell_that_blocks_its_loop_beyond_its_limits_is_given_up(
    cluster: Cluster, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.eval.cluster.actors.SLOW_SECONDS", 0.5)
    monkeypatch.setattr("assay.eval.cluster.actors._ASK_SECONDS", 0.0)
    monkeypatch.setattr("assay.eval.cluster.actors._DEATHS", 1)
    limits = "limits: {agent_timeout_s: 0.5, grading_timeout_s: 0.5}\n"
    case = re.sub(r"  - \{type: command.*\n", limits, CASE)
    (place / "add" / "case.yaml").write_text(case)
    with Store.open(str(place / ".assay")) as store:
        ready = plan(store, "agent.py:computes")
        await ready.go(store, workers=1, cluster=cluster)
        [cell] = ended(store, ready.run.id)
    assert (cell.status, cell.reward) == ("error", None)
    assert "1 workers died over it" in cell.error
    # A worker that is too slow for these limits, on a busy machine, is ended before it begins.
    begun = (place / "log").read_text() if (place / "log").exists() else ""
    assert begun in {"", "begun "}


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
        await asyncio.to_thread(until, lambda: flag.exists() and flag.read_text())
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
    env = "from assay.environment import Environment\nenv = Environment('e')\n"
    (place / "env.py").write_text(f"{env}@env.template()\nasync def one():\n    yield 'hello'\n")
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
    asked = ray().remote(ask)
    assert ray().get(asked.remote(jobs)) == {name: job[2] for name, job in jobs.items()}


# Judges.


@asynccontextmanager
async def asking(client: ModelClient) -> AsyncGenerator[Actors]:
    with Actors(ask_model, 2, depth=64, limits=ClusterLimits(client)) as pool:
        there = set[object]()
        while len(there) < 2:  # the second one is still starting
            there = set(await asyncio.gather(pool(None), pool(None)))
        yield pool


async def ask_often(pool: Actors, server: Scripted, count: int) -> list[tuple[int, str]]:
    asked = (question(server.model, seed=number, max_tokens=100) for number in range(count))
    found = await asyncio.gather(*map(pool, asked))
    return [one for one in found if isinstance(one, tuple)]


async def test_actors_ask_no_faster_than_one_process_may(cluster: Cluster) -> None:
    arrived: list[float] = []

    def judge(seen: Seen) -> Raw:
        del seen
        arrived.append(time.monotonic())
        return verdict()

    async with scripted(judge) as server:
        client = ModelClient(ModelSettings(requests_per_minute=600.0))
        async with asking(client) as pool:
            begun = time.monotonic()
            ended = await ask_often(pool, server, 80)
    assert {said for _, said in ended} == {"answered"}
    assert len({process for process, _ in ended}) == 2
    # A tenth of a minute's worth at once, then ten a second.
    for number, at in enumerate(sorted(arrived), 1):
        assert number <= 60 + 10 * (at - begun) + 1
    assert client.ledger.summary().total(kind="call").count == 80


async def test_no_more_are_in_flight_from_all_actors_than_the_limit(cluster: Cluster) -> None:
    busy = most = 0
    together = asyncio.Barrier(4)

    async def hold() -> None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await together.wait()
        await asyncio.sleep(0.05)  # in which a fifth one would come
        busy -= 1

    async with scripted([verdict()]) as server:
        server.hold = hold
        client = ModelClient(ModelSettings(first_concurrency=4, max_concurrency=4))
        async with asking(client) as pool:
            ended = await ask_often(pool, server, 60)
    assert most == 4
    assert {said for _, said in ended} == {"answered"}
    assert len({process for process, _ in ended}) == 2
