"""``item`` and ``sample`` of a submission: OpenAI's two namespaces over our parts of one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping

from assay.graders.openai.template import Scope
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.types.thread import StringThread
from assay.types.trace import Trace

__all__ = ["MAX_NESTING", "is_sampled", "sample_of", "scope_of"]

MAX_NESTING = 200
"""Depth of JSON from which an answer is not read as JSON."""


def scope_of(
    *,
    answer: str | None = None,
    question: str | None = None,
    expected: Json = None,
    thread: StringThread | None = None,
    trace: Trace | None = None,
    metadata: Mapping[str, Json] | None = None,
) -> Scope:
    """The namespaces of a submission.

    The item is the row's field ``item``. A row without one is an item itself: its metadata, with
    ``question`` and ``expected`` beside them.

    The sample is made of the answer (or, without one, of what the assistant said last), and of
    what was recorded beside it in the row's field ``sample``: its tool calls, its model. What the
    recording says of the text does not count. Tool calls are those of the trace where it has any.
    """
    known = dict(metadata or {})
    item = known.get("item")
    if not isinstance(item, dict):
        item = {name: value for name, value in known.items() if name != "sample"}
        for name, value in (("question", question), ("expected", expected)):
            if value is not None:
                item.setdefault(name, value)
    recorded = known.get("sample")
    if answer is None and thread is not None:
        answer = thread.completion()
    calls = (_tool_calls(trace) if trace is not None else None) or None
    return Scope(item, sample_of(answer, recorded if isinstance(recorded, dict) else {}, calls))


def sample_of(
    answer: str | None,
    recorded: Mapping[str, Json] | None = None,
    tool_calls: list[Json] | None = None,
) -> dict[str, Json]:
    """The namespace ``sample`` of one answer.

    Args:
        answer: What the model said; None where nothing is known.
        recorded: What else was recorded of it: model, usage, ``output_tools``, ``output_audio``.
        tool_calls: The calls it made, in the form of chat completions; those recorded by default.

    Returns:
        ``output_tools`` and what was recorded; with an answer also ``output_text``, ``choices``
        and, if it is JSON, ``output_json``.
    """
    sample = dict(recorded or {})
    for name in ("output_text", "output_json", "choices"):
        sample.pop(name, None)
    said = sample.get("output_tools")
    calls = tool_calls if tool_calls is not None else said if isinstance(said, list) else []
    sample["output_tools"] = calls
    if answer is None:
        return sample
    sample["output_text"] = answer
    message: dict[str, Json] = {"role": "assistant", "content": answer}
    if calls:
        message["tool_calls"] = calls
    finish = sample.get("finish_reason")
    choice: dict[str, Json] = {"index": 0, "message": message, "finish_reason": finish or "stop"}
    sample["choices"] = [choice]
    with contextlib.suppress(NotJsonError):  # not JSON: then the name is not there
        sample["output_json"] = decode_json(answer, max_depth=MAX_NESTING)
    return sample


def is_sampled(sample: Mapping[str, Json]) -> bool:
    """Whether there is anything of the model's in a sample: a text, even an empty one, or more."""
    said = isinstance(sample.get("output_text"), str)
    return said or bool(sample.get("output_tools") or sample.get("output_audio"))


def _tool_calls(trace: Trace) -> list[Json]:
    """The calls of a trajectory as ``choices[0].message.tool_calls`` has them."""
    from assay.graders.tool_calls import observed_calls

    return [
        {
            "id": seen.call.id,
            "type": "function",
            "function": {
                "name": seen.call.raw_name or seen.call.name,
                "arguments": json.dumps(dict(seen.call.arguments)),
            },
        }
        for seen in observed_calls(trace)
    ]
