"""What it costs to ask the command line for help."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from bench.peers import Peer
from bench.rows import Goal, Row
from bench.turns import OURS, cost_of, in_turn

__all__ = ["measure"]


def measure(peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]:
    """Whole processes of ``assay --help``."""
    things = {"assay": partial(cost_of, [str(OURS / "assay"), "--help"], cwd=scratch)}
    touchstone = peers.get("touchstone")
    if touchstone is not None:
        argv = [str(touchstone.bin / "touchstone"), "--help"]
        things["touchstone"] = partial(cost_of, argv, cwd=scratch)
    costs = in_turn(3 if quick else 9, things)
    return [
        Row(
            what="assay --help",
            measure="CPU",
            unit="s",
            ours=[cost.cpu for cost in costs["assay"]],
            peer=[cost.cpu for cost in costs.get("touchstone", [])],
            beside="touchstone",
            goal=Goal("below", 0.3),
        )
    ]
