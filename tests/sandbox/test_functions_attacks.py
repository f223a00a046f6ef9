"""Attacks of a function on the limits of its calls, and from one of its calls on the next."""

from __future__ import annotations

import asyncio
import json

import pytest

from assay.sandbox.functions import (
    FunctionLimits,
    FunctionPool,
    Isolation,
    LoadFailedError,
    Outcome,
    Program,
    load_once,
    session,
)
from assay.sandbox.functions.tiers import Tier
from tests.each import each

pytestmark = pytest.mark.sandbox

_SHORT = FunctionLimits(cpu_seconds=1.0, wall_seconds=1.5)
_ALL_DESCRIPTORS = """
import fcntl, os, time

def everywhere(data):
    for fd in range(3, 64):
        try:
            os.write(fd, data)
        except OSError:
            pass
"""
# Each takes longer than a call may, and would have the worker blamed for it.
_DAWDLERS = {
    "works until its time is over, then wants a loop": """
import asyncio, time
async def grade(payload):
    time.sleep(1.4)
    await asyncio.sleep(0.3)
    return 1.0
""",
    "says its reply a byte at a time": _ALL_DESCRIPTORS
    + """
def grade(payload):
    for _ in range(20):
        everywhere(b"\\0")
        time.sleep(0.5)
    return 1.0
""",
}
# Each call of them tells the next one: the first sets, the second returns 1.0 if it sees.
_MESSENGERS = {
    "file flags of what it inherits": """
import fcntl, os
FLAGS = os.O_APPEND | os.O_DIRECT | os.O_ASYNC | os.O_NONBLOCK
def grade(call):
    if call == 0:
        for fd in range(64):
            for flag in (os.O_APPEND, os.O_DIRECT, os.O_ASYNC, os.O_NONBLOCK):
                try:
                    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | flag)
                except OSError:
                    pass
        return 0.0
    for fd in range(64):
        try:
            if fcntl.fcntl(fd, fcntl.F_GETFL) & FLAGS:
                return 1.0
        except OSError:
            pass
    return 0.25
""",
    "shared memory": """
import mmap
try:
    MEMORY = mmap.mmap(-1, 64)
except OSError:
    MEMORY = bytearray(64)
def grade(call):
    if call == 0:
        MEMORY[0] = 1
        return 0.0
    return 1.0 if MEMORY[0] else 0.25
""",
    "a pipe": """
import os
ENDS = os.pipe()
os.set_blocking(ENDS[0], False)
def grade(call):
    try:
        if call == 0:
            os.write(ENDS[1], b"x")
            return 0.0
        return 1.0 if os.read(ENDS[0], 1) == b"x" else 0.25
    except OSError:
        return 0.25 if call else 0.0
""",
    "where a file was read": """
import os
FILE = os.open(os.__file__, os.O_RDONLY)
def grade(call):
    try:
        if call == 0:
            os.lseek(FILE, 100, 0)
            return 0.0
        return 1.0 if os.lseek(FILE, 0, 1) else 0.25
    except OSError:
        return 0.25 if call else 0.0
""",
}
TIERS: tuple[Tier, ...] = ("bwrap", "landlock")


async def outcomes_of(
    source: str,
    payloads: list[bytes],
    *,
    tier: Tier = "bwrap",
    limits: FunctionLimits = _SHORT,
    isolation: Isolation = "call",
) -> list[Outcome]:
    program = Program(source=source)
    async with FunctionPool(
        program, workers=1, limits=limits, tier=tier, isolation=isolation
    ) as pool:
        return await pool.call_many(payloads)


@pytest.mark.slow
async def test_a_call_has_one_deadline_whatever_it_does() -> None:
    found = await asyncio.gather(*(outcomes_of(one, [b"1"]) for one in _DAWDLERS.values()))
    for name, (outcome,) in zip(_DAWDLERS, found, strict=True):
        assert (outcome.status, outcome.score) == ("wall_timeout", None), name
        assert outcome.retried, name
        assert outcome.wall_seconds < 2 * 2.8, name  # each of two tries: not 1.4 and again 1.5


@each("isolation", ["call", "batch"])
async def test_half_a_surrogate_pair_can_be_printed(isolation: Isolation) -> None:
    source = (
        "import sys\ndef grade(text):\n    print(text)\n    print(text, file=sys.stderr)\n"
        "    return 0.25\n"
    )
    payloads = [json.dumps("bad \ud800").encode()] * 2
    for outcome in await outcomes_of(source, payloads, isolation=isolation):
        assert (outcome.status, outcome.score) == ("ok", 0.25), outcome.message
        assert outcome.output == "bad \\ud800\n" * 2


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", list(_MESSENGERS))
async def test_a_call_tells_the_next_one_nothing(name: str, tier: Tier) -> None:
    outcomes = await outcomes_of(_MESSENGERS[name], [b"0", b"1", b"1"], tier=tier)
    assert [outcome.score for outcome in outcomes] == [0.0, 0.25, 0.25], outcomes


async def test_a_forged_word_while_it_is_rehearsed_is_no_score_of_the_first_call() -> None:
    source = _ALL_DESCRIPTORS + (
        "import struct\neverywhere(struct.pack('<BddII', 0, 0.75, 0.0, 0, 0))\n"
        "def grade(payload):\n    return 0.75\n"
    )
    with pytest.raises(LoadFailedError):
        await outcomes_of(source, [b"1"] * 3, tier="landlock")


async def test_a_program_refused_in_rehearsal_says_why() -> None:
    with pytest.raises(LoadFailedError, match="ValueError: so") as caught:
        await outcomes_of("\nraise ValueError('so')", [b"1"], tier="landlock")
    assert caught.value.line == 2


# Memory by many processes, each below its limit. They are let in at different times.
_HOARD = """
import os, time

def hoard(count, start=os.fork):
    for _ in range(count):
        if start() == 0:
            for fd in range(64):
                try:
                    os.close(fd)
                except OSError:
                    pass
            held = bytearray(60 << 20)
            for at in range(0, len(held), 4096):
                held[at] = 1
            time.sleep(60)
            os._exit(0)
"""
_SMALL = FunctionLimits(cpu_seconds=5.0, wall_seconds=20.0, memory_bytes=192 << 20)


async def test_memory_by_many_processes_while_loading_is_seen() -> None:
    source = _HOARD + "hoard(8)\ntime.sleep(9)\ndef grade(payload):\n    return 0.25\n"
    with pytest.raises(LoadFailedError, match="its processes use more than"):
        await outcomes_of(source, [b"1"], limits=_SMALL)


async def test_memory_by_many_processes_is_seen_though_replies_come_quickly() -> None:
    source = _HOARD + (
        "is_done = []\n"
        "def grade(payload):\n"
        "    if payload == 0 and not is_done:\n"
        "        is_done.append(1)\n"
        "        hoard(8)\n"
        "    time.sleep(0.06 if is_done else 0)\n"
        "    return 0.25\n"
    )
    program = Program(source=source)
    async with FunctionPool(
        program, workers=1, limits=_SMALL, tier="bwrap", isolation="batch"
    ) as pool:
        (worker,) = pool.stats.pids()
        await pool.call_many([b"0", *[b"1"] * 40])
        assert worker not in pool.stats.pids()


_LEFT_BEHIND = {
    "a child": "import os, time\nif os.fork() == 0:\n    time.sleep(60)\n",
    "a child of a bare clone": (
        "import ctypes, os, time\n"
        "number = {'x86_64': 56, 'aarch64': 220}[os.uname().machine]\n"
        "if ctypes.CDLL(None).syscall(number, 0, 0, 0, 0, 0) == 0:\n    time.sleep(60)\n"
    ),
    "an orphan": (
        "import os, time\n"
        "if (pid := os.fork()) == 0:\n"
        "    if os.fork() == 0:\n        time.sleep(60)\n"
        "    os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
    ),
    "a thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n",
}


@pytest.mark.slow
@pytest.mark.versions
@each("what", list(_LEFT_BEHIND))
async def test_a_program_that_leaves_company_is_refused(what: str) -> None:
    source = _LEFT_BEHIND[what] + "def grade(payload):\n    return 0.25\n"
    with pytest.raises(LoadFailedError, match="leaves processes or threads behind"):
        await outcomes_of(source, [b"1"])


async def test_a_thread_that_ends_with_loading_is_no_company() -> None:
    source = (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(0.02,)).start()\n"
        "def grade(payload):\n    return 0.25\n"
    )
    (outcome,) = await outcomes_of(source, [b"1"])
    assert outcome.score == 0.25, outcome


# After loading, a timer would have the template start processes that nobody waits for.
_LATER = """
import ctypes, os, signal, time
libc = ctypes.CDLL(None)
number = {'x86_64': 56, 'aarch64': 220}[os.uname().machine]
def start(*_):
    if libc.syscall(number, 0, 0, 0, 0, 0) == 0:
        time.sleep(60)
        os._exit(0)
signal.signal(signal.SIGALRM, start)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
signal.setitimer(signal.ITIMER_REAL, 0.1)
def grade(payload):
    return 0.25
"""


async def test_nothing_of_a_program_runs_in_its_template_once_it_is_loaded() -> None:
    """What runs there could start processes while nobody looks, and tell one call of another."""
    async with FunctionPool(Program(source=_LATER), workers=1, tier="bwrap") as pool:
        assert (await pool.call(b"1")).score == 0.25
        (worker,) = pool.stats.pids()
        await asyncio.sleep(0.3)  # the timer would have gone off
        assert (await pool.call(b"1")).score == 0.25
        assert pool.stats.pids() == [worker]


async def test_memory_shared_since_a_fork_counts_once() -> None:
    """A program with much data: the process that waits for a call has it, too."""
    source = (
        "import time\nDATA = bytearray(120 << 20)\n"
        "for at in range(0, len(DATA), 4096):\n    DATA[at] = 1\n"
        "def grade(payload):\n    time.sleep(0.7)\n    return 0.25\n"
    )
    (outcome,) = await outcomes_of(source, [b"1"], limits=_SMALL)
    assert (outcome.status, outcome.score) == ("ok", 0.25), outcome


async def test_a_call_that_outlasts_the_hosts_patience_is_a_timeout_and_no_missing_grade(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever keeps the supervisor from telling the time."""
    monkeypatch.setattr(session, "_GRACE_SECONDS", -1.0)
    source = "import time\ndef grade(payload):\n    time.sleep(9)\n    return 1.0\n"
    (outcome,) = await outcomes_of(source, [b"1"], limits=FunctionLimits(wall_seconds=1.3))
    assert (outcome.status, outcome.retried) == ("wall_timeout", True), outcome
    assert outcome.message == "the call did not end in time"


_FORKED = """
import os, time

def grade(payload):
    if payload == "forks" and os.fork() == 0:
        return 1.0
    if payload == "forks":
        time.sleep(0.3)
    return 0.25
"""


@each("isolation", ["call", "batch"])
async def test_a_forked_child_that_answers_first_is_not_heard(isolation: Isolation) -> None:
    """Only the process of the call replies: not a child of it that comes back from `grade`, too."""
    program = Program(source=_FORKED)
    async with FunctionPool(
        program, isolation=isolation, workers=1, limits=_SHORT, tier="bwrap"
    ) as pool:
        found = await pool.call_many([b'"forks"', b'"x"', b'"forks"', b'"x"', b'"x"'])
        assert [outcome.score for outcome in found] == [0.25] * 5
        assert (await pool.call(b'"forks"')).score == 0.25


async def test_a_program_that_must_be_as_written_is_that_or_not_loaded() -> None:
    written = "async def grade(x):\n    return 0.5\n"
    for source in (written, "x = 1\n" + written + "async def other(x): ...\n"):
        report = await load_once(Program(source=source, as_written=True), [b"1"])
        assert [outcome.score for outcome in report.outcomes] == [0.5]
    replaced = "\n" + written + "globals()['grade'] = lambda x: 1.0\n"
    for source, said in (
        (replaced, "'grade' is not the 'async def' of the file"),
        ("\ndef grade(x): return 1.0\n", "'grade' must be 'async def'; write 'async' before 'def'"),
    ):
        report = await load_once(Program(source=source, as_written=True), [b"1"])
        assert said in report.error
        free = await load_once(Program(source=source), [b"1"])
        assert [outcome.score for outcome in free.outcomes] == [1.0]
