"""Grade a dataset of recorded answers: rows through graders, into the store, resumable.

A row needs no agent and no workspace, so it is graded without a rollout. Rows are read, graded and
stored a batch at a time: what is killed loses the batches under way, and no more. The next run of
the same graders over the same rows goes on after those that are stored, and retries errors.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar, cast

from assay.errors import AssayError, InputError
from assay.eval.batch import Processes, in_batches, run_batches
from assay.eval.records import graders_digest, row_record, shortened, start_run
from assay.eval.within import OutOfTimeError, within
from assay.graders.apply import grade_batch, require_parts
from assay.graders.digest import grader_digest
from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult
from assay.store.checks import plain
from assay.store.records import CellRecord, CellRow, Packer, RunRecord, StoredCell, cell_row
from assay.store.runs import Store
from assay.tasks.rows import Row, SeenIds, parse_row, read_lines, read_rows
from assay.tasks.task import RunOptions

__all__ = ["NO_ANSWER", "OnRows", "RowRun", "count_rows", "grade_rows", "plan_rows"]

OnRows: TypeAlias = "Callable[[Sequence[CellRow]], None]"
"""Told of rows that are stored: the columns of their results, see `assay.store.records`."""

Lines: TypeAlias = "Sequence[tuple[int, bytes]]"

T = TypeVar("T")

_PARTS = frozenset({"answer", "question", "expected", "thread", "metadata"})
_BATCH = 256
"""Rows that are read and graded together where graders only compute: what a kill may cost."""
_AT_HOME = 2_000
"""So few rows are graded here: other processes would take longer to start than they save."""
NO_ANSWER = 'the recorded answer is null; "" is an empty answer'
"""Why such a row is an error: nobody knows what would have been said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRun:
    """Rows of a dataset that are about to be graded.

    Attributes:
        file: JSONL dataset; see `assay.tasks.rows.read_rows`.
        graders: What every row goes through.
        label: Field that people labelled; None for none.
        threshold: Reward that a row needs to pass.
        run: The run that they are stored in.
        kept: Rows of it that an interrupted process has stored.
    """

    file: str
    graders: tuple[GraderSpec, ...]
    label: str | None
    threshold: float
    run: RunRecord
    kept: int = 0

    @property
    def batch_size(self) -> int:
        """Rows that are handed to the graders together."""
        return min((spec.kind.grader.batch_size for spec in self.graders), default=1)

    @property
    def is_pure(self) -> bool:
        """Whether other processes may grade rows."""
        return all(spec.kind.grader.is_pure for spec in self.graders)


def count_rows(file: str, *, label: str | None = None, processes: int = 1) -> int:
    """Read a dataset through, so that a malformed row is found before anything is graded.

    Raises:
        InputError: Naming file and line; or for a dataset without rows, or without a label.
    """
    with suppress(OSError):
        if processes > 1 and Path(file).stat().st_size > _LARGE_BYTES:
            import asyncio

            counted = asyncio.run(_count_together(file, label, processes))
            if counted is not None:
                return counted
    rows = labelled = 0
    for row in read_rows(file, graders=(), label=label):
        rows += 1
        labelled += row.label is not None
    if not rows:
        raise InputError(f"{file} has no rows")
    if label is not None and not labelled:
        raise InputError(f"no row of {file} has a label {label!r}")
    return rows


_LARGE_BYTES = 4 << 20


async def _count_together(file: str, label: str | None, processes: int) -> int | None:
    """The rows of a dataset; None where something is wrong, which one reader has to find."""
    seen, counts, ends = SeenIds(), [0, 0], [False]

    def read(lines: Lines) -> tuple[list[str], int] | None:
        try:
            rows = [parse_row(line, number, file, label=label) for number, line in lines]
        except InputError:
            return None
        return [row.id for row in rows], sum(row.label is not None for row in rows)

    def count(_: Lines, found: object) -> None:
        known = cast("tuple[list[str], int] | None", found)
        if known is None or not all(map(seen.add, known[0])):
            ends[0] = True
        else:
            counts[0] += len(known[0])
            counts[1] += known[1]

    def batches() -> Iterator[Lines]:
        for batch in in_batches(read_lines(file), _BATCH):
            if ends[0]:
                return
            yield batch

    with Processes(read, processes) as pool:
        await run_batches(batches(), pool, count, at_once=2 * processes)
    return counts[0] if not ends[0] and counts[0] and (label is None or counts[1]) else None


@contextmanager
def plan_rows(
    file: str,
    graders: Sequence[GraderSpec],
    store: Store,
    *,
    label: str | None = None,
    threshold: float = 1.0,
    planned: int | None = None,
    notes: Mapping[str, Json] | None = None,
) -> Generator[RowRun]:
    """Find or begin the run that grades a dataset; it is nobody else's until the block ends.

    Raises:
        InputError: For a malformed row, or graders that this version cannot run.
    """
    require_parts(graders, _PARTS)
    planned = count_rows(file, label=label) if planned is None else planned
    made_of = hashlib.sha256("\n".join(map(grader_digest, graders)).encode()).hexdigest()[:16]
    config: dict[str, Json] = {
        "kind": "dataset",
        "file": file,
        "label": label,
        "threshold": threshold,
        "graders": f"{graders_digest(graders)} {made_of}",
        **(notes or {}),
    }
    digests = {Path(file).name: _file_digest(file)}
    earlier = store.interrupted(config, digests, planned)
    with ExitStack() as stack:
        if earlier is not None and stack.enter_context(_held(store, earlier)):
            run, kept = earlier, store.counts(earlier.id).total
        else:
            run, kept = start_run(store, config=config, digests=digests, planned=planned), 0
            stack.enter_context(_held(store, run))
        yield RowRun(
            file=file,
            graders=tuple(graders),
            label=label,
            threshold=threshold,
            run=run,
            kept=kept,
        )


@contextmanager
def _held(store: Store, run: RunRecord) -> Generator[bool]:
    """Whether this process alone grades the rows of a run, until the block or the process ends."""
    path = Path(store.home, f"{run.id}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            if not _is_at(path, file.fileno()):
                continue  # whoever held it has removed it between the opening and the locking
            try:
                yield True
            finally:
                path.unlink(missing_ok=True)
            return


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


async def grade_rows(planned: RowRun, store: Store, *, on_rows: OnRows, workers: int = 0) -> None:
    """Grade the rows of a run that have no result yet, and those that could not be graded.

    Args:
        planned: What `plan_rows` gave.
        store: Where they are stored.
        on_rows: Told of each batch that is stored.
        workers: Processes where graders only compute, else rows under way; by default as many as
            there are cores.

    Raises:
        InputError: For a dataset that changed since it was counted.
        StoreError: If results cannot be stored.
    """
    cores = workers or len(os.sched_getaffinity(0))
    grader = _Grader(planned)

    def keep(_: Lines, graded: object) -> None:
        rows = cast("Sequence[StoredCell]", graded)
        store.add_rows(planned.run.id, rows)
        on_rows([columns for columns, _, _ in rows])

    batches = _todo(planned, store)
    if planned.is_pure and cores > 1 and planned.run.planned > _AT_HOME:
        with Processes(lambda lines: _at_once(grader.grade(cast("Lines", lines))), cores) as pool:
            await run_batches(batches, pool, keep, at_once=2 * cores)
    else:
        at_once = 1 if planned.is_pure else cores if planned.batch_size == 1 else 8 * cores
        await run_batches(batches, grader.grade, keep, at_once=at_once)
    store.finish_run(planned.run.id)


def _todo(planned: RowRun, store: Store) -> Iterator[Lines]:
    """The lines that are yet to be graded, in batches."""
    for batch in in_batches(read_lines(planned.file), planned.batch_size):
        if not planned.kept:
            yield batch
            continue
        ids = {number: parse_row(line, number, planned.file).id for number, line in batch}
        found = store.cells_of(planned.run.id, list(ids.values()))
        ended = {case for case, cell in found.items() if cell.status != "error"}
        if todo := [(number, line) for number, line in batch if ids[number] not in ended]:
            yield todo


def _at_once(work: Coroutine[object, None, T]) -> T:
    """What a coroutine returns that waits for nothing, so that it needs no loop."""
    try:
        work.send(None)
    except StopIteration as ended:
        return cast("T", ended.value)
    work.close()
    raise RuntimeError("a grader that only computes has waited for something")


class _Grader:
    """From lines of a dataset to what is stored of them.

    Args:
        planned: What they go through.
    """

    def __init__(self, planned: RowRun) -> None:
        self._planned = planned
        self._digest = graders_digest(planned.graders)
        self._packer = Packer(level=1)
        self._limit = None if planned.is_pure else RunOptions().grading_timeout

    async def grade(self, lines: Lines) -> list[StoredCell]:
        """Grade a batch. Raises only what a dataset that changed meanwhile brings."""
        planned, begun = self._planned, time.monotonic()
        rows = [
            parse_row(line, number, planned.file, graders=planned.graders, label=planned.label)
            for number, line in lines
        ]
        there = [row for row in rows if row.submission.answer is not None]
        results = iter(await self._results(there))
        missing = EvaluationResult.from_error(NO_ANSWER)
        ended = [missing if row.submission.answer is None else next(results) for row in rows]
        seconds = (time.monotonic() - begun) / max(1, len(rows))
        written: dict[tuple[int, str], CellRow] = {}
        stored: list[StoredCell] = []
        for row, result, (_, line) in zip(rows, ended, lines, strict=True):
            key = (id(result), repr(row.label))
            if key in written:
                columns = _with_row(written[key], row)
            else:
                columns = written[key] = cell_row(self._record(row, result, seconds))
            stored.append((columns, "", self._packer.compress(_detail(line))))
        return stored

    async def _results(self, rows: Sequence[Row]) -> Sequence[EvaluationResult]:
        work = grade_batch(self._planned.graders, [row.submission for row in rows])
        try:
            return await (work if self._limit is None else within(work, self._limit))
        except OutOfTimeError:
            reason = f"grading took longer than {self._limit:g} s"
        except AssayError as error:
            reason = str(error)
        except Exception as error:  # the boundary: what breaks on a row is that row's error
            reason = f"{type(error).__name__}: {error}"
        return [EvaluationResult.from_error(f"[grading] {reason}")] * len(rows)

    def _record(self, row: Row, result: EvaluationResult, seconds: float) -> CellRecord:
        return row_record(
            row,
            result,
            run_id=self._planned.run.id,
            threshold=self._planned.threshold,
            digest=self._digest,
            seconds=seconds,
        )


def _with_row(columns: CellRow, row: Row) -> CellRow:
    """The columns of another row whose result and label are the same."""
    answer = plain(shortened(row.submission.answer or ""))
    return (columns[0], row.id, *columns[2:15], plain(row.file), columns[16], answer, *columns[18:])


def _detail(line: bytes) -> bytes:
    """What is kept of a row: its line as it is, which was read, strictly, and so is JSON."""
    if not line.isascii():
        text = line.decode(json.detect_encoding(line), "surrogatepass")
        line = text.encode("utf-8", "surrogatepass")
    return b'{"row":%b}' % line.strip()


def _file_digest(file: str) -> str:
    with Path(file).open("rb") as handle:
        return hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=32)).hexdigest()
