"""Scores: the tree, how it is combined, advantages. No I/O."""

from assay.scoring.combine import combine, combine_all, combine_any, combine_scores
from assay.scoring.graded import Grade, Graded
from assay.scoring.json_safe import Json, json_safe, record_parameters
from assay.scoring.results import EvaluationResult, Status, SubScore

__all__ = [
    "EvaluationResult",
    "Grade",
    "Graded",
    "Json",
    "Status",
    "SubScore",
    "combine",
    "combine_all",
    "combine_any",
    "combine_scores",
    "json_safe",
    "record_parameters",
]
