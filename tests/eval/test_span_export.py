"""`--otel` and `SpanExport`: steps leave while an agent works, and no collector can hurt a run."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import urllib.request
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from assay.conversation.turns import Conversation
from assay.environment import Environment, Observation
from assay.errors import InputError, MissingExtraError
from assay.eval import SpanExport, otlp_sender, span_export
from assay.store import Store
from assay.testing import FakeModel, calls
from assay.types import AgentStep, Run, ToolCall, ToolResult, ToolStep
from assay.types.trace import Step, SubagentStep, Trace, Usage
from tests.children import Children, alone
from tests.command_line import COMMAND, assay, echo_case, environment, write_case
from tests.each import each
from tests.eval.span_collector import Collector, Taken, collector
from tests.model_servers import until_killed
from tests.written_files import write_rows

env = Environment("letters")
CALL = ToolCall(name="bash", arguments={"command": "ls"}, id="c")


@env.template()
async def count() -> AsyncGenerator[Any, Any]:
    answer = yield "How many letters are in strawberry?"
    yield 1.0 if answer == "10" else 0.0


async def _agent(run: Run) -> str:
    run.record(AgentStep(content="I look", tool_calls=(CALL,)))
    run.record(ToolStep(call=CALL, result=ToolResult(content="a.py", id="c")))
    return "10"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_sender, "_EVERY_SECONDS", 0.01)
    monkeypatch.setattr(span_export, "_LAST_SECONDS", 20.0)


@pytest.fixture
def found() -> Iterator[Collector]:
    with collector() as one:
        yield one


def _wait_for_the_end() -> None:
    """Of the threads that send."""
    for thread in threading.enumerate():
        if thread.name.startswith("OtelBatch"):
            thread.join(20)
            assert not thread.is_alive()


def _types(spans: list[Taken]) -> list[str]:
    return [span.about.get("assay.step.type", "") for span in spans]


async def test_steps_leave_while_the_agent_works(found: Collector) -> None:
    async def agent(run: Run) -> str:
        await _agent(run)
        found.wait_for(2)  # before the agent has ended
        assert _types(found.spans) == ["agent", "tool"]
        return "10"

    async with SpanExport(found.url) as export:
        job = await count().run(agent)
    await count().run(_agent)  # when the block has ended
    assert (export.sent, export.dropped, export.problem) == (3, 0, "")
    (run,) = job.runs
    spans = found.of(run.trace_id or "")
    assert _types(spans) == ["agent", "tool", ""]
    root = spans[-1]
    assert {span.parent for span in spans[:2]} == {root.id}
    assert [span.about["assay.schema"] for span in spans[:2]] == ["assay.step/1"] * 2
    assert root.parent == ""
    assert root.resource["service.name"] == "assay"
    assert root.resource["assay.run"] == job.id
    asked = json.loads(spans[0].about["gen_ai.input.messages"])
    assert asked[0]["parts"][0]["content"] == "How many letters are in strawberry?"
    told = {"name": "reward", "score.value": 1.0, "score.label": "pass"}
    about = {f"gen_ai.evaluation.{name}": value for name, value in told.items()}
    assert root.events[0] == ("gen_ai.evaluation.result", about)


@pytest.mark.slow
@each(
    ("fault", "said"),
    [
        ("503", "3 of 3 spans were not taken by ADDRESS: it answered 503 Service Unavailable"),
        ("401", "3 of 3 spans were not taken by ADDRESS: it answered 401 Unauthorized (OTEL_"),
        ("redirect", "3 of 3 spans were not taken by ADDRESS: it answered 302 Found"),
        ("partial", "1 of 3 spans were not taken by ADDRESS: it took a part only: too"),
        ("hang", "3 of 3 spans were not taken by ADDRESS: it did not answer in time"),
        ("garbage", "3 spans sent to ADDRESS"),
        ("nobody", "3 of 3 spans were not taken by ADDRESS: it cannot be reached: Connection ref"),
    ],
)
async def test_attack_no_collector_delays_or_changes_a_run(
    fault: str, said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")  # in which it asks again, at most
    monkeypatch.setattr(span_export, "_LAST_SECONDS", 0.05 if fault == "hang" else 20.0)
    with collector(fault) as found:
        url = "http://127.0.0.1:9" if fault == "nobody" else found.url
        async with SpanExport(url) as export:
            job = await count().run(_agent)
            worked = job.runs[0].seconds
        assert str(export).startswith(said.replace("ADDRESS", f"{url}/v1/traces"))
        found.let_go.set()
        _wait_for_the_end()
    assert (job.reward, job.runs[0].trace.error) == (1.0, None)
    assert worked < 5
    assert caplog.text == ""  # it is said once, by who exports


async def test_attack_an_agent_that_records_much_does_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(otlp_sender, "_MOST_WAITING_BYTES", 50_000)
    monkeypatch.setattr(span_export, "_LAST_SECONDS", 0.05)

    async def agent(run: Run) -> str:
        for _ in range(200):
            run.record(AgentStep(content="x" * 1_000))
        return "10"

    with collector("hang") as found:
        async with SpanExport(found.url) as export:
            await count().run(agent)
            assert export.problem == "more came than it took"
        assert (export.sent, export.dropped) == (0, 201)


async def test_attack_what_cannot_be_told_harms_neither_run_nor_other_spans(
    found: Collector,
) -> None:
    async def agent(run: Run) -> str:
        run.record(AgentStep(content=cast("str", object())))  # no JSON
        run.record(AgentStep(content="half \ud800", usage=Usage(prompt_tokens=1 << 70)))
        run.record(Step(source="system", error="\ud800"))
        return "10"

    async with SpanExport(found.url) as export:
        job = await count().run(agent)
    assert job.reward == 1.0
    assert (export.sent, export.dropped) == (3, 1)
    assert "a step cannot be told: TypeError" in export.problem
    assert found.spans[1].error == "?"


async def test_a_run_that_fails_is_told_as_one_with_the_work_of_its_helper(
    found: Collector,
) -> None:
    inner = Trace(steps=[AgentStep(step_id=1, content="seen")])

    async def agent(run: Run) -> str:
        run.record(SubagentStep(subagent=inner, name="helper"))
        raise ValueError("lost")

    async with SpanExport(found.url):
        job = await count().run(agent)
    helper, step, error, root = found.of(job.runs[0].trace_id or "")
    assert (helper.name, helper.parent, step.parent) == ("invoke_agent helper", root.id, helper.id)
    assert (helper.error, "lost" in error.error, "lost" in root.error) == ("", True, True)
    about = root.events[0][1]
    assert (about["gen_ai.evaluation.score.label"], about["error.type"]) == ("error", "_OTHER")
    assert "gen_ai.evaluation.score.value" not in about


async def test_actions_of_a_task_of_several_steps_leave_one_by_one(found: Collector) -> None:
    games = Environment("games")

    @games.template(max_steps=3)
    async def guess() -> AsyncGenerator[Any, Any]:
        said = yield "Guess."
        while said != "7":
            said = yield Observation("more", reward=-0.1)
        yield 1.0

    async def agent(run: Run) -> None:
        await run.step("3")
        found.wait_for(1)
        run.record(AgentStep(content="I take 7"))
        await run.step("7")

    async with SpanExport(found.url):
        job = await guess().run(agent)
    assert job.reward == 1.0
    first, turn, last, _ = found.spans
    assert [span.name for span in (first, turn, last)] == ["chat", "chat", "step action"]
    assert (first.about["assay.step.type"], first.about["assay.observation"]) == ("action", "more")
    assert first.about["assay.reward"] == -0.1
    said = json.loads(turn.about["gen_ai.input.messages"])
    assert [message["parts"][0]["content"] for message in said] == ["more"]


def test_an_address_is_what_an_address_looks_like(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1/base/")
    assert SpanExport().endpoint == "http://c:1/base/v1/traces"
    assert SpanExport("https://d/").endpoint == "https://d/v1/traces"
    assert SpanExport("https://d/v1/traces").endpoint == "https://d/v1/traces"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/own")
    assert SpanExport().endpoint == "http://t/own"
    export = SpanExport("http://me:secret@d?key=secret")
    assert export.endpoint == "http://me:secret@d/v1/traces?key=secret"
    assert "secret" not in str(export)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with pytest.raises(InputError, match="says grpc"):
        SpanExport()
    for given in ("evals/", "localhost:4318", "ftp://d", "http://", "http://d:x"):
        with pytest.raises(InputError, match="is not the address of a collector"):
            SpanExport(given)


def test_without_the_extra_it_is_said_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(name: str) -> None:
        del name

    monkeypatch.setattr(span_export, "find_spec", nothing)
    with pytest.raises(MissingExtraError):
        SpanExport()
    echo_case(tmp_path)
    done = assay("run", "evals", "--otel", cwd=tmp_path)
    assert done.returncode == 3
    assert "pip install 'assay[otel]'" in done.stderr
    with Store.open(str(tmp_path / ".assay")) as store:
        assert not list(store.runs())


async def test_the_standard_variables_hold(
    found: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20k")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "nightly")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=evals,assay.run=forged")
    async with SpanExport():
        job = await count().run(_agent)
    assert found.headers["authorization"] == "Bearer k"
    resource = found.roots[0].resource
    told = [resource[name] for name in ("service.name", "team", "assay.run")]
    assert told == ["nightly", "evals", job.id]
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    before = found.requests
    async with SpanExport() as export:
        await count().run(_agent)
    assert (found.requests, export.sent, export.dropped) == (before, 0, 0)


async def test_a_gateway_s_conversations_are_told_apart_and_told_once(found: Collector) -> None:
    def ask(base: str, token: str, *said: str) -> str:
        turns = zip(("user", "assistant") * 2, said, strict=False)
        messages = [{"role": role, "content": text} for role, text in turns]
        body = json.dumps({"model": "any", "messages": messages}).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{base}/chat/completions", body, headers)
        with urllib.request.urlopen(request, timeout=20) as reply:
            return json.load(reply)["choices"][0]["message"]["content"]

    async def agent(run: Run) -> str:
        assert run.gateway is not None
        way = run.gateway.openai_url, run.gateway.token
        one = await asyncio.to_thread(ask, *way, "count")
        await asyncio.to_thread(ask, *way, "name this work")
        two = await asyncio.to_thread(ask, *way, "count", one, "again")
        run.record(AgentStep(content=one))  # it says so itself, too
        return two

    with FakeModel(["9", "letters", "10"]) as fake:
        async with SpanExport(found.url):
            job = await count().run(agent, model=fake.model)
    assert job.reward == 1.0
    spans = {span.id: span for span in found.of(job.runs[0].trace_id or "")}
    (root,) = found.roots
    (helper,) = [span for span in spans.values() if span.name == "invoke_agent subagent"]
    assert helper.parent == root.id
    within = {
        parent: [
            json.loads(span.about["gen_ai.output.messages"])[0]["parts"][0]["content"]
            for span in found.spans
            if span.parent == parent and span.name.startswith("chat")
        ]
        for parent in (root.id, helper.id)
    }
    assert within == {root.id: ["9", "10"], helper.id: ["letters"]}
    assert root.about["gen_ai.provider.name"] == "openai"
    assert "gen_ai.provider.name" not in helper.about
    assert len(spans) == len(found.spans) == 1 + 1 + 2 * 3


@pytest.mark.sandbox
def test_the_model_agent_s_steps_are_those_that_are_exported_later(
    tmp_path: Path, found: Collector
) -> None:
    write_case(tmp_path, _HELLO)
    with FakeModel([calls("write", path="a.txt", content="hello"), "It is written."]) as fake:
        options = ("--model", fake.model, "--otel", found.url)
        assert assay("run", "evals", *options, cwd=tmp_path).returncode == 0
    assert _types(found.spans) == ["step", "agent", "tool", "agent", ""]
    later = _exported(tmp_path)
    assert later.keys() == {span.id for span in found.spans}
    for span in found.spans:
        told = {one["key"]: next(iter(one["value"].values()))
                for one in later[span.id]["attributes"]}  # fmt: skip
        for written in ("assay.messages_are_new", "gen_ai.response.finish_reasons"):
            told.pop(written, None)  # the same, in another form of JSON
        mine = {key: str(one) for key, one in span.about.items() if key in told}
        assert {key: str(one) for key, one in told.items()} == mine


def _exported(root: Path) -> dict[str, dict[str, Any]]:
    """The spans of the latest run, as they are exported afterwards."""
    done = assay("runs", "export", "latest", "--format", "otel", cwd=root)
    spans = json.loads(done.stdout)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return {span["spanId"]: span for span in spans}


_HELLO = """
    id: hello
    task: {prompt: Write hello into a.txt.}
    graders:
      - {type: files, patterns: ["hello"], files: [a.txt]}
"""
_CASE = """
    id: sum
    task: {{prompt: "what is 2 + 2?"}}
    matrix: {{harnesses: [honest], models: ["{model}"]}}
    graders:
      - {{type: command, name: file, cmd: "grep -q 4 answer.txt"}}
"""
_AGENT = """
import json, os, subprocess, sys, urllib.request
messages = [{"role": "user", "content": sys.argv[1]}]
while True:
    body = json.dumps({"model": "any", "messages": messages}).encode()
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {
        "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
        "Content-Type": "application/json"})
    said = json.load(urllib.request.urlopen(request, timeout=60))["choices"][0]["message"]
    messages.append(said)
    if not said.get("tool_calls"):
        print(said["content"] + " in " + os.environ.get("TRACEPARENT", "no trace"))
        break
    for call in said["tool_calls"]:
        line = json.loads(call["function"]["arguments"])["command"]
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout})
"""


def _gateway_case(root: Path, model: str) -> None:
    write_case(root, _CASE.format(model=model), "sum")
    (root / "evals" / "honest.py").write_text(_AGENT)
    argv = ["python3", "/suite/honest.py", "{prompt}"]
    harness = f"honest: {{argv: {argv}, mounts: [honest.py], gateway: true}}"
    (root / "evals" / "harnesses.yaml").write_text(harness)


@pytest.mark.sandbox
def test_what_passes_a_gateway_leaves_while_it_passes(tmp_path: Path, found: Collector) -> None:
    async def answer(conversation: Conversation) -> object:
        if any(turn.speaker == "tool" for turn in conversation.turns):
            # What was said, the model's turn and what the tool gave are gone by now.
            await asyncio.to_thread(found.wait_for, 3)
            return "It is 4."
        return calls("bash", command="echo 4 > answer.txt")

    with FakeModel(answer) as fake:
        _gateway_case(tmp_path, fake.model)
        done = assay("run", "evals", "--otel", found.url, cwd=tmp_path)
    assert (done.returncode, "spans" in done.stderr) == (0, False), done.stderr
    with Store.open(str(tmp_path / ".assay")) as store:
        stored = store.run("latest")
        run = Run.from_dict(store.detail(stored.id, next(iter(store.cells(stored.id))).key))
    spans = found.of(run.trace_id or "")
    assert spans == found.spans
    assert _types(spans) == ["step", "agent", "tool", "agent", ""]
    root = spans[-1]
    assert f"in 00-{root.trace}-{root.id}-01" in (run.trace.content or "")
    assert root.resource["assay.run"] == stored.id
    names = [about["gen_ai.evaluation.name"] for _, about in root.events]
    assert names == ["reward", "file"]
    opened = assay("report", "latest", "--case", "sum", "--json", cwd=tmp_path).stdout
    assert f'"trace_id": "{root.trace}"' in opened
    later = {(one["traceId"], one["spanId"], one["name"]) for one in _exported(tmp_path).values()}
    assert later == {(span.trace, span.id, span.name) for span in spans}


@pytest.mark.sandbox
def test_what_left_before_assay_was_killed_is_there(tmp_path: Path, found: Collector) -> None:
    answer, asked = until_killed(calls("bash", command="echo 4 > answer.txt"))
    with Children() as started, FakeModel(answer) as fake:
        _gateway_case(tmp_path, fake.model)
        command = [*COMMAND, "run", "evals", "--otel", found.url]
        around = {**environment(tmp_path), "TMPDIR": str(tmp_path)}
        run = started.start(command, cwd=tmp_path, env=around)
        assert asked.wait(60)
        found.wait_for(3)
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert _types(found.spans) == ["step", "agent", "tool"]
    assert not found.roots
    assert found.spans[0].resource["assay.cell"].startswith("sum honest ")


def test_rows_that_are_graded_leave_with_their_traces(tmp_path: Path, found: Collector) -> None:
    step = AgentStep(step_id=1, content="fixed", model="m")
    ended: Any = {"status": "completed", "content": "fixed", "trace_id": "a" * 32}
    trace = Trace(steps=[step], **ended).to_dict()
    rows = [
        {"id": "one", "answer": "fixed", "question": "fix it", "trace": trace},
        {"id": "two", "answer": "not", "trace": trace},
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    (tmp_path / "graders.yaml").write_text("- {type: contains, substring: fixed}\n")
    grade = ("grade", "rows.jsonl", "graders.yaml")
    assert assay(*grade, "--otel", found.url, cwd=tmp_path).returncode == 1
    assert [root.resource["assay.cell"] for root in found.roots] == ["one recorded", "two recorded"]
    labels = [root.events[0][1]["gen_ai.evaluation.score.label"] for root in found.roots]
    assert labels == ["pass", "fail"]
    assert len({span.trace for span in found.spans}) == 2  # another grading, and no other run's
    after = assay("runs", "export", "latest", "--format", "otel", cwd=tmp_path).stdout
    assert all(root.id in after for root in found.roots)
    found.fault = "503"
    done = assay(*grade, "--otel", found.url, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("warning: 4 of 4 spans were not taken by http://127.0.0.1:") == 1


def test_attack_a_reference_that_is_played_is_nobody_else_s_to_see(
    tmp_path: Path, found: Collector
) -> None:
    echo_case(tmp_path)

    async def play() -> None:
        from assay.eval.planning import Planned
        from assay.eval.proofs.trials import arena
        from assay.tasks.case import load_cases
        from assay.tasks.task import case_task

        (loaded,) = load_cases([str(tmp_path / "evals")])

        def done(trial: Planned, run: Run) -> None:
            assert (trial.harness, run.trace.content) == ("reference", "the solution")

        async def reference(run: Run) -> str:
            run.record(AgentStep(content="the solution"))
            return "the solution"

        async with SpanExport(found.url), arena(cache=str(tmp_path / "c"), workers=1) as place:
            trial = Planned(case_task(loaded), "reference", agent=reference)
            await place.run([trial], done)

    asyncio.run(play())
    assert found.spans == []


def test_what_is_only_graded_again_is_not_told_again(tmp_path: Path, found: Collector) -> None:
    case = echo_case(tmp_path, pattern="good")
    assert assay("run", "evals", "--otel", found.url, cwd=tmp_path).returncode == 1
    before = list(found.spans)
    assert len(found.roots) == 1
    (case / "case.yaml").write_text((case / "case.yaml").read_text().replace("good", "hello"))
    again = ("run", "--resume", "latest", "--regrade", "--otel", found.url)
    assert assay(*again, cwd=tmp_path).returncode == 0
    assert found.spans == before
    after = assay("runs", "export", "latest", "--format", "otel", cwd=tmp_path).stdout
    assert f'"traceId": "{found.roots[0].trace}"' in after  # it is the same work


def test_without_the_option_nothing_is_exported_or_loaded(tmp_path: Path) -> None:
    echo_case(tmp_path)
    code = f"""
        import os, sys
        from assay.cli.main import main
        os.chdir({str(tmp_path)!r})
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:9"
        os.environ["ASSAY_DB"] = ".assay"
        try:
            main(["run", "evals"])
        except SystemExit:
            pass
        known = ("opentelemetry.sdk", "assay.eval.span_export", "assay.agents.transcripts.telling")
        print([name for name in sys.modules if name in known])
    """
    assert alone(code).endswith("[]\n")
