"""Many requests at once, event loops, threads, cancellation: nothing is lost or left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading

from assay.models import Message
from assay.models import transport as transport_module
from assay.scoring.json_safe import Json
from assay.testing import FakeJudge
from tests.children import alone
from tests.each import each
from tests.model_servers import (
    MET,
    client,
    met,
    question,
    scripted,
    verdict,
)

# --- Loops, threads, cancellation -----------------------------------------------------------------


async def test_requests_in_flight_are_limited_and_all_answered() -> None:
    now = most = 0

    async def answer(asked: object) -> Json:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.002)
        now -= 1
        return MET

    with FakeJudge(answer) as judge:
        asked = client(first_concurrency=4, max_concurrency=4)
        replies = await asyncio.gather(*(asked.ask(question(judge.model)) for _ in range(60)))
        assert len(replies) == 60
        assert most <= 4


async def test_waiting_for_a_turn_is_not_in_the_deadline() -> None:
    with FakeJudge(met, seconds=0.08) as judge:
        asked = client(first_concurrency=1, max_concurrency=1)
        request = question(judge.model, timeout_seconds=1.0)
        replies = await asyncio.gather(*(asked.ask(request) for _ in range(15)))
        assert all(reply.data == MET for reply in replies)


async def test_cancelled_requests_leave_nothing_behind() -> None:
    async def hang(asked: object) -> Json:
        nonlocal came
        came += 1
        if came == 4:
            loop.call_soon_threadsafe(all_came.set)
        await asyncio.Event().wait()
        return None

    came, all_came, loop = 0, asyncio.Event(), asyncio.get_running_loop()
    with FakeJudge(hang) as judge:
        asked = client(first_concurrency=4)
        tasks = [asyncio.create_task(asked.ask(question(judge.model))) for _ in range(10)]
        await all_came.wait()
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended)
        limiter = asked.route(judge.model).lane.limiter()
        assert limiter.busy == 0
        assert asked.ledger.summary().reserved_usd == 0.0
    assert len(asyncio.all_tasks()) == 1


def test_loops_come_and_go_without_leaks() -> None:
    with FakeJudge(met) as judge:
        asked = client()

        async def main() -> None:
            replies = await asyncio.gather(*(asked.ask(question(judge.model)) for _ in range(8)))
            assert all(reply.data == MET for reply in replies)

        asyncio.run(main())
        asyncio.run(main())
        threads = [threading.Thread(target=asyncio.run, args=(main(),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
        assert judge.count == 48
        assert not [loop for loop in transport_module._SESSIONS.held if loop.is_closed()]


PROGRAM = """
import asyncio
from assay.models import Message, ModelClient, Request, current_client
async def main():
    reply = await current_client().complete(
        Request(model="gpt-5", messages=(Message("user", "hi"),)))
    print(reply.text)
asyncio.run(main())
asyncio.run(main())
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
loop.run_until_complete(loop.shutdown_asyncgens())
loop.close()
"""


def test_a_program_that_closes_nothing_ends_without_a_warning() -> None:
    with FakeJudge(["a", "b", "c"]) as judge:
        ended = subprocess.run(
            [sys.executable, "-W", "error", "-c", PROGRAM],
            env={**os.environ, **judge.environment()},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (ended.stdout, ended.stderr) == ("a\nb\nc\n", "")


@each(
    "module, absent",
    [
        ("settings", ["asyncio"]),
        ("cache", ["sqlite3"]),
        ("client", ["aiohttp", "yaml", "jsonschema_rs", "yarl", "pydantic", "sqlite3"]),
    ],
)
def test_nothing_is_loaded_before_it_is_needed(module: str, absent: list[str]) -> None:
    code = f"import sys, assay.models.{module}; print(sorted({set(absent)} & sys.modules.keys()))"
    assert alone(code) == "[]\n"


async def test_parts_have_the_words_behind_them() -> None:
    async with scripted([verdict()]) as server:
        parts = ({"type": "text", "text": "hi"},)
        await client().ask(question(server.model, messages=(Message("user", parts),)))
        content = server.seen[0].body["messages"][0]["content"]
        assert content[0]["text"] == "hi"
        assert "MET" in content[1]["text"]
