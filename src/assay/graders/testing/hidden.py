"""Hidden files: what a case declares, and how they are laid over a workspace.

What a runner of ours loads itself (test sources) goes to it in its brief and is an empty file on
disk, so that a solution which opens the test beside it reads nothing. All else is a real file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias, cast

from assay.errors import GraderError, InputError
from assay.frozen import frozen
from assay.graders.paths import CasePath

_SKIPPED = frozenset({"__pycache__", ".git", ".pytest_cache"})
_MOST_FILES = 20_000
_LARGEST_SOURCE = 4 * 1024 * 1024


@frozen(kw_only=True)
class Injected:
    """A hidden file and where it goes.

    Attributes:
        src: File or directory of the case.
        dest: Path inside the workspace.
        on_disk: Whether the source of a test is on disk, too, where the submission can read it.
    """

    src: CasePath
    dest: str
    on_disk: bool = False


def read_inject(given: object) -> list[Injected]:
    """Read the option ``inject``, as a declaration or as Python code gives it."""
    if given is None:
        return []
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputError("inject is a list", hint="write [./hidden/test_it.py]")
    return [_read_entry(entry) for entry in cast("Sequence[object]", given)]


def _read_entry(entry: object) -> Injected:
    if isinstance(entry, Injected):
        return Injected(src=entry.src, dest=_plain(entry.dest), on_disk=entry.on_disk)
    if isinstance(entry, str) and entry:
        return Injected(src=entry, dest=_plain(PurePosixPath(os.path.normpath(entry)).name))
    pair = cast("Mapping[str, object]", entry if isinstance(entry, Mapping) else {})
    src, dest, on_disk = pair.get("src"), pair.get("dest"), pair.get("on_disk", False)
    if not isinstance(src, str) or not isinstance(dest, str) or not isinstance(on_disk, bool):
        raise InputError(f"{entry!r} cannot be injected", hint="give a path, or src and dest")
    return Injected(src=src, dest=_plain(dest), on_disk=on_disk)


def _plain(dest: str) -> str:
    """A destination in its shortest form; a slash at its end is kept, for it means a directory."""
    path = PurePosixPath(dest)
    if path.is_absolute() or ".." in path.parts or "\0" in dest or dest[:1] in ("", "-"):
        raise InputError(
            f"dest {dest!r} is not a path inside the workspace",
            hint="write it like tests/test_a.py",
        )
    return f"{path}/" if dest.endswith("/") or str(path) == "." else str(path)


def hidden_files(inject: Sequence[Injected]) -> dict[str, str]:
    """Every hidden file: its path in the workspace to its path on this machine.

    A directory goes as a whole, without caches; links in it may lead anywhere inside it.
    """
    found: dict[str, str] = {}
    for entry in inject:
        for dest, src in _expand(entry):
            if found.setdefault(dest, src) != src:
                raise GraderError(f"two hidden files are injected as {dest!r}")
            if len(found) > _MOST_FILES:
                raise GraderError(f"more than {_MOST_FILES} hidden files are injected")
    return found


def _expand(entry: Injected) -> Iterator[tuple[str, str]]:
    root = os.path.realpath(entry.src)
    into = "" if entry.dest in ("./", ".") else entry.dest.rstrip("/")
    if os.path.isfile(root):  # noqa: PTH113 - Path raises for a name too long
        name = PurePosixPath(entry.src).name
        to_directory = entry.dest.endswith("/")
        yield (str(PurePosixPath(into, name)) if to_directory else into), root
        return
    if not Path(root).is_dir():
        raise GraderError(f"the hidden file {entry.src!r} is gone")
    yield from _walk(Path(root), Path(root), PurePosixPath(into), ())


def _walk(
    root: Path, directory: Path, dest: PurePosixPath, above: tuple[Path, ...]
) -> Iterator[tuple[str, str]]:
    for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
        if entry.name in _SKIPPED or entry.name.endswith(".pyc"):
            continue
        real = Path(entry.path).resolve()
        if not real.is_relative_to(root) or real == directory or real in above:
            raise GraderError(f"the hidden link {entry.path!r} leads out of {root.name!r}")
        if real.is_dir():
            yield from _walk(root, real, dest / entry.name, (*above, directory))
        elif real.is_file():
            yield str(dest / entry.name), str(real)
        else:
            raise GraderError(f"the hidden file {entry.path!r} is neither a file nor a directory")


@contextmanager
def lay_out(
    files: Mapping[str, str],
    *,
    told: Collection[str] = (),
    planted: Mapping[str, str] | None = None,
) -> Generator[str]:
    """A directory of hidden files to lay over a workspace; removed, by the next one if killed."""
    import shutil

    from assay.scratch import scratch

    # Older versions, which may be running, lock none of theirs: those are called "assay-layer-".
    with scratch("assay-hidden-") as directory:
        try:
            _fill(str(directory), files, told, planted or {})
        except OSError as error:
            message = f"the hidden file {error.filename!r} cannot be laid out: {error.strerror}"
            raise GraderError(message) from error
        yield str(directory)
        if not all(Path(directory, dest).exists() for dest in {*files, *(planted or {})}):
            raise GraderError(
                f"hidden files were removed from {directory} while the tests ran",
                hint="something clears the directory for temporary files; TMPDIR names another",
            )
        shutil.rmtree(directory, ignore_errors=True)  # of files of ours: no process is needed


def _fill(
    directory: str, files: Mapping[str, str], told: Collection[str], planted: Mapping[str, str]
) -> None:
    import shutil

    for dest in sorted({*files, *planted}):
        place = Path(directory, dest)
        place.parent.mkdir(parents=True, exist_ok=True)
        if dest in planted:
            place.write_text(planted[dest], encoding="utf-8")
        elif dest in told:
            place.touch()
        else:
            shutil.copyfile(files[dest], place)
        runs = dest in files and os.access(files[dest], os.X_OK)
        place.chmod(0o755 if runs else 0o644)
    for parent, _, _ in os.walk(directory):
        Path(parent).chmod(0o755)


def source_text(path: str) -> str:
    """A hidden source as text, in the encoding that it declares."""
    import io
    import tokenize

    try:
        with Path(path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > _LARGEST_SOURCE or not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise GraderError(f"the hidden source {path!r} is too large to be one")
            content = file.read()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return content.decode(encoding)
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise GraderError(f"the hidden source {path!r} cannot be read: {error}") from error


Language: TypeAlias = Literal["go", "java", "javascript", "rust"]

_SUFFIXES: Mapping[str, Language] = {
    ".cjs": "javascript",
    ".cts": "javascript",
    ".go": "go",
    ".java": "java",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".mts": "javascript",
    ".rs": "rust",
    ".ts": "javascript",
    ".tsx": "javascript",
}


def language_of(path: str) -> Language | None:
    """The language of a file by its suffix; None for one whose tests are not found here."""
    return _SUFFIXES.get(PurePosixPath(path).suffix)
