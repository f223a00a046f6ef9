"""What a server can answer instead of what was asked for.

Faults of the caller are the same types in both modes: `InputError`, `NotFoundError`,
`ConflictError`, `LockedError`. Those below exist only where there is a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from assay.errors import AssayError, ConflictError, InputError, Location, LockedError, NotFoundError
from assay.scoring.json_safe import Json


class ArgumentError(InputError, TypeError):
    """A call has an argument that it does not take, or lacks one that it needs."""


class TooLargeError(InputError):
    """The server takes no request as large as this one."""


class UnreadableError(InputError):
    """The server cannot read the request: a row is nested too deeply, say."""


class ApiError(AssayError):
    """The server refused or failed.

    Attributes:
        status: The HTTP status, or 0 where there was no answer.
    """

    def __init__(self, message: str, *, status: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


class AuthError(ApiError, InputError):
    """The API key is missing, wrong or revoked, or its role does not allow this."""


class ServerError(ApiError):
    """The server failed, or answered with something that is not its protocol."""


class UnreachableError(ApiError):
    """No answer came: the server is not there, or not in time."""


_Refusal: TypeAlias = "ApiError | InputError"

_INPUT: Mapping[int, type[InputError]] = {
    400: UnreadableError,
    404: NotFoundError,
    409: ConflictError,
    412: ConflictError,
    413: TooLargeError,
    423: LockedError,
}


_KEY_HINT = "give the client api_key=, or set ASSAY_API_KEY; `assay server create keys` makes a key"


def refusal(status: int, problem: Mapping[str, Json]) -> _Refusal:
    """The error that a ``problem+json`` answer (RFC 9457) stands for.

    Args:
        status: The HTTP status.
        problem: The body; its ``errors`` name fields.
    """
    title, detail = str(problem.get("title") or ""), str(problem.get("detail") or "")
    message, hint = detail or title or f"the server answered {status}", ""
    report = problem.get("report")
    if isinstance(report, dict):
        from assay.registry import ValidationFailedError
        from assay.scoring.validation import ValidationReport

        key = str(problem.get("grader") or "")
        return ValidationFailedError(key, ValidationReport.from_dict(report))
    errors = problem.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else None
    field = ""
    if isinstance(first, dict):
        field, hint = str(first.get("field") or ""), str(first.get("hint") or "")
        message = str(first.get("message") or message)
        if isinstance(errors, list) and len(errors) > 1:
            message += f" (and {len(errors) - 1} more)"
    hint = hint or str(problem.get("hint") or "")
    if status == 401:
        return AuthError(message, status=status, hint=_KEY_HINT)
    if status == 403:
        return AuthError(message, status=status, hint=hint)
    if status >= 500 or status == 429:
        return ServerError(message, status=status, hint=hint)
    return _INPUT.get(status, InputError)(message, location=Location(field=field), hint=hint)
