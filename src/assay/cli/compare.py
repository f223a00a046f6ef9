"""``assay compare``: two runs, or two agents of one, cell by cell."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from assay.cli.options import (
    BY,
    RUN,
    add_db,
    add_json,
    check_targets,
    explain,
    field,
    share,
    store_there,
)
from assay.errors import InputError
from assay.reports.comparing.compared_cells import are_same, side_of
from assay.reports.comparing.pairing import compare
from assay.scoring.records import as_json
from assay.store.database import Database
from assay.store.runs import Store

_MORE = """\
Cells are paired by case and trial; harness and model have to be the same, too, unless each side
has only one. The difference is the mean over cases, with its 95 % interval. What could not be
graded or was skipped is counted, and never a 0.

exit status: 0 compared, 1 the mean reward dropped by more than --max-drop, 2 bad input,
3 nothing to compare, or with --max-drop: a cell that was graded before has no reward now"""
_EXAMPLES = """\
  assay compare main latest                       # a run named main, and the newest
  assay compare main latest --max-drop 0.02       # for CI
  assay compare latest --model small --model large
  assay compare latest --harness mine --harness theirs --html compare.html"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay compare`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    option = parser.add_argument
    option("before", metavar="RUN", help=RUN)
    option(
        "after",
        nargs="?",
        metavar="RUN",
        help="the run that is compared with it; without one, agents of the first",
    )
    for part in ("harness", "model"):
        option(
            f"--{part}",
            action="append",
            default=[],
            metavar="NAME",
            help=f"only this {part}; given twice: that of the first side, that of the second",
        )
    option("--case", action="append", default=[], metavar="ID", help="only this case")
    option(
        "--max-drop",
        type=share,
        metavar="X",
        help="exit with 1 if the mean reward, as measured, dropped by more than X",
    )
    option("--by", type=field, metavar="FIELD", help=BY)
    option("--all", action="store_true", help="open every case that changed")
    option("--html", metavar="FILE", help="also write it as one HTML file")
    add_db(parser)
    add_json(parser)


def run(given: Namespace) -> int:
    """Compare two runs.

    Raises:
        InputError: For an unknown run, agent or case, or where nothing is there to compare.
    """
    check_targets((given.html,), inputs=())
    harnesses, models = _two("harness", given.harness), _two("model", given.model)
    if given.after is None and not any(one != other for one, other in (harnesses, models)):
        raise InputError(
            "one run, and nothing to compare it with",
            hint=f"name another run; or two agents: assay compare {given.before} "
            "--model A --model B",
        )
    with Database.open(store_there()) as database:
        runs, refs = Store(database), (given.before, given.after or given.before)
        before, after = (
            side_of(
                database,
                runs.run(ref),
                harness=harness,
                model=model,
                cases=given.case,
                by=given.by or "",
            )
            for ref, harness, model in zip(refs, harnesses, models, strict=True)
        )
        if are_same(before, after):
            raise InputError(
                f"{given.before} and {given.after} are the same run, {before.run.id}",
                hint="a run is no better and no worse than itself; `assay runs` lists others",
            )
        found = compare(before, after, max_drop=given.max_drop)
    is_gate = given.max_drop is not None
    if given.html:
        from assay.reports.comparing.html import write_comparison_html

        write_comparison_html(given.html, found, is_gate=is_gate)
    if given.json:
        print(json.dumps(as_json(found)))
        return found.code
    from assay.reports.comparing.page import render_comparison
    from assay.reports.page import page_on

    shown = None if given.all else 5
    render_comparison(page_on(sys.stdout), found, is_gate=is_gate, shown=shown)
    return found.code


def _two(part: str, names: Sequence[str]) -> tuple[str | None, str | None]:
    """What an option says of each side; None for everything."""
    if len(names) > 2:
        raise InputError(f"--{part} was given {len(names)} times", hint="once, or for each side")
    return (names[0], names[-1]) if names else (None, None)
