"""``assay trainability``: whether a run's groups of trials would teach a trainer anything."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace

from assay.cli.options import RUN, add_json, explain, number_between, state_home
from assay.reports.figures import DASH, count, duration, percent, score
from assay.reports.page import Page, page_on
from assay.reports.plain import one_line
from assay.reports.trainability import ENDS, Trainability, floors_of, trainability
from assay.store.labels import Decisions, decided
from assay.store.runs import Store

_MORE = """\
Trainers that compare the trials of one task with each other (GRPO and its kin) learn from groups
whose rewards differ. A group is the trials of a case by one agent: run them with --trials.
Cells without a reward are left out, as a trainer must; they are never a 0.

exit status: 0 shown, 1 fewer groups teach than --at-least, 2 bad input"""
_EXAMPLES = """\
  assay run evals --trials 8 --model small
  assay trainability latest
  assay trainability latest --at-least 0.3 --json
  assay trainability latest --floor 20261123-064822-96c7"""
_WIDE = 32


def add(parser: ArgumentParser) -> None:
    """Say what ``assay trainability`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    option = parser.add_argument
    option("run", nargs="?", default="latest", metavar="RUN", help=f"{RUN} (the default)")
    option(
        "--at-least",
        type=number_between(0, 1, "of the groups"),
        metavar="SHARE",
        help="fail if a smaller share of the groups teaches anything",
    )
    option(
        "--tolerance",
        type=number_between(0, 1, "of a reward"),
        default=1e-6,
        metavar="X",
        help="rewards that differ by no more are equal; 0.000001 by default",
    )
    option(
        "--floor", metavar="RUN", help="a run of the same cases in which nothing is done, or little"
    )
    add_json(parser)


def run(given: Namespace) -> int:
    """Look at the run, and say what it could teach."""
    with Store.open(state_home()) as store:
        found = store.run(given.run)
        read = Decisions(store.database).all
        floors = None
        if given.floor is not None:
            floors = floors_of(decided(store.cells(store.run(given.floor).id), read))
        seen = trainability(
            decided(store.cells(found.id), read), tolerance=given.tolerance, floors=floors
        )
    is_enough = given.at_least is None or (seen.share or 0.0) >= given.at_least
    if given.json:
        print(json.dumps({"run": found.id, **seen.to_dict(), "passed": is_enough}))
    else:
        page = page_on(sys.stdout)
        page.line((one_line(found.label or found.id, 60), "bold"), (f"  {found.id}", "dim"))
        _show(page, seen)
        if not is_enough:
            page.line((f"fewer than {percent(given.at_least)} of the groups teach", "bold red"))
    return 0 if is_enough else 1


def _show(page: Page, seen: Trainability) -> None:
    sizes = ", ".join(f"{n:,} of {count(size, 'trial')}" for size, n in sorted(seen.trials.items()))
    page.line(f"{count(seen.groups, 'group')} of trials: {sizes or 'none'}")
    page.blank()
    for name, meaning in ENDS.items():
        number = seen.ends[name]
        share = percent(number / seen.groups) if seen.groups else ""
        style = "green" if name == "learnable" else "dim"
        page.line(
            (f"{name.replace('_', ' '):<10} {number:>6,} {share:>6}  ", style if number else "dim"),
            (meaning, "dim"),
        )
    page.blank()
    if seen.spread is not None:
        page.line(f"spread     median {score(seen.spread)} within the groups that teach")
    kept = f"{seen.ungraded:,} of {count(seen.cells, 'cell')}"
    page.line(f"no reward  {kept}, in {count(seen.ungraded_groups, 'group')}: left out, never a 0")
    if seen.flagged:
        page.line((f"flagged    {count(seen.flagged, 'cell')} with signs of tampering", "magenta"))
    if seen.unbeaten is not None:
        page.line(f"floor      {count(seen.unbeaten, 'group')} never beat it")
    if seen.seconds is not None:
        page.line(f"time       {_times(seen.seconds)} a cell")
    for name, times in seen.graders.items():
        page.line(f"           {_times(times)} of {one_line(name, 40)}")
    page.blank()
    most = max(seen.bins)
    for place, number in enumerate(seen.bins):
        bar = "█" * round(_WIDE * number / most) if most else ""
        low = place / len(seen.bins)
        page.line(f"{low:.1f}{DASH}{low + 0.1:.1f}  {bar or ('▏' if number else '')} {number:,}")
    if seen.ends["too_few"] == seen.groups and seen.groups:
        page.blank()
        page.line(("Next  ", "dim"), "assay run ... --trials 8", ("  for groups to compare", "dim"))


def _times(times: tuple[float, float]) -> str:
    half, most = times
    return f"p50 {duration(half)}, p95 {duration(most)}"
