"""Bodies about runs and their cells."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, JsonValue

from assay.scoring.results import Assurance
from assay.server.models.base import Shown

__all__ = ["CellPage", "CellShown", "DetailShown", "RunPage", "RunShown"]

_RUN: dict[str, JsonValue] = {
    "id": "20261121-090830-ab12",
    "created_at": "2026-11-21T09:08:30+00:00",
    "label": "nightly",
    "config": {},
    "digests": {},
    "finished": True,
    "planned": 1,
}
_CELL: dict[str, JsonValue] = {
    "run_id": "20261121-090830-ab12",
    "case": "kit",
    "harness": "replay",
    "model": "fix",
    "trial": 1,
    "status": "graded",
    "reward": 1.0,
    "passed": True,
    "threshold": 1.0,
    "assurance": "shared",
    "min_assurance": None,
    "error": "",
    "flags": [],
    "seconds": 1.5,
    "cost_usd": None,
    "tokens": None,
    "digest": "",
    "subscores": [],
    "content": "",
    "answer": "",
    "file": "evals/kit/case.yaml",
    "notes": {},
}


def _example(*examples: JsonValue) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": list(examples)})


class RunShown(Shown):
    """A run of cases."""

    model_config = _example(_RUN)

    id: str
    created_at: str
    label: str
    config: dict[str, JsonValue]
    digests: dict[str, str]
    finished: bool
    planned: int


class RunPage(Shown):
    """Runs, newest first."""

    model_config = _example({"items": [_RUN], "next_cursor": None})

    items: list[RunShown]
    next_cursor: str | None


class CellShown(Shown):
    """The result of a cell."""

    model_config = _example(_CELL)

    run_id: str
    case: str
    harness: str
    model: str
    trial: int
    status: Literal["graded", "error", "skipped"]
    reward: float | None
    passed: bool | None
    threshold: float
    assurance: Assurance | None = Field(
        description="How far the reward can be trusted; null where nothing says."
    )
    min_assurance: Assurance | None = Field(description="What the case needs to pass, if any.")
    error: str
    flags: list[str]
    seconds: float
    cost_usd: float | None
    tokens: int | None
    digest: str
    subscores: list[dict[str, JsonValue]]
    content: str
    answer: str
    file: str
    notes: dict[str, JsonValue]


class CellPage(Shown):
    """Results of cells."""

    model_config = _example({"items": [_CELL], "next_cursor": None})

    items: list[CellShown]
    next_cursor: str | None


class DetailShown(Shown):
    """A cell, and the whole run of it: answer, trace, score tree."""

    model_config = _example({"cell": _CELL, "detail": {}})

    cell: CellShown
    detail: dict[str, JsonValue]
