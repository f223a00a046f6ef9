"""The models behind a grader: repeats of a question kept apart, and what asking has cost."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from assay.eval.calibration.card import Cost

__all__ = ["Spending", "asked_again"]

_APART = 1_000
"""Repeats of a whole judgement are this far apart: a judge may itself ask several times."""


def asked_again(repeat: int) -> AbstractContextManager[object]:
    """What is asked of models within it is another asking than that of other repeats.

    Without it, a cache would answer a repeat with the first reply, and no judge would ever flip.
    """
    if repeat == 0:
        return nullcontext()
    from assay.models import ModelClient, Reply, Request, current_client, using
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


class Spending:
    """What models have cost since it was made."""

    def __init__(self) -> None:
        self._before = _totals()

    def cost(self, *, judgements: int, seconds: float, busy_seconds: float) -> Cost:
        """What it took to make some judgements.

        Args:
            judgements: How many.
            seconds: Wall time.
            busy_seconds: Time of all judgements added up.
        """
        after = _totals()
        calls, hits, usd, unknown, read, written = (
            now - then for now, then in zip(after, self._before, strict=True)
        )
        return Cost(
            judgements=judgements,
            seconds=seconds,
            seconds_each=busy_seconds / judgements if judgements else None,
            calls=int(calls),
            hits=int(hits),
            usd=usd if calls or hits else None,
            unknown=int(unknown),
            input_tokens=int(read),
            output_tokens=int(written),
        )


def _totals() -> tuple[float, ...]:
    """Calls, hits, dollars, answers of unknown price, tokens read and written; all so far."""
    if "assay.models.client" not in sys.modules:
        return (0.0,) * 6
    from assay.models import current_client

    summary = current_client().ledger.summary()
    hits, every = summary.total(kind="hit"), summary.total()
    return (
        every.count - hits.count,
        hits.count,
        every.cost_usd,
        every.unknown,
        every.input_tokens - hits.input_tokens,
        every.output_tokens - hits.output_tokens,
    )
