"""``python -m bench.beside``: who pays what, as a table."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias, get_args

from bench.beside.cases import ANSWERS, Case, Kind
from bench.beside.cases_code import CODE, GIVEN, HIDDEN
from bench.peers import BESIDE, Peer, PeerError, install

_HERE = Path(__file__).parent
_SECONDS = 900
CASES: tuple[Case, ...] = (*CODE, *ANSWERS)
"""Everything that is graded, in the order of the table."""

Told: TypeAlias = Mapping[str, "bool | str"]
"""Of each case by its id whether it was paid, or why it could not be graded."""


@dataclass(frozen=True, slots=True)
class Column:
    """What one peer paid.

    Attributes:
        name: The peer, with its version.
        told: What came of each case by its id. What is not there, the peer cannot express.
    """

    name: str
    told: Told = field(default_factory=dict[str, "bool | str"])

    def errors(self) -> str:
        """What went wrong, each once."""
        return "; ".join({said for said in self.told.values() if isinstance(said, str)})

    def faults(self, kinds: Sequence[str] = get_args(Kind)) -> tuple[int, int, int]:
        """How many unearned were paid, how many earned were not, and of how many."""
        graded = [
            (case, self.told[name]) for name, case in named(kinds).items() if name in self.told
        ]
        unearned = sum(not case.earned and said is True for case, said in graded)
        refused = sum(case.earned and said is not True for case, said in graded)
        return unearned, refused, len(graded)


def named(kinds: Sequence[str] = get_args(Kind)) -> dict[str, Case]:
    """The cases of these kinds by their ids."""
    return {f"case-{n}": case for n, case in enumerate(CASES) if case.kind in kinds}


def ask(peer: Peer, kinds: Sequence[str]) -> Told:
    """Let a peer grade, all in a directory that is thrown away.

    Raises:
        PeerError: If it did not answer.
    """
    own = peer.name == "assay"  # which has a sandbox of its own
    with tempfile.TemporaryDirectory(prefix="beside-") as place:
        here = place if own else "/tmp"
        asked = {
            "python": sys.executable,
            "given": GIVEN,
            "hidden": HIDDEN,
            "cases": [{"id": key, **_json(case)} for key, case in named(kinds).items()],
        }
        Path(place, "asked.json").write_text(json.dumps(asked), "utf-8")
        script = str(_HERE / f"by_{peer.name.replace('-', '_')}.py")
        command = [peer.python, script, f"{here}/asked.json", f"{here}/told.json"]
        try:
            done = subprocess.run(
                command if own else [*_contained(place), *command],
                cwd=place,
                env={
                    "PATH": os.environ["PATH"],
                    "HOME": here,
                    "TMPDIR": here,
                    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                    "PYTHONDONTWRITEBYTECODE": "1",
                },
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PeerError(str(error)) from error
        told = Path(place, "told.json")
        if not told.is_file():
            raise PeerError(f"{done.stderr.strip()[-2000:]}")
        return json.loads(told.read_text("utf-8"))


def _contained(place: str) -> list[str]:
    """Bubblewrap: nothing can be written but one directory, and what is left running is ended."""
    found = shutil.which("bwrap")
    if found is None:
        raise PeerError("there is no bwrap, in which the cheats are kept")
    apart = [
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--die-with-parent",
        "--new-session",
    ]
    return [
        found,
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", place, "/tmp"),
        *apart,
        *("--chdir", "/tmp"),
    ]


def _json(case: Case) -> dict[str, Any]:
    told = {key: getattr(case, key) for key in ("kind", "earned", "answer", "expected")}
    return {**told, "files": dict(case.files), "calls": list(case.calls)}


def table(columns: Sequence[Column], kinds: Sequence[str] = get_args(Kind)) -> str:
    """Every case in Markdown: what is right is a plain word, what is wrong is bold."""
    lines = [f"| | case | earned | {' | '.join(one.name for one in columns)} |"]
    lines.append("|---" * (3 + len(columns)) + "|")
    for name, case in named(kinds).items():
        cells = [_cell(case, column.told.get(name)) for column in columns]
        lines.append(f"| {case.kind} | {case.shown} | {_yes(case.earned)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(case: Case, said: bool | str | None) -> str:  # noqa: FBT001 - what was said
    if said is None:
        return "-"
    shown = "error" if isinstance(said, str) else _yes(said)
    return shown if (said is True) is case.earned else f"**{shown}**"


def _yes(paid: object) -> str:
    return "paid" if paid else "no"


def counts(columns: Sequence[Column], kinds: Sequence[str] = get_args(Kind)) -> str:
    """Of each kind and of all: unearned that was paid, earned that was not, of how many."""
    lines = [f"| | {' | '.join(one.name for one in columns)} |", "|---" * (1 + len(columns)) + "|"]
    for shown, some in [*((kind, [kind]) for kind in kinds), ("all", list(kinds))]:
        cells = [column.faults(some) for column in columns]
        told = [f"{paid} / {refused} of {n}" if n else "-" for paid, refused, n in cells]
        lines.append(f"| {shown} | {' | '.join(told)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask everybody who is here.

    Returns:
        0, whoever pays what; 1 where peers could not see the clone; 2 for arguments that make no
        sense.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.beside", description=__doc__)
    parser.add_argument("--only", action="append", choices=get_args(Kind), help="only this kind")
    names = ["assay", "pytest", *(one.name for one in BESIDE)]
    parser.add_argument("--peer", action="append", choices=names, help="only this one")
    parser.add_argument("--no-install", action="store_true", help="only peers that are there")
    parser.add_argument("--counts", action="store_true", help="only how many, not each case")
    options = parser.parse_args(arguments)
    hidden = [path for path in (str(_HERE), sys.executable) if Path(path).is_relative_to("/tmp")]
    if hidden:
        print(
            f"Peers do not see {hidden[0]}: /tmp is laid over by their workspace.", file=sys.stderr
        )
        print("Clone assay, and make its environment, somewhere else.", file=sys.stderr)
        return 1
    kinds = options.only or get_args(Kind)
    columns: list[Column] = []
    own = [Peer(name, version(name), Path(sys.executable).parent) for name in ("assay", "pytest")]
    for one in (*own, *BESIDE):
        if options.peer and one.name not in options.peer:
            continue
        try:
            peer = one if isinstance(one, Peer) else install(one, offline=options.no_install)
            print(f"asking {peer.name} ...", file=sys.stderr, flush=True)
            columns.append(Column(f"{peer.name} {peer.version}", ask(peer, kinds)))
            print(columns[-1].errors(), end="", file=sys.stderr)
        except PeerError as error:
            print(f"without {one.name}: {error}", file=sys.stderr)
    if not options.counts:
        print(table(columns, kinds), end="\n\n")
    print(counts(columns, kinds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
