"""`node --test` with the submission in a process of its own, without sandboxes around either.

What the orchestration does in a grading run is done here by hand: a judge's tree and a solution's,
a listening socket that the judge's runner inherits, and a launcher of solution hosts that connect.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.graders.testing.channel import FrameReader, RunnerReport
from tests.written_files import write_files

__all__ = ["INSIDE", "NODE", "SEED", "Told", "judge_apart"]

SEED = "5eed"
"""Of near misses."""

NODE = shutil.which("node") or "node"
INSIDE = Path(__file__).parents[3] / "src" / "assay" / "graders" / "testing" / "inside"
_KEY = bytes(range(32))


@dataclass(frozen=True, slots=True)
class Told:
    """What the report of a run says, why it cannot be genuine, and what both sides printed."""

    heard: RunnerReport
    forged: str
    output: str

    @property
    def outcomes(self) -> dict[str, str]:
        return {name: one.outcome for name, one in self.heard.outcomes.items()}

    @property
    def messages(self) -> dict[str, str]:
        """Those of what did not pass."""
        told = self.heard.outcomes
        return {name: one.message for name, one in told.items() if one.outcome != "passed"}

    def of(self, start: str) -> dict[str, str]:
        """The outcomes of tests whose id begins like this."""
        return {name: one for name, one in self.outcomes.items() if name.startswith(start)}


def judge_apart(
    hidden: Mapping[str, str],
    solution: Mapping[str, str],
    *words: str,
    loose: Sequence[str] = (),
    patience: float = 20.0,
    source: Mapping[str, str] | None = None,
    launcher: str | None = None,
    reference: Mapping[str, str] | None = None,
    contract: Mapping[str, object] | None = None,
) -> Told:
    """Run hidden test files against a solution, as far as a reference needs it.

    Args:
        hidden: Test files and what they load, by path.
        solution: Files of the submission.
        words: Of the command line behind ``node --test``.
        loose: What may decide by itself.
        patience: Seconds that one call may take.
        source: Files of the judge's tree that are not hidden.
        launcher: Source of a program that is run instead of the launcher of hosts.
        reference: Files that are run first, and give the contract; None for the solution's.
        contract: What a reference needed, if that is known already.
    """
    if contract is None:
        learning = {"seed": SEED, "learns": True}
        proven = judge_apart(
            hidden,
            reference or solution,
            *words,
            loose=loose,
            patience=patience,
            source=source,
            launcher=launcher,
            contract=learning,
        )
        contract = {"seed": SEED, "needs": proven.heard.needs}
    with tempfile.TemporaryDirectory(prefix="nj-") as root:
        judge, host = Path(root, "judge"), Path(root, "host")
        _write(judge, {**(source or {}), **hidden})
        _write(host, solution)
        place = Path(root, "link")
        start = INSIDE / "boundary" / "hosts.cjs"
        if launcher is not None:
            start = Path(root, "launcher.cjs")
            start.write_text(launcher, encoding="utf-8")
        ours, theirs = socket.socketpair()
        with socket.socket(socket.AF_UNIX) as listener, ours, theirs:
            listener.bind(str(place))
            listener.listen(16)
            hosts = subprocess.Popen(
                [NODE, str(start)],
                cwd=host,
                env={**os.environ, "ASSAY_LINK": str(place)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            brief: dict[str, object] = {
                "key": _KEY.hex(),
                "hidden": dict[str, str](),
                "canary": {"name": "canary", "planted": "planted"},
                "skip": [],
                "apart": {
                    "hidden": list(hidden),
                    "allow": list(loose),
                    "seconds": patience,
                    "contract": dict(contract),
                },
            }
            ours.sendall(json.dumps(brief).encode() + b"\n")
            env = {
                "ASSAY_LINK": str(listener.fileno()),
                "ASSAY_CHANNEL": str(theirs.fileno()),
                "ASSAY_ROOT": str(judge),
            }
            reader = FrameReader(_KEY)
            reading = threading.Thread(target=_read, args=(ours, reader))
            reading.start()
            try:
                run = subprocess.run(  # the exit status is the runner's to tell
                    [NODE, str(INSIDE / "node_run.cjs"), "--test", *words],
                    cwd=judge,
                    env={**os.environ, **env},
                    pass_fds=[listener.fileno(), theirs.fileno()],
                    capture_output=True,
                    timeout=100,
                    check=False,
                )
            finally:
                os.killpg(hosts.pid, 9)
                printed = hosts.communicate()[0]
                theirs.close()
                reading.join()
    output = (run.stdout + run.stderr + printed).decode(errors="replace")
    return Told(reader.heard, reader.forged, output)


def _read(ours: socket.socket, reader: FrameReader) -> None:
    while chunk := ours.recv(1 << 18):
        reader.feed(chunk)


def _write(root: Path, files: Mapping[str, str]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    write_files(root, files)
