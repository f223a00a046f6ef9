"""EVOUNA: people's verdicts on the answers of five models, and how agreement is measured."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.graders import contains_any, exact_match, f1_score
from assay.statistics.agreement import Confusion, agreement
from bench.proof.material import Case, Difference, Source

ABOUT = "accuracy and kappa of three comparisons with 24,789 human verdicts are scikit-learn's"
SOURCE = Source("wangcunxiang/QA-Eval", "90007d39d4ef0720984f80d56a586c66d6241e70", "Apache-2.0")
AGREE, OF = 60, 60
DIFFERENCES: tuple[Difference, ...] = ()
_MODELS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
_GRADERS: Mapping[str, Callable[[str, list[str]], float]] = {
    "exact_match": lambda answer, golds: max(exact_match(answer, gold) for gold in golds),
    "contains_any": contains_any,
    "f1_score": lambda answer, golds: max(f1_score(answer, gold) for gold in golds),
}


def cases(directory: Path) -> Iterator[Case]:
    """Accuracy and kappa of each comparison on each model's answers to either set of questions."""
    verdicts = 0
    for file in sorted((directory / "EVOUNA").glob("*.json")):
        asked: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
        proper = [row for row in asked if not row["improper"]]
        for model in _MODELS:
            rows = [row for row in proper if row[f"judge_{model}"] is not None]  # one is null
            verdicts += len(rows)
            labels = [bool(row[f"judge_{model}"]) for row in rows]
            for name, grader in _GRADERS.items():
                scores = [grader(str(row[f"answer_{model}"]), _golds(row)) for row in rows]
                found = agreement(scores, labels, threshold=0.5).measure
                assert isinstance(found, Confusion), "labels that are bools are verdicts"
                passed = [score >= 0.5 for score in scores]
                yield from _compared(f"{file.stem}/{model}/{name}", found, labels, passed)
    print(f"{verdicts:,} human verdicts", file=sys.stderr)


def _golds(row: Mapping[str, Any]) -> list[str]:
    return [gold for gold in row["golden_answer"].split("/") if gold.strip()]


def _compared(
    of: str, found: Confusion, labels: Sequence[bool], passed: Sequence[bool]
) -> Iterator[Case]:
    theirs: Any = importlib.import_module("sklearn.metrics")  # without types
    for measure, ours, other in (
        ("accuracy", found.accuracy, float(theirs.accuracy_score(labels, passed))),
        ("kappa", found.kappa, float(theirs.cohen_kappa_score(labels, passed))),
    ):
        said = f"{other} by scikit-learn, {ours} here, of {found.n:,} answers"
        yield Case(f"{of}/{measure}", ours is not None and abs(ours - other) < 1e-9, said)
