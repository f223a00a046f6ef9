"""Plain functions as graders: what they are given, and what of their answers is a score."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import math
import threading
from collections.abc import Callable
from fractions import Fraction

import pytest

from assay.endpoint.scorers import scorer_of
from assay.errors import InputError
from assay.scoring.graded import Graded
from assay.types import StringThread, Submission
from tests.each import each

THREAD = StringThread([("user", "Q"), ("assistant", "A")], {"k": 1})
FULL = Submission(answer="A", question="Q", expected="E", thread=THREAD, metadata={"k": 1})


async def outcome(function: Callable[..., object], submission: Submission = FULL) -> Graded:
    (found,) = await scorer_of(function)([("a", submission)])
    assert found.id == "a"
    return found


async def score(function: Callable[..., object], submission: Submission = FULL) -> float | None:
    return (await outcome(function, submission)).score


def of_parts(answer: str, question: str, expected: str, metadata: dict[str, int]) -> float:
    return float((answer, question, expected, metadata) == ("A", "Q", "E", {"k": 1}))


def of_thread(thread: StringThread) -> float:
    return float(thread.completion() == "A")


def of_any_name(t: StringThread) -> float:
    return float(t.completion() == "A")


def of_any_name_and_defaults(t: StringThread, answer: str = "", scale: int = 2) -> float:
    return float(t.completion() == answer) / scale


async def in_async(answer: str) -> float:
    await asyncio.sleep(0)
    return float(answer == "A")


def takes_all(**parts: object) -> float:
    return float(set(parts) == {"answer", "question", "expected", "thread", "metadata"})


class Quarter:
    async def __call__(self, answer: str) -> float:
        return 0.25


async def scaled(answer: str, by: float = 1.0) -> float:
    return by


def by_place(answer: StringThread, /) -> float:
    return float(answer.completion() == "A")


def misspelt(anser: str, expected: str) -> float:
    return 1.0


def too_much(thread: StringThread, k: int) -> float:
    return 1.0


def strange_keyword(*, reply: str) -> float:
    return 1.0


@each(
    ("function", "expected"),
    [
        (of_parts, 1.0),
        (of_thread, 1.0),
        (of_any_name, 1.0),
        (of_any_name_and_defaults, 0.5),
        (in_async, 1.0),
        (takes_all, 1.0),
        (by_place, 1.0),
        (Quarter(), 0.25),
        (functools.partial(scaled, by=0.5), 0.5),
        (lambda: 1.0, 1.0),
    ],
)
async def test_a_function_is_given_what_its_parameters_name(
    function: Callable[..., object], expected: float
) -> None:
    assert await score(function) == expected


@each(
    ("function", "named"),
    [(misspelt, "anser"), (too_much, "'k'"), (strange_keyword, "reply"), (3, "not a function")],
)
def test_parameters_that_there_is_nothing_for_are_refused_at_once(
    function: Callable[..., object], named: str
) -> None:
    with pytest.raises(InputError, match=named):
        scorer_of(function)


async def test_a_thread_is_made_of_question_and_answer() -> None:
    def turns(thread: StringThread) -> dict[str, object]:
        return {"score": 1, "turns": [list(turn) for turn in thread]}

    found = await outcome(turns, Submission(answer="A", question="Q"))
    assert found.details["turns"] == [["user", "Q"], ["assistant", "A"]]


async def test_what_an_item_lacks_is_an_error_of_that_item() -> None:
    def needs(answer: str, expected: str) -> float:
        return 1.0

    items = [("a", Submission(answer="A")), ("b", Submission(answer="A", expected="E"))]
    first, second = await scorer_of(needs)(items)
    assert (first.status, first.outcome) == ("error", "bad_item")
    assert "'expected'" in first.error
    assert second.score == 1.0


@each(
    ("returned", "expected"),
    [
        (1, (1.0, "")),
        (0, (0.0, "")),
        (Fraction(1, 2), (0.5, "")),
        ((0.5, "half"), (0.5, "half")),
        ((0.5, None), (0.5, "")),
        ({"score": 0.5}, (0.5, "")),
        ({"score": 0.5, "reason": "half", "more": [1]}, (0.5, "half")),
        (-3.0, (-3.0, "")),  # the range is checked where it is known: behind the routes
    ],
)
async def test_what_a_function_may_return(returned: object, expected: tuple[float, str]) -> None:
    found = await outcome(lambda: returned)
    assert (found.score, found.reason) == expected


@each(
    "returned",
    [
        *(True, None, "1.0", math.nan, 10**400, (1.0,), (1.0, "a", "b"), (True, "yes"), (1.0, 2)),
        *({"reason": "x"}, {"score": math.nan}, {"score": 1.0, "reason": 3}, (n for n in [1.0])),
    ],
)
async def test_what_is_no_score_is_an_error_and_never_a_0(returned: object) -> None:
    found = await outcome(lambda: returned)
    assert (found.status, found.outcome, found.score) == ("error", "bad_return", None)


@each("kind", [ValueError, KeyError, SystemExit, StopIteration, MemoryError])
async def test_an_exception_is_an_error_of_its_item_only(kind: type[BaseException]) -> None:
    def fails(answer: str) -> float:
        if answer == "bad":
            raise kind("what happened")
        return 1.0

    items = [(text, Submission(answer=text)) for text in ("good", "bad", "fine")]
    found = await scorer_of(fails)(items)
    assert [one.score for one in found] == [1.0, None, 1.0]
    assert found[1].status == "error"
    assert "what happened" in found[1].error


async def test_a_plain_function_does_not_hold_up_the_others() -> None:
    """Two calls that wait for each other can only both end if they run at the same time."""
    both = threading.Barrier(2)

    def meets(answer: str) -> float:
        both.wait(20)
        return 1.0

    found = await scorer_of(meets, at_once=2)([("a", FULL), ("b", FULL)])
    assert [one.score for one in found] == [1.0, 1.0]


async def test_no_more_calls_run_at_once_than_allowed() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def counts(answer: str) -> float:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        with lock:
            running -= 1
        return 1.0

    await scorer_of(counts, at_once=1)([(str(n), FULL) for n in range(50)])
    assert most == 1


async def test_one_call_cannot_change_what_the_next_one_sees() -> None:
    """A function that edits its metadata or thread must not give the next item more."""

    def greedy(metadata: dict[str, object], thread: StringThread) -> float:
        found = float("mine" in metadata or "mine" in thread.metadata)
        metadata["mine"] = thread.metadata["mine"] = True
        return found

    found = await scorer_of(greedy)([("a", FULL), ("b", FULL)])
    assert [one.score for one in found] == [0.0, 0.0]


async def test_context_variables_reach_the_thread() -> None:
    variable: contextvars.ContextVar[float] = contextvars.ContextVar("variable")
    variable.set(0.75)

    def of_variable() -> float:
        return variable.get()

    assert await score(of_variable) == 0.75
