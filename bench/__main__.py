"""``python -m bench``: measure, and print a table."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from bench import (
    bash,
    calls,
    completions,
    datasets,
    functions,
    hidden_tests,
    imports,
    judges,
    matrix,
    rollouts,
    sandbox,
    server,
    startup,
)
from bench.machine import describe
from bench.peers import EVALUATORS, PEERS, SERVERS, TRAINERS, Peer, PeerError, install
from bench.rows import Row, as_json, table


class Measure(Protocol):
    """Takes one kind of measurement."""

    def __call__(self, peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]: ...


MEASUREMENTS: dict[str, Measure] = {
    "import": imports.measure,
    "calls": calls.measure,
    "completions": completions.measure,
    "datasets": datasets.measure,
    "matrix": matrix.measure,
    "bash": bash.measure,
    "rollouts": rollouts.measure,
    "sandbox": sandbox.measure,
    "functions": functions.measure,
    "tests": hidden_tests.measure,
    "judges": judges.measure,
    "server": server.measure,
    "startup": startup.measure,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for.

    Returns:
        0, whatever was measured; 2 for arguments that make no sense.
    """
    options = _parser().parse_args(arguments)
    names = options.only or list(MEASUREMENTS)
    peers = _peers(names, offline=options.no_install)
    before = describe()
    print(before.line())
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as scratch:
        for name in names:
            print(f"measuring: {name} ...", file=sys.stderr, flush=True)
            try:
                found = MEASUREMENTS[name](peers, Path(scratch), quick=options.quick)
            except RuntimeError as error:
                print(f"\n{name} could not be measured: {error}", flush=True)
                continue
            print(table(name, found, markdown=options.markdown), flush=True)
            rows += found
    after = describe()
    print(f"load average: {before.load[0]:.1f} at the start, {after.load[0]:.1f} at the end")
    if options.json:
        written = {
            "before": before.as_json(),
            "after": after.as_json(),
            "quick": options.quick,
            "peers": {name: peer.version for name, peer in peers.items()},
            "rows": [as_json(row) for row in rows],
        }
        Path(options.json).write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=MEASUREMENTS, help="only this measurement; repeatable"
    )
    parser.add_argument("--json", metavar="FILE", help="also write every sample as JSON")
    parser.add_argument("--markdown", action="store_true", help="tables as Markdown, for docs")
    parser.add_argument("--quick", action="store_true", help="few rounds: a rough look")
    parser.add_argument(
        "--no-install", action="store_true", help="use only the peers that are already there"
    )
    return parser


def _peers(names: Sequence[str], *, offline: bool) -> dict[str, Peer]:
    """Every peer that is needed and can be had; what cannot is said and left out."""
    found: dict[str, Peer] = {}
    large = {"completions": TRAINERS, "server": SERVERS, "matrix": EVALUATORS}
    for wanted in (*PEERS, *(one for name in names for one in large.get(name, ()))):
        try:
            found[wanted.name] = install(wanted, offline=offline)
        except PeerError as error:
            print(f"without {wanted.name}: {error}", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(main())
