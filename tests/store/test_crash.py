"""Processes that are killed, and processes that write at once.

These start real processes: whether a transaction is whole, and whether a lock waits, is decided
between a process and the kernel and cannot be seen from inside one.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from assay.store import Counts, RunRecord, Store
from tests.children import Children

_WRITER = """
import sys
from assay.store import CellRecord, RunRecord, Store

home, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Store.open(home) as store:
    if name == "killed":
        store.create_run(RunRecord(id="r1", created_at="2026-11-21T09:08:30Z"))
    for trial in range(1, count + 1):
        cell = CellRecord(
            run_id="r1", case=name, trial=trial, status="graded", reward=1.0, passed=True,
            answer=str(trial) * 1000,
        )
        store.add_cell(cell, {"trial": trial, "trace": [str(trial)] * 2000}, f"{trial:064}")
        print(trial, flush=True)
"""

_OPENER = """
import sys
from assay.store import Store

sys.stdin.readline()
for number in range(40):
    Store.open(f"{sys.argv[1]}/{number}").close()
"""


def _start(children: Children, program: str, *arguments: str) -> subprocess.Popen[str]:
    return children.start([sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE)


@pytest.mark.parametrize("after", [1, 40, 333])
def test_a_killed_process_leaves_whole_cells_only(
    tmp_path: Path, after: int, children: Children
) -> None:
    with _start(children, _WRITER, str(tmp_path), "killed", "1000000") as writer:
        assert writer.stdout
        for line in writer.stdout:
            if int(line) == after:
                break
        writer.send_signal(signal.SIGKILL)
        said = [after, *(int(line) for line in writer.stdout if line.endswith("\n"))]
        assert writer.wait() == -signal.SIGKILL
    with Store.open(str(tmp_path)) as store:
        cells = list(store.cells("r1"))
        # Whatever was reported as stored is there; the one in flight may be, too.
        assert len(cells) - said[-1] in (0, 1)
        for trial, cell in enumerate(cells, start=1):
            assert cell.trial == trial
            assert cell.answer == str(trial) * 1000
            assert store.detail("r1", cell.key)["trace"] == [str(trial)] * 2000
        snapshots = store._database.rows("SELECT snapshot FROM newest ORDER BY trial")
        assert snapshots == [(f"{trial:064}",) for trial in range(1, len(cells) + 1)]
        assert store.finished("r1") == {cell.key for cell in cells}
        assert store._database.rows("PRAGMA integrity_check") == [("ok",)]


def test_two_processes_write_at_once_and_nothing_is_lost(
    tmp_path: Path, children: Children
) -> None:
    with Store.open(str(tmp_path)) as store:
        store.create_run(RunRecord(id="r1", created_at="2026-11-21T09:08:30Z"))
        writers = [_start(children, _WRITER, str(tmp_path), name, "300") for name in ("a", "b")]
        for writer in writers:
            _, complaints = writer.communicate()
            assert (writer.returncode, complaints) == (0, "")
        assert store.counts("r1") == Counts(passed=600)
        assert all(
            store.detail("r1", cell.key)["trial"] == cell.trial for cell in store.cells("r1")
        )


def test_processes_that_open_new_stores_at_once_do_not_collide(
    tmp_path: Path, children: Children
) -> None:
    openers = [_start(children, _OPENER, str(tmp_path / "home")) for _ in range(4)]
    for opener in openers:
        assert opener.stdin
        opener.stdin.write("go\n")
        opener.stdin.flush()
    for opener in openers:
        _, complaints = opener.communicate()
        assert (opener.returncode, complaints) == (0, "")
