"""`Catalog`: stored graders and their versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from assay.errors import ConflictError, InputError, Location, LockedError, NotFoundError
from assay.scoring.json_safe import Json
from assay.store.checks import (
    json_text,
    plain,
    read_json,
    valid_key,
    valid_limit,
    valid_number,
    valid_text,
)
from assay.store.database import Database, Record, Row, Scalar
from assay.store.projects import Projects

MAX_DEFINITION_BYTES = 1 << 20
"""Most bytes of one definition, as JSON."""

_VERSION = (
    "v.project, v.key, v.number, v.kind, v.definition, v.digest, v.note, v.created_at, v.created_by"
)
_GRADER = "g.name, g.description, g.feedback_key, g.locked, g.created_at, g.updated_at"
_SELECT_GRADERS = (  # only constants are put into SQL, every value is bound
    f"SELECT {_VERSION}, {_GRADER} FROM grader g JOIN grader_version v "  # noqa: S608 - see above
    "ON v.project = g.project AND v.key = g.key AND v.number = g.latest WHERE g.deleted_at = ''"
)
_SELECT_VERSIONS = f"SELECT {_VERSION} FROM grader_version v"  # noqa: S608 - see above

_KIND = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderVersion(Record):
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
class GraderRecord(Record):
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


class Catalog:
    """The graders of a database. Versions are appended and never change; see `GraderVersion`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        project: str,
        key: str,
        *,
        kind: str,
        definition: Mapping[str, Json],
        digest: str,
        name: str = "",
        description: str = "",
        feedback_key: str = "",
        note: str = "",
        by: str = "",
    ) -> GraderRecord:
        """Store a grader, with its first version.

        The version's number is 1, or follows the last one that a deleted grader of that key had.

        Raises:
            ConflictError: If the key is taken.
            InputError: For a key, text or definition that cannot be stored.
        """
        valid_key(key)
        version = _checked(key, kind, definition, (digest, note, by))
        texts = _texts(name or key, description, feedback_key)
        with self._database.writing():
            Projects(self._database).get(project)
            now = self._database.now()
            number = self._next_number(project, key)
            added = self._database.change(
                "INSERT INTO grader (project, key, name, description, feedback_key, words, locked, "
                "earliest, latest, created_at, updated_at) "
                "VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?) "
                "ON CONFLICT (project, key) WHERE deleted_at = '' DO NOTHING",
                *(project, key, *texts, _words(key, *texts[:2]), number, number, now, now),
            )
            if not added:
                raise ConflictError(
                    f"there is already a grader {key!r} in the project {project!r}",
                    location=Location(field="key"),
                    hint="choose another key, or add a version to that one",
                )
            self._append(project, key, number, version, now)
            return self.get(project, key)

    def add_version(
        self,
        project: str,
        key: str,
        *,
        kind: str,
        definition: Mapping[str, Json],
        digest: str,
        note: str = "",
        by: str = "",
        expected: int | None = None,
    ) -> GraderRecord:
        """Append a version; nothing happens if its kind and digest are those of the newest one.

        The fields are those of `GraderVersion`. ``expected`` is the number of the version that it
        was made from: if another one is the newest by now, it is refused; None does not look.

        Raises:
            ConflictError: If another version came first.
            InputError: For a text or definition that cannot be stored.
            LockedError: If the grader is locked.
            NotFoundError: For an unknown grader.
        """
        version = _checked(key, kind, definition, (digest, note, by))
        with self._database.writing():
            grader = self._claimed(project, key)
            latest = grader.latest
            grader.require_version(expected)
            if (latest.kind, latest.digest) == (kind, plain(digest)):
                return grader
            grader.require_unlocked()
            now = self._database.now()
            number = latest.number + 1
            self._append(project, key, number, version, now)
            self._database.change(
                "UPDATE grader SET latest = ?, updated_at = ? "
                "WHERE project = ? AND key = ? AND deleted_at = ''",
                *(number, now, project, key),
            )
            return self.get(project, key)

    def describe(
        self,
        project: str,
        key: str,
        *,
        name: str | None = None,
        description: str | None = None,
        feedback_key: str | None = None,
    ) -> GraderRecord:
        """Change what is said of a grader; None leaves it as it is.

        Raises:
            InputError: For a text that is too long.
            LockedError: If the grader is locked.
            NotFoundError: For an unknown grader.
        """
        with self._database.writing():
            grader = self._claimed(project, key)
            grader.require_unlocked()
            texts = _texts(
                grader.name if name is None else name or key,
                grader.description if description is None else description,
                grader.feedback_key if feedback_key is None else feedback_key,
            )
            if texts == (grader.name, grader.description, grader.feedback_key):
                return grader
            self._database.change(
                "UPDATE grader SET name = ?, description = ?, feedback_key = ?, words = ?, "
                "updated_at = ? WHERE project = ? AND key = ? AND deleted_at = ''",
                *(*texts, _words(key, *texts[:2]), self._database.now(), project, key),
            )
            return self.get(project, key)

    def get(self, project: str, key: str) -> GraderRecord:
        """One grader with its newest version.

        Raises:
            NotFoundError: If there is none; names the nearest.
        """
        rows = self._database.rows(
            f"{_SELECT_GRADERS} AND g.project = ? AND g.key = ?", plain(project), plain(key)
        )
        if not rows:
            raise Projects(self._database).unknown("grader", project, key)
        return _read_grader(rows[0])

    def version(self, project: str, key: str, number: int | None = None) -> GraderVersion:
        """One version of a grader; with a number also that of a grader that was deleted.

        Raises:
            NotFoundError: If there is none.
        """
        if number is None:
            return self.get(project, key).latest
        rows = self._database.rows(
            f"{_SELECT_VERSIONS} WHERE v.project = ? AND v.key = ? AND v.number = ?",
            *(plain(project), plain(key), valid_number(number, "version")),
        )
        if not rows:
            newest = self.get(project, key).latest.number
            raise NotFoundError(
                f"grader {key!r} has no version {number}", hint=f"its newest is {newest}"
            )
        return _read_version(rows[0])

    def versions(
        self, project: str, key: str, limit: int = 50, after: int | None = None
    ) -> list[GraderVersion]:
        """Versions of a grader, newest first.

        Args:
            project: Key of the project.
            key: Key of the grader.
            limit: Most to return, up to 1,000.
            after: Number of the last one seen; those below it follow.

        Raises:
            NotFoundError: For an unknown grader.
        """
        newest = self.get(project, key).latest.number
        below = newest + 1 if after is None else valid_number(after, "after")
        rows = self._database.rows(
            f"{_SELECT_VERSIONS} JOIN grader g ON g.seq = v.grader AND g.deleted_at = '' "
            "WHERE v.project = ? AND v.key = ? AND v.number < ? ORDER BY v.number DESC LIMIT ?",
            *(project, key, below, valid_limit(limit)),
        )
        return [_read_version(row) for row in rows]

    def page(
        self,
        project: str,
        *,
        limit: int = 50,
        after: str = "",
        kind: str | None = None,
        query: str = "",
    ) -> list[GraderRecord]:
        """Graders of a project, by key.

        Args:
            project: Key of the project.
            limit: Most to return, up to 1,000.
            after: Key of the last one seen.
            kind: Only those whose newest version is of this kind.
            query: Only those whose key, name or description has this text in it, whatever the case
                of its letters.

        Raises:
            InputError: For an impossible limit, or a query of more than 200 characters.
        """
        conditions, values = ["g.project = ? AND g.key > ?"], [project, plain(after)]
        if kind is not None:
            conditions.append("v.kind = ?")
            values.append(plain(kind))
        if query:
            conditions.append("g.words LIKE ? ESCAPE '!'")
            words = valid_text(query, "query", most=200).replace("\0", " ").casefold()
            pattern = re.sub("([!%_])", r"!\1", words)
            values.append(f"%{pattern}%")
        Projects(self._database).get(project)
        rows = self._database.rows(
            f"{_SELECT_GRADERS} AND {' AND '.join(conditions)} ORDER BY g.key LIMIT ?",
            *(*values, valid_limit(limit)),
        )
        return [_read_grader(row) for row in rows]

    def set_locked(self, project: str, key: str, locked: bool) -> GraderRecord:  # noqa: FBT001 - the one thing it says
        """Lock a grader against changes, or unlock it.

        Raises:
            NotFoundError: For an unknown grader.
        """
        with self._database.writing():
            grader = self._claimed(project, key)
            if grader.locked != locked:
                self._database.change(
                    "UPDATE grader SET locked = ?, updated_at = ? "
                    "WHERE project = ? AND key = ? AND deleted_at = ''",
                    *(int(locked), self._database.now(), project, key),
                )
            return self.get(project, key)

    def delete(self, project: str, key: str, *, force: bool = False) -> None:
        """Remove a grader; its key is free, its versions stay readable by number.

        Args:
            project: Key of the project.
            key: Key of the grader.
            force: Also when a job that has not ended uses it; such jobs are cancelled.

        Raises:
            ConflictError: If a job that has not ended uses it, unless ``force``.
            LockedError: If the grader is locked, whatever ``force`` says.
            NotFoundError: For an unknown grader.
        """
        with self._database.writing():
            grader = self._claimed(project, key)
            grader.require_unlocked()
            ((seq,),) = self._database.rows(
                "SELECT seq FROM grader WHERE project = ? AND key = ? AND deleted_at = ''",
                *(project, key),
            )
            running = (
                "SELECT 1 FROM job WHERE grader = ? AND status IN ('queued', 'running') LIMIT 1"
            )
            if not force and self._database.rows(running, seq):
                raise ConflictError(
                    f"grader {key!r} is used by a job that has not ended",
                    hint="wait for it, or delete the grader by force, which cancels the job",
                )
            now = self._database.now()
            self._database.change(
                "UPDATE job SET status = 'cancelled', message = 'its grader was deleted', "
                "updated_at = ? WHERE grader = ? AND status IN ('queued', 'running')",
                *(now, seq),
            )
            self._database.change("UPDATE grader SET deleted_at = ? WHERE seq = ?", now, seq)

    def _claimed(self, project: str, key: str) -> GraderRecord:
        """The grader, with others that want to change it waiting until we are done."""
        self._database.change(
            "UPDATE grader SET locked = locked WHERE project = ? AND key = ? AND deleted_at = ''",
            *(plain(project), plain(key)),
        )
        return self.get(project, key)

    def _next_number(self, project: str, key: str) -> int:
        ((last,),) = self._database.rows(
            "SELECT coalesce(max(number), 0) FROM grader_version WHERE project = ? AND key = ?",
            *(project, key),
        )
        return cast("int", last) + 1

    def _append(
        self, project: str, key: str, number: int, version: tuple[Scalar, ...], now: str
    ) -> None:
        kind, definition, digest, note, by = version
        self._database.change(
            "INSERT INTO grader_version (grader, project, key, number, kind, definition, digest, "
            "note, created_at, created_by) SELECT seq, project, key, ?, ?, ?, ?, ?, ?, ? "
            "FROM grader WHERE project = ? AND key = ? AND deleted_at = ''",
            *(number, kind, definition, digest, note, now, by, project, key),
        )


def _checked(
    key: str, kind: str, definition: Mapping[str, Json], texts: tuple[str, str, str]
) -> tuple[Scalar, ...]:
    """What is stored of a version: its kind, definition, digest, note and author."""
    if not _KIND.fullmatch(kind):
        raise InputError(f"{kind!r:.80} cannot be a kind", location=Location(field="kind"))
    digest, note, by = texts
    return (
        kind,
        json_text(definition, f"the definition of grader {key!r:.80}", most=MAX_DEFINITION_BYTES),
        valid_text(digest, "digest", most=200),
        valid_text(note, "note", most=10_000),
        valid_text(by, "by", most=200),
    )


def _texts(name: str, description: str, feedback_key: str) -> tuple[str, str, str]:
    return (
        valid_text(name, "name", most=200),
        valid_text(description, "description", most=10_000),
        valid_text(feedback_key, "feedback_key", most=200),
    )


def _words(key: str, name: str, description: str) -> str:
    """What a search looks through: in Python's small letters, which databases do not agree on."""
    return f"{key}\n{name}\n{description}".casefold()


def _read_version(row: Row) -> GraderVersion:
    """The version behind the columns of `_SELECT_VERSIONS`."""
    definition = read_json(cast("str", row[4]))
    return GraderVersion.from_row((*row[:4], definition, *row[5:]))


def _read_grader(row: Row) -> GraderRecord:
    """The grader behind the columns of `_SELECT_GRADERS`."""
    latest = _read_version(row[:9])
    name, description, feedback_key, locked, *times = row[9:]
    said = (name, description, feedback_key, bool(locked), *times)
    return GraderRecord.from_row((latest.project, latest.key, *said, latest))
