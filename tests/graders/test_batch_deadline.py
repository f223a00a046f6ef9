"""What an item may take where nobody says how long."""

from __future__ import annotations

import asyncio
import math

import pytest

from assay.graders import batch
from assay.graders.base import Grader
from assay.graders.spec import GraderSpec


class Hangs(Grader):
    """Waits for ever."""

    name = "hangs"

    @classmethod
    async def compute_score(cls, answer: str = "") -> float:
        if answer == "hang":
            await asyncio.sleep(math.inf)
        await asyncio.sleep(0)
        return 1.0


async def test_a_grader_that_hangs_is_an_error_by_default_and_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch, "DEADLINE", 0.2)
    done = await Hangs.grade_batch([{"answer": "hang"}, {"answer": "x"}])
    assert done.rewards == [None, 1.0]
    late = done.graded[0]
    assert (late.status, late.outcome, late.score) == ("error", "late", None)
    assert late.error == "it was not graded within 0.2 seconds (`deadline` gives it more)"


def test_what_graders_may_take_by_their_own_limits_comes_on_top() -> None:
    """A submission that hangs every command is worth 0; as our time-out it would have no reward."""
    slow = GraderSpec(type="command", options={"run": "true", "timeout_s": 1_800})
    plain = GraderSpec(type="exact_match")
    assert batch.way_of([slow, plain]).deadline == 600 + 1_800
    assert batch.way_of([plain]).deadline == 600


async def test_without_an_end_is_said_so() -> None:
    done = await Hangs.grade_batch([{"answer": "x"}], deadline=math.inf)
    assert done.rewards == [1.0]
