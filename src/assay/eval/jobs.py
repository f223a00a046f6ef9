"""`taskset.run(agent, store=...)`: a job that is stored as a matrix run is, and can be resumed.

It goes down the same road (`assay.eval.matrix.Launch`); only its tasks and its agent are at hand,
where a command line names files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from assay.environment.channel.link import Address
from assay.environment.channel.remote import RemoteWork
from assay.errors import InputError, shown
from assay.eval.matrix import begun, changed, gone_on_with, require_own, run_of
from assay.eval.planning import Planned
from assay.eval.work import version_of
from assay.scoring.json_safe import Json
from assay.store.records import RunRecord
from assay.store.runs import Store
from assay.tasks.case import load_case
from assay.tasks.task import RunOptions, Task, case_task, environments_of
from assay.types.run import Job


async def run_stored(cells: Sequence[Planned], options: RunOptions, job: Job) -> Job:
    """Run cells and keep each run as soon as it is graded; or go on with a job that was kept.

    Raises:
        InputError: If what is to be resumed is no job, or was of other tasks or another agent, or
            if its tasks changed since.
    """
    tasks = list({one.task.slug: one.task for one in cells}.values())
    versions = {task.slug: version_of(task) for task in tasks}
    cells = [replace(one, version=versions[one.task.slug]) for one in cells]
    request: dict[str, Json] = {
        "paths": list(dict.fromkeys(shown(task.file) for task in tasks if task.file)),
        "harnesses": list(dict.fromkeys(one.harness for one in cells)),
        "models": list(dict.fromkeys(one.model for one in cells)),
        "trials": options.group,
    }
    rows: list[Json] = [_row_of(task) for task in tasks]
    config: dict[str, Json] = {"kind": "job", "request": request, "tasks": rows}
    with Store.open(os.fspath(options.store)) as store:
        reference = options.resume or (job.id if job.runs else "")
        if reference:
            run = _resumable(store.run(reference), config)
            ready = gone_on_with(run, store, cells)
            if len(ready.todo) < len(ready.cells):
                raise InputError(
                    f"tasks changed, or assay did, since runs of job {run.id} were graded: "
                    f"{changed(ready)}",
                    hint=f"assay regrade {run.id} grades what was kept again; or start a new job",
                )
        else:
            ready = begun(store, cells, config, label=job.name)
        run, todo = ready.run, {one.key for one in ready.todo}
        job.id, job.name, job.group = run.id, run.label, options.group
        job.runs[:] = [run_of(store, run.id, one.key) for one in cells if one.key not in todo]
        ready = replace(ready, options=options)
        await ready.go(store, workers=options.max_concurrent, on_run=job.runs.append)
    order = {(one.task.slug, one.trial): number for number, one in enumerate(cells)}
    job.runs.sort(key=lambda run: order[run.slug, run.trial])
    return job


def _resumable(run: RunRecord, config: Mapping[str, Json]) -> RunRecord:
    """The run, if it was begun with the same tasks, agent, model and group."""
    if run.config.get("kind") != "job":
        raise InputError(
            f"run {run.id} was not made by task.run", hint=f"assay run --resume {run.id}"
        )
    before, now = run.config.get("request"), config["request"]
    other = [
        f"another {what}"
        for part, what in (("harnesses", "agent"), ("models", "model"), ("trials", "group"))
        if not isinstance(before, dict) or not isinstance(now, dict) or before[part] != now[part]
    ]
    if [row.get("slug") for row in _rows(run.config)] != [row.get("slug") for row in _rows(config)]:
        other.append("other tasks")
    if other:
        hint = "start a new job: leave resume and job out"
        raise InputError(f"job {run.id} was begun with {other[0]}", hint=hint)
    return run


def tasks_of_job(run: RunRecord) -> list[Task]:
    """The tasks of a stored job, made anew from the files that define them.

    Raises:
        InputError: If one of them cannot be.
    """
    require_own(run)
    return [_task_of(row) for row in _rows(run.config)]


def _rows(config: Mapping[str, Json]) -> list[dict[str, Json]]:
    rows = config.get("tasks")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _row_of(task: Task) -> dict[str, Json]:
    file, work = task.file, task.work
    return {
        "env": task.env,
        "id": task.id,
        "args": dict(task.args),
        "slug": task.slug,
        "file": str(Path(file).resolve()) if file else "",
        "url": "" if file or not isinstance(work, RemoteWork) else work.address.url,
        "threshold": task.pass_threshold,
        "verifier": None if task.verifier is None else _row_of(task.verifier),
    }


def _task_of(row: dict[str, Json]) -> Task:
    file, env, args = str(row.get("file")), str(row.get("env")), row.get("args")
    url, known = str(row.get("url") or ""), args if isinstance(args, dict) else {}
    if url:
        name = str(row.get("id"))
        task = Task(id=name, env=env, args=known, work=RemoteWork(Address(url), name, known, url))
    elif env and file:
        found = {one.name: one for one in environments_of(file)}
        if env not in found:
            raise InputError(f"{file} has no environment {env!r} any more")
        task = found[env].task(str(row.get("id")), **known)
    elif file:
        task = case_task(load_case(file))
    else:
        raise InputError(f"nothing says which file made task {row.get('slug')!r}")
    threshold, verifier = row.get("threshold"), row.get("verifier")
    return replace(
        task,
        slug=str(row.get("slug")),
        pass_threshold=float(threshold) if isinstance(threshold, int | float) else 1.0,
        verifier=_task_of(verifier) if isinstance(verifier, dict) else None,
    )
