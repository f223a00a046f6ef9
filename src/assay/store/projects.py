"""`Projects`: what graders, datasets, jobs and scores belong to."""

from __future__ import annotations

from typing import cast

from assay.errors import ConflictError, NotFoundError, nearest
from assay.store.catalog_records import ProjectRecord
from assay.store.checks import valid_key, valid_text
from assay.store.database import Database
from assay.store.engine import Row

__all__ = ["Projects"]

_SELECT = "SELECT key, name, created_at FROM project"


class Projects:
    """The projects of a database; ``default`` is always there."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[ProjectRecord]:
        """Every project, by key.

        Raises:
            StoreError: If the database cannot be read.
        """
        return [_read(row) for row in self._database.rows(f"{_SELECT} ORDER BY key")]

    def get(self, key: str) -> ProjectRecord:
        """One project.

        Raises:
            NotFoundError: If there is none; names the nearest.
            StoreError: If the database cannot be read.
        """
        found = self._find(key)
        if found is None:
            hint = nearest(key, [project.key for project in self.all()])
            raise NotFoundError(f"there is no project {key!r:.80}", hint=hint)
        return found

    def create(self, key: str, name: str = "") -> ProjectRecord:
        """Make a project.

        Raises:
            ConflictError: If the key is taken.
            InputError: For a key or a name that cannot be one.
            StoreError: If the database cannot be written.
        """
        project = ProjectRecord(
            key=valid_key(key),
            name=valid_text(name, "name", most=200) or key,
            created_at=self._database.now(),
        )
        with self._database.writing():
            added = self._database.change(
                "INSERT INTO project (key, name, created_at) VALUES (?, ?, ?) "
                "ON CONFLICT (key) DO NOTHING",
                project.key,
                project.name,
                project.created_at,
            )
            if not added:
                raise ConflictError(
                    f"there is already a project {key!r}", hint="choose another key"
                )
        return project

    def ensure(self, key: str) -> ProjectRecord:
        """The project of that key, made if it is not there.

        Raises:
            InputError: For a key that cannot be one.
            StoreError: If the database cannot be written.
        """
        found = self._find(key)
        if found is not None:
            return found
        try:
            return self.create(key)
        except ConflictError:  # another process was quicker
            return self.get(key)

    def _find(self, key: str) -> ProjectRecord | None:
        rows = self._database.rows(f"{_SELECT} WHERE key = ?", key) if key.isascii() else []
        return _read(rows[0]) if rows else None


def _read(row: Row) -> ProjectRecord:
    key, name, created_at = cast("tuple[str, str, str]", row)
    return ProjectRecord(key=key, name=name, created_at=created_at)
