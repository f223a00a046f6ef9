"""Two steps of a real trainer of TRL, with assay's rewards; prints what came of them."""

from __future__ import annotations

import json
import sys

import tiny
import torch
import trl
from datasets import Dataset

from assay.graders import FunctionGrader
from assay.training.trl import reward_function

trainer_name, form, place = sys.argv[1:]
torch.manual_seed(0)
prompts = [f"{n}+{n}=" for n in range(8)]
rows = {
    "prompt": prompts if form == "text" else [[{"role": "user", "content": p}] for p in prompts],
    "solution": [str(2 * n) for n in range(8)],
    "info": [{"broken": n % 2 == 1} for n in range(8)],
}
SPREAD = """
from adaptive_harmony import StringThread

async def grade(thread: StringThread) -> float:
    if thread.metadata.get("broken"):
        raise ValueError("a fault of ours")
    said = thread.completion() or ""
    return len(set(said)) / 100
"""
spread = reward_function(FunctionGrader(source=SPREAD), metadata="info", name="spread")
length = reward_function(
    lambda answer, expected: len(answer) / 100 + 0 * len(expected),
    expected="solution",
    asynchronous=True,
    name="length",
)
settings = {
    "output_dir": place,
    "per_device_train_batch_size": 8,
    "num_generations": 4,
    "max_completion_length": 16,
    "max_steps": 2,
    "report_to": [],
    "logging_steps": 1,
    "save_strategy": "no",
    "use_cpu": True,
    "bf16": False,
    "beta": 0.0,  # no second model to be kept near
    "seed": 0,
}
words = tiny.tokenizer()
trainer = getattr(trl, f"{trainer_name}Trainer")(
    model=tiny.model(len(words)),
    reward_funcs=[spread, length],
    args=getattr(trl, f"{trainer_name}Config")(**settings),
    train_dataset=Dataset.from_dict(rows),
    processing_class=words,
)
trainer.train()
print(json.dumps([line for line in trainer.state.log_history if "reward" in line]))
