"""Recordings and commands that show another agent's transcript, from the harness to the grade."""

from __future__ import annotations

import json
import tempfile
import textwrap
from pathlib import Path

import pytest

from assay.agents import CommandAgent, ReplayAgent
from assay.documents import DocumentError
from assay.errors import AgentError
from assay.scoring.json_safe import Json
from assay.tasks import Taskset
from assay.tasks.blocks import HarnessSpec, TraceFormat, load_harnesses
from assay.tasks.task import Agent
from assay.types.run import Run
from assay.types.submission import Workspace
from assay.types.trace import AgentStep, ToolStep
from tests.each import each
from tests.written_files import write_files

pytestmark = pytest.mark.sandbox

_RESULT: dict[str, Json] = {
    "type": "result",
    "subtype": "success",
    "result": "done",
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "total_cost_usd": 0.0,
}


_NONE: Json = {"input_tokens": 0, "output_tokens": 0}


def using(name: str, **arguments: Json) -> Json:
    """A line of Claude Code's stream that calls a tool."""
    block: Json = {"type": "tool_use", "id": f"id of {name}", "name": name, "input": arguments}
    return {"type": "assistant", "message": {"content": [block]}}


def printing(*lines: Json | str, end: str = "") -> list[str]:
    """A command that prints lines."""
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    script = f"cat <<'EOF'\n{text}EOF\n{end}"
    return ["/bin/sh", "-c", script.replace("{", "{{").replace("}", "}}")]


async def run_case(root: Path, agent: Agent, graders: str = "") -> Run:
    """Run a case with the trace graders."""
    if not graders:
        graders = """
        - type: trace
          require_tools: [{kind: execute}, {name: run_tests}]
          max_tool_calls: 5
          require_no_denied: true
        """
    root.mkdir(exist_ok=True)
    (root / "case.yaml").write_text(
        "id: c\ntask: {prompt: x}\nmatrix: {harnesses: [echo], models: [m]}\ngraders:\n"
        + textwrap.dedent(graders)
    )
    job = await Taskset.from_file(str(root)).run(agent)
    return job.runs[0]


def traced(argv: list[str], form: TraceFormat = "claude-code", seconds: float = 60) -> CommandAgent:
    """An agent that prints a transcript."""
    return CommandAgent(spec=HarnessSpec(argv=tuple(argv), trace=form, timeout_s=seconds))


async def test_a_command_that_prints_a_transcript(tmp_path: Path) -> None:
    agent = traced(printing(using("Bash", command="pytest"), using("run_tests"), _RESULT))
    run = await run_case(tmp_path, agent)
    assert (run.reward, run.trace.content) == (1.0, "done")
    assert (run.tokens, run.cost_usd) == (2, 0.0)
    assert [s.call.kind for s in run.trace.steps if isinstance(s, ToolStep)] == ["execute", "other"]


async def test_printing_events_from_a_harness_without_a_trace(tmp_path: Path) -> None:
    spec = HarnessSpec(argv=tuple(printing(using("Bash"), using("run_tests"), _RESULT)))
    run = await run_case(tmp_path, CommandAgent(spec=spec))
    assert run.reward is None
    assert run.trace.extra["observed"] is False


async def test_killing_ones_own_recorder(tmp_path: Path) -> None:
    run = await run_case(
        tmp_path, traced(printing(using("Bash"), using("run_tests"), end="kill -9 $$"))
    )
    assert (run.reward, run.grade.is_error) == (0.5, False)
    silent = await run_case(tmp_path, traced(["/bin/sh", "-c", "kill -9 $$"]))
    assert (silent.reward, silent.grade.is_error) == (0.0, False)


@pytest.mark.slow
async def test_running_out_of_time_leaves_what_was_seen(tmp_path: Path) -> None:
    run = await run_case(tmp_path, traced(printing(using("Bash"), end="sleep 98765"), seconds=2))
    assert run.reward == 0.25
    assert run.trace.stop_reason == "timeout"
    assert "no result line" in str(run.trace.extra["incomplete"])
    assert (run.tokens, run.cost_usd) == (None, None)


@each(
    "argv, said",
    [
        (["/bin/echo", "plain text"], "not a transcript"),
        (["/bin/sh", "-c", "echo unknown flag >&2; exit 2"], "unknown flag"),
        (printing({"role": "user", "content": "x"}), "openai-chat, not claude-code"),
        (
            printing({**_RESULT, "is_error": True, "result": "Invalid API key", "usage": _NONE}),
            "never answered: success: Invalid API key",
        ),
    ],
)
async def test_a_broken_harness_is_an_error_and_no_zero(
    argv: list[str], said: str, tmp_path: Path
) -> None:
    run = await run_case(tmp_path, traced(argv))
    assert run.grade.is_error
    assert said in str(run.grade.content)


async def test_long_output_is_kept_whole(tmp_path: Path) -> None:
    long: Json = {"type": "assistant", "message": {"content": "x" * 300_000}}
    lines = [json.dumps(line) for line in (using("Bash"), long, using("run_tests"), _RESULT)]
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "out").write_text("\n".join(lines))
    run = Run(prompt="x", workspace=Workspace(path=str(workspace)))
    await traced(["/bin/cat", "out"])(run)
    assert "incomplete" not in run.trace.extra
    assert len([step for step in run.trace.steps if isinstance(step, ToolStep)]) == 2


# Recordings


_CHAT: list[Json] = [
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "function": {"name": "bash", "arguments": "{}"}}],
    },
    {"role": "assistant", "content": "done"},
]
_ATIF: Json = {
    "schema_version": "ATIF-v1.7",
    "agent": {"name": "a", "version": "1"},
    "steps": [
        {
            "step_id": 1,
            "source": "agent",
            "message": "done",
            "tool_calls": [{"tool_call_id": "1", "function_name": "bash", "arguments": {}}],
            "metrics": {"prompt_tokens": 3, "completion_tokens": 4, "cost_usd": 0.5},
        }
    ],
}
_STEPS = (
    '{"type": "agent", "content": "done", "usage": {"prompt_tokens": 3, "completion_tokens": 4}}\n'
    '{"type": "tool", "call": {"name": "Bash"}}\n'
)


async def replay(files: dict[str, str]) -> Run:
    """Replay a recording without a workspace."""
    with tempfile.TemporaryDirectory() as root:
        write_files(Path(root, "m"), files)
        run = Run(prompt="x", model="m")
        await ReplayAgent(directory=root)(run)
        return run


@each(
    "name, text, used",
    [
        ("trace.jsonl", json.dumps(using("Bash")) + "\n" + json.dumps(_RESULT), (2, 0.0)),
        ("trace.jsonl", "\n".join(json.dumps(line) for line in _CHAT), (None, None)),
        ("transcript.json", json.dumps(_CHAT, indent=1), (None, None)),
        ("trace.jsonl", json.dumps(_ATIF), (7, 0.5)),
        ("transcript.json", json.dumps(_ATIF, indent=1), (7, 0.5)),
        ("trace.jsonl", _STEPS, (7, None)),
    ],
)
async def test_recordings_of_other_agents(
    name: str, text: str, used: tuple[int | None, float | None]
) -> None:
    run = await replay({name: text})
    assert (run.tokens, run.cost_usd) == used
    assert run.trace.content == "done"
    assert [s.call.kind for s in run.trace.steps if isinstance(s, ToolStep)] == ["execute"]


async def test_an_answer_beside_a_transcript_is_the_answer_and_alone_has_used_nothing() -> None:
    run = await replay({"transcript.json": json.dumps(_CHAT), "answer.txt": "42\n"})
    assert run.trace.content == "42"
    run = await replay({"answer.txt": "42"})
    assert (run.tokens, run.cost_usd) == (0, 0.0)
    assert [type(step) for step in run.trace.steps] == [AgentStep]


@each(
    "files, said",
    [
        ({"transcript.json": "[1]"}, "not a transcript"),
        ({"transcript.json": "[1]", "trace.jsonl": ""}, "keep one"),
        ({"trace.jsonl": '{"type": "dance"}'}, "trace.jsonl:1: not a step"),
        ({"trace.jsonl": "[" * 100_000}, "trace.jsonl:1: not a step"),
        ({"trace.jsonl": '{"type": "agent", "type": "tool"}'}, "the key 'type' stands twice"),
    ],
)
async def test_recordings_that_are_none(files: dict[str, str], said: str) -> None:
    with pytest.raises(AgentError, match=said):
        await replay(files)


def test_a_format_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "harnesses.yaml"
    file.write_text("a: {argv: [x], trace: claude_code}\n")
    with pytest.raises(DocumentError, match="did you mean 'claude-code'"):
        load_harnesses(str(file))
