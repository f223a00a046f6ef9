"""Advantages: golden values of the trainers' formulas, and the laws that every one obeys."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ScoreError
from assay.scoring.advantage import (
    GROUP_NORMS,
    GroupNorm,
    dr_grpo,
    group_relative,
    keep_group,
    rloo,
)
from tests.each import each

Rewards = Sequence[float | None]
Estimator = Callable[[Rewards], list[float]]

ESTIMATORS: dict[str, Estimator] = {
    "group_relative": group_relative,
    "rloo": rloo,
    **{name: norm.advantages for name, norm in GROUP_NORMS.items()},
}

reward = st.floats(-100, 100, allow_nan=False, width=32)
rewards_or_none = st.lists(st.none() | reward, max_size=8)


def close(values: Sequence[float], *, within: float = 1e-6) -> object:
    return pytest.approx(list(values), abs=within)


# The values of verl 0.9.1's code, of one-step runs of TRL 1.16.0, and of HUD's formula by hand.
@each(
    ("name", "rewards", "expected"),
    [
        ("verl", [1, 0, 0, 0], [1.499997, -0.499999, -0.499999, -0.499999]),
        ("verl", [-1, 0, 2, 3], [-1.095445, -0.547722, 0.547722, 1.095445]),
        ("skyrl", [1, 0, 0, 0], [1.499997, -0.499999, -0.499999, -0.499999]),
        ("slime", [1, 0, 0, 0], [1.499997, -0.499999, -0.499999, -0.499999]),
        ("openrlhf", [1, 0, 0, 0], [1.5, -0.5, -0.5, -0.5]),
        ("trl", [1, 0, 0, 0], [0.75 / 0.5001, -0.25 / 0.5001, -0.25 / 0.5001, -0.25 / 0.5001]),
        ("trl", [None, 0, 1, 1], [0.0, -1.154501, 0.577250, 0.577250]),
        ("dr_grpo", [1, 0, 0, 0], [0.75, -0.25, -0.25, -0.25]),
        # Compared with the mean of the others.
        ("rloo", [0.2, 0.5, 0.9, 0.4], [-0.4, 0.0, 0.533333, -0.133333]),
        ("rloo", [None, 1, 0], [0.0, 1.0, -1.0]),
        ("hud", [1, 0, 0, 0], [math.sqrt(3), *[-1 / math.sqrt(3)] * 3]),
    ],
)
def test_presets_give_the_trainers_own_numbers(
    name: str, rewards: list[float | None], expected: list[float]
) -> None:
    assert ESTIMATORS[name](rewards) == close(expected)


def test_group_relative_uses_the_population_deviation_and_blows_up_no_spread_of_at_most_eps() -> (
    None
):
    assert group_relative([1.0, 0.0, 0.0, 0.0])[0] == pytest.approx(math.sqrt(3))
    assert group_relative([1.0, 0.0, 0.0, 0.0], ddof=1)[0] == pytest.approx(1.5)
    assert group_relative([1.0, 0.0, 0.0, 0.0], normalize_std=False)[0] == 0.75
    nearly = [0.5, 0.5 + 1e-7]
    assert group_relative(nearly) == close([-5e-8, 5e-8], within=1e-12)
    assert group_relative(nearly, eps=1e-9) == close([-1.0, 1.0])


@each("estimator", list(ESTIMATORS.values()))
@each("value", [0.0, 0.1, 1.0, -0.3, 1e-300, 1e100])
@each("size", [1, 3, 7])
def test_equal_rewards_teach_nothing_exactly(estimator: Estimator, value: float, size: int) -> None:
    assert estimator([value] * size) == [0.0] * size


@each("mode", ["guard", "add"])
def test_no_eps_at_all_keeps_equal_rewards_at_zero(mode: Literal["guard", "add"]) -> None:
    norm = GroupNorm(eps=0.0, eps_mode=mode)
    assert norm.advantages([0.1] * 3) == [0.0] * 3
    assert all(map(math.isfinite, norm.advantages([0.0, 1e-300])))


@each("estimator", list(ESTIMATORS.values()))
@each("rewards", [[], [None], [None, None, None], [None, 0.4]])
def test_nothing_to_compare_is_zero(estimator: Estimator, rewards: list[float | None]) -> None:
    assert estimator(rewards) == [0.0] * len(rewards)


@each("estimator", list(ESTIMATORS.values()))
@each("bad", [math.nan, math.inf, True, 1e200, 10**400, "1.0"])
def test_poisoned_reward_is_refused_and_named(estimator: Estimator, bad: float) -> None:
    with pytest.raises(ScoreError, match=r"rewards\[1\]"):
        estimator([0.0, bad, None, 1.0])
    with pytest.raises(ScoreError, match=r"rewards\[1\]"):
        keep_group([0.0, bad])


@each(("ddof", "eps"), [(2, 1e-6), (-1, 1e-6), (0, -1e-6), (0, math.nan), (1, math.inf)])
def test_settings_out_of_range_are_refused(ddof: int, eps: float) -> None:
    said = r"^(ddof is -?\d \(it must be 0 or 1\)|eps is (-1e-06|nan|inf) .*)$"
    with pytest.raises(ScoreError, match=said):
        group_relative([0.0, 1.0], ddof=ddof, eps=eps)
    said = r"^eps_mode is 'multiply' \(it must be 'guard' or 'add'\)$"
    with pytest.raises(ScoreError, match=said):
        GroupNorm(eps_mode="multiply")  # type: ignore[arg-type]  # what an untyped caller may do


@pytest.mark.parametrize("estimator", list(ESTIMATORS.values()), ids=list(ESTIMATORS))
@given(rewards=rewards_or_none, data=st.data())
def test_advantages_sum_to_zero_in_any_order_and_whatever_was_not_graded(
    estimator: Estimator, rewards: list[float | None], data: st.DataObject
) -> None:
    advantages = estimator(rewards)
    assert len(advantages) == len(rewards)
    assert math.fsum(advantages) == pytest.approx(0.0, abs=1e-6)
    assert all(map(math.isfinite, advantages))
    order = data.draw(st.permutations(range(len(rewards))))
    assert estimator([rewards[i] for i in order]) == [advantages[i] for i in order]
    without = estimator([r for r in rewards if r is not None])
    assert [a for a, r in zip(advantages, rewards, strict=True) if r is not None] == without
    assert all(a == 0.0 for a, r in zip(advantages, rewards, strict=True) if r is None)


@pytest.mark.parametrize("name", ESTIMATORS)
@given(
    # Thirds of integers: rewards that differ do so by far more than any eps or rounding.
    thirds=st.lists(st.integers(-30, 30), min_size=2, max_size=8),
    shift=st.integers(-50, 50),
    scale=st.floats(1.0, 1000.0),
)
def test_shifting_all_rewards_changes_nothing_nor_does_scaling_what_is_divided_by_the_spread(
    name: str, thirds: list[int], shift: int, scale: float
) -> None:
    estimator, rewards = ESTIMATORS[name], [t / 3 for t in thirds]
    plain = estimator(rewards)
    assert estimator([r + shift for r in rewards]) == close(plain)
    if name in ("hud", "openrlhf", "verl"):
        assert estimator([r * scale for r in rewards]) == close(plain, within=1e-4)


@given(rewards=rewards_or_none)
def test_rloo_is_a_stretched_dr_grpo(rewards: list[float | None]) -> None:
    n = sum(r is not None for r in rewards)
    factor = n / (n - 1) if n > 1 else 1.0
    assert rloo(rewards) == close([factor * a for a in dr_grpo(rewards)])


@each(
    ("rewards", "tolerance", "kept"),
    [
        ([1.0, 0.0], None, True),
        ([1.0, 1.0], None, False),
        ([1.0], None, False),
        ([], None, False),
        ([None, 1.0], None, False),
        ([None, 1.0, 0.0], None, True),
        ([0.5, 0.5 + 1e-8], None, False),
        ([0.5, 0.5 + 1e-8], 0.0, True),
        ([0.5, 0.6], 0.2, False),
        ([0.0, 0.5], 0.5, False),
    ],
)
def test_a_group_is_kept_where_graded_rewards_differ(
    rewards: list[float | None], tolerance: float | None, *, kept: bool
) -> None:
    choice = {} if tolerance is None else {"tolerance": tolerance}
    assert keep_group(rewards, **choice) is kept
    for wrong in (math.nan, -1):  # by which equal rewards would differ
        with pytest.raises(ScoreError, match="tolerance is"):
            keep_group(rewards, tolerance=wrong)


@given(rewards=rewards_or_none)
def test_a_dropped_group_would_have_taught_nothing(rewards: list[float | None]) -> None:
    if not keep_group(rewards, tolerance=0.0):
        assert group_relative(rewards) == [0.0] * len(rewards)
