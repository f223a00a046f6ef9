"""Language models: asked in one way, whoever serves them.

The names here are the public ones. What is heavy is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.models.asking import Check
    from assay.models.cache import ReplyCache
    from assay.models.client import ModelClient, current_client, unconfigured, using
    from assay.models.ledger import Budget, Entry, Ledger, LedgerSummary
    from assay.models.messages import Attempt, Message, Reply, Request, Usage
    from assay.models.prices import Prices
    from assay.models.reference import ModelRef, family_of, parse_reference, register_model
    from assay.models.resolving import Endpoint, resolve
    from assay.models.settings import EndpointSettings, ModelSettings

__all__ = [
    "Attempt",
    "Budget",
    "Check",
    "Endpoint",
    "EndpointSettings",
    "Entry",
    "Ledger",
    "LedgerSummary",
    "Message",
    "ModelClient",
    "ModelRef",
    "ModelSettings",
    "Prices",
    "Reply",
    "ReplyCache",
    "Request",
    "Usage",
    "current_client",
    "family_of",
    "parse_reference",
    "register_model",
    "resolve",
    "unconfigured",
    "using",
]

_PLACES = {
    "asking": ("Check",),
    "cache": ("ReplyCache",),
    "client": ("ModelClient", "current_client", "unconfigured", "using"),
    "ledger": ("Budget", "Entry", "Ledger", "LedgerSummary"),
    "messages": ("Attempt", "Message", "Reply", "Request", "Usage"),
    "prices": ("Prices",),
    "reference": ("ModelRef", "family_of", "parse_reference", "register_model"),
    "resolving": ("Endpoint", "resolve"),
    "settings": ("EndpointSettings", "ModelSettings"),
}
_PLACE = {name: place for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> object:
    place = _PLACE.get(name)
    if place is None:
        raise AttributeError(f"module 'assay.models' has no attribute {name!r}")
    value: object = getattr(import_module(f"assay.models.{place}"), name)
    globals()[name] = value
    return value
