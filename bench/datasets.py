"""What it costs to grade a dataset by one comparison, stored, beside a loop that only compares."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from bench.peers import Peer
from bench.rows import MEASURES, Goal, Row
from bench.texts import pairs
from bench.turns import OURS, Cost, clean_environment, cost_of, in_turn

__all__ = ["measure"]

_WORDS = 75  # an answer and its reference, in JSON: about a kilobyte
_GRADERS = "- {type: exact_match}\n"
_BARE = """\
import json, sys
from assay.text import exact_match
with open(sys.argv[1]) as rows, open(sys.argv[2], "w") as graded:
    for line in rows:
        row = json.loads(line)
        row["reward"] = exact_match(row["answer"], row["expected"])
        graded.write(json.dumps(row) + "\\n")
print("done")
"""
_PYDANTIC = """\
import json, sys
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected
with open(sys.argv[1]) as file:
    rows = [json.loads(line) for line in file]
cases = [Case(name=r["id"], inputs=r["answer"], expected_output=r["expected"]) for r in rows]
dataset = Dataset(name="rows", cases=cases, evaluators=[EqualsExpected()])
async def answer(inputs): return inputs
report = dataset.evaluate_sync(answer, progress=False)
print("done", len(report.cases))
"""
_PEAK = """\
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def measure(peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]:
    """Whole processes over the same rows: three of four are right."""
    count = 10_000 if quick else 50_000
    data = scratch / "rows.jsonl"
    _write(data, count)
    (scratch / "graders.yaml").write_text(_GRADERS, encoding="utf-8")
    bare = [sys.executable, "-c", _BARE, str(data), str(scratch / "bare.jsonl")]
    things = {
        "assay": partial(_assay, scratch),
        "a bare loop": partial(cost_of, bare, cwd=scratch, expect="done"),
    }
    if pydantic := peers.get("pydantic-evals"):
        argv = [pydantic.python, "-c", _PYDANTIC, str(data)]
        things["pydantic-evals"] = partial(cost_of, argv, cwd=scratch, expect=f"done {count}")
    costs = in_turn(2 if quick else 5, things)
    peak = f"{_peak(scratch) / 1024:.0f} MB at the peak, in the largest process"
    return [
        Row(
            what=f"grade {count:,} rows of 1 kB",
            measure=measured,
            unit="s",
            ours=[_of(cost, measured) for cost in costs["assay"]],
            peer=[_of(cost, measured) for cost in costs[beside]],
            beside=beside,
            goal=Goal("at_most", 2.5) if (beside, measured) == ("a bare loop", "wall") else None,
            over=beside == "a bare loop",
            note=peak,
        )
        for beside in list(things)[1:]
        for measured in MEASURES
    ]


def _write(data: Path, count: int) -> None:
    made = pairs(seed=1, words=_WORDS, correct=True, sharing=1, count=500)
    with data.open("w", encoding="utf-8") as file:
        for number in range(count):
            answer, other = made[number % len(made)]
            row = {"id": f"row {number}", "question": "Which?", "answer": answer}
            row["expected"] = answer if number % 4 else other[::-1]
            file.write(json.dumps(row) + "\n")


def _assay(scratch: Path) -> Cost:
    shutil.rmtree(scratch / ".assay", ignore_errors=True)
    argv = [str(OURS / "assay"), "grade", "rows.jsonl", "graders.yaml", "--fail-under", "0.5"]
    return cost_of(argv, cwd=scratch, expect="PASS")


def _peak(scratch: Path) -> int:
    """Kilobytes of the largest of its processes."""
    shutil.rmtree(scratch / ".assay", ignore_errors=True)
    argv = [str(OURS / "assay"), "grade", "rows.jsonl", "graders.yaml"]
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, *argv],
        cwd=scratch,
        env=clean_environment(scratch),
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def _of(cost: Cost, measured: str) -> float:
    return cost.cpu if measured == "CPU" else cost.wall
