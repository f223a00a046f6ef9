"""Exercises with tests and a solution as cases, proven by ``assay selftest``."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.proof.material import Case


@dataclass(frozen=True, slots=True)
class Exercise:
    """A task whose tests and right solution somebody has published.

    Attributes:
        id: Its name.
        source: What whoever works on it is given: texts by path.
        hidden: The tests, likewise.
        reference: The right solution, likewise.
        bad: Solutions known to be wrong, likewise, by name.
        grader: The options of the grader that runs the tests.
        options: Other fields of the case.
    """

    id: str
    source: Mapping[str, str]
    hidden: Mapping[str, str]
    reference: Mapping[str, str]
    bad: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    grader: Mapping[str, object] = field(default_factory=lambda: {"type": "pytest"})
    options: Mapping[str, object] = field(default_factory=dict[str, object])


def proven(exercises: Iterable[Exercise]) -> Iterator[Case]:
    """Whether the solution of each gets everything, and nothing known to be wrong passes.

    Each exercise is several cases: a check of the self-test each, and ``ID/apart``, whether its
    tests and the solution are kept in two processes.
    """
    with tempfile.TemporaryDirectory(prefix="assay-proof-") as home:
        suite = Path(home, "evals")
        for exercise in exercises:
            _write(suite / exercise.id, exercise)
        command = [
            sys.executable,
            "-m",
            "assay",
            "selftest",
            str(suite),
            "--json",
            "--repeats",
            "1",
        ]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        told: Any = json.loads(done.stdout)
        yield from _cases(told)


def _write(place: Path, exercise: Exercise) -> None:
    trees = {
        "source": exercise.source,
        "hidden": exercise.hidden,
        "recordings/reference/files": exercise.reference,
        **{f"recordings/bad-{name}/files": files for name, files in exercise.bad.items()},
    }
    for tree, files in trees.items():
        for name, text in files.items():
            path = place / tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    inject = [{"src": f"hidden/{name}", "dest": name} for name in exercise.hidden]
    case = {
        "id": exercise.id,
        "task": {"prompt": f"Solve {exercise.id}."},
        "source": {"path": "./source"},
        "graders": [{**exercise.grader, "inject": inject}],
        **exercise.options,
    }
    (place / "case.json").write_text(json.dumps(case), "utf-8")


def _cases(told: Mapping[str, Any]) -> Iterator[Case]:
    for case in told["cases"]:
        for check in case["checks"]:
            if not check["name"].startswith("repeats"):
                reward = f" ({check['reward']})" if check["reward"] is not None else ""
                said = f"{check['verdict']}: {check['said']}{reward}"
                yield Case(f"{case['case']}/{check['name']}", check["verdict"] == "held", said)
        for one in case["isolation"]:
            apart = one["isolation"] == "process"
            yield Case(f"{case['case']}/apart", apart, f"{one['isolation']}: {one['why']}")
