"""``assay list``: templates and tasks of environments, in files or served, and cases."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import cast

from assay.cli.options import add_json, check_targets, explain
from assay.environment.environment import Environment
from assay.errors import InputError, shown
from assay.eval.work import is_served, load_tasks, served_at
from assay.reports.figures import count
from assay.reports.page import page_on
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json
from assay.tasks.case import Case
from assay.tasks.task import Task, Taskset, environments_of

_MORE = """\
Of a Python file it lists the tasks that it makes, else those of templates that need no arguments.
The file is run. A URL is asked what is served there.
What is listed is run by: assay run PATH --task ID

exit status: 0, or 2 for bad input"""
_EXAMPLES = """\
  assay list env.py
  assay list env.py --out rows.jsonl
  assay list rows.jsonl --env env.py --json
  assay list tcp://127.0.0.1:8765"""
_WIDTH = 60


def add(parser: ArgumentParser) -> None:
    """Say what ``assay list`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    add_option = parser.add_argument
    add_option(
        "paths",
        nargs="+",
        metavar="PATH",
        help="Python files of environments, URLs where they are served, rows, or cases",
    )
    add_option(
        "--env", default="", metavar="FILE", help="the Python file or URL that rows belong to"
    )
    add_option("--out", metavar="FILE", help="also write the tasks of environments as rows")
    add_json(parser)


def run(given: Namespace) -> int:
    """Print them.

    Returns:
        0.

    Raises:
        InputError: For files that define nothing, or that cannot be run.
    """
    check_targets((given.out,), inputs=[*given.paths, given.env])
    named = (*given.paths, given.env)
    files = [path for path in named if path.endswith(".py")]
    with redirect_stdout(sys.stderr):  # what the files print is no part of the list
        manifests = _manifests(files) + [_served(url) for url in named if is_served(url)]
        templates = [one for manifest in manifests if (one := manifest["templates"])]
        tasks = _tasks(given.paths, given.env, has_templates=bool(templates))
    if given.out is not None:
        if not given.out.endswith(".jsonl"):
            raise InputError(f"--out {given.out} must end in .jsonl")
        rows = [task for task in tasks if not isinstance(task.work, Case)]
        if not rows:
            raise InputError("no task of an environment is there to be written")
        Taskset("rows", rows).to_file(given.out)
    if given.json:
        listed = [_row(task) for task in tasks]
        print(json.dumps({"environments": manifests, "tasks": listed}))
        return 0
    _show(manifests, tasks)
    return 0


def _manifests(files: Iterable[str]) -> list[dict[str, Json]]:
    """What the environments of Python files offer; a file may make tasks of another's."""
    found: list[dict[str, Json]] = []
    for file in dict.fromkeys(files):
        try:
            environments = environments_of(file)
        except InputError:  # told with its tasks, if it has none of these either
            continue
        found += [
            {**one.manifest(), "file": file} for one in environments if isinstance(one, Environment)
        ]
    return found


def _served(url: str) -> dict[str, Json]:
    """What is offered at a URL, as a file's environment says it."""
    client = served_at(url)
    templates: list[Json] = [
        {"id": row.id, "description": row.description, "args": dict(row.args)}
        for row in client.tasks
    ]
    version = client.manifest.version
    return {"name": client.name, "version": version, "templates": templates, "file": url}


def _tasks(paths: Sequence[str], env: str, *, has_templates: bool) -> list[Task]:
    try:
        return load_tasks(paths, env=env)
    except InputError as error:
        if has_templates and "defines no tasks" in error.message:  # all of them need arguments
            return []
        raise


def _row(task: Task) -> dict[str, Json]:
    row = {**task.to_dict(), "kind": "template", "file": shown(task.file)}
    return {**row, "kind": "case", **_case_row(task.work)} if isinstance(task.work, Case) else row


def _case_row(case: Case) -> dict[str, Json]:
    return {
        "description": case.description,
        "cells": len(case.matrix.pairs()) * case.matrix.trials,
        "graders": [spec.label for spec in case.graders],
        "digest": case.digest,
    }


def _show(manifests: Sequence[Mapping[str, Json]], tasks: Sequence[Task]) -> None:
    page = page_on(sys.stdout)
    for manifest in manifests:
        name, file = one_line(str(manifest["name"]), 40), one_line(str(manifest["file"]), 80)
        page.line((name, "bold"), (f"  {file}", "dim"))
        templates = manifest["templates"]
        for template in templates if isinstance(templates, list) else []:
            if isinstance(template, dict):
                told = one_line(str(template["description"]), 80)
                call = f"{template['id']}({_parameters(template['args'])})"
                page.line(one_line(call, 100), (f"  {told}", "dim"), indent=2, hanging=4)
        page.line()
    if not tasks:
        page.line("no tasks: every template needs arguments, so make some at module level")
        return
    rows = [
        (
            one_line(task.slug, 40),
            "case" if isinstance(task.work, Case) else one_line(task.id, 32),
            one_line(_told(task), _WIDTH),
        )
        for task in tasks
    ]
    page.table(("task", "of", "what"), rows, left=3)


def _told(task: Task) -> str:
    if isinstance(task.work, Case):
        row = _case_row(task.work)
        graders = ", ".join(spec.label for spec in task.work.graders)
        return f"{count(cast('int', row['cells']), 'cell')}, {graders}; {row['description']}"
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in task.args.items())


def _parameters(schema: Json) -> str:
    """A template's parameters, as its author would write them."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    said: list[str] = []
    for name, about in properties.items() if isinstance(properties, dict) else ():
        known = about if isinstance(about, dict) else {}
        kind = f": {known['type']}" if "type" in known else ""
        default = f" = {json.dumps(known['default'])}" if "default" in known else ""
        said.append(f"{name}{kind}{default}")
    return ", ".join(said)
