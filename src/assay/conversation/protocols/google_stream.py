"""Google's generateContent: streamed replies, written and read.

Each event is a reply that holds what is new; texts that come one behind the other are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from assay.conversation.protocols.events import EventStream, Pieces, cut, event
from assay.conversation.wire import items, mapping
from assay.scoring.json_safe import Json

_TEXT = frozenset({"text", "thought"})


def write_stream(
    body: Mapping[str, Json],
    pieces: int,
    wants_usage: bool,  # noqa: FBT001 - as of `Codec`
) -> Iterator[bytes]:
    """A whole reply as the events of a streamed one; see `Codec`."""
    del wants_usage  # which is always told
    told = {key: body[key] for key in ("modelVersion", "responseId") if key in body}
    rest = {key: value for key, value in body.items() if key != "candidates"}
    candidates = [mapping(one) for one in items(body.get("candidates"))]
    ending: list[Json] = []
    for at, candidate in enumerate(candidates):
        content = mapping(candidate.get("content"))
        parts = [piece for one in items(content.get("parts")) for piece in _cut(one, pieces)]
        named: dict[str, Json] = {"index": candidate.get("index", at)}
        for part in parts[:-1]:
            said: Json = {"content": {**content, "parts": [part]}, **named}
            yield event({"candidates": [said], **told})
        last: dict[str, Json] = {**candidate}
        if "parts" in content:
            last["content"] = {**content, "parts": parts[-1:]}
        ending.append(last)
    yield event({"candidates": ending, **rest} if "candidates" in body else rest)


def _cut(part: Json, pieces: int) -> list[Json]:
    """A part in pieces; only a plain text can be put together again."""
    block = mapping(part)
    said = block.get("text")
    if not isinstance(said, str) or not said or block.keys() - _TEXT:
        return [part]
    return [{**block, "text": piece} for piece in cut(said, pieces)]


class GoogleStream(EventStream):
    """A streamed reply in the course of being read; see `EventStream`."""

    def __init__(self) -> None:
        super().__init__()
        self._rest: dict[str, Json] = {}
        self._candidates: dict[int, dict[str, Json]] = {}
        self._contents: dict[int, dict[str, Json]] = {}
        self._parts: dict[int, list[Json]] = {}
        self._pieces = Pieces()

    def take(self, data: dict[str, Json]) -> None:
        """Take in one event."""
        self._rest |= {
            key: value for key, value in data.items() if key not in ("candidates", "error")
        }
        if "candidates" in data:
            self._rest["candidates"] = None  # in its place
        for at, candidate in enumerate(map(mapping, items(data.get("candidates")))):
            index = candidate.get("index", at)
            place = index if type(index) is int else 0
            known = self._candidates.setdefault(place, {})
            known |= candidate
            content = candidate.get("content")
            if isinstance(content, dict):
                self._contents.setdefault(place, {}).update(content)
                for part in items(content.get("parts")):
                    self._add(place, part)

    def _add(self, place: int, part: Json) -> None:
        parts = self._parts.setdefault(place, [])
        block = mapping(part)
        said = block.get("text")
        is_text = isinstance(said, str) and not block.keys() - _TEXT
        before = mapping(parts[-1]) if parts else {}
        goes_on = (
            is_text
            and isinstance(before.get("text"), str)
            and not before.keys() - _TEXT
            and before.get("thought") == block.get("thought")
        )
        if not goes_on:
            parts.append(part)
        if is_text:
            self._pieces.add(place, len(parts), text=str(said))

    @property
    def is_ending(self) -> bool:
        """Whether the reply is whole."""
        ends = [one.get("finishReason") for one in self._candidates.values()]
        return all(ends) if ends else bool(self._rest.get("promptFeedback"))

    def body(self) -> dict[str, Json] | None:
        """The reply as if it had come whole; None if it has not come to its end."""
        return (
            self.partial() if self.is_ending and not self.is_broken and not self.error() else None
        )

    def partial(self) -> dict[str, Json]:
        """The reply as far as it came, as if it had come whole."""
        if "candidates" not in self._rest:
            return dict(self._rest)
        whole = [self._candidate(place) for place in sorted(self._candidates)]
        return {**self._rest, "candidates": list[Json](whole)}

    def _candidate(self, place: int) -> dict[str, Json]:
        candidate = self._candidates[place]
        if place not in self._contents:
            return candidate
        content: dict[str, Json] = self._contents[place]
        if isinstance(content.get("parts"), list):
            parts: list[Json] = []
            for at, part in enumerate(self._parts.get(place, []), 1):
                said = self._pieces.get(place, at)
                parts.append(part if said is None else {**mapping(part), "text": said})
            content = {**content, "parts": parts}
        return {**candidate, "content": content}
