"""What goes wrong, told to whoever asked: in one form, or in that of OTLP's or OpenAI's clients."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from starlette.exceptions import HTTPException
from starlette.responses import Response

from assay.documents import DocumentError
from assay.endpoint.problems import MEDIA_TYPE, ProblemError, media_type, problem_body
from assay.errors import (
    AssayError,
    ConflictError,
    DamagedError,
    InputError,
    LockedError,
    MissingExtraError,
    NotFoundError,
    SandboxError,
    StoreError,
)
from assay.registry.policy import ForbiddenError
from assay.scoring.json_safe import Json
from assay.server.replies import reply
from assay.types.codec import Problem, ShapeError

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.requests import Request

_LOG = logging.getLogger("assay.server")
_RETRY_SECONDS = 5


class SlowStoreError(StoreError):
    """The database did not answer in time; what was asked of it may still be done."""


def problem_reply(problem: ProblemError, path: str, headers: Headers) -> Response:
    """The reply that tells a problem, in the form that clients of its address read.

    Args:
        problem: What is wrong.
        path: What was asked for.
        headers: Of the request; an exporter of traces is answered in its encoding.
    """
    if path.rpartition("/v1/")[2] in _SIGNALS:
        return _to_exporter(problem, is_protobuf=media_type(headers) == PROTOBUF)
    if path.startswith("/v1/"):
        return _to_openai(problem)
    body = problem_body(problem, path)
    return reply(body, problem.status, problem.headers, media_type=MEDIA_TYPE)


TRACES = "/v1/traces"
"""How the addresses end to which OTLP/HTTP sends traces."""
PROTOBUF = "application/x-protobuf"

_SIGNALS = ("traces", "metrics", "logs")
_LONGEST = 1_000
# Codes of gRPC's Status: unauthenticated, permission denied, not found, exhausted, …
_INVALID, _INTERNAL = 3, 13
_CODES = {401: 16, 403: 7, 404: 5, 429: 8, 500: _INTERNAL, 503: 14}


def _to_exporter(problem: ProblemError, *, is_protobuf: bool) -> Response:
    """A refusal as OTLP says it: a Status."""
    # What can be mended is 400 to an exporter, whatever is wrong with it.
    status = 400 if problem.status == 422 else problem.status
    code, message = _CODES.get(status, _INVALID), problem.message[:_LONGEST]
    if not is_protobuf:
        return reply({"code": code, "message": message}, status, problem.headers)
    from assay.agents.transcripts.otlp_protobuf import encode

    return Response(encode((1, code), (2, message)), status, dict(problem.headers), PROTOBUF)


OPENAI = "/v1/fine_tuning/alpha/graders"
"""Where OpenAI's clients ask for graders."""

_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def _to_openai(problem: ProblemError) -> Response:
    """A refusal as OpenAI's clients read it: ``BadRequestError`` and the like."""
    status = 400 if problem.status == 422 else problem.status
    usual = "server_error" if status >= 500 else "invalid_request_error"
    error: Json = {
        "message": problem.message,
        "type": _OPENAI_TYPES.get(status, usual),
        "param": (problem.errors[0].field if problem.errors else "") or None,
        "code": None,
    }
    return reply({"error": error}, status, problem.headers)


def problem_of(error: Exception, request: Request) -> ProblemError:
    """What an exception is to whoever sent the request.

    What is nobody's fault but ours is logged with a number, and the reply gives only the number.
    """
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, HTTPException):  # of the router: what is missing in the store says what
        detail = _unserved(request.url.path, error)
        return ProblemError(error.status_code, detail, headers=error.headers)
    if isinstance(error, AssayError):
        return _of_ours(error, request)
    return _internal(error, request)


def _unserved(path: str, error: HTTPException) -> str:
    """What is said of an address, or of how it was asked."""
    signal = path.rpartition("/v1/")[2]
    if error.status_code == 404 and signal in ("metrics", "logs"):
        return f"only traces are received here: set OTEL_{signal.upper()}_EXPORTER=none"
    if path.startswith("/v1/") and path != TRACES and error.status_code in (404, 405):
        return (
            f"{path:.100} is not served here; of OpenAI's API there are POST {OPENAI}/run and "
            f"POST {OPENAI}/validate. Evals and graders in files: `assay import openai`"
        )
    if error.status_code == 404:
        return "nothing is served at this address (/api/v1/openapi.json has every one)"
    return error.detail


def _of_ours(error: AssayError, request: Request) -> ProblemError:
    if isinstance(error, InputError):
        return _of_input(error)
    if isinstance(error, StoreError | SandboxError | MissingExtraError):
        _LOG.error("%s %s: %s", request.method, request.url.path, error)
        detail = str(error)
        if isinstance(error, SlowStoreError):
            detail = "the database does not answer; it may keep this request later"
        elif isinstance(error, DamagedError):
            return ProblemError(503, "the database is damaged; who runs this server must mend it")
        elif isinstance(error, StoreError):
            detail = "the database cannot be used now; nothing of this request was kept"
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
        errors: Sequence[Problem] = error.problems
    elif isinstance(error, DocumentError):
        errors = [Problem((str(one.location),), one.message, one.hint) for one in error.faults]
    else:
        errors = [Problem((error.location.field,), error.message, error.hint)]
    report = getattr(error, "report", None)
    more: dict[str, Json] = {}
    if report is not None and hasattr(report, "to_dict"):
        more["report"] = cast("Json", report.to_dict())
        more["grader"] = str(getattr(error, "key", ""))
    place = f"{error.location.field}: " if error.location.field else ""
    detail = place + (f"{error.message} ({error.hint})" if error.hint else error.message)
    return ProblemError(status, detail, errors=errors, more=more)


def _internal(error: Exception, request: Request) -> ProblemError:
    number = secrets.token_hex(4)
    _LOG.error("%s %s failed (%s)", request.method, request.url.path, number, exc_info=error)
    return ProblemError(500, f"an error of ours, number {number} in the server's log")
