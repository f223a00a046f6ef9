"""Bodies as JSON that means the same to everybody, or the problem that says what is wrong."""

from __future__ import annotations

from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.server.problems import Fault, ProblemError

__all__ = ["parse", "parse_line"]

_HINTS = {
    "repeated key": "readers would differ on which one counts",
    "number": "send null, or a finite number",
    "digits": "send it as text",
}


def parse(body: bytes, *, max_depth: int, where: str = "") -> Json:
    """Read a body.

    Raises:
        ProblemError: 400, with the place and the fix.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refusal(where, f"not JSON: byte {error.start} is not UTF-8", "send UTF-8") from None
    try:
        return decode_json(text, max_depth=max_depth)
    except NotJsonError as error:
        message, hint = str(error), _HINTS.get(error.kind, "")
        if error.kind == "syntax":
            message = f"not JSON: {error}, character {error.offset}"
            hint = "" if where else f"line {error.line}, column {error.column}"
        elif error.kind == "number":
            message = "NaN and infinities are not JSON"
            where = ": ".join(part for part in (where, error.path) if part)
        raise _refusal(where, message, hint) from None


def parse_line(line: bytes, number: int, *, max_depth: int) -> dict[str, Json]:
    """Read a line of a dataset, which must be an object.

    Raises:
        ProblemError: 400, with the number of the line.
    """
    where = f"line {number}"
    data = parse(line, max_depth=max_depth, where=where)
    if isinstance(data, dict):
        return data
    raise _refusal(where, "a row must be a JSON object", 'such as {"answer": "4"}')


def _refusal(place: str, message: str, hint: str = "") -> ProblemError:
    detail = f"{place or 'the body'}: {message}" + (f" ({hint})" if hint else "")
    return ProblemError(400, detail, faults=[Fault(place, message, hint)])
