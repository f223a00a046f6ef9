"""What grading by hidden tests costs over running the tests: one case of three tests, whole."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

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
# No plugins of whoever measures: they would be a part of all three.
_ENV = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": f"{OURS}:/usr/local/bin:/usr/bin:/bin"}


def measure(peers: Mapping[str, Peer], scratch: Path, *, quick: bool) -> list[Row]:
    """Whole processes: ``assay run`` in both modes, touchstone, and bare ``python -m pytest``."""
    root = scratch / "hidden-tests"
    bare = root / "bare"
    texts = {bare / "kit.py": _SOURCE, bare / "test_hidden.py": _TESTS}
    for mode in _MODES:
        case = root / mode / "kit"
        texts[case / "case.yaml"] = _CASE.replace("MODE", mode)
        texts[case / "source" / "kit.py"] = _SOURCE
        texts[case / "hidden" / "test_hidden.py"] = _TESTS
    for place, text in texts.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    things = {"bare": partial(_bare, bare)}
    things.update({mode: partial(_assay, root, mode) for mode in _MODES})
    if touchstone := peers.get("touchstone"):
        things["touchstone"] = partial(_touchstone, touchstone, root)
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
    return rows


def _row(
    what: str,
    ours: list[float],
    peer: list[float],
    beside: str,
    *,
    counted: Measure,
    goal: Goal | None = None,
) -> Row:
    return Row(
        what=f"{what} / {beside}",
        measure=counted,
        unit="ms",
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
        env = {**_ENV, "ASSAY_HOME": home}
        return cost_of([str(OURS / "assay"), "run", mode], cwd=root, env=env, expect="passed")


def _touchstone(peer: Peer, root: Path) -> Cost:
    with tempfile.TemporaryDirectory(dir=root) as runs:
        places = ["--evals-dir", "shared", "--runs-dir", runs]
        argv = [str(peer.bin / "touchstone"), *places, "run"]
        return cost_of(argv, cwd=root, env=_ENV, expect="] PASS")
