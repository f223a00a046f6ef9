"""Where graded rows go, a store or a directory: what is killed comes to the same, and is kept."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from assay.eval import row_store
from assay.eval.part_directory import PartDirectory
from assay.eval.recorded import grade_rows, plan_rows
from assay.eval.row_store import RowStore
from assay.graders.spec import GraderSpec
from assay.store import Store

ROWS = 25
Kept: TypeAlias = "dict[str, object]"


def write(root: Path) -> Path:
    """Two of three are right; the seventh cannot be graded."""
    rows = (
        {
            "id": f"r{n}",
            "answer": "Oslo" if n % 3 else "Rome",
            "expected": None if n == 7 else "Oslo",
        }
        for n in range(ROWS)
    )
    (root / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root / "rows.jsonl"


def into_store(data: Path, place: Path, graders: tuple[GraderSpec, ...]) -> None:
    with Store.open(str(place)) as store, plan_rows(str(data), graders, RowStore(store)) as plan:
        asyncio.run(grade_rows(plan, workers=1))


def into_directory(data: Path, place: Path, graders: tuple[GraderSpec, ...]) -> None:
    with plan_rows(str(data), graders, PartDirectory(str(place), rows=9)) as plan:
        asyncio.run(grade_rows(plan, workers=1))


def stored(place: Path) -> Kept:
    """The cells of the newest run, each with how often it was graded; an error may be again."""
    with Store.open(str(place)) as store:
        runs = store.runs().items
        cells = list(store.cells(runs[0].id)) if runs else []
        once = all(
            len(store.history(cell.run_id, cell.key)) == 1
            for cell in cells
            if cell.status != "error"
        )
        assert once, "a row that was graded was not graded again"
        return {c.case: (c.status, c.reward, c.passed, c.error, c.file) for c in cells}


def in_parts(place: Path) -> Kept:
    """The bytes of each part."""
    return {one.name: one.read_bytes() for one in (place / "parts").glob("[!.]*")}


WAYS = {"store": (into_store, stored), "directory": (into_directory, in_parts)}
_CHANGES: tuple[tuple[object, str], ...] = (
    (os, "link"),
    (os, "fsync"),
    (Path, "replace"),
    (Path, "unlink"),
    (Store, "create_run"),
    (Store, "add_rows"),
    (Store, "finish_run"),
)


def killed(work: Callable[[], object], at: int) -> bool:
    """Do something in a fork that is killed before its nth change of what is kept."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    left = at

    def counted(change: Callable[..., object]) -> Callable[..., object]:
        def instead(*args: object, **options: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return change(*args, **options)

        return instead

    try:
        for owner, name in _CHANGES:
            setattr(owner, name, counted(getattr(owner, name)))
        work()
    finally:
        os._exit(0)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_what_is_killed_at_any_moment_comes_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The oracle: one that nobody interrupted."""
    monkeypatch.setattr(row_store, "_ROWS", 9)
    (grade, kept), data = WAYS[way], write(tmp_path)
    graders = (GraderSpec(type="exact_match"),)
    grade(data, tmp_path / "whole", graders)
    whole, at, were_killed = kept(tmp_path / "whole"), 0, 0
    while True:
        place = tmp_path / f"killed-{at}"
        was_killed = killed(partial(grade, data, place, graders), at)
        if place.exists() and (way == "store" or (place / "parts").is_dir()):
            there = kept(place)
            assert there == {name: whole[name] for name in there}
        grade(data, place, graders)
        assert kept(place) == whole
        if not was_killed:
            break
        at, were_killed = at + 1, were_killed + 1
    assert were_killed > (4 if way == "store" else 15)
