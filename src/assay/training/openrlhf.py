"""OpenRLHF: a grader as the ``.py`` of ``--reward.remote_url`` (written for OpenRLHF 0.11).

In that file::

    from assay.training.openrlhf import reward_function

    reward_func = reward_function("graders.yaml", on_error="zero")

A served grader (`assay serve grader`) is a remote model for the same option. OpenRLHF handles
neither None nor exceptions: it logs an exception, and its trainer ends later without naming the
grader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

from assay.errors import InputError
from assay.graders.endpoints.forms.openrlhf import sample
from assay.training.chat import read_or_why
from assay.training.reward import Gradable, OnError, Reward, RewardOptions, require_on_error
from assay.training.trainers import module_of
from assay.types.references import reference_of
from assay.types.submission import Submission


def reward_function(
    grader: Gradable,
    *,
    on_error: OnError = "raise",
    **options: Unpack[RewardOptions],
) -> Callable[..., dict[str, object]]:
    """Make OpenRLHF's ``reward_func`` of a grader.

    Args:
        grader: As `assay.training.Reward` takes it.
        on_error: What stands for a missing reward; ``zero`` lets training go on. ``group_mean``
            is the mean of the samples that OpenRLHF hands over together, which is often one.
        **options: Further ones of `assay.training.Reward`.

    Returns:
        A function that returns ``rewards``, ``scores`` and ``extra_logs`` as tensors as long as
        the batch; in the logs, ``graded`` is 0 where there was no reward.
    """
    require_on_error(on_error)
    reward = Reward(grader, **options)

    def reward_func(
        queries: Sequence[str],
        prompts: Sequence[str] | None = None,
        labels: Sequence[object] | None = None,
        **_: object,
    ) -> dict[str, object]:
        tensor: Callable[[list[float]], object] = module_of("torch", "torch").tensor

        asked = prompts or [""] * len(queries)
        wanted = labels or [None] * len(queries)
        if len(asked) != len(queries) or len(wanted) != len(queries):
            counts = f"{len(asked)} prompts and {len(wanted)} labels for {len(queries)} queries"
            raise InputError(f"there are {counts}")
        batch = reward.grade_now([*map(_read, queries, asked, wanted)])
        rewards = tensor(batch.filled(on_error))
        graded = tensor([float(one is not None) for one in batch.rewards])
        return {"rewards": rewards, "scores": rewards, "extra_logs": {"graded": graded}}

    return reward_func


@read_or_why
def _read(query: str, prompt: str, label: object) -> Submission:
    found = sample(query, prompt, reference_of(label))
    if isinstance(found, str):
        raise InputError(found)
    return found
