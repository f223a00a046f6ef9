"""What a model takes, as its refusals taught it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from assay.conversation.messages import Request, Rung
from assay.conversation.schemas import Shape

_OPTIONAL = ("temperature", "top_p", "seed", "reasoning_effort")
_NAMES = {
    "temperature": re.compile(r"\btemperature\b"),
    "top_p": re.compile(r"\btop_p\b"),
    "seed": re.compile(r"\bseed\b"),
    "reasoning_effort": re.compile(
        r"\b(reasoning_effort|reasoning\.effort|output_config\.effort|effort)\b|output_config(?![.\w])"
    ),
    "max_tokens": re.compile(r"\bmax_(completion_)?tokens\b"),
}
_RUNG_WORDS: dict[Rung, re.Pattern[str]] = {
    "json_schema": re.compile(
        r"response_?format|json_schema|structured.?output|output_(config|format)|grammar|schema"
    ),
    "tool": re.compile(r"\btools?\b|tool_choice|function"),
    "json_object": re.compile(r"response_?format|json_object|json.?mode"),
}
# About this schema, not about schemas: another may well be taken.
_THIS_SCHEMA = re.compile(r"invalid schema|invalid_json_schema|schema (is )?too|too complex")
_AT_MOST = re.compile(r"(?:at most|maximum(?: of| is| value of)?|<=|>|less than)\D{0,3}(\d{2,7})\b")
_MOST_SCHEMAS = 256


@dataclass(slots=True)
class Capability:
    """What a model takes.

    Attributes:
        rungs: The ways to make a reply have its shape, the best one first.
        rung: The one in use.
        refused: Parameters that are not sent.
        token_field: How the limit of a reply is called.
        most_tokens: Highest limit that it takes; None if not known.
        for_schema: Rungs for single schemas that it refused, by the encoded schema.
        version: Grows with each lesson.
    """

    rungs: tuple[Rung, ...]
    rung: Rung
    refused: frozenset[str] = frozenset()
    token_field: str = "max_tokens"  # noqa: S105 - tokens of text
    most_tokens: int | None = None
    for_schema: dict[str, Rung] = field(default_factory=dict[str, Rung])
    version: int = 0

    def rung_for(self, shape: Shape | None) -> Rung:
        """How a reply of this shape is asked for."""
        if shape is None:
            return "text"
        rung = self.for_schema.get(shape.plain, self.rung) if self.for_schema else self.rung
        if rung == "json_schema" and not shape.strict:
            return self._below(rung)
        return rung

    def tokens(self, most: int) -> int:
        """The limit to send for a reply of so many tokens."""
        return most if self.most_tokens is None else min(most, self.most_tokens)

    def dropped(self, request: Request) -> tuple[str, ...]:
        """The parameters of a request that are not sent."""
        return tuple(
            name for name in _OPTIONAL if name in self.refused and _value(request, name) is not None
        )

    def learn(self, said: str, request: Request, shape: Shape | None) -> str:
        """Take a lesson from a refusal.

        Returns:
            What is done without, or differently, from now on; empty if nothing was learned.
        """
        said = said.lower()
        lesson = self._parameter(said, request) or self._shape(said, shape)
        if lesson:
            self.version += 1
        return lesson

    def _parameter(self, said: str, request: Request) -> str:
        for name in _OPTIONAL:
            sent = name not in self.refused and _value(request, name) is not None
            if sent and _NAMES[name].search(said):
                self.refused |= {name}
                return name
        if "max_tokens" in self.refused or not _NAMES["max_tokens"].search(said):
            return ""
        if self.token_field == "max_tokens" and "max_completion_tokens" in said:  # noqa: S105
            self.token_field = "max_completion_tokens"  # noqa: S105 - tokens of text
            return "max_tokens"
        limit = _AT_MOST.search(said)
        if limit and (self.most_tokens is None or int(limit[1]) < self.most_tokens):
            self.most_tokens = int(limit[1])
            return "max_tokens"
        if "json_object" in self.rungs:  # OpenAI's protocol: it need not be sent
            self.refused |= {"max_tokens"}
            return "max_tokens"
        return ""

    def _shape(self, said: str, shape: Shape | None) -> str:
        rung = self.rung_for(shape)
        words = _RUNG_WORDS.get(rung)
        if shape is None or words is None or not words.search(said):
            return ""
        below = self._below(rung)
        if _THIS_SCHEMA.search(said):
            if len(self.for_schema) >= _MOST_SCHEMAS:
                self.for_schema.clear()
            self.for_schema[shape.plain] = below
        else:
            self.rung = below
            self.for_schema.clear()
        return rung

    def _below(self, rung: Rung) -> Rung:
        place = self.rungs.index(rung) + 1 if rung in self.rungs else len(self.rungs)
        return self.rungs[place] if place < len(self.rungs) else "text"


def _value(request: Request, name: str) -> object:
    return getattr(request, name)
