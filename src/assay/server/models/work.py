"""Bodies about datasets, jobs, scores, runs, projects and keys."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, JsonValue

from assay.server.models.base import Body, ItemId, Key, Name, Shown, Text, Version
from assay.server.models.calibration import CALIBRATION, CalibrationShown
from assay.server.models.graders import GradedShown

__all__ = [
    "DatasetPage",
    "DatasetShown",
    "IdentityShown",
    "JobBody",
    "JobPage",
    "JobShown",
    "JobStatus",
    "KeyBody",
    "KeyPage",
    "KeyShown",
    "NewKeyShown",
    "ProjectBody",
    "ProjectPage",
    "ProjectShown",
    "ResultPage",
    "RowPage",
    "ScorePage",
    "ScoresBody",
    "ScoresShown",
    "StateShown",
]

_TIME = "2026-11-21T09:08:30.000000+00:00"
_PROJECT: dict[str, JsonValue] = {"key": "default", "name": "", "created_at": _TIME}
_DATASET: dict[str, JsonValue] = {
    "project": "default",
    "key": "arithmetic",
    "name": "",
    "rows": 2,
    "size": 61,
    "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "created_at": _TIME,
}
_JOB: dict[str, JsonValue] = {
    "id": "20261121-090830-ab12",
    "project": "default",
    "grader": "four",
    "version": 1,
    "dataset": "arithmetic",
    "status": "running",
    "total": 2,
    "done": 1,
    "errors": 0,
    "message": "",
    "created_at": _TIME,
    "updated_at": _TIME,
    "created_by": "local",
}
_GRADED: dict[str, JsonValue] = {
    "id": "1",
    "status": "scored",
    "score": 1.0,
    "outcome": "ok",
    "reason": "",
    "error": None,
    "flags": [],
    "details": {},
    "grader": "four@1",
    "digest": "",
    "assurance": "separate",
}
_SCORE: dict[str, JsonValue] = {
    "seq": 7,
    "project": "default",
    "item": "1",
    "job": "",
    "source": "grader",
    "graded": _GRADED,
    "created_at": _TIME,
}
_KEY: dict[str, JsonValue] = {
    "id": "1",
    "name": "ci",
    "role": "editor",
    "project": "default",
    "prefix": "assay_1a2b3c4d",
    "created_at": _TIME,
    "last_used_at": "",
    "revoked_at": "",
}


JobStatus: TypeAlias = Literal["queued", "running", "finished", "failed", "cancelled"]


def _example(*examples: JsonValue) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": list(examples)})


class ProjectBody(Body):
    """A new project."""

    model_config = _example({"key": "maths", "name": "Mathematics"})

    key: Key
    name: Name = ""


class ProjectShown(Shown):
    """A project."""

    model_config = _example(_PROJECT)

    key: str
    name: str
    created_at: str


class ProjectPage(Shown):
    """Projects, by key."""

    model_config = _example({"items": [_PROJECT], "next_cursor": None})

    items: list[ProjectShown]
    next_cursor: str | None


class DatasetShown(Shown):
    """A dataset."""

    model_config = _example(_DATASET)

    project: str
    key: str
    name: str
    rows: int
    size: int
    digest: str
    created_at: str


class DatasetPage(Shown):
    """Datasets, by key."""

    model_config = _example({"items": [_DATASET], "next_cursor": None})

    items: list[DatasetShown]
    next_cursor: str | None


class RowShown(Shown):
    """A row of a dataset."""

    number: int
    id: str
    data: dict[str, JsonValue]


class RowPage(Shown):
    """Rows, in their order."""

    model_config = _example(
        {
            "items": [{"number": 1, "id": "1", "data": {"answer": "4", "expected": "4"}}],
            "next_cursor": None,
        }
    )

    items: list[RowShown]
    next_cursor: str | None


class JobBody(Body):
    """A stored dataset to grade."""

    model_config = _example({"grader": "four", "dataset": "arithmetic"})

    grader: Key
    dataset: Key
    version: Version | None = Field(default=None, description="The latest by default.")


class JobShown(Shown):
    """A job."""

    model_config = _example(_JOB)

    id: str
    project: str
    grader: str
    version: int
    dataset: str
    status: JobStatus
    total: int
    done: int
    errors: int
    message: str
    created_at: str
    updated_at: str
    created_by: str


class JobPage(Shown):
    """Jobs, newest first."""

    model_config = _example({"items": [_JOB], "next_cursor": None})

    items: list[JobShown]
    next_cursor: str | None


class ScoreShown(Shown):
    """A stored score."""

    model_config = _example(_SCORE)

    seq: int
    project: str
    item: str
    job: str
    source: Literal["grader", "user", "sdk"]
    graded: GradedShown
    created_at: str


class _Scores(Shown):
    items: list[ScoreShown]
    next_cursor: str | None


class ScorePage(_Scores):
    """Scores, oldest first, and the calibration cards of what gave them."""

    model_config = _example({"items": [_SCORE], "next_cursor": None, "calibrations": [CALIBRATION]})

    calibrations: list[CalibrationShown] = Field(
        description="Of the graders of this page that were measured."
    )


class ResultPage(_Scores):
    """Scores of a job, in the order of its rows, and the calibration card of what gave them."""

    model_config = _example(
        {"items": [_SCORE], "next_cursor": None, "calibration": CALIBRATION},
        {"items": [_SCORE], "next_cursor": None, "calibration": None},
    )

    calibration: CalibrationShown | None = Field(description="Null where it was never measured.")


def _a_number(value: float) -> float:
    if abs(value) > 1e100:
        raise ValueError("must be from -1e100 to 1e100")
    return value


class ScoreBody(Body):
    """A score from elsewhere, for a grader of the kind `custom`."""

    grader: Key
    item: ItemId
    score: Annotated[
        float, Field(allow_inf_nan=False, ge=-1e100, le=1e100), AfterValidator(_a_number)
    ]
    reason: Text = ""
    details: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])


class ScoresBody(Body):
    """Scores from elsewhere."""

    model_config = _example(
        {"scores": [{"grader": "human", "item": "1", "score": 0.5, "reason": "half right"}]}
    )

    scores: list[ScoreBody] = Field(min_length=1, max_length=1_000)
    source: Literal["user", "sdk"] = "user"


class ScoresShown(Shown):
    """How many scores were stored."""

    model_config = _example({"stored": 1})

    stored: int


class KeyBody(Body):
    """A new API key."""

    model_config = _example({"name": "ci", "role": "editor", "project": "default"})

    name: Name = Field(min_length=1)
    role: Literal["viewer", "editor", "admin"]
    project: Annotated[str, Field(pattern=r"^(\*|[a-z0-9][a-z0-9._-]{0,63})$")] = Field(
        description="The project it is for; `*` for all."
    )


class KeyShown(Shown):
    """An API key, without its secret."""

    model_config = _example(_KEY)

    id: str
    name: str
    role: Literal["viewer", "editor", "admin"]
    project: str
    prefix: str
    created_at: str
    last_used_at: str = Field(description="To the minute; empty if never.")
    revoked_at: str = Field(description="Empty while the key is good.")


class NewKeyShown(KeyShown):
    """An API key that was just made; its token is shown this once."""

    model_config = _example({**_KEY, "token": "assay_1a2b3c4d_REPLACED"})

    token: str


class KeyPage(Shown):
    """API keys, newest first."""

    model_config = _example({"items": [_KEY], "next_cursor": None})

    items: list[KeyShown]
    next_cursor: str | None


class IdentityShown(Shown):
    """Who is asking."""

    model_config = _example({"id": "1", "name": "ci", "role": "editor", "project": "default"})

    id: str
    name: str
    role: Literal["viewer", "editor", "admin"]
    project: str


class StateShown(Shown):
    """Whether the server can work."""

    model_config = _example(
        {"status": "ready", "database": "ok", "sandbox": "bwrap", "version": "0.1.0"}
    )

    status: Literal["alive", "ready", "not ready"]
    database: str = ""
    sandbox: str = ""
    version: str = ""
