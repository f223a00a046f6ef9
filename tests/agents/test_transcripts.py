"""Transcripts of other agents: what each format means, its traps, and hostile ones."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.agents.transcripts import Transcript, detect, read_transcript
from assay.agents.transcripts import document as documents
from assay.agents.transcripts import transcript as turns_module
from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.tasks.blocks import TraceFormat
from assay.types.trace import AgentStep, SubagentStep, Trace, tool_kind
from tests.agents.transcripts import calls, lines, missing, notes, outline, turns, whole
from tests.each import each
from tests.graded_traces import checked

INIT: Json = {
    "type": "system",
    "subtype": "init",
    "session_id": "s",
    "model": "m",
    "cwd": "/home/me/work",
}
RESULT: dict[str, Json] = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "all done",
    "total_cost_usd": 0.25,
    "duration_ms": 1500,
    "usage": {
        "input_tokens": 10,
        "cache_creation_input_tokens": 200,
        "cache_read_input_tokens": 3000,
        "output_tokens": 111,
    },
}


def block(kind: str, **fields: Json) -> dict[str, Json]:
    """A content block."""
    return {"type": kind, **fields}


def use(call_id: str, name: str, **arguments: Json) -> dict[str, Json]:
    """A content block that calls a tool."""
    return block("tool_use", id=call_id, name=name, input=arguments)


def said(*blocks: Json, message: str = "", parent: str | None = None, **more: Json) -> Json:
    """A line of the assistant."""
    usage: Json = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 4}
    fields: dict[str, Json] = {"content": list(blocks), "usage": usage, "model": "m", **more}
    if message:
        fields["id"] = message
    return {"type": "assistant", "message": fields, "parent_tool_use_id": parent}


def gave(call_id: str, content: Json, *, is_error: bool = False, **line: Json) -> Json:
    """A line with a tool's result."""
    result = block("tool_result", tool_use_id=call_id, content=content, is_error=is_error)
    return {"type": "user", "message": {"role": "user", "content": [result]}, **line}


def claude(*told: Json) -> Transcript:
    """Read a stream of Claude Code."""
    return read_transcript(lines(*told), "claude-code")


# Claude Code


def test_the_blocks_of_a_message_are_one_turn_and_its_usage_counts_once() -> None:
    read = claude(
        INIT,
        said(block("thinking", thinking="hm"), message="a"),
        said(block("text", text="I look."), message="a"),
        said(use("t1", "Read", file_path="/home/me/work/a.py"), message="a"),
        gave("t1", [{"type": "text", "text": "x = 1"}]),
        said(use("t2", "Bash", command="pytest"), message="a", stop_reason="tool_use"),
        gave("t2", "Exit code 1", is_error=True),
        said(block("text", text="all done"), message="b"),
        {"type": "user", "message": {"content": [block("text", text="thanks")]}},
        RESULT,
    )
    first, last = turns(read)
    assert (first.reasoning, first.content, len(first.tool_calls)) == ("hm", "I look.", 2)
    assert (last.reasoning, last.content, len(last.tool_calls)) == (None, "all done", 0)
    usage = first.usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (15, None)
    assert [call.call.kind for call in calls(read)] == ["read", "execute"]
    assert [call.result and call.result.is_error for call in calls(read)] == [False, True]
    assert outline(read)[1] == ("Read", "x = 1")
    assert (read.totals.tokens, read.totals.cost_usd, read.totals.seconds) == (3321, 0.25, 1.5)
    assert read.trace.content == "all done"
    assert (read.trace.status, read.trace.stop_reason) == ("completed", "done")
    assert read.trace.extra["session"] == {"session_id": "s", "model": "m", "cwd": "/home/me/work"}
    assert first.finish_reason == "tool_use"
    assert outline(read)[-1] == ("user", "thanks")
    assert [step.step_id for step in read.trace.steps] == [1, 2, 3, 4, 5]
    assert missing(read) == ""


def test_a_line_that_says_a_key_twice_is_not_read_and_named() -> None:
    """Whoever writes it would choose what each reader sees."""
    twice = '{"type": "result", "result": "bad", "result": "good", "total_cost_usd": 0}\n'
    read = read_transcript(lines(INIT, said(use("t1", "Bash", command="x"), message="a")) + twice)
    assert read.trace.content != "good"
    assert missing(read) == "a line was not read: the key 'result' stands twice in one object"


def test_a_stream_that_was_cut_off_has_unknown_totals() -> None:
    whole = lines(INIT, said(use("t1", "Bash", command="x"), message="a"), gave("t1", "y"))
    read = read_transcript(whole + '{"type": "assistant", "mess')
    assert (read.totals.tokens, read.totals.cost_usd) == (None, None)
    assert len(calls(read)) == 1
    assert missing(read) == "a line is broken JSON"
    assert "no result line" in notes(read)


@each(
    "changed, cost",
    [
        ({"total_cost_usd": None, "cost_usd": 0.5}, None),
        ({"cost_usd": 0.5}, 0.25),
        ({"total_cost_usd": float("nan")}, None),
        ({"total_cost_usd": -1}, None),
        ({"total_cost_usd": True}, None),
        ({"total_cost_usd": "0.1"}, None),
        ({"total_cost_usd": 0}, 0.0),
    ],
)
def test_what_a_cost_may_be(changed: dict[str, Json], cost: float | None) -> None:
    assert claude({**RESULT, **changed}).totals.cost_usd == cost
    older = {key: item for key, item in RESULT.items() if key != "total_cost_usd"}
    assert claude({**older, "cost_usd": 0.5}).totals.cost_usd == 0.5


@each(
    "usage",
    [
        None,
        {},
        7,
        {"input_tokens": -1, "output_tokens": 1},
        {"input_tokens": 1, "output_tokens": True},
        {"input_tokens": 1, "output_tokens": 1, "cache_read_input_tokens": "many"},
        {"input_tokens": 10**30, "output_tokens": 1},
        {"input_tokens": float("inf"), "output_tokens": 1},
    ],
)
def test_attack_a_result_line_whose_usage_makes_a_budget_an_error(usage: Json) -> None:
    assert claude({**RESULT, "usage": usage}).totals.tokens is None
    changed = {**RESULT, "usage": usage, "total_cost_usd": -1, "duration_ms": "x"}
    read = claude(said(use("c", "Bash", command="make")), RESULT, changed)
    assert set(read.totals.refused) == {"tokens", "cost_usd", "seconds"}
    budgets = {"max_tokens": 10**9, "max_cost_usd": 10**9, "max_seconds": 10**9}
    assert checked(read.trace, **budgets, max_tool_calls=9).value == 0.25


def test_a_success_may_be_an_error() -> None:
    read = claude(
        said(use("t", "Bash", command="x")),
        gave("t", ""),
        {**RESULT, "is_error": True, "result": "API Error: overloaded"},
    )
    assert (read.trace.status, read.trace.stop_reason) == ("error", None)
    assert read.trace.error == "success: API Error: overloaded"
    assert read.failure == ""
    zero: Json = {"input_tokens": 0, "output_tokens": 0}  # the model never answered
    read = claude({**RESULT, "is_error": True, "result": "Invalid API key", "usage": zero})
    assert read.failure == "success: Invalid API key"


@each("subtype, stop", [("error_max_turns", "max_steps"), ("error_during_execution", None)])
def test_how_a_stream_ends(subtype: str, stop: str | None) -> None:
    read = claude(said(block("text", text="so far")), {"type": "result", "subtype": subtype})
    assert (read.trace.status, read.trace.stop_reason) == ("error", stop)
    assert (read.trace.content, read.trace.error) == ("so far", f"{subtype}: so far")
    silent = claude({"type": "result", "subtype": subtype})
    assert silent.trace.error == f"{subtype}: no reason given"
    told = claude({"type": "result", "subtype": subtype, "errors": ["no credit", "left"]})
    assert told.trace.error == f"{subtype}: no credit\nleft"


def test_hooks_are_private() -> None:
    hook: Json = {"type": "system", "subtype": "hook_response", "stdout": "a secret"}
    read = claude(INIT, hook, RESULT)
    assert "a secret" not in json.dumps(read.trace.to_dict())
    assert notes(read) == ""


def test_a_subagent_is_embedded_and_counts() -> None:
    models: Json = {
        "big": {"inputTokens": 10, "outputTokens": 111, "cacheReadInputTokens": 3200},
        "small": {"inputTokens": 1000, "outputTokens": 500},
    }
    read = claude(
        said(use("task", "Task", subagent_type="finder", prompt="find it"), message="a"),
        said(use("inner", "Grep", pattern="x"), message="b", parent="task"),
        gave("inner", "a.py", parent_tool_use_id="task"),
        gave("task", "found", tool_use_result={"totalToolUseCount": 1}),
        {**RESULT, "modelUsage": models},
    )
    inner = read.trace.steps[2]
    assert isinstance(inner, SubagentStep)
    assert inner.name == "finder"
    inside = outline(replace(read, trace=inner.subagent))
    assert inside == [("agent", ["Grep"]), ("Grep", "a.py")]
    assert [step.call.name for step in calls(read)] == ["Task", "Grep"]
    assert read.totals.tokens == 4821
    assert missing(read) == ""


def test_hiding_work_in_a_background_subagent() -> None:
    read = claude(said(use("task", "Task", prompt="do it"), message="a"), gave("task", ""), RESULT)
    assert missing(read) == "the work of a subagent is not in the stream"
    idle = claude(
        said(use("task", "Task", prompt="do it"), message="a"),
        gave("task", "", tool_use_result={"totalToolUseCount": 0}),
        RESULT,
    )
    assert missing(idle) == ""


@each("parent", ["ghost", "loop"])
def test_subagents_in_a_circle_or_from_nowhere_are_kept_once(parent: str) -> None:
    read = claude(
        said(use("loop", "Bash", command="x"), message="b", parent=parent),
        said(use("ghost2", "Bash", command="y"), message="c", parent="loop"),
        RESULT,
    )
    assert sorted(step.call.id for step in calls(read)) == ["ghost2", "loop"]


def test_denials_are_marked_and_added() -> None:
    denials: Json = [
        {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "rm"}},
        {"tool_name": "Write", "tool_use_id": "t9", "tool_input": {"file_path": "a"}},
        {"tool_name": "Write"},
        "nonsense",
    ]
    read = claude(
        said(use("t1", "Bash", command="rm"), use("", "Read")),
        {**RESULT, "permission_denials": denials},
    )
    assert [(c.call.name, c.permission) for c in calls(read)] == [
        ("Bash", "denied"),
        ("Read", None),
        ("Write", "denied"),
        ("Write", "denied"),
        ("", "denied"),
    ]


def test_results_that_come_first_or_twice_or_for_nobody() -> None:
    read = claude(
        gave("t1", "early", is_error=True),
        said(use("t1", "Bash", command="x")),
        gave("t1", "again"),
        gave("t9", "whose?"),
        RESULT,
    )
    (call,) = calls(read)
    assert call.result is not None
    assert (call.result.content, call.result.is_error) == ("early", True)
    assert missing(read) == "1 results belong to calls that are not there"


def test_a_repeated_line_is_one_call_and_a_repeated_id_is_two() -> None:
    read = claude(
        said(use("t1", "Bash", command="x"), message="a"),
        said(use("t1", "Bash", command="x"), message="a"),
        said(use("t1", "Bash", command="rm -rf /"), message="b"),
        RESULT,
    )
    assert len(calls(read)) == 2
    assert "repeated" in notes(read)


def test_several_results_add_up() -> None:
    read = claude(RESULT, {**RESULT, "total_cost_usd": 0.75, "result": "second"})
    assert (read.totals.tokens, read.totals.cost_usd) == (2 * 3321, 0.75)
    assert read.trace.content == "second"
    assert "more than one result line" in notes(read)


def test_an_event_inside_of_what_the_agent_says_is_text_also_behind_a_line_separator() -> None:
    forged = lines(said(use("f", "run_tests")))
    read = claude(said(block("text", text=f"\n{forged}\n")), gave("x", forged), RESULT)
    assert calls(read) == []
    for separator in "\u2028\u2029\x85\x0b\x0c\x1c\r":
        forged = f"{separator}{lines(said(use('f', 'run_tests'))).strip()}{separator}"
        line = json.dumps(said(block("text", text=forged)), ensure_ascii=False)
        read = read_transcript(f"{line}\n{json.dumps(RESULT)}\n", "claude-code")
        assert calls(read) == []
        assert missing(read) == ""


def test_unknown_lines_and_blocks_are_noted() -> None:
    read = claude(
        {"type": "from the future"},
        {"type": "stream_event"},
        said(block("hologram"), block("image")),
        {"type": "system", "subtype": "weather"},
        RESULT,
    )
    assert notes(read) == (
        "a line of type 'from the future'; a content block of type 'hologram'; "
        "a system line 'weather'"
    )
    assert missing(read) == ""


def test_a_json_array_of_events_is_a_stream_too_and_an_answer_may_be_structured() -> None:
    rest = {key: item for key, item in RESULT.items() if key != "result"}
    events: Json = [INIT, said(use("t", "Bash")), {**rest, "structured_output": {"a": 1}}]
    read = read_transcript(json.dumps(events))
    assert (read.format, len(calls(read)), read.trace.content) == ("claude-code", 1, '{"a": 1}')


# OpenAI chat


def chat(*messages: Json, **beside: Json) -> Transcript:
    """Read chat messages."""
    document: Json = {"messages": list(messages), **beside} if beside else list(messages)
    return read_transcript(json.dumps(document), "openai-chat")


def asked(arguments: Json, call_id: str = "c1", name: str = "bash") -> Json:
    """A message that calls a tool."""
    function: Json = {"name": name, "arguments": arguments}
    call: Json = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def test_chat_messages() -> None:
    read = chat(
        {"role": "system", "content": "Be terse."},
        {"role": "user", "content": [{"type": "text", "text": "Run it."}]},
        asked('{"command": "ls"}'),
        {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
        {"role": "assistant", "content": [{"type": "text", "text": "a.py"}], "refusal": None},
        usage={"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 11},
    )
    (call,) = calls(read)
    assert (call.call.arguments, call.call.kind) == ({"command": "ls"}, "execute")
    assert outline(read)[3] == ("bash", "a.py")
    assert (read.totals.tokens, read.totals.cost_usd) == (11, None)
    assert read.trace.content == "a.py"


@each(
    "arguments, expected",
    [
        ('{"path": "tests/a.py"', {"_": '{"path": "tests/a.py"'}),
        ('["tests/a.py"]', {"_": ["tests/a.py"]}),
        ("", {}),
        (None, {}),
        ({"path": "a"}, {"path": "a"}),
        (5, {"_": 5}),
        ('{"a": NaN}', {"a": "nan"}),
        ("[" * 100_000, {"_": "[" * 100_000}),  # beyond reading
    ],
)
def test_arguments_are_json_in_a_text_or_not(arguments: Json, expected: Json) -> None:
    (call,) = calls(chat(asked(arguments)))
    assert call.call.arguments == expected


def test_a_refusal_is_the_answer() -> None:
    read = chat(asked("{}"), {"role": "assistant", "refusal": "I will not."})
    assert (read.trace.content, read.totals.tokens) == ("I will not.", None)


@each(
    "message",
    [
        {"role": "tool", "tool_call_id": "nobody", "content": "x"},
        {"role": "function", "name": "nobody", "content": "x"},
        {"role": "assistant", "function_call": {"name": "ls", "arguments": "{}"}},
        {"role": "assistant", "tool_calls": {"0": {}}},
        {"role": "narrator"},
    ],
)
def test_messages_that_tell_of_calls_elsewhere(message: Json) -> None:
    assert missing(chat({"role": "user", "content": "x"}, message))


# ATIF


def atif(*steps: Json, **fields: Json) -> Transcript:
    """Read a trajectory."""
    document: dict[str, Json] = {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "a", "version": "1"},
        "steps": list(steps),
        **fields,
    }
    return read_transcript(json.dumps(document), "atif")


def turn(number: int = 1, **fields: Json) -> Json:
    """A step of the agent."""
    metrics: Json = {"prompt_tokens": 100, "completion_tokens": 10, "cost_usd": 0.5}
    return {"step_id": number, "source": "agent", "message": "", "metrics": metrics, **fields}


def doing(call_id: str, name: str, **arguments: Json) -> dict[str, Json]:
    """A step's fields that call a tool and show its result."""
    result: Json = {"source_call_id": call_id, "content": "ok"}
    return {
        "tool_calls": [{"tool_call_id": call_id, "function_name": name, "arguments": arguments}],
        "observation": {"results": [result]},
    }


def test_a_trajectory() -> None:
    sample: dict[str, Json] = {
        "prompt_token_ids": [1],
        "completion_token_ids": [2, 3],
        "logprobs": [-0.5],
    }
    used: dict[str, Json] = {"prompt_tokens": 100, "completion_tokens": 10, "cached_tokens": 4}
    late: Json = {"results": [{"source_call_id": "d", "content": "late"}]}
    calling = doing("c", "bash", command="ls")
    cast("list[Json]", calling["tool_calls"]).append({"tool_call_id": "d", "function_name": "read"})
    read = atif(
        {"step_id": 1, "source": "user", "message": "do", "timestamp": "2026-01-01T00:00:00Z"},
        turn(2, **calling, reasoning_content="hm", model_name="m", llm_call_count=1,
             metrics={**used, **sample, "cost_usd": 0.25}),
        {"step_id": 3, "source": "system", "message": "wait", "observation": late},
        turn(4, message="done", metrics={**used, "cost_usd": 0.5},
             timestamp="2026-01-01T00:00:05Z"),
        agent={"name": "a", "model_name": "m"},
    )  # fmt: skip
    bash: Json = {"id": "c", "name": "bash", "kind": "execute", "arguments": {"command": "ls"}}
    reads: Json = {"id": "d", "name": "read", "kind": "read"}
    assert read.trace.to_dict() == whole(
        "atif",
        [
            {"type": "step", "source": "user", "started_at": "2026-01-01T00:00:00Z",
             "messages": [{"role": "user", "content": "do"}]},
            {"type": "agent", "reasoning": "hm", "model": "m", "tool_calls": [bash, reads],
             "usage": {**used, "cost_usd": 0.25, "llm_call_count": 1},
             "sample": {"prompt_token_ids": [1], "output_token_ids": [2, 3],
                        "output_logprobs": [-0.5]}},
            {"type": "tool", "call": bash, "result": {"id": "c", "content": "ok"}},
            {"type": "tool", "call": reads, "result": {"id": "d", "content": "late"}},
            {"type": "step", "messages": [{"role": "system", "content": "wait"}]},
            {"type": "agent", "content": "done", "usage": {**used, "cost_usd": 0.5},
             "started_at": "2026-01-01T00:00:05Z"},
        ],
        {"session_id": "s", "agent": "a", "model": "m"}, (220, 0.75, 5.0),
        status="completed", content="done",
    )  # fmt: skip


def test_a_subagent_is_called_by_its_trajectory_its_session_or_its_number() -> None:
    named: list[dict[str, Json]] = [
        {"trajectory_id": "a", "session_id": "x"},
        {"session_id": "b"},
        {},
    ]
    inner: list[Json] = [{**one, "steps": [turn(1)]} for one in (*named, {"session_id": "b"})]
    read = atif(turn(1), subagent_trajectories=inner)
    names = [step.name for step in read.trace.steps if isinstance(step, SubagentStep)]
    assert names == ["a", "b", "subagent 2", "subagent 3"]


def test_a_newer_minor_version_is_read_and_another_major_is_not() -> None:
    for minor in range(9):
        assert notes(atif(turn(), schema_version=f"ATIF-v1.{minor}")) == ""
    assert "newer than ATIF-v1.8" in notes(atif(turn(), schema_version="ATIF-v1.42"))
    for version in ("ATIF-v2.0", "ATIF-vx", "ATIF-v1", "ATIF-v1.7\n"):
        with pytest.raises(InputError, match="cannot read a trajectory of version"):
            atif(turn(), schema_version=version)


def test_copied_context_and_steps_without_a_model_count_for_nothing() -> None:
    read = atif(turn(1, **doing("c", "bash"), is_copied_context=True), turn(2, message="x"))
    assert (calls(read), read.totals.tokens) == ([], 110)
    assert len(read.trace.steps) == 3
    assert atif(turn(1, metrics=None, llm_call_count=0), turn(2)).totals.tokens == 110
    assert atif(turn(1, metrics=None), turn(2)).totals.tokens is None


@each("total, expected", [(5, 110), (900, 910), (-1, 110)])
def test_final_metrics_cannot_be_less_than_the_steps(total: int, expected: int) -> None:
    final: Json = {"total_prompt_tokens": total, "total_completion_tokens": 10}
    assert atif(turn(), final_metrics=final).totals.tokens == expected
    read = atif(turn(), final_metrics={"total_prompt_tokens": -1, "total_cost_usd": -1})
    assert (read.totals.tokens, read.totals.cost_usd, read.totals.refused) == (110, 0.5, ())


def test_embedded_subagents_count_and_absent_ones_are_missed() -> None:
    inner: Json = {
        "schema_version": "ATIF-v1.7",
        "trajectory_id": "in",
        "agent": {},
        "steps": [turn(1, **doing("c", "grep"))],
    }
    reference: Json = {
        "results": [{"source_call_id": None, "subagent_trajectory_ref": [{"trajectory_id": "in"}]}]
    }
    read = atif(turn(1, observation=reference), turn(2), subagent_trajectories=[inner])
    assert [type(step) for step in read.trace.steps] == [AgentStep, SubagentStep, AgentStep]
    assert [step.name for step in read.trace.steps if isinstance(step, SubagentStep)] == ["in"]
    assert (len(calls(read)), read.totals.tokens) == (1, 330)
    assert missing(read) == ""
    assert missing(atif(turn(1, observation=reference)))
    assert missing(atif(turn(1), continued_trajectory_ref="next.json"))


def test_fields_that_the_format_forbids_are_noted() -> None:
    assert notes(atif(turn(1, reward=1.0), score=1.0)) == (
        "unknown field 'score' of a trajectory; unknown field 'reward' of a step"
    )


# All of them


@each(
    "kind, names",
    [
        ("read", ["Read", "NotebookRead"]),
        ("write", ["Write", "Edit", "MultiEdit", "NotebookEdit", "write_file"]),
        ("write", ["str_replace_based_edit_tool", "replace_string_in_file", "replace_in_file"]),
        ("execute", ["Bash", "BashOutput", "run_shell_command", "run_in_terminal"]),
        ("search", ["Glob", "Grep", "LS", "list_dir"]),
        ("fetch", ["WebFetch", "WebSearch"]),
        ("other", ["Task", "run_tests", "mcp__files__read", ""]),
    ],
)
def test_kinds_of_tools(kind: str, names: list[str]) -> None:
    assert {name: tool_kind(name) for name in names} == dict.fromkeys(names, kind)


@each(
    "text, expected",
    [
        (lines(INIT), "claude-code"),
        (lines(RESULT), "claude-code"),
        ('not JSON\n{"type": "hello"}\n' + lines(INIT), "claude-code"),
        ("\ufeff" + lines({"role": "user", "content": "x"}), "openai-chat"),
        (json.dumps({"messages": [{"role": "user"}]}, indent=2), "openai-chat"),
        (json.dumps({"schema_version": "ATIF-v1.2", "steps": []}, indent=2), "atif"),
        ("", None),
        ("hello", None),
        ('{"type": "agent", "content": "a step"}', None),
        ('{"messages": []}', None),
        ("[" * 10_000, None),
        ('{"a": ' + "9" * 5_000 + "}", None),
    ],
)
def test_formats_are_recognised_by_content(text: str, expected: str | None) -> None:
    assert detect(text) == expected


def test_what_is_no_transcript_is_refused() -> None:
    with pytest.raises(InputError, match=r"not a transcript: .*a line is broken JSON"):
        read_transcript('[{"role": "user"')
    with pytest.raises(InputError, match="not a transcript: no JSON; it begins 'I did'"):
        read_transcript("I did\n")
    with pytest.raises(InputError, match="the transcript is claude-code, not atif"):
        read_transcript(lines(INIT), "atif")
    whole: list[Json] = [
        {"schema_version": "ATIF-v1.2", "steps": []},
        {"messages": [{"role": "user", "content": "x"}]},
    ]
    for one in whole:
        with pytest.raises(InputError, match="more than one run"):
            read_transcript(lines(one, one))
    with pytest.raises(InputError, match="list of 'steps'"):
        read_transcript('{"schema_version": "ATIF-v1.2"}')


def test_a_declared_format_is_not_changed_by_another_that_comes_first() -> None:
    text = lines({"role": "assistant", "content": "x"}, INIT, RESULT)
    assert read_transcript(text, "claude-code").format == "claude-code"


def test_a_line_beyond_all_measure_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST_LINE", 1_000)
    long = said(block("text", text="x" * 2_000), use("t", "Bash"))
    read = claude(INIT, long, RESULT)
    assert calls(read) == []
    assert missing(read) == "a line of more than 1000 characters was not read"


def test_more_steps_than_are_read_is_a_missing_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "MOST_STEPS", 10)
    many = [said(*[use(f"{n}-{k}", "Bash", n=n) for k in range(20)]) for n in range(20)]
    read = claude(*many, RESULT)
    assert len(read.trace.steps) == 10
    assert missing(read) == "only the first 10 steps were read"
    many_calls: list[Json] = [{"function_name": "x"}] * 50
    assert missing(atif(turn(1, tool_calls=many_calls)))
    assert missing(chat(*[asked("{}")] * 20))


def test_outputs_are_shortened_and_images_dropped() -> None:
    read = claude(
        said(use("a", "Bash"), use("b", "Read"), use("c", "Read")),
        gave("a", "x" * 300_000),
        gave("b", [{"type": "image", "source": {"data": "A" * 1000}}]),
        gave("c", {"odd": True}),
        RESULT,
    )
    results = [call.result for call in calls(read)]
    assert all(result is not None for result in results)
    assert len(str(results[0] and results[0].content)) < 101_000
    assert results[1] is not None
    assert results[1].content == [{"type": "image", "text": None}]


def test_lone_surrogates_do_not_break_the_record() -> None:
    line = '{"type":"assistant","message":{"content":[{"type":"text","text":"\\ud800"}]}}\n'
    read = read_transcript(line + lines(RESULT))
    json.dumps(read.trace.to_dict(), ensure_ascii=False).encode()


_TEXTS = st.sampled_from(
    ["", "t1", "a", "Bash", "{", "[1]", '{"a": 1}', "error_x", "\ud800", "NaN"]
)
_WORDS = (
    "system assistant user result stream_event init tool_use tool_result text thinking function "
    "tool ATIF-v1.7 agent success"
)
_FIELDS = (
    "type subtype role message content id name input usage result tool_use_id text source "
    "parent_tool_use_id is_error permission_denials modelUsage tool_calls function arguments "
    "tool_call_id function_call messages schema_version steps metrics observation results "
    "final_metrics subagent_trajectories subagent_trajectory_ref source_call_id timestamp "
    "is_copied_context total_cost_usd input_tokens output_tokens tool_use_result"
)
_KINDS, _KEYS = st.sampled_from(_WORDS.split()), st.sampled_from(_FIELDS.split())
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS | _KINDS
_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=12,
)
_ENTRIES = st.dictionaries(_KEYS, _JSON, max_size=5)


def _line(entry: dict[str, Json], shape: str, steps: list[dict[str, Json]]) -> Json:
    """An entry that is nearly an event, a message or a trajectory."""
    if shape == "event":
        return {**entry, "type": "assistant", "message": entry}
    if shape == "message":
        return {**entry, "role": "assistant"}
    if shape == "trajectory":
        inside: list[Json] = [{**step, "source": "agent"} for step in steps]
        return {**entry, "schema_version": "ATIF-v1.7", "steps": inside}
    return cast("Json", entry)


_SHAPES = st.sampled_from(["event", "message", "trajectory", ""])
_LINES = st.lists(st.builds(_line, _ENTRIES, _SHAPES, st.lists(_ENTRIES, max_size=2)), max_size=4)


@given(_LINES, st.booleans(), st.integers(0, 40))
def test_no_transcript_breaks_a_reader(entries: list[Json], whole: bool, cut: int) -> None:  # noqa: FBT001 - hypothesis gives it
    text = json.dumps(entries) if whole else lines(*entries)
    text = text[: len(text) - cut]
    try:
        read = read_transcript(text)
    except InputError:
        return
    written = read.trace.to_dict()
    json.dumps(written, allow_nan=False, ensure_ascii=False).encode()
    assert Trace.from_dict(written).to_dict() == written
    assert [step.step_id for step in read.trace.steps] == [*range(1, len(read.trace.steps) + 1)]
    assert read.totals.tokens is None or read.totals.tokens >= 0


@given(st.text())
def test_no_text_breaks_a_reader(text: str) -> None:
    for candidate in (text, f"{lines(RESULT)}{text}", f"[{text}]"):
        with suppress(InputError):
            read_transcript(candidate)


def test_the_page_names_every_format_that_a_harness_may_declare() -> None:
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `trace` |"))
    assert [name for name in get_args(TraceFormat) if f"`{name}`" not in row] == []
