"""``assay runs``: what was run, newest first; export, import and deletion."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from assay.cli.options import (
    actions,
    add_json,
    add_yes,
    explain,
    moment,
    positive,
    require_yes,
    state_home,
)
from assay.errors import InputError
from assay.reports.figures import count
from assay.reports.page import page_on
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json
from assay.store.records import Counts, RunRecord
from assay.store.runs import Store

_MORE = """\
Without an action it lists them; `assay runs list --help` says by what they are found.
`assay runs show RUN` is `assay report RUN`, and `assay compare RUN RUN` shows two.
RUN is a run's id, a prefix of it, its label, or latest.

exit status: 0 done, 2 bad input, 3 the store could not be used"""
_EXAMPLES = """\
  assay runs
  assay runs --suite evals --status failed --since 7d
  assay runs export latest --into nightly
  assay runs export latest --format atif --out traces.jsonl
  assay runs delete 20261121-0908 --yes"""
_EXPORT_MORE = """\
DIR gets run.json, results.jsonl (a line per result: scores, answer, the whole trace), the files
of every workspace under the SHA-256 of what is in them, and manifests that name them.
With --format it is traces instead, a line for each cell: jsonl (rows with traces, which lose
nothing), atif (ATIF v1.7), chat (messages for training), otel (OpenTelemetry spans as OTLP JSON,
with what the graders gave). `assay grade` reads each of them again."""
_IMPORT_MORE = """\
Scores are taken as they are: whoever wrote the directory says what they are. Files are checked
against their digests. The run can be reported, compared and, where its cases are, graded again."""
_DELETE_MORE = """\
Results go for good, and with them the files of workspaces that no other run needs. Refused while
a process is at work on the run."""

Status: TypeAlias = Literal["passed", "failed", "errors", "unfinished"]
_STATUSES: tuple[Status, ...] = ("passed", "failed", "errors", "unfinished")
_PAGE = 50


def add(parser: ArgumentParser) -> None:
    """Add the commands below ``assay runs``."""
    explain(parser, _MORE, _EXAMPLES)
    action = actions(parser, add_json)
    _add_list(action("list", "list runs, newest first", "", _EXAMPLES))
    export = action("export", "write a run as files that anything can read", _EXPORT_MORE)
    export.add_argument("run", metavar="RUN")
    export.add_argument("--into", metavar="DIR", help="a new directory; the run's id by default")
    export.add_argument(
        "--format",
        choices=("assay", "jsonl", "atif", "chat", "otel"),
        default="assay",
        help="assay (the default) is a directory; the others are a file of traces, a line per cell",
    )
    export.add_argument(
        "--out", metavar="FILE", help="with another format: where; stdout if not given"
    )
    export.add_argument("--no-files", action="store_true", help="results only, no workspaces")
    import_ = action("import", "store a run that was exported", _IMPORT_MORE)
    import_.add_argument("path", metavar="DIR")
    delete = action("delete", "delete runs", _DELETE_MORE)
    delete.add_argument("runs", nargs="+", metavar="RUN")
    delete.add_argument("--keep-files", action="store_true", help="leave the files of workspaces")
    add_yes(delete)


def _add_list(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--suite", default="", metavar="TEXT", help="only runs of paths that have it in them")
    add("--name", default="", metavar="TEXT", help="only runs whose label has it in it")
    add("--since", type=moment, metavar="WHEN", help="only newer ones: 2026-11-21, 12h, 7d, 4w")
    add("--status", choices=_STATUSES, help="only those that ended so")
    add("--limit", type=positive, default=20, metavar="N", help="how many; 20 by default")


def run(given: Namespace) -> int:
    """Run one of the actions."""
    with Store.open(state_home()) as store:
        return {"list": _list, "export": _export, "import": _import, "delete": _delete}[
            given.action
        ](given, store)


@dataclass(frozen=True, slots=True)
class _Listed:
    """A run with how its cells ended."""

    run: RunRecord
    counts: Counts

    @property
    def status(self) -> Status:
        if not self.run.finished:
            return "unfinished"
        if self.counts.errors or not self.counts.passed + self.counts.failed:
            return "errors"
        return "failed" if self.counts.failed else "passed"

    def to_dict(self) -> dict[str, Json]:
        run, counts = self.run, self.counts
        return {
            "id": run.id,
            "label": run.label,
            "created_at": run.created_at,
            "suite": run.suite,
            "assay": run.assay,
            "status": self.status,
            "planned": run.planned,
            "finished": run.finished,
            "graded": counts.passed + counts.failed,
            "passed": counts.passed,
            "failed": counts.failed,
            "errors": counts.errors,
            "skipped": counts.skipped,
        }


def _list(given: Namespace, store: Store) -> int:
    found: list[_Listed] = []
    more = False
    for listed in _matching(given, store):
        more = len(found) == given.limit
        if more:
            break
        found.append(listed)
    if given.json:
        print(json.dumps({"runs": [listed.to_dict() for listed in found], "more": more}))
        return 0
    page = page_on(sys.stdout)
    if not found:
        is_empty = not store.runs(1)
        page.line("no runs yet; start with: assay demo" if is_empty else "no run is like that")
        return 0
    rows = [_row(listed) for listed in found]
    page.table(("run", "label", "of", "status", "cells"), rows, left=5)
    if more:
        page.line((f"older ones: --limit {2 * given.limit}", "dim"))
    return 0


def _row(listed: _Listed) -> tuple[str, ...]:
    counts, run = listed.counts, listed.run
    ended = [f"{counts.passed:,} passed"]
    ended += [f"{counts.failed:,} failed"] if counts.failed else []
    ended += [count(counts.errors, "error")] if counts.errors else []
    ended += [f"{counts.skipped:,} skipped"] if counts.skipped else []
    missing = f" of {run.planned:,}" if counts.total < run.planned else ""
    names = (one_line(run.id, 40), one_line(run.label, 24), one_line(listed.run.suite, 32))
    return (*names, listed.status, ", ".join(ended) + missing)


def _matching(given: Namespace, store: Store) -> Iterator[_Listed]:
    """The runs that options ask for, newest first."""
    seen = 0
    while page := store.runs(_PAGE, after=seen):
        seen += len(page)
        for run in page:
            if given.since is not None and moment(run.created_at) < given.since:
                return
            listed = _Listed(run, store.counts(run.id))
            if given.suite not in listed.run.suite or given.name not in run.label:
                continue
            if given.status in (None, listed.status):
                yield listed


def _export(given: Namespace, store: Store) -> int:
    from assay.store.exported import export_run

    run = store.run(given.run)
    if given.format != "assay":
        return _export_traces(given, store, run.id)
    if given.out is not None:
        raise InputError("--out goes with --format jsonl, atif, chat or otel", hint="--into DIR")
    target = given.into or run.id
    number = export_run(store, run.id, target, files=not given.no_files)
    if given.json:
        print(json.dumps({"run": run.id, "directory": target, "results": number}))
    else:
        print(f"{target}: {count(number, 'result')} of run {run.id}")
    return 0


def _export_traces(given: Namespace, store: Store, run_id: str) -> int:
    from assay.interop.traces import exported_traces
    from assay.reports.files import replacing

    if given.into is not None or given.no_files:
        raise InputError(
            f"--format {given.format} writes one file of traces",
            hint="leave out --into and --no-files",
        )
    lines = exported_traces(store, run_id, given.format)
    if given.out is None:
        if given.json:
            raise InputError("--json would mix with the traces", hint="give --out FILE")
        for line in lines:
            print(line)
        return 0
    number = 0
    with replacing(given.out) as file:
        for line in lines:
            file.write(f"{line}\n")
            number += 1
    if given.json:
        print(json.dumps({"run": run_id, "file": given.out, "traces": number}))
    else:
        print(f"{given.out}: {count(number, 'trace')} of run {run_id}")
    return 0


def _import(given: Namespace, store: Store) -> int:
    from assay.service.here import local_desk
    from assay.store.exported import import_run

    run = import_run(store, given.path)
    local_desk(store.database).note("import_run", {"run": run.id})
    if given.json:
        print(json.dumps({"run": run.id}))
    else:
        print(f"run {run.id} is stored: assay report {run.id}")
    return 0


def _delete(given: Namespace, store: Store) -> int:
    import asyncio

    from assay.service.here import ask, local_desk
    from assay.service.runs import delete_run

    desk = local_desk(store.database)
    runs = list({run.id: run for run in map(store.run, given.runs)}.values())
    ids = ", ".join(run.id for run in runs)
    results = count(sum(store.counts(run.id).total for run in runs), "result")
    require_yes(f"Delete {ids}, with {results}?", yes=given.yes)
    files = size = 0
    for run in runs:
        freed = asyncio.run(ask(delete_run, desk, run.id, keep_files=given.keep_files))
        files, size = files + freed.files, size + freed.bytes
    if given.json:
        deleted: list[Json] = [run.id for run in runs]
        print(json.dumps({"deleted": deleted, "freed": {"files": files, "bytes": size}}))
    else:
        print(f"deleted {ids}; freed {count(files, 'file')} of workspaces, {size:,} bytes")
    return 0
