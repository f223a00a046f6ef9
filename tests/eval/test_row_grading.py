"""Rows of a dataset through graders: which lack an answer, and what comes of those that break."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from assay.errors import SandboxError
from assay.eval.rows import grading as row_grading
from assay.eval.rows.grading import (
    computes,
    is_pure,
    lacks_answer,
    row_results,
    unanswered,
    without_loop,
)
from assay.graders.spec import GraderSpec
from assay.tasks import task
from assay.tasks.rows import Row
from assay.tasks.task import RunOptions
from assay.turns import Charges, charges_here, told_of_charges
from assay.types import Submission, Trace
from assay.types.thread import StringThread
from tests.each import each

EMPTY = '"" is an empty answer'
EXACT = GraderSpec(type="exact_match")
CONDUCT = GraderSpec(type="tool_correctness", options={"expected": ["execute"]})
JUDGE = GraderSpec(type="llm_judge", options={"criterion": "It is so."})


def _traced(status: Any = None, **extra: Any) -> Submission:
    return Submission(trace=Trace(status=status, extra=extra))


@each(
    "submission, of_words, of_conduct",
    [
        (Submission(answer=""), False, False),
        (Submission(answer="x", trace=Trace(status="error")), False, False),
        (Submission(), True, True),
        (_traced(), True, True),
        (_traced("error", untold="texts"), True, True),
        (_traced(untold="texts", incomplete="it was cut"), True, True),
        (_traced("completed", untold="texts"), True, False),
    ],
)
def test_a_row_lacks_an_answer_unless_its_calls_are_all_that_is_judged(
    submission: Submission, *, of_words: bool, of_conduct: bool
) -> None:
    assert lacks_answer([EXACT], submission) == of_words
    assert lacks_answer([CONDUCT, EXACT], submission) == of_words
    assert lacks_answer([CONDUCT], submission) == of_conduct


@each(
    "submission, told",
    [
        (Submission(), f"the recorded answer is null; {EMPTY}"),
        (Submission(thread=StringThread([])), f"the recorded answer is null; {EMPTY}"),
        (
            Submission(thread=StringThread([("user", "hi"), ("tool", "x")])),
            f"there is no answer: 'messages' ends with what 'tool' says, not 'assistant'; {EMPTY}",
        ),
        (_traced(), "the recorded run has no answer"),
        (_traced("error"), "the recorded run has no answer: it ended in an error"),
        (_traced("error", untold="u"), "the recorded run has no answer: it ended in an error"),
        (_traced("error", incomplete="i"), "the recorded run has no answer: i"),
        (_traced(untold="u"), "the recorded run has no answer: u"),
    ],
)
def test_why_there_is_no_answer_is_told_and_is_an_error(submission: Submission, told: str) -> None:
    result = unanswered(submission)
    assert (result.content, result.isError, result.reward) == (told, True, None)


def _rows(*answers: str | None) -> list[Row]:
    given = enumerate(answers, start=1)
    return [
        Row(id=str(n), submission=Submission(answer=answer, expected="a")) for n, answer in given
    ]


async def test_rows_are_graded_in_their_order_and_those_without_an_answer_are_errors() -> None:
    results = await row_results([EXACT], _rows("a", None, "b", None, "a"))
    assert [result.reward for result in results] == [1.0, None, 0.0, None, 1.0]
    assert [result.isError for result in results] == [False, True, False, True, False]
    assert await row_results([EXACT], []) == []


async def test_what_breaks_is_an_error_of_all_rows_that_were_graded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def breaks(_: object, submissions: Sequence[Submission]) -> None:
        assert len(submissions) == 2
        raise SandboxError("it is gone")

    monkeypatch.setattr(row_grading, "grade_batch", breaks)
    results = await row_results([JUDGE], _rows("a", None, "b"))
    assert [result.content for result in results] == [
        "[grading] it is gone",
        f"the recorded answer is null; {EMPTY}",
        "[grading] it is gone",
    ]
    assert all(result.isError for result in results)


async def test_what_asks_others_has_a_time_and_its_costs_are_those_of_the_one_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Charges] = []
    seen: list[bool] = []

    async def hangs(_: object, __: object) -> None:
        seen.append(charges_here() is not None)
        await asyncio.Event().wait()

    monkeypatch.setattr(row_grading, "grade_batch", hangs)
    limited = RunOptions(grading_timeout=0.01)
    monkeypatch.setattr(task, "RunOptions", lambda: limited)
    with told_of_charges(told.append):
        for rows in (_rows("a"), _rows("a", "b")):
            results = await row_results([JUDGE], rows)
            assert {result.content for result in results} == {
                "[grading] grading took longer than 0.01 s"
            }
    assert (seen, len(told)) == ([True, False], 1)


def test_graders_that_compare_are_told_from_those_that_compute_and_those_that_ask() -> None:
    function = GraderSpec(type="function", options={"source": "def grade(x): return 1.0"})
    for graders, pure, computed in (
        ([EXACT], True, True),
        ([EXACT, function], False, True),
        ([EXACT, JUDGE], False, False),
        ([], True, True),
    ):
        assert (is_pure(graders), computes(graders)) == (pure, computed)


async def test_what_waits_for_nothing_needs_no_loop() -> None:
    async def at_once() -> int:
        return 7

    assert without_loop(at_once()) == 7
    with pytest.raises(RuntimeError, match="has waited for something"):
        without_loop(asyncio.sleep(0, 7))
