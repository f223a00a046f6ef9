"""`ProblemError`: a request that is answered with problem+json (RFC 9457)."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from assay.errors import AssayError
from assay.scoring.json_safe import Json
from assay.types.codec import Problem, ShapeError

__all__ = ["ProblemError", "problem_body", "shape_problem"]


class ProblemError(AssayError):
    """A request that cannot be served.

    Attributes:
        status: The HTTP status of the reply.
        errors: What is wrong where: ``field``, ``message`` and ``hint``.
        headers: Further headers of the reply.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        errors: Sequence[Problem] = (),
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.errors = tuple(errors)
        self.headers = headers or {}


def problem_body(error: ProblemError, instance: str) -> dict[str, Json]:
    """The reply's JSON."""
    return {
        "type": "about:blank",
        "title": HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": error.message,
        "instance": instance,
        "errors": [
            {"field": problem.field, "message": problem.message, "hint": problem.hint}
            for problem in error.errors[:100]
        ],
    }


def shape_problem(error: ShapeError) -> ProblemError:
    """The problem of a body that has not the shape that was asked for."""
    first = error.problems[0]
    place = f"{first.field}: " if first.field else ""
    return ProblemError(422, f"{place}{first.message}", errors=error.problems)
