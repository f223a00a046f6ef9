"""Whether a user whom a model plays stays in their role: what they say is no doing of the agent's.

A played user who repeats what they were told in secret, knows what only the graders know, speaks
as the assistant or grades the work makes a score that says little of the agent. It is flagged, for
people to look at, and changes no score. Only what is plain is seen: words, and no meaning.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from assay.scoring.json_safe import Json
from assay.shown import one_line
from assay.tasks.blocks import SimulatedUser
from assay.tasks.case import Case
from assay.tasks.task import Task
from assay.types.trace import TOLD_BY, AgentStep, Trace

_WORD = re.compile(r"\w+")
_ADDRESSED = frozenset({"you", "your", "yours", "yourself"})
"""Who they are is told to them so, and said by them of themselves in other words."""
_RUN = 6
"""Words in a row that are taken for repeated, and not for said by chance."""
_LONG_RUN = 25
_LEAST = 3
_MOST_FLAGS = 5
_MOST_READ = 20_000
_MOST_SECRETS = 500

_SIGNS: Mapping[str, re.Pattern[str]] = {
    "speaks as the assistant": re.compile(
        r"(?im)^\s*(?:assistant|agent|ai)\s*:|\bas an? (?:ai|language model|assistant)\b"
        r"|\bi(?:'m| am) (?:an?|your|the) (?:ai|(?:virtual )?assistant|language model|chatbot)\b"
        r"|\bhow (?:can|may) i (?:help|assist) you\b|\bhappy to (?:help|assist) you\b"
        r"|\banything else i can (?:help|assist|do)\b"
    ),
    "grades the work": re.compile(
        r"(?i)\bas (?:the|an?|your) (?:grader|evaluator|judge|examiner)\b"
        r"|\b(?:verdict|score|grade|rating)\b\W{0,3}(?:is\W{1,3})?(?:\d|pass\b|fail\b)"
        r"|(?<![\d/])\d{1,3} ?(?:/|out of) ?(?:5|10|100)\b(?!/)"
        r"|\b(?:you|this|it) (?:have |has )?(?:pass|fail)(?:ed|es)? (?:the|this|my) "
        r"(?:test|evaluation|case|check|benchmark)\b"
    ),
    "says that they are played": re.compile(
        r"(?i)\b(?:simulated user|role-?play(?:ing)?|my persona|my system prompt"
        r"|i(?:'m| am) (?:only |just )?(?:playing|pretending|simulating)"
        r"|my (?:instructions|role) (?:say|says|is|are|tell)s?)\b"
    ),
}


def user_flags(task: Task, trace: Trace) -> list[str]:
    """What a played user did that is not a user's."""
    if not isinstance(case := task.work, Case) or (user := case.task.user) is None:
        return []
    found = list(_flags(case, user, trace))
    more = [f"user: and {len(found) - _MOST_FLAGS} more signs"] if found[_MOST_FLAGS:] else []
    return [*found[:_MOST_FLAGS], *more]


def _flags(case: Case, user: SimulatedUser, trace: Trace) -> Iterator[str]:
    known = "\n".join((case.task.prompt, *case.task.turns, user.persona))
    secrets = list(_secrets(case))
    number = 0
    for step in trace.work:
        if isinstance(step, AgentStep):
            known += f"\n{(step.content or '')[:_MOST_READ]}"
        elif step.extra.get(TOLD_BY) == "user":
            number += 1
            said = "\n".join(
                str(one.get("content")) for one in step.messages if isinstance(one, dict)
            )[:_MOST_READ]
            for what, quote in _signs(said, known, user.persona, secrets):
                shown = one_line(quote, 60)
                yield f"user: message {number} {what} ({shown!r}): no doing of the agent's"
            known += f"\n{said}"


def _signs(
    said: str, known: str, persona: str, secrets: Sequence[tuple[str, bool]]
) -> Iterator[tuple[str, str]]:
    """What is out of role in a message, and where that is seen."""
    own = persona.casefold()
    for what, pattern in _SIGNS.items():
        found = (one[0].strip() for one in pattern.finditer(said))
        # What the task's author has them say is their role.
        if quote := next((one for one in found if one.casefold() not in own), ""):
            yield what, quote
    if quote := _repeated(said, persona):
        yield "repeats what it was told in secret", quote
    for secret, is_answer in secrets:
        if quote := _given_away(secret, said, known, least=1 if is_answer else _RUN):
            yield "knows what only the graders know", quote
            return


def _repeated(said: str, persona: str) -> str:
    """What is said in the words in which the persona was told, and not as a user says it."""
    told, words = _words(persona), _words(said)
    for length, is_addressed in ((_RUN, True), (_LONG_RUN, False)):
        spoken = set(_runs(words, length))
        for run in _runs(told, length):
            if run in spoken and not (is_addressed and _ADDRESSED.isdisjoint(run.split())):
                return run
    return ""


def _given_away(secret: str, said: str, known: str, *, least: int) -> str:
    """What of a secret is said that nobody had said before; of a long one, some words in a row.

    ``least``: Fewer words than these say nothing.
    """
    words = _words(secret)
    if sum(map(len, words)) < _LEAST or len(words) < least:
        return ""
    length = min(len(words), _RUN)
    spoken = set(_runs(_words(said), length))
    found = [run for run in _runs(words, length) if run in spoken]
    before = set(_runs(_words(known), length)) if found else set[str]()
    return next((run for run in found if run not in before), "")


def _runs(words: Sequence[str], length: int) -> Iterator[str]:
    return (" ".join(words[at : at + length]) for at in range(len(words) - length + 1))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _secrets(case: Case) -> Iterator[tuple[str, bool]]:
    """The texts by which a case is graded, each with whether it is what is to be found."""
    waiting: deque[tuple[object, bool]] = deque([(case.expected, True)])
    for spec in case.graders:
        waiting += [(spec.options[name], True) for name in _ANSWERS & spec.options.keys()]
        waiting += [(spec.options[name], False) for name in _RUBRICS & spec.options.keys()]
    for _ in range(_MOST_SECRETS):
        if not waiting:
            return
        one, is_answer = waiting.popleft()
        if isinstance(one, str | int | float) and not isinstance(one, bool):
            yield str(one)[:_MOST_READ], is_answer
        elif isinstance(one, Mapping):
            waiting += [(each, is_answer) for each in cast("Mapping[str, Json]", one).values()]
        elif isinstance(one, list | tuple):
            waiting += [(each, is_answer) for each in cast("Sequence[Json]", one)]


_ANSWERS = frozenset({"substring", "substrings", "expected", "reference"})
_RUBRICS = frozenset({"criteria", "words"})
