"""The models that a command's graders ask: the options, the client, the progress, the cost."""

from __future__ import annotations

import math
import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli.options import state_home

if TYPE_CHECKING:
    from assay.graders.spec import GraderSpec
    from assay.models import ModelClient
    from assay.models.bill import Bill
    from assay.models.ledger import Entry


_IN_USE: list[ModelClient] = []
"""The command's client, for all threads: a bar is drawn by one of its own."""

_SETTINGS = frozenset(
    ("ASSAY_MODELS", "ASSAY_CACHE", "ASSAY_CACHE_FILE", "ASSAY_MAX_COST_USD", "ASSAY_GATEWAY")
)
"""Variables that say how models are asked, and can be wrong."""

_TRIES = 3  # one that fails is nothing to speak of


def add_judging(parser: ArgumentParser) -> None:
    """Add the options of a command whose graders may ask models."""
    group = parser.add_argument_group("models that graders ask")
    group.add_argument(
        "--max-cost",
        type=_dollars,
        metavar="USD",
        help="stop asking models before they cost more; $ASSAY_CACHE says what replies are kept",
    )


@contextmanager
def judging(given: Namespace) -> Generator[None]:
    """Within it, graders ask models as the options of a command say; the end says what it cost.

    The client is made when a grader first asks for it: most commands ask no model. Where anything
    was set, it is made at once, so that settings that make no sense are told before any work.
    """
    made: list[ModelClient] = []

    def make() -> ModelClient:
        made.append(_client_of(given))
        _IN_USE.append(made[0])
        return made[0]

    is_set = given.max_cost is not None
    try:
        is_loaded = "assay.models.client" in sys.modules  # and may have another client in use
        if is_set or is_loaded or not _SETTINGS.isdisjoint(os.environ):
            from assay.models import using

            with using(make()):
                yield
        else:
            from assay.models import using_when_asked

            with using_when_asked(make):
                yield
    finally:
        for client in made:
            summary = client.ledger.summary()
            if summary.groups:
                print(f"models: {summary}", file=sys.stderr)
            _IN_USE.remove(client)


def _client_of(given: Namespace) -> ModelClient:
    from assay.models import ModelClient, ModelSettings
    from assay.models.ledger import Budget, Ledger
    from assay.models.prices import Prices

    changes: dict[str, Any] = {}
    if not {"ASSAY_CACHE", "ASSAY_MODELS"} & os.environ.keys():
        changes["cache"] = "readwrite"
    if "ASSAY_CACHE_FILE" not in os.environ:
        changes["cache_file"] = str(Path(state_home(), "models.sqlite"))
    if given.max_cost is not None:
        changes["max_cost_usd"] = given.max_cost
    settings = ModelSettings.from_environment(**changes)
    budget = None if settings.max_cost_usd is None else Budget(settings.max_cost_usd)
    ledger = Ledger(budget, Prices.load(settings.prices_file), _Alarm())
    return ModelClient(settings, ledger=ledger)


def cost_so_far() -> str:
    """What models were asked and what it cost, in a line; "" while none was."""
    if not _IN_USE:
        return ""
    summary = _IN_USE[-1].ledger.summary()
    if summary.is_unanswered and summary.trouble:
        return f"{summary}: {summary.trouble}; asked again"
    foretold = _BILLS[-1].short if _BILLS else ""
    return f"{summary}{foretold and f' of {foretold}'}" if summary.groups else ""


_BILLS: list[Bill] = []
"""What the command's work will cost."""


@contextmanager
def billed(
    items: int, things: str, graders: Iterable[GraderSpec], *, also: bool = False
) -> Generator[Bill | None]:
    """Within it, a piece of work is done whose cost is foretold; None where nobody is asked.

    Args:
        items: How many there are to do.
        things: What they are called.
        graders: What grades them.
        also: Whether somebody else asks models, such as agents.
    """
    if not also and not any(spec.kind.grader.models_of(spec.options) for spec in graders):
        yield None
        return
    from assay.models import current_client
    from assay.models.bill import Bill
    from assay.turns import told_of_charges

    bill = Bill(items, things, budget=current_client().settings.max_cost_usd)
    if not sys.stderr.isatty():  # a bar says it
        bill.listen(say_bill)
    _BILLS.append(bill)
    try:
        with told_of_charges(lambda charges: bill.ended(charges.usd, charges.calls)):
            yield bill
    finally:
        _BILLS.remove(bill)


def say_bill(line: str) -> None:
    """Say what work will cost."""
    if line:
        print(f"models: {line}", file=sys.stderr)


class _Alarm:
    """Says once, where no bar is drawn that would, that nobody answers, and why."""

    def __init__(self) -> None:
        self._failed = 0

    def __call__(self, entry: Entry) -> None:
        """Look at what a try came to; once there is an answer, all is well."""
        if entry.kind in ("call", "repair", "hit") or self._failed < 0:
            self._failed = -1
            return
        self._failed += bool(entry.why)
        if self._failed == _TRIES and entry.why and not sys.stderr.isatty():
            print(f"models: {entry.why}; asked again", file=sys.stderr)


def _dollars(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not (math.isfinite(number) and number >= 0):
        raise ArgumentTypeError(f"{text!r} is not an amount in US dollars")
    return number
