"""Trees to grade `implemented` on: what was given, what was left, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from assay.graders.implemented import ImplementedGrader
from assay.scoring import Json, SubScore
from assay.types import Workspace
from tests.written_files import write_files

Tree = Mapping[str, str | bytes]


def lay(place: Path, tree: Tree) -> Path:
    place.mkdir(exist_ok=True)
    return write_files(place, tree)


async def grade(root: Path, left: Tree, source: Tree | None = None, **options: object) -> SubScore:
    """Grade what was left, in a grading tree that holds something else."""
    pristine = None if source is None else str(lay(root / "pristine", source))
    workspace = Workspace(
        path=str(lay(root / "grading", {"nothing.here": ""})),
        submitted=str(lay(root / "left", left)),
        source=pristine,
    )
    return await ImplementedGrader.grade(1.0, None, gate=True, workspace=workspace, **options)


def reasons(node: SubScore) -> dict[str, str]:
    rows = cast("list[dict[str, Json]]", dict(node.metadata or {})["files"])
    return {str(row["file"]): "; ".join(cast("list[str]", row["why"])) for row in rows}


STUB = "def add(a, b):\n    raise NotImplementedError\n"
GOOD = "def add(a, b):\n    return a + b\n"
