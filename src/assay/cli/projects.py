"""``assay projects`` and ``assay audit``: what projects may ask of servers; who changed what."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from assay.cli.options import actions, add_json, explain, moment, positive
from assay.cli.serve import add_store, store_location
from assay.reports.page import page_on
from assay.reports.plain import one_line
from assay.store.database import Database
from assay.store.projects import ProjectRecord, Projects

if TYPE_CHECKING:
    from assay.store.changes import ChangeRecord

_PROJECTS = """\
Projects have graders, datasets, jobs and scores of their own. Without an action it lists them.
Limits hold on each server of the database, within seconds; without one, projects share what there
is. A project may have so many jobs, and gradings of each sort (comparisons, functions, graders that
wait for others), at once; more wait. Requests beyond those of a minute get 429.

exit status: 0 done, 2 bad input, 3 the store could not be used"""
_PROJECT_EXAMPLES = """\
  assay projects
  assay projects create qa --name "Quality"
  assay projects limit qa --per-minute 600 --at-once 8
  assay projects limit qa --per-minute none"""
_AUDIT = """\
Every change to graders, datasets, traces, jobs, scores, runs, projects and keys: of a server by its
keys, of the command line and Python by the user of the machine. Newest first.

exit status: 0 done, 2 bad input, 3 the store could not be used"""
_AUDIT_EXAMPLES = """\
  assay audit --since 7d
  assay audit --project qa --json"""
_PAGE = 500


def add(parser: ArgumentParser) -> None:
    """Add the commands below ``assay projects``."""
    explain(parser, _PROJECTS, _PROJECT_EXAMPLES)
    action = actions(parser, _add_common)
    action("list", "list projects with their limits", "", _PROJECT_EXAMPLES)
    create = action("create", "make a project")
    create.add_argument("key", metavar="KEY")
    create.add_argument("--name", default="", metavar="TEXT", help="for people")
    limit = action("limit", "limit what a project may ask of a server", "", _PROJECT_EXAMPLES)
    limit.add_argument("key", metavar="KEY")
    limit.add_argument("--per-minute", type=_limit, metavar="N", help="requests; or none")
    limit.add_argument("--at-once", type=_limit, metavar="N", help="gradings of a sort; or none")


def add_audit(parser: ArgumentParser) -> None:
    """Say what ``assay audit`` takes."""
    explain(parser, _AUDIT, _AUDIT_EXAMPLES)
    _add_common(parser)
    add = parser.add_argument
    add("--project", default="", metavar="KEY", help="only changes in this project")
    add("--since", type=moment, metavar="WHEN", help="only newer ones: 2026-11-21, 12h, 7d, 4w")
    add("--limit", type=positive, default=50, metavar="N", help="how many; 50 by default")


def _add_common(parser: ArgumentParser) -> None:
    add_store(parser)
    add_json(parser)


def _limit(text: str) -> int:
    """A limit; 0 for none."""
    return 0 if text == "none" else positive(text)


def run(given: Namespace) -> int:
    """Run one of the actions on projects."""
    is_list = given.action == "list"
    with Database.open(store_location(given.db)) as database:
        found = Projects(database).all() if is_list else [_changed(given, database)]
    if given.json and is_list:
        print(json.dumps({"projects": [project.to_dict() for project in found]}))
    elif given.json:
        print(json.dumps(found[0].to_dict()))
    else:
        header = ("project", "name", "requests a minute", "gradings at once", "made")
        page_on(sys.stdout).table(header, [_row(project) for project in found], left=len(header))
    return 0


def _changed(given: Namespace, database: Database) -> ProjectRecord:
    from assay.service.here import do, local_desk
    from assay.service.site import create_project, limit_project

    if given.action == "create":
        return do(create_project, local_desk(database), given.key, given.name)
    now = Projects(database).get(given.key)
    return do(
        limit_project,
        local_desk(database, given.key),
        requests_per_minute=(
            now.requests_per_minute if given.per_minute is None else given.per_minute or None
        ),
        gradings_at_once=now.gradings_at_once if given.at_once is None else given.at_once or None,
    )


def _row(project: ProjectRecord) -> tuple[str, ...]:
    limits = (project.requests_per_minute, project.gradings_at_once)
    shown = ("no limit" if limit is None else f"{limit:,}" for limit in limits)
    return (project.key, one_line(project.name, 40), *shown, project.created_at[:16])


def run_audit(given: Namespace) -> int:
    """Show who changed what."""
    from assay.store.changes import Changes
    from assay.store.database import moment as written

    since = "" if given.since is None else written(given.since)
    found: list[ChangeRecord] = []
    with Database.open(store_location(given.db)) as database:
        if given.project:
            Projects(database).get(given.project)
        changes, before = Changes(database), 0
        while page := changes.page(project=given.project, limit=_PAGE, before=before):
            before = page[-1].seq
            found += [change for change in page if change.time >= since]
            if len(found) > given.limit or page[-1].time < since:
                break
    more, found = len(found) > given.limit, found[: given.limit]
    if given.json:
        print(json.dumps({"changes": [change.to_dict() for change in found], "more": more}))
        return 0
    page_out = page_on(sys.stdout)
    if not found:
        page_out.line("nothing was changed")
        return 0
    header = ("time", "who", "where", "did", "to")
    page_out.table(header, [_line(change) for change in found], left=len(header))
    if more:
        page_out.line((f"older ones: --limit {2 * given.limit}", "dim"))
    return 0


def _line(change: ChangeRecord) -> tuple[str, ...]:
    who = change.by if change.key == "local" else f"{change.by} ({change.key})"
    at = f"{who} {change.address}" if change.address else who
    what = " ".join(f"{name}={value}" for name, value in change.what.items() if value != "")
    return (
        change.time[:19].replace("T", " "),
        one_line(at, 50),
        one_line(change.project, 30),
        change.operation,
        one_line(what, 80),
    )
