"""``assay runs promote``: keep the work of a cell as a recording of its case."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace

from assay.cli.options import RUN, add_db, add_json, explain, positive, store_there
from assay.eval.promote import cell_of, play_command, promote
from assay.reports.figures import count
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json
from assay.store.runs import Store

_MORE = """\
The answer, the whole trace and the files that the agent changed go to recordings/NAME beside the
case, where the harness `replay` plays them: the same work is graded again, and no model is asked.
A recording named cheat*, bad*, partial* or wrong* is one that `assay selftest` expects to fail;
the one named reference has to score 1.0.

exit status: 0 written, 2 bad input, 3 what was kept cannot be read"""
_EXAMPLES = """\
  assay runs promote latest fix-sum --model small --name small-1
  assay runs promote latest fix-sum --trial 3 --name bad-guess      # selftest: must not pass
  assay run evals/fix-sum --harness replay --model small-1"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay runs promote`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    option = parser.add_argument
    option("run", metavar="RUN", help=RUN)
    option("case", metavar="CASE", help="the case's id")
    option("--harness", metavar="NAME", help="of several agents: the one of this harness")
    option("--model", metavar="NAME", help="of several agents: the one of this model")
    option("--trial", type=positive, metavar="N", help="of several trials: this one")
    option("--name", required=True, metavar="NAME", help="name of the recording")
    option("--force", action="store_true", help="replace a recording of that name")
    add_db(parser)
    add_json(parser)


def run(given: Namespace) -> int:
    """Write the recording, and say how it is played."""
    with Store.open(store_there()) as store:
        found = store.run(given.run)
        agent = {"harness": given.harness, "model": given.model, "trial": given.trial}
        cell = cell_of(store, found.id, given.case, **agent)
        done = promote(store, cell, given.name, force=given.force)
    for one in done.left_out:
        print(f"left out: {one_line(one.path)}: {one.why}", file=sys.stderr)
    play = play_command(cell, given.name)
    if given.json:
        left_out: list[Json] = [one.path for one in done.left_out]
        counts: dict[str, Json] = {"files": done.files, "deleted": done.deleted}
        print(json.dumps({"recording": done.directory, **counts, "left_out": left_out}))
        return 0
    print(
        f"{done.directory}: {count(done.files, 'file')} changed, {done.deleted:,} deleted\n"
        f"play it:  {play}"
    )
    return 0
