"""``assay init``: write a starter suite that runs."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from assay.cli.demo import examples_directory
from assay.errors import InputError

__all__ = ["write_starter"]


def write_starter(directory: str) -> int:
    """Copy the starter suite and say what to do with it.

    Args:
        directory: Where to; absent or empty.

    Returns:
        0.

    Raises:
        InputError: If something is there already, or it cannot be written.
    """
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
    print(f"  assay grade {answers} --graders {shlex.quote(graders)} --label correct")
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
