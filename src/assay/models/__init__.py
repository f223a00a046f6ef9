"""Language models: asked in one way, whoever serves them.

The names here are the public ones. What is heavy is loaded when it is first used; the client that
graders ask through, when one of them first asks: most runs ask nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING

from assay.on_demand import names_on_demand

if TYPE_CHECKING:
    from assay.conversation.messages import Attempt, Message, Reply, ReplyUsage, Request
    from assay.models.asking import Check
    from assay.models.cache import ReplyCache
    from assay.models.client import ModelClient, current_client, unconfigured, using
    from assay.models.ledger import Budget, Entry, Ledger, LedgerSummary
    from assay.models.prices import Prices
    from assay.models.reference import ModelRef, family_of, parse_reference, register_model
    from assay.models.resolving import Endpoint, resolve
    from assay.models.settings import ModelEntry, ModelSettings

__all__ = [
    "Attempt",
    "Budget",
    "Check",
    "Endpoint",
    "Entry",
    "Ledger",
    "LedgerSummary",
    "Message",
    "ModelClient",
    "ModelEntry",
    "ModelRef",
    "ModelSettings",
    "Prices",
    "Reply",
    "ReplyCache",
    "ReplyUsage",
    "Request",
    "current_client",
    "family_of",
    "parse_reference",
    "register_model",
    "resolve",
    "unconfigured",
    "using",
    "watched",
]

_PLACES = {
    "assay.conversation.messages": ("Attempt", "Message", "Reply", "Request", "ReplyUsage"),
    ".asking": ("Check",),
    ".cache": ("ReplyCache",),
    ".client": ("ModelClient", "current_client", "unconfigured", "using"),
    ".ledger": ("Budget", "Entry", "Ledger", "LedgerSummary"),
    ".prices": ("Prices",),
    ".reference": ("ModelRef", "family_of", "parse_reference", "register_model"),
    ".resolving": ("Endpoint", "resolve"),
    ".settings": ("ModelEntry", "ModelSettings"),
}
_PLACE = {name: place for place, names in _PLACES.items() for name in names}

__getattr__ = names_on_demand(__name__, _PLACE)


_MAKING: ContextVar[Callable[[], ModelClient] | None] = ContextVar(
    "assay_model_client_to_come", default=None
)


def client_to_come() -> Callable[[], ModelClient] | None:
    """What makes the client of the block that is run, once; None outside of `using_when_asked`.

    Whoever calls it holds the lock of `assay.models.client`.
    """
    return _MAKING.get()


@contextmanager
def using_when_asked(make: Callable[[], ModelClient]) -> Generator[None]:
    """Like `assay.models.using`, with a client that is made only if somebody asks a model."""
    token = _MAKING.set(cache(make))
    try:
        yield
    finally:
        _MAKING.reset(token)


_WATCH: ContextVar[tuple[Callable[[Reply | None], None], int] | None] = ContextVar(
    "assay_watch_of_models", default=None
)


def watch_here() -> tuple[Callable[[Reply | None], None], int] | None:
    """What `watched` was given for the block that is run; None outside of it."""
    return _WATCH.get()


@contextmanager
def watched(told: Callable[[Reply | None], None], *, repeat: int = 0) -> Generator[None]:
    """Be told what came of every question to a model in the block and in the tasks it starts.

    A block within it is watched for itself alone.

    Args:
        told: Is given each reply, also from the cache; None for a question without a usable one.
        repeat: Added to that of every question, so that a cache does not answer this asking of the
            block with the replies of another one.
    """
    token = _WATCH.set((told, repeat))
    try:
        yield
    finally:
        _WATCH.reset(token)
