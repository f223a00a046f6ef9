"""`Windows`: parts of the cells of a run, as people look through them: found, sorted, counted.

What somebody decided about a cell counts here as it does in `assay.store.labels.decided`: a few
cells are, and they are put in place of what is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Literal, TypeAlias, cast

from assay.frozen import frozen
from assay.store.database import Database, Scalar
from assay.store.labels import HELD, Decisions, decided
from assay.store.records import (
    CELL_COLUMNS,
    MIN_COVERAGE,
    CellKey,
    CellRecord,
    CellRow,
    read_cell,
)

End: TypeAlias = Literal["pass", "fail", "error", "skipped", "scored"]
"""How a cell ended, as `assay.reports.outcome.ended` says it."""

Order: TypeAlias = Literal["case", "reward", "cost", "tokens", "seconds", "trial"]

_ENDS: tuple[End, ...] = ("pass", "fail", "error", "skipped", "scored")
_COLUMN: Mapping[Order, str] = {
    "case": "case_id",
    "reward": "reward",
    "cost": "cost_usd",
    "tokens": "tokens",
    "seconds": "seconds",
    "trial": "trial",
}
_KEY = "case_id, harness, model, trial"
_ESCAPE = "!"
_ASKS_MORE = ('%"min_assurance":%', f'%"{MIN_COVERAGE}":%')
_HELD = f'%"{HELD}":%'
_MOST_TROUBLES = 50_000
_LAST = 2**62

# Only the constants of this module, whole numbers, floats and names out of fixed lists are put
# into these; every text is bound. The wide columns come last in a row: few queries read them.
_CELL = f"""
    SELECT result.seq, run_id, {_KEY}, cost_usd, tokens, seconds, flags <> '[]' AS flagged,
      CASE WHEN told.column1 IS NULL THEN reward ELSE told.column3 END AS reward,
      CASE WHEN told.column1 IS NOT NULL THEN told.column2
        WHEN status <> 'graded' THEN status WHEN passed = 0 THEN 'fail' WHEN threshold > 0
        OR notes LIKE ? OR notes LIKE ? THEN 'pass' ELSE 'scored' END AS ended,
      CASE WHEN told.column1 IS NOT NULL THEN 0 WHEN status <> 'skipped' THEN 0
        WHEN notes LIKE ? THEN 1 ELSE 0 END AS held
    FROM result LEFT JOIN ({{told}}) AS told ON told.column1 = result.seq
    WHERE {{runs}} AND result.seq <= ? AND NOT EXISTS (
      SELECT 1 FROM result AS later
      WHERE later.run_id = result.run_id AND later.case_id = result.case_id
        AND later.harness = result.harness AND later.model = result.model
        AND later.trial = result.trial AND later.seq > result.seq AND later.seq <= ?)
"""
# What a list shows of a cell: neither its answer nor its score tree.
_SHOWN = CELL_COLUMNS.replace("answer, subscores", "'', '[]'")


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

    ends: tuple[End, ...] = ()
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

    end: End
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

    ends: Mapping[End, int] = field(default_factory=dict[End, int])
    flagged: int = 0
    held: int = 0
    cases: int = 0
    reward: float | None = None
    cost_usd: float | None = None
    cost_unknown: int = 0
    seconds: float = 0.0

    @property
    def total(self) -> int:
        """Cells that have a result."""
        return sum(self.ends.values())


class Windows:
    """Looks through the cells of runs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def last(self) -> int:
        """The number of the newest result of all runs; another one where something came."""
        ((last,),) = self._database.rows("SELECT max(seq) FROM result")
        return cast("int | None", last) or 0

    def touched(self, after: int) -> set[str]:
        """The runs that had results since."""
        rows = self._database.rows("SELECT DISTINCT run_id FROM result WHERE seq > ?", after)
        return {cast("str", run) for (run,) in rows}

    def tallied(self, run: str, wanted: Wanted) -> list[Tallied]:
        """The cells whose case is looked at, counted by what else is chosen."""
        cells, values = self._cells((run,), wanted.until)
        where, more = _conditions(wanted, of_case=True)
        rows = self._database.rows(
            f"SELECT ended, harness, model, flagged, held, count(*) FROM ({cells}) AS cell "
            f"WHERE {where} GROUP BY 1, 2, 3, 4, 5 ORDER BY 2, 3",
            *values,
            *more,
        )
        return [
            Tallied(
                end=cast("End", end),
                harness=cast("str", harness),
                model=cast("str", model),
                flagged=bool(flagged),
                held=bool(held),
                count=cast("int", number),
            )
            for end, harness, model, flagged, held, number in rows
        ]

    def cells(
        self,
        run: str,
        wanted: Wanted,
        *,
        order: Order = "case",
        descending: bool = False,
        offset: int = 0,
        limit: int = 100,
    ) -> list[CellRecord]:
        """Some of the cells that are looked at, without their answers and score trees.

        What is unknown comes last, whichever way they are sorted.
        """
        cells, values = self._cells((run,), wanted.until)
        where, more = _conditions(wanted)
        column = _COLUMN[order]
        way = "DESC" if descending else "ASC"
        unknown = "" if order in ("case", "trial") else f"{column} IS NULL, "
        rows = self._database.rows(
            f"SELECT seq FROM ({cells}) AS cell WHERE {where} "
            f"ORDER BY {unknown}{column} {way}, {_KEY} LIMIT ? OFFSET ?",
            *values,
            *more,
            limit,
            offset,
        )
        numbers = [cast("int", seq) for (seq,) in rows]
        return list(decided(self._of(numbers), Decisions(self._database).all))

    def troubles(self, run: str) -> Iterator[tuple[int, CellRecord]]:
        """The numbers of the cells that could not be graded, and why."""
        shown = _SHOWN.replace("notes", "'{}'")
        rows = self._database.rows(
            f"SELECT seq, {shown} FROM newest WHERE run_id = ? AND status = 'error' LIMIT ?",
            *(run, _MOST_TROUBLES),
        )
        for seq, *row in rows:
            yield cast("int", seq), read_cell(cast("CellRow", row))

    def cases(
        self, run: str, *, search: str = "", worst_first: bool = False, offset: int, limit: int
    ) -> tuple[int, list[str]]:
        """How many cases there are, and some of them in order, or those that fail most first."""
        cells, values = self._cells((run,), _LAST)
        where, more = _conditions(Wanted(search=search))
        bad = "sum(CASE WHEN ended IN ('fail', 'error') THEN 1 ELSE 0 END) DESC, "
        found = f"FROM ({cells}) AS cell WHERE {where}"
        ((total,),) = self._database.rows(f"SELECT count(DISTINCT case_id) {found}", *values, *more)
        rows = self._database.rows(
            f"SELECT case_id {found} GROUP BY case_id "
            f"ORDER BY {bad if worst_first else ''}case_id LIMIT ? OFFSET ?",
            *(*values, *more, limit, offset),
        )
        return cast("int", total), [cast("str", case) for (case,) in rows]

    def cells_of_cases(self, run: str, cases: Sequence[str]) -> Iterator[CellRecord]:
        """The newest results of all cells of some cases, decided."""
        if not cases:
            return
        places = ", ".join("?" * len(cases))
        rows = self._database.rows(
            f"SELECT {CELL_COLUMNS} FROM newest WHERE run_id = ? AND case_id IN ({places}) "
            f"ORDER BY {_KEY}",
            *(run, *cases),
        )
        found = (read_cell(cast("CellRow", row)) for row in rows)
        yield from decided(found, Decisions(self._database).all)

    def sums(self, runs: Sequence[str]) -> dict[str, Sums]:
        """What the cells of some runs add up to."""
        if not runs:
            return {}
        cells, values = self._cells(runs, _LAST)
        by_case = f"""
            SELECT run_id, case_id, ended, flagged, held, count(*) AS number, sum(reward) AS reward,
              count(reward) AS graded, sum(cost_usd) AS cost, count(cost_usd) AS priced,
              sum(seconds) AS seconds
            FROM ({cells}) AS cell GROUP BY 1, 2, 3, 4, 5
        """
        found: dict[str, _Adding] = {}
        for run, case, ended, flagged, held, *numbers in self._database.rows(by_case, *values):
            sum_of = found.setdefault(cast("str", run), _Adding())
            sum_of.add(
                cast("str", case),
                cast("End", ended),
                bool(flagged),
                bool(held),
                cast("Sequence[float | None]", numbers),
            )
        return {run: found[run].sums() if run in found else Sums() for run in runs}

    def _cells(self, runs: Sequence[str], until: int) -> tuple[str, tuple[Scalar, ...]]:
        """The query of the newest results, and what is bound in it."""
        told = [
            f"({seq}, '{end}', "
            f"CAST({'NULL' if reward is None else repr(reward)} AS double precision))"
            for seq, end, reward in self._decided(runs)
        ]
        none = "SELECT 0 AS column1, '' AS column2, CAST(NULL AS double precision) AS column3"
        places = f"run_id IN ({', '.join('?' * len(runs))})"
        sql = _CELL.format(told=f"VALUES {', '.join(told)}" if told else none, runs=places)
        return sql, (*_ASKS_MORE, _HELD, *runs, until, until)

    def _decided(self, runs: Iterable[str]) -> Iterator[tuple[int, End, float | None]]:
        """The results that somebody decided about: number, end and reward that follow."""
        decisions = Decisions(self._database)
        cells = decisions.cells_of(runs)
        known = decisions.all() if any(cells.values()) else {}
        for run, keys in cells.items():
            for key in keys:
                for seq, *row in self._database.rows(_ONE, run, *key):
                    stored = read_cell(cast("CellRow", row))
                    (cell,) = decided([stored], lambda: known)
                    if cell is not stored:
                        yield cast("int", seq), end_of(cell), cell.reward

    def _of(self, numbers: Sequence[int]) -> list[CellRecord]:
        """Results by their numbers, in that order."""
        if not numbers:
            return []
        listed = ", ".join(map(str, numbers))
        rows = self._database.rows(f"SELECT seq, {_SHOWN} FROM result WHERE seq IN ({listed})")
        found = {seq: read_cell(cast("CellRow", row)) for seq, *row in rows}
        return [found[seq] for seq in numbers if seq in found]


_ONE = (
    f"SELECT seq, {_SHOWN} FROM newest "
    "WHERE run_id = ? AND case_id = ? AND harness = ? AND model = ? AND trial = ?"
)


def end_of(cell: CellRecord) -> End:
    """How a cell ended: one that could not have failed was only scored."""
    if cell.status != "graded":
        return cell.status
    if not cell.passed:
        return "fail"
    asks_more = cell.min_assurance is not None or cell.min_coverage is not None
    return "pass" if cell.threshold > 0.0 or asks_more else "scored"


class _Adding:
    """The sums of a run so far."""

    def __init__(self) -> None:
        self._ends: dict[End, int] = dict.fromkeys(_ENDS, 0)
        self._cases: dict[str, tuple[float, int]] = {}
        self._flagged = self._held = self._priced = self._ran = 0
        self._cost = self._seconds = 0.0

    def add(
        self,
        case: str,
        end: End,
        flagged: bool,  # noqa: FBT001 - as the columns come
        held: bool,  # noqa: FBT001 - likewise
        numbers: Sequence[float | None],
    ) -> None:
        number, reward, graded, cost, priced, seconds = (value or 0 for value in numbers)
        self._ends[end] += int(number)
        self._flagged += flagged * int(number)
        self._held += held * int(number)
        if graded:
            so_far, of = self._cases.get(case, (0.0, 0))
            self._cases[case] = so_far + reward, of + int(graded)
        self._cost += cost
        self._priced += int(priced)
        self._ran += 0 if end == "skipped" else int(number - priced)
        self._seconds += seconds

    def sums(self) -> Sums:
        means = [reward / of for reward, of in self._cases.values()]
        return Sums(
            ends=self._ends,
            flagged=self._flagged,
            held=self._held,
            cases=len(means),
            reward=sum(means) / len(means) if means else None,
            cost_usd=self._cost if self._priced else None,
            cost_unknown=self._ran,
            seconds=self._seconds,
        )


def _conditions(wanted: Wanted, *, of_case: bool = False) -> tuple[str, list[Scalar]]:
    """What cells must be like, and what is bound in it; `of_case`: whatever else they are like."""
    said, values = ["1 = 1"], list[Scalar]()

    def must(condition: str, *more: Scalar) -> None:
        said.append(condition)
        values.extend(more)

    if wanted.case:
        must("case_id = ?", wanted.case)
    if wanted.search:
        text = wanted.search.lower()
        for sign in (_ESCAPE, "%", "_"):
            text = text.replace(sign, f"{_ESCAPE}{sign}")
        must(f"lower(case_id) LIKE ? ESCAPE '{_ESCAPE}'", f"%{text}%")
    if wanted.among is not None:
        must(f"seq IN ({', '.join(map(str, wanted.among)) or 'NULL'})")
    if of_case:
        return " AND ".join(said), values
    if wanted.ends:
        must(f"ended IN ({', '.join('?' * len(wanted.ends))})", *wanted.ends)
    for column, value in (("harness", wanted.harness), ("model", wanted.model)):
        if value is not None:
            must(f"{column} = ?", value)
    if wanted.flagged:
        must("flagged")
    if wanted.held:
        must("held = 1")
    return " AND ".join(said), values


__all__ = ["CellKey", "End", "Order", "Sums", "Tallied", "Wanted", "Windows", "end_of"]
