"""The models that a command's graders ask: the options for them, the client, and what it cost."""

from __future__ import annotations

import math
import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["add_judging", "cost_so_far", "judging"]


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

    changes: dict[str, Any] = {}
    if given.judge_cache is not None:
        changes["cache"] = given.judge_cache
    elif not {"ASSAY_CACHE", "ASSAY_MODELS"} & os.environ.keys():
        changes["cache"] = "readwrite"
    if "ASSAY_CACHE_FILE" not in os.environ:
        changes["cache_file"] = str(Path(state_home(), "models.sqlite"))
    if given.max_cost is not None:
        changes["max_cost_usd"] = given.max_cost
    client = ModelClient(ModelSettings.from_environment(**changes))
    with using(client):
        try:
            yield
        finally:
            if said := cost_so_far():
                print(f"models: {said}", file=sys.stderr)


def cost_so_far() -> str:
    """What models were asked and what it cost, in a line; "" while none was."""
    models = sys.modules.get("assay.models.client")
    if models is None:
        return ""
    from assay.models import current_client

    summary = current_client().ledger.summary()
    return str(summary) if summary.groups else ""


def _dollars(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not (math.isfinite(number) and number >= 0):
        raise ArgumentTypeError(f"{text!r} is no amount in US dollars")
    return number
