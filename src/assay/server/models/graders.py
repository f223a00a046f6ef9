"""Bodies about graders, their versions and grading."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, JsonValue

from assay.scoring.results import Assurance
from assay.server.models.base import Body, Definition, Key, Kind, Name, Row, Shown, Text, Version
from assay.server.models.calibration import CALIBRATION, CalibrationShown

__all__ = [
    "ChecksShown",
    "DiffShown",
    "FilesShown",
    "GradeBody",
    "GradedPage",
    "GradedShown",
    "GraderBody",
    "GraderDetail",
    "GraderPage",
    "GraderShown",
    "ImportBody",
    "ImportShown",
    "LockBody",
    "NamesBody",
    "ValidateBody",
    "VersionBody",
    "VersionPage",
    "VersionShown",
]

_SOURCE = (
    "async def grade(thread: StringThread) -> float:\n"
    "    return 1.0 if thread.completion() == '4' else 0.0\n"
)
_EXACT: dict[str, JsonValue] = {"graders": [{"type": "exact_match"}]}
_DEFINITION_EXAMPLES: list[Definition] = [{"source": _SOURCE}, _EXACT]
_DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_TIME = "2026-11-21T09:08:30.000000+00:00"
_VERSION: dict[str, JsonValue] = {
    "project": "default",
    "key": "four",
    "number": 1,
    "kind": "function",
    "definition": {"source": _SOURCE},
    "digest": _DIGEST,
    "note": "",
    "created_at": _TIME,
    "created_by": "local",
}
_GRADER: dict[str, JsonValue] = {
    "project": "default",
    "key": "four",
    "name": "Says four",
    "description": "",
    "feedback_key": "four",
    "locked": False,
    "created_at": _TIME,
    "updated_at": _TIME,
    "latest": _VERSION,
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
    "digest": _DIGEST,
    "assurance": "separate",
}


def _example(*examples: JsonValue) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": list(examples)})


class GraderBody(Body):
    """A new grader."""

    model_config = _example(
        {"key": "four", "kind": "function", "definition": {"source": _SOURCE}},
        {"key": "exact", "kind": "declared", "definition": _EXACT, "note": "first"},
    )

    key: Key = Field(description="By which it is called.")
    kind: Kind = Field(description="What kind of grader it is.", examples=["function"])
    definition: Definition = Field(
        description="What it does; the fields of its kind.", examples=_DEFINITION_EXAMPLES
    )
    name: Name = Field(default="", description="For people; the key by default.")
    description: Text = ""
    feedback_key: Name = Field(
        default="", description="Under which scores are reported; the key by default."
    )
    note: Text = Field(default="", description="What this version is about.")
    samples: list[Row] = Field(
        default_factory=list[Row], max_length=20, description="Rows it is tried on first."
    )


class ValidateBody(Body):
    """A definition to check; nothing is stored."""

    model_config = _example(
        {
            "kind": "function",
            "definition": {"source": _SOURCE},
            "samples": [{"question": "2 + 2?", "answer": "4"}],
        }
    )

    kind: Kind
    definition: Definition = Field(examples=_DEFINITION_EXAMPLES)
    samples: list[Row] = Field(default_factory=list[Row], max_length=20)


class VersionBody(Body):
    """A new version of a grader."""

    model_config = _example(
        {"kind": "function", "definition": {"source": _SOURCE}, "note": "stricter"}
    )

    kind: Kind
    definition: Definition = Field(examples=_DEFINITION_EXAMPLES)
    note: Text = ""
    samples: list[Row] = Field(default_factory=list[Row], max_length=20)


class NamesBody(Body):
    """What people call a grader; what is left out stays."""

    model_config = _example({"description": "Only the number counts"})

    name: Name | None = None
    description: Text | None = None
    feedback_key: Name | None = None


class LockBody(Body):
    """Whether a grader is locked."""

    model_config = _example({"locked": True})

    locked: bool


class GradeBody(Body):
    """Items to grade."""

    model_config = _example(
        {"items": [{"id": "1", "question": "What is 2 + 2?", "answer": "4"}]},
        {"items": [{"answer": "4"}, {"answer": "5"}], "version": 1, "record": False},
    )

    items: list[Row] = Field(
        min_length=1, max_length=1_000, description="1 to 1,000; more are a dataset. Ids differ."
    )
    version: Version | None = Field(default=None, description="The latest by default.")
    record: bool = Field(
        default=True, description="Store the scores, before they are acknowledged."
    )


class ImportBody(Body):
    """Graders as files, as `/export` gives them."""

    model_config = _example(
        {
            "files": {"four.yaml": "kind: function\ndefinition: {}\n", "four.py": _SOURCE},
            "update": True,
        }
    )

    files: dict[str, str] = Field(max_length=500, description="File name to text.")
    update: bool = Field(
        default=True, description="Make new versions of graders that are there already."
    )


class VersionShown(Shown):
    """One version of a grader; it never changes."""

    model_config = _example(_VERSION)

    project: str
    key: str
    number: int
    kind: str
    definition: Definition
    digest: str
    note: str
    created_at: str
    created_by: str


class VersionPage(Shown):
    """Versions, newest first."""

    model_config = _example({"items": [_VERSION], "next_cursor": None})

    items: list[VersionShown]
    next_cursor: str | None


class GraderShown(Shown):
    """A grader with its latest version."""

    model_config = _example(_GRADER)

    project: str
    key: str
    name: str
    description: str
    feedback_key: str
    locked: bool
    created_at: str
    updated_at: str
    latest: VersionShown


class GraderDetail(GraderShown):
    """A grader with one version, what is worth a look in it, and its calibration card."""

    model_config = _example(
        {**_GRADER, "warnings": [], "calibration": CALIBRATION},
        {**_GRADER, "warnings": [], "calibration": None},
    )

    warnings: list[str]
    calibration: CalibrationShown | None = Field(description="Null where it was never measured.")


class GraderPage(Shown):
    """Graders, by key."""

    model_config = _example({"items": [_GRADER], "next_cursor": None})

    items: list[GraderShown]
    next_cursor: str | None


class GradedShown(Shown):
    """What came of one item."""

    model_config = _example(_GRADED)

    id: str
    status: Literal["scored", "skipped", "error"]
    score: float | None
    outcome: str
    reason: str
    error: str | None
    flags: list[str]
    details: dict[str, JsonValue]
    grader: str
    digest: str
    assurance: Assurance | None = Field(
        description="How far the score can be trusted; null where nothing says."
    )


class GradedPage(Shown):
    """What came of the items, in their order, and the calibration card of what graded them."""

    model_config = _example(
        {
            "results": [_GRADED],
            "grader": "four@1",
            "digest": _DIGEST,
            "calibration": CALIBRATION,
        },
        {"results": [_GRADED], "grader": "four@1", "digest": _DIGEST, "calibration": None},
    )

    results: list[GradedShown]
    grader: str
    digest: str
    calibration: CalibrationShown | None = Field(description="Null where it was never measured.")


class CheckShown(Shown):
    """One check of a definition."""

    name: str
    passed: bool
    message: str
    line: int | None


class ChecksShown(Shown):
    """What validation found."""

    model_config = _example(
        {
            "valid": True,
            "checks": [{"name": "syntax", "passed": True, "message": "", "line": None}],
            "warnings": [],
            "samples": [_GRADED],
            "tier": "bwrap",
        }
    )

    valid: bool
    checks: list[CheckShown]
    warnings: list[str]
    samples: list[GradedShown]
    tier: str


class DiffShown(Shown):
    """Two versions, compared line by line; empty where they do not differ."""

    model_config = _example({"diff": "--- four@1\n+++ four@2\n@@ -1 +1 @@\n-a\n+b\n"})

    diff: str


class FilesShown(Shown):
    """Graders as files."""

    model_config = _example(
        {"files": {"four.yaml": "kind: function\nname: four\n", "four.py": _SOURCE}}
    )

    files: dict[str, str]


class ImportShown(Shown):
    """The graders that were read from files."""

    model_config = _example({"items": [_GRADER]})

    items: list[GraderShown]
