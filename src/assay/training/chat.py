"""Prompts and completions as trainers hand them over, as what graders take."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from assay.scoring.json_safe import plain
from assay.types.submission import Submission
from assay.types.thread import StringThread

Text: TypeAlias = "str | Sequence[Mapping[str, object]]"
"""A prompt or a completion: text, or chat messages in a conversational dataset."""


def submission_of(
    asked: Text, said: Text, expected: object = None, metadata: object = None
) -> Submission:
    """What was asked and said, to be graded.

    Args:
        asked: The prompt; empty where the completion has all of it.
        said: The completion. Its last words are the answer, unless they are a tool's.
        expected: The reference answer.
        metadata: An object; anything else is none.
    """
    before, turns = turns_of(asked, "user"), turns_of(said, "assistant")
    is_chat = not (isinstance(asked, str) and isinstance(said, str))
    known = plain(metadata)
    return Submission(
        answer=turns[-1][1] if turns and turns[-1][0] == "assistant" else "",
        thread=StringThread([*before, *turns]) if is_chat else None,
        question=next((t for role, t in [*reversed(before), *turns] if role == "user" and t), None),
        expected=plain(expected),
        metadata=known if isinstance(known, dict) else {},
    )


def turns_of(text: Text, role: str) -> list[tuple[str, str]]:
    """Messages as turns; calls of tools without words as their JSON.

    Args:
        text: Messages, or the text of a single one.
        role: Who speaks in a text, and in a message that does not say.
    """
    if isinstance(text, str):
        return [(role, text)]
    return [(str(message.get("role") or role), _content(message)) for message in text]


def _content(message: Mapping[str, object]) -> str:
    content, calls = message.get("content"), message.get("tool_calls")
    if isinstance(content, str) and (content or not calls):
        return content
    return json.dumps(calls or content, default=str) if calls or content else ""
