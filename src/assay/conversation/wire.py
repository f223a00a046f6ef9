"""What both protocols share: a reply taken apart, and reading JSON that strangers sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import cast

from assay.conversation.messages import Finish, Message, ReplyUsage
from assay.conversation.structured import parse
from assay.errors import InputError
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

UNENDED: str = "it stopped before its turn had ended"
"""What is wrong with a reply that ended for a reason which ends no turn."""

_MOST_TOKENS = 1_000_000_000
_LONGEST_NAME = 200


@frozen
class RawReply:
    """A provider's reply.

    Attributes:
        text: What was written; the arguments of the tool that it had to call.
        finish: Why it ended.
        model: The model that the provider says answered.
        usage: Tokens.
        fingerprint: The provider's name for its configuration.
        refusal: What the model or its filter says on refusing.
        wrong: Why it may not be read, whatever it says; empty if nothing speaks against it.
    """

    text: str
    finish: Finish = "stop"
    model: str = ""
    usage: ReplyUsage = field(default_factory=ReplyUsage)
    fingerprint: str = ""
    refusal: str = ""
    wrong: str = ""


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
)


def encode(body: Mapping[str, object]) -> bytes:
    """JSON of a body.

    Raises:
        InputError: If a value of the body is not JSON.
    """
    try:
        written = _ENCODER.encode(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the request to a model is not JSON: {error}") from None
    # Half a surrogate pair, as hostile texts hold them, is not UTF-8.
    return written.encode("utf-8", "replace")


def with_words(messages: tuple[Message, ...], words: str) -> tuple[Message, ...]:
    """Messages whose last one also says how the reply has to look; what precedes it is kept."""
    if not words or not messages:
        return messages
    last = messages[-1]
    content = last.content
    if isinstance(content, str):
        content = f"{content}\n\n{words}"
    else:
        content = (*content, {"type": "text", "text": words})
    return (*messages[:-1], Message(last.role, content))


def texts(messages: Sequence[Message]) -> list[str]:
    """All text of messages."""
    found: list[str] = []
    for message in messages:
        if isinstance(message.content, str):
            found.append(message.content)
        else:
            found += [text(part.get("text")) for part in message.content]
    return found


def said_error(reply: Mapping[str, Json]) -> Json:
    """The error that an object tells of; None for one that says nothing, as some servers add."""
    told = reply.get("error")
    return None if isinstance(told, dict) and not any(told.values()) else told or None


def is_named(call: Mapping[str, Json], tool: str) -> bool:
    """Whether a call is one of our tool; one without a name can be of no other."""
    return bool(tool) and call.get("name") in (tool, f"functions.{tool}", "", None)


def one_call(calls: Sequence[str]) -> tuple[str, str]:
    """What a model called our tool with.

    Returns:
        The data, and what is wrong: with several calls that differ there is no telling which one
        was meant.
    """
    if len(calls) == 1 or len(set(map(_said, calls))) == 1:
        return calls[0], ""
    return "\n".join(calls), "it calls the tool several times, each time with something else"


def _said(call: str) -> str:
    try:
        return json.dumps(parse(call), sort_keys=True)
    except NotJsonError:
        return call


def written(value: Json) -> str:
    """Data of a call, as JSON: most servers send it written already."""
    if isinstance(value, str) or value is None:
        return text(value)
    return text(json.dumps(value, ensure_ascii=False))


def mapping(value: Json) -> dict[str, Json]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Json) -> list[Json]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: Json) -> str:
    """The value if it is text, else none; with nothing in it that UTF-8 cannot write."""
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def name(value: Json) -> str:
    """The value if it is text, as a name that can be shown and kept."""
    known = text(value)
    if len(known) <= _LONGEST_NAME and known.isprintable():
        return known
    return "".join(c if c.isprintable() else " " for c in known[:_LONGEST_NAME])


def count(value: Json) -> int | None:
    """The value if it may be a number of tokens: a server could send anything."""
    if type(value) is int and 0 <= value <= _MOST_TOKENS:
        return value
    return None


TWICE: str = "a key stands in it twice"
"""What is wrong with a reply in which one does."""

_DECISIVE = ("choices", "content")


class _Twice(dict[str, Json]):
    """An object in which a key stood twice."""


def parsed(body: bytes) -> tuple[Json, str]:
    """Parse a body.

    Readers take the one value or the other where a key is given twice, so what decides (the reply
    itself and all that stands in ``choices`` or ``content``) may not have any.

    Returns:
        The JSON, None if it is invalid; and what is wrong with what it says, or ``""``.
    """
    try:
        return decode_json(body, nan=True), ""
    except NotJsonError as error:
        if error.kind != "repeated key":
            return None, ""
    try:
        data = cast("Json", json.loads(body, object_pairs_hook=_marked))
    except (ValueError, RecursionError):
        return None, ""
    return data, TWICE if _is_doubled(data) else ""


def _marked(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Twice(found)


def _is_doubled(data: Json) -> bool:
    left: list[Json] = []
    if isinstance(data, dict):
        if isinstance(data, _Twice):
            return True
        left = [data[key] for key in _DECISIVE if key in data]
    while left:
        value = left.pop()
        if isinstance(value, _Twice):
            return True
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list):
            left += value
    return False
