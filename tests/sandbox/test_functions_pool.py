"""Pools: no call is lost, no process is left, whoever dies and whoever calls."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from assay.errors import InputError, ProgramError, SandboxError
from assay.sandbox.functions import (
    FunctionLimits,
    FunctionPool,
    LoadFailedError,
    Outcome,
    Program,
    owned_by,
    pool_for,
    slot,
)
from assay.sandbox.functions import pool as pools
from assay.sandbox.processes import cpu_seconds, descendants
from assay.turns import WorkTurn, taking
from tests.children import Children, alone
from tests.each import each
from tests.processes import is_running

pytestmark = pytest.mark.sandbox

_SOURCE = """
import os, time
def grade(x):
    if x == "loop":
        while True: pass
    if x == "die":
        os._exit(1)
    if isinstance(x, list):
        time.sleep(x[0])
        return x[0]
    return x
"""
# Who computes shall have his CPU time on a busy machine, too.
_LIMITS = FunctionLimits(cpu_seconds=0.3, wall_seconds=30.0)
_PROGRAM = Program(source=_SOURCE)


@pytest.fixture
def pool() -> Iterator[FunctionPool]:
    pool = FunctionPool(_PROGRAM, workers=2, limits=_LIMITS, tier="bwrap")
    yield pool
    pool.close_now()


def numbers(count: int) -> list[bytes]:
    return [str(number).encode() for number in range(count)]


def scores(outcomes: list[Outcome]) -> list[float | None]:
    return [outcome.score for outcome in outcomes]


async def told(holds: Callable[[], object]) -> None:
    """Wait until something holds that other threads and processes bring about."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.005)


async def are_gone(pids: list[int]) -> bool:
    await told(lambda: not any(map(is_running, pids)))
    return True


def busy(pool: FunctionPool) -> list[int]:
    """The workers of a pool that have a call which computes."""
    return [
        worker
        for worker in pool.stats.pids()
        if any(cpu_seconds(pid) > 0.15 for pid in descendants(worker))
    ]


# --- losing nothing ---------------------------------------------------------------------------


async def test_bad_calls_cost_the_others_nothing(pool: FunctionPool) -> None:
    payloads = numbers(60)
    payloads[7] = payloads[31] = b'"die"'
    payloads[20] = b'"loop"'
    outcomes = await pool.call_many(payloads)
    for number, outcome in enumerate(outcomes):
        if number in (7, 31):
            assert (outcome.status, outcome.retried) == ("crash", True)
        elif number == 20:
            assert (outcome.status, outcome.retried) == ("cpu_timeout", True)
            assert 0.3 <= outcome.cpu_seconds < 1.0
        else:
            assert (outcome.score, outcome.retried) == (float(number), False)
    assert pool.stats.calls == 60
    assert pool.stats.retries == 3


async def test_workers_killed_while_they_work_lose_no_call(pool: FunctionPool) -> None:
    await pool.call(b"1")
    calls = asyncio.create_task(pool.call_many([b"[0.003]"] * 200))
    await told(lambda: len(pool.stats.pids()) == 2)
    for number, pid in enumerate(pool.stats.pids()):
        # What the first one was at is done when the second is killed, and the rest is not.
        await told(lambda least=20 + 60 * number: pool.stats.calls > least)
        os.kill(pid, signal.SIGKILL)
    assert not calls.done()
    assert {outcome.status for outcome in await calls} == {"ok"}
    assert scores(await calls) == [0.003] * 200


async def test_an_idle_worker_that_was_killed_is_replaced_and_blames_nobody(
    pool: FunctionPool,
) -> None:
    await pool.call(b"1")
    (pid,) = pool.stats.pids()
    os.kill(pid, signal.SIGKILL)
    assert await are_gone([pid])
    outcome = await pool.call(b"2")
    assert (outcome.score, outcome.retried) == (2.0, False)
    assert pool.stats.pids() != [pid]
    assert pool.stats.restarts == 1


async def test_a_call_whose_worker_dies_twice_is_our_error_and_never_a_score() -> None:
    limits = FunctionLimits(cpu_seconds=60, wall_seconds=60)
    async with FunctionPool(_PROGRAM, workers=1, limits=limits, tier="bwrap") as pool:
        call = asyncio.create_task(pool.call(b'"loop"'))
        killed: list[int] = []
        for _ in range(2):
            await told(lambda known=tuple(killed): set(busy(pool)) - set(known))
            killed += busy(pool)
            os.kill(killed[-1], signal.SIGKILL)
        outcome = await call
        assert (outcome.status, outcome.score, outcome.retried) == ("sandbox_error", None, True)
        assert (await pool.call(b"2")).score == 2.0


@pytest.mark.slow
@pytest.mark.versions
async def test_a_program_that_lets_nothing_fork_crashes_by_its_own_doing() -> None:
    source = "import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (0, 0))\n"
    program = Program(source=source + "def grade(x): return 1.0\n")
    async with FunctionPool(program, workers=1, tier="bwrap") as pool:
        outcome = await pool.call(b"1")
    assert (outcome.status, outcome.retried) == ("crash", True)


@pytest.mark.slow
async def test_a_second_try_has_only_the_time_that_the_first_has_left_of_a_turn() -> None:
    limits = FunctionLimits(cpu_seconds=60, wall_seconds=0.5)
    async with FunctionPool(_PROGRAM, workers=1, limits=limits, tier="bwrap") as pool:
        for seconds, status in ((None, "wall_timeout"), (60.0, "wall_timeout"), (0.8, "late")):
            turn = WorkTurn(seconds)
            with taking(turn):
                outcome = await pool.call(b"[60]")
            assert (outcome.status, outcome.retried) == (status, True), seconds
            assert outcome.wall_seconds >= (0.75 if status == "late" else 1.0)
            assert turn.spent >= outcome.wall_seconds, "both tries are the work of the call"


async def test_workers_are_replaced_after_a_while(
    pool: FunctionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot, "_CALLS", 10)
    for _ in range(3):
        assert scores(await pool.call_many(numbers(20))) == [float(n) for n in range(20)]
    assert pool.stats.restarts >= 2


# --- being used -------------------------------------------------------------------------------


async def test_no_more_calls_are_taken_than_may_be_pending() -> None:
    async with FunctionPool(_PROGRAM, workers=1, max_pending=3, tier="bwrap") as pool:
        most = 0

        async def one(number: int) -> float | None:
            nonlocal most
            outcome = await pool.call(str(number).encode())
            most = max(most, pool._pending.admitted)
            return outcome.score

        assert await asyncio.gather(*map(one, range(20))) == [float(n) for n in range(20)]
        assert scores(await pool.call_many(numbers(20))) == [float(n) for n in range(20)]
        assert 1 <= most <= 3


async def test_a_cancelled_call_harms_no_other(pool: FunctionPool) -> None:
    waiting = [asyncio.create_task(pool.call(b"[0.05]")) for _ in range(10)]
    await asyncio.sleep(0.08)
    for task in waiting[::2]:
        task.cancel()
    done = await asyncio.gather(*waiting, return_exceptions=True)
    assert [getattr(outcome, "score", None) for outcome in done[1::2]] == [0.05] * 5
    assert scores(await pool.call_many(numbers(3))) == [0.0, 1.0, 2.0]
    # The other worker may be at one that nobody waits for.
    await told(lambda: pool._pending.admitted == 0)


async def test_one_who_gives_up_waiting_for_room_leaves_it_to_the_next() -> None:
    """The one after him waited for ever."""
    async with FunctionPool(_PROGRAM, workers=1, max_pending=1, tier="bwrap") as pool:
        made = asyncio.create_task(pool.call(b"[0.3]"))
        await told(lambda: pool._pending.admitted)
        gives_up, waits = (asyncio.create_task(pool.call(b"1")) for _ in range(2))
        await told(lambda: len(pool._pending._waiting) == 2)
        gives_up.cancel()
        assert (await made).score == 0.3
        assert (await asyncio.wait_for(waits, 60)).score == 1.0


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="there is one processor only")
async def test_the_worker_of_one_process_among_others_may_run_on_any_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two such processes both had kept theirs on the same one, and the other idled."""
    for kept, most in (([1], len(os.sched_getaffinity(0))), ([], 1)):
        monkeypatch.setattr("assay.cores._kept", kept)
        async with FunctionPool(_PROGRAM, workers=1, limits=_LIMITS) as pool:
            await pool.call(b"1")
            assert [len(os.sched_getaffinity(pid)) for pid in pool.stats.pids()] == [most]


def test_a_pool_serves_several_loops_and_threads(pool: FunctionPool) -> None:
    found: dict[int, list[float | None]] = {}

    def use(number: int) -> None:
        async def main() -> list[Outcome]:
            first = await pool.call_many(numbers(20))
            return first + list(await asyncio.gather(*map(pool.call, numbers(5))))

        found[number] = scores(asyncio.run(main()))

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == {n: [float(x) for x in [*range(20), *range(5)]] for n in range(4)}


async def test_closing_fails_those_who_wait_and_those_who_come(pool: FunctionPool) -> None:
    await pool.start()
    waiting = [asyncio.create_task(pool.call(b"[1.5]")) for _ in range(4)]
    await asyncio.sleep(0.1)
    pids = pool.stats.pids()
    await asyncio.wait_for(pool.close(), 60)
    done = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 60)
    assert all(
        isinstance(found, SandboxError) or getattr(found, "status", "") == "sandbox_error"
        for found in done
    ), done
    with pytest.raises(SandboxError, match="closed"):
        await pool.call(b"1")
    assert await are_gone(pids)


async def test_closing_fails_a_start_that_takes_its_time() -> None:
    pool = FunctionPool(Program(source="while True: pass"), tier="bwrap")
    starting = asyncio.create_task(pool.start())
    await asyncio.sleep(0.3)
    await asyncio.wait_for(pool.close(), 60)
    with pytest.raises(SandboxError, match="closed"):
        await asyncio.wait_for(starting, 60)


async def test_a_pool_that_rests_between_calls_loses_none(pool: FunctionPool) -> None:
    over, rests = threading.Event(), 0

    def disturb() -> None:
        nonlocal rests
        while not over.is_set():
            rests += pool.rest()

    disturbing = threading.Thread(target=disturb, daemon=True)
    disturbing.start()
    number = 0
    while number < 8 or rests < 3:
        assert (await pool.call(str(number).encode())).score == number
        await asyncio.sleep(0.002)
        number += 1
    over.set()
    disturbing.join()


async def test_a_program_that_cannot_be_loaded_fails_the_start_each_time() -> None:
    async with asyncio.timeout(60):
        pool = FunctionPool(Program(source="x = 1\n1 / 0"), tier="bwrap")
        for _ in range(2):
            with pytest.raises(ProgramError) as caught:
                await pool.call(b"1")
            assert isinstance(caught.value, LoadFailedError)
            assert caught.value.line == 2
        await pool.close()


async def test_loading_has_its_time() -> None:
    limits = FunctionLimits(load_seconds=0.3)
    for source in ("while True: pass", "import time; time.sleep(60)"):
        pool = FunctionPool(Program(source=source), limits=limits, tier="bwrap")
        with pytest.raises(ProgramError, match=r"not loaded after 0\.3 s"):
            await asyncio.wait_for(pool.start(), 60)
        await pool.close()


@each("wrong", [{"isolation": "none"}, {"workers": 0}, {"max_pending": 0}])
def test_a_pool_that_makes_no_sense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError):
        FunctionPool(_PROGRAM, **wrong)  # pyright: ignore[reportArgumentType] - the point of it


def test_owners_of_the_same_program_share_no_worker() -> None:
    with owned_by("one"):
        first = pool_for(_PROGRAM)
        assert pool_for(_PROGRAM) is first
        with owned_by("two"):
            assert pool_for(_PROGRAM) is not first
        assert pool_for(_PROGRAM, owner="two") is not first
    assert pool_for(_PROGRAM, owner="one") is first
    assert pool_for(_PROGRAM) is not first


async def test_shared_pools_rest_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "_MOST_SHARED", 1)
    first = pool_for(_PROGRAM, tier="bwrap")
    assert pool_for(_PROGRAM, tier="bwrap") is first
    assert (await first.call(b"1")).score == 1.0
    pids = first.stats.pids()
    second = pool_for(Program(source=_SOURCE + "#"), tier="bwrap")
    assert second is not first
    assert await are_gone(pids)
    assert (await first.call(b"2")).score == 2.0
    await first.close()
    await second.close()


# --- leaving nothing --------------------------------------------------------------------------

_HOST = """
import asyncio, os, sys
from assay.sandbox.functions import FunctionLimits, FunctionPool, Program
from assay.sandbox.processes import cpu_seconds, descendants

SOURCE = {source!r}
pool = FunctionPool(Program(source=SOURCE), workers=2, tier="bwrap",
                    limits=FunctionLimits(cpu_seconds=60, wall_seconds=60, load_seconds=60))

def report():
    # What is left behind would be a descendant: worker, template, calls and bubblewrap.
    print(*descendants(os.getpid()), flush=True)

async def main():
{main}

asyncio.run(main())
"""
_WORKING = """
    await pool.call(b"1")
    calls = asyncio.ensure_future(pool.call_many([b'[30]'] * 4))
    await asyncio.sleep(0.3)
    report()
    await calls
"""
_LOADING = """
    from assay.sandbox.functions.tiers import function_tier
    function_tier("bwrap")
    starting = asyncio.ensure_future(pool.start())
    while not any(cpu_seconds(pid) > 0.2 for pid in descendants(os.getpid())):
        await asyncio.sleep(0.01)
    report()
    await starting
"""
_LEAVING = """
    await pool.call(b"1")
    report()
"""


def started(
    children: Children, main: str, source: str = _SOURCE
) -> tuple[subprocess.Popen[str], list[int]]:
    """A host in a process of its own, and all processes that it has started."""
    host = children.start([sys.executable, "-c", _HOST.format(source=source, main=main)])
    assert host.stdout
    pids = [int(word) for word in host.stdout.readline().split()]
    assert len(pids) >= 3, host.communicate()
    return host, pids


@each(
    "main, source, number",
    [
        (_WORKING, _SOURCE, signal.SIGKILL),
        (_WORKING, _SOURCE, signal.SIGINT),
        (_LOADING, "while True: pass", signal.SIGKILL),
    ],
)
async def test_a_host_that_is_killed_leaves_no_process(
    children: Children, main: str, source: str, number: signal.Signals
) -> None:
    host, pids = started(children, main, source)
    os.killpg(host.pid, number)  # as Ctrl-C does: to the whole group
    host.communicate()
    assert await are_gone(pids)


async def test_a_host_that_ends_leaves_no_process_and_no_complaint(children: Children) -> None:
    host, pids = started(children, _LEAVING)
    _, complaint = host.communicate()
    assert host.returncode == 0
    assert complaint == ""
    assert await are_gone(pids)


def test_parent_and_child_of_a_fork_both_go_on() -> None:
    main = """
    import warnings
    from assay.sandbox.functions import pool_for
    shared = pool_for(Program(source=SOURCE), tier="bwrap")
    assert (await shared.call(b"1")).score == 1.0
    assert (await pool.call(b"1")).score == 1.0
    before = pool.stats.pids() + shared.stats.pids()
    child = os.fork()
    if child == 0:
        from asyncio import events
        events._set_running_loop(None)
        async def again():
            assert (await shared.call(b"2")).score == 2.0
            assert (await pool.call(b"2")).score == 2.0
            assert not set(before) & set(pool.stats.pids() + shared.stats.pids())
            await pool.close()
            await shared.close()
        try:
            asyncio.run(again())
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    assert (await shared.call(b"3")).score == 3.0
    assert pool.stats.pids() + shared.stats.pids() == before
    assert (await pool.call(b"3")).score == 3.0
    print("both", flush=True)
"""
    assert alone(_HOST.format(source=_SOURCE, main=main)) == "both\n"


_KILLED = """
import ctypes, os, signal, time
from assay.sandbox.functions.launch import launch
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # who loses its parent comes to us
launch("bwrap").kill()
for number in range(120):
    host = os.fork()
    if not host:
        launch("bwrap")
        time.sleep(600)
    time.sleep(number % 24 / 3_000)
    os.kill(host, signal.SIGKILL)
signal.alarm(30)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""


@pytest.mark.slow
def test_no_worker_outlives_a_host_that_is_killed_while_it_starts_one() -> None:
    """At any moment of the start; bubblewrap itself, when it ended early, left one in thirty."""
    alone(_KILLED)
