"""``assay runs``: what was run, newest first; export, import and deletion."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from assay.cli import stored_commands
from assay.cli.options import named_store, store_place, store_there, write_lines
from assay.errors import InputError
from assay.reports.figures import count
from assay.store.runs import Store

_EXPORT_MORE = """\
DIR gets run.json, results.jsonl (a line per result: scores, answer, the whole trace), the files
of every workspace under the SHA-256 of what is in them, and manifests that name them.
With --format it is traces instead, a line for each cell: jsonl (rows with traces, which lose
nothing), atif (ATIF v1.7), chat (messages for training), otel (OpenTelemetry spans as OTLP JSON,
with what the graders gave). `assay grade` reads each of them again."""
_IMPORT_MORE = """\
Scores are taken as they are: whoever wrote the directory says what they are. Files are checked
against their digests. The run can be reported, compared and, where its cases are, graded again."""


def add(parser: ArgumentParser) -> None:
    """Add the commands below ``assay runs``."""
    action = stored_commands.add_verbs(parser, "runs")
    export = action("export", "write a run as files that anything can read", _EXPORT_MORE)
    export.add_argument("run", metavar="RUN")
    export.add_argument(
        "--format",
        choices=("assay", "jsonl", "atif", "chat", "otel"),
        default="assay",
        help="assay (the default) is a directory; the others are a file of traces, a line per cell",
    )
    export.add_argument(
        "--out",
        metavar="DIR|FILE",
        help="a new directory, the run's id by default; of another format a file, else stdout",
    )
    export.add_argument("--no-files", action="store_true", help="results only, no workspaces")
    import_ = action("import", "store a run that was exported", _IMPORT_MORE)
    import_.add_argument("path", metavar="DIR")


def run(given: Namespace) -> int:
    """Run one of the actions."""
    if stored_commands.is_verb(given):
        return stored_commands.run(given)
    if given.action == "export":
        with Store.open(store_there()) as store:
            return _export(given, store)
    with Store.open(store_place()) as store:
        return _import(given, store)


def _export(given: Namespace, store: Store) -> int:
    from assay.store.exported import export_run

    run = store.run(given.run)
    if given.format != "assay":
        return _export_traces(given, store, run.id)
    target = given.out or run.id
    number = export_run(store, run.id, target, files=not given.no_files)
    if given.json:
        print(json.dumps({"run": run.id, "directory": target, "results": number}))
    else:
        print(f"{target}: {count(number, 'result')} of run {run.id}")
    return 0


def _export_traces(given: Namespace, store: Store, run_id: str) -> int:
    from assay.interop.traces import exported_traces

    if given.no_files:
        raise InputError(f"--format {given.format} has no files", hint="leave out --no-files")
    if given.out is None and given.json:
        raise InputError("--json would mix with the traces", hint="give --out FILE")
    number = write_lines(exported_traces(store, run_id, given.format), given.out)
    if given.out is None:
        return 0
    if given.json:
        print(json.dumps({"run": run_id, "file": given.out, "traces": number}))
    else:
        print(f"{given.out}: {count(number, 'trace')} of run {run_id}")
    return 0


def _import(given: Namespace, store: Store) -> int:
    from assay.service.local import local_desk
    from assay.store.exported import import_run

    run = import_run(store, given.path)
    local_desk(store.database).note("import_run", {"run": run.id})
    if given.json:
        print(json.dumps({"run": run.id}))
    else:
        print(f"run {run.id} is stored: assay report {run.id}{named_store()}")
    return 0
