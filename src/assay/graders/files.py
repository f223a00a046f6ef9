"""The kind ``files``: expected files byte for byte, and patterns over what was left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from assay.errors import InputError
from assay.graders.base import Grader
from assay.graders.paths import CasePath
from assay.graders.tree import is_small, read_regular, regular_files
from assay.scoring.json_safe import Json
from assay.text.pattern import compile_pattern
from assay.types.submission import Workspace

__all__ = ["FilesGrader"]


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
    * Otherwise in programs, old and new; in other files that the source has, prose excepted; and in
      files that the task names. A new ``notes.txt`` is no work on a program. In a program a pattern
      must be found in the code, outside of strings unless the pattern has a quotation mark itself.
      One that stands only in a string, a comment, or in a docstring or a bare word of Python,
      counts if the file's code was changed and another pattern is found in that code. A Python
      file that does not parse is not a program.
    """

    name: ClassVar[str] = "files"
    assurance = "read"

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Refuse a declaration without a check, and patterns that RE2 does not take."""
        patterns = options.get("patterns")
        if options.get("expect_dir") is None and not patterns:
            raise InputError("files needs expect_dir or patterns")
        if options.get("files") == []:
            raise InputError("files is empty", hint="leave it out, or name some")
        for pattern in patterns if isinstance(patterns, list) else []:
            compile_pattern(str(pattern))

    @classmethod
    async def compute_score(
        cls,
        workspace: Workspace,
        expect_dir: CasePath | None = None,
        patterns: list[str] | None = None,
        files: list[str] | None = None,
        question: str | None = None,
    ) -> tuple[float, dict[str, Json]]:
        r"""Check the files.

        Args:
            workspace: Where to look.
            expect_dir: Each file in it must exist in the workspace with equal bytes.
            patterns: Regular expressions (RE2: linear time), each of which must be found in some
                file. Inline flags such as ``(?i)`` work.
            files: Globs that ``patterns`` are limited to, such as ``src/*.py``; ``*`` also
                matches ``/``.
            question: The task; files that it names are searched.

        Raises:
            InputError: For neither check, or a pattern that RE2 does not take.
        """
        root = Path(workspace.submitted or workspace.path)
        checks: list[Json] = []
        if expect_dir is not None:
            checks.extend(_expected(Path(expect_dir), root))
        not_searched: list[str] = []
        if patterns:
            import asyncio

            from assay.graders.languages import language_of
            from assay.graders.patterns import PatternSearch
            from assay.graders.scope import Scope

            source = None if workspace.source is None else Path(workspace.source)
            search = PatternSearch(root, Scope(source, files, question or ""), not_searched)
            if is_small(root) and not any(map(language_of, map(str, regular_files(root)))):
                checks.extend(search.find(patterns))
            else:
                checks.extend(await asyncio.to_thread(search.find, patterns))
        if not checks:
            raise InputError("files needs expect_dir or patterns")
        passed = sum(1 for check in checks if isinstance(check, dict) and check["ok"] is True)
        evidence: dict[str, Json] = {"checks": checks}
        if not_searched:
            evidence["not_searched"] = list[Json](not_searched[:20])
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
    data = read_regular(root, relative, limit=len(wanted))
    if isinstance(data, str):
        return data
    return "" if data == wanted else "differs"
