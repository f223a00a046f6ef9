"""`AnswerRelevancyGrader`: the kind ``answer_relevancy``, how much of an answer was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from assay.graders.judges.base import answer_in, panel_of
from assay.graders.judges.claim_grader import ClaimGrader, OnEmpty, question_in
from assay.graders.judges.claims import MAX_CLAIMS, Claims, claims_of
from assay.graders.judges.panel import Opinion, Voter
from assay.graders.judges.relevance import Relevance, relevant_claims
from assay.graders.judges.votes import scored_by
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.types.thread import StringThread

__all__ = ["AnswerRelevancyGrader"]


class AnswerRelevancyGrader(ClaimGrader):
    """Claims of an answer that are needed to address the question, of all its claims.

    What nobody asked for lowers it, be it true or not.
    """

    name: ClassVar[str] = "AnswerRelevancyGrader"

    @classmethod
    async def compute_score(
        cls,
        answer: str | None = None,
        question: str = "",
        thread: StringThread | None = None,
        *,
        on_empty: OnEmpty = "zero",
        max_claims: int = MAX_CLAIMS,
        **options: object,
    ) -> SubScore:
        """Judge an answer by its question.

        Args:
            answer: What is judged; the final assistant turn by default.
            question: What was asked; the last user turn by default.
            thread: The conversation.
            on_empty: What an answer is worth that has words and claims nothing: ``zero``, ``skip``
                or ``one``.
            max_claims: An answer with more claims is worth 0.
            **options: The panel; see `JudgeGrader`.

        Raises:
            InputError: For impossible options.
            GraderError: If there is no question.
            ModelError: Of the kind ``overflow`` for an answer that is too long to be read.
        """
        panel = panel_of(options)
        cls.check_limits(on_empty, max_claims)
        asked, answer = question_in(question, thread), answer_in(answer, thread)
        if (gated := cls.gated(answer, panel.models)) is not None:
            return gated
        noted = cls.noted(answer)

        async def judge(voter: Voter) -> Opinion:
            claims = await claims_of(
                answer, asked, voter, most=max_claims, is_suspected=bool(noted)
            )
            found = cls.uncounted(claims, on_empty, max_claims)
            if found is None:
                is_probed = bool(noted)
                verdicts = await relevant_claims(claims.items, asked, voter, is_probed=is_probed)
                found = _found(claims, verdicts)
            return replace(found, metadata={**found.metadata, **noted})

        return await scored_by(cls.name, panel, judge)


def _found(claims: Claims, verdicts: Sequence[Relevance]) -> Opinion:
    pairs = list(zip(claims.items, verdicts, strict=True))
    listed: list[Json] = [
        {
            "claim": claim.text,
            "span": claim.span,
            "relevant": verdict.is_relevant,
            "reason": verdict.reason,
        }
        for claim, verdict in pairs
    ]
    relevant = sum(verdict.is_relevant for verdict in verdicts)
    children = tuple(
        SubScore(
            f"claim {claim.number}",
            float(verdict.is_relevant),
            reason=f"{'needed' if verdict.is_relevant else 'not asked for'}: {claim.text}",
        )
        for claim, verdict in pairs
    )
    return Opinion(
        word="",
        value=relevant / len(pairs),
        reason=f"{relevant} of {len(pairs)} claims are needed to address the question",
        metadata={
            "claims": listed,
            "total": len(pairs),
            "relevant": relevant,
            **claims.told(),
        },
        children=children,
    )
