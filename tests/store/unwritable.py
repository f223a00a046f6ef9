"""What looks like JSON, and cannot be written as JSON."""

from __future__ import annotations

from assay.scoring.json_safe import Json

__all__ = ["UNWRITABLE"]


def _circle() -> dict[str, Json]:
    circle: dict[str, Json] = {}
    circle["self"] = [circle, circle]
    return circle


def _deep() -> dict[str, Json]:
    deep: dict[str, Json] = {}
    for _ in range(100_000):
        deep = {"in": deep}
    return deep


UNWRITABLE: list[dict[str, Json]] = [_circle(), _deep(), {"set": {1}}]  # pyright: ignore[reportAssignmentType] - what JSON cannot hold
