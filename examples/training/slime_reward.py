"""What slime and miles do with `--custom-rm-path slime_reward.reward --group-rm`.

    pip install assay
    python slime_reward.py

Neither installs without GPUs: the function is called as slime 0.3.1 calls it, with samples that
have the fields of its own.
"""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from assay.training.slime import reward_function

GRADERS = str(Path(__file__).with_name("graders.yaml"))
reward = reward_function(GRADERS)


@dataclass
class Sample:
    response: str
    label: str | None
    prompt: str = "2+2="
    metadata: dict[str, object] = field(default_factory=dict)
    remove_sample: bool = False


async def main() -> None:
    samples = [Sample("4", "4"), Sample("5", "4"), Sample("4", None)]  # the last: no label
    rewards = await reward(None, samples)
    print(rewards, [sample.remove_sample for sample in samples])


if __name__ == "__main__":
    asyncio.run(main())
