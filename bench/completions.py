"""Completions graded in a second: rows of 1 kB, by one core, by all cores, by Ray, by trainers.

Trainers call a function as it is, in their own process; ours call the same function in the sandbox.
Rows go into parts (``--out DIR/``), as those of large datasets do, and a few kinds into the store,
too. At the end ten times as many rows, twice interrupted: see `bench.shards`.
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
from typing import Self

from bench import shards
from bench.peers import ROOT, Peer
from bench.rows import MEASURES, Goal, Measure, Row
from bench.texts import pairs
from bench.turns import OURS, Cost, clean_environment

__all__ = ["HONEST", "measure"]

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
_STORED = ("exact_match", "function, a process a batch")
"""Kinds that are graded into the store, too."""
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
HONEST = r'''
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
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(sys.argv.pop(1))])
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
    rows: int
    peak_kb: int = 0

    def of(self, measured: Measure) -> float:
        """The seconds of a measure."""
        return self.cost.cpu if measured == "CPU" else self.cost.wall


def measure(peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]:
    """Whole processes over the same rows, and steps of trainers that run already.

    Each does its work once, which takes seconds to minutes, after some rows that fill caches.
    """
    count = 10_000 if quick else 100_000
    for data in _WORDS:
        _write(scratch / f"{data}.jsonl", data, count)
    for name, source in (("honest", HONEST), ("trivial", _TRIVIAL)):
        (scratch / f"{name}.py").write_text(source.lstrip() + _ENTRIES, encoding="utf-8")
    things = {
        (kind, road): partial(_assay, scratch, kind, count, road)
        for kind in _KINDS
        for road in _ROADS
        if road != "the store" or kind in _STORED
    }
    _write(scratch / "few.jsonl", "texts", _FEW)
    things[_STARTED] = partial(_assay, scratch, "few", _FEW, "Ray")
    with ExitStack() as stack:
        for name in ("trl", "verl"):
            if name in peers:
                _tell(f"{name} gets ready")
                trainer = stack.enter_context(_Trainer(peers[name], scratch, count))
                things |= {(name, road): partial(trainer.run, road) for road in _asked(name)}
        _assay(scratch, "few", _FEW, "all cores")
        found: dict[tuple[str, str], _Graded] = {}
        for number, (thing, work) in enumerate(things.items(), 1):
            try:
                found[thing] = one = work()
            except RuntimeError as error:  # the others are worth their minutes all the same
                _tell(f"{': '.join(thing)} could not be measured: {error}")
                continue
            _tell(f"{number:2} of {len(things)}  {one.cost.wall * 1e6:7.0f} us  {': '.join(thing)}")
    _tell(f"{10 * count:,} rows, twice interrupted")
    return [*_alone(found), *_beside(found), *shards.measured(scratch, 10 * count)]


def _tell(what: str) -> None:
    print(f"  {what}", file=sys.stderr, flush=True)


_OWN_CLUSTER = {"RAY_AUTH_MODE": "disabled", "RAY_ADDRESS": "local"}
"""One that is started here, and not one that somebody else has on this machine."""
_ROADS = {
    "one core": ["--out", "graded/"],
    "all cores": ["--out", "graded/"],
    "Ray": ["--out", "graded/", "--engine", "ray"],
    "the store": [],
}
"""How the command is asked to grade; all but the first by all cores."""


def _asked(trainer: str) -> list[str]:
    """Of trainers: what `bench.trainer_rewards` knows."""
    roads = [f"{name} bare" for name in ("honest", "trivial")]
    if trainer == "trl":
        roads += ["honest call", "honest batch", "trivial batch"]
    return roads


_Found = Mapping[tuple[str, str], _Graded]


def _alone(found: _Found) -> list[Row]:
    """Each kind by each road: all cores beside one, and the others beside all cores."""
    rows: list[Row] = []
    few = found.get(_STARTED)
    for kind, road in found:
        if kind not in _KINDS:
            continue
        one, beside = found[kind, road], "" if road == "one core" else "all cores"
        note = f"{1 / one.cost.wall:,.0f} rows a second; {one.peak_kb / 1024:.0f} MB at most"
        goals: dict[Measure, Goal] = {}
        if road == "all cores":
            beside = "one core"
            goals["wall"] = Goal("times_less", 0.8 * _CORES)
        elif road == "Ray" and few:
            note = f"{1 / one.cost.wall:,.0f} rows a second, of {one.rows:,}; "
            note += f"{few.cost.wall * _FEW:.1f} s of its time start and end a cluster"
        peer = beside, found.get((kind, beside))
        measured = _rows(f"{kind}: {road}", one, peer, goals, note)
        # Ray ends its workers so that nobody is told what processor time they took.
        rows += [row for row in measured if road != "Ray" or row.measure == "wall"]
    return rows


def _beside(found: _Found) -> list[Row]:
    """Sandboxed functions beside trainers that call them as they are."""
    rows: list[Row] = []
    goals: dict[Measure, Goal] = {"wall": Goal("times_less", 2)}
    for function, said in (("honest", "function"), ("trivial", "trivial function")):
        for trainer in ("trl", "verl"):
            ours = {
                f"{said}, a process a batch: {road}": one
                for road in ("one core", "all cores")
                if (trainer, road) != ("verl", "one core")  # it has a worker for each core
                and (one := found.get((f"{said}, a process a batch", road)))
            }
            ours |= {
                f"{said}, a process a {isolation}: Reward in {trainer}": own
                for isolation in ("call", "batch")
                if (own := found.get((trainer, f"{function} {isolation}")))
            }
            if bare := found.get((trainer, f"{function} bare")):
                for what, one in ours.items():
                    rows += _rows(what, one, (f"{trainer}, bare", bare), goals)
    return rows


def _rows(
    what: str,
    one: _Graded,
    peer: tuple[str, _Graded | None],
    goals: Mapping[Measure, Goal],
    note: str = "",
) -> list[Row]:
    beside, other = peer
    return [
        Row(
            what=what,
            measure=measured,
            unit="us",
            ours=[one.of(measured)],
            peer=[other.of(measured)] if other else (),
            beside=beside,
            goal=goals.get(measured),
            over=measured == "CPU",
            note=note,
        )
        for measured in MEASURES
    ]


def _assay(scratch: Path, kind: str, count: int, road: str) -> _Graded:
    """The command, from start to end, into a directory or a store that is not there yet."""
    data, grader = _KINDS.get(kind, ("few", "{type: exact_match}"))
    for left in (".assay", "graded"):
        shutil.rmtree(scratch / left, ignore_errors=True)
    (scratch / "graders.yaml").write_text(f"- {grader}\n", encoding="utf-8")
    argv = [str(OURS / "assay"), "grade", f"{data}.jsonl", "graders.yaml", *_ROADS[road]]
    cores = 1 if road == "one core" else _CORES
    done = subprocess.run(
        [sys.executable, "-c", _WHOLE, str(cores), *argv, "--fail-under", "0.5"],
        cwd=scratch,
        env={**clean_environment(scratch), **_OWN_CLUSTER},
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(done.stdout)
    if said["code"] or "PASS" not in said["said"]:
        raise RuntimeError(f"{' '.join(argv)} ended with {said['code']}:\n{said['said'][-1000:]}")
    return _Graded(Cost(said["cpu"] / count, said["wall"] / count), count, said["peak"])


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
            env={**home, **_OWN_CLUSTER, "RAY_TMPDIR": tempfile.gettempdir()},
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
        """All rows, a step after the other; the first of them twice, which makes what it needs."""
        assert self._process.stdin
        self._process.stdin.write(f"{road}\n")
        self._process.stdin.flush()
        said = json.loads(self._reply())
        function = road.partition(" ")[0]
        if said["sum"] != self._sums.setdefault(function, said["sum"]):
            raise RuntimeError(f"{road} gave {said['sum']}, not {self._sums[function]}")
        cost = Cost(said["cpu"] / self._count, said["wall"] / self._count)
        return _Graded(cost, self._count)

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
