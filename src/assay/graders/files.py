"""The kind ``files``: expected files byte for byte, and patterns over what was left."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, cached_property
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Annotated, ClassVar

from assay.errors import InputError
from assay.graders.base import Grader
from assay.graders.languages import (
    comment_style,
    language_of,
    looks_like_a_file,
)
from assay.graders.paths import CasePath
from assay.graders.stubs.reader import SourceReader
from assay.graders.tree import is_small, read_regular, regular_files
from assay.scoring.json_safe import Json, noted
from assay.text.pattern import Pattern, compile_pattern
from assay.types.codec import Filled
from assay.types.submission import Workspace

_MAX_NAMED = 20_000
_MAX_SOURCE = 1 << 20


class CountedFiles:
    """Which files of a submission count: those of the author's globs; else, of a program, code."""

    def __init__(self, source: Path | None, globs: Sequence[str] | None, task: str) -> None:
        self._source = source
        self._globs = globs
        self._task = task.casefold()

    @cached_property
    def _given(self) -> frozenset[str]:
        """The paths of the source."""
        paths = regular_files(self._source) if self._source else ()
        return frozenset(path.as_posix() for path in islice(paths, _MAX_NAMED))

    @cached_property
    def is_narrow(self) -> bool:
        """Whether only code counts: the author names no files, and the task is a program."""
        return not self._globs and any(language_of(name) for name in self._given)

    @property
    def looked_in(self) -> str:
        """Where a find counts, in words."""
        if self._globs:
            return f"files that match {', '.join(self._globs)}"
        return "code of programs, and files that the task names" if self.is_narrow else "every file"

    def takes(self, name: str) -> bool:
        """Whether a find counts in a file that is no program."""
        return not self.is_narrow or self._is_named(name)

    def leaves_out(self, name: str) -> bool:
        """Whether the author's globs do not match a file."""
        return bool(self._globs) and not any(fnmatchcase(name, glob) for glob in self._globs or ())

    def given(self, name: str) -> bytes | None:
        """What the source has at a path, if it has a file there."""
        if self._source is None or name not in self._given:
            return None
        data = read_regular(self._source, name, limit=_MAX_SOURCE)
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
        elif not looks_like_a_file(path):
            return False
        return any(len(n) >= 3 and self._mentions(n.casefold()) for n in names)

    def _mentions(self, word: str) -> bool:
        return re.search(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", self._task) is not None


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


_BLOCK = r'"""(?:[^"\\]|\\.|"(?!""))*+(?:""")?'  # a text of several lines, as in Java
_NESTED = r"(?P<comment> //[^\n]* | /\*(?:[^*/]|\*(?!/)|/(?!\*)|/\*.*?(?:\*/|\Z))*+(?:\*/)? )"
_RAW = r'(?<!\w)[bc]?r(?P<hashes>\#*)"(?:.*?"(?P=hashes)|.*)'
_C = r"""(?P<comment>
    //(?:[^\n\\]|\\.)*+ | /\*.*?(?:\*/|\Z) |
    ^[ \t]*+\#[ \t]*+if[ \t]++0\b.*?(?:^[ \t]*+\#[ \t]*+(?:endif|else|elif)\b[^\n]*|\Z)
)"""
_HASHED = r"""(?P<comment>
    (?<![^\s;(){}])\#[^\n]* | ^__(?:END|DATA)__$.* |
    ^=[a-z]\w*+\b.*?(?:^=(?:end|cut)\b[^\n]*|\Z)
)"""

_TOKENS = {
    "slashes": (_SLASHED, _BLOCK, _TEXT, _REGEX),
    "c": (_C, _TEXT),
    "rust": (_NESTED, _RAW, _QUOTED, _CHARACTER),
    "hashes": (_HASHED, _TEXT),
    "dashes": (rf"(?P<comment> --\[\[.*?(?:\]\]|\Z) | {_DASHED} | /\*.*?(?:\*/|\Z) )", _TEXT),
    "haskell": (rf"(?P<comment> \{{-.*?(?:-\}}|\Z) | {_DASHED} )", _QUOTED, _CHARACTER),
}


@cache
def _lexer(style: str) -> re.Pattern[str]:
    return re.compile("|".join(_TOKENS[style]), re.VERBOSE | re.DOTALL | re.MULTILINE)


def without_comments(text: str, language: str, *, texts: bool = True) -> str:
    """Blank the comments of a source file, keeping lines and columns."""
    lexer = _lexer(comment_style(language))
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
    """One search."""

    root: Path
    scope: CountedFiles
    not_searched: list[str]

    def find(self, patterns: Sequence[str]) -> list[Json]:
        """Look for each pattern.

        The evidence says in which file it was found first, or why no find counts.
        """
        compiled = dict(zip(patterns, map(compile_pattern, patterns), strict=True))
        where: dict[str, str] = {}
        refused: dict[str, list[str]] = {pattern: [] for pattern in compiled}
        searched = 0
        with SourceReader() as reader:
            for name, data in self._files():
                searched += 1
                text = data.decode("utf-8", "replace")
                found = {p: c for p, c in compiled.items() if p not in where and c.search(text)}
                if not found:
                    continue
                for pattern, why in self._refusals(compiled, found, name, data, reader):
                    if not why:
                        where[pattern] = name
                    else:
                        refused[pattern].append(f"{name} {why}")
                if len(where) == len(compiled):
                    break
        rows: list[Json] = []
        for pattern in patterns:
            row: dict[str, Json] = {"check": "pattern", "pattern": pattern, "ok": pattern in where}
            row["file"] = where.get(pattern)
            if pattern not in where:
                row["why"] = _not_found(refused[pattern], searched)
            rows.append(row)
        return rows

    def _refusals(
        self,
        compiled: Mapping[str, Pattern],
        found: Mapping[str, Pattern],
        name: str,
        data: bytes,
        reader: SourceReader,
    ) -> Iterator[tuple[str, str]]:
        """Each pattern that was found in a file, and why that does not count; "" where it does."""
        if self.scope.is_narrow and language_of(name):
            counted, why = self._counted(compiled, list(found), name, data, reader)
            yield from ((pattern, "" if pattern in counted else why) for pattern in found)
            return
        why = "" if self.scope.takes(name) else "is no program, and the task does not name it"
        yield from ((pattern, why) for pattern in found)

    def _counted(
        self,
        compiled: Mapping[str, Pattern],
        found: list[str],
        name: str,
        data: bytes,
        reader: SourceReader,
    ) -> tuple[list[str], str]:
        """Those of the patterns found in a program that count, and why the others do not."""
        given = self.scope.given(name)
        code = _code(data, name, reader)
        before = None if given is None else _code(given, name, reader)
        if code is None:
            if given is not None and before is None:
                return found, ""  # what was given does not parse either
            return [], "does not parse"
        bare = _code(data, name, reader, texts=False) or ""
        in_code = [
            pattern
            for pattern, expression in compiled.items()
            if expression.search(code if _QUOTES & set(pattern) else bare)
        ]
        counted = [pattern for pattern in found if pattern in in_code]
        if len(counted) < len(found):
            if in_code and (before is None or squeezed(before) != squeezed(code)):
                return found, ""
            return counted, "has it in comments and strings alone, without code that matches"
        return counted, ""

    def _files(self) -> Iterator[tuple[str, bytes]]:
        total = 0
        for count, relative in enumerate(regular_files(self.root)):
            if count >= _MAX_FILES:
                self.not_searched.append(f"everything after {count} files")
                return
            name = str(relative)
            if self.scope.leaves_out(name):
                continue
            data = read_regular(self.root, relative, limit=min(_MAX_FILE, _MAX_TOTAL - total))
            if isinstance(data, bytes):
                total += len(data)
                yield name, data.removeprefix(BOM_UTF8)
            else:
                self.not_searched.append(f"{name} {data}")


def _not_found(refused: Sequence[str], searched: int) -> str:
    """Why a check of a pattern failed: where a find did not count, or where there was none."""
    if not refused:
        return f"in none of the {searched} files that were searched" if searched else "no such file"
    more = f", and {len(refused) - 3} more" if len(refused) > 3 else ""
    return f"found where it does not count: {'; '.join(refused[:3])}{more}"


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


@dataclass(frozen=True, kw_only=True)
class FilesGrader(Grader):
    """Fraction of two kinds of checks that pass: expected files, and patterns in files.

    What the agent left is read, never what is put beside it for grading. Only regular files are
    read: links are not followed. For patterns, files over 1 MiB and everything past 20,000 files or
    64 MiB is not searched (the evidence says so), nor are ``.git``, ``__pycache__``, ``.venv`` and
    ``node_modules``. An expected file that cannot be read that way is a failed check.

    Where patterns are looked for:

    * In the files that ``files`` names, as they are.
    * Without ``files``, where the source is unknown or has no program in it: in every file, as it
      is.
    * Otherwise in programs and in files that the task names: name in ``files`` what else counts,
      such as ``Dockerfile`` or ``CHANGELOG.md``.
    * In a program a pattern must be found in the code, outside of strings unless the pattern has a
      quotation mark itself. One that stands only in a string, a comment, or in a docstring or a
      bare word of Python, counts if the file's code was changed and another pattern is found in
      that code. A Python file that does not parse is not a program.

    The evidence says where each pattern was found, or why a find does not count.

    Attributes:
        expect_dir: Each file in it must exist in the workspace with equal bytes.
        patterns: Regular expressions (RE2: linear time), each of which must be found in some file.
            Inline flags such as ``(?i)`` work.
        files: Globs that ``patterns`` are limited to, such as ``src/*.py``; ``*`` also matches
            ``/``.
    """

    name: ClassVar[str] = "files"
    assurance = "read"

    expect_dir: CasePath | None = None
    patterns: list[str] | None = None
    files: Annotated[list[str], Filled("leave it out, or name some")] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.expect_dir is None and not self.patterns:
            raise InputError("files needs expect_dir or patterns")
        for pattern in self.patterns or ():
            compile_pattern(pattern)

    @classmethod
    def pays_for_nothing(cls, options: Mapping[str, Json]) -> Sequence[str]:
        """Patterns that are found in words which say nothing."""
        return [
            f"its pattern {pattern!r} is found in whatever is written"
            for pattern in cls.of(options).patterns or ()
            if all(map(compile_pattern(pattern).search, ("zq", "JV")))
        ]

    async def score(
        self, workspace: Workspace, question: str | None = None
    ) -> tuple[float, dict[str, Json]]:
        """Check the files; those that the task names are searched."""
        root = Path(workspace.submitted or workspace.path)
        checks: list[Json] = []
        if self.expect_dir is not None:
            checks.extend(_expected(Path(self.expect_dir), root))
        not_searched: list[str] = []
        evidence: dict[str, Json] = {}
        if self.patterns:
            import asyncio

            source = None if workspace.source is None else Path(workspace.source)
            scope = CountedFiles(source, self.files, question or "")
            search = PatternSearch(root, scope, not_searched)
            evidence["looked_in"] = scope.looked_in
            if is_small(root) and not any(map(language_of, map(str, regular_files(root)))):
                checks.extend(search.find(self.patterns))
            else:
                checks.extend(await asyncio.to_thread(search.find, self.patterns))
        passed = sum(1 for check in checks if isinstance(check, dict) and check["ok"] is True)
        evidence["checks"] = checks
        return passed / len(checks), evidence | noted(not_searched=list(not_searched[:20]))


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
    data = read_regular(root, relative, limit=len(wanted))
    if isinstance(data, str):
        return data
    return "" if data == wanted else "differs"
