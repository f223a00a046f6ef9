"""The kind ``files``: expected files byte for byte, and patterns over what was left."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import ClassVar

from assay.errors import InputError
from assay.graders.base import Grader
from assay.graders.paths import CasePath
from assay.sandbox.inside import open_inside
from assay.scoring.json_safe import Json
from assay.text.pattern import compile_pattern
from assay.types.submission import Workspace

__all__ = ["FilesGrader"]

_SKIPPED = frozenset({".git", "__pycache__", ".venv", "node_modules"})
_MAX_FILE = 1 << 20
_MAX_FILES = 20_000
_MAX_TOTAL = 64 << 20


class FilesGrader(Grader):
    """Fraction of two kinds of checks that pass: expected files, and patterns in files.

    Only regular files of the workspace itself are read: links are not followed. For patterns,
    files over 1 MiB and everything past 20,000 files or 64 MiB is not searched (the evidence says
    so), nor are ``.git``, ``__pycache__``, ``.venv`` and ``node_modules``. An expected file that
    cannot be read that way is a failed check.
    """

    name: ClassVar[str] = "files"

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Refuse a declaration without a check, and patterns that RE2 does not take."""
        patterns = options.get("patterns")
        if options.get("expect_dir") is None and not patterns:
            raise InputError("files needs expect_dir or patterns")
        for pattern in patterns if isinstance(patterns, list) else []:
            compile_pattern(str(pattern))

    @classmethod
    async def compute_score(
        cls,
        workspace: Workspace,
        expect_dir: CasePath | None = None,
        patterns: list[str] | None = None,
        files: list[str] | None = None,
    ) -> tuple[float, dict[str, Json]]:
        r"""Check the files.

        Args:
            workspace: Where to look.
            expect_dir: Each file in it must exist in the workspace with equal bytes.
            patterns: Regular expressions (RE2: linear time), each of which must be found in some
                file. Inline flags such as ``(?i)`` work.
            files: Globs that ``patterns`` are limited to, such as ``src/*.py``; ``*`` also
                matches ``/``.

        Raises:
            InputError: For neither check, or a pattern that RE2 does not take.
        """
        root = Path(workspace.path)
        checks: list[Json] = []
        if expect_dir is not None:
            checks.extend(_expected(Path(expect_dir), root))
        limited: list[str] = []
        if patterns:
            checks.extend(_found(patterns, root, files, limited))
        if not checks:
            raise InputError("files needs expect_dir or patterns")
        passed = sum(1 for check in checks if isinstance(check, dict) and check["ok"] is True)
        evidence: dict[str, Json] = {"checks": checks}
        if limited:
            evidence["not_searched"] = list[Json](limited[:20])
        return passed / len(checks), evidence


def _expected(expect_dir: Path, root: Path) -> Iterator[Json]:
    found_any = False
    for path in sorted(p for p in expect_dir.rglob("*") if p.is_file()):
        found_any = True
        relative = path.relative_to(expect_dir)
        problem = _difference(path, root, relative)
        yield {"check": "expect_dir", "file": str(relative), "ok": not problem, "why": problem}
    if not found_any:
        raise InputError(f"expect_dir {str(expect_dir)!r} has no files")


def _difference(expected: Path, root: Path, relative: Path) -> str:
    wanted = expected.read_bytes()
    data = _read_inside(root, relative, limit=len(wanted))
    if isinstance(data, str):
        return data
    return "" if data == wanted else "differs"


def _read_inside(root: Path, relative: Path, *, limit: int) -> bytes | str:
    """Read a regular file of at most ``limit`` bytes, following no link; else say why not."""
    try:
        handle = open_inside(str(root), str(relative), os.O_RDONLY)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read as a regular file: {error.strerror or error}"
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        return "is not a regular file"
    with os.fdopen(handle, "rb") as file:
        data = b"" if status.st_size > limit else file.read(limit + 1)
        return "is too large" if max(status.st_size, len(data)) > limit else data


def _found(
    patterns: Sequence[str], root: Path, globs: Sequence[str] | None, limited: list[str]
) -> list[Json]:
    compiled = [compile_pattern(pattern) for pattern in patterns]
    where: list[str | None] = [None] * len(patterns)
    for name, text in _texts(root, globs, limited):
        for number, pattern in enumerate(compiled):
            if where[number] is None and pattern.search(text) is not None:
                where[number] = name
        if None not in where:
            break
    return [
        {"check": "pattern", "pattern": pattern, "ok": name is not None, "file": name}
        for pattern, name in zip(patterns, where, strict=True)
    ]


def _texts(
    root: Path, globs: Sequence[str] | None, limited: list[str]
) -> Iterator[tuple[str, str]]:
    total = 0
    for count, relative in enumerate(_regular_files(root)):
        if count >= _MAX_FILES:
            limited.append(f"everything after {count} files")
            return
        name = str(relative)
        if globs and not any(fnmatch(name, glob) for glob in globs):
            continue
        data = _read_inside(root, relative, limit=min(_MAX_FILE, _MAX_TOTAL - total))
        if isinstance(data, bytes):
            total += len(data)
            yield name, data.decode("utf-8", "replace")
        else:
            limited.append(f"{name} {data}")


def _regular_files(root: Path) -> Iterator[Path]:
    """The regular files of a tree in order of name, however deep it is.

    Not by `os.walk`, which recurses in Python before 3.12: a thousand directories inside each
    other would end the grading with an error instead of a score.
    """
    waiting = [Path()]
    while waiting:
        directory = waiting.pop()
        try:
            with os.scandir(root / directory) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:  # not ours to read, or its path is longer than the system takes
            continue
        inner = [e for e in entries if e.is_dir(follow_symlinks=False) and e.name not in _SKIPPED]
        waiting.extend(directory / entry.name for entry in reversed(inner))
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                yield directory / entry.name
