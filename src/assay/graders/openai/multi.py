"""``multi``: several graders, combined by a formula."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

from assay.errors import ScoreError
from assay.graders.openai.base import (
    Definition,
    OpenAIGrader,
    check_range,
    check_threshold,
    wrong,
)
from assay.graders.openai.formula import parse_formula
from assay.graders.openai.judges import LabelModel, ScoreModel
from assay.graders.openai.python import OpenAIPython
from assay.graders.openai.rewards import FaultError, Reward, SubmissionFaultError
from assay.graders.openai.string_check import StringCheck
from assay.graders.openai.template import Scope
from assay.graders.openai.text_similarity import TextSimilarity
from assay.scoring.results import Assurance, weakest
from assay.types.codec import Problem, ShapeError

__all__ = ["Multi", "MultiGrader", "Part"]

Part: TypeAlias = "StringCheck | TextSimilarity | OpenAIPython | ScoreModel | LabelModel"
_MOST_PARTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Multi(Definition):
    """Combines graders by a formula over their rewards.

    Attributes:
        graders: The graders, by the names that the formula uses.
        calculate_output: The formula (see `assay.graders.openai.formula`).
        range: What is worth 0 and what is worth 1; ``[0, 1]`` by default.
        pass_threshold: Reward from which it passes.
        pass_fail: Whether it is worth 1 where it passes and 0 where it does not; its reward stays
            in the evidence.
        name: What it is called.
    """

    TAG: ClassVar[str] = "multi"

    graders: Mapping[str, Part]
    calculate_output: str
    range: tuple[float, ...] | None = None
    pass_threshold: float | None = None
    pass_fail: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        check_range(self.range)
        check_threshold(self.pass_threshold, pass_fail=self.pass_fail)
        if not 0 < len(self.graders) <= _MOST_PARTS:
            raise wrong("graders", f"there are {len(self.graders)}", "from 1 to 100")
        for key, part in self.graders.items():
            if not key.isidentifier():
                raise wrong(f"graders.{key}", "this key cannot be a variable", "use letters and _")
            if isinstance(part, OpenAIPython) and part.file is not None:
                raise wrong(f"graders.{key}.file", "no file can be named here", "write its source")
            if part.is_verdict:
                raise wrong(f"graders.{key}.pass_fail", "only the whole can be pass or fail")
        for name in parse_formula(self.calculate_output).names:
            if name not in self.graders:
                known = ", ".join(self.graders)
                message = f"names {name!r}, which is none of the graders"
                raise wrong("calculate_output", message, f"they are {known}")

    @property
    def assurance(self) -> Assurance:
        """The weakest of its parts."""
        return weakest(part.assurance for part in self.graders.values()) or "separate"

    @property
    def is_verdict(self) -> bool:
        """Whether ``pass_fail`` is set."""
        return self.pass_fail

    @property
    def bounds(self) -> tuple[float, float]:
        """The range."""
        lowest, highest = self.range or (0.0, 1.0)
        return lowest, highest

    async def check(self) -> None:
        """Check the parts."""
        problems: list[Problem] = []
        for key, part in self.graders.items():
            try:
                await part.check()
            except ShapeError as error:
                inside = ("graders", key)
                problems += [replace(p, path=(*inside, *p.path)) for p in error.problems]
        if problems:
            raise ShapeError(problems)

    async def reward(self, scope: Scope) -> Reward:
        """The formula over the rewards of the parts, all of which are asked.

        A part that could not be graded makes the whole an error; one that the submission made
        worthless makes the whole worthless, whatever its sign in the formula.
        """
        import asyncio

        asked = [_asked(part, scope) for part in self.graders.values()]
        answers = dict(zip(self.graders, await asyncio.gather(*asked), strict=True))
        rewards = {key: found for key, found in answers.items() if isinstance(found, Reward)}
        parts = {key: found.value for key, found in rewards.items()}
        for fault in _worst_first(answers):
            fault.parts = parts
            raise fault
        try:
            value = parse_formula(self.calculate_output)(parts)
        except ScoreError as error:
            fault = FaultError(error.message, flag="other_error")
            fault.parts = parts
            raise fault from error
        threshold = self.pass_threshold
        return Reward(
            value=value,
            passed=None if threshold is None else value >= threshold,
            details={key: dict(found.details) for key, found in rewards.items()},
            flags=tuple(dict.fromkeys(flag for found in rewards.values() for flag in found.flags)),
            parts=parts,
        )


async def _asked(part: Part, scope: Scope) -> Reward | FaultError:
    try:
        return await part.reward(scope)
    except FaultError as fault:
        return fault


def _worst_first(answers: Mapping[str, Reward | FaultError]) -> Iterator[FaultError]:
    """The faults, each with the key of its grader: what we or the author did wrong comes first."""
    faults = [(key, found) for key, found in answers.items() if isinstance(found, FaultError)]
    faults.sort(key=lambda pair: isinstance(pair[1], SubmissionFaultError))
    for key, fault in faults:
        fault.message = f"{key}: {fault.message}"
        yield fault


class MultiGrader(OpenAIGrader):
    """Several graders, combined by a formula (OpenAI's ``multi``)."""

    name: ClassVar[str] = "multi"
    definition: ClassVar[type[Definition]] = Multi
