"""Grade a dataset of recorded answers: rows through graders, into the store, resumable.

A row needs no agent and no workspace, so it is graded without a rollout. Rows are read, graded and
stored a batch at a time: what is killed loses the batches under way, and no more. The next run of
the same graders over the same rows goes on after those that are stored, and retries errors.

A malformed row is named, and nothing of its dataset is left in the store. Where grading costs
money or time, all rows are read before the first is graded. Comparisons cost less than reading
does: there each row is read once, by the process that grades it, and what is stored already is
forgotten when a row turns out to be malformed. Functions and mathematics are graded by several
processes, too, in fewer rows at a time: theirs are worth more.
"""

from __future__ import annotations

import hashlib
import time
from array import array
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TypeAlias, TypeVar, cast

from assay.cores import cores
from assay.errors import AssayError, InputError, StoreError, nearest
from assay.eval.actors import DEPTH, SLOW_SECONDS, WAITING
from assay.eval.batch import Processes, in_batches, run_batches
from assay.eval.cluster import Cluster
from assay.eval.cluster_limits import limited_actors
from assay.eval.first_look import each_of
from assay.eval.records import graders_digest, start_run
from assay.eval.row_grading import ROW_PARTS, computes, is_pure
from assay.eval.row_work import RowWork, StoredRows, graded_by
from assay.eval.sent_graders import SentGraders
from assay.eval.stretches import STRETCH_ROWS, Lines, Stretch, Version, joined, survey
from assay.eval.twins import hashes_of, kept_hashes
from assay.graders.apply import require_parts
from assay.graders.digest import grader_digest
from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.store.kept import held, rows_lock
from assay.store.records import CellRow, RunRecord
from assay.store.runs import Store
from assay.tasks.rows import OWN_FIELDS, JsonLines, as_json_lines
from assay.tasks.task import RunOptions

__all__ = [
    "OnRows",
    "RowRun",
    "check_rows",
    "grade_rows",
    "plan_rows",
]

OnRows: TypeAlias = "Callable[[Sequence[CellRow]], None]"
"""Told of rows that are stored: the columns of their results, see `assay.store.records`."""

T = TypeVar("T")

_FIELDS = 1_000
"""Names of fields that are remembered, for a label that no row has."""
_SLOW_ROWS = 64
"""Rows of a stretch where a function or mathematics grades: so many may be lost, or waited for."""
_STRETCH_SECONDS = 0.25
"""As many stretches are graded and stored together as take so long, with all that are under way: 30
to 60 ms each, beside which it is little that a fork (0.2 ms) or an actor (1 ms) is asked."""
_LOOKED_AT = 16
"""So many stretches are looked at together by one process."""
_AT_HOME = 2_000
"""So few rows are graded here: other processes would take longer to start than they save."""
_BATCHES = 8
"""Batches under way for each core, of graders that take many rows together."""


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
    version: Version
    kept: int = 0
    stretches: tuple[Stretch, ...] = ()

    @property
    def batch_size(self) -> int:
        """Rows that are handed to the graders together."""
        return min((spec.kind.grader.batch_size for spec in self.graders), default=1)


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
        stretches, _ = survey(found.path, found.name)
        if not stretches or not _are_sound(found, label, stretches):
            _check(found, label)


def _are_sound(data: JsonLines, label: str | None, stretches: Sequence[Stretch]) -> bool:
    """Whether all rows can be graded; `_check` tells what is wrong with the first that cannot."""
    pieces = list(in_batches(stretches, _LOOKED_AT))
    labelled: list[int] = []
    # Without room on the disk for hashes, `_check` has them in memory.
    with suppress(StoreError), kept_hashes() as hashes:

        def keep(_: object, seen: object) -> None:
            if seen is not None:
                identities, count = cast("tuple[array[int], int]", seen)
                hashes.add(identities)
                labelled.append(count)

        rows = sum(one.rows for one in stretches)
        each_of(pieces, _Look(data, label), keep, rows=rows)
        is_labelled = label is None or any(labelled)
        return len(labelled) == len(pieces) and is_labelled and not hashes.twice()
    return False


@dataclass(frozen=True, slots=True)
class _Look:
    """Looks at rows: hashes of their ids, and how many are labelled; None if one is malformed."""

    data: JsonLines
    label: str | None

    def __call__(self, stretches: Sequence[Stretch]) -> tuple[array[int], int] | None:
        identities, labelled = list[bytes](), 0
        try:
            for one in stretches:
                for number, line in one.lines(self.data.path):
                    row = self.data.parse(line, number, label=self.label)
                    identities.append(row.id.encode("utf-8", "surrogatepass"))
                    labelled += row.label is not None
        except (InputError, OSError):
            return None
        return hashes_of(identities), labelled


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
                f"{label!r} cannot be the label: graders read it",
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
        pure = is_pure(graders)
        most = STRETCH_ROWS if pure else _SLOW_ROWS
        stretches, version = survey(rows.path, rows.name, rows=most)
        planned = sum(one.rows for one in stretches)
        if not planned:
            raise _no_rows(rows)
        if not (is_checked or pure) and not _are_sound(rows, label, stretches):
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

        def hold(run: str) -> int | None:
            return stack.enter_context(held(rows_lock(store, run)))

        earlier = store.interrupted(config, digests, planned)
        lock = None if earlier is None else hold(earlier.id)
        if earlier is not None and lock is not None:
            run, kept = earlier, store.counts(earlier.id).total
        else:
            run = start_run(store, config=config, digests=digests, planned=planned, holding=hold)
            kept = 0
        try:
            yield RowRun(
                data=rows,
                graders=tuple(graders),
                label=label,
                threshold=threshold,
                run=run,
                version=version,
                kept=kept,
                stretches=stretches if computes(graders) else (),
            )
        except AssayError:
            # What was refused before its first row is no run; it would be the latest one.
            with suppress(AssayError):  # of a run that `_compute` has forgotten already
                if not store.counts(run.id).total:
                    store.forget_run(run.id)
            raise


def _tells_work(rows: JsonLines) -> bool:
    """Whether rows have traces, as the first one says: all were made in the same way."""
    number, line = next(rows.lines(), (0, b""))
    try:
        return bool(line) and rows.parse(line, number).submission.trace is not None
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


async def grade_rows(
    planned: RowRun,
    store: Store,
    *,
    on_rows: OnRows,
    workers: int = 0,
    cluster: Cluster | None = None,
) -> None:
    """Grade the rows of a run that have no result yet, and those that could not be graded.

    Args:
        planned: What `plan_rows` gave.
        store: Where they are stored.
        on_rows: Told of each batch that is stored.
        workers: Processes where graders only compute, else rows under way; by default as many as
            there are cores.
        cluster: Where to grade, else here. Then ``workers`` are actors, by default one for each
            core of it; they are sent rows, and what they make of them is stored here.

    Raises:
        InputError: For a malformed row, or a dataset that changed meanwhile.
        GraderError: If no worker of the cluster can do it.
        StoreError: If results cannot be stored.
    """

    def keep(_: object, graded: StoredRows | None) -> None:
        # What is stored is of the version that the run names, also if it is gone on with later.
        if graded is None or not planned.version.holds():
            raise _changed(planned)
        store.add_rows(planned.run.id, graded[0])
        on_rows([columns for columns, _, _ in graded[0]])

    async with _hands(planned, workers, cluster) as (work, at_once):
        if planned.stretches:
            await _compute(planned, store, work, keep, at_once=at_once)
        else:
            await run_batches(_todo(planned, store), work, keep, at_once=at_once)
    store.finish_run(planned.run.id)


@asynccontextmanager
async def _hands(
    planned: RowRun, workers: int, cluster: Cluster | None
) -> AsyncGenerator[tuple[Callable[[Stretch | Lines], Awaitable[StoredRows | None]], int]]:
    """What grades a batch, and how many batches it may have under way."""
    work = RowWork(
        data=planned.data,
        graders=planned.graders,
        label=planned.label,
        run_id=planned.run.id,
        threshold=planned.threshold,
        digest=graders_digest(planned.graders),
        computes=bool(planned.stretches),
        sent=None if cluster is None else SentGraders.of(planned.graders),
    )
    count = workers or cores()
    batches = 1 if planned.batch_size == 1 else _BATCHES
    if cluster is not None:
        waits = any(spec.kind.grader.waits for spec in planned.graders)
        depth = WAITING if waits else max(DEPTH, 1 if work.computes else batches)
        limit = SLOW_SECONDS + (0.0 if work.computes else RunOptions().grading_timeout or 0.0)
        asks = not work.computes
        async with limited_actors(
            cluster, work, workers, asks=asks, depth=depth, patience=limit
        ) as pool:
            room = workers or cluster.room
            yield partial(graded_by, pool, work), depth * room
    elif not work.computes:
        yield work, batches * count
    elif count > 1 and planned.run.planned > _AT_HOME:
        with Processes(work, count) as pool:
            yield cast("Callable[[object], Awaitable[StoredRows | None]]", pool), 2 * count
    else:
        yield work, 1


async def _compute(
    planned: RowRun,
    store: Store,
    work: Callable[[Stretch | Lines], Awaitable[StoredRows | None]],
    keep: Callable[[object, StoredRows | None], None],
    *,
    at_once: int,
) -> None:
    """Grade rows that nobody has read yet; all that is stored is forgotten if one is malformed."""
    labelled, has_fault = 0, False
    done, begun = 0, time.monotonic()

    def room() -> int:
        passed = time.monotonic() - begun
        return min(STRETCH_ROWS, int(_STRETCH_SECONDS * done / passed / at_once))

    def keep_well_formed(batch: object, graded: StoredRows | None) -> None:
        nonlocal labelled, has_fault, done
        if graded is None or not planned.version.holds():
            has_fault = True  # the first malformed row is looked for below
        elif not has_fault:
            done += len(graded[0])
            labelled += graded[1]
            keep(batch, graded)

    every: Iterable[Stretch | Lines] = joined(planned.stretches, room)
    if planned.kept:
        every = _todo(planned, store)
    batches = takewhile(lambda _: not has_fault, every)
    await run_batches(batches, work, keep_well_formed, at_once=at_once)
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
    return InputError(
        f"{planned.data.name} changed while it was being graded", hint="grade it again"
    )


def _todo(planned: RowRun, store: Store) -> Iterator[Lines]:
    """The lines that are yet to be graded, in batches."""
    for batch in in_batches(planned.data.lines(), planned.batch_size):
        if not planned.kept:
            yield batch
            continue
        ids = {number: planned.data.parse(line, number).id for number, line in batch}
        found = store.cells_of(planned.run.id, list(ids.values()))
        ended = {case for case, cell in found.items() if cell.status != "error"}
        if todo := [(number, line) for number, line in batch if ids[number] not in ended]:
            yield todo
