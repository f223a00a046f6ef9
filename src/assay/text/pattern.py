"""Regular expressions of authors, run on the words of adversaries: RE2, so linear in the text."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from typing import Protocol, cast

from assay.errors import InputError

_SEARCHED_CHARACTERS = 200_000_000
"""How much text the searches of one `find_all` may read: each is linear, but there may be many."""

_INSTEAD = (
    ("(?=", "look-ahead is not linear in the text; capture what you want in group 1 instead"),
    ("(?!", "look-ahead is not linear in the text; match what you want instead of what you do not"),
    ("(?<", "look-behind is not linear in the text; capture what you want in group 1 instead"),
    ("\\Z", "write \\z for the end of the text"),
    ("repetition size", "a repetition count may be at most 1000"),
    ("++", "possessive and atomic forms are not needed here: every pattern runs in linear time"),
    ("*+", "possessive and atomic forms are not needed here: every pattern runs in linear time"),
    ("(?>", "possessive and atomic forms are not needed here: every pattern runs in linear time"),
)


class Match(Protocol):
    """One match of a pattern."""

    def group(self, group: int = 0, /) -> str | None:
        """Return a group's text, or None where it took no part."""
        ...


class Pattern(Protocol):
    """A compiled pattern."""

    @property
    def groups(self) -> int:
        """How many capturing groups there are."""
        ...

    def search(self, text: str) -> Match | None:
        """Find the first match."""
        ...

    def fullmatch(self, text: str) -> Match | None:
        """Match the whole text."""
        ...

    def finditer(self, text: str) -> Iterator[Match]:
        """Find every match, in order."""
        ...


class _Options(Protocol):
    log_errors: bool
    case_sensitive: bool


class _Re2(Protocol):
    error: type[Exception]

    def Options(self) -> _Options: ...  # noqa: N802 - RE2's own name
    def compile(self, pattern: str, options: _Options) -> Pattern: ...


@functools.lru_cache(maxsize=256)
def compile_pattern(pattern: str, *, ignore_case: bool = False) -> Pattern:
    r"""Compile an author's pattern with RE2.

    ``pattern``: RE2 syntax: as in `re`, without look-around and back-references; ``\d``, ``\w`` and
    ``\s`` mean ASCII (``\p{L}`` is any letter).
    """
    if not pattern:
        raise InputError("an empty pattern matches every answer", hint="write what must be there")
    re2 = cast("_Re2", importlib.import_module("re2"))
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(pattern, options)
    except UnicodeEncodeError:
        raise InputError(f"the pattern {pattern!r} holds half a character") from None
    except re2.error as error:
        reason = _reason(error)
        raise InputError(
            f"RE2 refuses the pattern {pattern!r}: {reason}", hint=_hint(reason)
        ) from None


def _reason(error: Exception) -> str:
    first: object = error.args[0] if error.args else ""
    return first.decode("utf-8", "replace") if isinstance(first, bytes) else str(first)


def _hint(reason: str) -> str:
    for sign, hint in _INSTEAD:
        if sign in reason:
            return hint
    if "escape sequence" in reason and reason[-1:].isdigit():
        return "back-references are not linear in the text; spell the alternatives out"
    return "the syntax is that of RE2: https://github.com/google/re2/wiki/Syntax"


def encodable(text: str) -> str:
    """Replace half characters (lone surrogates), which no library outside Python accepts."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def find_all(pattern: Pattern, text: str) -> list[str]:
    """Return group 1 (or, in a pattern without groups, the whole) of every match, in order.

    Returns the texts, without the matches whose group took no part; an empty list where there are
    so many matches in so long a text that looking at each would no longer be linear.
    """
    text = encodable(text)
    group = 1 if pattern.groups else 0
    most = max(1_000, _SEARCHED_CHARACTERS // (len(text) + 1))
    found: list[str] = []
    for count, match in enumerate(pattern.finditer(text)):
        if count >= most:
            return []
        part = match.group(group)
        if part is not None:
            found.append(part)
    return found
