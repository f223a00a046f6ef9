"""What is written of other systems' tasks: directories that are whole or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from assay.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCase:
    """What was written.

    Attributes:
        directory: The case.
        files: Paths in it, sorted.
        runnable: Whether it can be run as it is.
        notes: What its author should know or do.
    """

    directory: str
    files: tuple[str, ...]
    runnable: bool
    notes: tuple[str, ...]


@contextmanager
def new_directory(directory: str) -> Generator[Path]:
    """An empty directory beside the one that is named, which it becomes at the end.

    Raises:
        InputError: If that is there and not empty, or cannot be written.
    """
    target = Path(directory)
    try:
        if os.path.lexists(target) and (not target.is_dir() or any(target.iterdir())):
            hint = "nothing was changed; choose another name"
            raise InputError(f"{directory} is already there", hint=hint)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as beside:
            whole = Path(beside, "whole")
            whole.mkdir()
            yield whole
            whole.replace(target)
    except OSError as error:
        raise InputError(f"cannot write {directory}: {error}") from error


def files_below(directory: Path) -> list[str]:
    """Paths of all files in a directory, relative to it, sorted."""
    return sorted(p.relative_to(directory).as_posix() for p in directory.rglob("*") if p.is_file())


def tidy(text: str) -> str:
    """A text that YAML can show as it is: no carriage returns and no space at the end of lines."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"
