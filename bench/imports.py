"""What ``import`` costs: a reward function is imported in every worker of a pool."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from bench.peers import Peer
from bench.rows import Goal, Row
from bench.turns import Cost, cost_of, in_turn

__all__ = ["measure"]


def measure(peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]:
    """Whole processes of ``python -c "import ..."``; nothing is subtracted."""
    commands = {
        "pass": (sys.executable, "pass"),
        "assay": (sys.executable, "import assay"),
        "graders": (sys.executable, "import assay.graders"),
    }
    hud = peers.get("hud")
    if hud is not None:
        commands["hud pass"] = (hud.python, "pass")
        commands["hud"] = (hud.python, "import hud.graders")
    things = {
        name: partial(cost_of, [python, "-c", code], cwd=scratch)
        for name, (python, code) in commands.items()
    }
    costs = in_turn(3 if quick else 9, things)

    def cpu(name: str) -> list[float]:
        found: list[Cost] = costs.get(name, [])
        return [cost.cpu for cost in found]

    missing = "" if hud else "hud is not installed"
    return [
        Row(
            what="python -c pass (the floor)",
            measure="CPU",
            unit="ms",
            ours=cpu("pass"),
            peer=cpu("hud pass"),
            beside="hud's",
        ),
        Row(
            what="import assay",
            measure="CPU",
            unit="ms",
            ours=cpu("assay"),
            peer=cpu("hud"),
            beside="hud.graders",
        ),
        Row(
            what="import assay.graders",
            measure="CPU",
            unit="ms",
            ours=cpu("graders"),
            peer=cpu("hud"),
            beside="hud.graders",
            goal=Goal("times_less", 20),
            note=missing,
        ),
    ]
