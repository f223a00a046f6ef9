"""The calibration card that stands beside scores."""

from __future__ import annotations

from pydantic import ConfigDict, Field, JsonValue

from assay.server.models.base import Shown

__all__ = ["CALIBRATION", "CalibrationShown"]

CALIBRATION: dict[str, JsonValue] = {
    "grader": "four",
    "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "card": "20261121-1a2b3c4d",
    "kappa": 0.62,
    "kappa_interval": [0.51, 0.71],
    "n": 120,
    "errors": 0,
    "stale": True,
    "changed": ["source changed"],
    "line": "agreement with people: kappa 0.62 [0.51, 0.71], n=120; STALE, measured before a "
    "change: source changed",
}
"""An example."""


class CalibrationShown(Shown):
    """How far a grader agrees with people, as it was measured before."""

    model_config = ConfigDict(json_schema_extra={"examples": [CALIBRATION]})

    grader: str
    digest: str = Field(description="Of what gave the scores.")
    card: str = Field(description="Id of the card.")
    kappa: float | None = Field(description="Agreement beyond chance; null where undefined.")
    kappa_interval: list[float] | None = Field(description="Lower and upper end.")
    n: int = Field(description="Rows that were compared.")
    errors: int = Field(description="Rows that the grader could not judge.")
    stale: bool = Field(description="Whether the card was made before a change of the grader.")
    changed: list[str] = Field(description="What changed; empty unless it is stale.")
    line: str = Field(description="All of it in one line, for people.")
