"""Which files are source code, and in which language, by their names."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

__all__ = ["BROUGHT_IN", "BUILT", "comment_style", "is_test", "language_of"]

_LANGUAGES = {
    "python": "py pyw",
    "javascript": "js mjs cjs jsx",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "c": "c h",
    "cpp": "cc cpp cxx c++ hpp hh hxx",
    "ruby": "rb",
    "other-slashes": "kt kts swift scala php cs dart m mm zig sol groovy fs d v proto",
    "other-hashes": "sh bash zsh fish pl pm r ex exs jl nim ps1 tcl awk cr",
    "haskell": "hs elm",
    "other-dashes": "sql lua adb ads vhd",
}

_BY_SUFFIX = {
    f".{suffix}": language
    for language, suffixes in _LANGUAGES.items()
    for suffix in suffixes.split()
}

_STYLES = {
    "rust": "rust",
    "haskell": "haskell",
    "ruby": "hashes",
    "other-hashes": "hashes",
    "other-dashes": "dashes",
}

BROUGHT_IN = frozenset(
    {
        *("__pycache__", "node_modules", "bower_components", "vendor", "third_party"),
        *("venv", "site-packages", ".git", ".venv"),
    }
)
"""Directories whose code was brought in and not written here."""

BUILT = frozenset({"dist", "build", "target", "coverage", "env"})
"""Directories whose code was built or brought in, unless the source has it."""

_TEST_DIRECTORIES = frozenset({"test", "tests", "__tests__", "spec", "specs", "testing"})

_TEST_NAME = (
    r"(?s)test_.*|conftest\.py|.*_test\.[^.]+|.*_spec\.rb|.*\.(?:test|spec)\.[^.]+"
    r"|.*Tests?\.(?:java|kt|cs|scala|swift)"
)


def language_of(name: str) -> str | None:
    """The programming language of a file, or None for prose, data and configuration."""
    return _BY_SUFFIX.get(PurePosixPath(name).suffix.lower())


def comment_style(language: str) -> str:
    """How a language writes comments: ``slashes``, ``hashes``, ``dashes``, or its own name."""
    return _STYLES.get(language, "slashes")


def is_test(name: str) -> bool:
    """Whether a path is that of a test by the customs of its language."""
    *directories, file = PurePosixPath(name).parts
    return (
        not _TEST_DIRECTORIES.isdisjoint(directories) or re.fullmatch(_TEST_NAME, file) is not None
    )
