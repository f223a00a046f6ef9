"""Call functions that nobody trusts, at the speed of a fork."""

from __future__ import annotations

from assay.sandbox.functions.pool import FunctionPool, load_once, owned_by, pool_for
from assay.sandbox.functions.program import (
    FunctionLimits,
    Isolation,
    LoadReport,
    Outcome,
    OutcomeStatus,
    Program,
    TierChoice,
)
from assay.sandbox.functions.session import LoadFailedError

__all__ = [
    "FunctionLimits",
    "FunctionPool",
    "Isolation",
    "LoadFailedError",
    "LoadReport",
    "Outcome",
    "OutcomeStatus",
    "Program",
    "TierChoice",
    "load_once",
    "owned_by",
    "pool_for",
]
