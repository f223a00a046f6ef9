"""The routes of the table of operations: each checks a request, asks, and answers."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, TypeVar, cast

from fastapi import APIRouter, Header, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from assay.endpoint.problems import ProblemError
from assay.errors import ConflictError, LockedError
from assay.eval.rows.grading import without_loop
from assay.graders.batch import Batch
from assay.registry.policy import Permissions
from assay.scoring.json_safe import Json
from assay.scoring.records import as_json
from assay.server.bodies import arguments_of, body_of, field_options, inputs_of
from assay.server.concurrency import QUICK_BYTES, is_quick
from assay.server.context import Context, Item, address_of, caller, context
from assay.server.document import describe_reply
from assay.server.repeats import Keep, StoredReply, carry_out
from assay.server.routes import DirectRoute, needs
from assay.service import graders, jobs, site
from assay.service.operation import EVERY_PROJECT, KEY_PATTERN, Desk, Host, Operation
from assay.service.table import OPERATIONS
from assay.store.catalog import GraderVersion
from assay.store.changes import ChangeRecord
from assay.store.database import Database
from assay.store.records import CellKey
from assay.store.regrades import RegradeState
from assay.types.codec import Problem

T = TypeVar("T")

Project = Annotated[
    str, Path(pattern=KEY_PATTERN, description="Key of the project.", examples=["default"])
]
_IF_MATCH = Annotated[
    str | None, Header(description='`"KEY@NUMBER"` of the version to replace, or `*`.')
]
_IF_NONE_MATCH = Annotated[str | None, Header(description="An ETag that the client has already.")]
_FORCE = Annotated[bool, Query(description="Whatever the latest version is.")]


@cache
def operations_router() -> APIRouter:
    """A route for each operation; the same for every application of a process."""
    router = APIRouter(route_class=DirectRoute)
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
        given["expected"] = _expected(given["grader_key"], tag, force=force)
    is_short = True
    if (body := given.pop("body", None)) is not None:
        raw = cast("Mapping[str, Json]", await request.json())
        given |= arguments_of(body, raw)
        is_short = len(await request.body()) <= QUICK_BYTES

    given = operation.received(given)
    made: list[ChangeRecord] = []

    async def work(keep: Keep | None) -> StoredReply:
        host = _ServerHost(
            request, project, operation, given, keep=keep, tell=made.append, is_short=is_short
        )
        try:
            return await host.answered()
        except LockedError:
            raise
        except ConflictError as error:
            if "expected" not in given:
                raise
            fault = Problem(("If-Match",), error.message, error.hint)
            raise ProblemError(412, error.message, errors=[fault]) from error

    if operation.repeatable:
        found = await carry_out(request, project or EVERY_PROJECT, work)
    else:
        answer = await work(None)
        tag = answer.headers.get("ETag", "")
        is_known = has is not None and is_tagged(has, tag)
        found = (StoredReply(None, 304, answer.headers) if is_known else answer).reply()
    log_changes(made, found)
    if operation is jobs.create_job:
        context(request).wake.set()
    if operation is site.revoke_key:
        context(request).access.forget()
    if operation is site.limit_project:
        context(request).allowances.forget(project)
    if _is_cached(operation):
        found.headers["Cache-Control"] = "private, no-cache"
    return found


_AUDIT = logging.getLogger("assay.audit")


def log_changes(made: Sequence[ChangeRecord], found: Response) -> None:
    """One line of JSON for each change that was made: who, what, when, from where."""
    if "Idempotent-Replayed" in found.headers:
        return  # another server made it, and what this one did was rolled back
    for change in made:
        line = change.to_dict()
        del line["seq"]
        _AUDIT.info(json.dumps(line))


class _SlowError(Exception):
    """What was begun in the database's thread takes longer than it may there."""


@dataclass(slots=True)
class _ServerHost(Host):
    """Carries out one operation: in the database's thread what needs it, elsewhere what takes long.

    Attributes:
        request: What was sent.
        project: The project that is asked about.
        operation: What is asked.
        given: Its arguments.
        keep: Stores the answer, if it is to be kept.
        tell: Is told of the change that was made, if there was one.
        is_short: Whether little was sent, so that to compare it takes no time.
        here: The desk, while it is all done in the database's thread.
        answer: What it came to.
    """

    request: Request
    project: str
    operation: Operation[..., Any]
    given: Mapping[str, Any]
    keep: Keep | None
    tell: Callable[[ChangeRecord], object]
    is_short: bool
    here: Desk | None = None
    answer: StoredReply | None = None

    @property
    def server(self) -> Context:
        return context(self.request)

    @property
    def permissions(self) -> Permissions:
        return self.server.settings.permissions

    async def answered(self) -> StoredReply:
        """Carry the operation out."""
        function, given = self.operation.function, self.given
        if self.operation is graders.grade and self.is_short and given.get("deadline") is None:
            with suppress(_SlowError):
                await self.server.storage.run(self._at_once)
        if self.answer is not None:
            return self.answer
        if self.operation.waits:
            output: object = await function(self, **given)
            if self.answer is None:
                await self.finish(lambda _: output)
        elif self.operation.apart:
            await self.read(lambda desk: self._finished(desk, lambda at: function(at, **given)))
        else:
            await self.finish(lambda desk: function(desk, **given))
        assert self.answer is not None
        return self.answer

    def _at_once(self, database: Database) -> None:
        """Carry out what waits for nothing: to wake another thread costs more than to compare."""
        self.here = self._desk(database)
        try:
            without_loop(self.operation.function(self, **self.given))
        finally:
            self.here = None

    async def run(self, work: Callable[[Desk], T]) -> T:
        if self.here is not None:
            return work(self.here)
        return await self.server.storage.run(lambda database: work(self._desk(database)))

    async def finish(self, work: Callable[[Desk], T]) -> T:
        return await self.run(lambda desk: self._finished(desk, work))

    def _finished(self, desk: Desk, work: Callable[[Desk], T]) -> T:
        operation = self.operation
        change: ChangeRecord | None = None
        lasts = self.keep is not None or operation.is_change
        with desk.database.writing() if lasts else nullcontext():
            output = work(desk)
            headers: Mapping[str, str] = {}
            if operation.headers is not None:
                headers = operation.headers(desk, output)
            self.answer = StoredReply(as_json(output), operation.status, headers)
            if self.keep is not None:
                self.keep(desk.database, self.answer)
            if operation.is_change:
                change = desk.note(operation, self.given, output)
        if change is not None:
            self.tell(change)
        return output

    async def read(self, work: Callable[[Desk], T]) -> T:
        desk = await self.run(lambda desk: desk)

        async def read() -> T:
            with desk.database.another() as own:
                return work(replace(desk, database=own))

        return await self.server.lanes.run("reading", self.project, read)

    async def apart(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        # What authors sent is looked at in the sandbox, or asked of others.
        doing = self.server.lanes.run("functions", self.project, work)
        return await _while_connected(self.request, doing)

    async def regrade(self, run: str, cells: Sequence[CellKey] | None) -> RegradeState:
        return await self.server.regrades.begin(run, cells, caller(self.request).name)

    async def grade(
        self, version: GraderVersion, items: Sequence[Item], deadline: float | None = None
    ) -> Batch:
        if self.here is not None:
            if not is_quick(version):
                raise _SlowError
            return await self.server.grade(version, items)
        doing = self.server.grade_apart(self.project, version, items, deadline)
        return await _while_connected(self.request, doing)

    def _desk(self, database: Database) -> Desk:
        return desk_of(self.request, database, self.project)


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Stop working for a client that goes away."""
    doing, leaving = asyncio.create_task(work), asyncio.create_task(_gone(request))
    try:
        await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise ProblemError(499, "the client went away")
        return doing.result()
    finally:
        for task in (doing, leaving):
            task.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def desk_of(request: Request, database: Database, project: str) -> Desk:
    """The database at hand for a request."""
    desk = context(request).desk(database, project, caller(request))
    return replace(desk, address=address_of(request))


def _expected(key: str, if_match: str | None, *, force: bool) -> int | None:
    """The number of the version that is to be replaced; None for any."""
    if force or (if_match is not None and if_match.strip() == "*"):
        return None
    if if_match is None:
        fault = Problem(
            ("If-Match",), "required", f'send `If-Match: "{key}@NUMBER"`, or `?force=true`'
        )
        raise ProblemError(428, "say which version to replace", errors=[fault])
    tag = if_match.strip().removeprefix("W/").strip('"')
    name, _, rest = tag.rpartition("@")
    number = rest.partition("-")[0]
    if name == key and number.isascii() and number.isdecimal() and len(number) < 10:
        return int(number)
    fault = Problem(("If-Match",), "no ETag of this grader", f'such as "{key}@1"')
    raise ProblemError(412, "`If-Match` is not an ETag of this grader", errors=[fault])


def is_tagged(given: str, etag: str) -> bool:
    """Whether what ``If-Match`` or ``If-None-Match`` gives has a tag."""
    return any(tag.strip().removeprefix("W/") in (etag, "*") for tag in given.split(","))
