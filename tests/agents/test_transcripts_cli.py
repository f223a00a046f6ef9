"""What Codex, OpenCode and Gemini CLI print, as traces."""

from __future__ import annotations

import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.agents.transcripts import Transcript, detect, read_transcript
from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.tasks.blocks import TraceFormat
from tests.agents.transcripts import calls, missing, notes, outline, turns
from tests.each import each


def read(expected: TraceFormat, *lines: Json) -> Transcript:
    return read_transcript("\n".join(map(json.dumps, lines)), expected)


# --- Codex ---------------------------------------------------------------------------------------


def item(kind: str, number: int = 1, *, event: str = "completed", **fields: Json) -> Json:
    about: dict[str, Json] = {"id": f"item_{number}", "type": kind, **fields}
    return {"type": f"item.{event}", "item": about}


def command(line: str, number: int = 1, *, event: str = "completed", **fields: Json) -> Json:
    told: dict[str, Json] = {"aggregated_output": "", "exit_code": 0, "status": "completed"}
    return item("command_execution", number, event=event, **{**told, "command": line, **fields})


THREAD: Json = {"type": "thread.started", "thread_id": "01a2"}
BEGUN: Json = {"type": "turn.started"}
ENDED: Json = {"type": "turn.completed", "usage": {"input_tokens": 90, "output_tokens": 10}}


def codex(*lines: Json) -> Transcript:
    return read("codex", THREAD, BEGUN, *lines)


def test_codex_a_turn_is_told_in_its_own_words() -> None:
    found = codex(
        item("reasoning", 0, text="Look first."),
        item("agent_message", 1, text="I look."),
        command("/bin/bash -lc 'ls -la'", 2, event="started", exit_code=None, status="in_progress"),
        command("/bin/bash -lc 'ls -la'", 2, aggregated_output="total 4\n", exit_code=3,
                status="failed"),
        item("agent_message", 3, text="Done."),
        ENDED,
    )  # fmt: skip

    assert found.format == "codex"
    assert [(turn.reasoning, turn.content) for turn in turns(found)] == [
        ("Look first.", "I look."),
        (None, "Done."),
    ]
    (call,) = calls(found)
    assert (call.call.name, call.call.raw_name, call.call.kind) == (
        "shell",
        "command_execution",
        "execute",
    )
    assert call.call.arguments == {"command": "ls -la"}
    assert turns(found)[0].tool_calls == (call.call,)
    assert call.result is not None
    assert (call.result.content, call.result.is_error) == ("total 4\n", True)
    assert call.extra == {"exit_code": 3}
    assert (found.trace.content, found.trace.status, found.totals.tokens) == (
        "Done.",
        "completed",
        100,
    )
    assert found.totals.cost_usd is None
    assert missing(found) == ""


@each(
    "told, line",
    [
        ("/bin/bash -lc 'ls'", "ls"),
        ('bash -c "a b"', "a b"),
        ("/bin/zsh -lc ls", "ls"),
        ("ls -la x", "ls -la x"),
        ("/bin/bash -lc 'it", "/bin/bash -lc 'it"),
    ],
)
def test_codex_the_shell_around_a_line_is_taken_off(told: str, line: str) -> None:
    (call,) = calls(codex(command(told), ENDED))

    assert call.call.arguments == {"command": line}


def test_codex_other_tools() -> None:
    found = codex(
        item("file_change", 1, changes=[{"path": "/w/a.py", "kind": "add"}], status="completed"),
        item("mcp_tool_call", 2, server="s", tool="look", arguments={"x": 1},
             result={"content": [{"type": "text", "text": "seen"}]}, status="completed"),
        item("mcp_tool_call", 3, server="s", tool="look", error={"message": "no"}, status="failed"),
        item("web_search", 6, query="how"),
        item("todo_list", 4, event="started", items=[{"text": "one", "completed": False}]),
        item("todo_list", 4, event="updated", items=[{"text": "one", "completed": True}]),
        command("/bin/bash -lc 'rm -rf /'", 5, status="declined", exit_code=None),
        ENDED,
    )  # fmt: skip

    told = {step.call.id: step for step in calls(found)}
    assert [step.call.name for step in calls(found)] == [
        "apply_patch", "look", "look", "web_search", "shell", "update_plan",
    ]  # fmt: skip
    assert told["1/item_6"].call.arguments == {"query": "how"}
    failed, declined = told["1/item_3"].result, told["1/item_5"]
    assert failed is not None
    assert (failed.content, failed.is_error) == ("no", True)
    assert declined.permission == "denied"
    seen = told["1/item_2"].result
    assert seen is not None
    assert seen.content == "seen"


def test_codex_a_session_that_was_resumed_is_one_work() -> None:
    found = codex(
        command("/bin/bash -lc ls"), ENDED, THREAD, BEGUN, command("/bin/bash -lc pwd"), ENDED
    )

    assert [step.call.id for step in calls(found)] == ["1/item_1", "2/item_1"]
    assert found.totals.tokens == 100  # which is of the whole session


# --- OpenCode ------------------------------------------------------------------------------------


def event(kind: str, message: str = "m1", **part: Json) -> Json:
    about: dict[str, Json] = {"messageID": message, **part}
    return {"type": kind, "sessionID": "ses_1", "timestamp": 1795394887588, "part": about}


def used(call_id: str = "c1", *, tool: str = "bash", **state: Json) -> Json:
    told: dict[str, Json] = {"status": "completed", "input": {"command": "ls"}, "output": "a\n"}
    return event("tool_use", tool=tool, callID=call_id, state={**told, **state})


def finish(reason: str = "stop", message: str = "m1", **more: Json) -> Json:
    tokens: Json = {"input": 90, "output": 10, "cache": {"read": 5, "write": 0}}
    return event("step_finish", message, **{"reason": reason, "tokens": tokens, "cost": 0, **more})


def opencode(*lines: Json) -> Transcript:
    return read("opencode", event("step_start"), *lines)


def test_opencode_a_call_has_the_model_s_own_id() -> None:
    found = opencode(
        event("text", text="I look."), used(title="ls"), finish("tool-calls"),
        event("text", "m2", text="Done."), finish("stop", "m2"),
    )  # fmt: skip

    (call,) = calls(found)
    assert (call.call.id, call.call.name, call.call.raw_name) == ("c1", "bash", None)
    assert call.extra == {"title": "ls"}
    assert [turn.content for turn in turns(found)] == ["I look.", "Done."]
    assert turns(found)[0].started_at == "2026-11-23T00:48:07.588+00:00"
    assert (found.trace.content, found.trace.status, found.trace.stop_reason) == (
        "Done.", "completed", "done",
    )  # fmt: skip
    assert (found.totals.tokens, found.totals.cost_usd) == (210, None)
    assert missing(found) == ""


def test_opencode_what_failed_and_what_was_denied() -> None:
    found = opencode(
        used("a", status="error", error="no such file"),
        used("b", status="error", error="The user rejected permission to use this tool"),
        finish(),
    )

    assert [step.permission for step in calls(found)] == [None, "denied"]
    assert all(step.result is not None and step.result.is_error for step in calls(found))


# --- Gemini CLI ----------------------------------------------------------------------------------


def told(kind: str, **fields: Json) -> Json:
    return {"type": kind, "timestamp": "2026-11-23T02:59:51.771Z", **fields}


INIT = told("init", session_id="s", model="m")
ASKED = told("message", role="user", content="Go.")


def piece(text: str) -> Json:
    return told("message", role="assistant", content=text, delta=True)


def uses(call_id: str = "ls__c1", **parameters: Json) -> Json:
    return told("tool_use", tool_name="ls", tool_id=call_id, parameters=parameters)


def gives(call_id: str = "ls__c1", **fields: Json) -> Json:
    return told("tool_result", tool_id=call_id, **{"status": "success", "output": "a", **fields})


def result(tokens: int = 100, **fields: Json) -> Json:
    stats: Json = {"total_tokens": tokens, "input_tokens": 90, "tool_calls": 1}
    return told("result", **{"status": "success", "stats": stats, **fields})


def gemini(*lines: Json) -> Transcript:
    return read("gemini-cli", INIT, ASKED, *lines)


def test_gemini_a_turn_ends_with_the_first_result() -> None:
    found = gemini(
        piece("I "), piece("look."), uses(path="."), uses("ls__c2"), gives("ls__c2"), gives(),
        piece("Do"), piece("ne."), result(),
    )  # fmt: skip

    assert [turn.content for turn in turns(found)] == ["I look.", "Done."]
    assert [turn.model for turn in turns(found)] == ["m", "m"]
    assert [len(turn.tool_calls) for turn in turns(found)] == [2, 0]
    first, second = calls(found)
    assert (first.call.id, first.call.name, first.call.arguments) == ("ls__c1", "ls", {"path": "."})
    assert all(one.result is not None and one.result.content == "a" for one in (first, second))
    assert (found.trace.content, found.trace.status, found.trace.stop_reason) == (
        "Done.", "completed", "done",
    )  # fmt: skip
    assert found.totals.tokens == 100
    assert missing(found) == ""


def test_gemini_what_failed_and_what_was_denied() -> None:
    def failed(kind: str) -> Json:
        return {"type": kind, "message": f"no: {kind}"}

    found = gemini(
        uses(), gives(status="error", output=None, error=failed("execution_failed")),
        uses("b"), gives("b", status="error", output=None, error=failed("policy_violation")),
        piece("No."), result(),
    )  # fmt: skip

    assert [step.permission for step in calls(found)] == [None, "denied"]
    assert [step.extra["error_type"] for step in calls(found)] == [
        "execution_failed", "policy_violation",
    ]  # fmt: skip
    assert all(step.result is not None and step.result.is_error for step in calls(found))
    assert [told for name, told in outline(found) if name == "ls"] == [
        "no: execution_failed", "no: policy_violation",
    ]  # fmt: skip


def test_gemini_a_session_that_is_gone_on_with_is_one_work() -> None:
    found = gemini(piece("One."), result(), INIT, ASKED, piece("Two."), result(11))

    assert [turn.content for turn in turns(found)] == ["One.", "Two."]
    assert (found.trace.content, found.totals.tokens) == ("Two.", 111)


# --- All --------------------------------------------------------------------------------------

_BEGUN = command("/bin/bash -lc 'make'", event="started", exit_code=None, status="in_progress")


@each(
    "found",
    [
        codex(item("agent_message", 0, text="I build."), _BEGUN),
        codex(ENDED, BEGUN, _BEGUN),  # also where an earlier turn had its end
        opencode(used(), finish("tool-calls")),
        gemini(piece("I")),
        gemini(piece("I"), result(), INIT),
    ],
)
def test_what_was_cut_off_is_incomplete(found: Transcript) -> None:
    assert "cut off" in missing(found)
    begun = codex(_BEGUN)
    (call,) = calls(begun)
    assert (call.result, begun.trace.status, begun.totals.tokens) == (None, None, None)


def test_what_is_new_is_noted_and_what_is_not_told_is_missing() -> None:
    found = codex(item("teleport"), {"type": "thread.renamed"}, ENDED)
    assert "teleport" in missing(found)
    assert "thread.renamed" in notes(found)
    assert "teleport" in notes(gemini(told("teleport"), result()))
    assert "subagent" in missing(opencode(used(tool="task"), finish()))


_WARNING = item("error", 0, message="Model metadata not found")
_TURN_FAILED: Json = {"type": "turn.failed", "error": {"message": "401 Unauthorized"}}
_API_ERROR: Json = {
    "type": "error",
    "sessionID": "s",
    "error": {"name": "APIError", "data": {"message": "401"}},
}
_ERROR = result(0, status="error", error={"type": "Error", "message": "401"})
_WARNED = told("error", severity="error", message="empty response")


@each(
    "found, failure",
    [
        (codex(_WARNING, _TURN_FAILED), "401 Unauthorized"),
        (codex(_WARNING, {"type": "turn.failed"}), "Model metadata not found"),
        (read("opencode", _API_ERROR), "APIError: 401"),
        (gemini(_ERROR), "401"),
        (gemini(_WARNED, result(0, status="error")), "empty response"),
        # Work was done before it failed: that is graded.
        (codex(command("/bin/bash -lc ls"), _TURN_FAILED), ""),
        (opencode(finish("tool-calls"), _API_ERROR), ""),
        (gemini(piece("I look."), uses(), _ERROR), ""),
    ],
)
def test_an_error_before_any_reply_is_a_model_that_never_answered(
    found: Transcript, failure: str
) -> None:
    assert (found.failure, found.trace.status) == (failure, "error")


def test_a_warning_is_no_failure() -> None:
    assert codex(_WARNING, item("agent_message", 1, text="Yes."), ENDED).trace.error is None
    assert gemini(_WARNED, piece("Yes."), result()).trace.error is None


@each(
    "line, name",
    [
        (THREAD, "codex"),
        (used(), "opencode"),
        (INIT, "gemini-cli"),
        (uses(), "gemini-cli"),
        (result(), "gemini-cli"),
    ],
)
def test_a_stream_is_recognised_by_its_content(line: Json, name: str) -> None:
    assert detect(json.dumps(line)) == name
    with pytest.raises(InputError, match=f"is {name}, not atif"):
        read("atif", line)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
_KINDS = st.sampled_from(
    ["item.completed", "item.started", "turn.completed", "turn.failed", "error", "text",
     "tool_use", "step_finish", "reasoning", "step_start", "message", "tool_result", "result",
     "init"]
)  # fmt: skip
_NAMES = st.sampled_from(
    ["id", "type", "text", "state", "callID", "tool", "command", "error", "tokens", "status"]
)
_FIELDS = st.dictionaries(_NAMES, _JSON | st.sampled_from(["command_execution", "todo_list"]))


@given(st.lists(st.tuples(_KINDS, _FIELDS, _JSON), max_size=6))
def test_attack_a_stream_of_any_shape_is_read_or_noted(
    entries: list[tuple[str, dict[str, Json], Json]],
) -> None:
    lines = [
        {"type": kind, "item": fields, "part": fields, "error": fields, "usage": odd,
         "sessionID": "s", "timestamp": odd, "stats": fields, "parameters": odd, **fields}
        for kind, fields, odd in entries
    ]  # fmt: skip
    for name, first in (("codex", THREAD), ("opencode", used()), ("gemini-cli", INIT)):
        text = "\n".join(json.dumps(line) for line in [first, *lines])
        found = read_transcript(text, cast("TraceFormat", name))
        assert found.trace.to_dict()
