"""What a tool hands over, as a submission: values of any type that stand for texts."""

from __future__ import annotations

import json
from typing import cast

from pydantic_core import PydanticSerializationError, to_jsonable_python

from assay.errors import InputError, reason_of
from assay.scoring.json_safe import Json, json_safe, plain
from assay.training.chat import Text, submission_of
from assay.types.submission import Submission


def given(
    asked: object, said: object, expected: object = None, metadata: object = None
) -> Submission | InputError:
    """A submission, or why it cannot be read.

    Args:
        asked: What was asked: text, chat messages, or anything else, which is read as its JSON.
        said: The answer, likewise; None for none.
        expected: What is right, of any type.
        metadata: An object; anything else stands under ``value``.
    """
    try:
        question, answer = _text(_json(asked)), _answer(said)
        known, right = _json(metadata), _json(expected)
    except Exception as error:  # the boundary: a tool's values may be anything
        return InputError(f"it cannot be read: {reason_of(error)}")
    fields = known if isinstance(known, dict | None) else {"value": known}
    return submission_of(question or "", answer, right, fields)


def _answer(said: object) -> Text | None:
    """An answer as text; one that has no JSON for its shape, as what of it has."""
    try:
        return _text(_json(said))
    except PydanticSerializationError:  # of a type that nobody can read: the program's own doing
        raise
    except (RecursionError, ValueError):  # it contains itself, say: that saves no answer from a 0
        return _text(json_safe(said))


def _json(value: object) -> Json:
    """Any value as plain JSON; models and dataclasses, too."""
    return plain(value, _leaf)


def _leaf(value: object) -> Json:
    if isinstance(value, bytes):  # of an answer, too: what is no text in it is still graded
        return value.decode("utf-8", "replace")
    return cast("Json", to_jsonable_python(value))


def _text(value: Json) -> Text | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(map(_is_message, value)):
        return cast("Text", value)
    return json.dumps(value, ensure_ascii=False)


def _is_message(value: Json) -> bool:
    return isinstance(value, dict) and "role" in value and "content" in value
