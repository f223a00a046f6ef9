"""Graders: turn an answer, or an agent's work, into a score.

The names here are the public ones. Heavy parts are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.graders.base import Grader
from assay.graders.command import BashGrader
from assay.graders.paths import CasePath
from assay.scoring.combine import combine, combine_all, combine_any
from assay.scoring.results import EvaluationResult, SubScore

if TYPE_CHECKING:
    from assay.graders.llm_judge import LLMJudgeGrader
    from assay.text import (
        choice_match,
        contains,
        contains_all,
        contains_any,
        exact_match,
        f1_score,
        json_match,
        json_schema,
        math_equal,
        normalize,
        numeric_match,
        regex_match,
        similarity,
    )

__all__ = [
    "BashGrader",
    "CasePath",
    "EvaluationResult",
    "Grader",
    "LLMJudgeGrader",
    "SubScore",
    "choice_match",
    "combine",
    "combine_all",
    "combine_any",
    "contains",
    "contains_all",
    "contains_any",
    "exact_match",
    "f1_score",
    "json_match",
    "json_schema",
    "math_equal",
    "normalize",
    "numeric_match",
    "regex_match",
    "similarity",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'assay.graders' has no attribute {name!r}")
    if name == "LLMJudgeGrader":
        from assay.graders import llm_judge as home
    else:
        from assay import text as home
    value: object = getattr(home, name)
    globals()[name] = value
    return value
