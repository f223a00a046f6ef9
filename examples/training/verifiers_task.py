"""Traces of verifiers 0.4, and so of prime-rl, scored by a grader that a configuration names.

pip install assay verifiers
python verifiers_task.py
"""

import asyncio
from pathlib import Path

import verifiers.v1 as vf
from verifiers.v1.trace import AgentInfo, Trace, TraceTask

from assay.training.verifiers import reward_function

GRADERS = str(Path(__file__).with_name("graders.yaml"))
reward = reward_function(GRADERS)
rewards = {"assay": vf.RewardFunctionConfig(fn="verifiers_task:reward", weight=2.0)}


class Data(vf.TaskData):
    answer: str | None


class Sums(vf.Task[Data]):
    pass


async def main() -> None:
    for truth, said in (("4", "4"), ("4", "5"), (None, "4")):  # the last: no truth
        task = Sums(Data(answer=truth), vf.TaskConfig(rewards=rewards))
        agent = AgentInfo(config=vf.AgentConfig(), name="agent")
        trace = Trace(task=TraceTask(type="Sums", data=task.data), agent=agent)
        asked, answer = vf.UserMessage(content="2+2?"), vf.AssistantMessage(content=said)
        trace.nodes.append(vf.MessageNode(parent=None, message=asked))
        trace.nodes.append(vf.MessageNode(parent=0, message=answer, sampled=True))
        try:
            await task.score(trace)
            print(trace.reward)
        except vf.TaskError as error:
            print(f"no reward: {error}")


if __name__ == "__main__":
    asyncio.run(main())
