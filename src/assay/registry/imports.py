"""Import graders: files on a disk, where somebody else may have put them, and what each changes.

All of an import is stored or nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Literal, TypeAlias

from assay.errors import ConflictError, InputError, Location, LockedError
from assay.registry.definitions import MAX_DEFINITION_BYTES
from assay.registry.files import MAX_FILES, GraderFile, is_grader_file, is_source_file
from assay.registry.policy import Permissions
from assay.registry.validation import ValidationFailedError, validate
from assay.store.catalog import GraderRecord
from assay.store.checks import valid_key

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def read_folder(path: str | os.PathLike[str]) -> tuple[dict[str, str], str]:
    """Read the grader files.

    Args:
        path: A directory: every ``KEY.yaml`` in it, and the ``KEY.py`` beside each. A ``.py`` that
            defines ``grade`` without a ``KEY.yaml`` is read, too, so that it is missed; whatever
            else is there is ignored. Or one such ``KEY.yaml``.

    Returns:
        The texts by file name, and what stands before the names in messages.

    Raises:
        InputError: If there are none; for a symbolic link or anything else that is not a regular
            file, for one that is too large, and for one that is not UTF-8.
    """
    place = Path(path)
    folder, only = (place, "") if place.is_dir() else (place.parent, place.name)
    shown = f"{place}/" if not only else f"{folder}/" if str(folder) != "." else ""
    with _opened(folder, str(path), "cannot be read") as handle:
        names = _names(handle, only, str(path))
        files: dict[str, str] = {}
        for name in names:
            files[name] = _read(handle, name, f"{shown}{name}")
            source = f"{name.removesuffix('.yaml')}.py"
            if _is_there(handle, source):
                files[source] = _read(handle, source, f"{shown}{source}")
        if not only:
            files |= _lone_sources(handle, files)
    return files, shown


def _lone_sources(handle: int, files: Mapping[str, str]) -> dict[str, str]:
    """Functions without their ``KEY.yaml``: whoever put them there meant them to be graders."""
    sources = [name for name in _visible(handle) if name.endswith(".py") and name not in files]
    texts = {name: _text_of(handle, name) for name in sources}
    return {name: text for name, text in texts.items() if is_source_file(text)}


def stale_files(
    stored: Collection[str], path: str | os.PathLike[str], *, remove: bool = False
) -> list[Path]:
    """Graders' files in a directory that belong to no stored grader any more.

    Returns:
        The files, sorted: every other ``KEY.yaml`` that says what graders' files say, and each
        ``KEY.py`` that defines ``grade`` beside such a one, or beside that of a grader that is no
        function. No links, and nothing else that may stand in the directory.

    Raises:
        InputError: If the directory cannot be read, or a file not removed.
    """
    with _opened(path, str(path), "cannot be read") as handle:
        others = [name for name in _visible(handle) if name not in stored and _has_key(name)]
        stale = {
            name
            for name in others
            if name.endswith(".yaml") and is_grader_file(_text_of(handle, name))
        }
        keys = {name.removesuffix(".yaml") for name in (*stale, *stored) if name.endswith(".yaml")}
        stale |= {
            name
            for name in others
            if name.endswith(".py")
            and name.removesuffix(".py") in keys
            and is_source_file(_text_of(handle, name))
        }
        for name in sorted(stale) if remove else ():
            try:
                os.unlink(name, dir_fd=handle)
            except OSError as error:
                raise _unusable(str(Path(path, name)), "cannot be removed", error) from error
    return [Path(path, name) for name in sorted(stale)]


def _has_key(name: str) -> bool:
    try:
        valid_key(name.rpartition(".")[0])
    except InputError:
        return False
    return True


def _visible(handle: int) -> list[str]:
    return sorted(name for name in os.listdir(handle) if not name.startswith("."))


def _text_of(handle: int, name: str) -> str:
    """The text of a file; empty for what is not a file of ours: a link, a pipe, no text."""
    try:
        return _read(handle, name, name)
    except InputError:
        return ""


def write_folder(files: Mapping[str, str], path: str | os.PathLike[str]) -> list[Path]:
    """Write the grader files; each is there whole, or as it was before.

    A symbolic link of the same name is replaced, not followed.

    Raises:
        InputError: If a file cannot be written.
    """
    folder, what = Path(path), "cannot be written to"
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(str(path), what, error) from error
    with _opened(folder, str(path), what) as handle:
        for name, text in sorted(files.items()):
            try:
                _write(handle, name, text.encode())
            except OSError as error:
                raise _unusable(str(folder / name), "cannot be written", error) from error
            written.append(folder / name)
    return written


@contextmanager
def _opened(folder: str | os.PathLike[str], shown: str, what: str) -> Generator[int]:
    """A directory; names are looked up in it, wherever its path leads by now."""
    try:
        handle = os.open(folder, _FOLDER)
    except OSError as error:
        raise _unusable(shown, what, error) from error
    try:
        yield handle
    finally:
        os.close(handle)


def _names(handle: int, only: str, path: str) -> list[str]:
    if only:
        if not _is_there(handle, only):
            raise InputError(f"there is no {path!r}")
        if not only.endswith(".yaml"):
            raise InputError(
                f"{path!r} is not a grader's file",
                hint="name a directory of them, or one KEY.yaml; a function: graders create KEY "
                "FILE.py",
            )
        return [only]
    everything = _visible(handle)
    for name in everything:
        if name.endswith(".yml"):
            raise InputError(
                "is not read: a grader's file is named KEY.yaml",
                location=Location(file=f"{path}/{name}"),
                hint="rename it, or move it elsewhere",
            )
    names = [name for name in everything if name.endswith(".yaml")]
    if not names:
        raise InputError(
            f"{path!r} has no KEY.yaml in it", hint="`assay graders export` makes them"
        )
    if len(names) > MAX_FILES:
        raise InputError(f"{path!r} has {len(names)} files; the most at once is {MAX_FILES}")
    return names


def _is_there(handle: int, name: str) -> bool:
    try:
        os.lstat(name, dir_fd=handle)
    except OSError:
        return False
    return True


def _read(handle: int, name: str, shown: str) -> str:
    try:
        file = os.open(name, _READ, dir_fd=handle)
    except OSError as error:
        what = "is a symbolic link" if _is_link(handle, name) else "cannot be read"
        raise _unusable(shown, what, error) from error
    with os.fdopen(file, "rb") as stream:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise InputError("is not a regular file", location=Location(file=shown))
        content = stream.read(MAX_DEFINITION_BYTES + 1)
    if len(content) > MAX_DEFINITION_BYTES:
        raise InputError(
            f"is larger than {MAX_DEFINITION_BYTES} bytes", location=Location(file=shown)
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        where = Location(file=shown, line=line)
        raise InputError("is not UTF-8 text", location=where, hint="save it as UTF-8") from error


def _is_link(handle: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(name, dir_fd=handle).st_mode)
    except OSError:
        return False


def _write(handle: int, name: str, content: bytes) -> None:
    temporary = f".{name[:80]}.{token_hex(6)}"
    try:
        with os.fdopen(os.open(temporary, _WRITE, 0o666, dir_fd=handle), "wb") as stream:
            stream.write(content)
        os.replace(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
    except BaseException:
        if _is_there(handle, temporary):
            os.unlink(temporary, dir_fd=handle)
        raise


def _unusable(place: str, what: str, error: OSError) -> InputError:
    return InputError(f"{what}: {error.strerror}", location=Location(file=place))


Change: TypeAlias = Literal["created", "updated", "described", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What importing one grader did.

    Attributes:
        change: ``created``; ``updated``, which made a version; ``described``, which changed only
            what people read; or ``unchanged``.
        record: The grader as it is now.
    """

    change: Change
    record: GraderRecord


@dataclass(frozen=True, slots=True)
class PlannedImport:
    """What importing one file will do."""

    file: GraderFile
    change: Change
    present: GraderRecord | None


async def validate_import(planned: Sequence[PlannedImport], permissions: Permissions) -> None:
    """Check every definition that will be stored.

    Raises:
        ValidationFailedError: For the first that does not do what it must.
    """
    # Files may come from anybody, so that none makes us import a class it names: `grade` does.
    permissions = replace(permissions, custom_code=False)
    for plan in planned:
        if plan.change in ("created", "updated"):
            report = await validate(plan.file.definition, (), permissions)
            if not report.valid:
                raise ValidationFailedError(plan.file.key, report, plan.file.file)


def plan_of(file: GraderFile, present: GraderRecord | None) -> PlannedImport:
    """What a file will change of the grader that is there, if one is."""
    if present is None:
        return PlannedImport(file, "created", None)
    if not file.definition.is_of(present.latest):
        return PlannedImport(file, "updated", present)
    said = (present.name, present.description, present.feedback_key)
    is_same = said == (file.name or file.key, file.description, file.feedback_key or file.key)
    return PlannedImport(file, "unchanged" if is_same else "described", present)


def refuse(planned: Iterable[PlannedImport], *, update: bool) -> None:
    """Refuse changes of what is there.

    Raises:
        LockedError: If one that is locked would change.
        ConflictError: If one that is there would change and ``update`` is false.
    """
    changed = [plan for plan in planned if plan.present is not None and plan.change != "unchanged"]
    locked = [plan.file.key for plan in changed if plan.present and plan.present.locked]
    if locked:
        raise LockedError(
            f"locked: {', '.join(locked)}", hint="nothing was imported; unlock them first"
        )
    if changed and not update:
        there = ", ".join(plan.file.key for plan in changed)
        raise ConflictError(
            f"there already, and different: {there}", hint="nothing was imported; allow updates"
        )
