"""`Catalog`: stored graders and their versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields

from assay.errors import ConflictError, InputError, Location, LockedError, NotFoundError
from assay.frozen import frozen
from assay.scoring.json_safe import Json
from assay.store.checks import json_text, plain, valid_key, valid_number, valid_text
from assay.store.database import Database, Record, Row, Scalar
from assay.store.pages import FIRST, Order, Page, Stretch
from assay.store.projects import Projects
from assay.store.table import LIVE, Table, Where

MAX_DEFINITION_BYTES = 1 << 20
"""Most bytes of one definition, as JSON."""

_OWN = ("name", "description", "feedback_key", "locked", "created_at", "updated_at")
_WITH_VERSIONS = (
    "grader g JOIN grader_version ON grader_version.project = g.project "
    "AND grader_version.key = g.key"
)
_NEWEST_LIVE: Where = {"number = g.latest": (), "g.deleted_at = ''": ()}
_BY_KEY = Order("g.key", (str,))
_NEWEST = Order("number", (int,), descending=True)

_KIND = re.compile(r"[a-z][a-z0-9_]{0,63}")


@frozen(kw_only=True)
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


@frozen(kw_only=True)
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

    def __str__(self) -> str:
        locked = ", locked" if self.locked else ""
        return f"{self.key}@{self.latest.number}: {self.latest.kind}{locked}"

    def require_unlocked(self) -> None:
        """Refuse a change while it is locked."""
        if self.locked:
            raise LockedError(f"grader {self.key!r} is locked", hint="unlock it first")

    def require_version(self, expected: int | None) -> None:
        """Refuse a change that was made to another version than the newest; None is any."""
        newest = self.latest.number
        if expected is not None and expected != newest:
            raise ConflictError(
                f"{self.key!r} is at version {newest}, not {expected}",
                hint="look at what changed, then try again",
            )


class _Graders(Table[GraderRecord]):
    """Graders, each with one of its versions."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, _WITH_VERSIONS, GraderRecord)
        self._versions = _versions(database)
        self.columns = ", ".join([*(f"g.{name}" for name in _OWN), self._versions.columns])
        self._wide = ["definition"]

    def read(self, row: Row) -> GraderRecord:
        """The record behind the values of `columns`."""
        own, latest = row[: len(_OWN)], self._versions.read(row[len(_OWN) :])
        said = dict(zip(_OWN, own, strict=True))
        said["locked"] = bool(said["locked"])
        return GraderRecord(project=latest.project, key=latest.key, latest=latest, **said)


def _versions(database: Database) -> Table[GraderVersion]:
    columns = {entry.name: f"grader_version.{entry.name}" for entry in fields(GraderVersion)}
    return Table(database, "grader_version", GraderVersion, **columns)


class Catalog:
    """The graders of a database. Versions are appended and never change; see `GraderVersion`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table = Table(database, "grader", GraderRecord)
        self._versions, self._graders = _versions(database), _Graders(database)

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
        """
        valid_key(key)
        version = _checked(key, kind, definition, (digest, note, by))
        said = _said(key, name or key, description, feedback_key)
        with self._database.writing():
            Projects(self._database).get(project)
            now = self._database.now()
            number = self._next_number(project, key)
            numbers = {"earliest": number, "latest": number, "locked": 0}
            own = {"project": project, "key": key, "created_at": now, "updated_at": now}
            added = self._table.insert_new(
                {**own, **said, **numbers}, unless="(project, key) WHERE deleted_at = ''"
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
            self._table.update(_live(project, key), latest=number, updated_at=now)
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
        """Change what is said of a grader; None leaves it as it is."""
        with self._database.writing():
            grader = self._claimed(project, key)
            grader.require_unlocked()
            said = _said(
                key,
                grader.name if name is None else name or key,
                grader.description if description is None else description,
                grader.feedback_key if feedback_key is None else feedback_key,
            )
            if all(getattr(grader, field, text) == text for field, text in said.items()):
                return grader
            now = self._database.now()
            self._table.update(_live(project, key), **said, updated_at=now)
            return self.get(project, key)

    def get(self, project: str, key: str, number: int | None = None) -> GraderRecord:
        """One grader with its newest version, or that of a number, also where it was deleted."""
        own = {"g.project": project, "g.key": key}
        if number is None:
            found = self._graders.find({**own, **_NEWEST_LIVE})
            if found is None:
                raise Projects(self._database).unknown("grader", project, key)
            return found
        at = {"number": valid_number(number, "version"), "grader_version.grader = g.seq": ()}
        if found := self._graders.find({**own, **at}):
            return found
        newest = self.get(project, key).latest.number
        raise NotFoundError(
            f"grader {key!r} has no version {number}", hint=f"its newest is {newest}"
        )

    def version(self, project: str, key: str, number: int | None = None) -> GraderVersion:
        """The version that `get` finds."""
        return self.get(project, key, number).latest

    def versions(self, project: str, key: str, wanted: Stretch = FIRST) -> Page[GraderVersion]:
        """Versions of a grader, newest first."""
        self.get(project, key)
        own = {"project": project, "key": key}
        live = "grader = (SELECT seq FROM grader WHERE project = ? AND key = ? AND deleted_at = '')"
        return self._versions.page({**own, live: (project, key)}, _NEWEST, wanted)

    def page(
        self, project: str, wanted: Stretch = FIRST, *, kind: str | None = None, query: str = ""
    ) -> Page[GraderRecord]:
        """Graders of a project, by key; of a kind, if asked for.

        The text ``query`` stands somewhere in key, name or description, in large or small letters.
        """
        where: dict[str, Scalar | tuple[Scalar, ...]] = {"g.project": project, "kind": kind}
        if query:
            words = valid_text(query, "query", most=200).replace("\0", " ").casefold()
            pattern = re.sub("([!%_])", r"!\1", words)
            where["g.words LIKE ? ESCAPE '!'"] = f"%{pattern}%"
        Projects(self._database).get(project)
        return self._graders.page({**where, **_NEWEST_LIVE}, _BY_KEY, wanted)

    def set_locked(self, project: str, key: str, locked: bool) -> GraderRecord:  # noqa: FBT001 - the one thing it says
        """Lock a grader against changes, or unlock it."""
        with self._database.writing():
            grader = self._claimed(project, key)
            if grader.locked != locked:
                now = self._database.now()
                self._table.update(_live(project, key), locked=locked, updated_at=now)
            return self.get(project, key)

    def delete(self, project: str, key: str, *, force: bool = False) -> None:
        """Remove a grader; its key is free, its versions stay readable by number.

        A job that has not ended and uses it is a `ConflictError`; ``force`` cancels it. What is
        locked stays, whatever ``force`` says.
        """
        with self._database.writing():
            grader = self._claimed(project, key)
            grader.require_unlocked()
            (seq,) = self._table.column("seq", _live(project, key))
            running = (
                "SELECT 1 FROM job WHERE grader = ? AND status IN ('queued', 'running') LIMIT 1"
            )
            if not force and self._database.rows(running, seq):
                raise ConflictError(
                    f"grader {key!r} is used by a job that has not ended",
                    hint="wait for it, or delete the grader by force, which cancels the job",
                )
            now = self._database.now()
            Projects(self._database).cancel_jobs("grader", seq)
            self._table.update({"seq": seq}, deleted_at=now)

    def _claimed(self, project: str, key: str) -> GraderRecord:
        """The grader, with others that want to change it waiting until we are done."""
        self._database.change(
            "UPDATE grader SET locked = locked WHERE project = ? AND key = ? AND deleted_at = ''",
            *(plain(project), plain(key)),
        )
        return self.get(project, key)

    def _next_number(self, project: str, key: str) -> int:
        newest = "SELECT max(number) FROM grader_version WHERE project = ? AND key = ?"
        return (self._database.value(newest, project, key) or 0) + 1

    def _append(
        self, project: str, key: str, number: int, version: Mapping[str, str], now: str
    ) -> None:
        (seq,) = self._table.column("seq", _live(project, key))
        own = {"grader": seq, "project": project, "key": key, "number": number}
        self._versions.insert({**own, **version, "created_at": now})


def _checked(
    key: str, kind: str, definition: Mapping[str, Json], texts: tuple[str, str, str]
) -> dict[str, str]:
    """What is stored of a version."""
    if not _KIND.fullmatch(kind):
        raise InputError(f"{kind!r:.80} cannot be a kind", location=Location(field="kind"))
    digest, note, by = texts
    what = f"the definition of grader {key!r:.80}"
    return {
        "kind": kind,
        "definition": json_text(definition, what, most=MAX_DEFINITION_BYTES),
        "digest": valid_text(digest, "digest", most=200),
        "note": valid_text(note, "note", most=10_000),
        "created_by": valid_text(by, "by", most=200),
    }


def _said(key: str, name: str, description: str, feedback_key: str) -> dict[str, str]:
    """What people say of a grader, and what a search looks through: the same in small letters.

    Python's small letters: databases do not agree on theirs.
    """
    said = {
        "name": valid_text(name, "name", most=200),
        "description": valid_text(description, "description", most=10_000),
        "feedback_key": valid_text(feedback_key, "feedback_key", most=200),
    }
    return {**said, "words": f"{key}\n{said['name']}\n{said['description']}".casefold()}


def _live(project: str, key: str) -> Where:
    return {"project": project, "key": key, **LIVE}
