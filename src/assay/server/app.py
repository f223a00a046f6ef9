"""The application: `create_app` puts it together, `run` makes it a process."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from assay.endpoint import listening
from assay.endpoint.serving import url_of
from assay.errors import AssayError
from assay.server import dataset_files, events, login, otlp, page, status, wire_forms
from assay.server.admission import Admission
from assay.server.cluster import JobCluster
from assay.server.concurrency import Lanes
from assay.server.context import Context, ServerSettings
from assay.server.document import describe
from assay.server.jobs import JobWorkers
from assay.server.limits import Allowances
from assay.server.metrics import Metrics
from assay.server.middleware import Middleware
from assay.server.operations import operations_router
from assay.server.problems import problem_of, problem_reply
from assay.server.regrades import Regrading
from assay.server.replies import reply
from assay.server.storage import Storage
from assay.version import __version__

OPENAPI = "/api/v1/openapi.json"

_ROUTERS = (
    status.router,
    login.router,
    page.router,
    dataset_files.router,
    events.router,
    otlp.router,
    wire_forms.openai_router,
)


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
        await server.storage.check()
        server.lanes.start()
        workers = JobWorkers(server)
        workers.start()
        try:
            yield
        finally:
            server.stopping.set()
            await server.regrades.stop()
            await workers.stop()
            server.lanes.close()
            if server.cluster is not None:
                await server.cluster.close()
            await server.storage.close()

    app = FastAPI(
        title="assay",
        # As they are: those of a router that is included are looked for twice.
        routes=[route for router in (operations_router(), *_ROUTERS) for route in router.routes],
        version=__version__,
        openapi_url=None,  # ours is made below
        docs_url=None,  # pages that load scripts of others
        redoc_url=None,
        redirect_slashes=False,
        lifespan=live,
    )
    storage = Storage(settings.location, settings.store_seconds)
    access = Admission(storage, most_failures=settings.login_failures)
    allowances = Allowances(storage)
    lanes = Lanes(settings.max_waiting, allowances.at_once)
    app.state.context = Context(
        settings,
        storage,
        access,
        allowances,
        metrics,
        lanes,
        Regrading(settings.location, storage),
        None if settings.engine == "local" else JobCluster(settings.engine, settings.permissions),
    )
    app.include_router(wire_forms.served_router(), prefix=wire_forms.PREFIX, tags=["served"])

    async def show_document(_: Request) -> Response:
        return reply(describe(app))

    app.add_route(OPENAPI, show_document, methods=["GET"], include_in_schema=False)
    for kind in (HTTPException, AssayError, Exception):
        app.add_exception_handler(kind, _refuse)
    app.openapi = lambda: describe(app)
    app.add_middleware(Middleware, settings=settings, metrics=metrics)
    return app


def context_of(app: FastAPI) -> Context:
    """What the routes of an application share."""
    context: Context = app.state.context
    return context


async def _refuse(request: Request, error: Exception) -> Response:
    """What is raised outside of any route: an unknown path, a method that is not allowed."""
    problem, path = problem_of(error, request), request.url.path
    if problem.status == 404 and page.is_wanted(request):
        return page.show(404)
    return problem_reply(problem, path, request.headers)


# The application as a process.


@dataclass(frozen=True, slots=True)
class Listening:
    """A server that answers.

    Attributes:
        url: Where.
        link: The secret of the one-time link; empty where there is none.
    """

    url: str
    link: str


def run(
    settings: ServerSettings,
    opened: socket.socket,
    host: str,
    announce: Callable[[Listening], None],
) -> None:
    """Serve until the process is told to end; batches in flight are stored before it does.

    Raises:
        AssayError: If the cluster that is to grade jobs cannot be joined.
    """
    app = create_app(settings)
    server = context_of(app)

    async def serve() -> None:
        loop = asyncio.get_running_loop()

        def start() -> None:
            link = server.access.new_link() if settings.is_local else ""
            announce(Listening(url_of(opened, host), link))

        def stop() -> None:  # streams let go of their connections
            loop.call_soon_threadsafe(server.stopping.set)

        if server.cluster is not None:
            await server.cluster.join()
        await listening.server_for(app, settings.limits, start=start, stop=stop).serve([opened])

    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    listening.run(serve())
