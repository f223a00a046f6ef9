"""Queues of gradings: a project holds up no other, one too many is told when to come again."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import httpx
import pytest

import assay.server.context
from assay import Client
from assay.endpoint.problems import ProblemError
from assay.graders import Grader
from assay.graders.batch import Batch
from assay.scoring.json_safe import Json
from assay.server.app import context_of
from assay.server.concurrency import QUICK_BYTES
from assay.server.context import Context, Item, ServerSettings
from assay.server.limits import ProjectSlots
from assay.server.metrics import Metrics
from assay.store.catalog import GraderVersion
from tests.children import until
from tests.client_modes import running
from tests.server_app import Site, body_of, faults_of, items_of, serving

LONG = "4" * QUICK_BYTES  # what is short is compared at once
RIGHT: Json = {"items": [{"answer": LONG, "expected": LONG}]}


def _may_wait(*_: object) -> bool:
    return True


class Hanging:
    """`Context.grade`, in which the graders of some keys do not end before they are told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *keys: str) -> None:
        self.begun = threading.Semaphore(0)
        self.stopped = threading.Semaphore(0)
        self.go_on = threading.Event()
        real, hanging = Context.grade, self

        async def grade(
            server: Context,
            version: GraderVersion,
            items: Sequence[Item],
            deadline: float | None = None,
        ) -> Batch:
            if version.key in keys:
                hanging.begun.release()
                try:
                    while not hanging.go_on.is_set():  # noqa: ASYNC110 - on another loop
                        await asyncio.sleep(0.001)
                except asyncio.CancelledError:
                    hanging.stopped.release()
                    raise
            return await real(server, version, items, deadline)

        monkeypatch.setattr(Context, "grade", grade)
        monkeypatch.setattr(assay.server.context, "may_wait", _may_wait)


async def _asked(site: Site, key: str, number: int) -> list[asyncio.Task[int]]:
    async def ask() -> int:
        return (await site.post(f"graders/{key}/grade", RIGHT)).status_code

    return [asyncio.create_task(ask()) for _ in range(number)]


def _standing(site: Site) -> tuple[int, int]:
    """How many gradings of the project are under way, and how many wait."""
    counts = [one[1:] for one in context_of(site.app).lanes.standing() if one[0] == "default"]
    return (sum(held for held, _ in counts), sum(waiting for _, waiting in counts))


async def _until(site: Site, counts: tuple[int, int]) -> None:
    async with asyncio.timeout(20):
        while _standing(site) != counts:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)


async def test_slow_graders_of_a_project_wait_for_it_alone_and_one_too_many_is_told_when(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ServerSettings(location="", max_waiting=4, poll_seconds=0.02)
    async with serving(str(tmp_path), settings) as site:
        for key in ("slow", "exact"):
            await site.made(key)
        other = await site.in_new_project()
        await other.made("exact")
        hanging = Hanging(monkeypatch, "slow")
        tasks = await _asked(site, "slow", 8 + 4)
        await _until(site, (8, 4))
        refused = await site.post("graders/exact/grade", RIGHT)
        (fault,) = faults_of(refused)
        assert refused.status_code == 429
        assert fault["message"] == "4 requests of project 'default' wait already"
        assert (refused.headers["retry-after"], fault["hint"][:14]) == ("1", "ask again in 1")
        assert refused.headers["ratelimit-policy"] == '"project";q=4;qu="concurrent-requests"'
        assert refused.headers["ratelimit"] == '"project";r=0;t=1'

        async with asyncio.timeout(20):
            assert (await other.post("graders/exact/grade", RIGHT)).status_code == 200
        await site.uploaded("d", [{"answer": "4", "expected": "4"}])
        job = await site.post("jobs", {"grader": "slow", "dataset": "d"})
        await _until(site, (8, 5))  # a job waits, and is not refused
        text = (await site.admin.get("/metrics")).text
        for line in (
            'assay_project_gradings{project="default",state="running"} 8.0',
            'assay_project_gradings{project="default",state="waiting"} 5.0',
        ):
            assert line in text
        hanging.go_on.set()
        assert set(await asyncio.gather(*tasks)) == {200}
        events = await asyncio.wait_for(site.admin.get(f"{job.headers['location']}/events"), 20)
        assert '"status":"finished"' in events.text


@pytest.mark.parametrize(
    ("seconds", "waiting", "told"),
    [(0.01, 2, "1"), (10.0, 2, "20"), (1000.0, 2, "60"), (10.0, 4, "40"), (None, 2, "1")],
)
async def test_who_is_refused_is_told_how_long_the_queue_is_in_seconds(
    seconds: float | None, waiting: int, told: str
) -> None:
    turns = ProjectSlots(1, most_waiting=waiting)
    await turns.come("p")
    turns.give_back("p", seconds)
    await turns.come("p")
    tasks = [asyncio.create_task(turns.come("p")) for _ in range(waiting)]
    await asyncio.sleep(0)
    with pytest.raises(ProblemError) as refused:
        await turns.come("p")
    assert refused.value.headers["Retry-After"] == told
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert list(turns.standing()) == [("p", 1, 0)]


@pytest.mark.parametrize("waits", [False, True], ids=["at work", "in the queue"])
def test_a_client_that_goes_away_frees_its_place_and_its_work_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, waits: bool
) -> None:
    hanging = Hanging(monkeypatch, "slow")
    with running(str(tmp_path)) as server, Client(server.url, key := server.key()) as client:
        client.graders.create.declared(key="slow", graders=[{"type": "exact_match"}])
        body = json.dumps(RIGHT).encode()
        head = (
            "POST /api/v1/projects/default/graders/slow/grade HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {key}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        port = urlsplit(server.url).port
        opened: list[socket.socket] = []

        def ask() -> None:
            opened.append(socket.create_connection(("127.0.0.1", port)))
            opened[-1].sendall(head.encode() + body)

        def wait_for(waiting: int) -> None:
            stands = f'assay_project_gradings{{project="default",state="waiting"}} {waiting}.0'
            until(lambda: stands in httpx.get(f"{server.url}/metrics").text)

        try:
            for _ in range(8 if waits else 1):
                ask()
                assert hanging.begun.acquire(timeout=60)
            if waits:
                ask()
                wait_for(1)
                opened[-1].close()  # before the others: whose turn came would be at work
            wait_for(0)
        finally:
            for one in opened:
                one.close()
        for _ in range(8 if waits else 1):
            assert hanging.stopped.acquire(timeout=60)
        hanging.go_on.set()
        assert client.graders.grade("slow", [{"answer": LONG, "expected": LONG}])[0].score == 1.0
        asked = 1 + len(opened)
        assert sum(hanging.begun.acquire(blocking=False) for _ in range(asked)) == 1


async def test_an_item_that_lacks_something_fails_alone_and_keeps_its_place(tmp_path: Path) -> None:
    async with serving(str(tmp_path)) as site:
        await site.made()
        right: Json = {"answer": "4", "expected": "4"}
        rows: list[Json] = [right, {"anser": "4", "id": "b"}, {"question": "?"}, right]
        answer = await site.post("graders/exact/grade", {"items": rows})
        results = items_of(answer, "results")
        assert [(one["id"], one["status"], one["score"], one["outcome"]) for one in results] == [
            ("1", "scored", 1.0, "ok"),
            ("b", "error", None, "bad_item"),
            ("3", "error", None, "bad_item"),
            ("4", "scored", 1.0, "ok"),
        ]
        assert {(one["grader"], one["digest"]) for one in results[1:3]} == {
            ("exact@1", body_of(answer)["digest"])
        }


class Stuck(Grader):
    """Never comes to an end with some answers."""

    name = "stuck"

    @classmethod
    async def compute_score(cls, answer: str) -> float:
        if answer == "hang":
            await asyncio.Event().wait()
        return 1.0


async def test_an_item_that_is_late_is_an_error_and_takes_no_other_with_it(tmp_path: Path) -> None:
    async with serving(str(tmp_path), ServerSettings(location="", allow_custom_code=True)) as site:
        definition: Json = {"path": f"python:{__name__}:Stuck"}
        made = await site.post(
            "graders", {"key": "stuck", "kind": "custom", "definition": definition}
        )
        assert made.status_code == 201, made.text
        items: list[Json] = [{"answer": one, "id": f"i{one}"} for one in ("4", "hang", "5")]
        answer = await site.post("graders/stuck/grade", {"items": items, "deadline": 0.5})
        results = items_of(answer, "results")
        assert [(one["id"], one["score"], one["outcome"]) for one in results] == [
            ("i4", 1.0, "ok"),
            ("ihang", None, "late"),
            ("i5", 1.0, "ok"),
        ]
        assert [one["grader"] for one in results] == ["stuck@1"] * 3
        seconds = cast("list[float]", body_of(answer)["seconds"])
        assert seconds[1] >= 0.5
        assert max(seconds[0], seconds[2]) < 0.5


def test_the_figures_of_a_project_are_for_those_who_may_see_it() -> None:
    metrics = Metrics()
    metrics.standing([("a", 1, 2), ("b", 3, 4), ("a", 1, 0)])
    text = metrics.text("a").decode()
    assert 'assay_project_gradings{project="a",state="running"} 2.0' in text
    assert not re.search(r'project="b"', text)
    assert 'project="b"' in metrics.text("*").decode()
