"""`Bill`: what work that asks models will cost, said before it is done, and how sure that is.

Before anything is asked it is a range: the questions of a sample, those that the cache answers left
out, from the shortest reply to the longest that is allowed; or what the same work took before. Once
ten calls are paid it is a mean with its interval. What has no known price is named, never counted
as nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from assay.frozen import frozen
from assay.models.ledger import money
from assay.scoring.json_safe import Json
from assay.statistics.intervals import spread_interval, wilson

_CALLS, _ITEMS = 10, 3
"""Calls that are paid, and items that they are of, from which a mean is told."""


@frozen
class Foretold:
    """What will have been spent in the end, in US dollars.

    Attributes:
        low: At least so much; before the first ten calls with the shortest replies.
        high: At most so much, with the longest replies then; None where nobody knows.
        mean: What is likely; None before the first ten calls.
        why: What it rests on, in words.
    """

    low: float
    high: float | None
    mean: float | None
    why: str

    def __str__(self) -> str:
        if self.mean is not None:
            low, high, mean = money(self.low), money(self.high or self.low), money(self.mean)
            return f"about {mean}" if low == high else f"about {mean} ({low} to {high})"
        if self.high is None:
            return f"{money(self.low)} or more"
        low, high = money(self.low), money(self.high)
        return low if low == high else f"{low} to {high}"

    def to_dict(self) -> dict[str, Json]:
        """It as JSON."""
        return {
            "low_usd": self.low,
            "high_usd": self.high,
            "mean_usd": self.mean,
            "why": self.why,
        }


@dataclass(slots=True)
class Amounts:
    """Any number of amounts, of which only their sums are kept."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    least: float = math.inf
    most: float = 0.0

    def add(self, amount: float) -> None:
        """Count one."""
        self.n += 1
        self.total += amount
        self.squares += amount * amount
        self.least, self.most = min(self.least, amount), max(self.most, amount)

    @property
    def mean(self) -> float:
        """Their mean; 0 of none."""
        return self.total / self.n if self.n else 0.0

    def interval(self) -> tuple[float, float]:
        """Where the mean of all amounts of the kind lies, at 95 %."""
        spread = max(0.0, self.squares - self.n * self.mean**2)
        sd = math.sqrt(spread / (self.n - 1)) if self.n > 1 else 0.0
        found = spread_interval(
            self.mean, sd, self.n, least=self.least, most=self.most, bounds=None
        )
        if found.low is None or found.high is None:  # they are all alike
            return self.mean, self.mean
        return max(0.0, found.low), found.high


@dataclass(slots=True, kw_only=True)
class Questions:
    """What a sample of the items would ask.

    Attributes:
        sampled: Items that were looked at.
        asking: Of them, those with a question that the cache does not answer.
        cached: Questions that it does answer.
        low: What the items with questions cost with the shortest replies.
        high: With the longest.
        unpriced: Models that would be asked and whose price nobody knows.
        has_more: Whether replies lead to more questions, which are not counted.
    """

    sampled: int = 0
    asking: int = 0
    cached: int = 0
    low: Amounts = field(default_factory=Amounts)
    high: Amounts = field(default_factory=Amounts)
    unpriced: set[str] = field(default_factory=set[str])
    has_more: bool = False


class Bill:
    """Foretells what a piece of work costs, and is told what its items have cost.

    Args:
        items: How many there are to do.
        things: What they are called: ``rows``, ``cells``.
        budget: US dollars at which asking stops; None for no such limit.
    """

    def __init__(self, items: int, things: str, *, budget: float | None = None) -> None:
        self.items, self.things, self.budget = items, things, budget
        self.models: set[str] = set()
        self.unpriced: set[str] = set()
        self._first: Foretold | None = None
        self._share = (0.0, 1.0, 1.0)  # of the items, those that pay: at least, likely, at most
        self._is_sampled = False
        self._ended = self._calls = 0
        self._spent = 0.0
        self._paid = Amounts()
        self._listener: Callable[[str], None] = lambda _: None

    # ---- before ------------------------------------------------------------------------------

    def sampled(self, found: Questions) -> None:
        """Foretell from the questions of a sample."""
        self.unpriced |= found.unpriced
        if not found.sampled:
            return
        share = found.asking / found.sampled
        low = high = share
        if found.sampled < self.items:
            about = wilson(found.asking, found.sampled)
            low, high = about.low or 0.0, 1.0 if about.high is None else about.high
        self._share, self._is_sampled = (low, share, high), True
        n = self.items
        looked = "" if found.sampled == n else f" of {found.sampled:,} that were looked at"
        if not found.asking and not found.unpriced:
            why = (
                f"the cache has all replies{looked}"
                if found.cached
                else f"none{looked} asks a model"
            )
            self._first = Foretold(0.0, 0.0 if found.sampled == n else None, None, why)
            return
        asking = f"{found.asking:,} {self.things}{looked} ask"
        if not found.low.n:
            return
        more = "; what follows from the replies comes on top" if found.has_more else ""
        cached = f"; {found.cached:,} replies from the cache" if found.cached else ""
        exact = found.sampled == n
        self._first = Foretold(
            n * low * (found.low.mean if exact else found.low.interval()[0]),
            None
            if found.has_more or found.unpriced
            else n * high * (found.high.mean if exact else found.high.interval()[1]),
            None,
            f"{asking}{cached}, and how long replies are is not known yet{more}",
        )

    def earlier(self, costs: Iterable[float], *, before: str, may_be_cached: bool = False) -> None:
        """Foretell from what items like these cost before.

        Args:
            costs: In US dollars.
            before: What these items were, in words.
            may_be_cached: Whether the cache may have the replies still.
        """
        amounts = Amounts()
        for cost in costs:
            amounts.add(cost)
        if amounts.n < _ITEMS and not (amounts.n and may_be_cached):
            return
        low, high = amounts.interval() if amounts.n > 1 else (amounts.mean, amounts.mean)
        low = 0.0 if may_be_cached else low * self.items
        self._first = Foretold(low, high * self.items, None, f"from {amounts.n:,} {before}")

    def at_most(self, each: float) -> None:
        """Note that no item may cost more: its own limit says so."""
        most = each * self.items
        if self._first is None:
            why = f"each may spend {money(each)} by its own limit"
            self._first = Foretold(0.0, most, None, why)

    # ---- meanwhile ---------------------------------------------------------------------------

    def listen(self, listener: Callable[[str], None]) -> None:
        """Have somebody told once, in a line, when the first ten calls are paid."""
        self._listener = listener

    def ended(self, usd: float | None, calls: int) -> None:
        """Count an item that is done.

        Args:
            usd: What it cost; None where that is not known.
            calls: Replies that were asked for and not found in the cache.
        """
        was_known = self.is_measured
        self._ended += 1
        self._calls += calls
        if calls and usd is not None:
            self._paid.add(usd)
        self._spent += usd or 0.0
        if self.is_measured and not was_known and self._ended < self.items:
            self._listener(self.line)

    @property
    def is_measured(self) -> bool:
        """Whether what was paid tells what is still to be."""
        return self._calls >= _CALLS and self._paid.n >= _ITEMS and self._paid.most > 0

    @property
    def foretold(self) -> Foretold | None:
        """What it comes to in the end, as far as that is known now."""
        if not self.is_measured:
            return self._first
        paid, left = self._paid, max(0, self.items - self._ended)
        if self._is_sampled:
            shares = [max(0.0, share * self.items - paid.n) for share in self._share]
            shares = [min(one, left) for one in shares]
        else:
            about = wilson(paid.n, self._ended)
            ends = (about.low or 0.0, paid.n / self._ended, about.high or 1.0)
            shares = [share * left for share in (ends if paid.n < self._ended else (1, 1, 1))]
        low, high = paid.interval()
        return Foretold(
            self._spent + shares[0] * low,
            self._spent + shares[2] * high,
            self._spent + shares[1] * paid.mean,
            f"from {self._calls:,} calls of {paid.n:,} {self.things}",
        )

    # ---- what is told ------------------------------------------------------------------------

    @property
    def line(self) -> str:
        """What is foretold, in a line; "" where there is nothing to say."""
        found, parts = self.foretold, list[str]()
        if found is not None:
            parts.append(f"{self._all} will cost {found}: {found.why}")
            if self.budget is not None and (found.high is None or found.high > self.budget):
                parts.append(f"asking stops before it costs more than {money(self.budget)}")
        elif self.models - self.unpriced:
            named = ", ".join(sorted(self.models - self.unpriced))
            parts.append(
                f"what {self._all} will cost is said once {_CALLS} calls of {named} are paid"
            )
        if self.unpriced:
            parts.append(f"no price is known for {', '.join(sorted(self.unpriced))}")
        return "; ".join(parts)

    @property
    def short(self) -> str:
        """The amount alone; "" where it is not known."""
        found = self.foretold
        return "" if found is None else str(found)

    @property
    def _all(self) -> str:
        return f"{self.items:,} {self.things if self.items != 1 else self.things.removesuffix('s')}"

    def to_dict(self) -> dict[str, Json]:
        """What was foretold before and is now, as JSON."""
        first = self._first
        now = self.foretold if self.is_measured else None
        return {
            "items": self.items,
            "things": self.things,
            "before": None if first is None else first.to_dict(),
            "measured": None if now is None else now.to_dict(),
            "models": list[Json](sorted(self.models)),
            "unpriced": list[Json](sorted(self.unpriced)),
        }
