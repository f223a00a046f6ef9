"""``assay calibrate``: how far a grader agrees with people, measured and kept."""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace

from assay.cli.judging import add_judging, cost_so_far
from assay.cli.named_grader import in_order, named_grader
from assay.cli.options import (
    NOT_GRADED,
    add_db,
    add_json,
    add_trust_authors,
    explain,
    number_between,
    positive,
    share,
    store_place,
    store_there,
)
from assay.cli.rows import add_reading, rows_given
from assay.errors import InputError
from assay.eval.calibration.asking import Options, plan
from assay.eval.calibration.calibrate import calibrate
from assay.eval.calibration.card import Card
from assay.eval.calibration.labelled import LabelledSet, read_labelled
from assay.eval.calibration.stored import (
    collected,
    record_of,
    said_before,
    work_of,
)
from assay.reports.calibration_card import print_card, print_cards
from assay.reports.figures import apart, count
from assay.reports.page import page_on
from assay.reports.plain import one_line
from assay.reports.progress import Progress
from assay.scoring.json_safe import Json
from assay.store.cards import CardRecord, Cards
from assay.store.database import Database
from assay.store.labels import Labels
from assay.tasks.formats import has_rows

_MORE = """\
Any grader: a grader file (several are combined), a stored grader, or a function of a Python
file, which is trusted and runs in this process. LABELS are the rows that `assay grade` takes, with
what people said of each answer: true or false, PASS or FAIL, MET or UNMET, a number from 0 to 1,
or one of --levels; a list or a mapping of them where several people labelled. The grader never
sees a label. What it could not judge is counted apart, and is no FAIL. The card is kept with the
digest of the grader and shown beside its scores; it is stale as soon as anything of the grader
changes.

exit status: 0 measured, 1 kappa is below --min-kappa, 2 bad input, 3 it could not be measured,
130 interrupted; the same command then goes on"""
_EXAMPLES = """\
  assay calibrate judge.yaml labelled.jsonl
  assay calibrate judge.yaml labelled.jsonl --repeats 3 --attacks builtin --min-kappa 0.6
  assay calibrate helpful@2 labelled.jsonl --label human --cluster question_id --json
  assay calibrate judge.yaml
  assay calibrate cards
  assay calibrate cards latest"""


def add(parser: ArgumentParser) -> None:
    """Say what ``assay calibrate`` takes."""
    explain(parser, _MORE, _EXAMPLES)
    add = parser.add_argument
    add("grader", metavar="GRADER", help="graders.yaml, FILE.py, or KEY[@N] of a stored one")
    collected = "rows with labels; - for stdin; without them what `calibrate label` collected"
    add("labels", nargs="?", default="", metavar="LABELS", help=collected)
    add("--label", default="", metavar="FIELD", help="where the labels are; labels or label")
    add(
        "--levels",
        type=lambda text: tuple(name.strip() for name in text.split(",")),
        default=(),
        metavar="A,B,...",
        help="all levels, lowest first, where labels are levels: 1,2,3,4,5 or POOR,FAIR,GOOD",
    )
    add("--cluster", default="", metavar="FIELD", help="rows that share it are not independent")
    add(
        "--threshold",
        type=share,
        metavar="X",
        help="score that passes: the grader's own, else 1",
    )
    add(
        "--repeats",
        type=positive,
        default=1,
        metavar="K",
        help="ask about every row K times and show how often the verdict flips",
    )
    add("--attacks", default="", metavar="FILE", help="play attacks on failing answers; or builtin")
    add("--min-kappa", type=_KAPPA, metavar="X", help="fail below this agreement")
    add_reading(parser, may_skip=True)
    add_json(parser)
    add_db(parser, "of graders, labels and cards")
    add_trust_authors(parser)
    add_judging(parser)


_KAPPA = number_between(-1.0, 1.0, "a kappa, -1 to 1")
_STORED_FIELD = "label"
_BELOW = 1
_MOST_ERRORS = 0.1
"""Share of labelled rows that may have failed for there to be a verdict."""


def add_cards(parser: ArgumentParser) -> None:
    """Say what ``assay calibrate cards`` takes."""
    examples = "  assay calibrate cards\n  assay calibrate cards latest --json"
    explain(parser, "exit status: 0 shown, 2 bad input", examples)
    named = "show this card: its id, a grader's name, or latest"
    parser.add_argument("card", nargs="?", metavar="CARD", help=named)
    add_db(parser, "whose cards")
    add_json(parser)


def run_cards(given: Namespace) -> int:
    """List the calibration cards, or show one."""
    with Database.open(store_there()) as database:
        cards = Cards(database)
        if given.card is None:
            return _list(cards, given)
        return _print(cards.get(given.project, given.card), given, None)


def run(given: Namespace) -> int:
    """Calibrate a grader."""
    if given.labels:
        given.grader, given.labels = in_order(given.grader, given.labels)
    elif has_rows(given.grader):
        raise InputError(
            f"{given.grader} is a file of rows, and the grader is missing",
            hint=f"assay calibrate GRADER {shlex.quote(given.grader)}",
        )
    with Database.open(store_place() if given.labels else store_there()) as database:
        cards = Cards(database)
        labelled = _labelled(given, Labels(database))
        target = named_grader(given, database)
        options = Options.of(given.repeats, given.attacks, given.threshold)
        work = work_of(target, labelled)
        left = list(cards.unfinished(given.project, work))
        if left:
            print(f"resuming after {len(left):,} earlier judgements", file=sys.stderr)
        with (
            redirect_stdout(sys.stderr),
            _quiet(),
            Progress(
                page_on(sys.stderr),
                len(plan(labelled, options)),
                things="judgements",
                note=cost_so_far,
            ) as shown,
        ):
            found = asyncio.run(
                calibrate(
                    target,
                    labelled,
                    options,
                    earlier=left,
                    keep=lambda judged: cards.keep(given.project, work, judged),
                    on_done=shown.graded,
                )
            )
        if not found.coverage.compared:
            _tell_nothing(found)
            return NOT_GRADED
        if earlier := said_before(cards, given.project, found):
            cards.discard(given.project, work)
            print(
                f"all {found.cost.judgements:,} judgements came from the cache and say what card "
                f"{earlier.id} says: no new card is made",
                file=sys.stderr,
            )
            return _print(earlier, given, None)
        return _print(cards.add(given.project, record_of(found), work=work), given, found)


@contextmanager
def _quiet() -> Generator[None]:
    """Without the tracebacks that a server logs: failures are counted, with their causes."""
    log = logging.getLogger("assay.endpoint")
    was, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = was


def _labelled(given: Namespace, labels: Labels) -> LabelledSet:
    if not given.labels:
        name = given.label or _STORED_FIELD
        cluster, levels = given.cluster, given.levels
        return collected(labels, given.project, name, cluster=cluster, levels=levels)
    with rows_given(given, given.labels) as rows:
        read = read_labelled(
            rows.path,
            label=given.label,
            cluster=given.cluster,
            levels=given.levels,
            reading=rows.reading,
        )
        return replace(read, malformed=rows.left_out)


def _print(record: CardRecord, given: Namespace, fresh: Card | None) -> int:
    """Show a card; the exit status of `--min-kappa`."""
    card = Card.from_dict(record.body) if fresh is None else fresh
    decided = _verdict(card, getattr(given, "min_kappa", None))
    written: dict[str, Json] = {
        "id": record.id,
        "created_at": record.created_at,
        **card.to_dict(),
        "verdict": {"code": decided[0], "line": decided[1]},
    }
    if given.json:
        print(json.dumps(written))
    else:
        print_card(page_on(sys.stdout), card, record, verdict=decided)
    return decided[0]


def _verdict(card: Card, bar: float | None) -> tuple[int, str]:
    """The exit status, and the same in words. It is the estimate that has to reach the bar."""
    kappa, coverage = card.kappa, card.coverage
    if bar is None:
        return 0, ""
    asked = coverage.compared + coverage.errors
    if coverage.errors > _MOST_ERRORS * asked:
        told = f"{coverage.errors:,} of {asked:,} labelled rows could not be graded"
        return NOT_GRADED, f"no verdict: {told}, more than {_MOST_ERRORS:.0%}"
    if kappa.value is None:
        return _BELOW, f"kappa could not be measured, and should be at least {bar:g}"
    left, right = apart(kappa.value, bar)
    is_met = kappa.value >= bar - 1e-9
    words = "reaches" if is_met else "is below"
    between = "" if kappa.low is None else f" (interval {kappa.low:.2f} to {kappa.high:.2f})"
    return (0 if is_met else _BELOW), f"kappa {left}{between} {words} {right}"


def _tell_nothing(card: Card) -> None:
    coverage = card.coverage
    said = f"{count(coverage.errors, 'error')}, {coverage.skipped:,} skipped"
    said += f", {coverage.split:,} split, {coverage.unlabelled:,} unlabelled"
    print(f"error: nothing could be compared: {said}", file=sys.stderr)
    for cause, times in coverage.causes.items():
        print(f"  {count(times, 'time')}: {one_line(cause, 300)}", file=sys.stderr)


def _list(cards: Cards, given: Namespace) -> int:
    records = cards.newest(given.project)
    if given.json:
        rows: list[Json] = [
            {"id": one.id, "created_at": one.created_at, **one.body} for one in records
        ]
        print(json.dumps({"cards": rows}))
    else:
        print_cards(page_on(sys.stdout), records)
    return 0
