"""A run in numbers, and the one verdict that is both printed and returned as exit code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from itertools import repeat
from typing import TYPE_CHECKING

from assay.errors import InputError
from assay.frozen import frozen
from assay.reports.figures import apart, count, score
from assay.reports.outcome import Cells, Ended, Outcome, outcome, reward_of, stream, trouble
from assay.reports.plain import one_line
from assay.reports.rates import Rate, rates_of
from assay.reports.totals import Group, Groups, Totals, totals_of
from assay.scoring.json_safe import Json, plain
from assay.statistics.intervals import Interval
from assay.store.records import NOT_GRADED, CellRecord, RunRecord

if TYPE_CHECKING:
    from assay.reports.grader_cards import Shelf, Standing
    from assay.reports.run_records import Breakdown
    from assay.statistics.agreement import Agreement


_MAX_CAUSES = 100
OTHER_CAUSES = "other causes"
"""What stands for causes beyond the first hundred."""

MAX_ROWS = 200
"""Rows of a dataset with each outcome that have a group of their own."""
_MAX_STANDINGS = 50
_MAX_NAMED = 5
_VARIABLE = re.compile(r"0x[0-9a-fA-F]+|\d+")


@frozen
class Cause:
    """Errors with one cause.

    Attributes:
        count: How many cells.
        text: The first such error, on one line; numbers in it may differ from cell to cell.
        key: What its cells are looked for with; empty where that cannot be done.
    """

    count: int
    text: str
    key: str


class Causes:
    """Errors by their causes: those that differ in numbers alone are one."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def add(self, text: str, times: int = 1) -> None:
        """Count an error, or so many that are alike."""
        key = cause_key(text)
        if key not in self._texts and len(self._texts) >= _MAX_CAUSES:
            key, text = "", OTHER_CAUSES
        self._texts.setdefault(key, text)
        self._counts[key] += times

    def found(self) -> tuple[Cause, ...]:
        """Them, commonest first."""
        causes = [Cause(self._counts[key], text, key) for key, text in self._texts.items()]
        return tuple(sorted(causes, key=lambda cause: (-cause.count, cause.text)))


@frozen(kw_only=True)
class AgentRow:
    """The cells that share a harness and a model and, in a group, a case.

    Attributes:
        case: Case id; empty in the leaderboard, where all cases are taken together.
        harness: What did the work.
        model: The model it was asked to use.
        totals: What the cells come to.
        ended: How each trial did, in the order they came in; the first 50. Empty in the board.
        flaky: Whether some trials passed and others failed.
        mixed: Whether cells of one case were graded by different versions of its graders, so that
            their mean is not one measurement.
    """

    case: str = ""
    harness: str
    model: str
    totals: Totals
    ended: tuple[Ended, ...] = ()
    flaky: bool = False
    mixed: bool = False


@frozen(kw_only=True)
class NotGraded:
    """What was skipped of cells that have a reward all the same.

    Attributes:
        cells: How many such cells.
        share: The largest share of a cell's weight that was skipped.
        graders: The graders that were skipped, and why, as the first such cell says.
    """

    cells: int
    share: float
    graders: Mapping[str, str]

    def __str__(self) -> str:
        names = [one_line(name, 60) for name in self.graders]
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        why = next(iter(self.graders.values()), "")
        said = f"{', '.join(names[:_MAX_NAMED])}{more}" + (f": {one_line(why, 160)}" if why else "")
        where = "" if self.cells == 1 else f" in {self.cells:,} cells"
        share = f"{self.share:.2f}" if self.share >= 0.01 else f"{self.share:.1g}"
        most = "up to " if self.cells > 1 else ""
        what = f"{most}{share} of the weight" if self.share else "a gate or penalty"
        return f"{what} was not graded{where} ({said})"


@frozen(kw_only=True)
class Summary:
    """A run in numbers.

    Attributes:
        totals: What all cells come to.
        missing: Planned cells that have no result, as after an interrupted run.
        malformed: Rows of the dataset that were left out, as asked, because they are malformed.
        groups: One row per (case, harness, model), in the order they came in; of a dataset's rows
            the first 200 of each outcome.
        left_out: Rows of a dataset that are in no group.
        leaderboard: One row per (harness, model), best mean reward first.
        causes: Why cells could not be graded, commonest first.
        mixed: Cases whose cells were graded by different versions of their graders.
        agreement: How well the grades agree with labels (see `assay.statistics.agreement`), if any
            labels were given.
        standings: The calibration cards of the graders, one for each digest.
        not_graded: What was skipped of cells with a reward; None where nothing was.
        skipped: Why a whole cell was skipped, as the first such one says.
        rates: The pass rates that cases ask for, each for one agent.
        by_rate: Graded cells that these judge, and how many of them did not pass.
        broken_down: What cells come to by a field of their metadata, where that was asked for.
    """

    totals: Totals
    missing: int = 0
    malformed: int = 0
    groups: tuple[AgentRow, ...] = ()
    left_out: int = 0
    leaderboard: tuple[AgentRow, ...] = ()
    causes: tuple[Cause, ...] = ()
    mixed: tuple[str, ...] = ()
    agreement: Mapping[str, Json] | None = None
    standings: tuple[Standing, ...] = ()
    not_graded: NotGraded | None = None
    skipped: str = ""
    rates: tuple[Rate, ...] = ()
    by_rate: tuple[int, int] = (0, 0)
    broken_down: Breakdown | None = None


class Tally:
    """Counts cells one by one and keeps a few numbers of each, never the cell.

    Of a dataset, whose rows may be millions and have one cell each, it keeps one number a row.
    """

    def __init__(
        self,
        *,
        run: RunRecord | None = None,
        shelf: Shelf | None = None,
    ) -> None:
        """Start at nothing.

        Args:
            run: The run that the cells belong to; tells how many were planned.
            shelf: The calibration cards that there are.
        """
        self._planned = run.planned if run else 0
        self._malformed = _malformed(run)
        self._rows = Group("", "", "") if run and run.are_apart else None
        self._shown: Counter[Outcome] = Counter()
        self._labels = LabelledCells()
        self._groups = Groups()
        self._causes = Causes()
        self._shelf = shelf
        self._standings: dict[str, Standing] = {}
        self._not_graded: NotGraded | None = None
        self._skipped = ""

    def add(self, cell: CellRecord) -> None:
        """Count one cell."""
        self.count(cell)
        state = outcome(cell)
        if self._rows is None:
            self._groups.add(cell)
        elif self._shown[state] < MAX_ROWS:
            self.show(cell)

    def count(self, cell: CellRecord, times: int = 1) -> None:
        """Count a row of a dataset in the totals alone, or so many rows that are alike."""
        if self._rows is not None:
            self._rows.harness, self._rows.model = cell.harness, cell.model
            self._rows.add(cell, times)
        ended = outcome(cell)
        if ended == "skipped":
            self._skipped = self._skipped or cell.content
        elif ended == "error":
            self._causes.add(cause_text(cell), times)
        self._labels.add(cell, times)
        if NOT_GRADED in cell.notes:
            share, graders = cell.not_graded
            so_far = self._not_graded or NotGraded(cells=0, share=0.0, graders={})
            self._not_graded = NotGraded(
                cells=so_far.cells + times,
                share=max(so_far.share, share),
                graders=dict(so_far.graders)
                | {name: why for name, why in graders.items() if name not in so_far.graders},
            )
        for standing in self._shelf.of_cell(cell) if self._shelf else ():
            if len(self._standings) < _MAX_STANDINGS:
                self._standings.setdefault(standing.digest, standing)

    def has(self, state: Outcome) -> bool:
        """Whether any row of a dataset ended in this way."""
        return self._rows is not None and self._rows.counts[state] > 0

    def show(self, cell: CellRecord) -> None:
        """Give a row that was counted a group of its own."""
        self._shown[outcome(cell)] += 1
        self._skipped = self._skipped or (cell.content if outcome(cell) == "skipped" else "")
        self._groups.add(cell)

    def summary(self, *, with_groups: bool = True) -> Summary:
        """What the cells so far come to; without a row for each group it takes a third less."""
        groups = list(self._groups)
        digests: dict[str, set[str]] = {}
        columns: dict[tuple[str, str], list[Group]] = {}
        for group in groups:
            digests.setdefault(group.case, set()).update(group.digests)
            columns.setdefault((group.harness, group.model), []).append(group)
        mixed = {case for case, found in digests.items() if len(found) > 1}
        if self._rows is not None and self._rows.total:
            totals = totals_of([self._rows], apart=True)
            row = AgentRow(harness=self._rows.harness, model=self._rows.model, totals=totals)
            leaderboard = [row]
        else:
            totals = totals_of(groups)
            leaderboard = [_row(column, mixed, case="") for column in columns.values()]
        return Summary(
            totals=totals,
            missing=max(0, self._planned - totals.total),
            malformed=self._malformed,
            groups=tuple(_row([group], mixed, case=group.case) for group in groups if with_groups),
            left_out=0 if self._rows is None else totals.total - len(groups),
            leaderboard=tuple(sorted(leaderboard, key=_rank)),
            causes=self._causes.found(),
            mixed=tuple(sorted(mixed)),
            agreement=agreement_dict(self._labels.agreement()) if self._labels else None,
            standings=tuple(self._standings.values()),
            not_graded=self._not_graded,
            skipped=self._skipped,
            rates=tuple(rates_of(rated := [group for group in groups if group.rates])),
            by_rate=(sum(g.graded for g in rated), sum(g.counts["fail"] for g in rated)),
        )


def cause_text(cell: CellRecord) -> str:
    """Why a cell could not be graded, on one line."""
    return one_line(trouble(cell), 300)


def cause_key(text: str) -> str:
    """What errors with one cause have in common, whatever numbers stand in them."""
    return _VARIABLE.sub("#", text)


@frozen
class RunVerdict:
    """What a run comes down to.

    Attributes:
        code: Exit code: 0 passed, 1 not passed, 3 not everything could be graded.
        line: The same in words, plain ASCII but for names.
    """

    code: int
    line: str


def summarize(cells: Cells, *, run: RunRecord | None = None) -> Summary:
    """Read the cells once and say what they come to."""
    tally = Tally(run=run)
    for cell in stream(cells):
        tally.add(cell)
    return tally.summary()


def verdict(
    summary: Summary, *, fail_under: float | None = None, strict: bool = False
) -> RunVerdict:
    """Decide what is printed and the exit code, in one place so that they cannot differ.

    Code 3 where cells are missing or could not be graded, or where nothing was graded at all:
    such a run has no full verdict, and its line tells the failures too. Else 1 where a graded
    cell failed, else 0. With ``fail_under`` it is the mean reward that has to reach it, whatever
    single cells say. Where a case asks for a pass rate, an agent's trials are judged by that and
    by no single one. ``strict`` makes it 3 where a grader or a whole cell was skipped. Malformed
    rows that were left out are told, and decide nothing.
    """
    if fail_under is not None and not 0.0 <= fail_under <= 1.0:
        raise InputError(f"fail_under is {fail_under}", hint="a mean reward in [0, 1]")
    totals = summary.totals
    met, grounds = _judged(summary, fail_under)
    not_graded = _not_graded(summary)
    aside = f"; {count(summary.malformed, 'malformed row')} left out" if summary.malformed else ""
    partly = summary.not_graded
    if partly and strict:
        not_graded.append(str(partly))
    if totals.skipped and strict:
        were = "was" if totals.skipped == 1 else "were"
        not_graded.append(f"{count(totals.skipped, 'cell')} {were} skipped")
    if totals.graded == 0:
        all_of_them = f"all {count(totals.skipped, 'cell')} were"
        skipped = "the cell was" if totals.skipped == 1 else all_of_them
        because = f": {one_line(summary.skipped, 160)}" if summary.skipped else ""
        causes = not_graded or [f"{skipped} skipped{because}"]
        why = "; ".join(causes) if totals.total or summary.missing else "there are no cells"
        return RunVerdict(3, f"NO VERDICT: nothing was graded: {why}{aside}")
    if not_graded:
        why = "; ".join(filter(None, (" and ".join(not_graded), grounds)))
        return RunVerdict(3, f"NO VERDICT: {why}{aside}")
    skipped = f" ({totals.skipped:,} skipped)" if totals.skipped else ""
    word = "PASS" if met else "FAIL"
    # What nobody graded stands in the line that everybody reads, before what pleases.
    but = f", BUT {partly}" if partly else ""
    return RunVerdict(0 if met else 1, f"{word}{but}: {grounds}{skipped}{aside}")


def _judged(summary: Summary, fail_under: float | None) -> tuple[bool, str]:
    """Whether what was graded is good enough, and in which words."""
    totals = summary.totals
    graded = count(totals.graded, "graded cell")
    if fail_under is not None and totals.reward.mean is not None:
        mean, bar = apart(totals.reward.mean, fail_under)
        met = totals.reward.mean >= fail_under - 1e-9
        relation = "reaches" if met else "is below"
        return met, f"mean reward {mean} over {graded} {relation} {bar}; {totals.failed:,} failed"
    if summary.rates:
        return _by_rates(summary)
    if totals.failed:
        return False, f"{totals.failed:,} of {graded} failed"
    if not totals.has_verdicts and totals.reward.mean is not None:
        return True, f"{graded} scored, mean reward {score(totals.reward.mean)}; any score passes"
    every = "all of" if totals.graded > 1 else "the"
    return True, f"{every} {graded} passed"


_MOST_RATES = 3


def _by_rates(summary: Summary) -> tuple[bool, str]:
    """The same where cases ask for pass rates; what they do not judge is judged cell by cell."""
    rates = [rate for rate in summary.rates if rate.found.mean is not None]
    missed = [rate for rate in rates if not rate.met]
    told = missed or rates
    said = "; ".join(rate.line for rate in told[:_MOST_RATES])
    if more := len(told) - _MOST_RATES:
        said += f"; and {more} more" if more > 0 else ""
    if missed and len(rates) > 1:
        said = f"{len(missed)} of {count(len(rates), 'pass rate')} missed: {said}"
    graded, failed = summary.by_rate
    others = summary.totals.graded - graded
    failing = summary.totals.failed - failed
    graded_others = count(others, "other graded cell")
    word = f"{failing:,} of {graded_others} failed" if failing else f"{graded_others} passed"
    return not missed and not failing, "; ".join(filter(None, (said, word if others else "")))


def _not_graded(summary: Summary) -> list[str]:
    said: list[str] = []
    if summary.totals.errors:
        cells = count(summary.totals.total, "cell")
        said.append(f"{summary.totals.errors:,} of {cells} could not be graded")
    if held := summary.totals.held:
        said.append(f"{count(held, 'cell')} {'waits' if held == 1 else 'wait'} for review")
    said += [rate.line for rate in summary.rates if rate.found.mean is None]
    if summary.missing:
        have = "has" if summary.missing == 1 else "have"
        said.append(f"{count(summary.missing, 'planned cell')} {have} no result")
    return said


def _malformed(run: RunRecord | None) -> int:
    noted = run.config.get("malformed") if run else None
    rows = noted.get("rows") if isinstance(noted, dict) else None
    return rows if isinstance(rows, int) else 0


def _row(groups: list[Group], mixed: set[str], *, case: str) -> AgentRow:
    first, totals = groups[0], totals_of(groups)
    passed: Ended = "pass" if totals.has_verdicts else "scored"
    return AgentRow(
        case=case,
        harness=first.harness,
        model=first.model,
        totals=totals,
        ended=tuple(passed if s == "pass" else s for s in first.outcomes) if case else (),
        flaky=bool(case) and totals.passed > 0 and totals.failed > 0,
        mixed=any(group.case in mixed for group in groups),
    )


def _rank(row: AgentRow) -> tuple[float, str, str]:
    mean = row.totals.reward.mean
    return (2.0 if mean is None else -mean, row.harness, row.model)


class LabelledCells:
    """What the graders said of each cell that has a label among its notes, beside that label."""

    def __init__(self) -> None:
        self._verdicts: list[bool | None] = []
        self._rewards: list[float | None] = []
        self._truth: list[bool | float] = []

    def add(self, cell: CellRecord, times: int = 1) -> None:
        """Pair the cell with its label, if it has one; or so many cells that are alike."""
        label = cell.notes.get("label")
        if not isinstance(label, bool | int | float):
            return
        label = label if isinstance(label, bool) else float(label)
        reward = reward_of(cell)
        verdict = None if reward is None else outcome(cell) == "pass"
        self._verdicts.extend(repeat(verdict, times))
        self._rewards.extend(repeat(reward, times))
        self._truth.extend(repeat(label, times))

    def __bool__(self) -> bool:
        return bool(self._truth)

    def agreement(self) -> Agreement:
        """The agreement over all pairs so far; cells that could not be graded count as unscored.

        Where only some labels are true or false, these are 1 and 0 among the numbers.
        """
        from assay.statistics.agreement import agreement

        if all(isinstance(label, bool) for label in self._truth):
            return agreement(self._verdicts, self._truth)
        return agreement(self._rewards, [float(label) for label in self._truth])


def agreement_dict(found: Agreement) -> dict[str, Json]:
    """An agreement as plain JSON: the measure, its intervals, and how much it rests on."""
    from assay.statistics.agreement import Confusion

    shared: dict[str, Json] = {
        "n": found.measure.n,
        "unscored": found.unscored,
        "coverage": found.coverage,
    }
    is_verdict = isinstance(found.measure, Confusion)
    names = _OF_VERDICTS if is_verdict else _OF_SCORES
    measures: dict[str, Json] = {}
    for name in names.split():
        value: object = getattr(found.measure, name)
        ends = value() if callable(value) else None
        if isinstance(ends, Interval):
            measures[name] = None if ends.low is None else [ends.low, ends.high]
        else:
            measures[name] = plain(value)
    return {"kind": "verdict" if is_verdict else "score", **shared, **measures}


_OF_VERDICTS = (
    "tp fp tn fn accuracy accuracy_interval majority_accuracy balanced_accuracy kappa "
    "kappa_interval sensitivity specificity base_rate predicted_rate"
)
_OF_SCORES = "pearson pearson_interval spearman mean_absolute_error baseline_error"
