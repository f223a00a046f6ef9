"""Where what passes a cell's gateway is written down while its agent works.

A finished cell has it all in its trace, so its journal goes. One that is left tells what an agent
had done when assay was killed: it becomes a result of that cell, an error with a trace.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assay.eval.records import record_of
from assay.store.kept_files import alone_with
from assay.store.records import CellKey
from assay.store.runs import Store
from assay.tasks.blocks import Expect
from assay.types.run import Run
from assay.types.trace import Step, Trace

if TYPE_CHECKING:
    from assay.gateway.trace import Recorded


def journal_of(home: str, run_id: str, key: CellKey) -> str:
    """The file of a cell's journal, whether or not it is there."""
    name = hashlib.sha256(label_of(key).encode()).hexdigest()[:32]
    return str(Path(home, "wire", run_id, f"{name}.jsonl"))


def label_of(key: CellKey) -> str:
    """What a cell's journal says that it is of."""
    return json.dumps(key)


def forget_journal(home: str, run_id: str, key: CellKey) -> None:
    """Remove a cell's journal, if it has one."""
    Path(journal_of(home, run_id, key)).unlink(missing_ok=True)


def forget_journals(home: str, run_id: str) -> None:
    """Remove the directory of a run's journals once no cell needs it; one that is left stays."""
    with suppress(OSError):
        Path(home, "wire", run_id).rmdir()
        Path(home, "wire").rmdir()


def salvage(store: Store, run_id: str) -> int:
    """Keep what agents had done when assay was killed, as results of their cells.

    A journal that is damaged, as by a disk that was full, is taken as far as it is whole, and the
    cell says so: it must not keep its run from being finished.

    Returns:
        How many cells; 0 also where somebody is at work.
    """
    files = sorted(Path(store.home, "wire", run_id).glob("*.jsonl"))
    if not files:
        return 0
    count = 0
    with alone_with(store.home) as is_alone:
        for file in files if is_alone else ():
            count += _salvaged(store, run_id, file)
            file.unlink()
    forget_journals(store.home, run_id)
    return count


def under_way(store: Store, run_id: str) -> Iterator[tuple[CellKey, str]]:
    """The cells of a run that have a journal and no result, each with when its agent began."""
    from assay.gateway.journal import Begun, decoded

    files = sorted(Path(store.home, "wire", run_id).glob("*.jsonl"))
    done = store.finished(run_id) if files else ()  # a page that is open asks each second
    for file in files:
        with suppress(OSError, ValueError):  # its cell has just ended, or it has no line yet
            with file.open("rb") as lines:
                begun = decoded(lines.readline())
            if isinstance(begun, Begun) and (key := _cell_of(begun.of)) not in done:
                yield key, begun.at


def so_far(store: Store, run_id: str, key: CellKey) -> Trace | None:
    """What the agent of a cell has done by now; None where none is at work."""
    with suppress(OSError):
        if read := _read(Path(journal_of(store.home, run_id, key))):
            return read[1].trace
    return None


def _cell_of(label: str) -> CellKey:
    return cast("CellKey", tuple(json.loads(label)))


def _read(file: Path) -> tuple[CellKey, Recorded, str] | None:
    """The cell of a journal, what passed, and where it is damaged; None of what is no journal."""
    from assay.gateway.journal import Begun, readable_entries
    from assay.gateway.trace import recorded

    entries, broken = readable_entries(file)
    begun = entries[0] if entries else None
    return (_cell_of(begun.of), recorded(entries), broken) if isinstance(begun, Begun) else None


def _salvaged(store: Store, run_id: str, file: Path) -> bool:
    read = _read(file)
    if read is None or read[0] in store.finished(run_id):
        return False
    (case, harness, model, trial), found, broken = read
    usage = found.usage
    run = Run.failed("interrupted: assay ended while the agent worked", task_id=case)
    told = [Step(source="system", error=f"more passed than can be read: {broken}")]
    run.trace.steps[:0] = [*found.trace.steps, *(told if broken else ())]
    run.harness, run.model, run.trial = harness, model, trial
    run.cost_usd = usage.cost_usd
    if usage.prompt_tokens is not None and usage.completion_tokens is not None:
        run.tokens = usage.prompt_tokens + usage.completion_tokens
    record = record_of(run, run_id=run_id, case=case, expect=Expect())
    store.add_cell(record, run.to_dict())
    return True
