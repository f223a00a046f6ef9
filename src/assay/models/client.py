"""`ModelClient`: asks language models, whoever serves them.

It knows nothing of verdicts. It gives a reply that has the shape that was asked for, or a
`ModelError` whose kind says why there is none; never something in between.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Self, TypeAlias

from assay.conversation.messages import Message, Purpose, Reply, Request
from assay.conversation.schemas import Shape, schema_text, shape_of
from assay.conversation.structured import read_object
from assay.conversation.wire import texts, with_words
from assay.errors import InputError, ModelError
from assay.models import client_to_come, watch_here
from assay.models.asking import Asking, Check, tokens_of
from assay.models.cache import ReplyCache
from assay.models.forking import ForkSafe
from assay.models.ledger import Budget, Entry, Ledger
from assay.models.pace import Timing
from assay.models.prices import Prices
from assay.models.reference import registered
from assay.models.resolving import resolve
from assay.models.routes import CallRoute, Route, route_of
from assay.models.sending import Sending
from assay.models.settings import ModelSettings
from assay.scoring.json_safe import Json, plain

if TYPE_CHECKING:
    from assay.conversation.turns import Conversation
    from assay.models.passing import AgentRequest, Listener, Passed


Told: TypeAlias = "Callable[[str, tuple[float, float] | None], None]"


class ModelClient:
    """Asks models; for any number of event loops and threads.

    Nothing has to be closed: connections end with their event loop, and what the cache was given
    is on disk before the reply is.

    Args:
        settings: How models are reached; those of the environment by default.
        cache: Of replies; by default the one that the settings name.
        ledger: Of what is spent; by default a new one with the settings' budget.
        timing: Clock and chance, for tests.

    Attributes:
        settings: How models are reached.
        ledger: What has been spent.
        told: Is told of questions in the place of models; None for a client that asks them.
    """

    def __init__(
        self,
        settings: ModelSettings | None = None,
        *,
        cache: ReplyCache | None = None,
        ledger: Ledger | None = None,
        timing: Timing | None = None,
    ) -> None:
        self.settings = ModelSettings.from_environment() if settings is None else settings
        prices = ledger.prices if ledger is not None else None
        self._prices = prices or Prices.load(self.settings.prices_file)
        most = self.settings.max_cost_usd
        self.ledger = ledger or Ledger(None if most is None else Budget(most), self._prices)
        if cache is None and self.settings.cache != "off":
            cache = ReplyCache(self.settings.cache_file, self.settings.cache)
        self._cache = cache
        self._timing = timing or Timing()
        self._routes: dict[str, Route] = {}
        self.told: Told | None = None

    def asking_nobody(self, told: Told) -> Self:
        """The same client, which tells of a question that the cache does not answer, and asks none.

        Whoever asks gets an error then. ``told`` is given the model and what the question costs:
        the least and the most, in US dollars, or None where the price is not known.
        """
        other = self.on_account(Ledger(prices=self._prices))
        other.told = told
        return other

    def knows_price(self, reference: str) -> bool:
        """Whether the price of a model is known.

        Raises `InputError` and `ModelError` as `route`.
        """
        return self._prices.price(self.route(reference).priced) is not None

    def on_account(self, ledger: Ledger) -> Self:
        """The same client, and what it has learned of models, on another account."""
        other = copy(self)
        other.ledger = ledger
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def complete(self, request: Request) -> Reply:
        """Ask for text; for `ask`, if the request has a schema.

        A reply that was cut off at `max_tokens` comes back as it is, with `finish` ``length``.

        Raises:
            ModelError: If there is no reply.
            InputError: If the reference or a message is invalid.
        """
        shape = None if request.schema is None else shape_of(request.schema)
        return await self._answer(request, shape, None)

    async def ask(self, request: Request, check: Check | None = None) -> Reply:
        """Ask for JSON of a schema.

        A reply that cannot be used is shown to the model once, with what is wrong; one that was
        cut off is asked for once more with twice the tokens.

        Args:
            request: With a schema.
            check: Looks at data that has the schema: says what is wrong with it, or ``""``.

        Returns:
            The reply; its `data` has the schema and stands the check.

        Raises:
            ModelError: If there is no such reply.
            InputError: If the reference, the schema or a message is invalid.
        """
        if request.schema is None:
            raise InputError("ask needs a request with a schema", hint="use complete for text")
        return await self._answer(request, shape_of(request.schema), check)

    async def pass_on(
        self,
        model: str,
        request: AgentRequest,
        *,
        tokens: int | None = None,
        seconds: float = 600.0,
        listener: Listener | None = None,
    ) -> Passed:
        """Send an agent's request on to a model, as the conversation with tools that it is.

        The cache has no part in it: what an agent's model says is what is measured.

        Args:
            model: A model reference, whatever model the request names.
            request: The request.
            tokens: How many it is thought to have, if that was counted already.
            seconds: For the reply and all tries together.
            listener: Is given the reply's events as they come, where the endpoint speaks the
                protocol.

        Raises:
            ModelError: If there is no reply.
            InputError: If the reference cannot be read.
        """
        from assay.models.passing import Passing, tokens_asked

        route, asked = self.route(model), request.asked
        read = tokens_asked(asked, request.body) if tokens is None else tokens
        if self.told is not None:
            most = self.cost_of(model, asked, request.body)
            raise self._not_asked(model, None if most is None else (0.0, most))
        sending = self._sending(
            route,
            model=model,
            purpose="agent",
            digest="",
            seconds=seconds,
            tokens=read + min(asked.max_tokens or 1_000, 1_000),
        )
        return await Passing(sending=sending, request=request, listener=listener).run()

    def cost_of(
        self, model: str, asked: Conversation, body: Mapping[str, Json] | None = None
    ) -> float | None:
        """The most that a request should cost, in US dollars; None if the price is not known."""
        from assay.models.passing import estimate_usd

        return estimate_usd(asked, self._prices, self.route(model).priced, body)

    async def aclose(self) -> None:
        """Close the cache's file; asking again opens it again."""
        if self._cache is not None:
            self._cache.close()

    def route(self, reference: str) -> Route:
        """The way to a model.

        Raises:
            InputError: If the reference cannot be read.
            ModelError: If nobody said how to reach the model.
        """
        known = self._routes.get(reference)
        complete = registered(reference)
        if known is not None and complete is (
            known.complete if isinstance(known, CallRoute) else None
        ):
            return known
        route = route_of(reference, self.settings, self._timing)
        if self._prices.price(reference) is None and (
            route.is_first_party or self._prices.is_own(route.model)
        ):
            route.priced = route.model  # a built-in price is of the provider's own address only
        self._routes[reference] = route
        return route

    async def _answer(self, request: Request, shape: Shape | None, check: Check | None) -> Reply:
        watch = watch_here()
        if watch is None:
            return await self._ask(request, shape, check)
        told, repeat = watch
        try:
            numbered = replace(request, repeat=request.repeat + repeat)
            reply = await self._ask(numbered, shape, check)
        except ModelError:
            told(None)
            raise
        told(reply)
        return reply

    async def _ask(self, request: Request, shape: Shape | None, check: Check | None) -> Reply:
        route = self.route(request.model)
        digest = request_digest(
            request, protocol=route.protocol, base_url=route.base_url, model=route.model
        )
        cache = self._cache
        if cache is None:
            return await self._asked(request, route, shape, check, digest)
        async with cache.sharing(digest, request.timeout_seconds):
            hit = await cache.get(digest, model=request.model)
            if hit is not None:
                reply = self._from_cache(hit, request, route, shape, check)
                if reply is not None:
                    return reply
            reply = await self._asked(request, route, shape, check, digest)
            await cache.put(digest, reply)
            return reply

    def _not_asked(self, model: str, costs: tuple[float, float] | None) -> ModelError:
        if self.told is not None and not self.route(model).missing:
            self.told(model, costs)
        return ModelError(f"{model} is not asked: it is only foretold", kind="not_recorded")

    def _range(
        self, request: Request, route: Route, shape: Shape | None
    ) -> tuple[float, float] | None:
        messages = with_words(request.messages, "" if shape is None else shape.words)
        return self._prices.range(route.priced, replace(request, messages=messages))

    async def _asked(
        self,
        request: Request,
        route: Route,
        shape: Shape | None,
        check: Check | None,
        digest: str,
    ) -> Reply:
        if self.told is not None:
            raise self._not_asked(request.model, self._range(request, route, shape))
        sending = self._sending(
            route,
            model=request.model,
            purpose=request.purpose,
            digest=digest,
            seconds=request.timeout_seconds,
            tokens=tokens_of(request),
        )
        return await Asking(request, sending, shape, check).run()

    def _sending(
        self,
        route: Route,
        *,
        model: str,
        purpose: Purpose,
        digest: str,
        seconds: float,
        tokens: int,
    ) -> Sending:
        if route.missing:
            message = f"there is no key to ask {model!r} with"
            raise ModelError(message, kind="no_key", hint=route.missing)
        return Sending(
            model=model,
            purpose=purpose,
            route=route,
            ledger=self.ledger,
            prices=self._prices,
            max_attempts=self.settings.max_attempts,
            timing=self._timing,
            digest=digest,
            seconds=seconds,
            tokens=tokens,
        )

    def _from_cache(
        self,
        hit: Reply,
        request: Request,
        route: Route,
        shape: Shape | None,
        check: Check | None,
    ) -> Reply | None:
        """A reply from the cache, looked at as any other; None if it has to be asked again."""
        cost = self._prices.cost(route.priced, hit.usage)
        if shape is not None:
            try:
                data = read_object(hit.text, shape.validate, texts(request.messages))
                if check is not None and (complaint := check(data)):
                    raise ModelError(complaint, kind="unbelievable")  # noqa: TRY301 - one way out
            except ModelError as error:
                if self._cache is not None and self._cache.mode == "replay":
                    message = f"{request.model}, as recorded: {error.message}"
                    raise ModelError(message, kind=error.kind) from None
                return None
            hit = replace(hit, data=data)
        if hit.asked_usd is None:
            hit = replace(hit, asked_usd=cost)
        self.ledger.record(
            Entry(
                model=request.model,
                served=hit.model,
                purpose=request.purpose,
                kind="hit",
                usage=hit.usage,
                cost_usd=0.0,
                would_cost_usd=cost,
                digest=hit.digest,
            )
        )
        return hit


_CURRENT: ContextVar[ModelClient | None] = ContextVar("assay_model_client", default=None)
_OWN: list[ModelClient] = []


_LOCK = ForkSafe()


def current_client() -> ModelClient:
    """The client of `using`; outside of it that of the process, made from the environment once.

    Raises:
        InputError: If the environment's settings cannot be read.
    """
    client = _CURRENT.get()
    if client is not None:
        return client
    making = client_to_come()
    with _LOCK.lock:
        if making is not None:
            return making()
        if not _OWN:
            _OWN.append(ModelClient())
        return _OWN[0]


@contextmanager
def using(client: ModelClient) -> Generator[ModelClient]:
    """Put a client in use, for the code in the block and the tasks that it starts."""
    token = _CURRENT.set(client)
    try:
        yield client
    finally:
        _CURRENT.reset(token)


def unconfigured(reference: str, settings: ModelSettings | None = None) -> str:
    """Why a model cannot be asked here, known before anything is run.

    Args:
        reference: A model reference.
        settings: By default those of `current_client`.

    Returns:
        What is missing; empty if nothing is. With recordings only (``replay``) nothing is.
    """
    if registered(reference) is not None:
        return ""
    try:
        settings = current_client().settings if settings is None else settings
        if settings.cache == "replay":
            return ""
        resolve(reference, settings)
    except (InputError, ModelError) as error:
        return str(error)
    return ""


# The key of the cache

_FORMAT = 1


def request_digest(request: Request, *, protocol: str, base_url: str, model: str) -> str:
    """Digest everything that decides what a model would answer.

    Args:
        request: The question. Its `volatile` strings count only by where they stand; its purpose
            and its timeout do not count.
        protocol: What the endpoint speaks.
        base_url: Where it is.
        model: Its name for the model.
    """
    said = [_said(message) for message in request.messages]
    # What stands for a volatile string may not stand in the text itself, or two texts were one.
    marked = bool(request.volatile) and not any("\0" in text for text in said)
    if marked:
        marks = _marks(request.volatile)
        said = [_with_marks(text, marks) for text in said]
    texts = [text.encode("utf-8", "surrogatepass") for text in said]
    decisive = [
        _FORMAT,
        protocol,
        base_url,
        model,
        None if request.schema is None else schema_text(request.schema),
        request.schema_name,
        request.max_tokens,
        _decimal(request.temperature),
        _decimal(request.top_p),
        request.seed,
        request.reasoning_effort,
        request.repeat,
    ]
    framed = json.dumps(decisive).encode("ascii")
    digest = hashlib.sha256(b"%d " % len(framed) + framed)
    digest.update(b"%d" % marked)
    for message, text in zip(request.messages, texts, strict=True):
        digest.update(f"{message.role} {isinstance(message.content, str)} {len(text)} ".encode())
        digest.update(text)
    return digest.hexdigest()


def _said(message: Message) -> str:
    content = message.content
    return content if isinstance(content, str) else json.dumps(plain(content))


def _marks(volatile: Sequence[str]) -> list[tuple[str, str]]:
    """What stands for each volatile string; the longest first, since one may hold another."""
    marks = [(name, f"\0{index}\0") for index, name in enumerate(volatile) if name]
    return sorted(marks, key=lambda mark: -len(mark[0]))


def _with_marks(text: str, marks: Sequence[tuple[str, str]]) -> str:
    for name, mark in marks:
        text = text.replace(name, mark)
    return text


def _decimal(number: float | None) -> float | None:
    return None if number is None else float(number)
