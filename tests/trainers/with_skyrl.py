"""A text environment of SkyRL's registry, graded by assay; prints what its steps gave."""

from __future__ import annotations

import json
import sys

import skyrl_gym
from skyrl_gym.envs.registration import register

sys.path.insert(0, sys.argv[1])
register(id="graded", entry_point="my_reward:Graded")
found: list[object] = []
for said in ("4", "5"):
    row = {"reward_spec": {"ground_truth": "4"}}
    env = skyrl_gym.make("graded", env_config={}, extras=row)
    env.init([{"role": "user", "content": "2+2?"}])
    step = env.step(said)
    found.append([step["reward"], step["done"], step["metadata"]["graded"]])
print(json.dumps(found))
