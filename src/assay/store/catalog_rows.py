"""How graders and their versions are read from rows of the database."""

from __future__ import annotations

from typing import cast

from assay.store.catalog_records import GraderRecord, GraderVersion
from assay.store.checks import read_json
from assay.store.engine import Row

__all__ = ["SELECT_GRADERS", "SELECT_VERSIONS", "read_grader", "read_version"]

_VERSION = (
    "v.project, v.key, v.number, v.kind, v.definition, v.digest, v.note, v.created_at, v.created_by"
)
_GRADER = "g.name, g.description, g.feedback_key, g.locked, g.created_at, g.updated_at"
SELECT_GRADERS = (  # only constants are put into SQL, every value is bound
    f"SELECT {_VERSION}, {_GRADER} FROM grader g JOIN grader_version v "  # noqa: S608 - see above
    "ON v.project = g.project AND v.key = g.key AND v.number = g.latest WHERE g.deleted_at = ''"
)
SELECT_VERSIONS = f"SELECT {_VERSION} FROM grader_version v"  # noqa: S608 - see above


def read_version(row: Row) -> GraderVersion:
    """The version behind the columns of `SELECT_VERSIONS`."""
    project, key, number, kind, definition, digest, note, created_at, created_by = cast(
        "tuple[str, str, int, str, str, str, str, str, str]", row
    )
    return GraderVersion(
        project=project,
        key=key,
        number=number,
        kind=kind,
        definition=read_json(definition),
        digest=digest,
        note=note,
        created_at=created_at,
        created_by=created_by,
    )


def read_grader(row: Row) -> GraderRecord:
    """The grader behind the columns of `SELECT_GRADERS`."""
    latest = read_version(row[:9])
    name, description, feedback_key, locked, created_at, updated_at = cast(
        "tuple[str, str, str, int, str, str]", row[9:]
    )
    return GraderRecord(
        project=latest.project,
        key=latest.key,
        name=name,
        description=description,
        feedback_key=feedback_key,
        locked=bool(locked),
        created_at=created_at,
        updated_at=updated_at,
        latest=latest,
    )
