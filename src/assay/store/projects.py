"""`Projects`: what graders, datasets, jobs and scores belong to."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from assay.errors import ConflictError, InputError, Location, NotFoundError, nearest
from assay.frozen import frozen
from assay.store.checks import valid_key, valid_text
from assay.store.database import Database, Record, moment
from assay.store.pages import FIRST, NEWEST, Page, Stretch
from assay.store.table import Table, Where

_MOST = 1_000_000


@frozen(kw_only=True)
class ProjectRecord(Record):
    """A project: what graders, datasets, jobs and scores belong to.

    Attributes:
        key: Its name in addresses and commands.
        name: Its name for people.
        created_at: ISO 8601, UTC.
        requests_per_minute: How many a server takes, at most; None for as many as come.
        gradings_at_once: How many of each sort a server works on, at most; None for its fair share.
    """

    key: str
    name: str = ""
    created_at: str = ""
    requests_per_minute: int | None = None
    gradings_at_once: int | None = None


class Projects:
    """The projects of a database; ``default`` is always there."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table = Table(database, "project", ProjectRecord)

    def all(self) -> list[ProjectRecord]:
        """Every project, by key."""
        return self._table.select({}, order="key")

    def get(self, key: str) -> ProjectRecord:
        """One project."""
        found = self._find(key)
        if found is None:
            hint = nearest(key, [project.key for project in self.all()])
            raise NotFoundError(f"there is no project {key!r:.80}", hint=hint)
        return found

    def create(self, key: str, name: str = "") -> ProjectRecord:
        """Make a project."""
        project = ProjectRecord(
            key=valid_key(key),
            name=valid_text(name, "name", most=200) or key,
            created_at=self._database.now(),
        )
        with self._database.writing():
            added = self._table.insert_new(self._table.written(project), unless="(key)")
            if not added:
                raise ConflictError(
                    f"there is already a project {key!r}", hint="choose another key"
                )
        return project

    def ensure(self, key: str) -> ProjectRecord:
        """The project of that key, made if it is not there."""
        found = self._find(key)
        if found is not None:
            return found
        try:
            return self.create(key)
        except ConflictError:  # another process was quicker
            return self.get(key)

    def limit(
        self, key: str, *, requests_per_minute: int | None, gradings_at_once: int | None
    ) -> ProjectRecord:
        """Say how much of a server a project may have; None for no limit."""
        limits = {"requests_per_minute": requests_per_minute, "gradings_at_once": gradings_at_once}
        for field, most in limits.items():
            if most is not None and not 1 <= most <= _MOST:
                raise InputError(
                    f"{most} is not a whole number from 1 to {_MOST:,}",
                    location=Location(field=field),
                    hint="leave it out for no limit",
                )
        with self._database.writing():
            self._table.update({"key": key}, **limits)
            return self.get(key)

    def cancel_jobs(self, of: Literal["grader", "dataset"], seq: int) -> None:
        """End the jobs that use what is deleted, in the transaction that deletes it."""
        self._database.change(
            f"UPDATE job SET status = 'cancelled', message = 'its {of} was deleted', "
            f"updated_at = ? WHERE {of} = ? AND status IN ('queued', 'running')",
            *(self._database.now(), seq),
        )

    def unknown(self, table: Literal["grader", "dataset"], project: str, key: str) -> NotFoundError:
        """What to raise where a project has nothing of that key: names the nearest."""
        self.get(project)
        found = self._database.rows(
            f"SELECT key FROM {table} WHERE project = ? AND deleted_at = '' ORDER BY key LIMIT 200",
            project,
        )
        hint = nearest(key, [name for (name,) in found]) if found else "there is none yet"
        return NotFoundError(
            f"there is no {table} {key!r:.80} in the project {project!r}", hint=hint
        )

    def _find(self, key: str) -> ProjectRecord | None:
        return self._table.find({"key": key}) if key.isascii() else None


_ROLES = ("viewer", "editor", "admin")
_TOUCHED = timedelta(minutes=1)
KeyRole: TypeAlias = Literal["viewer", "editor", "admin"]


@frozen(kw_only=True)
class KeyRecord(Record):
    """An API key, of which only a hash is stored.

    Attributes:
        id: Names it in addresses and commands.
        name: What people call it.
        role: What its holder may do.
        project: In which project; ``*`` is all of them.
        prefix: The beginning of the key, by which people know it again.
        created_at: ISO 8601, UTC.
        last_used_at: When it was used last, to the minute; empty if never.
        revoked_at: When it was revoked; empty if it was not.
        expires_at: Until when it is good; empty for ever.
    """

    id: str
    name: str
    role: KeyRole
    project: str
    prefix: str
    created_at: str = ""
    last_used_at: str = ""
    revoked_at: str = ""
    expires_at: str = ""

    def is_good(self, now: str) -> bool:
        """Whether it lets anybody in at a time, as `moment` writes it."""
        return not self.revoked_at and (not self.expires_at or now < self.expires_at)


class ApiKeys:
    """The API keys of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table = Table(database, "api_key", KeyRecord)

    def create(
        self,
        name: str,
        role: KeyRole,
        project: str,
        hashed: str,
        prefix: str,
        *,
        expires: datetime | None = None,
    ) -> KeyRecord:
        """Store a key by its hash; see `KeyRecord`.

        Raises:
            InputError: For an unknown role, an end that has come, or a text that is too long.
            StoreError: If the key is stored already, or the database cannot be written.
        """
        if role not in _ROLES:
            raise InputError(
                f"{role!r:.80} is not a role",
                location=Location(field="role"),
                hint="valid: viewer, editor, admin",
            )
        now = self._database.now()
        if expires is not None and moment(expires) <= now:
            raise InputError(
                f"the key would have expired at {moment(expires)}",
                location=Location(field="expires"),
                hint="such as 90d, or a date to come",
            )
        record = KeyRecord(
            id=os.urandom(6).hex(),
            name=valid_text(name, "name", most=200),
            role=role,
            project=project,
            prefix=valid_text(prefix, "prefix", most=40),
            created_at=now,
            expires_at="" if expires is None else moment(expires),
        )
        with self._database.writing():
            if project != "*":
                Projects(self._database).get(project)
            self._table.insert({**self._table.written(record), "hashed": hashed})
        return record

    def find(self, hashed: str) -> KeyRecord | None:
        """The key of that hash, unless it was revoked or has expired."""
        found = self._table.find({"hashed": hashed})
        return found if found is not None and found.is_good(self._database.now()) else None

    def page(self, wanted: Stretch = FIRST, *, project: str | None = None) -> Page[KeyRecord]:
        """Keys, newest first, with those that were revoked; all, or those of a project."""
        return self._table.page({"project": project}, NEWEST, wanted)

    def get(self, key: str) -> KeyRecord:
        """The key of that id."""
        found = self._table.find({"id": key})
        if found is None:
            raise NotFoundError(f"there is no API key {key!r:.80}")
        return found

    def revoke(self, key: str) -> KeyRecord:
        """Make a key useless for good, by its id; revoking twice is fine."""
        with self._database.writing():
            self._table.update({"id": key, "revoked_at": ""}, revoked_at=self._database.now())
            return self.get(key)

    def touch(self, key: str) -> None:
        """Note that a key is used, at most once a minute; of an unknown id nothing is noted."""
        now = self._database.clock()
        stale: Where = {"id": key, "last_used_at <": moment(now - _TOUCHED)}
        if self._table.count(stale):
            with self._database.writing():
                self._table.update({"id": key}, last_used_at=moment(now))
