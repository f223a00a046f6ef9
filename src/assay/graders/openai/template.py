"""Templates: ``{{ item.answer }}`` and ``{{ sample.output_json.people[0].name }}``.

Only ``item`` and ``sample`` can be named, and only keys and indices of their JSON are followed:
no attribute, call or expression is. What is put in is never read as a template again.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from assay.errors import InputError
from assay.graders.judges.template_syntax import tags_in
from assay.graders.openai.rewards import FaultError, SubmissionFaultError
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.types.thread import StringThread
from assay.types.trace import Trace

MAX_TEMPLATE = 1_000_000
"""Characters of a template."""

MAX_RENDERED = 8_000_000
"""Characters of what a template becomes; a sample that makes it longer scores 0."""

_REMEMBERED = 10_000
"""A longer template is read anew each time, so that the cache stays small."""

_NAMESPACES = ("item", "sample")
_WRITTEN_BY_THE_MODEL = frozenset({"output_text", "output_json", "output_tools", "choices"})
_STEP = re.compile(
    r"""\.(?P<name>[^\s.\[\]{}"']+)|\[(?P<index>[0-9]{1,9})\]|\[(?P<quoted>"[^"]*"|'[^']*')\]"""
)


@dataclass(frozen=True, slots=True)
class TemplateScope:
    """What a template may name."""

    item: dict[str, Json]
    # What the model said: ``output_text``, ``output_json`` if that is JSON, ``output_tools``,
    # ``choices``, and what else was recorded.
    sample: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Reference:
    """One ``{{ ... }}``."""

    text: str
    namespace: str
    steps: tuple[str | int, ...]

    @property
    def is_by_the_model(self) -> bool:
        """Whether what it finds, and whether it finds anything, is up to the model."""
        first = self.steps[0] if self.steps else ""
        return self.namespace == "sample" and (not first or first in _WRITTEN_BY_THE_MODEL)

    def find(self, scope: TemplateScope) -> Json:
        """What it names."""
        here: Json = scope.item if self.namespace == "item" else scope.sample
        for number, step in enumerate(self.steps):
            try:
                here = _followed(here, step)
            except LookupError:
                raise self._missing(scope, number) from None
        return here

    def render(self, scope: TemplateScope) -> str:
        """What it names: a text as it is, all else as JSON."""
        found = self.find(scope)
        if isinstance(found, str):
            return found
        try:
            return json.dumps(found, ensure_ascii=False)
        except RecursionError as error:
            fault = SubmissionFaultError if self.is_by_the_model else FaultError
            message = f"{{{{ {self.text} }}}} is nested too deeply to be written"
            raise fault(message, flag="invalid_variable_error") from error

    def _missing(self, scope: TemplateScope, number: int) -> FaultError:
        message = f"{{{{ {self.text} }}}} is not there: {_path(self, number)} is missing"
        # Without any answer nothing is known of the model; an answer that lacks a part does.
        said = isinstance(scope.sample.get("output_text"), str)
        fault = SubmissionFaultError if self.is_by_the_model and said else FaultError
        return fault(message, flag="invalid_variable_error")


def _followed(here: Json, step: str | int) -> Json:
    if isinstance(here, dict) and isinstance(step, str):
        return here[step]
    if isinstance(here, list) and isinstance(step, int):
        return here[step]
    raise LookupError(step)


def _path(reference: Reference, number: int) -> str:
    path = reference.namespace
    for step in reference.steps[: number + 1]:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return path


@dataclass(frozen=True, slots=True)
class TextTemplate:
    """A text with references in it."""

    parts: tuple[str | Reference, ...]

    @property
    def references(self) -> tuple[Reference, ...]:
        """The references, in order."""
        return tuple(part for part in self.parts if isinstance(part, Reference))

    @property
    def is_by_the_model(self) -> bool:
        """Whether the model has a say in what it becomes."""
        return any(reference.is_by_the_model for reference in self.references)

    def render(self, scope: TemplateScope) -> str:
        """The text with every reference replaced: texts as they are, all else as JSON."""
        done: list[str] = []
        length = {False: 0, True: 0}  # of what the author wrote, and of what the model did
        for part in self.parts:
            text = part if isinstance(part, str) else part.render(scope)
            length[isinstance(part, Reference) and part.is_by_the_model] += len(text)
            if sum(length.values()) > MAX_RENDERED:
                fault = FaultError if length[False] > MAX_RENDERED else SubmissionFaultError
                message = f"a template becomes longer than {MAX_RENDERED:,} characters"
                raise fault(message, flag="other_error", outcome="too_long")
            done.append(text)
        return "".join(done)


def parse_template(text: str) -> TextTemplate:
    """Read a template."""
    return _remembered(text) if len(text) <= _REMEMBERED else _parsed(text)


def _parsed(text: str) -> TextTemplate:
    if len(text) > MAX_TEMPLATE:
        raise InputError(f"is longer than {MAX_TEMPLATE:,} characters")
    parts: list[str | Reference] = []
    place = 0
    for body, start, end in tags_in(text):
        if start > place:
            parts.append(text[place:start])
        parts.append(_reference(body, start + 1))
        place = end
    if place < len(text):
        parts.append(text[place:])
    return TextTemplate(tuple(parts))


_remembered = functools.lru_cache(maxsize=1_024)(_parsed)


def _reference(text: str, column: int) -> Reference:
    namespace = next((n for n in _NAMESPACES if text.startswith(n)), "")
    steps: list[str | int] = []
    place = len(namespace)
    while namespace and place < len(text):
        step = _STEP.match(text, place)
        if step is None:
            break
        name, index, quoted = step["name"], step["index"], step["quoted"]
        steps.append(int(index) if index else name or quoted[1:-1])
        place = step.end()
    if not namespace or place < len(text):
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        raise InputError(
            f"{{{{ {shown} }}}} at character {column} names nothing",
            hint="item or sample, then .name or [number], such as {{ item.answer }}",
        )
    return Reference(text, namespace, tuple(steps))


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
) -> TemplateScope:
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
    return TemplateScope(
        item, sample_of(answer, recorded if isinstance(recorded, dict) else {}, calls)
    )


def sample_of(
    answer: str | None,
    recorded: Mapping[str, Json] | None = None,
    tool_calls: list[Json] | None = None,
) -> dict[str, Json]:
    """The namespace ``sample`` of one answer."""
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
