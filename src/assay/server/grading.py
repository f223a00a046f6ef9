"""Grading with one version of a stored grader, as requests and jobs do it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence

from assay.registry import Registry
from assay.reports.standing import stored_standing
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.server.context import Context
from assay.server.items import Item
from assay.server.policy import require_allowed
from assay.store.catalog_records import GraderVersion
from assay.store.database import Database

__all__ = ["calibration", "grade_items", "registry_of", "version_of"]


def registry_of(database: Database, project: str, server: Context, by: str = "") -> Registry:
    """The registry of a project, with what this server allows."""
    return Registry(
        database,
        project,
        by,
        allow_custom_code=server.settings.allow_custom_code,
        allow_internal=server.settings.allow_internal_endpoints,
    )


def version_of(
    database: Database, project: str, key: str, number: int | None, server: Context
) -> GraderVersion:
    """Find the version that is to grade; the latest by default.

    Raises:
        NotFoundError: If there is none.
        ProblemError: If this server may not carry it out.
    """
    registry = registry_of(database, project, server)
    version = registry.get(key).latest  # first, for versions outlive the grader that was deleted
    if number is not None and number != version.number:
        version = registry.version(key, number)
    require_allowed(version.kind, version.definition, server.settings)
    return version


async def grade_items(
    database: Database, version: GraderVersion, items: Sequence[Item], server: Context
) -> list[Graded]:
    """Grade items, and count what came of them.

    Raises:
        InputError: If graders of this kind cannot run here.
    """
    started = time.perf_counter()
    registry = registry_of(database, version.project, server)
    # A loop and a thread of its own: some graders compute for seconds, and nobody else's request
    # may wait for that. The database is not touched there.
    graded = await asyncio.to_thread(lambda: asyncio.run(registry.grade_with(version, items)))
    server.metrics.graded(version.kind, graded, time.perf_counter() - started)
    return graded


def calibration(
    database: Database, version: GraderVersion, graded: Iterable[Graded] = ()
) -> dict[str, Json] | None:
    """The calibration card beside scores of a version; None where there is none.

    Args:
        database: The database.
        version: The version.
        graded: What it gave; without any, the card is for what it would give now.
    """
    found = stored_standing(database, version, (one.digest for one in graded))
    return None if found is None else found.to_dict()
