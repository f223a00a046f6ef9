"""OpenAI's responses: streamed replies, written and read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from assay.conversation.protocols.events import EventStream, Pieces, cut, event, place_of
from assay.conversation.wire import items, mapping, said_error, text
from assay.scoring.json_safe import Json

_ENDINGS = {"incomplete": "response.incomplete", "failed": "response.failed"}
_PARTS = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text"}
_INPUTS = {
    "function_call": ("arguments", "response.function_call_arguments"),
    "custom_tool_call": ("input", "response.custom_tool_call_input"),
}
_WAITING = ("usage", "error", "incomplete_details", "completed_at")


def write_stream(
    body: Mapping[str, Json],
    pieces: int,
    wants_usage: bool,  # noqa: FBT001 - as of `Codec`
) -> Iterator[bytes]:
    """A whole reply as the events of a streamed one; see `Codec`."""
    del wants_usage  # which is always told
    begun: dict[str, Json] = {**body, "status": "in_progress", "output": []}
    begun |= {key: None for key in _WAITING if key in body}
    told: list[tuple[str, dict[str, Json]]] = [
        ("response.created", {"response": begun}),
        ("response.in_progress", {"response": begun}),
    ]
    for index, item in enumerate(map(mapping, items(body.get("output")))):
        told += _item_events(index, item, pieces)
    ending = _ENDINGS.get(text(body.get("status")), "response.completed")
    told.append((ending, {"response": dict(body)}))
    for number, (kind, fields) in enumerate(told):
        yield event({"type": kind, **fields, "sequence_number": number}, kind)


def _item_events(
    index: int, item: dict[str, Json], pieces: int
) -> Iterator[tuple[str, dict[str, Json]]]:
    first: dict[str, Json] = dict(item)
    where: dict[str, Json] = {"item_id": item.get("id") or "", "output_index": index}
    inner: Iterator[tuple[str, dict[str, Json]]] = iter(())
    kind = text(item.get("type"))
    if "status" in item:
        first["status"] = "in_progress"
    if kind == "message" and isinstance(item.get("content"), list):
        first["content"] = []
        inner = _content_events(item, where, pieces)
    elif kind == "reasoning":
        first |= {key: [] for key in ("summary", "content") if isinstance(item.get(key), list)}
        inner = _thought_events(item, where, pieces)
    elif kind in _INPUTS:
        name, called = _INPUTS[kind]
        if isinstance(said := item.get(name), str):
            first[name] = ""
            inner = _text_events(said, called, name, where, pieces)
    yield "response.output_item.added", {"output_index": index, "item": first}
    yield from inner
    yield "response.output_item.done", {"output_index": index, "item": dict(item)}


def _text_events(
    said: str, kind: str, name: str, where: Mapping[str, Json], pieces: int
) -> Iterator[tuple[str, dict[str, Json]]]:
    for piece in cut(said, pieces):
        yield f"{kind}.delta", {**where, "delta": piece}
    yield f"{kind}.done", {**where, name: said}


def _content_events(
    item: Mapping[str, Json], where: Mapping[str, Json], pieces: int
) -> Iterator[tuple[str, dict[str, Json]]]:
    for at, part in enumerate(map(mapping, items(item.get("content")))):
        kind = text(part.get("type"))
        grows = _PARTS.get(kind, "")
        said = part.get(grows)
        place: dict[str, Json] = {**where, "content_index": at}
        first = dict(part)
        if isinstance(said, str):
            first[grows] = ""
        first |= {key: [] for key in ("annotations", "logprobs") if isinstance(part.get(key), list)}
        yield "response.content_part.added", {**place, "part": first}
        if isinstance(said, str):
            called = f"response.{kind}"
            deltas = _text_events(said, called, grows, place, pieces)
            yield from _with_logprobs(deltas, part) if kind == "output_text" else deltas
        for number, one in enumerate(items(part.get("annotations"))):
            fields: dict[str, Json] = {**place, "annotation_index": number, "annotation": one}
            yield "response.output_text.annotation.added", fields
        yield "response.content_part.done", {**place, "part": dict(part)}


def _with_logprobs(
    told: Iterator[tuple[str, dict[str, Json]]], part: Mapping[str, Json]
) -> Iterator[tuple[str, dict[str, Json]]]:
    """All of them with the first event: which is whose, nobody knows."""
    left = logprobs = items(part.get("logprobs"))
    for kind, fields in told:
        is_done = kind.endswith(".done")
        yield kind, {**fields, "logprobs": logprobs if is_done else left}
        left = []


def _thought_events(
    item: Mapping[str, Json], where: Mapping[str, Json], pieces: int
) -> Iterator[tuple[str, dict[str, Json]]]:
    for at, part in enumerate(map(mapping, items(item.get("summary")))):
        place: dict[str, Json] = {**where, "summary_index": at}
        empty: dict[str, Json] = {**part, "text": ""}
        yield "response.reasoning_summary_part.added", {**place, "part": empty}
        said = text(part.get("text"))
        yield from _text_events(said, "response.reasoning_summary_text", "text", place, pieces)
        yield "response.reasoning_summary_part.done", {**place, "part": part}
    yield from _content_events(item, where, pieces)


class ResponsesStream(EventStream):
    """A streamed reply in the course of being read; see `EventStream`.

    The last event brings the whole reply; what came before it counts where it does not come.
    """

    def __init__(self) -> None:
        super().__init__()
        self._response: dict[str, Json] = {}
        self._items: dict[int, _Item] = {}
        self._is_ended = False

    def take(self, data: dict[str, Json]) -> None:
        """Take in one event."""
        kind = text(data.get("type")).removeprefix("response.")
        if kind == "error":
            self.fail({key: data[key] for key in data if key not in ("type", "sequence_number")})
        elif isinstance(response := data.get("response"), dict):
            self._response = response
            if kind in ("completed", "incomplete", "failed"):
                self._is_ended = True
                if told := said_error(response):
                    self.fail(told)
        elif kind in ("output_item.added", "output_item.done"):
            self._items[place_of(data, "output_index")] = _Item(mapping(data.get("item")))
        elif "output_index" in data:
            item = self._items.setdefault(place_of(data, "output_index"), _Item({}))
            item.take(kind, data)

    @property
    def is_ending(self) -> bool:
        """Whether the reply is whole."""
        return self._is_ended

    def body(self) -> dict[str, Json] | None:
        """The reply as if it had come whole; None if it has not come to its end."""
        return self.partial() if self._is_ended and not self.is_broken else None

    def partial(self) -> dict[str, Json]:
        """The reply as far as it came, as if it had come whole."""
        if (self._is_ended and self._response.get("output")) or not self._items:
            return dict(self._response)
        output: list[Json] = [self._items[index].whole() for index in sorted(self._items)]
        return {**self._response, "output": output}


class _Item:
    """One item of a reply, so far."""

    def __init__(self, item: Mapping[str, Json]) -> None:
        self._item = dict(item)
        self._parts: dict[tuple[str, int], dict[str, Json]] = {}
        self._pieces = Pieces()

    def take(self, kind: str, data: Mapping[str, Json]) -> None:
        delta = data.get("delta")
        where = "summary" if "summary_index" in data else "content"
        at = place_of(data, f"{where}_index")
        if kind in ("content_part.added", "reasoning_summary_part.added"):
            self._parts[where, at] = dict(mapping(data.get("part")))
        elif kind in ("content_part.done", "reasoning_summary_part.done"):
            self._parts[where, at] = dict(mapping(data.get("part")))
            self._pieces.drop(where, at)
        elif not isinstance(delta, str):
            return
        elif kind == "function_call_arguments.delta":
            self._pieces.add("arguments", text=delta)
        elif kind == "custom_tool_call_input.delta":
            self._pieces.add("input", text=delta)
        elif kind in _GROWING:
            self._parts.setdefault((where, at), {"type": _GROWING[kind]})
            self._pieces.add(where, at, text=delta)

    def whole(self) -> dict[str, Json]:
        whole = dict(self._item)
        for name in ("arguments", "input"):
            if (said := self._pieces.get(name)) is not None:
                whole[name] = said
        for where in ("summary", "content"):
            known = [(at, part) for (place, at), part in self._parts.items() if place == where]
            if known:
                whole[where] = [
                    self._part(where, at, part) for at, part in sorted(known, key=_first)
                ]
        return whole

    def _part(self, where: str, at: int, part: Mapping[str, Json]) -> dict[str, Json]:
        said = self._pieces.get(where, at)
        name = "refusal" if part.get("type") == "refusal" else "text"
        return dict(part) if said is None else {**part, name: said}


_GROWING = {
    "output_text.delta": "output_text",
    "refusal.delta": "refusal",
    "reasoning_text.delta": "reasoning_text",
    "reasoning_summary_text.delta": "summary_text",
}
"""Kinds of events that bring more of a part, and the type of the part if nothing else told it."""


def _first(pair: tuple[int, object]) -> int:
    return pair[0]
