"""Operations on environments: what runs came from, as far as the store knows it.

An environment is somebody's file, or something that answers at an address: nothing of it is run or
asked here, and what is told of it is what its runs were begun with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

from assay.reports.outcome import outcome, reward_of
from assay.reports.plain import one_line
from assay.scoring.intervals import Interval, mean_interval
from assay.scoring.json_safe import Json
from assay.service.operation import Desk, operation
from assay.shown import command
from assay.store.labels import Decisions, decided
from assay.store.records import CellRecord, RunRecord
from assay.store.runs import Store

EnvironmentKind: TypeAlias = Literal["python", "served", "cases"]
"""A Python file, an address where one is served, or case files."""

_MOST_RUNS = 500
_MOST_TASKS = 200
_MOST_SHOWN = 8
_MOST_CELLS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentTask:
    """A task of an environment, as its newest run says.

    Attributes:
        slug: Its name.
        template: The template that it was made of; empty for a case.
        mean: Mean reward of its graded cells in that run, with its 95 % interval.
        errors: Cells of it that could not be graded.
        skipped: Cells of it that were skipped.
    """

    slug: str
    template: str = ""
    mean: Interval
    errors: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRun:
    """A run of an environment.

    Attributes:
        id: Its id.
        label: Its name, if it has one.
        created_at: When it began.
        finished: Whether every cell of it was stored.
        harnesses: What did the work.
        models: The models that were asked for.
    """

    id: str
    label: str
    created_at: str
    finished: bool
    harnesses: tuple[str, ...]
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSeen:
    """An environment that runs came from.

    Attributes:
        name: Its own name; of case files, that of their directory.
        kind: ``python``, ``served`` or ``cases``.
        source: The file or the address.
        tasks: Its tasks in its newest run, the first 200.
        task_count: How many it had there.
        runs: Its newest runs.
        run_count: How many runs it has, of the newest 500 of the store.
        mean: Mean reward of the newest run, as its overview says it.
        graded: Cells of the newest run that were graded.
        errors: Cells of it that could not be.
        is_partial: Whether only the first cells of a very large run were looked at.
        list_command: Lists its tasks.
        run_command: Runs them again.
        serve_command: Serves it; empty for what cannot be served, or is already.
    """

    name: str
    kind: EnvironmentKind
    source: str
    tasks: tuple[EnvironmentTask, ...]
    task_count: int
    runs: tuple[EnvironmentRun, ...]
    run_count: int
    mean: Interval
    graded: int
    errors: int
    is_partial: bool
    list_command: str
    run_command: str
    serve_command: str = ""


@dataclass(frozen=True, slots=True)
class EnvironmentList:
    """Environments, that of the newest run first."""

    environments: tuple[EnvironmentSeen, ...]


_Source: TypeAlias = tuple[EnvironmentKind, tuple[str, ...], str, dict[str, str]]
"""What a run came from: kind, files or address, name, and its tasks with their templates."""


@dataclass(slots=True)
class _Found:
    """What the runs of one environment say of it."""

    name: str
    kind: EnvironmentKind
    source: tuple[str, ...]
    newest: RunRecord
    templates: dict[str, str] = field(default_factory=dict[str, str])
    runs: list[RunRecord] = field(default_factory=list[RunRecord])


@operation("GET", "/environments", tag="environments", where="default", apart=True)
def list_environments(desk: Desk) -> EnvironmentList:
    """What runs came from: Python files, addresses, case files; with what came of them last."""
    store, found = Store(desk.database), dict[tuple[tuple[str, ...], str], _Found]()
    for run in store.runs(_MOST_RUNS):
        for kind, source, name, templates in _sources(run):
            key = (source, name)
            seen = found.get(key)
            if seen is None:
                seen = found[key] = _Found(name, kind, source, run, templates)
            seen.runs.append(run)
    cells: dict[str, list[CellRecord]] = {}
    return EnvironmentList(tuple(_shown(desk, store, one, cells) for one in found.values()))


def _sources(run: RunRecord) -> Iterator[_Source]:
    if run.config.get("imported") is True:  # its files and addresses are its author's
        return
    if run.config.get("kind") == "matrix":
        yield from _of_paths(run)
        return
    rows = run.config.get("tasks") if run.config.get("kind") == "job" else None
    grouped: dict[tuple[EnvironmentKind, str, str], dict[str, str]] = {}
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict):
            continue
        url, file, env = (_text(row.get(part)) for part in ("url", "file", "env"))
        if url or (file and env):
            kind: EnvironmentKind = "served" if url else "python"
            key = (kind, _without_secret(url) if url else file, env)
            grouped.setdefault(key, {})[_text(row.get("slug"))] = _text(row.get("id"))
    for (kind, source, env), templates in grouped.items():
        yield kind, (source,), env, templates


def _of_paths(run: RunRecord) -> Iterator[_Source]:
    request = run.config.get("request")
    paths = request.get("paths") if isinstance(request, dict) else None
    named = [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
    if len(named) == 1:
        path = named[0]
        kind: EnvironmentKind = "cases"
        if "://" in path:
            kind, path = "served", _without_secret(path)
        elif path.endswith(".py"):
            kind = "python"
        name = path if kind == "served" else PurePath(path).name
        yield kind, (path,), name, dict.fromkeys(run.digests, "")
    elif named:
        yield "cases", tuple(named), f"{len(named)} paths", dict.fromkeys(run.digests, "")


def _shown(
    desk: Desk, store: Store, found: _Found, known: dict[str, list[CellRecord]]
) -> EnvironmentSeen:
    from assay.reports.summary import Tally

    if found.newest.id not in known:
        read = decided(store.cells(found.newest.id), Decisions(desk.database).all)
        known[found.newest.id] = [cell for cell, _ in zip(read, range(_MOST_CELLS), strict=False)]
    every = known[found.newest.id]
    own = [cell for cell in every if cell.case in found.templates]
    by_case: dict[str, list[CellRecord]] = {}
    for cell in own:
        by_case.setdefault(cell.case, []).append(cell)
    tasks = [
        EnvironmentTask(
            slug=one_line(slug, 200),
            template=one_line(template, 100),
            mean=_mean(by_case.get(slug, [])),
            errors=sum(outcome(cell) == "error" for cell in by_case.get(slug, [])),
            skipped=sum(outcome(cell) == "skipped" for cell in by_case.get(slug, [])),
        )
        for slug, template in list(found.templates.items())[:_MOST_TASKS]
    ]
    words = found.source
    source = one_line(words[0] if len(words) == 1 else command(*words), 500)
    tally = Tally()
    for cell in own:
        tally.add(cell)
    totals = tally.summary().totals
    return EnvironmentSeen(
        name=one_line(found.name, 100) or source,
        kind=found.kind,
        source=source,
        tasks=tuple(tasks),
        task_count=len(found.templates),
        runs=tuple(_run(run) for run in found.runs[:_MOST_SHOWN]),
        run_count=len(found.runs),
        mean=totals.reward,
        graded=totals.graded,
        errors=totals.errors,
        is_partial=len(every) == _MOST_CELLS,
        list_command=command("assay", "list" if found.kind == "cases" else "tasks", *words),
        run_command=command("assay", "run", *words),
        serve_command=command("assay", "env", "serve", *words) if found.kind == "python" else "",
    )


def _mean(cells: list[CellRecord]) -> Interval:
    rewards = [reward for cell in cells if (reward := reward_of(cell)) is not None]
    return mean_interval(rewards)


def _run(run: RunRecord) -> EnvironmentRun:
    request = run.config.get("request")
    asked: Mapping[str, Json] = request if isinstance(request, dict) else {}
    return EnvironmentRun(
        id=run.id,
        label=one_line(run.label, 100),
        created_at=run.created_at,
        finished=run.finished,
        harnesses=_names(asked.get("harnesses")),
        models=_names(asked.get("models")),
    )


def _names(value: Json) -> tuple[str, ...]:
    return tuple(one_line(str(one), 100) for one in value if one) if isinstance(value, list) else ()


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _without_secret(url: str) -> str:
    """An address without the name and the password that may stand in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))
