"""`ContextRelevancyGrader`: the kind ``context_relevancy``, how much of the context helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from assay.errors import GraderError
from assay.graders.judges.base import JudgeGrader, panel_of
from assay.graders.judges.claim_grader import question_in
from assay.graders.judges.documents import Document, documents_of, suspicious, windows
from assay.graders.judges.panel import Opinion, Voter
from assay.graders.judges.relevance import Relevance, relevant_documents
from assay.graders.judges.votes import scored_by
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.types.thread import StringThread

__all__ = ["ContextRelevancyGrader"]


class ContextRelevancyGrader(JudgeGrader):
    """Documents that are relevant to the question, of all distinct documents.

    It looks at no answer: it grades what was retrieved.
    """

    name: ClassVar[str] = "ContextRelevancyGrader"

    @classmethod
    async def compute_score(
        cls,
        question: str = "",
        thread: StringThread | None = None,
        metadata: Mapping[str, Json] | None = None,
        *,
        documents: Json = None,
        **options: object,
    ) -> SubScore:
        """Judge documents by the question.

        Args:
            question: What was asked; the last user turn by default.
            thread: The conversation, with its ``document`` turns.
            metadata: Of the sample; its ``documents`` are taken, too.
            documents: Documents instead of these: texts, or mappings with ``content``, ``text`` or
                ``page_content``.
            **options: The panel; see `JudgeGrader`.

        Raises:
            InputError: For impossible options, or documents that are none.
            GraderError: If there are no documents, or no question.
            ModelError: Of the kind ``overflow`` for documents too long to be read.
        """
        panel = panel_of(options)
        asked, given = question_in(question, thread), documents_of(thread, metadata, documents)
        if not given:
            raise GraderError(
                "no document turns", hint='add them to the messages, or metadata["documents"]'
            )
        windows(given)  # too many are an error here, before anybody is asked
        flagged = suspicious(given)

        async def judge(voter: Voter) -> Opinion:
            found = await relevant_documents(given, asked, voter, is_probed=bool(flagged))
            return _found(given, found, flagged)

        return await scored_by(cls.name, panel, judge)


def _found(
    documents: Sequence[Document], verdicts: Sequence[Relevance], flagged: list[Json]
) -> Opinion:
    relevant = sum(verdict.is_relevant for verdict in verdicts)
    listed: list[Json] = [
        {
            "document": document.number,
            "begins": " ".join(document.text[:200].split()),
            "relevant": verdict.is_relevant,
            "reason": verdict.reason,
        }
        for document, verdict in zip(documents, verdicts, strict=True)
    ]
    metadata: dict[str, Json] = {
        "documents": listed,
        "total": len(documents),
        "relevant": relevant,
    }
    if flagged:
        metadata["suspicious_documents"] = flagged
    children = tuple(
        SubScore(f"document {one.number}", float(one.is_relevant), reason=one.reason)
        for one in verdicts
    )
    return Opinion(
        word="",
        value=relevant / len(documents),
        reason=f"{relevant} of {len(documents)} documents are relevant",
        metadata=metadata,
        children=children,
    )
