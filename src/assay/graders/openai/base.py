"""`OpenAIDefinition`: one grader of OpenAI's; `OpenAIGrader`: it as a kind of ours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from assay.errors import InputError, Location
from assay.graders.base import Grader, Parameter, field_parameters
from assay.graders.openai.rewards import FaultError, GivenReward, SubmissionFaultError
from assay.graders.openai.template import (
    TemplateScope,
    TextTemplate,
    is_sampled,
    parse_template,
    scope_of,
)
from assay.scoring.json_safe import Json, noted, record_evidence
from assay.scoring.results import Assurance, SubScore
from assay.types.codec import from_json
from assay.types.thread import StringThread
from assay.types.trace import Trace

__all__ = [
    "OpenAIDefinition",
    "OpenAIGrader",
    "PassingDefinition",
    "Ranged",
    "template_of",
    "wrong",
]


class OpenAIDefinition:
    """What one grader is made of; subclasses are frozen dataclasses with OpenAI's field names."""

    __slots__ = ()

    TAG: ClassVar[str]

    async def check(self) -> None:
        """Check what takes a sandbox to look at; all else was checked when it was made."""

    async def graded(self, scope: TemplateScope) -> GivenReward:
        """`reward` of a sample that is there, for any grader: one may look at the item alone."""
        if not is_sampled(scope.sample):
            raise FaultError(
                "nothing was sampled: there is no answer, no tool call and no sound to grade",
                flag="sample_parse_error",
            )
        await self.check()
        return await self.reward(scope)

    async def reward(self, scope: TemplateScope) -> GivenReward:
        """Grade a sample against an item.

        Raises `SubmissionFaultError`: It is worth nothing, whatever the scale.
        """
        raise NotImplementedError

    @property
    def bounds(self) -> tuple[float, float]:
        """Its scale: what is worth 0, and what is worth 1."""
        return 0.0, 1.0

    @property
    def assurance(self) -> Assurance:
        """How far its rewards can be trusted."""
        return "separate"

    @property
    def is_verdict(self) -> bool:
        """Whether it is worth 1 where it passes and 0 where it does not, whatever its scale."""
        return False


def wrong(field: str, message: str, hint: str = "") -> InputError:
    """The error that says what is wrong in a field of a definition."""
    return InputError(message, location=Location(field=field), hint=hint)


def template_of(field: str, text: str) -> TextTemplate:
    """Read the template in a field."""
    try:
        return parse_template(text)
    except InputError as error:
        raise wrong(field, error.message, error.hint) from error


class PassingDefinition(OpenAIDefinition):
    """A definition that may say from which reward it passes."""

    __slots__ = ()

    pass_threshold: float | None
    pass_fail: bool

    def check_threshold(self) -> None:
        """Reject a threshold that is NaN or infinite, and ``pass_fail`` without one."""
        threshold = self.pass_threshold
        if threshold is not None and not math.isfinite(threshold):
            raise wrong("pass_threshold", f"must be finite, got {threshold}")
        if self.pass_fail and threshold is None:
            raise wrong("pass_fail", "needs a pass_threshold", "say from which reward it passes")

    def passed(self, value: float) -> bool | None:
        """Whether a reward passes; None where nothing says so."""
        return None if self.pass_threshold is None else value >= self.pass_threshold

    @property
    def is_verdict(self) -> bool:
        """Whether ``pass_fail`` is set."""
        return self.pass_fail


class Ranged(PassingDefinition):
    """A definition with a scale of its own."""

    __slots__ = ()

    range: tuple[float, ...] | None

    def check_scale(self) -> None:
        """Reject a ``range`` that is not a pair of finite numbers, the lower first."""
        self.check_threshold()
        given = self.range
        if given is None:
            return
        if len(given) != 2 or not all(map(math.isfinite, given)) or not given[0] < given[1]:
            raise wrong("range", f"must be [lowest, highest], got {list(given)}")

    @property
    def bounds(self) -> tuple[float, float]:
        """The range."""
        lowest, highest = self.range or (0.0, 1.0)
        return lowest, highest


class OpenAIGrader(Grader):
    """One of OpenAI's graders as a kind: subclasses name its definition."""

    definition: ClassVar[type[OpenAIDefinition]]
    from_rows: ClassVar[frozenset[str] | None] = frozenset()
    """Its templates name fields of rows themselves: ``{{item.gold}}``."""

    @classmethod
    def options_type(cls) -> type[object]:
        """The definition."""
        return cls.definition

    @classmethod
    def parameters(cls) -> tuple[dict[str, Parameter], bool]:
        """The fields of the definition, and the parts of a submission that its names stand for."""
        parts = ("answer", "question", "thread", "trace", "metadata", "expected")
        own = {k: option for k, option in field_parameters(cls.definition).items() if k != "name"}
        return {**own, **{name: Parameter(name) for name in parts}}, False

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Refuse a definition that could grade nothing, as far as no source need be parsed."""
        try:
            cls.defined(options)
        except InputError as error:
            field = f"{error.location.field}: " if error.location.field else ""
            raise InputError(f"{field}{error.message}", hint=error.hint) from error

    @classmethod
    def best_assurance(cls, options: Mapping[str, Json]) -> Assurance | None:
        """That of the definition."""
        return cls.defined(options).assurance

    @classmethod
    async def compute_score(
        cls,
        *,
        answer: str | None = None,
        question: str | None = None,
        expected: Json = None,
        thread: StringThread | None = None,
        trace: Trace | None = None,
        metadata: Mapping[str, Json] | None = None,
        **options: Json,
    ) -> SubScore:
        """Grade; the value is the verdict, or the reward's place on the definition's scale."""
        definition = cls.defined(options)
        scope = scope_of(
            answer=answer,
            question=question,
            expected=expected,
            thread=thread,
            trace=trace,
            metadata=metadata,
        )
        try:
            return _scored(cls.name, await definition.graded(scope), definition)
        except SubmissionFaultError as fault:
            return SubScore(
                name=cls.name,
                value=0.0,
                reason=fault.message,
                flags=fault.signs,
                metadata=_evidence(fault),
                assurance=definition.assurance,
            )
        except FaultError as fault:
            return SubScore.error(cls.name, fault.message, metadata=_evidence(fault))

    @classmethod
    def defined(cls, options: Mapping[str, Json]) -> OpenAIDefinition:
        """The definition that the options of a declaration make."""
        return from_json(cls.definition, dict(options))


def _evidence(fault: FaultError) -> dict[str, Json]:
    evidence = record_evidence({**fault.details, "flag": fault.flag})
    return {**evidence, "parts": dict(fault.parts), "_outcome": fault.outcome}


def _scored(name: str, reward: GivenReward, definition: OpenAIDefinition) -> SubScore:
    lowest, highest = definition.bounds
    if definition.is_verdict:
        value = 1.0 if reward.passed else 0.0
    elif lowest <= reward.value <= highest:
        value = (reward.value - lowest) / (highest - lowest)
    else:
        raise FaultError(
            f"the reward {reward.value:g} is outside of [{lowest:g}, {highest:g}]: "
            "give the scale with `range: [lowest, highest]`",
            flag="other_error",
        )
    evidence = record_evidence({**reward.details, "reward": reward.value})
    evidence |= noted(parts=dict(reward.parts))
    return SubScore(
        name=name,
        value=value,
        passed=reward.passed,
        flags=reward.flags,
        metadata=evidence,
        assurance=definition.assurance,
    )
