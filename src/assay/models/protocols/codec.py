"""What a protocol's codec can do, and where each is found."""

from __future__ import annotations

import functools
import importlib
import typing
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias, cast

from assay.models.conversation import Conversation, Reply
from assay.scoring.json_safe import Json

__all__ = ["Codec", "Protocol", "ProtocolError", "Stream", "addressed", "codec_at", "codec_of"]

Protocol: TypeAlias = Literal["chat", "responses", "anthropic", "google"]
"""OpenAI's chat completions, OpenAI's responses, Anthropic's messages, Google's generateContent."""

_MODULES: Mapping[str, str] = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/messages": "anthropic",
}
_WHOLE, _STREAMED = "generateContent", "streamGenerateContent"


class ProtocolError(Exception):
    """A request that no server of the protocol would take.

    Attributes:
        status: The HTTP status.
        message: What is wrong.
        parameter: The part of the request that is wrong, or "".
        code: The provider's word for it, or "".
    """

    def __init__(self, status: int, message: str, *, parameter: str = "", code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.parameter = parameter
        self.code = code


class Stream(typing.Protocol):
    """A streamed reply in the course of being read."""

    is_broken: bool
    """Whether something came that is no event."""

    open_bytes: int
    """How much came of an event that is not whole."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more can come."""
        ...

    def feed(self, received: bytes) -> bytes:
        """Take in bytes, which may end anywhere.

        Returns:
            The events that became whole, as they came: without errors, without remarks, and without
            those by which the reply ends.
        """
        ...

    def ending(self) -> bytes:
        """The events by which the reply ends, as far as they came."""
        ...

    def body(self) -> dict[str, Json] | None:
        """The reply as if it had come whole; None if it has not come to its end.

        What came of a reply that broke off is in `partial`.
        """
        ...

    def partial(self) -> dict[str, Json]:
        """The reply as far as it came, as if it had come whole."""
        ...

    def error(self) -> Json:
        """The error that the server sent instead of the rest; None for none."""
        ...


class Codec(typing.Protocol):
    """A protocol's module."""

    NAME: Protocol
    PATH: str
    """Path of requests below an endpoint's base URL, such as ``/chat/completions``; ``{model}``
    stands in it for the model's name."""

    def read_request(self, body: Json) -> Conversation:
        """Read a request.

        Raises:
            ProtocolError: If it is none.
        """
        ...

    def write_request(self, conversation: Conversation) -> dict[str, Json]:
        """Write a request; what the protocol cannot say is left out."""
        ...

    def read_reply(self, body: Json) -> Reply | None:
        """Read a whole reply; None if it is none."""
        ...

    def write_reply(self, reply: Reply, asked: Conversation) -> dict[str, Json]:
        """Write a whole reply to a request."""
        ...

    def write_stream(
        self, body: Mapping[str, Json], *, pieces: int = 1, wants_usage: bool = True
    ) -> Iterator[bytes]:
        """A whole reply as the events of a streamed one, each event apart.

        Args:
            body: The reply, as its server wrote it: nothing of it is lost.
            pieces: Into how many each text and the arguments of each call are cut.
            wants_usage: See `Conversation`; what is told in any case is told without it.
        """
        ...

    def read_stream(self, *, wants_usage: bool = True) -> Stream:
        """A reader of one streamed reply.

        Args:
            wants_usage: As of `write_stream`.
        """
        ...

    def write_error(self, error: ProtocolError) -> dict[str, Json]:
        """The body of an error."""
        ...

    def write_error_event(self, error: ProtocolError) -> bytes:
        """An error as the last event of a stream that had begun."""
        ...


@functools.cache
def codec_of(protocol: Protocol) -> Codec:
    """The codec of a protocol, loaded when it is first asked for."""
    return cast("Codec", importlib.import_module(f"assay.models.protocols.{protocol}"))


def codec_at(path: str) -> Codec | None:
    """The codec of the protocol that a request's path ends in; None for any other path."""
    for ending, name in _MODULES.items():
        if path.rstrip("/").endswith(ending):
            return codec_of(cast("Protocol", name))
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
