"""What holds of every list: its parts are the whole, wherever it is asked, however it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from assay import Client
from assay.client.local import LocalBackend
from assay.client.remote import RemoteBackend
from assay.client.scope import Backend
from assay.errors import InputError
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.records import as_json
from assay.service.operation import Operation
from assay.service.table import OPERATIONS
from assay.store import ApiKeys, Catalog, Database, Projects, RunRecord, ScoreRecord, Scores, Store
from assay.store.cards import CardRecord, Cards
from assay.store.labels import LabelRecord, Labels
from assay.store.pages import Page
from assay.store.records import CellRecord
from assay.store.traces import NewSpan, TraceLimits, Traces
from tests.calibrated_graders import calibrated
from tests.client_modes import MODES, running
from tests.each import each
from tests.postgres import new_location
from tests.stored_cells import graded_cell

EXACT: list[Mapping[str, Json]] = [{"type": "exact_match"}]
_MANY = 5
_HOW = {"offset", "after"}
_LISTS = {one.name: one for one in OPERATIONS if {place.name for place in one.places} >= _HOW}
_AT_HAND = {"list_projects", "list_labels", "list_calibrations"}
"""Short lists, of which all is read each time."""

_WIDE = {"list_graders", "list_versions", "list_rows", "list_results", "list_scores", "list_cells"}
"""Those with columns that may be long, of which PostgreSQL adds up the lengths."""

ASKED: dict[str, tuple[str, Mapping[str, object]]] = {
    **{name: (name, {}) for name in _LISTS},
    "list_versions": ("list_versions", {"grader_key": "g1"}),
    "list_rows": ("list_rows", {"key": "rows"}),
    "rows, whole": ("list_rows", {"key": "rows", "whole": True}),
    "list_results": ("list_results", {"job": "JOB"}),
    "results by score": ("list_results", {"job": "JOB", "order": "score", "whole": True}),
    "the newest results": ("list_results", {"job": "JOB", "order": "newest"}),
    "list_cells": ("list_cells", {"run": "r0"}),
    "cells by reward": ("list_cells", {"run": "r0", "sort": "reward", "descending": True}),
    "cells, whole": ("list_cells", {"run": "r0", "outcome": "fail,error", "whole": True}),
    "runs that are found": ("list_runs", {"search": "suite"}),
    "show_run_matrix": ("show_run_matrix", {"run": "r0"}),
    "the worst cases": ("show_run_matrix", {"run": "r0", "sort": "worst"}),
    "list_labelled": ("list_labelled", {"field": "f0"}),
    "export_labels": ("export_labels", {"field": "f0"}),
}


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> str:
    return _filled(str(tmp_path_factory.mktemp("lists") / "store"))


def _filled(where: str) -> str:
    """A store with five of everything that is listed."""
    with Client(store=where) as client:
        for number in range(_MANY):
            client.graders.create.declared(key=f"g{number}", graders=EXACT)
            client.datasets.create("rows" if not number else f"d{number}", _rows())
            client.jobs.create("g0", "rows")
    with Database.open(where) as database, database.writing():
        _fill(database)
    calibrated(where, "g0")
    with Database.open(where) as database:
        card = Cards(database).newest("default")[0]
        for number in range(1, _MANY):
            made = CardRecord(grader=f"g{number}", digest=card.digest, body=card.body)
            Cards(database).add("default", made)
    return where


def _rows() -> list[dict[str, Json]]:
    return [
        {"id": f"i{number}", "answer": "4" if number % 2 else "5", "expected": "4"}
        for number in range(_MANY)
    ]


def _fill(database: Database) -> None:
    store, labels = Store(database), Labels(database)
    for number in range(_MANY):
        Projects(database).create(f"p{number}")
        ApiKeys(database).create(f"k{number}", "viewer", "default", f"hash{number}", "prefix")
        if number:
            definition: dict[str, Json] = {"graders": [*map(dict, EXACT)], "threshold": number / 9}
            Catalog(database).add_version(
                "default", "g1", kind="declared", definition=definition, digest=f"d{number}"
            )
        graded = Graded(id=f"s{number}", status="scored", score=0.5, grader="g0@1")
        Scores(database).add("default", [ScoreRecord(item=graded.id, graded=graded)])
        span = NewSpan(trace=f"{number:032x}", id=f"{number:016x}", text="{}", digest="d")
        Traces(database).add("default", [span], TraceLimits())
        said = LabelRecord(item=f"{number:032x}", field=f"f{number}", rater="ann", label="PASS")
        labels.add("default", said, {"id": f"i{number}", "answer": "x"})
        labels.add("default", LabelRecord(item=said.item, field="f0", rater="bo", label="FAIL"), {})
        run = RunRecord(
            id=f"r{number}", created_at=f"2026-11-21T09:0{number % 3}:00Z", config={"file": "suite"}
        )
        store.create_run(run)
        failed = graded_cell("r0", f"c{number}", number / 9)
        error = CellRecord(
            run_id="r0", case=f"c{number}", trial=2, status="error", error="no reply"
        )
        for cell in (failed, error):
            store.add_cell(cell, {})


@pytest.fixture(scope="module")
def served(location: str) -> Generator[tuple[str, str]]:
    with running(location) as server:
        yield server.url, server.key()


@pytest.fixture(params=MODES)
async def backend(
    request: pytest.FixtureRequest, location: str, served: tuple[str, str]
) -> AsyncGenerator[Backend]:
    is_here = request.param == "store"
    made = LocalBackend(location) if is_here else RemoteBackend(*served, timeout=60.0)
    yield made
    await made.close()


async def _page(backend: Backend, asked: str, **how: object) -> Page[Any]:
    name, given = ASKED[asked]
    if given.get("job") == "JOB":
        (job,) = (await backend.call(_LISTS["list_jobs"], "default", {"offset": 4})).items
        given = {**given, "job": job.id}
    operation: Operation[..., Page[Any]] = _LISTS[name]
    return await backend.call(operation, "default", {**given, **how})


def _names(items: object) -> list[Json]:
    shown = as_json(items)
    assert isinstance(shown, list)
    for one in shown:
        assert isinstance(one, dict)
        one.pop("last_used_at", None)  # of a key, which this is asked with
    return shown


async def _walked(backend: Backend, asked: str, limit: int) -> list[Page[Any]]:
    pages = [await _page(backend, asked, limit=limit)]
    while (after := pages[-1].next) is not None:
        pages.append(await _page(backend, asked, limit=limit, after=after))
        assert len(pages) < 50, "it never ends"
    return pages


@each("asked", ASKED)
async def test_the_parts_of_a_list_are_the_whole(backend: Backend, asked: str) -> None:
    whole = await _page(backend, asked, limit=200)
    every = _names(whole.items)
    assert (len(every) >= _MANY, whole.next) == (True, None)
    assert whole.total == (None if asked == "list_scores" else len(every))
    pages = await _walked(backend, asked, 2)
    assert {len(page) for page in pages[:-1]} == {2}
    assert _names([one for page in pages for one in page]) == every
    some = await _page(backend, asked, limit=2, offset=1)
    assert (_names(some.items), some.total) == (every[1:3], whole.total)
    beyond = await _page(backend, asked, offset=1_000)
    assert (list(beyond), beyond.next, beyond.total) == ([], None, whole.total)
    exact = await _page(backend, asked, limit=len(every))
    assert (len(exact), exact.next) == (len(every), None), "nothing is promised behind the last"


@each("asked", [one for one in ASKED if one not in _AT_HAND])
async def test_a_part_ends_early_where_its_items_are_large(
    backend: Backend, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = _names((await _page(backend, asked, limit=200)).items)
    with monkeypatch.context() as patch:
        for room in ("table", "labels"):
            patch.setattr(f"assay.store.{room}.PAGE_BYTES", 1)
        pages = await _walked(backend, asked, 200)
    found = asked == "runs that are found"  # by their ids, which are short
    assert {len(page) for page in pages} == {len(every) if found else 1}
    assert _names([one for page in pages for one in page]) == every


_NO_PLACES = ["", "!!", "bnVsbA", "W10", "W251bGxd", "WzEsMiwzLDQsNV0", "Wy0xXQ"]


@each("asked", ASKED)
async def test_what_is_no_place_of_a_list_is_refused(backend: Backend, asked: str) -> None:
    for after in _NO_PLACES:
        with pytest.raises(InputError, match="not a place of this list"):
            await _page(backend, asked, after=after)


def test_parts_of_lists_are_the_same_in_postgres(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = _filled(new_location(request, "postgres", tmp_path))

    async def check() -> None:
        backend = LocalBackend(where)
        wholes = {asked: _names((await _page(backend, asked, limit=200)).items) for asked in ASKED}
        for asked, every in wholes.items():
            pages = await _walked(backend, asked, 2)
            assert _names([one for page in pages for one in page]) == every
        monkeypatch.setattr("assay.store.table.PAGE_BYTES", 1)
        for asked, every in wholes.items():
            pages = await _walked(backend, asked, 200)
            assert _names([one for page in pages for one in page]) == every
            is_wide = ASKED[asked][0] in _WIDE
            assert not is_wide or {len(page) for page in pages} == {1}, asked
        await backend.close()

    asyncio.run(check())


async def test_a_list_that_grows_goes_on_where_it_was(tmp_path: Path) -> None:
    """By offset, what was seen would come again."""
    backend = LocalBackend(str(tmp_path / "store"))
    with Client(store=str(tmp_path / "store")) as client:
        await asyncio.to_thread(_add, client, "bd")
        (first,) = await backend.call(_LISTS["list_graders"], "default", {"limit": 1})
        part = await backend.call(_LISTS["list_graders"], "default", {"limit": 1})
        await asyncio.to_thread(_add, client, "ac")
        rest = await backend.call(_LISTS["list_graders"], "default", {"after": part.next})
        assert [first.key, *(one.key for one in rest)] == ["b", "c", "d"]
    await backend.close()


def _add(client: Client, keys: str) -> None:
    for key in keys:
        client.graders.create.custom(key=key)
