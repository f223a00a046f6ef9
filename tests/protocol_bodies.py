"""What tests of the protocols share: bodies by chance, streams cut anywhere, a fixed reply."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from hypothesis import strategies as st

from assay.conversation.protocols import Codec
from assay.conversation.turns import Call, Conversation, Image, Part, Result, Text, Tool, Turn
from assay.scoring.json_safe import Json
from assay.testing.faults import HttpResponse
from assay.testing.http_server import HttpRequest, HttpServer

Strategy: TypeAlias = "st.SearchStrategy[Any]"

texts = st.text(max_size=20)
said = st.text(min_size=1, max_size=20)
words = st.text("abcdefgh_1234", min_size=1, max_size=8)
leaves: Strategy = st.none() | st.booleans() | st.integers(-9, 9) | texts | st.floats(-1, 1)
json_values: Strategy = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
json_objects: Strategy = st.dictionaries(words, json_values, max_size=3)


def objects(required: dict[str, Any], **optional: Strategy) -> Strategy:
    """Objects with all of some fields and any of others; a value stands for itself."""
    fixed: dict[str, Strategy] = {
        key: cast("Strategy", value if isinstance(value, st.SearchStrategy) else st.just(value))
        for key, value in required.items()
    }
    return st.fixed_dictionaries(fixed, optional=optional)


def read_back(
    codec: Codec, body: dict[str, Json], cuts: list[int], pieces: int
) -> dict[str, Json] | None:
    """A body streamed, its bytes cut at places, and read again."""
    whole = b"".join(codec.write_stream(body, pieces=pieces))
    ends = sorted({cut % (len(whole) + 1) for cut in cuts} | {0, len(whole)})
    stream = codec.read_stream()
    for start, end in itertools.pairwise(ends):
        stream.feed(whole[start:end])
    assert stream.error() is None or body.get("error")
    return stream.body()


def _image(word: str) -> Image:
    return Image(f"data:image/png;base64,{word}")


def conversations(ids: str = "call_") -> st.SearchStrategy[Conversation]:
    """Conversations that every protocol can say."""
    parts: Strategy = said.map(Text) | words.map(_image)

    def called(number: int, name: str, given: dict[str, Json]) -> Call:
        return Call(f"{ids}{number}", name, json.dumps(given, ensure_ascii=False))

    call = st.builds(called, st.integers(0, 99), words, json_objects)

    def rounds(drawn: tuple[str, list[str], list[Call], list[Part]]) -> list[Turn]:
        asked, answered, calls, found = drawn
        answer = [*map(Text, answered), *calls]
        turns = [Turn.of("user", asked), Turn("assistant", tuple(answer) or (Text("ok"),))]
        if calls:
            content = cast("tuple[Text | Image, ...]", tuple(found))
            turns.append(Turn("tool", tuple(Result(one.id, content) for one in calls)))
        return turns

    talk = st.lists(
        st.tuples(
            said,
            st.lists(said, max_size=1),
            st.lists(call, max_size=2, unique_by=lambda one: one.id),
            st.lists(parts, min_size=1, max_size=2),
        ).map(rounds),
        max_size=3,
    )
    tools = st.lists(
        st.builds(Tool, name=words, description=texts, schema=json_objects),
        max_size=2,
        unique_by=lambda tool: tool.name,
    )

    def made(
        system: str, turns: list[list[Turn]], last: list[Part], tools: list[Tool], choice: int
    ) -> Conversation:
        known = ["auto", "none", "required", *(tool.name for tool in tools)]
        chosen = known[choice % len(known)] if tools else "auto"
        return Conversation(
            model="m",
            turns=(
                *([Turn.of("system", system)] if system else []),
                *(turn for one in turns for turn in one),
                Turn("user", tuple(last)),
            ),
            tools=tuple(tools),
            choice=chosen,
            max_tokens=100,
            is_parallel=False if tools and choice % 2 and chosen != "none" else None,
        )

    last = st.lists(parts, min_size=1, max_size=2)
    return st.builds(made, texts, talk, last, tools, st.integers(0, 9))


@dataclass
class Served:
    """A server that always replies the same, and what it was asked."""

    root_url: str = ""
    requests: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    paths: list[str] = field(default_factory=list[str])


@contextmanager
def serving(
    codec: Codec, reply: dict[str, Json] | Callable[[Json], dict[str, Json]], *, pieces: int = 3
) -> Generator[Served]:
    """Serve one reply, streamed where it is asked for."""
    served = Served()

    def handle(request: HttpRequest) -> HttpResponse:
        asked = cast("dict[str, Json]", json.loads(request.body))
        served.requests.append(asked)
        served.paths.append(request.path)
        body = reply(asked) if callable(reply) else reply
        if not (asked.get("stream") is True or "streamGenerate" in request.path):
            return HttpResponse(body=json.dumps(body).encode())
        events = b"".join(codec.write_stream(body, pieces=pieces))
        return HttpResponse(body=events, content_type="text/event-stream")

    server = HttpServer(handle)
    server.start()
    served.root_url = f"http://127.0.0.1:{server.port}"
    try:
        yield served
    finally:
        server.stop()
