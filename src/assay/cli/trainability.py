"""``assay runs trainability``: whether a run's groups of trials would teach a trainer anything."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import cast

from assay.cli.options import (
    NOT_GRADED,
    RUN,
    add_db,
    add_json,
    explain,
    is_parts,
    named_store,
    share,
    store_there,
)
from assay.errors import InputError
from assay.reports.figures import DASH, duration, percent
from assay.reports.page import TextPage, page_on
from assay.reports.plain import one_line
from assay.reports.trainability import Times, Trainability, trainability_of, trainability_of_parts
from assay.scoring.json_safe import Json
from assay.scoring.records import as_json
from assay.store.runs import Store

_MORE = """\
Trainers that compare the trials of one task with each other (GRPO and its kin) learn from groups
whose rewards differ. A group is the trials of a case by one agent: run them with --trials. Of the
rows that `assay grade` graded it is those whose field `group` is the same: --map group=prompt_id.
Cells without a reward are left out, as a trainer must; they are never a 0.

exit status: 0 shown, 1 fewer groups teach than --at-least, 2 bad input, 3 no cell has a reward"""
_EXAMPLES = """\
  assay run evals --trials 8 --model small
  assay runs trainability latest
  assay runs trainability latest --at-least 0.3 --json
  assay runs trainability latest --floor 20261123-064822-96c7
  assay grade samples.jsonl graders.yaml --map group=prompt_id; assay runs trainability"""
_WIDE = 32


def add(parser: ArgumentParser) -> None:
    """Say what ``assay runs trainability`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    option = parser.add_argument
    option(
        "run",
        nargs="?",
        default="latest",
        metavar="RUN",
        help=f"{RUN} (the default); or a directory that `assay grade --out` wrote",
    )
    option(
        "--at-least",
        type=share,
        metavar="SHARE",
        help="fail if a smaller share of the groups teaches anything",
    )
    option(
        "--floor", metavar="RUN", help="a run of the same cases in which nothing is done, or little"
    )
    add_db(parser)
    add_json(parser)


def run(given: Namespace) -> int:
    """Look at the run, and say what it could teach.

    Raises:
        InputError: For an unknown run, parts that are damaged, or a floor of another kind.
    """
    if is_parts(given.run):
        return _run_of_parts(given)
    with Store.open(store_there()) as store:
        found = store.run(given.run)
        floor = store.run(given.floor).id if given.floor is not None else ""
        seen = trainability_of(store, found.id, floor=floor)
    label = one_line(found.label, 60)
    return _conclude(given, seen, found.id, label, are_rows="file" in found.config)


def _run_of_parts(given: Namespace) -> int:
    if given.floor is not None and not is_parts(given.floor):
        raise InputError(
            f"{given.floor} is no directory of parts, and {given.run} is one",
            hint="grade the rows of the floor with --out DIR/, too",
        )
    floor = None if given.floor is None else Path(given.floor)
    seen = trainability_of_parts(Path(given.run), floor=floor)
    return _conclude(given, seen, one_line(given.run, 200), "", are_rows=True)


def _conclude(
    given: Namespace, seen: Trainability, name: str, label: str, *, are_rows: bool
) -> int:
    is_graded = seen.ungraded < seen.cells
    is_enough = is_graded and (seen.learnable_share or 0.0) >= (given.at_least or 0.0)
    if given.json:
        print(json.dumps({"passed": is_enough, **cast("dict[str, Json]", as_json(seen))}))
    else:
        page = page_on(sys.stdout)
        page.line((f"{label}  ", "bold") if label else "", (name, "dim" if label else "bold"))
        page.line(seen.sizes)
        if is_graded:
            _show(page, seen, are_rows=are_rows)
        else:
            page.line(("no cell has a reward: nothing can be learned from this run", "bold red"))
            page.line(
                ("Next  ", "dim"), f"assay report {name}{named_store()}", ("  says why", "dim")
            )
        if is_graded and not is_enough:
            page.line((f"fewer than {percent(given.at_least)} of the groups teach", "bold red"))
    if not is_graded:
        return NOT_GRADED
    return 0 if is_enough else 1


def _show(page: TextPage, seen: Trainability, *, are_rows: bool) -> None:
    page.blank()
    for end in seen.ends:
        share = percent(end.share) if end.share is not None else ""
        style = "green" if end.name == "learnable" else "dim"
        page.line(
            (
                f"{end.name.replace('_', ' '):<10} {end.groups:>6,} {share:>6}  ",
                style if end.groups else "dim",
            ),
            (end.meaning, "dim"),
        )
    page.blank()
    for line in seen.lines:
        page.line((f"{line.label:<11}{line.text}", "magenta" if line.label == "flagged" else ""))
    if seen.seconds is not None:
        page.line(f"time       {_times(seen.seconds)} a cell")
    for times in seen.graders:
        page.line(f"           {_times(times)} of {one_line(times.name, 40)}")
    page.blank()
    most = max(bar.count for bar in seen.rewards)
    for one in seen.rewards:
        bar = "█" * round(_WIDE * one.count / most) if most else ""
        page.line(
            f"{one.low:.1f}{DASH}{one.high:.1f}  {bar or ('▏' if one.count else '')} {one.count:,}"
        )
    if seen.ends[-1].groups == seen.groups and seen.groups:
        page.blank()
        command = "assay grade ... --map group=FIELD" if are_rows else "assay run ... --trials 8"
        page.line(("Next  ", "dim"), command, ("  for groups to compare", "dim"))


def _times(times: Times) -> str:
    return f"p50 {duration(times.p50)}, p95 {duration(times.p95)}"
