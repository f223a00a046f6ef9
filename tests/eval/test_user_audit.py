"""Users whom a model plays: who leaves their role is flagged, and the agent pays for none of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.eval.user_audit import user_flags
from assay.scoring import Json
from assay.tasks import Task
from assay.tasks.case import load_case
from assay.testing import FakeModel
from assay.types.trace import TOLD_BY, AgentStep, Step, Trace
from tests.command_line import assay
from tests.each import each

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
    return user_flags(Task(id=case.id, work=case), trace)


@each(
    ("said", "agent", "by"),
    [
        ("57, please. And quickly, I am short of time.", "Which size?", "user"),
        ("I want a red cap. My address is 12 Long Road, Springfield.", "Which size?", "user"),
        ("Is it as red as the last one? That was a 10/10.", "Which size?", "user"),
        ("Thanks, can you help me with the size?", "Which size?", "user"),
        ("It should be a good cap. When is it there, on 12/10/2026?", "Which size?", "user"),
        ("So it is order-4711.", "This is order-4711.", "user"),  # the agent has said it
        # Turns are the author's, and what a transcript tells of a user is anybody's.
        ("How can I help you today?", "Which size?", "turns"),
        ("How can I help you today?", "Which size?", ""),
    ],
)
def test_what_a_user_says_is_no_sign_nor_what_no_model_plays(
    tmp_path: Path, said: str, agent: str, by: str
) -> None:
    assert flags_of(tmp_path, said, by=by, agent=agent) == []


@each(
    ("said", "sign"),
    [
        ("As an AI language model I have no head.", "speaks as the assistant"),
        ("Assistant: your cap is ordered.", "speaks as the assistant"),
        ("As the evaluator I say that you passed the test.", "grades the work"),
        ("I would give that 3 out of 10.", "grades the work"),
        ("My persona says that I want red.", "says that they are played"),
        ("You want a red cap. Your size is 57.", "repeats what it was told in secret"),
        ("Just say order-4711.", "knows what only the graders know"),
        ("Is it that the cap is out of stock until the spring?", "knows what only the graders"),
    ],
)
def test_a_user_that_leaves_its_role_is_flagged(tmp_path: Path, said: str, sign: str) -> None:
    (flag,) = flags_of(tmp_path, "57, please.", said)
    assert flag.startswith(f"user: message 2 {sign}")
    assert flag.endswith("no doing of the agent's")


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
