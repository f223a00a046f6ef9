"""What a peer is asked, and what it answers: JSON in files. Standard library only."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Case = dict[str, Any]

ASKED: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text("utf-8"))
"""``cases``; ``given`` and ``hidden``, texts of the task in code; ``python``, which has pytest."""

COMMAND = f"{ASKED['python']} -m pytest -q test_cart.py"
"""How hidden tests are run, for whom the author writes the command."""


def cases(*kinds: str) -> list[Case]:
    """The cases of these kinds."""
    return [case for case in ASKED["cases"] if case["kind"] in kinds]


def answer(paid: dict[str, bool | str]) -> None:
    """Tell for each case by its id whether it was paid, or what went wrong."""
    Path(sys.argv[2]).write_text(json.dumps(paid), encoding="utf-8")


def each(asked: list[Case], grade: Callable[[Case], bool]) -> dict[str, bool | str]:
    """Grade one after the other; what is raised is an answer, too."""
    told: dict[str, bool | str] = {}
    for case in asked:
        try:
            told[case["id"]] = bool(grade(case))
        except Exception as error:  # of a peer, whatever it is
            told[case["id"]] = f"{type(error).__name__}: {error}"
    return told


@contextmanager
def left(case: Case) -> Iterator[Path]:
    """A directory with what the agent left, for as long as it is graded."""
    place = Path(tempfile.mkdtemp(prefix="left-"))
    try:
        lay(place, {"cart.py": ASKED["given"], **case["files"]})
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def lay(place: Path, files: Mapping[str, str | None]) -> None:
    """Write texts below a directory; None is a file that is not there."""
    for name, text in files.items():
        if text is None:
            (place / name).unlink(missing_ok=True)
        else:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text, encoding="utf-8")
