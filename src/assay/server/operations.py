"""The routes of the table of operations: each checks a request, asks, and answers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext
from typing import Annotated, Any, TypeVar, cast

from fastapi import APIRouter, Header, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from assay.errors import ConflictError, LockedError
from assay.registry.policy import Permissions
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.server.bodies import arguments_of, body_of, field_options, inputs_of
from assay.server.context import Context, caller, context
from assay.server.door import Door, needs
from assay.server.grading import Item, grade_apart
from assay.server.idempotency import Answer, Keep, carry_out
from assay.server.openapi import describe_reply
from assay.server.problems import Fault, ProblemError
from assay.service import data, graders, site
from assay.service.operation import (
    EVERY_PROJECT,
    KEY_PATTERN,
    OPERATIONS,
    Desk,
    Identity,
    Operation,
    as_json,
)
from assay.store.catalog import GraderVersion
from assay.store.database import Database

__all__ = ["Project", "operations_router"]

T = TypeVar("T")

Project = Annotated[
    str, Path(pattern=KEY_PATTERN, description="Key of the project.", examples=["default"])
]
_IF_MATCH = Annotated[
    str | None, Header(description='`"KEY@NUMBER"` of the version to replace, or `*`.')
]
_IF_NONE_MATCH = Annotated[str | None, Header(description="An ETag that the client has already.")]
_FORCE = Annotated[bool, Query(description="Whatever the latest version is.")]
_TABLES = (graders, data, site)  # importing them fills the table


def operations_router() -> APIRouter:
    """A route for each operation."""
    router = APIRouter(route_class=Door)
    # Routes are searched in order, and that of grading is asked most.
    for operation in sorted(OPERATIONS, key=lambda one: one is not graders.grade):
        router.add_api_route(
            operation.path,
            _endpoint(operation),
            methods=[operation.method],
            name=operation.name,
            description=inspect.getdoc(operation.function),
            tags=[operation.tag],
            status_code=operation.status,
            response_class=Response,
            responses=describe_reply(operation),
            openapi_extra=needs(
                operation.role, project=operation.where, repeatable=operation.repeatable
            ),
        )
    return router


def _endpoint(operation: Operation[..., Any]) -> Callable[..., Coroutine[Any, Any, Response]]:
    """What FastAPI calls: its signature says what a request must bring."""

    async def endpoint(**given: Any) -> Response:  # noqa: ANN401 - checked by the signature
        return await _perform(operation, given)

    takes: dict[str, tuple[Any, object]] = {"request": (Request, inspect.Parameter.empty)}
    if "{project}" in operation.path:
        takes["project"] = (Project, inspect.Parameter.empty)
    for one in inputs_of(operation):
        if one.place == "if-match":
            takes |= {"if_match": (_IF_MATCH, None), "force": (_FORCE, False)}
        elif one.place in ("path", "query"):
            where = Path if one.place == "path" else Query
            options = field_options(one.spec, alias=True)
            takes[one.name] = (Annotated[one.annotation, where(**options)], one.default)
    if (body := body_of(operation)) is not None:
        takes["body"] = (body, inspect.Parameter.empty)
    if _is_cached(operation):
        takes["if_none_match"] = (_IF_NONE_MATCH, None)
    vars(endpoint)["__signature__"] = inspect.Signature(
        [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
            )
            for name, (annotation, default) in takes.items()
        ]
    )
    return endpoint


def _is_cached(operation: Operation[..., Any]) -> bool:
    """Whether a client that has the reply already need not be sent it again."""
    return operation.method == "GET" and operation.headers is not None


async def _perform(operation: Operation[..., Any], given: dict[str, Any]) -> Response:
    request: Request = given.pop("request")
    project = str(given.pop("project", ""))
    has = given.pop("if_none_match", None)
    if "if_match" in given:
        tag, force = given.pop("if_match"), given.pop("force")
        given["expected"] = _expected(given["key"], tag, force=force)
    if (body := given.pop("body", None)) is not None:
        raw = cast("Mapping[str, Json]", await request.json())
        given |= arguments_of(body, raw)

    async def work(keep: Keep | None) -> Answer:
        host = ServerHost(context(request), project, caller(request), operation, keep)
        try:
            return await host.answered(given)
        except LockedError:
            raise
        except ConflictError as error:
            if "expected" not in given:
                raise
            fault = Fault("If-Match", error.message, error.hint)
            raise ProblemError(412, error.message, faults=[fault]) from error

    if operation.repeatable:
        found = await carry_out(request, project or EVERY_PROJECT, work)
    else:
        answer = await work(None)
        tag = answer.headers.get("ETag", "")
        is_known = has is not None and _matches(has, tag)
        found = (Answer(None, 304, answer.headers) if is_known else answer).reply()
    if operation is data.create_job:
        context(request).wake.set()
    if operation is site.revoke_key:
        context(request).access.forget()
    if _is_cached(operation):
        found.headers["Cache-Control"] = "private, no-cache"
    return found


class ServerHost:
    """Carries out one operation: the database in its thread, graders in others.

    Args:
        server: The server.
        project: The project that is asked about.
        who: Who asks.
        operation: What is asked.
        keep: Stores the answer, if it is to be kept.
    """

    def __init__(
        self,
        server: Context,
        project: str,
        who: Identity,
        operation: Operation[..., Any],
        keep: Keep | None,
    ) -> None:
        self._server = server
        self._project = project
        self._who = who
        self._operation = operation
        self._keep = keep
        self._answer: Answer | None = None

    @property
    def permissions(self) -> Permissions:
        return self._server.settings.permissions

    async def answered(self, given: Mapping[str, Any]) -> Answer:
        """Carry the operation out."""
        function = self._operation.function
        if self._operation.waits:
            output = await function(self, **given)
            if self._answer is None:
                await self.finish(lambda _: output)
        else:
            await self.finish(lambda desk: function(desk, **given))
        assert self._answer is not None
        return self._answer

    async def run(self, work: Callable[[Desk], T]) -> T:
        return await self._server.storage.run(lambda database: work(self._desk(database)))

    async def finish(self, work: Callable[[Desk], T]) -> T:
        def last(database: Database) -> T:
            desk, operation = self._desk(database), self._operation
            with nullcontext() if self._keep is None else database.writing():
                output = work(desk)
                headers: Mapping[str, str] = {}
                if operation.headers is not None:
                    headers = operation.headers(desk, output)
                self._answer = Answer(as_json(output), operation.status, headers)
                if self._keep is not None:
                    self._keep(database, self._answer)
            return output

        return await self._server.storage.run(last)

    async def apart(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        # A loop and a thread of its own: some graders compute for seconds, and nobody else's
        # request may wait for that.
        return await asyncio.to_thread(lambda: asyncio.run(work()))

    async def grade(self, version: GraderVersion, items: Sequence[Item]) -> list[Graded]:
        return await grade_apart(self._server, version, items)

    def _desk(self, database: Database) -> Desk:
        return Desk(database, self._project, self._who, self.permissions)


def _expected(key: str, if_match: str | None, *, force: bool) -> int | None:
    """The number of the version that is to be replaced; None for any."""
    if force or (if_match is not None and if_match.strip() == "*"):
        return None
    if if_match is None:
        fault = Fault("If-Match", "required", f'send `If-Match: "{key}@NUMBER"`, or `?force=true`')
        raise ProblemError(428, "say which version to replace", faults=[fault])
    tag = if_match.strip().removeprefix("W/").strip('"')
    name, _, rest = tag.rpartition("@")
    number = rest.partition("-")[0]
    if name == key and number.isascii() and number.isdecimal() and len(number) < 10:
        return int(number)
    fault = Fault("If-Match", "no ETag of this grader", f'such as "{key}@1"')
    raise ProblemError(412, "`If-Match` is not an ETag of this grader", faults=[fault])


def _matches(given: str, etag: str) -> bool:
    return any(tag.strip().removeprefix("W/") in (etag, "*") for tag in given.split(","))
