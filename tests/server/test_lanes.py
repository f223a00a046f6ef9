"""Lanes: whatever one project's graders do, another project's are not held up."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import assay.server.context
from assay.endpoint.problems import ProblemError
from assay.graders.batch import Batch
from assay.scoring.json_safe import Json
from assay.server.app import context_of
from assay.server.concurrency import QUICK_BYTES, SLOTS, Lane, is_quick
from assay.server.context import Context, Item, ServerSettings
from assay.server.limits import ProjectSlots
from assay.store.catalog import GraderVersion
from assay.text import killable
from tests.server_app import Site, body_of, items_of, serving


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


async def test_a_project_that_has_too_much_waiting_is_sent_away(tmp_path: Path) -> None:
    settings = ServerSettings(location="", max_waiting=1)
    async with serving(str(tmp_path), settings) as site:
        await site.made()
        async with hanging(site, "comparisons", "default"):
            await asyncio.sleep(0)
            short: Json = {"answer": "4", "expected": "4"}
            long: Json = {"answer": "4" * QUICK_BYTES}
            assert (await site.post("graders/exact/grade", {"items": [short]})).status_code == 200
            answer = await site.post("graders/exact/grade", {"items": [long]})
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "1"
        assert "'default'" in str(body_of(answer)["detail"])


async def test_slow_jobs_of_one_project_hold_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Context.grade

    async def grade(
        server: Context,
        version: GraderVersion,
        items: Sequence[Item],
        deadline: float | None = None,
    ) -> Batch:
        if version.project == "noisy":
            await asyncio.wrap_future(never)
        return await real(server, version, items, deadline)

    never: Future[None] = Future()
    monkeypatch.setattr(Context, "grade", grade)
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
        events = await asyncio.wait_for(site.admin.get(f"{made[-1]}/events"), 60)
        assert '"status":"finished"' in events.text
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
    real, most, now = Context.grade, 0, 0

    def may_wait(*_: object) -> bool:
        return True

    async def grade(
        server: Context,
        version: GraderVersion,
        items: Sequence[Item],
        deadline: float | None = None,
    ) -> Batch:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.005)
        now -= 1
        return await real(server, version, items, deadline)

    monkeypatch.setattr(Context, "grade", grade)
    monkeypatch.setattr(assay.server.context, "may_wait", may_wait)
    settings = ServerSettings(location="", poll_seconds=0.02)
    async with serving(str(tmp_path), settings) as site:
        await site.made()
        await site.uploaded("d", [{"answer": "4", "expected": "4"}])
        limits: Json = {"gradings_at_once": 1}
        assert (await site.admin.put(site.at("limits"), json=limits)).status_code == 200
        long = "4" * QUICK_BYTES  # what is short waits for no turn
        body: Json = {"items": [{"answer": long, "expected": long}]}
        asked = [site.post("graders/exact/grade", body) for _ in range(6)]
        jobs = [site.post("jobs", {"grader": "exact", "dataset": "d"}) for _ in range(3)]
        done = await asyncio.gather(*asked, *jobs)
        for job in done[6:]:
            events = await asyncio.wait_for(site.admin.get(f"{job.headers['location']}/events"), 60)
            assert '"status":"finished"' in events.text
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


@pytest.mark.parametrize("seed", range(30))
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


@pytest.mark.slow
async def test_mathematics_of_one_project_that_takes_its_whole_time_waits_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(killable, "cores", lambda: 1)
    pool = killable.Pool("mathematics", "math_verify", wanted="what is wanted", extra="math")
    monkeypatch.setattr(killable, "MATHEMATICS", pool)
    slow: Json = {"answer": r"\boxed{9^{9^{9^9}}}", "expected": "x + 1"}
    easy: Json = {"answer": "1 + x", "expected": "x + 1"}
    async with serving(str(tmp_path)) as site:
        sites = {"noisy": site, "quiet": await site.in_new_project()}
        for one in sites.values():
            math: Json = {"type": "math_equal", "timeout_seconds": 1.0}
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
            pool.close()
