"""Groups of Tinker's cookbook, sampled and graded on a CPU: nothing is asked of Tinker's service.

    pip install assay tinker-cookbook
    python tinker_groups.py

A policy that says what a script says stands for Tinker's sampling; rollouts, strategies and
advantages are the cookbook's own.
"""

import asyncio
import itertools
import pickle
from tempfile import mkdtemp
from typing import Any

import tiny
from tinker_cookbook import renderers
from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.rl.data_processing import compute_advantages
from tinker_cookbook.rl.rollout_strategy import MinViableGroup
from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.tokenizer_utils import get_tokenizer

from assay.training.tinker import problem_groups

place = mkdtemp()  # builders are pickled, and a renderer then finds its tokenizer by this name
tiny.tokenizer().save_pretrained(place)
words = get_tokenizer(place)
renderer = renderers.get_renderer("role_colon", words)


class Policy(TokenCompleter):
    """Says 4, 5 and "broken" in turn."""

    def __init__(self) -> None:
        self.says = itertools.cycle(["4", "5", "broken", "4"])

    async def __call__(self, *_: Any, **__: Any) -> TokensWithLogprobs:
        tokens = words(f" {next(self.says)}\n\nUser:")["input_ids"]
        return TokensWithLogprobs(tokens=tokens, maybe_logprobs=[0.0] * len(tokens))


def exact(answer: str, expected: str) -> float:
    if answer == "broken":
        raise RuntimeError("a fault of the grader")
    return float(answer == expected)


async def main() -> None:
    for on_error, strategy in (("raise", MinViableGroup(max_retries=0)), ("group_mean", None)):
        problems = problem_groups(exact, renderer=renderer, size=4, on_error=on_error)
        builder = pickle.loads(pickle.dumps(problems("2 + 2?", expected="4")))
        group = await do_group_rollout(builder, Policy(), strategy)
        advantages = [round(one, 3) for one in compute_advantages([group])[0].tolist()]
        rewards = sorted(round(one, 3) for one in group.get_total_rewards())
        print(f"{on_error}: {rewards}, {sorted(advantages)}, {len(group.rollout_errors)} left out")


asyncio.run(main())
