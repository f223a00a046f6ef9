"""How runs and jobs look in a notebook and where they are printed; see `assay.scoring.notebook`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from assay.scoring.notebook import head_of, mark, state_of, table, tree_html
from assay.shown import element, joined, one_line, score, shorten

if TYPE_CHECKING:
    from assay.types.run import Job, Run

_MAX_LINES = 20
_WHY = 200
_ANSWER = 2_000


def run_html(run: Run) -> str:
    """A run: what came of it, what it took, its answer, and its score tree."""
    facts = {
        "task": _name(run),
        "trial": str(run.trial),
        "agent": run.harness,
        "model": run.model,
        "time": _seconds(run),
        "tokens": _tokens(run),
        "cost": _cost(run),
    }
    rows = [(name, one_line(value, 200)) for name, value in facts.items() if value]
    if answer := run.trace.content:
        cut = shorten(answer, _ANSWER)
        rows.append(("answer", element("span", cut, style="white-space:pre-wrap")))
    result = run.grade.result
    return joined(head_of(result), table(("", ""), rows, len(rows)), tree_html(run.grade.subscores))


def job_html(job: Job) -> str:
    """A job: what came of it, and a line for each run."""
    titles, rows = _columns(job)
    shown = ((*row[:-2], _marked(run), row[-1]) for run, row in zip(job.runs, rows, strict=True))
    summary = element("p", element("b", _summary(job)))
    return joined(summary, table(titles, shown, len(job.runs))) if job.runs else summary


def job_text(job: Job) -> str:
    """A job as a short table: what came of it, then the first runs."""
    if len(job.runs) < 2:
        return _summary(job)
    titles, rows = _columns(job)
    some = [titles, *islice(rows, _MAX_LINES)]
    widths = [max(len(row[place]) for row in some) for place in range(len(titles))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in some
    ]
    if left := len(job.runs) - _MAX_LINES:
        lines += [f"... and {left:,} more"] if left > 0 else []
    return "\n".join([_summary(job), *lines])


def _summary(job: Job) -> str:
    graded, total = job.coverage
    mean = "no reward" if job.reward is None else f"reward {score(job.reward)}"
    said = f"{one_line(job.name or job.id)}: {mean}; {graded} of {total} graded"
    if not (errors := job.errors):
        return said
    why = one_line(errors[0].grade.content or "not graded", _WHY)
    return f"{said}; {one_line(errors[0].slug or errors[0].task_id or 'one')}: {why}"


def _columns(job: Job) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Titles, and what stands below them; what is the same everywhere is left out."""
    names: list[str] = ["task"]
    columns: list[Sequence[str]] = [[one_line(_name(run), 60) for run in job.runs]]
    for title, values in (
        ("trial", [str(run.trial) for run in job.runs]),
        ("agent", [one_line(run.harness, 40) for run in job.runs]),
        ("model", [one_line(run.model, 40) for run in job.runs]),
    ):
        if len(set(values)) > 1:
            names.append(title)
            columns.append(values)
    if any(run.seconds for run in job.runs):
        names.append("time")
        columns.append([_seconds(run) for run in job.runs])
    if any(run.cost_usd is not None for run in job.runs):
        names.append("cost")
        columns.append([_cost(run) for run in job.runs])
    names += ["reward", "why"]
    columns.append([_reward(run) for run in job.runs])
    columns.append([one_line(run.grade.content or "", 80) for run in job.runs])
    return tuple(names), list(zip(*columns, strict=True))


def _name(run: Run) -> str:
    return run.slug or run.task_id or "run"


def _reward(run: Run) -> str:
    return score(run.reward) if run.reward is not None else run.grade.result.status


def _marked(run: Run) -> str:
    return mark(state_of(run.grade.result.status, passed=None), _reward(run))


def _seconds(run: Run) -> str:
    return f"{run.seconds:,.1f} s"


def _tokens(run: Run) -> str:
    return "unknown" if run.tokens is None else f"{run.tokens:,}"


def _cost(run: Run) -> str:
    if run.cost_usd is None:
        return "unknown"
    return f"${run.cost_usd:,.4f}" if run.cost_usd else "$0"
