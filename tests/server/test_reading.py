"""Whoever reads much holds up nobody: neither the thread that all requests need, nor the loop."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from assay.scoring.json_safe import Json
from assay.service.table import OPERATIONS
from assay.store.database import Database, Query, Row, Scalar
from assay.store.records import CellRecord, RunRecord
from assay.store.runs import Store
from tests.server_app import FOUR, Site, body_of, faults_of, scope_of, serving
from tests.stored_cells import graded_cell

RUN = "20261121-090830-ab12"
MUCH = ("result", "newest", "detail", "label", "label_item", "card")


@pytest.fixture
async def site(location: str, tmp_path: Path) -> AsyncGenerator[Site]:
    """A server with a run, labels and a grader."""
    async with serving(location) as site:
        with Store.open(location, home=str(tmp_path / "home")) as store:
            config: dict[str, Json] = {"kind": "matrix", "request": {"paths": ["evals"]}}
            store.create_run(
                RunRecord(id=RUN, created_at="2026-11-21T09:08:30+00:00", config=config, planned=2)
            )
            for trial in (1, 2):
                cell = graded_cell(RUN, trial=trial)
                store.add_cell(cell, {"row": {"id": str(trial), "answer": str(trial)}})
        made: Json = {"key": "four", "kind": "function", "definition": {"source": FOUR}}
        assert (await site.post("graders", made)).status_code == 201
        for item in (await site.get("labels/queue", run=RUN)).json()["items"]:
            said: Json = {"item": item["item"], "place": item["place"], "run": RUN, "label": "PASS"}
            assert (await site.post("labels", said)).status_code == 200
        yield site


async def test_attack_who_opens_a_large_run_does_not_hold_up_everybody_else(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[bool, list[str]] = {True: [], False: []}
    rows, within = Database.rows, Database.rows_within

    def note(sql: str) -> None:
        words = set(sql.replace("(", " ").split())
        if words.intersection(MUCH):
            asked[threading.current_thread().name == "assay-store"].append(sql)

    def noted(database: Database, sql: str, *values: Scalar) -> list[Row]:
        note(sql)
        return rows(database, sql, *values)

    def noted_within(database: Database, most: int, query: Query, *values: Scalar) -> list[Row]:
        note(query.source)
        return within(database, most, query, *values)

    monkeypatch.setattr(Database, "rows", noted)
    monkeypatch.setattr(Database, "rows_within", noted_within)
    for path, query in (
        ("/api/v1/runs", {}),
        (f"/api/v1/runs/{RUN}/overview", {}),
        (f"/api/v1/runs/{RUN}/matrix", {}),
        (f"/api/v1/runs/{RUN}/cells", {}),
        (f"/api/v1/runs/{RUN}/cells/opened", {"case": "c"}),
        (f"/api/v1/runs/{RUN}/cells/outline", {"case": "c"}),
        (f"/api/v1/runs/{RUN}/cells/steps", {"case": "c"}),
        (f"/api/v1/runs/{RUN}/scores", {}),
        (f"/api/v1/runs/{RUN}/trainability", {"floor": RUN}),
        ("labels", {}),
        ("labels/items", {}),
        ("labels/export", {}),
        ("labels/queue", {"run": RUN}),
        ("calibrations", {}),
        ("calibrations/plan", {"grader": "four"}),
    ):
        for found in asked.values():
            found.clear()
        answer = await site.get(path, **query)
        assert answer.status_code == 200, answer.text
        assert asked[False], path
        assert not asked[True], (path, asked[True])


async def test_attack_a_label_of_a_large_run_reads_its_one_cell_alone(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    (item, *_) = (await site.get("labels/queue", run=RUN, field="other")).json()["items"]

    def cells(_: Store, run: str) -> list[CellRecord]:
        pytest.fail(f"read every cell of {run}")

    monkeypatch.setattr(Store, "cells", cells)
    said: dict[str, Json] = {"item": item["item"], "run": RUN, "label": "PASS", "field": "other"}
    assert (await site.post("labels", {**said, "place": item["place"]})).status_code == 200
    for place in (
        *("", "1", "[]", "[" * 4_000, '["c","","",9]', '["c", "","",1]', '["c","","",true]'),
        *('["\\ud800","","",1]', '["\\u0000","","",1]', f'["c","","",{10**30}]'),
    ):
        assert (await site.post("labels", {**said, "place": place})).status_code == 422, place


def test_only_what_changes_nothing_is_read_apart() -> None:
    assert {one.method for one in OPERATIONS if one.apart} == {"GET"}
    assert not [one.name for one in OPERATIONS if one.apart and (one.waits or one.repeatable)]


_MANY = 12
_ROWS: list[dict[str, Json]] = [
    {"id": f"r{number}", "answer": "é" * 500_000} for number in range(_MANY)
]
_PIECE = 1 << 17


async def pieces_of(site: Site, path: str) -> list[bytes]:
    """What the application sends, as it hands it over."""
    pieces: list[bytes] = []

    async def send(message: dict[str, object]) -> None:
        pieces.append(cast("bytes", message.get("body", b"")))

    await asked(site, path, send)
    return pieces


async def asked(site: Site, path: str, send: object) -> None:
    """Ask the application, with what takes its reply."""

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = scope_of(site.admin.build_request("GET", site.at(path)), "2.4")
    await site.app(scope, receive, send)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "path", ["datasets/large/rows?whole=true&limit=200", "datasets/large/file"]
)
async def test_a_large_reply_is_written_in_pieces(tmp_path: Path, path: str) -> None:
    async with serving(str(tmp_path)) as site:
        await site.uploaded("large", _ROWS[:3])
        pieces = await pieces_of(site, path)
        assert max(map(len, pieces)) <= _PIECE
        whole = await site.get(path)
        assert b"".join(pieces) == whole.content


async def test_a_file_is_the_rows_as_they_are_stored_whatever_their_size(tmp_path: Path) -> None:
    small: list[dict[str, Json]] = [
        {"answer": "\u2028 \n", "metadata": {"n": 2**60 + number, "half": 1.0}}
        for number in range(1_000)
    ]
    async with serving(str(tmp_path)) as site:
        await site.uploaded("mixed", [*_ROWS, *small])
        file = await site.get("datasets/mixed/file")
        shown = body_of(await site.get("datasets/mixed"))
        assert (await site.get("datasets/none/file")).status_code == 404
    assert file.headers["content-disposition"] == 'attachment; filename="mixed.jsonl"'
    assert file.headers["content-type"].startswith("application/x-ndjson")
    lines = file.content.split(b"\n")[:-1]
    assert [json.loads(line) for line in lines] == [*_ROWS, *small]
    assert b'"half":1.0' in lines[-1]
    assert hashlib.sha256(file.content).hexdigest() == shown["digest"]


@asynccontextmanager
async def stalled(site: Site, path: str, count: int) -> AsyncGenerator[None]:
    """Readers of a reply who read nothing after its beginning."""

    async def reading(begun: asyncio.Event) -> None:
        async def send(message: dict[str, object]) -> None:
            if message["type"] == "http.response.body":
                begun.set()
                await asyncio.Event().wait()

        await asked(site, path, send)

    events = [asyncio.Event() for _ in range(count)]
    tasks = [asyncio.create_task(reading(begun)) for begun in events]
    try:
        await asyncio.wait_for(asyncio.gather(*(begun.wait() for begun in events)), 60)
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_project_has_a_few_downloads_at_once_and_others_have_theirs(tmp_path: Path) -> None:
    async with serving(str(tmp_path)) as site:
        other = await site.in_new_project()
        for one in (site, other):
            await one.uploaded("d", [{"answer": "4"}])
        async with stalled(site, "datasets/d/file", 8):
            refused = await site.get("datasets/d/file")
            assert refused.status_code == 429
            assert refused.headers["retry-after"]
            faults_of(refused)
            assert (await other.get("datasets/d/file")).status_code == 200
        assert (await site.get("datasets/d/file")).status_code == 200
