"""Globs against globs: whether a path that a shell is yet to expand may be one that is banned."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

LIVE = {"*": "\ue000", "?": "\ue001", "[": "\ue002", "]": "\ue003"}
"""Signs of a glob, as they stand in a word where no quote makes them plain."""

_SHELL = {live: sign for sign, live in LIVE.items()}
_WRITTEN = str.maketrans(_SHELL)
_BEFORE_LIVE = re.compile(f"[^{''.join(_SHELL)}]*")
_BEFORE_SIGNS = re.compile(r"[^*?\[]*")


def as_written(word: str) -> str:
    """A word with its globs as they were written."""
    return word.translate(_WRITTEN)


@lru_cache(maxsize=256)
def compiled(glob: str) -> re.Pattern[str]:
    """A glob as `fnmatch` reads it."""
    return re.compile(fnmatch.translate(glob))


@dataclass(frozen=True, slots=True)
class _Piece:
    """One step of a glob: a sign, any sign, one of some; or any number of any sign."""

    sign: str = ""
    many: bool = False
    slash: bool = True
    chosen: re.Pattern[str] | None = None

    def takes(self, sign: str) -> bool:
        if self.sign:
            return self.sign == sign
        if sign == "/" and not self.slash:
            return False
        return self.chosen is None or self.chosen.match(sign) is not None

    def meets(self, other: _Piece) -> bool:
        if self.sign:
            return other.takes(self.sign)
        if other.sign:
            return self.takes(other.sign)
        return True  # two that are open both: near enough


def overlap(path: str, glob: str, *, open_end: bool = False) -> bool:
    """Whether a path could be one that a glob names.

    ``path``: A path; signs of `LIVE` in it are those of a shell's glob, which no ``*`` of leads
    past a slash.
    """
    told = _by_beginnings(path, glob, open_end=open_end)
    if told is not None:
        return told
    ours = _pieces(path, _live, slash=False)
    if open_end:
        ours = (*ours, _Piece(many=True))
    theirs = _pieces(glob, _plain, slash=True)
    # reached[j]: the first pieces of the path and j of the glob have a text in common.
    reached = _skipped([True] + [False] * len(theirs), theirs)
    for piece in ours:
        after = [False] * (len(theirs) + 1)
        for j, is_reached in enumerate(reached):
            if not is_reached:
                continue
            if piece.many:
                after[j] = True
            if j < len(theirs) and theirs[j].many:
                after[j] = True
            elif j < len(theirs) and not piece.many and piece.meets(theirs[j]):
                after[j + 1] = True
        if piece.many:
            for j, other in enumerate(theirs):
                if after[j] and (other.many or piece.meets(other)):
                    after[j + 1] = True
        reached = _skipped(after, theirs)
    return reached[-1]


def _by_beginnings(path: str, glob: str, *, open_end: bool) -> bool | None:
    """As `overlap`, where that is told by what stands before the signs; None where it is not."""
    begun, lead = _beginning(_BEFORE_LIVE, path), _beginning(_BEFORE_SIGNS, glob)
    if not (begun.startswith(lead) or lead.startswith(begun)):
        return False
    if begun != path:
        return None
    if not open_end:
        return compiled(glob).match(path) is not None
    is_enough = len(begun) <= len(lead) or glob[len(lead) : len(lead) + 1] == "*"
    return True if is_enough else None


def _beginning(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.match(text)
    return match[0] if match else ""


def _skipped(reached: list[bool], theirs: tuple[_Piece, ...]) -> list[bool]:
    """Let every ``*`` of the glob stand for nothing, too."""
    for j, piece in enumerate(theirs):
        if reached[j] and piece.many:
            reached[j + 1] = True
    return reached


def _live(sign: str) -> str:
    return _SHELL.get(sign, "")


def _plain(sign: str) -> str:
    return sign if sign in "*?[]" else ""


@lru_cache(maxsize=1024)
def _pieces(text: str, special: Callable[[str], str], *, slash: bool) -> tuple[_Piece, ...]:
    found: list[_Piece] = []
    at, is_closed = 0, True
    while at < len(text):
        meaning = special(text[at])
        end = 0
        if meaning == "[" and is_closed:
            end = next((n for n in range(at + 2, len(text)) if special(text[n]) == "]"), 0)
            is_closed = end > 0
        if meaning == "*":
            found.append(_Piece(many=True, slash=slash))
        elif meaning == "?":
            found.append(_Piece(slash=slash))
        elif meaning == "[" and end:
            found.append(_Piece(slash=slash, chosen=_class(text[at + 1 : end])))
            at = end
        else:
            found.append(_Piece(_SHELL.get(text[at], text[at])))
        at += 1
    return tuple(found)


def _class(inside: str) -> re.Pattern[str] | None:
    negated = inside[:1] in ("!", "^")
    body = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside[1:] if negated else inside)
    try:
        return re.compile(f"[{'^' if negated else ''}{body}]")
    except re.error:  # a range that runs backwards: whatever it is
        return None
