"""assay's own form: ``/v1/info`` and ``/v1/grade``."""

from __future__ import annotations

from collections.abc import Sequence

from assay.endpoint.problems import ProblemError
from assay.endpoint.served import Asked, Served
from assay.errors import InputError
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, plain
from assay.tasks.rows import read_row
from assay.types.codec import Problem

__all__ = ["REQUEST", "info", "read", "reply"]

REQUEST: dict[str, Json] = {
    "type": "object",
    "required": ["items"],
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id"],
                "properties": {
                    "id": {"type": ["string", "integer"]},
                    "answer": {"type": "string"},
                    "messages": {"type": "array", "items": {"type": "object"}},
                    "question": {"type": "string"},
                    "expected": {},
                    "metadata": {"type": "object"},
                },
            },
        }
    },
}
"""JSON Schema of a request."""


def info(served: Served) -> dict[str, Json]:
    """What ``GET /v1/info`` answers."""
    return {
        "name": served.name,
        "version": served.version,
        "description": served.description,
        "max_batch": served.max_batch,
        "score_range": None if served.score_range is None else list(served.score_range),
        "metadata_schema": dict(served.metadata_schema),
        "protocol": "assay/1",
    }


def read(body: Json) -> list[Asked]:
    """The items of a request. One that is malformed is an error of its own, not of the request.

    Raises:
        ProblemError: For a body without items, or items without ids of their own.
    """
    items = body.get("items") if isinstance(body, dict) else None
    if not isinstance(items, list):
        raise ProblemError(422, "the body must be an object with a list 'items'")
    asked: list[Asked] = []
    problems: list[Problem] = []
    seen: set[str] = set()
    for number, item in enumerate(items):
        name = item.get("id") if isinstance(item, dict) else None
        if not isinstance(item, dict) or isinstance(name, bool) or not isinstance(name, str | int):
            problems.append(
                Problem(("items", number, "id"), "an item needs an id: text or a number")
            )
            continue
        if str(name) in seen:
            problems.append(Problem(("items", number, "id"), "another item has this id"))
        seen.add(str(name))
        try:
            asked.append((str(name), read_row(item, number + 1).submission))
        except InputError as error:
            asked.append((str(name), error.message))
    if problems:
        raise ProblemError(422, f"{problems[0].field}: {problems[0].message}", errors=problems)
    return asked


def reply(body: Json, graded: Sequence[Graded]) -> dict[str, Json]:
    """What ``POST /v1/grade`` answers; ids are given back as they were written."""
    items = body.get("items") if isinstance(body, dict) else None
    names = [
        item.get("id")
        for item in (items if isinstance(items, list) else [])
        if isinstance(item, dict)
    ]
    return {"results": [_result(*pair) for pair in zip(names, graded, strict=True)]}


def _result(name: Json, outcome: Graded) -> dict[str, Json]:
    failed = outcome.status == "error"
    return {
        "id": name,
        "status": outcome.status,
        "score": outcome.score,
        "reason": outcome.reason,
        "details": plain(outcome.details),
        "flags": list(outcome.flags),
        "assurance": outcome.assurance,
        "error": {"code": outcome.outcome, "message": outcome.error} if failed else None,
    }
