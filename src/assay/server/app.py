"""The application: `create_app` puts the rooms behind one gate."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from assay.errors import AssayError
from assay.server import events, health, served, uploads
from assay.server.access import Access
from assay.server.context import Context
from assay.server.gate import Gate
from assay.server.metrics import Metrics
from assay.server.openapi import describe
from assay.server.operations import operations_router
from assay.server.problems import problem_of, problem_reply, reply
from assay.server.settings import ServerSettings
from assay.server.storage import Storage
from assay.server.work import Workers
from assay.version import __version__

__all__ = ["OPENAPI", "context_of", "create_app"]

OPENAPI = "/api/v1/openapi.json"


def create_app(settings: ServerSettings) -> FastAPI:
    """Make the application of one server.

    Its database is opened when the application starts, and jobs are worked on from then until it
    stops. Behind it there is no rule of grading: those are the registry's and the store's.
    """
    metrics = Metrics()

    @asynccontextmanager
    async def live(app: FastAPI) -> AsyncGenerator[None]:
        server = context_of(app)
        server.storage.start()
        workers = Workers(server)
        workers.start()
        try:
            yield
        finally:
            server.stopping.set()
            await workers.stop()
            await server.storage.close()

    app = FastAPI(
        title="assay",
        version=__version__,
        openapi_url=None,  # ours is made below
        docs_url=None,  # pages that load scripts of others
        redoc_url=None,
        redirect_slashes=False,
        lifespan=live,
    )
    storage = Storage(settings.location)
    access = Access(storage, most_failures=settings.login_failures)
    app.state.context = Context(settings, storage, access, metrics)
    for router in (
        operations_router(),
        health.router,
        uploads.router,
        events.router,
        served.openai_router,
    ):
        app.include_router(router)
    app.include_router(served.served_router(), prefix=served.PREFIX, tags=["served"])

    async def show_document(_: Request) -> Response:
        return reply(describe(app))

    app.add_route(OPENAPI, show_document, methods=["GET"], include_in_schema=False)
    for kind in (HTTPException, AssayError, Exception):
        app.add_exception_handler(kind, _refuse)
    app.openapi = lambda: describe(app)
    app.add_middleware(Gate, settings=settings, metrics=metrics)
    return app


def context_of(app: FastAPI) -> Context:
    """What the routes of an application share."""
    context: Context = app.state.context
    return context


async def _refuse(request: Request, error: Exception) -> Response:
    """What is raised outside of any door: an unknown path, a method that is not allowed."""
    return problem_reply(problem_of(error, request), request.url.path)
