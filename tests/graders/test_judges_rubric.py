"""`combined`: the score of a rubric is the one that its arithmetic says, whatever the order."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ModelError
from assay.graders.judges.criteria import Criterion, leaves
from assay.graders.judges.rubric import Combined, combined
from assay.graders.judges.rubric_files import rubric_of
from assay.graders.judges.votes import PanelDecision
from assay.scoring.json_safe import Json
from tests.each import each

MET, UNMET = PanelDecision(word="MET", value=1.0), PanelDecision(word="UNMET", value=0.0)
HALF, NA = PanelDecision(word="2", value=0.5), PanelDecision(word="NA")
LOST = PanelDecision(error=ModelError("no luck", kind="timeout"))


def criterion(weight: float = 1.0, *children: Criterion, required: bool = False) -> Criterion:
    return Criterion(requirement="x", weight=weight, children=children, required=required)


ARITHMETIC: list[tuple[Sequence[Criterion], Sequence[PanelDecision], float | None]] = [
    ([criterion(2), criterion(1)], [MET, UNMET], 2 / 3),
    ([criterion(1), criterion(-1)], [MET, MET], 0.0),
    ([criterion(2), criterion(-1)], [MET, MET], 0.5),
    ([criterion(1), criterion(-3)], [UNMET, MET], 0.0),
    ([criterion(-1), criterion(-3)], [UNMET, MET], 0.25),
    ([criterion(-1), criterion(-3)], [UNMET, UNMET], 1.0),
    ([criterion(), criterion()], [HALF, MET], 0.75),
    ([criterion(), criterion(3)], [MET, NA], 1.0),
    ([criterion(), criterion(3)], [NA, NA], None),
    ([criterion(), criterion(3, required=True)], [MET, UNMET], 0.0),
    ([criterion(), criterion(3, required=True)], [UNMET, MET], 0.75),
    ([criterion(), criterion(3, required=True)], [MET, HALF], 0.0),
    ([criterion(), criterion(3, required=True)], [MET, NA], 1.0),
    ([criterion(0)], [MET], None),
    ([criterion(3, criterion(1), criterion(3)), criterion(1)], [UNMET, MET, UNMET], 9 / 16),
    ([criterion(1, criterion(-1), criterion(-1)), criterion(1)], [MET, UNMET, MET], 0.75),
    ([criterion(1, criterion(), criterion()), criterion(1)], [NA, NA, MET], 1.0),
    ([criterion(1, criterion(required=True)), criterion(9)], [UNMET, MET], 0.0),
]


@each(("criteria", "decisions", "value"), ARITHMETIC)
def test_the_arithmetic(
    criteria: Sequence[Criterion], decisions: Sequence[PanelDecision], value: float | None
) -> None:
    found = combined(criteria, decisions)
    assert found.value == (None if value is None else pytest.approx(value))
    assert found.coverage == 1.0
    assert (found.low, found.high) == (found.value, found.value)


def test_what_was_not_decided_makes_a_range() -> None:
    found = combined([criterion(2), criterion(1), criterion(-1)], [MET, LOST, LOST])
    assert (found.value, found.low, found.high) == (1.0, pytest.approx(1 / 3), 1.0)
    assert found.coverage == pytest.approx(0.5)
    lost = combined([criterion(9), criterion(1, required=True)], [MET, LOST])
    assert (lost.low, lost.high, lost.coverage) == (0.0, 1.0, 0.0)


@each("weight", [1.0, -1.0])
def test_attack_a_fault_that_cannot_be_read_is_forgiven_in_a_group(weight: float) -> None:
    unread = PanelDecision(error=ModelError("no JSON", kind="unreadable"))
    faults = criterion(-1, criterion(weight), criterion(weight))
    found = combined([criterion(1), faults], [MET, unread, unread])
    worst = MET if weight > 0 else UNMET
    assert found.value == combined([criterion(1), faults], [MET, worst, worst]).value == 0.0
    assert found.value == found.low


# --- PaperBench -----------------------------------------------------------------------------------


def node(weight: float, *parts: Json) -> dict[str, Json]:
    return {"id": "n", "requirements": "r", "weight": weight, "sub_tasks": list(parts)}


def recursive(tree: Mapping[str, Json], scores: list[float]) -> float:
    """The published procedure: a leaf's score, or the mean of the parts by their weights."""
    parts = tree["sub_tasks"]
    assert isinstance(parts, list)
    if not parts:
        return scores.pop(0)
    total, weights = 0.0, 0.0
    for part in parts:
        assert isinstance(part, dict)
        weight = part["weight"]
        assert isinstance(weight, int | float)
        weights += weight
        total += weight * recursive(part, scores)
    return total / weights


def test_a_tree_of_paper_bench_has_its_own_score() -> None:
    tree = node(1, node(5, node(2, node(3), node(1)), node(2)), node(0))
    assert combined(rubric_of(tree), [MET, UNMET, UNMET, MET]).value == pytest.approx(0.375)
    assert recursive(tree, [1.0, 0.0, 0.0, 1.0]) == pytest.approx(0.375)


def _trees(parts: st.SearchStrategy[dict[str, Json]]) -> st.SearchStrategy[dict[str, Json]]:
    inside = st.lists(parts, min_size=1, max_size=4)
    return st.tuples(st.integers(1, 9), inside).map(lambda drawn: node(drawn[0], *drawn[1]))


_TREES = st.recursive(st.builds(node, st.integers(1, 9)), _trees, max_leaves=25)


@given(tree=_TREES, seed=st.integers(0, 2**32))
def test_any_tree_of_paper_bench_has_its_own_score(tree: dict[str, Json], seed: int) -> None:
    criteria = rubric_of(tree)
    scores = [float(random.Random(f"{seed} {n}").random() < 0.5) for n in range(100)]
    decisions = [MET if score else UNMET for score in scores]
    assert score_of(criteria, decisions).value == pytest.approx(recursive(tree, scores), abs=1e-12)


# --- Any rubric -----------------------------------------------------------------------------------

_WEIGHTS = st.sampled_from([0.0, 0.1, 1.0, 2.5, 7.0, 1e6, -0.1, -1.0, -4.0])
_GROUPS = st.sampled_from([0.5, 1.0, 3.0, -2.0])


def _parts(inside: st.SearchStrategy[Criterion]) -> st.SearchStrategy[Criterion]:
    parts = st.lists(inside, min_size=1, max_size=3)
    return st.tuples(_GROUPS, parts).map(lambda drawn: criterion(drawn[0], *drawn[1]))


_LEAVES = st.tuples(_WEIGHTS, st.booleans()).map(
    lambda drawn: criterion(drawn[0], required=drawn[1] and drawn[0] > 0)
)
_RUBRICS = st.lists(st.recursive(_LEAVES, _parts, max_leaves=6), min_size=1, max_size=4)
_DECISIONS = st.lists(
    st.sampled_from([MET, UNMET, HALF, NA, LOST]), min_size=100, max_size=100
)  # more than any rubric has leaves


def score_of(criteria: Sequence[Criterion], decisions: Sequence[PanelDecision]) -> Combined:
    return combined(criteria, decisions[: len(list(leaves(criteria)))])


@given(criteria=_RUBRICS, decisions=_DECISIONS, seed=st.integers(0, 2**32))
def test_a_score_is_in_its_bounds_whatever_is_decided(
    criteria: list[Criterion], decisions: list[PanelDecision], seed: int
) -> None:
    """Whichever way what is undecided turns out, the score is between them."""
    found = score_of(criteria, decisions)
    for value in (found.value, found.low, found.high):
        assert value is None or (math.isfinite(value) and 0.0 <= value <= 1.0)
    assert found.raw is None or found.raw <= 1.0 + 1e-9
    assert 0.0 <= found.coverage <= 1.0
    chance = random.Random(seed)
    decided = [chance.choice([MET, UNMET]) if one.error else one for one in decisions]
    for value in (found.value, score_of(criteria, decided).value):
        if value is not None and found.low is not None and found.high is not None:
            assert found.low - 1e-9 <= value <= found.high + 1e-9
    assert found.value is None or None not in (found.low, found.high)


@given(criteria=_RUBRICS, decisions=_DECISIONS, seed=st.integers(0, 2**32))
def test_the_order_of_criteria_changes_nothing(
    criteria: list[Criterion], decisions: list[PanelDecision], seed: int
) -> None:
    rest, pairs = iter(decisions), list[tuple[Criterion, list[PanelDecision]]]()
    for one in criteria:
        pairs.append((one, [next(rest) for _ in leaves([one])]))
    before = combined(criteria, [d for _, given_ in pairs for d in given_])
    random.Random(seed).shuffle(pairs)
    after = combined([one for one, _ in pairs], [d for _, given_ in pairs for d in given_])
    for name in ("value", "raw", "low", "high", "coverage"):
        one, other = getattr(before, name), getattr(after, name)
        assert one == (None if other is None else pytest.approx(other, abs=1e-9)), name
    assert bool(before.failed) == bool(after.failed)
