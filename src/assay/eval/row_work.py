"""Turn lines of a dataset into what is stored of them, in this process or in another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias, cast

from assay.errors import InputError
from assay.eval.actors import worker_directory
from assay.eval.pieces import by_pieces
from assay.eval.records import row_record, shortened
from assay.eval.row_grading import row_results
from assay.eval.sent_graders import SentGraders
from assay.eval.stretches import Lines, Stretch
from assay.graders.spec import GraderSpec
from assay.scoring.results import EvaluationResult
from assay.scoring.strict_json import json_encoding
from assay.store.checks import plain
from assay.store.records import CellRow, Packer, StoredCell, cell_row
from assay.tasks.rows import JsonLines, Row

__all__ = ["RowWork", "StoredRows", "graded_by"]

StoredRows: TypeAlias = "tuple[list[StoredCell], int]"
"""What is stored of rows, and how many of them are labelled."""


@dataclass(slots=True, kw_only=True)
class RowWork:
    """Grades lines of a dataset.

    Attributes:
        data: The dataset.
        graders: What every row goes through.
        label: Field that people labelled; None for none.
        run_id: The run that the rows are of.
        threshold: Reward that a row needs to pass.
        digest: That of the graders.
        computes: Whether they only compute.
        sent: The graders on their way to another machine; None for work that stays here.
    """

    data: JsonLines
    graders: tuple[GraderSpec, ...]
    label: str | None
    run_id: str
    threshold: float
    digest: str
    computes: bool
    sent: SentGraders | None = None
    _place: str = ""

    def prepare(self) -> None:
        """Unpack the graders where they were sent to."""
        if self.sent is not None:
            self._place = worker_directory()
            self.graders = self.sent.unpacked(self._place)

    async def __call__(self, batch: Stretch | Lines) -> StoredRows | None:
        """Grade a batch, as a worker does; None for a malformed row that nobody has read before.

        Raises:
            InputError: For a malformed row, where graders do not only compute.
        """
        if not self.computes:
            return await self.grade(batch)
        await asyncio.sleep(0)  # Ctrl-C has its turn
        try:
            return await self.grade(batch)
        except (InputError, OSError):
            return None

    def lines(self, batch: Stretch | Lines) -> Lines:
        """The lines of a batch, which may have to be read."""
        return batch.lines(self.data.path) if isinstance(batch, Stretch) else batch

    async def grade(self, batch: Stretch | Lines) -> StoredRows:
        """Grade a batch.

        Raises:
            InputError: For a malformed row.
        """
        begun, lines = time.monotonic(), self.lines(batch)
        rows = self._rows(lines)
        ended = await row_results(self.graders, rows)
        return self._graded(rows, ended, lines, (time.monotonic() - begun) / max(1, len(rows)))

    def failed(self, lines: Lines, reason: str) -> StoredRows:
        """What is stored of rows that could not be graded."""
        rows = self._rows(lines)
        result = EvaluationResult.from_error(f"[grading] {reason}")
        return self._graded(rows, [result] * len(rows), lines, 0.0)

    def _rows(self, lines: Lines) -> list[Row]:
        return [
            self.data.parse(line, number, graders=self.graders, label=self.label)
            for number, line in lines
        ]

    def _graded(
        self, rows: list[Row], ended: list[EvaluationResult], lines: Lines, seconds: float
    ) -> StoredRows:
        written: dict[tuple[int, str, str], CellRow] = {}
        stored: list[StoredCell] = []
        for row, result, (_, line) in zip(rows, ended, lines, strict=True):
            key = (id(result), repr(row.label), row.group)
            if key in written:
                columns = _with_row(written[key], row)
            else:
                columns = written[key] = self._columns(row, result, seconds)
            stored.append((columns, "", _packer().compress(_detail(line))))
        return stored, sum(row.label is not None for row in rows)

    def _columns(self, row: Row, result: EvaluationResult, seconds: float) -> CellRow:
        record = row_record(
            row,
            result,
            run_id=self.run_id,
            threshold=self.threshold,
            digest=self.digest,
            seconds=seconds,
        )
        columns = cell_row(record)
        if self._place:  # files that travelled are told of by the paths that their author knows
            told = (
                one.replace(self._place, "") if isinstance(one, str) else one for one in columns
            )
            columns = CellRow._make(told)
        return columns


@cache
def _packer() -> Packer:
    return Packer(level=1)


async def graded_by(
    pool: Callable[[object], Awaitable[object]], work: RowWork, batch: Stretch | Lines
) -> StoredRows | None:
    """Have workers grade a batch; a row over which they die is found, and becomes an error.

    Returns:
        As `RowWork`.

    Raises:
        InputError: For a malformed row, where graders do not only compute.
    """
    try:
        lines = work.lines(batch)
    except OSError:
        return None

    async def ask(some: Lines) -> StoredRows | None:
        return cast("StoredRows | None", await pool(some))

    found = await by_pieces(lines, ask, lambda line, error: work.failed([line], error.message))
    graded = [each for each in found if each is not None]
    if len(graded) < len(found):
        return None
    return [cell for cells, _ in graded for cell in cells], sum(more for _, more in graded)


def _with_row(columns: CellRow, row: Row) -> CellRow:
    """The columns of another row whose result, label and group are the same."""
    answer = plain(shortened(row.submission.answer or ""))
    return columns._replace(case_id=row.id, file=plain(row.file), answer=answer)


def _detail(line: bytes) -> bytes:
    """What is kept of a row: its line as it is, which was read, strictly, and so is JSON."""
    if not line.isascii() or b"\0" in line:  # UTF-16 without a mark is ASCII and NUL
        text = line.decode(json_encoding(line), "surrogatepass")
        line = text.encode("utf-8", "surrogatepass")
    return b'{"row":%b}' % line.strip()
