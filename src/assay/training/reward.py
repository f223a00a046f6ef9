"""`Reward`: one grader, many answers, from any thread; what could not be graded has no reward.

A trainer asks from its main thread, from worker threads, from subprocesses that it forked or
spawned, and from inside event loops. Grading runs on one loop of assay's own per process, in a
thread of its own, so that each of them may simply wait. No signal is used. A deadline begins when
an item's turn has come, not when it was handed in.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict, TypeVar, cast

from assay.errors import GraderError, InputError
from assay.frozen import frozen
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.types.submission import Submission

if TYPE_CHECKING:
    from assay.graders.base import Grader
    from assay.graders.spec import GraderSpec

T = TypeVar("T")

Items: TypeAlias = "Sequence[tuple[str, Submission]]"
Score: TypeAlias = "Callable[[Items], Awaitable[Sequence[Graded]]]"
Gradable: TypeAlias = (
    "str | GraderSpec | Sequence[GraderSpec] | Grader | type[Grader] | Callable[..., object]"
)
"""What `Reward` takes for a grader."""

_LOG = logging.getLogger("assay.training")
_AT_ONCE = 32
_STRETCH = 1_000


OnError: TypeAlias = Literal["raise", "group_mean", "zero"]
"""What stands for a reward that there is not, where a trainer takes no None: nothing (an error),
the mean of the graded answers to the same prompt (an advantage of 0), or a 0 that is marked."""


class RewardOptions(TypedDict, total=False):
    """What `Reward` takes beside the grader, as every hook passes it on."""

    name: str
    deadline: float | None
    attempts: int
    at_once: int
    url: str | None
    store: str | None
    project: str


@frozen(kw_only=True)
class Batch:
    """What came of a batch.

    Attributes:
        graded: One outcome for each answer, in order.
        seconds: How long each was worked on, queueing not counted; None where it was not begun.
    """

    graded: tuple[Graded, ...]
    seconds: tuple[float | None, ...]

    @property
    def rewards(self) -> list[float | None]:
        """A finite reward for each, in order; None for what has none: never a 0 for a fault."""
        return [one.score for one in self.graded]

    def filled(self, on_error: OnError = "raise") -> list[float]:
        """The rewards for a trainer that takes no None; the answers are those to one prompt.

        Args:
            on_error: What stands for a missing one. With ``group_mean``, a group of which nothing
                was graded gets zeros, which are an advantage of 0 all the same.

        Raises:
            GraderError: With ``raise``, if one is missing.
        """
        known = [one for one in self.rewards if one is not None]
        if on_error == "raise" and len(known) < len(self.graded):
            why = next(one.error or one.reason for one in self.graded if one.score is None)
            missing = len(self.graded) - len(known)
            raise GraderError(f"{missing} of {len(self.graded)} answers have no reward: {why}")
        mean = fsum(known) / len(known) if known and on_error == "group_mean" else 0.0
        return [mean if one is None else one for one in self.rewards]

    @property
    def components(self) -> dict[str, list[float | None]]:
        """The scores that the rewards are made of, by name: every name has one for each answer."""
        found = [_parts(one) for one in self.graded]
        names = dict.fromkeys(name for parts in found for name in parts)
        return {name: [parts.get(name) for parts in found] for name in names}

    @property
    def errors(self) -> int:
        """How many could not be graded."""
        return sum(one.status == "error" for one in self.graded)

    @property
    def error_rate(self) -> float:
        """Which part of them; 0 for an empty batch."""
        return self.errors / len(self.graded) if self.graded else 0.0

    def quantile(self, share: float) -> float | None:
        """The seconds that a share of the items took at most (nearest rank); None for none."""
        known = sorted(second for second in self.seconds if second is not None)
        return known[min(len(known) - 1, int(share * len(known)))] if known else None

    def metrics(self) -> dict[str, float]:
        """Numbers worth logging at each step: always the same names.

        ``error_rate``, ``skipped_rate`` and ``flagged_rate`` are parts of the batch, and
        ``seconds_p50`` and ``seconds_p99`` are of single items, 0 where nothing was timed.
        """
        size = len(self.graded) or 1
        return {
            "error_rate": self.error_rate,
            "skipped_rate": sum(one.status == "skipped" for one in self.graded) / size,
            "flagged_rate": sum(bool(one.flags) for one in self.graded) / size,
            "seconds_p50": self.quantile(0.5) or 0.0,
            "seconds_p99": self.quantile(0.99) or 0.0,
        }


class Reward:
    """A grader, ready to be the reward of a trainer.

    Can be pickled where its grader can: a trainer's worker makes its own connections.

    Args:
        grader: ``graders.yaml``; ``grade.py`` (a function, in the sandbox); or
            ``key@3`` (a stored grader); a `GraderSpec` or several; a grader with its options in
            its fields; or a Python function, which runs in this process.
        name: By which logs know it; the grader's own by default.
        deadline: Seconds that one item may take once its turn has come. An item that is late is
            an error of ours, with no reward: what a submission may take is limited by the graders
            themselves, whose limits are scores.
        attempts: How often an item that cannot be graded is tried before it has no reward.
        at_once: Items at work at the same time, of graders that take them one by one.
        url: Of an assay server that has the stored grader; by default ``ASSAY_URL``, or the store.
        store: Instead of a server: where the stored grader is.
        project: Of the stored grader.

    Raises:
        InputError: For a grader that is not there, or that cannot grade answers alone.
    """

    def __init__(
        self,
        grader: Gradable,
        *,
        name: str = "",
        deadline: float | None = None,
        attempts: int = 1,
        at_once: int = _AT_ONCE,
        url: str | None = None,
        store: str | None = None,
        project: str = "default",
    ) -> None:
        if deadline is not None and not 0 < deadline < float("inf"):
            raise InputError(f"the deadline is {deadline} seconds", hint="more than 0, or None")
        for what, number in (("at_once", at_once), ("attempts", attempts)):
            if number < 1:
                raise InputError(f"{what} is {number}", hint="at least 1")
        options = RewardOptions(
            name=name,
            deadline=deadline,
            attempts=attempts,
            at_once=at_once,
            url=url,
            store=store,
            project=project,
        )
        self._given = (grader, options)
        self._deadline, self._attempts, self._at_once = deadline, attempts, at_once
        own, self._score, self._together = _scorer(grader, url, store, project)
        self.name = name or own

    def __reduce__(self) -> tuple[Callable[..., Reward], tuple[object, ...]]:
        grader, options = self._given
        return partial(Reward, **options), (grader,)

    async def grade(self, items: Iterable[Submission | Mapping[str, Json]]) -> Batch:
        """Grade answers, on assay's own loop; other work of this one goes on.

        Args:
            items: Submissions, or rows as datasets have them: ``answer`` or ``messages``, with
                ``question``, ``expected`` and ``metadata``.
        """
        given = list(items)
        return await asyncio.wrap_future(on_loop(self._grade(given)))

    def grade_now(self, items: Iterable[Submission | Mapping[str, Json]]) -> Batch:
        """The same for who cannot await: waits, in whatever thread.

        Raises:
            InputError: If called by a grader, on assay's own loop, which would wait for itself.
        """
        loop = _loop()
        if threading.current_thread() is _thread():
            raise InputError("grade_now was called on assay's own loop", hint="await grade(...)")
        given = list(items)
        return asyncio.run_coroutine_threadsafe(self._grade(given), loop).result()

    async def _grade(self, given: Sequence[Submission | Mapping[str, Json]]) -> Batch:
        graded: dict[int, Graded] = {}
        wanted: list[tuple[int, Submission]] = []
        for number, one in enumerate(given):
            try:
                wanted.append((number, _submission(one, number)))
            except InputError as error:  # the row is wrong, and whose fault that is nobody knows
                graded[number] = Graded.failed(str(number), str(error), outcome="bad_item")
        seconds: dict[int, float] = {}
        work = self._all if self._together else self._each
        await work(wanted, graded, seconds)
        for _again in range(self._attempts - 1):
            if not (failed := [one for one in wanted if graded[one[0]].status == "error"]):
                break
            await work(failed, graded, seconds)
        numbers = range(len(given))
        batch = Batch(
            graded=tuple(graded[number] for number in numbers),
            seconds=tuple(seconds.get(number) for number in numbers),
        )
        if given and batch.errors == len(given):
            said = batch.graded[0].error
            _LOG.warning("%s could grade none of %d answers: %s", self.name, len(given), said)
        return batch

    async def _all(
        self,
        wanted: Sequence[tuple[int, Submission]],
        graded: dict[int, Graded],
        seconds: dict[int, float],
    ) -> None:
        """Hand them over together, to a grader that is quicker so and has its own limits."""
        for start in range(0, len(wanted), _STRETCH):
            part = wanted[start : start + _STRETCH]
            began = time.perf_counter()
            found = await self._score([(str(number), one) for number, one in part])
            share = (time.perf_counter() - began) / len(part)
            for (number, _), one in zip(part, found, strict=True):
                own = one.details.get("wall_seconds")
                graded[number] = one
                seconds[number] = float(own) if isinstance(own, int | float) else share

    async def _each(
        self,
        wanted: Sequence[tuple[int, Submission]],
        graded: dict[int, Graded],
        seconds: dict[int, float],
    ) -> None:
        turn = asyncio.Semaphore(self._at_once)

        async def work(number: int, one: Submission) -> None:
            async with turn:
                began = time.perf_counter()
                try:
                    async with asyncio.timeout(self._deadline):
                        (graded[number],) = await self._score([(str(number), one)])
                except TimeoutError:
                    late = f"it was not graded within {self._deadline} seconds"
                    graded[number] = Graded.failed(str(number), late, outcome="late")
                seconds[number] = time.perf_counter() - began

        async with asyncio.TaskGroup() as group:
            for number, one in wanted:
                group.create_task(work(number, one))


def _parts(graded: Graded) -> dict[str, float | None]:
    nodes = graded.details.get("subscores")
    found: dict[str, float | None] = {}
    for node in nodes if isinstance(nodes, list) else ():
        if isinstance(node, dict) and isinstance(name := node.get("name"), str):
            value = node.get("value")
            found[name] = float(value) if isinstance(value, int | float) else None
    return found


def _submission(given: Submission | Mapping[str, Json], number: int) -> Submission:
    if isinstance(given, Submission):
        return given
    from assay.tasks.rows import read_row

    return read_row(given, number + 1).submission


def _scorer(
    grader: Gradable, url: str | None, store: str | None, project: str
) -> tuple[str, Score, bool]:
    """What a grader is called, what grades with it, and whether that takes many together."""
    from assay.endpoint.scorers import scorer_of, scorer_of_graders
    from assay.graders.base import Grader
    from assay.graders.spec import GraderSpec
    from assay.tasks.grader_files import load_graders

    if isinstance(grader, str):
        if Path(grader).suffix in (".yaml", ".yml", ".json"):
            specs: Sequence[GraderSpec] = load_graders(grader, alone=True)
        elif grader.endswith(".py"):
            file = Path(grader).resolve()
            specs = [GraderSpec(type="function", name=file.stem, options={"file": str(file)})]
        else:
            return grader, _stored(grader, url, store, project), True
    elif isinstance(grader, GraderSpec):
        specs = [grader]
    elif isinstance(grader, Grader) or (isinstance(grader, type) and issubclass(grader, Grader)):
        specs = [_declared(grader)]
    elif callable(cast("object", grader)):
        function = cast("Callable[..., object]", grader)
        named = getattr(function, "__name__", type(function).__name__)
        return named, scorer_of(function), False
    else:
        specs = list(cast("Sequence[GraderSpec]", grader))
    if not specs:
        raise InputError("there is no grader to make a reward of")
    name = specs[0].label if len(specs) == 1 else "reward"
    kind = specs[0].kind.grader
    together = len(specs) == 1 and (kind.is_pure or specs[0].type == "function")
    return name, scorer_of_graders(specs), together


def _declared(grader: Grader | type[Grader]) -> GraderSpec:
    """A grader as a file would declare it, with the options that are not as they are by default."""
    from dataclasses import fields, is_dataclass

    from assay.graders.kinds import KINDS
    from assay.graders.spec import GraderSpec
    from assay.types.codec import to_json

    made = grader if isinstance(grader, type) else type(grader)
    place = f"{made.__module__}:{made.__qualname__}"
    kind = next((name for name, target in KINDS.items() if target == place), f"python:{place}")
    options: dict[str, Json] = {}
    if not isinstance(grader, type) and is_dataclass(grader):
        given = ((one, getattr(grader, one.name)) for one in fields(grader))
        options = {one.name: to_json(value) for one, value in given if value != one.default}
    own = str(vars(made).get("name", "")) if kind.startswith("python:") else ""
    return GraderSpec(type=kind, name=own, options=options)


def _stored(given: str, url: str | None, store: str | None, project: str) -> Score:
    from assay.client import AsyncClient

    key, _, number = given.partition("@")
    if number and not (number.isascii() and number.isdecimal()):
        raise InputError(f"{given!r} names no version", hint="KEY or KEY@NUMBER")
    held: list[AsyncClient] = []

    async def score(items: Items) -> Sequence[Graded]:
        if not held:  # it belongs to the loop that grades
            held.append(AsyncClient(url, store=store, project=project))
        answers = [one for _, one in items]
        return await held[0].graders.grade(key, answers, version=int(number) if number else None)

    return score


# One loop for each process.

_LOCK = threading.Lock()
_LOOPS: dict[int, tuple[asyncio.AbstractEventLoop, threading.Thread]] = {}


def _running() -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    """The loop of this process: the child of a fork has none of its parent's threads."""
    process = os.getpid()
    with _LOCK:
        found = _LOOPS.get(process)
        if found is None:
            _LOOPS.clear()
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="assay-rewards", daemon=True)
            thread.start()
            found = _LOOPS[process] = (loop, thread)
        return found


def _loop() -> asyncio.AbstractEventLoop:
    return _running()[0]


def _thread() -> threading.Thread:
    return _running()[1]


def on_loop(work: Coroutine[object, object, T]) -> Future[T]:
    """Do something on assay's own loop; what it comes to can be waited for or awaited anywhere."""
    return asyncio.run_coroutine_threadsafe(work, _loop())
