"""Graders that attack their sandbox gain nothing, and no other call pays for it.

Each file of `tests/sandbox/hostile` is run as one batch of honest and hostile calls on one worker.
They are run side by side, once, because most of them only wait for a limit.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from assay.sandbox.functions import (
    FunctionLimits,
    FunctionPool,
    LoadFailedError,
    Outcome,
    Program,
    TierChoice,
)
from assay.sandbox.functions import pool as pools
from assay.sandbox.processes import descendants, occupied
from tests.each import each

pytestmark = pytest.mark.sandbox

_FILES = sorted(Path(__file__).with_name("hostile").glob("*.txt"))
# Who only waits shall not wait long; who computes shall have his CPU time on a busy machine, too.
_WAITING = FunctionLimits(cpu_seconds=0.3, wall_seconds=1.5, load_seconds=3.0)
_COMPUTING = FunctionLimits(cpu_seconds=0.15, wall_seconds=30.0, load_seconds=3.0)
_SIDE_BY_SIDE = 8
_ENDING_SECONDS = 20.0
_GRADE = """

async def grade(thread):
    if not thread["messages"][-1]["content"].startswith("ATTACK"):
        return 0.25
    result = attack()
    return await result if hasattr(result, "__await__") else result
"""
_GIVEN = {"given": "def arguments(payload):\n    return (payload,)\n"}
_COMPLETIONS = ("honest", "ATTACK", "honest SECRET_OF_ANOTHER", "ATTACK again", "honest at last")


@dataclass
class Ran:
    """What came of one file."""

    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    refused: str = ""


def expected(file: Path) -> tuple[set[str], bool]:
    """The statuses that an attack may have, and whether it is slow."""
    line = file.read_text(encoding="utf-8").partition("\n")[0]
    words = set(re.findall(r"\w+", line)) - {"expect"}
    return words - {"slow"}, "slow" in words


def payload(completion: str) -> bytes:
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": completion}]
    return json.dumps({"messages": messages}).encode()


async def run(
    file: Path, canary: Path, tier: TierChoice, completions: tuple[str, ...] = _COMPLETIONS
) -> Ran:
    source = file.read_text(encoding="utf-8").replace("@CANARY@", str(canary)) + _GRADE
    program = Program(source=source, modules=_GIVEN, argument="given:arguments")
    limits = _WAITING if "wall_timeout" in expected(file)[0] else _COMPUTING
    pool = FunctionPool(program, workers=1, limits=limits, tier=tier)
    try:
        await pool.start()
        payloads = [payload(completion) for completion in completions]
        return Ran(await asyncio.wait_for(pool.call_many(payloads), 120))
    except LoadFailedError as error:
        return Ran(refused=error.message)
    finally:
        await pool.close()


async def run_side_by_side(
    files: list[Path], canary: Path, tier: TierChoice = "bwrap"
) -> dict[str, Ran]:
    gate = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def one(file: Path) -> tuple[str, Ran]:
        async with gate:
            return file.stem, await run(file, canary, tier)

    return dict(await asyncio.gather(*map(one, files)))


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file of the host that anybody may read, and that nobody may reach."""
    place = tmp_path_factory.mktemp("canary")
    place.chmod(0o755)
    file = place / "canary"
    file.write_text("canary")
    file.chmod(0o666)
    yield file
    assert file.read_text() == "canary"
    assert file.stat().st_mode & 0o777 == 0o666


def started() -> set[int]:
    """The living processes that this one has started, those of other tests among them."""
    return {pid for pid in descendants(os.getpid()) if occupied([pid])}


@pytest.fixture(scope="module")
def attacked(canary: Path) -> tuple[dict[str, Ran], set[int]]:
    """What came of the attacks that are quick, and the processes that they left."""
    files = [file for file in _FILES if not expected(file)[1]]
    for pool in list(pools._pools):  # one that a test left open would keep workers in reserve
        pool.rest()
    before = started()
    ran = asyncio.run(run_side_by_side(files, canary))
    deadline = time.monotonic() + _ENDING_SECONDS  # a worker may be starting, to be told to end
    while (left := started() - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    return ran, left


@pytest.fixture(scope="module")
def quick(attacked: tuple[dict[str, Ran], set[int]]) -> dict[str, Ran]:
    return attacked[0]


@pytest.fixture(scope="module")
def slow(canary: Path) -> dict[str, Ran]:
    files = [file for file in _FILES if expected(file)[1]]
    return asyncio.run(run_side_by_side(files, canary))


def check(file: Path, ran: Ran) -> None:
    statuses, _ = expected(file)
    if ran.refused:
        assert statuses & {"refused", "any"}, ran.refused
        return
    assert "refused" not in statuses, "it could be loaded"
    honest, attacks = ran.outcomes[::2], ran.outcomes[1::2]
    if "any" in statuses:
        assert {outcome.score for outcome in ran.outcomes} <= {None, 0.0, 0.25}, ran.outcomes
    else:
        assert [outcome.score for outcome in honest] == [0.25] * 3, honest
        assert {outcome.status for outcome in attacks} <= statuses, attacks
        assert {outcome.score for outcome in attacks} <= {None, 0.0, 0.75}, attacks
    for outcome in ran.outcomes:
        assert (outcome.score is not None) == (outcome.status == "ok")


@pytest.mark.slow
@pytest.mark.versions
@each("file", [file for file in _FILES if not expected(file)[1]])
def test_an_attack_gains_nothing_and_harms_nobody(file: Path, quick: dict[str, Ran]) -> None:
    check(file, quick[file.stem])


@pytest.mark.slow
@each("file", [file for file in _FILES if expected(file)[1]])
def test_an_attack_that_takes_its_time_gains_nothing(file: Path, slow: dict[str, Ran]) -> None:
    check(file, slow[file.stem])


async def test_the_search_of_memory_can_find_what_its_own_call_holds(canary: Path) -> None:
    ran = await run(
        Path(__file__).with_name("hostile") / "search_memory.txt",
        canary,
        "bwrap",
        ("ATTACK SECRET_OF_ANOTHER", "ATTACK"),
    )
    assert [outcome.score for outcome in ran.outcomes] == [1.0, 0.0]


@pytest.mark.slow
@pytest.mark.versions
def test_no_process_outlives_the_attacks(attacked: tuple[dict[str, Ran], set[int]]) -> None:
    ran, left = attacked
    assert ran
    assert left == set()
