"""Classes and levels against labels: the values of scikit-learn, and real judges' counts."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScoreError
from assay.statistics.agreement import Confusion, counts_by_cluster
from assay.statistics.classes import (
    ClassConfusion,
    KappaWeights,
    Level,
    class_confusion,
    class_counts_by_cluster,
)
from assay.statistics.intervals import cluster_rate, wilson
from tests.each import each

# gpt-4o-mini as a judge of HealthBench's criteria against physicians.
HEALTHBENCH = Confusion(tp=15933, fp=5481, tn=4225, fn=3871)

WORDS: Any = [True, 1]

words = st.sampled_from(["poor", "fair", "good"])


# --- real counts ---------------------------------------------------------------------------------


@each(
    ("measure", "expected"),
    [
        ("accuracy", 0.6830904778041342),
        ("precision", 0.7440459512468478),
        ("sensitivity", 0.8045344374873763),
        ("specificity", 0.4352977539666186),
        ("balanced_accuracy", 0.6199160957269975),
        ("f1", 0.7731088359454608),
        ("macro_f1", 0.6238873019183544),
        ("kappa", 0.2504225706718153),
        ("mcc", 0.2525340415407772),
        ("predicted_rate", 0.7256523212470349),
        ("base_rate", 0.6710945442222975),
    ],
)
def test_a_real_judge_measures_what_others_measured(measure: str, expected: float) -> None:
    assert getattr(HEALTHBENCH, measure) == pytest.approx(expected, abs=1e-14)
    assert HEALTHBENCH.accuracy_interval() == wilson(20_158, 29_510)


def test_saying_yes_to_everything_is_two_points_below_the_real_judge_and_agrees_with_nobody() -> (
    None
):
    always = HEALTHBENCH.always_yes
    assert always.accuracy == HEALTHBENCH.majority_accuracy == pytest.approx(0.6710945442222975)
    assert (always.kappa, always.balanced_accuracy, always.mcc) == (0.0, 0.5, None)
    assert always == HEALTHBENCH.majority
    assert Confusion(1, 2, 3, 4).majority == Confusion(tp=5, fp=5, tn=0, fn=0)
    assert Confusion(1, 2, 3, 0).majority == Confusion(tp=0, fp=0, tn=5, fn=1)
    assert Confusion(tp=1, fp=0, tn=3, fn=0).majority_accuracy == 0.75


# --- against scikit-learn ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_measures_of_classes_are_scikit_learns(seed: int) -> None:
    metrics: Any = importlib.import_module("sklearn.metrics")
    rng = random.Random(seed)
    levels = ["none", "some", "most", "all"]
    labels = rng.choices(levels, [4, 3, 2, 1], k=300)
    said = [y if rng.random() < 0.5 else rng.choice(levels[:3]) for y in labels]
    table = class_confusion(said, labels, levels=levels)

    expected = metrics.confusion_matrix(labels, said, labels=levels).tolist()
    assert [list(row) for row in table.counts] == expected
    assert table.accuracy == pytest.approx(metrics.accuracy_score(labels, said))
    assert table.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(labels, said))
    assert table.macro_f1 == pytest.approx(metrics.f1_score(labels, said, average="macro"))
    assert table.mcc == pytest.approx(metrics.matthews_corrcoef(labels, said))
    recalls = metrics.recall_score(labels, said, labels=levels, average=None).tolist()
    assert list(table.recalls.values()) == pytest.approx(recalls)
    weights: tuple[KappaWeights, ...] = ("none", "linear", "quadratic")
    for weight in weights:
        theirs = None if weight == "none" else weight
        kappa = metrics.cohen_kappa_score(labels, said, labels=levels, weights=theirs)
        assert table.kappa(weight) == pytest.approx(kappa, abs=1e-12)


@given(rows=st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40))
def test_two_classes_are_yes_and_no(rows: list[tuple[bool, bool]]) -> None:
    labels, said = [y for y, _ in rows], [p for _, p in rows]
    table = class_confusion(said, labels, levels=[False, True])
    (tn, fp), (fn, tp) = table.counts
    two = Confusion(tp=tp, fp=fp, tn=tn, fn=fn)
    for measure in ("accuracy", "majority_accuracy", "balanced_accuracy", "macro_f1", "mcc"):
        expected = getattr(two, measure)
        assert getattr(table, measure) == (expected and pytest.approx(expected, abs=1e-12))
    assert table.kappa() == table.kappa("linear") == table.kappa("quadratic") == two.kappa


# --- what was not measured -----------------------------------------------------------------------


def test_what_was_not_measured_is_none_and_nulls_are_counted() -> None:
    table = class_confusion(["a", None, "b", None], ["a", "a", "b", "b"])
    assert (table.n, table.unscored, table.accuracy, table.coverage) == (2, 2, 1.0, 0.5)
    table = class_confusion([], [])
    assert table.n == 0
    assert table.accuracy is table.kappa() is table.mcc is table.macro_f1 is None
    assert table.balanced_accuracy is table.coverage is table.majority_accuracy is None
    table = class_confusion(["a", "a"], ["a", "a"])  # one word for everything
    assert (table.accuracy, table.kappa(), table.balanced_accuracy) == (1.0, None, None)
    assert class_confusion(["a"], ["b"]).f1s == {"a": 0.0, "b": 0.0}


@each(
    "compare",
    [
        lambda: class_confusion(["a"], ["a", "b"]),
        lambda: class_confusion([1], [True]),
        lambda: class_confusion(["1"], [1]),
        lambda: class_confusion(["d"], ["a"], levels=["a", "b"]),
        lambda: class_confusion(["a"], ["a"], levels=["a", "a"]),
        lambda: class_confusion(["a"], ["b"]).kappa("linear"),
        lambda: class_confusion(list(range(60)), list(range(60))),
        lambda: class_confusion([1], [1], levels=list(range(60))),
        lambda: ClassConfusion(("a", "b"), ((1, 2),)),
        lambda: ClassConfusion(("a",), ((-1,),)),
        lambda: class_counts_by_cluster(["a"], ["a"], []),
        lambda: counts_by_cluster([True], [True], [1, 2]),
        lambda: counts_by_cluster(WORDS, [True, True], [1, 1]),
        lambda: counts_by_cluster([True, True], WORDS, [1, 1]),
    ],
)
def test_what_cannot_be_compared_is_refused(compare: Callable[[], object]) -> None:
    with pytest.raises(ScoreError):
        compare()


# --- by cluster ----------------------------------------------------------------------------------


@given(
    rows=st.lists(st.tuples(words, words | st.none(), st.integers(0, 4)), min_size=1, max_size=40)
)
def test_clusters_add_up_to_the_whole(rows: list[tuple[str, str | None, int]]) -> None:
    labels, said = [y for y, _, _ in rows], [p for _, p, _ in rows]
    levels: list[Level] = ["poor", "fair", "good"]
    parts = class_counts_by_cluster(said, labels, [c for _, _, c in rows], levels=levels)
    assert len(parts) == len({c for _, _, c in rows})
    whole = [sum(column) for column in zip(*parts, strict=True)]
    table = class_confusion(said, labels, levels=levels)
    assert whole == [count for row in table.counts for count in row]


def test_yes_and_no_by_cluster() -> None:
    rows = counts_by_cluster(
        [True, True, None, False, False], [True, False, True, False, True], list("xxxyy")
    )
    assert rows == [(1, 1, 0, 0), (0, 0, 1, 1)]


# --- rates of clusters -------------------------------------------------------------------------


def test_the_rate_of_clusters_is_worth_fewer_outcomes() -> None:
    names = [n // 10 for n in range(100)]
    alike = cluster_rate([True] * 100, names)
    assert (alike.mean, alike.n, alike.high) == (1.0, 100, 1.0)
    assert alike.low is not None
    assert alike.low < 0.7  # ten clusters of one mind are ten outcomes
    assert cluster_rate([True, False], ["a", "b"]) == wilson(1, 2)
    assert cluster_rate([True, False], ["a", "a"]).low is None
    assert cluster_rate([], []).mean is None
