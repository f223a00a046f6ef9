"""verl's own reward loop asks a grader, on a CPU: this file is its `custom_reward_function.path`.

pip install assay "verl[verl-core]" torch
python verl_reward.py            # or: python verl_reward.py dapo

What cannot be graded is an exception. In verl's trainer it takes the sample out of its group, as
the second part shows: there verl's own worker plays the samples of one prompt, whose texts are a
list here, and its own GRPO makes advantages of what is left.
"""

import asyncio
import logging
import sys
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace

from assay.training.verl import reward_function

GRADERS = str(Path(__file__).with_name("graders.yaml"))
compute_score = reward_function(GRADERS)

ASKED = [("2+2=", "4", "4"), ("2+2=", "5", "4"), ("2+2=", "5", "4"), ("2+2=", "4", None)]
LONG = 8


def batch_of(asked, words):
    """Samples as verl hands them to its reward loop."""
    import numpy as np
    import torch
    from verl import DataProto

    prompts, responses, masks = [], [], []
    for question, answer, _ in asked:
        before, said = words(question)["input_ids"], words(answer)["input_ids"]
        left, right = LONG - len(before), LONG - len(said)
        prompts.append([0] * left + before)
        responses.append(said + [0] * right)
        masks.append([0] * left + [1] * (len(before) + len(said)) + [0] * right)
    truths = [{"style": "rule", "ground_truth": truth} for _, _, truth in asked]
    return DataProto.from_dict(
        tensors={
            "prompts": torch.tensor(prompts),
            "responses": torch.tensor(responses),
            "attention_mask": torch.tensor([(m + [0] * 2 * LONG)[: 2 * LONG] for m in masks]),
        },
        non_tensors={
            "data_source": np.array(["sums"] * len(asked), dtype=object),
            "reward_model": np.array(truths, dtype=object),
            "extra_info": np.array([{"index": n} for n in range(len(asked))], dtype=object),
        },
    )


def worker_of(manager, words):
    """verl's reward loop, as a trainer's configuration asks for it."""
    from omegaconf import OmegaConf
    from verl.experimental.reward_loop.reward_loop import RewardLoopWorker

    place = mkdtemp()
    words.save_pretrained(place)
    config = OmegaConf.create(
        {
            "actor_rollout_ref": {"model": {"path": place, "tokenizer_path": None}},
            "reward": {
                "num_workers": 1,
                "custom_reward_function": {
                    "path": __file__,
                    "name": "compute_score",
                    "reward_kwargs": {},
                },
                "reward_manager": {
                    "source": "register",
                    "name": manager,
                    "module": {"path": None, "name": None},
                },
                "reward_model": {"enable": False},
                "sandbox_fusion": None,
                "timeout": 5.0,
                "max_concurrent": 4,
            },
        }
    )
    return RewardLoopWorker(config, None)


async def group(worker, words) -> None:
    """One prompt's samples in the worker of verl's trainer, and the advantages of those left."""
    import numpy as np
    import torch
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage
    from verl.trainer.ppo.v1 import agent_loop_tq

    status, rewards = [], []

    async def put(*, tag, **_):
        status.append(tag["status"])

    async def sample(*_, session_id, **__):
        scored = await worker.compute_score(batch_of([ASKED[session_id]], words))
        rewards.append(scored["reward_score"])  # verl puts the sample into its queue here

    agent_loop_tq.tq = SimpleNamespace(async_kv_put=put)  # the queue to the trainer's process
    loop = SimpleNamespace(
        config=SimpleNamespace(
            actor_rollout_ref=SimpleNamespace(rollout=SimpleNamespace(n=len(ASKED)))
        ),
        _run_agent_loop=sample,
    )
    play = agent_loop_tq.AgentLoopWorkerTQ.__ray_metadata__.modified_class._run_prompt
    await play(loop, {"uid": "a"}, {}, {"validate": False})
    found, _ = compute_grpo_outcome_advantage(
        torch.tensor([[one] for one in rewards]),
        torch.ones(len(rewards), 1),
        np.array(["a"] * len(rewards)),
    )
    advantages = sorted((round(one, 3) for one in found[:, 0].tolist()), reverse=True)
    print(f"{status[-1]}: {len(rewards)} of {len(ASKED)} samples, advantages {advantages}")


async def main(manager: str) -> None:
    import tiny

    words = tiny.tokenizer()
    worker = worker_of(manager, words)
    for one in await worker.compute_score_batch(batch_of(ASKED[:2], words)):
        kept = {name: one["reward_extra_info"][name] for name in ("graded", "flagged")}
        print(one["reward_score"], kept)
    await group(worker, words)


if __name__ == "__main__":
    logging.getLogger("verl").setLevel(logging.CRITICAL)  # it shows each exception
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "naive"))
