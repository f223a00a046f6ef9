"""The commands on stored things: which there are, what they ask for, and what is worth reading."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from assay.cli.stored_commands import Column, Item, Noun, Verb
from assay.cli.verbs import say_fields, to_minute
from assay.reports.figures import count
from assay.reports.page import TextPage
from assay.reports.plain import one_line, plain

if TYPE_CHECKING:
    from assay.service.graders import GraderDetail, GraderDiff
    from assay.service.site import MadeKey
    from assay.service.traces import TraceDetail
    from assay.store.catalog import GraderRecord, GraderVersion
    from assay.store.datasets import DatasetRecord


_ROWS = "Write the rows of a dataset, as JSON lines."
_SCORES = "Write the scores of a job, as JSON lines."
_OLD_SCORES = "all scores that belong to no job from before {before}"
_RUN_GOES = " with their results, and the files of workspaces that no other run needs"


def _flags(trace: Item) -> Iterator[str]:
    """What makes a trace unfit to be graded."""
    if trace["rewritten"]:
        yield f"{trace['rewritten']:,} rewritten"
    if trace["refused"]:
        yield f"{trace['refused']:,} refused"
    if not trace["gen_ai"]:
        yield "no gen_ai.*"


def _score(graded: Item) -> str:
    return graded["status"] if graded["score"] is None else f"{graded['score']:.4g}"


def _most(number: int | None) -> str:
    return "no limit" if number is None else f"{number:,}"


def _who(change: Item) -> str:
    who = change["by"] if change["key"] == "local" else f"{change['by']} ({change['key']})"
    return f"{who} {change['address']}".rstrip()


def _key_state(key: Item) -> str:
    if key["revoked_at"]:
        return f"revoked {to_minute(key['revoked_at'])}"
    until = f", expires {to_minute(key['expires_at'])}" if key["expires_at"] else ""
    return f"used {to_minute(key['last_used_at']) or 'never'}{until}"


def _run_status(run: Item) -> str:
    """How a run ended, or that it has not."""
    ends = run["ends"]
    if run["state"] != "finished":
        return "unfinished"
    if ends["errors"] or run["total"] == ends["skipped"]:
        return "errors"
    return "failed" if ends["failed"] else "passed"


def _run_cells(run: Item) -> str:
    ends = run["ends"]
    told = [f"{ends['passed']:,} passed"]
    told += [f"{ends[end]:,} {end}" for end in ("failed", "scored", "skipped") if ends[end]]
    told += [count(ends["errors"], "error")] if ends["errors"] else []
    missing = f" of {run['planned']:,}" if run["total"] < run["planned"] else ""
    return ", ".join(told) + missing


def _say_trace(_: TextPage, found: TraceDetail, __: Namespace) -> None:
    print(json.dumps(found.row, indent=2))


def _say_collected(page: TextPage, made: DatasetRecord, _: Namespace) -> None:
    page.line(f"{made.key}: {count(made.rows, 'row')}")


def _say_key(page: TextPage, made: MadeKey, _: Namespace) -> None:
    print(f"{made.token}\n")
    until = f", until {to_minute(made.expires_at)}" if made.expires_at else ""
    page.line(f"{made.id}  {made.role} of {made.project}: {one_line(made.name, 60)}{until}")
    page.line("The key is shown this once; keep it safe.")


def _say_locked(page: TextPage, grader: GraderRecord, _: Namespace) -> None:
    page.line(f"{grader.key} is {'locked' if grader.locked else 'open'}")


def _say_diff(page: TextPage, found: GraderDiff, given: Namespace) -> None:
    if found.diff:
        _say_text(page, found.diff, {"+": "green", "-": "red", "@": "cyan"})
    else:
        page.line("no difference" if given.older else "no difference, or no version before it")


def _say_text(page: TextPage, text: str, styles: Mapping[str, str]) -> None:
    """Show text that may be copied: no line of it is broken where it goes to a file or a pipe."""
    if not page.is_live:
        print(plain(text).removesuffix("\n"))
        return
    for line in plain(text).removesuffix("\n").split("\n"):
        page.line((line, styles.get(line[:1], "")))


def _say_grader(page: TextPage, found: GraderDetail, _: Namespace) -> None:
    latest, card = found.latest, found.calibration
    by = f" by {latest.created_by}" if latest.created_by else ""
    say_fields(
        page,
        {
            "key": found.key,
            "name": found.name if found.name != found.key else "",
            "project": found.project,
            "kind": latest.kind,
            "description": found.description,
            "feedback_key": found.feedback_key,
            "lock": "locked: no changes, no deletion" if found.locked else "open",
            "version": f"{latest.number}, {to_minute(latest.created_at)}{by}",
            "note": latest.note,
            "digest": latest.digest,
            "calibration": card.line
            if card
            else "none: assay calibrate measures the agreement with people",
        },
    )
    for warning in found.warnings:
        page.line(("warning ", "yellow"), warning)
    page.blank()
    _say_text(page, _definition(latest), {})


def _definition(version: GraderVersion) -> str:
    from assay.registry.files import definition_files

    files = definition_files(version)
    source = files.pop(f"{version.key}.py", None)
    return "".join(files.values()) + ("" if source is None else f"\n{source.rstrip()}\n")


COLUMNS: Mapping[str, Column] = {
    "a_minute": lambda project: _most(project["requests_per_minute"]),
    "asked": lambda job: f"{job['grader']}@{job['version']}",
    "at_once": lambda project: _most(project["gradings_at_once"]),
    "cells": _run_cells,
    "done": lambda job: f"{job['done']:,} of {job['total']:,}, {count(job['errors'], 'error')}",
    "ended": _run_status,
    "flags": lambda trace: ", ".join(_flags(trace)),
    "from": lambda score: score["job"] or score["source"],
    "lock": lambda grader: "locked" if grader["locked"] else "",
    "score": lambda score: _score(score["graded"]),
    "to": lambda change: " ".join(f"{n}={v}" for n, v in change["what"].items() if v != ""),
    "used": _key_state,
    "who": _who,
    "whole": lambda trace: "whole" if trace["whole"] else "not whole",
    "why": lambda score: score["graded"]["error"] or score["graded"]["reason"],
    "words": lambda grader: grader["description"] or grader["name"],
}
"""Columns that are more than a field."""

NOUNS: Mapping[str, Noun] = {
    "datasets": Noun(
        file="datasets",
        more="rows that a server or the Python client stored",
        verbs={
            "list": Verb("list_datasets", "key rows digest made=created_at"),
            "show": Verb("show_dataset"),
            "export": Verb("list_rows", about=_ROWS, lines="rows", part="data"),
            "delete": Verb("delete_dataset", first="show_dataset", question=" with all rows"),
        },
    ),
    "traces": Noun(
        file="traces",
        more="what OpenTelemetry exporters sent; collect makes a dataset of those with gen_ai.*",
        verbs={
            "list": Verb(
                "list_traces", "trace=id name spans state=whole flags last_span=updated_at"
            ),
            "show": Verb("show_trace", says=_say_trace),
            "collect": Verb("collect_traces", says=_say_collected),
            "delete": Verb(
                "delete_trace",
                first="show_trace",
                question=" with all spans",
                instead=("before", "delete_traces"),
            ),
        },
    ),
    "jobs": Noun(
        file="jobs",
        more="a stored dataset graded by a stored grader; servers and the Python client begin them",
        verbs={
            "list": Verb("list_jobs", "job=id grader=asked dataset status rows=done by=created_by"),
            "show": Verb("show_job"),
            "export": Verb("list_results", about=_SCORES, lines="scores", part="record"),
            "cancel": Verb("cancel_job"),
            "delete": Verb("delete_job", first="show_job", question=" with all scores"),
        },
    ),
    "scores": Noun(
        file="scores",
        more="what graders gave to requests, and what people wrote in; those of a job go with it",
        verbs={
            "list": Verb("list_scores", "item grader=graded.grader score why from made=created_at"),
            "delete": Verb("delete_scores", question=_OLD_SCORES),
        },
    ),
    "projects": Noun(
        file="site",
        in_project=False,
        more="graders, datasets, jobs and scores of their own; limits hold on each server",
        verbs={
            "list": Verb("list_projects", "project=key name a_minute at_once made=created_at"),
            "create": Verb("create_project"),
            "limit": Verb(
                "limit_project",
                about="Limit what a project may ask of each server.",
                keeps="show_project",
                names={"requests_per_minute": "per-minute", "gradings_at_once": "at-once"},
            ),
        },
    ),
    "audit": Noun(
        file="site",
        in_project=False,
        empty="nothing was changed yet",
        more="every change, by a server's keys or by the user of a command line, newest first",
        verbs={
            "list": Verb(
                "list_all_changes",
                "time who where=project did=operation to",
                since="time",
                instead=("project", "list_changes"),
            ),
        },
    ),
    "keys": Noun(
        file="site",
        in_project=False,
        empty="no keys yet; make one with: assay server create key NAME",
        more="what lets others in: viewers read, editors store and grade, admins also make keys",
        verbs={
            "list": Verb("list_keys", "id begins_with=prefix role project name state=used"),
            "create": Verb(
                "create_key",
                says=_say_key,
                names={"days": "expires"},
                defaults={"role": "editor", "project": "default"},
            ),
            "delete": Verb("revoke_key", about="Revoke a key."),
        },
    ),
    "graders": Noun(
        file="graders",
        exits="""\
0 done, 1 invalid or not passed, 2 bad input, 3 something could not be graded,
130 interrupted""",
        empty="no graders; start with: assay graders create --help",
        more="""\
A grader has a key, versions that never change, and a lock. What is stored was validated before;
scores say which version gave them. `assay validate` checks files of graders, and
`assay grade DATA KEY` grades with a stored one.""",
        examples="""\
  assay graders create exact exact.py --description "Equal, but for white space"
  assay graders list exact           # its versions
  assay graders show exact@1
  assay graders diff exact           # the newest version against the one before
  assay graders diff exact@3 --from 1
  assay graders export --out graders && git add graders""",
        verbs={
            "list": Verb(
                "list_graders",
                "key kind=latest.kind version=latest.number lock description=words",
                names={"query": "search"},
                one=Verb(
                    "list_versions",
                    "version=number made=created_at by=created_by kind digest note",
                    about="only the versions of this grader",
                ),
            ),
            "show": Verb("show_grader", says=_say_grader, numbered="version", without=("version",)),
            "diff": Verb("diff_versions", says=_say_diff, numbered="newer", without=("newer",)),
            "lock": Verb("lock_grader", says=_say_locked, names={"locked": "unlock"}),
            "delete": Verb("delete_grader"),
        },
    ),
    "runs": Noun(
        file="runs",
        in_project=False,
        empty="no runs yet; start with: assay demo",
        more="""\
Without an action it lists them; `assay runs list --help` says by what they are found.
`assay runs show RUN` is `assay report RUN`, and `assay compare RUN RUN` shows two.
RUN is a run's id, a prefix of it, its name, or latest.""",
        examples="""\
  assay runs
  assay runs --search evals --status failed --since 7d
  assay runs export latest --out nightly
  assay runs export latest --format atif --out traces.jsonl
  assay runs delete 20261121-0908 --yes""",
        verbs={
            "list": Verb(
                "list_runs",
                "run=id label of=suite status=ended cells",
                since="created_at",
                only=(_run_status, ("passed", "failed", "errors", "unfinished")),
            ),
            "delete": Verb("delete_run", first="show_run", question=_RUN_GOES),
        },
    ),
}
"""The nouns of the command line."""

OF_SERVER = ("datasets", "traces", "jobs", "scores", "projects", "keys", "audit")
"""The nouns below ``assay server``, where each deed is one command for all of them."""

DEEDS: Mapping[str, str] = {
    "list": "list things",
    "show": "show one thing",
    "export": "write the rows of a dataset, or the scores of a job, as JSON lines",
    "delete": "delete things; a key is revoked, and stays in the list",
    "create": "make a project or an API key, which is shown this once",
    "limit": "limit what a project may ask of each server",
    "collect": "make a dataset of the traces that are whole",
    "cancel": "end a job; the scores that it has stay",
}
"""What is done with them."""

SERVER = (
    "".join(f"  {noun:<9} {NOUNS[noun].more}\n" for noun in OF_SERVER)
    + """
exit status: 0 done, 2 bad input, 3 the store could not be used"""
)
SERVER_EXAMPLES = """\
  assay server list jobs --status failed
  assay server show dataset qa
  assay server export dataset qa --out qa.jsonl && assay grade qa.jsonl graders.yaml
  assay server export job 20261121-090830-ab12cd34 > scores.jsonl
  assay server collect traces monday --clear
  assay server delete traces --before 7d --yes
  assay server delete scores --before 2026-11-21 --grader review@3 --project qa --yes
  assay server create key ci --role editor --expires 90d
  assay server create key ops --role admin --project '*'
  assay server create project qa --name "Quality"
  assay server limit project qa --per-minute 600 --at-once none
  assay server list audit --project qa --since 7d"""
