"""Functions that grade: their source, the checks they go through, and how they are run."""

from assay.graders.functions.capture import source_of
from assay.graders.functions.checks import EXAMPLE, Check, ValidationReport, validate_function
from assay.graders.functions.grading import grade_functions, thread_of
from assay.graders.functions.source import (
    MAX_SOURCE_BYTES,
    FunctionSource,
    Isolation,
    given_modules,
    read_source,
)

__all__ = [
    "EXAMPLE",
    "MAX_SOURCE_BYTES",
    "Check",
    "FunctionSource",
    "Isolation",
    "ValidationReport",
    "given_modules",
    "grade_functions",
    "read_source",
    "source_of",
    "thread_of",
    "validate_function",
]
