"""API keys. A project's admins manage those of their project."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from assay.errors import NotFoundError
from assay.server.access import Identity
from assay.server.context import caller, context
from assay.server.documents import problem_responses
from assay.server.door import Door, needs
from assay.server.keys import new_key
from assay.server.models.work import KeyBody, KeyPage, NewKeyShown
from assay.server.paging import MAX_LIMIT, cursor_text, page
from assay.server.problems import ProblemError, reply
from assay.server.routes.params import Cursor, Limit
from assay.store.api_keys import ApiKeys
from assay.store.catalog_records import KeyRecord
from assay.store.database import Database

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/keys", route_class=Door, tags=["keys"])

_KeyId = Annotated[
    str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Id of the key.", examples=["1a2b3c4d"])
]


@router.get("", response_model=KeyPage, openapi_extra=needs("member"))
async def list_keys(request: Request, *, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """The keys that the caller manages, revoked ones too."""
    who, after = _admin(request), cursor_text(cursor)
    found = await context(request).storage.run(
        lambda database: _managed(database, who, after, limit + 1)
    )
    return reply(page(found, limit, _id, KeyRecord.to_dict))


@router.post(
    "",
    status_code=201,
    response_model=NewKeyShown,
    openapi_extra=needs("member"),
    responses=problem_responses(404),
)
async def create_key(request: Request, body: KeyBody) -> Response:
    """Make a key. Its token is in this reply and nowhere else; the same again makes another."""
    who = _admin(request)
    if not who.may("admin", body.project):
        raise ProblemError(403, f"this needs the role admin for project {body.project!r}")
    made = new_key()

    def create(database: Database) -> KeyRecord:
        return ApiKeys(database).create(
            body.name, body.role, body.project, made.hashed, made.prefix
        )

    record = await context(request).storage.run(create)
    return reply({**record.to_dict(), "token": made.token}, 201)


@router.delete(
    "/{id}",
    status_code=204,
    response_class=Response,
    openapi_extra=needs("member"),
    responses=problem_responses(404),
)
async def revoke_key(request: Request, id: _KeyId) -> Response:  # noqa: A002 - its name in the path
    """Revoke a key, at once."""
    who = _admin(request)

    def revoke(database: Database) -> None:
        if not who.may("admin", ApiKeys(database).get(id).project):
            raise NotFoundError(f"there is no API key {id!r:.80}")  # as if it were not there
        ApiKeys(database).revoke(id)

    await context(request).storage.run(revoke)
    context(request).access.forget()
    return Response(status_code=204)


def _admin(request: Request) -> Identity:
    who = caller(request)
    if who.role != "admin":
        raise ProblemError(403, "this needs the role admin")
    return who


def _managed(database: Database, who: Identity, after: str, limit: int) -> list[KeyRecord]:
    """Some of the keys that somebody manages, newest first."""
    keys, found = ApiKeys(database), list[KeyRecord]()
    while len(found) < limit and (some := keys.page(limit=MAX_LIMIT, after=after)):
        found.extend(key for key in some if who.may("admin", key.project))
        after = some[-1].id
    return found[:limit]


def _id(key: KeyRecord) -> str:
    return key.id
