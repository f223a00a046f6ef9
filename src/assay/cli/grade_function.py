"""``assay grade --function``: a dataset through one function in the sandbox."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from rich.console import Console

from assay.cli.function_progress import FunctionProgress, Totals
from assay.cli.kept_rows import KeptRows, keep_rows, partial_of
from assay.cli.options import BAD_INPUT, INTERRUPTED, NOT_GRADED, check_targets, state_home
from assay.eval.recorded import count_rows
from assay.graders.function import FunctionSource, ValidationReport, validate_function
from assay.graders.functions import open_function, read_source
from assay.reports.figures import DASH, count, duration, score
from assay.reports.page import STYLES, Page
from assay.reports.plain import one_line
from assay.sandbox.functions import FunctionLimits
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.tasks.rows import Row, read_rows

if TYPE_CHECKING:
    from assay.graders.functions import Isolation
    from assay.reports.standing import Standing

__all__ = ["FunctionOptions", "grade_with_function"]

_BATCH = 20  # rows that are kept together: what an interruption may cost
_AHEAD = 100  # batches under way at once, so that one slow row keeps no worker waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionOptions:
    """What was asked for.

    Attributes:
        function: The function's file.
        isolation: ``call`` or ``batch``.
        range: Lowest and highest score; any by default.
        out: File for every row with its grade; until all are there, they are in `OUT.partial`.
        workers: Processes at once; as many as cores by default.
        json: One JSON object on standard output.
        fail_under: Mean score that passes.
    """

    function: str
    isolation: Isolation = "call"
    range: tuple[float, float] | None = None
    out: str | None = None
    workers: int | None = None
    json: bool = False
    fail_under: float | None = None


def grade_with_function(data: str, options: FunctionOptions) -> int:
    """Grade a dataset with a function.

    Rows that go to a file are kept as they are graded, and gone on with the next time.

    Returns:
        The exit status: 0 every row was graded, 1 the mean is under ``fail_under``, 2 the function
        is not valid, 3 some row could not be graded, 130 interrupted.

    Raises:
        InputError: For a malformed dataset or a file that cannot be read or written.
    """
    targets = (options.out, partial_of(options.out)) if options.out else ()
    check_targets(targets, inputs=(data, options.function))
    source = FunctionSource(
        text=read_source(options.function), isolation=options.isolation, range=options.range
    )
    totals = Totals()
    planned = count_rows(data)
    try:
        with ExitStack() as stack:
            spool = None
            if options.json:
                spool = stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
            return asyncio.run(_grade(_Work(data, source, options, planned, totals, spool)))
    except KeyboardInterrupt:
        _tell_interrupted(totals, planned, options.out)
        return INTERRUPTED


@dataclass(frozen=True, slots=True)
class _Work:
    """What is graded by what.

    The spool holds the JSON of the rows until all is known to be well.
    """

    data: str
    source: FunctionSource
    options: FunctionOptions
    planned: int
    totals: Totals
    spool: TextIO | None

    def take(self, row: Row, graded: Graded) -> None:
        """Count a row that is graded."""
        if self.spool is not None:
            text = json.dumps({**graded.to_dict(), "file": row.file})
            self.spool.write(f",\n{text}" if self.totals.rows else text)
        self.totals.add(graded)

    def made_by(self) -> dict[str, Json]:
        """What has to be the same for rows to be gone on with."""
        source = self.source
        with Path(self.data).open("rb") as handle:
            data = hashlib.file_digest(handle, "sha256").hexdigest()
        bounds = None if source.range is None else list[Json](source.range)
        made_by: dict[str, Json] = {"function": source.digest, "isolation": source.isolation}
        return {**made_by, "range": bounds, "data": data}


async def _grade(work: _Work) -> int:
    source, options, started = work.source, work.options, time.monotonic()
    report = await validate_function(source.text, range=source.range, isolation=source.isolation)
    if not report.valid:
        return _refuse(report, options)
    for warning in report.warnings:
        print(f"warning: {options.function}: {warning}", file=sys.stderr)
    with ExitStack() as stack:
        rows = read_rows(work.data, graders=())
        kept: KeptRows | None = None
        if options.out:
            kept = stack.enter_context(keep_rows(options.out, work.made_by()))
            _take_earlier(work, rows, kept)
        console = Console(stderr=True, highlight=False)
        shown = stack.enter_context(FunctionProgress(console, work.planned, work.totals))

        def on_rows(done: Iterable[tuple[Row, Graded]]) -> None:
            for row, graded in done:
                if kept is not None:
                    kept.add(row.fields, graded)
                work.take(row, graded)
            if kept is not None:
                kept.flush()
            shown.show()

        if work.totals.rows < work.planned:
            await _grade_rows(work, rows, on_rows)
        if kept is not None:
            kept.finish()
    warnings = [*report.warnings, *_doubts(work)]
    if work.spool is not None:
        _print_json(work.spool, _ending(work, report, warnings, time.monotonic() - started))
    else:
        console = Console(highlight=False)
        _print_table(console, work.totals, f"  in {duration(time.monotonic() - started)}")
        by = f"isolated by {report.tier}, a process per {source.isolation}"
        page = Page(console)
        page.line(f"function {source.digest}, {by}")
        if (standing := _standing(source, options.function)) is not None:
            page.line((standing.line, "yellow" if standing.is_stale else ""))
    return _verdict(work.totals, options.fail_under)


def _doubts(work: _Work) -> list[str]:
    """What is odd about the scores, also said on standard error."""
    doubt = "" if work.source.range is not None else work.totals.doubt
    if doubt:
        print(f"warning: {work.options.function}: {doubt}", file=sys.stderr)
    return [doubt] if doubt else []


def _take_earlier(work: _Work, rows: Iterator[Row], kept: KeptRows) -> None:
    """Take over what an interrupted process kept, and say so."""
    if kept.is_anew:
        what = "another function, other options or other data"
        print(f"{kept.path} is of {what}; starting anew", file=sys.stderr)
    for graded, row in zip(kept.earlier(work.planned), rows, strict=False):
        work.take(row, graded)
    if kept.rows:
        told = f"{kept.rows:,} of {count(work.planned, 'row')} in {kept.path}"
        print(f"going on after {told}", file=sys.stderr)


async def _grade_rows(
    work: _Work, rows: Iterator[Row], on_rows: Callable[[Iterable[tuple[Row, Graded]]], None]
) -> None:
    """Grade rows in the order of the file; only a few thousand are held at once."""
    waiting: deque[tuple[list[Row], asyncio.Task[list[Graded]]]] = deque()
    opened = open_function(work.source, workers=work.options.workers)
    async with opened as grade:
        try:
            while True:
                batch = list(islice(rows, _BATCH))
                if batch:
                    items = [(row.id, row.submission) for row in batch]
                    waiting.append((batch, asyncio.create_task(grade(items))))
                if not waiting:
                    return
                if not batch or len(waiting) >= _AHEAD:
                    done, task = waiting.popleft()
                    on_rows(zip(done, await task, strict=True))
        finally:
            for _, task in waiting:
                task.cancel()
            await asyncio.gather(*(task for _, task in waiting), return_exceptions=True)


def _tell_interrupted(totals: Totals, planned: int, out: str | None) -> None:
    done = f"{totals.rows:,} of {count(planned, 'row')}"
    if not totals.rows:
        print("interrupted before any row was graded", file=sys.stderr)
    elif out is not None:
        mend = "the same command goes on after them"
        print(f"interrupted; {done} are kept in {partial_of(out)}: {mend}", file=sys.stderr)
    else:
        print(f"interrupted after {done}; with --out they would be kept", file=sys.stderr)
        _print_table(Console(stderr=True, highlight=False), totals, "")


def _refuse(report: ValidationReport, options: FunctionOptions) -> int:
    check = report.failed
    if check is not None:
        print(f"error: {options.function}: {check.name}: {check.message}", file=sys.stderr)
    if options.json:
        print(json.dumps({"rows": [], **report.to_dict()}))
    else:
        for done in report.checks:
            print(f"  {'ok' if done.passed else 'FAILED':6}  {done.name}", file=sys.stderr)
    return BAD_INPUT


def _verdict(totals: Totals, fail_under: float | None) -> int:
    if totals.errors:
        return NOT_GRADED
    if fail_under is None:
        return 0
    return int(totals.mean is None or totals.mean < fail_under)


def _ending(
    work: _Work, report: ValidationReport, warnings: Sequence[str], seconds: float
) -> dict[str, Json]:
    """What is said beside the rows."""
    source = work.source
    standing = _standing(source, work.options.function)
    return {
        "summary": work.totals.to_dict(),
        "warnings": list[Json](warnings),
        "tier": report.tier,
        "limits": cast("dict[str, Json]", asdict(FunctionLimits())),
        "function": source.digest,
        "isolation": source.isolation,
        "range": None if source.range is None else list[Json](source.range),
        "seconds": round(seconds, 3),
        "calibration": None if standing is None else standing.to_dict(),
    }


def _standing(source: FunctionSource, file: str) -> Standing | None:
    """How far the function agrees with people, where that was measured."""
    if not Path(state_home(), "assay.db").is_file():
        return None
    from assay.store.cards import Cards
    from assay.store.database import Database

    made_of = hashlib.sha256(source.text.encode()).hexdigest()[:16]
    with Database.open(state_home()) as database:
        records = Cards(database).newest()
    if not records:
        return None
    from assay.reports.standing import Shelf

    shelf = Shelf(records)
    return shelf.standing(Path(file).name, "function", source.digest, {"source": made_of})


def _print_json(spool: TextIO, ending: dict[str, Json]) -> None:
    """One JSON object, without ever holding all rows."""
    spool.seek(0)
    sys.stdout.write('{"rows": [')
    while chunk := spool.read(1 << 20):
        sys.stdout.write(chunk)
    sys.stdout.write(f"], {json.dumps(ending)[1:]}\n")
    sys.stdout.flush()


def _print_table(console: Console, totals: Totals, took: str) -> None:
    page = Page(console)
    rows = [*totals.first, *totals.odd]
    cells = [
        [
            page.text(one_line(graded.id, 60)),
            page.text((graded.status, STYLES["error"] if graded.status == "error" else "")),
            page.text(one_line(graded.error or graded.reason)),
            page.text(score(graded.score)),
        ]
        for graded in rows
    ]
    header = [page.text(word) for word in ("row", "status", "why", "score")]
    page.table(header, cells, left=3)
    if totals.rows > len(rows):
        page.line(f"{count(totals.rows - len(rows), 'row')} more", indent=0)
    page.blank()
    mean = DASH if totals.mean is None else score(totals.mean)
    page.line((f"mean {mean}", "bold"), f"  {totals.counts}{took}")
