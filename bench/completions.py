"""Completions graded in a second: rows of 1 kB, by one process, by all cores, by Ray, by trainers.

Trainers call a function as it is, in their own process; ours call the same function in the sandbox.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Self

from bench.peers import ROOT, Peer
from bench.rows import MEASURES, Goal, Measure, Row
from bench.texts import pairs
from bench.turns import OURS, Cost, clean_environment, in_turn

__all__ = ["measure"]

_CORES = len(os.sched_getaffinity(0))
_WORDS = {"texts": 75, "mathematics": 125, "numbers": 125}
"""Words of an answer; with its reference and in JSON, each row has about a kilobyte."""
_KINDS = {
    "exact_match": ("texts", "{type: exact_match}"),
    "f1_score": ("texts", "{type: f1_score}"),
    "math_equal": ("mathematics", "{type: math_equal}"),
    "function, a process a call": ("numbers", "{type: function, file: honest.py}"),
    "function, a process a batch": (
        "numbers",
        "{type: function, file: honest.py, isolation: batch}",
    ),
    "trivial function, a process a batch": (
        "numbers",
        "{type: function, file: trivial.py, isolation: batch}",
    ),
}
_FEW = 10
_STARTED = ("few rows", "Ray")
_ENTRIES = """

async def grade(thread):
    return score(thread.completion(), thread.metadata["expected"])


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **_):
    return score(solution_str, ground_truth)
"""
_TRIVIAL = """
def score(answer, expected):
    return float(answer.rpartition(" ")[2].replace(",", "") == expected)
"""
_HONEST = r'''
"""The boxed answer or the last number, without its thousands; and a little for the form."""
import re

BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:/\d+)?")


def value(text):
    cleaned = text.strip().strip("$").replace(",", "").rstrip(".")
    try:
        over, _, under = cleaned.partition("/")
        return float(over) / float(under) if under else float(over)
    except (ValueError, ZeroDivisionError):
        return None


def score(answer, expected):
    boxes = BOXED.findall(answer)
    numbers = boxes or NUMBER.findall(answer)
    mine, theirs = value(numbers[-1] if numbers else ""), value(expected)
    known = mine is not None and theirs is not None
    right = known and abs(mine - theirs) <= 1e-6 * max(1.0, abs(theirs))
    lines = [line for line in answer.splitlines() if line.strip()]
    words = re.findall(r"\w+", answer.lower())
    repeats = 1.0 - len(set(words)) / max(1, len(words))
    tidy = len(lines) > 1 and lines[-1].startswith("####") and repeats < 0.9
    return round(0.9 * right + 0.1 * tidy, 6)
'''
# Also of what outlives its parent: it comes to whoever asked for that, and is waited for here.
_WHOLE = """\
import ctypes, json, os, resource, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
began = time.perf_counter()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
wall = time.perf_counter() - began
try:
    while True:
        os.wait()
except ChildProcessError:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
cost = {"cpu": used.ru_utime + used.ru_stime, "wall": wall, "peak": used.ru_maxrss}
print(json.dumps({**cost, "code": done.returncode, "said": done.stdout + done.stderr}))
"""
_TRAINER = "import sys; sys.path.append(sys.argv.pop(1)); import bench.trainer_rewards as t; "


@dataclass(frozen=True, slots=True)
class _Graded:
    """What it took to grade all rows; seconds are of one row."""

    cost: Cost
    peak_kb: int = 0


def measure(peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]:
    """Whole processes over the same rows, and steps of trainers that run already."""
    count = 10_000 if quick else 100_000
    for data in _WORDS:
        _write(scratch / f"{data}.jsonl", data, count)
    for name, source in (("honest", _HONEST), ("trivial", _TRIVIAL)):
        (scratch / f"{name}.py").write_text(source.lstrip() + _ENTRIES, encoding="utf-8")
    things = {
        (kind, road): partial(_assay, scratch, kind, count, arguments)
        for kind in _KINDS
        for road, arguments in _roads().items()
    }
    _write(scratch / "few.jsonl", "texts", _FEW)
    things[_STARTED] = partial(_assay, scratch, "few", _FEW, _roads()["Ray"])
    with ExitStack() as stack:
        for name in ("trl", "verl"):
            if name in peers:
                trainer = stack.enter_context(_Trainer(peers[name], scratch, count))
                things |= {(name, road): partial(trainer.run, road) for road in _asked(name)}
        keyed = {f"{kind} | {road}": thing for (kind, road), thing in things.items()}
        found = dict(zip(things, in_turn(1 if quick else 2, keyed).values(), strict=True))
    return [*_alone(found), *_beside(found)]


def _roads() -> dict[str, list[str]]:
    """How the command is asked to grade."""
    return {
        "one process": ["--workers", "1"],
        "all cores": ["--workers", str(_CORES)],
        "Ray": ["--engine", "ray"],
    }


def _asked(trainer: str) -> list[str]:
    """Of trainers: what `bench.trainer_rewards` knows."""
    roads = [f"{name} bare" for name in ("honest", "trivial")]
    if trainer == "trl":
        roads += ["honest call", "honest batch", "trivial batch"]
    return roads


_Found = Mapping[tuple[str, str], list[_Graded]]


def _alone(found: _Found) -> list[Row]:
    """Each kind by each road, the CPU it takes, and all cores beside one process."""
    rows: list[Row] = []
    (start,) = {one.cost.wall * _FEW for one in found[_STARTED][:1]}
    for kind in _KINDS:
        for road in _roads():
            costs = found[kind, road]
            beside = {"all cores": "one process", "Ray": "all cores"}.get(road, "")
            rate, peak = 1 / median(_of(costs, "wall")), max(g.peak_kb for g in costs)
            note = f"{rate:,.0f} rows a second; {peak / 1024:.0f} MB in the largest process"
            if road == "Ray":
                note += f"; with the start of a cluster, {start:.1f} s, and what ends it"
            for measured in MEASURES:
                is_wall = measured == "wall"
                goal = Goal("times_less", 0.8 * _CORES) if road == "all cores" else None
                rows.append(
                    Row(
                        what=f"{kind}: {road}",
                        measure=measured,
                        unit="us",
                        ours=_of(costs, measured),
                        peer=_of(found[kind, beside], measured) if beside and is_wall else (),
                        beside=beside,
                        goal=goal if is_wall else None,
                        note=note,
                    )
                )
    return rows


def _beside(found: _Found) -> list[Row]:
    """Sandboxed functions beside trainers that call them as they are."""
    beside: list[tuple[str, list[_Graded], str, list[_Graded]]] = []
    for function, said in (("honest", "function"), ("trivial", "trivial function")):
        ours = found[f"{said}, a process a batch", "all cores"]
        for trainer in ("trl", "verl"):
            if bare := found.get((trainer, f"{function} bare")):
                beside.append((f"{said}, a process a batch: all cores", ours, trainer, bare))
                for isolation in ("call", "batch"):
                    if own := found.get((trainer, f"{function} {isolation}")):
                        what = f"{said}, a process a {isolation}: Reward in {trainer}"
                        beside.append((what, own, trainer, bare))
    return [
        Row(
            what=what,
            measure=measured,
            unit="us",
            ours=_of(ours, measured),
            peer=_of(bare, measured),
            beside=f"{trainer}, bare",
            goal=Goal("times_less", 2) if measured == "wall" else None,
        )
        for what, ours, trainer, bare in beside
        for measured in MEASURES
    ]


def _of(costs: list[_Graded], measured: Measure) -> list[float]:
    return [g.cost.cpu if measured == "CPU" else g.cost.wall for g in costs]


def _assay(scratch: Path, kind: str, count: int, arguments: list[str]) -> _Graded:
    """The command, from start to end, into a store that is not there yet."""
    data, grader = _KINDS.get(kind, ("few", "{type: exact_match}"))
    shutil.rmtree(scratch / ".assay", ignore_errors=True)
    (scratch / "graders.yaml").write_text(f"- {grader}\n", encoding="utf-8")
    argv = [str(OURS / "assay"), "grade", f"{data}.jsonl", "-g", "graders.yaml", *arguments]
    done = subprocess.run(
        [sys.executable, "-c", _WHOLE, *argv, "--fail-under", "0.5"],
        cwd=scratch,
        env={**clean_environment(scratch), "RAY_AUTH_MODE": "disabled"},
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(done.stdout)
    if said["code"] or "PASS" not in said["said"]:
        raise RuntimeError(f"{' '.join(argv)} ended with {said['code']}:\n{said['said'][-1000:]}")
    return _Graded(Cost(said["cpu"] / count, said["wall"] / count), said["peak"])


class _Trainer:
    """A trainer's own process, which waits while others have their turn."""

    def __init__(self, peer: Peer, scratch: Path, count: int) -> None:
        self._count, self._sums = count, dict[str, float]()
        home = {**clean_environment(scratch), "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
        program = [peer.python, "-P", "-c", f"{_TRAINER}t.main(*sys.argv[1:])", str(ROOT)]
        self._process = subprocess.Popen(
            [*program, peer.name, str(scratch / "numbers.jsonl"), str(scratch)],
            cwd=scratch,
            # The paths of Ray's sockets have to be short.
            env={**home, "RAY_AUTH_MODE": "disabled", "RAY_TMPDIR": tempfile.gettempdir()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._reply()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def run(self, road: str) -> _Graded:
        """All rows, a step after the other."""
        assert self._process.stdin
        self._process.stdin.write(f"{road}\n")
        self._process.stdin.flush()
        said = json.loads(self._reply())
        function = road.partition(" ")[0]
        if said["sum"] != self._sums.setdefault(function, said["sum"]):
            raise RuntimeError(f"{road} gave {said['sum']}, not {self._sums[function]}")
        return _Graded(Cost(said["cpu"] / self._count, said["wall"] / self._count))

    def _reply(self) -> str:
        assert self._process.stdout
        if not (line := self._process.stdout.readline()):
            raise RuntimeError("the trainer's process has ended")
        return line


def _write(file: Path, data: str, count: int) -> None:
    """Three of four are right."""
    draw = random.Random(1)
    made = pairs(seed=1, words=_WORDS[data], correct=True, sharing=1, count=500)
    with file.open("w", encoding="utf-8") as lines:
        for number in range(count):
            row = {"id": f"row {number}", "question": "Which?"}
            answer, expected = made[number % len(made)]
            if data == "texts":
                row |= {"answer": answer, "expected": expected if number % 4 else expected[::-1]}
            else:
                said, expected = _ending(data, number, draw)
                row |= {"answer": f"{answer}\n{said}", "expected": expected}
            lines.write(json.dumps(row) + "\n")


def _ending(data: str, number: int, draw: random.Random) -> tuple[str, str]:
    """How an answer ends, and what is expected: of mathematics every tenth takes algebra."""
    one, other = draw.randint(1_000, 99_999), draw.randint(2, 99)
    if data == "numbers":
        return f"#### {one:,}", str(one if number % 4 else one + 1)
    if number % 10 == 1:
        return rf"The answer is \boxed{{{one}\sqrt{{{other}}}}}.", rf"\sqrt{{{other}}} \cdot {one}"
    wanted = rf"\frac{{{one if number % 4 else one + 1}}}{{{other}}}"
    return rf"The answer is \boxed{{{one}/{other}}}.", wanted
