"""Compare an answer with what was expected: words, numbers, choices, JSON, mathematics.

Every comparison is synchronous, returns a float from 0.0 to 1.0, takes time linear (or bounded)
in the answer's length and gives 0.0, never an exception, for whatever an answer says. What an
author got wrong is an `assay.errors.InputError`.

Every comparison takes ``extract=``, where in the answer to look, and ``pick=``, which candidate
counts where there are several (see `extract_answer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.on_demand import names_on_demand

if TYPE_CHECKING:
    from assay.text.choice import choice_match
    from assay.text.compare import (
        contains,
        contains_all,
        contains_any,
        exact_match,
        f1_score,
        regex_match,
    )
    from assay.text.extract import extract_answer
    from assay.text.json_text import ParsedJson, parse_json
    from assay.text.likeness import similarity
    from assay.text.math import math_equal
    from assay.text.normal_form import normalize
    from assay.text.numbers import numeric_match
    from assay.text.structure import json_match, json_schema

__all__ = [
    "ParsedJson",
    "choice_match",
    "contains",
    "contains_all",
    "contains_any",
    "exact_match",
    "extract_answer",
    "f1_score",
    "json_match",
    "json_schema",
    "math_equal",
    "normalize",
    "numeric_match",
    "parse_json",
    "regex_match",
    "similarity",
]

_HOMES = {  # no module is called like what is in it: importing it would hide that
    "ParsedJson": ".json_text",
    "choice_match": ".choice",
    "contains": ".compare",
    "contains_all": ".compare",
    "contains_any": ".compare",
    "exact_match": ".compare",
    "extract_answer": ".extract",
    "f1_score": ".compare",
    "json_match": ".structure",
    "json_schema": ".structure",
    "math_equal": ".math",
    "normalize": ".normal_form",
    "numeric_match": ".numbers",
    "parse_json": ".json_text",
    "regex_match": ".compare",
    "similarity": ".likeness",
}

__getattr__ = names_on_demand(__name__, _HOMES)
