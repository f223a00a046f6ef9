"""Chat messages as trainers hand them over, as turns of a conversation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Text: TypeAlias = "str | Sequence[Mapping[str, object]]"
"""A prompt or a completion: text, or chat messages in a conversational dataset."""


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
