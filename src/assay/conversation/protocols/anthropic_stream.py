"""Anthropic's messages: streamed replies, written and read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from assay.conversation.protocols.events import EventStream, Pieces, cut, event, place_of
from assay.conversation.protocols.shapes import MOST_DEPTH
from assay.conversation.wire import items, mapping
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

_AT_THE_END = ("stop_reason", "stop_sequence", "stop_details", "container")
_TOTALS = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
    "output_tokens_details",
    "server_tool_use",
)
_DELTAS = {"text": ("text", "text_delta"), "thinking": ("thinking", "thinking_delta")}
_TOOL_USES = ("tool_use", "server_tool_use", "mcp_tool_use")


def write_stream(
    body: Mapping[str, Json],
    pieces: int,
    wants_usage: bool,  # noqa: FBT001 - as of `Codec`
) -> Iterator[bytes]:
    """A whole reply as the events of a streamed one; see `Codec`."""
    del wants_usage  # which is always told
    usage = mapping(body.get("usage"))
    ending = {key: body[key] for key in _AT_THE_END if key in body}
    start: dict[str, Json] = {key: body[key] for key in body if key not in ending}
    start |= dict.fromkeys(key for key in ("stop_reason", "stop_sequence") if key in ending)
    start["content"] = []
    if usage:
        begun: dict[str, Json] = {k: v for k, v in usage.items() if k != "output_tokens_details"}
        start["usage"] = begun | ({"output_tokens": 0} if "output_tokens" in usage else {})
    yield _event("message_start", message=start)
    for index, block in enumerate(items(body.get("content"))):
        yield from _block_events(index, mapping(block), pieces)
    totals: Json = {key: usage[key] for key in _TOTALS if key in usage}
    yield _event("message_delta", delta=ending, usage=totals)
    yield _event("message_stop")


def _event(kind: str, **fields: Json) -> bytes:
    return event({"type": kind, **fields}, kind)


def _block_events(index: int, block: dict[str, Json], pieces: int) -> Iterator[bytes]:
    first = dict(block)
    deltas: list[dict[str, Json]] = []
    kind = block.get("type")
    grows, delta = _DELTAS.get(kind if isinstance(kind, str) else "", ("", ""))
    said = block.get(grows)
    if isinstance(said, str):
        first[grows] = ""
        deltas.extend({"type": delta, grows: piece} for piece in cut(said, pieces))
    if kind == "text" and (citations := items(block.get("citations"))):
        first["citations"] = []
        deltas.extend({"type": "citations_delta", "citation": one} for one in citations)
    signature = block.get("signature")
    if kind == "thinking" and isinstance(signature, str) and signature:
        first["signature"] = ""
        deltas.append({"type": "signature_delta", "signature": signature})
    given = block.get("input")
    if kind in _TOOL_USES and given:
        first["input"] = {}
        written = given if isinstance(given, str) else json.dumps(given, separators=(",", ":"))
        deltas.extend(
            {"type": "input_json_delta", "partial_json": piece} for piece in cut(written, pieces)
        )
    yield _event("content_block_start", index=index, content_block=first)
    for one in deltas:
        yield _event("content_block_delta", index=index, delta=one)
    yield _event("content_block_stop", index=index)


class AnthropicStream(EventStream):
    """A streamed reply in the course of being read; see `EventStream`."""

    def __init__(self) -> None:
        super().__init__()
        self._message: dict[str, Json] = {}
        self._usage: dict[str, Json] | None = None
        self._blocks: dict[int, dict[str, Json]] = {}
        self._pieces: dict[int, Pieces] = {}
        self._is_ended = False

    def take(self, data: dict[str, Json]) -> None:
        """Take in one event."""
        kind = data.get("type")
        if kind == "message_start":
            self._message = dict(mapping(data.get("message")))
            usage = self._message.get("usage")
            self._usage = dict(usage) if isinstance(usage, dict) else None
            for index, block in enumerate(map(mapping, items(self._message.get("content")))):
                self._blocks[index] = dict(block)
        elif kind == "content_block_start":
            self._blocks[place_of(data)] = _copied(mapping(data.get("content_block")))
        elif kind == "content_block_delta":
            self._take_delta(place_of(data), mapping(data.get("delta")))
        elif kind == "message_delta":
            self._message |= mapping(data.get("delta"))
            if totals := {k: v for k, v in mapping(data.get("usage")).items() if v is not None}:
                self._usage = (self._usage or {}) | totals
        elif kind == "message_stop":
            self._is_ended = True

    @property
    def is_ending(self) -> bool:
        """Whether the reply is whole."""
        return self._is_ended

    def body(self) -> dict[str, Json] | None:
        """The reply as if it had come whole; None if it has not come to its end."""
        is_whole = self._is_ended and self._message and not self.is_broken and not self.error()
        return self.partial() if is_whole else None

    def partial(self) -> dict[str, Json]:
        """The reply as far as it came, as if it had come whole."""
        content: list[Json] = [
            self._grown(index, self._blocks[index]) for index in sorted(self._blocks)
        ]
        whole: dict[str, Json] = {**self._message, "content": content}
        return whole if self._usage is None else {**whole, "usage": self._usage}

    def _take_delta(self, index: int, delta: dict[str, Json]) -> None:
        block = self._blocks.setdefault(index, {})
        for key, value in delta.items():
            if key == "type":
                continue
            if key == "citation":
                kept = block.get("citations")
                block["citations"] = listed = kept if isinstance(kept, list) else []
                listed.append(value)
            elif isinstance(value, str) and key != "signature":
                self._pieces.setdefault(index, Pieces()).add(key, text=value)
            else:
                block[key] = value

    def _grown(self, index: int, block: Mapping[str, Json]) -> dict[str, Json]:
        whole = dict(block)
        pieces = self._pieces.get(index) or Pieces()
        for key in pieces.names():
            more = pieces.get(key) or ""
            if key != "partial_json":
                begun = whole.get(key)
                whole[key] = f"{begun}{more}" if isinstance(begun, str) else more
            elif more:
                whole["input"] = _decoded(more)
        return whole


def _decoded(written: str) -> Json:
    """The input of a tool; what broke off stays as it was written."""
    try:
        return decode_json(written, max_depth=MOST_DEPTH)
    except NotJsonError:
        return written


def _copied(block: Mapping[str, Json]) -> dict[str, Json]:
    citations = block.get("citations")
    return {**block, "citations": list(citations)} if isinstance(citations, list) else dict(block)
