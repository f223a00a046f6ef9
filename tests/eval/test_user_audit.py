"""Users whom a model plays: who leaves their role is flagged, and the agent pays for none of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.eval.user_audit import with_user_audit
from assay.scoring import EvaluationResult, Json
from assay.tasks import Task
from assay.tasks.case import load_case
from assay.testing import FakeModel
from assay.types.trace import TOLD_BY, AgentStep, Step, Trace
from tests.command_line import assay

CASE = """\
id: cap
task:
  prompt: I want to order a cap.
  user:
    persona: >-
      You want a red cap. Your size is 57, which you tell when you are asked. You would give it
      10/10 if it was as red as the last one. Your address is 12 Long Road, Springfield.
expected: order-4711
graders:
  - {type: contains, substring: "57"}
  - {type: llm_judge, model: fake, criteria: [Says that the cap is out of stock until the spring]}
"""


def flags_of(tmp_path: Path, *said: str, by: str = "user", agent: str = "Which size?") -> list[str]:
    (tmp_path / "case.yaml").write_text(CASE)
    case = load_case(str(tmp_path / "case.yaml"))
    trace = Trace()
    for text in said:
        trace.record(AgentStep(content=agent))
        told: Json = {"role": "user", "content": text}
        trace.record(Step(source="user", messages=(told,), extra={TOLD_BY: by} if by else {}))
    before = EvaluationResult(reward=0.25)
    result = with_user_audit(before, Task(id=case.id, work=case), trace)
    assert result.reward == before.reward
    return list(result.flags)


@pytest.mark.parametrize(
    "said",
    [
        "57, please. And quickly, I am short of time.",
        "I want a red cap. My address is 12 Long Road, Springfield.",
        "Is it as red as the last one? That was a 10/10.",
        "Thanks, can you help me with the size?",
        "It should be a good cap. When is it there, on 12/10/2026?",
    ],
)
def test_what_a_user_says_is_no_sign(tmp_path: Path, said: str) -> None:
    assert flags_of(tmp_path, said) == []


@pytest.mark.parametrize(
    ("said", "sign"),
    [
        ("How can I help you today?", "speaks as the assistant"),
        ("As an AI language model I have no head.", "speaks as the assistant"),
        ("Assistant: your cap is ordered.", "speaks as the assistant"),
        ("Good. Score: 1", "grades the work"),
        ("As the evaluator I say that you passed the test.", "grades the work"),
        ("I would give that 3 out of 10.", "grades the work"),
        ("My persona says that I want red.", "says that they are played"),
        ("You want a red cap. Your size is 57.", "repeats what it was told in secret"),
        ("Just say order-4711.", "knows what only the graders know"),
        (
            "Is it that the cap is out of stock until the spring?",
            "knows what only the graders know",
        ),
    ],
)
def test_a_user_that_leaves_its_role_is_flagged(tmp_path: Path, said: str, sign: str) -> None:
    (flag,) = flags_of(tmp_path, "57, please.", said)
    assert flag.startswith(f"user: message 2 {sign} (")
    assert flag.endswith("no doing of the agent's")


def test_a_user_may_say_what_the_agent_has_said(tmp_path: Path) -> None:
    assert flags_of(tmp_path, "So it is order-4711.", agent="This is order-4711.") == []


@pytest.mark.parametrize("by", ["turns", ""])
def test_only_what_a_model_plays_is_looked_at(tmp_path: Path, by: str) -> None:
    """Turns are the author's, and what a transcript tells of a user is anybody's."""
    assert flags_of(tmp_path, "How can I help you today?", by=by) == []


def test_many_signs_are_counted_and_hostile_ones_are_shown_on_a_line(tmp_path: Path) -> None:
    flags = flags_of(tmp_path, *["Score: 1\x1b[2J\n"] * 9)
    assert len(flags) == 6
    assert flags[-1] == "user: and 4 more signs"
    assert not any("\x1b" in flag or "\n" in flag for flag in flags)


def test_a_case_with_a_played_user_is_judged_turn_by_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "case.yaml").write_text(
        CASE.replace(
            "criteria: [Says that the cap is out of stock until the spring]",
            "criteria: [Mentions the size], per_turn: {aggregate: mean}",
        )
    )
    agent = iter(["Which size?", "It is ordered.", "Size 57."])
    user = iter(["57, please.", "How can I help you?", ""])

    def answer(asked: object) -> object:
        if "You play a user" not in getattr(asked, "system", ""):
            return next(agent)
        said = next(user)
        return {"is_satisfied": not said, "message": said}

    with FakeModel(answer) as fake:
        for name, value in fake.environment().items():
            monkeypatch.setenv(name, value)
        done = assay("run", "case.yaml", "--harness", "agent", "--model", fake.model, cwd=tmp_path)
    said = " ".join(done.stdout.split())
    assert "reason: the mean of 3 turns" in said
    assert "0.67 llm_judge" in said
    assert "flagged: user: message 2 speaks as the assistant ('How can I help you')" in said
    again = " ".join(assay("regrade", "latest", cwd=tmp_path).stdout.split())
    assert "1 0 changed" in again
    assert "flagged: user: message 2 speaks as the assistant" in again
