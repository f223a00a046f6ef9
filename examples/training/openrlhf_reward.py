"""OpenRLHF's own executor asks a grader: this file is its `--reward.remote_url`.

    pip install assay torch aiohttp && pip install --no-deps openrlhf
    python openrlhf_reward.py                      # the function of this file
    assay serve grader graders.yaml --port 8000 &      # or a grader that is served
    python openrlhf_reward.py http://127.0.0.1:8000/get_reward

OpenRLHF needs GPUs, its executor does not: an engine that says what a list says stands for vLLM.
"""

import asyncio
import logging
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

from assay.training.openrlhf import reward_function

GRADERS = str(Path(__file__).with_name("graders.yaml"))
reward_func = reward_function(GRADERS, on_error="zero")


def executor(url: str):
    """The executor; the package's own first lines import what needs a GPU, and are left out."""
    from importlib.machinery import PathFinder

    place = Path(PathFinder.find_spec("openrlhf").origin).parent
    for name, folder in (("openrlhf", place), ("openrlhf.utils", place / "utils")):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(folder)]
    from openrlhf.utils.agent import SingleTurnAgentExecutor

    return SingleTurnAgentExecutor(url)


class Letters:
    """A tokenizer whose tokens are characters."""

    def __call__(self, text, **_):
        import torch

        return {"input_ids": torch.tensor([[ord(letter) for letter in text]])}

    def decode(self, tokens, **_):
        return "".join(map(chr, tokens))


class Engine:
    def __init__(self, said):
        self.said = said + "</s>"  # as a model ends what it says

    async def generate(self, *_, **__):
        tokens = [ord(letter) for letter in self.said]
        one = SimpleNamespace(token_ids=tokens, text=self.said, finish_reason="stop", logprobs=None)
        return SimpleNamespace(outputs=[one])


async def main(url: str) -> None:
    asked = executor(url)
    sampling = SimpleNamespace(max_tokens=16, logprobs=None)
    for said, label in (("4", "4"), ("5", "4"), ("4", None)):  # the last: no label
        done = await asked.execute("2+2=", label, sampling, 64, Letters(), Engine(said))
        told = {"reward": done["reward"], "scores": done["scores"], **done["extra_logs"]}
        print({name: number(value) for name, value in told.items()})


def number(value) -> float:
    """A tensor of a function, or the list of a server, each of one sample."""
    return float(value[0] if isinstance(value, list) else value)


if __name__ == "__main__":
    logging.disable(logging.INFO)
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else __file__))
