"""Requests, replies and messages of OpenAI's responses and of Anthropic's messages.

Three forms are read, each one to a line or in a list: bodies (a request, or a reply), exchanges
(``{"request": ..., "response": ...}``, in which chat completions are read, too), and the messages
or items alone. What the bodies mean is said in `assay.conversation.protocols`; what its readers
refuse is left out here message by message, and told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from assay.agents.transcripts.document import Notes, listing, mapping, text_of
from assay.agents.transcripts.exchanges import MOST_TURNS, Exchange, read_exchanges
from assay.agents.transcripts.transcript import Transcript
from assay.conversation.protocols import Protocol, ProtocolError, codec_of
from assay.conversation.turns import AssistantTurn, Turn
from assay.scoring.json_safe import Json

ProviderFormat: TypeAlias = Literal["openai-responses", "anthropic", "exchanges"]

_ITEMS = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "custom_tool_call"}
    | {"custom_tool_call_output", "local_shell_call", "local_shell_call_output", "web_search_call"}
    | {"file_search_call", "computer_call", "computer_call_output", "code_interpreter_call"}
    | {"mcp_call", "mcp_list_tools", "image_generation_call", "shell_call", "shell_call_output"}
    | {"apply_patch_call", "apply_patch_call_output", "compaction"}
)
_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file", "refusal"})
_OF_ROWS = frozenset({"messages", "answer", "completion", "expected"})
_OF_REQUESTS = frozenset(
    {"instructions", "tools", "store", "max_output_tokens", "reasoning", "previous_response_id"}
)
_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"}
    | {"web_search_tool_result", "code_execution_tool_result"}
)


def is_exchange(value: Json) -> bool:
    """Whether a value can only be a request with what came of it."""
    entry = mapping(value)
    request, response = entry.get("request"), entry.get("response")
    return (
        isinstance(request, dict)
        and "response" in entry
        and bool(_protocol_of(request) or _protocol_of(mapping(response)))
    )


def is_responses(value: Json) -> bool:
    """Whether a value can only be a body or an item of OpenAI's responses."""
    entry = mapping(value)
    if entry.get("object") == "response":
        return isinstance(entry.get("output"), list)
    if "model" in entry and "input" in entry and not entry.keys() & _OF_ROWS:
        if isinstance(entry["input"], list):
            return not isinstance(entry.get("output"), str)
        return isinstance(entry["input"], str) and bool(entry.keys() & _OF_REQUESTS)
    output = listing(entry.get("output"))
    if output and all(text_of(mapping(item).get("type")) in _ITEMS for item in output[:3]):
        return True
    return _is_item(entry)


def _is_item(entry: Mapping[str, Json]) -> bool:
    kind = text_of(entry.get("type"))
    if kind == "message":
        kinds = [text_of(mapping(part).get("type")) for part in listing(entry.get("content"))]
        return "role" in entry and "usage" not in entry and any(one in _PARTS for one in kinds)
    if kind in ("reasoning", "mcp_list_tools", "compaction"):
        return "summary" in entry or "encrypted_content" in entry or "tools" in entry
    return kind in _ITEMS and ("call_id" in entry or "id" in entry)


def is_anthropic(value: Json) -> bool:
    """Whether a value can only be a body or a message of Anthropic's messages."""
    entry = mapping(value)
    if entry.get("type") == "message" and entry.get("role") == "assistant":
        return isinstance(entry.get("content"), list) and "stop_reason" in entry
    messages = listing(entry.get("messages"))
    if messages:
        return any(_has_blocks(mapping(message)) for message in messages) or (
            "max_tokens" in entry and isinstance(entry.get("system"), str | list)
        )
    return _has_blocks(entry)


def _has_blocks(message: Mapping[str, Json]) -> bool:
    is_one = message.get("role") in ("user", "assistant")
    blocks = listing(message.get("content")) if is_one else []
    return any(text_of(mapping(block).get("type")) in _BLOCKS for block in blocks)


def _is_reply(entry: Mapping[str, Json]) -> bool:
    if entry.get("type") == "message" and "stop_reason" in entry:
        return True
    return isinstance(entry.get("output"), list) and "call_id" not in entry


def _protocol_of(body: Mapping[str, Json]) -> Protocol | None:
    if is_responses(dict(body)) or isinstance(body.get("input"), str | list):
        return "responses"
    if is_anthropic(dict(body)) or ("messages" in body and "system" in body):
        return "anthropic"
    return "chat" if "messages" in body or "choices" in body else None


def read(values: Iterable[Json], notes: Notes, found: ProviderFormat) -> Transcript:
    """Read bodies, exchanges, or what they hold."""
    log = _Log(notes, "anthropic" if found == "anthropic" else "responses")
    for value in values:
        log.take(mapping(value))
    log.end()
    name = found
    if found == "exchanges" and log.protocols:
        name = _NAMES[log.protocols[0]]
    return read_exchanges(name, log.exchanges, notes, session={"model": log.model})


_NAMES: Mapping[Protocol, str] = {
    "responses": "openai-responses",
    "anthropic": "anthropic",
    "chat": "openai-chat",
}


@dataclass(slots=True)
class _Log:
    """A log in the course of being read."""

    notes: Notes
    protocol: Protocol
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    protocols: list[Protocol] = field(default_factory=list["Protocol"])
    model: str | None = None
    loose: list[Json] = field(default_factory=list["Json"])
    asked: tuple[Turn, ...] | None = None
    left: int = field(default_factory=lambda: MOST_TURNS)
    said: dict[str, tuple[Turn, ...]] = field(default_factory=dict[str, tuple[Turn, ...]])

    def take(self, entry: Mapping[str, Json]) -> None:
        """Take in one value."""
        if isinstance(entry.get("request"), dict) and "response" in entry:
            request, response = mapping(entry["request"]), mapping(entry["response"])
            protocol = _protocol_of(request) or _protocol_of(response) or self.protocol
            when = next(
                (w for key in ("timestamp", "at", "time") if (w := text_of(entry.get(key)))), ""
            )
            self._exchange(request, response, protocol, when)
        elif _is_reply(entry):
            self._reply(entry)
        elif "messages" in entry or ("input" in entry and "type" not in entry):
            self.end()
            self.asked = self._turns(entry, self.protocol)
        elif entry:
            self.loose.append(dict(entry))
        else:
            self.notes.lack("a value is no object")

    def end(self) -> None:
        """What was asked last got no reply; what stood alone is one conversation."""
        if self.loose:
            turns = turns_of(self.loose, self.protocol, self.notes)
            self.exchanges.append(Exchange(turns=(*(self.asked or ()), *turns)))
            self.loose, self.asked = [], None
        if self.asked is not None:
            self.exchanges.append(Exchange(turns=self.asked))
            self.asked = None

    def _exchange(
        self, request: Mapping[str, Json], response: Mapping[str, Json], protocol: Protocol, at: str
    ) -> None:
        self.end()
        self.protocols.append(protocol)
        turns = self._turns(request, protocol)
        reply = self._reply_of(response, protocol)
        error = mapping(response.get("error"))
        failed = "" if reply else str(error.get("message") or "the model did not answer")[:2000]
        if reply is None:
            self.notes.add("a request without a reply")
        self._add(Exchange(turns=turns, reply=reply, at=at, error=failed if error else ""))

    def _reply(self, body: Mapping[str, Json]) -> None:
        """A reply that stands alone, or behind its request."""
        asked = self._turns(body, self.protocol) if "input" in body else self.asked or ()
        if self.loose:
            asked = (*asked, *turns_of(self.loose, self.protocol, self.notes))
            self.loose = []
        self.asked = None
        follows = text_of(body.get("previous_response_id"))
        if follows and not asked:
            asked = self.said.get(follows, ())
        reply = self._reply_of(body, self.protocol)
        if reply is None:
            self.notes.lack("a reply could not be read")
        self._add(Exchange(turns=asked, reply=reply))

    def _add(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        reply = exchange.reply
        if reply is not None:
            self.model = self.model or reply.model or None
            if reply.id:
                self.said[reply.id] = (*exchange.turns, reply.turn)

    def _reply_of(self, body: Mapping[str, Json], protocol: Protocol) -> AssistantTurn | None:
        given = dict(body)
        if protocol == "responses" and "output" in given:
            given = {"status": "completed", **given}
        return codec_of(protocol).read_reply(given)

    def _turns(self, body: Mapping[str, Json], protocol: Protocol) -> tuple[Turn, ...]:
        """What a request says; with what its server held, where that is in the log."""
        self.model = self.model or text_of(body.get("model"))
        before: tuple[Turn, ...] = ()
        follows = text_of(body.get("previous_response_id"))
        if follows:
            before = self.said.get(follows, ())
            self.left -= len(before)
            if self.left < 0:
                before = ()
            if not before:
                self.notes.lack("a reply that is gone on from is not in the log")
        key = "input" if protocol == "responses" else "messages"
        given = body.get(key)
        listed = [{"role": "user", "content": given}] if isinstance(given, str) else listing(given)
        standing = body.get("instructions" if protocol == "responses" else "system")
        turns = turns_of(cast("list[Json]", listed), protocol, self.notes)
        if standing is not None and not before:
            turns = (*_instructions(standing), *turns)
        return (*before, *turns)


def _instructions(given: Json) -> tuple[Turn, ...]:
    parts = (
        [given] if isinstance(given, str) else [mapping(one).get("text") for one in listing(given)]
    )
    said = "\n".join(part for part in parts if isinstance(part, str))
    return (Turn.of("system", said),) if said else ()


def turns_of(messages: Iterable[Json], protocol: Protocol, notes: Notes) -> tuple[Turn, ...]:
    """Messages or items as turns; one that its protocol would refuse is left out, and told."""
    codec = codec_of(protocol)
    key = "input" if protocol == "responses" else "messages"
    turns: list[Turn] = []
    for message in messages:
        body: dict[str, Json] = {"model": "-", "max_tokens": 1, key: [message]}
        try:
            found = codec.read_request(body).turns
        except ProtocolError as error:
            notes.lack(f"a message was not read: {error.message}")
            continue
        for turn in found:
            # A reply is a turn, of however many messages or items it consists.
            if turns and turns[-1].speaker == turn.speaker in ("assistant", "tool"):
                turns[-1] = Turn(turn.speaker, (*turns[-1].parts, *turn.parts))
            else:
                turns.append(turn)
    return tuple(turns)
