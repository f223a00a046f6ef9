"""TRL's GRPOTrainer lets a model play an environment of assay's with its tools: two steps on a CPU.

    pip install assay trl torch
    python trl_environment.py                     # the environment of bank.py, in this process
    assay serve env bank.py --port 8765 &         # or where it is served
    python trl_environment.py tcp://127.0.0.1:8765

The tiny model calls the tool as a script says; all the rest is TRL's and assay's own.
"""

import json
import sys
from pathlib import Path
from tempfile import mkdtemp

import tiny
import trl
from datasets import Dataset

from assay.training.trl import environment_factory

PLACE = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("bank.py"))


def script(before: str, number: int) -> str:
    if "<tool_response>" in before:  # it has called its tool
        return "It is done."
    call = {"name": "deposit", "arguments": {"euros": 5 * number - 5}}
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


words = tiny.tokenizer(tools=True)
asked = [{"role": "user", "content": "You are in a bank."}]
with environment_factory(PLACE, "save") as bank:
    trainer = trl.GRPOTrainer(
        model=tiny.scripted(words, script),
        environment_factory=bank,
        reward_funcs=bank.reward,
        args=trl.GRPOConfig(
            output_dir=mkdtemp(),
            per_device_train_batch_size=8,
            num_generations=4,
            max_completion_length=512,
            max_steps=2,
            learning_rate=1e-3,
            logging_steps=1,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            bf16=False,
            beta=0.0,
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_dict({"prompt": [asked] * 4, "goal": [20, 20, 20, 13]}),
        processing_class=words,
    )
    trainer.train()

for step in trainer.state.log_history:
    if "reward" in step:
        kept = ("rewards/save/mean", "save/error_rate", "tools/call_frequency")
        kept += ("tools/failure_frequency", "grad_norm")
        print({name: round(step[name], 3) for name in kept})
