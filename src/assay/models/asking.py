"""`Asking`: one request on its way to a usable reply: its tries, its second length, its repair."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from assay.errors import ModelError
from assay.models.faults import ENDPOINT_FAULTS, Fault, redacted
from assay.models.ledger import Entry, EntryKind, Ledger
from assay.models.messages import Attempt, Message, Reply, Request, Usage
from assay.models.pace import EndpointClosedError, Limiter, Timing
from assay.models.prices import Prices
from assay.models.routes import Prepared, Route
from assay.models.schemas import Shape
from assay.models.structured import read_object
from assay.models.wire import RawReply, texts, with_words
from assay.scoring.json_safe import Json

Check: TypeAlias = Callable[[Json], str]
"""Says what is wrong with a reply that is well-formed, or ``""``."""

_NOTHING = RawReply("")
_MOST_SHOWN = 8_000
_MONEY_SECONDS = 0.05
_MOST_COMPLAINT = 2_000


@dataclass(slots=True)
class Asking:
    """One request on its way.

    Attributes:
        request: What is asked.
        route: Whom.
        shape: Of the reply; None for free text.
        check: What a well-formed reply has to stand as well.
        ledger: What is paid.
        prices: What it costs.
        max_attempts: Tries.
        timing: Clock and chance.
        digest: Of the request.
        when_asked: Called when its turn has come and its deadline begins.
    """

    request: Request
    route: Route
    shape: Shape | None
    check: Check | None
    ledger: Ledger
    prices: Prices | None
    max_attempts: int
    timing: Timing
    digest: str
    when_asked: Callable[[], None] | None = None
    _attempts: list[Attempt] = field(default_factory=list[Attempt], init=False)
    _usage: Usage | None = field(default=None, init=False)
    _cost: float | None = field(default=0.0, init=False)
    _repairs: int = field(default=0, init=False)
    _begun: float = field(default=0.0, init=False)
    _deadline: float = field(default=0.0, init=False)

    async def run(self) -> Reply:
        """Ask until there is a reply, within one deadline; waiting for a turn is not in it.

        Raises:
            ModelError: If there is no usable reply.
        """
        lane = self.route.lane
        self._begun = self.timing.clock()
        limiter = lane.limiter()
        if not limiter.try_acquire():
            await limiter.acquire()
        try:
            if not lane.is_free:
                await lane.wait(self, self._tokens(), self.request.timeout_seconds)
            if self.ledger.budget is not None:
                await self._wait_for_money()
            return await self._within_deadline(limiter)
        finally:
            limiter.release()
            if not lane.gate.is_calm:
                lane.gate.ended(self)

    async def _within_deadline(self, limiter: Limiter) -> Reply:
        lane = self.route.lane
        seconds = self.request.timeout_seconds
        if self.when_asked is not None:
            self.when_asked()
        self._deadline = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(self._deadline):
                return await self._converse(limiter)
        except TimeoutError:
            before = f"; before that: {self._attempts[-1].reason}" if self._attempts else ""
            message = f"gave no reply within {seconds:g} seconds{before}"
            error = ModelError(f"{self.route.name} {message}", kind="timeout")
            lane.failed(error)
            raise error from None
        except EndpointClosedError:
            raise
        except ModelError as error:
            if error.kind in ENDPOINT_FAULTS:
                lane.failed(error)
            raise

    async def _converse(self, limiter: Limiter) -> Reply:
        request, shape = self.request, self.shape
        if shape is None:
            raw = await self._send(request.messages, request.max_tokens, "call", limiter)
            self._refuse_refusal(raw)
            if raw.wrong:
                message = f"{self.route.name} gave a reply that cannot be used: {raw.wrong}"
                raise ModelError(message, kind="unreadable")
            return self._reply(raw, None)
        messages = with_words(request.messages, shape.words)
        most = request.max_tokens
        raw = await self._send(messages, most, "call", limiter)
        if raw.finish == "length":
            self._attempts.append(Attempt("truncated", 200, 0.0))
            most *= 2
            raw = await self._send(messages, most, "retry", limiter)
        data, error = self._read(raw, shape, most)
        if error is None:
            return self._reply(raw, data)
        self._repairs = 1
        again = (*messages, *_repair(raw.text, error.message, shape))
        raw = await self._send(again, most, "repair", limiter)
        data, error = self._read(raw, shape, most)
        if error is None:
            return self._reply(raw, data)
        raise ModelError(
            f"{self.route.name} was asked twice: {told_long(error.message)}", kind=error.kind
        )

    def _read(self, raw: RawReply, shape: Shape, most: int) -> tuple[Json, ModelError | None]:
        """The data of a reply, or why it may be asked to correct it."""
        self._refuse_refusal(raw)
        if raw.finish == "length":
            raise ModelError(
                f"{self.route.name} did not end its reply within {most} tokens",
                kind="truncated",
                hint="raise max_tokens; a model that reasons needs more than its reply",
            )
        if raw.wrong:
            return None, ModelError(f"the reply cannot be used: {raw.wrong}", kind="unreadable")
        try:
            data = read_object(raw.text, shape.validate, texts(self.request.messages))
        except ModelError as error:
            return None, error
        if self.check is not None and (complaint := self.check(data)):
            return None, ModelError(complaint, kind="unbelievable")
        return data, None

    def _refuse_refusal(self, raw: RawReply) -> None:
        if raw.finish == "refusal":
            said = redacted(raw.refusal or raw.text)
            message = f"refused{f': {said}' if said else ''}"
            raise ModelError(f"{self.route.name} {message}", kind="refused")

    def _reply(self, raw: RawReply, data: Json) -> Reply:
        return Reply(
            text=raw.text,
            data=data,
            finish=raw.finish,
            model=raw.model,
            usage=self._usage or raw.usage,
            fingerprint=raw.fingerprint,
            rung=self.route.rung(self.shape),
            attempts=tuple(self._attempts),
            seconds=self.timing.clock() - self._begun,
            cost_usd=self._cost,
            dropped=self.route.capability.dropped(self.request),
            repairs=self._repairs,
            digest=self.digest,
        )

    # --- Tries -----------------------------------------------------------------------------------

    async def _send(
        self, messages: tuple[Message, ...], most: int, kind: EntryKind, limiter: Limiter
    ) -> RawReply:
        """Send until there is a reply of whatever kind, and pay it."""
        route, request, capability = self.route, self.request, self.route.capability
        estimate = self._estimate(messages, most)
        tries, version = 0, -1
        prepared: Prepared = b""
        while True:
            if version != capability.version:
                version = capability.version
                prepared = route.prepare(request, messages, most, self.shape)
            epoch, begun = limiter.epoch, self.timing.clock()
            got = await self._try(prepared, estimate, kind, begun)
            if isinstance(got, RawReply):
                limiter.succeeded()
                route.gate.succeeded()
                return got
            if got.may_teach and self._learned(got, version):
                continue
            tries += 1
            if not got.may_be_paid:
                self._count(_NOTHING, "retry", 0.0, begun, self._why(got))
            await self._pause(got, tries, epoch, limiter)

    async def _try(
        self, prepared: Prepared, estimate: float | None, kind: EntryKind, begun: float
    ) -> RawReply | Fault:
        """Send once, and pay: also what was sent and lost, which may have been worked on."""
        tool = "" if self.shape is None else self.request.schema_name
        with self.ledger.reserve(estimate, self.route.name) as reservation:
            try:
                got = await self.route.send(prepared, reservation.sent, tool)
            except BaseException:  # above all when it is cancelled, as by the deadline
                if reservation.is_sent:
                    self._count(_NOTHING, "lost", None, begun)
                raise
            if isinstance(got, RawReply):
                reservation.settle(self._pay(got, kind, begun))
            elif got.may_be_paid:
                reservation.settle(None)
                self._count(_NOTHING, "lost", None, begun, self._why(got))
            else:
                reservation.release()
        return got

    def _learned(self, fault: Fault, version: int) -> bool:
        """Whether what was refused will be left out of the next try."""
        capability = self.route.capability
        if capability.version != version:
            return True  # another request has learned something meanwhile
        lesson = capability.learn(fault.said, self.request, self.shape)
        if lesson:
            self._attempts.append(Attempt(f"refused {lesson}", fault.status, 0.0))
        return bool(lesson)

    async def _pause(self, fault: Fault, tries: int, epoch: int, limiter: Limiter) -> None:
        """Wait before the next try, or give up."""
        gate = self.route.gate
        is_too_much = fault.kind == "rate_limited" or fault.is_crowded
        if is_too_much:
            limiter.crowded(epoch)
        # Too much takes longer to pass than a fault does.
        wait = self.timing.backoff(tries + is_too_much) if fault.pause is None else fault.pause
        if fault.kind == "rate_limited" or fault.pause is not None:
            gate.cool(wait)
        if not fault.may_repeat or tries >= self.max_attempts:
            raise fault.error(self.route.name, tries)
        left = self._deadline - asyncio.get_running_loop().time()
        if wait > left:
            message = f"{fault.message}, and asks to wait {wait:.0f} seconds: beyond the deadline"
            raise replace(fault, message=message).error(self.route.name, tries)
        if self.route.lane.is_free:
            await self.timing.sleep(wait)
        else:
            wait = await self.route.lane.wait(self, self._tokens(), left)
        self._attempts.append(Attempt(fault.reason, fault.status, wait))

    # --- Money -----------------------------------------------------------------------------------

    async def _wait_for_money(self) -> None:
        """Let requests under way settle, where that may leave enough: most cost less than feared.

        Whether there is enough is decided where it is reserved.
        """
        words = "" if self.shape is None else self.shape.words
        messages = with_words(self.request.messages, words)
        estimate = self._estimate(messages, self.request.max_tokens)
        while self.ledger.may_suffice_later(estimate):
            await self.timing.sleep(_MONEY_SECONDS)

    def _tokens(self) -> int:
        """Tokens that the request is thought to need, for rates."""
        characters = sum(
            len(message.content) if isinstance(message.content, str) else 4_000
            for message in self.request.messages
        )
        return characters // 4 + min(self.request.max_tokens, 1_000)

    def _estimate(self, messages: tuple[Message, ...], most: int) -> float | None:
        if self.ledger.budget is None or self.prices is None:
            return None
        request = replace(self.request, messages=messages, max_tokens=most)
        return self.prices.estimate(self.route.priced, request)

    def _pay(self, raw: RawReply, kind: EntryKind, begun: float) -> float | None:
        usage = raw.usage
        cost = self.prices.cost(self.route.priced, usage) if self.prices is not None else None
        self._cost = None if cost is None or self._cost is None else self._cost + cost
        self._usage = usage if self._usage is None else _sum(self._usage, usage)
        self._count(raw, kind, cost, begun)
        return cost

    def _why(self, fault: Fault) -> str:
        return f"{self.route.name} {fault.message}"

    def _count(
        self, raw: RawReply, kind: EntryKind, cost: float | None, begun: float, why: str = ""
    ) -> None:
        self.ledger.record(
            Entry(
                model=self.request.model,
                served=raw.model,
                purpose=self.request.purpose,
                kind=kind,
                usage=raw.usage,
                cost_usd=cost,
                seconds=self.timing.clock() - begun,
                digest=self.digest,
                why=why,
            )
        )


def told_long(message: str) -> str:
    """A complaint, bounded: it may repeat what a model wrote."""
    if len(message) <= _MOST_COMPLAINT:
        return message
    return f"{message[:_MOST_COMPLAINT]}..."


def _repair(bad: str, complaint: str, shape: Shape) -> tuple[Message, Message]:
    if len(bad) > _MOST_SHOWN:
        half = _MOST_SHOWN // 2
        bad = f"{bad[:half]}\n[...]\n{bad[-half:]}"
    return (
        Message("assistant", bad.strip() or "(nothing)"),
        Message(
            "user",
            f"Your reply was not accepted: {told_long(complaint)}\n\n"
            f"Answer the question above once more, with this mended. {shape.words}",
        ),
    )


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        input_tokens=_plus(one.input_tokens, other.input_tokens),
        cached_tokens=_plus(one.cached_tokens, other.cached_tokens),
        output_tokens=_plus(one.output_tokens, other.output_tokens),
        reasoning_tokens=_plus(one.reasoning_tokens, other.reasoning_tokens),
    )


def _plus(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)
