"""What a server is and how it does: whether it lives and is ready, its limits, what it counts."""

from __future__ import annotations

import asyncio
import os
import platform
from contextlib import suppress
from typing import Literal

from fastapi import APIRouter, Request, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from assay.errors import DamagedError, SandboxError, StoreError
from assay.frozen import frozen
from assay.scoring.records import as_json
from assay.server.admission import admit
from assay.server.context import ServerSettings, caller, context
from assay.server.document import problem_responses
from assay.server.replies import reply
from assay.server.routes import GuardedRoute, needs
from assay.service.operation import EVERY_PROJECT
from assay.sockets import is_loopback
from assay.store.jobs import Jobs
from assay.store.replies import Replies
from assay.version import __version__

_DEADLINE_SECONDS = 3.0

router = APIRouter(route_class=GuardedRoute, tags=["server"])


@frozen(kw_only=True)
class StateShown:
    """Whether the server can work."""

    status: Literal["alive", "ready", "not ready"]
    database: str = ""
    sandbox: str = ""
    cluster: Literal["", "joined", "away"] = ""
    version: str = __version__


@frozen
class CheckShown:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    fix: str


@frozen
class LimitShown:
    """One limit."""

    name: str
    value: str
    about: str = ""


@frozen(kw_only=True)
class ServerShown:
    """What a server is."""

    version: str
    python: str
    platform: str
    is_local: bool
    database: str
    location: str
    commands: str
    functions: str
    checks: list[CheckShown]
    allowed: list[str]
    limits: list[LimitShown]


@router.get("/healthz", response_model=StateShown, openapi_extra=needs("anyone"))
async def show_life() -> Response:
    """Whether the server runs. It is alive also while its database is away."""
    return reply(as_json(StateShown(status="alive")))


@router.get(
    "/readyz",
    response_model=StateShown,
    openapi_extra=needs("anyone"),
    responses={503: {"description": "It cannot grade now.", "model": StateShown}},
)
async def show_readiness(request: Request) -> Response:
    """Whether the database can be written and untrusted functions can be isolated.

    Whether the cluster that grades jobs is joined is told, too. A server whose cluster is away is
    ready: it grades all the same, and jobs wait.
    """
    database, sandbox = await asyncio.gather(_database(request), _sandbox())
    cluster = context(request).cluster
    is_ready = database == "ok" and bool(sandbox)
    state = StateShown(
        status="ready" if is_ready else "not ready",
        database=database,
        sandbox=sandbox,
        cluster="" if cluster is None else "joined" if cluster.is_joined else "away",
    )
    return reply(as_json(state), 200 if is_ready else 503)


async def _database(request: Request) -> str:
    try:
        await context(request).storage.run(
            lambda database: Replies(database).probe(), seconds=_DEADLINE_SECONDS
        )
    except DamagedError:
        return "damaged"
    except StoreError:
        return "away"
    return "ok"


async def _sandbox() -> str:
    from assay.sandbox.functions.tiers import function_tier

    try:
        return await asyncio.to_thread(function_tier)
    except (SandboxError, OSError):  # of a probe that cannot even begin: files, processes
        return ""


@router.get("/api/v1/server", response_model=ServerShown, openapi_extra=needs("member"))
async def show_server(request: Request) -> Response:
    """Version, database, sandboxes and limits; where the store is, for admins of all projects."""
    from assay.sandbox import probe
    from assay.sandbox.functions.tiers import function_tiers

    settings, who = context(request).settings, caller(request)
    is_postgres = settings.location.startswith(("postgres://", "postgresql://"))
    sees_all = who.role == "admin" and who.project == EVERY_PROJECT
    # An address of PostgreSQL holds a password.
    has_place = sees_all and not is_postgres
    commands, functions = await asyncio.gather(
        asyncio.to_thread(probe), asyncio.to_thread(function_tiers)
    )
    checks = [("commands: ", one) for one in commands.checks]
    checks += [("functions: ", one) for one in functions.checks]
    allowed = settings.permissions
    shown = ServerShown(
        version=__version__,
        python=platform.python_version(),
        platform=platform.platform(),
        is_local=settings.is_local,
        database="PostgreSQL" if is_postgres else "SQLite",
        location=os.path.abspath(settings.location) if has_place else "",  # noqa: PTH100 - text
        commands=commands.tier or "",
        functions=functions.tier or "",
        checks=[
            CheckShown(sort + one.name, one.ok, one.detail, one.fix if sees_all else "")
            for sort, one in checks
        ],
        allowed=[
            f"graders that are classes of installed packages: {_yes(allowed.custom_code)}",
            f"endpoints on this machine or its network: {_yes(allowed.internal)}",
            f"secrets that endpoints may be sent: {len(allowed.secrets or ())}",
        ],
        limits=_limits(settings),
    )
    return reply(as_json(shown))


def _limits(settings: ServerSettings) -> list[LimitShown]:
    return [
        LimitShown("rows of a dataset", f"{settings.max_rows:,}"),
        LimitShown("size of a dataset", _bytes(settings.max_dataset_bytes)),
        LimitShown("a row", _bytes(settings.max_line_bytes), "its line of JSON"),
        LimitShown("another request", _bytes(settings.max_body_bytes)),
        LimitShown("jobs at once", f"{settings.job_slots:,}", "a project has half of the rest"),
        LimitShown("gradings that wait", f"{settings.max_waiting:,}", "of a project and sort"),
        LimitShown("connections", f"{settings.limits.connections:,}"),
        LimitShown("traces of a project", f"{settings.traces.traces:,}"),
    ]


def _yes(value: bool) -> str:  # noqa: FBT001 - a word for it
    return "yes" if value else "no"


def _bytes(number: int) -> str:
    for size, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= size:
            return f"{number / size:,.4g} {unit}"
    return f"{number:,} bytes"


@router.get(
    "/metrics",
    response_class=Response,
    openapi_extra=needs("anyone"),
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Counts."},
        **problem_responses(401, 403, 429),
    },
)
async def show_metrics(request: Request) -> Response:
    """Counts and times for Prometheus; needs a key but for who asks from this machine itself.

    A project's key sees what is counted of that project, and of all together.
    """
    server = context(request)
    project = EVERY_PROJECT
    if not server.settings.is_local or _is_forwarded(request):
        await admit(request, "member")
        project = caller(request).project
    with suppress(StoreError):  # what else is counted is told also while the database is away
        jobs = await server.storage.run(
            lambda database: Jobs(database).waiting(), seconds=_DEADLINE_SECONDS
        )
        server.metrics.waiting(jobs)
    server.metrics.standing(server.lanes.standing())
    if server.cluster is not None:
        server.metrics.cluster(server.cluster)
    return Response(server.metrics.text(project), media_type=CONTENT_TYPE_LATEST)


_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


def _is_forwarded(request: Request) -> bool:
    """Whether a proxy passes this on that nobody told us of: then this machine asks for others."""
    return not is_loopback(request.url.hostname or "") or any(
        name in request.headers for name in _FORWARDED
    )
