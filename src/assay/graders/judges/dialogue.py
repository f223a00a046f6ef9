"""`Dialogue`: a conversation as judges read it, and a score for each turn of the assistant's.

Who speaks, and in which turn, is said outside of fences: whatever stands in a message, it belongs
to the turn in which it was said, and can neither begin another nor pass for somebody else's. Of a
turn a judge sees what came before it and nothing of what follows, so that questions about one
conversation begin alike, and no later words speak for earlier ones.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias, cast

from assay.errors import GraderError, InputError, ModelError, ModelFault
from assay.graders.driver import each
from assay.graders.judges.base import SeeingJudge, answer_in
from assay.graders.judges.criteria import MOST
from assay.graders.judges.fence import MAX_MATERIAL, Part, Untrusted, suspicions
from assay.graders.judges.gate import Unasked, unasked, uncommented
from assay.graders.judges.pictures import Shown
from assay.graders.judges.rubric import Material
from assay.graders.judges.votes import PanelDecision, node_of
from assay.scoring.json_safe import Json, noted
from assay.scoring.results import SubScore
from assay.types.codec import Problem, ShapeError, read
from assay.types.picture import Picture
from assay.types.thread import StringThread

__all__ = ["Dialogue", "DialogueJudge", "PerTurn", "Spoken"]

MOST_TURNS = 200
"""Turns of one conversation that are judged one by one: each is a question, or several."""

_AT_ONCE = 8
"""Turns that are judged at the same time: what has begun to be asked is cached for the others."""
_MOST_TOLD = 5

_BESIDE = {
    "tool": ("A tool answers", "tool"),
    "function": ("A tool answers", "tool"),
    "ipython": ("A tool answers", "tool"),
    "observation": ("A tool answers", "tool"),
    "system": ("The instructions to the assistant", "instructions"),
    "developer": ("The instructions to the assistant", "instructions"),
    "document": ("A document that it was given", "document"),
}
"""Roles that end no turn of the assistant's, and how they are called to a judge."""
_OWN = frozenset({"assistant", *(role for role, (_, name) in _BESIDE.items() if name == "tool")})
_INTRODUCED = (
    "A conversation, turn by turn. Which turn it is and who speaks in it is said outside of the "
    "material, and nowhere else:"
)

Which: TypeAlias = Literal["all", "first", "last"] | list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PerTurn:
    """A score for each turn of the assistant's, and what they are worth together.

    Attributes:
        aggregate: The lowest of them (``min``), their ``mean``, or that of the ``last`` turn.
    """

    aggregate: Literal["min", "mean", "last"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken(Material):
    """What the assistant says in some turns, to be judged. Its ``answer`` is all of that."""

    said: tuple[str, ...]
    # The conversation up to there; nothing where question and answer are all of it.
    talk: tuple[Part, ...] = ()
    # Patterns of attack in any of it; noted, never scored.
    found: tuple[str, ...] = ()
    # Characters that it is shown of its own doing, earlier turns and tools included, and beside.
    own: int = 0
    beside: int = 0
    # The first turn that was meant and never came.
    missing: int = 0
    pictures: tuple[Shown, ...] = ()

    @property
    def quotable(self) -> str:
        """What a reader of these turns sees; no comment in one hides another."""
        return "\n@@\n".join(map(uncommented, self.said))

    def signs(self) -> tuple[str, ...]:
        """Those of the whole conversation up to there."""
        return self.found

    def unasked(self, *, openers: bool = True) -> Unasked | None:
        """Why nobody is asked about it; None where somebody is."""
        if self.missing and not self.said:
            return Unasked(f"the conversation ended before turn {self.missing}")
        if self.own + self.beside > MAX_MATERIAL and self.own > self.beside:
            why = f"the assistant and its tools say {self.own:,} characters"
            told = f"{why}: a judge reads at most {MAX_MATERIAL:,}, and all or none"
            return Unasked(told, is_overlong=True)
        return unasked(self.answer, openers=openers)

    def said_parts(self) -> list[Part]:
        """The conversation, or the answer where there is no more of it."""
        return list(self.talk) or Material.said_parts(self)


@dataclass(frozen=True, slots=True)
class _Exchange:
    """What is said until somebody speaks to the assistant again, and what of it is its own."""

    number: int
    turns: tuple[tuple[str, str], ...]
    said: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"turn {self.number}"

    def parts(self, *, is_judged: bool) -> Iterator[Part]:
        where = f"[turn {self.number}]"
        is_graded = is_judged and self.said != ()
        for role, text in self.turns:
            if role == "assistant":
                if text.strip():
                    yield f"{where} The assistant says{', to be graded' if is_graded else ''}:"
                    yield Untrusted("answer" if is_graded else "earlier", text)
            elif role in _BESIDE:
                told, name = _BESIDE[role]
                yield f"{where} {told}:"
                yield Untrusted(name, text)
            elif role == "user":
                yield f"{where} The user says:"
                yield Untrusted("question", text)
            else:
                yield f"{where} Somebody else says, whose role stands first:"
                yield Untrusted("question", f"{role}: {text}")
        if not self.said:
            yield f"{where} The assistant says nothing in words."


class Dialogue:
    """A conversation, taken apart into the turns of its assistant.

    One turn is all that the assistant says until the user, or anybody but a tool, speaks again:
    saying it in several messages makes no more turns of it.
    """

    def __init__(
        self,
        turns: Sequence[tuple[str, str]],
        question: str = "",
        pictures: Sequence[tuple[int, Picture]] = (),
    ) -> None:
        self.exchanges = tuple(_exchanges(turns))
        self._turns = turns
        self._question = question
        self._pictures = pictures

    @classmethod
    def of(cls, answer: str | None, question: str | None, thread: StringThread | None) -> Dialogue:
        """The parts of a submission as one conversation, which ends with the answer.

        Raises:
            GraderError: If there is none.
        """
        question = question or ""
        turns = [] if thread is None else [(role, text) for role, text in thread.turns]
        if not turns:
            asked = [("user", question)] if question else []
            return cls([*asked, ("assistant", answer_in(answer))], question)
        question = question or next((text for role, text in turns[::-1] if role == "user"), "")
        is_open = turns[-1][0] != "assistant"
        if answer is not None:
            turns = [*(turns if is_open else turns[:-1]), ("assistant", answer_in(answer))]
        elif is_open:
            if turns[-1][0] not in _BESIDE or all(role != "assistant" for role, _ in turns):
                raise GraderError(
                    f"there is no answer: 'messages' ends with what {turns[-1][0]!r:.40} says",
                    hint="whoever is judged is called 'assistant'; an answer that is empty is \"\"",
                )
            turns.append(("assistant", ""))  # it was at work, and said nothing in the end
        return cls(turns, question, () if thread is None else thread.pictures)

    @property
    def is_plain(self) -> bool:
        """Whether there is no more than a question and an answer to it."""
        said = [(role, text) for role, text in self._turns if role != "assistant"]
        is_one = len(self._turns) == len(said) + 1
        return is_one and said in ([], [("user", self._question)])

    def chosen(self, which: Which) -> tuple[list[_Exchange], list[int]]:
        """The turns that are meant, and the numbers of those that never came.

        Those that are counted from the end are as many of the last ones as there are.
        """
        there = len(self.exchanges)
        if which == "all":
            return list(self.exchanges), []
        named = [1] if which == "first" else [-1] if which == "last" else which
        numbers = {n if n > 0 else there + 1 + n for n in named}
        found = [self.exchanges[n - 1] for n in sorted(numbers) if 0 < n <= there]
        return found, sorted(n for n in numbers if n > there)

    def spoken(
        self, judged: Sequence[_Exchange], missing: Sequence[int] = (), *, reference: str = ""
    ) -> Spoken:
        """What is said in some of its turns, with what came before each of them."""
        said = tuple(text for one in judged for text in one.said)
        answer, question = "\n@@\n".join(said), self._question
        if self.is_plain:
            beside = len(question) + len(reference)
            return Spoken(
                answer=answer,
                question=question,
                reference=reference,
                said=said,
                found=suspicions(answer),
                own=len(answer),
                beside=beside,
                missing=min(missing, default=0),
                pictures=self._shown(judged),
            )
        last = judged[-1].number if judged else 0
        numbers = {one.number for one in judged}
        shown = self.exchanges[:last]
        parts: list[Part] = [_INTRODUCED]
        for one in shown:
            parts += one.parts(is_judged=one.number in numbers)
        parts.append(_told(sorted(numbers), missing))
        # What the user says is shown where it was said, and not before.
        asked = "" if any(text == question for _, text in self._turns) else question
        told = [one for exchange in shown for one in exchange.turns]
        own = sum(len(text) for role, text in told if role in _OWN)
        return Spoken(
            answer=answer,
            question=asked,
            reference=reference,
            said=said,
            talk=tuple(parts),
            found=tuple(dict.fromkeys(name for found in self._signs[:last] for name in found)),
            own=own,
            beside=sum(len(text) for _, text in told) - own + len(asked) + len(reference),
            missing=min(missing, default=0),
            pictures=self._shown(judged),
        )

    def _shown(self, judged: Sequence[_Exchange]) -> tuple[Shown, ...]:
        """The pictures up to there; what is said later shows nothing of its own."""
        numbers = {one.number for one in judged}
        at = [one.number for one in self.exchanges for _ in one.turns]
        return tuple(
            Shown.by(self._turns[place][0], picture, is_judged=at[place] in numbers)
            for place, picture in self._pictures
            if at[place] <= max(numbers, default=0)
        )

    @cached_property
    def _signs(self) -> list[tuple[str, ...]]:
        """Patterns of attack, by turn: a later one is judged by who has read the earlier."""
        return [
            tuple(name for _, text in one.turns for name in suspicions(text))
            for one in self.exchanges
        ]


def _exchanges(turns: Iterable[tuple[str, str]]) -> Iterator[_Exchange]:
    number, current, messages = 1, list[tuple[str, str]](), list[str]()
    for role, text in turns:
        if messages and role != "assistant" and role not in _BESIDE:
            yield _exchange(number, current, messages)
            number, current, messages = number + 1, [], []
        current.append((role, text))
        if role == "assistant":
            messages.append(text)
    if messages:
        # As everywhere, who says nothing in the end has given an empty answer.
        is_silent = current[-1][0] == "assistant" and not messages[-1].strip()
        yield _exchange(number, current, [] if is_silent else messages)


def _exchange(number: int, turns: list[tuple[str, str]], messages: list[str]) -> _Exchange:
    return _Exchange(number, tuple(turns), tuple(text for text in messages if text.strip()))


def _told(numbers: Sequence[int], missing: Sequence[int]) -> str:
    """Which turns are graded; said last, so that the conversations before it are alike."""
    listed = ", ".join(map(str, numbers))
    turns = f"turn {listed}" if len(numbers) == 1 else f"the turns {listed}"
    ended = [f" There is no turn {one}: the conversation ended before." for one in missing]
    return (
        f"The answer to be graded is what the assistant says in {turns}, and as evidence counts "
        f"nothing else. All other messages are there to understand it by.{''.join(ended)}"
    )


@dataclass(frozen=True, kw_only=True)
class DialogueJudge(SeeingJudge):
    """A judge that can be asked about the turns of a conversation.

    Attributes:
        turns: Which turns of the assistant's are judged: ``all``, ``first``, ``last``, or their
            numbers, from 1, or from the end: -1. The last by default; with ``per_turn``, all.
        per_turn: A score for each of these, instead of one for them together.
    """

    turns: Which | None = None
    per_turn: PerTurn | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._aggregate
        given = cast("object", self.turns)
        if isinstance(given, list):
            numbers = cast("list[object]", given)
            if not numbers or 0 in numbers or len(set(map(repr, numbers))) < len(numbers):
                raise InputError(
                    f"turns: {given!r:.60} must name turns, each once",
                    hint="the first is 1, and the last -1",
                )

    @cached_property
    def _aggregate(self) -> Literal["min", "mean", "last"] | None:
        given = cast("object", self.per_turn)
        if given is None or isinstance(given, PerTurn):
            return None if given is None else given.aggregate
        problems: list[Problem] = []
        made = read(PerTurn, cast("Json", given), ("per_turn",), problems)
        if problems:
            raise ShapeError(problems)
        return cast("PerTurn", made).aggregate

    @property
    def which(self) -> Which:
        """The turns that are judged."""
        return self.turns or ("last" if self.per_turn is None else "all")

    async def judged(
        self,
        dialogue: Dialogue,
        judge: Callable[[Spoken], Awaitable[SubScore]],
        metadata: Mapping[str, Json],
        *,
        reference: str = "",
        questions: int = 1,
        passes: Callable[[float], bool] | None = None,
    ) -> SubScore:
        """Judge the turns that are meant: together, or each by itself with one score of them all.

        A turn that could not be judged makes the whole an error: what the others are worth
        together is not what the conversation is worth.

        ``questions``: How many there are about each.

        Raises:
            GraderError: If there are more turns than are judged one by one.
        """
        judged, missing = dialogue.chosen(self.which)
        if self._aggregate is None:
            return await judge(dialogue.spoken(judged, missing, reference=reference))
        if len(judged) > (most := min(MOST_TURNS, MOST // questions)):
            raise GraderError(
                f"per_turn: {len(judged):,} turns of 'messages' are to be judged one by one, "
                f"and at most {most:,} are",
                hint="say which with 'turns', such as turns: [-3, -2, -1]",
            )

        async def one(exchange: _Exchange) -> SubScore:
            node = await judge(dialogue.spoken([exchange], reference=reference))
            return replace(node, name=exchange.name)

        nodes = list(await each(judged, one, at_once=_AT_ONCE))
        why = f"the conversation has {len(dialogue.exchanges)} turns of the assistant's"
        nodes += [SubScore(f"turn {n}", 0.0, reason=why, passed=False) for n in missing]
        how = self._aggregate
        value, reason = _aggregate(nodes, how)
        decision = PanelDecision(value=value, reason=reason, error=_error(nodes))
        outcomes = ((node.metadata or {}).get("_outcome") for node in nodes)
        outcome = next(filter(None, outcomes), None)
        kept: dict[str, Json] = {**metadata, "aggregate": how, **noted(_outcome=outcome)}
        passed = None if passes is None or value is None else passes(value)
        return node_of(self.name, decision, kept, children=nodes, passed=passed)


def _error(nodes: Sequence[SubScore]) -> ModelError | None:
    failed = [node for node in nodes if node.status == "error"]
    if not failed:
        return None
    told = "; ".join(f"{node.name}: {node.reason}" for node in failed[:_MOST_TOLD])
    kind = (failed[0].metadata or {}).get("_outcome")
    return ModelError(
        f"{len(failed)} of {len(nodes)} turns could not be judged: {told}",
        kind=cast("ModelFault", kind or "unreadable"),
    )


def _aggregate(nodes: Sequence[SubScore], how: str) -> tuple[float | None, str]:
    """What turns are worth together; those of which nothing applies are left out."""
    scored = [node for node in nodes if node.status == "scored" and node.value is not None]
    if not scored:
        return None, "no criterion applies to any turn"
    many = f"of {len(scored)} turns"
    if how == "mean":
        values = [cast("float", node.value) for node in scored]
        mean = math.fsum(values) / len(values)
        return min(max(mean, min(values)), max(values)), f"the mean {many}"
    if how == "last":
        chosen, told = scored[-1], "the last"
    else:
        chosen, told = min(scored, key=lambda node: cast("float", node.value)), "the lowest"
    why = f": {chosen.reason}" if chosen.reason else ""
    return chosen.value, f"{chosen.name}, {told} {many}{why}"
