"""The driver of batches: its bounds, its processes, and going on after an interruption."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from assay.cores import cores
from assay.errors import (
    AssayError,
    GraderError,
    InputError,
    Location,
    MissingExtraError,
    ModelError,
    StoreError,
)
from assay.eval.batch import Processes, in_batches, run_batches
from assay.eval.cluster.actors import EndsWorkersError
from assay.eval.cluster.pieces import by_pieces
from assay.eval.rows.recorded import grade_rows, plan_rows
from assay.eval.rows.store_sink import RowStore
from assay.graders.spec import GraderSpec
from assay.scoring import Json
from assay.store import Store
from assay.store.kept_files import delete_run, run_state
from assay.store.records import RunRecord
from tests.children import Children
from tests.command_line import COMMAND, assay, environment
from tests.each import each
from tests.written_files import write_rows


async def test_no_more_is_under_way_than_may_be_and_all_of_it_is_kept() -> None:
    under_way, most, kept = 0, 0, list[int]()

    async def work(number: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return number * number

    await run_batches(range(20), work, lambda _, square: kept.append(square), at_once=3)
    assert most == 3
    assert sorted(kept) == [n * n for n in range(20)]


async def test_after_a_failure_nothing_is_begun_and_what_is_under_way_is_kept() -> None:
    taken: list[int] = []
    kept: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    async def work(number: int) -> None:
        await asyncio.sleep(0)
        if number == 5:
            raise GraderError("no")
        await asyncio.sleep(0)

    with pytest.raises(GraderError):
        await run_batches(numbers(), work, lambda number, _: kept.append(number), at_once=2)
    assert len(taken) < 10
    assert sorted([*kept, 5]) == taken


def test_items_are_read_only_as_far_as_a_batch_needs() -> None:
    read = iter(range(7))
    batches = in_batches(read, 3)
    assert next(batches) == [0, 1, 2]
    assert next(read) == 3
    assert list(batches) == [[4, 5, 6]]


async def test_processes_answer_with_one_core_each_and_one_that_dies_is_an_error() -> None:
    async def work(request: int) -> tuple[int, int]:
        if request < 0:
            os._exit(3)
        await asyncio.sleep(0)
        return request + 1, cores()

    here = cores()
    with Processes(work, 3) as pool:
        assert await asyncio.gather(*map(pool, range(9))) == [(n, 1) for n in range(1, 10)]
        given_up = asyncio.create_task(pool(7))
        await asyncio.sleep(0)
        given_up.cancel()  # whose answer is nobody else's
        assert await asyncio.gather(*map(pool, range(9))) == [(n, 1) for n in range(1, 10)]
        with pytest.raises(GraderError, match="process that grades rows has ended"):
            await pool(-1)
        assert await pool(1) == (2, 1)
    assert cores() == here


async def test_when_all_processes_have_died_nobody_waits_for_one() -> None:
    def die(_: int) -> None:
        os._exit(3)

    with Processes(die, 2) as pool, pytest.raises(GraderError, match="has ended"):
        await asyncio.wait_for(run_batches(range(9), pool, lambda _, __: None, at_once=4), 10)


@each(
    "error",
    [
        StoreError("the disk is full", hint="free some"),
        GraderError("no verdict"),
        InputError("is wrong", location=Location(file="g.yaml", line=3, field="type"), hint="fix"),
        ModelError("too much", kind="budget", status=402, hint="pay"),
        MissingExtraError("this", extra="ray"),
    ],
)
async def test_an_error_comes_out_of_a_process_as_it_is(error: AssayError) -> None:
    def fail(_: object) -> AssayError:
        return error

    with Processes(fail, 1) as pool:
        told = await pool(None)
    assert type(told) is type(error)
    assert (str(told), vars(told)) == (str(error), vars(error))


async def test_the_item_over_which_workers_end_is_found_and_the_others_are_done() -> None:
    asked = 0

    async def ask(some: Sequence[int]) -> list[int]:
        nonlocal asked
        asked += 1
        if 33 in some:
            raise EndsWorkersError("3 workers died over it")
        return [number * number for number in some]

    def lost(item: int, error: EndsWorkersError) -> list[int]:
        assert "died over it" in error.message
        return [-item]

    found = await by_pieces(range(100), ask, lost)
    expected = [-n if n == 33 else n * n for n in range(100)]
    assert [one for some in found for one in some] == expected
    assert asked <= 1 + 8 + 8 + 2


def test_processes_end_with_the_one_that_made_them_however_it_ends() -> None:
    code = (
        "import sys\nfrom assay.eval.batch import Processes\n"
        "with Processes(lambda n: n, 3):\n    print('ready', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGKILL)
        # The forks have its standard output, too: this ends when the last of them has ended.
        assert process.stdout.read() == b""


GRADER = """\
import os
from assay.graders import Grader

class Logged(Grader):
    name = "logged"

    @classmethod
    def compute_score(cls, answer: str) -> float:
        with open("log", "a") as log:
            log.write(f"{answer}\\n")
        if answer == "20" and os.path.exists("reached"):
            open("reached", "w").close()
            open("go").close()
        return 1.0
"""


def interrupted(root: Path, how: signal.Signals) -> subprocess.CompletedProcess[str]:
    """Grade with what waits at the 21st row, and end the process there."""
    words = ["grade", "rows.jsonl", "graders.yaml", "--workers", "1"]
    os.mkfifo(root / "reached")
    os.mkfifo(root / "go")
    with Children() as started:
        process = started.start([*COMMAND, *words], cwd=root, env=environment(root))
        (root / "reached").read_text()
        process.send_signal(how)
        if how == signal.SIGINT:
            (root / "go").write_text("")
        out, said = process.communicate()
    (root / "reached").unlink()
    (root / "go").unlink()
    return subprocess.CompletedProcess(process.args, process.returncode, out, said)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_is_gone_on_with_and_no_row_is_graded_or_stored_twice(
    tmp_path: Path, how: signal.Signals
) -> None:
    rows: list[dict[str, Json]] = [{"id": f"r{n}", "answer": str(n)} for n in range(40)]
    write_rows(tmp_path / "rows.jsonl", rows)
    (tmp_path / "own.py").write_text(GRADER)
    (tmp_path / "graders.yaml").write_text("- {type: 'python:own.py:Logged'}\n")
    first = interrupted(tmp_path, how)
    assert first.stdout == ""
    with Store.open(str(tmp_path / ".assay")) as store:
        (run,) = store.runs()
        kept = store.cell_count(run.id)
    assert 20 <= kept < 40
    if how == signal.SIGINT:
        assert first.returncode == 130
        assert f"interrupted; {kept} of 40 rows are kept" in first.stderr
    again = assay("grade", "rows.jsonl", "graders.yaml", "--out", "out.jsonl", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert f"resuming run {run.id}, which has {kept} of 40 rows" in again.stderr
    with Store.open(str(tmp_path / ".assay")) as store:
        assert [one.id for one in store.runs()] == [run.id]
        assert store.run(run.id).finished
        cells = list(store.cells(run.id))
        assert {len(store.history(run.id, cell.key)) for cell in cells} == {1}
    assert len(cells) == 40
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["id"] for row in written] == [f"r{n}" for n in range(40)]
    log = (tmp_path / "log").read_text().split()
    assert len(log) - len(set(log)) <= 1  # the row that was under way
    assert assay("grade", "rows.jsonl", "graders.yaml", cwd=tmp_path).returncode == 0
    with Store.open(str(tmp_path / ".assay")) as store:
        assert len(store.runs()) == 2  # what is finished is not gone on with
    assert not list((tmp_path / ".assay").glob("*.lock"))


@pytest.mark.parametrize("what", ["data", "graders", "threshold"])
async def test_rows_that_something_else_graded_are_not_gone_on_with(
    tmp_path: Path, what: str
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"answer": "a", "expected": "a"}\n{"answer": "b", "expected": "a"}\n')
    graders = [GraderSpec(type="exact_match")]
    with Store.open(str(tmp_path / "home")) as store:
        first, beside, other, same = (RowStore(store) for _ in range(4))
        with plan_rows(str(file), graders, first), plan_rows(str(file), graders, beside):
            assert beside.run.id != first.run.id  # another process is at it
        if what == "data":
            file.write_text(file.read_text().replace("b", "c"))
        if what == "graders":
            graders = [GraderSpec(type="exact_match", options={"normalize_text": False})]
        threshold = 0.5 if what == "threshold" else 1.0
        with plan_rows(str(file), graders, other, threshold=threshold):
            assert other.run.id not in (first.run.id, beside.run.id)
        with plan_rows(str(file), graders, same, threshold=threshold):
            assert same.run.id == other.run.id


async def test_a_run_of_rows_is_held_before_anybody_can_see_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"answer": "a", "expected": "a"}\n')
    graders, create, states = [GraderSpec(type="exact_match")], Store.create_run, list[str]()

    def look(store: Store, run: RunRecord) -> None:
        create(store, run)
        states.append(run_state(store, store.run(run.id)))

    monkeypatch.setattr(Store, "create_run", look)
    with Store.open(str(tmp_path / "home")) as store:
        to = RowStore(store)
        with plan_rows(str(file), graders, to) as rows:
            await grade_rows(rows)
            states.append(run_state(store, store.run(to.run.id)))
            delete_run(store, to.run.id)  # its process ends: nobody goes on with it
    assert states == ["running", "finished"]


def test_an_error_is_graded_again_when_its_run_is_gone_on_with(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"answer": "a", "expected": "a"}\n{"answer": "b", "expected": "b"}\n')
    graders = [GraderSpec(type="exact_match")]
    with Store.open(str(tmp_path / "home")) as store:
        first, second, third = (RowStore(store) for _ in range(3))
        with plan_rows(str(file), graders, first) as rows:
            asyncio.run(grade_rows(rows))
        failed = store.cells_of(first.run.id, ["2"])["2"]
        with plan_rows(str(file), graders, second):
            error = replace(
                failed, run_id=second.run.id, status="error", reward=None, passed=None, error="away"
            )
            store.add_cell(error, {})
        with plan_rows(str(file), graders, third) as again:
            assert (third.run.id, third.before) == (second.run.id, 1)
            asyncio.run(grade_rows(again))
        assert [cell.passed for cell in store.cells(third.run.id)] == [True, True]
        assert len(store.history(third.run.id, failed.key)) == 2
