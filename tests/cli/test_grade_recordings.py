"""`assay grade` on what agents left elsewhere: each run is a row, with its trace."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from pathlib import Path

import pytest
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from assay.agents.transcripts.telling import as_otel
from assay.agents.transcripts.writing import Told
from assay.cli.rows import _begins_with_a_row
from assay.scoring.json_safe import Json
from assay.types.trace import AgentStep, ToolCall, ToolResult, ToolStep, Trace
from tests.command_line import assay, cells, summary
from tests.written_files import write_rows

SAMPLE = Path(__file__).parents[1] / "recordings"

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


def test_recordings_are_graded_by_what_was_done_as_a_shell_or_a_pattern_names_them(
    tmp_path: Path,
) -> None:
    work(tmp_path)
    files = sorted(str(one.relative_to(tmp_path)) for one in (tmp_path / "traces").iterdir())
    found = [
        assay("grade", *data, "graders.yaml", "--json", cwd=tmp_path)
        for data in (["traces"], files, ["traces/*"], ["traces", *files[:1]])
    ]
    rewards = {str(cell["case"]).partition("#")[0]: cell["reward"] for cell in cells(found[0])}
    assert rewards.pop("openai-agents-trace.jsonl") == 1.0
    assert 1.0 not in rewards.values()
    assert summary(found[0])["skipped"] == 0
    directory, listed, pattern, both = ([cell["case"] for cell in cells(done)] for done in found)
    assert sorted(map(str, directory)) == sorted(map(str, listed)) == sorted(map(str, pattern))
    assert len(both) == len(directory) + 1
    (tmp_path / "rows.jsonl").write_text('{"answer": "hello"}')
    done = assay("grade", "rows.jsonl", *files, "graders.yaml", cwd=tmp_path)
    assert (done.returncode, "rows.jsonl holds no recordings" in done.stderr) == (2, True)
    done = assay("grade", "a.eval", "b.eval", cwd=tmp_path)
    assert (done.returncode, "b.eval is a log of Inspect" in done.stderr) == (2, True)


def test_a_file_that_is_no_trace_is_a_bad_row(tmp_path: Path) -> None:
    work(tmp_path)
    command = ("grade", "traces", "graders.yaml", "--json")
    well_formed = cells(assay(*command, cwd=tmp_path))
    (tmp_path / "traces" / "notes.md").write_text("nothing")
    done = assay(*command, cwd=tmp_path)
    assert done.returncode == 2
    assert "notes.md: not a transcript" in done.stderr
    done = assay(*command, "--on-bad-row", "skip", cwd=tmp_path)
    assert [one["case"] for one in cells(done)] == [one["case"] for one in well_formed]
    assert "left out" in done.stderr


def test_a_run_without_an_answer_says_what_it_lacks(tmp_path: Path) -> None:
    """It said that the answer is null, and that "" is an empty one: of a row that nobody wrote."""
    work(tmp_path)
    turn = {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"}
    lost = {"type": "function_call_output", "call_id": "gone", "output": "hello"}
    (tmp_path / "traces" / "cut.json").write_text(json.dumps([turn, lost]))
    done = assay("grade", "traces", "graders.yaml", "--json", cwd=tmp_path)
    (cut,) = [cell for cell in cells(done) if cell["case"] == "cut.json"]
    why = "the recorded run has no answer: a result belongs to a call that is not there"
    assert (cut["status"], cut["error"]) == ("error", why)


def test_what_a_grader_reads_may_stand_elsewhere_in_a_trace(tmp_path: Path) -> None:
    work(tmp_path)
    (tmp_path / "graders.yaml").write_text("- {type: exact_match}\n")
    file = "traces/openai-agents-trace.jsonl"
    done = assay("grade", file, "graders.yaml", "--json", "--map", "expected=answer", cwd=tmp_path)
    assert done.returncode == 2 or cells(done)[0]["reward"] is None  # nothing is left to compare
    words = ("grade", file, "graders.yaml", "--json", "--map", "expected=trace.content")
    done = assay(*words, cwd=tmp_path)
    assert cells(done)[0]["reward"] == 1.0


def test_a_row_may_have_a_trace_and_a_field_of_that_name_may_be_anything(tmp_path: Path) -> None:
    row = '{"answer": "hello", "trace": {"steps": [], "status": "completed", "content": "hello"}}'
    (tmp_path / "rows.jsonl").write_text(row)
    (tmp_path / "graders.yaml").write_text("- {type: trace, max_tool_calls: 0}\n")
    command = ("grade", "rows.jsonl", "graders.yaml", "--json")
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


def _protobuf(request: Json) -> bytes:
    """A request of OTLP's JSON, as OpenTelemetry's own code writes it."""
    text = json.dumps(request)
    for name in ("traceId", "spanId", "parentSpanId"):  # this form of JSON has bytes in base 64
        found = re.compile(rf'"{name}": "(\w+)"')
        text = found.sub(
            lambda hit, name=name: f'"{name}": "{b64encode(bytes.fromhex(hit[1])).decode()}"', text
        )
    return Parse(text, ExportTraceServiceRequest()).SerializeToString()


@pytest.mark.parametrize(
    "name", ["spans.jsonl", "spans.jsonl.gz", "spans.json", "spans.bin", "spans.bin.gz", "one.bin"]
)
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
            requests.insert(1 + len(requests) // 2, one)
    text = "".join(json.dumps(one) + "\n" for one in requests)
    written = json.dumps(requests) if name.endswith(".json") else text
    data = written.encode()
    if ".bin" in name:
        messages = [_protobuf(one) for one in requests[1:]]
        data = b"".join(
            message if name == "one.bin" else len(message).to_bytes(4, "big") + message
            for message in messages
        )
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    (tmp_path / "graders.yaml").write_text(GRADERS.rpartition("- ")[0])
    done = assay("grade", name, "graders.yaml", "--json", cwd=tmp_path)
    assert [cell["reward"] for cell in cells(done)] == [1.0, 1.0], done.stderr


def test_a_recording_that_speaks_of_an_answer_is_no_row(tmp_path: Path) -> None:
    use: Json = {"type": "tool_use", "id": "t", "name": "Read", "input": {"answer": "x"}}
    lines: list[dict[str, Json]] = [
        {"type": "assistant", "message": {"id": "a", "content": [use]}},
        {"type": "result", "subtype": "success", "result": "hello"},
    ]
    write_rows(tmp_path / "s.jsonl", lines)
    (tmp_path / "graders.yaml").write_text("- {type: tool_correctness, expected: [read]}\n")
    done = assay("grade", "s.jsonl", "graders.yaml", "--json", cwd=tmp_path)
    assert [cell["reward"] for cell in cells(done)] == [1.0], done.stderr


@pytest.mark.parametrize("form", ["{}", "[{}]", "[\n  {},\n  {}\n]", "\ufeff[{}]"])
def test_rows_are_told_without_reading_them_through(form: str) -> None:
    row = '{"question": {"answer": 1}, "answer": "yes"}'
    head = form.replace("{}", row).encode()
    assert _begins_with_a_row(head)
    assert _begins_with_a_row(head.replace(b"yes", b"y" * 100_000)[: 1 << 16])
    assert not _begins_with_a_row(head.replace(b'"answer": "yes"', b'"content": "yes"'))
