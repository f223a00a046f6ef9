"""Whoever reads much holds up nobody: it is not the thread that all requests need which reads."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from assay.scoring.json_safe import Json
from assay.service.table import OPERATIONS
from assay.store.database import Database, Query, Row, Scalar
from assay.store.records import CellRecord, RunRecord
from assay.store.runs import Store
from tests.postgres import KINDS, new_location
from tests.server_app import FOUR, Site, serving

RUN = "20261121-090830-ab12"
MUCH = ("result", "newest", "detail", "label", "label_item", "card")


@pytest.fixture(params=KINDS)
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Site]:
    """A server with a run, labels and a grader."""
    location = new_location(request, str(request.param), tmp_path)
    async with serving(location) as site:
        with Store.open(location, home=str(tmp_path / "home")) as store:
            config: dict[str, Json] = {"kind": "matrix", "request": {"paths": ["evals"]}}
            store.create_run(
                RunRecord(id=RUN, created_at="2026-11-21T09:08:30+00:00", config=config, planned=2)
            )
            for trial in (1, 2):
                cell = CellRecord(
                    run_id=RUN, case="c", trial=trial, status="graded", reward=1.0, passed=True
                )
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
