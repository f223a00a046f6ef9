"""The asynchronous door: the loop stays free, a cancellation kills, memory stays bounded."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Coroutine

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError, SandboxError
from assay.sandbox import CommandResult, Limits, run_command, run_on_host
from assay.sandbox.command import Capture
from tests.children import alone
from tests.each import each
from tests.processes import living, marker
from tests.sandbox.machine import has_namespaces

pytestmark = pytest.mark.sandbox

Run = Callable[..., Coroutine[None, None, CommandResult]]


async def sandboxed(line: str, limits: Limits | None = None) -> CommandResult:
    return await run_command(["/bin/bash", "-c", line], workspace=None, limits=limits)


async def hosted(line: str, limits: Limits | None = None) -> CommandResult:
    return await run_on_host(["/bin/bash", "-c", line], limits=limits)


@pytest.fixture(params=[sandboxed, hosted])
def run(request: pytest.FixtureRequest) -> Run:
    if request.param is sandboxed and not has_namespaces():
        pytest.skip("no bubblewrap or no user namespaces on this machine")
    return request.param


async def test_many_at_once_and_the_loop_stays_free(run: Run) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    ticker = asyncio.create_task(tick())
    results = await asyncio.gather(*(run(f"sleep 0.2; echo {i}") for i in range(8)))
    ticker.cancel()
    assert [result.stdout for result in results] == [f"{i}\n" for i in range(8)]
    assert ticks > 5


@each("times", [1, 2])
async def test_cancelling_kills_the_whole_tree_first(run: Run, times: int) -> None:
    mark = marker()
    task = asyncio.create_task(run(f"setsid sleep {mark} & sleep {mark}"))
    async with asyncio.timeout(60):
        while len(living(mark)) < 2:  # noqa: ASYNC110 - another process tells no event
            await asyncio.sleep(0.005)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert living(mark) == []


async def test_flood_of_output_in_bounded_memory(run: Run) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    limits = Limits(output_bytes=65_536, output_kill_bytes=1 << 30, wall_seconds=60)
    result = await run("echo begin; head -c 200M /dev/zero; echo; echo end", limits)
    assert (result.status, result.exit_code, result.truncated) == ("exited", 0, True)
    assert result.stdout.startswith("begin\n")
    assert result.stdout.endswith("\nend\n")
    assert len(result.stdout) < 70_000
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # KiB
    assert grown < 30_000


def test_nothing_is_left_open() -> None:
    alone(
        """
        import asyncio, contextlib, functools, os
        from assay.sandbox import run_command, run_on_host

        async def go(run):
            await run(["true"])
            before = os.listdir("/proc/self/fd")
            for _ in range(3):
                await run(["true"])
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await run(["sleep", "60"])
            assert os.listdir("/proc/self/fd") == before, run

        for run in (functools.partial(run_command, workspace=None), run_on_host):
            asyncio.run(go(run))
        """
    )


async def test_a_command_of_no_words_and_a_missing_program_of_the_host_are_told() -> None:
    with pytest.raises(InputError, match="list of words"):
        await run_on_host([])
    with pytest.raises(SandboxError, match="no-such-program"):
        await run_on_host(["no-such-program"])
    with pytest.raises(SandboxError, match="/no/such/place"):
        await run_on_host(["true"], cwd="/no/such/place")


# --- Head and tail of a stream, in bounded memory ------------------------------------------------


@given(chunks=st.lists(st.binary(max_size=40), max_size=20), keep=st.integers(0, 60))
def test_head_and_tail(chunks: list[bytes], keep: int) -> None:
    capture, whole = Capture(keep), b"".join(chunks)
    for chunk in chunks:
        capture.add(chunk)
    assert capture.total == len(whole)
    assert capture.truncated == (len(whole) > keep)
    if not capture.truncated:
        assert capture.text() == whole.decode("utf-8", "replace")
        return
    head, tail = keep // 2, keep - keep // 2
    start = whole[:head].decode("utf-8", "replace")
    end = whole[len(whole) - tail :].decode("utf-8", "replace")
    assert capture.text() == f"{start}\n... [{len(whole) - keep} bytes cut] ...\n{end}"


def test_memory_is_bounded() -> None:
    capture = Capture(1000)
    for _ in range(100):
        capture.add(b"x" * 65_536)
        held = len(capture._head) + len(capture._tail)
        assert held < 1000 + 2 * 65_536 + 1
    assert capture.text().count("x") == 1000
