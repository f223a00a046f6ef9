"""``assay demo`` and ``assay init``: the shipped examples."""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import cast

from assay.cli.demo_page import PARTS, Findings, run_examples, show
from assay.cli.options import add_db, explain, state_home
from assay.errors import InputError

_EXPECTED = "expected.json"


def add(parser: ArgumentParser) -> None:
    """Say what ``assay demo`` takes."""
    explain(
        parser,
        "It has a real bug of a real package, datasets, an environment and typed answers; and on\n"
        "purpose one failure, one grading error and one gate that disqualifies.",
    )
    own = "examples of your own instead"
    parser.add_argument("directory", nargs="?", metavar="DIR", help=own)
    add_db(parser)


def add_init(parser: ArgumentParser) -> None:
    """Say what ``assay init`` takes."""
    parser.add_argument("directory", nargs="?", default="assay-suite", metavar="DIR")


def run(given: Namespace) -> int:
    """Run the examples and print what came out.

    Returns:
        0 if every grade is the expected one, 1 if not, 3 if something could not be run.
    """
    from rich.console import Console

    findings = Findings(examples_directory(given.directory), state_home())
    expected = _expected(findings.directory)
    started = time.monotonic()
    with Console(stderr=True, highlight=False).status("starting") as status:
        asyncio.run(run_examples(findings, status.update))
    findings.seconds = time.monotonic() - started
    findings.differences = _differences(findings, expected)
    _sort(findings, expected)
    show(Console(highlight=False), findings)
    surprises = [cell for key, cell in findings.by_key().items() if key in findings.differences]
    if findings.missing or any(cell.status == "error" for cell in surprises):
        return 3
    return 1 if findings.differences else 0


def examples_directory(directory: str | None = None) -> Path:
    """The examples: those given, those of the installed package, or those of the checkout."""
    import assay

    package = Path(assay.__file__).parent
    shipped = [package / "_examples", package.parents[1] / "examples"]
    candidates = [Path(directory)] if directory else shipped
    for candidate in candidates:
        if all((candidate / part).is_dir() for part in PARTS):
            return candidate.resolve()
    raise InputError(
        f"no examples in {candidates[-1]}", hint=f"a directory with {', '.join(PARTS)}"
    )


def _expected(directory: Path) -> dict[str, float | None]:
    """The expected reward of each cell, None for one that cannot be graded."""
    file = directory / _EXPECTED
    try:
        return cast("dict[str, float | None]", json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {file}: {error}") from error


def _differences(findings: Findings, expected: dict[str, float | None]) -> dict[str, str]:
    """A sentence for each result that is not the expected one; each cause is told once."""
    found = findings.by_key()
    said: dict[str, str] = {}
    causes: set[str] = set()
    for key, wanted in expected.items():
        cell = found.get(key)
        if cell is None:
            if not (findings.missing and key.startswith(f"{PARTS[0]}/")):
                said[key] = "has no result"
        elif not _same(cell.reward, wanted):
            cause = f": {cell.error}" if cell.error and cell.error not in causes else ""
            causes.add(cell.error)
            said[key] = f"should be {_reward(wanted)} and is {_reward(cell.reward)}{cause}"
    return said | {key: "has an unexpected result" for key in found if key not in expected}


def _sort(findings: Findings, expected: dict[str, float | None]) -> None:
    """Put the results into the order of the expected ones, which is that of the examples."""
    place = {key: number for number, key in enumerate(expected)}
    for part in findings.parts:
        part.cells.sort(key=lambda cell: place.get(part.key(cell), len(place)))


def _same(reward: float | None, wanted: float | None) -> bool:
    if reward is None or wanted is None:
        return reward is wanted
    return abs(reward - wanted) < 1e-6


def _reward(reward: float | None) -> str:
    return "an error" if reward is None else f"{reward:.4g}"


def run_init(given: Namespace) -> int:
    """Copy the starter suite and say what to do with it."""
    directory: str = given.directory
    target = Path(directory)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InputError(
                f"{directory} is already there", hint="nothing was changed; choose another name"
            )
        written = _copy(examples_directory() / "starter", target)
    except OSError as error:
        raise InputError(f"cannot write {directory}: {error}") from error
    for file in written:
        print(f"  {file}")
    place = shlex.quote(directory)
    answers, graders = shlex.quote(f"{directory}/answers.jsonl"), f"{directory}/graders.yaml"
    print(f"\nA suite that runs; {directory}/README.md explains it. Try:\n")
    print(f"  assay run {place}")
    print(f"  assay grade {answers} {shlex.quote(graders)} --label correct")
    print(f"\n{directory}/harnesses.yaml says how to ask a model of your own.")
    return 0


def _copy(source: Path, target: Path) -> list[Path]:
    """Copy files, with the usual modes: an installed package may be read-only."""
    written: list[Path] = []
    for file in sorted(source.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
            written.append(copy)
    return written
