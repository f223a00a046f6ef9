"""Cells over HTTP: a regrade in the background. Who may do what: tests/contract, tests/service."""

from __future__ import annotations

import asyncio
import fcntl
import shutil
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from assay.store import kept_files
from assay.store.database import Database, Row, Scalar
from assay.store.records import RunRecord
from assay.store.regrades import Regrades, RegradeState
from assay.store.runs import Store
from tests.full_case import run_repair
from tests.server_app import Site, serving

CELL: dict[str, Any] = {"case": "kit", "harness": "replay", "model": "cheat", "trial": 1}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_repair(tmp_path_factory.mktemp("cells"))


@pytest.fixture
async def site(ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Site]:
    shutil.copytree(ran, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    async with serving(str(tmp_path / ".assay")) as site:
        yield site


async def _status(site: Site, role: Any, project: str, path: str, body: dict[str, Any]) -> int:
    async with site.client(await site.key(role, project)) as client:
        return (await client.post(f"/api/v1/runs/kit/{path}", json=body)).status_code


async def test_attack_the_cases_that_an_imported_run_names_are_not_played_for_editors(
    site: Site,
) -> None:
    def disguise(database: Database) -> None:
        with database.writing():
            said = "'{\"imported\": true, ' || substr(config, 2)"
            assert database.change(f"UPDATE run SET config = {said}")

    await site.with_store(disguise)
    assert (await site.get("/api/v1/runs/kit")).json()["config"]["imported"] is True
    assert await _status(site, "editor", "default", "regrade", {}) == 403
    assert await _status(site, "admin", "default", "regrade", CELL) == 403
    assert (await site.get("/api/v1/runs/kit/regrade")).json()["status"] == "none"


async def test_a_run_is_graded_again_in_the_background_once_at_a_time(site: Site) -> None:
    path = "/api/v1/runs/kit/regrade"
    assert (await site.get(path)).json()["status"] == "none"
    begun = await site.post(path, {})
    assert begun.status_code == 202, begun.text
    assert (await site.post(path, {})).status_code == 409
    state = await _ended(site, path)
    assert (state["status"], state["total"], state["done"]) == ("finished", 6, 6), state
    opened = (await site.get("/api/v1/runs/kit/cells/opened", **CELL)).json()
    assert len(opened["history"]) == 2


async def test_a_regrade_whose_server_ends_or_whose_process_is_killed_is_done_again(
    ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, start = "/api/v1/runs/kit/regrade", asyncio.create_subprocess_exec
    started: asyncio.Queue[Process] = asyncio.Queue()

    async def seen(*command: Any, **options: Any) -> Process:
        child = await start(*command, **options)
        await started.put(child)
        return child

    shutil.copytree(ran, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    interrupted = ("failed", "it was interrupted; what was graded is kept")
    async with serving(str(tmp_path / ".assay")) as site:
        assert (await site.post(path, {})).status_code == 202
    # The fixture of every test looks for processes that are left.
    async with serving(str(tmp_path / ".assay")) as site:
        state = (await site.get(path)).json()
        assert (state["status"], state["message"]) == interrupted
        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "create_subprocess_exec", seen)
            assert (await site.post(path, {})).status_code == 202
            (await started.get()).kill()
        state = await _ended(site, path)
        assert (state["status"], state["message"]) == interrupted
        assert (await site.post(path, CELL)).status_code == 202  # and it can be done again
        state = await _ended(site, path)
        assert (state["status"], state["done"]) == ("finished", 1), state
    async with serving(str(tmp_path / ".assay")) as site:
        assert (await site.get(path)).json() == state
        await site.with_store(lambda database: Store(database).forget_run(state["run"]))


async def _ended(site: Site, path: str) -> dict[str, Any]:
    """How far a regrade is once nobody is at it."""
    while (state := (await site.get(path)).json())["status"] == "running":  # noqa: ASYNC110 - over HTTP
        await asyncio.sleep(0.05)
    return state


async def test_whoever_grades_a_run_again_is_alone_with_it(site: Site, tmp_path: Path) -> None:
    with Store.open(str(tmp_path / ".assay")) as store:
        run = store.run("kit").id
        with Regrades(store.database).held(run):
            answer = await site.post("/api/v1/runs/kit/regrade", {})
            assert (answer.status_code, "being graded again" in answer.text) == (409, True)
    assert (await site.get("/api/v1/runs/kit/regrade")).json()["status"] == "none"


@pytest.fixture
def regrades(tmp_path: Path) -> Generator[Regrades]:
    """Those of a store with a run of six cells."""
    with Store.open(str(tmp_path)) as store:
        store.create_run(RunRecord(id="kit", created_at="", planned=6))
        yield Regrades(store.database)


_FINISHED = RegradeState(run="kit", status="finished", total=6, done=6)


def test_a_regrade_is_running_until_another_one_can_be_begun(regrades: Regrades) -> None:
    with regrades.held("kit"):
        regrades.note(_FINISHED)
        assert regrades.of("kit").status == "running"  # its process still ends
    assert regrades.of("kit").status == "finished"


@pytest.mark.parametrize("half", ["begins", "ends"])
def test_a_regrade_that_changes_while_it_is_looked_at_was_never_interrupted(
    regrades: Regrades, monkeypatch: pytest.MonkeyPatch, half: str
) -> None:
    with ExitStack() as others:
        rows = Database.rows

        def begin() -> None:
            others.enter_context(regrades.held("kit"))
            regrades.note(RegradeState(run="kit", status="running", total=6))

        def look(database: Database, sql: str, *values: Scalar) -> list[Row]:
            monkeypatch.undo()
            if half == "begins":
                begin()
                return rows(database, sql, *values)
            found = rows(database, sql, *values)
            regrades.note(_FINISHED)
            others.close()
            return found

        if half == "ends":
            begin()
        monkeypatch.setattr(Database, "rows", look)
        assert regrades.of("kit").status == "running"
        assert regrades.of("kit").status == ("running" if half == "begins" else "finished")


def test_a_run_that_is_only_looked_at_can_be_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, ask = tmp_path / "run.lock", kept_files.is_held
    lock.touch()
    with ExitStack() as looking:
        file = looking.enter_context(lock.open("rb"))
        fcntl.flock(file, fcntl.LOCK_SH)

        def ends_to_look(path: Path) -> bool:
            looking.close()
            return ask(path)

        monkeypatch.setattr(kept_files, "is_held", ends_to_look)
        with kept_files.held(lock) as descriptor:
            assert descriptor is not None
            assert ask(lock)
