"""QuixBugs: forty programs of one line too wrong, by the tests that come with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.proof.material import Case, Difference, Source
from bench.proof.suites import Exercise, proven

ABOUT = "forty corrections get everything, and forty bugs are caught"
SOURCE = Source("jkoppel/QuixBugs", "4257f44b0ff1181dedaedee6a447e133219fcebf", "MIT")
AGREE, OF = 240, 240
DIFFERENCES: tuple[Difference, ...] = ()
_SECONDS = 20
"""Some bugs never end."""


def cases(directory: Path) -> Iterator[Case]:
    """Each check of each program that has tests."""
    tests = sorted((directory / "python_testcases").glob("test_*.py"))
    return proven(_exercise(directory, test.stem.removeprefix("test_")) for test in tests)


def _exercise(directory: Path, name: str) -> Exercise:
    def text(place: str) -> dict[str, str]:
        file = directory / place
        return {place: file.read_text("utf-8")} if file.is_file() else {}

    program = f"python_programs/{name}.py"
    node = text("python_programs/node.py")
    correct = (directory / f"correct_python_programs/{name}.py").read_text("utf-8")
    return Exercise(
        name,
        {**node, **text(program)},
        {
            **text("conftest.py"),
            **text("python_testcases/load_testdata.py"),
            **text("python_testcases/node.py"),
            **text(f"python_testcases/test_{name}.py"),
            **text(f"json_testcases/{name}.json"),
        },
        {program: correct},
        grader={"type": "pytest", "timeout_s": _SECONDS},
    )
