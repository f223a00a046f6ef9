"""Runs whose graders agree more or less, put into a store: for histograms and comparisons."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from web.src.runs.made_runs import add_run

from assay.eval.records import shortened
from assay.scoring.results import SubScore
from assay.store.records import CellRecord, RunRecord

__all__ = ["cell", "noisy", "store_run"]


def cell(
    case: str,
    scores: dict[str, float | None],
    *,
    model: str = "small",
    trial: int = 1,
    answer: str = "",
    reason: str = "",
    cost_usd: float | None = 0.01,
    seconds: float = 2.0,
    grader_seconds: float | None = None,
) -> CellRecord:
    """A cell whose reward is the mean of its scores; where one is None it could not be graded."""
    nodes = [
        SubScore.error(name, "the judge did not answer", weight=1 / len(scores))
        if value is None
        else SubScore(
            name=name,
            value=value,
            weight=1 / len(scores),
            passed=value >= 0.5,
            metadata={"_digest": name}
            | ({} if grader_seconds is None else {"seconds": grader_seconds}),
            reason=reason or f"{name}: {value:.2f} of what it asks for",
        )
        for name, value in scores.items()
    ]
    known = [value for value in scores.values() if value is not None]
    is_error = len(known) < len(scores) or not scores
    reward = None if is_error else sum(known) / len(known)
    return CellRecord(
        run_id="",
        case=case,
        harness="assistant",
        model=model,
        trial=trial,
        status="error" if is_error else "graded",
        reward=reward,
        passed=None if reward is None else reward >= 0.5,
        threshold=0.5,
        error="judge: no answer in 30 s" if is_error else "",
        seconds=seconds,
        cost_usd=cost_usd,
        tokens=None if cost_usd is None else round(cost_usd * 100_000),
        answer=shortened(answer or f"The answer to {case}."),
        subscores=tuple(node.to_dict() for node in nodes),
    )


def store_run(
    home: Path,
    run: str,
    cells: Iterable[CellRecord],
    *,
    label: str = "",
    created_at: str = "2026-11-21T09:00:00+00:00",
    prompt: Callable[[str], str] = lambda case: f"What is asked in {case}?",
) -> None:
    """Store a finished run."""
    rows = [replace(one, run_id=run) for one in cells]
    made = RunRecord(id=run, created_at=created_at, label=label, planned=len(rows), finished=True)
    add_run(home, made, rows, lambda one: {"prompt": prompt(one.case)})


def noisy(
    number: int, *, gain: float = 0.0, model: str = "small", seed: int = 0
) -> list[CellRecord]:
    """Cells whose graders agree somewhat: tests, a judge of which some do not answer, a format."""
    rng = random.Random(seed)
    found: list[CellRecord] = []
    for place in range(number):
        skill = rng.random() + gain
        judged = min(1.0, max(0.0, round((skill + rng.gauss(0, 0.2)) * 10) / 10))
        scores: dict[str, float | None] = {
            "tests": 1.0 if skill + rng.gauss(0, 0.15) > 0.45 else 0.0,
            "judge": None if place % 40 == 7 else judged,
            "format": 1.0 if place % 9 else 0.0,
        }
        cost = None if place % 25 == 3 else rng.lognormvariate(-4, 1)
        case = f"case-{place:04}"
        found.append(
            cell(case, scores, model=model, cost_usd=cost, seconds=rng.lognormvariate(1, 1))
        )
    return found
