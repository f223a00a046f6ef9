"""What asking a grader takes, whether or not a cache had its models' replies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING

from assay.eval.calibration.card import Cost
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from assay.models import Reply

_SPENT = "_spent"
"""Where a judgement keeps what it took."""


@dataclass(slots=True)
class JudgementCost:
    """What some judgements take when they are asked for.

    Shares of it are fractions; those of all judgements add up to whole questions.

    Attributes:
        calls: Questions to models, with those that were asked again.
        hits: Replies from the cache.
        usd: US dollars, where prices are known; of a hit what it cost when it was asked for.
        unknown: Replies, and questions without one, of unknown price.
        seconds: From asked to answered, added up; of a hit the time that it took.
        input_tokens: Read.
        output_tokens: Written.
        untold: Replies of which nobody knows the tokens.
    """

    calls: float = 0.0
    hits: float = 0.0
    usd: float = 0.0
    unknown: float = 0.0
    seconds: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    untold: float = 0.0

    def add(self, reply: Reply | None) -> None:
        """Count a reply, at the price and the time that it had when it was asked for.

        A question without a usable one (None) may be paid, and nobody knows how much.
        """
        if reply is None:
            self.calls += 1
            self.unknown += 1
            self.untold += 1
            return
        if reply.is_hit:
            self.hits += 1
            usd, seconds = reply.asked_usd, reply.asked_seconds
        else:
            self.calls += 1 + len(reply.attempts) + reply.repairs
            usd, seconds = reply.cost_usd, reply.seconds
        self.unknown += usd is None
        self.usd += usd or 0.0
        self.seconds += seconds
        read, written = reply.usage.input_tokens, reply.usage.output_tokens
        self.untold += read is None or written is None
        self.input_tokens += read or 0
        self.output_tokens += written or 0

    @property
    def replies(self) -> float:
        """Questions and hits."""
        return self.calls + self.hits


_SUMS = tuple(each.name for each in fields(JudgementCost))


def with_share(graded: Graded, spent: JudgementCost, of: int, seconds: float) -> Graded:
    """A judgement with its share of what it and those beside it took."""
    share: dict[str, Json] = {name: value / of for name, value in asdict(spent).items() if value}
    if not spent.replies:
        share["seconds"] = seconds / of
    # First, for evidence is cut at its end; and never the grader's own word.
    details = {name: value for name, value in graded.details.items() if name != _SPENT}
    return replace(graded, details={_SPENT: share, **details})


def cost_of(judged: Iterable[Graded]) -> Cost:
    """What judgements took, each with its share.

    One without a share, of before shares were kept, makes time and price unknown.
    """
    sums, judgements, unshared = JudgementCost(), 0, 0
    for graded in judged:
        judgements += 1
        share = graded.details.get(_SPENT)
        if not isinstance(share, dict):
            unshared += 1
            continue
        for name in _SUMS:
            setattr(sums, name, getattr(sums, name) + _number(share, name))
    is_timed = judgements and not unshared
    asked = round(sums.replies)
    is_told = asked and not round(sums.untold) and not unshared
    return Cost(
        judgements=judgements,
        seconds=sums.seconds if is_timed else None,
        seconds_each=sums.seconds / judgements if is_timed else None,
        calls=round(sums.calls),
        hits=round(sums.hits),
        usd=sums.usd if asked else None,
        unknown=round(sums.unknown) + unshared,
        input_tokens=round(sums.input_tokens) if is_told else None,
        output_tokens=round(sums.output_tokens) if is_told else None,
    )


def _number(share: dict[str, Json], name: str) -> float:
    value = share.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
