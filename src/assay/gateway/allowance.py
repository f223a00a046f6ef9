"""What an agent may ask of its model, and what it has asked."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from assay.conversation.messages import ReplyUsage
from assay.errors import InputError
from assay.frozen import frozen
from assay.types.trace import StopReason

_LEAST_REPLY = 16
_LONG_REPLY = 4_096
"""What every model may write: more than that is asked of a model only by who knows it."""


@frozen(kw_only=True)
class Allowance:
    """What an agent may ask of its model; None is no limit.

    Attributes:
        calls: Requests that are answered.
        tokens: Read and written together, over all requests.
        cost_usd: US dollars.
        seconds: From the first request to the beginning of the last one.

    Raises:
        InputError: For a limit that is not more than 0.
    """

    calls: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "tokens", "cost_usd", "seconds"):
            most = getattr(self, name)
            if most is not None and not most > 0:
                raise InputError(f"{name} must be more than 0, got {most}", hint="None: no limit")


class LimitReachedError(Exception):
    """A request is past what the agent may ask.

    Attributes:
        message: Which limit it was.
        stop: What that means for the run.
    """

    def __init__(self, message: str, stop: StopReason) -> None:
        super().__init__(message)
        self.message = message
        self.stop: StopReason = stop


@dataclass(slots=True)
class Spent:
    """What was asked so far, requests under way included.

    Attributes:
        calls: Requests that were let through.
        tokens: Read and written, as far as the provider said.
        cost_usd: US dollars; None once a price was not known.
        unknown: Requests whose tokens nobody told; they count as about what they are long.
    """

    allowance: Allowance
    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    unknown: int = 0
    _held_tokens: int = field(default=0, init=False)
    _held_usd: float = field(default=0.0, init=False)
    _begun: float | None = field(default=None, init=False)

    def admit(self, read: int, most: int | None, price: float | None) -> Admitted:
        """Let a request through, and hold what it may use until it is settled.

        Args:
            read: Tokens that it is thought to have.
            most: Most tokens of its reply; None for the model's own limit. That stays where there
                is room for a long reply: a model refuses to be asked for more than it can write.
            price: US dollars that it may cost at most.

        Raises:
            LimitReachedError: If it is past a limit.
        """
        limits = self.allowance
        now = time.monotonic()
        self._begun = now if self._begun is None else self._begun
        if limits.calls is not None and self.calls >= limits.calls:
            raise LimitReachedError(
                f"the limit of {limits.calls} model calls is reached", "max_steps"
            )
        if limits.seconds is not None and now - self._begun >= limits.seconds:
            message = f"the limit of {limits.seconds:g} seconds is reached"
            raise LimitReachedError(message, "timeout")
        if limits.tokens is not None:
            left = limits.tokens - self.tokens - self._held_tokens - read
            if left < _LEAST_REPLY:
                raise LimitReachedError(f"the limit of {limits.tokens} tokens is reached", "length")
            if most is not None or left < _LONG_REPLY:
                most = left if most is None else min(most, left)
        if limits.cost_usd is not None:
            held = (self.cost_usd or 0.0) + self._held_usd
            if price is None or self.cost_usd is None:
                raise LimitReachedError(
                    f"the limit of ${limits.cost_usd:g} cannot be kept: no price is known", "length"
                )
            if held + price > limits.cost_usd:
                raise LimitReachedError(f"the limit of ${limits.cost_usd:g} is reached", "length")
        longest = _LONG_REPLY if most is None else most
        admitted = Admitted(read, most, read + longest, price or 0.0)
        self.calls += 1
        self._held_tokens += admitted.held_tokens
        self._held_usd += admitted.held_usd
        return admitted

    def settle(
        self, admitted: Admitted, usage: ReplyUsage | None, cost: float | None, *, written: int = 0
    ) -> None:
        """Put what a request used in the place of what was held for it.

        Args:
            admitted: The request.
            usage: What it used; None if it was not worked on.
            cost: Its price; None where that is not known.
            written: How many tokens the reply is thought to have, where nobody tells.
        """
        self._held_tokens -= admitted.held_tokens
        self._held_usd -= admitted.held_usd
        if usage is None:
            return
        read, wrote = usage.input_tokens, usage.output_tokens
        if read is None or wrote is None:
            self.unknown += 1
        self.tokens += admitted.read if read is None else read
        self.tokens += written if wrote is None else wrote
        self.cost_usd = None if cost is None or self.cost_usd is None else self.cost_usd + cost


@frozen
class Admitted:
    """A request that was let through.

    Attributes:
        read: Tokens that it is thought to have.
        most_tokens: How long its reply may be at most; None for the model's own limit.
        held_tokens: Tokens that are held for it.
        held_usd: US dollars, likewise.
    """

    read: int
    most_tokens: int | None
    held_tokens: int
    held_usd: float
