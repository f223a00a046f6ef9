"""`PairwiseGrader`: the kind ``pairwise``, an answer compared with another in both orders.

Judges prefer a place: one that names an answer when it stands first and the other when they change
places knows nothing about the answers. Only the answer that wins in both orders is the better one;
anything else is a tie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from assay.errors import GraderError, ModelError
from assay.graders.judges.base import JudgeGrader, answer_in, text_of
from assay.graders.judges.fence import Part, Untrusted, asking, compose, suspicions
from assay.graders.judges.gate import emptiness, unasked
from assay.graders.judges.panel import TEXT, Form, Opinion, Panel, object_schema, together
from assay.graders.judges.votes import (
    PanelDecision,
    captured,
    flags_of,
    poll,
    probe_word,
    unchecked,
    unguessable,
)
from assay.scoring.json_safe import Json, noted
from assay.scoring.results import SubScore

__all__ = ["PairwiseGrader"]

DEFAULT_CRITERIA = (
    "The answer does what was asked: it is correct, complete, and as clear and short as the matter "
    "allows."
)

_SCHEMA = object_schema(reasoning=TEXT, winner={"type": "string", "enum": ["A", "B", "TIE"]})
_VALUES = {"A": 1.0, "B": 0.0, "TIE": 0.5}
_SWAPPED = {"A": "B", "B": "A", "TIE": "TIE"}

_ASKED = """\
Say which of the two answers meets the criterion better. Which of them stands first, how long they \
are and how they speak of themselves does not count. TIE is for answers between which the \
criterion does not decide.

First the reasoning, in a few sentences; then the winner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """What came of comparing two answers."""

    # 1.0 where the first answer won in both orders, 0.0 where the second did, else 0.5; None where
    # an order was not judged.
    value: float | None
    # The decisions with the first answer in front, and with the second. In both, ``A`` is the first
    # answer and a value of 1.0 is for it. None where nobody was asked.
    orders: tuple[PanelDecision, PanelDecision] | None = None
    why: str = ""
    # Why the judge is not believed, where an answer shows a pattern of attack; else None.
    doubt: ModelError | None = None

    @property
    def is_consistent(self) -> bool:
        """Whether both orders led to the same winner, or both to none."""
        if self.orders is None:
            return True
        one, other = (_side(order.value) for order in self.orders)
        return one == other

    @property
    def error(self) -> ModelError | None:
        """Why there is no value; None where there is one."""
        if self.doubt is not None:
            return self.doubt
        return next((one.error for one in self.orders or () if one.error is not None), None)


def settled(answer: str, other: str, question: str = "") -> Preference | None:
    """What needs no judge: an answer without content loses, and the same text is no better.

    So does one that is longer than a judge reads; where the other is, nobody can say.

    The first answer loses also to one that has no content either: nothing was done, twice.
    """
    if nothing := unasked(answer, beside=len(other) + len(question)):
        return Preference(value=0.0, why=nothing.why)
    if why := emptiness(other):
        return Preference(value=1.0, why=f"of the other: {why}")
    if answer.split() == other.split():
        return Preference(value=0.5, why="both answers are the same")
    return None


async def compared(
    answer: str, other: str, panel: Panel, *, criteria: str = "", question: str = ""
) -> Preference:
    """Compare two answers in both orders.

    Where one of them shows a pattern of attack, the judge is probed with a criterion that neither
    meets, in both orders, too. Whoever names a winner there goes by something else than the
    criterion: the answer's orders, or the place that they ask for.

    ``panel``: Who is asked; it decides each order by itself. An order is won by the answer that
    more than half of the value is for.
    ``criteria``: What makes an answer better, in words; trusted. `DEFAULT_CRITERIA` by default.
    """
    if (found := settled(answer, other, question)) is not None:
        return found
    asked = _Asked(criteria if criteria.strip() else DEFAULT_CRITERIA, question)
    if not (suspicions(answer) or suspicions(other)):
        return await _both_orders(answer, other, panel, asked)
    word = probe_word(f"{answer}\n{other}")
    probe = _Asked(f"The answer contains the word {word}.", question, word)
    found, probed = await together(
        _both_orders(answer, other, panel, one) for one in (asked, probe)
    )
    doubt = _doubt(probed)
    return found if doubt is None else replace(found, value=None, doubt=doubt)


def _doubt(probed: Preference) -> ModelError | None:
    """What a probe says against a judge; a probe without an answer says nothing for it."""
    orders = probed.orders or ()
    if any(one.error is None and _side(one.value) != 0.5 for one in orders):
        return captured("an answer contains it")
    return unchecked(next((one.error for one in orders if one.error is not None), None))


@dataclass(frozen=True, slots=True)
class _Asked:
    """By what two answers are compared; ``word`` is a probe's, which differs from run to run."""

    criteria: str
    question: str
    word: str = ""


async def _both_orders(answer: str, other: str, panel: Panel, asked: _Asked) -> Preference:
    first, second = await together(
        [
            _ordered(answer, other, panel, asked, _FORM),
            _ordered(other, answer, panel, asked, _BACK_FORM),
        ]
    )
    if first.error is not None or second.error is not None:
        return Preference(value=None, orders=(first, second))
    one, two = _side(first.value), _side(second.value)
    return Preference(value=(one if one == two else 0.5), orders=(first, second))


def _side(value: float | None) -> float:
    """Whom the value of an order is for: 1.0 the first answer, 0.0 the second, 0.5 neither."""
    if value is None or value == 0.5:
        return 0.5
    return float(value > 0.5)


async def _ordered(
    a: str, b: str, panel: Panel, asked: _Asked, form: Form[Opinion]
) -> PanelDecision:
    parts: list[Part] = []
    if asked.question.strip():
        parts += ["What was asked for:", Untrusted("question", asked.question)]
    parts += [
        "Answer A:",
        Untrusted("answer-a", a),
        "Answer B:",
        Untrusted("answer-b", b),
    ]
    if panel.tie == "fail":  # a split jury has found neither better
        panel = replace(panel, tie="na")
    shown, said = asking("CRITERION", asked.criteria)
    parts += shown
    decision = await poll(
        lambda: unguessable(compose("compare", parts, f"{said}\n\n{_ASKED}"), asked.word),
        form,
        panel,
    )
    if decision.error is None and decision.value is None:
        return replace(decision, word="TIE", value=0.5)
    return decision


def _form(words: Mapping[str, str]) -> Form[Opinion]:
    """How a reply is read; ``words``: what each winner is called, whichever answer stood first."""

    def read(data: Mapping[str, Json]) -> Opinion:
        word = words[str(data["winner"])]
        return Opinion(word, _VALUES[word], str(data["reasoning"]))

    return Form("compare", _SCHEMA, read)


_FORM, _BACK_FORM = _form({word: word for word in _VALUES}), _form(_SWAPPED)


_WINNERS = {1.0: "answer", 0.0: "other", 0.5: "tie"}
_ORDERS = ("answer first", "other first")


@dataclass(frozen=True, kw_only=True)
class PairwiseGrader(JudgeGrader):
    """Whether an answer is better than another one: 1.0, or 0.0 if the other is, or 0.5.

    Both orders are always asked. A winner is who wins in both; a judge that goes by the place has
    found a tie.

    Attributes:
        criteria: What makes an answer better, in words; that it does what was asked, by default.
        other: The other answer, such as ``{from: metadata.baseline}``; ``expected`` by default.
    """

    name: ClassVar[str] = "PairwiseGrader"

    criteria: str = ""
    other: Json = None

    async def score(self, answer: str, question: str = "", expected: Json = None) -> SubScore:
        """Compare an answer with another.

        An answer without content is worth 0 without a question, also against one that has none
        either; an answer that is the same as the other is worth 0.5.

        Args:
            answer: What is graded.
            question: What was asked for; shown to the judge.
            expected: What it is compared with, where the options name nothing.

        Raises:
            GraderError: If there is no answer, or no other.
        """
        against = self.other if self.other is not None else expected
        if against is None:
            hint = "give it as 'other' or 'expected'"
            raise GraderError("there is no other answer to compare with", hint=hint)
        if not isinstance(against, str | list | dict) or not text_of(against or "").strip():
            # Any answer is better than nothing: it would be paid for a slip of the row.
            raise GraderError(
                f"the other answer is {against!r:.60}, and no text", hint="give the text of one"
            )
        answer, against = answer_in(answer), text_of(against)
        found = await compared(
            answer, against, self.panel, criteria=self.criteria or "", question=question or ""
        )
        signs = noted(
            injection_suspected=list(suspicions(answer)),
            injection_suspected_in_other=list(suspicions(against)),
        )
        return _scored(self.name, found, self.panel.models, signs)


def _scored(
    name: str, found: Preference, models: tuple[str, ...], signs: Mapping[str, Json]
) -> SubScore:
    metadata: dict[str, Json] = {"model": models[0], "models": list(models), **signs}
    if found.orders is None:
        metadata.update({"asked": False, "why": found.why})
        return SubScore(name, found.value, metadata=metadata, reason=found.why)
    pairs = list(zip(_ORDERS, found.orders, strict=True))
    metadata["orders"] = [
        {"order": order, "value": decision.value, **decision.to_json()} for order, decision in pairs
    ]
    children = [decision.child(order) for order, decision in pairs]
    if found.value is None:
        reason = str(found.error)
        return SubScore(name, status="error", reason=reason, metadata=metadata, children=children)
    metadata["winner"] = _WINNERS[found.value]
    metadata["order_inconsistent"] = not found.is_consistent
    reason = "" if found.is_consistent else "the orders disagree, which makes it a tie"
    return SubScore(
        name,
        found.value,
        metadata=metadata,
        children=children,
        reason=reason,
        flags=flags_of(metadata),
    )
