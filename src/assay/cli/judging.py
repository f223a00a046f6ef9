"""The models that a command's graders ask: the options for them, the client, and what it cost."""

from __future__ import annotations

import math
import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.models import ModelClient
    from assay.models.ledger import Entry

__all__ = ["add_judging", "cost_so_far", "judging"]

_IN_USE: list[ModelClient] = []
"""The command's client, for all threads: a bar is drawn by one of its own."""

_TRIES = 3  # one that fails is nothing to speak of


def add_judging(parser: ArgumentParser) -> None:
    """Add the options of a command whose graders may ask models."""
    group = parser.add_argument_group("models that graders ask")
    group.add_argument(
        "--judge-cache",
        choices=("readwrite", "read", "replay", "off"),
        help="replies kept in .assay/models.sqlite and used again (readwrite, the default), only "
        "used (read), used or an error (replay), or neither",
    )
    group.add_argument(
        "--max-cost",
        type=_dollars,
        metavar="USD",
        help="stop asking models before they cost more",
    )


@contextmanager
def judging(given: Namespace) -> Generator[None]:
    """Within it, graders ask models as the options of a command say; the end says what it cost.

    Raises:
        InputError: For settings that make no sense.
    """
    if not hasattr(given, "judge_cache") or getattr(given, "function", None):
        yield  # nothing of it asks a model
        return
    from assay.cli.options import state_home
    from assay.models import ModelClient, ModelSettings, using
    from assay.models.ledger import Budget, Ledger
    from assay.models.prices import Prices

    changes: dict[str, Any] = {}
    if given.judge_cache is not None:
        changes["cache"] = given.judge_cache
    elif not {"ASSAY_CACHE", "ASSAY_MODELS"} & os.environ.keys():
        changes["cache"] = "readwrite"
    if "ASSAY_CACHE_FILE" not in os.environ:
        changes["cache_file"] = str(Path(state_home(), "models.sqlite"))
    if given.max_cost is not None:
        changes["max_cost_usd"] = given.max_cost
    settings = ModelSettings.from_environment(**changes)
    budget = None if settings.max_cost_usd is None else Budget(settings.max_cost_usd)
    ledger = Ledger(budget, Prices.load(settings.prices_file), _Alarm())
    client = ModelClient(settings, ledger=ledger)
    with using(client):
        _IN_USE.append(client)
        try:
            yield
        finally:
            summary = ledger.summary()
            if summary.groups:
                print(f"models: {summary}", file=sys.stderr)
            _IN_USE.remove(client)


def cost_so_far() -> str:
    """What models were asked and what it cost, in a line; "" while none was."""
    models = sys.modules.get("assay.models.client")
    if models is None:
        return ""
    from assay.models import current_client

    client = _IN_USE[-1] if _IN_USE else current_client()
    summary = client.ledger.summary()
    if summary.is_unanswered and summary.trouble:
        return f"{summary}: {summary.trouble}; asked again"
    return str(summary) if summary.groups else ""


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
        raise ArgumentTypeError(f"{text!r} is no amount in US dollars")
    return number
