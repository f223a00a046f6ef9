"""verl's own reward loop with assay's function; prints what it gave for each sample."""

from __future__ import annotations

import asyncio
import json
import sys

import numpy as np
import tiny
import torch
from omegaconf import OmegaConf
from verl import DataProto
from verl.experimental.reward_loop.reward_loop import RewardLoopWorker

file, place, manager = sys.argv[1:]
words = tiny.tokenizer()
words.save_pretrained(place)
_LONG = 8


def samples(answers: list[tuple[str, str, str]]) -> DataProto:
    prompts, responses, masks = [], [], []
    for question, answer, _ in answers:
        asked, said = words(question)["input_ids"], words(answer)["input_ids"]
        left, right = _LONG - len(asked), _LONG - len(said)
        prompts.append([0] * left + asked)
        responses.append(said + [0] * right)
        masks.append([0] * left + [1] * (len(asked) + len(said)) + [0] * right)
    tensors = {
        "prompts": torch.tensor(prompts),
        "responses": torch.tensor(responses),
        "attention_mask": torch.tensor([(m + [0] * 2 * _LONG)[: 2 * _LONG] for m in masks]),
    }
    size = len(answers)
    others = {
        "data_source": np.array(["sums"] * size, dtype=object),
        "reward_model": np.array(
            [{"style": "rule", "ground_truth": truth} for _, _, truth in answers], dtype=object
        ),
        "extra_info": np.array([{"index": n} for n in range(size)], dtype=object),
    }
    return DataProto.from_dict(tensors=tensors, non_tensors=others)


config = OmegaConf.create(
    {
        "actor_rollout_ref": {"model": {"path": place, "tokenizer_path": None}},
        "reward": {
            "num_workers": 1,
            "custom_reward_function": {"path": file, "name": "compute_score", "reward_kwargs": {}},
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


async def main() -> None:
    worker = RewardLoopWorker(config, None)
    given = await worker.compute_score_batch(samples([("1+1=", "2", "2"), ("2+2=", "5", "4")]))
    print(json.dumps([[one["reward_score"], one["reward_extra_info"]] for one in given]))


asyncio.run(main())
