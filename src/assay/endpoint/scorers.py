"""Scorers: of declared graders, and of a plain Python function.

A function is its author's own code and runs in this process.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from assay.endpoint.served import Scorer
from assay.errors import InputError, ScoreError, is_fault, nearest, reason_of
from assay.graders.apply import grade_many, grade_submission, require_parts
from assay.graders.driver import each
from assay.graders.functions import thread_of
from assay.graders.spec import GraderSpec
from assay.graders.threads import in_thread
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, record_evidence
from assay.scoring.results import finite_number
from assay.types.submission import Submission

PARTS = ("thread", "answer", "question", "expected", "metadata")
"""What an item has that comes without a trace or a workspace."""
_MOST_TOLD = 500
_log = logging.getLogger("assay.endpoint")


def scorer_of(function: Callable[..., object], *, at_once: int | None = None) -> Scorer:
    """Make a scorer of a function.

    ``function``: Plain or async. Its parameters are named after what it needs: ``thread``,
    ``answer``, ``question``, ``expected``, ``metadata``; a single parameter of any other name is
    given the thread, which is the one that a function in the sandbox is given
    (`assay.graders.functions.thread_of`). It returns a number, ``(number, reason)`` or ``{"score",
    "reason", ...}``, of which the rest are details.
    ``at_once``: How many items are graded at the same time; 4 more than cores by default.
    """
    wanted = _Wanted(function)
    turn_count = at_once or (os.cpu_count() or 1) + 4

    async def score(items: Sequence[tuple[str, Submission]]) -> Sequence[Graded]:
        return await each(items, lambda item: wanted.graded(*item), at_once=turn_count)

    return score


class _Wanted:
    """A function, and what it is to be called with."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        called = cast("object", getattr(function, "__call__", function))  # noqa: B004 - its kind is asked
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            called
        )
        self._named: dict[str, bool] = {}  # whether it has to be there
        self._by_place = False
        self._told: set[tuple[type[BaseException], int]] = set()
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError) as error:
            raise InputError(f"{function!r:.80} is not a function that can be served") from error
        self._read(list(signature.parameters.values()))

    def _read(self, parameters: list[inspect.Parameter]) -> None:
        named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        needed = [p for p in named if p.default is p.empty]
        strange = [p for p in needed if p.name not in PARTS or p.kind is p.POSITIONAL_ONLY]
        is_alone = len(needed) == len(strange) == 1
        if is_alone and strange[0].kind is not inspect.Parameter.KEYWORD_ONLY:
            self._by_place = True
        elif strange:
            name = strange[0].name
            raise InputError(
                f"the function has a parameter {name!r}, for which there is no value",
                hint=nearest(name, list(PARTS)),
            )
        self._named = {
            p.name: p.default is p.empty
            for p in named
            if p.name in PARTS and p.kind is not p.POSITIONAL_ONLY
        }
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            self._named = {**dict.fromkeys(PARTS, False), **self._named}

    async def graded(self, name: str, submission: Submission) -> Graded:
        """What came of one item; an exception of the function is the item's error."""
        parts: dict[str, object] = {"metadata": {}, **submission.parts()}
        try:
            parts["thread"] = thread_of(submission)
        except InputError as error:
            if self._by_place or self._named.get("thread"):
                return Graded.failed(name, str(error), outcome="no_answer")
            parts.pop("thread", None)
        lacking = [part for part, needed in self._named.items() if needed and part not in parts]
        if lacking:
            said = f"the function needs {' and '.join(map(repr, lacking))}, which the item lacks"
            return Graded.failed(name, said, outcome="bad_item")
        places = [parts["thread"]] if self._by_place else []
        given = {part: parts[part] for part in self._named if part in parts}
        try:
            returned = await self._call(places, given)
        except BaseException as error:  # the author's code may fail in any way
            if not is_fault(error):
                raise
            self._tell(name, error)
            return Graded.failed(name, reason_of(error)[:_MOST_TOLD])
        return _outcome(name, returned)

    def _tell(self, name: str, error: BaseException) -> None:
        """Log where the function failed: once for a place in it, for the next items fail there."""
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        place = (type(error), 0 if last is None else last.tb_lineno)
        if place not in self._told:
            self._told.add(place)
            said = "the function failed at item %r; it is not told again of this place in it"
            _log.error(said, name, exc_info=error)

    async def _call(self, places: list[object], given: Mapping[str, object]) -> object:
        if self._is_async:
            returned = self._function(*places, **given)
        else:
            returned = await in_thread(lambda: self._function(*places, **given))
        return await returned if inspect.isawaitable(returned) else returned


def _outcome(name: str, returned: object) -> Graded:
    """The outcome that a function's return value stands for."""
    score, reason, details = returned, None, {}
    if isinstance(returned, Mapping):
        rest = {str(k): v for k, v in cast("Mapping[object, object]", returned).items()}
        if "score" not in rest:
            return _bad(name, "returned a mapping without 'score'")
        score, reason, details = rest.pop("score"), rest.pop("reason", None), rest
    elif isinstance(returned, tuple):
        pair = cast("tuple[object, ...]", returned)
        if len(pair) != 2:
            return _bad(name, f"returned a tuple of {len(pair)}")
        score, reason = pair
    if reason is not None and not isinstance(reason, str):
        return _bad(name, f"returned a reason that is {type(reason).__name__}, not text")
    try:
        number = finite_number(score, what="the score")
    except ScoreError as error:
        return _bad(name, f"returned no score: {error}")
    evidence: dict[str, Json] = record_evidence(details) if details else {}
    return Graded(
        id=name,
        status="scored",
        score=number,
        reason=(reason or "")[:2_000],
        details=evidence,
        assurance="separate",
    )


def _bad(name: str, what: str) -> Graded:
    hint = 'a number, (number, reason) or {"score", "reason"} is needed'
    return Graded.failed(name, f"the function {what} ({hint})", outcome="bad_return")


_AT_ONCE = 16


def scorer_of_graders(specs: Sequence[GraderSpec]) -> Scorer:
    """Make a scorer of declared graders, whose scores are combined as in a case."""
    require_servable(specs)

    async def score(items: Sequence[tuple[str, Submission]]) -> Sequence[Graded]:
        if len(specs) == 1:
            return await grade_many(specs, items)

        async def one(item: tuple[str, Submission]) -> Graded:
            name, submission = item
            return Graded.of_result(name, await grade_submission(specs, submission))

        return await each(items, one, at_once=_AT_ONCE)

    return score


def require_servable(specs: Sequence[GraderSpec], parts: Sequence[str] = PARTS) -> None:
    """Refuse graders that would answer every request with an error: of items with these parts."""
    from assay.graders.judges.base import JudgeGrader
    from assay.graders.openai.base import OpenAIGrader
    from assay.graders.openai.definitions import models_needed

    require_parts(specs, parts)
    for spec in specs:
        grader = spec.kind.grader
        why = ""
        if issubclass(grader, OpenAIGrader):
            if needs := models_needed(grader.defined(spec.options)):
                why = f"needs {' and '.join(needs)}"
        elif issubclass(grader, JudgeGrader) and (missing := grader.models_missing(spec.options)):
            why = f"cannot ask its model: {'; '.join(missing)}"
        if why:
            raise InputError(
                f"grader {spec.label!r} {why}",
                hint="configure what it needs, or serve the other graders without it",
            )
