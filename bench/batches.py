"""What batches of a reward service cost, beside the same batches graded in a process of one's own.

Of a hundred completions as of one the server stores every score before it tells it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.completions import HONEST
from bench.processes import ServerProcess
from bench.rows import MEASURES, Goal, Measure, Row
from bench.texts import pairs

if TYPE_CHECKING:
    from aiohttp import ClientSession

__all__ = ["HERE", "batch_rows", "write_batches"]

_ITEMS, _BATCHES, _AT_ONCE = 64, 48, 8
_ENTRY = """
async def grade(thread):
    return score(thread.completion(), thread.metadata.get("expected", ""))
"""
_FUNCTION = {"source": HONEST + _ENTRY, "isolation": "batch"}
_KINDS: Mapping[str, dict[str, Any]] = {
    "exact": {"kind": "declared", "definition": {"graders": [{"type": "exact_match"}]}},
    "function": {"kind": "function", "definition": _FUNCTION},
}
HERE = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from assay.graders import FunctionGrader
from assay.graders.spec import GraderSpec
batches, options, at_once = json.load(open(sys.argv[1]))
graders = {"exact": GraderSpec(type="exact_match"), "function": FunctionGrader(**options)}
print(json.dumps({"url": ""}), flush=True)
with ThreadPoolExecutor(at_once) as threads:
    for line in sys.stdin:
        grade = graders[line.strip()].grade_batch_now
        graded = sum(batch.errors == 0 for batch in threads.map(grade, batches))
        print(graded, flush=True)
"""
"""Grades all batches in a process of its own, whenever it is sent the name of a grader."""


def write_batches(file: Path) -> None:
    """Write what both sides grade: completions of about a kilobyte with what is expected."""
    made = pairs(seed=2, words=125, correct=True, sharing=1, count=_ITEMS * _BATCHES)
    rows = [
        {"answer": f"{answer}\n#### {number:,}", "expected": str(number)}
        for number, (answer, _) in enumerate(made)
    ]
    batches = [rows[start : start + _ITEMS] for start in range(0, len(rows), _ITEMS)]
    file.write_text(json.dumps([batches, _FUNCTION, _AT_ONCE]), encoding="utf-8")


async def batch_rows(
    session: ClientSession,
    project: str,
    sides: tuple[ServerProcess, ServerProcess],
    file: Path,
    rounds: int,
) -> list[Row]:
    """Measure a server and a process that runs `HERE` in turn."""
    ours, here = sides
    batches = json.loads(file.read_text(encoding="utf-8"))[0]
    bodies = [
        json.dumps({"items": [{"id": str(n), **row} for n, row in enumerate(batch)]}).encode()
        for batch in batches
    ]
    rows: list[Row] = []
    for key, definition in _KINDS.items():
        url = f"{ours.url}{project}/graders"
        async with session.post(url, json={"key": f"{key}-batches", **definition}) as answer:
            answer.raise_for_status()
        path = f"{url}/{key}-batches/grade"
        found: dict[str, list[dict[Measure, float]]] = {"ours": [], "here": []}
        for number in range(rounds + 1):  # the first warms up
            works = {
                "ours": partial(_timed, ours, partial(_posted, session, path, bodies)),
                "here": partial(_timed, here, partial(_ask, here, key)),
            }
            for side in ("ours", "here") if number % 2 else ("here", "ours"):
                found[side].append(await works[side]())
        rate = 1 / min(one["wall"] for one in found["ours"][1:])
        rows += [
            Row(
                what=f"{_ITEMS} completions a request, {key}, {_AT_ONCE} connections",
                measure=counted,
                unit="us",
                ours=[one[counted] for one in found["ours"][1:]],
                peer=[one[counted] for one in found["here"][1:]],
                beside="grade_batch here",
                goal=Goal("at_most", 2.0) if counted == "CPU" else None,
                over=True,
                note=f"{rate:,.0f} completions a second",
            )
            for counted in MEASURES
        ]
    return rows


async def _timed(
    process: ServerProcess, work: Callable[[], Awaitable[None]]
) -> dict[Measure, float]:
    """Seconds of a completion."""
    cpu, began = process.cpu(), time.perf_counter()
    await work()
    wall, count = time.perf_counter() - began, _ITEMS * _BATCHES
    return {"CPU": (process.cpu() - cpu) / count, "wall": wall / count}


async def _posted(session: ClientSession, path: str, bodies: list[bytes]) -> None:
    left = iter(bodies)

    async def connection() -> None:
        for body in left:
            headers = {"Content-Type": "application/json"}
            async with session.post(path, data=body, headers=headers) as answer:
                answer.raise_for_status()
                await answer.read()

    await asyncio.gather(*(connection() for _ in range(_AT_ONCE)))


async def _ask(here: ServerProcess, key: str) -> None:
    await asyncio.to_thread(_asked, here, key)


def _asked(here: ServerProcess, key: str) -> None:
    assert here.popen.stdin
    assert here.popen.stdout
    here.popen.stdin.write(f"{key}\n")
    here.popen.stdin.flush()
    if (said := here.popen.stdout.readline().strip()) != str(_BATCHES):
        raise RuntimeError(f"{said or 'none'} of {_BATCHES} batches could be graded")
