"""What several commands share."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import InputError

if TYPE_CHECKING:
    from assay.graders.spec import GraderSpec

__all__ = ["Outputs", "check_targets", "state_home", "worker_count"]

_WAITING = 64


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


def check_targets(targets: Iterable[str | None], *, inputs: Iterable[str]) -> None:
    """Refuse files to write that would destroy an input or cannot be written, before any work.

    Raises:
        InputError: Naming the file.
    """
    read = [os.path.realpath(path) for path in inputs]
    written: set[str] = set()
    for target in targets:
        if target is None:
            continue
        real = os.path.realpath(target)
        if real in read:
            raise InputError(f"{target!r} is an input and would be overwritten")
        if real in written:
            raise InputError(f"{target!r} is to be written twice")
        written.add(real)
        if Path(real).is_dir():
            raise InputError(f"cannot write {target!r}: it is a directory")
        folder = Path(real).parent
        if not folder.is_dir():
            raise InputError(f"cannot write {target!r}: there is no directory {str(folder)!r}")
        if not os.access(folder, os.W_OK):
            raise InputError(f"cannot write {target!r}: {str(folder)!r} is not writable")


def state_home() -> str:
    """Where state lives: ``ASSAY_HOME``, or ``.assay`` in the working directory."""
    return os.environ.get("ASSAY_HOME") or str(Path.cwd() / ".assay")


def worker_count(workers: int | None, graders: Iterable[GraderSpec] = ()) -> int:
    """How many cells to work on at once: as many as cores, or many where graders only wait."""
    if workers is None and any(spec.kind.grader and spec.kind.grader.waits for spec in graders):
        return _WAITING
    return workers or len(os.sched_getaffinity(0))
