"""Talks with sandboxed commands, and what a hostile one makes of being listened to."""

from __future__ import annotations

import asyncio
import resource
import socket
import sys
from collections.abc import Callable, Coroutine

import pytest

from assay.errors import InputError, SandboxError
from assay.sandbox import Door, Limits, OpenCommand, open_command
from tests.children import Children, alone, until
from tests.each import each
from tests.processes import living, marker
from tests.sandbox.door_servers import PORT, converse
from tests.sandbox.machine import needs_namespaces
from tests.sandbox.ordinary_user import ordinary_user, surroundings

pytestmark = [pytest.mark.sandbox, needs_namespaces]

UPPER = "while read -r line; do echo ${line^^}; done; echo over; echo noted >&2; exit 3"


def shell(line: str, **options: object) -> OpenCommand:
    options.setdefault("workspace", None)
    options.setdefault("limits", Limits(wall_seconds=60))
    return open_command(["/bin/bash", "-c", line], **options)  # pyright: ignore[reportArgumentType] - as given


async def test_a_talk_line_by_line() -> None:
    async with shell(UPPER) as server:
        for word in ("one", "two"):
            server.stdin.write(f"{word}\n".encode())
            await server.stdin.drain()
            assert await server.stdout.readline() == f"{word.upper()}\n".encode()
        server.stdin.close()
        assert await server.stdout.read() == b"over\n"
        result = await server.wait()
    assert (result.status, result.exit_code, result.stdout) == ("exited", 3, "")
    assert result.stderr == server.stderr == "noted\n"
    assert await server.wait() is result


async def test_many_talks_at_once() -> None:
    async def one(number: int) -> bytes:
        async with shell(UPPER) as server:
            server.stdin.write(f"n{number}\n".encode())
            return await server.stdout.readline()

    assert await asyncio.gather(*map(one, range(8))) == [f"N{n}\n".encode() for n in range(8)]


async def test_leaving_kills_all_that_it_started() -> None:
    mark = marker()
    async with shell(f"setsid sleep {mark} & echo ready; exec sleep {mark}") as server:
        assert await server.stdout.readline() == b"ready\n"
        await asyncio.to_thread(until, lambda: len(living(mark)) >= 2)
    assert living(mark) == []
    result = await server.wait()
    assert (result.status, result.exit_code) == ("exited", None)


async def test_cancelling_kills_all_that_it_started() -> None:
    """Also when it is cancelled again, while it waits for the kill."""
    mark = marker()
    ready = asyncio.Event()

    async def attend() -> None:
        async with shell(f"setsid sleep {mark} & echo ready; exec sleep {mark}") as server:
            await server.stdout.readline()
            ready.set()
            await server.stdout.readline()

    task = asyncio.create_task(attend())
    await ready.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert living(mark) == []


async def test_leaving_before_the_door_was_handed_over() -> None:
    # Its message was taken for the verdict: "bad marshal data" hid what had really gone wrong.
    for _ in range(5):
        with pytest.raises(KeyError, match="the caller's own"):
            async with shell("sleep 60", door=Door(port=PORT, on_open=socket.socket.close)):
                raise KeyError("the caller's own")


async def test_cancelling_while_it_is_being_opened() -> None:
    mark = marker()
    for steps in range(6):
        task = asyncio.create_task(listen(shell(f"exec sleep {mark}")))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert living(mark) == []


def test_a_host_that_is_killed_takes_its_servers_along(children: Children) -> None:
    mark = marker()
    code = f"""
import asyncio
from assay.sandbox import open_command

async def go():
    words = ["/bin/sh", "-c", "setsid sleep {mark} & sleep {mark} & echo ready; wait"]
    async with open_command(words, workspace=None) as server:
        print((await server.stdout.readline()).decode(), flush=True)
        await server.wait()

asyncio.run(go())
"""
    host = children.start([sys.executable, "-c", code], env=surroundings())
    assert host.stdout
    assert host.stdout.readline() == "ready\n"
    until(lambda: len(living(mark)) >= 2)
    host.kill()
    until(lambda: not living(mark))


async def test_a_flood_that_nobody_reads_stays_where_it_is() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with shell("yes", limits=Limits(wall_seconds=0.4), line_bytes=65_536) as server:
        result = await server.wait()
        assert (result.status, result.exit_code) == ("timed_out", None)
        left = await server.stdout.read()
    assert 0 < len(left) < 1 << 20
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # KiB
    assert grown < 20_000


async def test_a_line_without_an_end_is_refused() -> None:
    async with shell("tr '\\0' x < /dev/zero", line_bytes=65_536) as server:
        with pytest.raises(ValueError, match="limit"):
            await server.stdout.readline()


async def test_a_server_that_does_not_read_holds_its_writer_up() -> None:
    """Else all that is meant for it would pile up in this process."""
    async with shell("echo ready; exec sleep 60") as server:
        await server.stdout.readline()
        written = 0

        async def write() -> None:
            nonlocal written
            while True:
                server.stdin.write(bytes(32_768))
                written += 32_768
                await server.stdin.drain()

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(write(), 0.1)
        assert written < 1 << 20
        server.stdin.close()  # with much that was never taken


async def test_writing_to_one_that_has_ended() -> None:
    async with shell("exit 0") as server:
        assert (await server.wait()).exit_code == 0

        async def write() -> None:
            for _ in range(1000):
                server.stdin.write(b"x" * 4096)
                await server.stdin.drain()
                await asyncio.sleep(0)

        with pytest.raises(ConnectionError):
            await write()


async def test_complaints_without_end_are_stopped() -> None:
    limits = Limits(output_bytes=1000, output_kill_bytes=1 << 20, wall_seconds=60)
    async with shell("echo first >&2; yes >&2", limits=limits) as server:
        assert await server.stdout.read() == b""
        result = await server.wait()
    assert (result.status, result.exit_code, result.truncated) == ("output_limit", None, True)
    assert result.stderr.startswith("first\ny\n")
    assert len(result.stderr) < 1100


async def complain(server: OpenCommand) -> None:
    async with server:
        assert await server.stdout.readline() == b"", "a line"
        raise RuntimeError("the server says nothing")


async def listen(server: OpenCommand) -> None:
    async with server:
        await server.wait()


@each("use", [complain, listen])
async def test_a_sandbox_that_failed_is_not_a_silent_server(
    use: Callable[[OpenCommand], Coroutine[None, None, None]], planned: Callable[..., None]
) -> None:
    """Who finds a server silent blames it; here nothing of it has ever run."""
    planned(arguments=["--ro-bind", "/no/such", "/usr"])
    with pytest.raises(SandboxError, match="No such file"):
        await use(shell(UPPER))


async def test_a_keeper_that_fails_ends_the_talk() -> None:
    def fail(listener: socket.socket) -> None:
        listener.close()
        raise RuntimeError("no room")

    mark = marker()
    with pytest.raises(RuntimeError, match="no room"):
        await listen(shell(f"sleep {mark}", door=Door(port=PORT, on_open=fail)))
    assert living(mark) == []


def test_bad_requests_are_refused_before_anything_is_opened() -> None:
    with pytest.raises(InputError, match="list of words"):
        open_command([], workspace=None)
    with pytest.raises(InputError, match="not a directory"):
        shell("true", workspace="/no/such")


def test_nothing_of_a_talk_is_left_open() -> None:
    alone(
        """
        import asyncio, os, warnings
        import pytest
        from assay.errors import SandboxError
        from assay.sandbox import open_command

        warnings.simplefilter("error")
        failures = []

        async def talk(line, read):
            async with open_command(["/bin/sh", "-c", line], workspace=None) as server:
                server.stdin.write(b"x" * 300_000)
                if read:
                    await server.stdout.read()
                    await server.wait()

        async def go():
            asyncio.get_running_loop().set_exception_handler(lambda _, what: failures.append(what))
            await talk("exit 0", True)
            before = sorted(os.listdir("/proc/self/fd"))
            for _ in range(3):
                await talk("cat > /dev/null", False)
                await talk("exit 0", True)
            real, os.pidfd_open = os.pidfd_open, None
            os.pidfd_open = lambda *_: (_ for _ in ()).throw(OSError(24, "Too many open files"))
            with pytest.raises(SandboxError):
                await talk("exit 0", True)
            os.pidfd_open = real
            assert sorted(os.listdir("/proc/self/fd")) == before

        asyncio.run(go())
        assert not failures, failures
        """
    )


def test_a_talk_of_an_ordinary_user() -> None:
    line = f"read -r word; echo $word; cat < /dev/tcp/127.0.0.1/{PORT}"
    with ordinary_user() as call:
        assert call(converse, ["/bin/bash", "-c", line], {}) == b"well\nhello"
