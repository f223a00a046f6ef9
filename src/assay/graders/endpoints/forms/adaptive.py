"""The form of Adaptive's reward server: ``/score``, ``/batch_score``, ``/info``.

It has no place for an item that could not be graded. Such an item, or a batch that holds one, is
answered with 500 and the items' names, because any number would be taken for a reward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from assay.graders.endpoints.forms.form import (
    Asked,
    Item,
    NotGradedError,
    Server,
    Span,
    WireForm,
    all_bad,
    bad,
    reason_in,
    scored,
    turns_of,
)
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, json_safe, plain, record_parameters
from assay.types.codec import Problem, from_json, schema
from assay.types.submission import Submission
from assay.types.thread import StringThread


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """One turn of a conversation."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What ``/score`` is sent."""

    turns: tuple[_Turn, ...]
    metadata: Mapping[str, Json] | None = None
    id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _BatchRequest:
    """What ``/batch_score`` is sent."""

    requests: tuple[_Request, ...]


def _encode_item(number: int, submission: Submission) -> dict[str, Json]:
    metadata = cast("dict[str, Json]", plain(submission.metadata))
    if submission.expected is not None:
        metadata.setdefault("expected", submission.expected)
    return {"turns": turns_of(submission), "metadata": metadata, "id": number}


def _encode_batch(items: Sequence[Item]) -> Json:
    return {"requests": [_encode_item(n, s) for n, (_, s) in enumerate(items)]}


def _decode_batch_answer(items: Sequence[Item], reply: Json, span: Span) -> list[Graded]:
    responses = reply.get("responses") if isinstance(reply, dict) else None
    if not isinstance(responses, list):
        return all_bad(items, "the reply has no list 'responses'")
    if len(responses) != len(items):
        said = f"the reply has {len(responses)} responses for {len(items)} requests"
        return all_bad(items, said)
    return [
        _decode_response(n, item, response, span)
        for n, ((item, _), response) in enumerate(zip(items, responses, strict=True))
    ]


def _encode_one(items: Sequence[Item]) -> Json:
    return _encode_item(0, items[0][1])


def _decode_one_answer(items: Sequence[Item], reply: Json, span: Span) -> list[Graded]:
    return [_decode_response(0, items[0][0], reply, span)]


def _decode_response(number: int, item: str, response: Json, span: Span) -> Graded:
    if not isinstance(response, dict):
        return bad(item, "its response is not an object")
    echoed = response.get("id")  # many servers do not repeat it: then the order counts
    if echoed is not None and (isinstance(echoed, bool) or echoed != number):
        return bad(item, f"its response is for id {json_safe(echoed)!r:.60}, not {number}")
    metadata = response.get("metadata")
    said = metadata if isinstance(metadata, dict) else {}
    reason = reason_in(said) or reason_in({"reason": said.get("feedback")})
    details = record_parameters({k: v for k, v in said.items() if k != "reason"})
    return scored(item, response.get("reward"), span, reason=reason, details=details)


def _decode_one(body: Json, server: Server) -> list[Asked]:
    del server
    return [("0", _submission(from_json(_Request, body)))]


def _decode_batch(body: Json, server: Server) -> list[Asked]:
    del server
    requests = from_json(_BatchRequest, body).requests
    return [(str(number), _submission(request)) for number, request in enumerate(requests)]


def _submission(request: _Request) -> Submission:
    metadata = dict(request.metadata or {})
    thread = StringThread([(turn.role, turn.content) for turn in request.turns], metadata)
    return Submission(
        answer=thread.completion(),
        thread=thread,
        question=thread.last_user_turn(),
        expected=metadata.get("expected"),
        metadata=metadata,
    )


def _encode_batch_answer(body: Json, graded: Sequence[Graded], server: Server) -> Json:
    del server
    requests = cast("dict[str, list[dict[str, Json]]]", body)["requests"]
    return {"responses": _responses([request.get("id") for request in requests], graded)}


def _encode_one_answer(body: Json, graded: Sequence[Graded], server: Server) -> Json:
    del server
    return _responses([cast("dict[str, Json]", body).get("id")], graded)[0]


def _responses(ids: Sequence[Json], graded: Sequence[Graded]) -> list[Json]:
    problems = [
        Problem(("requests", number), f"item {number if name is None else name}: {_why(outcome)}")
        for number, (name, outcome) in enumerate(zip(ids, graded, strict=True))
        if outcome.score is None
    ]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise NotGradedError(f"{problems[0].message}{more}", problems)
    return [_response(*pair) for pair in zip(ids, graded, strict=True)]


def _why(outcome: Graded) -> str:
    return outcome.error or f"skipped: {outcome.reason}"


def _response(name: Json, outcome: Graded) -> dict[str, Json]:
    metadata: dict[str, Json] = {
        "reason": outcome.reason,
        "flags": list(outcome.flags),
        "details": plain(outcome.details),
    }
    return {"reward": outcome.score, "metadata": metadata, "id": name}


FORM = WireForm(
    route="/batch_score",
    title="Score a batch of conversations, for Adaptive.",
    schema=schema(_BatchRequest),
    encode_request=_encode_batch,
    decode_request=_decode_batch,
    encode_answer=_encode_batch_answer,
    decode_answer=_decode_batch_answer,
    single=WireForm(
        route="/score",
        title="Score one conversation, for Adaptive.",
        schema=schema(_Request),
        encode_request=_encode_one,
        decode_request=_decode_one,
        encode_answer=_encode_one_answer,
        decode_answer=_decode_one_answer,
        most=1,
    ),
    info="/info",
)
