r"""What a model was asked: the request as both wire forms say it, its fences, and what is outside.

A fence is how text of a stranger stands in a prompt::

    <untrusted name="answer" id="0f3a5c7e9b1d2468">
    the text, every "<" of it written \u003c, and each invisible character \u{200b}
    </untrusted id="0f3a5c7e9b1d2468">

Lines that only look like one, whose ids differ or which are never closed, are not fences: their
text stands outside, as it does for a model that reads them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias, cast

from assay.models.conversation import Call, Conversation, Reply, Text, Turn
from assay.models.messages import Usage
from assay.models.protocols import ProtocolError, codec_of
from assay.scoring.json_safe import Json

WireForm: TypeAlias = Literal["openai", "anthropic", "responses", "google"]
"""OpenAI's chat completions, Anthropic's messages, OpenAI's responses, or Google's
generateContent."""

PLACE = "\ufffc"
"""Stands in `Asked.outline` on a line of its own for each fence."""

_OPENING = re.compile(r'^<untrusted name="([^"\n]*)" id="([0-9A-Fa-f]{16})">$')
_ESCAPED = re.compile(r"\\u(?:00(3[cC]|5[bB])|\{([0-9A-Fa-f]{1,6})\})")
_FORM = re.compile(r"^FORM:[ \t]*(\w+)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a conversation: whose it is, and its text (parts are joined by newlines)."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Fence:
    """A stranger's text in a prompt: what it is called, its fence's id, and it, un-escaped."""

    name: str
    id: str
    text: str


@dataclass(frozen=True)
class Asked:
    """One request to a model.

    Attributes:
        protocol: In whose wire form it came.
        model: The model asked for.
        messages: The conversation without its system messages.
        system: The system prompt; several are joined by blank lines.
        schema: JSON Schema that the reply shall have, however it was asked for; or None.
        tool: The tool that has to be called, or "".
        temperature: As sent, or None.
        headers: Lower-case names. A key's value is ``[hidden]``.
        body: The whole request.
        index: How many were asked before it.
        conversation: The whole of it, for a `FakeModel`.
    """

    protocol: WireForm
    model: str
    messages: tuple[Said, ...]
    system: str = ""
    schema: Mapping[str, Json] | None = None
    tool: str = ""
    temperature: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Mapping[str, Json] = field(default_factory=dict[str, Json])
    index: int = 0
    conversation: Conversation | None = None

    @property
    def last_user(self) -> str:
        """The last message of the user, or ""."""
        return next((said.text for said in reversed(self.messages) if said.role == "user"), "")

    @cached_property
    def _users(self) -> tuple[tuple[tuple[Fence, ...], str], ...]:
        return tuple(split_fences(said.text) for said in self.messages if said.role == "user")

    @cached_property
    def prompt(self) -> str:
        """What the newest of the user's messages with a form says outside fences.

        Later ones only ask for a corrected reply. Without any form, it is the last message.
        """
        outsides = [outside for _, outside in self._users]
        formed = [outside for outside in outsides if _FORM.search(outside)]
        return (formed or outsides or [""])[-1]

    @property
    def form(self) -> str:
        """What is asked for: ``criterion``, ``claims`` ... as the line ``FORM:`` says, or ""."""
        found = _FORM.search(self.prompt)
        return found[1] if found else ""

    @cached_property
    def fences(self) -> tuple[Fence, ...]:
        """Every fence of the user's messages, in order."""
        return tuple(fence for fences, _ in self._users for fence in fences)

    @cached_property
    def outside(self) -> str:
        """All text outside fences: the system prompt's and the user's, which a model obeys."""
        _, system = split_fences(self.system)
        return "\n\n".join(text for text in (system, *(out for _, out in self._users)) if text)

    @cached_property
    def outline(self) -> str:
        """As `outside`, with a line `PLACE` where each fence stood."""
        said = [said.text for said in self.messages if said.role == "user"]
        outlines = [_outline(text) for text in (self.system, *said)]
        return "\n\n".join(text for text in outlines if text)

    def fenced(self, name: str) -> str:
        """The text of the last fence of this name, or ""."""
        return next((fence.text for fence in reversed(self.fences) if fence.name == name), "")

    @cached_property
    def characters(self) -> int:
        """Length of everything said."""
        return len(self.system) + sum(len(said.text) for said in self.messages)


def split_fences(text: str) -> tuple[tuple[Fence, ...], str]:
    """Take a text apart.

    Returns:
        Its fences in order, un-escaped, and what stands outside them.
    """
    fences, outside = _taken_apart(text)
    return fences, "\n".join(line for line in outside if line is not None)


def _outline(text: str) -> str:
    _, outside = _taken_apart(text)
    # Nobody else's sign for a fence counts as one.
    return "\n".join(PLACE if line is None else line.replace(PLACE, "") for line in outside)


def _taken_apart(text: str) -> tuple[tuple[Fence, ...], list[str | None]]:
    """The fences of a text and the lines outside them, None for each fence."""
    if "<untrusted " not in text:
        return (), [text]
    lines = text.split("\n")
    ends: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if line.startswith("</untrusted id="):
            ends.setdefault(line.rstrip("\r"), []).append(number)
    fences: list[Fence] = []
    outside: list[str | None] = []
    at = 0
    while at < len(lines):
        opening = _OPENING.match(lines[at].rstrip("\r"))
        closing = f'</untrusted id="{opening[2]}">' if opening else ""
        end = next((number for number in ends.get(closing, ()) if number > at), 0)
        if opening and end:
            inside = "\n".join(lines[at + 1 : end])
            fences.append(Fence(opening[1], opening[2], _ESCAPED.sub(_unescaped, inside)))
            outside.append(None)
            at = end
        else:
            outside.append(lines[at])
        at += 1
    return tuple(fences), outside


def _unescaped(match: re.Match[str]) -> str:
    code = int(match[1] or match[2], 16)
    # What is not a character, or half of one, is left as it is written.
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else match[0]


Ending: TypeAlias = Literal["stop", "length", "refusal"]
_KEYS = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"})
_CHARACTERS_A_TOKEN = 4


def tokens_of(characters: int) -> int:
    """Tokens that a text of this length counts as: one for each four characters begun."""
    return -(-characters // _CHARACTERS_A_TOKEN)


def read_request(
    protocol: WireForm, body: Json, headers: Mapping[str, str], *, index: int
) -> Asked:
    """Read a request.

    Raises:
        ProtocolError: For what the provider would refuse as well.
    """
    if not isinstance(body, dict):
        raise ProtocolError(400, "the body has to be a JSON object")
    model, messages = body.get("model"), body.get("messages")
    if not isinstance(model, str) or not model:
        raise ProtocolError(400, "you must provide a model parameter", parameter="model")
    if not isinstance(messages, list) or not messages:
        raise ProtocolError(400, "messages: at least one message is required", parameter="messages")
    if protocol == "anthropic" and not isinstance(body.get("max_tokens"), int):
        raise ProtocolError(400, "max_tokens: field required", parameter="max_tokens")
    if body.get("stream") is True:
        raise ProtocolError(400, "stream: this fake answers whole replies only", parameter="stream")
    said = [_said(message) for message in messages]
    systems = [one.text for one in said if one.role in ("system", "developer")]
    if protocol == "anthropic" and body.get("system"):
        systems.insert(0, _text(body["system"]))
    temperature = body.get("temperature")
    schema, tool = _wanted(protocol, body)
    return Asked(
        protocol=protocol,
        model=model,
        messages=tuple(one for one in said if one.role not in ("system", "developer")),
        system="\n\n".join(systems),
        schema=schema,
        tool=tool,
        temperature=float(temperature) if isinstance(temperature, int | float) else None,
        headers=without_keys(headers),
        body=body,
        index=index,
    )


def without_keys(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers in which no key can be read."""
    return {name: "[hidden]" if name in _KEYS else value for name, value in headers.items()}


def _said(message: Json) -> Said:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise ProtocolError(400, "messages: each needs a role and content", parameter="messages")
    return Said(str(message["role"]), _text(message.get("content")))


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part for part in content if isinstance(part, dict)]
    return "\n".join(str(part["text"]) for part in parts if isinstance(part.get("text"), str))


def _wanted(protocol: WireForm, body: dict[str, Json]) -> tuple[dict[str, Json] | None, str]:
    """The schema that the reply shall have, and the tool that has to be called."""
    if protocol == "openai":
        form = _child(body, "response_format")
        if form.get("type") == "json_schema":
            return _child(_child(form, "json_schema"), "schema") or None, ""
    else:
        form = _child(_child(body, "output_config"), "format") or _child(body, "output_format")
        if form.get("type") == "json_schema":
            return _child(form, "schema") or None, ""
    return _forced_tool(protocol, body)


def _forced_tool(protocol: WireForm, body: dict[str, Json]) -> tuple[dict[str, Json] | None, str]:
    listed = body.get("tools")
    given = [tool for tool in listed if isinstance(tool, dict)] if isinstance(listed, list) else []
    tools = [_child(tool, "function") for tool in given] if protocol == "openai" else given
    choice = body.get("tool_choice")
    if isinstance(choice, str):
        is_forced, name = choice == "required", None
    else:
        chosen = choice if isinstance(choice, dict) else {}
        is_forced = chosen.get("type") in ("function", "tool", "any")
        named = _child(chosen, "function") if protocol == "openai" else chosen
        name = named.get("name")
    if not is_forced:
        return None, ""
    tool = next((tool for tool in tools if name is None or tool.get("name") == name), None)
    if tool is None:
        raise ProtocolError(400, f"tool_choice: there is no tool {name!r}", parameter="tool_choice")
    key = "parameters" if protocol == "openai" else "input_schema"
    return _child(tool, key) or None, str(tool.get("name", ""))


def _child(parent: Mapping[str, Json], key: str) -> dict[str, Json]:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def reply_body(asked: Asked, text: str, *, ending: Ending = "stop") -> dict[str, Json]:
    """Write a reply, as the provider of the request would.

    Args:
        asked: The request: it says the form, whether a tool has to be called, and how many tokens
            there may be. A longer reply is cut and ends by its length.
        text: The reply.
        ending: Why it ends.
    """
    most = _most_tokens(asked.body)
    if ending == "stop" and most and tokens_of(len(text)) > most:
        text, ending = text[: most * _CHARACTERS_A_TOKEN], "length"
    return (
        _openai_reply(asked, text, ending)
        if asked.protocol == "openai"
        else _anthropic_reply(asked, text, ending)
    )


def _most_tokens(body: Mapping[str, Json]) -> int:
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    return most if isinstance(most, int) and most > 0 else 0


def _openai_reply(asked: Asked, text: str, ending: Ending) -> dict[str, Json]:
    body = _written(asked, text, ending, is_call=bool(asked.tool) and ending != "refusal")
    count = asked.body.get("n")
    many = count if isinstance(count, int) and 1 < count <= 128 else 1
    choice, usage = cast("list[dict[str, Json]]", body["choices"])[0], _child(body, "usage")
    body["choices"] = [{**choice, "index": number} for number in range(many)]
    read, wrote = tokens_of(asked.characters), tokens_of(len(text)) * many
    body["usage"] = {**usage, "completion_tokens": wrote, "total_tokens": read + wrote}
    return {**body, "system_fingerprint": "fp_fake"}


def _anthropic_reply(asked: Asked, text: str, ending: Ending) -> dict[str, Json]:
    given: Json = None
    if asked.tool and ending == "stop":
        try:
            given = cast("Json", json.loads(text))
        except ValueError:
            given = None
    is_call = isinstance(given, dict)  # what is not an object calls no tool
    body = _written(asked, text, ending, is_call=is_call)
    if is_call:  # also where no strict reader would take it
        cast("list[dict[str, Json]]", body["content"])[0]["input"] = given
        body["stop_reason"] = "tool_use"
    return body


def _written(asked: Asked, text: str, ending: Ending, *, is_call: bool) -> dict[str, Json]:
    is_openai = asked.protocol == "openai"
    kind, call = ("chatcmpl-", "call_") if is_openai else ("msg_", "toolu_")
    part = Call(f"{call}{asked.index}", asked.tool, text) if is_call else Text(text)
    is_refused = ending == "refusal" and is_openai
    reply = Reply(
        turn=Turn("assistant", () if is_refused else (part,)),
        stop=ending,
        id=f"{kind}{asked.index}",
        refusal=text if is_refused else "",
        usage=Usage(
            input_tokens=tokens_of(asked.characters),
            cached_tokens=0,
            output_tokens=tokens_of(len(text)),
            reasoning_tokens=0 if is_openai else None,
        ),
    )
    codec = codec_of("chat" if is_openai else "anthropic")
    return codec.write_reply(reply, Conversation(model=asked.model, turns=()))


def error_body(protocol: WireForm, error: ProtocolError) -> dict[str, Json]:
    """Write an error, as this provider would."""
    return codec_of("chat" if protocol in ("openai", "responses") else protocol).write_error(error)


def models_body(model: str) -> dict[str, Json]:
    """The list of models, in a form that both providers' clients read."""
    entry: Json = {
        "id": model,
        "object": "model",
        "created": 1_700_000_000,
        "owned_by": "assay",
        "type": "model",
        "display_name": model,
        "created_at": "2023-11-14T22:13:20Z",
    }
    page: dict[str, Json] = {"object": "list", "data": [entry], "has_more": False}
    return {**page, "first_id": model, "last_id": model}
