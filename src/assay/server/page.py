"""The web page: its built files, and the one document that starts it.

Nothing on it is made here: it is a program for browsers that asks the API. What runs in the page
comes from these files alone; what is graded there is shown as text.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from functools import cache
from importlib import resources
from typing import Final

from fastapi import APIRouter, Request, Response

from assay.endpoint.problems import ProblemError
from assay.server.door import Door, needs

SECTIONS: Final = ("p", "runs", "compare", "environments", "settings")
"""Beginnings of the page's own addresses; below them it finds its way itself."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_NONCE = 'name="csp-nonce" content=""'
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,80}")

router = APIRouter(route_class=Door)


async def show_page() -> Response:
    """The document that starts the page, whatever of it is asked for."""
    nonce = secrets.token_urlsafe(16)
    text = _file("index.html").decode().replace(_NONCE, f'name="csp-nonce" content="{nonce}"')
    policy = _POLICY.format(nonce=nonce)
    return Response(text, media_type="text/html", headers={"Content-Security-Policy": policy})


for _path in ("/", *(f"/{one}{rest}" for one in SECTIONS for rest in ("", "/{rest:path}"))):
    router.add_api_route(
        _path, show_page, methods=["GET"], include_in_schema=False, openapi_extra=needs("anyone")
    )


@router.get("/assets/{name}", include_in_schema=False, openapi_extra=needs("anyone"))
async def show_asset(request: Request, name: str) -> Response:
    """One of the page's files; a browser that has it already is not sent it again."""
    suffix = name[name.rfind(".") :]
    if not _NAME.fullmatch(name) or suffix not in _TYPES:
        raise ProblemError(404, "the page has no such file")
    body = _file(f"assets/{name}")
    headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()[:32]}"', "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=_TYPES[suffix], headers=headers)


@cache
def _file(name: str) -> bytes:
    place = resources.files("assay.server").joinpath("page", *name.split("/"))
    try:
        return place.read_bytes()
    except OSError:
        raise ProblemError(404, "the page has no such file") from None
