"""`Asking`: one question on its way to a usable reply: its second length, its repair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from assay.conversation.messages import Attempt, Message, Reply, Request
from assay.conversation.schemas import Shape
from assay.conversation.structured import read_object
from assay.conversation.wire import RawReply, texts, with_words
from assay.errors import ModelError
from assay.models.faults import CallFault, redacted
from assay.models.ledger import EntryKind
from assay.models.pace import Limiter
from assay.models.sending import Sending
from assay.scoring.json_safe import Json

Check: TypeAlias = Callable[[Json], str]
"""Says what is wrong with a reply that is well-formed, or ``""``."""

_MOST_SHOWN = 8_000
_MOST_COMPLAINT = 2_000


@dataclass(slots=True)
class Asking:
    """One question on its way.

    Attributes:
        request: What is asked.
        sending: How it gets there.
        shape: Of the reply; None for free text.
        check: What a well-formed reply has to stand as well.
    """

    request: Request
    sending: Sending
    shape: Shape | None
    check: Check | None
    _repairs: int = field(default=0, init=False)

    async def run(self) -> Reply:
        """Ask until there is a reply, within one deadline; waiting for a turn is not in it.

        Raises:
            ModelError: If there is no usable reply.
        """
        return await self.sending.run(self._converse, self._first_estimate)

    async def _converse(self, limiter: Limiter) -> Reply:
        request, shape, name = self.request, self.shape, self.sending.route.name
        if shape is None:
            raw = await self._send(request.messages, request.max_tokens, "call", limiter)
            self._refuse_refusal(raw)
            if raw.wrong:
                message = f"{name} gave a reply that cannot be used: {raw.wrong}"
                raise ModelError(message, kind="unreadable")
            return self._reply(raw, None)
        messages = with_words(request.messages, shape.words)
        most = request.max_tokens
        raw = await self._send(messages, most, "call", limiter)
        if raw.finish == "length":
            self.sending.attempts.append(Attempt("truncated", 200, 0.0))
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
        raise ModelError(f"{name} was asked twice: {told_long(error.message)}", kind=error.kind)

    async def _send(
        self, messages: tuple[Message, ...], most: int, kind: EntryKind, limiter: Limiter
    ) -> RawReply:
        route, shape = self.sending.route, self.shape
        request = replace(self.request, messages=messages, max_tokens=most)
        tool = "" if shape is None else request.schema_name
        return await self.sending.send(
            limiter,
            prepare=lambda: route.prepare(request, shape),
            post=partial(route.send, tool=tool),
            kind=kind,
            estimate=self._estimate(request),
            learn=self._learn,
        )

    def _learn(self, fault: CallFault) -> str:
        return self.sending.route.capability.learn(fault.said, self.request, self.shape)

    def _first_estimate(self) -> float | None:
        words = "" if self.shape is None else self.shape.words
        messages = with_words(self.request.messages, words)
        return self._estimate(replace(self.request, messages=messages))

    def _estimate(self, request: Request) -> float | None:
        sending = self.sending
        if sending.ledger.budget is None or sending.prices is None:
            return None
        return sending.prices.estimate(sending.route.priced, request)

    def _read(self, raw: RawReply, shape: Shape, most: int) -> tuple[Json, ModelError | None]:
        """The data of a reply, or why it may be asked to correct it."""
        self._refuse_refusal(raw)
        if raw.finish == "length":
            raise ModelError(
                f"{self.sending.route.name} did not end its reply within {most} tokens",
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
            raise ModelError(f"{self.sending.route.name} {message}", kind="refused")

    def _reply(self, raw: RawReply, data: Json) -> Reply:
        sending = self.sending
        return Reply(
            text=raw.text,
            data=data,
            finish=raw.finish,
            model=raw.model,
            usage=sending.usage or raw.usage,
            fingerprint=raw.fingerprint,
            rung=sending.route.rung(self.shape),
            attempts=tuple(sending.attempts),
            seconds=sending.taken,
            cost_usd=sending.cost,
            dropped=sending.route.capability.dropped(self.request),
            repairs=self._repairs,
            digest=sending.digest,
        )


def tokens_of(request: Request) -> int:
    """Tokens that a request is thought to need, for rates."""
    characters = sum(
        len(message.content) if isinstance(message.content, str) else 4_000
        for message in request.messages
    )
    return characters // 4 + min(request.max_tokens, 1_000)


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
