"""Older names for the same functions, for code written against ``hud.native``."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import replace

from assay.graders.base import Grader
from assay.graders.command import BashGrader
from assay.scoring.combine import combine, combine_scores
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult, SubScore
from assay.text import contains, contains_all, contains_any, exact_match

__all__ = [
    "BashGrader",
    "EvaluationResult",
    "Grade",
    "Grader",
    "SubScore",
    "contains",
    "contains_all",
    "contains_any",
    "exact_match",
]


class Grade:
    """Combines subscores; the metadata of each is copied into the result's ``info``."""

    @staticmethod
    async def gather(*items: SubScore | Awaitable[SubScore]) -> EvaluationResult:
        """`assay.graders.combine` under its older name."""
        return _with_metadata(await combine(*items))

    @staticmethod
    def from_subscores(subscores: Sequence[SubScore]) -> EvaluationResult:
        """Combine subscores that are already resolved.

        Raises:
            ScoreError: For no subscores, or none with a positive weight.
        """
        return _with_metadata(combine_scores(subscores))


def _with_metadata(result: EvaluationResult) -> EvaluationResult:
    metadata: dict[str, Json] = {
        node.name: dict(node.metadata)
        for node in result.subscores or ()
        if node.metadata is not None
    }
    return replace(result, info={**result.info, **metadata})
