"""`ApiKeys`: who may use the server; of a key itself only a hash is stored."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import cast

from assay.errors import InputError, Location, NotFoundError
from assay.store.catalog_records import KeyRecord, KeyRole
from assay.store.checks import valid_limit, valid_text
from assay.store.database import Database, moment
from assay.store.engine import Row
from assay.store.projects import Projects
from assay.store.rows import plain

__all__ = ["ApiKeys"]

_ROLES = ("viewer", "editor", "admin")
_TOUCHED = timedelta(minutes=1)
_SELECT = (
    "SELECT id, name, role, project, prefix, created_at, last_used_at, revoked_at FROM api_key"
)


class ApiKeys:
    """The API keys of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, name: str, role: KeyRole, project: str, hashed: str, prefix: str) -> KeyRecord:
        """Store a key.

        Args:
            name: What people call it.
            role: What its holder may do.
            project: Key of the project in which they may; ``*`` for all of them.
            hashed: Hash of the key.
            prefix: The beginning of the key, by which people know it again.

        Raises:
            InputError: For an unknown role, or a text that is too long.
            NotFoundError: For an unknown project.
            StoreError: If the key is stored already, or the database cannot be written.
        """
        if role not in _ROLES:
            raise InputError(
                f"{role!r:.80} is not a role",
                location=Location(field="role"),
                hint="valid: viewer, editor, admin",
            )
        record = KeyRecord(
            id=os.urandom(6).hex(),
            name=valid_text(name, "name", most=200),
            role=role,
            project=project,
            prefix=valid_text(prefix, "prefix", most=40),
            created_at=self._database.now(),
        )
        with self._database.writing():
            if project != "*":
                Projects(self._database).get(project)
            self._database.insert(
                "INSERT INTO api_key (id, name, role, project, prefix, hashed, created_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                *(record.id, record.name, role, project, record.prefix, hashed, record.created_at),
            )
        return record

    def find(self, hashed: str) -> KeyRecord | None:
        """The key of that hash, unless it was revoked.

        Raises:
            StoreError: If the database cannot be read.
        """
        rows = self._database.rows(f"{_SELECT} WHERE hashed = ? AND revoked_at = ''", plain(hashed))
        return _read(rows[0]) if rows else None

    def page(self, *, limit: int = 50, after: str = "") -> list[KeyRecord]:
        """Keys, newest first, with those that were revoked.

        Args:
            limit: Most to return, up to 1,000.
            after: Id of the last one seen.

        Raises:
            InputError: For an impossible limit.
            NotFoundError: For an unknown key to go on after.
            StoreError: If the database cannot be read.
        """
        older = ""
        if after:
            self.get(after)
            older = "WHERE seq < (SELECT seq FROM api_key WHERE id = ?)"
        rows = self._database.rows(
            f"{_SELECT} {older} ORDER BY seq DESC LIMIT ?",
            *([after] if after else []),
            valid_limit(limit),
        )
        return [_read(row) for row in rows]

    def get(self, key: str) -> KeyRecord:
        """The key of that id.

        Raises:
            NotFoundError: If there is none.
            StoreError: If the database cannot be read.
        """
        rows = self._database.rows(f"{_SELECT} WHERE id = ?", plain(key))
        if not rows:
            raise NotFoundError(f"there is no API key {key!r:.80}")
        return _read(rows[0])

    def revoke(self, key: str) -> KeyRecord:
        """Make a key useless for good; revoking twice is fine.

        Args:
            key: Id of the key.

        Raises:
            NotFoundError: If there is none.
            StoreError: If the database cannot be written.
        """
        with self._database.writing():
            self._database.change(
                "UPDATE api_key SET revoked_at = ? WHERE id = ? AND revoked_at = ''",
                *(self._database.now(), plain(key)),
            )
            return self.get(key)

    def touch(self, key: str) -> None:
        """Note that a key is used, at most once a minute; of an unknown id nothing is noted.

        Args:
            key: Id of the key.

        Raises:
            StoreError: If the database cannot be written.
        """
        now = self._database.clock()
        stale = "FROM api_key WHERE id = ? AND last_used_at < ?"
        if self._database.rows(f"SELECT 1 {stale}", plain(key), moment(now - _TOUCHED)):
            with self._database.writing():
                self._database.change(
                    "UPDATE api_key SET last_used_at = ? WHERE id = ?", moment(now), plain(key)
                )


def _read(row: Row) -> KeyRecord:
    key, name, role, project, prefix, created_at, last_used_at, revoked_at = cast(
        "tuple[str, str, KeyRole, str, str, str, str, str]", row
    )
    return KeyRecord(
        id=key,
        name=name,
        role=role,
        project=project,
        prefix=prefix,
        created_at=created_at,
        last_used_at=last_used_at,
        revoked_at=revoked_at,
    )
