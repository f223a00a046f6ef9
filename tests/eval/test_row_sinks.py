"""Where graded rows go, a store or a directory: what is killed comes to the same, and is kept."""

from __future__ import annotations

import asyncio
import os
import pickle
import re
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest

from assay.errors import InputError
from assay.eval.cluster import sent_shards
from assay.eval.cluster.actors import EndsWorkersError
from assay.eval.cluster.sent_shards import SentShards
from assay.eval.rows import datasets, directory_sink, store_sink
from assay.eval.rows.directory_sink import PartDirectory
from assay.eval.rows.recorded import Sink, grade_rows, plan_rows
from assay.eval.rows.store_sink import RowStore
from assay.graders import Grader
from assay.graders.spec import GraderSpec
from assay.store import Store
from tests.written_files import write_rows

ROWS = 25
GRADERS = {"compares": "exact_match", "waits": f"python:{__name__}:Told"}


class Told(Grader):
    """Does not only compute."""

    @classmethod
    async def compute_score(cls, answer: str) -> float:
        return float(answer == "Oslo")


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
    write_rows(root / "rows.jsonl", rows)
    return root / "rows.jsonl"


@contextmanager
def into_store(place: Path) -> Generator[Sink]:
    with Store.open(str(place)) as store:
        yield RowStore(store)


@contextmanager
def into_directory(place: Path) -> Generator[Sink]:
    yield PartDirectory(str(place), rows=9)


def grade(way: str, data: Path, place: Path, cluster: Any = None, kind: str = "compares") -> None:
    graders = (GraderSpec(type=GRADERS[kind]),)
    with WAYS[way][0](place) as to, plan_rows(str(data), graders, to) as plan:
        asyncio.run(grade_rows(plan, workers=1, cluster=cluster))


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
    monkeypatch.setattr(store_sink, "_ROWS", 9)
    kept, data = WAYS[way][1], write(tmp_path)
    grade(way, data, tmp_path / "whole")
    whole, at, were_killed = kept(tmp_path / "whole"), 0, 0
    while True:
        place = tmp_path / f"killed-{at}"
        was_killed = killed(partial(grade, way, data, place), at)
        if place.exists() and (way == "store" or (place / "parts").is_dir()):
            there = kept(place)
            assert there == {name: whole[name] for name in there}
        grade(way, data, place)
        assert kept(place) == whole
        if not was_killed:
            break
        at, were_killed = at + 1, were_killed + 1
    assert were_killed > (4 if way == "store" else 15)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", GRADERS)
def test_actors_elsewhere_make_the_same_and_a_row_over_which_they_die_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, kind: str
) -> None:
    """Without a cluster: what travels is pickled, and one row ends whoever is given it."""
    kept, data = WAYS[way][1], write(tmp_path)
    grade(way, data, tmp_path / "here", kind=kind)

    @contextmanager
    def actors(work: SentShards, count: int, **more: object) -> Generator[Any]:
        del count, more
        there = pickle.loads(pickle.dumps(work))
        there.prepare()

        async def pool(request: Any) -> object:
            request = pickle.loads(pickle.dumps(request))
            shard = getattr(request, "shard", request)
            ids = [row.id for block in there.work.blocks(shard) for row, _ in block.rows]
            first, last = getattr(request, "first", 0), getattr(request, "last", len(ids))
            if poison in ids[first:last] and ids.index(poison) not in dict(shard.given_up):
                raise EndsWorkersError("workers died over it")
            return await there(request)

        yield pool

    monkeypatch.setattr(sent_shards, "Actors", actors)
    monkeypatch.setattr(sent_shards, "worker_directory", lambda: str(tmp_path / "sent"))
    cluster: Any = SimpleNamespace(room=2, cores=2)
    for poison in ("", "r5"):
        place = tmp_path / f"there-{poison}"
        grade(way, data, place, cluster, kind)
        if not poison:
            assert kept(place) == kept(tmp_path / "here")
        else:
            assert "workers died over it" in str(kept(place))


def test_what_is_refused_before_its_first_row_is_no_run(tmp_path: Path) -> None:
    """It would be the latest one."""
    data, graders = write(tmp_path), (GraderSpec(type="exact_match"),)

    def refuse(store: Store) -> None:
        with plan_rows(str(data), graders, RowStore(store)):
            assert store.runs().items
            raise InputError("refused")

    with Store.open(str(tmp_path / "store")) as store:
        with pytest.raises(InputError, match="refused"):
            refuse(store)
        assert not store.runs().items


@pytest.mark.parametrize("few", [0, 10_000])
@pytest.mark.parametrize("way", WAYS)
def test_the_rows_of_what_costs_are_all_read_before_the_first_is_graded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, few: int
) -> None:
    """By several processes, where there are many; what is wrong first is told."""
    monkeypatch.setattr(datasets, "_FEW", few)
    monkeypatch.setattr(store_sink, "_COSTLY_ROWS", 3)
    monkeypatch.setattr(directory_sink, "_COMPUTED_ROWS", 3)
    make, kept = WAYS[way]
    data, place, graders = tmp_path / "rows.jsonl", tmp_path / way, [GraderSpec(type="math_equal")]
    rows = [{"id": f"r{n}", "answer": "1", "human": None if n else 1} for n in range(40)]
    twice = {"id": "r2", "answer": "1"}
    for wrong, label, said in (
        ((twice, [1]), None, f"rows.jsonl:41: id 'r2' is also that of {data}:3"),
        (([1], twice), None, "rows.jsonl:41: a row must be a JSON object"),
        (({"answer": "1", "human": "x"},), "human", "rows.jsonl:41: label 'human' must be"),
        ((), "hman", "has a field 'hman'"),
        ((), "human", ""),
    ):
        if label and way == "directory":
            continue
        write_rows(data, (*rows, *wrong))
        refusal = pytest.raises(InputError, match=re.escape(said)) if said else nullcontext()
        with refusal, make(place) as to, plan_rows(str(data), graders, to, label=label) as plan:
            assert plan.rows == len(rows)
    assert kept(place) == {} if way == "store" else not place.exists()
