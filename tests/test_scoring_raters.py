"""Several raters: textbook tables, the values of statsmodels, and definitions by brute force."""

from __future__ import annotations

import importlib
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScoreError
from assay.scoring.classes import class_confusion
from assay.scoring.raters import AlphaMetric, fleiss_kappa, icc_2_1, krippendorff_alpha

_ = None
# Krippendorff's example of four observers and twelve units (2011, Computing Krippendorff's
# Alpha-Reliability, part D); one row for each observer.
OBSERVERS: list[list[int | None]] = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]
UNITS: list[list[int | None]] = [list(unit) for unit in zip(*OBSERVERS, strict=True)]

# Shrout and Fleiss 1979, table 2: six targets, four judges.
TARGETS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]

ratings = st.lists(
    st.lists(st.integers(1, 4) | st.none(), min_size=3, max_size=3), min_size=1, max_size=12
)


# --- Fleiss --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_fleiss_is_that_of_statsmodels(seed: int) -> None:
    inter_rater: Any = importlib.import_module("statsmodels.stats.inter_rater")
    rng = random.Random(seed)
    items = [
        [t if rng.random() < 0.6 else rng.choice("abc") for _ in range(4)]
        for t in rng.choices("abc", k=80)
    ]
    table = [[item.count(word) for word in "abc"] for item in items]
    found = fleiss_kappa(items)
    assert found.value == pytest.approx(inter_rater.fleiss_kappa(table), abs=1e-12)
    assert (found.n, found.excluded) == (80, 0)


def test_fleiss_leaves_out_items_with_a_gap() -> None:
    found = fleiss_kappa([["a", "a"], ["b", "b"], ["a", None]])
    assert (found.value, found.n, found.excluded) == (1.0, 2, 1)
    assert fleiss_kappa([["a", "a"]]).value is None
    assert fleiss_kappa([]).value is None


def test_two_raters_without_agreement_beyond_chance() -> None:
    # P = 1/2 and Pe = 1/2
    assert fleiss_kappa([["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"]]).value == 0.0


@pytest.mark.parametrize("items", [[["a", "b"], ["a"]], [["a"]], [["a", 1]], [[True, 1]]])
def test_ratings_that_cannot_be_fleisss_are_refused(items: Any) -> None:
    with pytest.raises(ScoreError):
        fleiss_kappa(items)


# --- Krippendorff --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorffs_own_example(metric: AlphaMetric, expected: float) -> None:
    found = krippendorff_alpha(UNITS, metric=metric)
    assert found.value == pytest.approx(expected, abs=5e-4)
    assert (found.n, found.excluded) == (11, 1)


def _alpha_by_pairs(
    items: list[list[int | None]], distance: Callable[[list[int], int, int], float]
) -> float | None:
    """Each pair of one item, weighted by one over its other ratings, against all pairs."""
    units = [[r for r in item if r is not None] for item in items]
    units = [unit for unit in units if len(unit) > 1]
    pool = [r for unit in units for r in unit]
    n = len(pool)
    within = sum(
        distance(pool, a, b) / (len(unit) - 1) for unit in units for a in unit for b in unit
    )
    between = sum(distance(pool, a, b) for a in pool for b in pool)
    return 1 - (n - 1) * within / between if between else None


def _ordinal(pool: list[int], a: int, b: int) -> float:
    low, high = sorted((a, b))
    between = sum(low <= r <= high for r in pool)
    return (between - (pool.count(a) + pool.count(b)) / 2) ** 2


@given(items=ratings)
def test_alpha_is_that_of_all_pairs(items: list[list[int | None]]) -> None:
    distances: dict[AlphaMetric, Callable[[list[int], int, int], float]] = {
        "nominal": lambda _, a, b: float(a != b),
        "ordinal": _ordinal,
        "interval": lambda _, a, b: (a - b) ** 2,
    }
    for metric, distance in distances.items():
        expected = _alpha_by_pairs(items, distance)
        found = krippendorff_alpha(items, metric=metric).value
        assert found == (expected if expected is None else pytest.approx(expected, abs=1e-9))


def test_words_have_an_order_if_it_is_given() -> None:
    words = ["none", "low", "mid", "high", "full"]
    items = [[None if r is None else words[r - 1] for r in unit] for unit in UNITS]
    found = krippendorff_alpha(items, metric="ordinal", levels=words)
    assert found == krippendorff_alpha(UNITS, metric="ordinal")
    with pytest.raises(ScoreError):
        krippendorff_alpha(items, metric="ordinal")
    with pytest.raises(ScoreError, match="not among the levels"):
        krippendorff_alpha(items, metric="ordinal", levels=words[:2])


def test_alpha_of_one_opinion_is_not_measured() -> None:
    assert krippendorff_alpha([["a", "a"], ["a", None]]).value is None
    assert krippendorff_alpha([[0.3, 0.3], [0.3, 0.3]], metric="interval").value is None
    assert krippendorff_alpha([["a", None], [None, "b"]]).excluded == 2
    assert krippendorff_alpha([]).value is None


@pytest.mark.parametrize("items", [[["a", 1]], [[True, 1]]])
def test_ratings_of_mixed_kinds_are_refused(items: Any) -> None:
    with pytest.raises(ScoreError):
        krippendorff_alpha(items)
    with pytest.raises(ScoreError):
        krippendorff_alpha(items, metric="interval")
    with pytest.raises(ScoreError):
        krippendorff_alpha([[math.nan, 1.0]], metric="interval")


def test_alpha_of_many_different_numbers_is_quick() -> None:
    rng = random.Random(2)
    items = [[x, x + rng.gauss(0, 1)] for x in (rng.gauss(0, 1) for _ in range(30_000))]
    # Two numbers of one item differ by 1 squared, any two by twice their variance of 1.5.
    found = krippendorff_alpha(items, metric="interval").value
    assert found == pytest.approx(1 - 1 / 3, abs=0.02)


# --- ICC -----------------------------------------------------------------------------------------


def test_icc_of_shrout_and_fleiss() -> None:
    found = icc_2_1([*TARGETS, [1, 2, None, 4]])
    assert found.value == pytest.approx(0.29, abs=5e-3)
    assert (found.n, found.excluded) == (6, 1)


def test_icc_by_its_mean_squares() -> None:
    numpy: Any = importlib.import_module("numpy")
    x = numpy.array(TARGETS, dtype=float)
    n, k = x.shape
    grand = x.mean()
    rows, columns = x.mean(axis=1), x.mean(axis=0)
    msr = k * ((rows - grand) ** 2).sum() / (n - 1)
    msc = n * ((columns - grand) ** 2).sum() / (k - 1)
    mse = ((x - rows[:, None] - columns[None, :] + grand) ** 2).sum() / ((n - 1) * (k - 1))
    expected = (msr - mse) / (msr + (k - 1) * mse + k * (msc - mse) / n)
    assert icc_2_1(TARGETS).value == pytest.approx(expected, abs=1e-12)


def test_a_stricter_rater_lowers_the_icc_but_no_correlation() -> None:
    same = [[float(i), float(i)] for i in range(10)]
    strict = [[a, b - 3] for a, b in same]
    assert icc_2_1(same).value == pytest.approx(1.0)
    found = icc_2_1(strict).value
    assert found is not None
    assert found < 0.7


def test_icc_that_cannot_be() -> None:
    assert icc_2_1([]).value is None
    assert icc_2_1([[1, 2]]).value is None
    assert icc_2_1([[0.1, 0.1]] * 3).value is None
    with pytest.raises(ScoreError):
        icc_2_1([[1, 2], [1]])
    with pytest.raises(ScoreError):
        icc_2_1([[1, math.inf], [1, 2]])


@given(
    rows=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("ab")), min_size=2, max_size=30)
)
def test_two_raters_agree_about_as_cohen_says(rows: list[tuple[str, str]]) -> None:
    """Fleiss' kappa pools the two raters' habits: it is never above Cohen's."""
    cohen = class_confusion([a for a, _ in rows], [b for _, b in rows]).kappa()
    fleiss = fleiss_kappa(rows).value
    if cohen is None or fleiss is None:
        assert cohen is fleiss is None
    else:
        assert fleiss <= cohen + 1e-12
