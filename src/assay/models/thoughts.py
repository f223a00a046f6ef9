"""Where a reply thinks, and where its JSON objects stand.

A thought is what stands between ``<think>`` and ``</think>``. Servers cut off the one or the other:
everything before an end that has no beginning is a thought, and everything behind a beginning that
has no end. So of text that a thought may reach into nothing is ever taken for the reply.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from assay.models.strict_json import STRING

__all__ = ["Span", "UnfinishedError", "has_tag", "objects", "outside_thoughts"]

Span: TypeAlias = tuple[int, int]
"""A part of a text: where it begins, and where it has ended."""

_MOST_OBJECTS = 1_000
_STEP = {"{": 1, "[": 1, "}": -1, "]": -1}
_STRING_OR_BRACKET = re.compile(STRING + r"|[{}\[\]]", re.DOTALL)
_OBJECT_START = re.compile(r'\{\s*+"')
_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)


class UnfinishedError(ValueError):
    """A text whose objects cannot be told: one does not end, or there are too many."""


def has_tag(text: str) -> bool:
    """Whether a thought begins or ends in a text."""
    return _TAG.search(text) is not None


def outside_thoughts(
    text: str, opaque: Sequence[Span] = (), *, is_whole: bool = False
) -> tuple[list[Span], bool]:
    """The parts of a text that lie outside its thoughts.

    Args:
        text: Any text.
        opaque: Parts in which a tag is none, in their order.
        is_whole: Whether nothing was cut off before it: an end without a beginning is a word then.

    Returns:
        The parts, and whether the last thought does not end.
    """
    parts: list[Span] = []
    begin, is_open, passed = 0, False, 0
    for tag in _TAG.finditer(text):
        while passed < len(opaque) and opaque[passed][1] <= tag.start():
            passed += 1
        if passed < len(opaque) and opaque[passed][0] < tag.start():
            continue
        if tag[1]:
            if not is_open:
                if is_whole:
                    continue
                parts.clear()
            begin, is_open = tag.end(), False
        elif not is_open:
            parts.append((begin, tag.start()))
            is_open = True
    if not is_open:
        parts.append((begin, len(text)))
    return parts, is_open


def objects(text: str, begin: int = 0, end: int | None = None) -> list[Span]:
    """The outermost objects of a part of a text, by their brackets; strings are skipped whole.

    Raises:
        UnfinishedError: One does not end, or there are more than a thousand.
    """
    end = len(text) if end is None else end
    spans: list[Span] = []
    while start := _OBJECT_START.search(text, begin, end):
        depth = 0
        for token in _STRING_OR_BRACKET.finditer(text, start.start(), end):
            depth += _STEP.get(token.group(), 0)
            if depth == 0 and token.group() in _STEP:
                begin = token.end()
                break
        else:
            raise UnfinishedError("it ends before its JSON object does")
        spans.append((start.start(), begin))
        if len(spans) > _MOST_OBJECTS:
            raise UnfinishedError(f"there are more than {_MOST_OBJECTS} JSON objects in it")
    return spans
