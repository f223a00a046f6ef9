"""Look for an author's patterns in the files of a submission."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.graders.languages import comment_style, language_of
from assay.graders.scope import Scope
from assay.graders.stubs.reader import SourceReader
from assay.graders.tree import read_regular, regular_files
from assay.scoring.json_safe import Json
from assay.text.pattern import Pattern, compile_pattern

__all__ = ["PatternSearch", "without_comments"]

# Each alternative takes text until it ends or the line does, closed or not, and gives none of it
# back: so a hostile file is read in linear time, as `re` promises by itself for no expression.
_QUOTED = r"""
    "(?:[^"\\\n]|\\.)*+"? | `(?:[^`\\]|\\.)*+`?
"""
_TEXT = rf"{_QUOTED} | '(?:[^'\\\n]|\\.)*+'?"
_CHARACTER = r"'(?:[^'\\\n]|\\[^\n][^'\n]{0,8})'"  # in Rust, 'a alone is a lifetime
_SLASHED = r"(?P<comment> //[^\n]* | /\*.*?(?:\*/|\Z) )"
_REGEX = r"(?<=[=(,:;!&|?{}\[+>])[ ]*+/(?![/*])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*+\]?)*+/?"
_DASHED = r"--[^\n]*"


_IMPORTS = re.compile(r"^\s*(?:\#\s*include|import|use|require|from)\b|\brequire\(\s*$|\bfrom\s*$")


def _lexer(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.VERBOSE | re.DOTALL | re.MULTILINE)


_LEXERS = {
    "slashes": _lexer(_SLASHED, _TEXT, _REGEX),
    "rust": _lexer(_SLASHED, _QUOTED, _CHARACTER),
    "hashes": _lexer(
        r"(?P<comment> (?<![^\s;(){}])\#[^\n]* | ^=begin\b.*?(?:^=end\b[^\n]*|\Z) )", _TEXT
    ),
    "dashes": _lexer(rf"(?P<comment> --\[\[.*?(?:\]\]|\Z) | {_DASHED} | /\*.*?(?:\*/|\Z) )", _TEXT),
    "haskell": _lexer(rf"(?P<comment> \{{-.*?(?:-\}}|\Z) | {_DASHED} )", _QUOTED, _CHARACTER),
}


def without_comments(text: str, language: str, *, texts: bool = True) -> str:
    """Blank the comments of a source file, keeping lines and columns."""
    lexer = _LEXERS[comment_style(language)]
    if texts:
        return lexer.sub(_blank_comment, text)
    return lexer.sub(lambda match: _blank_text(match, text), text)


def squeezed(code: str) -> str:
    """Code without its spaces, to tell whether anything but comments and layout changed."""
    return "".join(code.split())


def _blank_comment(match: re.Match[str]) -> str:
    return match[0] if match["comment"] is None else _blank(match[0])


def _blank_text(match: re.Match[str], whole: str) -> str:
    """Blank a comment or a string, but for what a template computes and imports name."""
    if match["comment"] is not None:
        return _blank(match[0])
    line = whole[whole.rfind("\n", 0, match.start()) + 1 : match.start()]
    if _IMPORTS.search(line):
        return match[0]
    if not match[0].startswith("`"):
        return _blank(match[0])
    pieces = re.split(r"(\$\{[^{}]*\})", match[0])
    return "".join(piece if piece.startswith("${") else _blank(piece) for piece in pieces)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


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
    language = language_of(name) or ""
    if language != "python":
        return without_comments(data.decode("utf-8", "replace"), language, texts=texts)
    if reader.spent >= _MAX_CPU_SECONDS:
        return None
    return reader.python_code(data, texts=texts)
