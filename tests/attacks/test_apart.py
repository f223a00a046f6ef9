"""Cheats against the boundary of ``isolation: process``, beside honest work in the same run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from assay.graders.testing.contract import Contract
from tests.attacks.scenes import scenes
from tests.boundary_runs import SEED, Outcomes, grade, learn, outcomes

pytestmark = pytest.mark.slow

_BESIDE = {
    "conftest.py": "import pytest\ndef pytest_collection_modifyitems(items): items.clear()\n",
    "json.py": "def dumps(*a): return '5'\n",
    "helpers_of_tests.py": "def same(*a): pass\n",
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    "sitecustomize.py": "import os\nos._exit(0)\n",
}
"""What every submission leaves as well."""
_HIDDEN = {
    "helpers_of_tests.py": "def same(a, b): assert a == b\n",
    "want.txt": "the answer\n",
    "golden/a.txt": "1\n",
}


class _Attack(NamedTuple):
    name: str
    solved: str
    left: str
    tests: str


def _attacks() -> Iterator[_Attack]:
    for scene in scenes("apart"):
        solved, *cheats = (str(agent.files["kit.py"]) for agent in scene.agents)
        names = [agent.name for agent in scene.agents[1:]]
        for name, left in zip(names, cheats, strict=True):
            yield _Attack(name, solved, left, str(scene.hidden["test_kit.py"]))


def _runs(part: dict[str, _Attack]) -> tuple[Outcomes, Outcomes]:
    """Two runs of the same tests: what is an attack in one is honest work in the other."""
    reference = {f"kit_{number}.py": attack.solved for number, attack in part.items()}
    attacks = {f"kit_{number}.py": attack.left for number, attack in part.items()}
    hidden = dict(_HIDDEN)
    for number, attack in part.items():
        hidden[f"test_{number}.py"] = re.sub(r"\bkit\b", f"kit_{number}", attack.tests)
    contract = Contract.of_runs(SEED, learn(reference, hidden, timeout_s=150.0)).to_json()

    def run(fouls: list[str]) -> Outcomes:
        tree = {**reference, **{name: attacks[name] for name in fouls}, **_BESIDE}
        return outcomes(grade(tree, hidden, contract=contract, timeout_s=150.0))

    names = list(attacks)
    return run(names[::2]), run(names[1::2])


@pytest.mark.parametrize("part", range(3))
def test_no_attack_pays(part: int) -> None:
    """A part of them in one run, so that each is tried once however tests are spread."""
    numbered = [(str(number), attack) for number, attack in enumerate(_attacks())]
    attacks = dict(numbered[part::3])
    runs = _runs(attacks)
    wrong: dict[str, list[str]] = {}
    for place, (number, attack) in enumerate(attacks.items()):
        foul, fair = runs[place % 2], runs[1 - place % 2]
        told = [*_wrong("fair", fair, number, attack), *_wrong("foul", foul, number, attack)]
        wrong |= {attack.name: told} if told else {}
    assert wrong == {}


def _wrong(kind: str, found: Outcomes, number: str, attack: _Attack) -> Iterator[str]:
    """What is not as it must be: honest work passes, and of the attack what is worth something."""
    told = {name: said for name, said in found.items() if name.startswith(f"test_{number}.py::")}
    if len(told) != (expected := len(re.findall(r"\bdef test_", attack.tests))):
        yield f"{kind}: {len(told)} tests of {expected}"
    for name, said in told.items():
        passes = kind == "fair" or "::test_worth_" in name
        if said[0] not in (("passed",) if passes else ("failed", "error", "missing")):
            yield f"{kind}: {name}: {said}"
