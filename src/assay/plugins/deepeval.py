"""DeepEval: graders as a metric of test cases (written for 4.3).

    from assay.plugins.deepeval import metric

    assert_test(LLMTestCase(input=..., actual_output=..., expected_output=...),
                [metric("graders.yaml")])

What could not be graded is raised, and is the metric's error where DeepEval is told to go on
(``ignore_errors``). A grader that does not apply raises DeepEval's own exception for a metric that
lacks something, which is skipped where DeepEval is told so (``skip_on_missing_params``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from assay.errors import GraderError, InputError
from assay.plugins.given import given
from assay.plugins.outcomes import explanation_of
from assay.scoring.json_safe import plain
from assay.training.reward import Gradable, Reward, RewardOptions
from assay.training.trainers import module_of
from assay.types.codec import Within
from assay.types.submission import Submission
from assay.types.trace import ToolCall, ToolResult, ToolStep, Trace, tool_kind

if TYPE_CHECKING:
    from assay.scoring.graded import Graded


class _Call(Protocol):
    name: str
    input_parameters: Mapping[str, object] | None
    output: object


class _Case(Protocol):
    """Of its ``LLMTestCase``, what is read."""

    input: object
    actual_output: str | None
    expected_output: str | None
    retrieval_context: Sequence[object] | None
    metadata: Mapping[str, object] | None
    tools_called: Sequence[_Call] | None


class _Metric(Protocol):
    """Of its ``BaseMetric``, what is called."""

    def is_successful(self) -> bool | None: ...


def metric(
    grader: Gradable, *, threshold: float | None = None, **options: Unpack[RewardOptions]
) -> Any:  # noqa: ANN401 - of a class that exists only beside DeepEval
    """Make a metric, whose score is the reward.

    The retrieval context is ``documents`` of the metadata, and the tools called are a trace.

    Args:
        grader: As `assay.training.Reward` takes it.
        threshold: The score that passes, from 0 to 1; by default the grader's own, else 1.
        **options: Further ones of `assay.training.Reward`; ``name`` is the metric's.

    Raises:
        InputError: For a threshold that is none, and as `assay.training.Reward`.
    """
    if threshold is not None and (wrong := Within(0, 1).fault(threshold)):
        raise InputError(f"threshold: {wrong}")
    made = _class()
    reward = Reward(grader, traced=True, **options)
    return made(reward, reward.threshold if threshold is None else threshold)


@lru_cache(maxsize=1)
def _class() -> Any:  # noqa: ANN401
    missing = module_of("deepeval", "deepeval.errors").MissingTestCaseParamsError
    if TYPE_CHECKING:
        base = _Metric
    else:
        base = module_of("deepeval", "deepeval.metrics").BaseMetric

    class AssayMetric(base):
        """Grades a test case's actual output."""

        score: float | None
        error: str | None

        def __init__(self, reward: Reward, threshold: float) -> None:
            # DeepEval copies a metric for each test case, by what its parameters are called.
            self.reward, self.threshold = reward, threshold

        def measure(self, test_case: _Case, *_: object, **__: object) -> float | None:
            return self._told(self.reward.grade_now([_submission(test_case)]).graded[0])

        async def a_measure(self, test_case: _Case, *_: object, **__: object) -> float | None:
            return self._told((await self.reward.grade([_submission(test_case)])).graded[0])

        @property
        def __name__(self) -> str:
            return self.reward.name

        def _told(self, graded: Graded) -> float | None:
            self.score, self.error = graded.score, None
            self.reason = explanation_of(self.reward.name, graded)
            self.score_breakdown = graded.to_dict()
            if graded.score is None:  # DeepEval shows this error where it does not go on
                self.error = graded.error or graded.reason or "no grader applies"
                raise missing(self.error) if graded.status == "skipped" else GraderError(self.error)
            self.is_successful()
            return self.score

    return AssayMetric


def _submission(case: _Case) -> Submission | InputError:
    metadata = dict(case.metadata or {})
    if case.retrieval_context is not None:
        metadata.setdefault("documents", list(case.retrieval_context))
    found = given(case.input, case.actual_output, case.expected_output, metadata)
    if isinstance(found, InputError) or case.tools_called is None:
        return found
    return replace(found, trace=Trace(steps=[_step(call) for call in case.tools_called]))


def _step(call: _Call) -> ToolStep:
    arguments = {str(key): plain(value) for key, value in (call.input_parameters or {}).items()}
    made = ToolCall(name=call.name, arguments=arguments, kind=tool_kind(call.name))
    return ToolStep(call=made, result=ToolResult(content=plain(call.output)))  # all of them ran
