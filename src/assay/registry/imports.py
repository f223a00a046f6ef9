"""Import graders: what each file changes, and all of it or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from assay.errors import ConflictError, LockedError, NotFoundError
from assay.registry.files import GraderFile
from assay.registry.grading import Permissions
from assay.registry.validation import ValidationFailedError, validate
from assay.store.catalog import Catalog
from assay.store.catalog_records import GraderRecord
from assay.store.database import Database

__all__ = ["Change", "Imported", "import_graders"]

Change: TypeAlias = Literal["created", "updated", "described", "unchanged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What importing one grader did.

    Attributes:
        change: ``created``; ``updated``, which made a version; ``described``, which changed only
            what people read; or ``unchanged``.
        record: The grader as it is now.
    """

    change: Change
    record: GraderRecord


@dataclass(frozen=True, slots=True)
class _Planned:
    file: GraderFile
    change: Change
    present: GraderRecord | None


async def import_graders(
    database: Database,
    project: str,
    files: Sequence[GraderFile],
    *,
    permissions: Permissions,
    update: bool,
    by: str,
) -> list[Imported]:
    """Store graders that were read from files: all of them, or none.

    Args:
        database: Where.
        project: Key of the project.
        files: The graders.
        permissions: What graders may do here.
        update: Whether those that are there may change.
        by: Who imports.

    Raises:
        LockedError: If one that is locked would change.
        ConflictError: If one that is there would change and ``update`` is false, or somebody else
            changed one meanwhile.
        ValidationFailedError: For the first that does not do what it must.
    """
    # Files may come from anybody, so that none makes us import a class it names: `grade` does.
    permissions = replace(permissions, custom_code=False)
    catalog = Catalog(database)
    planned = [_plan(file, _present(catalog, project, file.key)) for file in files]
    _refuse(planned, update=update)
    for plan in planned:
        if plan.change in ("created", "updated"):
            report = await validate(plan.file.definition, (), permissions)
            if not report.valid:
                raise ValidationFailedError(plan.file.key, report, plan.file.file)
    with database.writing():
        return [_apply(catalog, project, plan, by) for plan in planned]


def _present(catalog: Catalog, project: str, key: str) -> GraderRecord | None:
    try:
        return catalog.get(project, key)
    except NotFoundError:
        return None


def _plan(file: GraderFile, present: GraderRecord | None) -> _Planned:
    if present is None:
        return _Planned(file, "created", None)
    latest, definition = present.latest, file.definition
    if (latest.kind, dict(latest.definition)) != (definition.kind, definition.to_dict()):
        return _Planned(file, "updated", present)
    said = (present.name, present.description, present.feedback_key)
    is_same = said == (file.name or file.key, file.description, file.feedback_key or file.key)
    return _Planned(file, "unchanged" if is_same else "described", present)


def _refuse(planned: Iterable[_Planned], *, update: bool) -> None:
    changed = [plan for plan in planned if plan.present is not None and plan.change != "unchanged"]
    locked = [plan.file.key for plan in changed if plan.present and plan.present.locked]
    if locked:
        raise LockedError(
            f"locked: {', '.join(locked)}", hint="nothing was imported; unlock them first"
        )
    if changed and not update:
        there = ", ".join(plan.file.key for plan in changed)
        raise ConflictError(
            f"there already, and different: {there}", hint="nothing was imported; allow updates"
        )


def _apply(catalog: Catalog, project: str, plan: _Planned, by: str) -> Imported:
    file, present = plan.file, plan.present
    name, feedback_key = file.name or file.key, file.feedback_key or file.key
    if present is None:
        record = catalog.create(
            project,
            file.key,
            kind=file.definition.kind,
            definition=file.definition.to_dict(),
            digest=file.definition.digest(),
            name=name,
            description=file.description,
            feedback_key=feedback_key,
            note="imported",
            by=by,
        )
        return Imported(change=plan.change, record=record)
    if plan.change == "updated":
        catalog.add_version(
            project,
            file.key,
            kind=file.definition.kind,
            definition=file.definition.to_dict(),
            digest=file.definition.digest(),
            note="imported",
            by=by,
            expected=present.latest.number,
        )
    if plan.change != "unchanged":
        present = catalog.describe(
            project,
            file.key,
            name=name,
            description=file.description,
            feedback_key=feedback_key,
        )
    return Imported(change=plan.change, record=present)
