"""Runs as people find them again: by id, by the beginning of one, by label, or as the latest."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from assay.errors import InputError, StoreError
from assay.store import CellRecord, RunRecord, Store, new_run_id
from assay.store.pages import Stretch


def _run(run_id: str, minute: int = 0, label: str = "") -> RunRecord:
    return RunRecord(id=run_id, created_at=f"2026-11-21T09:{minute:02}:00Z", label=label)


def test_a_run_comes_back_as_it_was(store: Store) -> None:
    run = RunRecord(
        id="20261121-090830-ab12",
        created_at="2026-11-21T09:08:30Z",
        label="näher",
        config={"cases": ["a"], "trials": 3, "note": "\ud800"},
        digests={"a": "0" * 64},
        planned=6,
    )
    store.create_run(run)
    assert store.run(run.id) == run


def test_runs_are_listed_newest_first_and_finished_once_they_are_said_to_be(store: Store) -> None:
    for run_id, minute in (("r-ff", 3), ("a", 1), ("c", 2), ("r-00", 3)):
        store.create_run(_run(run_id, minute))
    store.finish_run("c")
    assert [(run.id, run.finished) for run in store.runs()] == [
        ("r-00", False), ("r-ff", False), ("c", True), ("a", False),
    ]  # fmt: skip
    assert [run.id for run in store.runs(Stretch(2))] == ["r-00", "r-ff"]
    assert store.run("latest").id == "r-00", "of one second, the later made"


def test_what_people_call_a_run_finds_it(store: Store) -> None:
    store.create_run(_run("20261121-091000-bbbb", 10, "nightly"))
    store.create_run(_run("20261121-090000-aaaa", 0, "nightly"))
    store.create_run(_run("20261121-090500-cccc", 5, "20261121-091"))
    for ref, expected in (
        ("20261121-090000-aaaa", "20261121-090000-aaaa"),
        ("20261121-0900", "20261121-090000-aaaa"),
        ("latest", "20261121-091000-bbbb"),
        ("nightly", "20261121-091000-bbbb"),  # the newest of that label
        ("20261121-091", "20261121-090500-cccc"),  # a label goes before the beginning of an id
    ):
        assert store.run(ref).id == expected
    longer = _run("20261121-090000-aaaa-2", 1)
    store.create_run(longer)
    assert store.run(longer.id) == longer
    assert store.run("20261121-090000-aaaa").label == "nightly"


def test_what_names_no_run_is_told_apart(store: Store) -> None:
    with pytest.raises(InputError, match="nothing was run yet"):
        store.run("latest")
    store.create_run(_run("r-1", label="nightly"))
    store.create_run(_run("r-2"))
    for ref in ("", "%", "_____", "nothing", "\udcff", "R-1"):
        with pytest.raises(InputError, match="there is no run"):
            store.run(ref)
    with pytest.raises(InputError, match="did you mean 'nightly'"):
        store.run("nightyl")
    with pytest.raises(InputError, match="say which: r-1, r-2"):
        store.run("r-")
    with pytest.raises(InputError, match="there is no run 'r9'"):
        store.finish_run("r9")


def test_an_id_is_used_once(store: Store) -> None:
    store.create_run(_run("r1", label="first"))
    with pytest.raises(StoreError, match="already a run r1"):
        store.create_run(_run("r1", label="second"))
    assert store.run("r1").label == "first"
    with pytest.raises(InputError, match=r"'latest'.*the word stands for the newest run"):
        store.create_run(_run("r2", label="latest"))


def test_a_run_id_is_the_time_in_utc_and_something_random(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 11, 21, 1, 2, 3, tzinfo=timezone(timedelta(hours=2)))
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")  # where the machine's own time is that of UTC, too
        time.tzset()
        made = {new_run_id(now) for _ in range(50)}
    time.tzset()
    assert {run_id[:16] for run_id in made} == {"20261120-230203-"}
    assert all(len(run_id) == 20 and int(run_id[16:], 16) >= 0 for run_id in made)
    assert len(made) > 1
    with pytest.raises(InputError, match="zone"):
        new_run_id(datetime(2026, 11, 21, tzinfo=UTC).replace(tzinfo=None))


def test_an_unfinished_run_of_exactly_the_same_is_gone_on_with(store: Store) -> None:
    def run(run_id: str, minute: int, **changes: Any) -> RunRecord:
        known: dict[str, Any] = {"config": {"kind": "matrix"}, "digests": {"a": "1"}, "planned": 2}
        return replace(_run(run_id, minute), **(known | changes))

    asked = run("asked", 0)
    for one in (
        run("older", 1),
        run("newer", 2),
        run("ended", 3),
        run("other-config", 4, config={"kind": "job"}),
        run("other-digests", 5, digests={"a": "2"}),
        run("other-size", 6, planned=3),
        run("rows", 7, config={"kind": "dataset"}),
    ):
        store.create_run(one)
    store.finish_run("ended")
    found = store.interrupted(asked.config, asked.digests, asked.planned)
    assert found
    assert found.id == "newer"
    assert store.interrupted({}, {}, 0) is None
    assert store.newest_unfinished() == "other-size"


def test_a_run_is_forgotten_with_all_that_is_stored_of_it(store: Store) -> None:
    for run in ("gone", "stays"):
        store.create_run(_run(run))
        store.add_cell(CellRecord(run_id=run, case="a", status="skipped"), {"of": run})
    store.forget_run("gone")
    assert [run.id for run in store.runs()] == ["stays"]
    assert store.detail("stays", ("a", "", "", 1)) == {"of": "stays"}
    assert store._database.rows("SELECT count(*) FROM detail") == [(1,)]
    with pytest.raises(InputError, match="there is no run 'gone'"):
        store.forget_run("gone")
