"""Output items of a run as rows of a dataset, with the results that were recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from assay.errors import InputError, ScoreError
from assay.interop.openai_read import Found
from assay.scoring.json_safe import Json
from assay.scoring.results import finite_number

__all__ = ["Recorded", "Result", "read_item", "read_row"]

_TEXTS = ("output", "output_text", "output_json", "choices")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a grader over there made of a row.

    Attributes:
        name: The grader, as the result calls it.
        type: Its type, likewise.
        score: Its score; None where there is none.
        passed: Whether that was a pass; None where it is not said.
    """

    name: str
    type: str = ""
    score: float | None = None
    passed: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One row.

    Attributes:
        id: Its id over there.
        data: The row of the dataset, without the id.
        results: What was recorded.
    """

    id: str
    data: Mapping[str, Json]
    results: tuple[Result, ...] = ()

    def named(self, identity: str) -> Recorded:
        """The same row under another id."""
        return replace(self, id=identity)


def read_item(found: Found) -> Recorded:
    """Read an output item.

    Raises:
        InputError: For a malformed one, naming file and place.
    """
    item = found.data.get("datasource_item") or {}
    if not isinstance(item, dict):
        place = found.inside("datasource_item", {}).place
        raise InputError("expected an object", location=place)
    sample = found.data.get("sample") or {}
    if not isinstance(sample, dict):
        raise InputError("expected an object", location=found.inside("sample", {}).place)
    inner, said = item.get("item"), item.get("sample")
    if isinstance(inner, dict) and set(item) <= {"item", "sample"}:
        item = inner
        sample = sample or (said if isinstance(said, dict) else {})
    results = _results(found)
    verdicts = [result.passed for result in results]
    row = _row(item, sample)
    if verdicts and None not in verdicts:
        row["passed"] = all(verdicts)
    row["recorded"] = {r.name: {"score": r.score, "passed": r.passed} for r in results}
    if run := found.text("run_id"):
        row["run"] = run
    identity = found.data.get("id") or found.data.get("datasource_item_id")
    return Recorded(id=str(identity or found.place), data=row, results=results)


def read_row(found: Found, number: int) -> Recorded:
    """Read a row of a data source: ``item`` and, if it was sampled before, ``sample``."""
    item, sample = found.data.get("item"), found.data.get("sample")
    row = _row(item if isinstance(item, dict) else {}, sample if isinstance(sample, dict) else {})
    return Recorded(id=f"row {number}", data=row)


def _row(item: Mapping[str, Json], sample: Mapping[str, Json]) -> dict[str, Json]:
    answer, calls = _said(sample)
    kept = {name: value for name, value in sample.items() if name not in _TEXTS}
    if calls:
        kept["output_tools"] = calls
    row: dict[str, Json] = {"answer": answer, "item": dict(item)}
    if question := _question(sample):
        row["question"] = question
    if kept:
        row["sample"] = kept
    return row


def _said(sample: Mapping[str, Json]) -> tuple[str | None, Json]:
    """The text of a sample, and its tool calls; no text where nothing was sampled."""
    text = sample.get("output_text")
    output, choices = sample.get("output"), sample.get("choices")
    last: Json = None
    if isinstance(output, list) and output:
        last = output[-1]
    elif isinstance(choices, list) and choices and isinstance(choices[0], dict):
        last = choices[0].get("message")
    message = last if isinstance(last, dict) else {}
    calls = message.get("tool_calls") or sample.get("output_tools")
    if isinstance(text, str):
        return text, calls
    return (_text(message.get("content")) if message else None), calls


def _question(sample: Mapping[str, Json]) -> str:
    asked = sample.get("input")
    turns = [m for m in asked if isinstance(m, dict)] if isinstance(asked, list) else []
    said = [_text(turn.get("content")) for turn in turns if turn.get("role") == "user"]
    return said[-1] if said else ""


def _text(content: Json) -> str:
    """The text of a message: as it is, or its parts one after the other."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _results(found: Found) -> tuple[Result, ...]:
    listed = found.data.get("results") or []
    if not isinstance(listed, list):
        raise InputError("expected a list of results", location=found.inside("results", {}).place)
    results: list[Result] = []
    for place_in_list, result in enumerate(listed):
        place = found.inside(f"results[{place_in_list}]", {}).place
        name = result.get("name") if isinstance(result, dict) else None
        if not (isinstance(result, dict) and isinstance(name, str)):
            raise InputError("a result is an object with a 'name'", location=place)
        score, passed, kind = result.get("score"), result.get("passed"), result.get("type")
        try:
            number = None if score is None else finite_number(score, what="score")
        except ScoreError as error:
            raise InputError(error.message, location=place) from error
        results.append(
            Result(
                name=name,
                type=kind if isinstance(kind, str) else "",
                score=number,
                passed=passed if isinstance(passed, bool) else None,
            )
        )
    return tuple(results)
