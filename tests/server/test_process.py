"""The server as people run it: started, told to end, killed, and started again."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import httpx
import pytest

from assay.cli.main import main
from assay.cli.serve import make_key
from assay.endpoint.listening import ListeningLimits, server_for
from assay.scoring.json_safe import Json
from assay.server.app import create_app
from assay.server.context import ServerSettings
from assay.sockets import listen
from tests.children import until
from tests.command_line import COMMAND, assay, environment
from tests.postgres import new_location
from tests.server_app import EXACT, jsonl
from tests.server_process import ServerProcess

PROJECT = "/api/v1/projects/default"


def rows(number: int) -> list[dict[str, Json]]:
    return [{"id": f"r{n}", "answer": "4", "expected": "4"} for n in range(number)]


@asynccontextmanager
async def talking(server: ServerProcess) -> AsyncGenerator[httpx.AsyncClient]:
    """A client with a key and a stored grader."""
    async with httpx.AsyncClient(base_url=server.url, headers=server.headers, timeout=60) as client:
        body = {"key": "exact", "kind": "declared", "definition": EXACT}
        answer = await client.post(f"{PROJECT}/graders", json=body)
        assert answer.status_code in (201, 409), answer.text
        yield client


async def test_the_printed_link_logs_in_and_the_command_line_sees_the_same_store(
    tmp_path: Path,
) -> None:
    with ServerProcess(tmp_path) as server:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", server.url)
        async with httpx.AsyncClient(base_url=server.url, follow_redirects=True) as browser:
            assert (await browser.get(server.link)).status_code == 200
            me = await browser.get("/api/v1/me")
            assert me.json()["role"] == "admin"
            assert (await browser.get(server.link)).status_code == 200, "it is logged in"
            browser.cookies.clear()
            assert (await browser.get(server.link)).status_code == 403
        async with talking(server):
            listed = assay("graders", "list", "--json", cwd=tmp_path)
            assert "exact" in listed.stdout, listed.stderr
        assert server.terminate() == 0
        log = server.log()
        assert "GET /login 303" in log
        assert server.link.partition("once=")[2] not in log, "a link in a log is a key in a log"
        assert server.token not in log


def test_behind_a_proxy_counts_are_not_public_and_the_log_of_changes_can_be_rotated(
    tmp_path: Path,
) -> None:
    log, moved = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.1"
    with ServerProcess(
        tmp_path, None, "--set", "limits.proxies=127.0.0.1", "--set", f"audit_log={log}"
    ) as server:
        assert not server.link  # whoever reads the terminal is not who comes through the proxy
        with httpx.Client(base_url=server.url) as client:
            assert client.get("/metrics").status_code == 401
            assert client.get("/metrics", headers=server.headers).status_code == 200
            for number in range(2):
                made = client.post(
                    "/api/v1/projects", json={"key": f"p{number}"}, headers=server.headers
                )
                assert made.status_code == 201
                if not number:
                    log.rename(moved)
    assert [f.read_text().count("create_project") for f in (moved, log)] == [1, 1]
    assert [f.stat().st_mode & 0o777 for f in (moved, log)] == [0o600, 0o600]


@pytest.mark.slow
def test_a_server_whose_output_nobody_reads_serves_all_the_same(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    reading, writing = os.pipe()
    os.close(reading)
    with (tmp_path / "unread.log").open("w") as log:
        process = subprocess.Popen(
            [*COMMAND, "serve", "--port", str(port), "--json"],
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=log,
        )
    os.close(writing)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:

            def has_answered() -> bool:
                with suppress(httpx.TransportError):
                    assert client.get("/healthz").status_code == 200
                    return True
                return process.poll() is not None

            until(has_answered, every=0.05)
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in (tmp_path / "unread.log").read_text()


async def test_half_a_body_is_answered_408_by_the_whole_server(tmp_path: Path) -> None:
    limits = ListeningLimits(body_seconds=0.05)
    app = create_app(ServerSettings(location=str(tmp_path), limits=limits))
    head = "POST /api/v1/projects HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
    started = asyncio.Event()
    server = server_for(app, limits, start=started.set)
    with listen("127.0.0.1", 0) as opened:
        serving = asyncio.create_task(server.serve([opened]))
        await started.wait()
        token = make_key(str(tmp_path), "ci", "admin", "*")
        reader, writer = await asyncio.open_connection(*opened.getsockname())
        more = f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n\r\n{{"
        writer.write((head + more).encode())
        said = await asyncio.wait_for(reader.read(), 60)
        server.should_exit = True
        await serving
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b"application/problem+json" in said
    assert b"1 bytes of it did" in said
    writer.close()


def test_a_host_that_is_not_found_and_a_port_that_is_taken_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for words, said in (
            (("--host", "no.such.host.invalid"), "cannot listen on"),
            (("--port", str(port)), f"127.0.0.1:{port}"),
        ):
            with pytest.raises(SystemExit) as ended:
                main(["serve", *words])
            printed = capsys.readouterr()
            assert (ended.value.code, printed.out, said in printed.err) == (2, "", True)


SLEEPY = """\
import time
async def grade(thread):
    time.sleep(9 * (thread.completion() == "s"))
    return 1
"""


@pytest.mark.slow
async def test_told_to_end_it_ends_in_time_though_functions_sleep(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, None, "--set", "limits.grace_seconds=1") as server:
        async with talking(server) as client:
            body = {"key": "slow", "kind": "function", "definition": {"source": SLEEPY}}
            assert (await client.post(f"{PROJECT}/graders", json=body)).status_code == 201
            slow = jsonl([{"id": str(n), "answer": "s"} for n in range(64)])
            kind = {"Content-Type": "application/x-ndjson"}
            await client.post(f"{PROJECT}/datasets/slow", content=slow, headers=kind)
            job = {"grader": "slow", "dataset": "slow"}
            made = (await client.post(f"{PROJECT}/jobs", json=job)).headers["location"]
            told: list[str] = []

            async def follow() -> None:
                async with client.stream("GET", f"{made}/events") as events:
                    async for line in events.aiter_lines():
                        told.extend([line] if line.startswith("data: ") else [])

            following = asyncio.create_task(follow())
            items = {"items": [{"answer": "s"}]}
            asking = asyncio.create_task(client.post(f"{PROJECT}/graders/slow/grade", json=items))
            running, both = '"status":"running"', 'project="default",state="running"} 2.0'

            def are_under_way() -> bool:
                if not told or running not in told[-1]:
                    return False
                return both in httpx.get(f"{server.url}/metrics", headers=server.headers).text

            await asyncio.to_thread(until, are_under_way, every=0.05)
            assert await asyncio.to_thread(server.terminate) == 0
            answer = await asking
            await following
            assert running in told[-1]  # it ended, not the job
        assert (answer.status_code, answer.headers["content-type"]) == (
            503,
            "application/problem+json",
        )
        assert "Traceback" not in server.log()


@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        pytest.param("sqlite", 2, marks=pytest.mark.slow),
        pytest.param("postgres", 1, marks=pytest.mark.soak),
    ],
)
async def test_no_acknowledged_grade_or_job_is_lost_to_kill_9(
    request: pytest.FixtureRequest, kind: str, kills: int, tmp_path: Path
) -> None:
    """Clients grade and submit jobs while the server is killed."""
    server = ServerProcess(tmp_path, new_location(request, kind, tmp_path))
    graded: set[str] = set()
    jobs: set[str] = set()
    over, answered = asyncio.Event(), asyncio.Semaphore(0)

    async def client(name: str, http: httpx.AsyncClient) -> None:
        """Grades until it is over; a request whose answer was lost is sent again as it was."""
        number = 0
        while not over.is_set():
            number += 1
            item = f"{name}-{number}"
            body: Json = {"items": [{"id": item, "answer": "4", "expected": "4"}]}
            path = f"{PROJECT}/graders/exact/grade"
            answer = await _until_answered(server, http, path, body, item)
            assert answer["results"]
            graded.add(item)
            answered.release()
            if number % 5 == 0:
                asked: Json = {"grader": "exact", "dataset": "d"}
                job = await _until_answered(server, http, f"{PROJECT}/jobs", asked, f"job {item}")
                jobs.add(str(job["id"]))

    with server:
        http = httpx.AsyncClient(timeout=60)
        async with talking(server) as first:
            lines = {"Content-Type": "application/x-ndjson"}
            await first.post(f"{PROJECT}/datasets/d", content=jsonl(rows(20)), headers=lines)
        clients = [asyncio.create_task(client(f"c{n}", http)) for n in range(6)]
        for _ in range(kills):
            await asyncio.wait_for(asyncio.gather(*(answered.acquire() for _ in range(40))), 120)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        over.set()
        await asyncio.wait_for(asyncio.gather(*clients), 120)
        await http.aclose()
        async with talking(server) as last:
            stored = Counter[str]()
            async for score in _pages(last, f"{PROJECT}/scores"):
                if not score["job"]:
                    stored[str(score["item"])] += 1
            assert graded <= set(stored)
            assert set(stored.values()) == {1}, "a request that was sent again was carried out once"
            listed = {str(job["id"]) async for job in _pages(last, f"{PROJECT}/jobs")}
            assert jobs <= listed
    assert len(graded) >= 40 * kills
    assert jobs


async def _until_answered(
    server: ServerProcess, http: httpx.AsyncClient, path: str, body: Json, key: str
) -> dict[str, Json]:
    while True:
        try:
            headers = {**server.headers, "Idempotency-Key": key}
            answer = await http.post(f"{server.url}{path}", json=body, headers=headers)
        except httpx.TransportError:
            await asyncio.sleep(0.1)  # of what the next one needs to start, asking takes little
            continue
        assert answer.status_code in (200, 202), answer.text
        return cast("dict[str, Json]", answer.json())


async def _pages(client: httpx.AsyncClient, path: str) -> AsyncIterator[dict[str, Json]]:
    cursor: Json = ""
    while cursor is not None:
        query: dict[str, str | int] = {"limit": 200, **({"after": str(cursor)} if cursor else {})}
        answer = await client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        body = cast("dict[str, Json]", answer.json())
        for item in cast("list[dict[str, Json]]", body["items"]):
            yield item
        cursor = body["next"]
