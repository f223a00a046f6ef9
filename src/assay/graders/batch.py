"""Batches: many submissions through a grader, asked for from any thread, process or event loop.

Each item has a turn. Its deadline begins with that turn, not when the item was handed in, and does
not run while the item waits in one of our queues. A late item is stopped and holds up no other.
What could not be graded has no reward, never a number.
"""

from __future__ import annotations

import importlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from math import fsum, inf
from numbers import Real
from typing import Literal, TypeAlias, cast, get_args

from assay.errors import GraderError, InputError, reason_of
from assay.frozen import frozen
from assay.graders.apply import grade_many
from assay.graders.driver import OutOfTimeError, in_batches, run_batches, within
from assay.graders.spec import GraderSpec, own_seconds, pass_mark
from assay.graders.threads import on_own_loop, wait_for
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, plain
from assay.shown import DASH, element, joined, one_line
from assay.shown import score as shown_score
from assay.statistics.quantiles import nearest_rank
from assay.turns import WorkTurn
from assay.types.picture import Picture
from assay.types.references import is_missing, reference_of
from assay.types.submission import Submission

Row: TypeAlias = "Submission | Mapping[str, Json] | InputError"
"""What is graded: a submission, or a row as in a dataset (``answer`` or ``messages``, with
``question``, ``expected`` and ``metadata``). An exception stands for an item that could not be
read, and becomes its error."""

Score: TypeAlias = "Callable[[Sequence[tuple[str, Submission]]], Awaitable[Sequence[Graded]]]"
"""Grades items, each with an id that is unique among them."""

OnError: TypeAlias = Literal["raise", "group_mean", "zero"]
"""What stands for a missing reward where a trainer accepts no None: an exception, the mean of the
graded answers to the same prompt (an advantage of 0), or a 0 that is marked."""


def require_on_error(on_error: str) -> None:
    """Refuse any other word; without this check it would be taken for an unmarked 0."""
    if on_error not in (known := get_args(OnError)):
        raise InputError(f"on_error is {on_error!r}", hint=f"one of {', '.join(known)}")


def require_seconds(what: str, given: object) -> float:
    """A number of seconds that something could take, of whatever type numbers are."""
    seconds = 0.0
    if not isinstance(given, bool) and isinstance(given, Real):
        with suppress(OverflowError):
            seconds = float(given)
    if not 0 < seconds < float("inf"):
        raise InputError(f"the {what} is {given!r}", hint="seconds, a number above 0")
    return seconds


_LOG = logging.getLogger("assay.graders")
_PURE = 256
"""Items that are computed between two looks at what else is to be done."""
_WINDOW = 10_000
"""Items of an iterator that are held at once."""
_NOT_YET = Graded.failed("", "it was not graded")
_MAX_LINES = 20
_MAX_CAUSES = 5
_WHY = 80
DEADLINE = 600.0
"""Seconds that an item may take where nobody says another number, beside what its graders' commands
may take by their own limits: what hangs every command is a 0 of theirs, and no error of ours."""
_TITLES = ("item", "time", "reward", "why")


@frozen(kw_only=True)
class Batch:
    """What came of a batch.

    Attributes:
        graded: One outcome for each submission, in order.
        seconds: How long each was worked on, without queueing; None if it was not begun. Each
            submission of one request has the time of the whole request.
    """

    graded: tuple[Graded, ...]
    seconds: tuple[float | None, ...]

    def __repr__(self) -> str:
        return f"<{str(self).partition(chr(10))[0]}>"  # not thousands of outcomes at a prompt

    def __str__(self) -> str:
        rows = [_TITLES, *islice(_rows(self), _MAX_LINES)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(_TITLES))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        if (left := len(self) - _MAX_LINES) > 0:
            lines.append(f"... and {left:,} more")
        causes = [f"  {number:,} x {why}" for why, number in _causes(self)]
        return "\n".join([_summary(self), *causes, *(lines if len(self) else ())])

    def _repr_html_(self) -> str:
        from assay.scoring.notebook import mark, state_of, table

        summary = element("p", element("b", _summary(self)))
        causes = [(why, f"{number:,}") for why, number in _causes(self)]
        shown = (
            (*row[:2], mark(state_of(one.status, passed=None), row[2]), row[3])
            for one, row in zip(self.graded, _rows(self), strict=True)
        )
        return joined(
            summary,
            table(("cause", "items"), causes, len(causes), numbers=(1,)) if causes else None,
            table(_TITLES, shown, len(self), numbers=(1,)) if len(self) else None,
        )

    def __len__(self) -> int:
        return len(self.graded)

    @property
    def rewards(self) -> list[float | None]:
        """A finite reward for each, in order; None for what could not be graded, never a 0."""
        return [one.score for one in self.graded]

    def filled(self, on_error: OnError = "raise") -> list[float]:
        """The rewards of the answers to one prompt, for a trainer that accepts no None.

        Args:
            on_error: What stands for a missing one. With ``group_mean``, a group in which nothing
                was graded gets zeros, which are an advantage of 0, too.

        Raises:
            GraderError: With ``raise``, if one is missing.
            InputError: For any other word.
        """
        require_on_error(on_error)
        known = [one for one in self.rewards if one is not None]
        if on_error == "raise" and len(known) < len(self.graded):
            why = next(one.error or one.reason for one in self.graded if one.score is None)
            missing = len(self.graded) - len(known)
            raise GraderError(f"{missing} of {len(self.graded)} answers have no reward: {why}")
        mean = fsum(known) / len(known) if known and on_error == "group_mean" else 0.0
        return [mean if one is None else one for one in self.rewards]

    @property
    def components(self) -> dict[str, list[float | None]]:
        """The scores that make up the rewards, by name; each name has one value per answer."""
        found = [_parts(one) for one in self.graded]
        names = dict.fromkeys(name for parts in found for name in parts)
        return {name: [parts.get(name) for parts in found] for name in names}

    @property
    def errors(self) -> int:
        """How many could not be graded."""
        return sum(one.status == "error" for one in self.graded)

    @property
    def error_rate(self) -> float:
        """Their share of the batch; 0 for an empty one."""
        return self.errors / len(self.graded) if self.graded else 0.0

    def quantile(self, share: float) -> float | None:
        """The seconds within which a share of the items was done (nearest rank); None for none."""
        known = sorted(second for second in self.seconds if second is not None)
        return nearest_rank(known, share) if known else None

    def metrics(self) -> dict[str, float]:
        """Numbers worth logging at each step: always the same names.

        ``error_rate``, ``late_rate``, ``skipped_rate`` and ``flagged_rate`` are shares of the
        batch; ``seconds_p50`` and ``seconds_p99`` are times of single items, 0 if none was timed.
        """
        size = len(self.graded) or 1
        return {
            "error_rate": self.error_rate,
            "late_rate": sum(one.outcome == "late" for one in self.graded) / size,
            "skipped_rate": sum(one.status == "skipped" for one in self.graded) / size,
            "flagged_rate": sum(bool(one.flags) for one in self.graded) / size,
            "seconds_p50": self.quantile(0.5) or 0.0,
            "seconds_p99": self.quantile(0.99) or 0.0,
        }


@frozen(kw_only=True)
class Way:
    """How a grader is handed the items of a batch."""

    score: Score
    name: str
    # Items that it is handed together. Each has its own deadline if the grader tells them apart
    # (`assay.turns`); otherwise they share one.
    size: int = 1
    at_once: int = 16
    threshold: float = 1.0  # the score that passes
    deadline: float | None = DEADLINE  # where nobody says another; None for no end


def way_of(graders: Sequence[GraderSpec]) -> Way:
    """How declared graders grade a batch; their scores are combined as in a case.

    Several graders see an item one after the other.
    """
    specs = tuple(graders)
    if not specs:
        raise InputError("no grader was given")

    async def score(items: Sequence[tuple[str, Submission]]) -> Sequence[Graded]:
        return await grade_many(specs, items)

    if all(spec.kind.grader.is_pure for spec in specs):
        size, at_once = _PURE, 1
    else:
        handed = [spec.kind.grader.handed(spec.options) for spec in specs]
        size, at_once = handed[0] if len(specs) == 1 else (1, min(most for _, most in handed))
    name = specs[0].label if len(specs) == 1 else "reward"
    return Way(
        score=score,
        name=name,
        size=size,
        at_once=at_once,
        threshold=pass_mark(specs),
        deadline=DEADLINE + own_seconds(specs),
    )


class Batches:
    """Grades batches with one grader.

    ``deadline``: Seconds that an item may take once its turn has come. A late item is an error of
    ours and has no reward; the graders themselves limit what a submission may take, and score it.
    By default 600, and what the graders may take by their own ``timeout_s``; ``math.inf`` for no
    end.
    ``at_once``: Items under way at the same time, for graders that take them one by one; by default
    as many as the grader can bear.
    """

    def __init__(
        self,
        way: Way,
        *,
        name: str = "",
        deadline: float | None = None,
        attempts: int = 1,
        at_once: int | None = None,
    ) -> None:
        if deadline is None:
            deadline = way.deadline
        else:
            deadline = None if deadline == inf else require_seconds("deadline", deadline)
        if not isinstance(cast("object", name), str):
            raise InputError(f"name is {name!r}", hint="a text")
        for what, number in (("at_once", at_once), ("attempts", attempts)):
            if number is not None and (type(number) is not int or number < 1):
                raise InputError(f"{what} is {number!r}", hint="a whole number, at least 1")
        self.name = name or way.name
        self._way = way if at_once is None or way.size > 1 else replace(way, at_once=at_once)
        self._deadline, self._attempts = deadline, attempts

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def threshold(self) -> float:
        """The score that passes: a single grader's own, else 1."""
        return self._way.threshold

    async def grade(self, submissions: Iterable[Row]) -> Batch:
        """Grade a batch, on assay's own loop; other work of this one goes on.

        ``submissions``: Submissions, or rows as in a dataset. An iterator is read in parts of
        10,000; each is let go of before the next is read.
        """
        return _joined([await on_own_loop(self._grade(*part)) for part in _windows(submissions)])

    async def grade_here(self, submissions: Iterable[Row]) -> Batch:
        """The same on the running loop, for callers with loops of their own."""
        return _joined([await self._grade(*part) for part in _windows(submissions)])

    def grade_now(self, submissions: Iterable[Row]) -> Batch:
        """The same for callers that cannot await: it blocks, in any thread. Ctrl-C ends the work.

        Raises `InputError` as `grade`; or if a grader calls it on assay's own loop, which would
        wait for itself.
        """
        return _joined([wait_for(self._grade(*part)) for part in _windows(submissions)])

    async def _grade(self, first: int, given: Sequence[Row]) -> Batch:
        graded: list[Graded] = [_NOT_YET] * len(given)
        seconds: list[float | None] = [None] * len(given)

        async def work(numbers: list[int]) -> None:
            places: list[int] = []
            items: list[tuple[str, Submission]] = []
            for number in numbers:
                name = str(first + number)
                try:
                    items.append((name, _submission(given[number], first + number)))
                    places.append(number)
                except Exception as error:  # the boundary: a row is wrong, and no other one
                    graded[number] = Graded.failed(name, reason_of(error), outcome="bad_item")
            for number, one, took in zip(places, *await self._timed(items), strict=True):
                graded[number], seconds[number] = one, took

        numbers: Sequence[int] = range(len(given))
        for _attempt in range(self._attempts):
            parts = in_batches(numbers, self._way.size)
            await run_batches(parts, work, _kept, at_once=min(self._way.at_once, len(numbers)))
            numbers = [number for number in numbers if _may_succeed(graded[number])]
        batch = Batch(graded=tuple(graded), seconds=tuple(seconds))
        if given and batch.errors == len(given):
            said = batch.graded[0].error
            _LOG.warning("%s could grade none of %d answers: %s", self.name, len(given), said)
        return batch

    async def _timed(
        self, items: Sequence[tuple[str, Submission]]
    ) -> tuple[Sequence[Graded], Sequence[float]]:
        """What came of items that are worked on together, and the seconds of each."""
        if not items:
            return [], []
        turn, failed = WorkTurn(self._deadline), ""
        graded: Sequence[Graded] = ()
        try:
            graded = await within(self._way.score(items), turn)
            if len(graded) != len(items):
                failed = f"{self.name} gave {len(graded)} scores for {len(items)} submissions"
        except OutOfTimeError:
            return [self._late(name) for name, _ in items], [turn.spent] * len(items)
        except InputError:  # it is asked in a wrong way, and no other item will be graded either
            raise
        except Exception as error:  # the boundary: whatever breaks is an error of these items
            failed = reason_of(error)
        if failed:
            return [Graded.failed(name, failed) for name, _ in items], [turn.spent] * len(items)
        each = turn.each if len(turn.each) == len(items) else [turn.spent] * len(items)
        outcomes = [
            one if one.id == name else one.called(name)
            for (name, _), one in zip(items, graded, strict=True)
        ]
        if self._deadline is None or max(each) <= self._deadline:
            return outcomes, each
        return [
            self._late(one.id) if took > self._deadline and one.status != "error" else one
            for one, took in zip(outcomes, each, strict=True)
        ], each

    def _late(self, name: str) -> Graded:
        late = f"it was not graded within {self._deadline} seconds (`deadline` gives it more)"
        return Graded.failed(name, late, outcome="late")


def _kept(numbers: list[int], done: None) -> None:
    """Nothing more is to be done: what came of them is where it belongs."""
    del numbers, done


def _may_succeed(graded: Graded) -> bool:
    return graded.status == "error" and graded.outcome != "bad_item"


def _windows(given: Iterable[Row]) -> Iterator[tuple[int, Sequence[Row]]]:
    """What is there already as it is, and an iterator in parts, each with its first number."""
    if isinstance(given, Mapping | str | Submission):
        raise InputError(
            "a batch is a list of rows, and this is a single one", hint="put it into a list"
        )
    if isinstance(given, Sequence):
        yield 0, given
        return
    if not isinstance(cast("object", given), Iterable) or hasattr(given, "columns"):
        kind = type(given).__name__
        hint = "pass a DataFrame as df.to_dict('records')" if kind == "DataFrame" else ""
        raise InputError(f"a batch is a list of rows, and this is {kind}", hint=hint)
    first = 0
    for part in in_batches(given, _WINDOW):
        yield first, part
        first += len(part)


def _joined(batches: Sequence[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    return Batch(
        graded=tuple(one for batch in batches for one in batch.graded),
        seconds=tuple(one for batch in batches for one in batch.seconds),
    )


def _submission(given: Row, number: int) -> Submission:
    if isinstance(given, Submission):
        if type(given.expected) in _JSON:
            return given
        return replace(given, expected=reference_of(given.expected))
    if isinstance(given, InputError):
        raise given
    if not isinstance(cast("object", given), Mapping):
        raise InputError(
            f"item {number} is {type(given).__name__}, neither a submission nor a row",
            hint='for example {"answer": "...", "expected": "..."}',
        )
    row = given if _SIMPLE.issuperset(map(type, given.values())) else _as_json(given)
    # Rows are of the room above, which is found by name as kinds of graders are.
    return importlib.import_module("assay.tasks.rows").read_row(row, number + 1).submission


_SIMPLE = frozenset((str, int, bool, type(None)))
_JSON = _SIMPLE | {list, dict}
_READ = frozenset(
    ("id", "answer", "messages", "input", "images", "completion", "question", "trace")
)


def _as_json(given: Mapping[str, object]) -> dict[str, Json]:
    """A row of pandas, NumPy or Python: what is missing is not given, an array is a list."""
    row: dict[str, Json] = {}
    for key, value in given.items():
        name = str(key)
        if is_missing(value):
            row[name] = None
        elif name == "expected":
            row[name] = reference_of(value)
        else:  # what is read is told there, if it is neither JSON nor an array
            row[name] = plain(value, _as_it_is) if name in _READ else plain(value)
    metadata = given.get("metadata")
    if isinstance(metadata, Mapping) and "expected" in metadata:
        known = cast("dict[str, Json]", row["metadata"])
        known["expected"] = reference_of(cast("Mapping[str, object]", metadata)["expected"])
    return row


def _as_it_is(value: object) -> Json:
    """What is neither JSON nor an array: a picture by its data URL, anything else as it is."""
    picture = Picture.of_value(value)
    return cast("Json", value) if picture is None else picture.url


def _parts(graded: Graded) -> dict[str, float | None]:
    nodes = graded.details.get("subscores")
    found: dict[str, float | None] = {}
    for node in nodes if isinstance(nodes, list) else ():
        if isinstance(node, dict) and isinstance(name := node.get("name"), str):
            value = node.get("value")
            found[name] = float(value) if isinstance(value, int | float) else None
    return found


def _summary(batch: Batch) -> str:
    known = [one for one in batch.rewards if one is not None]
    mean = f"reward {shown_score(sum(known) / len(known))}" if known else "no reward"
    said = f"batch: {mean}; {len(known):,} of {len(batch):,} graded"
    middle, slow = batch.quantile(0.5), batch.quantile(0.99)
    return said if middle is None else f"{said}; p50 {_time(middle)}, p99 {_time(slow)}"


def _causes(batch: Batch) -> list[tuple[str, int]]:
    """The commonest errors; what differs in numbers alone is told apart."""
    errors = Counter(one_line(one.error, _WHY) for one in batch.graded if one.status == "error")
    causes = errors.most_common(_MAX_CAUSES)
    rest = errors.total() - sum(number for _, number in causes)
    return [*causes, ("other errors", rest)] if rest else causes


def _rows(batch: Batch) -> Iterator[tuple[str, ...]]:
    for one, seconds in zip(batch.graded, batch.seconds, strict=True):
        reward = shown_score(one.score) if one.score is not None else one.status
        why = one_line(one.error or one.reason, _WHY)
        yield one_line(one.id, 40), _time(seconds), reward, why


def _time(seconds: float | None) -> str:
    if seconds is None:
        return DASH
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:,.1f} s"
