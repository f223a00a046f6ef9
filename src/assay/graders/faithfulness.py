"""`FaithfulnessGrader`: the kind ``faithfulness``, how much of an answer its documents support."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from assay.errors import GraderError
from assay.graders.judges.base import answer_in, panel_of
from assay.graders.judges.claim_grader import ClaimGrader, OnEmpty
from assay.graders.judges.claims import MAX_CLAIMS, Claims, claims_of
from assay.graders.judges.documents import Document, documents_of, suspicious, windows
from assay.graders.judges.panel import Opinion, Voter
from assay.graders.judges.verification import Verdict, verified
from assay.graders.judges.votes import scored_by
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.types.thread import StringThread

__all__ = ["FaithfulnessGrader"]


class FaithfulnessGrader(ClaimGrader):
    """Claims of an answer that the documents support, of all its claims.

    One question lists the claims, another compares them with the documents and quotes the passage
    that supports each. Only quotes that stand in the document count.
    """

    name: ClassVar[str] = "FaithfulnessGrader"

    @classmethod
    async def compute_score(
        cls,
        answer: str | None = None,
        question: str = "",
        thread: StringThread | None = None,
        metadata: Mapping[str, Json] | None = None,
        *,
        documents: Json = None,
        strict_contradiction: bool = False,
        on_empty: OnEmpty = "zero",
        max_claims: int = MAX_CLAIMS,
        **options: object,
    ) -> SubScore:
        """Judge an answer by documents.

        Args:
            answer: What is judged; the final assistant turn by default.
            question: What was asked; the last user turn by default. It may be empty.
            thread: The conversation, with its ``document`` turns.
            metadata: Of the sample; its ``documents`` are taken, too.
            documents: Documents instead of these: texts, or mappings with ``content``, ``text`` or
                ``page_content``.
            strict_contradiction: Whether one claim that a document contradicts makes the score 0.
            on_empty: What an answer is worth that has words and claims nothing: ``zero``, ``skip``
                or ``one``.
            max_claims: An answer with more claims is worth 0.
            **options: The panel; see `JudgeGrader`.

        Raises:
            InputError: For impossible options, or documents that are none.
            GraderError: If there are no documents, whatever the answer says: what a sample is worth
                without them may not hang on its answer.
            ModelError: Of the kind ``overflow`` for an answer or documents too long to be read.
        """
        panel = panel_of(options)
        cls.check_limits(on_empty, max_claims)
        given = documents_of(thread, metadata, documents)
        if not windows(given):
            raise GraderError(
                "no document turns", hint='add them to the messages, or metadata["documents"]'
            )
        answer = answer_in(answer, thread)
        asked = question or (thread.last_user_turn() if thread is not None else None) or ""
        if (gated := cls.gated(answer, panel.models)) is not None:
            return gated

        noted = cls.noted(answer)
        is_suspected = bool(noted)
        if flagged := suspicious(given):
            noted["suspicious_documents"] = flagged

        async def judge(voter: Voter) -> Opinion:
            claims = await claims_of(
                answer, asked, voter, most=max_claims, is_suspected=is_suspected
            )
            found = cls.uncounted(claims, on_empty, max_claims)
            if found is None:
                verdicts = await verified(claims.items, given, voter, is_probed=bool(noted))
                found = _found(claims, verdicts, given, is_strict=strict_contradiction)
            return replace(found, metadata={**found.metadata, **noted})

        return await scored_by(cls.name, panel, judge)


def _found(
    claims: Claims, verdicts: Sequence[Verdict], documents: Sequence[Document], *, is_strict: bool
) -> Opinion:
    counts = Counter(verdict.support for verdict in verdicts)
    metadata: dict[str, Json] = {
        "claims": [verdict.told() for verdict in verdicts],
        "total": len(verdicts),
        "supported": counts["supported"],
        "contradicted": counts["contradicted"],
        "absent": counts["absent"],
        "documents": len(documents),
        **claims.told(),
    }
    value = counts["supported"] / len(verdicts)
    reason = f"{counts['supported']} of {len(verdicts)} claims are supported"
    if counts["contradicted"]:
        reason += f", {counts['contradicted']} contradicted"
        value = 0.0 if is_strict else value
    return Opinion(
        word="",
        value=value,
        reason=reason,
        metadata=metadata,
        children=tuple(map(_child, verdicts)),
    )


def _child(verdict: Verdict) -> SubScore:
    return SubScore(
        f"claim {verdict.claim.number}",
        float(verdict.support == "supported"),
        reason=f"{verdict.support}: {verdict.claim.text}",
    )
