"""Language models: asked in one way, whoever serves them.

The names here are the public ones. What is heavy is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.on_demand import names_on_demand

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
_PLACE = {name: f".{place}" for place, names in _PLACES.items() for name in names}

__getattr__ = names_on_demand(__name__, _PLACE)
