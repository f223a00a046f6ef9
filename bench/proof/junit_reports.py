"""JUnit reports of many programs, beside what a widely used action reads in them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from assay.graders.testing.junit import read_junit
from bench.proof.material import Case, Difference, Source

ABOUT = "how many tests passed, failed and were skipped is read out of 28 reports"
SOURCE = Source(
    "EnricoMi/publish-unit-test-result-action",
    "c9bbcabcaf28c5ce2a9f8b6ee91c62873071b2ce",
    "Apache-2.0",
)
AGREE, OF = 27, 28
DIFFERENCES = (
    Difference(
        "no-attributes.xml",
        "by design",
        "Four cases without a name are errors: nobody could say which tests they were. The action "
        "leaves them out.",
    ),
)
_WORDS = {
    "success": "passed",
    "failure": "failed",
    "skipped": "skipped",
    "disabled": "skipped",
    "error": "error",
}


def cases(directory: Path) -> Iterator[Case]:
    """Each report with the results that its repository keeps beside it."""
    home = directory / "python/test/files/junit-xml"
    for kept in sorted(home.rglob("*.results")):
        report = kept.with_suffix(".xml")
        if not report.is_file():
            continue
        expected = Counter(_WORDS[result] for result in _results(kept.read_text("utf-8")))
        read = read_junit({report.name: report.read_bytes()})
        found = Counter[str](one.outcome for one in read.values())
        said = f"expected {_told(expected)}, read {_told(found)}"
        yield Case(str(report.relative_to(home)), expected == found, said)


def _results(kept: str) -> Iterator[str]:
    """The results of the cases, which are kept as Python writes the records of the action."""
    for call in ast.walk(ast.parse(kept, mode="eval")):
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("UnitTestCase"):
            for keyword in call.keywords:
                if keyword.arg == "result":
                    yield str(ast.literal_eval(keyword.value))


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "none"
