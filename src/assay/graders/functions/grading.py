"""Grade items with a function: its calls, what their outcomes mean, and many of them at once."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from assay.errors import InputError
from assay.graders.functions.source import FunctionSource
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.results import unrounded
from assay.types.submission import Submission
from assay.types.thread import StringThread

if TYPE_CHECKING:
    from assay.sandbox.functions.program import FunctionLimits, Outcome, TierChoice


async def grade_functions(
    source: FunctionSource,
    items: Sequence[tuple[str, Submission]],
    *,
    limits: FunctionLimits | None = None,
    tier: TierChoice = "auto",
) -> list[Graded]:
    """Grade items with a function, on as many cores as there are.

    The workers that hold the function stay for the next call. All items are held in memory at
    once: give it thousands, not millions.

    Returns:
        What came of each item, in their order; scores are what the function returned.

    Raises:
        InputError: For a source that is too long.
        ProgramError: If the function cannot be loaded.
        SandboxUnavailableError: If this machine has no sandbox.
    """
    from assay.sandbox.functions import FunctionLimits, pool_for

    limits = limits or FunctionLimits()
    pool = pool_for(source.program(), isolation=source.isolation, limits=limits, tier=tier)
    found: dict[int, Graded] = {}
    payloads: dict[int, bytes] = {}
    for number, (item, submission) in enumerate(items):
        made = call_of(item, submission, limits.payload_bytes, source)
        if isinstance(made, Graded):
            found[number] = made
        else:
            payloads[number] = made
    outcomes = await pool.call_many(list(payloads.values()))
    for number, outcome in zip(payloads, outcomes, strict=True):
        found[number] = graded_from(items[number][0], outcome, source)
    return [found[number] for number in range(len(items))]


TWICE = {
    "cpu_timeout": ("timed_out", "it used up its CPU time"),
    "wall_timeout": ("timed_out", "it used up its time"),
    "memory": ("out_of_memory", "it used up its memory"),
    "crash": ("crashed", "its process ended before it returned"),
    "recursion": ("nested_too_deeply", "it called itself more often than Python permits"),
}
"""Ends of a call that are the doing of what is graded, if they repeat: their flag, and in words."""


class NothingToGradeError(InputError):
    """Nobody has answered."""


def call_of(
    item: str, submission: Submission, limit: int, source: FunctionSource
) -> bytes | Graded:
    """What a function is called with, or the outcome of an item that it cannot be called with."""
    try:
        payload = _payload(submission)
        if len(payload) > limit:
            return too_long(item, thread_of(submission), limit, source)
    except InputError as error:
        outcome = "no_answer" if isinstance(error, NothingToGradeError) else "error"
        return Graded.failed(item, str(error), outcome=outcome).by("", source.digest)
    return payload


def _payload(submission: Submission) -> bytes:
    """What `payload_of` and `thread_of` give, without a thread of what is written at once."""
    answer, question = submission.answer, submission.question
    if submission.thread is not None or type(answer) is not str:
        return payload_of(thread_of(submission))
    asked = ""
    if question is not None:
        if type(question) is not str:
            return payload_of(thread_of(submission))
        asked = f'{{"role":"user","content":{json.dumps(question)}}},'
    said = f'{{"role":"assistant","content":{json.dumps(answer)}}}'
    metadata = _encoded(_metadata(submission))
    return f'{{"messages":[{asked}{said}],"metadata":{metadata}}}'.encode()


def thread_of(submission: Submission) -> StringThread:
    """The conversation that a function grades.

    It is the submission's own, or question and answer. It ends with the answer wherever there is
    one, so that ``completion()`` is what every other grader grades. The metadata of both are
    joined; the reference answer is in it as ``expected`` unless it has one already.

    Raises `NothingToGradeError` for a submission without an answer, in whose conversation no
    assistant speaks. A function would grade the question.
    """
    thread, answer = submission.thread, submission.answer
    spoken = thread is not None and any(role == "assistant" for role, _ in thread.turns)
    if answer is None and not spoken:
        raise NothingToGradeError("there is nothing to grade: no answer, and no assistant turn")
    turns = list(thread.turns) if thread is not None else []
    if thread is None and submission.question is not None:
        turns = StringThread([("user", submission.question)]).get_turns()
    made = StringThread(turns, _metadata(submission), () if thread is None else thread.pictures)
    return made if answer is None or made.completion() == answer else made.assistant(answer)


def _metadata(submission: Submission) -> dict[str, Json]:
    thread = submission.thread
    metadata: dict[str, Json] = {**submission.metadata, **(thread.metadata if thread else {})}
    if submission.expected is not None and metadata.get("expected") is None:
        metadata["expected"] = submission.expected
    return metadata


def payload_of(thread: StringThread) -> bytes:
    """A conversation as the JSON that is sent into the sandbox."""
    return _encoded(thread.to_dict()).encode()


_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
"""Made once: `json.dumps` makes one for each call that asks for anything."""


def _encoded(value: dict[str, Json]) -> str:
    try:
        return _JSON.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the metadata is not JSON: {error}") from error


def too_long(item: str, thread: StringThread, limit: int, source: FunctionSource) -> Graded:
    """The outcome of a conversation that is longer than a call may be given.

    Where it would fit without its answer, the answer is at fault, and that is the worst score.
    """
    reason = f"the conversation is longer than {limit} bytes"
    before = thread.messages()
    shown = [one for one in thread.pictures if one[0] < len(before)]
    rest = StringThread(before, thread.metadata, shown)
    if len(payload_of(rest)) > limit:
        return Graded.failed(item, reason, outcome="too_long")
    return Graded(
        id=item,
        status="scored",
        score=source.worst,
        outcome="too_long",
        reason=f"{reason}, because of its answer",
        flags=("too_long",),
        digest=source.digest,
        assurance="separate",
    )


def graded_from(item: str, outcome: Outcome, source: FunctionSource) -> Graded:
    """What a call's outcome means for the item that was graded.

    A function that raises, or returns something else than a finite number, is an error: it may be
    wrong about a good answer. One that twice uses up its time, its memory or the depth of calls, or
    dies, is the doing of this very answer: the worst score, with a flag.
    """
    details: dict[str, Json] = {
        "output": outcome.output,
        "cpu_seconds": round(outcome.cpu_seconds, 6),
        "wall_seconds": round(outcome.wall_seconds, 6),
    }
    if outcome.retried:
        details["retried"] = True
    low, high = source.range or (-math.inf, math.inf)
    graded = partial(Graded, id=item, details=details, digest=source.digest)
    number = None if outcome.score is None else unrounded(outcome.score, low, high)
    if outcome.status == "ok" and number is not None and low <= number <= high:
        return graded(status="scored", score=number, assurance="separate")
    scored = partial(graded, status="scored", outcome=outcome.status, assurance="separate")
    if outcome.status in TWICE:
        flag, reason = TWICE[outcome.status]
        return scored(score=source.worst, reason=f"{reason}, twice", flags=(flag,))
    if outcome.status != "ok" or outcome.score is None:
        error = outcome.message or outcome.status
        if outcome.status == "bad_return":
            error += f"; {_mend(error, source)}"
        return graded(status="error", outcome=outcome.status, error=error)
    wrong = f"grade returned {outcome.score:g}, outside its range [{low:g}, {high:g}]"
    wrong += "; keep it within the range, or declare another"
    return graded(status="error", outcome="out_of_range", error=wrong)


_MENDS = {
    "bool": "a bool is not a score: return 1.0 or 0.0",
    "coroutine": "put 'await' before the call whose result it returns",
    "NoneType": "end every way through 'grade' with 'return' and a float{between}",
    "Decimal": "return float(...) of it",
    "Fraction": "return float(...) of it",
    "str": "return float(...) of it if it is a number",
}


def _mend(error: str, source: FunctionSource) -> str:
    """What to write instead of what a function returned."""
    low, high = source.range or (0.0, 1.0)
    between = f" between {low:g} and {high:g}"
    kind = error.removeprefix("it returned ").partition(",")[0]
    return _MENDS.get(kind, "return a float{between}").format(between=between)
