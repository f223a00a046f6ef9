"""The kind ``efficiency``: how cheaply the result was reached."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from assay.errors import GraderError, InputError
from assay.graders.base import Grader, Score
from assay.graders.tool_calls import observed_calls
from assay.graders.usage import did_nothing, is_observed, missing_part, totals_of
from assay.scoring.json_safe import Json, record_evidence
from assay.scoring.results import SubScore
from assay.types.submission import Workspace
from assay.types.trace import Trace

__all__ = ["EfficiencyGrader"]

_TARGETS = ("cost_usd", "tokens", "tool_calls")


class EfficiencyGrader(Grader):
    """Mean over the given targets: 1 at or under the target, target / actual above it.

    Cheapness alone earns nothing: an agent that did nothing scores 0, and in a case so does one
    whose work earned no other credit. Skipped: the harness shows nothing of the agent's work. A
    quantity that the harness does not measure is left out, as the evidence says; where none is
    measured, that is an error. One that is unknown because the trace was cut off counts 0.
    """

    name: ClassVar[str] = "efficiency"
    needs_credit: ClassVar[bool] = True
    of_conduct: ClassVar[bool] = True
    assurance = "read"
    """Worth nothing where the other graders of the case gave no credit."""

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Refuse a declaration without a target, and targets that nothing could reach."""
        targets = {f"target_{name}": options.get(f"target_{name}") for name in _TARGETS}
        given = {name: target for name, target in targets.items() if target is not None}
        if not given:
            raise InputError("efficiency needs a target", hint=", ".join(targets))
        for name, target in given.items():
            if isinstance(target, int | float) and not (math.isfinite(target) and target > 0):
                raise InputError(f"{name} must be more than 0, got {target}")
        threshold = options.get("pass_threshold", 0.8)
        if isinstance(threshold, int | float) and not 0 <= threshold <= 1:
            raise InputError(f"pass_threshold must be in [0, 1], got {threshold}")

    @classmethod
    async def compute_score(
        cls,
        trace: Trace,
        *,
        target_cost_usd: float | None = None,
        target_tokens: int | None = None,
        target_tool_calls: int | None = None,
        pass_threshold: float = 0.8,
        answer: str | None = None,
        workspace: Workspace | None = None,
    ) -> Score:
        """Compare what was used with the targets.

        Args:
            trace: What the agent did, as its harness recorded it.
            target_cost_usd: US dollars for full credit.
            target_tokens: Tokens for full credit, read (cached ones included) and written.
            target_tool_calls: Tool calls for full credit.
            pass_threshold: The value from which on it passes.
            answer: The final answer, a sign of work.
            workspace: Where a change of a file is a sign of work.

        Raises:
            GraderError: If the harness measures nothing of what is asked.
            InputError: For no target, or one that is not above 0.
        """
        targets = {
            "cost_usd": target_cost_usd,
            "tokens": target_tokens,
            "tool_calls": target_tool_calls,
        }
        asked: dict[str, Json] = {f"target_{name}": target for name, target in targets.items()}
        cls.check_options({**asked, "pass_threshold": pass_threshold})
        if not is_observed(trace):
            return SubScore.skipped(cls.name, "this harness records nothing of the agent's work")
        if did_nothing(trace, answer, workspace):
            return 0.0, {"why": "the agent did nothing"}
        totals, missing = totals_of(trace), missing_part(trace)
        actual: dict[str, float | None] = {
            "cost_usd": totals.cost_usd,
            "tokens": totals.tokens,
            "tool_calls": None if missing else len(observed_calls(trace)),
        }
        shares = {
            name: _share(actual[name], target, missing)
            for name, target in targets.items()
            if target is not None
        }
        known = [share for share in shares.values() if share is not None]
        if not known:
            raise GraderError(
                f"the harness measures none of {', '.join(shares)}, and unknown is not 0",
                hint="use a harness whose trace tells them",
            )
        value = math.fsum(known) / len(known)
        evidence: dict[str, Json] = {
            "metrics": {
                name: {"target": targets[name], "actual": actual[name], "share": share}
                for name, share in shares.items()
            },
            "not_measured": [name for name, share in shares.items() if share is None],
            "missing": missing,
        }
        return SubScore(
            name=cls.name,
            value=value,
            passed=value >= pass_threshold,
            metadata=record_evidence(evidence),
        )


def _share(actual: float | None, target: float, missing: str) -> float | None:
    if actual is None:
        return 0.0 if missing else None
    return 1.0 if actual <= target else target / actual
