"""Environments of assay's as ``environment_factory`` of TRL's `GRPOTrainer`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Self

from assay.graders.driver import each
from assay.graders.threads import on_own_loop
from assay.scoring.graded import Graded
from assay.training.chat import Text, text_of
from assay.training.episodes import Episodes
from assay.training.reward import Batch
from assay.training.trl.rewards import LogExtra, LogMetric, told
from assay.training.trl.rollouts import Rollout, methods_of

if TYPE_CHECKING:
    from assay.environment import Environment

_AT_ONCE = 32


class EnvironmentReward:
    """For ``reward_funcs``: grades the rollouts of a batch, whose answer is what was said last."""

    def __init__(self, factory: EnvironmentFactory) -> None:
        self.__name__ = factory.name
        self._episodes = factory.episodes

    async def __call__(
        self,
        completions: Sequence[Text],
        environments: Sequence[object],
        log_extra: LogExtra = None,
        log_metric: LogMetric = None,
        **_: object,
    ) -> list[float | None]:
        """Grade them; None for what could not be, and for rollouts of other environments."""
        pairs = list(zip(environments, completions, strict=True))
        found = await on_own_loop(self._graded(pairs))
        batch = Batch(graded=tuple(one for one, _ in found), seconds=tuple(s for _, s in found))
        return told(self.__name__, batch, log_extra, log_metric)

    async def _graded(
        self, pairs: Sequence[tuple[object, Text]]
    ) -> Sequence[tuple[Graded, float | None]]:
        async def graded(pair: tuple[object, Text]) -> tuple[Graded, float | None]:
            rollout, said = pair
            if not (isinstance(rollout, Rollout) and rollout.episodes is self._episodes):
                return Graded(id="", status="skipped", outcome="skipped"), None
            return await self._episodes.grade(rollout.episode, _last(said))

        return await each(pairs, graded, at_once=_AT_ONCE)


class EnvironmentFactory:
    """What TRL calls for each rollout that runs beside others; `environment_factory` makes it."""

    def __init__(
        self,
        source: Environment | str,
        template: str,
        *,
        token: str,
        name: str,
        submit: bool,
        deadline: float | None,
    ) -> None:
        options = {"token": token, "name": name, "submit": submit, "deadline": deadline}
        self._made_of = partial(EnvironmentFactory, source, template, **options)
        self.episodes = Episodes(source, template, token=token, deadline=deadline)
        self.name = name or self.episodes.template.row.id
        methods = methods_of(self.episodes.template, submit=submit)
        self._type: type[Rollout] = type(self.name, (Rollout,), methods)
        self.reward = EnvironmentReward(self)

    def __call__(self) -> Rollout:
        """Make what plays one rollout after the other."""
        return self._type(self.episodes)

    def __reduce__(self) -> tuple[object, tuple[()]]:
        return self._made_of, ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all sessions. Done at the end of the process, too, whatever ended training."""
        self.episodes.close()


def environment_factory(
    environment: Environment | str,
    template: str = "",
    *,
    token: str = "",
    name: str = "",
    submit: bool = False,
    deadline: float | None = 600.0,
) -> EnvironmentFactory:
    """Make an environment one that `GRPOTrainer` lets its model play.

    A row's columns are the template's arguments, its prompt is appended to that of the row, and its
    tools are methods. A task of several steps has a tool ``act`` beside them. The rollout's reward
    is what the template yields, once; None where that, or anything before it, failed.

    Args:
        environment: An `Environment`, its file (``env.py``, or ``env.py:NAME``), or the URL where
            it is served.
        template: Which of its templates; may be left out where there is one.
        token: The secret that its server wants.
        name: By which logs know it; the template's by default.
        submit: Whether the answer is handed in by a tool ``submit``, and the reward is the
            environment's own (TRL's ``get_reward``), as `AsyncGRPOTrainer` needs it. By default
            the answer is the last message, and ``reward_funcs`` needs the factory's ``reward``.
        deadline: Seconds that beginning a task, a call, and grading may take each. What is late has
            no reward.

    Raises:
        InputError: For an environment or a template that is not there, or with tools that TRL
            cannot have.
        ChannelError: If nobody answers at the URL.
    """
    return EnvironmentFactory(
        environment, template, token=token, name=name, submit=submit, deadline=deadline
    )


def _last(said: Text) -> str:
    """The model's last words; of a message that only calls tools, none."""
    if isinstance(said, str):
        return said
    if not said or said[-1].get("role") != "assistant":
        return ""
    return text_of(said[-1].get("content"))
