"""Tasks in Python: a template yields a prompt, and then the reward for the answer it is sent.

To run them::

    job = await Taskset.from_file("tasks.py").run(scripted)  # the agent of agent.py
    job.reward  # the mean over what could be graded
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path

from assay import Taskset
from assay.environment import Answer, Environment
from assay.graders import (
    BashGrader,
    EvaluationResult,
    SubScore,
    combine,
    combine_all,
    combine_any,
    contains,
    exact_match,
    regex_match,
)

env = Environment("office")

LOG = """\
09:14:02 INFO  user 7 signed in
09:14:09 ERROR disk full on node 3
09:15:30 INFO  retry after ERROR was cleared
09:16:11 ERROR no route to node 5
09:17:00 WARN  ERRORS are counted daily
"""


@env.template()
async def symbol(element: str = "sodium", expected: str = "Na") -> AsyncGenerator[str | float, str]:
    """The simplest kind: one comparison is the reward."""
    answer = yield f"What is the chemical symbol of {element}?"
    yield exact_match(answer, expected)


@env.template()
async def log_pattern() -> AsyncGenerator[str | EvaluationResult, str]:
    """Several graders in one reward: what a command finds, and the form of the answer."""
    answer = yield (
        "Write one regular expression for `grep -E` that finds the lines of level ERROR in a log, "
        f"and no other line. Answer with the expression only. The log begins like this:\n\n{LOG}"
    )
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "log.txt").write_text(LOG)
        Path(directory, "pattern.txt").write_text(answer + "\n")
        yield await combine(
            # The answer is untrusted, so what it has a part in runs in the sandbox.
            BashGrader.grade(
                weight=0.8,
                name="finds-errors",
                command='test "$(grep -cEf pattern.txt log.txt)" = 2 '
                '&& test "$(grep -Ef pattern.txt log.txt | grep -c "node [35]$")" = 2',
                cwd=directory,
                timeout_seconds=20,
                sandbox=True,
            ),
            SubScore(name="one-line", value=regex_match(answer, r"^[^\n`]+$"), weight=0.2),
        )


@env.template()
async def commit_subject() -> AsyncGenerator[str | EvaluationResult, str]:
    """Alternatives and conditions: one of several wordings will do, all rules of form must hold."""
    answer = yield (
        "Write the subject line of a commit that makes the login page remember the user's "
        "language. At most 60 characters, no full stop at the end."
    )
    form = [
        SubScore(name="short", value=float(len(answer) <= 60)),
        SubScore(name="no-full-stop", value=float(not answer.rstrip().endswith("."))),
        SubScore(name="one-line", value=float(len(answer.splitlines()) == 1)),
    ]
    topic = [
        SubScore(name="language", value=contains(answer, "language")),
        SubScore(name="locale", value=contains(answer, "locale")),
    ]
    yield await combine(
        combine_all(0.5, form, name="form"),
        combine_any(0.5, topic, name="topic"),
    )


@dataclass
class Meeting:
    """What the agent has to answer with.

    Attributes:
        day: Such as ``Tuesday``.
        start: Such as ``14:30``.
        people: Who takes part.
    """

    day: str
    start: str
    people: list[str]


@env.template(returns=Meeting)
async def meeting(text: str) -> AsyncGenerator[str | EvaluationResult | float, Answer[Meeting]]:
    """A typed answer: it arrives as a Meeting, or with the reason why it is none."""
    answer = yield (
        f"{text}\n\nAnswer with a JSON object that has `day` (in English), `start` (as HH:MM) and "
        "`people` (a list of names)."
    )
    if not answer.ok:
        yield EvaluationResult(reward=0.0, content=f"the answer is no Meeting: {answer.error}")
        return
    found = answer.content
    yield await combine(
        SubScore(name="day", value=exact_match(found.day, "Tuesday")),
        SubScore(name="start", value=exact_match(found.start, "14:30")),
        SubScore(name="people", value=float(set(found.people) == {"Ada", "Grace"})),
    )


MAIL = "Ada and Grace, let us meet on Tuesday at half past two in the afternoon."

tasks = Taskset(
    "office",
    [
        replace(symbol(), slug="symbol-sodium"),
        replace(symbol(element="tungsten", expected="W"), slug="symbol-tungsten"),
        log_pattern(),
        commit_subject(),
        replace(meeting(text=MAIL), slug="meeting"),
        replace(meeting(text=f"{MAIL} Lunch is before that."), slug="meeting-and-lunch"),
    ],
)
