"""SkyRL: a grader as a text environment of one turn (written for skyrl-gym 0.4).

In a module ``my_reward``::

    from skyrl_gym.envs.registration import register
    from assay.training.skyrl import environment

    Graded = environment("graders.yaml")
    register(id="graded", entry_point="my_reward:Graded")

Rows name it by ``env_class: graded`` and have ``reward_spec: {ground_truth: ...}``. SkyRL accepts
no None; see ``on_error``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack, cast

from assay.errors import InputError
from assay.scoring.json_safe import plain
from assay.training.chat import submission_of
from assay.training.reward import Gradable, OnError, Reward, RewardOptions, require_on_error
from assay.training.trainers import module_of, numbers_of


def environment(
    grader: Gradable, *, on_error: OnError = "raise", **options: Unpack[RewardOptions]
) -> type:
    """Make a subclass of SkyRL's ``BaseTextEnv`` whose one step is graded.

    Args:
        grader: As `assay.training.Reward` takes it.
        on_error: What stands for a missing reward: ``raise`` is an exception, ``zero`` a 0 beside
            ``graded: 0.0`` in the logs.
        **options: Further ones of `assay.training.Reward`.

    Raises:
        InputError: For ``group_mean``, as an environment sees one answer; or without skyrl-gym.
    """
    require_on_error(on_error)
    if on_error == "group_mean":
        raise InputError("an environment sees one answer", hint="on_error='raise' or 'zero'")
    reward = Reward(grader, **options)
    if TYPE_CHECKING:
        base = object
    else:
        base = module_of("skyrl-gym", "skyrl_gym.envs.base_text_env").BaseTextEnv

    class GradedText(base):
        """Asks once, and grades the answer."""

        def __init__(
            self,
            env_config: object = None,
            extras: Mapping[str, object] | None = None,
        ) -> None:
            super().__init__()
            del env_config
            row = plain(dict(extras or {}))
            self._row = row if isinstance(row, dict) else {}
            self._asked: Sequence[Mapping[str, object]] = []
            self._numbers: dict[str, float] = {}

        def init(
            self, prompt: Sequence[Mapping[str, object]]
        ) -> tuple[Sequence[Mapping[str, object]], dict[str, object]]:
            """Remember what is asked."""
            self._asked = prompt
            return prompt, {}

        def step(self, action: str) -> dict[str, object]:
            """Grade the answer; the episode is over."""
            spec = self._row.get("reward_spec")
            truth = spec.get("ground_truth") if isinstance(spec, dict) else None
            submission = submission_of(self._asked, action, truth, self._row)
            batch = reward.grade_now([submission])
            self._numbers = numbers_of(batch, 0)
            metadata = {**self._numbers, "why": batch.graded[0].error or batch.graded[0].reason}
            (score,) = batch.filled(on_error)
            return {"observations": [], "reward": score, "done": True, "metadata": metadata}

        def get_metrics(self) -> dict[str, float]:
            """What SkyRL logs of the episode: the mean of each number over those that have it."""
            return self._numbers

    return cast("type", GradedText)
