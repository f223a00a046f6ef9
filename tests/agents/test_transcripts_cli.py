"""What Codex, OpenCode and Gemini CLI print, as traces."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.agents.transcripts import Transcript, detect, read_transcript
from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.tasks.blocks import TraceFormat
from tests.agents.transcripts import calls, missing, notes, outline, turns, whole
from tests.each import each

Reader = Callable[..., Transcript]


def read(expected: TraceFormat, *lines: Json) -> Transcript:
    return read_transcript("\n".join(map(json.dumps, lines)), expected)


WELL: dict[str, Json] = {"status": "completed", "stop_reason": "done", "content": "Done."}


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

    call: Json = {
        "name": "shell", "raw_name": "command_execution", "kind": "execute",
        "id": "1/item_2", "arguments": {"command": "ls -la"},
    }  # fmt: skip
    assert found.trace.to_dict() == whole(
        "codex",
        [
            {"type": "agent", "content": "I look.", "reasoning": "Look first.",
             "tool_calls": [call]},
            {"type": "tool", "call": call, "extra": {"exit_code": 3},
             "result": {"content": "total 4\n", "id": "1/item_2", "is_error": True}},
            {"type": "agent", "content": "Done."},
        ],
        {"session_id": "01a2"}, (100, None, None), **WELL,
    )  # fmt: skip


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
    done = {"status": "completed"}
    found = codex(
        item("file_change", 1, changes=[{"path": "/w/a.py", "kind": "add"}], **done),
        item("mcp_tool_call", 2, tool="look", arguments={"x": 1}, **done,
             result={"content": [{"type": "text", "text": "seen"}]}),
        item("mcp_tool_call", 3, tool="look", error={"message": "no"}, status="completed"),
        item("collab_tool_call", 7, tool="spawn", prompt="Help.", result="ok", **done),
        item("mcp_tool_call", 8, status="failed"),
        item("web_search", 6, query="how"),
        item("todo_list", 4, event="started", items=[{"text": "one", "completed": False}]),
        item("todo_list", 4, event="updated", items=[{"text": "one", "completed": True}]),
        command("/bin/bash -lc 'rm -rf /'", 5, status="declined", exit_code=None),
        ENDED,
    )  # fmt: skip

    assert [
        (step.call.id, step.call.name, step.call.raw_name, step.call.kind, step.call.arguments,
         step.permission, step.result and (step.result.content, step.result.is_error))
        for step in calls(found)
    ] == [
        ("1/item_1", "apply_patch", "file_change", "write",
         {"changes": [{"path": "/w/a.py", "kind": "add"}]}, None, ("completed", False)),
        ("1/item_2", "look", "mcp_tool_call", "other", {"x": 1}, None, ("seen", False)),
        ("1/item_3", "look", "mcp_tool_call", "other", {}, None, ("no", True)),
        ("1/item_7", "spawn", "collab_tool_call", "other", {"prompt": "Help."}, None,
         ("ok", False)),
        ("1/item_8", "mcp_tool_call", "mcp_tool_call", "other", {}, None, ("failed", True)),
        ("1/item_6", "web_search", "web_search", "fetch", {"query": "how"}, None, (None, False)),
        ("1/item_5", "shell", "command_execution", "execute", {"command": "rm -rf /"}, "denied",
         ("", True)),
        ("1/item_4", "update_plan", "todo_list", "other",
         {"items": [{"text": "one", "completed": True}]}, None, (None, False)),
    ]  # fmt: skip


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
        event("reasoning", text="Look first."), event("text", text="I look."), used(title="ls"),
        finish("tool-calls", cost=0.25), event("text", "m2", text="Done."),
        finish("length", "m2", cost=0.5),
    )  # fmt: skip

    call: Json = {"id": "c1", "name": "bash", "kind": "execute", "arguments": {"command": "ls"}}
    begun: dict[str, Json] = {"type": "agent", "started_at": "2026-11-23T00:48:07.588+00:00"}
    begun["usage"] = {
        "prompt_tokens": 95, "completion_tokens": 10, "cached_tokens": 5, "llm_call_count": 1,
    }  # fmt: skip
    assert found.trace.to_dict() == whole(
        "opencode",
        [
            {**begun, "content": "I look.", "reasoning": "Look first.", "tool_calls": [call],
             "finish_reason": "tool-calls"},
            {"type": "tool", "call": call, "extra": {"title": "ls"},
             "result": {"content": "a\n", "id": "c1"}},
            {**begun, "content": "Done.", "finish_reason": "length"},
        ],
        {"session_id": "ses_1"}, (210, 0.75, None), **{**WELL, "stop_reason": "length"},
    )  # fmt: skip
    assert opencode(finish(cost=0.25), finish()).totals.cost_usd is None
    assert opencode(finish(tokens={"input": 1}), finish()).totals.tokens is None


@each(
    "milliseconds, when",
    [
        (0, "1970-01-01T00:00:00.000+00:00"),
        (4_102_444_799_999, "2099-12-31T23:59:59.999+00:00"),
        *((odd, None) for odd in (4_102_444_800_000, -1, "0", None)),
    ],
)
def test_opencode_when_a_turn_began(milliseconds: Json, when: str | None) -> None:
    begun = {**cast("dict[str, Json]", event("step_start")), "timestamp": milliseconds}
    assert [turn.started_at for turn in turns(read("opencode", begun))] == [when]


def test_opencode_what_failed_and_what_was_denied() -> None:
    found = opencode(
        used("a", status="error", error="no such file"),
        used("b", status="error", error="The user rejected permission to use this tool"),
        finish(),
    )

    assert [step.permission for step in calls(found)] == [None, "denied"]
    assert outline(found) == [
        ("agent", ["bash", "bash"]),
        ("bash", "no such file"),
        ("bash", "The user rejected permission to use this tool"),
    ]
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
        piece("I "), piece("look."), uses(path="."), uses("ls__c2", path="."), gives("ls__c2"),
        gives(),
        piece("Do"), piece("ne."), result(),
    )  # fmt: skip

    asked: dict[str, Json] = {"name": "ls", "kind": "search", "arguments": {"path": "."}}
    first, second = ({**asked, "id": call_id} for call_id in ("ls__c1", "ls__c2"))
    assert found.trace.to_dict() == whole(
        "gemini-cli",
        [
            {"type": "agent", "content": "I look.", "model": "m", "tool_calls": [first, second]},
            *({"type": "tool", "call": call, "result": {"content": "a", "id": call["id"]}}
              for call in (first, second)),
            {"type": "agent", "content": "Done.", "model": "m"},
        ],
        {"session_id": "s"}, (100, None, None), **WELL,
    )  # fmt: skip
    silent = gemini(told("message", role="assistant"), uses(), gives(), result())
    assert [turn.content for turn in turns(silent)] == [None]


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
    assert gemini(piece("One."), result(), INIT, result(-1)).totals.refused == ("tokens",)


# --- All --------------------------------------------------------------------------------------

_BEGUN = command("/bin/bash -lc 'make'", event="started", exit_code=None, status="in_progress")


@each(
    "reader, told",
    [
        (codex, [item("agent_message", 0, text="I build."), _BEGUN]),
        (codex, [ENDED, BEGUN, _BEGUN]),  # also where an earlier turn had its end
        (opencode, [used(), finish("tool-calls")]),
        (gemini, [piece("I")]),
        (gemini, [piece("I"), result(), INIT]),
    ],
)
def test_what_was_cut_off_is_incomplete(reader: Reader, told: list[Json]) -> None:
    found = reader(*told)
    assert "cut off" in missing(found)
    assert found.trace.stop_reason == ("done" if ENDED in told else None)
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
_API_ERROR: dict[str, Json] = {
    "type": "error",
    "sessionID": "s",
    "error": {"name": "APIError", "data": {"message": "401"}},
}
_ERROR = result(0, status="error", error={"type": "Error", "message": "401"})
_WARNED = told("error", severity="error", message="empty response")


_NO_MODEL: Json = {"type": "error", "message": "no such model"}


@each(
    "reader, told, failure, error",
    [
        (codex, [_WARNING, _TURN_FAILED], "401 Unauthorized", ""),
        (codex, [_WARNING, {"type": "turn.failed"}], "Model metadata not found", ""),
        (codex, [_WARNING, _NO_MODEL, {"type": "turn.failed"}], "no such model", ""),
        (codex, [{"type": "turn.failed"}], "no reason given", ""),
        (partial(read, "opencode"), [_API_ERROR], "APIError: 401", ""),
        (opencode, [{**_API_ERROR, "error": {}}], "error: no reason given", ""),
        (gemini, [_ERROR], "401", ""),
        (gemini, [_WARNED, result(0, status="error")], "empty response", ""),
        (gemini, [result(0, status="error")], "no reason given", ""),
        # Work was done before it failed: that is graded.
        (codex, [command("/bin/bash -lc ls"), _TURN_FAILED], "", "401 Unauthorized"),
        (opencode, [finish("tool-calls"), _API_ERROR], "", "APIError: 401"),
        (gemini, [piece("I look."), uses(), _ERROR], "", "401"),
    ],
)
def test_an_error_before_any_reply_is_a_model_that_never_answered(
    reader: Reader, told: list[Json], failure: str, error: str
) -> None:
    found = reader(*told)
    ended = found.trace.status, found.trace.stop_reason, found.trace.error
    assert (found.failure, *ended) == (failure, "error", None, failure or error)


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
