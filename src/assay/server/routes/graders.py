"""Stored graders: list, make, change, lock, compare, carry away and bring in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Header, Query, Request, Response

from assay.errors import ConflictError, LockedError
from assay.registry import Definition, Registry, definition_from
from assay.registry.validation import version_warnings
from assay.scoring.json_safe import Json
from assay.server.context import caller, context
from assay.server.documents import problem_responses
from assay.server.door import Door, needs
from assay.server.grading import calibration, registry_of
from assay.server.idempotency import Answer, Keep, carry_out
from assay.server.items import items_of
from assay.server.models.graders import (
    ChecksShown,
    DiffShown,
    GraderBody,
    GraderDetail,
    GraderPage,
    GraderShown,
    LockBody,
    NamesBody,
    ValidateBody,
    VersionBody,
    VersionPage,
)
from assay.server.paging import cursor_number, cursor_text, page
from assay.server.policy import require_allowed
from assay.server.problems import Fault, ProblemError, reply
from assay.server.routes.params import Cursor, Force, GraderKey, Limit, Project, Search
from assay.store.catalog_records import GraderRecord, GraderVersion
from assay.store.database import Database
from assay.types.codec import ShapeError

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/projects/{project}/graders", route_class=Door, tags=["graders"])

_RESERVED = ("export", "import", "validate")
_Wanted = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="The latest by default.")]
_IfMatch = Annotated[
    str | None, Header(description='`"KEY@NUMBER"` of the version to replace, or `*`.')
]
_IfNoneMatch = Annotated[str | None, Header(description="An ETag that the client has already.")]
_ETAG: dict[str, Any] = {
    "headers": {"ETag": {"schema": {"type": "string"}, "description": "Begins with KEY@NUMBER."}}
}
_Found: TypeAlias = tuple[GraderRecord, dict[str, Json] | None]
"""A grader, and the calibration card of its version."""
_SAME: dict[int | str, dict[str, Any]] = {304: {"description": "The client has it already."}}


def _registry(request: Request, project: str, database: Database) -> Registry:
    """The registry of a project, in the name of whoever asks."""
    return registry_of(database, project, context(request), caller(request).name)


@router.get("", response_model=GraderPage, openapi_extra=needs("viewer"))
async def list_graders(
    request: Request,
    project: Project,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    kind: Annotated[str | None, Query(max_length=50, examples=["function"])] = None,
    query: Search = "",
) -> Response:
    """The graders of a project, by key."""
    after = cursor_text(cursor)
    found = await context(request).storage.run(
        lambda database: _registry(request, project, database).page(
            limit=limit + 1, after=after, kind=kind, query=query
        )
    )
    return reply(page(found, limit, _key, GraderRecord.to_dict))


@router.post(
    "",
    status_code=201,
    response_model=GraderDetail,
    openapi_extra=needs("editor", repeatable=True),
    responses={201: _ETAG, **problem_responses(404, 409, 503)},
)
async def create_grader(request: Request, project: Project, body: GraderBody) -> Response:
    """Store a grader, after it was validated: its checks, and a trial on the samples."""
    if body.key in _RESERVED:
        raise ProblemError(
            422,
            f"a grader cannot be called {body.key!r}",
            faults=[Fault("key", "the word has a meaning in addresses", "choose another")],
        )
    definition = _checked(request, body.kind, body.definition)
    samples = await items_of(request, "samples")

    async def work(database: Database, keep: Keep) -> Answer:
        made = await _registry(request, project, database).create(
            body.key,
            definition,
            name=body.name,
            description=body.description,
            feedback_key=body.feedback_key,
            note=body.note,
            samples=samples,
        )
        place = f"/api/v1/projects/{project}/graders/{made.key}"
        card = calibration(database, made.latest)
        headers = {"Location": place, "ETag": _etag(made, card)}
        return keep(Answer(_shown(made, card), 201, headers))

    return await carry_out(request, project, work)


@router.post(
    "/validate",
    response_model=ChecksShown,
    openapi_extra=needs("editor"),
    responses=problem_responses(404, 503),
)
async def validate_grader(request: Request, project: Project, body: ValidateBody) -> Response:
    """Check a definition and try it on samples; nothing is stored."""
    definition = _checked(request, body.kind, body.definition)
    samples = await items_of(request, "samples")
    report = await context(request).storage.follow(
        lambda database: _registry(request, project, database).validate(definition, samples)
    )
    return reply(report.to_dict())


@router.get(
    "/{key}",
    response_model=GraderDetail,
    openapi_extra=needs("viewer"),
    responses={200: _ETAG, **_SAME, **problem_responses(404)},
)
async def show_grader(
    request: Request,
    project: Project,
    key: GraderKey,
    *,
    version: _Wanted = None,
    if_none_match: _IfNoneMatch = None,
) -> Response:
    """A grader with its latest version, or the one that is asked for."""

    def find(database: Database) -> _Found:
        registry = _registry(request, project, database)
        found = registry.get(key)
        if version is not None:
            found = replace(found, latest=registry.version(key, version))
        return found, calibration(database, found.latest)

    found, card = await context(request).storage.run(find)
    headers = {"ETag": _etag(found, card), "Cache-Control": "private, no-cache"}
    if if_none_match is not None and _matches(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return reply(_shown(found, card), 200, headers)


@router.put(
    "/{key}",
    response_model=GraderDetail,
    openapi_extra=needs("editor"),
    responses={200: _ETAG, **problem_responses(404, 412, 423, 428, 503)},
)
async def update_grader(
    request: Request,
    project: Project,
    key: GraderKey,
    *,
    body: VersionBody,
    if_match: _IfMatch = None,
    force: Annotated[bool, Query(description="Whatever the latest version is.")] = False,
) -> Response:
    """Store a new version; the same definition as the latest makes none."""
    definition = _checked(request, body.kind, body.definition)
    samples = await items_of(request, "samples")
    expected = _expected(key, if_match, force=force)

    async def update(database: Database) -> _Found:
        made = await _registry(request, project, database).update(
            key, definition, note=body.note, expected=expected, samples=samples
        )
        return made, calibration(database, made.latest)

    try:
        made, card = await context(request).storage.follow(update)
    except LockedError:
        raise
    except ConflictError as error:
        fault = Fault("If-Match", error.message, error.hint)
        raise ProblemError(412, error.message, faults=[fault]) from error
    return reply(_shown(made, card), 200, {"ETag": _etag(made, card)})


@router.patch(
    "/{key}",
    response_model=GraderShown,
    openapi_extra=needs("editor"),
    responses={200: _ETAG, **problem_responses(404, 423)},
)
async def describe_grader(
    request: Request, project: Project, key: GraderKey, body: NamesBody
) -> Response:
    """Change what people read of a grader; its scores stay what they are."""

    def describe(database: Database) -> _Found:
        changed = _registry(request, project, database).describe(
            key,
            name=body.name,
            description=body.description,
            feedback_key=body.feedback_key,
        )
        return changed, calibration(database, changed.latest)

    changed, card = await context(request).storage.run(describe)
    return reply(changed.to_dict(), 200, {"ETag": _etag(changed, card)})


@router.delete(
    "/{key}",
    status_code=204,
    response_class=Response,
    openapi_extra=needs("editor"),
    responses=problem_responses(404, 409, 423),
)
async def delete_grader(
    request: Request,
    project: Project,
    key: GraderKey,
    *,
    force: Force = False,
) -> Response:
    """Delete a grader; versions that gave scores can still be read by them."""
    await context(request).storage.run(
        lambda database: _registry(request, project, database).delete(key, force=force)
    )
    return Response(status_code=204)


@router.put(
    "/{key}/lock",
    response_model=GraderShown,
    openapi_extra=needs("editor"),
    responses={200: _ETAG, **problem_responses(404)},
)
async def lock_grader(
    request: Request, project: Project, key: GraderKey, body: LockBody
) -> Response:
    """Lock a grader against changes, or unlock it."""

    def lock(database: Database) -> _Found:
        changed = _registry(request, project, database).lock(key, locked=body.locked)
        return changed, calibration(database, changed.latest)

    changed, card = await context(request).storage.run(lock)
    return reply(changed.to_dict(), 200, {"ETag": _etag(changed, card)})


@router.get(
    "/{key}/versions",
    response_model=VersionPage,
    openapi_extra=needs("viewer"),
    responses=problem_responses(404),
)
async def list_versions(
    request: Request, project: Project, key: GraderKey, *, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """The versions of a grader, newest first."""
    after = cursor_number(cursor) or None
    found = await context(request).storage.run(
        lambda database: _registry(request, project, database).versions(
            key, limit=limit + 1, after=after
        )
    )
    return reply(page(found, limit, _number, GraderVersion.to_dict))


@router.get(
    "/{key}/diff",
    response_model=DiffShown,
    openapi_extra=needs("viewer"),
    responses=problem_responses(404),
)
async def diff_versions(
    request: Request,
    project: Project,
    key: GraderKey,
    *,
    older: Annotated[
        int | None, Query(alias="from", ge=1, le=2**31 - 1, description="Before `to` by default.")
    ] = None,
    newer: Annotated[
        int | None, Query(alias="to", ge=1, le=2**31 - 1, description="The latest by default.")
    ] = None,
) -> Response:
    """What changed between two versions."""
    diff = await context(request).storage.run(
        lambda database: _registry(request, project, database).diff(key, older, newer)
    )
    return reply({"diff": diff})


def _checked(request: Request, kind: str, data: Mapping[str, Json]) -> Definition:
    """The definition, if it is well formed and this server may carry it out."""
    require_allowed(kind, data, context(request).settings)
    try:
        return definition_from(kind, data)
    except ShapeError as error:
        placed = [
            problem
            if problem.path == ("kind",)
            else replace(problem, path=("definition", *problem.path))
            for problem in error.problems
        ]
        raise ShapeError(placed) from error


def _expected(key: str, if_match: str | None, *, force: bool) -> int | None:
    """The number of the version that is to be replaced; None for any.

    Raises:
        ProblemError: 428 without ``If-Match``, 412 if it is not an ETag of this grader.
    """
    if force or (if_match is not None and if_match.strip() == "*"):
        return None
    if if_match is None:
        fault = Fault("If-Match", "required", f'send `If-Match: "{key}@NUMBER"`, or `?force=true`')
        raise ProblemError(428, "say which version is replaced", faults=[fault])
    tag = if_match.strip().removeprefix("W/").strip('"')
    name, _, rest = tag.rpartition("@")
    number = rest.partition("-")[0]
    if name == key and number.isascii() and number.isdecimal() and len(number) < 10:
        return int(number)
    fault = Fault("If-Match", "no ETag of this grader", f'such as "{key}@1"')
    raise ProblemError(412, "`If-Match` is no ETag of this grader", faults=[fault])


def _etag(record: GraderRecord, card: Mapping[str, Json] | None) -> str:
    """``"KEY@NUMBER-xxxxxxxx"``: the version, and what is said of the grader beside it."""
    said = [record.name, record.description, record.feedback_key, record.locked]
    whole = json.dumps([*said, record.created_at, card])
    mark = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f'"{record.key}@{record.latest.number}-{mark}"'


def _matches(given: str, etag: str) -> bool:
    return any(tag.strip().removeprefix("W/") in (etag, "*") for tag in given.split(","))


def _shown(record: GraderRecord, card: dict[str, Json] | None) -> dict[str, Json]:
    """A grader, with what is worth a look in its version, and the card of that."""
    warnings = list[Json](version_warnings(record.latest))
    return {**record.to_dict(), "warnings": warnings, "calibration": card}


def _key(record: GraderRecord) -> str:
    return record.key


def _number(version: GraderVersion) -> int:
    return version.number
