"""Measures of likeness; those of other libraries are their oracles."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, cast, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError, MissingExtraError
from assay.text import similarity
from assay.text.likeness import MAX_CHARACTERS, MAX_FUZZY_CHARACTERS, Metric
from tests.each import each

METRICS: tuple[Metric, ...] = get_args(Metric)
CAT = "The cat sat on the mat, and it purred."
SENTENCES = st.lists(
    st.sampled_from(["cat", "Cat", "dog", "the", "sat", "1.5", "on", "caf\u00e9"])
).map(" ".join)


@each("metric", METRICS)
def test_every_metric_is_a_score(metric: Metric) -> None:
    assert similarity(CAT, CAT, metric=metric) == pytest.approx(1.0, abs=0.01)
    assert similarity("zzz qqq", CAT, metric=metric) < 0.5
    some = similarity("The cat sat on a mat and purred", CAT, metric=metric)
    assert 0.0 <= some <= 1.0
    assert similarity("", CAT, metric=metric) == 0.0
    assert similarity("cat", " ", metric=metric) == 0.0
    assert similarity(" ", "", metric=metric) == 1.0
    assert similarity(None, CAT, metric=metric) == 0.0


@each("metric", METRICS)
@each("answer", ["\ud800", "\x00", "!!!", "a\u0301" * 50, "\U0001f600", "-" * 999])
def test_no_answer_raises(metric: Metric, answer: str) -> None:
    assert 0.0 <= similarity(answer, CAT, metric=metric) <= 1.0
    assert 0.0 <= similarity(CAT, answer, metric=metric) <= 1.0


def rouge_oracle() -> Callable[[str, str], dict[str, Any]]:
    scorer = importlib.import_module("rouge_score.rouge_scorer")
    names = ["rouge1", "rouge2", "rouge3", "rouge4", "rouge5", "rougeL"]
    return cast("Callable[[str, str], dict[str, Any]]", scorer.RougeScorer(names).score)


@pytest.mark.slow
@given(SENTENCES | st.text(), SENTENCES | st.text())
def test_rouge_is_that_of_rouge_score(answer: str, reference: str) -> None:
    if not answer.strip() or not reference.strip():
        return
    oracle = rouge_oracle()(reference, answer)
    for n in range(1, 6):
        metric = cast("Metric", f"rouge_{n}")
        wanted = cast("float", oracle[f"rouge{n}"].fmeasure)
        assert similarity(answer, reference, metric=metric) == pytest.approx(wanted)
    wanted = cast("float", oracle["rougeL"].fmeasure)
    assert similarity(answer, reference, metric="rouge_l") == pytest.approx(wanted)


def test_known_values() -> None:
    assert similarity("kitten", "sitting", metric="levenshtein") == pytest.approx(1 - 3 / 7)
    assert similarity("MARTHA", "MARHTA", metric="jaro_winkler") == pytest.approx(0.9611, abs=1e-4)
    assert similarity("mat cat", "Cat! Mat", metric="token_set") == 1.0
    assert similarity("CAT.", "cat", metric="fuzzy") == 1.0
    assert similarity("the cats", "the cat", metric="meteor") == pytest.approx(0.9375)
    assert similarity("the cat", "the cats", metric="gleu") == pytest.approx(1 / 3)
    assert similarity(CAT, CAT, metric="bleu") == 1.0


def test_attack_a_part_of_the_reference_passed_a_threshold() -> None:
    for answer in ("The cat", "cat", "sat on the", "The cat sat on", "purred mat cat it"):
        assert similarity(answer, CAT, threshold=0.8) == 0.0, answer
    assert similarity("The cat sat on a mat and it purred", CAT, threshold=0.8) == 1.0
    assert similarity(f"I said that {CAT}", CAT, threshold=0.8) == 1.0


def test_rouge_is_twice_what_is_shared_of_all_that_there_is() -> None:
    found = [similarity("a b c d", "a b x y", metric=name) for name in ("rouge_1", "rouge_2")]
    assert found == [2 * 2 / 8, pytest.approx(2 * 1 / 6)]
    assert similarity("a a b", "a c", metric="rouge_1") == pytest.approx(2 * 1 / 5)
    assert similarity("a", "b", metric="rouge_1") == similarity("a", "b", metric="rouge_l") == 0.0
    blanks = [similarity(*two, metric="rouge_1") for two in (("", "a"), ("a", " "), (" ", ""))]
    assert blanks == [0.0, 0.0, 1.0]


def test_what_is_compared_and_from_where_it_scores() -> None:
    assert similarity("cafe\u0301", "caf\u00e9", metric="levenshtein") == 1.0
    assert similarity("kitten", "sitting", metric="levenshtein", threshold=0.5) == 1.0
    assert similarity("kitten", "sitting", metric="levenshtein", threshold=0.6) == 0.0
    assert similarity("no <answer>cat</answer>", "cat", extract="answer_tag") == 1.0
    assert similarity("cat", "cat", extract="answer_tag") == 0.0


def test_an_answer_too_long_scores_nothing() -> None:
    word = "cat "
    fits, fuzzy_fits = word * (MAX_CHARACTERS // 4), word * (MAX_FUZZY_CHARACTERS // 4)
    assert similarity(fits, word, metric="token_set") == 1.0
    assert similarity(fits + "x", word, metric="token_set") == 0.0
    assert similarity(fuzzy_fits, word) > 0.5
    assert similarity(fuzzy_fits + "x", word) == 0.0


@each(
    ("reference", "options"),
    [
        ("x", {"metric": "cosine"}),
        ("x", {"threshold": 1.5}),
        ("x", {"threshold": float("nan")}),
        ("x", {"threshold": True}),
        # Attack: one word of the reference reached a threshold.
        ("the x sat", {"metric": "token_set", "threshold": 0.8}),
        (None, {}),
        ("x" * (MAX_FUZZY_CHARACTERS + 1), {}),
        ("x" * (MAX_CHARACTERS + 1), {"metric": "bleu"}),
    ],
)
def test_what_an_author_gets_wrong_is_refused(reference: object, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        similarity("x", reference, **options)


@pytest.mark.parametrize("metric", ["gleu", "meteor"])
def test_a_missing_package_names_its_extra(metric: Metric, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(MissingExtraError, match=r"assay\[similarity\]"):
        similarity("x y", "x z", metric=metric)
