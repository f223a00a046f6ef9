"""assay's own form: ``/v1/grade`` and ``/v1/info``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from assay.errors import InputError
from assay.graders.endpoints.forms.form import (
    Asked,
    Item,
    Server,
    Span,
    WireForm,
    all_bad,
    bad,
    cut,
    malformed,
    reason_in,
    remote_error,
    scored,
    turns_of,
)
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, json_safe, plain, record_parameters
from assay.scoring.results import Assurance, assurance_from
from assay.types import codec
from assay.types.codec import Problem, ShapeError
from assay.types.submission import Submission

_MOST_FLAGS, _MOST_FLAG = 20, 100

_SCHEMA: dict[str, Json] = {
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


def _encode_request(items: Sequence[Item]) -> Json:
    return {"items": [_encode_item(item, submission) for item, submission in items]}


def _encode_item(item: str, submission: Submission) -> dict[str, Json]:
    parts: dict[str, Json] = {
        "messages": None if submission.thread is None else turns_of(submission),
        "answer": submission.answer,
        "question": submission.question,
        "expected": submission.expected,
        "metadata": plain(submission.metadata) or None,
    }
    return {"id": item, **{name: part for name, part in parts.items() if part is not None}}


def _decode_answer(items: Sequence[Item], reply: Json, span: Span) -> list[Graded]:
    results = reply.get("results") if isinstance(reply, dict) else None
    if not isinstance(results, list):
        return all_bad(items, "the reply has no list 'results'")
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
            graded.append(_decode_result(item, entries[0], span))
        else:
            said = f"{len(entries)} results" if entries else f"no result{aside}"
            graded.append(bad(item, f"the reply has {said} for this item"))
    return graded


def _is_id(value: Json) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _decode_result(item: str, result: Mapping[str, Json], span: Span) -> Graded:
    if wrong := _fault_of(result):
        return bad(item, wrong)
    error, status, reason = result.get("error"), result.get("status", "scored"), reason_in(result)
    details = result.get("details")
    evidence = record_parameters(details) if isinstance(details, dict) else {}
    if error is not None or status == "error":
        return remote_error(item, error, evidence)
    if status == "skipped":
        return Graded(id=item, status="skipped", reason=reason, details=evidence)
    if status != "scored":
        return bad(item, f"its status is {json_safe(status)!r:.60}")
    flags = result.get("flags")
    given = flags[:_MOST_FLAGS] if isinstance(flags, list) else []
    named = tuple(cut(str(flag), _MOST_FLAG) for flag in given)
    # It is apart from what it judges, but may know of something weaker behind it, such as a model.
    word = assurance_from(result.get("assurance")) or "separate"
    graded = scored(item, result.get("score"), span, reason=reason, details=evidence, flags=named)
    return graded if graded.assurance is None else replace(graded, assurance=word)


_TOLD: dict[str, object] = {
    "reason": str | None,
    "details": dict[str, object] | None,
    "assurance": Assurance | None,
    "flags": list[str] | None,
}
"""The fields of a result that say why."""


def _fault_of(result: Mapping[str, Json]) -> str:
    """Which of the fields that say why is of a wrong type, and what it must be; empty if none."""
    problems: list[Problem] = []
    for name, kind in _TOLD.items():
        codec.read(kind, result.get(name), (name,), problems)
    return f"its {problems[0].field!r}: {problems[0].message}" if problems else ""


def _decode_request(body: Json, server: Server) -> list[Asked]:
    items = body.get("items") if isinstance(body, dict) else None
    if not isinstance(items, list):
        raise malformed("the body must be an object with a list 'items'")
    asked: list[Asked] = []
    problems: list[Problem] = []
    seen: set[str] = set()
    for number, item in enumerate(items):
        name = item.get("id") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not _is_id(name):
            problems.append(
                Problem(("items", number, "id"), "an item needs an id: text or a number")
            )
            continue
        if str(name) in seen:
            problems.append(Problem(("items", number, "id"), "another item has this id"))
        seen.add(str(name))
        try:
            asked.append((str(name), server.read_item(item, number + 1)))
        except InputError as error:
            asked.append((str(name), error.message))
    if problems:
        raise ShapeError(problems)
    return asked


def _encode_answer(body: Json, graded: Sequence[Graded], server: Server) -> Json:
    """The outcomes; ids are given back as they were written."""
    del server
    items = cast("dict[str, list[dict[str, Json]]]", body)["items"]
    names = [item["id"] for item in items]
    return {"results": [_encode_result(*pair) for pair in zip(names, graded, strict=True)]}


def _encode_result(name: Json, outcome: Graded) -> dict[str, Json]:
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


FORM = WireForm(
    route="/v1/grade",
    title="Grade a batch of items.",
    schema=_SCHEMA,
    encode_request=_encode_request,
    decode_request=_decode_request,
    encode_answer=_encode_answer,
    decode_answer=_decode_answer,
    info="/v1/info",
)
