"""What grading by hidden tests costs over running them: three as a whole, and single questions."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from tests.containers import make_root

from assay.graders import PytestGrader
from assay.graders.testing.contract import Contract
from assay.types import Workspace
from bench.peers import Peer
from bench.rows import MEASURES, Goal, Measure, Row
from bench.turns import OURS, Cost, cost_of, in_turn

__all__ = ["measure"]

_MODES = ("process", "shared")
_START_SECONDS = 0.3
"""A fixed start that the goal allows: the program, the store, the sandbox."""

# Both read this file; the harness changes nothing, the source is solved already.
_CASE = """\
id: kit
task:
  prompt: Leave everything as it is.
source:
  path: source
matrix:
  harnesses: [echo]
  models: [none]
graders:
  - type: pytest
    inject: [./hidden/test_hidden.py]
    isolation: MODE
"""
_SOURCE = "def double(x):\n    return x * 2\n"
_TESTS = """\
from kit import double


def test_number():
    assert double(4) == 8


def test_text():
    assert double("ab") == "abab"


def test_list():
    assert double([1]) == [1, 1]
"""
# What single questions of a judge apart cost, told by the test that asks them. The floors are taken
# in the same two processes: a socket to a fork of the judge, and forks of the submission's process.
_ASKED = """\
import os


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return isinstance(other, Point) and (self.x, self.y) == (other.x, other.y)


def double(x):
    return x * 2


def point():
    return Point(2, 1)


def forks(count):
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
"""
_ASKS = """\
import json, os, socket, time
from kit import Point, double, forks, point

COUNT = %d
CALL, REPLY = bytes(%d), bytes(%d)


def spent(count, ask):
    started = time.perf_counter()
    for _ in range(count):
        ask()
    return (time.perf_counter() - started) / count


def call():
    assert double(4) == 8


def equality():
    assert found == expected


def test_cost():
    global found, expected
    here, there = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        here.close()
        while there.recv(len(CALL), socket.MSG_WAITALL):
            there.sendall(REPLY)
        os._exit(0)
    there.close()

    def bare():
        here.sendall(CALL)
        here.recv(len(REPLY), socket.MSG_WAITALL)

    found, expected = point(), Point(2, 1)
    told = {
        "socket": spent(COUNT, bare),
        "call": spent(COUNT, call),
        "equality": spent(COUNT // 40, equality),
        "fork": spent(1, lambda: forks(COUNT // 10)) / (COUNT // 10),
    }
    here.close()
    os.waitpid(pid, 0)
    assert COUNT == %d, json.dumps(told)
"""
_FEW, _MANY = 40, 2_000
_CALL_BYTES, _REPLY_BYTES = 30, 12
"""What a call of ``double`` sends, and what is answered."""
# No plugins of whoever measures: they would be a part of all three.
_ENV = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": f"{OURS}:/usr/local/bin:/usr/bin:/bin"}
_PODMAN = (
    "--runtime runc --cgroup-manager cgroupfs --events-backend none run --rm --network none "
    "--ulimit nofile=1024:1024 --ulimit nproc=1024:1024 --tmpfs /tmp --workdir /app "
    "--env PYTHONPATH=/packages:/app --env PYTEST_DISABLE_PLUGIN_AUTOLOAD=1"
)


def measure(peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]:
    """Whole processes: ``assay run`` in both modes, touchstone, podman, and bare pytest."""
    root = scratch / "hidden-tests"
    bare = root / "bare"
    texts = {bare / "kit.py": _SOURCE, bare / "test_hidden.py": _TESTS}
    for mode in _MODES:
        case = root / mode / "kit"
        texts[case / "case.yaml"] = _CASE.replace("MODE", mode)
        texts[case / "source" / "kit.py"] = _SOURCE
        texts[case / "recordings" / "reference" / "answer.txt"] = "done"
        texts[case / "hidden" / "test_hidden.py"] = _TESTS
    for place, text in texts.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    things = {"bare": partial(_bare, bare)}
    things.update({mode: partial(_assay, root, mode) for mode in _MODES})
    if touchstone := peers.get("touchstone"):
        things["touchstone"] = partial(_touchstone, touchstone, root)
    if shutil.which("podman") and os.geteuid() == 0:
        things["podman"] = partial(_podman, bare, make_root(root / "image", python=True))
    costs = in_turn(3 if quick else 11, things)
    rows: list[Row] = []
    for counted in MEASURES:
        floor = _of(costs["bare"], counted)
        goal = Goal("at_most", 1.3) if counted == "wall" else None
        for mode in _MODES:
            what, ours = f"assay run ({mode})", _of(costs[mode], counted)
            rows.append(_row(what, ours, floor, "bare pytest", counted=counted))
            beyond = [max(0.0, seconds - _START_SECONDS) for seconds in ours]
            what += " beyond 300 ms"
            rows.append(_row(what, beyond, floor, "bare pytest", counted=counted, goal=goal))
        apart, together = _of(costs["process"], counted), _of(costs["shared"], counted)
        rows.append(_row("assay run (process)", apart, together, "shared", counted=counted))
        if "touchstone" in costs:
            theirs = _of(costs["touchstone"], counted)
            rows.append(_row("touchstone run", theirs, floor, "bare pytest", counted=counted))
            rows.append(_row("assay run (process)", apart, theirs, "touchstone", counted=counted))
        if "podman" in costs and counted == "wall":  # what works in a container is not its child
            theirs = _of(costs["podman"], counted)
            less = Goal("times_less", 3)
            rows.append(
                _row("assay run (process)", apart, theirs, "podman", counted=counted, goal=less)
            )
    return [*rows, *_questions(root / "asked", quick=quick)]


def _questions(root: Path, *, quick: bool) -> list[Row]:
    """Wall time of single questions across the boundary, each beside its floor in the same run."""
    found: dict[str, list[float]] = {}
    contract = Contract(seed="5eed", learns=True)
    for count in (_FEW, *[_MANY] * (3 if quick else 11)):
        node = _asked(root, count, contract)
        if contract.learns:
            contract = Contract.of_runs(contract.seed, [node["needs"]])
            continue
        said = node["tests"][0]["message"]
        try:
            told = json.JSONDecoder().raw_decode(said[said.index("{") :])[0]
        except ValueError:
            raise RuntimeError(f"no figures: {said}") from None
        for name, seconds in told.items():
            found.setdefault(name, []).append(seconds)
    row = partial(_row, counted="wall")
    call, equality = found["call"], found["equality"]
    return [
        row("a call of plain values", call, found["socket"], "a bare socket", unit="us"),
        row("an equality of two objects", equality, found["fork"], "a bare fork and exit"),
        row("an equality of two objects", equality, goal=Goal("below", 0.025)),
    ]


def _asked(root: Path, count: int, contract: Contract) -> dict[str, Any]:
    texts = {
        "tree/kit.py": _ASKED,
        "source/.keep": "",
        "test_cost.py": _ASKS % (count, _CALL_BYTES, _REPLY_BYTES, _FEW),
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    score = asyncio.run(
        PytestGrader.grade(
            workspace=Workspace(path=str(root / "tree"), source=str(root / "source")),
            inject=[str(root / "test_cost.py")],
            isolation="process",
            contract=cast("dict[str, Any]", contract.to_json()),
        )
    )
    return cast("dict[str, Any]", score.metadata)


def _row(
    what: str,
    ours: list[float],
    peer: Sequence[float] = (),
    beside: str = "",
    *,
    counted: Measure,
    unit: Literal["ms", "us"] = "ms",
    goal: Goal | None = None,
) -> Row:
    return Row(
        what=f"{what} / {beside}" if beside else what,
        measure=counted,
        unit=unit,
        ours=ours,
        peer=peer,
        beside=beside,
        goal=goal,
        over=True,
    )


def _of(costs: list[Cost], counted: Measure) -> list[float]:
    return [cost.cpu if counted == "CPU" else cost.wall for cost in costs]


def _bare(directory: Path) -> Cost:
    argv = [str(OURS / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_hidden.py"]
    return cost_of(argv, cwd=directory, env=_ENV, expect="3 passed")


def _assay(root: Path, mode: str) -> Cost:
    with tempfile.TemporaryDirectory(dir=root) as home:
        env = {**_ENV, "ASSAY_DB": home}
        return cost_of([str(OURS / "assay"), "run", mode], cwd=root, env=env, expect="passed")


def _podman(place: Path, image: Path) -> Cost:
    """The tests alone in a container: what starting one for each cell costs at the least."""
    packages = Path(pytest.__file__).parents[1]
    volumes = ["--volume", f"{packages}:/packages:ro", "--volume", f"{place}:/app:ro"]
    command = ["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    argv = ["podman", *_PODMAN.split(), *volumes, "--rootfs", str(image), *command]
    return cost_of(argv, cwd=place, expect="3 passed")


def _touchstone(peer: Peer, root: Path) -> Cost:
    with tempfile.TemporaryDirectory(dir=root) as runs:
        places = ["--evals-dir", "shared", "--runs-dir", runs]
        argv = [str(peer.bin / "touchstone"), *places, "run"]
        return cost_of(argv, cwd=root, env=_ENV, expect="] PASS")
