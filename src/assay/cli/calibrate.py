"""``assay calibrate``: how far a grader agrees with people, measured and kept."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from argparse import Namespace
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from typing import Self

from rich.console import Console

from assay.cli.judging import cost_so_far
from assay.cli.named_grader import named_grader
from assay.cli.options import check_targets, state_home
from assay.cli.report_errors import NOT_GRADED
from assay.errors import InputError
from assay.eval.calibration.attacks import BUILT_IN, CONTROLS, read_attacks
from assay.eval.calibration.calibrate import calibrate
from assay.eval.calibration.card import Card
from assay.eval.calibration.items import Item, item_of, read_items
from assay.eval.calibration.labelled import LabelledSet, labelled_set, read_labelled
from assay.eval.calibration.models import asked_again
from assay.eval.calibration.plan import Options, plan
from assay.reports.calibration_card import print_card, print_cards
from assay.reports.figures import apart, duration
from assay.reports.files import replacing
from assay.reports.plain import one_line
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.store.cards import CardRecord, Cards
from assay.store.database import Database
from assay.store.labels import LabelledItem as StoredItem
from assay.store.labels import LabelRecord, Labels

__all__ = ["calibrate_grader"]

_STORED_FIELD = "label"
_BELOW = 1
_MOST_ERRORS = 0.1
"""Share of labelled rows that may have failed for there to be a verdict."""


def calibrate_grader(given: Namespace) -> int:
    """Calibrate a grader, or show the cards that there are.

    Returns:
        The exit status.

    Raises:
        InputError: For a grader or labels that cannot be used.
    """
    with Database.open(given.db or state_home()) as database:
        cards = Cards(database)
        if given.list:
            return _list(cards, given)
        if given.show:
            return _print(cards.get(given.project, given.show), given, None)
        if not given.grader or not (given.labels or given.labels_from_store):
            raise InputError(
                "a grader and labels are needed",
                hint="assay calibrate GRADER LABELS.jsonl, or GRADER --labels-from-store",
            )
        inputs = [one for one in (given.grader, given.labels, given.attacks) if one]
        check_targets((given.out,), inputs=inputs)
        labelled = _labelled(given, Labels(database))
        target = named_grader(given, database)
        options = _options(given)
        if target.kind == "pairwise":  # it asks both orders itself, and says what came of each
            options = replace(options, swap="")
        work = f"{target.digest}:{labelled.digest}"
        keep = _Kept(cards, given.project, work, is_anew=given.anew)
        console = Console(stderr=True, highlight=False)
        with (
            redirect_stdout(sys.stderr),
            _quiet(),
            _Progress(console, len(plan(labelled, options))) as shown,
        ):
            found = asyncio.run(
                calibrate(target, labelled, options, keep, again=asked_again, on_done=shown.done)
            )
        record = CardRecord(
            grader=found.grader,
            digest=found.digest,
            alias=found.alias,
            labels=found.labels.digest,
            body=found.to_dict(),
        )
        if not found.coverage.compared:
            _tell_nothing(found)
            return NOT_GRADED
        return _print(cards.add(given.project, record, work=work), given, found)


@contextmanager
def _quiet() -> Generator[None]:
    """Without the tracebacks that a server logs: failures are counted, with their causes."""
    log = logging.getLogger("assay.endpoint")
    was, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = was


def _options(given: Namespace) -> Options:
    attacks = ()
    if given.attacks:
        attacks = BUILT_IN if given.attacks == "builtin" else read_attacks(given.attacks)
    return Options(
        repeats=given.repeats,
        swap=given.swap,
        attacks=attacks,
        attacks_from=given.attacks,
        controls=CONTROLS if given.attacks else (),
        threshold=given.threshold,
        confidence=given.confidence,
        seed=given.seed,
        unlabelled=given.unlabelled,
    )


def _labelled(given: Namespace, labels: Labels) -> LabelledSet:
    if not given.labels_from_store:
        return read_labelled(
            given.labels,
            label=given.label,
            cluster=given.cluster,
            levels=given.levels,
            limit=given.limit,
        )
    name = given.label or _STORED_FIELD
    if given.labels:
        current = labels.current(given.project, name)
        items = read_items(given.labels, label=given.label)
        rows = ((item, _said(current.get(item.digest, {}))) for item in items)
    else:
        rows = (
            (_stored(one, name), _said(one.labels)) for one in labels.items(given.project, name)
        )
    read = [row for n, row in enumerate(rows) if given.limit is None or n < given.limit]
    if not any(value for _, value in read):
        raise InputError(
            f"the store has no labels {name!r} of these rows in the project {given.project!r}",
            hint="`assay label DATA.jsonl` collects them; --label names another field",
        )
    return labelled_set(
        read,
        name=given.labels or "the store",
        label=name,
        cluster=given.cluster,
        levels=given.levels,
    )


def _stored(one: StoredItem, label: str) -> Item:
    """The item of a row that the store has, by the digest under which it was labelled."""
    item = item_of(one.row, label=label)
    return replace(item, id=item.id if "id" in one.row else one.digest[:8], digest=one.digest)


def _said(labels: Mapping[str, LabelRecord]) -> Json:
    return {rater: record.label for rater, record in labels.items()}


@dataclass(slots=True)
class _Kept:
    """Judgements in the store, as `Keep`."""

    cards: Cards
    project: str
    work: str
    is_anew: bool

    def earlier(self) -> Iterator[tuple[str, Graded]]:
        if self.is_anew:
            return
        found = list(self.cards.unfinished(self.project, self.work))
        if found:
            print(f"going on after {len(found):,} judgements of before", file=sys.stderr)
        yield from found

    def add(self, judged: Sequence[tuple[str, Graded]]) -> None:
        self.cards.keep(self.project, self.work, judged)


class _Progress:
    """A line for each tenth, and on a terminal one that is written over; with the cost so far."""

    def __init__(self, console: Console, planned: int) -> None:
        self._console = console
        self._planned = planned
        self._done = self._errors = self._tenths = 0
        self._started = time.monotonic()
        self._is_live = console.is_terminal and not console.is_dumb_terminal

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_live:
            self._overwrite("")

    def done(self, graded: Graded) -> None:
        """Count an outcome."""
        self._done += 1
        self._errors += graded.status == "error"
        tenths = 10 * self._done // max(1, self._planned)
        if not self._is_live and tenths == self._tenths:
            return
        self._tenths = tenths
        took = time.monotonic() - self._started
        left = took / self._done * (self._planned - self._done)
        said = [f"{self._done:,} of {self._planned:,} judgements", f"{self._errors:,} errors"]
        if left and self._done > 1:
            said.append(f"about {duration(left)} left")
        text = ", ".join([*said, *filter(None, [cost_so_far()])])
        if self._is_live:
            self._overwrite(text[: max(0, self._console.width - 1)])
        else:
            self._console.print(text, markup=False, soft_wrap=True)

    def _overwrite(self, text: str) -> None:
        """Write over the line; rich itself takes control characters out."""
        self._console.file.write(f"\r\x1b[K{text}")
        self._console.file.flush()


def _print(record: CardRecord, given: Namespace, fresh: Card | None) -> int:
    """Show a card; the exit status of `--min-kappa`."""
    card = Card.from_dict(record.body) if fresh is None else fresh
    decided = _verdict(card, given.min_kappa)
    written: dict[str, Json] = {
        "id": record.id,
        "created_at": record.created_at,
        **card.to_dict(),
        "verdict": {"code": decided[0], "line": decided[1]},
    }
    if given.out:
        with replacing(given.out) as file:
            file.write(json.dumps(written, indent=1) + "\n")
    if given.json:
        print(json.dumps(written))
    else:
        print_card(Console(highlight=False), card, record, verdict=decided)
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
    said = f"nothing could be compared: {coverage.errors:,} errors, {coverage.skipped:,} skipped"
    print(
        f"error: {said}, {coverage.split:,} split, {coverage.unlabelled:,} unlabelled",
        file=sys.stderr,
    )
    for cause, times in coverage.causes.items():
        print(f"  {times:,} times: {one_line(cause, 300)}", file=sys.stderr)


def _list(cards: Cards, given: Namespace) -> int:
    records = cards.newest(given.project)
    if given.json:
        rows: list[Json] = [
            {"id": one.id, "created_at": one.created_at, **one.body} for one in records
        ]
        print(json.dumps({"cards": rows}))
    else:
        print_cards(Console(highlight=False), records)
    return 0
