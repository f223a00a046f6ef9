"""JSONTestSuite: which texts are JSON, by the reader that all comparisons of JSON use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assay.text.json_text import parse_json
from bench.proof.material import Case, Difference, Source

ABOUT = "283 texts are read as JSON or refused, as RFC 8259 says"
SOURCE = Source("nst/JSONTestSuite", "1ef36fa01286573e846ac449e8683f8833c5b26a", "MIT")
AGREE, OF = 281, 283
DIFFERENCES = (
    Difference(
        "y_object_duplicated_key*",
        "by design",
        "A key that stands twice is refused: two readers would grade two different answers.",
    ),
)


def cases(directory: Path) -> Iterator[Case]:
    """Each text that must be read (``y_``) or must be refused (``n_``)."""
    for file in sorted((directory / "test_parsing").glob("[yn]_*.json")):
        expected = file.name.startswith("y_")
        try:
            read = parse_json(file.read_bytes().decode(), strict=True).ok
        except UnicodeDecodeError:
            read = False  # no answer and no file is given to a reader like this
        words = {True: "read", False: "refused"}
        yield Case(file.stem, read == expected, f"{words[expected]} expected, {words[read]}")
