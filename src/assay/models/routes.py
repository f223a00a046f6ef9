"""`Route`: a model reference made ready to be asked: its address, wire form, pace and memory."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

from assay.conversation import question
from assay.conversation.capability import Capability
from assay.conversation.messages import Reply, Request, Rung
from assay.conversation.protocols import Codec, codec_of
from assay.conversation.schemas import Shape
from assay.conversation.wire import RawReply, mapping, parsed
from assay.errors import AssayError, ModelError
from assay.frozen import frozen
from assay.models.faults import CallFault, broken_reply, fault_of
from assay.models.pace import Gate, Lane, Timing, gate_of, lane_of
from assay.models.reference import Complete, registered
from assay.models.resolving import Endpoint, find, first_capability, headers_of
from assay.models.settings import ModelSettings
from assay.models.transport import is_stream, post
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from yarl import URL

    from assay.models.passing import Listener


Prepared: TypeAlias = bytes | Request
"""A request as a route sends it."""


@frozen
class JsonAnswer:
    """What came back with status 200.

    Attributes:
        data: The JSON in it, None if it is invalid.
        wrong: What is wrong with what it says, or empty.
        headers: Its headers.
        body: As it came.
    """

    data: Json
    wrong: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True, weakref_slot=True, kw_only=True)
class Route(ABC):
    """A way to a model.

    Attributes:
        name: The reference that led here.
        protocol: ``openai``, ``anthropic``, or ``call``.
        base_url: Where; empty for a function.
        model: The model's name there.
        lane: How fast it is asked.
        capability: What the model takes.
        priced: What its price is looked up by.
        is_first_party: Whether it is the provider's own address.
        missing: What to do before it can be asked; empty if nothing.
    """

    name: str
    protocol: str
    base_url: str
    model: str
    lane: Lane
    capability: Capability
    priced: str
    is_first_party: bool = False
    missing: str = ""

    @property
    def gate(self) -> Gate:
        """The endpoint's."""
        return self.lane.gate

    @abstractmethod
    def prepare(self, request: Request, shape: Shape | None) -> Prepared:
        """Make a request ready to be sent, with what is known of the model by now."""

    @abstractmethod
    async def send(
        self, prepared: Prepared, sent: Callable[[], None], tool: str = ""
    ) -> RawReply | CallFault:
        """Send it once."""

    def rung(self, shape: Shape | None) -> Rung:
        """How a reply of this shape is asked for."""
        return self.capability.rung_for(shape)


@dataclass(slots=True, kw_only=True)
class HttpRoute(Route):
    """A model behind a URL.

    Attributes:
        endpoint: All that is known of it.
        codec: Its protocol.
        url: Where requests go.
        headers: What they carry.
        secrets: What no message may tell.
        timing: Clock and chance.
    """

    endpoint: Endpoint
    codec: Codec
    url: URL
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    timing: Timing

    def prepare(self, request: Request, shape: Shape | None) -> Prepared:
        """The body."""
        return question.body(
            self.codec,
            request,
            model=self.model,
            capability=self.capability,
            shape=shape,
        )

    async def send(
        self, prepared: Prepared, sent: Callable[[], None], tool: str = ""
    ) -> RawReply | CallFault:
        """Post it and read what comes back."""
        answer = await self.exchange(self.url, cast("bytes", prepared), {}, sent)
        if isinstance(answer, CallFault):
            return answer
        raw = question.read(self.codec, answer.data, tool)
        if error := question.error(answer.data):
            return self.told(error, answer, is_beside_a_reply=raw is not None)
        if raw is None:
            return broken_reply("application/json", answer.body, secrets=self.secrets)
        return replace(raw, wrong=answer.wrong) if answer.wrong else raw

    async def exchange(
        self,
        url: URL | str,
        body: bytes,
        headers: Mapping[str, str],
        sent: Callable[[], None],
        stream: Listener | None = None,
    ) -> JsonAnswer | CallFault:
        """Post a body to an address of the endpoint, with further headers; JSON that came back.

        Args:
            url: The address.
            body: It.
            headers: The further headers.
            sent: Called when the body begins to go out.
            stream: Takes a reply that comes in events, and says what it is as a whole.
        """
        from yarl import URL

        take = None if stream is None else stream.take
        answer = await post(URL(url), body, {**headers, **self.headers}, sent, take)
        if isinstance(answer, CallFault):
            return answer
        if answer.status != 200:
            return self._fault(answer.status, answer.headers, answer.body)
        if stream is not None and is_stream(answer.headers):
            return JsonAnswer(stream.heard.body(), "", answer.headers, b"")
        kind = answer.headers.get("Content-Type", "")
        if not kind.startswith("application/json") and "+json" not in kind:
            return broken_reply(kind, answer.body, secrets=self.secrets)
        data, wrong = parsed(answer.body)
        return JsonAnswer(data, wrong, answer.headers, answer.body)

    def told(self, error: Json, answer: JsonAnswer, *, is_beside_a_reply: bool) -> CallFault:
        """What an error sent with status 200 means: whatever stands beside it is not a reply."""
        body = json.dumps({**mapping(answer.data), "error": error}).encode()
        fault = self._fault(_status_of(error), answer.headers, body)
        return replace(fault, may_be_paid=True) if is_beside_a_reply else fault

    def _fault(self, status: int, headers: Mapping[str, str], body: bytes) -> CallFault:
        now = self.timing.now()
        return fault_of(status, headers, body, now=now, secrets=self.secrets)


@dataclass(slots=True, kw_only=True)
class CallRoute(Route):
    """A model behind a function.

    Attributes:
        complete: The function.
    """

    complete: Complete

    def prepare(self, request: Request, shape: Shape | None) -> Prepared:
        """The request as it is."""
        del shape
        return request

    async def send(
        self, prepared: Prepared, sent: Callable[[], None], tool: str = ""
    ) -> RawReply | CallFault:
        """Call the function.

        Raises:
            ModelError: What the function raises on purpose; and ``rejected`` for all else that it
                raises, which says nothing of an endpoint.
        """
        del tool
        sent()
        try:
            reply = await self.complete(cast("Request", prepared))
        except AssayError:
            raise
        except Exception as error:  # the boundary to a stranger's function
            function = getattr(self.complete, "__qualname__", type(self.complete).__qualname__)
            raise ModelError(
                f"{self.name}: its function {function} raised {type(error).__name__}: {error}",
                kind="rejected",
                hint="fix the function; where a model cannot be reached, it should raise a "
                "ModelError of kind 'unreachable'",
            ) from error
        if isinstance(reply, str):
            return RawReply(reply, model=self.name)
        if not isinstance(reply, Reply):  # pyright: ignore[reportUnnecessaryIsInstance]  # theirs
            message = f"gave a {type(reply).__name__}; it must return text or a Reply"
            return CallFault("unreadable", "no reply", message)
        return RawReply(
            reply.text, reply.finish, reply.model or self.name, reply.usage, reply.fingerprint
        )


def route_of(reference: str, settings: ModelSettings, timing: Timing) -> Route:
    """The way to a model.

    Raises:
        InputError: If the reference cannot be read.
        ModelError: If nobody said which model it is. A missing key is told on asking only: replies
            that are in the cache need none.
    """
    complete = registered(reference)
    if complete is not None:
        return _to_function(reference, complete, settings, timing)
    endpoint = find(reference, settings)
    return _to_endpoint(endpoint, _lane(endpoint, settings, timing), timing)


def _lane(endpoint: Endpoint, settings: ModelSettings, timing: Timing) -> Lane:
    # Endpoints that one key pays for share a gate; whose key it is stays a digest.
    whose = hashlib.sha256(endpoint.key.encode()).digest()[:8]
    address = (endpoint.protocol, endpoint.base_url, whose, id(timing) if timing != Timing() else 0)
    gate = gate_of(address, lambda: Gate(endpoint.base_url, timing=timing))
    make = partial(
        Lane,
        gate,
        first=endpoint.first_concurrency,
        most=endpoint.max_concurrency,
        breaker_after=settings.breaker_after,
        requests_per_minute=endpoint.requests_per_minute,
        tokens_per_minute=endpoint.tokens_per_minute,
    )
    return lane_of((*address, endpoint.limits_of, *make.keywords.values()), make)


def _to_endpoint(endpoint: Endpoint, lane: Lane, timing: Timing) -> HttpRoute:
    from yarl import URL

    codec = codec_of("anthropic" if endpoint.protocol == "anthropic" else "chat")
    return HttpRoute(
        name=endpoint.name,
        protocol=endpoint.protocol,
        base_url=endpoint.base_url,
        model=endpoint.model,
        lane=lane,
        capability=first_capability(endpoint),
        priced=endpoint.name,
        is_first_party=endpoint.first_party,
        missing=endpoint.missing,
        endpoint=endpoint,
        codec=codec,
        url=URL(f"{endpoint.base_url}{codec.PATH}"),
        headers={**endpoint.headers, **headers_of(endpoint)},
        secrets=tuple(value for value in (endpoint.key, *endpoint.headers.values()) if value),
        timing=timing,
    )


def _to_function(
    name: str, complete: Complete, settings: ModelSettings, timing: Timing
) -> CallRoute:
    return CallRoute(
        name=name,
        protocol="call",
        base_url="",
        model=name,
        lane=Lane(
            Gate(name, timing=timing),
            first=settings.first_concurrency,
            most=settings.max_concurrency,
            breaker_after=settings.breaker_after,
        ),
        capability=Capability(("text",), "text"),
        priced=name,
        complete=complete,
    )


def _status_of(error: Json) -> int:
    """The status that an error sent with status 200 tells."""
    code = mapping(error).get("code")
    return code if type(code) is int and 400 <= code < 600 else 502
