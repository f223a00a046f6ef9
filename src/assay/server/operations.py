"""The routes of the table of operations: each checks a request, asks, and answers.

A request may be sent again: the same key and the same request give the same reply. It is stored
with what it acknowledges wherever that is one transaction, so that a client whose connection broke
can ask again without doing anything twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, TypeVar, cast

from fastapi import APIRouter, Header, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from assay.endpoint.problems import ProblemError
from assay.errors import ConflictError, LockedError
from assay.graders.batch import Batch
from assay.registry.policy import Permissions
from assay.scoring.json_safe import Json
from assay.server.bodies import arguments_of, body_of, field_options, inputs_of
from assay.server.context import Context, Item, Turn, address_of, caller, context
from assay.server.door import Door, needs
from assay.server.lanes import QUICK_BYTES, is_quick
from assay.server.openapi import describe_reply
from assay.server.problems import reply
from assay.service import graders, jobs, site
from assay.service.operation import (
    EVERY_PROJECT,
    KEY_PATTERN,
    Desk,
    Operation,
    as_json,
)
from assay.service.table import OPERATIONS
from assay.store.catalog import GraderVersion
from assay.store.changes import ChangeRecord
from assay.store.database import Database
from assay.store.records import CellKey
from assay.store.regrades import RegradeState
from assay.store.replies import Replies
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
        given["expected"] = _expected(given["grader_key"], tag, force=force)
    is_short = True
    if (body := given.pop("body", None)) is not None:
        raw = cast("Mapping[str, Json]", await request.json())
        given |= arguments_of(body, raw)
        is_short = len(await request.body()) <= QUICK_BYTES

    given = operation.received(given)
    made: list[ChangeRecord] = []

    async def work(keep: Keep | None) -> Answer:
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
        found = (Answer(None, 304, answer.headers) if is_known else answer).reply()
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


class _ServerHost:
    """Carries out one operation: in the database's thread what needs it, elsewhere what takes long.

    Args:
        request: What was sent.
        project: The project that is asked about.
        operation: What is asked.
        given: Its arguments.
        keep: Stores the answer, if it is to be kept.
        tell: Is told of the change that was made, if there was one.
        is_short: Whether little was sent, so that to compare it takes no time.
    """

    def __init__(
        self,
        request: Request,
        project: str,
        operation: Operation[..., Any],
        given: Mapping[str, Any],
        *,
        keep: Keep | None,
        tell: Callable[[ChangeRecord], object],
        is_short: bool,
    ) -> None:
        self._request = request
        self._server = context(request)
        self._project = project
        self._operation = operation
        self._given = given
        self._keep = keep
        self._tell = tell
        self._is_short = is_short
        self._here: Desk | None = None
        self._answer: Answer | None = None

    @property
    def permissions(self) -> Permissions:
        return self._server.settings.permissions

    async def answered(self) -> Answer:
        """Carry the operation out."""
        function, given = self._operation.function, self._given
        if self._operation is graders.grade and self._is_short and given.get("deadline") is None:
            with suppress(_SlowError):
                await self._server.storage.run(self._at_once)
        if self._answer is not None:
            return self._answer
        if self._operation.waits:
            output: object = await function(self, **given)
            if self._answer is None:
                await self.finish(lambda _: output)
        elif self._operation.apart:
            await self.read(lambda desk: self._finished(desk, lambda at: function(at, **given)))
        else:
            await self.finish(lambda desk: function(desk, **given))
        assert self._answer is not None
        return self._answer

    def _at_once(self, database: Database) -> None:
        """Carry out what waits for nothing: to wake another thread costs more than to compare."""
        self._here = self._desk(database)
        try:
            self._operation.function(self, **self._given).send(None)
        except StopIteration:
            return
        finally:
            self._here = None

    async def run(self, work: Callable[[Desk], T]) -> T:
        if self._here is not None:
            return work(self._here)
        return await self._server.storage.run(lambda database: work(self._desk(database)))

    async def finish(self, work: Callable[[Desk], T]) -> T:
        return await self.run(lambda desk: self._finished(desk, work))

    def _finished(self, desk: Desk, work: Callable[[Desk], T]) -> T:
        operation = self._operation
        change: ChangeRecord | None = None
        lasts = self._keep is not None or operation.is_change
        with desk.database.writing() if lasts else nullcontext():
            output = work(desk)
            headers: Mapping[str, str] = {}
            if operation.headers is not None:
                headers = operation.headers(desk, output)
            self._answer = Answer(as_json(output), operation.status, headers)
            if self._keep is not None:
                self._keep(desk.database, self._answer)
            if operation.is_change:
                change = desk.note(operation, self._given, output)
        if change is not None:
            self._tell(change)
        return output

    async def read(self, work: Callable[[Desk], T]) -> T:
        desk = await self.run(lambda desk: desk)

        async def read() -> T:
            with desk.database.another() as own:
                return work(replace(desk, database=own))

        return await self._server.lanes.run("reading", self._project, read)

    async def apart(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        # What authors sent is looked at in the sandbox, or asked of others.
        doing = self._server.lanes.run("functions", self._project, work)
        return await _while_connected(self._request, doing)

    async def regrade(self, run: str, cells: Sequence[CellKey] | None) -> RegradeState:
        return await self._server.regrades.begin(run, cells, caller(self._request).name)

    async def grade(
        self, version: GraderVersion, items: Sequence[Item], deadline: float | None = None
    ) -> Batch:
        if self._here is not None:
            if not is_quick(version):
                raise _SlowError
            return await self._server.grade(version, items)
        doing = self._server.grade_apart(self._project, version, items, deadline)
        return await _while_connected(self._request, doing)

    def _desk(self, database: Database) -> Desk:
        return desk_of(self._request, database, self._project)


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


# Requests that are sent again.

HEADER = "Idempotency-Key"
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is answered with.

    Attributes:
        body: As JSON; nothing for 204 and 304.
        status: HTTP status.
        headers: Beside it.
    """

    body: Json
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def reply(self) -> Response:
        """The answer as a reply."""
        if self.status in (204, 304):
            return Response(status_code=self.status, headers=dict(self.headers))
        return reply(self.body, self.status, self.headers)


Keep = Callable[[Database, Answer], None]
"""Stores an answer; called inside the transaction of what it acknowledges, where there is one."""


class _AnsweredError(Exception):
    """Another server of the database has carried the same request out meanwhile."""


async def carry_out(
    request: Request,
    project: str,
    work: Callable[[Keep | None], Awaitable[Answer]],
    *,
    digest: str | None = None,
) -> Response:
    """Carry a request out, or give the reply of the time it was carried out before.

    Raises:
        ProblemError: 409 if the key came with another request; 422 for a malformed key.
    """
    server = context(request)
    given = request.headers.get(HEADER)
    if given is None:
        return (await work(None)).reply()
    if not (0 < len(given) <= _LONGEST and given.isascii() and given.isprintable()):
        raise ProblemError(
            422,
            f"{HEADER} is not 1 to {_LONGEST} printable characters",
            errors=[Problem((HEADER,), "malformed", "send a UUID")],
        )
    name = hashlib.sha256(f"{caller(request).id}\n{given}".encode()).hexdigest()
    asked = await _fingerprint(request, digest)

    def keep(database: Database, answer: Answer) -> None:
        kept = json.dumps({"body": answer.body, "headers": dict(answer.headers)})
        if not Replies(database).put(project, name, asked, answer.status, kept):
            raise _AnsweredError  # and what this server did is rolled back

    def get(database: Database) -> tuple[str, int, bytes] | None:
        return Replies(database).get(project, name)

    async with _alone(server, f"{project}\n{name}"):
        before = await server.storage.run(get)
        if before is None:
            try:
                return (await work(keep)).reply()
            except (_AnsweredError, ConflictError, ProblemError):
                # Refused perhaps only because another server was quicker.
                if (before := await server.storage.run(get)) is None:
                    raise
        found = _again(before, asked).reply()
    found.headers["Idempotent-Replayed"] = "true"
    return found


def _again(before: tuple[str, int, bytes], asked: str) -> Answer:
    digest, status, kept = before
    if digest != asked:
        raise ProblemError(
            409,
            f"this {HEADER} came with another request before",
            errors=[Problem((HEADER,), "used for another request", "send a new one")],
        )
    stored = cast("dict[str, Json]", json.loads(kept))
    return Answer(stored["body"], status, cast("dict[str, str]", stored["headers"]))


async def _fingerprint(request: Request, digest: str | None) -> str:
    whole = hashlib.sha256(f"{request.method} {request.url.path}?{request.url.query}\n".encode())
    if (tag := request.headers.get("If-Match")) is not None:
        whole.update(f"{tag}\n".encode())
    whole.update(digest.encode() if digest is not None else await request.body())
    return whole.hexdigest()


@asynccontextmanager
async def _alone(server: Context, name: str) -> AsyncGenerator[None]:
    """One at a time: the second of two equal requests waits, and gets the first one's reply."""
    turn = server.turns.setdefault(name, Turn())
    turn.users += 1
    try:
        async with turn.lock:
            yield
    finally:
        turn.users -= 1
        if not turn.users:
            server.turns.pop(name, None)
