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


def grade(
    submission: Mapping[str, str],
    hidden: Mapping[str, str],
    *,
    source: Mapping[str, str] | None = None,
    reference: Mapping[str, str] | None = None,
    learns: bool = True,
    **options: Any,
) -> SubScore:
    """Grade a tree with hidden tests in the real sandbox, apart from each other.

    Args:
        submission: What is graded.
        hidden: The tests.
        source: What the agent was given.
        reference: What the contract is learnt from; the submission itself where there is none.
        learns: Whether there is a contract at all.
    """
    kind = TestsGrader if "cmd" in options else PytestGrader
    with tempfile.TemporaryDirectory(prefix="assay-test-") as home:
        trees = {"tree": submission, "reference": reference or submission}
        for place, files in {**trees, "source": source or {}, "hidden": hidden}.items():
            for name, text in {".keep": "", **files}.items():
                path = Path(home, place, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        inject = [Injected(src=str(Path(home, "hidden", name)), dest=name) for name in hidden]

        def run(place: str, contract: Contract) -> SubScore:
            workspace = Workspace(path=f"{home}/{place}", source=f"{home}/source")
            given: dict[str, Any] = {**options, "inject": inject, "contract": contract.to_json()}
            return asyncio.run(kind.grade(workspace=workspace, isolation="process", **given))

        contract = Contract(seed="5eed")
        if learns:
            told: Any = run("reference", Contract(seed="5eed", learns=True)).metadata
            contract = Contract.of_runs("5eed", [told.get("needs", {})])
        return run("tree", contract)


def outcomes(score: SubScore) -> Outcomes:
    """Each test's outcome and message, by its name."""
    told: Any = score.metadata or {}
    assert "tests_left_out" not in told, "too many tests in one run"
    return {one["id"]: (one["outcome"], one.get("message", "")) for one in told["tests"]}
