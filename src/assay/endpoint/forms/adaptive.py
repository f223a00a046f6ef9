"""The form of Adaptive's reward server: ``/score``, ``/batch_score``, ``/info``.

It has no place for an item that could not be graded. Such an item, or a batch that holds one, is
answered with 500 and the items' names, because any number would be taken for a reward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.endpoint.problems import ProblemError, shape_problem
from assay.endpoint.served import Asked, Served
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, plain
from assay.types.codec import Problem, ShapeError, from_json, schema
from assay.types.submission import Submission
from assay.types.thread import StringThread

__all__ = [
    "BATCH_REQUEST",
    "REQUEST",
    "BatchRequest",
    "Request",
    "Turn",
    "asked",
    "info",
    "read",
    "read_batch",
    "reply",
    "reply_batch",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a conversation."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What ``/score`` is sent."""

    turns: tuple[Turn, ...]
    metadata: Mapping[str, Json] | None = None
    id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRequest:
    """What ``/batch_score`` is sent."""

    requests: tuple[Request, ...]


REQUEST = schema(Request)
BATCH_REQUEST = schema(BatchRequest)


def info(served: Served) -> dict[str, Json]:
    """What ``GET /info`` answers."""
    return {
        "version": served.version,
        "name": served.name,
        "description": served.description,
    }


def read(body: Json) -> Request:
    """The request of ``/score``.

    Raises:
        ProblemError: For a body of another shape.
    """
    try:
        return from_json(Request, body)
    except ShapeError as error:
        raise shape_problem(error) from None


def read_batch(body: Json) -> Sequence[Request]:
    """The requests of ``/batch_score``; raises as `read` does."""
    try:
        return from_json(BatchRequest, body).requests
    except ShapeError as error:
        raise shape_problem(error) from None


def asked(requests: Sequence[Request]) -> list[Asked]:
    """The items of requests, named by their places."""
    return [(str(number), _submission(request)) for number, request in enumerate(requests)]


def _submission(request: Request) -> Submission:
    metadata = dict(request.metadata or {})
    thread = StringThread([(turn.role, turn.content) for turn in request.turns], metadata)
    return Submission(
        answer=thread.completion(),
        thread=thread,
        question=thread.last_user_turn(),
        expected=metadata.get("expected"),
        metadata=metadata,
    )


def reply(request: Request, graded: Graded) -> dict[str, Json]:
    """What ``POST /score`` answers.

    Raises:
        ProblemError: 500, for an item without a score.
    """
    return reply_batch([request], [graded])[0]


def reply_batch(requests: Sequence[Request], graded: Sequence[Graded]) -> list[dict[str, Json]]:
    """What ``POST /batch_score`` answers under ``responses``; raises as `reply` does."""
    problems = [
        Problem(("requests", number), f"item {_name(request, number)}: {_why(outcome)}")
        for number, (request, outcome) in enumerate(zip(requests, graded, strict=True))
        if outcome.score is None
    ]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        detail = f"not graded: {problems[0].message}{more}"
        raise ProblemError(500, detail, errors=problems)
    return [_response(*pair) for pair in zip(requests, graded, strict=True)]


def _name(request: Request, number: int) -> str:
    return str(number if request.id is None else request.id)


def _why(outcome: Graded) -> str:
    return outcome.error or f"skipped: {outcome.reason}"


def _response(request: Request, outcome: Graded) -> dict[str, Json]:
    metadata: dict[str, Json] = {
        "reason": outcome.reason,
        "flags": list(outcome.flags),
        "details": plain(outcome.details),
    }
    return {"reward": outcome.score, "metadata": metadata, "id": request.id}
