"""Recordings from elsewhere: providers' logs, kept sessions, Inspect's logs, spans."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from assay.agents.transcripts import detect, read_transcript
from assay.agents.transcripts import inspect_log as inspect_logs
from assay.agents.transcripts.reading import read_recordings
from assay.agents.transcripts.rows import holds_recordings, recorded_rows
from assay.agents.transcripts.transcript import Recording
from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.tasks.rows import read_row
from assay.types.trace import SubagentStep
from tests.agents.transcripts import calls, lines, missing, notes, outline, turns, whole
from tests.each import each
from tests.written_files import write_files

SAMPLES = Path(__file__).parents[1] / "recordings"

Fields = dict[str, Json]


WORK: list[tuple[str, Json]] = [
    ("user", "fix it"),
    ("agent", ["bash"]),
    ("bash", "a.py"),
    ("agent", "fixed"),
]

# ---- OpenAI's responses ------------------------------------------------------------------------

ASKED: Fields = {"role": "user", "content": "fix it"}
THOUGHT: Fields = {
    "type": "reasoning",
    "id": "r",
    "summary": [{"type": "summary_text", "text": "hm"}],
}
CALLED: Fields = {
    "type": "function_call",
    "call_id": "c",
    "name": "bash",
    "arguments": '{"command": "ls"}',
}
GAVE: Fields = {"type": "function_call_output", "call_id": "c", "output": "a.py"}
SAID: Fields = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "fixed"}],
}
ITEMS = [ASKED, THOUGHT, CALLED, GAVE, SAID]


def response(name: str, *output: Fields, **more: Json) -> Fields:
    """A reply of the responses protocol."""
    usage: Fields = {"input_tokens": 10, "output_tokens": 5}
    listed: list[Json] = [*output]
    return {"object": "response", "id": name, "status": "completed", "model": "m-1",
            "output": listed, "usage": usage, **more}  # fmt: skip


def exchange(response: Fields, *asked: Fields, **more: Json) -> Fields:
    """A request with what came of it."""
    listed: list[Json] = [*asked]
    return {"request": {"model": "m", "input": listed, **more}, "response": response}


def test_items_of_responses() -> None:
    read = read_transcript(json.dumps(ITEMS))
    assert read.format == "openai-responses"
    assert outline(read) == WORK
    assert read.trace.content == "fixed"
    assert read.totals.tokens is None
    ended = [
        (turn.done, turn.finish_reason, turn.started_at, turn.ended_at) for turn in turns(read)
    ]
    assert ended == [(False, None, None, None)] * 2  # which items do not tell
    read = read_transcript(json.dumps([ASKED, CALLED, {**GAVE, "output": "x" * 300_000}, SAID]))
    assert len(str(outline(read)[2])) < 101_000
    read = read_transcript(json.dumps([ASKED, {"type": "function_call", "call_id": 7}, SAID]))
    assert "a message was not read" in missing(read)


def test_a_log_with_times_and_a_request_that_failed_is_told_whole() -> None:
    first = exchange(response("1", THOUGHT, CALLED), ASKED, instructions="Be terse.")
    second = exchange({"error": {"message": "overloaded"}}, ASKED, THOUGHT, CALLED, GAVE)
    read = read_transcript(lines({**first, "timestamp": "T1"}, {**second, "at": "T2"}))
    call: Json = {"id": "c", "name": "bash", "kind": "execute", "arguments": {"command": "ls"}}
    usage: Json = {"prompt_tokens": 10, "completion_tokens": 5, "llm_call_count": 1}
    system: Json = {"role": "system", "content": "Be terse."}
    assert read.trace.to_dict() == whole(
        "openai-responses",
        [
            {"type": "step", "messages": [system]},
            {"type": "step", "source": "user", "messages": [ASKED], "ended_at": "T1"},
            {"type": "agent", "reasoning": "hm", "tool_calls": [call], "model": "m-1",
             "usage": usage, "finish_reason": "completed", "ended_at": "T1"},
            {"type": "tool", "call": call, "result": {"id": "c", "content": "a.py"},
             "ended_at": "T2"},
        ],
        {"model": "m"}, (15, None, None), "a request without a reply", status="error",
    )  # fmt: skip


def test_a_log_of_requests_is_one_run_and_each_reply_counts_once() -> None:
    first = exchange(response("1", THOUGHT, CALLED), ASKED)
    second = exchange(response("2", SAID), ASKED, THOUGHT, CALLED, GAVE)
    read = read_transcript(lines(first, second))
    assert (read.format, outline(read), missing(read)) == ("openai-responses", WORK, "")
    assert read.totals.tokens == 30
    assert read.trace.extra["session"] == {"model": "m"}


def test_a_log_in_which_the_server_holds_what_was_said() -> None:
    asked: Fields = {"model": "m", "input": "fix it", "store": True}
    follows: Fields = {"model": "m", "input": [GAVE], "previous_response_id": "1"}
    read = read_transcript(
        lines(asked, response("1", CALLED), follows, response("2", SAID, previous_response_id="1"))
    )
    assert (outline(read), read.totals.tokens, missing(read)) == (WORK, 30, "")
    # Where it is not there, a part is missing.
    assert "not in the log" in missing(read_transcript(lines(follows, response("2", SAID))))


def test_hiding_work_in_a_tool_that_only_the_provider_has() -> None:
    shell: Fields = {
        "type": "local_shell_call",
        "call_id": "s",
        "action": {"type": "exec", "command": ["rm", "tests/a.py"]},
    }
    gone: Fields = {"type": "local_shell_call_output", "call_id": "s", "output": "ok"}
    (tool,) = calls(read_transcript(json.dumps([ASKED, shell, gone, SAID])))
    assert (tool.call.name, tool.call.kind) == ("local_shell", "execute")
    assert tool.call.arguments["command"] == ["rm", "tests/a.py"]
    assert tool.result is not None
    assert tool.result.content == "ok"


def test_a_call_that_the_provider_ran_has_a_result_though_none_is_told() -> None:
    ran: Fields = {"type": "web_search_call", "id": "w", "status": "completed", "action": {}}
    failed = {**ran, "id": "f", "status": "failed"}
    more: list[Fields] = [
        {"type": "web_search_call", "id": "q", "output": "seen", "action": {"query": "q"}},
        {"type": "mcp_call", "id": "m", "name": "look", "server_label": "s", "error": "no",
         "status": "completed", "input": {"x": 1}},
        {"type": "image_generation_call", "id": "i", "status": "completed", "size": 2},
        {**ASKED, "content": [{"type": "input_text", "text": "and?"}, {"type": "hologram"}]},
    ]  # fmt: skip
    read = read_transcript(json.dumps([ASKED, ran, failed, *more, SAID]))
    assert [
        (tool.call.id, tool.call.name, tool.call.arguments,
         tool.result and (tool.result.content, tool.result.is_error))
        for tool in calls(read)
    ] == [
        ("w", "web_search", {"action": {}}, ("", False)),
        ("q", "web_search", {"query": "q"}, ("seen", False)),
        ("m", "look", {"x": 1}, ("", True)),
        ("i", "image_generation", {"size": 2}, ("", False)),
        ("f", "web_search", {"action": {}}, None),
    ]  # fmt: skip
    assert outline(read)[-2:] == [("user", "and?"), ("agent", "fixed")]
    assert notes(read) == "a part of type 'hologram'"


# ---- Anthropic's messages ----------------------------------------------------------------------

USED: Fields = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "c", "name": "bash", "input": {"command": "ls"}}],
}
RETURNED: Fields = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "c", "content": "a.py"}],
}
ENDED: Fields = {"role": "assistant", "content": [{"type": "text", "text": "fixed"}]}


def reply(message: Fields) -> Fields:
    """A reply of Anthropic's."""
    return {**message, "type": "message", "id": "msg", "model": "c-1", "stop_reason": "end_turn",
            "usage": {"input_tokens": 10, "output_tokens": 5}}  # fmt: skip


def test_messages_of_anthropic_also_where_they_begin_like_a_chat() -> None:
    read = read_transcript(json.dumps([ASKED, USED, RETURNED, ENDED]))
    assert (read.format, outline(read)) == ("anthropic", WORK)
    failed = json.loads(json.dumps(RETURNED).replace('"content": "a.py"', '"is_error": true'))
    (tool,) = calls(read_transcript(json.dumps([ASKED, USED, failed, ENDED])))
    assert tool.result is not None
    assert tool.result.is_error


def test_a_log_of_anthropic_s_bodies() -> None:
    def asked(*messages: Fields) -> Fields:
        return {"model": "c", "max_tokens": 9, "system": "be", "messages": [*messages]}

    read = read_transcript(
        lines(asked(ASKED), reply(USED), asked(ASKED, USED, RETURNED), reply(ENDED))
    )
    assert (read.format, read.totals.tokens, missing(read)) == ("anthropic", 30, "")
    assert outline(read) == [("system", "be"), *WORK]


def test_exchanges_of_chat_completions() -> None:
    call: Fields = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    called: Fields = {"role": "assistant", "content": None, "tool_calls": [call]}
    said: Fields = {"role": "assistant", "content": "fixed"}
    gave: Fields = {"role": "tool", "tool_call_id": "c", "content": "a.py"}

    def one(message: Fields, *asked: Fields) -> Fields:
        choice: Fields = {"index": 0, "message": message, "finish_reason": "stop"}
        usage: Fields = {"prompt_tokens": 10, "completion_tokens": 5}
        body: Fields = {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}
        return {"request": {"model": "m", "messages": [*asked]}, "response": body}

    read = read_transcript(lines(one(called, ASKED), one(said, ASKED, called, gave)))
    assert (read.format, outline(read), read.totals.tokens) == ("openai-chat", WORK, 30)


_BE: Fields = {"messages": [ASKED], "system": "be"}
BODIES: dict[str | None, list[Fields]] = {
    "openai-responses": [
        {"object": "response", "output": []}, {"output": [SAID, THOUGHT]},
        {"model": "m", "input": "q", "store": True}, {"model": "m", "input": [ASKED]},
        {"type": "reasoning", "encrypted_content": "x"}, {"type": "reasoning", "summary": []},
        {"type": "mcp_list_tools", "tools": []}, {"type": "shell_call", "id": "s"},
        {"type": "shell_call_output", "call_id": "s"},
    ],
    "anthropic": [
        {"type": "message", "role": "assistant", "content": [], "stop_reason": None},
        {**_BE, "max_tokens": 9}, {"messages": [ASKED, USED]}, RETURNED,
    ],
    "exchanges": [
        {"request": _BE, "response": None}, {"request": {"input": "q"}, "response": {}},
        {"request": {}, "response": {"choices": []}},
    ],
    "openai-chat": [_BE],
    None: [
        {"object": "response"}, {"output": [SAID, {"type": "other"}]}, {"output": []},
        {"model": "m", "input": "q"}, {"model": "m", "input": [ASKED], "output": "a"},
        {"type": "reasoning"}, {"type": "shell_call"}, {"type": "other", "id": "s"},
        {**SAID, "usage": {}}, {"request": _BE},
        {"request": {}, "response": {}},
    ],
}  # fmt: skip


@each("name", BODIES)
def test_bodies_are_told_apart_by_what_only_one_protocol_has(name: str | None) -> None:
    assert [detect(json.dumps(body)) for body in BODIES[name]] == [name] * len(BODIES[name])


def test_a_log_has_the_name_of_its_first_exchange_or_of_its_bodies() -> None:
    chat: Fields = {"request": {"messages": [ASKED]}, "response": None}
    asked: Fields = {"request": _BE, "response": None}
    logs = ([chat, asked], [asked, chat], [response("1", SAID), chat])
    names = [read_transcript(lines(*log)).format for log in logs]
    assert names == ["openai-chat", "anthropic", "openai-responses"]


# ---- sessions that agents keep -----------------------------------------------------------------


def test_a_session_of_codex() -> None:
    told: Fields = {"type": "input_text", "text": "<environment_context>linux"}
    context: Fields = {"role": "user", "type": "message", "content": [told]}
    usage: Fields = {"input_tokens": 100, "output_tokens": 7, "cached_input_tokens": 90}
    payloads: list[tuple[str, Fields]] = [
        ("session_meta", {"id": "s", "cwd": "/w"}),
        ("turn_context", {"model": "gpt-5-codex"}),
        *(("response_item", {"type": "message", **item}) for item in (context, ASKED)),
        *(("response_item", item) for item in (THOUGHT, CALLED, GAVE)),
        ("event_msg", {"type": "token_count", "info": {"total_token_usage": {"input_tokens": 1}}}),
        ("event_msg", {"type": "agent_message", "message": "fixed"}),
        ("response_item", SAID),
        ("event_msg", {"type": "token_count", "info": {"total_token_usage": usage}}),
    ]
    listed: list[Json] = [{"type": kind, "payload": one} for kind, one in payloads]
    text = lines(*listed)
    assert detect(text) == "codex-session"
    (found,) = read_recordings(text)
    assert outline(found.transcript)[1:] == WORK
    assert (found.question, found.transcript.totals.tokens) == ("fix it", 107)
    assert found.transcript.trace.extra["session"] == {
        "session_id": "s", "cwd": "/w", "model": "gpt-5-codex"}  # fmt: skip


def kept(kind: str, number: int, content: Json, **more: Json) -> Fields:
    """A line of a session that Claude Code keeps."""
    message: Fields = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {
            "id": f"m{number}",
            "model": "c",
            "usage": {"input_tokens": 10, "output_tokens": 2},
        }
    return {"type": kind, "uuid": f"u{number}", "parentUuid": f"u{number - 1}", "sessionId": "s",
            "isSidechain": False,
            "message": message, "cwd": "/w", "version": "2", **more}  # fmt: skip


@each("named", [True, False])
def test_a_session_of_claude_code_with_a_subagent(named: bool) -> None:  # noqa: FBT001
    task: Fields = {"type": "tool_use", "id": "t", "name": "Task", "input": {"prompt": "look"}}
    result: Fields = {"type": "tool_result", "tool_use_id": "t", "content": "seen"}
    agent: Fields = {"isSidechain": True, "agentId": "a"} if named else {"isSidechain": True}
    told: Fields = {"toolUseResult": {"agentId": "a"}} if named else {}
    text = lines(
        {"type": "summary", "summary": "x", "leafUuid": "u9"},
        kept("user", 1, "fix it"),
        kept("user", 1, "fix it"),
        kept("assistant", 2, [task]),
        {**kept("user", 3, "go" if named else "look", **agent), "parentUuid": None},
        kept("assistant", 4, [{"type": "text", "text": "seen"}], **agent),
        kept("user", 5, [result], **told),
        kept("assistant", 6, [{"type": "text", "text": "fixed"}]),
        kept("user", 7, "what no person said", isMeta=True),
    )
    read = read_transcript(text)
    assert (read.format, read.trace.status, missing(read)) == ("claude-code", "completed", "")
    assert (read.trace.content, read.totals.tokens) == ("fixed", 36)
    assert [step.source for step in read.trace] == ["user", "agent", "tool", "subagent", "agent"]
    (inner,) = [step for step in read.trace.steps if isinstance(step, SubagentStep)]
    assert [type(step).__name__ for step in inner.subagent.steps] == ["Step", "AgentStep"]
    assert read.trace.extra["session"] == {
        "session_id": "s", "cwd": "/w", "claude_code_version": "2", "model": "c"}  # fmt: skip


# ---- Inspect's logs ----------------------------------------------------------------------------


def sample(**changed: Json) -> Fields:
    """A sample of a log."""
    call: Fields = {"id": "c", "function": "bash", "arguments": {"command": "ls"}}
    failed: Fields = {"type": "timeout", "message": "too slow"}
    messages: list[Json] = [
        {"role": "user", "content": "attachment://d1"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "a.py", "error": failed},
        {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "hm"},
                                          {"type": "text", "text": "fixed"}]},
    ]  # fmt: skip
    return {"id": 1, "epoch": 1, "input": "attachment://d1", "target": ["fixed"],
            "messages": messages, "attachments": {"d1": "fix it"},
            "scores": {"match": {"value": "P", "answer": "f", "history": []}},
            "model_usage": {"m": {"total_tokens": 10}, "n": {"total_tokens": 5}},
            "total_time": 1.5, "events": [{"event": "model"}], **changed}  # fmt: skip


def log(*samples: Fields) -> Fields:
    """A log."""
    about: Fields = {"task": "t", "model": "m"}
    return {"version": 2, "status": "success", "eval": about, "samples": [*samples]}


def archive(file: Path, samples: Iterable[Fields | bytes], *, zstd: bool = False) -> Path:
    """An ``.eval`` file, packed as it once was or as it is today."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("header.json", json.dumps(log()))
        for number, one in enumerate(samples):
            data = one if isinstance(one, bytes) else json.dumps(one).encode()
            name = f"samples/{number}_epoch_1.json"
            if zstd:
                data = zstandard.ZstdCompressor().compress(data)
                made.writestr(zipfile.ZipInfo(name), data)
            else:
                made.writestr(name, data)
    if zstd:  # the standard library of 3.11 cannot write the method: 93 in both headers
        raw = bytearray(file.read_bytes())
        for mark, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
            place = raw.find(mark)
            while place >= 0:
                if not any(raw[place + at : place + at + 2]):
                    raw[place + at : place + at + 2] = (93).to_bytes(2, "little")
                place = raw.find(mark, place + 1)
        file.write_bytes(raw)
    return file


def test_a_log_of_inspect() -> None:
    first, second = read_recordings(json.dumps(log(sample(), sample(epoch=2))))
    assert outline(first.transcript) == WORK
    assert (first.id, first.question, first.expected) == ("1", "fix it", "fixed")
    assert first.metadata == {"scores": {"match": {"value": 0.5, "answer": "f"}}}
    totals = first.transcript.totals
    assert (totals.tokens, totals.seconds) == (15, 1.5)
    (tool,) = calls(first.transcript)
    assert tool.result is not None
    assert tool.result.is_error
    assert second.id == "1 epoch 2"
    with pytest.raises(InputError, match="more than one run"):
        read_transcript(json.dumps(log(sample(), sample(epoch=2))))
    (failed,) = read_recordings(json.dumps(log(sample(messages=[], error={"message": "boom"}))))
    assert (failed.transcript.trace.status, failed.transcript.trace.content) == ("error", None)


def test_what_an_agent_of_inspect_submits_is_its_answer() -> None:
    submitted: Fields = {
        "completion": "5",
        "choices": [{"message": {"content": "no more read than this"}}],
    }
    older: Fields = {"choices": [{"message": {"content": [{"type": "text", "text": "5"}]}}]}
    silent: Fields = {"choices": [], "completion": ""}
    outputs = (submitted, older, silent)
    found = read_recordings(json.dumps(log(*(sample(output=output) for output in outputs))))
    said = [one.transcript.trace.content for one in found]
    assert said == ["5", "5", ""]  # as Inspect's own scorers read it


_ASKED: list[Json] = [
    {"role": "user", "content": "capital?"},
    {"role": "assistant", "content": "Nairobi"},
    {"role": "user", "content": "which?"},
]
_EMPTY: Fields = {"role": "assistant", "content": ""}
_THOUGHT: list[Json] = [{"type": "thinking", "thinking": "hm", "signature": ""}]
_ENDED: list[Fields] = [
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "Nairobi"}},
    {"type": "item.completed", "item": {"id": "2", "type": "agent_message", "text": ""}},
    {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}},
]


@each(
    "recording",
    [
        json.dumps({"messages": [*_ASKED, _EMPTY]}),
        json.dumps({"messages": [*_ASKED, {**_EMPTY, "content": None}]}),
        json.dumps(
            {"model": "m", "messages": _ASKED, "choices": [{"index": 0, "message": _EMPTY}]}
        ),
        json.dumps(
            {"model": "m", "max_tokens": 9, "messages": [*_ASKED, {**_EMPTY, "content": []}]}
        ),
        json.dumps(
            {"model": "m", "max_tokens": 9, "messages": [*_ASKED, {**_EMPTY, "content": _THOUGHT}]}
        ),
        json.dumps({"id": "resp_1", "object": "response", "input": _ASKED, "output": []}),
        json.dumps(
            log(sample(messages=[*_ASKED, _EMPTY], output={"choices": [], "completion": ""}))
        ),
        json.dumps(log(sample(messages=_ASKED, output={"choices": [], "completion": ""}))),
        lines(*_ENDED),
    ],
)
def test_attack_silence_is_not_graded_as_an_earlier_word(tmp_path: Path, recording: str) -> None:
    (tmp_path / "a.jsonl").write_text(recording)
    (row,) = recorded_rows(str(tmp_path / "a.jsonl"))
    assert isinstance(row, dict)
    assert row["answer"] in ("", None)  # None is an error: what came of it is not told


@each("zstd", [False, True])
def test_an_archive_of_inspect_packed_then_and_now(tmp_path: Path, zstd: bool) -> None:  # noqa: FBT001
    file = archive(tmp_path / "log", [sample(), b"{"], zstd=zstd)
    first, second = inspect_logs.samples_of_archive(str(file))
    assert isinstance(first, Recording)
    assert outline(first.transcript) == WORK
    assert isinstance(second, InputError)
    assert holds_recordings(str(file))


def test_an_archive_that_unpacks_to_more_than_it_should(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_logs, "_MOST_HEADER", 1_000)
    for zstd in (False, True):
        file = archive(tmp_path / f"{zstd}", [b" " * 100_000], zstd=zstd)
        (found,) = inspect_logs.samples_of_archive(str(file))
        assert isinstance(found, InputError)
        assert "longer than" in str(found)


def test_attachments_that_multiply_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect_logs, "MOST_LINE", 100)
    (found,) = read_recordings(json.dumps(log(sample(attachments={"d1": "x" * 60}))))
    assert "too long together" in missing(found.transcript)


# ---- spans -------------------------------------------------------------------------------------


def test_spans_of_the_agents_sdk_come_before_those_that_they_are_in() -> None:
    text = (SAMPLES / "openai-agents-trace.jsonl").read_text()
    assert detect(text) == "openai-agents"
    (found,) = read_recordings(text)
    assert outline(found.transcript) == [
        ("user", "Read note.txt and reply with its content only."),
        ("agent", ["read_file"]),
        ("read_file", "hello\n"),
        ("agent", "hello"),
    ]
    assert found.transcript.totals.tokens == 30  # told by generations, turns and the task
    assert missing(found.transcript) == ""


def test_a_span_of_a_response_without_its_text_is_a_missing_part() -> None:
    span: Fields = {"object": "trace.span", "id": "s", "trace_id": "t", "parent_id": None,
                    "span_data": {"type": "response", "response_id": "r"}}  # fmt: skip
    assert "does not tell what the model said" in missing(read_transcript(lines(span)))


def value(given: Json) -> Fields:
    """A value as OTLP writes it."""
    if isinstance(given, int):
        return {"intValue": str(given)}
    if isinstance(given, list):
        return {"arrayValue": {"values": [value(one) for one in given]}}
    if isinstance(given, dict):
        pairs: list[Json] = [{"key": key, "value": value(one)} for key, one in given.items()]
        return {"kvlistValue": {"values": pairs}}
    return {"stringValue": given}


def span(name: str, parent: str, start: int, operation: str, **about: Json) -> Fields:
    """A span of OTLP."""
    fields = {"gen_ai.operation.name": operation}
    fields |= {f"gen_ai.{key.replace('__', '.')}": one for key, one in about.items()}
    listed: list[Json] = [{"key": key, "value": value(one)} for key, one in fields.items()]
    return {"traceId": "aa", "spanId": name, "parentSpanId": parent, "name": operation,
            "startTimeUnixNano": str((10**9 + start) * 10**9),
            "endTimeUnixNano": str((10**9 + start + 1) * 10**9), "attributes": listed}  # fmt: skip


def said(role: str, *parts: Fields) -> Fields:
    """A message of the conventions."""
    return {"role": role, "parts": [*parts]}


OF_USER = said("user", {"type": "text", "content": "fix it"})
OF_CALL = said(
    "assistant", {"type": "tool_call", "id": "c", "name": "bash", "arguments": {"command": "ls"}}
)
OF_TOOL = said("tool", {"type": "tool_call_response", "id": "c", "response": "a.py"})
OF_END = said("assistant", {"type": "text", "content": "fixed"})


def spans(*, contents: bool = True, as_text: bool = True, results: bool = True) -> Fields:
    """A run as spans, the outermost last."""

    def told(*messages: Fields) -> Json:
        listed: list[Json] = [*messages]
        return json.dumps(listed) if as_text else listed

    def of(first: Json, second: Json) -> Fields:
        return {"input__messages": first, "output__messages": second} if contents else {}

    used: Fields = {"usage__input_tokens": 10, "usage__output_tokens": 5}
    tool: Fields = {"tool__name": "bash", "tool__call__id": "c", "tool__call__result": "a.py"}
    later = (OF_USER, OF_CALL, OF_TOOL) if results else (OF_USER, OF_CALL)
    listed: list[Json] = [
        span("4", "1", 4, "chat", **used, **of(told(*later), told(OF_END))),
        span("3", "1", 2, "execute_tool", **tool),
        span("2", "1", 1, "chat", **used, **of(told(OF_USER), told(OF_CALL))),
        span("1", "", 0, "invoke_agent", usage__input_tokens=20, usage__output_tokens=10),
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": listed}]}]}


@each("as_text, results", [(True, True), (True, False), (False, True), (False, False)])
def test_spans_of_opentelemetry(as_text: bool, results: bool) -> None:  # noqa: FBT001
    (found,) = read_recordings(json.dumps(spans(as_text=as_text, results=results)))
    assert (found.id, outline(found.transcript)) == ("aa", WORK)
    assert (found.transcript.totals.tokens, found.transcript.totals.seconds) == (30, 5.0)
    assert (found.question, found.transcript.trace.content) == ("fix it", "fixed")


def test_spans_without_contents_tell_their_tools() -> None:
    read = read_transcript(json.dumps(spans(contents=False)))
    assert outline(read) == [("agent", []), ("bash", "a.py"), ("agent", [])]
    assert (read.totals.tokens, missing(read)) == (30, "")
    assert read.trace.extra["untold"] == "the spans do not tell what was said"
    assert read.trace.content is None


def test_spans_as_the_sdk_s_json_lines_with_events_and_numbered_attributes() -> None:
    def one(number: int, about: Fields, *events: Json) -> Fields:
        return {"name": "chat", "context": {"trace_id": "0xaa", "span_id": f"0x{number}"},
                "parent_id": None, "start_time": f"2026-01-01T00:00:0{number}Z",
                "end_time": f"2026-01-01T00:00:0{number}Z", "status": {"status_code": "UNSET"},
                "attributes": {"gen_ai.operation.name": "chat", **about},
                "events": [*events]}  # fmt: skip

    call: Fields = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    other: Fields = {"id": "d", "function": {"name": "look", "arguments": '{"n": 1}'}}
    asked: Fields = {"name": "gen_ai.user.message", "attributes": {"content": "fix it"}}
    chosen: Fields = {"tool_calls": json.dumps([call, other]), "role": "assistant"}
    first = one(
        1, {}, asked, {"name": "gen_ai.choice", "attributes": {"message": json.dumps(chosen)}}
    )
    p, q = "gen_ai.prompt", "gen_ai.completion.0"
    second = one(2, {
        f"{p}.0.role": "user", f"{p}.0.content": "fix it",
        f"{p}.1.role": "assistant", f"{p}.1.tool_calls.0.id": "c",
        f"{p}.1.tool_calls.0.name": "bash", f"{p}.1.tool_calls.0.arguments": "{}",
        f"{p}.1.tool_calls.1.id": "d", f"{p}.1.tool_calls.1.name": "look",
        f"{p}.1.tool_calls.1.arguments": '{"n": 1}',
        f"{p}.x.role": "odd", f"{p}.1234567.role": "odd", f"{p}s.0.role": "odd",
        f"{p}.2.role": "tool", f"{p}.2.tool_call_id": "c", f"{p}.2.content": "a.py",
        f"{q}.role": "assistant", f"{q}.content": "fixed"})  # fmt: skip
    read = read_transcript(lines(second, first))
    assert outline(read) == [WORK[0], ("agent", ["bash", "look"]), WORK[2], ("look", None), WORK[3]]
    assert [tool.call.arguments for tool in calls(read)] == [{}, {"n": 1}]
    assert (read.trace.content, missing(read)) == ("fixed", "")


def test_runs_of_several_agents_in_one_file_are_told_apart() -> None:
    other = json.loads(json.dumps(spans()).replace('"aa"', '"bb"'))
    found = list(read_recordings(lines(spans(), other)))
    assert [(one.id, outline(one.transcript)) for one in found] == [("aa", WORK), ("bb", WORK)]


# ---- hostile files -----------------------------------------------------------------------------

GOOD: list[Json] = [
    *ITEMS, USED, RETURNED, reply(ENDED), response("2", SAID),
    exchange(response("1", CALLED), ASKED),
    sample(), log(sample()), spans(), {"type": "response_item", "payload": CALLED},
    kept("user", 1, "fix it"), kept("assistant", 2, "fixed", isSidechain=True),
    *map(json.loads, (SAMPLES / "openai-agents-trace.jsonl").read_text().splitlines()),
]  # fmt: skip

_JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.just([]), st.just({}),
    st.just([None]), st.just({"type": "text"}), st.floats(), st.just("attachment://x"),
)  # fmt: skip


@st.composite
def broken(draw: st.DrawFn) -> str:
    """Good entries, shuffled, with a value of each put in another's place, and cut off."""
    values = draw(st.lists(st.sampled_from(GOOD), min_size=1, max_size=6))
    texts: list[str] = []
    for one in values:
        found = json.loads(json.dumps(one))
        inside: Any = found
        for _ in range(draw(st.integers(1, 6))):
            places = cast("list[Any]", [*inside] if isinstance(inside, dict) else [0, -1])
            if not inside:
                break
            key: Any = draw(st.sampled_from(places))
            further = cast("Any", inside[key])
            if type(further) in (dict, list) and further and draw(st.booleans()):
                inside = further
                continue
            inside[key] = draw(_JUNK)
            break
        texts.append(json.dumps(found))
    text = "\n".join(texts)
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


@example('{"type": [], "id": "r"}')
@given(broken())
def test_no_recording_breaks_a_reader(text: str) -> None:
    with suppress(InputError):
        for found in read_recordings(text):
            assert len(found.transcript.trace.to_dict()) > 0
            json.dumps(found.transcript.trace.to_dict(), allow_nan=False).encode()


@given(st.data())
def test_no_archive_breaks_its_reader(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    file = archive(tmp_path_factory.mktemp("a") / "log", [sample()], zstd=data.draw(st.booleans()))
    raw = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(4, len(raw) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(raw[: data.draw(st.integers(4, len(raw)))])
    for row in recorded_rows(str(file)):
        assert isinstance(row, InputError) or read_row(row)


def test_a_file_beyond_all_measure_is_refused_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.agents.transcripts.reading.MOST_BYTES", 1_000)
    monkeypatch.setattr("assay.agents.transcripts.rows.MOST_BYTES", 1_000)
    (tmp_path / "big.jsonl").write_text(lines(*ITEMS) + "x" * 2_000)
    (found,) = recorded_rows(str(tmp_path))
    assert isinstance(found, InputError)
    assert "at most 1000" in str(found)


# ---- rows --------------------------------------------------------------------------------------


@each(
    "row",
    [
        {"answer": "x"},
        {"messages": [ASKED, {"role": "assistant", "content": "x"}]},
        {"input": [ASKED], "completion": "x", "model": "m"},
        {"input": "q", "output": "x", "model": "m"},
        {"prompt": "q", "response": "x", "request": "q"},
        {"type": "message", "text": "x", "id": 1},
    ],
)
def test_rows_are_not_taken_for_recordings(tmp_path: Path, row: Fields) -> None:
    (tmp_path / "rows.jsonl").write_text(lines(row))
    assert not holds_recordings(str(tmp_path / "rows.jsonl"))


def test_each_run_of_a_directory_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_files(tmp_path, {".hidden": "x", "a.json": json.dumps(ITEMS), "b.txt": "no trace"})
    archive(tmp_path / "in" / "c", [sample(), sample()])
    first, wrong, second, third = recorded_rows(str(tmp_path))
    assert isinstance(wrong, InputError)
    assert "b.txt" in str(wrong)
    rows = [read_row(row) for row in (first, second, third) if isinstance(row, dict)]
    assert [row.id for row in rows] == ["a.json", "in/c#1", "in/c#1 (2)"]
    assert rows[1].submission.expected == "fixed"
    assert [row.submission.trace is not None for row in rows] == [True, True, True]
    assert rows[0].submission.metadata == {"format": "openai-responses"}


def test_more_requests_than_are_read_are_a_missing_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.agents.transcripts.exchanges.MOST_REQUESTS", 2)
    read = read_transcript(lines(*(exchange(response(str(n), SAID), ASKED) for n in range(3))))
    assert "only the first 2 requests" in missing(read)


def test_attack_a_log_whose_requests_each_name_all_before_them_is_read_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("assay.agents.transcripts.provider.MOST_TURNS", 3)
    chain = [
        response(
            str(n), SAID, previous_response_id=str(n - 1), input=[{**ASKED, "content": str(n)}]
        )
        for n in range(6)
    ]
    read = read_transcript(lines(*chain))
    assert "not in the log" in missing(read)
