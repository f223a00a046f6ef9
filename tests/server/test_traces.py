"""Traces over OTLP/HTTP: kept span by span, first come, and graded as a dataset."""

from __future__ import annotations

import gzip
import json
import textwrap
import zlib
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from assay.agents.transcripts.otlp import sent_spans
from assay.agents.transcripts.reading import read_recordings
from assay.client import Client
from assay.errors import ConflictError, InputError, NotFoundError
from assay.scoring.json_safe import Json
from assay.server.context import ServerSettings
from assay.service.local import local_desk
from assay.service.traces import new_spans, receive
from assay.store.database import Database
from assay.store.traces import TraceLimits
from assay.testing import FakeModel, calls
from tests.client_modes import MODES, client_of, running
from tests.command_line import assay, write_case
from tests.otlp_spans import TRACE, agent_spans, otlp_request, span
from tests.server_app import Site, body_of, items_of, serving
from tests.server_process import ServerProcess

OTHER = "a" * 32
PROTOBUF = "application/x-protobuf"
GRADERS: dict[str, Json] = {
    "graders": [
        {"type": "contains", "substring": "4", "weight": 1.0},
        {"type": "trace", "require_tools": [{"kind": "execute"}], "max_tool_calls": {"write": 0},
         "max_tokens": 100, "weight": 1.0},
    ]
}  # fmt: skip


@pytest.fixture
async def site(tmp_path: Path) -> AsyncGenerator[Site]:
    async with serving(str(tmp_path / "home")) as running:
        yield running


async def _send(
    site: Site,
    spans: list[dict[str, Json]],
    path: str = "/v1/traces",
    client: httpx.AsyncClient | None = None,
) -> dict[str, Any]:
    answer = await (client or site.admin).post(site.at(path), json=otlp_request(spans))
    assert answer.status_code == 200, answer.text
    return cast("dict[str, Any]", body_of(answer).get("partialSuccess") or {})


async def _trace(site: Site, trace: str = TRACE) -> tuple[dict[str, Any], dict[str, Any]]:
    found = cast("dict[str, Any]", body_of(await site.get(f"traces/{trace}")))
    return found["trace"], found["row"]


async def test_spans_come_in_any_order_and_again_and_are_graded_once(location: str) -> None:
    async with serving(location) as site:
        first, tool, last, outermost = agent_spans()
        assert await _send(site, [outermost, tool]) == {}
        record, row = await _trace(site)
        assert (record["whole"], record["spans"], record["name"]) == (True, 2, "invoke_agent sums")
        assert "incomplete" not in row["trace"]["extra"], "nothing says that more will come"
        assert await _send(site, [tool, last]) == {}
        assert await _send(site, [last, first]) == {}
        await _send(site, agent_spans("5", OTHER)[:3])
        record, row = await _trace(site)
        assert (record["spans"], record["rewritten"], record["refused"]) == (4, 0, 0)
        assert (row["id"], row["answer"], row["question"]) == (TRACE, "4", "What is 2 + 2?")
        listed = items_of(await site.get("traces"))
        assert [(one["id"], one["whole"]) for one in listed] == [(OTHER, False), (TRACE, True)]
        made = await site.post("traces/collect", {"key": "monday"})
        assert (made.status_code, body_of(made)["rows"]) == (201, 1)
        more = await site.post("traces/collect", {"key": "all", "unfinished": True})
        assert body_of(more)["rows"] == 2
        await site.made("work", GRADERS)
        await site.ended(job := await site.post("jobs", {"grader": "work", "dataset": "all"}))
        scores = items_of(await site.get(f"{job.headers['location']}/results"))
        assert [(one["item"], one["status"], one["score"]) for one in scores] == [
            (TRACE, "scored", 1.0), (OTHER, "error", None),
        ]  # fmt: skip
        gone = await site.admin.delete(site.at(f"traces/{TRACE}"))
        assert gone.status_code == 204
        assert (await site.get(f"traces/{TRACE}")).status_code == 404
        assert len(items_of(await site.get("datasets/monday/rows"))) == 1


async def test_a_span_that_comes_later_rewrites_nothing_and_is_told(site: Site) -> None:
    body = json.dumps(otlp_request(agent_spans("5"))).encode()
    for name, packed in (("gzip", gzip.compress(body)), ("deflate", zlib.compress(body))):
        headers = {"Content-Type": "application/json", "Content-Encoding": name}
        answer = await site.admin.post("/v1/traces", content=packed, headers=headers)
        assert (answer.status_code, body_of(answer)) == (200, {})
    told = await _send(site, agent_spans("4"))
    assert told["rejectedSpans"] == "1"
    assert "first one is kept" in told["errorMessage"]
    record, row = await _trace(site)
    assert (record["rewritten"], row["answer"]) == (1, None)
    assert "something else" in row["trace"]["extra"]["incomplete"]
    await site.made("work", GRADERS)
    await site.post("traces/collect", {"key": "d"})
    await site.ended(job := await site.post("jobs", {"grader": "work", "dataset": "d"}))
    (score,) = items_of(await site.get(f"{job.headers['location']}/results"))
    assert (score["status"], score["score"]) == ("error", None), "nobody knows what was said"


async def test_a_span_that_was_refused_is_missing_in_the_trace(site: Site) -> None:
    hidden = {**span(7, 1, operation__name="execute_tool", tool__name="rm"), "spanId": "no"}
    told = await _send(site, [*agent_spans(), hidden])
    assert (told["rejectedSpans"], "spanId" in told["errorMessage"]) == ("1", True)
    record, row = await _trace(site)
    assert (record["spans"], record["refused"]) == (4, 1)
    assert "refused" in row["trace"]["extra"]["incomplete"]


async def test_projects_do_not_see_or_change_each_others_traces(site: Site) -> None:
    other = await site.in_new_project()
    key = await other.key("editor", other.project)
    async with site.client(key) as client:
        await _send(site, agent_spans("theirs"), client=client)
        await _send(site, agent_spans("ours"))
        assert (await _trace(other))[1]["answer"] == "theirs"
        assert (await _trace(site))[1]["answer"] == "ours"
        refused = await client.post(site.at("otlp/v1/traces"), json=otlp_request(agent_spans()))
        assert refused.status_code == 403
        assert body_of(refused)["code"] == 7
        assert (await client.get(site.at("traces"))).status_code == 403
    for token, status, code in ((await site.key("viewer", "default"), 403, 7), ("", 401, 16)):
        async with site.client(token) as who:
            answer = await who.post("/v1/traces", json=otlp_request(agent_spans()))
            assert (answer.status_code, body_of(answer)["code"]) == (status, code)
    await _send(other, [span(8, 1)], "otlp/v1/traces")
    assert (await _trace(other))[0]["spans"] == 5
    assert (await _trace(site))[0]["spans"] == 4


async def test_a_key_of_all_projects_is_held_to_the_limit_of_the_one_it_sends_to(
    site: Site,
) -> None:
    limits: Json = {"requests_per_minute": 1}
    put = await site.admin.put("/api/v1/projects/default/limits", json=limits)
    assert put.status_code == 200, put.text
    async with site.client(await site.key("editor")) as editor:
        await _send(site, agent_spans(), client=editor)
        refused = await editor.post("/v1/traces", json=otlp_request(agent_spans()))
        assert (refused.status_code, body_of(refused)["code"]) == (429, 8)
        assert int(refused.headers["retry-after"]) > 0


REFUSED: list[tuple[bytes, Mapping[str, str], int, str]] = [
    (b"x", {"Content-Type": "text/plain"}, 415, "OTEL_EXPORTER_OTLP_PROTOCOL"),
    (b"{}", {"Content-Type": ""}, 415, "application/json"),
    (b'{"\xff": 1}', {}, 400, "UTF-8"),
    (b'{"resourceSpans": [NaN]}', {}, 400, "NaN"),
    (b"[]", {}, 400, "ExportTraceServiceRequest"),
    (b'{"a": ' + b"[" * 200 + b"]" * 200 + b"}", {}, 400, "deeper"),
    (b"{}", {"Content-Encoding": "br"}, 415, "gzip"),
    (b"{}", {"Content-Encoding": "gzip"}, 400, "not gzip"),
    (gzip.compress(b"{}")[:-4], {"Content-Encoding": "gzip"}, 400, "too early"),
    (gzip.compress(b"[" * (2 << 20)), {"Content-Encoding": "gzip"}, 413, "unpacks"),
    (b"x" * (2 << 20), {}, 413, "larger"),
]


async def test_what_cannot_be_read_is_refused_as_otlp_says(tmp_path: Path) -> None:
    small = ServerSettings(location="", max_body_bytes=1 << 20)
    async with serving(str(tmp_path), small) as site:

        async def refused(status: int, why: str, body: bytes = b"{}", **more: Any) -> None:
            headers = {"Content-Type": "application/json", **more.pop("headers", {})}
            answer = await site.admin.post("/v1/traces", content=body, headers=headers, **more)
            assert (answer.status_code, body_of(answer)["code"]) == (status, 3), why
            assert why in str(body_of(answer)["message"])

        for body, headers, status, why in REFUSED:
            await refused(status, why, body, headers=headers)
        await refused(400, "unknown query", params={"a": "1"})
        assert items_of(await site.get("traces")) == []


async def test_protobuf_is_answered_in_protobuf(site: Site) -> None:
    from google.rpc.status_pb2 import Status
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    async def send(body: bytes, **headers: str) -> httpx.Response:
        answer = await site.admin.post(
            "/v1/traces", content=body, headers={"Content-Type": PROTOBUF, **headers}
        )
        assert answer.headers["content-type"] == PROTOBUF
        return answer

    assert (await send(b"")).content == b""
    part = await send(b"\x0a\x04\x12\x02\x12\x00")  # a span without an id
    told = ExportTraceServiceResponse.FromString(part.content).partial_success
    assert (told.rejected_spans, "traceId" in told.error_message) == (1, True)
    refused = await send(b"\x0b")
    assert refused.status_code == 400
    assert Status.FromString(refused.content).code == 3
    strange = await send(b"", Host="elsewhere.example")  # refused before it comes to any route
    assert (strange.status_code, "elsewhere" in strange.text) == (421, True)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (TraceLimits(spans=3), "at most 3 spans"),
        (TraceLimits(span_bytes=500), "a span has"),
        (TraceLimits(trace_bytes=1_500), "at most 1,500 bytes"),
        (TraceLimits(project_bytes=1_500), "all the room"),
    ],
    ids=["spans", "bytes of a span", "bytes of a trace", "bytes of a project"],
)
async def test_what_is_too_much_is_not_kept_and_its_trace_is_told(
    tmp_path: Path, limits: TraceLimits, why: str
) -> None:
    async with serving(str(tmp_path), ServerSettings(location="", traces=limits)) as site:
        told = await _send(site, agent_spans())
        assert why in told["errorMessage"]
        record, row = await _trace(site)
        assert record["refused"] == int(told["rejectedSpans"]) > 0
        assert record["spans"] == 4 - record["refused"]
        assert row["trace"]["extra"]["incomplete"]


async def test_a_project_has_so_many_traces_and_no_more(tmp_path: Path) -> None:
    limits = ServerSettings(location="", traces=TraceLimits(traces=1))
    async with serving(str(tmp_path), limits) as site:
        await _send(site, agent_spans()[:2])
        told = await _send(site, [*agent_spans("x", OTHER), *agent_spans()])
        assert (told["rejectedSpans"], "delete some" in told["errorMessage"]) == ("4", True)
        assert (await _trace(site))[0]["spans"] == 4, "what has begun goes on"
        for before in ("yesterday", "", "9999-12-31T23:59:59-23:59"):
            wrong = await site.admin.delete(site.at("traces"), params={"before": before})
            assert wrong.status_code == 422
        tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
        gone = await site.admin.delete(site.at("traces"), params={"before": tomorrow})
        assert body_of(gone) == {"deleted": 1}
        assert await _send(site, agent_spans("x", OTHER)) == {}


async def test_what_came_is_in_the_log_of_changes_and_counted(site: Site) -> None:
    await _send(site, agent_spans())
    await _send(site, agent_spans())
    await _send(site, agent_spans("5"))
    changes = items_of(await site.get("changes"))
    assert [(one["operation"], one["what"]) for one in changes] == [
        ("receive_traces", {"traces": 0, "spans": 0, "rewritten": 1}),
        ("receive_traces", {"traces": 1, "spans": 4}),
    ]
    metrics = (await site.admin.get("/metrics")).text
    for outcome, number in (("stored", 4), ("repeated", 7), ("rewritten", 1)):
        assert f'assay_spans_total{{outcome="{outcome}"}} {number}.0' in metrics
        assert f'assay_project_spans_total{{outcome="{outcome}",project="default"}}' in metrics


async def test_other_signals_and_methods_say_what_to_do(site: Site) -> None:
    for signal in ("metrics", "logs"):
        answer = await site.post(f"/v1/{signal}", {})
        assert answer.status_code == 404
        assert f"OTEL_{signal.upper()}_EXPORTER=none" in str(body_of(answer)["message"])
    asked = await site.get("/v1/traces")
    assert (asked.status_code, body_of(asked)["code"]) == (405, 3)
    strange = await site.post("/v1/traces", {}, Host="elsewhere.example")
    assert (strange.status_code, "not known" in str(body_of(strange)["message"])) == (421, True)


@pytest.mark.parametrize("mode", MODES)
def test_the_client_lists_collects_and_deletes(mode: str, tmp_path: Path) -> None:
    location = str(tmp_path / "store")
    with Database.open(location) as database:
        desk = local_desk(database, "default")
        limits = TraceLimits()
        for trace, answer in ((TRACE, "4"), (OTHER, "5")):
            spans, _ = new_spans(sent_spans(otlp_request(agent_spans(answer, trace))), limits)
            receive(desk, spans, limits)
        plain, _ = new_spans(sent_spans(otlp_request([span(1, trace="b" * 32)])), limits)
        receive(desk, plain, limits)
    with client_of(mode, location) as client:
        assert [one.id for one in client.traces.list()] == ["b" * 32, OTHER, TRACE]
        shown = client.traces.get(TRACE)
        assert (shown.trace.spans, shown.row["answer"]) == (4, "4")
        made = client.traces.collect("d", name="Monday", clear=True)
        assert (made.name, made.rows) == ("Monday", 2), "what tells of no model is no row"
        assert [row.answer for row in client.datasets.rows("d")] == ["4", "5"]
        assert [one.id for one in client.traces.list()] == ["b" * 32]
        with pytest.raises(InputError, match="no trace to collect"):
            client.traces.collect("e")
        with pytest.raises(ConflictError):
            client.traces.collect("d")
        with pytest.raises(NotFoundError):
            client.traces.get(TRACE)
        assert client.traces.delete_older(datetime(2020, 1, 1, tzinfo=UTC)) == 0
        client.traces.delete("b" * 32)
        assert client.traces.list() == []


def _export(endpoint: str, headers: str, monkeypatch: pytest.MonkeyPatch, **more: str) -> None:
    """An agent's tracing, as people set it up: by the environment alone."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", headers)
    for name, value in more.items():
        monkeypatch.setenv(name, value)
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("tests")
    text = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "2 + 2?"}]}])
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "4"}]}])
    with tracer.start_as_current_span("invoke_agent sums") as around:
        around.set_attribute("gen_ai.operation.name", "invoke_agent")
        with tracer.start_as_current_span("execute_tool bash") as tool:
            tool.set_attributes({
                "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "bash",
                "gen_ai.tool.call.result": "4",
            })  # fmt: skip
        with tracer.start_as_current_span("chat m") as chat:
            chat.set_attributes({
                "gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
                "gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 5,
                "gen_ai.input.messages": text, "gen_ai.output.messages": said,
                "gen_ai.response.finish_reasons": ["stop"],
            })  # fmt: skip
    assert provider.force_flush()
    provider.shutdown()


@pytest.mark.slow
def test_the_sdks_own_exporter_sends_to_a_real_server_and_both_ways_of_grading_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ServerProcess(tmp_path) as server:
        header = f"Authorization=Bearer {server.token}"
        _export(server.url, header, monkeypatch)
        project = f"{server.url}/api/v1/projects/default/otlp"
        coded = f"authorization=Bearer%20{server.token}"
        _export(project, coded, monkeypatch, OTEL_EXPORTER_OTLP_COMPRESSION="gzip")
        with Client(server.url, server.token) as client:
            assert [one.whole for one in client.traces.list()] == [True, True]
            client.traces.collect("sent")
            graders = cast("list[dict[str, Json]]", GRADERS["graders"])
            client.graders.create.declared(key="work", graders=graders)
            job = client.jobs.wait(client.jobs.create("work", "sent").id)
            scores = [one.score for one in client.jobs.results(job.id)]
    assert scores == [1.0, 1.0]
    (tmp_path / "work.yaml").write_text(json.dumps(graders), "utf-8")
    done = assay("server", "export", "dataset", "sent", "--out", "sent.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    graded = assay("grade", "sent.jsonl", "work.yaml", "--json", cwd=tmp_path)
    assert graded.returncode == 0, graded.stderr
    cells = json.loads(graded.stdout)["cells"]
    assert [cell["reward"] for cell in cells] == scores


@pytest.mark.sandbox
def test_a_run_that_is_exported_to_a_server_is_there_as_its_export_is_read(tmp_path: Path) -> None:
    graders = """
        graders:
          - {type: contains, substring: written}
          - {type: trace, require_tools: [{kind: write}], max_tool_calls: {execute: 0}}
    """
    write_case(tmp_path, f"id: hello\ntask: {{prompt: Write a.txt.}}\n{textwrap.dedent(graders)}")
    with (
        FakeModel([calls("write", path="a.txt", content="hello"), "It is written."]) as fake,
        running(str(tmp_path / "server")) as server,
    ):
        headers = f"Authorization=Bearer {server.key('editor', 'default')}"
        env = {"OTEL_EXPORTER_OTLP_HEADERS": headers}
        run = ("run", "evals", "--model", fake.model, "--otel", server.url)
        done = assay(*run, cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stderr
        with Client(server.url, server.key()) as client:
            (sent,) = client.traces.list()
            row = client.traces.get(sent.id).row
    assert (sent.whole, sent.gen_ai, sent.rewritten, sent.refused) == (True, True, 0, 0)
    exported = assay("runs", "export", "latest", "--format", "otel", cwd=tmp_path).stdout
    (recording,) = read_recordings(exported)
    trace = cast("dict[str, Any]", row["trace"])
    told = json.loads(json.dumps(recording.transcript.trace.to_dict()))
    assert trace["steps"] == told["steps"]
    assert (row["answer"], row["id"]) == ("It is written.", recording.id)
    assert "incomplete" not in trace["extra"]
