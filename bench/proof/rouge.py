"""The tests of rouge-score, whose figures ROUGE-1.5.5 itself printed, by ``similarity``."""

from __future__ import annotations

import inspect
import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from assay.graders import similarity
from assay.text.likeness import Metric
from bench.proof.material import Case, Difference, Source
from bench.proof.their_tests import Absent, Inexpressible, StandIns, Whatever
from bench.proof.their_tests import cases as cases_of

ABOUT = "similarity has the F-measures that rouge-score's tests have from ROUGE-1.5.5"
SOURCE = Source(
    "google-research/google-research",
    "0c1bbe5fc971a1de1a427debc814e66ab4f1e7fa",
    "Apache-2.0",
    folder="rouge",
)
AGREE, OF = 16, 27
DIFFERENCES = (
    Difference(
        "*",
        "assay",
        "Nothing is stemmed, and the longest common subsequence is of the whole text and not of "
        "each of its lines (`rougeLsum`).",
        said="needs rouge*",
    ),
    Difference("*:testValidRougeTypes:1", "assay", "N-grams are counted up to five words."),
    Difference(
        "*",
        "cannot be asked",
        "The test is of a function inside the other program.",
        said="needs *",
    ),
)


def cases(directory: Path) -> Iterator[Case]:
    """Each test of the scorer; precision and recall are not compared, for nothing tells them."""
    data = directory / "rouge/testdata"
    texts = {
        "TARGETS_FILE": data / "target.txt",
        "PREDICTIONS_FILE": data / "prediction.txt",
        "LARGE_TARGETS_FILE": data / "target_large.txt",
        "LARGE_PREDICTIONS_FILE": data / "prediction_large.txt",
    }
    stand_ins = StandIns(
        {
            "rouge": {
                "rouge_scorer": _Names(RougeScorer=_Scorer),
                "test_util": _Names(**texts),
            },
            "absl.testing": {
                "parameterized": _Names(TestCase=_TestCase, parameters=_parameters),
            },
        }
    )
    return cases_of(directory / "rouge/rouge_scorer_test.py", stand_ins)


class _Names(SimpleNamespace):
    def __getattr__(self, name: str) -> Absent:
        return Absent(f"a function of theirs, {name}")


class _TestCase(unittest.TestCase):
    def assertSameElements(self, one: Iterable[object], other: Iterable[object]) -> None:  # noqa: N802
        assert set(one) == set(other)


def _parameters(rows: Sequence[object]) -> Callable[[Callable[..., object]], object]:
    def marked(test: Callable[..., object]) -> object:
        return pytest.mark.parametrize(list(inspect.signature(test).parameters)[1], rows)(test)

    return marked


@dataclass(frozen=True, slots=True)
class _Score:
    fmeasure: float
    precision: Whatever
    recall: Whatever


class _Scorer:
    def __init__(self, kinds: Sequence[str], *, use_stemmer: bool = False) -> None:
        if use_stemmer or "rougeLsum" in kinds:
            raise Inexpressible("rougeLsum" if "rougeLsum" in kinds else "rouge of stems")
        self._metrics: Mapping[str, Metric] = {
            kind: cast("Metric", kind.lower().replace("rouge", "rouge_")) for kind in kinds
        }

    def score(self, target: str, prediction: str) -> dict[str, _Score]:
        return {
            kind: _Score(similarity(prediction, target, metric=metric), Whatever(), Whatever())
            for kind, metric in self._metrics.items()
        }
