"""What a protocol's codec can do, and where each is found."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, TypeAlias, cast

from assay.conversation.protocols.events import EventStream, event
from assay.conversation.protocols.shapes import ProtocolError
from assay.conversation.turns import AssistantTurn, Conversation
from assay.frozen import frozen
from assay.scoring.json_safe import Json

Protocol: TypeAlias = Literal["chat", "responses", "anthropic", "google"]
"""OpenAI's chat completions, OpenAI's responses, Anthropic's messages, Google's generateContent."""

_ENDINGS: Mapping[str, Protocol] = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/messages": "anthropic",
}
_WHOLE, _STREAMED = "generateContent", "streamGenerateContent"


@frozen(kw_only=True)
class Codec:
    """How a protocol is read and written, by callers and by servers.

    Attributes:
        NAME: The protocol.
        PATH: Path of requests below an endpoint's base URL, such as ``/chat/completions``;
            ``{model}`` stands in it for the model's name.
        read_request: Reads a request, or raises a `ProtocolError`.
        write_request: Writes a request; what the protocol cannot say is left out.
        read_reply: Reads a whole reply; None if it is none.
        write_reply: Writes a whole reply to a request.
        events_of: See `write_stream`.
        stream: See `read_stream`.
        write_error: The body of an error.
        error_event: An error as the data of an event, where that is another.
        error_name: What that event is called.
    """

    NAME: Protocol
    PATH: str
    read_request: Callable[[Json], Conversation]
    write_request: Callable[[Conversation], dict[str, Json]]
    read_reply: Callable[[Json], AssistantTurn | None]
    write_reply: Callable[[AssistantTurn, Conversation], dict[str, Json]]
    events_of: Callable[[Mapping[str, Json], int, bool], Iterator[bytes]]
    stream: Callable[[], EventStream]
    write_error: Callable[[ProtocolError], dict[str, Json]]
    error_event: Callable[[ProtocolError], dict[str, Json]] | None = None
    error_name: str = ""

    def write_stream(
        self, body: Mapping[str, Json], *, pieces: int = 1, wants_usage: bool = True
    ) -> Iterator[bytes]:
        """A whole reply as the events of a streamed one, each event apart.

        Args:
            body: The reply, as its server wrote it: nothing of it is lost.
            pieces: Into how many each text and the arguments of each call are cut.
            wants_usage: See `Conversation`; what is told in any case is told without it.
        """
        return self.events_of(body, pieces, wants_usage)

    def read_stream(self, *, wants_usage: bool = True) -> EventStream:
        """A reader of one streamed reply."""
        stream = self.stream()
        stream.wants_usage = wants_usage
        return stream

    def write_error_event(self, error: ProtocolError) -> bytes:
        """An error as the last event of a stream that had begun."""
        return event((self.error_event or self.write_error)(error), self.error_name)


@functools.cache
def codec_of(protocol: Protocol) -> Codec:
    """The codec of a protocol, loaded when it is first asked for."""
    module = importlib.import_module(f"assay.conversation.protocols.{protocol}")
    return cast("Codec", module.CODEC)


def codec_at(path: str) -> Codec | None:
    """The codec of the protocol that a request's path ends in; None for any other path."""
    for ending, name in _ENDINGS.items():
        if path.rstrip("/").endswith(ending):
            return codec_of(name)
    model, method = _of_googles(path)
    return codec_of("google") if model and method in (_WHOLE, _STREAMED) else None


def addressed(path: str, body: dict[str, Json]) -> dict[str, Json]:
    """The body of a request with what only its path says: Google names the model there."""
    model, method = _of_googles(path)
    return {**body, "model": model, "stream": method == _STREAMED} if model else body


def _of_googles(path: str) -> tuple[str, str]:
    """The model that a path of Google's names, and what is asked of it; empty for any other."""
    model, colon, method = path.partition("/models/")[2].rpartition(":")
    return (model, method) if colon else ("", "")
