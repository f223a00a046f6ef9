"""Messages of the OpenAI chat format: a list, one to a line, or a mapping with ``messages``.

The format tells neither cost nor time; ``usage`` beside the messages tells tokens. Whether a tool
failed is not told either, so a result is never an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assay.agents.transcripts.document import (
    Notes,
    count,
    listing,
    mapping,
    text_of,
    texts_of,
    total_of,
)
from assay.agents.transcripts.transcript import (
    Calls,
    Drafts,
    Transcript,
    TranscriptEnd,
    TurnDraft,
    arguments_of,
    make_transcript,
)
from assay.errors import InputError
from assay.graders.usage import RunUsage
from assay.scoring.json_safe import Json
from assay.types.trace import Source, Step, last_words

FORMAT = "openai-chat"

_ROLES: Mapping[str, Source] = {"system": "system", "developer": "system", "user": "user"}
_ALL_ROLES = (*_ROLES, "assistant", "tool", "function")


def is_message(value: Json) -> bool:
    """Whether a value can only be a message, or hold messages."""
    entry = mapping(value)
    if "messages" in entry:
        messages = listing(entry["messages"])
        return bool(messages) and all("role" in mapping(message) for message in messages[:3])
    return entry.get("role") in _ALL_ROLES and "type" not in entry


def read(values: Iterable[Json], notes: Notes) -> Transcript:
    """Read messages.

    Raises:
        InputError: For more than one conversation.
    """
    chat = _Chat(notes)
    conversations = 0
    usage: Mapping[str, Json] = {}
    for value in values:
        entry = mapping(value)
        if "messages" in entry:
            conversations += 1
            usage = mapping(entry.get("usage"))
        if conversations > 1:
            raise InputError("more than one conversation", hint="give one run per transcript")
        for message in listing(entry["messages"]) if "messages" in entry else [value]:
            chat.take(mapping(message))
    return chat.finish(usage)


class _Chat:
    """A conversation in the course of being read."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.calls = Calls(notes)
        self.drafts = Drafts(self.calls)

    def take(self, message: Mapping[str, Json]) -> None:
        """Take in one message."""
        role = text_of(message.get("role")) or ""
        if role == "assistant":
            self._assistant(message)
        elif role == "tool":
            call_id = text_of(message.get("tool_call_id")) or ""
            self.calls.answer(call_id, message.get("content"), is_error=False)
        elif role in _ROLES:
            shown: Json = {"role": role, "content": texts_of(message.get("content"))}
            self.drafts.add(Step(source=_ROLES[role], messages=(shown,)))
        else:
            self.notes.lack(f"a message of role {role!r}")

    def _assistant(self, message: Mapping[str, Json]) -> None:
        turn = self.drafts.turn()
        said = texts_of(message.get("content"))
        if said:
            turn.texts.append(said)
        turn.refusal = text_of(message.get("refusal"))
        thought = text_of(message.get("reasoning_content")) or text_of(message.get("reasoning"))
        if thought:
            turn.reasoning.append(thought)
        if "tool_calls" in message and not isinstance(message["tool_calls"], list | None):
            self.notes.lack("the tool calls of a message are not a list")
        for call in listing(message.get("tool_calls")):
            self._call(turn, mapping(call))
        if message.get("function_call") is not None:
            self.notes.lack("a call in the form of 2023, function_call, was not read")

    def _call(self, turn: TurnDraft, call: Mapping[str, Json]) -> None:
        function = mapping(call.get("function")) or mapping(call.get("custom"))
        name = text_of(function.get("name"))
        if name is None:
            self.notes.add("a tool call without a name")
        given = function.get("arguments", function.get("input"))
        self.drafts.call(
            turn,
            name=name or "",
            arguments=arguments_of(given, self.notes),
            call_id=text_of(call.get("id")) or "",
        )

    def finish(self, usage: Mapping[str, Json]) -> Transcript:
        """The transcript, after the last message."""
        self.calls.close()
        parts = ("prompt_tokens", "completion_tokens")
        counts = [count(usage.get(part), self.notes, part) for part in parts]
        steps = self.drafts.steps()
        outcome = TranscriptEnd(
            answer=last_words(steps), status="completed", totals=RunUsage(tokens=total_of(counts))
        )
        return make_transcript(FORMAT, steps, outcome, self.notes)
