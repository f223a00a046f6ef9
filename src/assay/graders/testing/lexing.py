"""Just enough reading of source text to find declarations in it: comments, strings, brackets."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["C_LIKE", "RUST", "blank", "closing", "pieces"]

C_LIKE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`""", re.DOTALL
)
"""Comments and strings of JavaScript, Java and Go."""

# A quote may begin a lifetime, a raw string has its own end, and comments may hold comments.
RUST = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>#*)".*?"(?P=hashes)|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'""",
    re.DOTALL,
)
"""Comments and strings of Rust."""

_PAIRS = {"(": ")", "[": "]", "{": "}"}


def blank(text: str, pattern: re.Pattern[str]) -> str:
    """The text with comments and strings turned to spaces of equal length.

    Newlines stay, and so do a string's quotes.

    Args:
        text: The source.
        pattern: What its language's comments and strings look like.
    """

    def blanked(match: re.Match[str]) -> str:
        found = match.group()
        if found.startswith(("//", "/*")):
            return re.sub(r"[^\n]", " ", found)
        return found[0] + re.sub(r"[^\n]", " ", found[1:-1]) + found[-1]

    return pattern.sub(blanked, text)


def closing(code: str, at: int, pair: str) -> int:
    """Where the bracket that opens at a place closes; the end of the text if it never does."""
    depth = 0
    for place in range(at, len(code)):
        if code[place] == pair[0]:
            depth += 1
        elif code[place] == pair[1]:
            depth -= 1
            if depth == 0:
                return place
    return len(code)


def pieces(code: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans between the commas of a list, those of brackets inside it not counted.

    Args:
        code: Blanked text.
        start: Behind the bracket that opens the list.
        end: Where it closes.
    """
    depth = 0
    begin = start
    for place in range(start, end):
        if code[place] in _PAIRS:
            depth += 1
        elif code[place] in _PAIRS.values():
            depth -= 1
        elif code[place] == "," and depth == 0:
            yield begin, place
            begin = place + 1
    yield begin, end
