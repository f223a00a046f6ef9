"""Options that several commands share."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Cases",
    "FailUnder",
    "Html",
    "Json",
    "Junit",
    "Label",
    "Outputs",
    "Workers",
    "state_home",
    "worker_count",
]

Cases = Annotated[list[str] | None, typer.Option("--case", help="Only this case id.")]
Workers = Annotated[
    int | None, typer.Option(help="Cells at once; as many as there are cores by default.", min=1)
]
Label = Annotated[str, typer.Option(help="A name of your own for the run.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Junit = Annotated[str | None, typer.Option(metavar="FILE", help="Also write a JUnit XML report.")]
Html = Annotated[
    str | None, typer.Option(metavar="FILE", help="Also write a report as one HTML file.")
]
FailUnder = Annotated[
    float | None,
    typer.Option(metavar="X", help="Pass if the mean reward is at least X.", min=0.0, max=1.0),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Where results go besides the terminal, and what passes.

    Attributes:
        json: One JSON object on standard output, and nothing else there.
        junit: File for JUnit XML.
        html: File for the HTML report.
        fail_under: Mean reward that passes; None asks every graded cell to pass.
    """

    json: bool = False
    junit: str | None = None
    html: str | None = None
    fail_under: float | None = None


def state_home() -> str:
    """Where state lives: ``ASSAY_HOME``, or ``.assay`` in the working directory."""
    return os.environ.get("ASSAY_HOME") or str(Path.cwd() / ".assay")


def worker_count(workers: int | None) -> int:
    """How many cells to work on at once."""
    return workers or len(os.sched_getaffinity(0))
