"""Definitions of stored graders, in short, and a registry that validates them before they go in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from assay.registry import Definition, Imported, Registry, definition_from
from assay.registry.files import read_grader_files
from assay.registry.grading import Items, grade_version
from assay.registry.imports import validate_import
from assay.registry.policy import Permissions
from assay.registry.validation import Samples, validate, validated
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.validation import ValidationReport
from assay.store.catalog import GraderRecord
from assay.store.database import Database
from assay.types.codec import to_json


def definition(of_kind: str, **fields: object) -> Definition:
    """A stored grader of a kind, with its fields."""
    return definition_from(of_kind, cast("dict[str, Json]", to_json(fields)))


def changed(before: Definition, **fields: object) -> Definition:
    """A stored grader with other fields."""
    return definition(before.kind, **{**before.data, **fields})


class StoredGraders(Registry):
    """A registry with the three steps of each change in one: a command line and a server have them.

    Args:
        database: As of `Registry`.
        by: Likewise.
        permissions: What graders may do here.
    """

    def __init__(
        self, database: Database, by: str = "", permissions: Permissions | None = None
    ) -> None:
        super().__init__(database, by=by)
        self._permissions = permissions or Permissions()

    async def create(
        self, key: str, wanted: Definition, *, samples: Samples = (), note: str = "", **said: str
    ) -> GraderRecord:
        """Store a new grader."""
        self.require_free(key)
        checked, _ = await validated(key, wanted, samples, self._permissions)
        return self.add(key, checked, note, **said)

    async def update(
        self,
        key: str,
        wanted: Definition,
        *,
        samples: Samples = (),
        note: str = "",
        expected: int | None = None,
    ) -> GraderRecord:
        """Store a new version."""
        present, is_same = self.changing(key, wanted, expected)
        if is_same:
            return present
        checked, _ = await validated(key, wanted, samples, self._permissions)
        return self.add_version(key, checked, note, expected=present.latest.number)

    async def import_files(
        self, files: Mapping[str, str], *, update: bool = True, folder: str = ""
    ) -> list[Imported]:
        """Store the graders of some files."""
        read = read_grader_files(files, folder=folder)
        planned = self.planned_import(read, update=update)
        await validate_import(planned, self._permissions)
        return self.add_imported(planned)

    async def validate(self, wanted: Definition, samples: Samples = ()) -> ValidationReport:
        """Check a grader, and store nothing."""
        return await validate(wanted, samples, self._permissions)

    async def grade(self, key: str, items: Items, *, version: int | None = None) -> list[Graded]:
        """Grade with a stored grader."""
        return await grade_version(self.version(key, version), items, self._permissions)
