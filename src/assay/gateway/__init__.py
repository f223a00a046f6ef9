"""The gateway of a cell: what its agent asks of a model passes here, is limited and recorded.

Keys, addresses, retries and budgets stay outside of the agent's sandbox; the gateway is the only
network that it has. What passes is the trace, which no agent can write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.on_demand import names_on_demand

if TYPE_CHECKING:
    from assay.gateway.allowance import Allowance
    from assay.gateway.gateway import Gateway
    from assay.gateway.trace import Recorded

__all__ = ["Allowance", "Gateway", "Recorded"]

_HOMES = {
    "Allowance": ".allowance",
    "Gateway": ".gateway",
    "Recorded": ".trace",
}

__getattr__ = names_on_demand(__name__, _HOMES)
