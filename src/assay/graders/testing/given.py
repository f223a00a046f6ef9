"""The source's own tests: no secret, but as much the author's word as hidden ones."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from assay.errors import GraderError
from assay.graders.testing.commands import Invocation
from assay.graders.testing.hidden import source_text
from assay.types.submission import Workspace

__all__ = ["given_sources"]

_RUNNERS = ("pytest", "unittest", "unknown")
_NAMES = ("test_*.py", "*_test.py")
_DIRECTORIES = ("tests", "test")
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "target"})
_MOST_FILES = 300
_MOST_BYTES = 4 * 1024 * 1024
_MOST_SEEN = 20_000


def given_sources(
    workspace: Workspace, invocation: Invocation, hidden: Collection[str]
) -> dict[str, str]:
    """The Python tests of the source that the submission left as they are: path to text.

    A runner of ours loads them like hidden ones, so that they hold against the code they test.
    They are looked for as they are called: ``test_*.py``, ``*_test.py``, and whatever lies below a
    directory of tests, but no ``conftest.py``.

    Args:
        workspace: The grading tree.
        invocation: What the command starts.
        hidden: Paths of the injected files, which replace them.
    """
    if workspace.source is None or invocation.runner not in _RUNNERS:
        return {}
    scripts = {PurePosixPath(name).name for name in invocation.scripts}
    found: dict[str, str] = {}
    left = _MOST_BYTES
    for path in _tests_below(workspace.source):
        if path in hidden or PurePosixPath(path).name in scripts:
            continue
        text, size = _unaltered(Path(workspace.source, path), Path(workspace.path, path), left)
        if text is None:
            continue
        found[path], left = text, left - size
        if len(found) == _MOST_FILES:
            break
    return found


def _tests_below(root: str) -> Iterator[str]:
    seen = 0
    for parent, directories, files in os.walk(root):
        directories[:] = sorted(
            name for name in directories if name not in _SKIPPED and not name.startswith(".")
        )
        seen += len(files) + len(directories)
        if seen > _MOST_SEEN:
            return
        inside = PurePosixPath(os.path.relpath(parent, root))
        in_tests = any(part in _DIRECTORIES for part in inside.parts)
        for name in sorted(files):
            if not name.endswith(".py") or name == "conftest.py":
                continue
            if in_tests or any(fnmatch(name, pattern) for pattern in _NAMES):
                yield str(inside / name)


def _unaltered(first: Path, now: Path, most: int) -> tuple[str | None, int]:
    """The text of a file that is the same in two places, and its size."""
    if any(path.is_symlink() or not path.is_file() for path in (first, now)):
        return None, 0
    size = first.stat().st_size
    if not 0 < size <= most or now.stat().st_size != size:
        return None, 0
    try:
        if first.read_bytes() != now.read_bytes():
            return None, 0
        return source_text(str(first)), size
    except (OSError, GraderError):  # it stays what the runner makes of it
        return None, 0
