"""The cases of Inspect's scorer ``math``, by the comparison ``math_equal``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from assay.errors import InputError
from assay.graders import math_equal
from bench.proof.material import Case, Difference, Source

ABOUT = "math_equal says of the cases of Inspect's scorer `math` which are right"
SOURCE = Source("UKGovernmentBEIS/inspect_ai", "499e6152e7b8fc8cbd8ac5283536572aa6e4ab17", "MIT")
_UNDONE = (
    "An answer may not leave to the grader what is to be computed: by default it is not equal."
)
DIFFERENCES = (
    Difference("11", "by design", _UNDONE),
    Difference("32", "by design", _UNDONE),
    Difference(
        "30", "by design", "The box is written wrong (`\\\\beginboxed`), and is no box here."
    ),
)


def cases(directory: Path) -> Iterator[Case]:
    """Each case, by its place in the file."""
    file = directory / "tests/scorer/math_cases.json"
    for number, case in enumerate(json.loads(file.read_text("utf-8"))):
        try:
            said = "C" if math_equal(case["output"], case["target"]) == 1.0 else "I"
        except InputError as error:
            said = f"refused: {error}"
        told = f"{case['expected']} expected, {said}: {case['target']!r} and {case['output']!r}"
        yield Case(f"{number}", said == case["expected"], told)
