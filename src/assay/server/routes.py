"""What every route does with a request: let in who may ask, read it strictly, tell what is wrong.

A route says in ``openapi_extra`` which role it needs; one that says nothing cannot be made. This is
no dependency of FastAPI's, for which it has read the whole body: of a stranger nothing is read. All
that goes wrong in a route leaves it as a problem.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from types import UnionType
from typing import Annotated, Any, ClassVar, Final, Union, cast, get_args, get_origin

from fastapi.dependencies.utils import request_body_to_args, request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from assay.endpoint.problems import ProblemError, media_type
from assay.errors import nearest
from assay.scoring.json_safe import Json
from assay.server.admission import admit
from assay.server.bodies import check_size, parse
from assay.server.context import context
from assay.server.problems import problem_of, problem_reply
from assay.service.operation import Entrance
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


class GuardedRoute(APIRoute):
    """A route that lets in who may ask, and refuses in one form.

    Attributes:
        checks_query: Whether a parameter of the address that it does not know is refused.
    """

    checks_query: ClassVar[bool] = True

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What is called with each request."""
        handle = self.handler()
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
                    require_type(request, "application/json")
                    await request.read(body)
                return await handle(request)
            except RequestValidationError as error:
                problem = _of_validation(error, body)
            except Exception as error:  # the boundary: recorded, and told as a problem
                problem = problem_of(error, request)
            return problem_reply(problem, request.url.path, request.headers)

        return enter

    def handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What is called with a request that was let in, and whose body was read."""
        return super().get_route_handler()


class DirectRoute(GuardedRoute):
    """A route whose arguments are checked by FastAPI's fields, and nothing more is done by it.

    Solving its dependencies, of which there are none, takes longer than all that an endpoint does.
    """

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - FastAPI's own
        super().__init__(*args, **options)
        enter = self.get_route_handler()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            reply = await enter(Request(scope, receive))
            await reply(scope, receive, send)

        self.app = app

    def handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What checks the arguments, and calls the endpoint with them."""
        fields, call = self.dependant, self.endpoint

        async def handle(request: Request) -> Response:
            given, faults = request_params_to_args(fields.path_params, request.path_params)
            places = (fields.query_params, "query_params"), (fields.header_params, "headers")
            for wanted, place in places:
                if wanted:
                    more, wrong = request_params_to_args(wanted, getattr(request, place))
                    given, faults = given | more, faults + wrong
            if fields.body_params and not await request.body():
                faults.append({"type": "missing", "loc": ("body",), "msg": _NO_BODY})
            elif fields.body_params:
                more, wrong = await request_body_to_args(
                    fields.body_params, await request.json(), embed_body_fields=False
                )
                given, faults = given | more, faults + wrong
            if faults:
                raise RequestValidationError(faults)
            return await call(request=request, **given)

        return handle


def _check_query(request: Request, known: frozenset[str]) -> None:
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        faults = [
            Problem((name,), "unknown query parameter", nearest(name, sorted(known)))
            for name in unknown
        ]
        raise ProblemError(422, f"unknown query parameter {unknown[0]!r:.100}", errors=faults)


def require_type(request: Request, *types: str, hint: str = "") -> str:
    """The media type of a body, which must be one of some.

    Args:
        request: What was sent.
        types: Those that are read here.
        hint: What more is told to whoever sends another one.
    """
    given = media_type(request.headers)
    if given not in types:
        wanted = " or ".join(types)
        fault = Problem(("Content-Type",), f"{given!r:.100}", f"send {wanted}")
        raise ProblemError(415, f"the body must be {wanted}{hint}", errors=[fault])
    return given


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
    """The steps of a place that are fields, entries and indices of a body, and where they lead.

    Others, such as the option of a union that was tried, mean nothing to whoever sent it.
    """
    model, entries = _model_in(annotation), False
    steps: list[str | int] = []
    for part in place:
        if isinstance(part, int):
            steps.append(part)
        elif model is not None and part in model.model_fields:
            steps.append(part)
            inner = model.model_fields[part].annotation
            model, entries = _model_in(inner), _has_entries(inner)
        elif entries:
            steps.append(part[:_LONGEST_NAME])
            entries = False
    return tuple(steps), model


def _has_entries(annotation: object) -> bool:
    """Whether it is an object with any names, which may be null."""
    options = [annotation]
    if get_origin(annotation) in (Union, UnionType):
        options = [one for one in get_args(annotation) if one is not type(None)]
    return len(options) == 1 and get_origin(options[0]) in (dict, Mapping)


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The model that an annotation is, lists or allows."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (list, tuple, Sequence, Union, UnionType, Annotated):
        for argument in cast("tuple[object, ...]", get_args(annotation)):
            if (found := _model_in(argument)) is not None:
                return found
    return None
