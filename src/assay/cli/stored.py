"""``assay datasets``, ``traces``, ``jobs``, ``scores``: what stored graders grade and gave."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from assay.cli.options import (
    AddAction,
    actions,
    add_db,
    add_json,
    add_yes,
    check_targets,
    explain,
    moment,
    positive,
    require_yes,
    state_home,
)
from assay.errors import InputError, NotFoundError
from assay.reports.figures import count
from assay.reports.page import page_on
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json
from assay.store.database import Database, Record
from assay.store.database import moment as written

if TYPE_CHECKING:
    from assay.store.datasets import Datasets
    from assay.store.jobs import Jobs
    from assay.store.traces import TraceRecord, Traces

T = TypeVar("T")

_EXITS = "exit status: 0 done, 2 bad input, 3 the store could not be used"
_DATASETS = f"""\
Rows that a server or the Python client stored. Without an action it lists them.

{_EXITS}"""
_DATASET_EXAMPLES = """\
  assay datasets
  assay datasets export qa --into qa.jsonl && assay grade qa.jsonl -g graders.yaml
  assay datasets delete qa --yes"""
_TRACES = f"""\
What OpenTelemetry exporters sent to `assay serve`. A trace is whole once its outermost span has
come. `collect` makes a dataset of those with any gen_ai.*, to be graded.
Without an action it lists them, newest first.

{_EXITS}"""
_TRACE_EXAMPLES = """\
  assay traces
  assay traces collect monday --clear
  assay datasets export monday --into monday.jsonl && assay grade monday.jsonl -g graders.yaml
  assay traces delete --before 7d --yes"""
_JOBS = f"""\
A job grades a stored dataset with a stored grader; a server or the Python client begins it.
Without an action it lists them, newest first.

{_EXITS}"""
_JOB_EXAMPLES = """\
  assay jobs --status failed
  assay jobs export 20261121-090830-ab12cd34 > scores.jsonl
  assay jobs delete 20261121-090830-ab12cd34 --yes"""
_SCORES = f"""\
What graders gave to requests, and what people wrote in. The scores of a job go with the job
(`assay jobs delete`), and those of `assay run` and `assay grade` with the run.

{_EXITS}"""
_SCORE_EXAMPLES = """\
  assay scores delete --before 90d
  assay scores delete --before 2026-11-21 --grader review@3 --project qa --yes"""
_STATUSES = ("queued", "running", "finished", "failed", "cancelled")
_PAGE = 500


def add_datasets(parser: ArgumentParser) -> None:
    """Add the commands below ``assay datasets``."""
    explain(parser, _DATASETS, _DATASET_EXAMPLES)
    action = actions(parser, _add_common)
    listing = action("list", "list datasets, by key", "", _DATASET_EXAMPLES)
    _add_page(listing, "KEY", "those after this key")
    _add_shared(action, "dataset", "KEY", "its rows, as JSON lines")
    delete = action("delete", "delete datasets; what jobs found in them stays")
    delete.add_argument("keys", nargs="+", metavar="KEY")
    delete.add_argument("--force", action="store_true", help="also when jobs use it")
    add_yes(delete)


def add_traces(parser: ArgumentParser) -> None:
    """Add the commands below ``assay traces``."""
    explain(parser, _TRACES, _TRACE_EXAMPLES)
    action = actions(parser, _add_common)
    listing = action("list", "list traces, newest first", "", _TRACE_EXAMPLES)
    _add_page(listing, "ID", "those before this one")
    show = action("show", "show a trace as the row that it would be, in JSON")
    show.add_argument("key", metavar="ID")
    collect = action("collect", "make a dataset of the traces that are whole")
    collect.add_argument("key", metavar="KEY", help="of the new dataset")
    collect.add_argument("--name", default="", metavar="TEXT", help="for people")
    collect.add_argument("--unfinished", action="store_true", help="also those that are not whole")
    collect.add_argument("--clear", action="store_true", help="delete what is now in the dataset")
    delete = action("delete", "delete traces")
    delete.add_argument("keys", nargs="*", metavar="ID")
    delete.add_argument(
        "--before", type=moment, metavar="WHEN", help="to which nothing came since: 2026-11-21, 7d"
    )
    add_yes(delete)


def add_jobs(parser: ArgumentParser) -> None:
    """Add the commands below ``assay jobs``."""
    explain(parser, _JOBS, _JOB_EXAMPLES)
    action = actions(parser, _add_common)
    listing = action("list", "list jobs, newest first", "", _JOB_EXAMPLES)
    listing.add_argument("--status", choices=_STATUSES, help="only those of this status")
    _add_page(listing, "ID", "those before this one")
    _add_shared(action, "job", "ID", "its scores, as JSON lines")
    cancel = action("cancel", "end a job before its time; what was graded stays")
    cancel.add_argument("key", metavar="ID")
    delete = action("delete", "delete jobs that have ended, with their scores")
    delete.add_argument("keys", nargs="+", metavar="ID")
    add_yes(delete)


def add_scores(parser: ArgumentParser) -> None:
    """Add the commands below ``assay scores``."""
    explain(parser, _SCORES, _SCORE_EXAMPLES)
    action = actions(parser, _add_common)
    delete = action("delete", "delete old scores that belong to no job", "", _SCORE_EXAMPLES)
    delete.add_argument(
        "--before", type=moment, required=True, metavar="WHEN", help="2026-11-21, 12h, 7d, 4w"
    )
    delete.add_argument("--grader", metavar="KEY", help="only those of this grader, or KEY@NUMBER")
    add_yes(delete)


def _add_common(parser: ArgumentParser) -> None:
    add_db(parser, "the project; `default` by default")
    add_json(parser)


def _add_page(parser: ArgumentParser, name: str, what: str) -> None:
    add = parser.add_argument
    add("--limit", type=positive, default=50, metavar="N", help="how many; 50 by default")
    add("--after", default="", metavar=name, help=what)


def _add_shared(action: AddAction, noun: str, name: str, lines: str) -> None:
    action("show", f"show a {noun}").add_argument("key", metavar=name)
    export = action("export", f"write {lines}")
    export.add_argument("key", metavar=name)
    export.add_argument("--into", metavar="FILE", help="standard output by default")


def run_datasets(given: Namespace) -> int:
    """Run one of the actions on datasets."""
    from assay.store.datasets import Datasets

    with Database.open(given.db or state_home()) as database:
        if given.action == "delete":
            return _delete_datasets(given, database)
        return _DATASET_ACTIONS[given.action](given, Datasets(database))


def run_traces(given: Namespace) -> int:
    """Run one of the actions on traces."""
    from assay.store.traces import Traces

    with Database.open(given.db or state_home()) as database:
        if given.action == "list":
            return _list_traces(given, Traces(database))
        return _TRACE_ACTIONS[given.action](given, database)


def run_jobs(given: Namespace) -> int:
    """Run one of the actions on jobs."""
    from assay.store.jobs import Jobs

    with Database.open(given.db or state_home()) as database:
        if given.action == "cancel":
            return _cancel(given, database)
        if given.action == "delete":
            return _delete_jobs(given, database)
        return _JOB_ACTIONS[given.action](given, Jobs(database))


def run_scores(given: Namespace) -> int:
    """Delete scores."""
    from assay.service.here import local_desk
    from assay.store.scores import Scores

    with Database.open(given.db or state_home()) as database:
        scores, whose = Scores(database), f" of {given.grader}" if given.grader else ""
        found = scores.older(given.project, given.before, given.grader)
        if found:
            when = f"{given.before:%Y-%m-%d %H:%M}"
            require_yes(f"Delete {count(found, 'score')}{whose} from before {when}?", yes=given.yes)
            with database.writing():
                found = scores.delete(given.project, given.before, given.grader)
                said = {"before": written(given.before), "grader": given.grader}
                local_desk(database, given.project).note("delete_scores", said)
    print(json.dumps({"deleted": found}) if given.json else f"deleted {count(found, 'score')}")
    return 0


def _list_datasets(given: Namespace, datasets: Datasets) -> int:
    found, more = _part(
        lambda limit: datasets.page(given.project, limit=limit, after=given.after), given.limit
    )
    rows = [
        (one_line(each.key, 60), f"{each.rows:,}", each.digest[:16], each.created_at[:16])
        for each in found
    ]
    return _listed(given, "datasets", found, ("key", "rows", "digest", "made"), rows, more=more)


def _list_jobs(given: Namespace, jobs: Jobs) -> int:
    found, more = _part(
        lambda limit: jobs.page(given.project, limit=limit, after=given.after, status=given.status),
        given.limit,
    )
    rows = [
        (
            each.id,
            f"{one_line(each.grader, 40)}@{each.version}",
            one_line(each.dataset, 40),
            each.status,
            f"{each.done:,} of {each.total:,}, {count(each.errors, 'error')}",
        )
        for each in found
    ]
    header = ("job", "grader", "dataset", "status", "rows")
    return _listed(given, "jobs", found, header, rows, more=more, whole=1)


def _list_traces(given: Namespace, traces: Traces) -> int:
    before = traces.get(given.project, given.after).seq if given.after else 0
    found, more = _part(
        lambda limit: traces.page(given.project, limit=limit, before=before), given.limit
    )
    rows = [
        (
            each.id,
            one_line(each.name, 40),
            f"{each.spans:,}",
            "whole" if each.whole else "not whole",
            ", ".join(_flags(each)),
            each.updated_at[:16],
        )
        for each in found
    ]
    header = ("trace", "name", "spans", "state", "flags", "last span")
    return _listed(given, "traces", found, header, rows, more=more, whole=1)


def _flags(trace: TraceRecord) -> Iterator[str]:
    """What makes a trace unfit to be graded."""
    if trace.rewritten:
        yield f"{trace.rewritten:,} rewritten"
    if trace.refused:
        yield f"{trace.refused:,} refused"
    if not trace.gen_ai:
        yield "no gen_ai.*"


def _show_trace(given: Namespace, database: Database) -> int:
    import asyncio

    from assay.service.here import ask, local_desk
    from assay.service.operation import as_json
    from assay.service.traces import show_trace

    found = asyncio.run(ask(show_trace, local_desk(database, given.project), given.key))
    print(json.dumps(as_json(found) if given.json else found.row, indent=None if given.json else 2))
    return 0


def _collect(given: Namespace, database: Database) -> int:
    import asyncio

    from assay.service.here import ask, local_desk
    from assay.service.traces import collect_traces

    desk = local_desk(database, given.project)
    chosen = {"unfinished": given.unfinished, "clear": given.clear}
    made = asyncio.run(ask(collect_traces, desk, given.key, given.name, **chosen))
    print(json.dumps(made.to_dict()) if given.json else f"{made.key}: {count(made.rows, 'row')}")
    return 0


def _delete_traces(given: Namespace, database: Database) -> int:
    from assay.service.here import do, local_desk
    from assay.service.traces import delete_trace, delete_traces
    from assay.store.traces import Traces

    if bool(given.keys) == bool(given.before):
        raise InputError("say which traces", hint="their ids, or --before WHEN")
    desk = local_desk(database, given.project)
    if given.before:
        require_yes(
            f"Delete all to which nothing came since {given.before:%Y-%m-%d %H:%M}?", yes=given.yes
        )
        found = do(delete_traces, desk, written(given.before)).deleted
        print(json.dumps({"deleted": found}) if given.json else f"deleted {count(found, 'trace')}")
        return 0
    for trace in given.keys:
        Traces(database).get(given.project, trace)
    require_yes(f"Delete {', '.join(given.keys)}?", yes=given.yes)
    for trace in given.keys:
        do(delete_trace, desk, trace)
    return _deleted(given)


def _part(page: Callable[[int], list[T]], limit: int) -> tuple[list[T], bool]:
    """The first entries of a page, and whether there are more."""
    limit = min(limit, 999)
    found = page(limit + 1)
    return found[:limit], len(found) > limit


def _listed(
    given: Namespace,
    noun: str,
    found: Sequence[Record],
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    more: bool,
    whole: int = 0,
) -> int:
    if given.json:
        print(json.dumps({noun: [each.to_dict() for each in found], "more": more}))
        return 0
    page = page_on(sys.stdout)
    if not rows:
        page.line(f"no {noun} in project {one_line(given.project, 100)!r}")
        return 0
    page.table(header, rows, left=len(header), whole=whole)
    if more:
        page.line((f"more: --after {rows[-1][0]}", "dim"))
    return 0


def _shown(given: Namespace, record: Record) -> int:
    written = record.to_dict()
    if given.json:
        print(json.dumps(written))
        return 0
    page = page_on(sys.stdout)
    for name, value in written.items():
        if value not in ("", None):
            page.line((f"{name.replace('_', ' '):<12}", "dim"), one_line(str(value), 400))
    return 0


def _written(given: Namespace, lines: Iterable[Mapping[str, Json]], noun: str) -> int:
    """Write JSON lines to standard output, or to a file that is there whole or not at all."""
    if given.into is None:
        for line in lines:
            print(json.dumps(line))
        return 0
    from assay.reports.files import replacing

    check_targets((given.into,), inputs=())
    number = 0
    with replacing(given.into) as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")
            number += 1
    if given.json:
        print(json.dumps({"file": given.into, noun: number}))
    else:
        print(f"{given.into}: {count(number, noun.removesuffix('s'))}")
    return 0


def _export_dataset(given: Namespace, datasets: Datasets) -> int:
    datasets.get(given.project, given.key)

    def rows() -> Iterator[Mapping[str, Json]]:
        after = 0
        while page := datasets.rows(given.project, given.key, after=after, limit=_PAGE):
            after = page[-1].number
            yield from (row.data for row in page)

    return _written(given, rows(), "rows")


def _export_job(given: Namespace, jobs: Jobs) -> int:
    _job(given, jobs, given.key)

    def scores() -> Iterator[Mapping[str, Json]]:
        after = 0
        while page := jobs.results(given.key, after, _PAGE):
            after = page[-1].seq
            yield from (score.to_dict() for score in page)

    return _written(given, scores(), "scores")


def _job(given: Namespace, jobs: Jobs, job: str) -> Record:
    """A job of the project."""
    found = jobs.get(job)
    if found.project != given.project:
        raise NotFoundError(f"there is no job {job!r:.80} in project {given.project!r}")
    return found


def _cancel(given: Namespace, database: Database) -> int:
    from assay.service.data import cancel_job
    from assay.service.here import do, local_desk

    return _shown(given, do(cancel_job, local_desk(database, given.project), given.key))


def _delete_datasets(given: Namespace, database: Database) -> int:
    from assay.service.data import delete_dataset, show_dataset
    from assay.service.here import do, local_desk

    desk = local_desk(database, given.project)
    for key in given.keys:
        do(show_dataset, desk, key)
    require_yes(f"Delete {', '.join(given.keys)} with all rows?", yes=given.yes)
    for key in given.keys:
        do(delete_dataset, desk, key, force=given.force)
    return _deleted(given)


def _delete_jobs(given: Namespace, database: Database) -> int:
    from assay.service.data import delete_job, show_job
    from assay.service.here import do, local_desk

    desk = local_desk(database, given.project)
    for job in given.keys:
        do(show_job, desk, job)
    require_yes(f"Delete {', '.join(given.keys)} with all scores?", yes=given.yes)
    for job in given.keys:
        do(delete_job, desk, job)
    return _deleted(given)


def _deleted(given: Namespace) -> int:
    print(json.dumps({"deleted": given.keys}) if given.json else f"deleted {', '.join(given.keys)}")
    return 0


_TRACE_ACTIONS: Mapping[str, Callable[[Namespace, Database], int]] = {
    "show": _show_trace,
    "collect": _collect,
    "delete": _delete_traces,
}
_DATASET_ACTIONS: Mapping[str, Callable[[Namespace, Datasets], int]] = {
    "list": _list_datasets,
    "show": lambda given, datasets: _shown(given, datasets.get(given.project, given.key)),
    "export": _export_dataset,
}
_JOB_ACTIONS: Mapping[str, Callable[[Namespace, Jobs], int]] = {
    "list": _list_jobs,
    "show": lambda given, jobs: _shown(given, _job(given, jobs, given.key)),
    "export": _export_job,
}
