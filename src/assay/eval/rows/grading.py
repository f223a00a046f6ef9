"""Rows of a dataset through graders, wherever what comes of them is kept."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import TypeVar, cast

from assay.errors import reason_of
from assay.graders.apply import grade_batch
from assay.graders.driver import OutOfTimeError, within
from assay.graders.spec import GraderSpec
from assay.graders.usage import missing_part, untold_part
from assay.scoring.results import EvaluationResult
from assay.tasks.rows import Row
from assay.turns import charging
from assay.types.submission import Submission

T = TypeVar("T")

ROW_PARTS = frozenset({"answer", "question", "expected", "thread", "metadata"})
"""What every row has; some have a trace, too."""
_NO_ANSWER = 'the recorded answer is null; "" is an empty answer'


def is_pure(graders: Sequence[GraderSpec]) -> bool:
    """Whether graders only compare, which takes less time than reading a row does."""
    return all(spec.kind.grader.is_pure for spec in graders)


def computes(graders: Sequence[GraderSpec]) -> bool:
    """Whether graders only compute, so that other processes may grade rows."""
    return all(spec.kind.grader.computes or spec.kind.grader.is_pure for spec in graders)


async def row_results(graders: Sequence[GraderSpec], rows: Sequence[Row]) -> list[EvaluationResult]:
    """Grade rows together, each as `grade_submission` would; a failure is an error of all of them.

    Unless graders only compute, all rows together have the time that one grading may take.
    """
    lacking = [lacks_answer(graders, row.submission) for row in rows]
    there = [row.submission for row, lacks in zip(rows, lacking, strict=True) if not lacks]
    work = grade_batch(graders, there)
    limit = None
    if not computes(graders):
        from assay.tasks.task import RunOptions

        limit = RunOptions().grading_timeout
    try:
        if limit is None or len(there) != 1:
            graded = await (work if limit is None else within(work, limit))
        else:
            with charging():
                graded = await within(work, limit)
    except OutOfTimeError:
        graded = _failed(f"grading took longer than {limit:g} s", len(there))
    except Exception as error:  # the boundary: what breaks on a row is that row's error
        graded = _failed(reason_of(error), len(there))
    results = iter(graded)
    return [
        unanswered(row.submission) if lacks else next(results)
        for row, lacks in zip(rows, lacking, strict=True)
    ]


def _failed(reason: str, count: int) -> list[EvaluationResult]:
    return [EvaluationResult.from_error(f"[grading] {reason}")] * count


def lacks_answer(graders: Sequence[GraderSpec], submission: Submission) -> bool:
    """Whether a row cannot be graded for want of an answer.

    A harness that tells no texts tells no answer, and yet all calls: conduct can be graded.
    """
    if submission.answer is not None:
        return False
    trace = submission.trace
    if trace is None or missing_part(trace) or trace.status == "error":
        return True
    return not (untold_part(trace) and all(spec.kind.grader.of_conduct for spec in graders))


def unanswered(submission: Submission) -> EvaluationResult:
    """The result of a row without an answer: an error, since nothing is known of the answer."""
    if (trace := submission.trace) is None:
        if (thread := submission.thread) is None or not thread.turns:
            return EvaluationResult.from_error(_NO_ANSWER)
        last = f"'messages' ends with what {thread.turns[-1].role!r:.40} says, not 'assistant'"
        return EvaluationResult.from_error(f'there is no answer: {last}; "" is an empty answer')
    ended = "it ended in an error" if trace.status == "error" else ""
    why = missing_part(trace) or ended or untold_part(trace)
    return EvaluationResult.from_error(f"the recorded run has no answer{why and f': {why}'}")


def without_loop(work: Coroutine[object, None, T]) -> T:
    """What a coroutine returns that waits for nothing, so that it needs no loop."""
    try:
        work.send(None)
    except StopIteration as ended:
        return cast("T", ended.value)
    work.close()
    raise RuntimeError("a grader that only computes has waited for something")
