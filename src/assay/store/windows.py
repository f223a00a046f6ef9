"""`Windows`: parts of the cells of a run, as people look through them: found, sorted, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from assay.frozen import frozen
from assay.shown import Ended
from assay.store.database import Database, Row, Scalar
from assay.store.decisions import HELD
from assay.store.pages import FIRST, Order, Page, Stretch
from assay.store.records import BY_CELL, CELL_KEY, MIN_COVERAGE, UNREAD, CellKey, CellRecord, Cells
from assay.store.table import Rows, Where, among, conditions

Sort: TypeAlias = Literal["case", "reward", "cost", "tokens", "seconds", "trial"]

ENDS: Mapping[Ended, str] = {
    "pass": "passed",
    "fail": "failed",
    "scored": "scored",
    "error": "errors",
    "skipped": "skipped",
}
"""How cells end, and which number of `Ends` counts them."""
_COLUMN: Mapping[Sort, str] = {
    "case": "case_id",
    "reward": "reward",
    "cost": "cost_usd",
    "tokens": "tokens",
    "seconds": "seconds",
    "trial": "trial",
}
_ESCAPE = "!"
_ASKS_MORE = ('%"min_assurance":%', f'%"{MIN_COVERAGE}":%')
_HELD = f'%"{HELD}":%'
_MOST_TROUBLES = 50_000
_LAST = 2**62
_SUMMED = "count(*), sum(reward), count(reward), sum(cost_usd), count(cost_usd), sum(seconds)"

# Only the constants of this module, whole numbers, floats and names out of fixed lists are put
# into these; every text is bound. The wide columns come last in a row: few queries read them.
_CELL = f"""
    SELECT result.seq, run_id, {CELL_KEY}, cost_usd, tokens, seconds, flags <> '[]' AS flagged,
      reward,
      CASE WHEN status <> 'graded' THEN status WHEN passed = 0 THEN 'fail' WHEN threshold > 0
        OR notes LIKE ? OR notes LIKE ? THEN 'pass' ELSE 'scored' END AS ended,
      CASE WHEN status = 'skipped' AND notes LIKE ? THEN 1 ELSE 0 END AS held
    FROM result WHERE {{runs}} AND result.seq <= ? AND NOT EXISTS (
      SELECT 1 FROM result AS later
      WHERE later.run_id = result.run_id AND later.case_id = result.case_id
        AND later.harness = result.harness AND later.model = result.model
        AND later.trial = result.trial AND later.seq > result.seq AND later.seq <= ?)
"""


@frozen(kw_only=True)
class Ends:
    """How many cells ended in which way.

    Attributes:
        passed: Graded, and passed.
        failed: Graded, and did not pass.
        errors: Could not be graded.
        skipped: Nothing applied, or a person has to decide.
        scored: Graded, where no score could fail.
    """

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    scored: int = 0

    @classmethod
    def of(cls, counts: Mapping[Ended, int]) -> Ends:
        """The same of numbers by how the cells ended."""
        return cls(**{name: counts.get(end, 0) for end, name in ENDS.items()})

    @property
    def by_state(self) -> dict[Ended, int]:
        """The numbers by how the cells ended."""
        return {end: getattr(self, name) for end, name in ENDS.items()}

    @property
    def graded(self) -> int:
        """Cells with a reward."""
        return self.passed + self.failed + self.scored

    @property
    def total(self) -> int:
        """All cells."""
        return self.graded + self.errors + self.skipped

    @property
    def has_verdicts(self) -> bool:
        """Whether any cell could have failed."""
        return self.scored < self.graded or not self.graded

    @property
    def shown(self) -> Ended:
        """One outcome for all: that which most needs attention."""
        order: tuple[Ended, ...] = ("fail", "error", "pass", "scored")
        for state in order:
            if self.by_state[state]:
                return state
        return "skipped"


@frozen(kw_only=True)
class Wanted:
    """Which cells of a run are looked at.

    Attributes:
        ends: How they ended; empty for all.
        harness: What did the work; None for any.
        model: The model it was asked to use; None for any.
        case: Their case; empty for any.
        search: Stands somewhere in the name of their case.
        flagged: Only those with signs of tampering.
        held: Only those that wait for a person.
        among: Only these, by their number; None for all.
        until: None that came later than the result of this number.
    """

    ends: tuple[Ended, ...] = ()
    harness: str | None = None
    model: str | None = None
    case: str = ""
    search: str = ""
    flagged: bool = False
    held: bool = False
    among: tuple[int, ...] | None = None
    until: int = _LAST


@frozen(kw_only=True)
class Tallied:
    """Cells that are alike in what people choose them by.

    Attributes:
        end: How they ended.
        harness: What did the work.
        model: The model it was asked to use.
        flagged: Whether they have signs of tampering.
        held: Whether they wait for a person.
        count: How many.
    """

    end: Ended
    harness: str
    model: str
    flagged: bool
    held: bool
    count: int

    def suits(self, wanted: Wanted, *, but: str = "") -> bool:
        """Whether they are looked at, whatever is wanted of one of the fields."""
        return (
            (but == "end" or not wanted.ends or self.end in wanted.ends)
            and (but == "agent" or wanted.harness in (None, self.harness))
            and (but == "agent" or wanted.model in (None, self.model))
            and (but == "flagged" or self.flagged or not wanted.flagged)
            and (but == "held" or self.held or not wanted.held)
        )


@frozen(kw_only=True)
class Sums:
    """What the cells of a run add up to, for a list of runs.

    Attributes:
        ends: How many ended in which way.
        flagged: Cells with signs of tampering.
        held: Cells that wait for a person.
        cases: Cases with a graded cell.
        reward: Mean over them of the mean reward of their cells; None where there are none.
        cost_usd: Sum of the known prices; None where none is known.
        cost_unknown: Cells that did run at an unknown price.
        seconds: Sum of the cells' own times.
    """

    ends: Ends = field(default_factory=Ends)
    flagged: int = 0
    held: int = 0
    cases: int = 0
    reward: float | None = None
    cost_usd: float | None = None
    cost_unknown: int = 0
    seconds: float = 0.0


class Windows:
    """Looks through the cells of runs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._results = Cells(database, "result")
        self._narrow = Cells(database, "result", shown={"answer": UNREAD["answer"]})

    def last(self) -> int:
        """The number of the newest result of all runs; another one where something came."""
        return self._results.rows("max(seq)", {})[0][0] or 0

    def touched(self, after: int) -> set[str]:
        """The runs that had results since."""
        return set(self._results.column("DISTINCT run_id", {"seq >": after}))

    def tallied(self, run: str, wanted: Wanted) -> list[Tallied]:
        """The cells whose case is looked at, counted by what else is chosen."""
        columns = "ended, harness, model, flagged, held"
        rows = self._cells((run,), wanted.until).rows(
            f"{columns}, count(*)", _of_case(wanted), group=columns, order="harness, model"
        )
        return [
            Tallied(
                end=end,
                harness=harness,
                model=model,
                flagged=bool(flagged),
                held=bool(held),
                count=number,
            )
            for end, harness, model, flagged, held, number in rows
        ]

    def cells(
        self,
        run: str,
        wanted: Wanted,
        stretch: Stretch = FIRST,
        *,
        sort: Sort = "case",
        descending: bool = False,
        whole: bool = False,
    ) -> Page[CellRecord]:
        """Some of the cells that are looked at: uncounted, and `whole` or without their answers.

        What is unknown comes last, whichever way they are sorted.
        """
        order = _order(sort, descending=descending)
        results = self._results if whole else self._narrow

        def read(rows: Sequence[Row]) -> list[CellRecord]:
            these = among("seq", (seq for (seq,) in rows))
            found = results.within(results.columns, these, order.sql, limit=len(rows))
            return [results.read(row) for row in found]

        cells = self._cells((run,), wanted.until)
        return cells.part("seq", _conditions(wanted), order, stretch, read, counted=False)

    def troubles(self, run: str) -> Iterator[tuple[int, CellRecord]]:
        """The numbers of the cells that could not be graded, and why."""
        shown = Cells(self._database, shown={**UNREAD, "notes": "'{}'"})
        where: Where = {"run_id": run, "status": "error"}
        for seq, *row in shown.rows(f"seq, {shown.columns}", where, limit=_MOST_TROUBLES):
            yield seq, shown.read(tuple(row))

    def cases(
        self, run: str, stretch: Stretch = FIRST, *, search: str = "", worst_first: bool = False
    ) -> Page[str]:
        """Some of the cases in order, or those that fail most first."""
        sql, bound = self._of((run,), _LAST)
        said, values = conditions(_of_case(Wanted(search=search)))
        bad = "sum(CASE WHEN ended IN ('fail', 'error') THEN 1 ELSE 0 END)"
        cases = Rows(
            self._database,
            f"(SELECT case_id, {bad} AS bad FROM ({sql}) AS cell{said} GROUP BY case_id) AS cases",
            (*bound, *values),
        )
        order = Order("bad DESC, case_id") if worst_first else Order("case_id", (str,))
        return cases.part("case_id", {}, order, stretch, lambda rows: [case for (case,) in rows])

    def cells_of_cases(self, run: str, cases: Sequence[str]) -> Iterator[CellRecord]:
        """The newest results of all cells of some cases."""
        where = {"run_id": run, "case_id": list(cases)}
        yield from Cells(self._database).select(where, order=CELL_KEY)

    def sums(self, runs: Sequence[str]) -> dict[str, Sums]:
        """What the cells of some runs add up to."""
        if not runs:
            return {}
        columns = "run_id, case_id, ended, flagged, held"
        rows = self._cells(runs, _LAST).rows(f"{columns}, {_SUMMED}", {}, group=columns)
        found: dict[str, list[Row]] = {}
        for run, *row in rows:
            found.setdefault(run, []).append(tuple(row))
        return {run: _added(found.get(run, ())) for run in runs}

    def _cells(self, runs: Sequence[str], until: int) -> Rows:
        """The newest results."""
        sql, bound = self._of(runs, until)
        return Rows(self._database, f"({sql}) AS cell", bound)

    def _of(self, runs: Sequence[str], until: int) -> tuple[str, tuple[Scalar, ...]]:
        """What reads them, and what is bound in it."""
        places = f"run_id IN ({', '.join('?' * len(runs))})"
        return _CELL.format(runs=places), (*_ASKS_MORE, _HELD, *runs, until, until)


def _order(sort: Sort, *, descending: bool) -> Order:
    if sort == "case" and not descending:
        return BY_CELL
    column = _COLUMN[sort]
    unknown = "" if sort in ("case", "trial") else f"{column} IS NULL, "
    return Order(f"{unknown}{column} {'DESC' if descending else 'ASC'}, {CELL_KEY}")


def _added(rows: Iterable[Row]) -> Sums:
    """What the cells of a run add up to, of the sums of those that are alike."""
    ends, cases = Counter[Ended](), dict[str, tuple[float, int]]()
    flagged = held = priced = ran = 0
    cost = seconds = 0.0
    for case, end, is_flagged, is_held, *numbers in rows:
        number, reward, graded, price, known, took = (value or 0 for value in numbers)
        ends[end] += number
        flagged += number if is_flagged else 0
        held += number if is_held else 0
        if graded:
            so_far, of = cases.get(case, (0.0, 0))
            cases[case] = so_far + reward, of + graded
        cost += price
        priced += known
        ran += 0 if end == "skipped" else number - known
        seconds += took
    means = [reward / of for reward, of in cases.values()]
    return Sums(
        ends=Ends.of(ends),
        flagged=flagged,
        held=held,
        cases=len(means),
        reward=sum(means) / len(means) if means else None,
        cost_usd=cost if priced else None,
        cost_unknown=ran,
        seconds=seconds,
    )


def _of_case(wanted: Wanted) -> dict[str, Scalar | Sequence[Scalar]]:
    """What the cases of cells must be like, whatever else the cells are like."""
    text = wanted.search.lower()
    for sign in (_ESCAPE, "%", "_"):
        text = text.replace(sign, f"{_ESCAPE}{sign}")
    found = f"lower(case_id) LIKE ? ESCAPE '{_ESCAPE}'"
    return {
        "case_id": wanted.case or None,
        found: f"%{text}%" if text else None,
        **({} if wanted.among is None else among("seq", wanted.among)),
    }


def _conditions(wanted: Wanted) -> Where:
    """What cells must be like."""
    where = _of_case(wanted)
    where |= {"harness": wanted.harness, "model": wanted.model, "ended": list(wanted.ends) or None}
    where |= {"flagged": ()} if wanted.flagged else {}
    return where | ({"held": 1} if wanted.held else {})


__all__ = ["CellKey", "Ends", "Sort", "Sums", "Tallied", "Wanted", "Windows"]
