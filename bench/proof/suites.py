"""Exercises with tests and a solution as cases, proven by ``assay selftest``."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.proof.material import Case

_KEPT = Path(__file__).resolve().parents[2] / ".bench" / "proof"


@dataclass(frozen=True, slots=True)
class Exercise:
    """A task whose tests and right solution somebody has published.

    Attributes:
        id: Its name.
        source: What whoever works on it is given: contents by path.
        hidden: The tests, likewise.
        reference: The right solution, likewise.
        bad: Solutions known to be wrong, likewise, by name.
        grader: The options of the grader that runs the tests.
        options: Other fields of the case.
    """

    id: str
    source: Mapping[str, str | bytes]
    hidden: Mapping[str, str | bytes]
    reference: Mapping[str, str]
    bad: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    grader: Mapping[str, object] = field(default_factory=lambda: {"type": "pytest"})
    options: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Published:
    """An exercise as a track of Exercism has it.

    Attributes:
        given: What whoever solves it starts from: texts by path.
        tests: The tests, likewise.
        solution: The published solution, under the paths of what is given.
    """

    given: Mapping[str, str]
    tests: Mapping[str, str]
    solution: Mapping[str, str]


def published(place: Path) -> Published:
    """Read the directory of an exercise, in which ``.meta/config.json`` says what is what."""
    files = json.loads((place / ".meta/config.json").read_text("utf-8"))["files"]

    def read(*kinds: str) -> dict[str, str]:
        names = [name for kind in kinds for name in files.get(kind, ())]
        return {name: (place / name).read_text("utf-8") for name in names}

    wanted, solution = list(files["solution"]), dict[str, str]()
    for name, text in read("example").items():
        target = next((one for one in wanted if Path(one).suffix == Path(name).suffix), None)
        if target is not None:
            wanted.remove(target)
            solution[target] = text

    def beside(*patterns: str) -> dict[str, str]:
        """Files that are needed and not always named."""
        found = sorted(file for pattern in patterns for file in place.glob(pattern))
        return {
            str(file.relative_to(place)): file.read_text("utf-8")
            for file in found
            if file.is_file()
        }

    given = {**beside("src/**/*.rs"), **read("solution", "editor")}
    return Published(given, {**beside("test*.*", "tests/**/*"), **read("test")}, solution)


def proven(exercises: Iterable[Exercise]) -> Iterator[Case]:
    """Whether the solution of each gets everything, and nothing known to be wrong passes.

    Each exercise is several cases: a check of the self-test each, and ``ID/apart``, whether its
    tests and the solution are kept in two processes. After an interruption the same exercises go
    on where they stopped.
    """
    described = {one.id: asdict(one) for one in exercises}
    if not described:
        return
    digest = hashlib.sha256(json.dumps(described, sort_keys=True, default=bytes.hex).encode())
    home = _KEPT / digest.hexdigest()[:16]
    for one in described.values():
        _write(home / "evals" / one["id"], Exercise(**one))
    told = _selftest(home)
    shutil.rmtree(home)
    yield from cases_of(told)


def _selftest(home: Path) -> Mapping[str, Any]:
    command = [sys.executable, "-m", "assay", "selftest", str(home / "evals"), "--json"]
    command += ["--repeats", "1", "--out", str(home / "proofs.jsonl")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1, 3):  # nothing was told
        raise SystemExit(done.returncode)
    return json.loads(done.stdout)


def _write(place: Path, exercise: Exercise) -> None:
    trees = {
        "source": exercise.source,
        "hidden": exercise.hidden,
        "recordings/reference/files": exercise.reference,
        **{f"recordings/bad-{name}/files": files for name, files in exercise.bad.items()},
    }
    for tree, files in trees.items():
        for name, content in files.items():
            path = place / tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    inject = [{"src": f"hidden/{name}", "dest": name} for name in exercise.hidden]
    case = {
        "id": exercise.id,
        "task": {"prompt": f"Solve {exercise.id}."},
        "source": {"path": "./source"},
        "graders": [{**exercise.grader, "inject": inject}],
        **exercise.options,
    }
    (place / "case.json").write_text(json.dumps(case), "utf-8")


def cases_of(told: Mapping[str, Any]) -> Iterator[Case]:
    """What ``assay selftest`` told; of a single repeat only that tests are not steady."""
    for case in told["cases"]:
        for check in case["checks"]:
            if check["verdict"] != "held" or not check["name"].startswith("repeats"):
                reward = f" ({check['reward']})" if check["reward"] is not None else ""
                said = f"{check['verdict']}: {check['said']}{reward}"
                yield Case(f"{case['case']}/{check['name']}", check["verdict"] == "held", said)
        for one in case["isolation"]:
            apart = one["isolation"] == "process"
            yield Case(f"{case['case']}/apart", apart, f"{one['isolation']}: {one['why']}")
