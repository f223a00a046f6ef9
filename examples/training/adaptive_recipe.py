"""A stored grader in Adaptive's recipes, by its key and version.

    pip install "assay[server]" adaptive-sdk
    python adaptive_recipe.py

Adaptive's own client of reward servers asks `assay serve grader exact@1`, and so does a recipe's own
code, without a server between. No platform of Adaptive's is needed, or tested, for this.
"""

import asyncio
from tempfile import mkdtemp

import httpx
from adaptive_sdk.external.reward_client import RewardClient
from adaptive_sdk.external.reward_types import Request, Turn
from served import served

from assay import Client
from assay.training import Reward


def asked(said: str, **metadata: str) -> Request:
    turns = [Turn(role="user", content="2 + 2?"), Turn(role="assistant", content=said)]
    return Request(turns=turns, metadata=metadata)


async def main(store: str) -> None:
    # The platform's external graders would ask over a WebSocket, which an endpoint does not have.
    with served("exact@1", "--db", store) as url:
        client = RewardClient(url)
        print("served:", (await client.info()).name)
        batch = [asked("4", expected="4"), asked("5", expected="4")]
        print([one.reward for one in await client.batch_score(batch)])
        try:
            await client.score(asked("4"))
        except httpx.HTTPStatusError as error:  # there is no reward, and so no number
            print("not graded:", error.response.status_code, error.response.json()["detail"])
    # A custom recipe's own code grades with the same version.
    reward = Reward("exact@1", store=store)
    rows = [
        {"question": "2 + 2?", "answer": "4", "expected": "4"},
        {"question": "2 + 2?", "answer": "4"},
    ]
    print((await reward.grade(rows)).rewards)


place = mkdtemp()
with Client(store=place) as assay:
    assay.graders.create.declared(key="exact", graders=[{"type": "exact_match"}])
asyncio.run(main(place))
