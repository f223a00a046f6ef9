"""Tinker's cookbook: a grader as the reward of groups of problems (run with 0.5.8 and 0.6.1).

    from assay.training.tinker import problem_groups

    problems = problem_groups("graders.yaml", renderer=renderer, size=8)
    builder = problems("What is 2 + 2?", expected="4")  # for a batch of an RLDataset

What cannot be graded raises an exception in the environment's ``step``. The cookbook's strategies
then sample again, or leave the trajectory out of its group (``MinViableGroup``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Unpack

from assay.errors import InputError
from assay.frozen import frozen
from assay.training.chat import Text, submission_of, turns_of
from assay.training.reward import Gradable, OnError, Reward, RewardOptions, require_on_error
from assay.training.trainers import module_of, numbers_of
from assay.types.submission import Submission


def problem_groups(
    grader: Gradable,
    *,
    renderer: object,
    size: int = 8,
    on_error: OnError = "raise",
    **options: Unpack[RewardOptions],
) -> Callable[..., object]:
    """Make the cookbook's group builders, which can be pickled for its executors.

    Args:
        grader: As `assay.training.Reward` takes it.
        renderer: The cookbook's renderer, which turns messages into tokens.
        size: Environments in a group.
        on_error: What stands for a missing reward; by default an exception. With ``group_mean``
            a group is graded together, once all of it has been sampled.
        **options: Further ones of `assay.training.Reward`; ``name`` is the groups' tag in logs.

    Returns:
        A function of a question (text or messages), the expected answer and metadata.
    """
    require_on_error(on_error)
    reward = Reward(grader, **options)

    def problems(
        question: Text, expected: object = None, metadata: Mapping[str, object] | None = None
    ) -> object:
        return _made(_Problem(reward, renderer, question, expected, metadata, size, on_error))

    return problems


@frozen
class _Problem:
    reward: Reward
    renderer: Any
    question: Text
    expected: object
    metadata: Mapping[str, object] | None
    size: int
    on_error: OnError

    def submission(self, said: str) -> Submission | InputError:
        return submission_of(self.question, said, self.expected, self.metadata)


def _made(problem: _Problem) -> object:
    return _classes()[1](problem)


@lru_cache(maxsize=1)
def _classes() -> tuple[type, Callable[[_Problem], object]]:
    """An ``Env`` and the ``EnvGroupBuilder`` of such, made when the cookbook is there."""
    text_of = module_of("tinker-cookbook", "tinker_cookbook.renderers").get_text_content
    types = module_of("tinker-cookbook", "tinker_cookbook.rl.types")
    empty = module_of("tinker", "tinker").ModelInput
    if TYPE_CHECKING:
        env_base = group_base = object
    else:
        env_base, group_base = types.Env, types.EnvGroupBuilder

    class GradedEnv(env_base):
        """Asks once; its step is graded, or its group is."""

        def __init__(self, problem: _Problem) -> None:
            self.problem, self.said = problem, ""

        async def initial_observation(self) -> tuple[object, object]:
            asked = turns_of(self.problem.question, "user")
            renderer = self.problem.renderer
            messages = [{"role": role, "content": text} for role, text in asked]
            return renderer.build_generation_prompt(messages), renderer.get_stop_sequences()

        async def step(self, action: Sequence[int], *, extra: object = None) -> object:
            del extra
            problem, reward, metrics = self.problem, 0.0, dict[str, float]()
            self.said = text_of(problem.renderer.parse_response(list(action))[0])
            logs = {"answer": self.said}
            if problem.on_error != "group_mean":
                batch = await problem.reward.grade([problem.submission(self.said)])
                (reward,), metrics = batch.filled(problem.on_error), numbers_of(batch, 0)
                logs["why"] = batch.graded[0].error or batch.graded[0].reason
            stop = problem.renderer.get_stop_sequences()
            return types.StepResult(reward, True, empty.empty(), stop, metrics, logs)

    class GradedGroup(group_base):
        """Environments of one problem, sampled side by side."""

        def __init__(self, problem: _Problem) -> None:
            self.problem = problem

        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return _made, (self.problem,)

        async def make_envs(self) -> Sequence[GradedEnv]:
            return [GradedEnv(self.problem) for _ in range(self.problem.size)]

        async def compute_group_rewards(
            self, trajectory_group: Sequence[object], env_group: Sequence[GradedEnv]
        ) -> list[tuple[float, dict[str, float]]]:
            del trajectory_group
            if self.problem.on_error != "group_mean":
                return [(0.0, {}) for _ in env_group]
            batch = await self.problem.reward.grade(
                [self.problem.submission(env.said) for env in env_group]
            )
            rewards = batch.filled("group_mean")
            return [(reward, numbers_of(batch, n)) for n, reward in enumerate(rewards)]

        def logging_tags(self) -> list[str]:
            return [self.problem.reward.name]

    return GradedEnv, GradedGroup
