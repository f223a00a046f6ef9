"""A text environment of SkyRL's registry whose one step is graded.

pip install assay skyrl-gym
python skyrl_environment.py
"""

from pathlib import Path

import skyrl_gym
from skyrl_gym.envs.registration import register
from skyrl_gym.metrics import aggregate_for_environment

from assay.training.skyrl import environment

GRADERS = str(Path(__file__).with_name("graders.yaml"))
Graded = environment(GRADERS, on_error="zero")

if __name__ == "__main__":
    register(id="graded", entry_point="skyrl_environment:Graded")
    told = []
    for said, truth in (("4", "4"), ("5", "4"), ("4", None)):  # the last: no truth
        row = {"reward_spec": {"ground_truth": truth}}
        env = skyrl_gym.make("graded", env_config={}, extras=row)
        env.init([{"role": "user", "content": "2+2?"}])
        step = env.step(said)
        print(step["reward"], {"done": step["done"], "graded": step["metadata"]["graded"]})
        told.append(env.get_metrics())
    logged = aggregate_for_environment("graded", told)  # as SkyRL does after each rollout
    print("logged:", {name: round(logged[name], 3) for name in ("graded", "flagged")})
