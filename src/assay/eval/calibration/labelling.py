"""Labelling: what a rater sees of an item, the keys that label it, and labels as rows take them.

The same in a terminal and on the web page. A rater never sees what a grader said.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import cast

from assay.errors import InputError
from assay.eval.calibration.labelled import Item
from assay.eval.calibration.scale import as_label
from assay.scoring.json_safe import Json

CLASSES = ("PASS", "FAIL", "NA")
"""What an answer can be unless other classes are named."""

COMMANDS = {"s": "skip", "u": "undo", "m": "more", "w": "note", "q": "quit"}
"""What every key does that is not a class."""

_LONGEST_CLASS = 40


def valid_classes(text: str) -> tuple[str, ...]:
    """The classes of a text such as ``PASS,FAIL,NA``.

    Raises:
        InputError: For fewer than 2, more than 9, equal or unseen names.
    """
    names = tuple(name.strip() for name in text.split(","))
    if not 2 <= len(names) <= 9 or len(set(names)) < len(names) or not all(names):
        raise InputError(f"{text!r:.200} is not 2 to 9 names such as PASS,FAIL,NA")
    if any(len(name) > _LONGEST_CLASS or not name.isprintable() for name in names):
        raise InputError(
            f"{text!r:.200} has a name of more than {_LONGEST_CLASS} characters, or unseen ones"
        )
    return names


def key_names(classes: Sequence[str]) -> dict[str, str]:
    """The key of every class: its first letter where that is free, else its number.

    Where one class cannot have its letter, all have numbers: half a scheme confuses.
    """
    letters = [name[0].lower() for name in classes]
    is_clear = len(set(letters)) == len(letters) and not set(letters) & set(COMMANDS)
    if is_clear and all(letter.isascii() and letter.isalnum() for letter in letters):
        return dict(zip(letters, classes, strict=True))
    return {str(place): name for place, name in enumerate(classes, 1)}


def shuffled(digests: Sequence[str], seed: int) -> list[str]:
    """A random order of items that is the same after every interruption."""
    order = sorted(digests)
    random.Random(seed).shuffle(order)  # noqa: S311 - an order, no secret
    return order


def seen_of(item: Item) -> dict[str, str]:
    """What a rater sees of an item, by name; no score, verdict or metadata."""
    submission = item.submission
    thread = submission.thread
    turns = list(thread.turns) if thread is not None else []
    asked = submission.question or ""
    if len(turns) > 2:  # a conversation is more than its last question
        asked = "\n".join(f"{t.role}: {t.content}" for t in turns[:-1] if t.role != "document")
    documents = [turn.content for turn in turns if turn.role == "document"]
    for name in ("documents", "context"):
        found = submission.metadata.get(name)
        documents += [
            _text(one) for one in (found if isinstance(found, list) else [found] if found else [])
        ]
    expected = submission.expected
    parts = {
        "question": asked,
        "documents": "\n\n".join(documents),
        "reference": "" if expected is None else _text(expected),
        "answer": submission.answer or "",
    }
    return {name: text for name, text in parts.items() if text or name == "answer"}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def kept_row(item: Item) -> dict[str, Json]:
    """The row that is kept beside an item's labels: all of it but what a grader said."""
    return {key: value for key, value in item.fields.items() if key != "grade"}


def labelled_row(
    item: Item, field: str, said: Mapping[str, str], *, by_rater: bool
) -> dict[str, Json]:
    """An item as a row with its labels, as `assay calibrate` reads it.

    Args:
        item: The item.
        field: Where the labels go.
        said: Rater to label.
        by_rater: Whether to name raters; else the label of the only one stands alone.
    """
    labels: dict[str, Json] = {name: _plain(label) for name, label in said.items()}
    value = labels if by_rater else next(iter(labels.values()))
    row = {key: value for key, value in item.fields.items() if key != "labels"}
    return {**row, "id": item.id, field: value}


def _plain(label: str) -> Json:
    """A verdict as true, false or null, which other commands read too; a level as it is.

    Also a level that is called NONE: as null it could no longer be told from no label.
    """
    said = None if label == "NA" else as_label(label, (label,))
    return cast("Json", said if isinstance(said, bool) or said is None else label)
