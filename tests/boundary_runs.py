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
Files = Mapping[str, str]
Needs = Mapping[str, list[str]]
SEED = "5eed"


def grade(
    submission: Files,
    hidden: Files,
    *,
    source: Files | None = None,
    reference: Files | None = None,
    **options: Any,
) -> SubScore:
    """Grade a tree with hidden tests in the real sandbox, apart from each other.

    Args:
        submission: What is graded.
        hidden: The tests.
        source: What the agent was given.
        reference: What the contract is learnt from; the submission itself where there is none.
        options: Of the grader. With a ``contract`` among them, none is learnt.
    """
    if "contract" not in options:
        needs = learn(reference or submission, hidden, source=source, **options)
        options["contract"] = Contract.of_runs(SEED, needs).to_json()
    return _run(submission, hidden, source, options)


def learn(
    right: Files, hidden: Files, *, source: Files | None = None, **options: Any
) -> list[Needs]:
    """What two runs of a reference need: one as it is, one whose objects are scrambled."""
    learnt = _run(right, hidden, source, {**options, "contract": _LEARNS})
    told: Any = learnt.metadata
    scrambled = _run(right, hidden, source, {**options, "contract": _SCRAMBLES})
    rows: Any = (scrambled.metadata or {}).get("tests", ())
    failed = [one["id"].partition("[")[0] for one in rows if one["outcome"] == "failed"]
    return [told.get("needs", {}), {test: ["keeps:"] for test in failed}]


_LEARNS = Contract(seed=SEED, learns=True).to_json()
_SCRAMBLES = Contract(seed=SEED, learns=True, needs={"": ("scrambles:",)}).to_json()


def _run(tree: Files, hidden: Files, source: Files | None, options: Mapping[str, Any]) -> SubScore:
    kind = TestsGrader if "cmd" in options else PytestGrader
    with tempfile.TemporaryDirectory(prefix="assay-test-") as home:
        for place, files in {"tree": tree, "source": source or {}, "hidden": hidden}.items():
            for name, text in {".keep": "", **files}.items():
                path = Path(home, place, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        inject = [Injected(src=str(Path(home, "hidden", name)), dest=name) for name in hidden]
        workspace = Workspace(path=f"{home}/tree", source=f"{home}/source")
        given: dict[str, Any] = {**options, "inject": inject, "isolation": "process"}
        return asyncio.run(kind.grade(workspace=workspace, **given))


def outcomes(score: SubScore) -> Outcomes:
    """Each test's outcome and message, by its name."""
    told: Any = score.metadata or {}
    assert "tests_left_out" not in told, "too many tests in one run"
    return {one["id"]: (one["outcome"], one.get("message", "")) for one in told["tests"]}
