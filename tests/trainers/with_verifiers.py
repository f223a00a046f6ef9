"""Traces scored by verifiers with assay's reward; prints the reward of each, or what was raised."""

from __future__ import annotations

import asyncio
import json
import sys

import verifiers.v1 as vf
from verifiers.v1.trace import AgentInfo, Trace, TraceTask


class Data(vf.TaskData):
    answer: str | None


class Sums(vf.Task[Data]):
    pass


async def main() -> None:
    found: list[object] = []
    for truth, said in (("4", "4"), ("4", "5"), (None, "4")):
        rewards = {"assay": vf.RewardFunctionConfig(fn="my_reward:reward", weight=2.0)}
        task = Sums(Data(answer=truth), vf.TaskConfig(rewards=rewards))
        agent = AgentInfo(config=vf.AgentConfig(), name="agent")
        trace = Trace(task=TraceTask(type="Sums", data=task.data), agent=agent)
        asked = vf.MessageNode(parent=None, message=vf.UserMessage(content="2+2?"))
        answer = vf.AssistantMessage(content=said)
        trace.nodes.append(asked)
        trace.nodes.append(vf.MessageNode(parent=0, message=answer, sampled=True))
        try:
            await task.score(trace)
            found.append(trace.reward)
        except Exception as error:
            found.append(str(error))
    print(json.dumps(found))


sys.path.insert(0, sys.argv[1])
asyncio.run(main())
