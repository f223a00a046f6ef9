"""`assay grade` on what agents left elsewhere: each run is a row, with its trace."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from assay.agents.transcripts.telling import as_otel
from assay.agents.transcripts.writing import Told
from assay.scoring.json_safe import Json
from assay.types.trace import AgentStep, ToolCall, ToolResult, ToolStep, Trace
from tests.command_line import assay, cells, summary

SAMPLE = Path(__file__).parent / "recordings"

GRADERS = """\
- {type: contains, substring: hello}
- {type: tool_correctness, expected: [read]}
- {type: trace, max_tool_calls: 1, max_tokens: 30}
"""


def work(root: Path) -> None:
    """A directory of recordings, and graders."""
    (root / "traces").mkdir()
    for name in ("openai-agents-trace.jsonl", "openai-chat-messages.json"):
        (root / "traces" / name).write_bytes((SAMPLE / name).read_bytes())
    (root / "graders.yaml").write_text(GRADERS)


def test_a_directory_of_traces_is_graded_by_what_was_done(tmp_path: Path) -> None:
    work(tmp_path)
    done = assay("grade", "traces", "-g", "graders.yaml", "--json", cwd=tmp_path)
    rewards = {str(cell["case"]).partition("#")[0]: cell["reward"] for cell in cells(done)}
    assert rewards["openai-agents-trace.jsonl"] == 1.0
    assert rewards["openai-chat-messages.json"] != 1.0
    assert summary(done)["skipped"] == 0


def test_a_file_that_is_no_trace_is_a_bad_row(tmp_path: Path) -> None:
    work(tmp_path)
    (tmp_path / "traces" / "notes.md").write_text("nothing")
    command = ("grade", "traces", "-g", "graders.yaml", "--json")
    done = assay(*command, cwd=tmp_path)
    assert done.returncode == 2
    assert "notes.md: not a transcript" in done.stderr
    done = assay(*command, "--on-bad-row", "skip", cwd=tmp_path)
    assert (done.returncode, len(cells(done))) != (2, 0)
    assert "left out" in done.stderr


def test_what_a_grader_reads_may_stand_elsewhere_in_a_trace(tmp_path: Path) -> None:
    work(tmp_path)
    (tmp_path / "graders.yaml").write_text("- {type: exact_match}\n")
    file = "traces/openai-agents-trace.jsonl"
    done = assay(
        "grade", file, "-g", "graders.yaml", "--json", "--map", "expected=answer", cwd=tmp_path
    )
    assert done.returncode == 2 or cells(done)[0]["reward"] is None  # nothing is left to compare
    done = assay(
        "grade", file, "-g", "graders.yaml", "--json",
        "--map", "expected=trace.content", cwd=tmp_path,
    )  # fmt: skip
    assert cells(done)[0]["reward"] == 1.0


def test_a_row_may_have_a_trace_and_a_field_of_that_name_may_be_anything(tmp_path: Path) -> None:
    row = '{"answer": "hello", "trace": {"steps": [], "status": "completed", "content": "hello"}}'
    (tmp_path / "rows.jsonl").write_text(row)
    (tmp_path / "graders.yaml").write_text("- {type: trace, max_tool_calls: 0}\n")
    command = ("grade", "rows.jsonl", "-g", "graders.yaml", "--json")
    assert assay(*command, cwd=tmp_path).returncode == 0
    (tmp_path / "rows.jsonl").write_text('{"answer": "hello", "trace": "a1b2"}\n')
    assert "which is not available here" in assay(*command, cwd=tmp_path).stderr
    (tmp_path / "rows.jsonl").write_text('{"answer": "x", "trace": {"steps": [{"source": 1}]}}\n')
    (tmp_path / "graders.yaml").write_text("- {type: contains, substring: x}\n")
    assert "'trace' is no trace" in assay(*command, cwd=tmp_path).stderr


CALL = ToolCall(name="read_file", arguments={"answer": "a.txt"}, id="c")
DONE = Trace(
    steps=[AgentStep(step_id=1, tool_calls=(CALL,)),
           ToolStep(step_id=2, call=CALL, result=ToolResult(content="hello", id="c")),
           AgentStep(step_id=3, content="it says hello")],
    status="completed", content="it says hello",
)  # fmt: skip


@pytest.mark.parametrize("name", ["spans.jsonl", "spans.jsonl.gz", "spans.json"])
def test_files_that_a_collector_writes_are_graded(tmp_path: Path, name: str) -> None:
    """A request to a line, in the order in which they came: of one run here, and of others."""
    requests: list[Json] = [{"resourceLogs": []}]
    for run in ("one", "two"):
        told: dict[str, Json] = as_otel(Told(id=run, run="r", trace=DONE, prompt="read it"))
        whole = json.dumps(told)
        spans = json.loads(whole)["resourceSpans"][0]["scopeSpans"][0]["spans"]
        # What an application says beside may be called as a row's fields are.
        spans[0]["attributes"].append({"key": "answer", "value": {"stringValue": "x"}})
        for span in spans:
            one = json.loads(whole)
            one["resourceSpans"][0]["scopeSpans"][0]["spans"] = [span]
            requests.insert(len(requests) // 2, one)
    text = "".join(json.dumps(one) + "\n" for one in requests)
    written = json.dumps(requests) if name.endswith(".json") else text
    packed = gzip.compress(written.encode()) if name.endswith(".gz") else written.encode()
    (tmp_path / name).write_bytes(packed)
    (tmp_path / "graders.yaml").write_text(GRADERS.rpartition("- ")[0])
    done = assay("grade", name, "-g", "graders.yaml", "--json", cwd=tmp_path)
    assert [cell["reward"] for cell in cells(done)] == [1.0, 1.0], done.stderr


def test_a_recording_that_speaks_of_an_answer_is_no_row(tmp_path: Path) -> None:
    use: Json = {"type": "tool_use", "id": "t", "name": "Read", "input": {"answer": "x"}}
    lines: list[dict[str, Json]] = [
        {"type": "assistant", "message": {"id": "a", "content": [use]}},
        {"type": "result", "subtype": "success", "result": "hello"},
    ]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "graders.yaml").write_text("- {type: tool_correctness, expected: [read]}\n")
    done = assay("grade", "s.jsonl", "-g", "graders.yaml", "--json", cwd=tmp_path)
    assert [cell["reward"] for cell in cells(done)] == [1.0], done.stderr
