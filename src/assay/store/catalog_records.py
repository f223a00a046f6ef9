"""What the store keeps beside runs: projects, graders, datasets, jobs, scores and keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

from assay.errors import ConflictError, LockedError
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, plain

__all__ = [
    "DatasetRecord",
    "DatasetRow",
    "GraderRecord",
    "GraderVersion",
    "JobRecord",
    "JobStatus",
    "KeyRecord",
    "KeyRole",
    "ProjectRecord",
    "ScoreRecord",
    "ScoreSource",
]

JobStatus: TypeAlias = Literal["queued", "running", "finished", "failed", "cancelled"]
ScoreSource: TypeAlias = Literal["grader", "user", "sdk"]
KeyRole: TypeAlias = Literal["viewer", "editor", "admin"]


class _Record:
    __slots__ = ()

    def to_dict(self) -> dict[str, Json]:
        """The record as plain JSON, with a key for every field."""
        written: dict[str, Json] = {}
        for entry in fields(self):  # pyright: ignore[reportArgumentType] - subclasses are dataclasses
            value: object = getattr(self, entry.name)
            inner = isinstance(value, _Record | Graded)
            written[entry.name] = value.to_dict() if inner else plain(value)
        return written


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRecord(_Record):
    """A project: what graders, datasets, jobs and scores belong to.

    Attributes:
        key: Its name in addresses and commands.
        name: Its name for people.
        created_at: ISO 8601, UTC.
    """

    key: str
    name: str = ""
    created_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderVersion(_Record):
    """One version of a grader; it never changes.

    Attributes:
        project: Key of the project.
        key: Key of the grader.
        number: From 1, in order. A number is never used twice for one key, not even after the
            grader was deleted: ``key@number`` names one definition for ever.
        kind: What sort of grader it is, such as ``function``.
        definition: What it is made of, as plain JSON.
        digest: Digest of what decides a score.
        note: Why it was made.
        created_at: ISO 8601, UTC.
        created_by: Who made it.
    """

    project: str
    key: str
    number: int
    kind: str
    definition: Mapping[str, Json]
    digest: str
    note: str = ""
    created_at: str = ""
    created_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderRecord(_Record):
    """A grader and its newest version.

    Attributes:
        project: Key of the project.
        key: Its name in addresses and commands.
        name: Its name for people.
        description: What it is for.
        feedback_key: The metric that its scores are written to.
        locked: Whether changes are refused.
        created_at: ISO 8601, UTC.
        updated_at: When it, or what is said of it, changed last.
        latest: The newest version.
    """

    project: str
    key: str
    name: str = ""
    description: str = ""
    feedback_key: str = ""
    locked: bool = False
    created_at: str = ""
    updated_at: str = ""
    latest: GraderVersion

    def require_unlocked(self) -> None:
        """Refuse a change while it is locked.

        Raises:
            LockedError: If it is.
        """
        if self.locked:
            raise LockedError(f"grader {self.key!r} is locked", hint="unlock it first")

    def require_version(self, expected: int | None) -> None:
        """Refuse a change that was made to another version than the newest; None is any.

        Raises:
            ConflictError: If another one is the newest by now.
        """
        newest = self.latest.number
        if expected is not None and expected != newest:
            raise ConflictError(
                f"{self.key!r} is at version {newest}, not {expected}",
                hint="look at what changed, then try again",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRecord(_Record):
    """A dataset; its rows never change.

    Attributes:
        project: Key of the project.
        key: Its name in addresses and commands.
        name: Its name for people.
        rows: Number of rows.
        size: Bytes of the rows as they are stored.
        digest: SHA-256 of the rows as they are stored, in order.
        created_at: ISO 8601, UTC.
    """

    project: str
    key: str
    name: str = ""
    rows: int = 0
    size: int = 0
    digest: str = ""
    created_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRow(_Record):
    """One row of a dataset.

    Attributes:
        number: From 1, in the order in which they came.
        id: The row's own ``id``, or its number.
        data: The row as it came.
    """

    number: int
    id: str
    data: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord(_Record):
    """A dataset that is graded with one version of a grader.

    Attributes:
        id: Sortable and unique, such as ``20261121-090830-ab12cd34``.
        project: Key of the project.
        grader: Key of the grader.
        version: Number of its version.
        dataset: Key of the dataset.
        status: ``queued``, ``running``, or how it ended.
        total: Rows to grade.
        done: Rows that have a score, a skip or an error.
        errors: Rows among them that could not be graded.
        message: Why it failed or was cancelled.
        created_at: ISO 8601, UTC.
        updated_at: When anything of it changed last.
        created_by: Who asked for it.
    """

    id: str
    project: str
    grader: str
    version: int
    dataset: str
    status: JobStatus
    total: int = 0
    done: int = 0
    errors: int = 0
    message: str = ""
    created_at: str = ""
    updated_at: str = ""
    created_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRecord(_Record):
    """The outcome of one item; it never changes.

    Attributes:
        seq: Place in the order in which scores were stored; 0 before.
        project: Key of the project.
        item: Id of what was graded.
        job: Id of the job that graded it, or empty.
        source: Where it is from: a stored grader, a person, or a program.
        graded: The outcome; ``graded.grader`` is ``key@version``.
        created_at: ISO 8601, UTC; the time it was stored.
    """

    seq: int = 0
    project: str = ""
    item: str
    job: str = ""
    source: ScoreSource = "grader"
    graded: Graded
    created_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord(_Record):
    """An API key, of which only a hash is stored.

    Attributes:
        id: Names it in addresses and commands.
        name: What people call it.
        role: What its holder may do.
        project: In which project; ``*`` is all of them.
        prefix: The beginning of the key, by which people know it again.
        created_at: ISO 8601, UTC.
        last_used_at: When it was used last, to the minute; empty if never.
        revoked_at: When it was revoked; empty while it is good.
    """

    id: str
    name: str
    role: KeyRole
    project: str
    prefix: str
    created_at: str = ""
    last_used_at: str = ""
    revoked_at: str = ""
