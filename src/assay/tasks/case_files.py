"""The files of a case: where they may lie, and their digest."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from assay.documents import DocumentError, DocumentFault
from assay.errors import Location, SourceError
from assay.graders.digest import framed
from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.tasks.formats import has_rows
from assay.tasks.origin import is_local
from assay.types import codec
from assay.types.codec import Problem

NOT_SOURCE = frozenset(
    (
        ".DS_Store",
        ".assay",
        ".git",
        ".hypothesis",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        "__pycache__",
    )
)
"""Names that are neither copied to a workspace nor counted in a digest, at any depth.

Caches change with every run, and a repository's history may hold the solution.
"""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK

Entry: TypeAlias = tuple[str, str, os.stat_result]
"""Path from the root with ``/``, absolute path, and what `os.lstat` says."""


def tree_entries(root: str, *, everything: bool = False) -> Iterator[Entry]:
    """Walk a directory in a fixed order, following no symbolic link."""
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(Path(root, folder)) as listing:
                names = sorted(entry.name for entry in listing)
        except OSError as error:
            raise SourceError(f"cannot list {Path(root, folder)}: {error.strerror}") from error
        for name in names:
            if name in NOT_SOURCE and not everything:
                continue
            relative = f"{folder}/{name}" if folder else name
            path = Path(root, relative)
            try:
                status = path.lstat()
            except FileNotFoundError:  # gone since: another process replaced the case's lock file
                continue
            yield relative, str(path), status
            if stat.S_ISDIR(status.st_mode):
                pending.append(relative)


def is_inside(path: str, root: str) -> bool:
    """Whether a path, with its symbolic links followed, is a directory or below it."""
    real, top = os.path.realpath(path), os.path.realpath(root)
    return real == top or real.startswith(top.rstrip("/") + "/")


def case_digest(document: Json, root: str, *, file: str, outside: Iterable[tuple[str, str]]) -> str:
    """Digest a case: its parsed document, its directory, and what it names outside of that."""
    whole = hashlib.sha256(b"assay case 1\0")
    canonical = json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    whole.update(framed(canonical.encode()))
    own, lock = str(Path(file).resolve()), lock_name(file)
    for relative, path, status in sorted(tree_entries(root)):
        if relative == lock or (relative.startswith(f"{lock}.") and relative.endswith(".new")):
            continue
        if str(Path(path).parent.resolve() / Path(path).name) != own:
            whole.update(framed(os.fsencode(relative), *_content(path, status)))
    for text, path in sorted(set(outside)):
        whole.update(framed(b"outside", text.encode()))
        status = Path(path).lstat()
        if stat.S_ISDIR(status.st_mode):
            for relative, inner, inner_status in sorted(tree_entries(path)):
                whole.update(framed(os.fsencode(relative), *_content(inner, inner_status)))
        else:
            whole.update(framed(*_content(path, status)))
    return whole.hexdigest()


def lock_name(file: str) -> str:
    """What the lock file of a case file is called; it lies beside it."""
    return f"{Path(file).stem}.lock.json"


def tree_digest(path: str) -> str:
    """Digest a file, or a directory without caches and ``.git``."""
    whole, path = hashlib.sha256(), os.path.realpath(path)
    status = Path(path).lstat()
    whole.update(framed(*_content(path, status)))
    if stat.S_ISDIR(status.st_mode):
        for relative, inner, inner_status in sorted(tree_entries(path)):
            whole.update(framed(os.fsencode(relative), *_content(inner, inner_status)))
    return whole.hexdigest()


def _content(path: str, status: os.stat_result) -> tuple[bytes, bytes]:
    """The kind of an entry and its content; times, owners and most of the mode do not count."""
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        return b"directory", b""
    if stat.S_ISLNK(mode):
        return b"link", os.fsencode(Path(path).readlink())
    if not stat.S_ISREG(mode):
        return b"special", b""  # opening a pipe would wait for ever
    digest = hashlib.sha256()
    try:
        with os.fdopen(os.open(path, _READ), "rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error
    return (b"program" if mode & stat.S_IXUSR else b"file"), digest.digest()


CASE_FILES = ("case.yaml", "case.yml", "case.json")
"""Names of the file that makes a directory a case."""

Kind: TypeAlias = Literal["file", "directory", "any"]

_REFERENCES: tuple[tuple[tuple[str, ...], Kind], ...] = (
    (("task", "instruction_files"), "file"),
    (("source", "path"), "directory"),
    (("source", "git"), "directory"),
    (("source", "repo"), "directory"),
    (("fixtures", "repo"), "directory"),
    (("artifacts", "skills"), "any"),
    (("artifacts", "commands"), "any"),
    (("artifacts", "plugins"), "any"),
    (("artifacts", "mcp"), "file"),
    (("environment", "requirement_files"), "file"),
)


def find_case_files(given: str) -> list[str]:
    """The case files that a path stands for, in the order of their names.

    Args:
        given: A case file, the directory of a case, a directory of such directories, or a
            directory that has one in ``evals``.

    Raises:
        DocumentError: If there is none, or it cannot be looked for.
    """
    try:
        return _found_in(given)
    except OSError as error:
        raise _not_found(given, f"cannot be read: {error.strerror}") from error


def _found_in(given: str) -> list[str]:
    path = Path(given)
    if path.is_file():
        if has_rows(given):
            hint = f"assay grade {given} GRADERS.yaml; rows of tasks need --env env.py"
            raise _not_found(given, "is a file of rows, not a case", hint)
        if path.suffix == ".py":
            hint = f"assay list {given} lists the tasks that it has"
            raise _not_found(given, "is Python, and cases are YAML", hint)
        return [given]
    if not path.is_dir():
        raise _not_found(given, "does not exist")
    own = _case_file(given)
    if own is not None:
        return [own]
    folders = sorted(os.path.join(given, name) for name in os.listdir(given))  # noqa: PTH118, PTH208
    found = [file for folder in folders if (file := _case_file(folder)) is not None]
    if found:
        return found
    evals = os.path.join(given, "evals")  # noqa: PTH118 - as the user would type it
    if path.name != "evals" and Path(evals).is_dir():
        return _found_in(evals)
    hint = "a case is a directory with a case.yaml"
    if stray := sorted(entry.name for entry in path.glob("*.y*ml")):
        name = stray[0].rpartition(".")[0]
        hint += f": move {stray[0]} to {name}/case.yaml, or name the file itself"
    raise _not_found(given, "holds no case", hint)


def reference_problems(data: Mapping[str, Json], root: str) -> list[Problem]:
    """What is wrong with the files and directories that a case names, graders' ones left out."""
    problems: list[Problem] = []
    for path, text, kind in _references(data):
        full = Path(root, text)
        # `os.path.exists` says no to what cannot be a path at all, where `Path.exists` raises.
        if not (text and os.path.exists(full)):  # noqa: PTH110
            problems.append(Problem(path, f"{text!r} does not exist", f"looked for {full}"))
        elif kind == "file" and not full.is_file():
            problems.append(Problem(path, f"{text!r} is not a file"))
        elif kind == "directory" and not full.is_dir():
            problems.append(Problem(path, f"{text!r} is not a directory"))
        elif not _leaves(text) and not is_inside(str(full), root):
            message = f"{text!r} is a link that leads out of the case"
            problems.append(Problem(path, message, "name its target instead"))
        elif path == ("source", "path") and is_inside(root, str(full)):
            message = "the source holds the case itself, its hidden files included"
            problems.append(Problem(path, message, "put it into a directory of its own"))
    return problems


def outside_paths(
    data: Mapping[str, Json], graders: Sequence[GraderSpec], root: str
) -> Iterator[tuple[str, str]]:
    """What a case names outside its directory, as (text in the case, absolute path)."""
    named = [(text, str(Path(root, text))) for _, text, _ in _references(data)]
    written = data.get("graders")
    for item, spec in zip(written if isinstance(written, list) else (), graders, strict=False):
        if isinstance(item, dict):
            named.extend(_changed(item, {"type": spec.type, **spec.options}))
    for text, path in named:
        absolute = os.path.normpath(path)
        if os.path.lexists(absolute) and not is_inside(absolute, root):
            yield text, absolute


def _references(data: Mapping[str, Json]) -> Iterator[tuple[codec.Path, str, Kind]]:
    for (block, name), kind in _REFERENCES:
        inside = data.get(block)
        value = inside.get(name) if isinstance(inside, dict) else None
        if isinstance(value, str):
            if name in ("git", "repo") and not is_local(value):
                continue
            yield (block, name), value, kind
        elif isinstance(value, list):
            for number, item in enumerate(value):
                if isinstance(item, str):
                    yield (block, name, number), item, kind


def _changed(written: Json, resolved: Json) -> Iterator[tuple[str, str]]:
    """The texts that became paths when a grader's options were read."""
    if isinstance(written, str) and isinstance(resolved, str):
        if written != resolved:
            text, path = written, resolved
            if path.startswith("python:"):
                path = path.removeprefix("python:").rpartition(":")[0]
            if path.startswith("/"):  # else it is a choice that was made, such as of isolation
                yield text, path
    elif isinstance(written, dict) and isinstance(resolved, dict):
        for key, item in written.items():
            if key in resolved:
                yield from _changed(item, resolved[key])
    elif isinstance(written, list) and isinstance(resolved, list):
        pairs: Iterable[tuple[Json, Json]] = zip(written, resolved, strict=False)
        for item, other in pairs:
            yield from _changed(item, other)


def _leaves(text: str) -> bool:
    """Whether a path says that it leads out of the case: then that is what its author means."""
    return text.startswith("/") or ".." in text.split("/")


def _case_file(folder: str) -> str | None:
    for name in CASE_FILES:
        file = os.path.join(folder, name)  # noqa: PTH118 - as the user would type it
        if Path(file).is_file():
            return file
    return None


def _not_found(given: str, message: str, hint: str = "") -> DocumentError:
    return DocumentError([DocumentFault(location=Location(file=given), message=message, hint=hint)])
