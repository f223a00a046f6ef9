"""`Registry`: the graders of one project, each with a name, versions and a lock."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from assay.errors import ConflictError, LockedError, NotFoundError
from assay.graders.functions.report import ValidationReport
from assay.registry.definition import Definition
from assay.registry.definitions import definition_from, require_kind
from assay.registry.differences import differences
from assay.registry.files import grader_files, read_grader_files
from assay.registry.folders import read_folder, stale_files, write_folder
from assay.registry.grading import Items, Permissions, grade_items
from assay.registry.imports import Imported, import_graders
from assay.registry.validation import Samples, ValidationFailedError, validate
from assay.scoring.graded import Graded
from assay.store.catalog import Catalog
from assay.store.catalog_records import GraderRecord, GraderVersion
from assay.store.checks import valid_key
from assay.store.database import Database

__all__ = ["Registry"]

_PAGE = 200


class Registry:
    """Stored graders. What is stored was validated, and a version never changes.

    It belongs to the thread of its database. Its coroutines touch the database only between their
    awaits, so that many may run in one event loop of that thread.

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
    ) -> GraderRecord:
        """Store a new grader.

        Args:
            key: What it is called from now on: small letters, digits, ``.``, ``_`` and ``-``.
            definition: What it is.
            name: For people; the key by default.
            description: What it is for.
            feedback_key: The metric that its scores are written to; the key by default.
            note: Why this version was made.
            samples: Submissions that it must be able to grade.

        Raises:
            InputError: For a key that is none.
            ConflictError: If the key is taken.
            ValidationFailedError: If it does not do what it must; nothing is stored.
        """
        valid_key(key)
        if self._find(key) is not None:
            raise ConflictError(
                f"there is already a grader {key!r} in project {self.project!r}",
                hint="update it, or choose another key",
            )
        definition = await self._valid(key, definition, samples)
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

    async def update(
        self,
        key: str,
        definition: Definition,
        *,
        note: str = "",
        expected: int | None = None,
        samples: Samples = (),
    ) -> GraderRecord:
        """Store a new version; the definition that is there already makes none.

        Args:
            key: The grader.
            definition: What it becomes.
            note: Why.
            expected: Number of the newest version that the caller knows of.
            samples: Submissions that it must be able to grade.

        Raises:
            NotFoundError: If there is no such grader.
            LockedError: If it is locked.
            ConflictError: If ``expected`` is not the newest version any more.
            ValidationFailedError: If it does not do what it must; nothing is stored.
        """
        present = self.get(key)
        latest = present.latest
        if expected is not None and expected != latest.number:
            raise ConflictError(
                f"{key!r} is at version {latest.number}, not {expected}",
                hint="look at what changed, then try again",
            )
        if (latest.kind, dict(latest.definition)) == (definition.kind, definition.to_dict()):
            return present
        if present.locked:
            raise LockedError(f"grader {key!r} is locked", hint="unlock it first")
        definition = await self._valid(key, definition, samples)
        return self._catalog.add_version(
            self.project,
            key,
            kind=definition.kind,
            definition=definition.to_dict(),
            digest=definition.digest(),
            note=note,
            by=self._by,
            expected=latest.number,
        )

    def describe(
        self,
        key: str,
        *,
        name: str | None = None,
        description: str | None = None,
        feedback_key: str | None = None,
    ) -> GraderRecord:
        """Change what people read of a grader; what is None stays. It makes no version.

        Raises:
            NotFoundError: If there is no such grader.
            LockedError: If it is locked.
        """
        return self._catalog.describe(
            self.project,
            key,
            name=key if name == "" else name,
            description=description,
            feedback_key=key if feedback_key == "" else feedback_key,
        )

    def get(self, key: str) -> GraderRecord:
        """A grader with its newest version.

        Raises:
            NotFoundError: If there is none of that key.
        """
        return self._catalog.get(self.project, key)

    def version(self, key: str, number: int | None = None) -> GraderVersion:
        """One version of a grader; the newest by default.

        Raises:
            NotFoundError: If there is no such version.
        """
        return self._catalog.version(self.project, key, number)

    def versions(
        self, key: str, *, limit: int = 50, after: int | None = None
    ) -> list[GraderVersion]:
        """A page of the versions of a grader.

        Raises:
            NotFoundError: If there is no such grader.
        """
        return self._catalog.versions(self.project, key, limit=limit, after=after)

    def page(
        self, *, limit: int = 50, after: str = "", kind: str | None = None, query: str = ""
    ) -> list[GraderRecord]:
        """A page of graders, ordered by key.

        Args:
            limit: How many, at most.
            after: Key that the page begins after.
            kind: Only of this kind.
            query: Only those whose key, name or description holds this text.

        Raises:
            InputError: For a kind that there is none of; names the nearest.
        """
        if kind is not None:
            require_kind(kind)
        return self._catalog.page(self.project, limit=limit, after=after, kind=kind, query=query)

    def lock(self, key: str, *, locked: bool = True) -> GraderRecord:
        """Forbid changes and deletion, or allow them again.

        Raises:
            NotFoundError: If there is no such grader.
        """
        return self._catalog.set_locked(self.project, key, locked)

    def delete(self, key: str, *, force: bool = False) -> None:
        """Delete a grader. Its key is free again; versions that scores name stay readable.

        Args:
            key: The grader.
            force: Also where jobs or scores use it.

        Raises:
            NotFoundError: If there is no such grader.
            LockedError: If it is locked, ``force`` or not.
            ConflictError: If it is used, and not forced.
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

        Raises:
            NotFoundError: If there is no such version.
        """
        newer = self.version(key, b)
        older = self.before(newer) if a is None else self.version(key, a)
        return "" if older is None else differences(older, newer)

    def before(self, version: GraderVersion) -> GraderVersion | None:
        """The version before one: also of the grader of that key that was there before it."""
        return self.version(version.key, version.number - 1) if version.number > 1 else None

    def files(self, keys: Iterable[str] | None = None) -> dict[str, str]:
        """The files of graders, by name: what `export` writes.

        Args:
            keys: Which; all by default.

        Raises:
            NotFoundError: If there is no such grader.
        """
        records = self._all() if keys is None else [self.get(key) for key in keys]
        files: dict[str, str] = {}
        for record in records:
            files.update(grader_files(record))
        return files

    def export(self, keys: Iterable[str] | None, directory: str | os.PathLike[str]) -> list[Path]:
        """Write graders as files that can live in git.

        Args:
            keys: Which; all for None.
            directory: Where to; it is made if it is not there.

        Returns:
            The files.

        Raises:
            NotFoundError: If there is no such grader.
            InputError: If a file cannot be written.
        """
        return write_folder(self.files(keys), directory)

    def stale(self, directory: str | os.PathLike[str], *, remove: bool = False) -> list[Path]:
        """Find, or also ``remove``, files of graders that this project has not; see `stale_files`.

        Raises:
            InputError: If the directory cannot be read, or a file not removed.
        """
        return stale_files(self.files(), directory, remove=remove)

    async def import_(self, path: str | os.PathLike[str], *, update: bool = True) -> list[Imported]:
        """Store the graders of a directory, or of one file; see `import_files`.

        Raises:
            InputError: Also for links, and for files that are too large.
        """
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
        return await import_graders(
            self._database,
            self.project,
            read_grader_files(files, folder=folder),
            permissions=self._permissions,
            update=update,
            by=self._by,
        )

    async def validate(self, definition: Definition, samples: Samples = ()) -> ValidationReport:
        """Check a grader and store nothing.

        Args:
            definition: The grader.
            samples: Submissions to grade with it.
        """
        return await validate(definition, samples, self._permissions)

    async def grade(self, key: str, items: Items, *, version: int | None = None) -> list[Graded]:
        """Grade items with a stored grader; nothing is recorded.

        Args:
            key: The grader.
            items: Ids and submissions.
            version: The newest by default.

        Returns:
            What came of each item, in their order, with ``key@version`` and the digest of what
            graded: of the version, and of assay's own code as it is now.

        Raises:
            NotFoundError: If there is no such version.
            InputError: If it is of a kind that cannot grade here.
        """
        return await self.grade_with(self.version(key, version), items)

    async def grade_with(self, version: GraderVersion, items: Items) -> list[Graded]:
        """Grade items with a version that was looked up before; as `grade`.

        Raises:
            InputError: If it is of a kind that cannot grade here.
        """
        definition = definition_from(version.kind, version.definition)
        from assay.sandbox.functions import owned_by

        with owned_by(self.project):  # no worker is shared between projects
            graded = await grade_items(definition, items, self._permissions)
        name = f"{version.key}@{version.number}"
        return [one.by(name, one.digest) for one in graded]

    async def _valid(self, key: str, definition: Definition, samples: Samples) -> Definition:
        """The definition, read again from what will be stored, if it does what it must."""
        read = definition_from(definition.kind, definition.to_dict())
        report = await self.validate(read, samples)
        if not report.valid:
            raise ValidationFailedError(key, report)
        return read

    def _find(self, key: str) -> GraderRecord | None:
        try:
            return self.get(key)
        except NotFoundError:
            return None

    def _all(self) -> Iterable[GraderRecord]:
        after = ""
        while page := self.page(limit=_PAGE, after=after):
            yield from page
            after = page[-1].key
