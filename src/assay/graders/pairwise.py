"""`PairwiseGrader`: the kind ``pairwise``, an answer compared with another in both orders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from assay.errors import GraderError, InputError, nearest
from assay.graders.judges.base import JudgeGrader, answer_in, panel_of, text_of
from assay.graders.judges.pairwise import Preference, compared
from assay.graders.judges.prompt import suspicions
from assay.graders.judges.votes import Decision
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore

__all__ = ["PairwiseGrader"]

_WINNERS = {1.0: "answer", 0.0: "other", 0.5: "tie"}
_ORDERS = ("answer first", "other first")


class PairwiseGrader(JudgeGrader):
    """Whether an answer is better than another one: 1.0, or 0.0 if the other is, or 0.5.

    Both orders are always asked. A winner is who wins in both; a judge that goes by the place has
    found a tie.
    """

    name: ClassVar[str] = "PairwiseGrader"

    @classmethod
    def check_options(cls, options: Mapping[str, Json]) -> None:
        """Refuse ``other`` beside ``other_field``."""
        super().check_options(options)
        if options.get("other") is not None and options.get("other_field"):
            raise InputError("other: give 'other' or 'other_field', not both")

    @classmethod
    async def compute_score(
        cls,
        answer: str,
        criteria: str = "",
        question: str = "",
        metadata: Mapping[str, Json] | None = None,
        expected: Json = None,
        *,
        other: Json = None,
        other_field: str = "",
        **options: object,
    ) -> SubScore:
        """Compare an answer with another.

        An answer without content is worth 0 without a question, also against one that has none
        either; an answer that is the same as the other is worth 0.5.

        Args:
            answer: What is graded.
            criteria: What makes an answer better, in words; that it does what was asked, by
                default.
            question: What was asked for; shown to the judge.
            metadata: Of the sample.
            expected: What it is compared with, where neither of the next two is given.
            other: The other answer.
            other_field: Field of the metadata that holds the other answer.
            **options: The panel; see `JudgeGrader`.

        Raises:
            InputError: For impossible options.
            GraderError: If there is no answer, or no other.
        """
        panel = panel_of(options)
        cls.check_options({"other": other, "other_field": other_field})
        against = _other(other, other_field, metadata or {}, expected)
        answer = answer_in(answer)
        found = await compared(
            answer, against, panel, criteria=criteria or "", question=question or ""
        )
        return _scored(cls.name, found, panel.models, _noted(answer, against))


def _other(other: Json, field: str, metadata: Mapping[str, Json], expected: Json) -> str:
    if other is not None:
        return text_of(other)
    found = metadata.get(field) if field else expected
    if found is None:
        where = f"metadata[{field!r}]" if field else "'other', 'other_field' or 'expected'"
        if field and metadata:
            where += f"; {nearest(field, list(metadata))}"
        raise GraderError("there is no other answer to compare with", hint=f"give it as {where}")
    return text_of(found)


def _noted(answer: str, other: str) -> dict[str, Json]:
    noted: dict[str, Json] = {}
    if found := suspicions(answer):
        noted["injection_suspected"] = list(found)
    if found := suspicions(other):
        noted["injection_suspected_in_other"] = list(found)
    return noted


def _scored(
    name: str, found: Preference, models: tuple[str, ...], noted: Mapping[str, Json]
) -> SubScore:
    metadata: dict[str, Json] = {"model": models[0], "models": list(models), **noted}
    if found.orders is None:
        metadata.update({"asked": False, "why": found.why})
        return SubScore(name, found.value, metadata=metadata, reason=found.why)
    pairs = list(zip(_ORDERS, found.orders, strict=True))
    metadata["orders"] = [_told(order, decision) for order, decision in pairs]
    children = [_child(order, decision) for order, decision in pairs]
    if found.value is None:
        reason = str(found.error)
        return SubScore(name, status="error", reason=reason, metadata=metadata, children=children)
    metadata["winner"] = _WINNERS[found.value]
    metadata["order_inconsistent"] = not found.is_consistent
    reason = "" if found.is_consistent else "the orders disagree, which makes it a tie"
    return SubScore(name, found.value, metadata=metadata, children=children, reason=reason)


def _told(order: str, decision: Decision) -> Json:
    kept: dict[str, Json] = {
        "order": order,
        "verdict": decision.word if decision.error is None else "ERROR",
        "value": decision.value,
        "reason": decision.reason if decision.error is None else str(decision.error),
    }
    if decision.agreement is not None and len(decision.votes) > 1:
        kept["agreement"] = decision.agreement
    kept["votes"] = decision.votes_to_list()
    return kept


def _child(order: str, decision: Decision) -> SubScore:
    if decision.error is not None:
        return SubScore.error(order, str(decision.error))
    if decision.value is None:
        return SubScore.skipped(order, decision.reason)
    return SubScore(order, decision.value, reason=decision.reason)
