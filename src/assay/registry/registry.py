"""`Registry`: the graders of one project, each with a name, versions and a lock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assay.errors import ConflictError, NotFoundError
from assay.registry.definitions import Definition, require_kind
from assay.registry.files import GraderFile, differences, grader_files
from assay.registry.imports import Imported, PlannedImport, plan_of, refuse
from assay.store.catalog import Catalog, GraderRecord, GraderVersion
from assay.store.checks import valid_key
from assay.store.database import Database
from assay.store.pages import FIRST, Page, Stretch, every

_PAGE = 200


class Registry:
    """Stored graders. What is stored was validated, and a version never changes.

    It belongs to the thread of its database. A change is three steps, so that whoever has the
    database on another thread validates without it: what is refused at once (`require_free`,
    `changing`), `assay.registry.validation.validated`, and the change itself (`add`,
    `add_version`), which refuses again what has become wrong meanwhile.

    Args:
        database: Where graders are kept.
        project: Key of the project.
        by: Who creates versions, for the record.
    """

    def __init__(self, database: Database, project: str = "default", by: str = "") -> None:
        self.project = project
        self._database = database
        self._catalog = Catalog(database)
        self._by = by

    def require_free(self, key: str) -> None:
        """Refuse a key that is malformed or taken, before anything is validated."""
        valid_key(key)
        if self._present(key) is not None:
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
        is_same = definition.is_of(present.latest)
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
        """The grader files, by name; of all graders by default."""
        records = every(self.page) if keys is None else [self.get(key) for key in keys]
        files: dict[str, str] = {}
        for record in records:
            files.update(grader_files(record))
        return files

    def planned_import(
        self, files: Sequence[GraderFile], *, update: bool = True
    ) -> list[PlannedImport]:
        """What each of the files will change.

        Raises:
            LockedError: If one that is locked would change.
            ConflictError: If one that is there would change and ``update`` is false.
        """
        changes = [plan_of(file, self._present(file.key)) for file in files]
        refuse(changes, update=update)
        return changes

    def add_imported(self, planned: Sequence[PlannedImport]) -> list[Imported]:
        """Store all that was planned and validated, or nothing.

        Raises:
            ConflictError: If somebody else changed one meanwhile.
        """
        with self._database.writing():
            return [self._import(plan) for plan in planned]

    def _import(self, plan: PlannedImport) -> Imported:
        file, record = plan.file, plan.present
        key, definition, note = file.key, file.definition, "imported"
        said = {
            "name": file.name,
            "description": file.description,
            "feedback_key": file.feedback_key,
        }
        if record is None:
            return Imported(change=plan.change, record=self.add(key, definition, note, **said))
        if plan.change == "updated":
            self.add_version(key, definition, note, expected=record.latest.number)
        if plan.change != "unchanged":
            record = self.describe(key, **said)
        return Imported(change=plan.change, record=record)

    def _present(self, key: str) -> GraderRecord | None:
        try:
            return self.get(key)
        except NotFoundError:
            return None
