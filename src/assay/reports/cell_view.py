"""A cell as the page shows it: typed, ready to be laid out, long texts folded.

The page reads a cell in parts: `cell_view` is all but the trajectory and the files, which are asked
for apart (`outline_of`, `steps_of`, `changed_files`), and `text_of` is the whole of a folded text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import islice
from typing import Any

from assay.errors import NotFoundError
from assay.eval.journals import so_far, under_way
from assay.reports.cell_records import (
    CellChange,
    CellCommand,
    CellPlace,
    CellsUnderWay,
    CellUnderWay,
    CellView,
    ChangedFiles,
    FoundSteps,
    OpenedCell,
    OutlinedStep,
    PastResult,
    SiblingCell,
    StepOutline,
    StepPart,
    StepShown,
)
from assay.reports.explain import left_out, nodes, sentence, tree
from assay.reports.opened import KeptFiles, changes_of, kept_of, scores_of
from assay.reports.outcome import GLYPHS, ended, outcome, trouble
from assay.reports.pictures import CellPictures, shown_pictures
from assay.reports.plain import one_line, visible
from assay.reports.review import Change
from assay.reports.score_view import FOLD, facts_of, folded, node_at, score_nodes, signs_in
from assay.reports.trajectory import Moment, moments
from assay.shown import command
from assay.store.decisions import HELD, cell_digest, decision_of, needs_decision
from assay.store.records import CellKey, CellRecord, RunRecord
from assay.store.runs import Store

__all__ = [
    "cell_pictures",
    "cell_view",
    "cells_under_way",
    "change_of",
    "changed_files",
    "find_steps",
    "opened_cell",
    "outline_of",
    "steps_of",
    "text_of",
    "view_of",
]

_FOLD_WHOLE = 20_000
_EVERY = 1 << 40
_MOST_STEPS = 400
_MOST_UNDER_WAY = 100
_MOST_SIGNS = 100
_MOST_SIBLINGS = 1_000
_MOST_FOUND = 1_000
_MOST_LINES = 2_000
_EFFORT = 1_000_000


def cell_view(
    store: Store, run: RunRecord, key: CellKey, *, fold: int = FOLD, with_neighbours: bool = True
) -> CellView:
    """Open a cell.

    What is missing or damaged is said in the notes: the rest is worth having.

    Args:
        store: Where the run is.
        run: The run.
        key: The cell.
        fold: Characters of a text that are shown.
        with_neighbours: Whether to look for the cells before and after it that are worth a look.

    Raises:
        NotFoundError: If the run has no such cell.
    """
    history = _history(store, run, key)
    cell = history[-1]
    kept, notes = kept_of(store, cell)
    view = replace(
        view_of(run, cell, history=history, kept=kept, fold=fold),
        notes=notes,
        siblings=_siblings(store, run, key[0]),
    )
    if not with_neighbours:
        return view
    number, of = store.worth_a_look(run.id, key)
    before, after = (store.beside(run.id, key, forward=way) for way in (False, True))
    return replace(
        view,
        before=None if before is None else _place(before),
        after=None if after is None else _place(after),
        number=number,
        of=of,
    )


def view_of(
    run: RunRecord,
    cell: CellRecord,
    *,
    history: Sequence[CellRecord] = (),
    kept: KeptFiles | None = None,
    fold: int = FOLD,
) -> CellView:
    """A cell as its own row shows it, and what was kept beside it.

    Args:
        run: Its run.
        cell: Its newest result.
        history: Its results as they were stored, the newest last.
        kept: What was kept beside it.
        fold: Characters of a text that are shown.
    """
    kept, history, key = kept or KeptFiles(answer=cell.answer), history or [cell], cell.key
    scores = scores_of(cell, kept) if kept.row is not None else nodes(cell)
    held = cell.notes.get(HELD)
    waiting = held.get("reward") if isinstance(held, dict) else None
    answer = kept.answer or cell.answer
    return CellView(
        run=run.id,
        label=one_line(run.label, 200),
        place=_place(key),
        state=ended(cell),
        reward=cell.reward if outcome(cell) in ("pass", "fail") else None,
        held=waiting if isinstance(waiting, int | float) and cell.status == "skipped" else None,
        threshold=cell.threshold,
        sentence=sentence(cell),
        trouble=folded(trouble(cell) if ended(cell) == "error" else "", "trouble", fold=fold),
        content=one_line(cell.content, 500),
        assurance=cell.assurance or "",
        min_assurance=cell.min_assurance or "",
        flags=tuple(one_line(flag, 500) for flag in cell.flags[:_MOST_SIGNS]),
        signs=tuple(signs_in(scores))[:_MOST_SIGNS],
        cost_usd=cell.cost_usd,
        tokens=cell.tokens,
        seconds=cell.seconds,
        file=one_line(cell.file, 500),
        digest=one_line(cell.digest, 100),
        left_out=tuple(left_out(cell)),
        scores=score_nodes(scores, fold=fold),
        prompt=folded(kept.prompt, "prompt", fold=fold),
        answer=folded(answer, "answer", fold=fold),
        expected=folded(kept.expected, "expected", fold=fold),
        difference=_difference(kept.expected, answer),
        steps=len(kept.moments),
        has_files=bool(kept.source and kept.snapshot),
        pictures=len(kept.pictures),
        trace_id=one_line(kept.trace_id, 200),
        notes=(),
        seen=cell_digest(cell),
        decision=decision_of(cell),
        may_be_decided=needs_decision(cell),
        history=tuple(map(_past, reversed(history))),
        siblings=(),
        before=None,
        after=None,
        number=0,
        of=0,
        commands=_commands(run.id, key, cell, kept),
        markdown=_markdown(run, key, cell),
    )


def opened_cell(
    store: Store | None, run: RunRecord, cell: CellRecord, *, whole: bool = False
) -> OpenedCell:
    """A cell with everything that is shown of it, but for its neighbours.

    Args:
        store: Where the run is; None for what the cell's own row tells.
        run: The run.
        cell: The cell.
        whole: Whether no text is folded and no step left out, however long that is.
    """
    fold, most = (_EVERY, _EVERY) if whole else (_FOLD_WHOLE, _MOST_STEPS)
    if store is None:
        view = view_of(run, cell, fold=fold)
        steps, outline = StepPart(steps=(), total=0), StepOutline(steps=())
        return OpenedCell(view=view, outline=outline, steps=steps, files=None)
    key = cell.key
    view = cell_view(store, run, key, fold=fold, with_neighbours=False)
    steps = steps_of(store, run, key, 0, most, fold=fold)
    if steps.total > most:
        said = f"the first {most:,} of {steps.total:,} steps are shown"
        view = replace(view, notes=(*view.notes, said))
    return OpenedCell(
        view=view,
        outline=StepOutline(steps=outline_of(store, run, key).steps[:most]),
        steps=steps,
        files=changed_files(store, run, key) if view.has_files else None,
    )


def outline_of(store: Store, run: RunRecord, key: CellKey) -> StepOutline:
    """Every step of a cell's trajectory, without texts."""
    every, under_way = _moments(store, run, key)
    steps = tuple(OutlinedStep(**_alike(one)) for one in every)
    return StepOutline(steps=steps, under_way=under_way)


def cells_under_way(store: Store, run: RunRecord) -> CellsUnderWay:
    """What agents of a run work on now, the longest first."""
    found = islice(under_way(store, run.id), _MOST_UNDER_WAY)
    cells = [CellUnderWay(place=_place(key), began=began) for key, began in found]
    return CellsUnderWay(cells=tuple(sorted(cells, key=lambda one: one.began)))


def steps_of(
    store: Store, run: RunRecord, key: CellKey, start: int, most: int, *, fold: int = FOLD
) -> StepPart:
    """Some steps of a cell's trajectory."""
    every, _ = _moments(store, run, key)
    shown = enumerate(every[start : start + most], start)
    return StepPart(steps=tuple(_step(index, one, fold) for index, one in shown), total=len(every))


def find_steps(store: Store, run: RunRecord, key: CellKey, words: str) -> FoundSteps:
    """The steps that have a text, in any case of its letters."""
    wanted = words.casefold()
    places = [
        place
        for place, one in enumerate(_moments(store, run, key)[0])
        if wanted in one.label.casefold() or wanted in one.text.casefold()
    ]
    return FoundSteps(places=tuple(places[:_MOST_FOUND]), total=len(places))


def changed_files(store: Store, run: RunRecord, key: CellKey) -> ChangedFiles:
    """What became of the files of a cell's workspace."""
    kept, notes = kept_of(store, _history(store, run, key)[-1])
    changes, missing = changes_of(store.home, kept)
    shown = [replace(one, path=one_line(one.path, 500), diff=visible(one.diff)) for one in changes]
    return ChangedFiles(files=tuple(shown), notes=(*notes, *missing))


def cell_pictures(store: Store, run: RunRecord, key: CellKey) -> CellPictures:
    """The pictures of a cell."""
    kept, _ = kept_of(store, _history(store, run, key)[-1])
    return CellPictures(pictures=shown_pictures(kept.pictures))


def text_of(store: Store, run: RunRecord, key: CellKey, ref: str) -> str:
    """The whole of a text that was folded.

    Raises:
        NotFoundError: If the cell has no such text.
    """
    cell = _history(store, run, key)[-1]
    kept, _ = kept_of(store, cell)
    match ref.split("/"):
        case ["prompt"]:
            return visible(kept.prompt)
        case ["answer"]:
            return visible(kept.answer or cell.answer)
        case ["expected"]:
            return visible(kept.expected)
        case ["trouble"]:
            return visible(trouble(cell))
        case ["step", place] if place.isdecimal() and int(place) < len(kept.moments):
            return visible(kept.moments[int(place)].text)
        case ["fact", path, place] if place.isdecimal():
            node = node_at(scores_of(cell, kept), path)
            facts = facts_of(node) if node is not None else []
            if int(place) < len(facts):
                return "\n".join(facts[int(place)].lines)
        case _:
            pass
    raise NotFoundError(f"the cell has no text {ref!r:.80}")


# --- Parts of it ---------------------------------------------------------------------------------


def _history(store: Store, run: RunRecord, key: CellKey) -> list[CellRecord]:
    if history := store.history(run.id, key):
        return history
    raise NotFoundError(f"run {run.id} has no cell {key}", hint="list its cells")


def _moments(store: Store, run: RunRecord, key: CellKey) -> tuple[tuple[Moment, ...], bool]:
    """What was said and done, and whether more may come."""
    if not store.history(run.id, key) and (trace := so_far(store, run.id, key)) is not None:
        return tuple(moments(trace, "", whole=True)), True
    return kept_of(store, _history(store, run, key)[-1])[0].moments, False


def _place(key: CellKey) -> CellPlace:
    case, harness, model, trial = key
    return CellPlace(case=case, harness=harness, model=model, trial=trial)


def _step(index: int, one: Moment, fold: int) -> StepShown:
    text = folded(one.text, f"step/{index}", fold=fold)
    return StepShown(index=index, text=text, **_alike(one))


_ALIKE = tuple(field.name for field in fields(OutlinedStep))


def _alike(one: Moment) -> dict[str, Any]:
    """What a step and its outline have of a moment, by the same names."""
    return {name: getattr(one, name) for name in _ALIKE}


def _difference(expected: str, answer: str) -> tuple[str, ...]:
    from assay.graders.judges.work import file_diff

    if not expected or expected == answer:
        return ()
    lines, _ = file_diff("answer", f"{expected}\n".encode(), f"{answer}\n".encode(), _EFFORT)
    return tuple(visible(line) for line in lines[2 : 2 + _MOST_LINES])


def _past(cell: CellRecord) -> PastResult:
    return PastResult(
        state=ended(cell),
        reward=cell.reward,
        sentence=sentence(cell),
        digest=one_line(cell.digest, 100),
        decision=decision_of(cell),
    )


def change_of(change: Change) -> CellChange:
    """What grading a cell again changed."""
    return CellChange(
        place=_place(change.after.key),
        before=_past(change.before),
        after=_past(change.after),
        reasons=change.reasons,
    )


def _siblings(store: Store, run: RunRecord, case: str) -> tuple[SiblingCell, ...]:
    cells = store.cells_of_case(run.id, case)[:_MOST_SIBLINGS]
    return tuple(
        SiblingCell(
            place=_place(one.key), state=ended(one), reward=one.reward, flagged=bool(one.flags)
        )
        for one in cells
    )


def _commands(run: str, key: CellKey, cell: CellRecord, kept: KeptFiles) -> tuple[CellCommand, ...]:
    case, harness, model, trial = key
    agent = [*(["--harness", harness] if harness else []), *(["--model", model] if model else [])]
    which = [*agent, "--trial", str(trial)]
    said = [("show it in a terminal", ["report", run, "--case", case, *which])]
    if kept.snapshot:
        said.append(("lay its workspace out", [*said[0][1], "--workspace", "DIR"]))
        recording = ["runs", "promote", run, case, *which, "--name", "NAME"]
        said.append(("keep its work as a recording", recording))
    if needs_decision(cell):
        said.append(("decide about the run's flagged cells", ["runs", "review", run]))
    said.append(("grade the run again", ["regrade", run]))
    return tuple(CellCommand(does=does, command=command("assay", *words)) for does, words in said)


def _markdown(run: RunRecord, key: CellKey, cell: CellRecord) -> str:
    """In a fence that nothing in it can close."""
    case, harness, model, trial = key
    name = " · ".join(one_line(part, 80) for part in (case, harness, model) if part)
    lines = [
        f"{GLYPHS[ended(cell)]} {name} · trial {trial}",
        sentence(cell),
        "",
        *tree(nodes(cell), limit=40),
        *(f"flagged: {one_line(flag, 200)}" for flag in cell.flags[:10]),
        "",
        f"run {run.id}",
    ]
    text = "\n".join(lines)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}\n"
