"""The web page: its built files, and the one document that starts it.

Nothing on it is made here: it is a program for browsers that asks the API. What runs in the page
comes from these files alone; what is graded there is shown as text.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import secrets
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import ClassVar, Final

from fastapi import APIRouter, Request, Response

from assay.endpoint.problems import ProblemError
from assay.server.operations import is_tagged
from assay.server.routes import GuardedRoute, needs

SECTIONS: Final = ("p", "runs", "compare", "settings")
"""Beginnings of the page's own addresses; below them it finds its way itself."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_NONCE = 'name="csp-nonce" content=""'
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,80}")
_OTHERS = ("/api/", "/v1/", "/serve/", "/assets/")
"""Where programs ask: they are told in JSON, whatever they accept."""
_NOT_BUILT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>assay</title>
<h1>This installation has no web page</h1>
<p>Its built files are missing. In a checkout of assay, run <code>make web</code> and start the
server again; otherwise install assay again.
<p>The API works: <a href="/api/v1/openapi.json">its document</a>.
"""


class _PageRoute(GuardedRoute):
    """A route whose address has parameters that only the page reads."""

    checks_query: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class _File:
    """A file as it is sent.

    Attributes:
        body: Its bytes.
        zipped: The same, compressed.
        tag: Tells this version of it from others.
    """

    body: bytes
    zipped: bytes
    tag: str


router = APIRouter(route_class=_PageRoute)


def show(status: int = 200) -> Response:
    """The document that starts the page, whatever of it is asked for."""
    try:
        text = _file("index.html").body.decode()
    except ProblemError:
        return Response(_NOT_BUILT, 503, media_type="text/html")
    nonce = secrets.token_urlsafe(16)
    return Response(
        text.replace(_NONCE, f'name="csp-nonce" content="{nonce}"'),
        status,
        media_type="text/html",
        headers={"Content-Security-Policy": _POLICY.format(nonce=nonce)},
    )


def is_wanted(request: Request) -> bool:
    """Whether a person asks with a browser, who is to see the page and not JSON."""
    return (
        request.method in ("GET", "HEAD")
        and "text/html" in request.headers.get("accept", "")
        and not request.url.path.startswith(_OTHERS)
    )


async def _show_page() -> Response:
    return show()


for _path in ("/", *(f"/{one}{rest}" for one in SECTIONS for rest in ("", "/{rest:path}"))):
    router.add_api_route(
        _path,
        _show_page,
        methods=["GET", "HEAD"],
        include_in_schema=False,
        openapi_extra=needs("anyone"),
    )


@router.api_route(
    "/assets/{name}",
    methods=["GET", "HEAD"],
    include_in_schema=False,
    openapi_extra=needs("anyone"),
)
async def show_asset(request: Request, name: str) -> Response:
    """One of the page's files; a browser that has it already is not sent it again."""
    suffix = name[name.rfind(".") :]
    if not _NAME.fullmatch(name) or suffix not in _TYPES:
        raise ProblemError(404, "the page has no such file")
    found = _file(f"assets/{name}")
    is_zipped = _GZIP.search(request.headers.get("accept-encoding", "")) is not None
    tag = f'"{found.tag}-gzip"' if is_zipped else f'"{found.tag}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if (given := request.headers.get("if-none-match")) is not None and is_tagged(given, tag):
        return Response(status_code=304, headers=headers)
    if is_zipped:
        headers["Content-Encoding"] = "gzip"
    body = found.zipped if is_zipped else found.body
    return Response(body, media_type=_TYPES[suffix], headers=headers)


@cache
def _file(name: str) -> _File:
    place = resources.files("assay.server").joinpath("page", *name.split("/"))
    try:
        body = place.read_bytes()
    except OSError:
        raise ProblemError(404, "the page has no such file") from None
    return _File(body, gzip.compress(body, mtime=0), hashlib.sha256(body).hexdigest()[:32])
