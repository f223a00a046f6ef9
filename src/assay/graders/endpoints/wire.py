"""The four wire forms of calling out: items to a request, a reply to one outcome per item.

A reply is data of a stranger. What it says about an item is believed only if it is well formed: a
finite number in the declared range, exactly one entry for the item. Anything else is an error of
that item, never a 0. Scores keep the endpoint's own scale here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from assay.errors import ScoreError
from assay.graders.endpoints.settings import Protocol
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, json_safe, plain, record_parameters
from assay.scoring.results import ASSURANCES, assurance_from, finite_number
from assay.types.submission import Submission

__all__ = ["WIRES", "Item", "Wire", "base_url", "turns_of"]

Item: TypeAlias = tuple[str, Submission]
Span: TypeAlias = tuple[float, float]

_MOST_REASON = 2_000
"""Characters kept of a reason."""
_MOST_FLAGS, _MOST_FLAG, _MOST_CODE = 20, 100, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """One wire form.

    Attributes:
        route: Path that batches are sent to.
        request: Makes a request's JSON of items whose ids are unique.
        replied: Makes the outcomes, one per item and in their order, of a reply.
        most: Items that one request can hold at most.
        single: The form that grades one item where a whole batch was refused, if there is one.
        info: Path that describes the server, if there is one.
    """

    route: str
    request: Callable[[Sequence[Item]], Json]
    replied: Callable[[Sequence[Item], Json, Span], list[Graded]]
    most: int = 4_096
    single: Wire | None = None
    info: str = ""

    def routes(self) -> tuple[str, ...]:
        """Every path that belongs to the form."""
        return (self.route, *(self.single.routes() if self.single else ()))


def base_url(url: str, wire: Wire) -> str:
    """An endpoint's URL without the route, if it was written with it."""
    trimmed = url.rstrip("/")
    for route in wire.routes():
        if trimmed.endswith(route):
            return trimmed.removesuffix(route)
    return trimmed


def turns_of(submission: Submission) -> list[Json]:
    """The conversation as chat messages; of the question and the answer where there is none."""
    if submission.thread is not None:
        return [{"role": t.role, "content": t.content} for t in submission.thread.turns]
    spoken = (("user", submission.question), ("assistant", submission.answer))
    return [{"role": role, "content": text} for role, text in spoken if text is not None]


# assay


def _assay_request(items: Sequence[Item]) -> Json:
    return {"items": [_assay_item(item, submission) for item, submission in items]}


def _assay_item(item: str, submission: Submission) -> dict[str, Json]:
    parts: dict[str, Json] = {
        "messages": None if submission.thread is None else turns_of(submission),
        "answer": submission.answer,
        "question": submission.question,
        "expected": submission.expected,
        "metadata": plain(submission.metadata) or None,
    }
    return {"id": item, **{name: part for name, part in parts.items() if part is not None}}


def _assay_replied(items: Sequence[Item], reply: Json, span: Span) -> list[Graded]:
    results = reply.get("results") if isinstance(reply, dict) else None
    if not isinstance(results, list):
        return _all_bad(items, "the reply has no list 'results'")
    found: dict[str, list[dict[str, Json]]] = {}
    for result in results:
        if isinstance(result, dict) and _is_id(result.get("id")):
            found.setdefault(str(result["id"]), []).append(result)
    known = {item for item, _ in items}
    stray = next((name for name in found if name not in known), None)
    aside = "" if stray is None else f", but one for the unknown id {stray[:60]!r}"
    graded: list[Graded] = []
    for item, _ in items:
        entries = found.get(item, [])
        if len(entries) == 1:
            graded.append(_assay_result(item, entries[0], span))
        else:
            said = f"{len(entries)} results" if entries else f"no result{aside}"
            graded.append(_bad(item, f"the reply has {said} for this item"))
    return graded


def _is_id(value: Json) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _assay_result(item: str, result: Mapping[str, Json], span: Span) -> Graded:
    if wrong := _malformed(result):
        return _bad(item, wrong)
    error, status, reason = result.get("error"), result.get("status", "scored"), _reason(result)
    details = result.get("details")
    evidence = record_parameters(details) if isinstance(details, dict) else {}
    if error is not None or status == "error":
        return _remote_error(item, error, evidence)
    if status == "skipped":
        return Graded(id=item, status="skipped", reason=reason, details=evidence)
    if status != "scored":
        return _bad(item, f"its status is {json_safe(status)!r:.60}")
    flags = result.get("flags")
    given = flags[:_MOST_FLAGS] if isinstance(flags, list) else []
    named = tuple(_cut(str(flag), _MOST_FLAG) for flag in given)
    # It is apart from what it judges, but may know of something weaker behind it, such as a model.
    word = assurance_from(result.get("assurance")) or "separate"
    scored = _scored(item, result.get("score"), span, reason=reason, details=evidence, flags=named)
    return scored if scored.assurance is None else replace(scored, assurance=word)


def _malformed(result: Mapping[str, Json]) -> str:
    """Which of the fields that say why is of a wrong type, and what it must be; empty if none."""
    flags, details, reason = result.get("flags"), result.get("details"), result.get("reason")
    if reason is not None and not isinstance(reason, str):
        return f"its 'reason' is {_kind(reason)}; it must be text"
    if details is not None and not isinstance(details, dict):
        return f"its 'details' is {_kind(details)}; it must be an object"
    if result.get("assurance") not in (None, *ASSURANCES):
        return f"its 'assurance' is not one of {', '.join(ASSURANCES)}"
    if flags is not None and not isinstance(flags, list):
        return f"its 'flags' is {_kind(flags)}; it must be a list of texts"
    odd = next((flag for flag in flags or () if not isinstance(flag, str)), "")
    return "" if isinstance(odd, str) else f"one of its 'flags' is {_kind(odd)}; each must be text"


def _kind(value: Json) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return "null" if value is None else f"of type {type(value).__name__}"


def _remote_error(item: str, error: Json, evidence: dict[str, Json]) -> Graded:
    """The endpoint could not grade the item, and said why."""
    code, message = "error", error
    if isinstance(error, dict):
        code, message = error.get("code"), error.get("message")
    code = _cut(code, _MOST_CODE) if isinstance(code, str) and code else "error"
    told = message if isinstance(message, str) and message else "no reason was given"
    return Graded(
        id=item,
        status="error",
        outcome="error",
        error=f"the endpoint could not grade it: {code}: {_cut(told)}",
        details={**evidence, "error_code": code},
    )


# Adaptive's reward server


def _adaptive_asked(number: int, submission: Submission) -> dict[str, Json]:
    metadata = cast("dict[str, Json]", plain(submission.metadata))
    if submission.expected is not None:
        metadata.setdefault("expected", submission.expected)
    return {"turns": turns_of(submission), "metadata": metadata, "id": number}


def _batch_score_request(items: Sequence[Item]) -> Json:
    return {"requests": [_adaptive_asked(n, s) for n, (_, s) in enumerate(items)]}


def _batch_score_replied(items: Sequence[Item], reply: Json, span: Span) -> list[Graded]:
    responses = reply.get("responses") if isinstance(reply, dict) else None
    if not isinstance(responses, list):
        return _all_bad(items, "the reply has no list 'responses'")
    if len(responses) != len(items):
        said = f"the reply has {len(responses)} responses for {len(items)} requests"
        return _all_bad(items, said)
    return [
        _adaptive_response(n, item, response, span)
        for n, ((item, _), response) in enumerate(zip(items, responses, strict=True))
    ]


def _score_request(items: Sequence[Item]) -> Json:
    return _adaptive_asked(0, items[0][1])


def _score_replied(items: Sequence[Item], reply: Json, span: Span) -> list[Graded]:
    return [_adaptive_response(0, items[0][0], reply, span)]


def _adaptive_response(number: int, item: str, response: Json, span: Span) -> Graded:
    if not isinstance(response, dict):
        return _bad(item, "its response is not an object")
    echoed = response.get("id")  # many servers do not repeat it: then the order counts
    if echoed is not None and (isinstance(echoed, bool) or echoed != number):
        return _bad(item, f"its response is for id {json_safe(echoed)!r:.60}, not {number}")
    metadata = response.get("metadata")
    said = metadata if isinstance(metadata, dict) else {}
    reason = _reason(said) or _reason({"reason": said.get("feedback")})
    details = record_parameters({k: v for k, v in said.items() if k != "reason"})
    return _scored(item, response.get("reward"), span, reason=reason, details=details)


# OpenRLHF's remote reward model


def _openrlhf_request(items: Sequence[Item]) -> Json:
    query: list[Json] = []
    prompts: list[Json] = []
    labels: list[Json] = []
    for _, submission in items:
        prompt = _prompt(submission)
        query.append(prompt + (submission.answer or ""))
        prompts.append(prompt)
        labels.append(submission.expected)
    return {"query": query, "prompts": prompts, "labels": labels}


def _prompt(submission: Submission) -> str:
    """What stands before the answer, as text that ends with a new line."""
    if submission.thread is None:
        text = submission.question or ""
    else:
        text = "\n".join(turn.content for turn in submission.thread.messages())
    return f"{text}\n" if text else ""


def _openrlhf_replied(items: Sequence[Item], reply: Json, span: Span) -> list[Graded]:
    if not isinstance(reply, dict):
        return _all_bad(items, "the reply is not an object")
    rewards = reply.get("rewards", reply.get("scores"))
    listed = rewards if isinstance(rewards, list) else [rewards]
    if len(listed) != len(items):
        return _all_bad(items, f"the reply has {len(listed)} rewards for {len(items)} samples")
    logs = reply.get("extra_logs")
    columns = {
        name: column
        for name, column in (logs if isinstance(logs, dict) else {}).items()
        if isinstance(column, list) and len(column) == len(items)
    }
    graded: list[Graded] = []
    for n, ((item, _), reward) in enumerate(zip(items, listed, strict=True)):
        details = record_parameters({name: column[n] for name, column in columns.items()})
        if "graded" in columns and not columns["graded"][n]:
            graded.append(_remote_error(item, "extra_logs.graded is 0", details))
        else:
            graded.append(_scored(item, reward, span, details=details))
    return graded


# NeMo Gym's resources server


def _nemo_gym_request(items: Sequence[Item]) -> Json:
    item, submission = items[0]
    turns = turns_of(submission)
    last = turns[-1] if turns else None
    if isinstance(last, dict) and last.get("role") == "assistant":
        turns.pop()
    content: Json = {"type": "output_text", "text": submission.answer or "", "annotations": []}
    message: Json = {
        "id": f"msg_{item}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [content],
    }
    response: Json = {
        "id": f"resp_{item}",
        "object": "response",
        "created_at": 0,
        "model": "unknown",
        "output": [message],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    row = cast("dict[str, Json]", plain(submission.metadata))
    for name, part in (("question", submission.question), ("expected", submission.expected)):
        if part is not None:
            row.setdefault(name, part)
    return {**row, "responses_create_params": {"input": turns}, "response": response}


def _nemo_gym_replied(items: Sequence[Item], reply: Json, span: Span) -> list[Graded]:
    item = items[0][0]
    if not isinstance(reply, dict):
        return [_bad(item, "the reply is not an object")]
    failure = reply.get("_ng_failure_class")
    if failure is not None:
        told = reply.get("_ng_failure_judge_error")
        return [_remote_error(item, {"code": failure, "message": told}, {})]
    components = reply.get("reward_components")
    details = record_parameters({"components": components}) if components else {}
    return [_scored(item, reply.get("reward"), span, reason=_reason(reply), details=details)]


# What all of them share


def _scored(
    item: str,
    score: Json,
    span: Span,
    *,
    reason: str = "",
    details: Mapping[str, Json] | None = None,
    flags: tuple[str, ...] = (),
) -> Graded:
    """An item with its score, if that is a finite number in the range."""
    try:
        number = finite_number(score, what="its score")
    except ScoreError as error:
        return _bad(item, str(error))
    low, high = span
    if not low <= number <= high:
        return _bad(item, f"its score {number:g} is not from {low:g} to {high:g}, the range")
    return Graded(
        id=item,
        status="scored",
        score=number,
        reason=reason,
        details=details or {},
        flags=flags,
        assurance="separate",
    )


def _bad(item: str, message: str) -> Graded:
    return Graded.failed(item, message, outcome="bad_reply")


def _all_bad(items: Sequence[Item], message: str) -> list[Graded]:
    return [_bad(item, message) for item, _ in items]


def _reason(data: Mapping[str, Json]) -> str:
    reason = data.get("reason")
    return _cut(reason) if isinstance(reason, str) else ""


def _cut(text: str, most: int = _MOST_REASON) -> str:
    text = text.encode("utf-8", "replace").decode()  # half characters cannot be stored
    return text if len(text) <= most else f"{text[: most - 3]}..."


WIRES: Mapping[Protocol, Wire] = {
    "assay": Wire(
        route="/v1/grade", request=_assay_request, replied=_assay_replied, info="/v1/info"
    ),
    "adaptive": Wire(
        route="/batch_score",
        request=_batch_score_request,
        replied=_batch_score_replied,
        single=Wire(route="/score", request=_score_request, replied=_score_replied, most=1),
        info="/info",
    ),
    "openrlhf": Wire(
        route="/get_reward",
        request=_openrlhf_request,
        replied=_openrlhf_replied,
        single=Wire(
            route="/get_reward", request=_openrlhf_request, replied=_openrlhf_replied, most=1
        ),
    ),
    "nemo_gym": Wire(route="/verify", request=_nemo_gym_request, replied=_nemo_gym_replied, most=1),
}
"""Every wire form by its name."""
