"""What the protocols share: turns in the making, tools that only some have, log-probabilities."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from assay.conversation.messages import ReplyUsage
from assay.conversation.protocols.events import spread
from assay.conversation.turns import Call, Conversation, Part, Speaker, Tool, Turn
from assay.conversation.wire import count, mapping, text
from assay.scoring.json_safe import Json

_INPUT = "input"
_LONGEST_WORD = 80


class TurnBuilder:
    """Turns in the making, from messages and items, however a protocol cuts a conversation.

    Args:
        joined: Whose turns grow by what follows at once; results of one turn's calls always do.
    """

    def __init__(self, *joined: Speaker) -> None:
        self._joined = ("tool", *joined)
        self._begun: list[tuple[Speaker, list[Part]]] = []

    def add(self, speaker: Speaker, parts: Iterable[Part]) -> None:
        """What one side says next."""
        if self._begun and self._begun[-1][0] == speaker and speaker in self._joined:
            self._begun[-1][1].extend(parts)
        else:
            self._begun.append((speaker, list(parts)))

    def made(self) -> tuple[Turn, ...]:
        """The turns."""
        return tuple(Turn(speaker, tuple(parts)) for speaker, parts in self._begun)


def given_only(**values: Json) -> dict[str, Json]:
    """The fields that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def whole(value: Json) -> int | None:
    """A whole number of a request that has its shape: 9.0 is one, too."""
    return int(value) if isinstance(value, int | float) else None


def number(value: Json) -> float | None:
    """A number of a request that has its shape."""
    return float(value) if isinstance(value, int | float) else None


def flag(value: Json) -> bool | None:
    """A yes or no of a request that has its shape."""
    return value if isinstance(value, bool) else None


def word(value: Json) -> str | None:
    """A short text of a request that has its shape."""
    return text(value)[:_LONGEST_WORD] if isinstance(value, str) else None


def texts(value: Json) -> tuple[str, ...]:
    """One text or a list of them, of a request that has its shape."""
    return tuple(map(text, value)) if isinstance(value, list) else (text(value),) if value else ()


def own_tool(tool: Mapping[str, Json], kind: str, protocol: str) -> Tool:
    """A tool that only its protocol has."""
    return Tool(name=text(tool.get("name")) or kind, own={**tool, "protocol": protocol})


def own_body(tool: Tool, protocol: str) -> dict[str, Json] | None:
    """The declaration of such a tool, empty in any other protocol; None for a tool of all."""
    if tool.own is None:
        return None
    is_ours = tool.own.get("protocol") == protocol
    return {key: tool.own[key] for key in tool.own if key != "protocol"} if is_ours else {}


def as_function(tool: Tool) -> Tool:
    """A tool that takes a text, as one that takes an object with that text."""
    if tool.kind == "function":
        return tool
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {_INPUT: {"type": "string"}},
        "required": [_INPUT],
    }
    definition = tool.schema.get("definition")
    form = f"\n\nThe input has this form:\n{definition}" if isinstance(definition, str) else ""
    return Tool(name=tool.name, description=f"{tool.description}{form}", schema=schema)


def as_function_call(call: Call) -> Call:
    """A call of such a tool, likewise."""
    if call.kind == "function":
        return call
    return Call(call.id, call.name, json.dumps({_INPUT: call.arguments}))


def call_as_asked(call: Call, asked: Conversation) -> Call:
    """A call in the kind in which the asker declared its tool."""
    is_custom = any(tool.name == call.name and tool.kind == "custom" for tool in asked.tools)
    if call.kind == "custom" or not is_custom:
        return call
    given = call.given
    said = given.get(_INPUT) if given is not None and len(given) == 1 else None
    return Call(call.id, call.name, said if isinstance(said, str) else call.arguments, "custom")


def data_of(url: str) -> tuple[str, str] | None:
    """Type and base64 of a picture that its URL holds; None for any other URL."""
    kind, comma, data = url.removeprefix("data:").partition(";base64,")
    return (kind, data) if url.startswith("data:") and comma else None


def usage_of(told: Json, read: str, written: str) -> ReplyUsage:
    """The tokens of a reply, as OpenAI's protocols tell them in words of their own."""
    usage = mapping(told)
    of_read, of_written = (mapping(usage.get(f"{one}_tokens_details")) for one in (read, written))
    return ReplyUsage(
        input_tokens=count(usage.get(f"{read}_tokens")),
        cached_tokens=count(of_read.get("cached_tokens")),
        output_tokens=count(usage.get(f"{written}_tokens")),
        reasoning_tokens=count(of_written.get("reasoning_tokens")),
    )


def logprobs_of(each: Sequence[Mapping[str, Json]]) -> tuple[float, ...]:
    """The logarithms that tokens tell of; none where one of them cannot be."""
    found: list[float] = []
    for one in each:
        value = one.get("logprob")
        if isinstance(value, bool) or not isinstance(value, int | float) or not value <= 1e-6:
            return ()
        found.append(float(value))
    return tuple(found)


def logprobs_body(said: str, logprobs: Sequence[float]) -> list[Json]:
    """Tokens with their logarithms; what each says is guessed from the length of what was said."""
    tokens = spread(said, len(logprobs))
    return [
        {
            "token": token,
            "logprob": logprob,
            "bytes": list(token.encode("utf-8", "replace")),
            "top_logprobs": [],
        }
        for token, logprob in zip(tokens, logprobs, strict=True)
    ]
