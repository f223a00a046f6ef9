"""Math-Verify's own tests, by the comparison ``math_equal``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assay.errors import InputError
from assay.graders import math_equal
from bench.proof.material import Case, Difference, Source
from bench.proof.tables import rows

ABOUT = "math_equal says of the pairs in Math-Verify's tests whether they are equal"
SOURCE = Source("huggingface/Math-Verify", "5d148cfaaf99214c2e4ffb4bc497ab042c592a7a", "Apache-2.0")
AGREE, OF = 238, 254
DIFFERENCES = (
    Difference(
        "test_all:test_number_extraction:*",
        "by design",
        "A comma groups thousands and is never a decimal point: `1,22` could be either.",
    ),
    Difference(
        "test_all:test_latex_notation:130",
        "by design",
        "Where a number is expected, an answer may not leave a sum to the grader.",
    ),
    Difference(
        "test_all:test_relations_math:*",
        "by design",
        "A chain with several values is no answer: `7 = 11` and `1/3 \\approx 11` claim both.",
    ),
    Difference(
        "test_all:test_complex_math_expressions:*",
        "by design",
        "Their test rounds to two or four places. `math_equal` rounds nothing that it is not told "
        "to, and `numeric_match` has a tolerance.",
    ),
    Difference(
        "test_all:test_math_extraction_additional_cases:810",
        "by design",
        "Where there is a box, nothing outside it counts, and the boxes hold other numbers.",
    ),
    Difference(
        "test_all:test_set_rel_assymetry:*",
        "assay",
        "An interval and the inequality that says the same are equal in both directions; "
        "Math-Verify accepts one direction alone unless it is told otherwise.",
    ),
    Difference(
        "test_open_thoughts:*",
        "theirs",
        "The reference holds a command that LaTeX does not have (`\\quadx`).",
    ),
    Difference(
        "test_strict:*", "theirs", "Their test asks for `f(x)` and `f(y)` as equal, without strict."
    ),
)


def cases(directory: Path) -> Iterator[Case]:
    """Each pair of the table-driven tests."""
    for file in sorted((directory / "tests").glob("test_*.py")):
        for row in rows(file):
            gold, answer, expected = map(row.values.get, ("gold", "pred", "expected"))
            if gold is None or answer is None or expected is None:
                continue
            try:
                said = "equal" if math_equal(answer, gold) == 1.0 else "different"
            except InputError as error:
                said = f"refused: {error}"
            wanted = "equal" if expected else "different"
            told = f"{wanted} expected, {said}: {gold!r} and {answer!r}"
            yield Case(f"{file.stem}:{row.place}", said == wanted, told)
