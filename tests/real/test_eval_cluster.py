"""Rows, shards and a server's jobs graded by actors, on a cluster of several raylets that die."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Generator
from functools import partial
from operator import call
from pathlib import Path
from typing import Any, cast

import pytest

from assay.errors import GraderError, InputError, MissingExtraError
from assay.eval.cluster.actors import Actors, EndsWorkersError
from assay.eval.cluster.joining import Cluster, connected, engine_address
from assay.eval.cluster.ray_parts import Parts, require_head
from assay.eval.cluster.sent_graders import SentGraders
from assay.eval.cluster.versions import _GradesVersions, _Request, frame  # what an actor is sent
from assay.eval.rows.directory_sink import PartDirectory
from assay.eval.rows.recorded import grade_rows, plan_rows
from assay.graders.spec import GraderSpec
from assay.registry.grading import grade_version
from assay.registry.policy import Permissions
from assay.scoring.json_safe import Json
from assay.shown import Ended
from assay.store.catalog import Catalog, GraderVersion
from assay.store.database import Database
from assay.tasks.grader_files import load_graders
from assay.types.submission import Submission
from tests.children import until
from tests.command_line import assay
from tests.ray_cluster import MEMORY, raylets
from tests.server_process import ServerProcess
from tests.written_files import write_rows

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.filterwarnings("ignore")]

_OWN = """
import os
from pathlib import Path
from assay.graders import Grader

class Own(Grader):
    @classmethod
    def compute_score(cls, answer):
        with (Path(__file__).parent / "log").open("a") as log:
            log.write(f"{os.getpid()}\\n")
        if answer == "poison" and (Path(__file__).parent / "armed").exists():
            os._exit(3)
        return float(len(answer) % 2)
"""


@pytest.fixture(scope="module")
def found(alone_with_ray: None) -> Generator[Any]:
    """A head without cores and two machines with one each."""
    with raylets(0) as found:
        for _ in range(2):
            _join(found)
        found.wait_for_nodes()
        yield found


@pytest.fixture(scope="module")
def cluster(found: Any) -> Generator[Cluster]:
    with connected(f"ray://{found.address}") as joined:
        yield joined


def _join(found: Any) -> Any:
    place = found.head_node.get_temp_dir_path()
    return found.add_node(num_cpus=1, object_store_memory=MEMORY, temp_dir=place)


def _data(root: Path, poison: int = -1, many: int = 600) -> tuple[str, tuple[GraderSpec, ...]]:
    rows = [
        {"id": str(n), "answer": "poison" if n == poison else "x" * (n % 7)} for n in range(many)
    ]
    write_rows(root / "rows.jsonl", rows)
    (root / "own.py").write_text(_OWN, "utf-8")
    (root / "g.yaml").write_text("- type: python:./own.py:Own\n", "utf-8")
    return str(root / "rows.jsonl"), load_graders(str(root / "g.yaml"), alone=True)


def _parts(directory: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in (directory / "parts").glob("[0-9]*")}


def test_nothing_is_lost_or_otherwise_when_an_actor_and_a_machine_die(
    tmp_path: Path, found: Any, cluster: Cluster
) -> None:
    data, graders = _data(tmp_path)
    with plan_rows(data, graders, PartDirectory(str(tmp_path / "here"), rows=20)) as plan:
        asyncio.run(grade_rows(plan, workers=1))
    (tmp_path / "log").unlink()
    told: list[int] = []

    def on_ended(ended: Counter[Ended]) -> None:
        told.append(ended.total())
        if len(told) == 3:
            pids = (tmp_path / "log").read_text("utf-8").split()
            os.kill(int(pids[-1]), signal.SIGKILL)
        if len(told) == 8:
            found.remove_node(next(iter(found.worker_nodes)), allow_graceful=False)
            _join(found)

    with plan_rows(data, graders, PartDirectory(str(tmp_path / "there"), rows=20)) as plan:
        asyncio.run(grade_rows(plan, on_ended=on_ended, cluster=cluster))
    assert told == [20] * 30
    assert _parts(tmp_path / "there") == _parts(tmp_path / "here")


def test_a_row_over_which_workers_die_is_an_error_and_its_siblings_are_graded(
    tmp_path: Path, cluster: Cluster
) -> None:
    data, graders = _data(tmp_path, poison=33, many=60)
    (tmp_path / "armed").touch()
    to = PartDirectory(str(tmp_path / "there"), rows=8)
    with plan_rows(data, graders, to) as plan:
        asyncio.run(grade_rows(plan, cluster=cluster))
        tally = to.tally()
    assert (tally.rows, tally.errors) == (60, 1)
    lines = b"".join(_parts(tmp_path / "there").values()).splitlines()
    failed = [row for row in map(json.loads, lines) if row["grade"]["status"] == "error"]
    assert [row["id"] for row in failed] == ["33"]
    assert failed[0]["grade"]["reward"] is None
    assert "3 workers died over it" in failed[0]["grade"]["error"]


def test_a_request_that_hangs_is_given_up(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask() -> None:
        with Actors(time.sleep, 1, patience=1.5) as pool:
            await pool(0)
            with monkeypatch.context() as patch:
                patch.setattr("assay.eval.cluster.actors._DEATHS", 1)
                with pytest.raises(EndsWorkersError):
                    await pool(600)
            await pool(0)

    asyncio.run(ask())


def test_an_actor_whose_loop_stands_still_is_ended_and_one_that_waits_is_not(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.eval.cluster.actors.SLOW_SECONDS", 4.0)
    monkeypatch.setattr("assay.eval.cluster.actors._ASK_SECONDS", 0.0)

    async def ask() -> None:
        with Actors(call, 1, depth=2) as pool:
            await pool(partial(asyncio.sleep, 9))
            monkeypatch.setattr("assay.eval.cluster.actors._DEATHS", 1)
            with pytest.raises(EndsWorkersError):
                await pool(partial(time.sleep, 600))

    asyncio.run(ask())


def test_it_is_said_once_and_then_an_error_that_no_worker_finds_room(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("assay.eval.cluster.actors._SAID_SECONDS", 0.0)

    async def ask() -> None:
        with Actors(abs, 2) as holding:
            await asyncio.gather(*(holding(-1) for _ in range(2)))
            await asyncio.to_thread(until, lambda: holding.ready == 2)
            monkeypatch.setattr("assay.eval.cluster.actors._START_SECONDS", 3.0)
            caplog.clear()
            with Actors(abs, 1) as pool:
                await pool(-1)

    with pytest.raises(GraderError, match="no worker has found room") as told:
        asyncio.run(ask())
    # A machine that died in another test may still be counted.
    assert re.search("the cluster has [23] cores, 0 of them free", told.value.message)
    assert "a firewall" in told.value.hint
    assert ["no worker has found room" in said for said in caplog.messages] == [True]


def test_a_machine_that_does_not_see_the_data_is_named(tmp_path: Path, cluster: Cluster) -> None:
    data, graders = _data(tmp_path)
    with plan_rows(data, graders, PartDirectory(str(tmp_path / "there"), rows=100)) as plan:
        Path(data).unlink()
        with pytest.raises(Exception, match=r"node .* cannot be read there") as told:
            asyncio.run(grade_rows(plan, workers=1, cluster=cluster))
    assert "rows.jsonl" in str(told.value)


def test_another_version_of_assay_is_refused(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.eval.cluster.actors.__version__", "9.9")

    async def ask() -> None:
        with Actors(abs, 1) as pool:
            await pool(-1)

    with pytest.raises(Exception, match=r"node .* has assay .*, and 9\.9 is"):
        asyncio.run(ask())


async def test_parts_of_a_cluster_are_asked_at_once() -> None:
    is_asked = asyncio.Event()

    async def head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await is_asked.wait()  # the other part is asked before this one answers
        await answer(reader, writer)

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_asked.set()
        writer.write(b"\0\0\0\x04")
        writer.close()
        await writer.wait_closed()

    async with (
        await asyncio.start_server(head, "127.0.0.1", 0) as first,
        await asyncio.start_server(answer, "127.0.0.1", 0) as second,
    ):
        ports = [one.sockets[0].getsockname()[1] for one in (first, second)]
        parts = Parts(*(f"127.0.0.1:{port}" for port in ports))
        assert await asyncio.wait_for(parts.answer(), 60)


def test_files_of_graders_travel(tmp_path: Path) -> None:
    (tmp_path / "grade.py").write_text("async def grade(thread): return 1.0\n", "utf-8")
    (tmp_path / "g.yaml").write_text("- {type: function, file: grade.py}\n", "utf-8")
    sent = SentGraders.of(load_graders(str(tmp_path / "g.yaml"), alone=True))
    (tmp_path / "grade.py").unlink()
    place = tmp_path / "elsewhere"
    (spec,) = sent.unpacked(str(place))
    assert str(spec.options["file"]) == f"{place}{tmp_path}/grade.py"


def test_where_no_cluster_is_or_no_ray_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="Ray's client"):
        require_head("127.0.0.1:10001")
    with pytest.raises(InputError, match=r"no Ray cluster at 127\.0\.0\.1:1"):
        require_head("127.0.0.1:1")
    with pytest.raises(InputError, match="is no engine"):
        engine_address("ray://x")
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"assay\[ray\]"), connected("ray"):
        pass


# `assay serve --engine ray`: jobs of a real server.


ROWS = [{"id": str(n), "answer": "x" * (n % 7), "expected": "xx"} for n in range(1, 501)]
SLOW = """
import time
async def grade(thread):
    time.sleep(0.02)
    return float(len(thread.completion()) % 2)
"""


class Site:
    """What is asked of a server that grades jobs on the cluster."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server

    def ask(self, path: str, body: bytes | Json = None, kind: str = "json") -> dict[str, Any]:
        sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        asked = urllib.request.Request(
            f"{self.server.url}/api/v1/projects/default/{path}",
            sent,
            {**self.server.headers, "Content-Type": f"application/{kind}"},
        )
        with urllib.request.urlopen(asked) as reply:
            return cast("dict[str, Any]", json.load(reply))

    def fill(self) -> None:
        exact: Json = {"graders": [{"type": "exact_match"}]}
        self.ask("graders", {"key": "exact", "kind": "declared", "definition": exact})
        self.ask("graders", {"key": "slow", "kind": "function", "definition": {"source": SLOW}})
        self.ask("datasets/d", "".join(json.dumps(row) + "\n" for row in ROWS).encode(), "x-ndjson")

    def counts(self) -> dict[str, float]:
        """What is told of the cluster."""
        with urllib.request.urlopen(f"{self.server.url}/metrics") as reply:
            lines = reply.read().decode().splitlines()
        words = [line.split() for line in lines if line.startswith("assay_cluster_")]
        return {name.removeprefix("assay_cluster_"): float(number) for name, number in words}

    def state(self) -> tuple[str, str]:
        """Whether the server is ready, and how the cluster is."""
        with urllib.request.urlopen(f"{self.server.url}/readyz") as reply:
            found = json.load(reply)
        return found["status"], found["cluster"]

    def begin(self, grader: str, dataset: str = "d") -> str:
        return str(self.ask("jobs", {"grader": grader, "dataset": dataset})["id"])

    def job(self, job: str) -> dict[str, Any]:
        return self.ask(f"jobs/{job}")

    def waiting(self, job: str) -> dict[str, Any]:
        """The job as it is told first that it waits: it may go on at once."""
        seen: list[dict[str, Any]] = []

        def waits() -> object:
            seen.append(self.job(job))
            return seen[-1]["message"]

        until(waits)
        return seen[-1]

    def ended(self, job: str) -> dict[str, Any]:
        until(lambda: self.job(job)["status"] not in ("queued", "running"), 120.0, every=0.1)
        return self.job(job)

    def results(self, job: str) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        cursor: str | None = ""
        while cursor is not None:
            page = self.ask(
                f"jobs/{job}/results?whole=true&limit=200" + (cursor and f"&after={cursor}")
            )
            for one in page["items"]:
                assert one["item"] not in found, "each row once"
                found[one["item"]] = one["record"]["graded"]
            cursor = page["next"]
        return found


def version_of(home: Path, key: str) -> GraderVersion:
    with Database.open(str(home / ".assay")) as database:
        return Catalog(database).version("default", key, 1)


def hand(site: Site) -> int:
    """The process by which the server is part of the cluster."""
    return child_of(site.server.pid, b"cluster.versions")


def child_of(parent: int, mark: bytes) -> int:
    """The child of a process that has something in its command line."""
    (found,) = [pid for pid, line in children_of(parent).items() if mark in line]
    return found


def children_of(parent: int) -> dict[int, bytes]:
    """The command lines of the children of a process."""
    children = Path(f"/proc/{parent}/task").glob("*/children")
    pids = [int(pid) for listed in children for pid in listed.read_text().split()]
    return {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids}


def test_a_servers_jobs_are_those_of_a_server_alone_whatever_is_killed_or_lost(
    tmp_path: Path, found: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cluster is noted, and then no more: it goes back to that one, and begins none."""
    (tmp_path / "ray").mkdir()
    noted = tmp_path / "ray" / "ray_current_cluster"
    noted.write_text(str(found.address))
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    options = ("--engine", "ray", "--set", "allow_internal_endpoints=true")
    with ServerProcess(tmp_path, None, *options) as server:
        site = Site(server)
        site.fill()
        _is_killed_and_loses_its_cluster(site, noted)
        assert site.state() == ("ready", "joined")
        assert not any(b"gcs_server" in one for one in children_of(hand(site)).values())
        _cancels_and_grades(site, tmp_path)
        child = hand(site)
        assert server.terminate() == 0
        assert not Path(f"/proc/{child}").exists()


def _is_killed_and_loses_its_cluster(site: Site, noted: Path) -> None:
    """It goes on with the rest."""
    job = site.begin("slow")
    until(lambda: site.job(job)["done"], every=0.05)
    child = hand(site)
    site.server.kill()
    until(lambda: not Path(f"/proc/{child}").exists())
    site.server.start()
    kept = site.job(job)["done"]
    assert 0 < kept < len(ROWS)
    until(lambda: site.job(job)["done"] > kept, every=0.05)
    until(lambda: site.counts()["workers"] == 2, every=0.05)
    counts = site.counts()
    assert counts["joined"] == 1
    # Ray may still count a third machine that another test took away.
    assert 0 < counts["rows"] <= 64 * 2 * 3
    assert site.state() == ("ready", "joined")
    noted.unlink()
    os.kill(hand(site), signal.SIGKILL)
    waiting = site.waiting(job)
    assert site.counts() == {"joined": 0, "workers": 0, "rows": 0}
    assert site.state() == ("ready", "away")
    assert (waiting["status"], waiting["errors"]) == ("running", 0)
    assert waiting["message"] == "waits for the cluster: the connection to it was lost"
    ended = site.ended(job)
    assert (ended["status"], ended["done"], ended["errors"], ended["message"]) == (
        "finished", len(ROWS), 0, "",
    )  # fmt: skip
    assert {one["score"] for one in site.results(job).values()} == {0.0, 1.0}


def _cancels_and_grades(site: Site, home: Path) -> None:
    """What it comes to is what it comes to on the server itself."""
    cancelled = site.begin("slow")
    until(lambda: site.job(cancelled)["done"], every=0.05)
    assert site.ask(f"jobs/{cancelled}/cancel", b"")["status"] == "cancelled"
    job = site.begin("exact")
    assert (site.ended(job)["status"], site.job(job)["errors"]) == ("finished", 0)
    items = [(row["id"], Submission(answer=row["answer"], expected="xx")) for row in ROWS]
    here = asyncio.run(grade_version(version_of(home, "exact"), items, Permissions()))
    assert site.results(job) == {one.id: one.to_dict() for one in here}
    assert 0 < site.job(cancelled)["done"] < len(ROWS)


def test_a_machine_whose_code_differs_grades_nothing(cluster: Cluster, tmp_path: Path) -> None:
    exact: dict[str, Json] = {"graders": [{"type": "exact_match"}]}
    with Database.open(str(tmp_path / ".assay")) as database:
        Catalog(database).create(
            "default", "exact", kind="declared", definition=exact, digest="0" * 64
        )
    request = _Request(version_of(tmp_path, "exact"), "0" * 64, [("1", Submission(answer="4"))])

    async def ask() -> object:
        with Actors(_GradesVersions(Permissions()), 1) as pool:
            return await pool(request)

    refused = asyncio.run(ask())
    assert isinstance(refused, GraderError)
    assert "is not the same there: its code differs" in refused.message


def test_what_joins_for_a_server_that_ended_before_it_said_a_word_ends_quietly() -> None:
    words = [sys.executable, "-c", "from assay.eval.cluster.versions import serve; serve()"]
    for said in (b"", frame(0, b"half of it")[:-4]):
        done = subprocess.run(words, input=said, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


def test_a_server_does_not_start_without_its_cluster(tmp_path: Path) -> None:
    done = assay("serve", "--port", "0", "--engine", "ray://127.0.0.1:1", cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no Ray cluster at 127.0.0.1:1" in done.stderr
    assert "ray start --head" in done.stderr
