"""Models of the tests' own, in this process: a function says what a judge answers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Generator
from contextlib import contextmanager

from assay.models import Request, register_model
from assay.scoring.json_safe import Json
from assay.testing.asked import split_fences

__all__ = ["Asked", "answer_in", "asked_text", "met", "model"]

_NUMBERS = itertools.count()
Asked = list[Request]


def asked_text(request: Request) -> str:
    """The question: the first user message, also where a reply is to be corrected."""
    content = next(message.content for message in request.messages if message.role == "user")
    assert isinstance(content, str)
    return content


def answer_in(request: Request) -> str:
    """The answer that a judge is asked about."""
    fences, _ = split_fences(asked_text(request))
    return next(fence.text for fence in fences if fence.name == "answer").strip()


def met(*evidence: str, verdict: str = "MET", reasoning: str = "because") -> dict[str, Json]:
    """A reply to a criterion."""
    return {"evidence": list(evidence), "reasoning": reasoning, "verdict": verdict}


@contextmanager
def model(say: Callable[[Request], Json]) -> Generator[tuple[str, Asked]]:
    """A model's reference, and what it has been asked.

    Args:
        say: Gives the reply: text as it is, or what is written as JSON; raises what the call does.
    """
    name, asked = f"scripted-{next(_NUMBERS)}", Asked()

    async def complete(request: Request) -> str:
        asked.append(request)
        said = say(request)
        return said if isinstance(said, str) else json.dumps(said)

    register_model(name, complete)
    yield name, asked
