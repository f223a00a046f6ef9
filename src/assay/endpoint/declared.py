"""Declared graders as a scorer: what a file of graders says, for every item."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from assay.endpoint.served import Scorer
from assay.errors import InputError
from assay.graders.apply import grade_many, grade_submission, require_parts
from assay.graders.judges.base import JudgeGrader
from assay.graders.openai.base import OpenAIGrader
from assay.graders.openai.definitions import models_needed
from assay.graders.spec import GraderSpec
from assay.scoring.graded import Graded
from assay.types.submission import Submission

__all__ = ["require_servable", "scorer_of_graders"]

_PARTS = ("answer", "question", "expected", "thread", "metadata")
_AT_ONCE = 16


def scorer_of_graders(specs: Sequence[GraderSpec]) -> Scorer:
    """Make a scorer of declared graders, whose scores are combined as in a case.

    Raises:
        InputError: For graders that cannot run, or that need what no request holds.
    """
    require_servable(specs)

    async def score(items: Sequence[tuple[str, Submission]]) -> Sequence[Graded]:
        if len(specs) == 1:
            return await grade_many(specs[0], items)
        turn = asyncio.Semaphore(_AT_ONCE)

        async def one(name: str, submission: Submission) -> Graded:
            async with turn:
                return Graded.of_result(name, await grade_submission(specs, submission))

        return await asyncio.gather(*(one(*item) for item in items))

    return score


def require_servable(specs: Sequence[GraderSpec]) -> None:
    """Refuse graders that would answer every request with an error.

    Raises:
        InputError: For graders that need a model that cannot be asked, or what no request holds.
    """
    require_parts(specs, _PARTS)
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
                hint="say how to reach what it needs, or serve the others without it",
            )
