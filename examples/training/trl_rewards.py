"""Two steps of a trainer of TRL with two graders as its rewards, on a CPU.

    pip install assay trl torch
    python trl_rewards.py            # or: python trl_rewards.py RLOO text

Half of the prompts break the first grader: they have no reward of it, and training goes on.
"""

import sys
from tempfile import mkdtemp

import tiny
import torch
import trl
from datasets import Dataset

from assay.graders import FunctionGrader
from assay.training.trl import reward_function

name, form = (sys.argv[1:] or ["GRPO", "chat"])[:2]
torch.manual_seed(0)

SPREAD = """
from adaptive_harmony import StringThread

async def grade(thread: StringThread) -> float:
    if thread.metadata.get("broken"):
        raise ValueError("a fault of ours")
    said = thread.completion() or ""
    return len(set(said)) / 100
"""


def length(answer: str, expected: str) -> float:
    assert expected, "the column solution"
    return len(answer) / 100


# A function in assay's sandbox, and one of this process, which TRL awaits.
spread = reward_function(FunctionGrader(source=SPREAD), metadata="info", name="spread")
long = reward_function(length, expected="solution", asynchronous=True, name="length")

asked = [f"{n}+{n}=" for n in range(8)]
rows = {
    "prompt": asked if form == "text" else [[{"role": "user", "content": p}] for p in asked],
    "solution": [str(2 * n) for n in range(8)],
    "info": [{"broken": n % 2 == 1} for n in range(8)],
}
words = tiny.tokenizer()
trainer = getattr(trl, f"{name}Trainer")(
    model=tiny.model(words),
    reward_funcs=[spread, long],
    args=getattr(trl, f"{name}Config")(
        output_dir=mkdtemp(),
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=16,
        max_steps=2,
        shuffle_dataset=False,  # of each batch, one half breaks the grader
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        bf16=False,
        beta=0.0,  # no second model to be kept near
        disable_tqdm=True,
        seed=0,
    ),
    train_dataset=Dataset.from_dict(rows),
    processing_class=words,
)
trainer.train()

for step in trainer.state.log_history:
    if "reward" in step:
        kept = ("rewards/spread/mean", "spread/error_rate")
        kept += ("rewards/length/mean", "length/error_rate")
        print({name: round(step[name], 3) for name in kept})
