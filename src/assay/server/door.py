"""The door of every route: who may enter, and what they must bring.

A route says in ``openapi_extra`` which role it needs; one that says nothing cannot be made. All
that goes wrong behind the door leaves it as a problem.
"""

from __future__ import annotations

import asyncio
import email.message
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from types import UnionType
from typing import Annotated, Any, ClassVar, Final, Union, cast, get_args, get_origin

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from assay.endpoint.problems import ProblemError
from assay.errors import nearest
from assay.scoring.json_safe import Json
from assay.server.access import cookie_name, unauthorized
from assay.server.bodies import check_size, parse
from assay.server.context import address_of, caller, context
from assay.server.problems import problem_of, problem_reply
from assay.service.operation import KEY_PATTERN, Entrance, Identity
from assay.types.codec import Problem

ROLE: Final = "x-assay-role"
"""Under which a route says what it needs; it shows in the OpenAPI document."""

REPEATABLE: Final = "x-assay-repeatable"
"""Under which a route says that it may be sent again; it becomes a parameter of the document."""

_PROJECT: Final = "x-assay-project"


def needs(
    role: Entrance, *, project: str = "", repeatable: bool = False, **extra: Json
) -> dict[str, Any]:
    """The ``openapi_extra`` of a route.

    Args:
        role: Who may enter.
        project: Where the role is needed, for a path that names no project; ``own`` for wherever
            the caller has it. By default in all of them.
        repeatable: Whether a request with an idempotency key is carried out once.
        **extra: Further members of the operation.
    """
    return {ROLE: role, _PROJECT: project, REPEATABLE: repeatable, **extra}


QUICK_BYTES = 64 << 10
"""Bodies that are read at once; others are read in a thread, so that nobody waits for them."""


class _StrictRequest(Request):
    """A request whose JSON is read once, by our rules: rows are passed on as they were sent."""

    async def read(self, annotation: object) -> None:
        """Read the JSON of a body, if there is any, before FastAPI asks for it."""
        if not (body := await self.body()):
            return
        settings = context(self).settings
        read = partial(parse, body, max_depth=settings.max_depth, max_values=settings.max_values)
        self._json = read() if len(body) <= QUICK_BYTES else await asyncio.to_thread(read)
        if (model := _model_in(annotation)) is not None:
            check_size(self._json, model)


class Door(APIRoute):
    """A route behind a door.

    Attributes:
        checks_query: Whether a parameter of the address that it does not know is refused.
    """

    checks_query: ClassVar[bool] = True

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What is called with each request."""
        handle = super().get_route_handler()
        said = self.openapi_extra or {}
        role, where = cast("Entrance", said[ROLE]), str(said[_PROJECT])
        known = frozenset(
            field.alias
            for dependant in (self.dependant, *self.dependant.dependencies)
            for field in dependant.query_params
        )
        body = None if self.body_field is None else self.body_field.field_info.annotation

        async def enter(request: Request) -> Response:
            with context(request).storage.patience():
                return await answer(_StrictRequest(request.scope, request.receive))

        async def answer(request: _StrictRequest) -> Response:
            try:
                await admit(request, role, where)
                if self.checks_query:
                    _check_query(request, known)
                if body is not None:
                    _check_media_type(request)
                    await request.read(body)
                return await handle(request)
            except RequestValidationError as error:
                problem = _of_validation(error, body)
            except Exception as error:  # the boundary: recorded, and told as a problem
                problem = problem_of(error, request)
            return self.refuse(problem, request)

        return enter

    def refuse(self, problem: ProblemError, request: Request) -> Response:
        """The reply to a request that cannot be served."""
        return problem_reply(problem, request.url.path)


async def admit(request: Request, role: Entrance, where: str = "") -> None:
    """Find out who asks, and whether they may."""
    if role == "anyone":
        return
    identity = await _identify(request)
    request.state.identity = identity
    # What the path says is a stranger's word: only the route itself may ask for "own".
    is_own = role == "member" or where == "own"
    project = identity.project if is_own else str(request.path_params.get("project", where))
    if role != "member" and not identity.may(role, project or None):
        place = f"in project {project!r}" if project else "for all projects"
        theirs = "all projects" if identity.project == "*" else f"project {identity.project!r}"
        raise ProblemError(
            403,
            f"this needs the role {role} {place}",
            errors=[
                Problem(
                    ("",),
                    f"this needs the role {role} {place}, and the key {identity.name!r} is "
                    f"{identity.role} of {theirs}",
                    f"use a key that is {role}; `assay server keys create --role {role}` makes one",
                )
            ],
        )
    if role != "admin":  # who sets limits is never kept out by one
        await spend(request, project)


async def spend(request: Request, project: str) -> None:
    """Count a request of a project that there is; the gate tells what is left."""
    allowances = context(request).allowances
    found = await allowances.find(project) if re.search(KEY_PATTERN, project) else None
    if found is not None:
        request.state.project = found.key
        request.state.allowance = allowances.spend(found)


async def is_still_known(request: Request) -> bool:
    """Whether who was let in would be let in now: keys are revoked, sessions end."""
    try:
        return await _identify(request) == caller(request)
    except ProblemError:
        return False


async def _identify(request: Request) -> Identity:
    access, address = context(request).access, address_of(request)
    given = request.headers.get("authorization")
    if given is not None:
        scheme, _, token = given.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise unauthorized("the Authorization header is not `Bearer` and a key")
        return await access.of_key(token.strip(), address)
    session = request.cookies.get(cookie_name(request))
    if not session:
        raise unauthorized("send an API key, or open the link that the server printed")
    identity = await access.of_session(session)
    if identity is None:
        ended = (
            "this session has ended, as all do with the server: log in again, or send an API key"
        )
        raise unauthorized(ended, "Cookie")
    if request.method not in ("GET", "HEAD") and request.headers.get("origin") is None:
        # The gate has refused other origins; without one it may be anybody's form.
        raise ProblemError(403, "a session may write only from a page of this server")
    return identity


def _check_query(request: Request, known: frozenset[str]) -> None:
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        faults = [
            Problem((name,), "unknown query parameter", nearest(name, sorted(known)))
            for name in unknown
        ]
        raise ProblemError(422, f"unknown query parameter {unknown[0]!r:.100}", errors=faults)


def _check_media_type(request: Request) -> None:
    given = request.headers.get("content-type")
    if given == "application/json":
        return
    message = email.message.Message()
    message["content-type"] = given or ""
    if given is None or message.get_content_type() != "application/json":
        raise ProblemError(
            415,
            "the body must be application/json",
            errors=[Problem(("Content-Type",), f"{given!r:.100}", "send application/json")],
        )


def _of_validation(error: RequestValidationError, body: object) -> ProblemError:
    found = [_fault(one, body) for one in cast("list[dict[str, Any]]", error.errors())[:50]]
    faults = list({fault.field: fault for fault in reversed(found)}.values())[::-1]
    first = faults[0]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    place = f"{first.field}: " if first.field else ""
    hint = f" ({first.hint})" if first.hint else ""
    status = 400 if first.message == _NO_BODY else 422
    return ProblemError(status, f"{place}{first.message}{hint}{more}", errors=faults)


_NO_BODY = "a body is needed"
_LONGEST_NAME = 200


def _fault(error: Mapping[str, Any], body: object) -> Problem:
    """What pydantic found, in its words; of a field that there is not, the nearest one."""
    source, *place = cast("tuple[str | int, ...]", error["loc"])
    if source != "body":
        return Problem(tuple(place), str(error["msg"]))
    if error["type"] == "missing" and not place:
        return Problem(("",), _NO_BODY, "send a JSON object")
    unknown = place[-1:] if error["type"] == "extra_forbidden" else []
    known, model = _walked(body, tuple(place[: len(place) - len(unknown)]))
    names = list(model.model_fields) if model else []
    if not unknown:
        return Problem(known, str(error["msg"]))
    name = str(unknown[0])
    return Problem((*known, name[:_LONGEST_NAME]), "unknown field", nearest(name[:100], names))


def _walked(
    annotation: object, place: tuple[str | int, ...]
) -> tuple[tuple[str | int, ...], type[BaseModel] | None]:
    """The steps of a place that are fields and indices of a body, and the model they lead to.

    Others, such as the option of a union that was tried, mean nothing to whoever sent it.
    """
    model = _model_in(annotation)
    steps: list[str | int] = []
    for part in place:
        if isinstance(part, int):
            steps.append(part)
        elif model is not None and part in model.model_fields:
            steps.append(part)
            model = _model_in(model.model_fields[part].annotation)
    return tuple(steps), model


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The model that an annotation is, lists or allows."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (list, tuple, Sequence, Union, UnionType, Annotated):
        for argument in cast("tuple[object, ...]", get_args(annotation)):
            if (found := _model_in(argument)) is not None:
                return found
    return None
