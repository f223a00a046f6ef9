"""Graders: turn an answer, or an agent's work, into a score.

The names here are the public ones. Heavy parts are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.graders.base import Grader
from assay.graders.command import BashGrader, CommandGrader
from assay.graders.paths import CasePath
from assay.scoring.combine import combine, combine_all, combine_any
from assay.scoring.results import EvaluationResult, SubScore

if TYPE_CHECKING:
    from assay.graders.audit import AuditGrader
    from assay.graders.binary_judge import BinaryJudgeGrader
    from assay.graders.c_tests import CTestsGrader
    from assay.graders.endpoint import EndpointGrader
    from assay.graders.faithfulness import FaithfulnessGrader
    from assay.graders.files import FilesGrader
    from assay.graders.function import FunctionGrader
    from assay.graders.implemented import ImplementedGrader
    from assay.graders.llm_judge import LLMJudgeGrader
    from assay.graders.model_judge import ModelJudgeGrader
    from assay.graders.openai.comparisons import StringCheckGrader, TextSimilarityGrader
    from assay.graders.openai.definitions import MultiGrader
    from assay.graders.openai.judges import LabelModelGrader, ScoreModelGrader
    from assay.graders.openai.python import OpenAIPythonGrader
    from assay.graders.pairwise import PairwiseGrader
    from assay.graders.relevancy import AnswerRelevancyGrader, ContextRelevancyGrader
    from assay.graders.swebench import SweBenchGrader
    from assay.graders.tests import PytestGrader, TestsGrader
    from assay.graders.tool_correctness import ToolCorrectnessGrader
    from assay.graders.trace import EfficiencyGrader, TraceGrader
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
    "AnswerRelevancyGrader",
    "AuditGrader",
    "BashGrader",
    "BinaryJudgeGrader",
    "CTestsGrader",
    "CasePath",
    "CommandGrader",
    "ContextRelevancyGrader",
    "EfficiencyGrader",
    "EndpointGrader",
    "EvaluationResult",
    "FaithfulnessGrader",
    "FilesGrader",
    "FunctionGrader",
    "Grader",
    "ImplementedGrader",
    "LLMJudgeGrader",
    "LabelModelGrader",
    "ModelJudgeGrader",
    "MultiGrader",
    "OpenAIPythonGrader",
    "PairwiseGrader",
    "PytestGrader",
    "ScoreModelGrader",
    "StringCheckGrader",
    "SubScore",
    "SweBenchGrader",
    "TestsGrader",
    "TextSimilarityGrader",
    "ToolCorrectnessGrader",
    "TraceGrader",
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

_HOMES = {
    "AnswerRelevancyGrader": "relevancy",
    "AuditGrader": "audit",
    "BinaryJudgeGrader": "binary_judge",
    "CTestsGrader": "c_tests",
    "ContextRelevancyGrader": "relevancy",
    "EfficiencyGrader": "trace",
    "EndpointGrader": "endpoint",
    "FaithfulnessGrader": "faithfulness",
    "FilesGrader": "files",
    "FunctionGrader": "function",
    "ImplementedGrader": "implemented",
    "LLMJudgeGrader": "llm_judge",
    "LabelModelGrader": "openai.judges",
    "ModelJudgeGrader": "model_judge",
    "MultiGrader": "openai.definitions",
    "OpenAIPythonGrader": "openai.python",
    "PairwiseGrader": "pairwise",
    "PytestGrader": "tests",
    "ScoreModelGrader": "openai.judges",
    "StringCheckGrader": "openai.comparisons",
    "SweBenchGrader": "swebench",
    "TestsGrader": "tests",
    "TextSimilarityGrader": "openai.comparisons",
    "ToolCorrectnessGrader": "tool_correctness",
    "TraceGrader": "trace",
}


def __getattr__(name: str) -> object:
    import importlib

    if name == "Grade":  # HUD's older name of `combine`, where its users look for it
        return importlib.import_module("assay.native").Grade
    if name not in __all__:
        from assay.errors import nearest

        raise AttributeError(
            f"module 'assay.graders' has no attribute {name!r} ({nearest(name, __all__)})"
        )
    home = f"assay.graders.{_HOMES[name]}" if name in _HOMES else "assay.text"
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value
