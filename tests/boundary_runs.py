"""Graded runs of hidden tests across the boundary: the judge here, the submission there."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.graders.testing.contract import Contract
from assay.graders.testing.hidden import Injected
from assay.graders.tests import PytestGrader, TestsGrader
from assay.scoring.results import SubScore
from assay.types.submission import Workspace

Outcomes = dict[str, tuple[str, str]]

SEED = "5eed"
"""Of near misses."""


def grade(
    submission: Mapping[str, str],
    hidden: Mapping[str, str],
    *,
    source: Mapping[str, str] | None = None,
    **options: Any,
) -> SubScore:
    """Grade a tree with hidden tests in the real sandbox, apart from each other."""
    with tempfile.TemporaryDirectory(prefix="assay-test-") as home:
        places = {"tree": submission, "source": source or {}, "hidden": hidden}
        for place, files in places.items():
            for name, text in {".keep": "", **files}.items():
                path = Path(home, place, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        inject = [Injected(src=str(Path(home, "hidden", name)), dest=name) for name in hidden]
        workspace = Workspace(path=f"{home}/tree", source=f"{home}/source")
        grader = TestsGrader if "cmd" in options else PytestGrader
        return asyncio.run(
            grader.grade(workspace=workspace, inject=inject, isolation="process", **options)
        )


def prove(
    reference: Mapping[str, str],
    hidden: Mapping[str, str],
    *,
    source: Mapping[str, str] | None = None,
    **options: Any,
) -> Contract:
    """What a reference is seen to need.

    Raises:
        AssertionError: If it does not pass itself.
    """
    learning = Contract(seed=SEED, learns=True).to_json()
    score = grade(reference, hidden, source=source, contract=learning, **options)
    told: Any = score.metadata or {}
    assert score.value == 1.0, outcomes(score)
    return Contract.of_runs(SEED, [told.get("needs", {})])


def grade_by(
    reference: Mapping[str, str],
    submission: Mapping[str, str],
    hidden: Mapping[str, str],
    *,
    source: Mapping[str, str] | None = None,
    **options: Any,
) -> SubScore:
    """Grade a tree under the contract of a reference."""
    contract = prove(reference, hidden, source=source, **options)
    return grade(submission, hidden, source=source, contract=contract.to_json(), **options)


def outcomes(score: SubScore) -> Outcomes:
    """Each test's outcome and message, by its name."""
    told: Any = score.metadata or {}
    assert "tests_left_out" not in told, "too many tests in one run"
    return {one["id"]: (one["outcome"], one.get("message", "")) for one in told["tests"]}
