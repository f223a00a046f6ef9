"""What the OpenAPI document says of replies beside the usual one."""

from __future__ import annotations

from typing import Any

from assay.server.problems import MEDIA_TYPE

__all__ = ["PROBLEMS", "problem_responses"]

_MEANINGS = {
    400: "Malformed: not JSON, or a number that is none.",
    401: "No valid key or session.",
    403: "The role does not allow it, or the request is from another origin.",
    404: "There is no such thing.",
    409: "The name is taken, the thing is in use, or the idempotency key is another request's.",
    412: "It was changed meanwhile.",
    413: "The body is too large.",
    415: "The body has another media type.",
    421: "The server has another name.",
    422: "Understood, and refused: a field is wrong.",
    423: "The grader is locked.",
    428: "`If-Match` is missing.",
    429: "Too many failures came from this address.",
    500: "An error of the server.",
    503: "The database or the sandbox cannot be used now.",
}

PROBLEMS = tuple(_MEANINGS)
"""Statuses that are told as problems."""


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Replies that are problems, for the ``responses`` of a route."""
    return {
        status: {
            "description": _MEANINGS[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemShown"}}},
        }
        for status in statuses
    }
