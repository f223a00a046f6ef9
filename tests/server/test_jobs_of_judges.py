"""Jobs whose graders wait for models: what was judged is stored as it comes, and asked once."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from assay.models import Request, register_model
from assay.scoring.json_safe import Json
from assay.server.app import context_of
from assay.server.context import ServerSettings
from assay.service.job_work import Outcomes
from assay.store.database import Database
from assay.store.jobs import Jobs
from tests.judge_models import answer_in
from tests.server_app import Site, body_of, serving

QUICK = ServerSettings(location="", poll_seconds=0.02, job_batch=4, lease_seconds=1.0)
MODEL = "held-judge"


class HeldJudge:
    """A judge that answers at once, but for rows that it is told to hold.

    Attributes:
        asked: How often it was asked about each answer.
        holds: Answers that wait until `go`.
    """

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.holds: set[str] = set()
        self.go = threading.Event()
        self._changed = threading.Condition()

    async def reached(self, times: int) -> None:
        """Wait until it was asked so often."""

        def wait() -> bool:
            with self._changed:
                return self._changed.wait_for(lambda: self.asked.total() >= times, 20)

        assert await asyncio.to_thread(wait)

    async def __call__(self, request: Request) -> str:
        answer = answer_in(request)
        with self._changed:
            self.asked[answer] += 1
            self._changed.notify_all()
        if answer in self.holds:
            await asyncio.to_thread(self.go.wait, 20)
        return json.dumps({"evidence": [answer], "reasoning": "as it says", "score": "PASS"})


@pytest.fixture
async def judge() -> AsyncGenerator[HeldJudge]:
    made = HeldJudge()
    register_model(MODEL, made)
    yield made
    made.go.set()
    register_model(MODEL, None)


async def begun(site: Site, number: int) -> str:
    """A job of so many rows; its place."""
    definition: Json = {"criteria": "It says something", "judge_model": MODEL}
    body: Json = {"key": "says", "kind": "binary_judge", "definition": definition}
    assert (await site.post("graders", body)).status_code == 201
    await site.uploaded("d", [{"id": f"r{n}", "answer": f"word {n}"} for n in range(number)])
    made = await site.post("jobs", {"grader": "says", "dataset": "d"})
    assert made.status_code == 202, made.text
    return made.headers["location"]


async def until(site: Site, path: str, done: int) -> dict[str, Json]:
    """The job once so many rows are stored."""
    async with asyncio.timeout(60):
        while True:
            job = body_of(await site.get(path))
            assert job["status"] != "failed", job
            if job["done"] == done:
                return job
            await asyncio.sleep(0.02)


async def test_what_is_judged_is_stored_while_slow_rows_are_under_way(
    tmp_path: Path, judge: HeldJudge
) -> None:
    judge.holds = {"word 1"}
    async with serving(str(tmp_path / "home"), QUICK) as site:
        path = await begun(site, 30)
        assert (await until(site, path, 29))["status"] == "running"
        judge.go.set()
        await until(site, path, 30)
    assert set(judge.asked.values()) == {1}


async def test_a_row_that_ends_while_others_are_being_stored_is_stored_too(
    tmp_path: Path, judge: HeldJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge.holds = {"word 3"}
    add, storing = Jobs.add_scores, threading.Event()

    def slowly(jobs: Jobs, job: str, scores: Outcomes) -> None:
        judge.go.set()  # the held row ends while this is being stored
        assert storing.is_set() or asyncio.run_coroutine_threadsafe(all_asked(), loop).result(60)
        add(jobs, job, scores)

    async def all_asked() -> bool:
        await judge.reached(4)
        storing.set()
        return True

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(Jobs, "add_scores", slowly)
    async with serving(str(tmp_path / "home"), QUICK) as site:
        await until(site, await begun(site, 4), 4)
    assert set(judge.asked.values()) == {1}


async def test_only_what_was_under_way_is_asked_again_after_a_crash(
    tmp_path: Path, judge: HeldJudge
) -> None:
    judge.holds = {"word 1", "word 7"}
    location = str(tmp_path / "home")
    async with serving(location, QUICK) as site:
        path = await begun(site, 20)
        await until(site, path, 18)
        # Another server takes the job over, as if this one had not been heard of for too long.
        await site.with_store(_taken_by_another)
        await judge.reached(22)  # it runs out there, too, and is ours again
        judge.go.set()
        await until(site, path, 20)
    assert {name for name, times in judge.asked.items() if times > 1} == judge.holds


async def test_told_to_end_the_server_begins_no_row_and_stores_those_under_way(
    tmp_path: Path, judge: HeldJudge
) -> None:
    judge.holds = {f"word {n}" for n in range(4)}
    location, patient = str(tmp_path / "home"), replace(QUICK, lease_seconds=30.0)
    async with serving(location, patient) as site:
        path = await begun(site, 12)
        await judge.reached(4)
        context_of(site.app).stopping.set()
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.8, judge.go.set)
    assert judge.asked.total() == 4
    async with serving(location, patient) as site:
        await until(site, path, 12)
    assert set(judge.asked.values()) == {1}


async def test_a_judge_that_cannot_be_asked_any_more_ends_the_job_with_the_reason(
    tmp_path: Path, judge: HeldJudge
) -> None:
    async with serving(str(tmp_path / "home"), QUICK) as site:
        judge.holds = {f"word {n}" for n in range(4)}
        path = await begun(site, 12)
        await judge.reached(4)
        register_model(MODEL, None)
        judge.go.set()
        job = await site.ended(path)
        assert job["status"] == "failed"
        assert MODEL in str(job["message"])
        assert job["done"] == 4, "what was judged stays"


def _taken_by_another(database: Database) -> None:
    (job,) = Jobs(database).page("default", status="running")
    with database.writing():
        database.change("UPDATE job SET owner = 'another' WHERE id = ?", job.id)
