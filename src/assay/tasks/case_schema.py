"""The JSON Schema of a case file, for editors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from assay.graders.spec import spec_schema
from assay.scoring.json_safe import Json
from assay.tasks.case import CaseDocument
from assay.types import codec

_ABOVE_0: dict[str, Json] = {"exclusiveMinimum": 0}
_COMMIT: dict[str, Json] = {"pattern": "^[0-9a-fA-F]{7,64}$"}
_PAIRS: dict[str, Json] = {
    "oneOf": [
        {"required": ["harnesses", "models"], "not": {"required": ["entries"]}},
        {
            "required": ["entries"],
            "not": {"anyOf": [{"required": ["harnesses"]}, {"required": ["models"]}]},
        },
    ]
}
_ORIGINS: dict[str, Json] = {
    "oneOf": [
        {"required": ["path"]},
        {"required": ["git", "commit"]},
        {"required": ["repo", "commit"]},
        {"required": ["pypi"]},
    ]
}
_RULES: tuple[tuple[str, Mapping[str, Json]], ...] = (
    ("id", {"minLength": 1, "maxLength": 200}),
    ("task.prompt", {"minLength": 1}),
    ("source", _ORIGINS),
    ("source.commit", _COMMIT),
    ("source.sha256", {"pattern": "^[0-9a-fA-F]{64}$"}),
    ("source.pypi", {"pattern": "=="}),
    ("fixtures.commit", _COMMIT),
    ("matrix", _PAIRS),
    ("matrix.harnesses", {"minItems": 1, "uniqueItems": True}),
    ("matrix.models", {"minItems": 1, "uniqueItems": True}),
    ("matrix.entries", {"minItems": 1}),
    ("matrix.trials", {"minimum": 1}),
    ("environment.timeout_s", _ABOVE_0),
    ("expect.pass_threshold", {"minimum": 0, "maximum": 1}),
    ("limits.agent_timeout_s", _ABOVE_0),
    ("limits.grading_timeout_s", _ABOVE_0),
)


def case_schema() -> dict[str, Json]:
    """The JSON Schema (draft 2020-12) of a case file.

    What it accepts and the loader refuses: files that do not exist, and rules between fields that
    no editor would show well.
    """
    schema = codec.schema(CaseDocument)
    properties = cast("dict[str, dict[str, Json]]", schema["properties"])
    properties["graders"] |= {"minItems": 1, "items": spec_schema()}
    properties["$schema"] = {"type": "string"}
    for path, rules in _RULES:
        place = schema
        for name in path.split("."):
            place = cast("dict[str, dict[str, Json]]", _object(place)["properties"])[name]
        _object(place).update(rules)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "assay case",
        **schema,
    }


def _object(place: dict[str, Json]) -> dict[str, Json]:
    """The schema itself, or what it is unless null."""
    options = cast("list[dict[str, Json]]", place.get("anyOf", [place]))
    return next(option for option in options if option.get("type") != "null")
