"""Definitions of stored graders, in short."""

from __future__ import annotations

from typing import cast

from assay.registry import Definition, definition_from
from assay.scoring.json_safe import Json
from assay.types.codec import to_json


def definition(of_kind: str, **fields: object) -> Definition:
    """A stored grader of a kind, with its fields."""
    return definition_from(of_kind, cast("dict[str, Json]", to_json(fields)))


def changed(before: Definition, **fields: object) -> Definition:
    """A stored grader with other fields."""
    return definition(before.kind, **{**before.data, **fields})
