"""A run as one HTML file: what the page shows of it, on what the file holds."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from assay.frozen import frozen
from assay.reports.cell_records import CellPlace, CellView, OpenedCell
from assay.reports.cell_view import cell_pictures, opened_cell
from assay.reports.explain import sentence, tidy
from assay.reports.figures import count
from assay.reports.files import replacing
from assay.reports.one_file import safe_json, write_document
from assay.reports.outcome import GLYPHS, Ended, ended
from assay.reports.pictures import CellPictures, within
from assay.reports.plain import one_line
from assay.reports.review import Review
from assay.reports.run_records import (
    CellRow,
    MatrixCase,
    RunMatrix,
    RunOverview,
    RunRow,
)
from assay.reports.run_view import cell_row, matrix_of, overview_of, run_row, sums_of
from assay.reports.scores import ScoreTable, score_table
from assay.reports.summary import RunVerdict, Summary, cause_key, cause_text, verdict
from assay.reports.trainability import Trainability, trainability
from assay.scoring.json_safe import Json
from assay.store.kept_files import RunState, run_state
from assay.store.records import CellKey, CellRecord, RunRecord
from assay.store.runs import Store

_MAX_CHARACTERS = 20_000_000
"""Characters of opened cells in one file: browsers open that without trouble."""
_MOST_PICTURED = 10_000_000
"""Characters of pictures, likewise."""
_MOST_CASES = 1_000
_MOST_CONFIG = 200_000
_MOST_CARDS = 30
_MOST_SCORED = 50_000


@frozen(kw_only=True)
class FileReport:
    """What the file holds of a run: what the server answers its page with.

    Attributes:
        overview: The run in numbers.
        matrix: Its cases by its agents.
        worst: Places of the matrix's cases, those that fail most first.
        record: The run.
        rows: Its cells.
        causes: Of each of them the key of why it could not be graded; empty where it was.
        opened: The cells that can be opened.
        scores: How its scores lie; None of a run too large for that.
        trainability: What its groups could teach; likewise.
        left_out: What is not in the file.
    """

    overview: RunOverview
    matrix: RunMatrix
    worst: tuple[int, ...]
    record: RunRecord
    rows: tuple[CellRow, ...]
    causes: tuple[str, ...]
    opened: tuple[OpenedCell, ...]
    scores: ScoreTable | None
    trainability: Trainability | None
    left_out: tuple[str, ...]


def write_html(
    path: str | os.PathLike[str],
    review: Review,
    *,
    store: Store | None = None,
    fail_under: float | None = None,
    strict: bool = False,
    max_characters: int = _MAX_CHARACTERS,
) -> RunVerdict:
    """Write the report; the file is there whole or not at all.

    Args:
        path: Where to.
        review: The run.
        store: Where it is, with what was kept of its cells; None for what their rows tell.
        fail_under: As for `verdict`.
        strict: As for `verdict`.
        max_characters: Of opened cells; those beyond are left out, and that is said.
    """
    decided = verdict(review.summary, fail_under=fail_under, strict=strict)
    found = file_report(review, decided, store=store, max_characters=max_characters)
    with replacing(path) as file:
        told = "\n".join(_told(review, found, decided))
        write_document(
            file, title=f"{_title(review)} · assay", told=told, data={"run": safe_json(found)}
        )
    return decided


def file_report(
    review: Review,
    decided: RunVerdict,
    *,
    store: Store | None = None,
    max_characters: int = _MAX_CHARACTERS,
) -> FileReport:
    """What the file holds of a run."""
    run, summary = review.run, review.summary
    matrix = matrix_of(summary.groups, most=_MOST_CASES)
    opened = _within(max_characters, review.cells, lambda cell: _opened(review, store, cell))
    opened = _with_pictures(opened, review, store)
    return FileReport(
        overview=overview_of(_row(run, summary, store), summary, decided),
        matrix=matrix,
        worst=_worst(matrix),
        record=_record(run),
        rows=tuple(map(cell_row, review.cells)),
        causes=tuple(
            cause_key(cause_text(cell)) if ended(cell) == "error" else "" for cell in review.cells
        ),
        opened=_linked(opened),
        scores=None
        if (cells := _every_cell(review, store)) is None
        else score_table(run.id, cells),
        trainability=None
        if (cells := _every_cell(review, store)) is None
        else trainability(cells, run=run.id),
        left_out=tuple(_left_out(review, opened)),
    )


def _row(run: RunRecord, summary: Summary, store: Store | None) -> RunRow:
    state: RunState = "finished" if store is None else run_state(store, run)
    # What runs on has ended for the file: its verdict is that of the cells there are.
    return run_row(run, "unfinished" if state == "running" else state, sums_of(summary.totals))


def _every_cell(review: Review, store: Store | None) -> Iterable[CellRecord] | None:
    """Every cell of the run, as a store has them in order; None of a run too large for that."""
    total = review.summary.totals.total
    if total == len(review.cells):
        return sorted(review.cells, key=lambda cell: cell.key)  # as a store has them
    if store is None or total > _MOST_SCORED:
        return None
    return store.cells(review.run.id)


def _record(run: RunRecord) -> RunRecord:
    """The run, without a configuration that is larger than all else."""
    config: dict[str, Json] = {name: tidy(value) for name, value in run.config.items()}
    if (size := len(json.dumps(config))) > _MOST_CONFIG:
        config = {"left out": f"{size:,} characters: assay runs export {run.id}"}
    digests = list(run.digests.items())[:_MOST_CASES]
    return replace(run, config=config, digests=dict(digests))


def _worst(matrix: RunMatrix) -> tuple[int, ...]:
    """Places of the cases, those that fail most first."""
    return tuple(sorted(range(len(matrix.items)), key=lambda place: -_bad(matrix.items[place])))


def _bad(case: MatrixCase) -> int:
    ends = [cell.totals.ends for cell in case.cells if cell is not None]
    return sum(end.failed + end.errors for end in ends)


def _opened(review: Review, store: Store | None, cell: CellRecord) -> OpenedCell:
    cards = review.shelf.of_cell(cell)[:_MOST_CARDS] if review.shelf else ()
    said = [f"{one_line(card.grader, 60)}: {card.line}" for card in cards]
    opened = opened_cell(store, review.run, cell)
    return replace(opened, view=replace(opened.view, notes=(*opened.view.notes, *said)))


def _within(
    room: int, cells: Sequence[CellRecord], opening: Callable[[CellRecord], OpenedCell]
) -> list[OpenedCell]:
    """As many cells, opened, as there is room for."""
    opened = list[OpenedCell]()
    for cell in cells:
        one = opening(cell)
        room -= len(json.dumps(safe_json(one)))
        if room < 0:
            break
        opened.append(one)
    return opened


def _with_pictures(
    opened: Sequence[OpenedCell], review: Review, store: Store | None
) -> list[OpenedCell]:
    """The same with the pictures of their cells, as far as there is room in the file."""
    room, made = _MOST_PICTURED, list[OpenedCell]()
    for one in opened:
        if store is not None and one.view.pictures:
            found = cell_pictures(store, review.run, _key(one.view.place)).pictures
            pictures, room = within(room, found)
            one = replace(one, pictures=CellPictures(pictures=pictures))  # noqa: PLW2901
        made.append(one)
    return made


def _key(place: CellPlace) -> CellKey:
    return place.case, place.harness, place.model, place.trial


def _linked(opened: Sequence[OpenedCell]) -> tuple[OpenedCell, ...]:
    """Each with its neighbours among the cells of the file that are worth a look."""
    places = [at for at, one in enumerate(opened) if _is_worth_a_look(one.view)]

    def place(at: int | None) -> CellPlace | None:
        return None if at is None else opened[at].view.place

    def linked(at: int, one: OpenedCell) -> OpenedCell:
        before = next((other for other in reversed(places) if other < at), None)
        after = next((other for other in places if other > at), None)
        number = sum(other <= at for other in places)
        view = replace(
            one.view, before=place(before), after=place(after), number=number, of=len(places)
        )
        return replace(one, view=view)

    return tuple(linked(at, one) for at, one in enumerate(opened))


def _is_worth_a_look(view: CellView) -> bool:
    return view.state in ("fail", "error") or bool(view.flags)


def _left_out(review: Review, opened: Sequence[OpenedCell]) -> Iterator[str]:
    summary, run = review.summary, one_line(review.run.id, 80)
    total, shown = summary.totals.total, len(review.cells)
    if shown < total:
        yield (
            f"{shown:,} of {count(total, 'cell')} can be looked at in this file, failures first; "
            f"the numbers are over all. All of them: assay view {run}"
        )
    if len(opened) < shown:
        yield (
            f"{shown - len(opened):,} of the listed cells cannot be opened: the file would be too "
            f"large. One of them: assay report {run} --case ID"
        )
    pictures = [two for one in opened if one.pictures for two in one.pictures.pictures]
    if missing := sum(not one.url for one in pictures):
        yield (
            f"{missing:,} of {count(len(pictures), 'picture')} are not in this file, which holds "
            f"{_MOST_PICTURED // 1_000_000} MB of them. All of them: assay view {run}"
        )
    cases = len({row.case for row in summary.groups})
    if summary.left_out or cases > _MOST_CASES:
        left = summary.left_out or cases - _MOST_CASES
        yield f"{count(left, 'case')} are not in the matrix"


def _ending(review: Review, decided: RunVerdict) -> Ended:
    if decided.code:
        return "fail" if decided.code == 1 else "error"
    return "pass" if review.summary.totals.has_verdicts else "scored"


def _told(review: Review, found: FileReport, decided: RunVerdict) -> Iterator[str]:
    """The report as plain text."""
    row = found.overview.run
    yield _title(review)
    named = [row.id if row.label else "", row.created_at, f"assay {row.assay}" if row.assay else ""]
    yield " · ".join(one_line(part, 80) for part in named if part)
    yield ""
    yield f"{GLYPHS[_ending(review, decided)]} {decided.line}"
    yield ""
    for line in found.overview.lines:
        yield f"{line.label}: {line.text}"
    for cause in found.overview.causes:
        yield f"{GLYPHS['error']} {count(cause.count, 'cell')}: {cause.text}"
    for said in found.left_out:
        yield f"({said})"
    yield ""
    for cell in review.cells:
        agent = [one_line(name, 60) for name in (cell.harness, cell.model) if name]
        name = " · ".join([one_line(cell.case, 120), *agent, f"trial {cell.trial}"])
        yield f"{GLYPHS[ended(cell)]} {ended(cell)} {name}: {sentence(cell)}"
        yield from (f"    flagged: {one_line(flag, 300)}" for flag in cell.flags[:10])


def _title(review: Review) -> str:
    return one_line(review.run.label, 120) or f"Run {one_line(review.run.id, 80)}"
