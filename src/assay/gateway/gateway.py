"""`Gateway`: between one agent and its model."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from assay.conversation.messages import ReplyUsage
from assay.conversation.protocols import Protocol, ProtocolError, codec_of
from assay.conversation.turns import Conversation, Turn
from assay.errors import AgentError, AssayError, InputError, ModelError
from assay.gateway.allowance import Allowance, LimitReachedError, Spent
from assay.gateway.journal import Answered, Entry, broken_off
from assay.gateway.record import Recorder
from assay.gateway.trace import Recorded
from assay.models import ModelClient, current_client
from assay.models.pace import OPEN_SECONDS, EndpointClosedError
from assay.models.passing import AgentRequest, Listener, Passed, tokens_asked, tokens_said
from assay.scoring.json_safe import Json
from assay.types.trace import StopReason

if TYPE_CHECKING:
    from assay.gateway.door import GatewayDoor
    from assay.gateway.offered import OfferedTools

_AT_ONCE = 16
_FULL = "the record of this work is full"
_AGENTS_FAULTS = ("rejected", "overflow", "refused", "truncated", "unreadable", "unbelievable")
_BREAKABLE = ("overloaded", "unreachable", "timeout")
"""Kinds of failures that a request can cause in a server that takes it."""

_FAULTS_OF_BOTH = ("rejected", "unreadable")
"""Of these, whose they are is told by what came before: see `Gateway._is_agents`."""

_PLAIN_SECONDS = 60.0

_CROWDED = (503, 529)
_NOTHING = Conversation(model="", turns=())


_PLAIN = AgentRequest(
    asked=Conversation(model="", turns=(Turn.of("user", "Say yes."),), max_tokens=16)
)
_STATUS: Mapping[str, int] = {
    "rate_limited": 429,
    "overflow": 400,
    "refused": 400,
    "rejected": 400,
    "timeout": 504,
    "budget": 403,
}
_MOST_FIELDS: Mapping[Protocol, tuple[str, ...]] = {
    "chat": ("max_completion_tokens", "max_tokens"),
    "responses": ("max_output_tokens",),
    "anthropic": ("max_tokens",),
}


class Gateway:
    """What an agent asks of its model passes here: limited before it is sent, and recorded.

    An agent in this process asks by `ask`. Others speak one of the four protocols: over HTTP on
    this machine's loopback, from when one of the addresses is first asked for, or on a socket of
    their sandbox's own (`serve`). Both need the token, as they would a provider's key::

        async with Gateway("openai:gpt-5", allowance=Allowance(calls=20)) as gateway:
            client = openai.AsyncOpenAI(base_url=gateway.openai_url, api_key=gateway.token)

    Every request goes to the gateway's own model, whatever model it names.

    Args:
        model: A model reference.
        allowance: What may be asked; no limit by default.
        journal: File that keeps what passes, as it passes.
        journal_of: What its first line says that it is of.
        client: Asks the model; that of `assay.models.using` by default.

    Attributes:
        model: The reference.
        token: What an agent gives as its key. It opens this gateway and nothing else.
        spent: What was asked so far.
        failure: Why the last request got no reply, where the model, the way to it or this gateway
            was to blame.
        denials: Requests that came without the token.
        served: Requests that came over HTTP.
        is_lent: Whether a program was given it that asks here or nowhere.
        offered: The tools of its run, while that is at work; None for none.
    """

    def __init__(
        self,
        model: str,
        *,
        allowance: Allowance | None = None,
        journal: str | Path | None = None,
        journal_of: str = "",
        client: ModelClient | None = None,
    ) -> None:
        self.model = model
        self.token = f"cell-{secrets.token_urlsafe(24)}"
        self.spent = Spent(allowance or Allowance())
        self.failure: AssayError | None = None
        self._failed = _PLAIN
        self._limit: StopReason | None = None
        self._is_full = self._is_answered = self._is_left = False
        self.denials = 0
        self.served = 0
        self.is_lent = False
        self.offered: OfferedTools | None = None
        self._client = client
        self._flags: list[str] = []
        file = None if journal is None else Path(journal)
        self._recorder = Recorder(file, journal_of, self.token)
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._stack = AsyncExitStack()
        self._door: GatewayDoor | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End every connection; the record stays."""
        await self._stack.aclose()
        self._door = None

    @property
    def stop(self) -> StopReason | None:
        """What kept the agent from asking on: a limit, or a conversation too long for its model."""
        return self._limit or ("length" if self._is_full else None)

    @property
    def client(self) -> ModelClient:
        """What asks the model."""
        return current_client() if self._client is None else self._client

    def check(self) -> None:
        """Refuse a model that cannot be asked, and limits that cannot be kept.

        Raises:
            InputError: If the reference cannot be read, or dollars are limited and nobody knows
                what the model costs.
            ModelError: If nobody said how to reach the model, or its key is missing.
        """
        route = self.client.route(self.model)
        if route.missing:
            message = f"there is no key to ask {self.model!r} with"
            raise ModelError(message, kind="no_key", hint=route.missing)
        most = self.spent.allowance.cost_usd
        if most is not None and self.client.cost_of(self.model, _NOTHING) is None:
            raise InputError(
                f"the work may cost ${most:g}, but the price of {self.model!r} is not known",
                hint="give it in the prices_file of the model settings, or limit tokens instead",
            )

    @property
    def openai_url(self) -> str:
        """The base URL for whoever speaks OpenAI's protocols: ``http://127.0.0.1:PORT/v1``."""
        return f"{self.anthropic_url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base URL for who speaks Anthropic's or Google's: ``http://127.0.0.1:PORT``."""
        if not self._port:
            listener = socket.create_server(("127.0.0.1", 0), backlog=128)
            self._port = int(listener.getsockname()[1])
            self.serve(listener)
        return f"http://127.0.0.1:{self._port}"

    def environment(self, address: str = "") -> dict[str, str]:
        """Variables that make programs ask this gateway.

        Args:
            address: Where they find it, by default at `anthropic_url`.
        """
        base = address or self.anthropic_url
        return {
            "OPENAI_BASE_URL": f"{base}/v1",
            "OPENAI_API_KEY": self.token,
            "ANTHROPIC_BASE_URL": base,
            "ANTHROPIC_API_KEY": self.token,
            "GOOGLE_GEMINI_BASE_URL": base,
            "GEMINI_API_KEY": self.token,
        }

    def admit(self) -> Callable[[socket.socket], None]:
        """What takes over a listening socket from any thread, such as that of a sandbox."""
        loop = asyncio.get_running_loop()
        return lambda listener: loop.call_soon_threadsafe(self.serve, listener) and None

    def serve(self, listener: socket.socket) -> None:
        """Answer who connects to a listening socket, which is closed with the gateway."""
        from assay.gateway.door import GatewayDoor

        if self._door is None:
            self._door = GatewayDoor(self)
            self._stack.push_async_callback(self._door.aclose)
        self._door.open(listener)

    async def ask(
        self,
        asked: Conversation | AgentRequest,
        *,
        give: Callable[[bytes], None] | None = None,
    ) -> tuple[Passed, Answered]:
        """Send a request on, if it may be, and keep what passes.

        Args:
            asked: The request; by an agent in this process the conversation alone.
            give: Takes events of the reply as they come, where it comes in the protocol's events;
                those that end it are the reply's `Passed.ending`, when it was recorded.

        Returns:
            The reply, and how it was kept.

        Raises:
            LimitReachedError: If it is past what the agent may ask.
            ModelError: If there is no reply.
            StoreError: If it cannot be recorded.
        """
        request = AgentRequest(asked=asked) if isinstance(asked, Conversation) else asked
        asked = request.asked
        async with self._turns:
            if self._recorder.is_full:
                self._limit = "length"
                raise LimitReachedError(_FULL, "length")
            number = self._recorder.asked(asked, request.protocol or "")
            try:
                is_priced = self.spent.allowance.cost_usd is not None
                price = self.client.cost_of(self.model, asked, request.body) if is_priced else None
                read = tokens_asked(asked, request.body)
                admitted = self.spent.admit(read, asked.max_tokens, price)
            except LimitReachedError as limit:
                self._limit = limit.stop
                self._recorder.refused(number, limit.message, "limit")
                raise
            if admitted.most_tokens != asked.max_tokens:
                asked = replace(asked, max_tokens=admitted.most_tokens)
                body = _shortened(request.body, request.protocol, admitted.most_tokens)
                request = replace(request, asked=asked, body=body, raw=b"")
            listener = self._listener(number, request, give)
            usage, cost, written = None, None, 0
            try:
                passed = await self.client.pass_on(
                    self.model, request, tokens=read, listener=listener
                )
                usage, cost = passed.reply.usage, passed.cost_usd
                written = tokens_said(passed.reply.turn)
            except ModelError as error:
                lost = self._broken_off(number, asked, read, listener)
                is_agents = self._is_agents(error, has_begun=lost is not None)
                if error.kind == "timeout" or lost is not None:
                    usage, cost, written = lost or self._lost(asked, read)
                self.failure = None if is_agents else error
                self._failed = request
                self._is_full = error.kind == "overflow"
                self._recorder.refused(number, str(error), "agent" if is_agents else "model")
                raise
            except asyncio.CancelledError:
                lost = self._broken_off(number, asked, read, listener)
                usage, cost, written = lost or self._lost(asked, read)
                self._is_left = True
                self._recorder.refused(number, "the agent ended before the reply came", "agent")
                raise
            finally:
                self.spent.settle(admitted, usage, cost, written=written)
            self.failure, self._is_full, self._is_answered = None, False, True
            self._is_left = False
            kept = self._recorder.answered(
                number, passed.reply, cost_usd=passed.cost_usd, seconds=passed.seconds
            )
            return passed, kept

    def _listener(
        self, number: int, request: AgentRequest, give: Callable[[bytes], None] | None
    ) -> Listener | None:
        """Who hears the events of a reply, keeps them and gives them on."""
        if give is None or request.protocol is None:
            return None

        def heard(events: bytes) -> None:
            self._recorder.heard(number, events)
            give(events)

        return Listener(heard, codec_of(request.protocol), request.asked.wants_usage)

    def _is_agents(self, error: ModelError, *, has_begun: bool) -> bool:
        """Whether a request got no reply for what the agent asked.

        Before the first reply no model has had a say in what is asked. If a server refuses all, or
        answers nonsense, its address or the model's name is wrong, and that is nobody's 0.
        """
        is_known = self._is_answered or has_begun or error.kind not in _FAULTS_OF_BOTH
        return error.kind in _AGENTS_FAULTS and is_known

    def _broken_off(
        self, number: int, asked: Conversation, read: int, listener: Listener | None
    ) -> tuple[ReplyUsage, float | None, int] | None:
        """Keep what the agent was given of a reply that came to no end, and what that used."""
        reply = None if listener is None else listener.reply()
        if reply is None:
            return None
        lost = self._lost(asked, read, tokens_said(reply.turn))
        usage, cost, _ = lost
        reply = replace(broken_off(reply), usage=usage)
        self._recorder.answered(number, reply, cost_usd=cost, seconds=0.0)
        return lost

    def _lost(
        self, asked: Conversation, read: int, written: int = 0
    ) -> tuple[ReplyUsage, float | None, int]:
        """What a request used, at least, whose reply never came to its end: it was read."""
        cost = self.client.cost_of(self.model, replace(asked, max_tokens=max(written, 1)))
        return ReplyUsage(input_tokens=read, output_tokens=written), cost, written

    async def find_out(self) -> None:
        """Find out whether the request that failed last is at fault, if the server seems to be.

        It is where the server answers others before and after it, and fails with it again. Else an
        agent could choose an error in the place of a bad grade: by a request that breaks servers,
        or by one that is refused before any other was answered.

        Requests without a reply are ended. Where the server answers others no more than those, it
        has hung: what the agent would have made of a reply, nobody knows.
        """
        await self.aclose()
        if self.failure is None and self._is_left:
            if await self._tried(_PLAIN, _PLAIN_SECONDS) in _BREAKABLE:
                self.failure = ModelError("it does not answer any more", kind="timeout")
            return
        doubtful = (*_BREAKABLE, *_FAULTS_OF_BOTH)
        failure = self.failure
        if not isinstance(failure, ModelError) or failure.kind not in doubtful:
            return
        if failure.status in _CROWDED or await self._tried(_PLAIN, _PLAIN_SECONDS):
            return
        is_again = await self._tried(self._failed) in doubtful
        is_up = is_again and not await self._tried(_PLAIN, _PLAIN_SECONDS)
        if is_up and self.failure is failure:
            self.failure = None
            self._flags.append("its last request makes the model's server fail")

    def require_answers(self) -> None:
        """Refuse what an agent did whose model gave its last request no reply.

        Raises:
            AgentError: If it did not, for what is not the agent's fault.
        """
        if self.failure is not None:
            said = f"its model could not be asked: {self.failure.message}"
            raise AgentError(said, hint=self.failure.hint)

    async def _tried(self, request: AgentRequest, seconds: float = 600.0) -> str:
        """Why a request that nobody waits for gets no reply; empty where it gets one."""
        gate = self.client.route(self.model).gate
        try:
            try:
                await self._send(request, seconds)
            except EndpointClosedError:  # which requests of this kind bring about, too
                await gate.timing.sleep(OPEN_SECONDS)
                await self._send(request, seconds)
        except ModelError as error:
            return error.kind
        return ""

    async def _send(self, request: AgentRequest, seconds: float) -> None:
        listener, asked = None, request.asked
        if asked.is_streamed and request.protocol is not None:  # some fail in streams alone
            listener = Listener(lambda _: None, codec_of(request.protocol), asked.wants_usage)
        await self.client.pass_on(self.model, request, seconds=seconds, listener=listener)

    def listen(self, told: Callable[[Entry], None]) -> None:
        """Tell somebody of all that passes, as soon as it is kept; they must not fail."""
        self._recorder.told = told

    def malformed(self, error: ProtocolError) -> None:
        """Keep that a request could not be read."""
        if not self._recorder.is_full:
            self._recorder.refused(0, error.message, "agent")

    def recorded(self) -> Recorded:
        """What passed so far, as a trace."""
        found = self._recorder.recorded()
        flags = [*found.flags, *self._flags, *([_FULL] if self._recorder.is_full else [])]
        if self.denials:
            flags.append(f"{self.denials} requests without its token")
        return replace(found, flags=tuple(flags))


def refusal(error: AssayError | LimitReachedError) -> ProtocolError:
    """What an agent is told of a request that got no reply: nothing of keys or addresses."""
    if isinstance(error, LimitReachedError):
        return ProtocolError(403, error.message, code="limit_reached")
    if not isinstance(error, ModelError):
        return ProtocolError(500, "the gateway failed")
    if error.kind == "overflow":
        return ProtocolError(400, "the conversation is too long", code="context_length_exceeded")
    status = _STATUS.get(error.kind, 503)
    return ProtocolError(status, f"the model gave no reply ({error.kind})", code=error.kind)


def _shortened(
    body: Mapping[str, Json] | None, protocol: Protocol | None, most: int | None
) -> Mapping[str, Json] | None:
    """A body that asks for no longer a reply than it may have."""
    if body is None or protocol is None or most is None:
        return body
    if protocol == "google":
        from assay.conversation.protocols.google import limited

        return limited(body, most)
    fields = _MOST_FIELDS[protocol]
    name = next((name for name in fields if name in body), fields[-1])
    return {**body, name: most}
