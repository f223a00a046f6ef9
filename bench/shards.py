"""A dataset into parts: rows a second, memory, and what is killed and gone on with, byte by byte.

``python -m bench.shards --rows 1000000`` measures a million rows of 1 kB, which takes minutes.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.rows import Row, table
from bench.texts import pairs
from bench.turns import OURS, clean_environment

__all__ = ["main", "measured"]

_WORDS = 75  # an answer and its reference, in JSON: about a kilobyte
_COST = """\
import json, resource, subprocess, sys, time
begun = time.monotonic()
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""
_KILLED = (0.2, 0.6)
"""With so much of the parts there, the process is killed."""


@dataclass(frozen=True, slots=True)
class _Cost:
    """Seconds on the wall and of all processors, and megabytes of the largest process."""

    wall: float
    cpu: float
    peak: float


def measured(scratch: Path, count: int) -> list[Row]:
    """So many rows into parts, beside ten times a tenth of them; and again, interrupted twice."""
    (scratch / "graders.yaml").write_text("- {type: exact_match}\n", encoding="utf-8")
    for name, rows in (("tenth", count // 10), ("rows", count)):
        _write(scratch / f"{name}.jsonl", rows)
    small = _cost(scratch, "tenth.jsonl", "--out", "tenth/", "--shard-rows", "5000")
    whole = _cost(scratch, "rows.jsonl", "--out", "whole/", "--shard-rows", "5000")
    kills = _interrupted(scratch)
    again = _cost(scratch, "rows.jsonl", "--out", "killed/", "--shard-rows", "5000")
    same = _same(scratch / "whole" / "parts", scratch / "killed" / "parts")
    note = (
        f"{count / whole.wall:,.0f} rows/s; {small.peak:.0f} MB in the largest process with "
        f"{count // 10:,} rows, {whole.peak:.0f} MB with {count:,}; killed {kills} times and gone "
        f"on with in {again.wall:.1f} s: {same}"
    )
    return [
        Row(
            what=f"grade {count:,} rows of 1 kB into parts",
            measure=measure,
            unit="s",
            ours=[whole.wall if measure == "wall" else whole.cpu],
            peer=[10 * (small.wall if measure == "wall" else small.cpu)],
            beside="10 x a tenth",
            over=True,
            note=note,
        )
        for measure in ("CPU", "wall")
    ]


def _write(data: Path, count: int) -> None:
    made = pairs(seed=1, words=_WORDS, correct=True, sharing=1, count=500)
    with data.open("w", encoding="utf-8") as file:
        for number in range(count):
            answer, other = made[number % len(made)]
            row = {"id": f"row {number}", "question": "Which?", "answer": answer}
            row["expected"] = answer if number % 4 else other[::-1]
            file.write(json.dumps(row) + "\n")


def _argv(data: str, *more: str) -> list[str]:
    return [str(OURS / "assay"), "grade", data, "graders.yaml", *more]


def _cost(scratch: Path, data: str, *more: str) -> _Cost:
    done = subprocess.run(
        [sys.executable, "-c", _COST, *_argv(data, *more)],
        cwd=scratch,
        env=clean_environment(scratch),
        capture_output=True,
        text=True,
        check=True,
    )
    wall, cpu, peak = json.loads(done.stdout)
    return _Cost(wall, cpu, peak / 1024)


def _interrupted(scratch: Path) -> int:
    """Grade into ``killed/`` and kill that, with more and more of it done; how often it was."""
    planned = len(list((scratch / "whole" / "parts").iterdir()))
    parts, kills = scratch / "killed" / "parts", 0
    for share in _KILLED:
        process = subprocess.Popen(
            _argv("rows.jsonl", "--out", "killed/", "--shard-rows", "5000"),
            cwd=scratch,
            env=clean_environment(scratch),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None:
            if parts.is_dir() and len(list(parts.glob("[!.]*"))) >= share * planned:
                process.kill()
                kills += 1
                break
            time.sleep(0.01)
        process.wait()
    return kills


def _same(one: Path, other: Path) -> str:
    names = sorted(file.name for file in one.iterdir())
    if names != sorted(file.name for file in other.iterdir()):
        return "OTHER PARTS"
    same, differs, lost = filecmp.cmpfiles(one, other, names, shallow=False)
    if differs or lost:
        return f"{len(differs) + len(lost)} PARTS DIFFER"
    return f"all {len(same)} parts byte for byte those of a run that nobody killed"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure so many rows.

    Returns:
        0, whatever was measured.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.shards", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, metavar="N", help="rows of 1 kB")
    count = parser.parse_args(arguments).rows
    scratch = Path(tempfile.mkdtemp(prefix="assay-bench-"))
    try:
        print(table("shards", measured(scratch, count)))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
