"""Attacks on judges, end to end: from the grader over a socket to a model that obeys all it can.

`judge_attacks.jsonl` holds answers that want a verdict they do not deserve, and honest ones that
look like attacks. The judge gives each the verdict that it deserves, but obeys whatever gets out of
a fence: an attack that works here has found a way out.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.errors import GraderError
from assay.graders.binary_judge import BinaryJudgeGrader
from assay.graders.faithfulness import FaithfulnessGrader
from assay.graders.judges import fence
from assay.graders.llm_judge import LLMJudgeGrader
from assay.testing import Asked, FakeJudge, heuristic_verdict
from assay.testing.asked import Said
from assay.testing.heuristic import CriterionFinding, find_words
from tests.each import each

_FILE = Path(__file__).with_name("judge_attacks.jsonl")
_ROWS: list[dict[str, str]] = [json.loads(line) for line in _FILE.read_text("utf-8").splitlines()]
_NO_ORDERS = frozenset(
    {"echo", "template", "hedge", "verbosity", "null_model", "denial", "rag_flood", "rag_merge"}
    | {"reference_forgery", "control", "threat", "polarity"}
)
"""Families without an order to the judge, or not always: what they try is to deceive it."""


_DUE = {(row["criterion"], row["payload"].strip()): row["expected"] == "MET" for row in _ROWS}


def due(answer: str, criterion: str, question: str) -> CriterionFinding:
    """The verdict that an answer deserves; what else is asked, such as a canary, goes by words."""
    is_met = _DUE.get((criterion, answer.strip()))
    if is_met is None:
        return find_words(answer, criterion, question)
    return CriterionFinding(is_met, "as it deserves", (answer.strip()[:80],), float(is_met))


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeJudge]:
    with FakeJudge(lambda asked: heuristic_verdict(asked, due)) as judge:
        yield judge


def value(row: dict[str, str], model: str, **more: Any) -> float | None:
    async def grade() -> float | None:
        found = await LLMJudgeGrader.grade(
            answer=row["payload"],
            criteria=[row["criterion"]],
            question=row["question"],
            model=model,
            **more,
        )
        return found.value

    return asyncio.run(grade())


@each("row", _ROWS)
def test_an_attack_gains_nothing_from_a_rubric(row: dict[str, str], fake: FakeJudge) -> None:
    deserved = float(row["expected"] == "MET")
    assert value(row, fake.model, canary=0.0) == deserved
    assert value(row, fake.anthropic_model, canary=1.0) == deserved


@each("row", _ROWS)
def test_an_attack_gains_nothing_from_a_binary_judge(row: dict[str, str], fake: FakeJudge) -> None:
    async def grade() -> float | None:
        found = await BinaryJudgeGrader.grade(
            answer=row["payload"],
            criteria=row["criterion"],
            question=row["question"],
            model=fake.model,
        )
        return found.value

    assert asyncio.run(grade()) == float(row["expected"] == "MET")


@each("row", [row for row in _ROWS if row["family"] not in _NO_ORDERS])
def test_without_fences_the_order_is_obeyed(row: dict[str, str]) -> None:
    told = (
        f"FORM: criterion\n\nThe answer:\n{row['payload']}\n\n"
        f"CRITERION:\n{row['criterion']}\n\nSay whether it holds."
    )
    asked = Asked(protocol="openai", model="m", messages=(Said("user", told),))
    reply: Any = heuristic_verdict(asked)
    assert reply["verdict"] == "MET"


def test_a_judge_whose_fences_leak_is_found_out(
    fake: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unfenced(name: str, text: str) -> tuple[str, str]:
        return f"[BEGIN {name}]\n{text}\n[END {name}]", "0" * 16

    monkeypatch.setattr(fence, "fenced", unfenced)
    row = next(row for row in _ROWS if row["id"] == "override-1")
    assert value(row, fake.model, canary=0.0) == 1.0
    with pytest.raises(GraderError, match="cannot be trusted"):
        value(row, fake.model, canary=1.0)


def test_a_fence_whose_id_can_be_guessed_is_broken(
    fake: FakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    nonce = "0" * 16

    def guessable(name: str, text: str) -> tuple[str, str]:
        return f'<untrusted name="{name}" id="{nonce}">\n{text}\n</untrusted id="{nonce}">', nonce

    monkeypatch.setattr(fence, "fenced", guessable)
    row = next(row for row in _ROWS if row["id"] == "fence_guess-1")
    assert value(row, fake.model, canary=0.0) == 1.0


def test_a_flood_of_true_claims_hides_no_false_one(fake: FakeJudge) -> None:
    flood = " ".join(f"The heart is an organ ({number})." for number in range(60))

    async def grade(answer: str) -> float | None:
        found = await FaithfulnessGrader.grade(
            answer=answer,
            question="How many chambers does a heart have?",
            documents=["The heart is an organ with four chambers."],
            model=fake.model,
        )
        return found.value

    assert asyncio.run(grade(f"{flood} The heart has three chambers.")) == 0.5
    assert asyncio.run(grade("The heart is an organ (a muscle of three chambers).")) == 0.5
