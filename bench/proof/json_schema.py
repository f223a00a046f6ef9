"""JSON Schema's own test suite, by the comparison ``json_schema``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.errors import InputError
from assay.graders import json_schema
from bench.proof.material import Case, Difference, Source

ABOUT = "json_schema says of 4,942 values of five drafts whether they are valid"
SOURCE = Source(
    "json-schema-org/JSON-Schema-Test-Suite", "44401e0c046704b476ec9d2e2fccdaee618f259d", "MIT"
)
AGREE, OF = 4_794, 4_942
_ELSEWHERE = (
    "The schema names another document. Nothing is fetched, so the schema is refused before any "
    "answer is read."
)
DIFFERENCES = (
    Difference("*", "by design", _ELSEWHERE, said="*refused: *: Resource '*://*' is not present*"),
    Difference("*", "by design", _ELSEWHERE, said="*refused: *: Unknown meta-schema: '*://*"),
)
_DRAFTS = ("draft4", "draft6", "draft7", "draft2019-09", "draft2020-12")


def cases(directory: Path) -> Iterator[Case]:
    """Each required test of the drafts that assay knows."""
    for draft in _DRAFTS:
        for file in sorted((directory / "tests" / draft).glob("*.json")):
            for group in json.loads(file.read_text("utf-8")):
                for test in group["tests"]:
                    place = f"{draft}/{file.stem}/{group['description']}/{test['description']}"
                    expected = "valid" if test["valid"] else "invalid"
                    said = _asked(json.dumps(test["data"]), group["schema"], draft)
                    yield Case(place, said == expected, f"{expected} expected, {said}")


def _asked(answer: str, schema: dict[str, Any] | bool, draft: str) -> str:  # noqa: FBT001 - a schema
    if isinstance(schema, dict) and "$schema" not in schema:
        schema = {"$schema": _NAMES[draft], **schema}
    try:
        return "valid" if json_schema(answer, schema, strict=True) == 1.0 else "invalid"
    except InputError as error:
        return f"refused: {error}"


_NAMES = {
    **{f"draft{n}": f"http://json-schema.org/draft-0{n}/schema#" for n in (4, 6, 7)},
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
