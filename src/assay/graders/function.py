"""`FunctionGrader`: a Python function that nobody trusts gives the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.cores import cores
from assay.errors import InputError
from assay.graders.base import Grader, Score
from assay.graders.functions import (
    Check,
    FunctionSource,
    Isolation,
    ValidationReport,
    grade_functions,
    read_source,
    source_of,
    validate_function,
)
from assay.graders.paths import CasePath
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore, unrounded
from assay.turns import current_turn
from assay.types.submission import Submission
from assay.types.thread import StringThread

__all__ = [
    "Check",
    "FunctionGrader",
    "FunctionSource",
    "ValidationReport",
    "grade_functions",
    "source_of",
    "validate_function",
]

_UNIT = (0.0, 1.0)
_HANDED = 128
"""Calls that a batch is handed in: the file is read, and its digest made, once for all of them.
Measured: beyond it nothing is gained."""
_OPTIONS = ("file", "source", "isolation", "range")


@dataclass(frozen=True, kw_only=True)
class FunctionGrader(Grader):
    """A Python function in the sandbox: ``async def grade(thread: StringThread) -> float``.

    It is given the conversation, or question and answer as one, with the sample's metadata and in
    it what is ``expected``. What it returns in its range, [0, 1] unless it says otherwise, is
    brought to [0, 1]; the number itself stays in the metadata as ``score``. A function that raises,
    or returns something else than a number in its range, is an error.

    Attributes:
        file: The function's file; this or its source is needed.
        source: The function's source.
        isolation: ``call`` for a process for each call, ``batch`` for one for many.
        range: Lowest and highest score, as two numbers; [0, 1] by default.
    """

    name: ClassVar[str] = "function"
    from_rows: ClassVar[frozenset[str] | None] = frozenset()
    computes: ClassVar[bool] = True
    batch_size: ClassVar[int] = 20
    most_kept: ClassVar[int] = 200

    file: CasePath | None = None
    source: str | None = None
    isolation: Isolation = "call"
    range: Sequence[float] | None = None

    def __post_init__(self) -> None:
        self.function()

    def function(self) -> FunctionSource:
        """The function; its file is read each time, for it may be another one by now.

        Raises:
            InputError: For no function, or an invalid range.
        """
        if (self.file is None) == (self.source is None):
            raise InputError("file or source is needed, and not both", hint="file: grade.py")
        text = read_source(str(self.file)) if self.source is None else str(self.source)
        limits: tuple[float, float] | None = None
        if self.range is not None:
            numbers = list(self.range)
            if len(numbers) != 2:
                raise InputError("range must be two numbers, such as [-1, 1]")
            limits = (float(numbers[0]), float(numbers[1]))
        return FunctionSource(text=text, isolation=self.isolation, range=limits)

    async def score(
        self,
        answer: str | None = None,
        question: str | None = None,
        expected: Json = None,
        thread: StringThread | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> Score:
        """Call the function.

        Raises:
            InputError: For a function that cannot be loaded.
            SandboxUnavailableError: If this machine has no sandbox.
        """
        function = self.function()
        call = {"answer": answer, "question": question, "expected": expected}
        submission = Submission.of({**call, "thread": thread, "metadata": metadata})
        (graded,) = await grade_functions(function, [("0", submission)])
        return _score(graded, function)

    @classmethod
    async def compute_many(
        cls, calls: Sequence[Mapping[str, object]]
    ) -> Sequence[Score | BaseException]:
        """Call functions for many submissions, those with the same function together."""
        functions: list[FunctionSource] = []
        known: dict[tuple[int, ...], FunctionSource] = {}  # calls of one declaration share options
        for call in calls:
            key = tuple(id(call.get(name)) for name in _OPTIONS)
            if key not in known:
                known[key] = cls.of(call).function()
            functions.append(known[key])
        found: dict[int, SubScore] = {}
        for function in dict.fromkeys(functions):
            numbers = [n for n, of in enumerate(functions) if of == function]
            items = [(str(n), Submission.of(calls[n])) for n in numbers]
            for n, graded in zip(numbers, await grade_functions(function, items), strict=True):
                found[n] = _score(graded, function)
        if len(calls) > 1 and (turn := current_turn()) is not None:
            turn.took(_seconds(found[number]) for number in range(len(calls)))
        return [found[number] for number in range(len(calls))]

    @classmethod
    def handed(cls, options: Mapping[str, Json]) -> tuple[int, int]:
        """So many that what they cost together is little beside each; cores share any number."""
        del options
        return _HANDED, 8 * cores()

    @classmethod
    def record(cls, parameters: Mapping[str, object]) -> dict[str, Json]:
        """What is kept beside the score: of a long source its beginning only."""
        source = parameters.get("source")
        if isinstance(source, str) and len(source) > cls.most_kept:
            parameters = {**parameters, "source": f"{source[: cls.most_kept]}..."}
        return super().record(parameters)


def _seconds(node: SubScore) -> float:
    took = (node.metadata or {}).get("wall_seconds", 0.0)
    return took if isinstance(took, float) else 0.0


def _score(graded: Graded, function: FunctionSource) -> SubScore:
    low, high = function.range or _UNIT
    details: dict[str, Json] = {"score": graded.score, **graded.details}
    if graded.outcome != "ok":
        details["_outcome"] = graded.outcome
    error, value = graded.error, None
    number = None if graded.score is None else unrounded(graded.score, low, high)
    if number is not None and not low <= number <= high:
        span = "declare its range, such as range: [-1, 1]"
        error = f"grade returned {number:g}, outside [0, 1]; {span}"
    elif number is not None:
        value = min(1.0, (number - low) / (high - low))
    return SubScore(
        name=FunctionGrader.name,
        value=value,
        status="error" if value is None else "scored",
        metadata=details,
        reason=error or graded.reason,
        flags=graded.flags,
    )
