"""Runs as they go on: told by events, also where another process writes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast

import httpx
import pytest

from assay.scoring.json_safe import Json
from assay.server.context import ServerSettings
from assay.store.records import RunRecord
from assay.store.runs import Store
from tests.server_app import Site, context_of, scope_of, serving
from tests.stored_cells import graded_cell

SMALL = ServerSettings(location="", poll_seconds=0.02, heartbeat_seconds=0.05)
RUN = "20261121-090830-ab12"
Event = tuple[str, str, dict[str, Json]]


@pytest.fixture
async def site(location: str, tmp_path: Path) -> AsyncGenerator[tuple[Site, Store]]:
    """A server, and the store as another process has it: by a connection of its own."""
    async with serving(location, SMALL) as running:
        with Store.open(location, home=str(tmp_path / "home")) as store:
            yield running, store


def _begin(store: Store, run: str = RUN, planned: int = 2) -> None:
    config: dict[str, Json] = {"kind": "matrix", "request": {"paths": ["evals"]}}
    store.create_run(
        RunRecord(id=run, created_at="2026-11-21T09:08:30+00:00", config=config, planned=planned)
    )


def _add(store: Store, trial: int, run: str = RUN, *, passed: bool = True) -> None:
    store.add_cell(graded_cell(run, reward=float(passed), trial=trial), {})


async def test_a_run_is_told_until_its_end_and_not_again(site: tuple[Site, Store]) -> None:
    server, store = site
    _begin(store)
    _add(store, 1)
    steps: list[Callable[[], None]] = [
        lambda: _add(store, 2, passed=False),
        lambda: store.finish_run(RUN),
    ]
    path = f"/api/v1/runs/{RUN}/events"
    told: list[Event] = []
    async with _events(server, path) as events:
        async for event in events:
            told.append(event)
            if steps:
                steps.pop(0)()
    assert [name for _, name, _ in told] == ["progress", "progress", "done"]
    assert [data["total"] for _, _, data in told] == [1, 2, 2]
    assert told[-1][2]["state"] == "finished"
    assert cast("dict[str, Json]", told[-1][2]["ends"])["failed"] == 1
    again = await server.admin.get(path, headers={"Last-Event-ID": told[-1][0]})
    assert again.status_code == 204
    assert (await server.admin.get("/api/v1/runs/none/events")).status_code == 404


async def test_a_run_that_is_deleted_is_told_to_be_gone(site: tuple[Site, Store]) -> None:
    server, store = site
    _begin(store)
    told: list[str] = []
    async with _events(server, f"/api/v1/runs/{RUN}/events") as events:
        async for _, name, _ in events:
            told.append(name)
            if name == "progress":
                store.forget_run(RUN)
    assert told == ["progress", "gone"]


async def test_the_list_tells_only_what_changed(site: tuple[Site, Store]) -> None:
    server, store = site
    _begin(store)
    _begin(store, "20261122-090830-cd34")
    steps: list[tuple[Callable[[], None], list[str]]] = [
        (lambda: _add(store, 1), [RUN]),
        (lambda: store.finish_run("20261122-090830-cd34"), ["20261122-090830-cd34"]),
        (lambda: _begin(store, "20261123-090830-ef56"), ["20261123-090830-ef56"]),
    ]
    async with _events(server, "/api/v1/run-events") as events:
        _, _, data = await anext(events)
        assert (data["items"], data["total"]) == ([], 2)
        for step, changed in steps:
            step()
            _, name, data = await anext(events)
            items = cast("list[dict[str, Json]]", data["items"])
            assert (name, [one["id"] for one in items]) == ("runs", changed)
    assert data["total"] == 3


async def test_the_list_ends_with_the_server(site: tuple[Site, Store]) -> None:
    server, _ = site
    async with _events(server, "/api/v1/run-events") as events:
        await anext(events)
        context_of(server.app).stopping.set()
        assert [event async for event in events] == []


async def test_attack_a_revoked_key_hears_no_more(site: tuple[Site, Store]) -> None:
    server, store = site
    _begin(store)
    async with (
        server.client(await server.key("viewer")) as viewer,
        _events(server, "/api/v1/run-events", viewer) as events,
    ):
        await anext(events)
        every = (await server.get("/api/v1/keys")).json()["items"]
        (key,) = (one["id"] for one in every if one["role"] == "viewer")
        assert (await server.admin.delete(f"/api/v1/keys/{key}")).status_code < 300
        _add(store, 1)
        assert [event async for event in events] == []


async def test_attack_streams_of_one_key_leave_connections_for_others(
    site: tuple[Site, Store],
) -> None:
    server, store = site
    _begin(store)
    streams, most = context_of(server.app).streams, 100
    async with server.client(await server.key("viewer")) as viewer, AsyncExitStack() as stack:
        for _ in range(most):
            events = await stack.enter_async_context(_events(server, "/api/v1/run-events", viewer))
            await anext(events)
        for path in ("run-events", f"runs/{RUN}/events"):
            answer = await viewer.get(f"/api/v1/{path}")
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "10")
        async with _events(server, "/api/v1/run-events") as events:
            await anext(events)
    assert streams.total == 0


async def test_who_has_a_key_of_another_project_hears_of_no_run(site: tuple[Site, Store]) -> None:
    server, _ = site
    other = await server.in_new_project()
    async with server.client(await server.key("viewer", other.project)) as stranger:
        assert (await stranger.get("/api/v1/run-events")).status_code == 403
    async with server.client() as nobody:
        assert (await nobody.get("/api/v1/run-events")).status_code == 401


@asynccontextmanager
async def _events(
    site: Site, path: str, client: httpx.AsyncClient | None = None
) -> AsyncGenerator[AsyncIterator[Event]]:
    """The events of a stream as they come."""
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    gone = asyncio.Event()

    async def receive() -> dict[str, object]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.body":
            lines.put_nowait(cast("bytes", message.get("body", b"")))
            if not message.get("more_body"):
                lines.put_nowait(None)

    scope = scope_of((client or site.admin).build_request("GET", path))

    async def read() -> AsyncIterator[Event]:
        kept = b""
        while (some := await asyncio.wait_for(lines.get(), 10)) is not None:
            kept += some
            while b"\n\n" in kept:
                block, _, kept = kept.partition(b"\n\n")
                said = dict(line.split(": ", 1) for line in block.decode().splitlines())
                if "data" in said:
                    yield said["id"], said["event"], json.loads(said["data"])

    task = asyncio.create_task(site.app(scope, receive, send))  # pyright: ignore[reportArgumentType] - ASGI's own types are wider
    try:
        yield read()
    finally:
        gone.set()
        await asyncio.wait([task], timeout=10)
