"""Passing an agent's request on to its model, in the agent's own protocol or in another one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from assay.conversation import question
from assay.conversation.messages import ReplyUsage
from assay.conversation.protocols import Codec, Protocol, codec_of
from assay.conversation.protocols.events import EventStream
from assay.conversation.turns import (
    AssistantTurn,
    Call,
    Conversation,
    Image,
    Result,
    Text,
    Thought,
    Turn,
)
from assay.conversation.wire import encode, mapping
from assay.errors import ModelError
from assay.frozen import frozen
from assay.models.faults import CallFault, broken_reply
from assay.models.pace import Limiter
from assay.models.routes import HttpRoute, JsonAnswer, Route
from assay.models.sending import Sending
from assay.models.transport import MAX_REPLY_BYTES
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from assay.conversation.capability import Capability
    from assay.models.prices import Prices

_SEALED = "reasoning.encrypted_content"
_STREAMED = ("stream", "stream_options")
_STREAMED_BY_FIELD: tuple[Protocol, ...] = ("chat", "responses", "anthropic")
_NOT_SENT = (*_STREAMED, "models", "fallbacks")
"""Fields that the gateway answers to, and by which routers take another model than was named."""
_AT_GOOGLES, _OPENAIS = "/v1beta/openai", "/openai"
"""Where Google speaks OpenAI's protocol: below where it speaks its own."""
_CHARACTERS_A_TOKEN = 4
_CHARACTERS_A_TOKEN_AT_LEAST = 3
_IMAGE_CHARACTERS = 4_000
_LONG_REPLY = 4_096


@frozen(kw_only=True)
class Passed:
    """What came of a request.

    Attributes:
        body: The whole reply in the asker's protocol.
        raw: It as it came, where the endpoint speaks that protocol; empty where not.
        reply: It, read.
        cost_usd: Paid for it; None where the price is not known.
        seconds: It took, waiting included.
        ending: Where its events were given on as they came, the last of them; empty where not.
    """

    body: dict[str, Json]
    raw: bytes
    reply: AssistantTurn
    cost_usd: float | None
    seconds: float
    ending: bytes = b""


@dataclass(slots=True)
class Listener:
    """Who asked for a reply in events, and is given them as they come.

    Those by which the reply ends are kept back: what it says as a whole is recorded before.

    Attributes:
        give: Takes events that are whole.
        heard: What the reply that comes now says so far.
        is_begun: Whether any of it was given on.
    """

    give: Callable[[bytes], None]
    codec: Codec
    wants_usage: bool
    heard: EventStream = field(init=False)
    is_begun: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Listen to a reply from its beginning."""
        self.heard = self.codec.read_stream(wants_usage=self.wants_usage)

    def take(self, received: bytes) -> bool:
        """Take in bytes; says whether to read on."""
        heard = self.heard
        if events := heard.feed(received):
            self.is_begun = True
            self.give(events)
        if heard.open_bytes > MAX_REPLY_BYTES:
            heard.is_broken = True
        return not (heard.is_broken or heard.is_over or heard.error())

    def reply(self) -> AssistantTurn | None:
        """What was given on of a reply that never came to its end."""
        return self.codec.read_reply(self.heard.partial()) if self.is_begun else None


@frozen(kw_only=True)
class AgentRequest:
    """A request of an agent.

    Attributes:
        asked: What is asked.
        protocol: How it was said, and in which the reply is wanted; None if it was never said in
            one, for who takes the reply in the endpoint's own.
        body: As it came; None if it was never said in a protocol. Where the endpoint speaks that
            protocol, all of it is sent on.
        raw: The body's bytes, which are sent where nothing of it changes; empty to write it anew.
        headers: To be sent on with it.
    """

    asked: Conversation
    protocol: Protocol | None = None
    body: Mapping[str, Json] | None = None
    raw: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@frozen
class _Got:
    """A reply in the endpoint's own protocol."""

    body: dict[str, Json]
    raw: bytes
    reply: AssistantTurn

    @property
    def usage(self) -> ReplyUsage:
        return self.reply.usage

    @property
    def model(self) -> str:
        return self.reply.model


@frozen(kw_only=True)
class Passing:
    """A request on its way to a model's endpoint, and the reply on its way back.

    Where the endpoint speaks the asker's protocol, all of the body goes through, whether assay
    knows of it or not; where not, what both protocols can say. A reply is asked for whole, unless
    somebody listens to its events.

    Attributes:
        sending: Its way.
        request: It.
        listener: Who is given the reply's events as they come, where the endpoint speaks the
            asker's protocol; where not, the reply is asked for whole.
    """

    sending: Sending
    request: AgentRequest
    listener: Listener | None = None

    async def run(self) -> Passed:
        """Send it until there is a reply.

        Raises:
            ModelError: If there is none.
        """
        return await self.sending.run(self._converse, self._estimate)

    async def _converse(self, limiter: Limiter) -> Passed:
        sending, request = self.sending, self.request
        route = _over_http(sending.route)
        spoken = spoken_by(route, request.protocol)
        if spoken == "google":
            route = _at_googles(route)
        codec = codec_of(spoken)
        url = f"{route.base_url}{codec.PATH.replace('{model}', route.model)}"
        headers: Mapping[str, str] = request.headers if spoken == request.protocol else {}

        listener = self._listener(spoken)

        async def post(body: bytes, sent: Callable[[], None]) -> _Got | CallFault:
            if listener is None:
                answer = await route.exchange(url, body, headers, sent)
                return answer if isinstance(answer, CallFault) else _read(route, answer, codec)
            listener.begin()
            answer = await route.exchange(url, body, headers, sent, listener)
            got = _heard(route, answer, codec, listener)
            if (
                isinstance(got, CallFault) and listener.is_begun
            ):  # what was given on cannot be unsaid
                return replace(got, may_repeat=False, may_teach=False, may_be_paid=True)
            return got

        got = await sending.send(
            limiter,
            prepare=lambda: self._written(codec, spoken, route),
            post=post,
            estimate=self._estimate(),
            learn=lambda fault: _learned(fault, route.capability, listener),
        )
        body, raw = got.body, got.raw
        if request.protocol not in (None, spoken):
            body, raw = codec_of(request.protocol).write_reply(got.reply, request.asked), b""
        elif spoken == "google":
            from assay.conversation.protocols.google import with_ids

            if named := with_ids(body, got.reply):
                body, raw = named, b""
        return Passed(
            body=body,
            raw=raw,
            reply=got.reply,
            cost_usd=sending.cost,
            seconds=sending.taken,
            ending=b"" if listener is None else listener.heard.ending(),
        )

    def _listener(self, spoken: Protocol) -> Listener | None:
        is_same = spoken == self.request.protocol and spoken in _STREAMED_BY_FIELD
        return self.listener if is_same else None

    def _written(self, codec: Codec, spoken: Protocol, route: HttpRoute) -> bytes:
        body = self._body(codec, spoken, route)
        is_same = self.request.raw and body == self.request.body
        return self.request.raw if is_same else encode(body)

    def _body(self, codec: Codec, spoken: Protocol, route: HttpRoute) -> dict[str, Json]:
        asked, given = self.request.asked, self.request.body
        if given is not None and spoken == self.request.protocol:
            body = {name: value for name, value in given.items() if name not in _NOT_SENT}
            if self._listener(spoken) and "stream" not in route.capability.refused:
                body |= _streamed(given, spoken)
        else:
            body = codec.write_request(asked)
            field = route.capability.token_field
            if spoken == "chat" and field not in body and asked.max_tokens is not None:
                body = {k: v for k, v in body.items() if not k.startswith("max_")}
                body[field] = asked.max_tokens
            for name in _STREAMED:
                body.pop(name, None)
            wanted = body.get("include")
            if _SEALED in route.capability.refused and isinstance(wanted, list):
                body["include"] = [one for one in wanted if one != _SEALED]
        if spoken == "google":  # where the path says it
            return {name: value for name, value in body.items() if name != "model"}
        return {**body, "model": route.model}

    def _estimate(self) -> float | None:
        sending, request = self.sending, self.request
        if sending.ledger.budget is None:
            return None
        return estimate_usd(request.asked, sending.prices, sending.route.priced, request.body)


def _streamed(asked: Mapping[str, Json], spoken: Protocol) -> dict[str, Json]:
    """The fields by which a reply comes in events; of chat completions with its tokens."""
    options = dict(mapping(asked.get("stream_options")))
    if spoken == "chat":
        options["include_usage"] = True
    return {"stream": True, "stream_options": options} if options else {"stream": True}


def _learned(fault: CallFault, capability: Capability, listener: Listener | None) -> str:
    """What a refusal taught of a model: some do not think, and have no thoughts to give back.

    Some servers know no streams, or do not tell the tokens of one.
    """
    said = fault.said.lower()
    words = {_SEALED: "encrypted content is not supported"}
    if listener is not None:
        words["stream"] = "stream"
    for lesson, word in words.items():
        if lesson not in capability.refused and word in said:
            capability.refused |= {lesson}
            capability.version += 1
            return lesson
    return ""


def estimate_usd(
    asked: Conversation,
    prices: Prices | None,
    priced: str,
    body: Mapping[str, Json] | None = None,
) -> float | None:
    """The most that a request should cost, in US dollars; None if the price is not known."""
    price = None if prices is None else prices.price(priced)
    if price is None:
        return None
    read = _characters_of(asked, body) // _CHARACTERS_A_TOKEN_AT_LEAST
    return price.of(read, 0, asked.max_tokens or _LONG_REPLY)


def tokens_asked(asked: Conversation, body: Mapping[str, Json] | None = None) -> int:
    """About how many tokens a request has: its turns, and the declarations of its tools.

    What else is in the body that is sent on counts by its length: it may be read, too.
    """
    return _characters_of(asked, body) // _CHARACTERS_A_TOKEN


def tokens_said(turn: Turn) -> int:
    """About how many tokens a turn has."""
    return _length_of(turn) // _CHARACTERS_A_TOKEN


def _characters_of(asked: Conversation, body: Mapping[str, Json] | None) -> int:
    size = sum(map(_length_of, asked.turns))
    for tool in asked.tools:
        size += len(tool.name) + len(tool.description) + len(json.dumps(dict(tool.schema)))
    if body is None:
        return size
    # Pictures count something of their own, and seals that a provider made count nothing.
    parts = [part for turn in asked.turns for part in turn.parts]
    parts += [inner for part in parts if isinstance(part, Result) for inner in part.content]
    pictures = [part.url for part in parts if isinstance(part, Image)]
    sealed = sum(len(part.sealed) for part in parts if isinstance(part, Thought))
    known = size - _IMAGE_CHARACTERS * len(pictures) + sum(map(len, pictures)) + sealed
    return size + max(0, _letters(body) - known)


def _letters(body: Mapping[str, Json]) -> int:
    """How long all names and texts of a body are, whatever they mean."""
    size = 0
    left: list[Json] = [cast("dict[str, Json]", body)]
    while left:
        value = left.pop()
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, dict):
            size += sum(map(len, value))
            left += value.values()
        elif isinstance(value, list):
            left += value
        else:
            size += 1
    return size


def _length_of(turn: Turn) -> int:
    size = 0
    for part in turn.parts:
        if isinstance(part, Text | Thought):
            size += len(part.text)
        elif isinstance(part, Call):
            size += len(part.name) + len(part.arguments)
        elif isinstance(part, Result):
            size += len(part.text)
            size += _IMAGE_CHARACTERS * sum(isinstance(one, Image) for one in part.content)
        elif isinstance(part, Image):
            size += _IMAGE_CHARACTERS
    return size


def spoken_by(route: HttpRoute, protocol: Protocol | None) -> Protocol:
    """The protocol in which an endpoint is asked for who speaks another: the same, if it can.

    For who speaks none it is the one that says most. OpenAI's newer models call tools in its
    responses only, and there they keep what they thought from step to step; so do Google's in
    Google's own.
    """
    if route.protocol == "anthropic":
        return "anthropic"
    if protocol in (None, "google") and route.base_url.endswith(_AT_GOOGLES):
        return "google"
    return "responses" if protocol != "chat" and route.endpoint.responses else "chat"


def _at_googles(route: HttpRoute) -> HttpRoute:
    """The way to where Google speaks its own protocol, in which keys are sent otherwise."""
    endpoint = route.endpoint
    keyed = {"x-goog-api-key": endpoint.key} if endpoint.key else {}
    headers = route.headers if endpoint.key_header else {**endpoint.headers, **keyed}
    return replace(route, base_url=route.base_url.removesuffix(_OPENAIS), headers=headers)


def _over_http(route: Route) -> HttpRoute:
    if isinstance(route, HttpRoute):
        return route
    raise ModelError(
        f"{route.name} is a function, which cannot serve an agent",
        kind="rejected",
        hint="name a model that is reached over HTTP",
    )


def _heard(
    route: HttpRoute, answer: JsonAnswer | CallFault, codec: Codec, listener: Listener
) -> _Got | CallFault:
    if isinstance(answer, JsonAnswer) and answer.body:  # whole, though a stream was asked for
        return _read(route, answer, codec)
    whole = listener.heard.body()
    if (reply := codec.read_reply(whole)) is not None:  # however the connection ended after it
        if None in (reply.usage.input_tokens, reply.usage.output_tokens):
            route.capability.refused |= {"stream"}  # of whole replies it may tell the tokens
        return _Got(cast("dict[str, Json]", whole), b"", reply)
    if isinstance(answer, CallFault):
        return answer
    if error := listener.heard.error():
        return route.told(error, answer, is_beside_a_reply=listener.is_begun)
    if listener.heard.is_broken:
        message = "sent what is no reply"
        return CallFault("unreadable", "broken stream", message, 200, True, may_be_paid=True)
    # Servers that fail hang up, and not all of them so that HTTP knows it from an end.
    message = "broke off its reply"
    return CallFault("unreachable", "broken stream", message, 200, True, may_be_paid=True)


def _read(route: HttpRoute, answer: JsonAnswer, codec: Codec) -> _Got | CallFault:
    reply = codec.read_reply(answer.data)
    if error := question.error(answer.data):
        return route.told(error, answer, is_beside_a_reply=reply is not None)
    if reply is None:
        return broken_reply("application/json", answer.body, secrets=route.secrets)
    return _Got(cast("dict[str, Json]", answer.data), answer.body, reply)
