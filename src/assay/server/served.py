"""Stored graders in the wire forms of trainers and platforms, under ``/serve/PROJECT/KEY``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fastapi import APIRouter, Request

from assay.endpoint import Served, router_finding
from assay.registry import FunctionDefinition, definition_from
from assay.scoring.graded import Graded
from assay.server.context import context
from assay.server.door import admit
from assay.server.grading import Item, grade_apart, version_of
from assay.server.problems import ProblemError
from assay.service.operation import KEY_PATTERN
from assay.store.catalog_records import GraderVersion

__all__ = ["PREFIX", "served_router"]

PREFIX = "/serve/{project}/{key}"

_KEY = re.compile(KEY_PATTERN)


def served_router() -> APIRouter:
    """The routes, to be included under `PREFIX`."""
    return router_finding(_find)


async def _find(request: Request) -> Served:
    """The latest version of the grader that the path names.

    Raises:
        ProblemError: For who may not grade with it, and for one that is not there.
    """
    await admit(request, "editor")
    project, key = request.path_params["project"], request.path_params["key"]
    if not (_KEY.search(project) and _KEY.search(key)):
        raise ProblemError(404, "no key of a project and a grader")
    server = context(request)
    version = await server.storage.run(
        lambda database: version_of(database, project, key, None, server)
    )

    async def grade(items: Sequence[Item]) -> list[Graded]:
        return await grade_apart(server, version, items)

    return Served(
        scorer=grade,
        name=key,
        version=str(version.number),
        score_range=_range(version),
        max_bytes=server.settings.max_body_bytes,
    )


def _range(version: GraderVersion) -> tuple[float, float] | None:
    """The scores that a version may give; None for any number."""
    definition = definition_from(version.kind, version.definition)
    # Other kinds are graded on their own scale, and their scores brought to [0, 1].
    return definition.range if isinstance(definition, FunctionDefinition) else (0.0, 1.0)
