"""``assay selftest`` and ``assay attack``: is a case worth being run?"""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.cli.judging import add_judging
from assay.cli.options import (
    INTERRUPTED,
    add_json,
    add_workers,
    cache_home,
    explain,
    positive,
    read_or_not,
    share,
    worker_count,
)
from assay.errors import InputError
from assay.eval.cheats import select_cheats
from assay.eval.proofs.attack import plan_attack
from assay.eval.proofs.proof import CaseProof, Proof
from assay.eval.proofs.selftest import plan_selftest
from assay.eval.proofs.trials import TrialPlan
from assay.eval.work import load_tasks
from assay.reports.figures import count
from assay.reports.page import TextPage, page_on
from assay.reports.proofs import SET
from assay.scoring.json_safe import Json
from assay.tasks.task import Task

if TYPE_CHECKING:
    from assay.documents import DocumentError
    from assay.eval.runner import OnCell


def _add_tasks(parser: ArgumentParser, nargs: str) -> None:
    add = parser.add_argument
    files = "case files, directories of cases, Python files of environments, or their rows"
    add("paths", nargs=nargs, metavar="PATH", help=files)
    add("--env", default="", metavar="FILE", help="the Python file or URL that rows belong to")
    only = "only this case or task"
    add("--case", "--task", action="append", default=[], metavar="ID", help=only)


def add_selftest(parser: ArgumentParser) -> None:
    """Say what ``assay selftest`` takes."""
    explain(
        parser,
        "No agent is run, and nothing is stored but what --out names. Exit status: 0 nothing is\n"
        "wrong, 1 a case grades wrong, 2 bad input, 3 something could not be tried, or no\n"
        "case has right work to try, 130 interrupted.",
        "  assay selftest evals/\n  assay selftest evals/ --case kit --repeats 5\n"
        "  assay selftest evals/ --out proofs.jsonl",
    )
    add = parser.add_argument
    _add_tasks(parser, "+")
    add("--repeats", type=positive, metavar="N", help="how often the graders run; 3 by default")
    kept = "keep there what is found of each case; the same command goes on after an interruption"
    add("--out", metavar="FILE", help=kept)
    add_workers(parser)
    add_judging(parser)
    add_json(parser)
    form = "print the report of each case in another form, an object a line: openenv (RFC 008)"
    add("--format", choices=("openenv",), metavar="FORMAT", help=form)


def add_attack(parser: ArgumentParser) -> None:
    """Say what ``assay attack`` takes."""
    explain(
        parser,
        "Nothing is stored. Exit status: 0 all cases hold, 1 a cheat passes, keeps itself\n"
        "from being graded or gets more than --max-reward, 2 bad input, 3 not everything\n"
        "could be tried, 130 interrupted.",
        "  assay attack evals/\n  assay attack evals/ --cheat in-process --max-reward 0.3\n"
        "  assay attack --list",
    )
    add = parser.add_argument
    _add_tasks(parser, "*")
    add("--cheat", action="append", default=[], metavar="ID", help="only this cheat or family")
    add("--max-reward", type=share, metavar="X", help="also fail where a cheat gets more")
    add("--list", action="store_true", help="show the library and play nothing")
    add_workers(parser)
    add_judging(parser)
    add_json(parser)


def run_selftest(given: Namespace) -> int:
    """Prove cases: right work gets everything, no work and known cheats do not."""
    from assay.reports.proofs import selftest_line

    if given.format and given.json:
        raise InputError("--format and --json are two forms of one report", hint="leave one out")
    unread: dict[str, DocumentError] = {}
    tasks = _selected(given, unread)
    plan = plan_selftest(tasks, repeats=given.repeats, unread=unread)
    proof = _run(_prove(plan, given), given.out or "")
    if proof is None:
        return INTERRUPTED
    if given.format:
        from assay.reports.openenv import openenv_code, openenv_reports

        reports = openenv_reports(proof)
        with read_or_not():
            print("\n".join(map(json.dumps, reports)))
        return openenv_code(reports)
    is_proven = proof.code == 0 and not any(case.is_untried for case in proof.cases)
    about: dict[str, Json] = {"proven": is_proven, "causes": proof.causes_dict()}
    return _tell(given, proof, about, selftest_line)


async def _prove(plan: TrialPlan, given: Namespace) -> Proof:
    """Prove what is not proven yet in the file that keeps it, if there is one."""
    workers = worker_count(given.workers)
    if not given.out:
        return await _try(plan, workers, "cells")
    from assay.eval.proofs.kept import KeptProofs

    with KeptProofs.opened(given.out, plan.tasks, given.repeats) as kept:
        left = replace(plan, tasks=[one for one in plan.tasks if one.slug not in kept.before])
        if kept.before:
            print(f"{count(len(kept.before), 'case')} from {given.out}", file=sys.stderr)
        found = await _try(left, workers, "cells", on_case=kept.add)
        proofs = {**kept.before, **{one.case: one for one in found.cases}}
    return Proof(tuple(proofs[name] for name in sorted(proofs)))


def run_attack(given: Namespace) -> int:
    """Play the library of cheats against cases."""
    from assay.reports.proofs import attack_line, library_dict, render_library

    chosen = select_cheats(given.cheat)
    if given.list:
        _show(given, library_dict(chosen), lambda page: render_library(page, chosen))
        return 0
    plan = plan_attack(_selected(given), chosen, max_reward=given.max_reward)
    said = "--cheat ID or FAMILY plays some of them"
    work = _try(plan, worker_count(given.workers), "trials", said, "it gained nothing")
    proof = _run(work)
    if proof is None:
        return INTERRUPTED
    about: dict[str, Json] = {"holds": proof.code == 0, "max_reward": given.max_reward}
    return _tell(given, proof, about, attack_line)


def _tell(
    given: Namespace, proof: Proof, about: dict[str, Json], line: Callable[[Proof], str]
) -> int:
    from assay.reports.proofs import render_proof

    data = {**about, **proof.to_dict()}
    _show(given, data, lambda page: render_proof(page, proof, line))
    return proof.code


def _selected(given: Namespace, unread: dict[str, DocumentError] | None = None) -> list[Task]:
    if not given.paths:
        raise InputError("no case was named", hint="give a case file, or a directory of cases")
    with redirect_stdout(sys.stderr):  # for what files of one's own print when they are loaded
        return load_tasks(given.paths, env=given.env, only=given.case, unread=unread)


def _run(work: Coroutine[object, object, Proof], kept: str = "") -> Proof | None:
    """Run to the end; None where it was interrupted, with everything cleaned up."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        said = f"{kept} keeps what was found; the same command goes on" if kept else ""
        print(f"interrupted; {said or 'nothing was kept'}", file=sys.stderr)
        return None


async def _try(
    plan: TrialPlan,
    workers: int,
    things: str,
    said: str = "",
    passed: str = "",
    *,
    on_case: Callable[[CaseProof], None] = lambda _: None,
) -> Proof:
    """Run all trials; `said` is told of how many there are, `passed` of what a pass means."""
    from assay.reports.progress import Progress

    # What a grader of one's own prints must not end up inside the JSON.
    with redirect_stdout(sys.stderr), ExitStack() as stack:
        bars: list[Progress] = []  # one, once it is known how many trials there are
        page = page_on(sys.stderr)
        settling = stack.enter_context(ExitStack())
        staged: Progress | None = None
        if len(plan.tasks) > SET:
            note = "settling what they start from and how their tests are isolated"
            bar = Progress(page, len(plan.tasks), things="cases", note=lambda: note)
            staged = settling.enter_context(bar)

        def on_staged(can_begin: bool) -> None:  # noqa: FBT001 - what is told
            if staged is not None:
                staged.add(["pass" if can_begin else "error"])

        def begin(total: int) -> OnCell:
            settling.close()
            if said:
                cheats = total - len(plan.tasks)  # the other trial of a case does nothing
                print(f"{count(cheats, 'cheat')} to play; {said}", file=sys.stderr)
            note = f"passed: {passed}" if passed else ""
            bar = Progress(page, total, things=things, note=lambda: note)
            bars.append(stack.enter_context(bar))
            return bars[0].cell

        return await plan.go(
            cache=cache_home(),
            workers=workers,
            begin=begin,
            on_begin=lambda key: bars[-1].begin(key),  # noqa: PLW0108 - there is none yet
            on_staged=on_staged,
            on_case=on_case,
        )


def _show(given: Namespace, data: dict[str, Json], render: Callable[[TextPage], None]) -> None:
    with read_or_not():
        if given.json:
            print(json.dumps(data))
        else:
            render(page_on(sys.stdout))
