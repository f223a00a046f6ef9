"""Several processes on one database: nothing is lost, nothing is done twice, and any may be killed.

These start real processes: whether a transaction is whole, and whether a lock waits, is decided
between a process and the kernel and cannot be seen from inside one.
"""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from assay.errors import StoreError
from assay.store import Catalog, Database, Datasets, Jobs, Projects, RunRecord, Store, sqlite
from assay.store.pages import Stretch
from tests.children import Children
from tests.postgres import shared_server

_VERSIONS = """
import sys
from assay.errors import ConflictError
from assay.store import Catalog, Database

with Database.open(sys.argv[1]) as database:
    catalog = Catalog(database)
    sys.stdin.readline()
    for number in range(20):
        while True:
            latest = catalog.get("default", "g").latest
            count = {"count": latest.definition["count"] + 1}
            try:
                catalog.add_version(
                    "default", "g", kind="x", definition=count, digest=f"{sys.argv[2]}-{number}",
                    expected=latest.number,
                )
                break
            except ConflictError:
                pass
    for number in range(20):
        catalog.add_version(
            "default", "h", kind="x", definition={}, digest=f"{sys.argv[2]}-{number}"
        )
"""

_CLAIMS = """
import json, sys
from datetime import UTC, datetime
from assay.store import Database, Jobs

with Database.open(sys.argv[1]) as database:
    jobs, claimed = Jobs(database), []
    sys.stdin.readline()
    while job := jobs.claim(sys.argv[2], 60, datetime.now(UTC)):
        claimed.append(job.id)
    print(json.dumps(claimed))
"""

_SCORES = """
import sys
from assay.scoring.graded import Graded
from assay.store import Database, Jobs, ScoreRecord

with Database.open(sys.argv[1]) as database:
    jobs, job = Jobs(database), sys.argv[2]
    known = jobs.graded_rows(job)
    missing = [number for number in range(1, jobs.get(job).total + 1) if number not in known]
    sys.stdin.readline()
    for start in range(0, len(missing), 10):
        scores = []
        for number in missing[start : start + 10]:
            graded = Graded(
                id=str(number), status="scored", score=number / 7, grader="g@1",
                details={"output": str(number) * 500},
            )
            scores.append((number, ScoreRecord(item=str(number), graded=graded)))
        print(jobs.add_scores(job, scores).done, flush=True)
"""


_WRITER = """
import sys
from assay.store import CellRecord, RunRecord, Store

home, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Store.open(home) as store:
    if name == "killed":
        store.create_run(RunRecord(id="r1", created_at="2026-11-21T09:08:30Z"))
    for trial in range(1, count + 1):
        cell = CellRecord(
            run_id="r1", case=name, trial=trial, status="graded", reward=1.0, passed=True,
            answer=str(trial) * 1000,
        )
        store.add_cell(cell, {"trial": trial, "trace": [str(trial)] * 2000}, f"{trial:064}")
        print(trial, flush=True)
"""

_OPENER = """
import sys
from assay.store import Database

sys.stdin.readline()
for location in sys.argv[1:]:
    Database.open(location).close()
"""


@pytest.fixture
def graders(location: str) -> str:
    """Where a database is that has two graders."""
    with Database.open(location) as database:
        for key in ("g", "h"):
            Catalog(database).create(
                "default", key, kind="x", definition={"count": 0}, digest="first"
            )
    return location


def _start(children: Children, program: str, *arguments: str) -> subprocess.Popen[str]:
    return children.start([sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE)


def _together(*processes: subprocess.Popen[str]) -> list[str]:
    """What processes print that were told to begin at once, and that all ended well."""
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    printed: list[str] = []
    for process in processes:
        said, complaints = process.communicate()
        assert (process.returncode, complaints) == (0, "")
        printed.append(said)
    return printed


@pytest.mark.parametrize("after", [1, 40])
def test_a_killed_process_leaves_whole_cells_only(
    tmp_path: Path, after: int, children: Children
) -> None:
    with _start(children, _WRITER, str(tmp_path), "killed", "1000000") as writer:
        assert writer.stdout
        for line in writer.stdout:
            if int(line) == after:
                break
        writer.send_signal(signal.SIGKILL)
        said = [after, *(int(line) for line in writer.stdout if line.endswith("\n"))]
        assert writer.wait() == -signal.SIGKILL
    with Store.open(str(tmp_path)) as store:
        cells = list(store.cells("r1"))
        # Whatever was reported as stored is there; the one in flight may be, too.
        assert len(cells) - said[-1] in (0, 1)
        for trial, cell in enumerate(cells, start=1):
            assert cell.trial == trial
            assert cell.answer == str(trial) * 1000
            assert store.detail("r1", cell.key)["trace"] == [str(trial)] * 2000
        snapshots = store._database.rows("SELECT snapshot FROM newest ORDER BY trial")
        assert snapshots == [(f"{trial:064}",) for trial in range(1, len(cells) + 1)]
        assert store.finished("r1") == {cell.key for cell in cells}
        assert store._database.rows("PRAGMA integrity_check") == [("ok",)]


def test_two_processes_write_at_once_and_nothing_is_lost(
    tmp_path: Path, children: Children
) -> None:
    with Store.open(str(tmp_path)) as store:
        store.create_run(RunRecord(id="r1", created_at="2026-11-21T09:08:30Z"))
        _together(*(_start(children, _WRITER, str(tmp_path), name, "300") for name in "ab"))
        assert store.cell_count("r1") == 600
        assert all(
            store.detail("r1", cell.key)["trial"] == cell.trial for cell in store.cells("r1")
        )


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def test_processes_that_open_new_databases_at_once_do_not_collide(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, children: Children
) -> None:
    places = [str(tmp_path / f"{number}") for number in range(40)]
    if kind == "postgres":
        server = shared_server(request)
        places = [server.address(server.new_database()) for _ in range(3)]
    _together(*(_start(children, _OPENER, *places) for _ in range(4)))


def test_two_that_add_versions_at_once_lose_none(graders: str, children: Children) -> None:
    _together(*(_start(children, _VERSIONS, graders, name) for name in "ab"))
    with Database.open(graders) as database:
        for key in ("g", "h"):
            versions = Catalog(database).versions("default", key, Stretch(100))
            assert [version.number for version in versions] == list(range(41, 0, -1))
            assert len({version.digest for version in versions}) == 41
        # What each made of the newest version rests on it: no change was made to an older one.
        assert Catalog(database).get("default", "g").latest.definition == {"count": 40}


def test_two_workers_never_claim_the_same_job(graders: str, children: Children) -> None:
    with Database.open(graders) as database:
        Datasets(database).create("default", "d", "", [{"answer": "a"}])
        made = [Jobs(database).create("default", grader="g", dataset="d").id for _ in range(60)]
    claimed = _together(*(_start(children, _CLAIMS, graders, name) for name in ("a", "b")))
    assert sorted(job for ids in claimed for job in json.loads(ids)) == sorted(made)


def test_a_killed_worker_leaves_whole_batches_and_another_one_finishes(
    graders: str, children: Children
) -> None:
    with Database.open(graders) as database:
        Datasets(database).create("default", "d", "", ({"answer": str(n)} for n in range(400)))
        job = Jobs(database).create("default", grader="g", dataset="d").id
        with _start(children, _SCORES, graders, job) as worker:
            assert worker.stdin
            assert worker.stdout
            worker.stdin.write("go\n")
            worker.stdin.flush()
            said = [int(worker.stdout.readline()) for _ in range(7)][-1]
            worker.send_signal(signal.SIGKILL)
            said = max([said, *(int(line) for line in worker.stdout if line.endswith("\n"))])
        jobs = Jobs(database)
        stored = jobs.get(job).done
        assert stored - said in (0, 10)  # the batch in flight may be there, too
        assert jobs.graded_rows(job) == set(range(1, stored + 1))
        _together(
            *(_start(children, _SCORES, graders, job) for _ in range(2))
        )  # both grade what is missing
        assert jobs.graded_rows(job) == set(range(1, 401))
        results = jobs.results(job, Stretch(1_000))
        assert sorted(float(record.graded.score or 0) for record in results) == [
            number / 7 for number in range(1, 401)
        ]
        assert jobs.finish(job, "finished").done == 400


def test_a_file_that_another_process_holds_is_said_to_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, children: Children
) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.05)
    holder = "import sqlite3, sys\nfile = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
    holder += "file.execute('BEGIN IMMEDIATE')\nprint(flush=True)\nsys.stdin.readline()\n"
    with (
        Database.open(tmp_path) as database,
        _start(children, holder, str(tmp_path / "assay.db")) as other,
    ):
        assert other.stdin
        assert other.stdout
        other.stdout.readline()
        with pytest.raises(StoreError, match=r"is locked by another process.*end the process"):
            Projects(database).create("p")
        assert [project.key for project in Projects(database).all()] == ["default"]
        other.communicate("done\n", timeout=60)
        assert Projects(database).create("p")
    file = sqlite3.connect(tmp_path / "assay.db")
    assert file.execute("SELECT count(*) FROM project").fetchone() == (2,)
    file.close()
