"""TRL: graders as reward functions, and environments that are played with their tools (TRL 1.16).

    from trl import GRPOConfig, GRPOTrainer
    from assay.training.trl import environment_factory, reward_function

    GRPOTrainer(..., reward_funcs=reward_function("graders.yaml", expected="solution"))

    with environment_factory("tcp://127.0.0.1:8765", template="save") as world:
        GRPOTrainer(..., environment_factory=world, reward_funcs=world.reward).train()

What cannot be graded is None, which TRL leaves out of the group: it shifts no sibling's advantage.
"""

from __future__ import annotations

from assay.training.trl.environments import EnvironmentFactory, environment_factory
from assay.training.trl.rewards import AsyncRewardFunction, RewardFunction, reward_function

__all__ = [
    "AsyncRewardFunction",
    "EnvironmentFactory",
    "RewardFunction",
    "environment_factory",
    "reward_function",
]
