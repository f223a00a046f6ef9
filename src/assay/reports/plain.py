"""Texts as lines: the first and the last of them, and names in the order that people expect."""

from __future__ import annotations

import re

from assay.shown import one_line, plain, shorten, visible

__all__ = ["first_lines", "last_lines", "natural", "one_line", "plain", "shorten", "visible"]


def natural(name: str) -> list[tuple[int, str]]:
    """A key to sort names by as people do: 2 before 10."""
    parts = re.split("([0-9]+)", name)
    # Between the numbers stands text, and never beside another; a number goes by its length first.
    return [
        (len(part.lstrip("0")), part.lstrip("0")) if number % 2 else (0, part)
        for number, part in enumerate(parts)
    ]


def first_lines(text: str, lines: int, *, width: int = 500) -> list[str]:
    """The first lines of a text, with a note of how many were left out."""
    every = _lines(text)
    kept = [_cut(line, width) for line in every[:lines]]
    return [*kept, f"… {_counted(len(every) - lines)} more"] if len(every) > lines else kept


def last_lines(text: str, lines: int, *, width: int = 500) -> list[str]:
    """The last lines of a text, where the outcome of a command stands; as `first_lines`."""
    every = _lines(text)
    kept = [_cut(line, width) for line in every[-lines:]]
    return [f"… {_counted(len(every) - lines)} before", *kept] if len(every) > lines else kept


def _lines(text: str) -> list[str]:
    stripped = plain(text).strip("\n").expandtabs(4)
    return [line.rstrip() for line in stripped.split("\n")] if stripped.strip() else []


def _counted(lines: int) -> str:
    return "1 line" if lines == 1 else f"{lines} lines"


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[:width]}… {len(line) - width} characters more"
