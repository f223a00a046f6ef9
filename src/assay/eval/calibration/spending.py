"""The models behind a grader: repeats of a question kept apart, and what asking costs."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING

from assay.errors import StoreError
from assay.eval.calibration.card import Cost
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json

if TYPE_CHECKING:
    from assay.models import ModelClient, Reply
    from assay.models.recordings import ReplyFile

__all__ = ["Spent", "asked_again", "cost_of", "counting", "with_share"]

_APART = 1_000
"""Repeats of a whole judgement are this far apart: a judge may itself ask several times."""

_SPENT = "_spent"
"""Where a judgement keeps what it took."""


def asked_again(repeat: int) -> AbstractContextManager[object]:
    """What is asked of models within it is another asking than that of other repeats.

    Without it, a cache would answer a repeat with the first reply, and no judge would ever flip.
    """
    if repeat == 0:
        return nullcontext()
    from assay.models import ModelClient, Request, current_client, using
    from assay.models.asking import Check
    from assay.models.routes import Route

    asked = current_client()

    class Again(ModelClient):
        """The client of everybody, under other numbers."""

        def __init__(self) -> None:
            # Nothing is set up: everything goes through the client that there is.
            self.settings, self.ledger = asked.settings, asked.ledger

        async def complete(self, request: Request) -> Reply:
            return await asked.complete(_numbered(request))

        async def ask(self, request: Request, check: Check | None = None) -> Reply:
            return await asked.ask(_numbered(request), check)

        def route(self, reference: str) -> Route:
            return asked.route(reference)

        async def aclose(self) -> None:
            """What it asks through is not its own."""

    def _numbered(request: Request) -> Request:
        return replace(request, repeat=request.repeat + _APART * repeat)

    return using(Again())


@dataclass(slots=True)
class Spent:
    """What some judgements take when they are asked for, whether or not a cache had the replies.

    Shares of it are fractions; those of all judgements add up to whole questions.

    Attributes:
        calls: Questions to models, with those that were asked again.
        hits: Replies from the cache.
        usd: US dollars, where prices are known; of a hit what it cost when it was asked for.
        unknown: Replies, and questions without one, of unknown price.
        seconds: From asked to answered, added up; of a hit the time that it took.
        untimed: Replies of which nobody knows the time.
        input_tokens: Read.
        output_tokens: Written.
        untold: Replies of which nobody knows the tokens.
    """

    calls: float = 0.0
    hits: float = 0.0
    usd: float = 0.0
    unknown: float = 0.0
    seconds: float = 0.0
    untimed: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    untold: float = 0.0

    def add(self, reply: Reply, *, usd: float | None, seconds: float | None) -> None:
        """Count a reply, at what it costs and the time that it takes where these are known."""
        if reply.is_hit:
            self.hits += 1
        else:
            self.calls += 1 + len(reply.attempts) + reply.repairs
        self.unknown += usd is None
        self.usd += usd or 0.0
        self.untimed += seconds is None
        self.seconds += seconds or 0.0
        read, written = reply.usage.input_tokens, reply.usage.output_tokens
        self.untold += read is None or written is None
        self.input_tokens += read or 0
        self.output_tokens += written or 0

    def failed(self) -> None:
        """Count a question without a usable reply: it may be paid, and nobody knows how much."""
        self.calls += 1
        self.unknown += 1
        self.untold += 1

    @property
    def replies(self) -> float:
        """Questions and hits."""
        return self.calls + self.hits


_SUMS = tuple(each.name for each in fields(Spent))


@contextmanager
def counting() -> Generator[Spent]:
    """Count what is asked of models within it, and by the tasks that are started there."""
    spent = Spent()
    if "assay.models.client" not in sys.modules:  # nothing here asks a model
        yield spent
        return
    from assay.errors import ModelError
    from assay.models import ModelClient, Request, current_client, using
    from assay.models.asking import Check
    from assay.models.routes import Route

    asked = current_client()
    recordings = _Recordings(asked)

    class Counted(ModelClient):
        """The client of everybody, and what its replies took."""

        def __init__(self) -> None:
            self.settings, self.ledger = asked.settings, asked.ledger

        async def complete(self, request: Request) -> Reply:
            try:
                return self._counted(request, await asked.complete(request))
            except ModelError:
                spent.failed()
                raise

        async def ask(self, request: Request, check: Check | None = None) -> Reply:
            try:
                return self._counted(request, await asked.ask(request, check))
            except ModelError:
                spent.failed()
                raise

        def _counted(self, request: Request, reply: Reply) -> Reply:
            if reply.is_hit:
                usd, seconds = recordings.took(request.model, reply)
            else:
                usd, seconds = reply.cost_usd, reply.seconds
            spent.add(reply, usd=usd, seconds=seconds)
            return reply

        def route(self, reference: str) -> Route:
            return asked.route(reference)

        async def aclose(self) -> None:
            """What it asks through is not its own."""

    try:
        with using(Counted()):
            yield spent
    finally:
        recordings.close()


class _Recordings:
    """What the replies of a client's cache took when they were asked for.

    A hit itself costs nothing and takes no time; what is stored with it says more.
    """

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self._file: ReplyFile | None = None

    def took(self, model: str, hit: Reply) -> tuple[float | None, float | None]:
        """US dollars and seconds; None for what is not known."""
        record = self._record(hit.digest)
        usd, seconds = (_number(record, name) for name in ("cost_usd", "seconds"))
        prices = self._client.ledger.prices
        if usd is None and prices is not None:
            usd = prices.cost(self._client.route(model).priced, hit.usage)
        return usd, seconds

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _record(self, digest: str) -> Json:
        from assay.models.recordings import RecordError, ReplyFile, unpack

        try:
            if self._file is None:
                self._file = ReplyFile(self._client.settings.cache_file, writable=False)
            value = self._file.get(bytes.fromhex(digest))
            return None if value is None else unpack(value)
        except (StoreError, RecordError):  # a cache elsewhere, or none that can be read
            return None


def _number(record: Json, name: str) -> float | None:
    value = record.get(name) if isinstance(record, dict) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def with_share(graded: Graded, spent: Spent, of: int, seconds: float) -> Graded:
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
    sums, judgements, unshared = Spent(), 0, 0
    for graded in judged:
        judgements += 1
        share = graded.details.get(_SPENT)
        if not isinstance(share, dict):
            unshared += 1
            continue
        for name in _SUMS:
            setattr(sums, name, getattr(sums, name) + (_number(share, name) or 0.0))
    is_timed = judgements and not round(sums.untimed) and not unshared
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
