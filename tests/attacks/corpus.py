"""Every attack that is played anywhere, with what it must come to: ``corpus.txt`` is that list.

The product's library comes first, then the scenes beside this file (`scenes.py` reads them).

`python -m tests.attacks.corpus > tests/attacks/corpus.txt` writes it. A review reads what changed
in it: an attack that is gone, or one that may pay more than it did.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from assay.eval.cheats import LIBRARY
from tests.attacks.scenes import Agent, Scene, scenes
from tests.eval.test_attack import FOOLS_PYTEST
from tests.graders import test_trace_cheats

__all__ = ["LIST", "corpus"]

LIST = Path(__file__).with_name("corpus.txt")


def corpus() -> list[str]:
    """A line for each attack: where it is, what it is called, and the verdict."""
    return [f"{name}: {verdict}" for name, verdict in (*_library(), *_scenes(), *_others())]


def _library() -> Iterator[tuple[str, str]]:
    for cheat in LIBRARY:
        fools = ", and fools a judge who believes pytest" if cheat.id in FOOLS_PYTEST else ""
        yield f"library/{cheat.id}", f"gains nothing{fools}"


def _scenes() -> Iterator[tuple[str, str]]:
    for file in sorted(Path(__file__).parent.glob("*.yaml")):
        for scene in scenes(file.stem):
            where = f"exploits/{scene.suite}/{scene.name}" if scene.graders else scene.name
            for agent in scene.agents:
                if scene.graders or not agent.is_honest:
                    yield f"{where}/{agent.name}", scene.verdict or _worth(scene, agent)


def _worth(scene: Scene, agent: Agent) -> str:
    mode = f" ({scene.isolation})" if scene.isolation else ""
    worth = f"{'exactly' if agent.is_honest else 'at most'} {agent.worth:.3g}{mode}"
    return f"{worth}, flagged {agent.flag!r}" if agent.flag else worth


def _others() -> Iterator[tuple[str, str]]:
    for name in test_trace_cheats.HOSTILE:
        yield f"shell lines/{name}", "fills no demand, and breaks every ban"
    rows = Path(__file__).with_name("judge_attacks.jsonl").read_text("utf-8")
    for row in map(json.loads, rows.splitlines()):
        yield f"judges/{row['id']}", str(row["expected"])


if __name__ == "__main__":
    print("\n".join(corpus()))  # noqa: T201 - it is what this program is for
