"""Prompts and completions, as trainers hand them over, turned into submissions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import ParamSpec, TypeAlias, cast

from assay.errors import InputError, reason_of
from assay.scoring.json_safe import plain
from assay.types.picture import Picture, require_few
from assay.types.references import reference_of
from assay.types.submission import Submission
from assay.types.thread import StringThread

P = ParamSpec("P")

Text: TypeAlias = "str | Sequence[Mapping[str, object]]"
"""A prompt or a completion: text, or chat messages in a conversational dataset."""

_OTHERS = "developer document environment function ipython observation system tool user"
_ROLES = frozenset(("assistant", *_OTHERS.split()))
"""Who may speak last. Of anyone else it is not known whether it is the model."""


def read_or_why(make: Callable[P, Submission]) -> Callable[P, Submission | InputError]:
    """Return the reason why a submission cannot be read; a batch has no reward for that item."""

    @wraps(make)
    def made(*given: P.args, **named: P.kwargs) -> Submission | InputError:
        try:
            return make(*given, **named)
        except InputError as error:
            return error
        except Exception as error:  # the boundary: a trainer's rows may hold anything
            return InputError(f"it cannot be read: {reason_of(error)}")

    return made


@read_or_why
def submission_of(
    asked: Text,
    said: Text | None,
    expected: object = None,
    metadata: object = None,
    images: object = None,
) -> Submission:
    """What was asked and said, to be graded.

    ``said``: The completion. Its last words are the answer, unless they are a tool's.
    ``metadata``: An object; anything else is none.
    ``images``: Pictures of what the user asked last before the completion.
    """
    if said is None:
        raise InputError("there is no completion")
    before, turns = turns_of(asked, "user"), turns_of(said, "assistant")
    if turns and turns[-1][0] not in _ROLES:
        raise InputError(
            f"the completion ends with what {turns[-1][0]!r:.40} says",
            hint="the model is called 'assistant', and what answers its calls 'tool'",
        )
    pictures = _pictures(images)
    is_chat = bool(pictures) or not (isinstance(asked, str) and isinstance(said, str))
    place = max((n for n, (role, _) in enumerate(before) if role == "user"), default=0)
    known = plain(metadata)
    return Submission(
        answer=turns[-1][1] if turns and turns[-1][0] == "assistant" else "",
        thread=StringThread([*before, *turns], pictures=[(place, one) for one in pictures])
        if is_chat
        else None,
        question=next((t for role, t in [*reversed(before), *turns] if role == "user" and t), None),
        expected=reference_of(expected),
        metadata=known if isinstance(known, dict) else {},
    )


def _pictures(images: object) -> list[Picture]:
    given = cast("Sequence[object]", images) if isinstance(images, list | tuple) else [images]
    found: list[Picture] = []
    for number, one in enumerate(given):
        if one is None:
            continue
        is_held = isinstance(one, Mapping)
        held: object = cast("Mapping[str, object]", one).get("bytes") if is_held else one
        picture = Picture.of_url(held) if isinstance(held, str) else Picture.of_value(held)
        if picture is None:
            raise InputError(f"images[{number}] is {type(one).__name__}, and no picture")
        found.append(picture)
    require_few(found)
    return found


def turns_of(text: Text, role: str) -> list[tuple[str, str]]:
    """Messages as turns; a message without words is the JSON of its tool calls."""
    if isinstance(text, str):
        return [(role, text)]
    messages = [cast("Mapping[str, object]", text)] if isinstance(text, Mapping) else text
    return [(str(message.get("role") or role), _content(message)) for message in messages]


def _content(message: Mapping[str, object]) -> str:
    if not any(name in message for name in ("role", "content", "tool_calls")):
        raise InputError(f"this is no chat message: {message!r:.80}")
    text, calls = text_of(message.get("content")), message.get("tool_calls")
    return text if text or not calls else json.dumps(calls, default=str)


def text_of(content: object) -> str:
    """The words of a message's content: text, or parts; images and the like have none."""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        parts = cast("Sequence[object]", content)
        return "\n".join(filter(None, map(_text_of_part, parts)))
    if isinstance(content, Mapping) and (text := _text_of_part(cast("object", content))):
        return text  # a single part
    return "" if content is None else json.dumps(content, default=str)


def _text_of_part(part: object) -> str:
    if isinstance(part, Mapping):
        part = cast("Mapping[str, object]", part).get("text")
    elif not isinstance(part, str):
        part = getattr(part, "text", None)
    return part if isinstance(part, str) else ""
