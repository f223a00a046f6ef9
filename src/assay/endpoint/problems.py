"""`ProblemError`: a request that is answered with problem+json (RFC 9457)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus

from assay.errors import AssayError
from assay.scoring.json_safe import Json
from assay.types.codec import Problem

MEDIA_TYPE = "application/problem+json"


def media_type(headers: Mapping[str, str]) -> str:
    """What a body is, without parameters such as its character set."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


_MOST_ERRORS = 100
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
    429: "Too many requests",
    500: "The server failed",
    499: "The client went away",
    503: "Not available now",
}


class ProblemError(AssayError):
    """A request that cannot be served."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        errors: Iterable[Problem] = (),
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Json] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        self.more = dict(more or {})


def problem_body(error: ProblemError, instance: str) -> dict[str, Json]:
    """The reply's JSON."""
    title = _TITLES.get(error.status) or HTTPStatus(error.status).phrase
    return {
        "type": "urn:assay:problem:" + title.lower().replace(" ", "-"),
        "title": title,
        "status": error.status,
        "detail": error.message,
        "instance": instance,
        "errors": [
            {"field": problem.field, "message": problem.message, "hint": problem.hint}
            for problem in error.errors[:_MOST_ERRORS]
        ],
        **error.more,
    }
