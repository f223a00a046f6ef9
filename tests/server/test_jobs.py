"""Jobs: graded in the background, each row once, whatever happens to the server meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import httpx
import pytest

from assay.errors import StoreError
from assay.scoring.json_safe import Json
from assay.server.app import context_of
from assay.server.context import Item, ServerSettings
from assay.server.events import _of_job
from assay.store.catalog import GraderVersion
from assay.store.database import Database
from assay.store.datasets import Datasets
from assay.store.jobs import JobRecord, Jobs
from tests.server.holding import before_grading
from tests.server_app import Site, body_of, items_of, serving

SMALL = ServerSettings(location="", poll_seconds=0.02, job_batch=4, heartbeat_seconds=0.05)


def rows(number: int) -> list[dict[str, Json]]:
    return [{"id": f"r{n}", "answer": str(n % 2), "expected": "1"} for n in range(1, number + 1)]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncGenerator[Site]:
    async with serving(str(tmp_path / "home"), SMALL) as running:
        await running.made()
        yield running


async def test_a_dataset_is_graded_row_by_row_and_its_end_is_told(location: str) -> None:
    async with serving(location, SMALL) as site:
        await site.made()
        odd: list[dict[str, Json]] = [*rows(9), {"id": "bad", "answer": "1"}]
        await site.uploaded("d", odd)
        made = await site.post("jobs", {"grader": "exact", "dataset": "d"})
        assert made.status_code == 202
        assert made.headers["location"] == f"/api/v1/projects/default/jobs/{body_of(made)['id']}"
        events = events_of(await site.admin.get(f"{made.headers['location']}/events"))
        name, job = events[-1]
        assert (name, job["status"], job["total"], job["done"], job["errors"]) == (
            "done", "finished", 10, 10, 1,
        )  # fmt: skip
        results = await everything(site, f"{made.headers['location']}/results")
        assert [str(one["item"]) for one in results] == [str(row["id"]) for row in odd]
        whole = await site.get(f"{made.headers['location']}/results", whole=True)
        stored = [cast("dict[str, Json]", one["record"]) for one in items_of(whole)]
        assert {str(one["job"]) for one in stored} == {str(job["id"])}
        assert [j["id"] for j in items_of(await site.get("jobs", status="finished"))] == [job["id"]]


async def test_a_client_that_has_seen_the_end_is_not_told_again(site: Site) -> None:
    await site.uploaded("d", rows(3))
    made = await site.post("jobs", {"grader": "exact", "dataset": "d"})
    path = f"{made.headers['location']}/events"
    told = await site.admin.get(path)
    last = [line[4:] for line in told.text.splitlines() if line.startswith("id: ")][-1]
    again = await site.admin.get(path, headers={"Last-Event-ID": last})
    assert (again.status_code, again.content) == (204, b"")
    earlier = await site.admin.get(path, headers={"Last-Event-ID": "running-1"})
    assert [name for name, _ in events_of(earlier)] == ["done"]
    other = await site.in_new_project()
    assert (await other.get(f"jobs/{body_of(made)['id']}/events")).status_code == 404


def test_an_event_has_another_id_for_another_reason_to_wait() -> None:
    job = JobRecord(
        id="1", project="p", grader="exact", version=1, dataset="d", status="running", done=4
    )
    told = [_of_job(replace(job, message=why)).id for why in ("", "it is away", "it is full")]
    assert len(set(told)) == 3
    assert _of_job(replace(job, message="it is full", updated_at="later")).id == told[2]


async def test_a_job_that_was_left_half_done_grades_only_the_rest(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(location, SMALL) as site:
        await site.made()
        await site.uploaded("d", rows(10))
    graded: list[str] = []
    async with serving(location, SMALL) as site:
        stop = context_of(site.app).stopping.set

        async def note(_version: GraderVersion, items: Sequence[Item]) -> None:
            graded.extend(name for name, _ in items)
            if len(graded) == 8:
                loop.call_soon_threadsafe(stop)  # as a signal does: while a batch is in flight
                loop.call_soon_threadsafe(reached.set)

        loop, reached = asyncio.get_running_loop(), asyncio.Event()
        before_grading(monkeypatch, note)
        made = await site.post("jobs", {"grader": "exact", "dataset": "d"})
        await asyncio.wait_for(reached.wait(), 20)
    async with serving(location, SMALL) as site:
        job = await site.ended(made)
        assert (job["status"], job["done"]) == ("finished", 10)
        results = await everything(site, f"{made.headers['location']}/results")
        assert len(results) == 10
    assert graded == [f"r{n}" for n in range(1, 11)], "each row once, in order"


async def test_a_job_whose_server_died_is_taken_over_when_its_lease_ends(tmp_path: Path) -> None:
    location = str(tmp_path / "home")
    idle = ServerSettings(location="", job_slots=0)
    async with serving(location, idle) as site:
        await site.made()
        await site.uploaded("d", rows(5))
        made = await site.post("jobs", {"grader": "exact", "dataset": "d"})
        long_ago = datetime.now(UTC) - timedelta(minutes=5)
        claimed = await site.with_store(lambda db: Jobs(db).claim("the dead", 30, long_ago))
        assert claimed is not None
    async with serving(location, SMALL) as site:
        assert (await site.ended(made))["status"] == "finished"


async def test_a_cancelled_job_stops_and_keeps_what_it_has(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.uploaded("d", rows(40))
    loop, reached, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    batches: list[int] = []

    async def hold(_version: GraderVersion, items: Sequence[Item]) -> None:
        batches.append(len(items))
        if len(batches) == 2:
            loop.call_soon_threadsafe(reached.set)
            await asyncio.to_thread(go_on.wait, 20)

    before_grading(monkeypatch, hold)
    made = await site.post("jobs", {"grader": "exact", "dataset": "d"})
    await asyncio.wait_for(reached.wait(), 60)
    cancelled = await site.post(f"{made.headers['location']}/cancel", None)
    assert (cancelled.status_code, body_of(cancelled)["status"]) == (200, "cancelled")
    go_on.set()
    job = body_of(await site.get(made.headers["location"]))
    assert (job["status"], job["done"]) == ("cancelled", 4)
    assert (await site.post(f"{made.headers['location']}/cancel", None)).status_code == 200


async def test_a_job_that_is_deleted_while_it_is_graded_ends_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, reached, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    async def hold(*_: object) -> None:
        loop.call_soon_threadsafe(reached.set)
        await asyncio.to_thread(go_on.wait, 60)

    async with serving(str(tmp_path / "home"), replace(SMALL, job_slots=1)) as site:
        await site.made()
        await site.uploaded("d", rows(2))
        with monkeypatch.context() as patch:
            before_grading(patch, hold)
            first = (await site.post("jobs", {"grader": "exact", "dataset": "d"})).headers
            await asyncio.wait_for(reached.wait(), 60)
            await site.post(f"{first['location']}/cancel", None)
            assert (await site.admin.delete(first["location"])).status_code == 204
            go_on.set()
        second = await site.post("jobs", {"grader": "exact", "dataset": "d"})
        assert (await site.ended(second))["status"] == "finished"
        told = (await site.get("/metrics")).text
        assert 'status="failed"' not in told


async def test_a_damaged_row_is_an_error_of_that_row(site: Site) -> None:
    await site.uploaded("d", rows(3))

    def damage(database: Database) -> None:
        with database.writing():
            database.change("DROP TRIGGER rows_are_fixed")  # a disk asks no trigger
            database.change("UPDATE dataset_row SET data = ? WHERE number = 2", '{"answer": "4')

    await site.with_store(damage)
    made = await site.post("jobs", {"grader": "exact", "dataset": "d"})
    job = await site.ended(made)
    assert (job["status"], job["done"], job["errors"]) == ("finished", 3, 1)
    (_, wrong, _) = await everything(site, f"{made.headers['location']}/results")
    assert "damaged" in str(wrong["why"])


async def test_a_job_that_breaks_or_whose_store_fails_again_and_again_ends_no_other(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.uploaded("d", rows(2))

    async def graded() -> tuple[Json, str]:
        made = await site.post("jobs", {"grader": "exact", "dataset": "d"})
        job = await site.ended(made)
        return job["status"], str(job["message"])

    async def breaking(*_: object) -> None:
        raise ZeroDivisionError

    def malformed(*_: object, **__: object) -> None:
        raise StoreError("database disk image is malformed")

    with monkeypatch.context() as patch:
        before_grading(patch, breaking)
        assert await graded() == ("failed", "an error of ours: ZeroDivisionError")
    with monkeypatch.context() as patch:
        patch.setattr(Datasets, "rows", malformed)
        status, message = await graded()
        assert (status, "none stored a score" in message) == ("failed", True)
    assert (await graded())[0] == "finished"


async def everything(site: Site, path: str) -> list[dict[str, Json]]:
    """All pages of a list."""
    found: list[dict[str, Json]] = []
    cursor: Json = ""
    while cursor is not None:
        query: dict[str, str | int] = {"limit": 4, **({"after": str(cursor)} if cursor else {})}
        answer = await site.get(path, **query)
        found += items_of(answer)
        cursor = body_of(answer)["next"]
    return found


def events_of(answer: httpx.Response) -> list[tuple[str, dict[str, Json]]]:
    """The events of a stream that has ended."""
    assert answer.headers["content-type"].startswith("text/event-stream"), answer.text
    found: list[tuple[str, dict[str, Json]]] = []
    for block in answer.text.split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in block.splitlines() if line[:1] not in ("", ":")
        )
        if "data" in fields:
            found.append((fields["event"], cast("dict[str, Json]", json.loads(fields["data"]))))
    return found
