"""What is written of other systems' tasks: directories that are whole or not there."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from assay.documents import DocumentError, read_document
from assay.errors import AssayError, InputError, Location
from assay.scratch import scratch
from assay.tasks.case import load_case


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


Write: TypeAlias = "Callable[[str], WrittenCase]"


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOfSet:
    """One task of a set that is imported.

    Attributes:
        name: Its name, and that of the directory of its case; empty where it has none.
        place: Where it stands in the set.
        origin: Digest of what its case is made of, which the case keeps in its metadata.
        write: Writes the case into a directory; None where it cannot be read.
        said: Why it cannot be read.
    """

    name: str = ""
    place: Location
    origin: str = ""
    write: Write | None = None
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTask:
    """What became of one task of a set.

    Attributes:
        task: The task.
        case: Its case; None where there is none.
        was_there: Whether the case was made before, of the same.
        said: Why there is none.
    """

    task: OneOfSet
    case: WrittenCase | None = None
    was_there: bool = False
    said: str = ""


def write_set(tasks: Iterable[OneOfSet], directory: str) -> Iterator[ImportedTask]:
    """Write every task of a set as a case; one that cannot be is told, and the others are written.

    Cases that are there, made of the same, are left alone: what was interrupted goes on.

    Args:
        tasks: The set.
        directory: Where to, each below its name.
    """
    seen: dict[str, Location] = {}
    for task in tasks:
        if task.write is None:
            yield ImportedTask(task=task, said=task.said)
        elif (first := seen.get(task.name)) is not None:
            yield ImportedTask(task=task, said=f"the name {task.name!r} is already that of {first}")
        else:
            seen[task.name] = task.place
            yield _imported(task, task.write, str(Path(directory, task.name)))


def _imported(task: OneOfSet, write: Write, directory: str) -> ImportedTask:
    try:
        if not os.path.lexists(directory):
            return ImportedTask(task=task, case=write(directory))
        made_of = _made_of(directory)
        if not made_of or made_of != task.origin:
            hint = "remove it, or choose another --out"
            raise InputError(f"{directory} is there, and not made of this", hint=hint)
        notes: tuple[str, ...] = ()
        try:
            load_case(directory)
        except DocumentError as error:
            notes = (f"its case does not load: {error.message}",)
        case = WrittenCase(directory=directory, files=(), runnable=not notes, notes=notes)
        return ImportedTask(task=task, case=case, was_there=True)
    except AssayError as error:
        return ImportedTask(task=task, said=str(error))


def _made_of(directory: str) -> str:
    """The origin that a case names in its metadata; empty if it names none."""
    try:
        data = read_document(str(Path(directory, "case.yaml")), []).data
    except (DocumentError, OSError):
        return ""
    metadata = data.get("metadata") if isinstance(data, dict) else None
    told = metadata.get(ORIGIN) if isinstance(metadata, dict) else None
    return told if isinstance(told, str) else ""


ORIGIN = "imported"
"""What a case's metadata calls the digest of what it was made of."""


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
        with scratch(".assay-import-", str(target.parent)) as beside:
            whole = beside / "whole"
            whole.mkdir()
            yield whole
            whole.replace(target)
    except OSError as error:
        raise InputError(f"cannot write {directory}: {error}") from error


def check_loads(written: Path) -> None:
    """Read a case that was written, before it becomes the directory that its author sees.

    Raises:
        InputError: It does not load: as what it was made of says what no case may say.
    """
    try:
        load_case(str(written))
    except DocumentError as error:
        said = [
            f"{one.location.field}: {one.message}" if one.location.field else one.message
            for one in error.faults
        ]
        raise InputError(f"its case would not load: {'; '.join(said)}", hint=error.hint) from error


def files_below(directory: Path) -> list[str]:
    """Paths of all files in a directory, relative to it, sorted."""
    return sorted(p.relative_to(directory).as_posix() for p in directory.rglob("*") if p.is_file())


def tidy(text: str) -> str:
    """A text that YAML can show as it is: no carriage returns and no space at the end of lines."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"
