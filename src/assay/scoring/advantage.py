"""Group-relative credit: from the rewards of one group to the advantages a trainer uses.

A group is the rewards of several answers to one prompt. A reward of None means *could not be
graded*: it is left out of the mean and the spread, and its own advantage is 0, so that the answer
neither gains nor loses and its siblings are judged as if it had not been there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from types import MappingProxyType
from typing import Literal

from assay.errors import ScoreError
from assay.scoring.results import finite_number

_LARGEST = 1e100
"""Rewards beyond this are refused: their squares would come near the end of the float range."""


@dataclass(frozen=True, slots=True)
class GroupNorm:
    """How a trainer normalises the rewards of a group.

    With ``n`` graded rewards, ``d = reward - mean`` and ``std = sqrt(sum(d**2) / (n - ddof))``,
    the advantage is

    * ``d`` where ``divide`` is off,
    * ``d / (std + eps)`` where ``eps_mode`` is ``"add"``,
    * ``d / std`` if ``std > eps``, else ``d``, where it is ``"guard"``.

    Fewer than two graded rewards, or only equal ones, give advantages of exactly 0: such a group
    compares nothing.
    """

    divide: bool = True
    ddof: int = 0
    eps: float = 1e-6
    # Whether ``eps`` is added to the standard deviation, or is what it must exceed.
    eps_mode: Literal["guard", "add"] = "guard"

    def __post_init__(self) -> None:
        if self.ddof not in (0, 1):
            raise ScoreError(f"ddof is {self.ddof!r}", hint="it must be 0 or 1")
        if finite_number(self.eps, what="eps") < 0:
            raise ScoreError(f"eps is {self.eps}", hint="it must be 0 or more")
        if self.eps_mode not in ("guard", "add"):
            raise ScoreError(f"eps_mode is {self.eps_mode!r}", hint="it must be 'guard' or 'add'")

    def advantages(self, rewards: Sequence[float | None]) -> list[float]:
        """The advantage of each reward of one group, in order."""
        deviations = _deviations(rewards)
        graded = [d for d in deviations if d is not None]
        divisor = self._divisor(graded)
        return [0.0 if d is None else d / divisor for d in deviations]

    def _divisor(self, deviations: Sequence[float]) -> float:
        if not self.divide or len(deviations) < 2:
            return 1.0
        std = sqrt(fsum(d * d for d in deviations) / (len(deviations) - self.ddof))
        if self.eps_mode == "add":
            return (std + self.eps) or 1.0
        return std if std > self.eps else 1.0


_SAMPLE_1E6 = GroupNorm(ddof=1, eps=1e-6, eps_mode="add")

GROUP_NORMS: Mapping[str, GroupNorm] = MappingProxyType(
    {
        "dr_grpo": GroupNorm(divide=False),
        "hud": GroupNorm(),
        "openrlhf": GroupNorm(ddof=1, eps=1e-9, eps_mode="add"),
        "skyrl": _SAMPLE_1E6,
        "slime": _SAMPLE_1E6,
        "trl": GroupNorm(ddof=1, eps=1e-4, eps_mode="add"),
        "verl": _SAMPLE_1E6,
    }
)
"""The normalisation of each trainer, to get the advantages that it would compute itself.

They differ from the trainers in one case: with a single graded reward the advantage is 0 here,
while verl passes the reward through.
"""


def group_relative(
    rewards: Sequence[float | None],
    *,
    normalize_std: bool = True,
    eps: float = 1e-6,
    ddof: int = 0,
) -> list[float]:
    """Group-relative advantages: how much better each answer did than its group.

    The formula of GRPO (Shao et al. 2024, arXiv:2402.03300), ``(reward - mean) / std``, with the
    population standard deviation, and no division where it is at most ``eps``.

    Args:
        rewards: The rewards of one group; None where an answer could not be graded.
        normalize_std: Whether to divide by the standard deviation.
        eps: The largest standard deviation that counts as none.
        ddof: 0 for the population standard deviation, 1 for the sample's.

    Returns:
        One advantage for each reward, in order. They sum to 0; that of a None is 0.

    Raises:
        ScoreError: For a reward that is not a finite number, or is beyond 1e100.
    """
    return GroupNorm(divide=normalize_std, ddof=ddof, eps=eps).advantages(rewards)


def dr_grpo(rewards: Sequence[float | None]) -> list[float]:
    """Advantages without division by the spread: ``reward - mean``.

    Dr. GRPO (Liu et al. 2025, arXiv:2503.20783): dividing gives groups that are nearly all right
    or nearly all wrong too much weight.

    Raises:
        ScoreError: For a reward that is not a finite number, or is beyond 1e100.
    """
    return GROUP_NORMS["dr_grpo"].advantages(rewards)


def rloo(rewards: Sequence[float | None]) -> list[float]:
    """Leave-one-out advantages: each reward against the mean of the *others*.

    ``reward - (sum - reward) / (n - 1)``, which equals ``n / (n - 1) * (reward - mean)``; RLOO
    (Kool et al. 2019; Ahmadian et al. 2024, arXiv:2402.14740). A lone graded reward has no others,
    and gets 0.

    Raises:
        ScoreError: For a reward that is not a finite number, or is beyond 1e100.
    """
    deviations = _deviations(rewards)
    n = sum(d is not None for d in deviations)
    factor = n / (n - 1) if n > 1 else 1.0
    return [0.0 if d is None else factor * d for d in deviations]


def keep_group(rewards: Sequence[float | None], *, tolerance: float = 1e-6) -> bool:
    """Whether a group has anything to teach: two graded rewards differ by more than ``tolerance``.

    The filter of dynamic sampling (DAPO, Yu et al. 2025, arXiv:2503.14476), which drops groups
    that are all right or all wrong, for rewards that are not only 0 and 1.

    Raises:
        ScoreError: For a reward that is not a finite number, or is beyond 1e100; for a negative
            ``tolerance``.
    """
    if finite_number(tolerance, what="tolerance") < 0:
        raise ScoreError(f"tolerance is {tolerance}", hint="it must be 0 or more")
    graded = [r for r in _checked(rewards) if r is not None]
    return len(graded) > 1 and max(graded) - min(graded) > tolerance


def _deviations(rewards: Sequence[float | None]) -> list[float | None]:
    """Each reward minus the mean of the graded ones; exactly 0 where these are all equal."""
    checked = _checked(rewards)
    graded = [r for r in checked if r is not None]
    if not graded:
        return [None] * len(checked)
    # Rounding can carry the mean of equal numbers past them, and the residue, divided by its own
    # spread, would be an advantage of 1. The mean never leaves the range of the rewards.
    mean = min(max(fsum(graded) / len(graded), min(graded)), max(graded))
    return [None if r is None else r - mean for r in checked]


def _checked(rewards: Sequence[float | None]) -> list[float | None]:
    checked: list[float | None] = []
    for index, reward in enumerate(rewards):
        if reward is None:
            checked.append(None)
            continue
        number = finite_number(reward, what=f"rewards[{index}]")
        if abs(number) > _LARGEST:
            raise ScoreError(f"rewards[{index}] is {number}", hint=f"at most {_LARGEST:g} in size")
        checked.append(number)
    return checked
