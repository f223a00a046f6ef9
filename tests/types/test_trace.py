"""Trajectories: they grow step by step, are asked by two queries, and survive their JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.scoring import Json
from assay.types import (
    AgentStep,
    AnyStep,
    Citation,
    Step,
    SubagentStep,
    TaskCall,
    TokenSample,
    ToolCall,
    ToolResult,
    ToolStep,
    Trace,
    Usage,
)
from assay.types.codec import ShapeError
from assay.types.trace import StopReason, TraceStatus
from tests.each import each

TEXT = st.text(max_size=12)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
COUNTS = st.none() | st.integers(0, 10**6)
JSON_VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=3,
)
PAYLOADS = st.dictionaries(TEXT, JSON_VALUES, max_size=2)
OPTIONAL = st.none() | TEXT
COMMON = {
    "source": st.sampled_from(["user", "agent", "tool", "task", "subagent", "system"]),
    "messages": st.lists(JSON_VALUES, max_size=2).map(tuple),
    "error": OPTIONAL,
    "started_at": OPTIONAL,
    "extra": PAYLOADS,
}
CALLS = st.builds(
    ToolCall,
    name=TEXT,
    arguments=PAYLOADS,
    id=TEXT,
    kind=st.sampled_from([None, "read", "other"]),
    raw_name=OPTIONAL,
)
CITATIONS = st.builds(
    Citation, type=TEXT, text=TEXT, source=TEXT, title=OPTIONAL, start_index=COUNTS
)
AGENT = st.builds(
    AgentStep,
    content=OPTIONAL,
    reasoning=OPTIONAL,
    tool_calls=st.lists(CALLS, max_size=2).map(tuple),
    done=st.booleans(),
    refusal=OPTIONAL,
    citations=st.none() | st.lists(CITATIONS, max_size=2).map(tuple),
    usage=st.none() | st.builds(Usage, prompt_tokens=COUNTS, cost_usd=st.none() | FINITE),
    sample=st.none()
    | st.builds(
        TokenSample,
        output_token_ids=st.lists(st.integers(), max_size=2).map(tuple),
        output_logprobs=st.lists(FINITE, max_size=2).map(tuple),
    ),
    **COMMON,
)
TOOL = st.builds(
    ToolStep,
    call=CALLS,
    result=st.none() | st.builds(ToolResult, content=JSON_VALUES, is_error=st.booleans(), id=TEXT),
    permission=st.sampled_from([None, "allowed", "denied"]),
    **COMMON,
)
TASK = st.builds(
    Step,
    task_call=st.none()
    | st.builds(
        TaskCall,
        phase=st.sampled_from(["setup", "evaluate"]),
        name=TEXT,
        arguments=PAYLOADS,
        result=JSON_VALUES,
    ),
    **COMMON,
)


def _traces(steps: st.SearchStrategy[AnyStep]) -> st.SearchStrategy[Trace]:
    return st.builds(
        Trace,
        steps=st.lists(steps, max_size=3),
        status=st.sampled_from([None, "completed", "error", "cancelled"]),
        stop_reason=st.sampled_from([None, "done", "max_steps", "malformed_tool_call"]),
        content=OPTIONAL,
        extra=PAYLOADS,
        trace_id=OPTIONAL,
    )


PLAIN = st.one_of(TASK, AGENT, TOOL)
NESTED = st.builds(SubagentStep, subagent=_traces(PLAIN), name=TEXT, **COMMON)


@given(_traces(st.one_of(PLAIN, NESTED)))
def test_a_trace_survives_its_json_with_the_kind_of_every_step(trace: Trace) -> None:
    read = Trace.from_dict(json.loads(json.dumps(trace.to_dict(), allow_nan=False)))
    assert read == trace
    assert [type(step) for step in read] == [type(step) for step in trace]


def test_steps_are_numbered_and_stamped_as_they_are_recorded() -> None:
    trace = Trace()
    first = trace.record(AgentStep(content="hm", step_id=99))
    second = trace.record(Step(ended_at="2026-01-01T00:00:00Z"))
    assert [step.step_id for step in trace] == [1, 2]
    assert first is trace.steps[0]
    assert str(first.ended_at).endswith("+00:00")
    assert second.ended_at == "2026-01-01T00:00:00Z"
    assert len(trace) == 2


def _content(step: AnyStep) -> str | None:
    return step.content if isinstance(step, AgentStep) else None


def test_the_two_queries_and_the_newest_error() -> None:
    trace = Trace(steps=[AgentStep(content="a"), Step(), AgentStep(), AgentStep(content="")])
    assert trace.final(_content) == ""  # what is falsy is an answer; None is not
    assert trace.collect(_content) == ["a", ""]
    assert (Trace().final(_content), Trace().collect(_content), Trace().error) == (None, [], None)
    failed = Trace(steps=[Step(error="first"), Step(error="second"), AgentStep(content="on")])
    assert failed.error == "second"


def test_what_is_an_error_and_what_stopped_the_agent_short() -> None:
    statuses: list[TraceStatus | None] = [None, "completed", "cancelled", "error"]
    assert [status for status in statuses if Trace(status=status).is_error] == ["error"]
    short: list[StopReason | None] = ["max_steps", "length", "timeout"]
    reasons: list[StopReason | None] = [None, "done", "malformed_tool_call", *short]
    assert [reason for reason in reasons if Trace(stop_reason=reason).is_truncated] == short


@each(
    ("data", "field"),
    [
        ({"steps": [{"type": "agnet"}]}, "steps[0].type"),
        ({"steps": [{}]}, "steps[0].type"),
        ({"steps": [{"type": "tool"}]}, "steps[0].call"),
        ({"steps": [{"type": "agent", "contents": ""}]}, "steps[0].contents"),
        ({"status": "done"}, "status"),
        ({"steps": [{"type": "subagent", "subagent": {"status": 1}}]}, "steps[0].subagent.status"),
        ({"steps": [{"type": "agent", "usage": {"cost_usd": 10**400}}]}, "steps[0].usage.cost_usd"),
    ],
)
def test_a_malformed_trace_is_refused_with_its_place(data: dict[str, Json], field: str) -> None:
    with pytest.raises(ShapeError) as caught:
        Trace.from_dict(data)
    assert field in [problem.field for problem in caught.value.problems]


def test_a_trace_of_subagents_without_end_is_refused() -> None:
    data: dict[str, Json] = {}
    for _ in range(2_000):
        data = {"steps": [{"type": "subagent", "subagent": data}]}
    with pytest.raises(ShapeError, match="nested too deeply"):
        Trace.from_dict(data)
