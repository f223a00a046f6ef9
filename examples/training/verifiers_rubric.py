"""A rubric of verifiers 0.2 (`vf.Rubric`, in 0.3 `verifiers.legacy`) with a grader for groups.

pip install assay "verifiers==0.2.1"
python verifiers_rubric.py
"""

import asyncio
from pathlib import Path

import verifiers as vf

from assay.training.verifiers import rubric_function

GRADERS = str(Path(__file__).with_name("graders.yaml"))
rubric = vf.Rubric(funcs=[rubric_function(GRADERS, group=True)])


def state(said: str, truth: str | None) -> vf.State:
    made = vf.State()
    made.update(
        prompt=[{"role": "user", "content": "2+2?"}],
        completion=[{"role": "assistant", "content": said}],
        answer=truth,
        task="sums",
        info={},
        trajectory=[],
        timing={"scoring_ms": 0.0, "total_ms": 0.0, "generation_ms": 0.0},
        error=None,
    )
    return made


async def main() -> None:
    states = [state("4", "4"), state("5", "4"), state("4", None)]  # the last: no truth
    await rubric.score_group(states)
    for one in states:
        print(one["reward"], one["advantage"], one["metrics"], one["error"])


asyncio.run(main())
