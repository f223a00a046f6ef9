"""Older names for the same functions, for code written against ``hud.native``."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from assay.frozen import changed
from assay.graders.base import Grader
from assay.graders.command import BashGrader
from assay.on_demand import names_on_demand
from assay.scoring.combine import combine, combine_scores, presented
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult, SubScore
from assay.text import contains, contains_all, contains_any, exact_match

if TYPE_CHECKING:
    from assay.graders.llm_judge import LLMJudgeGrader
    from assay.text import f1_score, normalize, numeric_match

__all__ = [
    "BashGrader",
    "EvaluationResult",
    "Grade",
    "Grader",
    "LLMJudgeGrader",
    "SubScore",
    "contains",
    "contains_all",
    "contains_any",
    "exact_match",
    "f1_score",
    "normalize",
    "numeric_match",
]

__getattr__ = names_on_demand(
    __name__,
    {
        "LLMJudgeGrader": "assay.graders.llm_judge",
        "f1_score": "assay.text",
        "normalize": "assay.text",
        "numeric_match": "assay.text",
    },
)


class Grade:
    """Combines subscores; the metadata of each is copied into the result's ``info``."""

    @staticmethod
    async def gather(*items: SubScore | Awaitable[SubScore]) -> EvaluationResult:
        """`assay.graders.combine` under its older name."""
        return _with_evidence(await combine(*items))

    @staticmethod
    def from_subscores(subscores: Sequence[SubScore]) -> EvaluationResult:
        """Combine subscores that are already resolved.

        Raises:
            ScoreError: For no subscores, or none with a positive weight.
        """
        return _with_evidence(presented(combine_scores(subscores)))


def _with_evidence(result: EvaluationResult) -> EvaluationResult:
    evidence: dict[str, Json] = {
        node.name: dict(node.metadata)
        for node in result.subscores or ()
        if node.metadata is not None
    }
    return changed(result, info={**evidence, **result.info})
