"""Every attack that is played anywhere, with what it must come to: ``corpus.txt`` is that list.

`python -m tests.attacks.corpus > tests/attacks/corpus.txt` writes it. A review reads what changed
in it: an attack that is gone, or one that may pay more than it did.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from assay.eval.cheats import LIBRARY
from tests.attacks.test_exploits import SUITES
from tests.eval.test_attack import FOOLS_PYTEST
from tests.exploits import judged
from tests.exploits.scenes import Agent, Scene
from tests.graders import test_c, test_trace_cheats
from tests.graders.testing import test_boundary_attacks, test_inside_attacks, test_node_apart

__all__ = ["LIST", "corpus"]

LIST = Path(__file__).with_name("corpus.txt")


def corpus() -> list[str]:
    """A line for each attack: where it is, what it is called, and the verdict."""
    return [f"{name}: {verdict}" for name, verdict in (*_library(), *_exploits(), *_tables())]


def _library() -> Iterator[tuple[str, str]]:
    for cheat in LIBRARY:
        fools = ", and fools a judge who believes pytest" if cheat.id in FOOLS_PYTEST else ""
        yield f"library/{cheat.id}", f"gains nothing{fools}"


def _exploits() -> Iterator[tuple[str, str]]:
    for suite, scenes in {**SUITES, "judged": [judged.JUDGED, judged.DENIED]}.items():
        for scene in scenes:
            for agent in scene.agents:
                yield f"exploits/{suite}/{scene.name}/{agent.name}", _worth(scene, agent)


def _worth(scene: Scene, agent: Agent) -> str:
    mode = f" ({scene.isolation})" if scene.isolation else ""
    worth = f"{'exactly' if agent.is_honest else 'at most'} {agent.worth:.3g}{mode}"
    worth += f", flagged {agent.flag!r}" if agent.flag else ""
    return f"{worth}, ESCAPES: {agent.escapes}" if agent.escapes else worth


_TABLES: Mapping[str, tuple[Mapping[str, object], str]] = {
    "apart": (test_boundary_attacks.ATTACKS, "passes no test but those of what it did"),
    "inside": (test_inside_attacks.PATCHES, "pays nothing"),
    "inside, unittest": (test_inside_attacks.UNITTEST_PATCHES, "pays nothing"),
    "inside, objects": (test_inside_attacks.CROOKED, "pays nothing"),
    "inside, readers": (test_inside_attacks.READERS, "sees no answer"),
    "inside, builtins": (test_inside_attacks.BUILTINS, "pays nothing"),
    "node apart": (dict.fromkeys(test_node_apart.CHEATS), "fails"),
    "node apart, lies": (dict.fromkeys(test_node_apart.LIES), "decides nothing"),
    "c": (test_c.CHEATS, "fails"),
    "shell lines": (test_trace_cheats.HOSTILE, "fills no demand, and breaks every ban"),
}


def _tables() -> Iterator[tuple[str, str]]:
    for name, (attacks, verdict) in _TABLES.items():
        for attack in attacks:
            yield f"{name}/{attack}", verdict
    rows = (Path(__file__).parents[1] / "judge_attacks.jsonl").read_text("utf-8")
    for row in map(json.loads, rows.splitlines()):
        yield f"judges/{row['id']}", str(row["expected"])


if __name__ == "__main__":
    print("\n".join(corpus()))  # noqa: T201 - it is what this program is for
