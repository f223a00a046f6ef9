"""`assay serve --engine ray`: jobs of a real server, graded by the actors of a real cluster."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import pytest

from assay.errors import GraderError
from assay.eval.cluster.actors import Actors
from assay.eval.cluster.joining import connected
from assay.eval.cluster.versions import _GradesVersions, _Request, frame  # what an actor is sent
from assay.registry.grading import grade_version
from assay.registry.policy import Permissions
from assay.scoring.json_safe import Json
from assay.store.catalog import Catalog, GraderVersion
from assay.store.database import Database
from assay.types.submission import Submission
from tests.children import until
from tests.command_line import assay
from tests.ray_cluster import raylets
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.real, pytest.mark.timeout(240), pytest.mark.filterwarnings("ignore")]

ROWS = [{"id": str(n), "answer": "x" * (n % 7), "expected": "xx"} for n in range(1, 1001)]
SLOW = """
import time
async def grade(thread):
    time.sleep(0.01)
    return float(len(thread.completion()) % 2)
"""


@pytest.fixture(scope="module")
def cluster(alone_with_ray: None) -> Generator[Any]:
    """A cluster of this machine."""
    with raylets(2) as found:
        yield found


@pytest.fixture
def address(cluster: Any) -> str:
    """Where it is."""
    return str(cluster.address)


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
        until(lambda: self.job(job)["status"] not in ("queued", "running"), 120.0)
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


@pytest.fixture
def site(tmp_path: Path, address: str) -> Generator[Site]:
    options = ("--engine", f"ray://{address}", "--set", "allow_internal_endpoints=true")
    with ServerProcess(tmp_path, None, *options) as server:
        found = Site(server)
        found.fill()
        yield found


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


def test_a_job_comes_to_what_it_comes_to_on_the_server_itself(site: Site, tmp_path: Path) -> None:
    cancelled = site.begin("slow")
    until(lambda: site.job(cancelled)["done"])
    assert site.ask(f"jobs/{cancelled}/cancel", b"")["status"] == "cancelled"
    job = site.begin("exact")
    assert (site.ended(job)["status"], site.job(job)["errors"]) == ("finished", 0)
    items = [(row["id"], Submission(answer=row["answer"], expected="xx")) for row in ROWS]
    here = asyncio.run(grade_version(version_of(tmp_path, "exact"), items, Permissions()))
    assert site.results(job) == {one.id: one.to_dict() for one in here}
    assert 0 < site.job(cancelled)["done"] < len(ROWS)
    child = hand(site)
    assert site.server.terminate() == 0
    assert not Path(f"/proc/{child}").exists()


def test_a_server_that_is_killed_or_loses_its_cluster_goes_on_with_the_rest(site: Site) -> None:
    job = site.begin("slow")
    until(lambda: site.job(job)["done"])
    child = hand(site)
    site.server.kill()
    until(lambda: not Path(f"/proc/{child}").exists())
    site.server.start()
    kept = site.job(job)["done"]
    assert 0 < kept < len(ROWS)
    until(lambda: site.job(job)["done"] > kept)
    until(lambda: site.counts()["workers"] == 2)
    counts = site.counts()
    assert counts["joined"] == 1
    assert 0 < counts["rows"] <= 64 * 2 * 2
    assert site.state() == ("ready", "joined")
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


def test_a_server_whose_cluster_is_gone_from_the_note_goes_back_to_it_and_begins_none(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ray").mkdir()
    noted = tmp_path / "ray" / "ray_current_cluster"
    noted.write_text(address)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with ServerProcess(tmp_path, None, "--engine", "ray") as server:
        site = Site(server)
        site.fill()
        noted.unlink()
        os.kill(hand(site), signal.SIGKILL)
        until(lambda: site.state() == ("ready", "away"))
        assert site.ended(site.begin("exact"))["status"] == "finished"
        assert site.state() == ("ready", "joined")
        assert not any(b"gcs_server" in one for one in children_of(hand(site)).values())


def test_a_machine_whose_code_differs_grades_nothing(address: str, tmp_path: Path) -> None:
    exact: dict[str, Json] = {"graders": [{"type": "exact_match"}]}
    with Database.open(str(tmp_path / ".assay")) as database:
        Catalog(database).create(
            "default", "exact", kind="declared", definition=exact, digest="0" * 64
        )
    request = _Request(version_of(tmp_path, "exact"), "0" * 64, [("1", Submission(answer="4"))])

    async def ask() -> object:
        with connected(f"ray://{address}"), Actors(_GradesVersions(Permissions()), 1) as pool:
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
