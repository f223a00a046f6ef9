"""`Registry`: the graders of one project, each with a name, versions and a lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from assay.errors import ConflictError, NotFoundError
from assay.registry.definitions import Definition, require_kind
from assay.registry.files import differences, grader_files, read_grader_files
from assay.registry.grading import Items, grade_version
from assay.registry.imports import (
    Imported,
    apply_import,
    plan_import,
    read_folder,
    stale_files,
    validate_import,
    write_folder,
)
from assay.registry.policy import Permissions
from assay.registry.validation import Samples, validate, validated
from assay.scoring.graded import Graded
from assay.scoring.validation import ValidationReport
from assay.store.catalog import Catalog, GraderRecord, GraderVersion
from assay.store.checks import valid_key
from assay.store.database import Database
from assay.store.pages import FIRST, Page, Stretch, every

_PAGE = 200


def _nobody(line: str) -> None:
    """Tell nobody."""
    del line


class Registry:
    """Stored graders. What is stored was validated, and a version never changes.

    It belongs to the thread of its database. A change is three steps, so that whoever has the
    database on another thread validates without it: what is refused at once, `validated`, and the
    change itself, which refuses again what has become wrong meanwhile.

    Args:
        database: Where graders are kept.
        project: Key of the project.
        by: Who creates versions, for the record.
        allow_custom_code: Whether custom graders, Python classes that their authors wrote, may be
            imported and run in this process. Never on a server that others may store graders in.
        allow_internal: Whether endpoints on this machine and on private networks may be called.
    """

    def __init__(
        self,
        database: Database,
        project: str = "default",
        by: str = "",
        *,
        allow_custom_code: bool = False,
        allow_internal: bool = False,
    ) -> None:
        self.project = project
        self._database = database
        self._catalog = Catalog(database)
        self._by = by
        self._permissions = Permissions(custom_code=allow_custom_code, internal=allow_internal)

    async def create(
        self,
        key: str,
        definition: Definition,
        *,
        name: str = "",
        description: str = "",
        feedback_key: str = "",
        note: str = "",
        samples: Samples = (),
        tell: Callable[[str], object] = _nobody,
    ) -> GraderRecord:
        """Store a new grader.

        Args:
            key: What it is called from now on: lowercase letters, digits, ``.``, ``_`` and ``-``.
            definition: What it is.
            name: For people; the key by default.
            description: What it is for.
            feedback_key: The metric that its scores are written to; the key by default.
            note: Why this version was made.
            samples: Submissions that it must be able to grade.
            tell: Gets a line for everything that is worth a look.

        Raises:
            InputError: For a malformed key.
            ConflictError: If the key is taken.
            ValidationFailedError: If it does not do what it must; nothing is stored.
        """
        self.require_free(key)
        definition, warnings = await validated(key, definition, samples, self._permissions)
        for warning in warnings:
            tell(warning)
        return self.add(
            key, definition, note, name=name, description=description, feedback_key=feedback_key
        )

    async def update(
        self,
        key: str,
        definition: Definition,
        *,
        note: str = "",
        expected: int | None = None,
        samples: Samples = (),
        tell: Callable[[str], object] = _nobody,
    ) -> GraderRecord:
        """Store a new version; the definition that is there already makes none.

        Args:
            key: The grader.
            definition: What it becomes.
            note: Why.
            expected: Number of the newest version that the caller knows of.
            samples: Submissions that it must be able to grade.
            tell: Gets a line for everything that is worth a look.

        Raises:
            NotFoundError: If there is no such grader.
            LockedError: If it is locked.
            ConflictError: If ``expected`` is not the newest version any more.
            ValidationFailedError: If it does not do what it must; nothing is stored.
        """
        present, is_same = self.changing(key, definition, expected)
        if is_same:
            return present
        definition, warnings = await validated(key, definition, samples, self._permissions)
        for warning in warnings:
            tell(warning)
        return self.add_version(key, definition, note, expected=present.latest.number)

    def require_free(self, key: str) -> None:
        """Refuse a key that is malformed or taken, before anything is validated."""
        valid_key(key)
        try:
            self.get(key)
        except NotFoundError:
            return
        raise ConflictError(
            f"there is already a grader {key!r} in project {self.project!r}",
            hint="update it, or choose another key",
        )

    def changing(
        self, key: str, definition: Definition, expected: int | None
    ) -> tuple[GraderRecord, bool]:
        """The grader that is to change, and whether it is this definition already.

        Raises:
            NotFoundError: If there is no such grader.
            LockedError: If it would change and is locked.
            ConflictError: If ``expected`` is not the newest version any more.
        """
        present = self.get(key)
        latest = present.latest
        is_same = (latest.kind, dict(latest.definition)) == (definition.kind, definition.to_dict())
        present.require_version(expected)
        if not is_same:
            present.require_unlocked()
        return present, is_same

    def add(
        self,
        key: str,
        definition: Definition,
        note: str = "",
        *,
        name: str = "",
        description: str = "",
        feedback_key: str = "",
    ) -> GraderRecord:
        """Store a grader that was validated."""
        return self._catalog.create(
            self.project,
            key,
            kind=definition.kind,
            definition=definition.to_dict(),
            digest=definition.digest(),
            name=name or key,
            description=description,
            feedback_key=feedback_key or key,
            note=note,
            by=self._by,
        )

    def add_version(
        self, key: str, definition: Definition, note: str = "", *, expected: int | None
    ) -> GraderRecord:
        """Store a version that was validated."""
        return self._catalog.add_version(
            self.project,
            key,
            kind=definition.kind,
            definition=definition.to_dict(),
            digest=definition.digest(),
            note=note,
            by=self._by,
            expected=expected,
        )

    def describe(
        self,
        key: str,
        *,
        name: str | None = None,
        description: str | None = None,
        feedback_key: str | None = None,
    ) -> GraderRecord:
        """Change what people read of a grader; what is None stays. It makes no version."""
        return self._catalog.describe(
            self.project,
            key,
            name=key if name == "" else name,
            description=description,
            feedback_key=key if feedback_key == "" else feedback_key,
        )

    def get(self, key: str, number: int | None = None) -> GraderRecord:
        """A grader with its newest version, or that of a number, also where it was deleted."""
        return self._catalog.get(self.project, key, number)

    def version(self, key: str, number: int | None = None) -> GraderVersion:
        """One version of a grader, also of one that was deleted; the newest by default."""
        return self._catalog.version(self.project, key, number)

    def versions(self, key: str, wanted: Stretch = FIRST) -> Page[GraderVersion]:
        """A page of the versions of a grader, newest first."""
        return self._catalog.versions(self.project, key, wanted)

    def page(
        self, wanted: Stretch = FIRST, *, kind: str | None = None, query: str = ""
    ) -> Page[GraderRecord]:
        """A page of graders, ordered by key; see `Catalog.page`.

        Raises:
            InputError: For an unknown kind; names the nearest.
        """
        if kind is not None:
            require_kind(kind)
        return self._catalog.page(self.project, wanted, kind=kind, query=query)

    def lock(self, key: str, *, locked: bool = True) -> GraderRecord:
        """Forbid changes and deletion, or allow them again."""
        return self._catalog.set_locked(self.project, key, locked)

    def delete(self, key: str, *, force: bool = False) -> None:
        """Delete a grader. Its key is free again; versions that scores name stay readable.

        Raises:
            LockedError: If it is locked, ``force`` or not.
            ConflictError: If a job that has not ended uses it, and not forced.
        """
        self._catalog.delete(self.project, key, force=force)

    def diff(self, key: str, a: int | None = None, b: int | None = None) -> str:
        """What changed between two versions, as a unified diff of their files.

        Args:
            key: The grader.
            a: The older one; that before ``b`` by default, see `before`.
            b: The newer one; the newest by default.

        Returns:
            The diff; empty where they are the same, or there is none before.
        """
        newer = self.version(key, b)
        older = self.before(newer) if a is None else self.version(key, a)
        return "" if older is None else differences(older, newer)

    def before(self, version: GraderVersion) -> GraderVersion | None:
        """The version before one: also of the grader of that key that was there before it."""
        return self.version(version.key, version.number - 1) if version.number > 1 else None

    def files(self, keys: Iterable[str] | None = None) -> dict[str, str]:
        """The grader files, by name: what `export` writes; of all graders by default."""
        records = self._all() if keys is None else [self.get(key) for key in keys]
        files: dict[str, str] = {}
        for record in records:
            files.update(grader_files(record))
        return files

    def export(self, keys: Iterable[str] | None, directory: str | os.PathLike[str]) -> list[Path]:
        """Write graders, all for None, as files that can live in git; the files."""
        return write_folder(self.files(keys), directory)

    def stale(self, directory: str | os.PathLike[str], *, remove: bool = False) -> list[Path]:
        """Find, or ``remove``, grader files that this project has not; see `stale_files`."""
        return stale_files(self.files(), directory, remove=remove)

    async def import_(self, path: str | os.PathLike[str], *, update: bool = True) -> list[Imported]:
        """Store the graders of a directory, or of one file; see `import_files`."""
        files, shown = read_folder(path)
        return await self.import_files(files, update=update, folder=shown)

    async def import_files(
        self, files: Mapping[str, str], *, update: bool = True, folder: str = ""
    ) -> list[Imported]:
        """Store graders given as the texts of their files: all of them, or none.

        Args:
            files: Texts by file name, as `files` gives them.
            update: Whether graders that are there may change.
            folder: What stands before the names in messages.

        Returns:
            What was done, by key. What did not change made no version.

        Raises:
            DocumentError: With everything that is wrong in the files.
            LockedError: If one that is locked would change.
            ConflictError: If one that is there would change and may not.
            ValidationFailedError: If one does not do what it must.
        """
        read = read_grader_files(files, folder=folder)
        planned = plan_import(self._catalog, self.project, read, update=update)
        await validate_import(planned, self._permissions)
        with self._database.writing():
            return apply_import(self._catalog, self.project, planned, self._by)

    async def validate(self, definition: Definition, samples: Samples = ()) -> ValidationReport:
        """Check a grader, also on samples, and store nothing."""
        return await validate(definition, samples, self._permissions)

    async def grade(self, key: str, items: Items, *, version: int | None = None) -> list[Graded]:
        """Grade items with a stored grader, its newest version by default; nothing is recorded.

        See `grade_version` for what it returns.

        Raises:
            NotFoundError: If there is no such version.
            InputError: If it is of a kind that cannot grade here.
        """
        return await self.grade_with(self.version(key, version), items)

    async def grade_with(self, version: GraderVersion, items: Items) -> list[Graded]:
        """Grade items with a version that was looked up before; as `grade`."""
        return await grade_version(version, items, self._permissions)

    def _all(self) -> Iterable[GraderRecord]:
        return every(self.page)
