r"""What a model was asked: the request as both wire forms say it, its fences, and what is outside.

A fence is how text of a stranger stands in a prompt::

    <untrusted name="answer" id="0f3a5c7e9b1d2468">
    the text, every "<" of it written \u003c, and each invisible character \u{200b}
    </untrusted id="0f3a5c7e9b1d2468">

Lines that only look like one, whose ids differ or which are never closed, are not fences: their
text stands outside, as it does for a model that reads them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from assay.conversation.turns import Conversation
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
        conversation: The whole of it.
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


_CHARACTERS_A_TOKEN = 4


def tokens_of(characters: int) -> int:
    """Tokens that a text of this length counts as: one for each four characters begun."""
    return -(-characters // _CHARACTERS_A_TOKEN)
