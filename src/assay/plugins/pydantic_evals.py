"""pydantic-evals: graders as an evaluator (written for 2.62).

    from assay.plugins.pydantic_evals import evaluator

    Dataset(name="refunds", cases=[...], evaluators=[evaluator("graders.yaml")])

It gives a score and whether that passes. What could not be graded is an evaluator failure; where no
grader applies there is neither. In a dataset's YAML it is ``{Assay: graders.yaml}``, which
``Dataset.from_file(..., custom_evaluator_types=[evaluator_type()])`` reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from assay.errors import GraderError
from assay.plugins.given import given
from assay.plugins.outcomes import explanation_of
from assay.training.reward import Gradable, Reward, RewardOptions
from assay.training.trainers import module_of


class _Context(Protocol):
    """Of its ``EvaluatorContext``, what is read."""

    inputs: object
    output: object
    expected_output: object
    metadata: object


def evaluator(grader: Gradable, **options: Unpack[RewardOptions]) -> Any:  # noqa: ANN401 - of its own type
    """Make an evaluator.

    Args:
        grader: As `assay.training.Reward` takes it.
        **options: Further ones of `assay.training.Reward`; ``name`` is the score's in reports.
    """
    return evaluator_type()(grader, dict(options))


@lru_cache(maxsize=1)
def evaluator_type() -> Any:  # noqa: ANN401 - a class that exists only beside pydantic-evals
    """The class of such evaluators, which a dataset's file names."""
    types = module_of("pydantic-evals", "pydantic_evals.evaluators")
    if TYPE_CHECKING:
        base = object
    else:
        base = types.Evaluator

    @dataclass
    class Assay(base):
        """Grades a case's output."""

        grader: object
        options: dict[str, object] = field(default_factory=dict[str, object])

        def __post_init__(self) -> None:
            made: Any = Reward
            self._reward: Reward = made(self.grader, **self.options)

        def get_default_evaluation_name(self) -> str:
            return self._reward.name

        async def evaluate(self, ctx: _Context) -> Mapping[str, object]:
            reward = self._reward
            submission = given(ctx.inputs, ctx.output, ctx.expected_output, ctx.metadata)
            (graded,) = (await reward.grade([submission])).graded
            if graded.status == "error":
                raise GraderError(graded.error)
            if graded.score is None:
                return {}
            why = explanation_of(reward.name, graded)
            return {
                reward.name: types.EvaluationReason(graded.score, why),
                f"{reward.name} passed": graded.score >= reward.threshold,
            }

    return Assay
