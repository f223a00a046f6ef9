"""OpenAI's chat completions: streamed replies, written and read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from assay.conversation.protocols.events import EventStream, Pieces, cut, event, place_of
from assay.conversation.wire import items, mapping
from assay.scoring.json_safe import Json

_TEXTS = ("reasoning", "reasoning_content", "content", "refusal")
_IN_EACH_CHUNK = ("id", "created", "model", "system_fingerprint", "service_tier")
_APART = ("choices", "object", "usage")
_DONE = b"data: [DONE]\n\n"


def write_stream(
    body: Mapping[str, Json],
    pieces: int,
    wants_usage: bool,  # noqa: FBT001 - as of `Codec`
) -> Iterator[bytes]:
    """A whole reply as the events of a streamed one; see `Codec`."""
    usage = body.get("usage")
    common: dict[str, Json] = {key: body[key] for key in _IN_EACH_CHUNK if key in body}
    common["object"] = "chat.completion.chunk"
    if wants_usage and usage is not None:
        common["usage"] = None
    rest = {key: body[key] for key in body if key not in (*_IN_EACH_CHUNK, *_APART)}
    chunks = [
        chunk
        for at, choice in enumerate(items(body.get("choices")))
        for chunk in _choice_chunks(mapping(choice), at, pieces)
    ]
    if rest and not chunks:
        yield event({**common, "choices": [], **rest})
    for chunk in chunks:
        yield event({**common, "choices": [chunk], **rest})
        rest = {}
    if wants_usage and usage is not None:
        yield event({**common, "choices": [], "usage": usage})
    yield _DONE


def _choice_chunks(choice: Mapping[str, Json], at: int, pieces: int) -> list[dict[str, Json]]:
    message = mapping(choice.get("message"))
    deltas: list[dict[str, Json]] = [_first_delta(message)]
    for key in _TEXTS:
        whole = message.get(key)
        if isinstance(whole, str):
            deltas.extend({key: piece} for piece in cut(whole, pieces))
    for number, call in enumerate(items(message.get("tool_calls"))):
        deltas.extend(
            {"tool_calls": [{"index": number, **part}]}
            for part in _call_deltas(mapping(call), pieces)
        )
    index = choice.get("index", at)
    chunks: list[dict[str, Json]] = [
        {"index": index, "delta": delta, "finish_reason": None} for delta in deltas
    ]
    if "logprobs" in choice:  # all of them with the first chunk: which is whose, nobody knows
        chunks[0]["logprobs"] = choice["logprobs"]
    if "token_ids" in choice:
        chunks[0]["token_ids"] = choice["token_ids"]
    kept = ("index", "message", "logprobs", "token_ids", "finish_reason")
    rest = {key: choice[key] for key in choice if key not in kept}
    finish = choice.get("finish_reason")
    chunks.append({"index": index, "delta": {}, **rest, "finish_reason": finish})
    return chunks


def _first_delta(message: Mapping[str, Json]) -> dict[str, Json]:
    """All of a message but its long texts, whose places it shows."""
    first: dict[str, Json] = {}
    for key, value in message.items():
        if key in _TEXTS and isinstance(value, str):
            first[key] = ""
        elif key == "tool_calls" and value:
            continue
        else:
            first[key] = value
    return first


def _call_deltas(call: Mapping[str, Json], pieces: int) -> list[dict[str, Json]]:
    kind, name = ("custom", "input") if "custom" in call else ("function", "arguments")
    inner = call.get(kind)
    if not isinstance(inner, dict):
        return [dict(call)]
    first, *more = _cut_inside(inner, name, pieces)
    return [{**call, kind: first}, *({kind: part} for part in more)]


def _cut_inside(whole: Mapping[str, Json], name: str, pieces: int) -> list[dict[str, Json]]:
    """An object, of which one text comes behind it in pieces."""
    text = whole.get(name)
    if not isinstance(text, str):
        return [dict(whole)]
    return [{**whole, name: ""}, *({name: piece} for piece in cut(text, pieces))]


class ChatStream(EventStream):
    """A streamed reply in the course of being read; see `EventStream`."""

    def __init__(self) -> None:
        super().__init__()
        self._fields: dict[str, Json] = {}
        self._usage: Json = None
        self._choices: dict[int, _Choice] = {}
        self._is_done = False

    def take(self, data: dict[str, Json]) -> None:
        """Take in one chunk."""
        for key, value in data.items():
            if key not in _APART and (value is not None or key not in self._fields):
                self._fields[key] = value
        self._usage = data.get("usage") or self._usage
        for choice in map(mapping, items(data.get("choices"))):
            self._choices.setdefault(place_of(choice), _Choice()).take(choice)

    def finish(self) -> None:
        """Take in the word that ends the stream."""
        self._is_done = True

    def is_wanted(self, data: Mapping[str, Json]) -> bool:
        """Whether who asked wants to see a chunk: not the one of tokens, if they did not say so."""
        return self.wants_usage or bool(data.get("choices")) or not data.get("usage")

    @property
    def is_ending(self) -> bool:
        """Whether what comes now tells how the reply ended, or its tokens."""
        finished = (choice.is_finished for choice in self._choices.values())
        return self._is_done or (bool(self._choices) and all(finished))

    @property
    def is_over(self) -> bool:
        """Whether nothing more can come."""
        return self._is_done

    def body(self) -> dict[str, Json] | None:
        """The reply as if it had come whole; None if it has not come to its end."""
        if self.is_broken or self.error() or not self._choices:
            return None
        return self.partial() if self.is_ending else None

    def partial(self) -> dict[str, Json]:
        """The reply as far as it came, as if it had come whole."""
        choices: list[Json] = [self._choices[at].whole(at) for at in sorted(self._choices)]
        whole: dict[str, Json] = {**self._fields, "object": "chat.completion", "choices": choices}
        return whole if self._usage is None else {**whole, "usage": self._usage}


class _Choice:
    """One of the replies in a stream, so far."""

    def __init__(self) -> None:
        self._message: dict[str, Json] = {}
        self._rest: dict[str, Json] = {}
        self._pieces = Pieces()
        self._calls: list[dict[str, Json]] = []
        self._places: dict[int, int] = {}

    @property
    def is_finished(self) -> bool:
        return self._rest.get("finish_reason") is not None

    def take(self, choice: Mapping[str, Json]) -> None:
        for key, value in choice.items():
            if key == "delta":
                self._take_delta(mapping(value))
            elif key == "logprobs" and isinstance(value, dict):
                kept = self._rest.get(key)
                self._rest[key] = known = kept if isinstance(kept, dict) else {}
                for name, more in value.items():
                    _extend(known, name, more)
            elif key == "token_ids":
                _extend(self._rest, key, value)
            elif key != "index" and (value is not None or key not in self._rest):
                self._rest[key] = value

    def _take_delta(self, delta: Mapping[str, Json]) -> None:
        for key, value in delta.items():
            if key in _TEXTS and isinstance(value, str):
                self._message[key] = ""
                self._pieces.add(key, text=value)
            elif key == "tool_calls" and isinstance(value, list):
                self._message.setdefault(key, [])
                for call in map(mapping, value):
                    self._take_call(call)
            else:
                _extend(self._message, key, value)

    def _take_call(self, call: Mapping[str, Json]) -> None:
        index = place_of(call)
        place = self._places.get(index)
        named = call.get("id")
        # Some servers number all calls 0: another id is another call.
        if place is None or (named and self._calls[place].get("id") not in (None, "", named)):
            place = self._places[index] = len(self._calls)
            self._calls.append({})
        known = self._calls[place]
        for key, value in call.items():
            if key in ("function", "custom") and isinstance(value, dict):
                kept = known.get(key)
                known[key] = inner = kept if isinstance(kept, dict) else {}
                self._grow(
                    inner, value, ("call", place), "input" if key == "custom" else "arguments"
                )
            elif key != "index" and (value is not None or key not in known):
                known[key] = value

    def _grow(
        self,
        known: dict[str, Json],
        more: Mapping[str, Json],
        place: tuple[int | str, ...],
        grows: str,
    ) -> None:
        for key, value in more.items():
            if key == grows and isinstance(value, str):
                known[key] = ""
                self._pieces.add(*place, text=value)
            elif value or key not in known:
                known[key] = value

    def whole(self, index: int) -> dict[str, Json]:
        """It, as far as it came."""
        message = dict(self._message)
        for key in _TEXTS:
            if message.get(key) == "":
                message[key] = self._pieces.get(key) or ""
        calls: list[Json] = []
        for place, call in enumerate(self._calls):
            copied = dict(call)
            for kind, name in (("function", "arguments"), ("custom", "input")):
                if name in mapping(call.get(kind)):
                    said = self._pieces.get("call", place)
                    inner = mapping(call[kind])
                    copied[kind] = inner if said is None else {**inner, name: said}
            calls.append(copied)
        if calls:
            message["tool_calls"] = calls
        return {"index": index, "message": message, "finish_reason": None, **self._rest}


def _extend(known: dict[str, Json], key: str, more: Json) -> None:
    """What comes later: lists grow, anything else replaces; nothing replaces something."""
    kept = known.get(key)
    if isinstance(more, list):
        known[key] = grown = kept if isinstance(kept, list) else []
        grown += more
    elif more is not None or key not in known:
        known[key] = more
