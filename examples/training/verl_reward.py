"""verl's own reward loop asks a grader, on a CPU: this file is its `custom_reward_function.path`.

pip install assay verl torch
python verl_reward.py            # or: python verl_reward.py dapo
"""

import asyncio
import sys
from pathlib import Path
from tempfile import mkdtemp

from assay.training.verl import reward_function

GRADERS = str(Path(__file__).with_name("graders.yaml"))
compute_score = reward_function(GRADERS, on_error="zero")

ASKED = [("1+1=", "2", "2"), ("2+2=", "5", "4"), ("3+3=", "6", None)]  # the last: no truth
LONG = 8


async def main(manager: str) -> None:
    import numpy as np
    import tiny
    import torch
    from omegaconf import OmegaConf
    from verl import DataProto
    from verl.experimental.reward_loop.reward_loop import RewardLoopWorker

    words, place = tiny.tokenizer(), mkdtemp()
    words.save_pretrained(place)
    prompts, responses, masks = [], [], []
    for question, answer, _ in ASKED:
        asked, said = words(question)["input_ids"], words(answer)["input_ids"]
        left, right = LONG - len(asked), LONG - len(said)
        prompts.append([0] * left + asked)
        responses.append(said + [0] * right)
        masks.append([0] * left + [1] * (len(asked) + len(said)) + [0] * right)
    truths = [{"style": "rule", "ground_truth": truth} for _, _, truth in ASKED]
    batch = DataProto.from_dict(
        tensors={
            "prompts": torch.tensor(prompts),
            "responses": torch.tensor(responses),
            "attention_mask": torch.tensor([(m + [0] * 2 * LONG)[: 2 * LONG] for m in masks]),
        },
        non_tensors={
            "data_source": np.array(["sums"] * len(ASKED), dtype=object),
            "reward_model": np.array(truths, dtype=object),
            "extra_info": np.array([{"index": n} for n in range(len(ASKED))], dtype=object),
        },
    )
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
    for one in await RewardLoopWorker(config, None).compute_score_batch(batch):
        kept = {name: one["reward_extra_info"][name] for name in ("graded", "flagged")}
        print(one["reward_score"], kept)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "naive"))
