"""pydantic-evals' own tests of its evaluators over spans and values, by assay's graders."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias, cast

from pydantic import BaseModel

from assay.agents.transcripts import read_transcript
from assay.graders import (
    Grader,
    SubScore,
    ToolCorrectnessGrader,
    TraceGrader,
    contains,
    json_match,
    json_schema,
)
from assay.scoring.json_safe import Json
from assay.types.trace import Trace
from bench.proof.material import Case, Difference, Source
from bench.proof.their_tests import Inexpressible, StandIns, Whatever
from bench.proof.their_tests import cases as cases_of

ABOUT = (
    "tool_correctness, trace and comparisons say what pydantic-evals' tests of evaluators expect"
)
SOURCE = Source("pydantic/pydantic-ai", "4fda38988f2939fa6ea9cdefcf120693e10ef491", "MIT")
_OTHER = "It is a test of how evaluators are named, asked and written down, not of a verdict."
_ATTEMPTS = "A failed call is a call that was made, and does nothing that was expected."
_SPANS = "Whatever says that it is a call of a tool is one, however it names itself or the tool."
_NO_TRACE = "Without a trace a grader is skipped, and a file of no spans is no run. Neither is a 0."
AGREE, OF = 43, 80
DIFFERENCES = (
    Difference("test_evaluator_common:test_llm_judge*", "by design", _OTHER),
    Difference("test_evaluator_common:test_g_eval*", "by design", _OTHER),
    Difference("*:test_evaluation_name*", "by design", _OTHER),
    Difference("*:test_failed_attempts*", "by design", _ATTEMPTS),
    Difference("*:test_max_tool_calls_counts_failed*", "by design", _ATTEMPTS),
    Difference("*:test_tool_spans_ignore_unrelated*", "by design", _SPANS),
    Difference("*:test_tool_spans_skip_non_string*", "by design", _SPANS),
    Difference("*", "by design", _NO_TRACE, said="*RuntimeError skipped*"),
    Difference("*", "by design", _NO_TRACE, said="*InputError no run*"),
    Difference(
        "*:test_argument_correctness_include_content_false:*",
        "by design",
        "Where the tracer keeps no arguments, a demand on them is an error and not a 0.",
    ),
    Difference(
        "*",
        "by design",
        "Answers are texts or JSON: a value or a class that only Python has cannot be one.",
        said="needs a * Python*",
    ),
    Difference(
        "*:test_span_query_evaluator:*", "by design", "Spans that are no calls are not graded."
    ),
    Difference(
        "*",
        "assay",
        "The arguments of the first, last or n-th call of a tool: here one of its calls must have "
        "them, whichever.",
        said="needs the arguments of one*",
    ),
    Difference(
        "*", "assay", "There is no limit on requests to models.", said="needs *.MaxModelRequests"
    ),
)


def cases(directory: Path) -> Iterator[Case]:
    """Each test of the evaluators that read spans, and of those that compare values."""
    for name in ("test_agentic_evaluators", "test_evaluator_common"):
        file = directory / "tests/evals" / f"{name}.py"
        if file.is_file():
            yield from cases_of(file, _STAND_INS)


@dataclass(kw_only=True)
class _Span:
    """A span as their tests make one, and as OTLP writes it."""

    name: str
    trace_id: int
    span_id: int
    parent_span_id: int | None
    start_timestamp: datetime
    end_timestamp: datetime
    attributes: Mapping[str, object]
    status: str = "unset"

    def otlp(self) -> dict[str, object]:
        return {
            "name": self.name,
            "traceId": f"{self.trace_id:032x}",
            "spanId": f"{self.span_id:016x}",
            "parentSpanId": "" if self.parent_span_id is None else f"{self.parent_span_id:016x}",
            "startTimeUnixNano": str(int(self.start_timestamp.timestamp() * 1e9)),
            "endTimeUnixNano": str(int(self.end_timestamp.timestamp() * 1e9)),
            "attributes": [
                {"key": key, "value": _otlp_value(value)} for key, value in self.attributes.items()
            ],
            "status": {"code": 2} if self.status == "error" else {},
        }


def _otlp_value(value: object) -> dict[str, object]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


class _NoSpans(Exception):  # noqa: N818 - their name stands for it
    """Why a run has no spans."""


@dataclass
class _Tree:
    """The spans of one run."""

    spans: list[_Span] = field(default_factory=list[_Span])

    def add_spans(self, spans: Sequence[_Span]) -> None:
        self.spans += spans

    def trace(self) -> Trace:
        written = [span.otlp() for span in self.spans]
        told = {"resourceSpans": [{"scopeSpans": [{"spans": written}]}]}
        return read_transcript(json.dumps(told)).trace


class _Context:
    """What an evaluator is given; some tests make one of their own from it."""

    output: object
    expected_output: object
    duration: float
    _span_tree: _Tree | _NoSpans

    def __init__(self, **told: object) -> None:
        self.__dict__.update(told)

    def __class_getitem__(cls, of: object) -> type[_Context]:
        return cls

    @property
    def trace(self) -> Trace:
        if isinstance(self._span_tree, _NoSpans):
            return Trace(extra={"observed": False})
        return self._span_tree.trace()


@dataclass
class _Verdict:
    value: object
    reason: object = field(default_factory=Whatever, compare=False)


def _plain(value: object) -> object:
    """A value as JSON has it: an object of a model or a dataclass is its fields."""
    if isinstance(value, BaseModel):
        return value.model_dump()
    return asdict(cast("Any", value)) if is_dataclass(value) else value


def _written(value: object) -> str:
    try:
        return json.dumps(_plain(value))
    except TypeError:
        raise Inexpressible("a value of Python") from None


_Verdicts: TypeAlias = Callable[[Mapping[str, Any], _Context], object]
"""What an evaluator with some options says of a run."""


@dataclass(frozen=True, slots=True)
class _Evaluator:
    """One of their evaluators, with the options that a test gave it."""

    told: Mapping[str, Any]
    verdict: _Verdicts

    def evaluate(self, context: _Context) -> object:
        return self.verdict(self.told, context)

    def get_default_evaluation_name(self) -> str:
        raise Inexpressible("the name of an evaluator")


def _evaluator(verdict: _Verdicts, *, has_reason: bool = True) -> Callable[..., _Evaluator]:
    """What stands for a class of theirs, whose verdicts may come with a reason."""

    def reasoned(told: Mapping[str, Any], context: _Context) -> object:
        return _Verdict(verdict(told, context))

    def made(**told: object) -> _Evaluator:
        return _Evaluator(told, reasoned if has_reason else verdict)

    return made


def _value(grader: type[Grader], trace: Trace, **told: object) -> float:
    async def graded() -> SubScore:
        return await grader.grade(**cast("Any", {"trace": trace, **told}))

    with ThreadPoolExecutor(1) as apart:  # their test may itself be awaited
        score = apart.submit(asyncio.run, graded()).result()
    if score.value is None:
        raise RuntimeError(f"skipped: {score.reason}")
    return score.value


def _uses(context: _Context, tools: Sequence[str], **told: object) -> float:
    """How far the calls are those of some tools; that there are none is a limit of 0."""
    if not tools:
        return _value(TraceGrader, context.trace, max_tool_calls=0)
    return _value(ToolCorrectnessGrader, context.trace, match="name", expected=tools, **told)


def _tool_correctness(told: Mapping[str, Any], context: _Context) -> bool:
    measure = "recall" if told.get("allow_extra") else "f1"
    return _uses(context, told["expected_tools"], measure=measure) == 1.0


def _trajectory_match(told: Mapping[str, Any], context: _Context) -> float:
    order = told.get("order", "in_order")
    value = _uses(context, told["expected_trajectory"], ordered=order != "any_order")
    return float(value == 1.0) if order == "exact" else value


def _argument_correctness(told: Mapping[str, Any], context: _Context) -> bool:
    if "occurrence" in told:
        raise Inexpressible("the arguments of one among several calls of a tool")
    call = {
        "name": told["tool_name"],
        "args": told["expected_arguments"],
        "args_mode": "superset" if told.get("match_mode", "subset") == "subset" else "exact",
    }
    return _value(TraceGrader, context.trace, require_tools=[call]) == 1.0


def _max_tool_calls(told: Mapping[str, Any], context: _Context) -> bool:
    if not told.get("include_failed", True):
        raise Inexpressible("a limit on calls that succeeded")
    return _value(TraceGrader, context.trace, max_tool_calls=told["max_calls"]) == 1.0


def _max_duration(told: Mapping[str, Any], context: _Context) -> bool:
    most = told["seconds"]
    seconds = most.total_seconds() if isinstance(most, timedelta) else most
    trace = Trace(content="Done.", extra={"usage": {"seconds": context.duration}})
    return _value(TraceGrader, trace, max_seconds=seconds) == 1.0


def _equals(told: Mapping[str, Any], context: _Context) -> bool:
    return json_match(_written(context.output), told["value"], strict=True) == 1.0


def _equals_expected(told: Mapping[str, Any], context: _Context) -> object:
    if context.expected_output is None:
        return {}  # there is nothing to compare: a grader that is not declared
    return _equals({**told, "value": context.expected_output}, context)


def _contains(told: Mapping[str, Any], context: _Context) -> bool:
    value, output = told["value"], _plain(context.output)
    if told.get("as_strings") or (isinstance(value, str) and isinstance(output, str)):
        is_exact = told.get("case_sensitive", True)
        return contains(str(output), str(value), case_sensitive=is_exact) == 1.0
    held = _held(cast("Json", value), of_object=not isinstance(output, list))
    return json_schema(_written(output), held, strict=True) == 1.0


def _held(value: Json, *, of_object: bool) -> dict[str, Json]:
    """The schema of what holds a value: as its keys with their values, a key of it, or a part."""
    if isinstance(value, dict):
        equal: dict[str, Json] = {key: {"const": part} for key, part in value.items()}
        return {"required": [*value], "properties": equal}
    return {"required": [value]} if of_object else {"contains": {"const": value}}


def _is_instance(told: Mapping[str, Any], context: _Context) -> bool:
    kind = _KINDS.get(told["type_name"])
    if kind is None:
        raise Inexpressible("a class of Python")
    return json_schema(_written(context.output), {"type": kind}, strict=True) == 1.0


_KINDS = {"str": "string", "int": "integer", "float": "number", "list": "array", "dict": "object"}


@contextmanager
def _try_import() -> Generator[Callable[[], bool]]:
    yield lambda: True


def _snapshot(value: object) -> object:
    return value


_PLAIN = {
    "Contains": _evaluator(_contains),
    "Equals": _evaluator(_equals, has_reason=False),
    "EqualsExpected": _evaluator(_equals_expected, has_reason=False),
    "IsInstance": _evaluator(_is_instance),
    "MaxDuration": _evaluator(_max_duration, has_reason=False),
}
_STAND_INS = StandIns(
    {
        "pydantic_evals.evaluators": {
            "ArgumentCorrectness": _evaluator(_argument_correctness),
            "EvaluationReason": _Verdict,
            "EvaluatorContext": _Context,
            "MaxToolCalls": _evaluator(_max_tool_calls),
            "ToolCorrectness": _evaluator(_tool_correctness),
            "TrajectoryMatch": _evaluator(_trajectory_match),
        },
        "pydantic_evals.evaluators.common": _PLAIN,
        "pydantic_evals.otel": {"SpanTreeRecordingError": _NoSpans},
        "pydantic_evals.otel.span_tree": {"SpanNode": _Span, "SpanTree": _Tree},
        "pydantic_ai": {},
        "logfire": {},
        "pytest_mock": {},
        "tests.conftest": {"try_import": _try_import},
        "tests._inline_snapshot": {"snapshot": _snapshot},
    },
    package="tests.evals",
)
