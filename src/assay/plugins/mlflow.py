"""MLflow: graders as a scorer of ``mlflow.genai.evaluate`` (written for 3.17).

    from assay.plugins.mlflow import scorer

    mlflow.genai.evaluate(data=..., predict_fn=..., scorers=[scorer("graders.yaml")])

What could not be graded is a feedback with an error and no value, which no metric counts; where no
grader applies there is no feedback.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Unpack, cast

from assay.plugins.given import given
from assay.plugins.outcomes import explanation_of
from assay.training.reward import Gradable, Reward, RewardOptions
from assay.training.trainers import module_of

_EXPECTED = ("expected_response", "expected_output", "expected")


def scorer(grader: Gradable, **options: Unpack[RewardOptions]) -> Any:  # noqa: ANN401 - of MLflow's type
    """Make a scorer, whose value is the reward.

    What is expected is ``expected_response`` of the expectations, as MLflow's own scorers have it,
    else ``expected``, else all of them. Both inputs and expectations are metadata.

    Args:
        grader: As `assay.training.Reward` takes it.
        **options: Further ones of `assay.training.Reward`; ``name`` is the feedback's.
    """
    entities = module_of("mlflow", "mlflow.entities")
    texts = module_of("mlflow", "mlflow.genai.utils.trace_utils")
    reward = Reward(grader, **options)

    def assay_scorer(
        inputs: object = None,
        outputs: object = None,
        expectations: Mapping[str, object] | None = None,
    ) -> object:
        named = expectations or {}
        right = next((named[name] for name in _EXPECTED if name in named), expectations or None)
        known = {"inputs": inputs, "expectations": expectations}
        said = _said(outputs, texts.parse_outputs_to_str)
        submission = given(_asked(inputs), said, right, known)
        (graded,) = reward.grade_now([submission]).graded
        if graded.status == "skipped":
            return None
        told = graded.to_dict()
        score, error = told.pop("score"), None
        if score is None:
            error = entities.AssessmentError(graded.outcome.upper(), graded.error)
        return entities.Feedback(
            value=score,
            error=error,
            rationale=explanation_of(reward.name, graded),
            source=entities.AssessmentSource("CODE", graded.grader or reward.name),
            metadata={key: _text(value) for key, value in told.items() if value},
        )

    def passes(value: object) -> bool:
        return isinstance(value, int | float) and value >= reward.threshold

    made = module_of("mlflow", "mlflow.genai.scorers").scorer
    # Its own 300 seconds would cut off a grader that has more: a deadline is assay's to keep.
    return made(name=reward.name, pass_if=passes, timeout=0)(assay_scorer)


def _said(outputs: object, read: Callable[[object], object]) -> object:
    """The text of outputs in a form that MLflow knows; else they themselves.

    A number, a truth value, bytes or an empty list is an answer, too: whoever gave it is graded.
    """
    if outputs is None:
        return None
    try:
        text = read(outputs)
    except Exception:  # whatever its reader meets in a form that it does not know
        return outputs
    return outputs if text is None else text


def _asked(inputs: object) -> object:
    """The one question among inputs; all of them, where they have several values."""
    if not isinstance(inputs, Mapping):
        return inputs
    fields = cast("Mapping[str, object]", inputs)
    return next(iter(fields.values())) if len(fields) == 1 else fields


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
