"""Import graders: what each file changes, and all of it or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from assay.errors import ConflictError, LockedError, NotFoundError
from assay.registry.files import GraderFile
from assay.registry.policy import Permissions
from assay.registry.validation import ValidationFailedError, validate
from assay.store.catalog import Catalog, GraderRecord

__all__ = [
    "Change",
    "Imported",
    "Planned",
    "apply_import",
    "plan_import",
    "validate_import",
]

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
class Planned:
    """What importing one file will do."""

    file: GraderFile
    change: Change
    present: GraderRecord | None


def plan_import(
    catalog: Catalog, project: str, files: Sequence[GraderFile], *, update: bool
) -> list[Planned]:
    """What each of the files will change.

    Raises:
        LockedError: If one that is locked would change.
        ConflictError: If one that is there would change and ``update`` is false.
    """
    planned = [_plan(file, _present(catalog, project, file.key)) for file in files]
    _refuse(planned, update=update)
    return planned


async def validate_import(planned: Sequence[Planned], permissions: Permissions) -> None:
    """Check every definition that will be stored.

    Raises:
        ValidationFailedError: For the first that does not do what it must.
    """
    # Files may come from anybody, so that none makes us import a class it names: `grade` does.
    permissions = replace(permissions, custom_code=False)
    for plan in planned:
        if plan.change in ("created", "updated"):
            report = await validate(plan.file.definition, (), permissions)
            if not report.valid:
                raise ValidationFailedError(plan.file.key, report, plan.file.file)


def apply_import(
    catalog: Catalog, project: str, planned: Sequence[Planned], by: str
) -> list[Imported]:
    """Store what was planned, inside a transaction of the caller's.

    Raises:
        ConflictError: If somebody else changed one meanwhile.
    """
    return [_apply(catalog, project, plan, by) for plan in planned]


def _present(catalog: Catalog, project: str, key: str) -> GraderRecord | None:
    try:
        return catalog.get(project, key)
    except NotFoundError:
        return None


def _plan(file: GraderFile, present: GraderRecord | None) -> Planned:
    if present is None:
        return Planned(file, "created", None)
    latest, definition = present.latest, file.definition
    if (latest.kind, dict(latest.definition)) != (definition.kind, definition.to_dict()):
        return Planned(file, "updated", present)
    said = (present.name, present.description, present.feedback_key)
    is_same = said == (file.name or file.key, file.description, file.feedback_key or file.key)
    return Planned(file, "unchanged" if is_same else "described", present)


def _refuse(planned: Iterable[Planned], *, update: bool) -> None:
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


def _apply(catalog: Catalog, project: str, plan: Planned, by: str) -> Imported:
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
