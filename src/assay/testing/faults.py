"""What goes wrong with models, on purpose: a plan that says which requests meet which fault."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

from assay.errors import InputError, nearest
from assay.testing.asked import Asked

__all__ = ["FAULTS", "Fault", "FaultPlan", "Faults"]

FAULTS: dict[str, str] = {
    "400": "a parameter is refused: parameter=NAME, temperature by default",
    "401": "the key is refused",
    "402": "nothing is left to pay with",
    "403": "the key may not do this",
    "408": "the provider waited too long",
    "429": "too many requests: retry_after=SECONDS or a date, retry_after_ms=N, or neither",
    "500": "an internal error",
    "502": "a bad gateway",
    "503": "not available",
    "529": "overloaded",
    "quota": "the quota is used up: OpenAI's 429 that no waiting mends",
    "overflow": "more text than the model takes",
    "hang": "no reply, ever",
    "reset": "the connection is reset in the middle of the body",
    "truncated": "a body whose JSON ends early",
    "html": "a page of HTML instead of JSON, status 200",
    "content_type": "the right body under the wrong content type",
    "slow": "the body comes in pieces over seconds=S, 1 by default",
    "huge": "a reply of megabytes=N, 32 by default",
    "empty": "a reply without text",
    "length": "the reply is cut in half: its length was used up",
    "refusal": "the model, or its content filter, refuses",
    "prose": "the verdict in words, without JSON",
    "off_menu": "a verdict that was not on offer",
    "duplicate_keys": "the reply's keys twice, with different verdicts",
    "nan": "numbers that are none: NaN",
    "missing": "the last of the verdicts asked for is left out",
}
"""Every kind of fault, and what it is."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One way of going wrong.

    Attributes:
        kind: One of `FAULTS`.
        times: How many requests meet it, one after the other.
        at: The first of them, counted from 0; None for the next that no other fault is for.
        probability: Above 0: any request meets it, by chance, 0 to 1.
        retry_after: Of a 429, 503 or 529: seconds, or an HTTP date. "" for no such header.
        retry_after_ms: Likewise in milliseconds, as ``retry-after-ms``.
        parameter: Of a 400: what is refused.
        seconds: Of a slow reply.
        megabytes: Of a huge one.
    """

    kind: str
    times: int = 1
    at: int | None = None
    probability: float = 0.0
    retry_after: float | str = ""
    retry_after_ms: int | None = None
    parameter: str = "temperature"
    seconds: float = 1.0
    megabytes: float = 32.0

    def __post_init__(self) -> None:
        if self.kind not in FAULTS:
            hint = nearest(self.kind, list(FAULTS))
            raise InputError(f"there is no fault {self.kind!r}", hint=hint)
        if self.times < 1 or not 0 <= self.probability <= 1:
            raise InputError(f"fault {self.kind}: times from 1 up, probability from 0 to 1")
        if not all(map(math.isfinite, (self.seconds, self.megabytes))):
            raise InputError(f"fault {self.kind}: its numbers have to be finite")
        if min(self.at or 0, self.seconds, self.megabytes, self.retry_after_ms or 0) < 0:
            raise InputError(f"fault {self.kind}: no number of it is below 0")

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read a fault as it is written on a command line.

        Args:
            text: ``KIND``, ``KIND:name=value,name=value``, and ``xN`` after either for N times,
                such as ``429:retry_after=1x2`` or ``500:probability=0.1``.

        Raises:
            InputError: If there is no such fault, or it has no such setting.
        """
        head, by, count = text.rpartition("x")
        is_counted = bool(by) and count.isascii() and count.isdecimal()
        kind, _, settings = (head if is_counted else text).partition(":")
        fault = cls(kind.strip(), times=int(count) if is_counted else 1)
        for setting in filter(None, (part.strip() for part in settings.split(","))):
            name, equals, value = setting.partition("=")
            fault = fault._with(name.strip(), value.strip() if equals else "", text)
        return fault

    def _with(self, name: str, value: str, text: str) -> Fault:
        names = [one.name for one in fields(self) if one.name != "kind"]
        if name not in names:
            raise InputError(
                f"fault {text!r} has a setting {name!r}",
                hint=nearest(name, names),
            )
        read: float | str = value
        if name != "parameter":
            try:
                read = int(value) if name in ("times", "at", "retry_after_ms") else float(value)
            except ValueError:
                if name != "retry_after" or not value:  # which may be a date
                    told = f"fault {text!r}: {name}={value!r} is not a number"
                    raise InputError(told) from None
        return replace(self, **{name: read})


Faults: TypeAlias = "Iterable[Fault | str | None] | Callable[[Asked], Fault | None] | None"
"""A list of faults, met in order (None lets a request through), or who says for each request."""


class FaultPlan:
    """Says for each request what goes wrong with it.

    Args:
        faults: See `Faults`. A text is read by `Fault.parse`.
        seed: Of the chance of those with a probability.

    Raises:
        InputError: For a text that is no fault.
    """

    def __init__(self, faults: Faults, *, seed: int = 0) -> None:
        self._decide = faults if callable(faults) else None
        given: Sequence[Fault | str | None] = (
            () if faults is None or callable(faults) else tuple(faults)
        )
        listed = [Fault.parse(fault) if isinstance(fault, str) else fault for fault in given]
        self._by_chance = [fault for fault in listed if fault and fault.probability]
        self._placed: dict[int, Fault] = {}
        self._in_order: list[Fault | None] = []
        for fault in listed:
            if fault is None:
                self._in_order.append(None)
            elif fault.at is not None:
                self._placed |= {fault.at + more: fault for more in range(fault.times)}
            elif not fault.probability:
                self._in_order += [fault] * fault.times
        self._in_order.reverse()
        self._chance = random.Random(seed)  # noqa: S311 - chance that can be repeated

    def next(self, asked: Asked) -> Fault | None:
        """What goes wrong with this request; None for nothing."""
        if self._decide is not None:
            return self._decide(asked)
        if asked.index in self._placed:
            return self._placed[asked.index]
        if self._in_order:
            return self._in_order.pop()
        # One number for each fault and request, so that a plan does not depend on what was hit.
        drawn = [(self._chance.random(), fault) for fault in self._by_chance]
        return next((fault for number, fault in drawn if number < fault.probability), None)
