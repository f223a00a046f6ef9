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
    """Whole processes: ``assay run``, touchstone's ``run``, and the bare ``python -m pytest``."""
    root = scratch / "hidden-tests"
    case, bare = root / "evals" / "kit", root / "bare"
    for place, text in (
        (case / "case.yaml", _CASE),
        (case / "source" / "kit.py", _SOURCE),
        (case / "hidden" / "test_hidden.py", _TESTS),
        (bare / "kit.py", _SOURCE),
        (bare / "test_hidden.py", _TESTS),
    ):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    things = {"bare": partial(_bare, bare), "assay": partial(_assay, root)}
    if touchstone := peers.get("touchstone"):
        things["touchstone"] = partial(_touchstone, touchstone, root)
    costs = in_turn(3 if quick else 11, things)
    rows: list[Row] = []
    for counted in MEASURES:
        ours, floor = _of(costs["assay"], counted), _of(costs["bare"], counted)
        rows.append(_row("assay run", ours, floor, "bare pytest", counted=counted))
        beyond = [max(0.0, seconds - _START_SECONDS) for seconds in ours]
        goal = Goal("at_most", 1.5) if counted == "wall" else None
        rows.append(
            _row(
                "assay run beyond 300 ms", beyond, floor, "bare pytest", counted=counted, goal=goal
            )
        )
        if "touchstone" in costs:
            theirs = _of(costs["touchstone"], counted)
            rows.append(_row("touchstone run", theirs, floor, "bare pytest", counted=counted))
            rows.append(_row("assay run", ours, theirs, "touchstone", counted=counted))
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


def _assay(root: Path) -> Cost:
    with tempfile.TemporaryDirectory(dir=root) as home:
        env = {**_ENV, "ASSAY_HOME": home}
        return cost_of([str(OURS / "assay"), "run", "evals"], cwd=root, env=env, expect="passed")


def _touchstone(peer: Peer, root: Path) -> Cost:
    with tempfile.TemporaryDirectory(dir=root) as runs:
        places = ["--evals-dir", "evals", "--runs-dir", runs]
        argv = [str(peer.bin / "touchstone"), *places, "run"]
        return cost_of(argv, cwd=root, env=_ENV, expect="] PASS")
