"""Where a pattern may be looked for, so that keywords in a note are not taken for work."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath

from assay.graders.languages import language_of
from assay.graders.tree import read_regular, regular_files

__all__ = ["Scope"]

_MAX_FILES = 20_000
_MAX_FILE = 1 << 20

_PROSE = frozenset(
    {".txt", ".md", ".markdown", ".mdx", ".rst", ".adoc", ".org", ".log", ".text", ""}
)
_DATA = frozenset(
    {
        *(".json", ".jsonl", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf"),
        *(".csv", ".tsv", ".xml", ".html", ".css", ".scss", ".svg"),
    }
)
_NAMEABLE = _PROSE - {""} | _DATA
_WELL_KNOWN = frozenset(
    {
        *("Dockerfile", "Containerfile", "Makefile", "Procfile", "Jenkinsfile", "Vagrantfile"),
        *("Gemfile", "Rakefile", "LICENSE", "README", "CHANGELOG", "CODEOWNERS"),
        *(".gitignore", ".dockerignore", ".env", ".editorconfig"),
    }
)


class Scope:
    """Which files of a submission are searched, and how.

    Args:
        source: The tree that the agent was given; None where it is unknown.
        globs: The author's own choice.
        task: The words of the task.
    """

    def __init__(self, source: Path | None, globs: Sequence[str] | None, task: str) -> None:
        self._source = source
        self._globs = globs
        self._task = task.casefold()

    @cached_property
    def _given(self) -> frozenset[str]:
        """The paths of the source."""
        found: set[str] = set()
        for path in regular_files(self._source) if self._source else ():
            if len(found) >= _MAX_FILES:
                break
            found.add(path.as_posix())
        return frozenset(found)

    @cached_property
    def is_narrow(self) -> bool:
        """Whether the scope is ours to choose: the author names none, and the task is a program."""
        return not self._globs and any(language_of(name) for name in self._given)

    def refusal(self, name: str) -> str:
        """Why a file is not searched, or "" if it is; a glob's own choice is not worth a word."""
        if not self.is_narrow or language_of(name) or self._is_named(name):
            return ""
        if name not in self._given:
            return "is new and no program"
        return "is prose" if PurePosixPath(name).suffix.lower() in _PROSE else ""

    def leaves_out(self, name: str) -> bool:
        """Whether the author's globs do not match a file."""
        return bool(self._globs) and not any(fnmatchcase(name, glob) for glob in self._globs or ())

    def given(self, name: str) -> bytes | None:
        """What the source has at a path, if it has a file there."""
        if self._source is None or name not in self._given:
            return None
        data = read_regular(self._source, name, limit=_MAX_FILE)
        return data if isinstance(data, bytes) else None

    def _is_named(self, name: str) -> bool:
        """Whether the task names a file.

        A file of the source also without its suffix, or by its directory. A new file only by its
        name in full, and only where that looks like a file's: its name is the agent's choice, and
        "e.g" or "Add" stand in many a task.
        """
        path = PurePosixPath(name)
        names = [path.name]
        if name in self._given:
            names += [path.stem, *path.parts[:-1]]
        elif path.suffix.lower() not in _NAMEABLE and path.name not in _WELL_KNOWN:
            return False
        return any(len(n) >= 3 and self._mentions(n.casefold()) for n in names)

    def _mentions(self, word: str) -> bool:
        return re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", self._task) is not None
