"""What a judgement costs beside the model: one criterion, and a model that answers at once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import cast

from bench.peers import Peer
from bench.rows import Goal, Row
from bench.turns import clean_environment

__all__ = ["measure"]

_HERE = Path(__file__).resolve().parent
_PEERS = ("autoevals", "rubric", "deepeval", "hud")
_AT_ONCE = (1, 32, 256)
_SLOW = ("hud", "deepeval")
_LONG_RUN = 10_000


class _Client:
    """A process that judges when asked."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self.name = name
        self._process = process

    def round(self, count: int, at_once: int) -> dict[str, float]:
        """Times of one round, per judgement.

        Raises:
            RuntimeError: If it died, or judged wrongly.
        """
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"count": count, "at_once": at_once}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended while it judged")
        found = cast("dict[str, float]", json.loads(line))
        if found["right"] != 1.0:
            raise RuntimeError(f"{self.name} judged wrongly: {found}")
        return found


@contextmanager
def _process(argv: list[str], scratch: Path) -> Generator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        argv,
        cwd=scratch,
        env=clean_environment(scratch),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        assert process.stdin
        assert process.stdout
        process.stdin.close()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def measure(peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]:
    """CPU and wall time of a judgement, at 1, 32 and 256 at once, in turns."""
    rounds, count = (2, 256) if quick else (5, 1_024)
    home = scratch / "judges"
    home.mkdir()
    rows: list[Row] = []
    with ExitStack() as stack:
        server = stack.enter_context(
            _process([sys.executable, str(_HERE / "judge_server.py")], home)
        )
        assert server.stdout
        url = str(json.loads(server.stdout.readline())["url"])

        def start(name: str, python: str) -> _Client:
            argv = [python, str(_HERE / "judge_clients.py"), name, url]
            return _Client(name, stack.enter_context(_process(argv, home)))

        ours = start("assay", sys.executable)
        clients = {
            "assay": ours,
            "aiohttp": start("floor", sys.executable),
            "cached": start("cached", sys.executable),
            **{name: start(name, peers[name].python) for name in _PEERS if name in peers},
        }
        for at_once in _AT_ONCE:
            rows += _compared(clients, at_once, rounds=rounds, count=count)
        if not quick:
            rows.append(_long_run(ours))
    return rows


def _compared(
    clients: Mapping[str, _Client], at_once: int, *, rounds: int, count: int
) -> list[Row]:
    found: dict[str, list[dict[str, float]]] = {name: [] for name in clients}
    for client in clients.values():
        client.round(max(32, at_once), at_once)  # connections and first imports
    for _ in range(rounds):
        for name, client in clients.items():
            few = max(64, at_once) if name in _SLOW else max(count // 4, at_once * 2)
            found[name].append(client.round(few, at_once))
    rows: list[Row] = []
    for name in (name for name in clients if name not in ("assay", "cached")):
        for measure in ("cpu", "wall"):
            mine = [one[measure] for one in found["assay"]]
            theirs = [one[measure] for one in found[name]]
            goal = None
            if name == "aiohttp" and measure == "cpu":
                goal = Goal("at_most", 2.0)
            elif name != "aiohttp" and measure == "wall" and at_once == 256:
                goal = Goal("times_less", 5.0)
            rows.append(
                Row(
                    what=f"a judgement, {at_once} at once ({1 / min(mine):,.0f}/s)"
                    if measure == "wall"
                    else f"a judgement, {at_once} at once",
                    measure="CPU" if measure == "cpu" else "wall",
                    unit="ms",
                    ours=mine,
                    peer=theirs,
                    beside=name,
                    goal=goal,
                    over=name == "aiohttp",
                )
            )
    kept = [one["cpu"] for one in found["cached"]]
    bare = [one["cpu"] for one in found["aiohttp"]]
    rows.append(
        Row(
            what=f"a judgement kept in the cache, {at_once} at once",
            measure="CPU",
            unit="ms",
            ours=kept,
            peer=bare,
            beside="aiohttp",
            over=True,
        )
    )
    return rows


def _long_run(ours: _Client) -> Row:
    """Ten thousand judgements, and how much memory the last nine thousand needed."""
    before = ours.round(1_000, 256)
    after = ours.round(_LONG_RUN - 1_000, 256)
    grown = after["peak_mib"] - before["peak_mib"]
    return Row(
        what=f"a judgement of {_LONG_RUN:,} in a row",
        measure="CPU",
        unit="ms",
        ours=[after["cpu"]],
        note=f"peak memory {after['peak_mib']:.0f} MiB, {grown:+.1f} MiB since the first 1,000",
    )
