"""Scripted judges that go by the form of the question, and read the material in its fences."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from assay.errors import GraderError
from assay.graders.base import Grader
from assay.models import Request
from assay.scoring import Json, SubScore
from assay.testing.asked import split_fences
from tests.judge_models import asked_text

__all__ = [
    "Shown",
    "by_form",
    "claims",
    "graded",
    "sentence_claims",
    "verdict",
    "verdicts",
]

_FORM = re.compile(r"^FORM: (\w+)$", re.MULTILINE)
_LINE = re.compile(r"^(\d+)\. (.*)$")


@dataclass(frozen=True)
class Shown:
    """What a judge is shown: its material by name, and the text outside of it."""

    fences: dict[str, str]
    outside: str
    request: Request

    @property
    def claims(self) -> dict[int, str]:
        """The numbered claims."""
        lines = (_LINE.match(line) for line in self.fences.get("claims", "").splitlines())
        return {int(line[1]): line[2] for line in lines if line}

    @property
    def documents(self) -> dict[int, str]:
        """The numbered documents."""
        return {
            int(name.removeprefix("document-")): text
            for name, text in self.fences.items()
            if name.startswith("document-")
        }

    @property
    def is_repair(self) -> bool:
        """Whether it is shown its own reply, to correct it."""
        return any(message.role == "assistant" for message in self.request.messages)


Say = Callable[[Shown], Json]


def shown(request: Request) -> Shown:
    """The question, taken apart."""
    fences, outside = split_fences(asked_text(request))
    return Shown({fence.name: fence.text for fence in fences}, outside, request)


def by_form(**forms: Say | Json) -> Callable[[Request], Json]:
    """A judge that has an answer, or a function, for each form."""

    def say(request: Request) -> Json:
        found = _FORM.search(asked_text(request))
        assert found is not None
        reply = forms[found[1]]
        return reply(shown(request)) if callable(reply) else reply

    return say


async def graded(grader: type[Grader], **parameters: object) -> SubScore:
    """The node that a grader gives; that of the error, where it is one."""
    try:
        return await grader.grade(**parameters)  # pyright: ignore[reportArgumentType] - options of a test
    except GraderError as error:
        if isinstance(error.subscore, SubScore):
            return error.subscore
        raise


def claims(*pairs: tuple[str, str] | str) -> dict[str, Json]:
    """A list of claims: text and span, or a text that is its own span."""
    both = [(pair, pair) if isinstance(pair, str) else pair for pair in pairs]
    return {"claims": [{"text": text, "span": span} for text, span in both]}


def sentence_claims(one: Shown) -> Json:
    """Each sentence of the answer is a claim."""
    found = re.split(r"(?<=[.!?])\s+|\n+", one.fences["answer"])
    return claims(*[sentence for sentence in found if sentence.strip()])


def verdict(
    claim: int, support: str, document: int | None = None, quote: str = ""
) -> dict[str, Json]:
    """What is said of one claim."""
    place: dict[str, Json] = {"claim": claim, "quote": quote, "document": document}
    return {**place, "reasoning": "because", "verdict": support}


def verdicts(*each: dict[str, Json]) -> dict[str, Json]:
    """A list of verdicts."""
    return {"verdicts": list(each)}
