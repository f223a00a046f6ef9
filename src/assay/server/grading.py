"""Grading with one version of a stored grader, as jobs and trainers' requests do it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TypeAlias

from assay.registry.grading import grade_version
from assay.registry.registry import Registry
from assay.scoring.graded import Graded
from assay.server.context import Context
from assay.service.graders import version_to_run
from assay.service.operation import LOCAL, Desk
from assay.store.catalog import GraderVersion
from assay.store.database import Database
from assay.types.submission import Submission

__all__ = ["Item", "grade_apart", "grade_items", "registry_of", "version_of"]

Item: TypeAlias = tuple[str, Submission]


def registry_of(database: Database, project: str, server: Context, by: str = "") -> Registry:
    """The registry of a project, with what this server allows."""
    allowed = server.settings.permissions
    return Registry(
        database,
        project,
        by,
        allow_custom_code=allowed.custom_code,
        allow_internal=allowed.internal,
    )


def version_of(
    database: Database, project: str, key: str, number: int | None, server: Context
) -> GraderVersion:
    """Find the version that is to grade, the latest by default; see `version_to_run`."""
    return version_to_run(Desk(database, project, LOCAL, server.settings.permissions), key, number)


async def grade_apart(
    server: Context, version: GraderVersion, items: Sequence[Item]
) -> list[Graded]:
    """Grade items, and count what came of them.

    On a loop and a thread of its own: some graders compute for seconds, and nobody else's request
    may wait for that. The database is not needed there.

    Raises:
        InputError: If graders of this kind cannot run here.
    """
    started = time.perf_counter()
    allowed = server.settings.permissions
    graded = await asyncio.to_thread(lambda: asyncio.run(grade_version(version, items, allowed)))
    server.metrics.graded(version.kind, graded, time.perf_counter() - started)
    return graded


async def grade_items(
    _: Database, version: GraderVersion, items: Sequence[Item], server: Context
) -> list[Graded]:
    """As `grade_apart`, for a job that has the database at hand."""
    return await grade_apart(server, version, items)
