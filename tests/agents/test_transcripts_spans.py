"""Spans of tracers: their order, missing contents, and what is told like a call and is none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.agents.transcripts import Transcript, otel, read_transcript
from assay.agents.transcripts.rows import recorded_rows
from assay.errors import GraderError
from assay.eval.rows.grading import lacks_answer, unanswered
from assay.graders import ToolCorrectnessGrader
from assay.graders.spec import GraderSpec
from assay.graders.tool_calls import observed_calls
from assay.scoring.json_safe import Json
from assay.types import Submission, Trace
from assay.types.trace import SubagentStep
from tests.agents.test_transcripts_elsewhere import (
    OF_CALL,
    OF_END,
    OF_USER,
    Fields,
    said,
    span,
    spans,
    value,
)
from tests.agents.transcripts import calls, missing, notes, outline, turns, whole
from tests.each import each
from tests.graded_traces import checked, graded


def run_of(*listed: Fields) -> Transcript:
    """The run that some spans tell of."""
    return read_transcript(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [*listed]}]}]}))


@each(
    "sdk, otlp, error",
    [
        ({"status_code": "ERROR", "description": "429"}, {"code": 2, "message": "429"}, "429"),
        ({"status_code": "ERROR"}, {"code": "STATUS_CODE_ERROR"}, "it failed"),
        ({"status_code": "OK", "description": "y"}, {"code": 1, "message": "y"}, ""),
    ],
)
def test_a_span_is_the_same_in_either_form(sdk: Json, otlp: Json, error: str) -> None:
    lines: Fields = {
        "context": {"trace_id": "0xaa", "span_id": "0x1"}, "parent_id": "0x2", "name": "chat m",
        "start_time": "2001-09-09T01:46:41.500Z", "end_time": "2001-09-09T01:46:42Z",
        "attributes": {"n": 7}, "events": [{"name": "e", "attributes": {"k": "v"}}, {}],
        "status": sdk,
    }  # fmt: skip
    request: Fields = {
        "traceId": "AA", "spanId": "1", "parentSpanId": "2", "name": "chat m",
        "startTimeUnixNano": "1000000001500000000", "endTimeUnixNano": 1000000002000000000,
        "attributes": [{"key": "n", "value": {"intValue": "7"}}],
        "events": [{"name": "e", "attributes": [{"key": "k", "value": {"stringValue": "v"}}]}, {}],
        "status": otlp,
    }  # fmt: skip
    expected = otel.Span(
        trace="aa", id="1", parent="2", name="chat m", start=1_000_000_001.5, end=1_000_000_002.0,
        attributes={"n": 7}, events=(("e", {"k": "v"}), ("", {})), error=error,
    )  # fmt: skip
    assert [*otel.spans_of(lines), otel.otlp_span(request)] == [expected] * 2
    silent = otel.Span(trace="", id="", parent="", name="", start=0.0, end=0.0, attributes={})
    odd: Fields = {"start_time": "noon", "startTimeUnixNano": "noon"}
    assert [*otel.spans_of({"context": {}, **odd}), otel.otlp_span(odd)] == [silent] * 2


def test_a_run_of_spans_is_told_whole() -> None:
    thought: Fields = {"type": "reasoning", "content": "hm"}
    terse: Json = [{"type": "text", "content": "Be terse."}]
    model = span(
        "2", "1", 1, "chat", request__model="m", response__model="m-1",
        response__finish_reasons=["tool_calls"], usage__input_tokens=10, usage__output_tokens=5,
        usage__cache_read__input_tokens=4, system_instructions=json.dumps(terse),
        input__messages=json.dumps([OF_USER]),
        output__messages=json.dumps([said("assistant", thought), OF_CALL]),
    )  # fmt: skip
    failed = span("3", "1", 2, "execute_tool", tool__call__arguments='{"command": "ls"}')
    failed |= {"name": "execute_tool bash", "status": {"code": 2, "message": "no"}}
    outer = span("1", "", 0, "invoke_agent", agent__name="sums")
    read = run_of(model, failed, {**outer, "status": {"code": 2, "message": "out of credit"}})
    call: Json = {"id": "c", "name": "bash", "kind": "execute", "arguments": {"command": "ls"}}
    usage: Json = {"prompt_tokens": 10, "completion_tokens": 5, "cached_tokens": 4,
                   "llm_call_count": 1}  # fmt: skip
    system: Json = {"role": "system", "content": "Be terse."}
    at = "2001-09-09T01:46:{}.000+00:00".format
    assert read.trace.to_dict() == whole(
        "otel",
        [
            {"type": "step", "messages": [system]},
            {"type": "step", "source": "user", "ended_at": at(42),
             "messages": [{"role": "user", "content": "fix it"}]},
            {"type": "agent", "reasoning": "hm", "tool_calls": [call], "model": "m-1",
             "finish_reason": "tool_calls", "usage": usage, "ended_at": at(42)},
            {"type": "tool", "call": call, "ended_at": at(43),
             "result": {"id": "c", "content": "no", "is_error": True}},
            {"type": "step", "error": "out of credit"},
        ],
        {"agent": "sums", "model": "m-1"}, (15, None, 3.0), status="error",
    )  # fmt: skip


def test_messages_in_the_words_of_every_tracer() -> None:
    told: list[Json] = [
        {"role": "developer", "content": "Be terse."},
        said("user", {"type": "input_text", "text": "fix"}, {"type": "text", "content": " it"},
             {"type": "hologram"}),
        {**said("assistant", {"type": "thinking", "text": "hm"},
                {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "ls"}},
                {"type": "server_tool_call", "id": "b", "name": "look", "arguments": '{"n": 1}'}),
         "tool_calls": [{"id": "d", "function": {"name": "ls", "arguments": "{}"}}, {"id": "e"}]},
        said("tool", {"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True},
             {"type": "server_tool_call_response", "id": "b",
              "result": ["é", float("nan")]}),
        {"role": "tool", "tool_call_id": "d", "content": "d.py"},
        {**said("tool", {"type": "text", "text": "e.py"}), "id": "e"},
        {"role": "narrator"},
    ]  # fmt: skip
    read = run_of(
        span("m", "", 1, "chat", input__messages=json.dumps(told),
             output__messages=json.dumps([said("assistant", {"type": "output_text", "text": "."})]))
    )  # fmt: skip
    assert outline(read) == [
        ("system", "Be terse."), ("user", "fix it"), ("agent", ["bash", "look", "ls", ""]),
        ("bash", "no"), ("look", '["é", "nan"]'), ("ls", "d.py"), ("", "e.py"), ("agent", "."),
    ]  # fmt: skip
    assert [turn.reasoning for turn in turns(read)] == ["hm", None]
    assert [
        (tool.call.id, tool.call.arguments, tool.result and tool.result.is_error)
        for tool in calls(read)
    ] == [
        ("a", {"command": "ls"}, True),
        ("b", {"n": 1}, False),
        ("d", {}, False),
        ("e", {}, False),
    ]
    assert missing(read) == "a message of an unknown role"
    assert notes(read).split("; ") == [
        "a number is not finite", "a part of type 'hologram'", "a tool call without a name",
        missing(read),
    ]  # fmt: skip
    assert "broken JSON" in missing(run_of(span("m", "", 1, "chat", input__messages="[{")))


def test_what_the_outermost_span_says_is_the_answer_of_a_run_without_models() -> None:
    says: Fields = {"output__messages": json.dumps([OF_END])}
    tool, inner = tool_span(2, "bash"), span("2", "1", 2, "invoke_agent", **says)
    for outer, answer, status in ((says, "fixed", "completed"), ({}, None, None)):
        trace = run_of(inner, tool, span("1", "", 0, "invoke_agent", **outer)).trace
        assert (trace.content, trace.status) == (answer, status)


def tool_span(start: int, name: str, **about: Json) -> Fields:
    """A span of a tool, as tracers write it that keep no contents."""
    return span(f"t{start}", "1", start, "execute_tool", tool__name=name, **about)


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=12, unique_by=lambda t: t))
def test_spans_of_any_order_are_told_by_their_beginnings(begun: list[tuple[int, bool]]) -> None:
    listed = [
        span(f"m{start}", "1", start, "chat", request__model="m")
        if is_model
        else tool_span(start, f"t{start:02}")
        for start, is_model in begun
    ]
    expected = [
        "agent" if is_model else f"t{start:02}"
        for start, is_model in sorted(begun, key=lambda each: (each[0], not each[1]))
    ]
    if begun:
        assert [name for name, _ in outline(run_of(*listed))] == expected


def without_contents(*tools: Fields) -> Trace:
    """A run of some tools and two calls of a model, whose tracer keeps no contents."""
    used: Fields = {"request__model": "m", "usage__input_tokens": 5, "usage__output_tokens": 5}
    models = [span(f"m{start}", "1", start, "chat", **used) for start in (1, 40)]
    return run_of(*models, *tools, span("1", "", 0, "invoke_agent")).trace


def test_a_tracer_without_contents_leaves_the_calls_to_be_graded() -> None:
    trace = without_contents(tool_span(2, "read_file"), tool_span(3, "bash"), tool_span(4, "todo"))
    expected = ["read_file", "bash", "todo"]
    called = graded(ToolCorrectnessGrader, trace, expected=expected, match="name", ordered=True)
    assert called.value == 1.0
    limits: dict[str, Any] = {"max_tool_calls": 3, "max_tokens": 20, "max_seconds": 60}
    checks = {**limits, "require_tools": [{"kind": "execute"}], "forbid_tools": [{"name": "rm"}]}
    assert checked(trace, **checks).value == 1.0
    few = {"max_tool_calls": {"execute": 1, "read": 1, "other": 1}}
    assert checked(trace, **few).value == 1.0
    assert checked(trace, max_tool_calls=2).value == 0.0


@each(
    "options",
    [
        {"require_tools": [{"path_glob": "src/*"}]},
        {"forbid_tools": [{"path_glob": "tests/*"}]},
        {"forbid_tools": [{"kind": "write"}]},
        {"max_tool_calls": {"write": 0}},
    ],
)
def test_what_rests_on_contents_that_are_not_told_is_an_error(options: dict[str, Any]) -> None:
    for tool in ("bash", "write_file", "todo"):
        with pytest.raises(GraderError, match="do not tell what was said"):
            checked(without_contents(tool_span(2, tool)), **options)


def test_a_tracer_that_says_a_call_had_no_arguments_keeps_contents() -> None:
    trace = run_of(tool_span(2, "todo", tool__call__arguments="{}")).trace
    assert checked(trace, require_tools=[{"name": "todo", "args": {}}]).value == 1.0
    assert checked(trace, require_tools=[{"name": "find", "args": {"q": 1}}]).value == 0.0


def test_attack_a_tool_of_an_unknown_name_where_no_contents_are_told() -> None:
    trace = without_contents(tool_span(2, "frobnicate"), tool_span(3, "frobnicate"))
    limit = {"max_tool_calls": {"write": 1}}
    assert checked(trace, **limit).value == 0.0


def test_a_row_without_contents_is_graded_for_its_conduct_alone(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(spans(contents=False)))
    (row,) = recorded_rows(str(tmp_path))
    assert isinstance(row, dict)
    assert row["answer"] is None
    submission = Submission(trace=Trace.from_dict(cast("dict[str, Json]", row["trace"])))
    conduct = GraderSpec(type="tool_correctness", options={"expected": ["execute"]})
    words = GraderSpec(type="contains", options={"substring": "x"})
    assert not lacks_answer([conduct], submission)
    assert lacks_answer([conduct, words], submission)
    assert "do not tell what was said" in (unanswered(submission).content or "")


# What pydantic-ai tells of what is no call of a tool, in its older form and in that of today.
NO_CALLS: list[Fields] = [
    {"name": "running output function", "operation": ""},
    {"logfire.msg": "running output function: final_result", "operation": "execute_tool"},
    {"pydantic_ai.tool.deferral.name": "ApprovalRequired", "operation": "execute_tool"},
]


def beside(told: Fields, **about: Json) -> Fields:
    """A span with attributes beside those of the conventions."""
    operation = str(told["operation"])
    made = span("o", "1", 3, operation, tool__name="final_result", **about)
    made["name"] = told.get("name", operation)
    extra: list[Json] = [{"key": k, "value": value(v)} for k, v in told.items() if "." in k]
    made["attributes"] = [*cast("list[Json]", made["attributes"]), *extra]
    return made


@each("told", NO_CALLS)
def test_output_functions_and_deferred_calls_of_pydantic_ai_are_no_tool_calls(
    told: Fields,
) -> None:
    trace = without_contents(tool_span(2, "bash"), beside(told, tool__call__id="f"))
    assert [call.call.name for call in observed_calls(trace)] == ["bash"]

    called: Fields = {"type": "tool_call", "id": "f", "name": "final_result", "arguments": {}}
    conversation = span(
        "m", "1", 2, "chat", request__model="m",
        input__messages=json.dumps([OF_USER]),
        output__messages=json.dumps([said("assistant", called)]),
    )  # fmt: skip
    trace = run_of(conversation, beside(told, tool__call__id="f")).trace
    assert observed_calls(trace) == []
    assert len(observed_calls(run_of(conversation).trace)) == 1

    # Also in what a helper says.
    work = {"input__messages": "[]", "output__messages": json.dumps([OF_CALL])}
    read = run_of(span("w", "1", 1, "chat", **work), conversation, beside(told, tool__call__id="f"))
    (helper,) = [step for step in read.trace if isinstance(step, SubagentStep)]
    inside = outline(replace(read, trace=helper.subagent))
    assert inside == [("user", "fix it"), ("agent", [])]


def test_a_deferred_call_that_is_made_later_is_a_call() -> None:
    read = spans(results=False)
    cast("Any", read)["resourceSpans"][0]["scopeSpans"][0]["spans"].append(
        beside(NO_CALLS[2], tool__call__id="c")
    )
    trace = read_transcript(json.dumps(read)).trace
    assert [call.call.name for call in observed_calls(trace)] == ["bash"]


def test_attack_negative_usage_in_spans_keeps_no_budget_and_makes_no_error() -> None:
    used: Fields = {"request__model": "m", "usage__output_tokens": 5}
    models = [span(f"m{n}", "1", n, "chat", **used, usage__input_tokens=-5 * n) for n in (1, 2)]
    trace = run_of(*models, tool_span(3, "bash")).trace
    score = checked(trace, max_tokens=100, max_tool_calls=1)
    assert score.value == 0.5


def test_spans_tell_what_tools_were_given_and_gave_by_names_of_today_and_of_yesterday() -> None:
    told: Fields = {"tool__call__id": "c", "tool__call__result": "a.py"}
    now = run_of(tool_span(2, "bash", **told, tool__call__arguments='{"command": "ls"}'))
    older = tool_span(2, "bash", tool__call__id="c")
    cast("list[Json]", older["attributes"]).extend(
        {"key": key, "value": value(said)}
        for key, said in (("tool_arguments", '{"command": "ls"}'), ("tool_response", "a.py"))
    )
    for read in (now, run_of(older)):
        assert calls(read)[0].call.arguments == {"command": "ls"}
        assert outline(read)[-1] == ("bash", "a.py")


def test_usage_of_spans_has_older_names_and_a_failed_tool_is_known_to_have_failed() -> None:
    called: Fields = {"type": "tool_call", "id": "c", "name": "bash", "arguments": {}}
    failed: Fields = {"type": "tool_call_response", "id": "c", "response": "no", "is_error": True}
    asked = [OF_USER, said("assistant", called), said("tool", failed)]
    used: Fields = {"usage__prompt_tokens": 10, "usage__completion_tokens": 5}
    read = run_of(
        span(
            "m", "", 1, "chat", **used, input__messages=json.dumps(asked),
            output__messages=json.dumps([said("assistant", {"type": "text", "content": "Oh."})]),
        )
    )  # fmt: skip
    assert read.totals.tokens == 15
    assert [call.result and call.result.is_error for call in calls(read)] == [True]
