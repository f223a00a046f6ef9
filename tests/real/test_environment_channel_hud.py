"""HUD's own SDK at the other end: it runs the tasks served here, and tasks that it serves run here.

`make agents` installs it, into an environment of its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import assay
from assay.errors import ChannelError
from assay.types import Run
from tests.children import Children, printed, until
from tests.command_line import COMMAND
from tests.each import each
from tests.served_environment import ENV, GRADE, Relay, ServedProcess, serve_process, write_env

pytestmark = pytest.mark.real


def _environment(folder: Path) -> dict[str, str]:
    """Its own variables: it writes to the home directory, and would tell its makers."""
    place = str(folder)
    return {"HOME": place, "TMPDIR": place, "LANG": "C.UTF-8", "HUD_TELEMETRY_ENABLED": "false"}


# It runs what is served here.

_OURS = (
    ENV
    + '''

@env.template(returns=dict)
async def verified(floor: float):
    """A verifier: its answer is the whole grade that the task got."""
    answer = yield "no agent reads this"
    yield 0.25 if answer.ok and answer.content["score"] >= floor else 0.0
'''
)

_CLIENT = """
import asyncio, json, sys
from contextlib import asynccontextmanager
from pathlib import Path

from hud.agents.base import Agent
from hud.clients import client as wire
from hud.clients.client import HudProtocolError, connect
from hud.eval import Runtime, Task, Taskset

url, command, scratch = sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3])
at = Runtime(url)


class Scripted(Agent):
    async def __call__(self, run):
        run.trace.content = {"add": "3", "count": "5"}.get(run.task_id, "no")


def shown(run):
    return {
        "prompt": run.prompt_text,
        "reward": run.reward,
        "is_error": run.grade.is_error,
        "status": run.trace.status,
        "error": run.trace.error,
        "evaluation": run.evaluation,
        "runtime": run.runtime,
    }


async def refused(call):
    try:
        return await call
    except HudProtocolError as error:
        return str(error)


async def tasks():
    rows = [
        ("add", {"a": 1}), ("count", {"word": "hello"}), ("fails", {}), ("raises", {}),
        ("elsewhere", {}),
    ]
    given = [Task(env="demo", id=id, args=args, slug=id) for id, args in rows]
    given.append(Task(env="demo", id="add", args={"zz": 1}, slug="misspelt"))
    taskset = Taskset("all", given)
    job = await taskset.run(Scripted(), runtime=at, group=3)
    return {
        "reward": job.reward,
        "errors": len(job.errors),
        "groups": len({run.group_id for run in job.runs}),
        "runs": {slug: [shown(run) for run in runs] for slug, runs in job.results.items()},
    }


async def verified():
    verifier = Task(env="demo", id="verified", args={"floor": 1.0})
    task = Task(env="demo", id="add", verifier=verifier)
    return shown((await task.run(Scripted(), runtime=at)).runs[0])


async def listed():
    async with connect(at) as client:
        info = client.manifest.server_info
        rows = {row["id"]: row for row in await client.list_tasks()}
        return [info.name, info.version, rows["count"]]


async def resumed():
    async with connect(at) as client:
        session = client.manifest.session_id
        await client.start_task("add", {})
    async with connect(at) as client:
        stranger = await refused(client.grade({"answer": "3"}))
        await client.hello(session)
        first = await client.grade({"answer": "3"})
        again = await client.grade({"answer": "3"})
        other = await refused(client.grade({"answer": "4"}))
        told = {"first": first["score"], "again": again == first}
        return {"stranger": stranger, "other": other, **told}


async def cancelled():
    gate = scratch / "gate"
    running = asyncio.create_task(
        Task(env="demo", id="held", args={"gate": str(gate)}).run(Scripted(), runtime=at)
    )
    while not Path(f"{gate}.begun").exists():
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait({running})
    return running.cancelled()


async def beaten():
    beats = []
    call = wire.HudClient._call

    async def counted(client, method, params, **options):
        reply = await call(client, method, params, **options)
        if method == "hello" and "session_id" in params:
            beats.append(reply["session_id"])
        return reply

    class Patient(Agent):
        async def __call__(self, run):
            while len(beats) < 3:
                await asyncio.sleep(0.005)
            run.trace.content = "3"

    wire.HudClient._call = counted
    wire._CONTROL_HEARTBEAT_INTERVAL_SECONDS = 0.01
    job = await Task(env="demo", id="add").run(Patient(), runtime=at)
    return [job.reward, len(set(beats))]


@asynccontextmanager
async def own(task):
    pipe = asyncio.subprocess.PIPE
    words = [*command, "serve", "env", f"env.py:{task.env}"]
    words += ["--set", "hud=true", "--set", "with_parent=true"]
    process = await asyncio.create_subprocess_exec(
        *words, "--workers", "1", stdin=pipe, stdout=pipe, cwd=scratch
    )
    line = (await process.stdout.readline()).decode()
    yield Runtime(f"tcp://127.0.0.1:{int(line.removeprefix('HUD_SERVE_PORT='))}")
    process.stdin.close()
    await process.wait()


async def placed():
    job = await Task(env="demo", id="add").run(Scripted(), runtime=own)
    return [job.reward, job.runs[0].runtime != url]


async def main():
    scenarios = (tasks, verified, listed, resumed, cancelled, placed, beaten)
    print(json.dumps({scenario.__name__: await scenario() for scenario in scenarios}))


asyncio.run(main())
"""


@pytest.fixture(scope="module")
def served(hud: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedProcess]:
    del hud  # nothing is served where it is missing
    folder = tmp_path_factory.mktemp("ours")
    write_env(folder, _OURS)
    with Children() as children:
        yield serve_process(children, folder, "--workers", "2")


@pytest.fixture(scope="module")
def report(hud: Path, served: ServedProcess) -> Any:
    """What HUD's SDK says of everything that it does with a served environment."""
    folder = served.audit.parent
    words = [hud, "-c", _CLIENT, served.url, json.dumps(COMMAND), str(folder)]
    return json.loads(printed(words, cwd=folder, env=_environment(folder)))


def test_huds_sdk_runs_a_taskset_in_groups(report: Any, served: ServedProcess) -> None:
    tasks = report["tasks"]
    assert (tasks["errors"], tasks["groups"], tasks["reward"]) == (12, 6, 1.0)
    for runs in tasks["runs"].values():
        assert len(runs) == 3
        assert all(run == runs[0] for run in runs)
        assert runs[0]["runtime"] in (served.url, None)


_NOT_BEGUN = "[starting task] hud.clients.client.HudProtocolError: hud rpc error "
_NOT_GRADED = "[grading] hud.clients.client.HudProtocolError: hud rpc error "


@each(
    ("slug", "prompt", "reward", "error"),
    [
        ("add", "What is 1 + 2?", 1.0, None),
        ("count", "How many letters has hello?", 1.0, None),  # chat messages, a typed answer
        ("fails", "Fail.", None, "the judge is down"),
        ("raises", "Raise.", None, f"{_NOT_GRADED}-32000: boom"),
        ("elsewhere", "", None, f"{_NOT_BEGUN}-32000: not on this machine"),
        ("misspelt", "", None, f"{_NOT_BEGUN}-32602: template 'add': got an unexpected"),
    ],
)
def test_huds_sdk_sees_rewards_and_errors_apart(
    report: Any, slug: str, prompt: str, reward: float | None, error: str | None
) -> None:
    run = report["tasks"]["runs"][slug][0]
    assert (run["prompt"], run["reward"]) == (prompt, reward or 0.0)
    assert run["is_error"] is (reward is None)
    assert str(run["error"]).startswith(str(error))


def test_huds_sdk_finds_what_is_served_and_sees_the_whole_grade(report: Any) -> None:
    args = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    row = {"id": "count", "description": "", "args": args | {"additionalProperties": False}}
    assert report["listed"] == ["demo", "1.2.3", row | {"returns": {"type": "integer"}}]
    value = {"name": "value", "weight": 1.0, "value": 1.0, "children": None}
    seen = report["tasks"]["runs"]["add"][0]["evaluation"]
    assert seen == GRADE | {"score": 1.0, "subscores": [value]}
    verified = report["verified"]  # a verifier of theirs gets it whole
    told = (verified["reward"], verified["is_error"], verified["status"])
    assert told == (0.25, False, "completed")


def test_sessions_of_huds_sdk_are_resumed_cancelled_kept_and_begun(
    report: Any, served: ServedProcess
) -> None:
    """By its id; in grading; by its heartbeat; and in an environment that it starts for itself."""
    assert report["resumed"] == {
        "stranger": "hud rpc error -32600: no task in progress",  # HUD's own server lets it have it
        "first": 1.0,
        "again": True,
        "other": "hud rpc error -32600: already graded",
    }
    assert report["cancelled"] is True
    held = [line for line in served.audited() if line["task"] == "held"]
    assert [(line["ended"], line["reward"]) for line in held] == [("cancelled", None)]
    assert report["beaten"] == [1.0, 1]
    assert report["placed"] == [1.0, True]


# It serves what is run here.

_THEIRS = """
import asyncio
from pathlib import Path

from hud.environment import Environment
from hud.graders import EvaluationResult, SubScore, combine, exact_match
from mcp.types import PromptMessage, TextContent

env = Environment("theirs", version="3.2.1")


@env.template(description="Add two numbers.")
async def add(a: int = 1, b: int = 2):
    answer = yield f"What is {a} + {b}?"
    value = exact_match(answer, str(a + b))
    yield await combine(
        SubScore(name="value", value=value, weight=1.0, info={"seen": answer}),
        SubScore(name="verbose", value=1.0, weight=-0.25),
    )


@env.template(returns=int)
async def count(word: str):
    said = TextContent(type="text", text=f"How many letters has {word}?")
    answer = yield [PromptMessage(role="user", content=said), "Say it in digits."]
    yield 1.0 if answer.content == len(word) else 0.0


@env.template()
async def below():
    yield "Below."
    yield -3.0


@env.template()
async def loose():
    yield None
    yield {"score": 0.5, "why": "half", "subscores": [{"name": "half", "value": 0.5}]}


@env.template()
async def fails():
    yield "Fail."
    yield EvaluationResult(reward=1.0, isError=True, content="the judge is down")


@env.template()
async def raises():
    yield "Raise."
    raise ValueError("boom")


@env.template()
async def huge():
    yield "Huge."
    yield EvaluationResult(reward=1.0, content="x" * (17 << 20))


@env.template()
async def silent():
    if False:
        yield


@env.template()
async def ends():
    yield "End."


@env.template()
async def held(gate: str):
    yield "Wait."
    Path(gate + ".begun").touch()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        Path(gate + ".cancelled").touch()
        raise
    yield 1.0
"""


def _serve(children: Children, hud: Path, folder: Path) -> str:
    """Serve it as its makers do, and say where."""
    (folder / "theirs.py").write_text(_THEIRS, "utf-8")
    with (folder / "hud.log").open("w") as log:
        words = [str(hud), "-m", "hud.environment.server", "theirs.py"]
        process = children.start(words, cwd=folder, env=_environment(folder), stderr=log)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("HUD_SERVE_PORT="), (folder / "hud.log").read_text()
    return f"tcp://127.0.0.1:{line.strip().removeprefix('HUD_SERVE_PORT=')}"


@pytest.fixture(scope="module")
def theirs(hud: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with Children() as children:
        yield _serve(children, hud, tmp_path_factory.mktemp("theirs"))


async def _agent(run: Run) -> None:
    run.trace.content = {"add": "3", "count": "5"}.get(run.task_id, "no")


@each(
    ("template", "prompt", "reward"),
    [
        ("add", "What is 1 + 2?", 0.75),
        ("count", "How many letters has hello?\n\nSay it in digits.", 1.0),
        ("below", "Below.", -3.0),
        ("loose", "", 0.5),
        # Its server makes this frame of a template without a reward; no client can tell.
        ("ends", "End.", 0.0),
    ],
)
async def test_a_task_that_hud_serves_is_graded_like_any_other(
    theirs: str, template: str, prompt: str, reward: float
) -> None:
    async with assay.connect(theirs) as client:
        args = {"word": "hello"} if template == "count" else {}
        job = await client.task(template, **args).run(_agent, group=3)
    assert (job.reward, job.coverage) == (reward, (3, 3))
    for run in job.runs:
        assert (run.prompt_text, run.reward, run.runtime) == (prompt, reward, theirs)
        assert (run.trace.status, run.trace.error) == ("completed", None)
        assert Run.from_dict(run.to_dict()).reward == reward


@each(
    ("template", "phase", "message"),
    [
        ("fails", "", "the judge is down"),
        ("raises", "[grading] ", "boom"),
        ("huge", "[grading] ", "limit is 16777216 bytes"),
        ("silent", "[starting task] ", "it did not say why"),
    ],
)
async def test_what_fails_where_hud_serves_is_an_error_and_no_reward(
    theirs: str, template: str, phase: str, message: str
) -> None:
    async with assay.connect(theirs) as client:
        job = await client.task(template).run(_agent, group=2)
    assert (job.reward, job.coverage) == (None, (0, 2))
    for run in job.runs:
        assert (run.reward, run.grade.is_error) == (None, True)
        said = str(run.grade.content)
        assert said.startswith(phase)
        assert message in said


async def test_what_hud_serves_has_its_schemas_and_its_subscores(theirs: str) -> None:
    async with assay.connect(theirs) as client:
        assert (client.manifest.name, client.manifest.version) == ("theirs", "3.2.1")
        rows = {row.id: row for row in client.tasks}
        run = (await client.task("add").run(_agent)).runs[0]
    assert rows["add"].description == "Add two numbers."
    assert rows["count"].returns == {"type": "integer"}
    assert rows["count"].args["required"] == ["word"]
    nodes = [(node.name, node.value, node.weight) for node in run.grade.subscores]
    assert nodes == [("value", 1.0, 1.0), ("verbose", 1.0, -0.25)]
    assert run.grade.subscores[0].metadata == {"seen": "3"}


async def test_a_run_out_of_time_is_cancelled_where_hud_serves_it(
    theirs: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with assay.connect(theirs) as client:
        running = asyncio.create_task(client.task("held", gate=str(gate)).run(_agent))
        await asyncio.to_thread(until, Path(f"{gate}.begun").exists)
        running.cancel()
        await asyncio.wait({running})
    await asyncio.to_thread(until, Path(f"{gate}.cancelled").exists)


async def test_a_grade_of_hud_that_is_lost_is_not_made_up(theirs: str) -> None:
    """Its server has forgotten the session, and nobody makes another."""
    async with Relay(int(theirs.rpartition(":")[2])).listening() as relay:
        url = f"tcp://127.0.0.1:{relay.port}"
        async with assay.connect(url, patience=60) as client:
            relay.drop_after = b'"score"'
            run = client.run("add")
            with pytest.raises(ChannelError, match="the session is lost: unknown session"):
                async with run:
                    run.trace.content = "3"
            assert (run.reward, relay.connections > 1) == (None, True)


async def test_a_session_with_hud_is_resumed_while_the_agent_works(theirs: str) -> None:
    async with Relay(int(theirs.rpartition(":")[2])).listening() as relay:
        url = f"tcp://127.0.0.1:{relay.port}"

        async def unlucky(run: Run) -> None:
            relay.hang_up()
            run.trace.content = "3"

        async with assay.connect(url, patience=60) as client:
            job = await client.task("add").run(unlucky, group=3, max_concurrent=1)
    assert (job.reward, job.coverage) == (0.75, (3, 3))
