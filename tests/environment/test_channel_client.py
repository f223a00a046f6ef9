"""The client of a served environment: tasks and runs by hand, workspaces, tokens, placement."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import cast

import aiohttp
import pytest

import assay
from assay.agents import ModelAgent
from assay.agents.workspace_tools import WORKSPACE_TOOLS
from assay.environment import Environment
from assay.environment.channel import Address
from assay.environment.channel.link import Channel
from assay.environment.channel.remote import RemoteSession
from assay.environment.channel.serve import serve
from assay.environment.channel.sessions import ChannelLimits
from assay.errors import AgentError, ChannelError, InputError, TaskEndedError
from assay.eval.matrix import tasks_of
from assay.eval.planning import MatrixRequest
from assay.scoring.json_safe import Json
from assay.store.records import RunRecord
from assay.tasks.task import Taskset
from assay.testing import calls as calls_
from assay.types import Run, Submission
from assay.types.codec import to_json
from assay.types.run import Stepping
from assay.types.trace import ToolStep
from tests.children import printed
from tests.command_line import assay as assay_command
from tests.each import each
from tests.environment.playing import playing
from tests.served_environment import ServedProcess, raw, three, write_env

_TOKEN = "0123456789abcdef"


@each("scheme", ["tcp", "ws"])
async def test_a_remote_task_is_run_like_any_other(served: ServedProcess, scheme: str) -> None:
    url, together = f"{scheme}://127.0.0.1:{served.port}", asyncio.Barrier(6)

    async def three_at_once(run: Run) -> str:
        await together.wait()  # no session waits for another to end
        return "3"

    async with assay.connect(url) as client:
        assert (client.manifest.name, client.manifest.version) == ("demo", "1.2.3")
        assert {"add", "count"} <= {row.id for row in client.tasks}
        assert client.bindings == []
        job = await client.task("add", a=1).run(three_at_once, group=6)
    assert (job.reward, job.coverage) == (1.0, (6, 6))
    run = job.runs[0]
    assert run.runtime == url
    assert run.grade.subscores[0].metadata == {"seen": "3"}
    assert [step.source for step in run.trace.steps] == ["task", "user", "task"]
    assert len({run.group_id for run in job.runs}) == 1


async def test_what_fails_there_is_an_error_here(served: ServedProcess) -> None:
    async with assay.connect(served.url) as client:
        given = {"raises": {"what": "boom"}, "count": {"word": 5}}
        names = ("raises", "dies", "fails", "count", "elsewhere")
        tasks = [client.task(name, **given.get(name, {})) for name in names]
        job = await Taskset("t", tasks).run(three)
    said = {run.task_id: (run.reward, run.grade.is_error, run.grade.content) for run in job.runs}
    assert said["raises"] == (None, True, "[grading] ValueError: boom")
    assert said["dies"][:2] == (None, True)
    assert said["fails"] == (None, True, "the judge is down")
    assert "argument 'word' is 5" in str(said["count"][2])
    assert said["elsewhere"] == (None, False, "not on this machine")


async def test_a_run_is_driven_by_hand(served: ServedProcess) -> None:
    async with assay.connect(served.url) as client:
        async with client.run("count", word="abc") as run:
            assert run.prompt_text == "How many letters has abc?"
            assert run.client is client
            with pytest.raises(InputError, match="in progress"):
                await client.begin(client.run("add"))
            run.trace.content = "3"
        assert (run.reward, run.trace.status, run.runtime) == (1.0, "completed", served.url)
        assert Run.from_dict(run.to_dict()).args == {"word": "abc"}

        broken = client.run("add")
        with pytest.raises(ZeroDivisionError):  # work that raises is not graded
            await _drive(broken, "3", ZeroDivisionError())
        assert (broken.reward, broken.trace.status) == (None, "error")

        failing = client.run("raises")
        with pytest.raises(ChannelError, match="boom"):
            await _drive(failing, "x")
        assert (failing.reward, failing.grade.is_error) == (None, True)

        async with client.run("add", b=9) as again:  # the client is as good as before
            again.trace.content = "10"
        assert again.reward == 1.0
    with pytest.raises(InputError, match="no client"):
        async with Run():
            pass


async def _drive(run: Run, answer: str, fault: Exception | None = None) -> None:
    async with run:
        run.trace.content = answer
        if fault is not None:
            raise fault


async def test_a_task_of_several_steps_is_played_from_elsewhere(games: ServedProcess) -> None:
    seen: list[tuple[object, bool]] = []

    async def player(run: Run) -> None:
        assert run.max_steps == 4
        for action in ("a", "b", "c"):
            observed = await run.step(action)
            seen.append((observed.content, observed.done))
        with pytest.raises(TaskEndedError):
            await run.step("d")

    async with assay.connect(games.url) as client:
        job = await client.task("game").run(player)
    assert seen == [("1: a", False), ("2: b", False), ("", True)]
    assert job.runs[0].reward == 0.75
    assert job.runs[0].metadata == {}


async def test_actions_are_replayed_where_a_worker_dies(games: ServedProcess) -> None:
    async with Channel.open(Address(games.url)) as channel:
        game = await RemoteSession.begin(channel, "game", {})
        await game.step("a")
        await game.step("b")
        _kill_workers(games.pid)
        assert (await game.step("c")).done
        assert (await game.grade(Submission(answer="c"))).reward == 0.75

        moody = await RemoteSession.begin(channel, "moody", {})
        await moody.step("a")
        _kill_workers(games.pid)
        with pytest.raises(ChannelError, match="showed something else"):
            await moody.grade(Submission(answer="a"))

        walled = await RemoteSession.begin(channel, "walled", {})
        with pytest.raises(ChannelError, match="wall"):
            await walled.step("raise")
        with pytest.raises(ChannelError, match="wall"):  # nobody escapes by going on
            await walled.grade(Submission(answer="end"))


async def test_an_action_sent_again_is_one_action(games: ServedProcess) -> None:
    async with Channel.open(Address(games.url)) as channel:
        await RemoteSession.begin(channel, "walled", {})
        first = await channel.call("tasks.step", {"action": "x", "number": 1})
        assert await channel.call("tasks.step", {"action": "x", "number": 1}) == first
        with pytest.raises(ChannelError, match="the next move is number 2"):
            await channel.call("tasks.step", {"action": "y", "number": 1})
        second = await channel.call("tasks.step", {"action": "y", "number": 2})
        assert second["observation"] == "y"


async def test_tools_are_called_where_the_task_is(games: ServedProcess) -> None:
    async def packer(run: Run) -> None:
        assert run.tools["put"].description == "Put something in."
        both = await asyncio.gather(*(run.call("put", {"what": what}) for what in "ab"))
        assert [result.content for result in both] == ["1 in the bag", "2 in the bag"]
        _kill_workers(games.pid)  # what was packed is packed again
        assert (await run.call("put", {"what": "bomb"})).is_error
        assert (await run.call("put", {"what": "c"})).content == "3 in the bag"
        with pytest.raises(TaskEndedError, match="no tool 'throw'"):
            await run.call("throw")

    async with assay.connect(games.url) as client:
        job = await client.task("pack").run(packer)
        assert job.runs[0].reward == 0.75, str(job)
        async with client.run("pack") as run:
            await run.call("put", {"what": "x"})
        assert run.reward == 0.25


_REPAIRS = """
from pathlib import Path
from assay import Environment

env = Environment("repairs")
repo = env.workspace(Path(__file__).parent / "source")


@env.tool
def write_off() -> str:
    return "a tool of the environment's own"


@env.template(workspace=repo)
async def fix():
    await repo.run("echo begun > notes", keep=True)
    answer = yield "Repair sums.py."
    fixed = repo.read("sums.py") == "total = sum\\n" and repo().changes == ("sums.py",)
    yield float(fixed and answer == "Repaired.")


clash = Environment("clash")
files = clash.workspace()


@clash.tool
def bash() -> str:
    return "not a shell"


@clash.template(workspace=files)
async def work():
    yield "Work."
    yield 1.0
"""


@pytest.fixture
def repairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "sums.py").write_text("total = len\n")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))  # what killed workers leave behind
    return write_env(tmp_path, _REPAIRS)


@pytest.mark.sandbox
async def test_a_workspace_is_worked_in_by_tools_from_elsewhere(repairs: Path) -> None:
    async def repairer(run: Run) -> str:
        assert run.workspace is None
        assert set(run.tools) == {"write_off", *WORKSPACE_TOOLS}
        assert (await run.call("read", {"path": "notes"})).content == "begun\n"
        seen = await run.call("bash", {"command": "sed -i s/len/sum/ sums.py; pwd; exit 3"})
        assert seen.content == "/workspace\n\n[exit status 3]"
        _kill_workers(os.getpid())  # what was done is done again
        for arguments in ({"path": "/etc/passwd/x", "content": ""}, {"path": 3}):
            assert (await run.call("write", arguments)).is_error
        assert "notes" in str((await run.call("search", {"name": "*"})).content)
        return "Repaired."

    async def idle(run: Run) -> str:
        return "Repaired."

    async with (
        serve(str(repairs), name="repairs", workers=1) as served,
        assay.connect(served.url) as client,
    ):
        job = await client.task("fix").run(repairer)
        assert job.reward == 1.0, str(job)
        calls = [step.call.name for step in job.runs[0].answered if isinstance(step, ToolStep)]
        assert calls == ["read", "bash", "write", "write", "search"]
        assert (await client.task("fix").run(idle)).reward == 0.0
        edit = calls_("edit", path="sums.py", old="len", new="sum")
        with playing(edit, "Repaired.") as fake:
            job = await client.task("fix").run(ModelAgent(tools=("edit",)), model=fake.model)
        assert job.reward == 1.0, str(job)
        (asked, *_) = fake.conversations
        assert {tool.name for tool in asked.tools} == {"write_off", "edit"}
        assert "/workspace" in str(asked)


@pytest.mark.sandbox
async def test_who_cannot_call_the_tools_of_a_workspace_is_not_graded_in_it(repairs: Path) -> None:
    async with (
        serve(str(repairs), name="repairs", workers=1, openenv=True) as served,
        raw(served.port) as hud,
        aiohttp.ClientSession() as web,
    ):
        await hud.result("hello")
        assert "works in a workspace" in (await hud.error("tasks.start", id="fix"))[2]
        async with web.post(f"http://127.0.0.1:{served.port}/reset", json={"task": "fix"}) as reply:
            assert "works in a workspace" in await reply.text()
    async with (
        serve(str(repairs), name="clash", workers=1) as served,
        assay.connect(served.url) as client,
    ):
        job = await client.task("work").run(three)
        assert job.reward is None
        assert "has a tool 'bash'" in str(job.runs[0].grade.content)


async def test_attack_words_that_no_frame_holds_are_graded_all_the_same(
    games: ServedProcess,
) -> None:
    """Whatever does not pass the channel was an error, which is worth more than a bad grade."""
    deep: list[Json] = []
    for _ in range(120):
        deep = [deep]
    calls: list[tuple[dict[str, Json], str]] = [
        ({"text": "x", "times": 1, "deep": deep}, "nested deeper"),
        ({"text": "x", "times": 1, "deep": cast("Json", [0] * 500_001)}, "values"),
        ({"text": "x", "times": 1, "deep": float("nan")}, "JSON cannot"),
        ({"text": "x", "times": 1, "deep": 10**5000}, "JSON cannot"),
        ({"text": "x" * (16 << 20), "times": 1}, "larger than a frame"),
        ({"text": "x" * 9_000, "times": 1_000}, "larger than a frame"),
    ]

    async def calling(run: Run) -> str:
        for arguments, why in calls:
            result = await run.call("repeat", arguments)
            assert (result.is_error, why in str(result.content)) == (True, True), result
        return "no"

    async def large(_: Run) -> str:
        return "\x00" * (3 << 20)

    async def nested(_: Run) -> str:
        return "[" * 120 + "]" * 120

    async def shouting(run: Run) -> None:
        shown = (await run.step("x" * 5_000)).content
        assert str(shown).endswith("[cut: it was larger than a frame]")
        await run.step("end")

    async with assay.connect(games.url) as client:
        agents = (calling, large, nested, shouting)
        for template, agent in zip(("seen", "seen", "seen", "echo"), agents, strict=True):
            (run,) = (await client.task(template).run(agent)).runs
            assert run.reward == 0.25, f"{agent}: {run}"


async def test_attack_who_is_cut_off_while_the_task_is_at_work_is_graded(
    games: ServedProcess,
) -> None:
    """The task was still busy when it was to be graded, which was an error: no bad grade."""

    async def late(run: Run) -> None:
        await (run.step("once") if run.task_id == "walk" else run.call("put", {"what": "anvil"}))

    async with assay.connect(games.url) as client:
        for task, reward in (("walk", 0.0), ("pack", 0.25)):
            (run,) = (await client.task(task).run(late, agent_timeout=0.4)).runs
            assert (run.trace.stop_reason, run.reward) == ("timeout", reward), str(run)


async def test_attack_nobody_skips_a_grade(games: ServedProcess) -> None:
    """A task that says that it does not apply says so before its agent begins, as it does here."""

    async def begs(run: Run) -> str:
        return "please"

    async with assay.connect(games.url) as client:
        (run,) = (await client.task("skips").run(begs)).runs
    assert (run.reward, run.grade.is_error) == (None, True)


def _kill_workers(front: int) -> None:
    found = Path(f"/proc/{front}/task/{front}/children").read_text().split()
    for pid in map(int, found):
        if b"channel.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)


# What a user types.


@each(
    "url, message",
    [
        ("http://127.0.0.1:80", "tcp://HOST:PORT"),
        ("tcp://127.0.0.1", "no port"),
        ("tcp://:5", "not where"),
        ("tcp://h:99999", "no URL"),
        ("ws://user:secret@127.0.0.1:80", "a URL with a secret"),
    ],
)
async def test_a_wrong_url_is_explained(url: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        async with assay.connect(url):
            pass


async def test_a_wrong_template_or_argument_is_told_at_once(served: ServedProcess) -> None:
    async with assay.connect(served.url) as client:
        with pytest.raises(InputError, match="did you mean 'count'"):
            client.task("cuont")
        with pytest.raises(InputError, match=r"takes no argument 'wrod'.*did you mean 'word'"):
            client.task("count", wrod="x")
        with pytest.raises(InputError, match="needs the argument 'word'"):
            client.task("count")
        with pytest.raises(InputError, match="no binding 'ssh'"):
            client.binding("ssh")


# Tokens.


async def test_a_stranger_gets_neither_grade_nor_answer(tmp_path: Path) -> None:
    file = write_env(tmp_path)
    async with serve(str(file), workers=1, token=_TOKEN) as served:
        for url in (served.url, served.websocket):
            for wrong in ("", "0123456789abcdeF", "x" * 5000):
                with pytest.raises(ChannelError, match="token") as caught:
                    async with assay.connect(url, token=wrong, patience=5):
                        pass
                assert caught.value.code == -32001
            async with assay.connect(url, token=_TOKEN) as client:
                job = await client.task("add").run(three)
            assert job.reward == 1.0
            assert _TOKEN not in json.dumps(job.to_dict())
            assert _TOKEN not in repr(job) + repr(Address(url, _TOKEN))


# Placement.

_PLACED = """
import asyncio, os, sys
from assay import Environment

env = Environment("placed")


@env.template()
async def pid(offset: int = 0):
    answer = yield f"{os.getpid() + offset}"
    yield 1.0 if answer == str(os.getpid() + offset) else 0.0


async def agent(run):
    return run.prompt


async def main():
    job = await pid(offset=5).run(agent, group=3, runtime="subprocess")
    run = job.runs[0]
    print(job.reward, run.runtime, run.prompt != str(os.getpid() + 5), job.coverage)


if __name__ == "__main__":
    asyncio.run(main())
"""


def test_a_task_is_placed_in_a_process_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "placed.py"
    file.write_text(_PLACED)
    said = printed([sys.executable, file], cwd=Path("/"))
    assert said == "1.0 subprocess True (3, 3)\n"


async def test_a_task_is_placed_at_a_url(served: ServedProcess) -> None:
    here = Environment("demo")

    @here.template(returns=int)
    async def count(word: str) -> AsyncGenerator[object, object]:
        raise AgentError("it is not run here")
        yield

    job = await count(word="abc").run(three, runtime=served.url)
    assert (job.reward, job.runs[0].runtime) == (1.0, served.url)
    with pytest.raises(InputError, match="at module level"):
        await count(word="abc").run(three, runtime="subprocess")
    with pytest.raises(InputError, match="did you mean 'subprocess'"):
        await count(word="abc").run(three, runtime="subproces")
    job = await count(word="abc").run(three, runtime=Address(served.url, "unneeded"))
    assert job.reward == 1.0


# The command line.


def test_what_is_served_is_listed_and_run_on_the_command_line(
    served: ServedProcess, tmp_path: Path
) -> None:
    listed = json.loads(assay_command("list", served.websocket, "--json", cwd=tmp_path).stdout)
    assert listed["environments"][0]["name"] == "demo"
    assert "add" in [task["id"] for task in listed["tasks"]]
    (tmp_path / "agent.py").write_text("async def three(run):\n    return '3'\n")
    words = ("run", served.url, "--task", "add", "--harness", "agent.py:three", "--json")
    (tmp_path / "rows.jsonl").write_text('{"env": "demo", "id": "add", "args": {"a": 1}}\n')
    rows = ("run", "rows.jsonl", "--env", served.url, "--harness", "agent.py:three")
    for run in (rows, words):
        done = assay_command(*run, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    for again in (("run", "--resume", "latest"), ("regrade", "latest"), ("report", "latest")):
        done = assay_command(*again, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr


def test_attack_an_imported_run_chooses_no_url_that_grades_it(
    served: ServedProcess, tmp_path: Path
) -> None:
    request = MatrixRequest(paths=(served.url,))
    config: dict[str, Json] = {"kind": "matrix", "request": to_json(request), "imported": True}
    record = RunRecord(id="r", created_at="", config=config)
    with pytest.raises(InputError, match="Python files or URLs, which it could choose"):
        tasks_of(record)


def test_a_stored_job_of_served_tasks_is_resumed_and_graded_again(
    served: ServedProcess, tmp_path: Path
) -> None:
    store = str(tmp_path / ".assay")

    async def kept() -> str:
        async with assay.connect(served.url) as client:
            rows = Taskset("served", [client.task("add"), client.task("raises")])
            job = await rows.run(three, store=store)
            again = await rows.run(three, store=store, resume=job.id)
        assert (job.reward, job.coverage, again.coverage) == (1.0, (1, 2), (1, 2))
        return job.id

    done = assay_command("regrade", asyncio.run(kept()), cwd=tmp_path)
    assert "Graded again: 2  0 changed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 3  # one of them has no grade


async def test_rows_name_tasks_that_are_served(served: ServedProcess, tmp_path: Path) -> None:
    row = {"env": "demo", "id": "add", "args": {"a": 1}}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    async with assay.connect(served.url) as client:
        rows = Taskset.from_file(str(tmp_path / "rows.jsonl"), env=client)
        assert (await rows.run(three)).reward == 1.0
        assert "count" not in [task.id for task in client.default_tasks()]


# Sessions that tasks use one after the other.


async def test_runs_use_a_session_one_after_the_other(tmp_path: Path) -> None:
    """The server bears five starts a session, and is never told how many."""
    audit: list[dict[str, Json]] = []
    file = write_env(tmp_path)
    limits = ChannelLimits(starts=5)
    async with (
        serve(str(file), workers=1, limits=limits, audit=audit.append) as served,
        assay.connect(served.url) as client,
    ):
        job = await client.task("add").run(three, group=12, max_concurrent=1)
        assert (job.reward, job.coverage) == (1.0, (12, 12))
        graded = [line for line in audit if line["ended"] == "graded"]
        assert [line["start"] for line in graded] == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2]
        assert len({str(line["session"]) for line in graded}) == 3
        # What has no grade is not followed by anything in its session.
        job = await client.task("raises").run(three, group=2, max_concurrent=1)
        assert job.coverage == (0, 2)
        failed = [line for line in audit if line["ended"] == "error"]
        assert [line["start"] for line in failed] == [3, 1]


async def test_attack_an_agent_that_goes_on_acts_in_no_later_task(served: ServedProcess) -> None:
    """The later one has the same session: only the first may not know it any more."""
    kept: list[Run] = []
    held: list[Stepping] = []

    async def agent(run: Run) -> None:
        run.trace.content = "3"
        assert run.stepping is not None
        if not kept:
            kept.append(run)
            held.append(run.stepping)
            return
        with pytest.raises(TaskEndedError):
            await held[0].step("9")
        assert not hasattr(held[0], "grade")  # an agent acts, and nothing else

    async with assay.connect(served.url) as client:
        job = await client.task("add").run(agent, group=2, max_concurrent=1)
    assert (job.reward, job.coverage) == (1.0, (2, 2))
