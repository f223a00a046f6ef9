"""Answers that say nothing, and that careless graders pay all the same.

``min(1.0, float(answer) / goal)`` is 1 for infinity, ``abs(answer - goal) > 1`` is false for NaN,
``all(...)`` is true of an empty list, and a list of every word names the right one, too. One table
for all who try graders: validation, before one is stored, and `assay attack`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from assay.frozen import frozen
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.types.submission import Submission
from assay.types.thread import StringThread

_WORD = re.compile(r"[^\W_](?:[\w'.-]*\w)?")
_MAX_WORDS = 4_000
_DEEP = 5_000
_MOST_TOLD = 3


@frozen(kw_only=True)
class Hollow:
    """An answer that says nothing."""

    id: str
    title: str
    answer: str


HOLLOW = (
    Hollow(id="nan", title="NaN", answer="NaN"),
    Hollow(id="infinity", title="Infinity", answer="Infinity"),
    Hollow(id="minus-infinity", title="-Infinity", answer="-Infinity"),
    Hollow(id="list-of-nan", title="[NaN]", answer="[NaN]"),
    Hollow(id="empty-list", title="[]", answer="[]"),
    Hollow(id="empty-object", title="{}", answer="{}"),
    Hollow(id="digits", title="400 digits", answer="9" * 400),
    Hollow(id="deep", title=f"{_DEEP:,} brackets", answer="[" * _DEEP + "]" * _DEEP),
)
_NOTHING = Hollow(id="nothing", title="an empty answer", answer="")


def words_in(*data: Json) -> tuple[str, ...]:
    """The words and numbers in texts, at any depth: each once, and in no order that says anything.

    Those of a program are its names and texts.
    """
    found = {word for text in _texts(list(data)) for word in _WORD.findall(text)}
    return tuple(sorted(found, key=lambda word: (word.lower(), word))[:_MAX_WORDS])


def _texts(data: Json) -> Iterator[str]:
    if isinstance(data, dict):
        for item in data.values():
            yield from _texts(item)
    elif isinstance(data, list):
        for item in data:
            yield from _texts(item)
    elif isinstance(data, str | int | float) and not isinstance(data, bool):
        yield str(data)


def hollow_items(like: Submission, *named: Json) -> list[tuple[Hollow, Submission]]:
    """A sample with each of them as its answer; the empty answer comes first.

    Whatever the sample itself has as its answer or expects is none of them.

    ``named``: What the grader names; its words and the sample's are one more answer.
    """
    thread, metadata = like.thread, dict(like.metadata)
    said = [like.answer]
    if thread is not None:
        said.append(thread.completion())
        metadata |= thread.metadata
        if thread.turns and thread.turns[-1].role == "assistant":
            asked_with = [one for one in thread.pictures if one[0] < len(thread.turns) - 1]
            thread = StringThread(thread.turns[:-1], thread.metadata, asked_with)
    right = {_plain(item) for item in (*said, like.expected, *metadata.values())}
    asked = [turn.content for turn in thread.turns] if thread is not None else [like.question or ""]
    words = words_in(*named, like.expected, metadata, *asked)
    every = Hollow(id="all-words", title="a list of all words", answer=" ".join(words))
    return [
        (hollow, replace(like, answer=hollow.answer, thread=thread))
        for hollow in (_NOTHING, *HOLLOW, every)
        if _plain(hollow.answer) not in right or hollow is _NOTHING
    ]


def _plain(value: Json) -> str:
    return value.strip() if isinstance(value, str) else json.dumps(value)


def doubts(
    tried: Sequence[tuple[Hollow, Graded]], bounds: tuple[float, float] = (0.0, 1.0)
) -> Iterator[str]:
    """Which of them were paid, and which cannot be graded, for the grader's author.

    Paid is what got at least half of what can be had beyond that of an empty answer.
    """
    low, high = bounds
    floor = next((g.score for h, g in tried if h is _NOTHING and g.score is not None), low)
    paid = [
        f"{hollow.title} gets {graded.score:g}"
        for hollow, graded in tried
        if graded.score is not None and graded.score > floor
        if 2 * graded.score >= floor + high
    ]
    if paid:
        yield (
            f"answers that say nothing are paid: {', '.join(paid)}, where an empty one gets "
            f"{floor:g}; refuse what is not finite, empty, or names everything"
        )
    failed = [
        f"{hollow.title} ({graded.error[:200]})"
        for hollow, graded in tried
        if graded.status == "error" and hollow is not _NOTHING
    ]
    if failed:
        more = f" and {len(failed) - _MOST_TOLD} more" if len(failed) > _MOST_TOLD else ""
        yield (
            f"some answers end in an error, and so have no reward: {'; '.join(failed[:_MOST_TOLD])}"
            f"{more}; let them be worth what a wrong answer is"
        )
