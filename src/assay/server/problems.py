"""What goes wrong, as ``application/problem+json``: one shape for every refusal and failure."""

from __future__ import annotations

import dataclasses
import http
import json
import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from starlette.exceptions import HTTPException
from starlette.responses import Response

from assay.errors import (
    AssayError,
    ConflictError,
    InputError,
    LockedError,
    MissingExtraError,
    NotFoundError,
    SandboxError,
    StoreError,
)
from assay.registry.policy import ForbiddenError
from assay.scoring.json_safe import Json
from assay.tasks.document import DocumentError
from assay.types.codec import ShapeError

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["MEDIA_TYPE", "Fault", "ProblemError", "problem_of", "problem_reply", "reply"]

MEDIA_TYPE = "application/problem+json"

_LOG = logging.getLogger("assay.server")
_RETRY_SECONDS = 5

_TITLES = {
    400: "The request is malformed",
    401: "A key is needed",
    403: "Not allowed",
    404: "Not found",
    405: "The method is not allowed here",
    409: "What is stored does not allow it",
    412: "It was changed meanwhile",
    413: "The body is too large",
    415: "The body has another type",
    421: "This server has another name",
    422: "The request cannot be carried out",
    423: "It is locked",
    428: "Say which version to replace",
    429: "Too many failures",
    500: "The server failed",
    503: "Not available now",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong in a request.

    Attributes:
        field: Where, such as ``items[3].answer``; empty for the request as a whole.
        message: What is wrong there.
        hint: How to fix it, or empty.
    """

    field: str
    message: str
    hint: str = ""


class ProblemError(HTTPException):
    """A refusal, with all that the reply says.

    Attributes:
        faults: What is wrong, place by place.
        more: Further members of the reply.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        faults: Iterable[Fault] = (),
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Json] | None = None,
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.faults = tuple(faults)
        self.more = dict(more or {})


def reply(
    data: object,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    *,
    media_type: str = "application/json",
) -> Response:
    """A reply with JSON in ASCII: what people submitted may hold half characters.

    Raises:
        ValueError: For a number that JSON cannot hold; nothing of ours may let one through.
    """
    body = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return Response(body.encode("ascii"), status, dict(headers or {}), media_type)


def problem_reply(problem: ProblemError, path: str) -> Response:
    """The reply that tells a problem."""
    status = problem.status_code
    title = _TITLES.get(status) or http.HTTPStatus(status).phrase
    body: dict[str, Json] = {
        "type": "urn:assay:problem:" + title.lower().replace(" ", "-"),
        "title": title,
        "status": status,
        "detail": problem.detail,
        "instance": path,
        "errors": [dataclasses.asdict(fault) for fault in problem.faults],
        **problem.more,
    }
    return reply(body, status, problem.headers, media_type=MEDIA_TYPE)


def problem_of(error: Exception, request: Request) -> ProblemError:
    """What an exception is to whoever sent the request.

    What is nobody's fault but ours is logged with a number, and the reply gives only the number.
    """
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, HTTPException):
        return ProblemError(error.status_code, error.detail, headers=error.headers)
    if isinstance(error, AssayError):
        return _of_ours(error, request)
    return _internal(error, request)


def _of_ours(error: AssayError, request: Request) -> ProblemError:
    if isinstance(error, InputError):
        return _of_input(error)
    if isinstance(error, StoreError | SandboxError | MissingExtraError):
        _LOG.error("%s %s: %s", request.method, request.url.path, error)
        what = "the database" if isinstance(error, StoreError) else str(error)
        detail = (
            f"{what} cannot be used now; nothing of this request was kept"
            if isinstance(error, StoreError)
            else what
        )
        return ProblemError(503, detail, headers={"Retry-After": str(_RETRY_SECONDS)})
    return _internal(error, request)


def _of_input(error: InputError) -> ProblemError:
    status = 422
    kinds = ((NotFoundError, 404), (LockedError, 423), (ConflictError, 409), (ForbiddenError, 403))
    for kind, code in kinds:
        if isinstance(error, kind):
            status = code
            break
    if isinstance(error, ShapeError):
        faults: Sequence[Fault] = [Fault(p.field, p.message, p.hint) for p in error.problems]
    elif isinstance(error, DocumentError):
        faults = [Fault(str(one.location), one.message, one.hint) for one in error.faults]
    else:
        faults = [Fault(error.location.field, error.message, error.hint)]
    report = getattr(error, "report", None)
    more: dict[str, Json] = {}
    if report is not None and hasattr(report, "to_dict"):
        more["report"] = cast("Json", report.to_dict())
        more["grader"] = str(getattr(error, "key", ""))
    place = f"{error.location.field}: " if error.location.field else ""
    detail = place + (f"{error.message} ({error.hint})" if error.hint else error.message)
    return ProblemError(status, detail, faults=faults, more=more)


def _internal(error: Exception, request: Request) -> ProblemError:
    number = secrets.token_hex(4)
    _LOG.error("%s %s failed (%s)", request.method, request.url.path, number, exc_info=error)
    return ProblemError(500, f"an error of ours, number {number} in the server's log")
