"""A database that goes away: what was asked for fails at once and whole, and works again later."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from assay.endpoint.listening import ListeningLimits
from assay.errors import DamagedError, StoreError
from assay.sandbox.functions import tiers
from assay.scoring.json_safe import Json
from assay.server import problems, status, storage
from assay.server.app import context_of, create_app
from assay.server.context import ServerSettings
from assay.server.storage import Storage
from assay.store.database import Database
from assay.store.datasets import Datasets
from assay.store.jobs import JobRecord, Jobs
from assay.store.replies import Replies
from assay.store.scores import ScoreRecord
from tests.postgres import PostgresServer, shared_server
from tests.server_app import HERE, body_of, faults_of, items_of, serving

ITEMS: Json = {"items": [{"id": "1", "answer": "4", "expected": "4"}]}
SMALL = ServerSettings(location="", poll_seconds=0.02, job_batch=4, lease_seconds=300)


@pytest.fixture
def postgres(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    server = shared_server(request)
    yield server
    try:
        server.run("SELECT 1")
    except RuntimeError:  # it was killed, and the test ended there
        server.start()


@pytest.mark.slow
async def test_a_database_that_goes_away_takes_nothing_with_it_and_is_missed_by_nobody_later(
    postgres: PostgresServer,
) -> None:
    async with serving(postgres.address(postgres.emptied()), SMALL) as site:
        await site.made()
        await site.uploaded("d", [{"id": str(n), "answer": "4"} for n in range(40)])
        postgres.kill()
        for answer in (
            await site.post("graders/exact/grade", ITEMS, Idempotency_Key="k"),
            await site.post("jobs", {"grader": "exact", "dataset": "d"}, Idempotency_Key="j"),
            await site.get("graders"),
        ):
            _is_away(answer)
        ready = await site.get("/readyz")
        assert (ready.status_code, body_of(ready)["database"]) == (503, "away")
        assert (await site.get("/healthz")).status_code == 200

        postgres.start()
        again = await site.post("graders/exact/grade", ITEMS, Idempotency_Key="k")
        assert again.status_code == 200, "it recovers by itself"
        assert len(items_of(await site.get("scores"))) == 1
        made = await site.post("jobs", {"grader": "exact", "dataset": "d"}, Idempotency_Key="j")
        job = await site.ended(made)
        assert (job["status"], job["total"], job["done"]) == ("finished", 40, 40)
        assert len(items_of(await site.get("jobs"))) == 1


async def test_a_write_that_fails_half_way_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The score is written, its acknowledgement is not: neither is kept."""

    faults: list[Exception] = [
        StoreError("the disk is full", hint="postgresql://user:secret@db/x"),
        RuntimeError("a secret of ours"),
    ]

    def fail(*_: object) -> bool:
        raise faults[0]

    async with serving(str(tmp_path / "home"), SMALL) as site:
        await site.made()
        with monkeypatch.context() as patch:
            patch.setattr(Replies, "put", fail)
            failed = await site.post("graders/exact/grade", ITEMS, Idempotency_Key="k")
            _is_away(failed)
            del faults[0]
            broken = await site.post("graders/exact/grade", ITEMS, Idempotency_Key="k")
            assert broken.status_code == 500
            assert "secret" not in failed.text + broken.text, "the log tells it, not to strangers"
        assert items_of(await site.get("scores")) == []
        again = await site.post("graders/exact/grade", ITEMS, Idempotency_Key="k")
        assert again.status_code == 200
        assert len(items_of(await site.get("scores"))) == 1


async def test_a_store_that_cannot_be_opened_is_told_by_every_request(tmp_path: Path) -> None:
    async with serving(str(tmp_path / "home"), replace(SMALL, job_slots=0)) as site:
        await site.made()
        await site.with_store(Database.close)
        _is_away(await site.get("graders"))
        assert (await site.get("graders")).status_code == 200


async def test_a_job_outlives_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Jobs.add_scores
    calls: list[str] = []

    def sometimes(self: Jobs, job: str, scores: Sequence[tuple[int, ScoreRecord]]) -> JobRecord:
        calls.append(job)
        if len(calls) == 2:
            raise StoreError("the database went away")
        return real(self, job, scores)

    monkeypatch.setattr(Jobs, "add_scores", sometimes)
    async with serving(str(tmp_path / "home"), SMALL) as site:
        await site.made()
        await site.uploaded("d", [{"id": str(n), "answer": "4"} for n in range(12)])
        made = await site.post("jobs", {"grader": "exact", "dataset": "d"})
        job = await site.ended(made)
        assert (job["status"], job["total"], job["done"]) == ("finished", 12, 12)


async def test_a_file_that_was_removed_under_the_server_takes_no_more_scores(
    tmp_path: Path,
) -> None:
    """SQLite writes on to a file without a name; what it took would be gone with the process."""
    home = tmp_path / "home"
    async with serving(str(home), SMALL) as site:
        await site.made()
        (home / "assay.db").rename(home / "moved.db")
        _is_away(await site.post("graders/exact/grade", ITEMS))
        (home / "moved.db").rename(home / "assay.db")
        assert (await site.post("graders/exact/grade", ITEMS)).status_code == 200
        assert len(items_of(await site.get("scores"))) == 1


async def test_a_file_that_cannot_be_looked_at_for_a_while_ends_no_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that is no `StoreError` would end those that look for jobs, for good."""
    asked, stat = list[object](), os.stat

    def denied(path: Any, **more: Any) -> os.stat_result:
        if not str(path).endswith("assay.db"):
            return stat(path, **more)
        asked.append(path)
        raise PermissionError(errno.EACCES, "Permission denied")

    async with serving(str(tmp_path / "home"), SMALL) as site:
        await site.made()
        await site.uploaded("d", [{"id": "1", "answer": "4"}])
        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", denied)
            _is_away(await site.get("graders"))
            asked.clear()
            async with asyncio.timeout(20):
                while len(asked) < 2:  # noqa: ASYNC110 - nobody tells that they look for jobs
                    await asyncio.sleep(0.001)
        made = await site.post("jobs", {"grader": "exact", "dataset": "d"})
        assert (await site.ended(made))["status"] == "finished"


def _is_away(answer: httpx.Response) -> None:
    assert answer.status_code == 503, answer.text
    faults_of(answer)
    assert int(answer.headers["retry-after"]) > 0
    assert "postgresql://" not in answer.text


async def test_a_database_that_hangs_holds_up_neither_probes_nor_callers_nor_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.server.storage._CLOSING_SECONDS", 0.05)
    settings = ServerSettings(
        location="", poll_seconds=0.02, limits=ListeningLimits(grace_seconds=0.1)
    )
    frozen = threading.Event()
    async with serving(str(tmp_path), settings) as site:
        ready = await site.get("/readyz")
        assert (ready.status_code, body_of(ready)["database"]) == (200, "ok")
        # What answers has its time, on a busy machine too; from now on nothing does.
        monkeypatch.setattr(status, "_DEADLINE_SECONDS", 0.05)
        monkeypatch.setattr(context_of(site.app).storage, "_seconds", 0.1)
        hanging = asyncio.create_task(site.with_store(lambda _: frozen.wait(60)))
        await asyncio.sleep(0)
        not_ready, counts, graders = await asyncio.gather(
            site.get("/readyz"), site.get("/metrics"), site.get("graders")
        )
        assert (not_ready.status_code, body_of(not_ready)["database"]) == (503, "away")
        assert counts.status_code == 200
        assert graders.status_code == 503
        assert "does not answer" in str(body_of(graders)["detail"])
        with pytest.raises(StoreError):
            await hanging
        storage = context_of(site.app).storage
        threads = [one for one in threading.enumerate() if one.name == "assay-store"]
    frozen.set()
    for thread in threads:
        await asyncio.to_thread(thread.join, 20)
    assert storage._database is None  # closed late, but closed


def _damage(home: Path, how: str) -> None:
    """Fill a database, and damage it while nobody has it open."""
    with Database.open(str(home)) as database:
        rows: list[dict[str, Json]] = [{"answer": str(n) * 500} for n in range(3_000)]
        Datasets(database).create("default", "d", "", rows)
    file = home / "assay.db"
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    whole = file.read_bytes()
    middle = len(whole) // 2 // 4096 * 4096
    noise = random.Random(1).randbytes(16 * 4096)
    damaged = {
        "middle": whole[:middle] + noise + whole[middle + len(noise) :],
        "cut off": whole[:-8192],
    }
    file.write_bytes(damaged[how])


@pytest.mark.parametrize("how", ["middle", "cut off"])
async def test_a_damaged_database_is_not_served_as_ready_and_takes_nothing(
    tmp_path: Path, how: str
) -> None:
    _damage(tmp_path, how)
    app = create_app(replace(SMALL, location=str(tmp_path)))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=HERE) as client,
    ):
        ready = await client.get("/readyz")
        assert (ready.status_code, body_of(ready)["database"]) == (503, "damaged")
        asked = await client.get(
            "/api/v1/projects/default/datasets", headers={"Authorization": "Bearer x"}
        )
        assert asked.status_code == 503
        assert "damaged" in str(body_of(asked)["detail"])
        assert "retry-after" not in asked.headers


async def test_damage_that_is_met_later_ends_the_service_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object, **__: object) -> None:
        raise DamagedError("the store is damaged")

    async with serving(str(tmp_path), SMALL) as site:
        await site.uploaded("d", [{"answer": "4"}])
        with monkeypatch.context() as patch:
            patch.setattr(Datasets, "rows", damaged)
            assert (await site.get("datasets/d/rows")).status_code == 503
        assert (await site.get("datasets")).status_code == 503
        assert body_of(await site.get("/readyz"))["database"] == "damaged"


async def test_a_server_that_cannot_write_or_finds_no_sandbox_is_not_ready_and_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StoreError("database or disk is full")

    def broken() -> str:
        raise OSError(24, "Too many open files")

    async with serving(str(tmp_path)) as site:
        monkeypatch.setattr(tiers, "function_tier", broken)
        ready = await site.get("/readyz")
        assert (ready.status_code, body_of(ready)["sandbox"]) == (503, "")
        monkeypatch.undo()
        assert (await site.get("/readyz")).status_code == 200
        monkeypatch.setattr(Replies, "put", full)
        assert (await site.get("/readyz")).status_code == 503


async def test_a_request_waits_for_the_database_once_however_often_it_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, now, waits = Storage._ask, 0.0, list[float]()

    async def ask(self: Storage, thread: Any, work: Any, seconds: float) -> object:
        nonlocal now
        waits.append(seconds)
        now += min(seconds, 12.0)
        if seconds < 12.0:
            raise problems.SlowStoreError("the database does not answer")
        return await real(self, thread, work, seconds)

    async with serving(str(tmp_path), replace(SMALL, job_slots=0, poll_seconds=60)) as site:
        await site.made()
        async with site.client(await site.key("editor", "default")) as editor:
            monkeypatch.setattr(storage.time, "monotonic", lambda: now)
            monkeypatch.setattr(Storage, "_ask", ask)
            body = {"items": [{"answer": "4", "expected": "4"}], "record": False}
            answer = await editor.post(site.at("graders/exact/grade"), json=body)
            monkeypatch.undo()
        assert (answer.status_code, waits) == (503, [30.0, 18.0, 6.0])
        assert (await site.get("graders")).status_code == 200
