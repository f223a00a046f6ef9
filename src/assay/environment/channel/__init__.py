"""The control channel: environments served to those elsewhere, and asked from here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.on_demand import names_on_demand

if TYPE_CHECKING:
    from assay.environment.channel.client import ChannelClient, connect
    from assay.environment.channel.link import Address

__all__ = ["Address", "ChannelClient", "connect"]

__getattr__ = names_on_demand(
    __name__, {"Address": ".link", "ChannelClient": ".client", "connect": ".client"}
)
