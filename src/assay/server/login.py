"""Logging in with a browser: by the link that a server printed, or by an API key."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import RedirectResponse

from assay.endpoint.problems import ProblemError
from assay.server import page
from assay.server.admission import cookie_name
from assay.server.context import address_of, context
from assay.server.document import problem_responses
from assay.server.routes import GuardedRoute, needs

router = APIRouter(route_class=GuardedRoute, tags=["server"])

_PLACE = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]{0,2000}")
"""An address of this server: a browser reads two slashes, or a slash and a backslash, as a host."""


class KeyGiven(BaseModel):
    """An API key, as a person gives it."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"key": "assay_1a2b3c4d_..."}]}
    )

    key: Annotated[str, Field(min_length=1, max_length=500)]


@router.get(
    "/login",
    response_class=Response,
    openapi_extra=needs("anyone"),
    responses={
        200: {"content": {"text/html": {}}, "description": "Where a key can be given."},
        303: {"description": "Logged in."},
        **problem_responses(403, 429),
    },
)
async def show_login(
    request: Request,
    once: Annotated[str, Query(max_length=200, description="The link's secret.")] = "",
    next: Annotated[  # noqa: A002 - its name in the address
        str, Query(max_length=2000, description="Where to go on, on this server.")
    ] = "/",
) -> Response:
    """Log in with the link that the server printed; it works once. Without it, ask for a key."""
    if not once:
        return page.show()
    access, name = context(request).access, cookie_name(request)
    place = next if _PLACE.fullmatch(next) else "/"
    old = request.cookies.get(name)
    try:
        session = access.exchange(once, address_of(request))
    except ProblemError as problem:
        if old and await access.of_session(old):  # the link was clicked twice
            return RedirectResponse(place, 303)
        if problem.status == 403 and page.is_wanted(request):
            return page.show(403)
        raise
    return _begun(request, RedirectResponse(place, 303), session)


@router.post(
    "/login",
    status_code=204,
    response_class=Response,
    openapi_extra=needs("anyone"),
    responses=problem_responses(401, 429),
)
async def log_in(request: Request, given: KeyGiven) -> Response:
    """Log a browser in with an API key. The session may what the key may, as long as it may it."""
    session = await context(request).access.log_in(given.key.strip(), address_of(request))
    return _begun(request, Response(status_code=204), session)


@router.post("/logout", status_code=204, response_class=Response, openapi_extra=needs("member"))
async def log_out(request: Request) -> Response:
    """End the session."""
    name = cookie_name(request)
    if (session := request.cookies.get(name)) is not None:
        context(request).access.end(session)
    found = Response(status_code=204)
    found.delete_cookie(name, path="/", httponly=True, samesite="strict")
    return found


def _begun(request: Request, found: Response, session: str) -> Response:
    """Give the browser its session, in place of the one that it had."""
    name = cookie_name(request)
    if (old := request.cookies.get(name)) is not None:
        context(request).access.end(old)
    found.set_cookie(
        name,
        session,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
        path="/",
    )
    return found
