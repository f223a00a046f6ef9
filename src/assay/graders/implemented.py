"""The kind ``implemented``: whether what was to be written has been written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import ClassVar

from assay.errors import InputError
from assay.graders.base import Grader
from assay.graders.languages import language_of
from assay.scoring.json_safe import Json
from assay.types.submission import Workspace

__all__ = ["ImplementedGrader"]


class ImplementedGrader(Grader):
    """Whether the named files exist, differ from what was given and hold no stubs.

    Most useful as a gate: it says that something was written, not that it is right. What the
    agent left is read and never run, by Python's parser and, for JavaScript, TypeScript, Go,
    Rust, Java, C, C++ and Ruby, by tree-sitter (the extra ``languages``). A file holds if it

    * is a regular file of at most 1 MiB, with no link on the way to it,
    * parses, and has a statement in it,
    * differs from the source's by more than comments, docstrings and layout, and
    * has no stub: no function whose body is empty, is only a docstring, ``...`` or a comment, or
      does nothing but raise `NotImplementedError` or its like in another language. Where the
      source had a stub, a body that only raises or returns a constant is one too.

    Abstract methods, overloads, protocols and interfaces, methods that a subclass fills in, and
    hooks that may do nothing are not stubs, unless they took the place of one.

    With neither ``files`` nor ``functions``, the source files of the tree are looked at, except
    tests and what was built or brought in. Then at least one must differ. One that does not is
    judged only by stubs that say so, as ``raise NotImplementedError`` does, unless nothing in it
    is written.

    The score is 1.0 if everything holds. Otherwise it is the share, of the named files and
    functions (or else of the source's files with stubs), that holds.
    """

    name: ClassVar[str] = "implemented"
    assurance = "read"

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Refuse empty lists, paths that lead out, and languages that cannot be read here.

        Raises:
            InputError: For a list or a path.
            MissingExtraError: If a file is named whose language needs the extra.
        """
        for key in ("files", "functions"):
            given = options.get(key)
            if given == []:
                raise InputError(f"{key} is empty", hint=f"leave {key} out, or name some")
            for entry in given if isinstance(given, list) else []:
                _check_path(key, str(entry))

    @classmethod
    async def compute_score(
        cls,
        workspace: Workspace,
        files: list[str] | None = None,
        functions: list[str] | None = None,
    ) -> tuple[float, dict[str, Json]]:
        """Read the files.

        Args:
            workspace: What the agent left, and what it was given.
            files: Paths or globs (``*`` also matches ``/``) of files that must be implemented;
                every source file where neither these nor ``functions`` are named.
            functions: Functions that must have a body of their own, which the source did not
                have: ``add``, ``Stack.push`` or ``src/kit.py::add``. No shape excuses them.

        Raises:
            MissingExtraError: If a language needs the extra ``languages``.
            GraderError: If the process that reads the files does not start.
        """
        import asyncio

        from assay.graders.stubs.judgement import judge

        given = {"files": files, "functions": functions}
        cls.check_options(
            {key: list[Json](names) for key, names in given.items() if names is not None}
        )
        return await asyncio.to_thread(judge, workspace, files, functions)


def _check_path(key: str, entry: str) -> None:
    from assay.graders.stubs.treesitter import require_grammar

    path = entry.partition("::")[0] if key == "functions" else entry
    if not entry or "\0" in entry:
        raise InputError(f"{entry!r} in {key} names nothing")
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise InputError(f"{entry!r} in {key} must be a path inside the workspace")
    language = language_of(path) if key == "files" or "::" in entry else None
    if language is not None and language != "python" and not language.startswith("other-"):
        require_grammar(language)
