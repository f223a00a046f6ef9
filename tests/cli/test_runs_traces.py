"""`assay runs export --format`: traces leave in the formats of others, and come back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

from assay.agents.transcripts import read_transcript
from assay.agents.transcripts.telling import as_otel
from assay.agents.transcripts.writing import Told, ToldScore, as_atif, as_chat
from assay.scoring.json_safe import Json
from assay.types.trace import (
    AgentStep,
    Step,
    SubagentStep,
    TokenSample,
    ToolCall,
    ToolResult,
    ToolStep,
    Trace,
    Usage,
)
from tests.command_line import assay, cells, write_case
from tests.each import each

CALL = ToolCall(name="bash", arguments={"command": "ls"}, id="c", kind="execute")
SAMPLE = TokenSample(prompt_token_ids=(1, 2), output_token_ids=(3,), output_logprobs=(-0.5,))
USAGE = Usage(prompt_tokens=10, completion_tokens=5, cost_usd=0.25, llm_call_count=1)
FAILED = ToolResult(content="no", is_error=True, id="c")
ASKED: Json = {"role": "user", "content": "fix it"}
INNER = Trace(steps=[AgentStep(step_id=1, content="seen", usage=USAGE)])
TRACE = Trace(
    steps=[
        Step(step_id=1, source="user", messages=(ASKED,)),
        AgentStep(
            step_id=2, content="I look", reasoning="hm", tool_calls=(CALL,), usage=USAGE,
            sample=SAMPLE, model="m", finish_reason="tool_calls",
        ),
        ToolStep(step_id=3, call=CALL, result=FAILED),
        SubagentStep(step_id=4, subagent=INNER, name="helper"),
        AgentStep(step_id=5, content="fixed", usage=USAGE, model="m", finish_reason="stop"),
    ],
    status="completed",
    content="fixed",
)  # fmt: skip
TOLD = Told(
    id="case", run="r", trace=TRACE, agent="a", model="m", reward=0.5,
    scores=(ToldScore("tests", 0.5, "1 of 2", "fail"), ToldScore("judge", None, "no", "error")),
    label="fail",
    began="2026-01-01T00:00:00+00:00",
)  # fmt: skip


@each("write", [as_atif, as_otel])
def test_what_was_done_survives_the_way_there_and_back(write: Callable[[Told], Json]) -> None:
    read = read_transcript(json.dumps(write(TOLD)))
    first, tool, last = (s for s in read.trace.steps if isinstance(s, AgentStep | ToolStep))
    assert isinstance(first, AgentStep)
    assert (first.content, first.reasoning, first.model) == ("I look", "hm", "m")
    assert isinstance(tool, ToolStep)
    assert (tool.call, tool.result and tool.result.content) == (CALL, "no")
    assert write is as_atif or (tool.result and tool.result.is_error), "its form has no failures"
    assert isinstance(last, AgentStep)
    assert read.trace.content == "fixed"
    assert [u and u.prompt_tokens for u in (first.usage, last.usage)] == [10, 10]
    (inner,) = (s for s in read.trace.steps if isinstance(s, SubagentStep))
    assert [s.content for s in inner.subagent.steps if isinstance(s, AgentStep)] == ["seen"]
    assert read.totals.tokens == 45
    assert read.trace.extra["not_understood"] == []


def test_token_ids_leave_with_trajectories_and_messages() -> None:
    steps = cast("list[dict[str, Json]]", as_atif(TOLD)["steps"])
    metrics = cast("dict[str, Json]", steps[1]["metrics"])
    assert (metrics["completion_token_ids"], metrics["logprobs"]) == ([3], [-0.5])
    assert [step["step_id"] for step in steps] == [1, 2, 3]
    turns = [s for s in read_transcript(json.dumps(as_atif(TOLD))).trace.steps
             if isinstance(s, AgentStep)]  # fmt: skip
    assert turns[0].sample == SAMPLE
    messages = cast("list[dict[str, Json]]", as_chat(TOLD)["messages"])
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert (messages[1]["prompt_token_ids"], messages[1]["token_ids"]) == ([1, 2], [3])
    assert read_transcript(json.dumps(as_chat(TOLD))).trace.content == "fixed"


def test_what_the_graders_gave_are_events_of_the_outermost_span() -> None:
    text = json.dumps(as_otel(TOLD))
    spans = json.loads(text)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert len({span["spanId"] for span in spans}) == len(spans) == 7
    assert [event["attributes"][0]["value"]["stringValue"] for event in spans[0]["events"]] == [
        "reward", "tests", "judge",
    ]  # fmt: skip
    assert "parentSpanId" not in spans[0]
    kinds = [one["value"] for span in spans for one in span["attributes"]
             if one["key"] == "assay.step.type"]  # fmt: skip
    assert [kind["stringValue"] for kind in kinds] == [
        "step", "agent", "tool", "subagent", "agent", "agent",
    ]  # fmt: skip
    about = {one["key"]: one["value"] for one in spans[0]["events"][2]["attributes"]}
    assert about["gen_ai.evaluation.score.label"] == {"stringValue": "error"}
    assert "error.type" in about


def test_a_run_s_traces_leave_in_each_format_and_are_graded_again(tmp_path: Path) -> None:
    (tmp_path / "graders.yaml").write_text(
        "- {type: contains, substring: fixed}\n- {type: tool_correctness, expected: [execute]}\n"
    )
    graders = ("graders.yaml", "--json")
    good = Trace(
        steps=[TRACE.steps[0], TRACE.steps[1],
               ToolStep(call=CALL, result=ToolResult(content="a.py", id="c")), TRACE.steps[4]],
        status="completed", content="fixed",
    )  # fmt: skip
    row = {"id": "one", "answer": "fixed", "question": "fix it", "trace": good.to_dict()}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    first = cells(assay("grade", "rows.jsonl", *graders, cwd=tmp_path))[0]
    assert first["reward"] == 1.0
    shown = assay("report", "latest", "--case", "one", cwd=tmp_path).stdout
    assert "called bash" in shown
    for form in ("jsonl", "atif", "otel"):
        out = f"{form}.jsonl"
        assay("runs", "export", "latest", "--format", form, "--out", out, cwd=tmp_path)
        again = cells(assay("grade", out, *graders, cwd=tmp_path))[0]
        assert again["reward"] == 1.0, form
    done = assay("runs", "export", "latest", "--format", "chat", cwd=tmp_path)
    assert [m["role"] for m in json.loads(done.stdout)["messages"]] == [
        "user", "assistant", "tool", "assistant"]  # fmt: skip


def test_attack_names_in_a_trace_act_on_no_terminal_and_no_page(tmp_path: Path) -> None:
    """A tool's, an argument's and a model's name are the agent's words, as its answer is."""
    evil = "\x1b[2J\x07\u202e\r\x9b31m<script>alert(1)</script>"
    case = write_case(
        tmp_path,
        """
        id: named
        task: {prompt: Say hello.}
        matrix: {harnesses: [replay], models: [evil]}
        graders: [{type: contains, substring: hello}]
        """,
    )
    call = ToolCall(name=evil, arguments={evil: evil}, id="1", raw_name=evil)
    trace = Trace(
        steps=[
            AgentStep(content=evil, model=evil, tool_calls=(call,)),
            ToolStep(call=call, result=ToolResult(content=evil)),
        ],
        content=f"{evil} hello",
        status="completed",
        extra={evil: evil},
        trace_id=evil,
    )
    (case / "recordings/evil").mkdir(parents=True)
    (case / "recordings/evil/trace.json").write_text(json.dumps(trace.to_dict()))

    shown = [assay("run", "evals", "--name", evil, cwd=tmp_path)]
    assert shown[0].returncode == 0, shown[0].stderr
    opened = ("report", "latest", "--case", "named", "--html", "page.html", "--junit", "j.xml")
    shown += [assay(*words, cwd=tmp_path) for words in (opened, ("runs",), ("report", evil))]
    pages = [(tmp_path / name).read_text() for name in ("page.html", "j.xml")]

    assert "<script>alert" in shown[1].stdout, "it is told, in plain characters"
    for text in [*pages, *(done.stdout + done.stderr for done in shown)]:
        assert not set("\x1b\x07\u202e\r\x9b") & set(text)
    assert not any("<script>alert" in page for page in pages)
