"""Lanes and their queues: what one project's graders do holds up no other, and one too many is told
when to come again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import httpx
import pytest

import assay.server.context
from assay import Client
from assay.endpoint.problems import ProblemError
from assay.errors import GraderError
from assay.graders import Grader
from assay.scoring.json_safe import Json
from assay.server.app import context_of
from assay.server.concurrency import QUICK_BYTES, SLOTS, Lane, is_quick
from assay.server.context import ServerSettings
from assay.server.limits import ProjectSlots
from assay.store.catalog import GraderVersion
from assay.text import killable
from tests.children import until
from tests.client_modes import running
from tests.each import each
from tests.server.holding import before_grading
from tests.server_app import Site, body_of, faults_of, items_of, serving

LONG = "4" * QUICK_BYTES  # what is short is compared at once, and waits for no turn
RIGHT: Json = {"items": [{"answer": LONG, "expected": LONG}]}


def _may_wait(*_: object) -> bool:
    return True


@asynccontextmanager
async def hanging(site: Site, lane: Lane, project: str) -> AsyncGenerator[list[str]]:
    """More work of a project than a lane has slots, none of which ends; and what has begun."""
    begun: list[str] = []

    async def hang() -> None:
        begun.append(project)
        await asyncio.Event().wait()

    lanes = context_of(site.app).lanes
    tasks = [asyncio.create_task(lanes.run(lane, project, hang)) for _ in range(2 * SLOTS[lane])]
    try:
        yield begun
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_sleeping_functions_and_hanging_endpoints_hold_up_no_other_project(
    tmp_path: Path,
) -> None:
    async with serving(str(tmp_path)) as site, AsyncExitStack() as stack:
        await site.made()
        for lane in SLOTS:
            await stack.enter_async_context(hanging(site, lane, "noisy"))
        body: Json = {"items": [{"answer": "4", "expected": "4"}]}
        quick = await asyncio.wait_for(site.post("graders/exact/grade", body), 60)
        assert quick.status_code == 200

        async def score() -> float:
            return 1.0

        for lane in SLOTS:
            one = context_of(site.app).lanes.run(lane, "quiet", score)
            assert await asyncio.wait_for(one, 60) == 1.0


async def test_slow_jobs_of_one_project_hold_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(version: GraderVersion, _: object) -> None:
        if version.project == "noisy":
            await asyncio.wrap_future(never)

    never: Future[None] = Future()
    before_grading(monkeypatch, hang)
    settings = ServerSettings(location="", job_slots=2, poll_seconds=0.02)
    async with serving(str(tmp_path), settings) as site:
        await site.post("/api/v1/projects", {"key": "noisy"})
        made: list[str] = []
        for project, jobs in (("noisy", 4), ("default", 1)):
            own = replace(site, project=project)
            await own.made()
            await own.uploaded("d", [{"answer": "4", "expected": "4"}])
            for _ in range(jobs):
                job = await own.post("jobs", {"grader": "exact", "dataset": "d"})
                made.append(job.headers["location"])
        assert (await site.ended(made[-1]))["status"] == "finished"
        never.set_result(None)


@pytest.mark.parametrize(
    ("kind", "definition", "is_expected"),
    [
        (
            "declared",
            {"graders": [{"type": "exact_match"}, {"type": "contains", "substring": "4"}]},
            True,
        ),
        ("declared", {"graders": [{"type": "exact_match"}, {"type": "similarity"}]}, False),
        ("declared", {"graders": [{"type": "exact_match", "expected": "4" * QUICK_BYTES}]}, False),
        ("custom", {"path": "python:their.own:Grader"}, False),
        ("custom", {}, False),
    ],
)
def test_what_may_take_long_is_not_compared_in_the_thread_of_the_database(
    kind: str, definition: dict[str, Json], *, is_expected: bool
) -> None:
    version = GraderVersion(
        project="p", key="g", number=1, kind=kind, definition=definition, digest=""
    )
    assert is_quick(version) is is_expected


@asynccontextmanager
async def slot(turns: ProjectSlots, project: str) -> AsyncGenerator[None]:
    await turns.come(project)
    try:
        yield
    finally:
        turns.give_back(project)


class Hanging:
    """Holds up the graders of some keys until they are told to go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *keys: str) -> None:
        self._keys = keys
        self.begun = threading.Semaphore(0)
        self.stopped = threading.Semaphore(0)
        self.go_on = threading.Event()
        before_grading(monkeypatch, self._hold)
        monkeypatch.setattr(assay.server.context, "may_wait", _may_wait)

    async def _hold(self, version: GraderVersion, _: object) -> None:
        if version.key in self._keys:
            self.begun.release()
            try:
                while not self.go_on.is_set():  # noqa: ASYNC110 - on another loop
                    await asyncio.sleep(0.001)
            except asyncio.CancelledError:
                self.stopped.release()
                raise


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
        short: Json = {"items": [{"answer": "4", "expected": "4"}]}
        assert (await site.post("graders/exact/grade", short)).status_code == 200

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
        assert (await site.ended(job))["status"] == "finished"


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
            until(lambda: stands in httpx.get(f"{server.url}/metrics").text, every=0.05)

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


async def test_there_is_a_slot_for_whoever_has_none() -> None:
    turns = ProjectSlots(8, most_waiting=10)
    for project, most in (("a", 4), ("b", 2), ("c", 1), ("d", 1)):
        for _ in range(most):
            assert project not in turns.sated()
            turns.take(project)
        assert project in turns.sated()


async def test_a_limit_holds_though_slots_are_free_and_others_come_first() -> None:
    limits: dict[str, int | None] = {"a": 1}
    turns, order, go_on = ProjectSlots(8, 9, limits.get), list[str](), asyncio.Event()

    async def one(project: str) -> None:
        async with slot(turns, project):
            order.append(project)
            await go_on.wait()

    tasks = [asyncio.create_task(one(project)) for project in ("a", "a", "a", "b", "b")]
    await asyncio.sleep(0)
    assert (order, turns.sated()) == (["a", "b", "b"], ["a"])
    go_on.set()
    await asyncio.wait_for(asyncio.gather(*tasks), 60)
    assert (order[3:], turns.sated()) == (["a", "a"], [])


async def test_gradings_and_jobs_of_a_project_keep_to_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = now = 0

    async def count(*_: object) -> None:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.005)
        now -= 1

    before_grading(monkeypatch, count)
    monkeypatch.setattr(assay.server.context, "may_wait", _may_wait)
    settings = ServerSettings(location="", poll_seconds=0.02)
    async with serving(str(tmp_path), settings) as site:
        await site.made()
        await site.uploaded("d", [{"answer": "4", "expected": "4"}])
        limits: Json = {"gradings_at_once": 1}
        assert (await site.admin.put(site.at("limits"), json=limits)).status_code == 200
        asked = [site.post("graders/exact/grade", RIGHT) for _ in range(6)]
        jobs = [site.post("jobs", {"grader": "exact", "dataset": "d"}) for _ in range(3)]
        done = await asyncio.gather(*asked, *jobs)
        for job in done[6:]:
            assert (await site.ended(job))["status"] == "finished"
    assert ({one.status_code for one in done[:6]}, most) == ({200}, 1)


async def test_slots_are_given_to_those_who_have_fewest_and_lost_to_nobody() -> None:
    turns, order, go_on = ProjectSlots(2, most_waiting=2), list[str](), asyncio.Event()

    async def one(project: str) -> None:
        async with slot(turns, project):
            order.append(project)
            await go_on.wait()

    tasks = [asyncio.create_task(one(project)) for project in ("a", "a", "a", "b", "b")]
    await asyncio.sleep(0)
    assert order == ["a", "b"]
    with pytest.raises(ProblemError, match="wait already"):
        await one("a")
    tasks[1].cancel()
    go_on.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert sorted(order) == ["a", "a", "b", "b"]
    assert turns.sated() == []
    async with slot(turns, "a"):
        pass


async def test_who_goes_away_while_a_slot_is_given_back_takes_none_with_him() -> None:
    turns, go_on = ProjectSlots(1, most_waiting=2), asyncio.Event()

    async def one() -> None:
        async with slot(turns, "a"):
            await go_on.wait()

    tasks = [asyncio.create_task(one()) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[0].cancel()  # gives its slot back first, before the next one knows that it is cancelled
    tasks[1].cancel()
    go_on.set()
    await asyncio.wait(tasks, timeout=60)
    assert [task.done() and task.cancelled() for task in tasks] == [True, True, False]
    assert turns.sated() == []
    async with asyncio.timeout(60), slot(turns, "a"):
        pass


@each("seed", range(30))
async def test_whoever_comes_and_goes_in_whatever_order_all_slots_are_free_at_the_end(
    seed: int,
) -> None:
    draw = random.Random(seed)
    slots, has_slot = draw.randint(1, 6), set[object]()
    turns = ProjectSlots(slots, most_waiting=draw.randint(0, 5))

    async def one(project: str) -> None:
        with contextlib.suppress(ProblemError):
            async with slot(turns, project):
                has_slot.add(me := object())
                assert len(has_slot) <= slots
                try:
                    for _ in range(draw.randint(0, 4)):
                        await asyncio.sleep(0)
                finally:
                    has_slot.discard(me)

    tasks: list[asyncio.Task[None]] = []
    for _ in range(60):
        tasks.append(asyncio.create_task(one(draw.choice("abcd"))))
        await asyncio.sleep(0)
        for _ in range(draw.randint(0, 2)):
            draw.choice(tasks).cancel()
    await asyncio.wait(tasks, timeout=60)
    assert [task for task in tasks if not task.cancelled() and task.exception()] == []
    async with asyncio.timeout(60), slot(turns, "a"):
        assert turns.sated() == (["a"] if slots < 3 else [])


async def test_who_goes_away_gives_no_slot_back_before_his_thread_is_free(tmp_path: Path) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()

    async def compute() -> None:
        begun.release()
        go_on.wait(20)

    async def score() -> float:
        return 1.0

    async with serving(str(tmp_path)) as site:
        lanes = context_of(site.app).lanes
        tasks: list[asyncio.Task[None]] = []
        try:
            for may_begin in (True, False):
                new = [
                    asyncio.create_task(lanes.run("comparisons", "noisy", compute))
                    for _ in range(SLOTS["comparisons"])
                ]
                await asyncio.sleep(0)
                for _ in range(SLOTS["comparisons"] // 2 * may_begin):
                    await asyncio.to_thread(begun.acquire, timeout=60)
                for task in new:
                    task.cancel()
                await asyncio.wait(new, timeout=60)
                tasks += new
            async with asyncio.timeout(60):
                assert await lanes.run("comparisons", "quiet", score) == 1.0
        finally:
            go_on.set()
            await asyncio.gather(*tasks, return_exceptions=True)


class Mathematics(killable.Pool):
    """Ends at once: whoever waits for a place would compute beside the tests after this one."""

    is_over = False

    def _take(self, *, fresh: bool) -> killable._Worker:
        if self.is_over:
            raise GraderError("the test is over")
        return super()._take(fresh=fresh)


@pytest.mark.slow
async def test_mathematics_of_one_project_that_takes_its_whole_time_waits_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(killable, "cores", lambda: 1)
    pool = Mathematics("mathematics", "math_verify", wanted="what is wanted", extra="math")
    monkeypatch.setattr(killable, "MATHEMATICS", pool)
    slow: Json = {"answer": r"\boxed{9^{9^{9^9}}}", "expected": "x + 1"}
    easy: Json = {"answer": "1 + x", "expected": "x + 1"}
    async with serving(str(tmp_path)) as site:
        sites = {"noisy": site, "quiet": await site.in_new_project()}
        for one in sites.values():
            math: Json = {"type": "math_equal", "timeout_seconds": 0.5}
            await one.made("math", {"graders": [math]})
        asked = [
            asyncio.create_task(sites["noisy"].post("graders/math/grade", {"items": [slow]}))
            for _ in range(16)
        ]
        try:
            await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED, timeout=60)
            quiet = sites["quiet"].post("graders/math/grade", {"items": [easy]})
            reply = await asyncio.wait_for(quiet, 60)
            still_waiting = sum(not one.done() for one in asked)
            assert items_of(reply, "results")[0]["score"] == 1.0
            assert still_waiting >= 8
        finally:
            for one in asked:
                one.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
            pool.is_over = True
            pool.close()
