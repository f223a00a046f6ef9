"""Whether the server is alive and ready, and what it counts."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Literal

from fastapi import APIRouter, Request, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from pydantic import BaseModel, ConfigDict

from assay.errors import DamagedError, SandboxError, StoreError
from assay.server.context import caller, context
from assay.server.door import Door, admit, needs
from assay.server.openapi import problem_responses
from assay.server.problems import reply
from assay.service.operation import EVERY_PROJECT
from assay.sockets import is_loopback
from assay.store.jobs import Jobs
from assay.store.replies import Replies
from assay.version import __version__

_DEADLINE_SECONDS = 3.0

router = APIRouter(route_class=Door, tags=["server"])


class StateShown(BaseModel):
    """Whether the server can work."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_serialization_defaults_required=True,
        json_schema_extra={
            "examples": [
                {
                    "status": "ready",
                    "database": "ok",
                    "sandbox": "bwrap",
                    "cluster": "",
                    "version": "0.1.0",
                }
            ]
        },
    )

    status: Literal["alive", "ready", "not ready"]
    database: str = ""
    sandbox: str = ""
    cluster: Literal["", "joined", "away"] = ""
    version: str = ""


@router.get("/healthz", response_model=StateShown, openapi_extra=needs("anyone"))
async def show_life() -> Response:
    """Whether the server runs. It is alive also while its database is away."""
    return reply(
        {"status": "alive", "database": "", "sandbox": "", "cluster": "", "version": __version__}
    )


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
    ready = database == "ok" and bool(sandbox)
    body = {
        "status": "ready" if ready else "not ready",
        "database": database,
        "sandbox": sandbox,
        "cluster": "" if cluster is None else "joined" if cluster.is_joined else "away",
        "version": __version__,
    }
    return reply(body, 200 if ready else 503)


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
