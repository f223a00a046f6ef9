"""Many sessions, while clients, workers and connections die: each is graded exactly once."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from assay.environment.channel import serve as serving
from assay.environment.channel.sessions import ChannelLimits
from assay.environment.channel.workers import Workers
from assay.scoring.json_safe import Json
from tests.served_environment import Raw, raw, write_env

_ENV = """
import asyncio
from assay import Environment

env = Environment("soak")


@env.template()
async def square(number: int):
    answer = yield f"What is {number} squared?"
    await asyncio.sleep(0.02)
    yield 1.0 if answer == str(number * number) else 0.25
"""


class _Seen(Workers):
    """The workers of a server, to be killed."""

    seen: list[_Seen]

    def __init__(self, file: str, name: str, count: int) -> None:
        super().__init__(file, name, count)
        self.seen.append(self)


@pytest.mark.parametrize(
    ("sessions", "kills"), [pytest.param(60, 3), pytest.param(500, 12, marks=pytest.mark.soak)]
)
async def test_each_session_is_graded_exactly_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sessions: int, kills: int
) -> None:
    seen: list[_Seen] = []
    monkeypatch.setattr(_Seen, "seen", seen, raising=False)
    monkeypatch.setattr(serving, "Workers", _Seen)
    file = write_env(tmp_path, _ENV)
    audit: list[dict[str, Json]] = []
    chance = random.Random(20261123)
    doomed = set(chance.sample(range(sessions), kills))
    plans = [(number, chance.choice(_FATES), number in doomed) for number in range(sessions)]

    async with serving.serve(
        str(file), workers=2, limits=ChannelLimits(sessions=sessions), audit=audit.append
    ) as served:

        async def session(number: int, fate: str, kills: object) -> float:
            answer = str(number * number if number % 2 else -1)
            async with raw(served.port) as peer:
                session_id = str((await peer.result("hello"))["session_id"])
                start: dict[str, Json] = {"id": "square", "args": {"number": number}}
                started = await peer.result("tasks.start", **start)
                assert started == {"prompt": f"What is {number} squared?"}
                if kills and (living := seen[0].living):
                    with suppress(ProcessLookupError):
                        os.kill(random.Random(number).choice(living).pid, signal.SIGKILL)
                if fate == "whole":
                    return _score(await peer.result("tasks.grade", answer=answer))
                if fate != "dies before grading":
                    await _say(peer, answer)
                if fate == "dies while grading":
                    await asyncio.sleep(0.01)
                peer.abort()
            async with raw(served.port) as peer:  # another client, or the same one again
                await peer.result("hello", session_id=session_id)
                score = _score(await peer.result("tasks.grade", answer=answer))
                assert (await peer.error("tasks.grade", answer=f"{answer}0"))[2] == "already graded"
                return score

        scores = await asyncio.gather(*(session(*plan) for plan in plans))

    assert scores == [1.0 if number % 2 else 0.25 for number in range(sessions)]
    graded = Counter(str(line["session"]) for line in audit if line["ended"] == "graded")
    assert len(graded) == sessions
    assert set(graded.values()) == {1}
    assert {str(line["ended"]) for line in audit} == {"graded"}


_FATES = ("whole", "whole", "dies before grading", "dies while grading", "breaks off")


async def _say(peer: Raw, answer: str) -> None:
    call: dict[str, Json] = {"id": "g", "method": "tasks.grade", "params": {"answer": answer}}
    await peer.send(json.dumps(call).encode() + b"\n")


def _score(grade: dict[str, Json]) -> float:
    return cast("float", grade["score"])
