"""Grade a dataset of recorded answers: rows through graders, into the store, resumable.

A row needs no agent and no workspace, so it is graded without a rollout. Rows are read, graded and
stored a batch at a time: what is killed loses the batches under way, and no more. The next run of
the same graders over the same rows goes on after those that are stored, and retries errors.

A malformed row is named, and nothing of its dataset is left in the store. Where grading costs
money or time, all rows are read before the first is graded. Comparisons cost less than reading
does: there each row is read once, by the process that grades it, and what is stored already is
forgotten when a row turns out to be malformed.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import io
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TypeAlias, cast

from assay.errors import InputError, nearest, reason_of
from assay.eval.batch import Processes, in_batches, run_batches
from assay.eval.records import graders_digest, row_record, shortened, start_run
from assay.eval.within import OutOfTimeError, within
from assay.graders.apply import grade_batch, require_parts
from assay.graders.digest import grader_digest
from assay.graders.spec import GraderSpec
from assay.graders.usage import missing_part
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult
from assay.scoring.strict_json import json_encoding
from assay.store.checks import plain
from assay.store.records import CellRecord, CellRow, Packer, RunRecord, StoredCell, cell_row
from assay.store.runs import Store
from assay.tasks.row_files import MAX_LINE_BYTES
from assay.tasks.rows import OWN_FIELDS, JsonLines, Row, as_json_lines, parse_row
from assay.tasks.task import RunOptions
from assay.types.submission import Submission

__all__ = [
    "ROW_PARTS",
    "OnRows",
    "RowRun",
    "check_rows",
    "grade_rows",
    "plan_rows",
    "unanswered",
]

OnRows: TypeAlias = "Callable[[Sequence[CellRow]], None]"
"""Told of rows that are stored: the columns of their results, see `assay.store.records`."""

Lines: TypeAlias = "Sequence[tuple[int, bytes]]"

ROW_PARTS = frozenset({"answer", "question", "expected", "thread", "metadata"})
"""What every row has; some have a trace, too."""
_STRETCH_ROWS = 1_024
_SLOW_STRETCH_ROWS = 64
_STRETCH_BYTES = 1 << 20
"""So many rows, or bytes of them, are read, graded and stored together by graders that compute:
fewer by slow ones, whose results are worth more."""
_FIELDS = 1_000
"""Names of fields that are remembered, for a label that no row has."""
_AT_HOME = 2_000
"""So few rows are graded here: other processes would take longer to start than they save."""
_NO_ANSWER = 'the recorded answer is null; "" is an empty answer'


def unanswered(submission: Submission) -> EvaluationResult:
    """What comes of a row without an answer: an error, as nobody knows what would be said."""
    if (trace := submission.trace) is None:
        return EvaluationResult.from_error(_NO_ANSWER)
    ended = "it ended in an error" if trace.status == "error" else ""
    why = missing_part(trace) or ended
    return EvaluationResult.from_error(f"the recorded run has no answer{why and f': {why}'}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRun:
    """Rows of a dataset that are about to be graded.

    Attributes:
        data: The dataset.
        graders: What every row goes through.
        label: Field that people labelled; None for none.
        threshold: Reward that a row needs to pass.
        run: The run that they are stored in.
        kept: Rows of it that an interrupted process has stored.
        stretches: The rows, where graders that only compute read them; else empty.
        version: The file as it was when the run was planned.
    """

    data: JsonLines
    graders: tuple[GraderSpec, ...]
    label: str | None
    threshold: float
    run: RunRecord
    version: _Version
    kept: int = 0
    stretches: tuple[_Stretch, ...] = ()

    @property
    def batch_size(self) -> int:
        """Rows that are handed to the graders together."""
        return min((spec.kind.grader.batch_size for spec in self.graders), default=1)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Consecutive lines of a dataset.

    Attributes:
        number: That of the first line.
        start: Where in the file that line begins, in bytes.
        size: How long all of them are, in bytes.
    """

    number: int
    start: int
    size: int

    def lines(self, file: str) -> Lines:
        """Read them."""
        with Path(file).open("rb") as handle:
            handle.seek(self.start)
            read = io.BytesIO(handle.read(self.size))
        return [(n, line) for n, line in enumerate(read, self.number) if not line.isspace()]


@dataclass(slots=True)
class _Version:
    """A file as it was read; more may be appended to it.

    Attributes:
        file: Its path.
        stamp: What changes when it is written.
        size: How many bytes were read.
        digest: Theirs.
    """

    file: str
    stamp: tuple[int, ...]
    size: int
    digest: str

    def holds(self) -> bool:
        """Whether the bytes that were read are still there."""
        try:
            with Path(self.file).open("rb") as handle:
                stamp = _stamp(handle.fileno())
                if stamp != self.stamp:
                    digest, left = hashlib.blake2b(digest_size=32), self.size
                    while left and (chunk := handle.read(min(left, _STRETCH_BYTES))):
                        digest.update(chunk)
                        left -= len(chunk)
                    if digest.hexdigest() != self.digest:
                        return False
                    self.stamp = stamp
        except OSError:
            return False
        return True


def _stamp(descriptor: int) -> tuple[int, ...]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _is_pure(graders: Sequence[GraderSpec]) -> bool:
    """Whether graders only compare, which takes less time than reading a row does."""
    return all(spec.kind.grader.is_pure for spec in graders)


def _computes(graders: Sequence[GraderSpec]) -> bool:
    """Whether graders only compute, so that other processes may grade rows."""
    return all(spec.kind.grader.computes or spec.kind.grader.is_pure for spec in graders)


@contextmanager
def _json_lines(data: str | JsonLines, label: str | None = None) -> Generator[JsonLines]:
    """A dataset, brought into lines of JSON unless it is that already."""
    if isinstance(data, JsonLines):
        yield data
        return
    with as_json_lines(data, label=label) as found:
        yield found


def check_rows(data: str | JsonLines, *, label: str | None = None) -> None:
    """Read a dataset through, so that a malformed row is found before anything is graded.

    Raises:
        InputError: Naming file and line; or for a dataset without rows, or without a label.
    """
    with _json_lines(data, label) as found:
        _check(found, label)


def _check(data: JsonLines, label: str | None) -> None:
    file = data.name
    rows = labelled = 0
    fields: set[str] = set()
    for row in data.rows(label=label):
        rows += 1
        labelled += row.label is not None
        if len(fields) < _FIELDS:
            fields.update(row.submission.metadata)
    if not rows:
        raise _no_rows(data)
    if label is not None and not labelled:
        if label in OWN_FIELDS:
            raise InputError(
                f"graders read {label!r}, so that it can be no label",
                hint="label the rows in a field of its own",
            )
        if label in fields:
            raise InputError(
                f"no row of {file} is labelled: {label!r} is null wherever it is",
                hint="label the rows: true, false or a number",
            )
        raise InputError(
            f"no row of {file} has a field {label!r}",
            hint=nearest(label, sorted(fields)) if fields else "label the rows first",
        )


def _survey(data: JsonLines, most: int) -> tuple[tuple[_Stretch, ...], int, _Version]:
    """A dataset in stretches, how many rows it has, and its version, without reading a row."""
    file = data.path
    stretches: list[_Stretch] = []
    digest = hashlib.blake2b(digest_size=32)
    rows = place = size = held = 0
    first = number = 1
    try:
        with Path(file).open("rb") as handle:
            stamp = _stamp(handle.fileno())
            for number, line in enumerate(
                iter(partial(handle.readline, MAX_LINE_BYTES + 1), b""), 1
            ):
                digest.update(line)
                size += len(line)
                held += not line.isspace()
                if held == most or size >= _STRETCH_BYTES:
                    stretches.append(_Stretch(first, place, size))
                    rows, place, size, held, first = rows + held, place + size, 0, 0, number + 1
    except OSError as error:
        raise InputError(f"cannot read {data.name}: {error.strerror}") from error
    if held:
        stretches.append(_Stretch(first, place, size))
    version = _Version(file, stamp, place + size, digest.hexdigest())
    return tuple(stretches), rows + held, version


@contextmanager
def plan_rows(
    data: str | JsonLines,
    graders: Sequence[GraderSpec],
    store: Store,
    *,
    label: str | None = None,
    threshold: float = 1.0,
    is_checked: bool = False,
    notes: Mapping[str, Json] | None = None,
) -> Generator[RowRun]:
    """Find or begin the run that grades a dataset; it is nobody else's until the block ends.

    Args:
        data: The path of a dataset, see `assay.tasks.rows.read_rows`; or one that is open.
        graders: What every row goes through.
        store: Where the run is.
        label: Field that people labelled; None for none.
        threshold: Reward that a row needs to pass.
        is_checked: Whether `check_rows` has read the dataset through.
        notes: What else is kept of how the rows are graded.

    Raises:
        InputError: For a malformed row, unless graders that only compute will find it; or graders
            that this version cannot run.
    """
    with ExitStack() as stack:
        rows = stack.enter_context(_json_lines(data, label))
        require_parts(graders, ROW_PARTS | {"trace"} if _tells_work(rows) else ROW_PARTS)
        pure = _is_pure(graders)
        most = _STRETCH_ROWS if pure else _SLOW_STRETCH_ROWS
        stretches, planned, version = _survey(rows, most)
        if not planned:
            raise _no_rows(rows)
        if not (is_checked or pure):
            _check(rows, label)
        made_of = hashlib.sha256("\n".join(map(grader_digest, graders)).encode()).hexdigest()[:16]
        config: dict[str, Json] = {
            "kind": "dataset",
            "file": rows.name,
            "label": label,
            "threshold": threshold,
            "graders": f"{graders_digest(graders)} {made_of}",
            **_how_read(rows),
            **(notes or {}),
        }
        digests = {Path(rows.name).name: version.digest}
        earlier = store.interrupted(config, digests, planned)
        if earlier is not None and stack.enter_context(_held(store, earlier)):
            run, kept = earlier, store.counts(earlier.id).total
        else:
            run, kept = start_run(store, config=config, digests=digests, planned=planned), 0
            stack.enter_context(_held(store, run))
        yield RowRun(
            data=rows,
            graders=tuple(graders),
            label=label,
            threshold=threshold,
            run=run,
            version=version,
            kept=kept,
            stretches=stretches if _computes(graders) else (),
        )


def _tells_work(rows: JsonLines) -> bool:
    """Whether rows have traces, as the first one says: all were made in the same way."""
    number, line = next(rows.lines(), (0, b""))
    try:
        return bool(line) and parse_row(line, number, rows.name).submission.trace is not None
    except InputError:  # which is told where the rows are read
        return False


def _how_read(rows: JsonLines) -> dict[str, Json]:
    """What of a dataset was not taken as it is."""
    noted: dict[str, Json] = {}
    if rows.format:
        noted["format"] = rows.format
    if rows.mapping:
        noted["map"] = dict[str, Json](rows.mapping)
    if rows.left_out:
        noted["malformed"] = {"rows": rows.left_out, "first": rows.first_left_out}
    return noted


def _no_rows(data: JsonLines) -> InputError:
    if data.left_out:
        return InputError(f"no row of {data.name} is well-formed: {data.first_left_out}")
    return InputError(f"{data.name} has no rows")


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
        InputError: For a malformed row, or a dataset that changed meanwhile.
        StoreError: If results cannot be stored.
    """
    cores = workers or len(os.sched_getaffinity(0))

    def keep(_: object, graded: object) -> None:
        # What is stored is of the version that the run names, also if it is gone on with later.
        if not planned.version.holds():
            raise _changed(planned)
        rows = cast("Sequence[StoredCell]", graded)
        store.add_rows(planned.run.id, rows)
        on_rows([columns for columns, _, _ in rows])

    if planned.stretches:
        await _compute(planned, store, keep, cores)
    else:
        at_once = cores if planned.batch_size == 1 else 8 * cores
        await run_batches(_todo(planned, store), _Grader(planned).grade, keep, at_once=at_once)
    store.finish_run(planned.run.id)


async def _compute(
    planned: RowRun, store: Store, keep: Callable[[object, object], None], cores: int
) -> None:
    """Grade rows that nobody has read yet; all that is stored is forgotten if one is malformed."""
    grader, labelled, has_fault = _Grader(planned), 0, False

    async def work(batch: object) -> tuple[list[StoredCell], int] | None:
        batch = cast("_Stretch | Lines", batch)
        await asyncio.sleep(0)  # Ctrl-C has its turn
        try:
            lines = batch.lines(planned.data.path) if isinstance(batch, _Stretch) else batch
            return await grader.grade_labelled(lines)
        except (InputError, OSError):
            return None  # the first malformed row is looked for below

    def keep_well_formed(batch: object, graded: object) -> None:
        nonlocal labelled, has_fault
        if graded is None or not planned.version.holds():
            has_fault = True
        elif not has_fault:
            rows, more = cast("tuple[list[StoredCell], int]", graded)
            labelled += more
            keep(batch, rows)

    every: Iterable[object] = _todo(planned, store) if planned.kept else planned.stretches
    batches = takewhile(lambda _: not has_fault, every)
    if cores > 1 and planned.run.planned > _AT_HOME:
        with Processes(work, cores) as pool:
            await run_batches(batches, pool, keep_well_formed, at_once=2 * cores)
    else:
        await run_batches(batches, work, keep_well_formed, at_once=1)
    # Of two rows with one id there is one result.
    complete = not has_fault and store.case_count(planned.run.id) == planned.run.planned
    if not complete or (planned.label is not None and not labelled):
        try:
            _check(planned.data, planned.label)
        except InputError:
            if planned.version.holds():  # else what is stored is of rows that were well-formed
                store.forget_run(planned.run.id)
            raise
    if not complete:
        raise _changed(planned)


def _changed(planned: RowRun) -> InputError:
    return InputError(f"{planned.data.name} has changed while it was graded", hint="grade it again")


def _todo(planned: RowRun, store: Store) -> Iterator[Lines]:
    """The lines that are yet to be graded, in batches."""
    for batch in in_batches(planned.data.lines(), planned.batch_size):
        if not planned.kept:
            yield batch
            continue
        ids = {number: parse_row(line, number, planned.data.name).id for number, line in batch}
        found = store.cells_of(planned.run.id, list(ids.values()))
        ended = {case for case, cell in found.items() if cell.status != "error"}
        if todo := [(number, line) for number, line in batch if ids[number] not in ended]:
            yield todo


class _Grader:
    """From lines of a dataset to what is stored of them.

    Args:
        planned: What they go through.
    """

    def __init__(self, planned: RowRun) -> None:
        self._planned = planned
        self._digest = graders_digest(planned.graders)
        self._packer = Packer(level=1)
        self._limit = None if _computes(planned.graders) else RunOptions().grading_timeout

    async def grade(self, lines: Lines) -> list[StoredCell]:
        """Grade a batch; raises only for a row that is malformed."""
        return (await self.grade_labelled(lines))[0]

    async def grade_labelled(self, lines: Lines) -> tuple[list[StoredCell], int]:
        """Grade a batch, and count the rows with a label."""
        planned, begun = self._planned, time.monotonic()
        data, graders, label = planned.data, planned.graders, planned.label
        rows = [
            parse_row(line, number, data.name, graders=graders, label=label, unit=data.unit)
            for number, line in lines
        ]
        there = [row for row in rows if row.submission.answer is not None]
        results = iter(await self._results(there))
        ended = [
            unanswered(row.submission) if row.submission.answer is None else next(results)
            for row in rows
        ]
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
        return stored, sum(row.label is not None for row in rows)

    async def _results(self, rows: Sequence[Row]) -> Sequence[EvaluationResult]:
        work = grade_batch(self._planned.graders, [row.submission for row in rows])
        try:
            return await (work if self._limit is None else within(work, self._limit))
        except OutOfTimeError:
            reason = f"grading took longer than {self._limit:g} s"
        except Exception as error:  # the boundary: what breaks on a row is that row's error
            reason = reason_of(error)
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
    if not line.isascii() or b"\0" in line:  # UTF-16 without a mark is ASCII and NUL
        text = line.decode(json_encoding(line), "surrogatepass")
        line = text.encode("utf-8", "surrogatepass")
    return b'{"row":%b}' % line.strip()
