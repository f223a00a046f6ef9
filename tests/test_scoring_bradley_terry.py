"""Strengths from pairwise wins: known chances recovered, likelihood at its top, no infinities."""

from __future__ import annotations

import importlib
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScoreError
from assay.scoring.bradley_terry import Comparison, bradley_terry

names = st.sampled_from("abcd")
results = st.sampled_from([0.0, 0.5, 1.0])
comparisons = st.lists(
    st.builds(Comparison, names, names, results).filter(lambda c: c.a != c.b), max_size=30
)


def _season(strengths: dict[str, float], games: int, seed: int) -> list[Comparison]:
    rng = random.Random(seed)
    played: list[Comparison] = []
    for _ in range(games):
        a, b = rng.sample(list(strengths), 2)
        chance = 1 / (1 + math.exp(strengths[b] - strengths[a]))
        played.append(Comparison(a, b, float(rng.random() < chance)))
    return played


def test_two_without_a_prior_have_the_odds_of_their_wins() -> None:
    found = bradley_terry([Comparison("x", "y", 1.0)] * 3 + [Comparison("y", "x", 1.0)], prior=0)
    assert found.chance("x", "y") == pytest.approx(0.75)
    gap = found.log_strengths["x"] - found.log_strengths["y"]
    assert gap == pytest.approx(math.log(3))
    assert dict(found.wins) == {"x": 3.0, "y": 1.0}
    assert dict(found.comparisons) == {"x": 4, "y": 4}


def test_a_tie_is_half_a_win_for_both() -> None:
    ties = bradley_terry([Comparison("x", "y", 0.5)] * 2, prior=0)
    one_each = bradley_terry([Comparison("x", "y", 1.0), Comparison("x", "y", 0.0)], prior=0)
    assert ties.log_strengths == one_each.log_strengths == {"x": 0.0, "y": 0.0}


def test_true_strengths_are_found_again() -> None:
    true = {"a": 1.5, "b": 0.5, "c": -0.5, "d": -1.5}
    found = bradley_terry(_season(true, 8000, 1))
    assert list(found.log_strengths) == ["a", "b", "c", "d"]
    for name, strength in true.items():
        assert found.log_strengths[name] == pytest.approx(strength, abs=0.12)


def test_strengths_are_those_of_a_logistic_regression() -> None:
    """The same model in the words of statsmodels: one column for each but the last."""
    numpy: Any = importlib.import_module("numpy")
    discrete: Any = importlib.import_module("statsmodels.discrete.discrete_model")
    played = _season({"a": 1.0, "b": 0.2, "c": -0.4, "d": 0.0}, 300, 2)
    rows = [[(c.a == name) - (c.b == name) for name in "abc"] for c in played]
    fit = discrete.Logit(numpy.array([c.a_won for c in played]), numpy.array(rows, float)).fit(
        disp=False
    )
    found = bradley_terry(played, prior=0).log_strengths
    for name, coefficient in zip("abc", fit.params.tolist(), strict=True):
        assert found[name] - found["d"] == pytest.approx(coefficient, abs=1e-6)


@given(played=comparisons)
def test_the_expected_wins_are_the_wins(played: list[Comparison]) -> None:
    """The likelihood's slope is 0: with a tie against a mean opponent for each, wins add up."""
    found = bradley_terry(played)
    logs = found.log_strengths
    assert math.fsum(logs.values()) == pytest.approx(0.0, abs=1e-9)
    expected = math.fsum(found.chance(c.a, c.b) + found.chance(c.b, c.a) for c in played)
    assert expected == pytest.approx(math.fsum(found.wins.values()))
    for name in logs:
        own = math.fsum(
            found.chance(name, c.b if c.a == name else c.a) for c in played if name in (c.a, c.b)
        )
        # The opponent of strength 1 pulls towards the middle: it never turns the order of wins.
        assert abs(own - found.wins[name]) <= 0.5 + 1e-6


@given(played=comparisons, order=st.randoms(use_true_random=False))
def test_the_order_of_comparisons_does_not_matter(
    played: list[Comparison], order: random.Random
) -> None:
    before = bradley_terry(played).log_strengths
    shuffled = list(played)
    order.shuffle(shuffled)
    after = bradley_terry(shuffled).log_strengths
    for name, strength in before.items():
        assert after[name] == pytest.approx(strength, abs=1e-6)


def test_who_never_lost_is_strong_but_not_infinitely() -> None:
    played = [Comparison("x", "y", 1.0)] * 5
    found = bradley_terry(played)
    assert 0.8 < found.chance("x", "y") < 0.99
    assert bradley_terry(played * 10).chance("x", "y") > found.chance("x", "y")
    with pytest.raises(ScoreError, match="no finite strengths"):
        bradley_terry(played, prior=0)


def test_who_never_met_is_compared_only_by_the_prior() -> None:
    played = [Comparison("a", "b", w) for w in (0.0, 1.0)]
    played += [Comparison("c", "d", w) for w in (0.0, 1.0)]
    assert bradley_terry(played).chance("a", "c") == pytest.approx(0.5)
    with pytest.raises(ScoreError):
        bradley_terry(played, prior=0)


def test_no_comparisons_no_strengths() -> None:
    assert bradley_terry([]).log_strengths == {}
    with pytest.raises(ScoreError, match="never compared"):
        bradley_terry([]).chance("a", "b")


@pytest.mark.parametrize(
    "comparison",
    [
        Comparison("a", "a", 1.0),
        Comparison("a", "b", 0.7),
        Comparison("a", "b", True),
        Comparison("a", "b", math.nan),
    ],
)
def test_what_is_no_comparison_is_refused(comparison: Comparison) -> None:
    with pytest.raises(ScoreError):
        bradley_terry([comparison])


def test_a_negative_prior_is_refused() -> None:
    with pytest.raises(ScoreError):
        bradley_terry([], prior=-1.0)
