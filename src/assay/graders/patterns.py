"""Look for an author's patterns in the files of a submission."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.graders.languages import language_of
from assay.graders.scope import Scope
from assay.graders.stubs.reader import SourceReader
from assay.graders.tree import read_regular, regular_files
from assay.scoring.json_safe import Json
from assay.text.pattern import Pattern, compile_pattern

__all__ = ["PatternSearch"]

_MAX_FILE = 1 << 20
_MAX_FILES = 20_000
_MAX_TOTAL = 64 << 20
_MAX_CPU_SECONDS = 100.0
_QUOTES = frozenset("'\"`")
"""A pattern with one of them asks for a string; any other must stand outside of strings."""


@dataclass(slots=True)
class PatternSearch:
    """One search.

    Attributes:
        root: The tree that is searched.
        scope: Which of its files count.
        not_searched: Gets a line for each that could not be searched, or does not count.
    """

    root: Path
    scope: Scope
    not_searched: list[str]
    _patterns: Sequence[str] = ()

    def find(self, patterns: Sequence[str]) -> list[Json]:
        """Look for each pattern; the evidence says in which file it was found first.

        Raises:
            InputError: For a pattern that RE2 does not take.
            GraderError: If the process that reads Python does not start.
        """
        compiled = [compile_pattern(pattern) for pattern in patterns]
        self._patterns = patterns
        where: dict[int, str] = {}
        with SourceReader() as reader:
            for name, data in self._files():
                text = data.decode("utf-8", "replace")
                found = [n for n, p in enumerate(compiled) if n not in where and p.search(text)]
                if found and self.scope.is_narrow and language_of(name):
                    found = self._counted(compiled, found, name, data, reader)
                where.update(dict.fromkeys(found, name))
                if len(where) == len(compiled):
                    break
        return [
            {"check": "pattern", "pattern": pattern, "ok": n in where, "file": where.get(n)}
            for n, pattern in enumerate(patterns)
        ]

    def _counted(
        self,
        compiled: Sequence[Pattern],
        found: list[int],
        name: str,
        data: bytes,
        reader: SourceReader,
    ) -> list[int]:
        """Those of the patterns found in a program that count."""
        from assay.graders.comments import squeezed

        given = self.scope.given(name)
        code = _code(data, name, reader)
        before = None if given is None else _code(given, name, reader)
        if code is None:
            if given is not None and before is None:
                return found  # what was given does not parse either
            self.not_searched.append(f"{name} does not parse")
            return []
        bare = _code(data, name, reader, texts=False) or ""
        in_code = [
            n
            for n, pattern in enumerate(compiled)
            if pattern.search(code if _QUOTES & set(self._patterns[n]) else bare)
        ]
        counted = [n for n in found if n in in_code]
        if len(counted) < len(found):
            if in_code and (before is None or squeezed(before) != squeezed(code)):
                return found
            self.not_searched.append(
                f"the comments and strings of {name}, without code that matches"
            )
        return counted

    def _files(self) -> Iterator[tuple[str, bytes]]:
        total = 0
        for count, relative in enumerate(regular_files(self.root)):
            if count >= _MAX_FILES:
                self.not_searched.append(f"everything after {count} files")
                return
            name = str(relative)
            if self.scope.leaves_out(name):
                continue
            refusal = self.scope.refusal(name)
            if refusal:
                self.not_searched.append(f"{name} {refusal}")
                continue
            data = read_regular(self.root, relative, limit=min(_MAX_FILE, _MAX_TOTAL - total))
            if isinstance(data, bytes):
                total += len(data)
                yield name, data
            else:
                self.not_searched.append(f"{name} {data}")


def _code(data: bytes, name: str, reader: SourceReader, *, texts: bool = True) -> str | None:
    """What of a program is executed, with its strings or without.

    None for Python that does not parse.
    """
    from assay.graders.comments import without_comments

    language = language_of(name) or ""
    if language != "python":
        return without_comments(data.decode("utf-8", "replace"), language, texts=texts)
    if reader.spent >= _MAX_CPU_SECONDS:
        return None
    return reader.python_code(data, texts=texts)
