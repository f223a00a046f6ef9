"""What models were asked, what it cost, and when to stop.

Money is reserved before a request goes out and settled when its reply is here, so that any number
of requests under way cannot overrun a budget together. Totals take the same memory after a
million replies as after one.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields
from typing import Literal, TypeAlias

from assay.conversation.messages import Purpose, ReplyUsage
from assay.errors import InputError, ModelError
from assay.frozen import frozen
from assay.models.forking import ForkSafe
from assay.models.prices import Prices
from assay.scoring.json_safe import Json
from assay.turns import charges_here

EntryKind: TypeAlias = Literal["call", "retry", "repair", "hit", "lost"]
"""A question asked; asked again after a fault or a cut-off; asked to correct its reply; answered
from the cache; sent and never answered, so that nobody knows whether it is paid."""

_MOST_MODELS = 200
_OTHERS = "(others)"
_MONEY_SECONDS = 0.05


@frozen(kw_only=True)
class Entry:
    """One reply, one hit, or one try that gave neither.

    Attributes:
        model: The reference that was asked.
        served: The model that the provider says answered.
        purpose: For whom it is paid.
        kind: Why it was asked.
        usage: Tokens; of a hit, those that it once took.
        cost_usd: US dollars paid; 0.0 for a hit; None where the price is not known.
        would_cost_usd: Of a hit, what it would have cost; None where the price is not known.
        seconds: Time it took.
        digest: Of the request.
        why: Of a try that gave no reply, why not: who was asked, in the words of the error.
    """

    model: str
    served: str
    purpose: Purpose
    kind: EntryKind
    usage: ReplyUsage
    cost_usd: float | None
    would_cost_usd: float | None = None
    seconds: float = 0.0
    digest: str = ""
    why: str = ""


@frozen
class Budget:
    """How much may be spent.

    Attributes:
        max_cost_usd: US dollars, from 0.
        allow_unknown: Whether models of unknown price may be asked; they are not counted then.
    """

    max_cost_usd: float
    allow_unknown: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.max_cost_usd < math.inf:
            raise InputError(
                f"max_cost_usd is an amount of US dollars from 0, not {self.max_cost_usd!r}"
            )


@dataclass(slots=True, kw_only=True)
class LedgerTotals:
    """Sums over entries.

    Attributes:
        count: Entries.
        input_tokens: Read.
        cached_tokens: Of them, from the provider's own cache.
        output_tokens: Written.
        reasoning_tokens: Of them, reasoning.
        cost_usd: US dollars paid, where the price is known.
        unknown: Entries of unknown price.
        would_cost_usd: What hits would have cost, where the price is known.
        seconds: Time taken.
    """

    count: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0
    unknown: int = 0
    would_cost_usd: float = 0.0
    seconds: float = 0.0

    def add(self, entry: Entry) -> None:
        """Count an entry."""
        usage = entry.usage
        self.count += 1
        self.input_tokens += usage.input_tokens or 0
        self.cached_tokens += usage.cached_tokens or 0
        self.output_tokens += usage.output_tokens or 0
        self.reasoning_tokens += usage.reasoning_tokens or 0
        self.seconds += entry.seconds
        self.would_cost_usd += entry.would_cost_usd or 0.0
        if entry.cost_usd is None:
            self.unknown += 1
        else:
            self.cost_usd += entry.cost_usd

    def plus(self, other: LedgerTotals) -> LedgerTotals:
        """Both together."""
        return LedgerTotals(
            **{each.name: getattr(self, each.name) + getattr(other, each.name) for each in _SUMS}
        )


_SUMS = fields(LedgerTotals)


@frozen(kw_only=True)
class LedgerSummary:
    """What a ledger holds at one moment.

    Attributes:
        groups: Sums by purpose, kind and model.
        spent_usd: US dollars that count against the budget.
        reserved_usd: US dollars that requests under way may still take.
        max_cost_usd: The budget; None without one.
        trouble: Why the last try gave no reply, while none has come since; else "".
    """

    groups: Mapping[tuple[str, str, str], LedgerTotals]
    spent_usd: float
    reserved_usd: float
    max_cost_usd: float | None
    trouble: str = ""

    @property
    def is_unanswered(self) -> bool:
        """Whether models were asked, and none has ever answered."""
        return {kind for _, kind, _ in self.groups} in ({"retry"}, {"lost"}, {"retry", "lost"})

    def total(self, *, purpose: str = "", kind: str = "", model: str = "") -> LedgerTotals:
        """The sum over the groups that are of this purpose, kind and model, where given."""
        sums = LedgerTotals()
        for (its_purpose, its_kind, its_model), totals in self.groups.items():
            wanted = ((purpose, its_purpose), (kind, its_kind), (model, its_model))
            if all(not asked or asked == its for asked, its in wanted):
                sums = sums.plus(totals)
        return sums

    def to_dict(self) -> dict[str, Json]:
        """The summary as JSON."""
        everything: dict[str, Json] = {**asdict(self.total())}
        groups: list[Json] = [
            {"purpose": purpose, "kind": kind, "model": model, **asdict(totals)}
            for (purpose, kind, model), totals in sorted(self.groups.items())
        ]
        return {
            "total": everything,
            "groups": groups,
            "spent_usd": self.spent_usd,
            "reserved_usd": self.reserved_usd,
            "max_cost_usd": self.max_cost_usd,
        }

    def __str__(self) -> str:
        parts = ["nothing was answered"] if (none := self.is_unanswered) else []
        nouns = (("judge", "judgement"), ("agent", "agent call"), ("user", "user's turn"))
        for purpose, noun in nouns:
            asked = self.total(purpose=purpose, kind="call").count
            hits = self.total(purpose=purpose, kind="hit").count
            if asked or hits:
                parts.append(f"{asked:,} {noun}{'' if asked == 1 else 's'} asked")
            if hits:
                parts.append(f"{hits:,} from cache")
        parts = parts or ["0 judgements asked"]
        again = self.total(kind="retry").count + self.total(kind="repair").count
        if again:
            parts.append(f"{again:,} {'tries failed' if none else 'asked again'}")
        if lost := self.total(kind="lost").count:
            parts.append(f"{lost:,} never answered")
        total = self.total()
        if total.unknown and not total.cost_usd:
            return f"{', '.join(parts)}, of unknown price"
        unknown = f" ({total.unknown:,} of unknown price)" if total.unknown else ""
        return f"{', '.join(parts)}, {money(total.cost_usd)}{unknown}"


def money(dollars: float) -> str:
    """An amount of US dollars as it is told."""
    if 0 < dollars < 0.0001:
        return "less than $0.0001"
    return f"${dollars:,.2f}" if dollars >= 0.01 or dollars == 0 else f"${dollars:.4f}"


class Ledger(ForkSafe):
    """The account of a process, for all its threads and event loops.

    Args:
        budget: How much may be spent; None for no bound.
        prices: The prices that its entries are counted by, for those who make entries.
        listener: Called after each entry, in the thread that recorded it; it must not raise.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        prices: Prices | None = None,
        listener: Callable[[Entry], None] | None = None,
    ) -> None:
        self.budget = budget
        self.prices = prices
        self._listener = listener
        super().__init__()
        self._groups: dict[tuple[str, str, str], LedgerTotals] = {}
        self._models: set[str] = set()
        self._spent = 0.0
        self._reserved = 0.0
        self._trouble = ""

    def renew(self) -> None:
        """What the parent has under way is not settled in a forked process."""
        super().renew()
        self._reserved = 0.0

    def reserve(self, estimate_usd: float | None, what: str) -> Reservation:
        """Set money aside before a request goes out.

        Args:
            estimate_usd: The most that it should cost; None if that is not known.
            what: What is asked, for the error's sake.

        Raises:
            ModelError: Of kind ``budget``: there is not enough left, or nobody knows the price.
        """
        budget = self.budget
        if budget is None:
            return Reservation(self, 0.0)
        if estimate_usd is None and not budget.allow_unknown:
            raise ModelError(
                f"{what} has no known price, so the budget of {money(budget.max_cost_usd)} "
                "cannot hold",
                kind="budget",
                hint=f"name a price for {what!r} in a file, the prices_file of ASSAY_MODELS",
            )
        amount = estimate_usd or 0.0
        if not 0 <= amount < math.inf:
            amount = math.inf  # no amount at all: refused
        with self.lock:
            left = budget.max_cost_usd - self._spent - self._reserved
            # Sums of dollars are binary fractions: a billionth is not an overrun.
            if amount <= left + 1e-9:
                self._reserved += amount
                return Reservation(self, amount)
            spent, reserved = self._spent, self._reserved
        raise ModelError(
            f"the budget is used up: {money(spent)} of {money(budget.max_cost_usd)} are spent, "
            f"requests under way may take {money(reserved)}, and {what} may take "
            f"{money(amount)}",
            kind="budget",
            hint="raise --max-cost, ASSAY_MAX_COST_USD or max_cost_usd of the settings; what is "
            "answered is in the cache, if that is on",
        )

    def may_suffice_later(self, estimate_usd: float | None) -> bool:
        """Whether what is reserved leaves too little, and would leave enough if it were unspent."""
        budget, amount = self.budget, estimate_usd or 0.0
        if budget is None:
            return False
        with self.lock:
            left = budget.max_cost_usd - self._spent + 1e-9
            return left - self._reserved < amount <= left

    async def wait_for(
        self, estimate_usd: float | None, sleep: Callable[[float], Awaitable[object]]
    ) -> None:
        """Wait while requests under way may leave enough once they settle.

        Most cost less than feared. Whether there is enough is decided where it is reserved.
        """
        while self.may_suffice_later(estimate_usd):
            await sleep(_MONEY_SECONDS)

    def record(self, entry: Entry) -> None:
        """Count an entry and tell the listener.

        It does not change what is left of the budget: that is `Reservation.settle`'s to do.
        """
        if (charges := charges_here()) is not None:
            charges.add(entry.cost_usd, is_call=entry.kind == "call")
        with self.lock:
            model = entry.model
            if model not in self._models:
                # Names may come from outside, and memory is bounded.
                if len(self._models) < _MOST_MODELS:
                    self._models.add(model)
                else:
                    model = _OTHERS
            group = (entry.purpose, entry.kind, model)
            totals = self._groups.get(group)
            if totals is None:
                totals = self._groups[group] = LedgerTotals()
            totals.add(entry)
            self._trouble = entry.why or (self._trouble if entry.kind == "lost" else "")
        if self._listener is not None:
            self._listener(entry)

    def summary(self) -> LedgerSummary:
        """What has been recorded, spent and reserved until now."""
        with self.lock:
            return LedgerSummary(
                groups={
                    group: totals.plus(LedgerTotals()) for group, totals in self._groups.items()
                },
                spent_usd=self._spent,
                reserved_usd=self._reserved,
                max_cost_usd=None if self.budget is None else self.budget.max_cost_usd,
                trouble=self._trouble,
            )

    def settle(self, reserved: float, spent: float) -> None:
        """Turn money set aside into money spent; see `Reservation`."""
        with self.lock:
            self._reserved = max(0.0, self._reserved - reserved)
            self._spent += spent


class Reservation(AbstractContextManager["Reservation"]):
    """Money set aside for one try of a request.

    It is settled or released once; what comes later does nothing. Leaving the block before that
    releases it if nothing was sent. What was sent may be paid, whether or not a reply came: then it
    counts as spent, all of it.
    """

    __slots__ = ("_is_open", "_ledger", "amount", "is_sent")

    def __init__(self, ledger: Ledger, amount: float) -> None:
        self._ledger = ledger
        self.amount = amount
        self._is_open = True
        self.is_sent = False

    def sent(self) -> None:
        """The request begins to go out."""
        self.is_sent = True

    def settle(self, cost_usd: float | None) -> None:
        """The reply is paid: its cost, or, where that is not known, all that was set aside."""
        if cost_usd is None or not 0 <= cost_usd < math.inf:
            cost_usd = self.amount
        self._end(cost_usd)

    def release(self) -> None:
        """Nothing was paid."""
        self._end(0.0)

    def _end(self, spent: float) -> None:
        if self._is_open:
            self._is_open = False
            self._ledger.settle(self.amount, spent)

    def __exit__(self, *_: object) -> None:
        if self._is_open:
            self._end(self.amount if self.is_sent else 0.0)
