"""A served environment: frames, sessions, one grade for a start, resuming, workers that die."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from pathlib import Path
from typing import cast

import pytest

from assay.environment.channel import workers
from assay.environment.channel.worker import MOST_BEGINS
from assay.environment.channel.workers import Worker
from assay.errors import GradingTimeoutError
from assay.scoring.json_safe import Json
from tests.children import Children, until
from tests.each import each
from tests.served_environment import (
    GRADE,
    ServedProcess,
    error_of,
    limited,
    raw,
    serve_process,
    started,
    write_env,
)


async def test_the_frames_are_those_that_huds_clients_know(served: ServedProcess) -> None:
    async with raw(served.port) as peer:
        hello = await peer.result("hello")
        assert re.fullmatch("sess-.{32}", str(hello["session_id"]))
        assert hello["env"] == {"name": "demo", "version": "1.2.3"}
        assert hello["bindings"] == []
        rows = cast("list[dict[str, Json]]", (await peer.result("tasks.list"))["tasks"])
        add = next(row for row in rows if row["id"] == "add")
        assert add["description"] == "Add two numbers."
        assert cast("dict[str, Json]", add["args"])["additionalProperties"] is False
        started = await peer.result("tasks.start", id="add", args={"a": 3})
        assert started.keys() == {"prompt", "tools"}  # without tools the prompt alone, see the soak
        assert started["prompt"] == "What is 3 + 2?"
        value = {"name": "value", "weight": 1.0, "value": 1.0, "children": None}
        subscores = [{**value, "info": {"seen": "5"}}]
        graded = await peer.result("tasks.grade", answer="5")
        assert graded == GRADE | {"score": 1.0, "subscores": subscores}
        assert await peer.result("tasks.cancel") == {"cancelled": True}
        assert await peer.result("bye") == {"goodbye": True}
        assert await peer.read() is None
    async with raw(served.port) as late:
        assert (await late.error("hello", session_id=hello["session_id"]))[0] == -32002


async def test_a_start_has_one_grade_also_for_pipelined_calls(
    served: ServedProcess, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    async with started(served.port, "once", marks=str(marks)) as peer:
        calls = [("g1", "a"), ("g2", "a"), ("g3", "b")]
        grades = [
            {"id": number, "method": "tasks.grade", "params": {"answer": answer}}
            for number, answer in calls
        ]
        await peer.send(b"".join(json.dumps(grade).encode() + b"\n" for grade in grades))
        replies = {str((reply := await peer.read() or {})["id"]): reply for _ in calls}
        assert replies["g1"]["result"] == replies["g2"]["result"]
        assert error_of(replies["g3"])[0] == -32600
        assert await peer.result("tasks.grade", answer="a") == replies["g1"]["result"]
        code, _, message = await peer.error("tasks.grade", answer="b")
        assert (code, message) == (-32600, "already graded")
    assert marks.read_text() == "a\n"


async def test_a_session_is_resumed_by_its_id_and_graded_once(
    served: ServedProcess, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with raw(served.port) as first:
        session = (await first.result("hello"))["session_id"]
        await first.result("tasks.start", id="held", args={"gate": str(gate)})
        await first.send(b'{"id": 9, "method": "tasks.grade", "params": {"answer": "yes"}}\n')
        await asyncio.to_thread(until, Path(f"{gate}.begun").exists)
        first.abort()
    async with raw(served.port) as second:
        assert (await second.result("hello", session_id=session))["session_id"] == session
        code, _, _ = await second.error("tasks.grade", answer="no")
        assert code == -32600
        gate.touch()
        assert (await second.result("tasks.grade", answer="yes"))["score"] == 1.0


async def test_nobody_adopts_the_session_of_another(served: ServedProcess) -> None:
    async with raw(served.port) as mine:
        session = str((await mine.result("hello"))["session_id"])
        await mine.result("tasks.start", id="add", args={})
        mine.abort()
    async with raw(served.port) as stranger:  # HUD's server gives it the one that is parked
        code, _, message = await stranger.error("tasks.grade", answer="3")
        assert (code, message) == (-32600, "no task in progress")
        guess = session[:-1] + ("0" if session[-1] != "0" else "1")
        assert (await stranger.error("hello", session_id=guess))[0] == -32002
    async with raw(served.port) as mine:
        await mine.result("hello", session_id=session)
        assert (await mine.result("tasks.grade", answer="3"))["score"] == 1.0


async def test_who_knows_the_id_takes_over_from_a_dead_connection(served: ServedProcess) -> None:
    async with raw(served.port) as first, raw(served.port) as second:
        session = (await first.result("hello"))["session_id"]
        await first.result("tasks.start", id="add", args={})
        await second.result("hello", session_id=session)
        assert await first.read() is None
        assert (await second.result("tasks.grade", answer="3"))["score"] == 1.0


async def test_a_start_sent_again_is_the_same_start(served: ServedProcess) -> None:
    async with raw(served.port) as peer:
        await peer.result("hello")
        for _ in range(20):  # more than may be started
            await peer.result("tasks.start", id="add", args={}, key="k1")
        await peer.result("tasks.grade", answer="3")


@each(
    "method, params, code, message",
    [
        ("tasks.grade", {"answer": "x"}, -32600, "no task in progress"),
        ("__class__", {}, -32601, "method not found"),
        ("tasks.start", {"id": 7}, -32602, "'id' must be text, got a number"),
        ("tasks.start", {"id": "ad"}, -32602, "unknown task: 'ad'"),
        ("tasks.start", {"id": "add", "args": []}, -32602, "'args' must be an object"),
        ("tasks.start", {"id": "add", "args": {"c": 1}}, -32602, "unexpected keyword"),
        ("tasks.start", {"id": "add", "args": {"a": "zz"}}, -32602, "argument 'a' is 'zz'"),
        ("tasks.start", {"id": "count"}, -32602, "missing a required argument"),
        ("tasks.start", {"id": "add", "key": 1}, -32602, "'key' must be text"),
        ("tasks.start", {"id": "shouts", "args": {"size": 9 << 20}}, -32000, "larger than"),
        ("tasks.start", {"id": "elsewhere"}, -32000, "not on this machine"),
        ("hello", {"session_id": 5}, -32602, "'session_id' must be text"),
        ("hello", {"token": {}}, -32602, "'token' must be text"),
    ],
)
async def test_what_is_wrong_gets_a_typed_error(
    served: ServedProcess, method: str, params: dict[str, Json], code: int, message: str
) -> None:
    async with raw(served.port) as peer:
        found, kind, said = await peer.error(method, **params)
        assert found == code
        assert kind.endswith("Error")
        assert message in said
        await peer.result("tasks.start", id="add", args={})  # the session is as good as before
        assert (await peer.result("tasks.grade", answer="3"))["score"] == 1.0


async def test_what_a_task_raises_is_named_and_leaves_no_grade(served: ServedProcess) -> None:
    async with started(served.port, "raises") as peer:
        assert await peer.error("tasks.grade", answer="x") == (-32000, "ValueError", "boom")
        assert await peer.error("tasks.grade", answer="x") == (-32000, "ValueError", "boom")
        assert (await peer.error("tasks.grade", answer="y"))[0] == -32600
        await peer.result("tasks.start", id="exits", args={})
        code, kind, _ = await peer.error("tasks.grade", answer="x")
        assert (code, kind.endswith("Error")) == (-32000, True)


async def test_while_a_grade_runs_nothing_else_is_started(
    served: ServedProcess, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with started(served.port, "held", gate=str(gate)) as peer:
        await peer.send(b'{"id": "g", "method": "tasks.grade", "params": {"answer": "yes"}}\n')
        await asyncio.to_thread(until, Path(f"{gate}.begun").exists)
        code, _, message = await peer.error("tasks.start", id="add", args={})
        assert (code, message) == (-32600, "a task call is still running")
        await peer.result("hello")  # a heartbeat is answered meanwhile
        assert await peer.result("tasks.cancel") == {"cancelled": True}
        cancelled = await peer.read()
        assert cancelled is not None
        assert cancelled["id"] == "g"
        assert error_of(cancelled)[1:] == ("CancelledError", "cancelled")
        assert (await peer.error("tasks.grade", answer="yes"))[2] == "no task in progress"


async def test_a_session_starts_a_bounded_number_of_tasks(served: ServedProcess) -> None:
    async with raw(served.port) as peer:
        for number in range(8):  # each a guess, for one who tries all the answers there are
            await peer.result("tasks.start", id="add", args={})
            assert (await peer.result("tasks.grade", answer=str(number)))["score"] in (0.0, 1.0)
        code, _, message = await peer.error("tasks.start", id="add", args={})
        assert code == -32003
        assert "may start 8 tasks" in message


@each(
    "task, size, expected",
    [
        ("large", 17 << 20, (0.75, False, {"cut": "cut: the evidence was larger than a frame"})),
        ("odd", None, (0.5, False, {"seen": "nan"})),  # evidence that is no JSON
        ("fails", None, (0.0, True, {})),
    ],
)
async def test_what_cannot_be_told_of_a_grade_does_not_cost_the_score(
    served: ServedProcess, task: str, size: int | None, expected: tuple[float, bool, Json]
) -> None:
    async with raw(served.port) as peer:
        await peer.result("tasks.start", id=task, args={"size": size} if size else {})
        grade = await peer.result("tasks.grade", answer="x")
    assert (grade["score"], grade["isError"], grade["info"]) == expected
    assert task != "fails" or grade["content"] == "the judge is down"


async def test_what_graders_run_reaches_neither_front_nor_token(
    children: Children, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever had the worker's socket could say what was graded."""
    monkeypatch.setenv("SERVED_TOKEN", "0123456789abcdef")
    write_env(tmp_path)
    served = serve_process(children, tmp_path, "--workers", "1", "--token-env", "SERVED_TOKEN")
    async with raw(served.port) as peer:
        await peer.result("hello", token="0123456789abcdef")
        await peer.result("tasks.start", id="leaks", args={})
        said = str((await peer.result("tasks.grade", answer="x"))["content"])
    assert said == "['0', '1', '2', '3'] False\n"  # 3 is the directory that is listed


@each("answer, score", [(3, 1.0), (None, 0.0), ({"a": 1}, 0.0)])
async def test_an_answer_that_is_no_text_is_its_json(
    served: ServedProcess, answer: Json, score: float
) -> None:
    async with started(served.port) as peer:
        assert (await peer.result("tasks.grade", answer=answer))["score"] == score


# Workers that die.


async def test_a_task_goes_on_in_another_worker(served: ServedProcess, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    async with raw(served.port) as peer, raw(served.port) as other:
        await other.result("tasks.start", id="add", args={"a": 20})
        await peer.result("tasks.start", id="dies", args={"unless": str(flag)})
        assert (await peer.result("tasks.grade", answer="x"))["score"] == 0.5
        assert (await other.result("tasks.grade", answer="22"))["score"] == 1.0


async def test_a_task_that_kills_every_worker_is_an_error_and_harms_no_other(
    served: ServedProcess, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with raw(served.port) as poison, raw(served.port) as left, raw(served.port) as right:
        for peer in (left, right):  # one in each worker, grading while these die
            await peer.result("tasks.start", id="held", args={"gate": str(gate)})
            await peer.send(b'{"id": "g", "method": "tasks.grade", "params": {"answer": "yes"}}\n')
        await asyncio.to_thread(until, Path(f"{gate}.begun").exists)
        await poison.result("tasks.start", id="dies", args={})
        code, kind, message = await poison.error("tasks.grade", answer="x")
        assert (code, kind) == (-32000, "WorkerLostError")
        assert "3 workers" in message
        gate.touch()
        for peer in (left, right):
            reply = await peer.read()
            assert reply is not None
            assert cast("dict[str, Json]", reply["result"])["score"] == 1.0


async def test_a_task_that_asks_something_else_when_begun_again_is_lost(
    served: ServedProcess,
) -> None:
    async with raw(served.port) as peer:
        prompt = str((await peer.result("tasks.start", id="changes", args={}))["prompt"])
        os.kill(int(prompt.removeprefix("You are in ").removesuffix(".")), signal.SIGKILL)
        for _ in range(2):
            code, kind, _ = await peer.error("tasks.grade", answer="x")
            assert (code, kind) == (-32002, "SessionLostError")


async def test_grading_that_hangs_ends_with_its_time_and_its_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_GRACE_SECONDS", 0.2)
    async with (
        limited(tmp_path, grading=0.1) as served,
        raw(served.port) as stuck,
        raw(served.port) as other,
    ):
        await other.result("tasks.start", id="add", args={})
        await stuck.result("tasks.start", id="blocks", args={"seconds": 60})
        late = asyncio.create_task(stuck.error("tasks.grade", answer="x"))
        waits = asyncio.create_task(other.result("tasks.grade", answer="3"))
        timeout = (-32000, "GradingTimeoutError", "grade took longer than 0.1 s")
        assert await late == timeout
        assert (await waits)["score"] == 1.0  # it was held up, which is not its fault


async def test_a_call_that_began_long_ago_gets_no_more_time_from_newer_ones(tmp_path: Path) -> None:
    write_env(tmp_path)
    worker = await Worker.start(str(tmp_path / "env.py"), "")
    try:
        args: dict[str, Json] = {"gate": str(tmp_path / "gate")}
        await worker.ask("start", {"task": 1, "id": "held", "args": args}, 60)
        grading = asyncio.create_task(worker.ask("grade", {"task": 1, "answer": "x"}, 0.2))
        for _ in range(50):  # as many as there are places, again and again
            await asyncio.gather(*(worker.ask("ping", {}, 60) for _ in range(MOST_BEGINS)))
            if grading.done():
                break
        assert isinstance(grading.exception(), GradingTimeoutError)
    finally:
        await worker.kill()


async def test_a_cancelled_task_that_blocks_holds_its_worker_up_no_longer_than_it_may(
    tmp_path: Path,
) -> None:
    async with (
        limited(tmp_path, grading=0.3) as served,
        started(served.port, "blocks", seconds=60) as peer,
    ):
        await peer.send(b'{"id": "g", "method": "tasks.grade", "params": {"answer": "x"}}\n')
        await peer.result("tasks.cancel")
        await peer.read()
        await peer.result("tasks.start", id="add", args={})
        assert (await peer.result("tasks.grade", answer="3"))["score"] == 1.0
