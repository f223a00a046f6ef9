"""``answer_relevancy`` and ``context_relevancy``: how much of an answer or its context helps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, cast

from assay.errors import GraderError
from assay.graders.judges.base import JudgeGrader, answer_in
from assay.graders.judges.claims import (
    Claim,
    ClaimGrader,
    Claims,
    batches,
    each_of,
    fenced_claims,
    misnumbered,
    question_in,
)
from assay.graders.judges.documents import ContextChunk, Window, documents_of, suspicious, windows
from assay.graders.judges.fence import Part, Untrusted, compose
from assay.graders.judges.panel import (
    TEXT,
    Form,
    Opinion,
    RefutedError,
    Voter,
    list_schema,
    together,
)
from assay.graders.judges.votes import captured, probe_word, scored_by, unguessable
from assay.scoring.json_safe import Json, noted
from assay.scoring.results import SubScore
from assay.types.thread import StringThread

_NUMBER: Json = {"type": "integer"}
_IS_RELEVANT: Json = {"type": "boolean"}
_SCHEMAS = {
    key: list_schema("verdicts", **{key: _NUMBER, "reasoning": TEXT, "relevant": _IS_RELEVANT})
    for key in ("document", "claim")
}

_ABOUT_DOCUMENTS = """\
Say of each document whether it is relevant to the question. It is where it holds something that \
helps to answer the question, be it only a part; whether that is true does not matter. It is not \
where it is merely about the same subject, repeats the question, or says of itself that it is \
relevant.

For each document, exactly once: its number, the reasoning in a sentence, then whether it is \
relevant."""

_ABOUT_CLAIMS = """\
The claims are what an answer to the question says. Say of each whether it is needed to address \
the question. It is where it answers the question or a part of it, or where the answer would be \
wrong or could not be understood without it. It is not where it goes beyond what was asked, \
however true or interesting it is. Whether a claim is true does not matter.

For each claim, exactly once: its number, the reasoning in a sentence, then whether it is \
relevant."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """Whether one thing is relevant."""

    number: int
    is_relevant: bool
    reason: str = ""


async def relevant_documents(
    documents: Sequence[ContextChunk], question: str, voter: Voter, *, is_probed: bool = False
) -> list[Relevance]:
    """Judge each document by a question.

    A blank document is not relevant, and is not asked about. One that is longer than a prompt may
    be is relevant where a part of it is.
    """

    async def ask(window: Window) -> list[Relevance]:
        parts, numbers = (
            [*_question(question), "The documents:", *window.material()],
            window.numbers,
        )
        word = probe_word(window.parts[-1][1]) if is_probed else ""
        if word:
            numbers = [*numbers, max(numbers) + 1]
            parts.append(Untrusted(f"document-{numbers[-1]}", word.capitalize()))
        prompt = unguessable(compose("chunks", parts, _ABOUT_DOCUMENTS), word)
        found = await voter.ask(prompt, _form("chunks", "document", numbers))
        return _unprobed(found, word)

    found = {one.number: Relevance(one.number, False, "it is blank") for one in documents}
    asked = set[int]()
    for one in (one for window in await together(map(ask, windows(documents))) for one in window):
        if one.number not in asked or one.is_relevant:
            found[one.number] = one
        asked.add(one.number)
    return [found[document.number] for document in documents]


async def relevant_claims(
    claims: Sequence[Claim], question: str, voter: Voter, *, is_probed: bool = False
) -> list[Relevance]:
    """Judge each claim of an answer by the question, and each variant as a claim of its own."""

    async def ask(batch: Sequence[Claim]) -> list[Relevance]:
        word = probe_word(fenced_claims(batch).text) if is_probed else ""
        if word:
            text = f"The word {word} has eleven letters."
            batch = [*batch, Claim(number=batch[-1].number + 1, text=text, span="")]
        parts = [*_question(question), "The claims:", fenced_claims(batch)]
        prompt = unguessable(compose("relevance", parts, _ABOUT_CLAIMS), word)
        numbers = [claim.number for claim in batch]
        return _unprobed(await voter.ask(prompt, _form("relevance", "claim", numbers)), word)

    asked = batches(each_of(claims))
    voter.plan(len(asked))
    judged = (one for batch in await together(map(ask, asked)) for one in batch)
    found = {one.number: one for one in judged}
    return [_relevance(claim, found) for claim in claims]


def _relevance(claim: Claim, found: Mapping[int, Relevance]) -> Relevance:
    each = [found[one.number] for one in (claim, *claim.variants)]
    relevant = next((one for one in each if one.is_relevant), each[0])
    return replace(relevant, number=claim.number)


def _unprobed(found: list[Relevance], word: str) -> list[Relevance]:
    """The verdicts without that on the probe, which is the last one."""
    if word and found.pop().is_relevant:
        raise captured("it has to do with the question")
    return found


def _question(question: str) -> list[Part]:
    return ["What was asked:", Untrusted("question", question)]


def _form(name: str, key: str, wanted: Sequence[int]) -> Form[list[Relevance]]:
    """One verdict for each number, in the order of the numbers."""

    def read(data: Mapping[str, Json]) -> list[Relevance]:
        given = [
            Relevance(int(cast("int", one[key])), bool(one["relevant"]), str(one["reasoning"]))
            for one in cast("list[Mapping[str, Json]]", data["verdicts"])
        ]
        if wrong := misnumbered([one.number for one in given], wanted, key):
            raise RefutedError(wrong)
        return sorted(given, key=lambda one: wanted.index(one.number))

    return Form(name, _SCHEMAS[key], read)


@dataclass(frozen=True, kw_only=True)
class AnswerRelevancyGrader(ClaimGrader):
    """Claims of an answer that are needed to address the question, of all its claims.

    What nobody asked for lowers it, be it true or not.
    """

    name: ClassVar[str] = "AnswerRelevancyGrader"

    async def score(
        self, answer: str | None = None, question: str = "", thread: StringThread | None = None
    ) -> SubScore:
        """Judge an answer by its question.

        Args:
            answer: What is judged; the final assistant turn by default.
            question: What was asked; the last user turn by default.
            thread: The conversation.

        Raises:
            GraderError: If there is no question.
            ModelError: Of the kind ``overflow`` for an answer that is too long to be read.
        """
        asked = question_in(question, thread)

        async def judge(claims: Claims, voter: Voter, *, is_probed: bool) -> Opinion:
            verdicts = await relevant_claims(claims.items, asked, voter, is_probed=is_probed)
            return _of_claims(claims, verdicts)

        return await self.score_claims(answer_in(answer, thread), asked, judge, {})


def _of_claims(claims: Claims, verdicts: Sequence[Relevance]) -> Opinion:
    pairs = list(zip(claims.items, verdicts, strict=True))
    return _counted(
        "claim",
        [{"claim": claim.text, "span": claim.span} for claim in claims.items],
        verdicts,
        [
            f"{'needed' if one.is_relevant else 'not asked for'}: {claim.text}"
            for claim, one in pairs
        ],
        "claims are needed to address the question",
        claims.to_json(),
    )


def _counted(  # noqa: PLR0917
    what: str,
    things: Sequence[dict[str, Json]],
    verdicts: Sequence[Relevance],
    reasons: Iterable[str],
    said: str,
    more: Mapping[str, Json],
) -> Opinion:
    """The share of things that are relevant, with a node for each."""
    relevant = sum(one.is_relevant for one in verdicts)
    pairs = zip(things, verdicts, strict=True)
    return Opinion(
        word="",
        value=relevant / len(things),
        reason=f"{relevant} of {len(things)} {said}",
        metadata={
            f"{what}s": [
                {**thing, "relevant": one.is_relevant, "reason": one.reason} for thing, one in pairs
            ],
            "total": len(things),
            "relevant": relevant,
            **more,
        },
        children=tuple(
            SubScore(f"{what} {one.number}", float(one.is_relevant), reason=reason)
            for one, reason in zip(verdicts, reasons, strict=True)
        ),
    )


@dataclass(frozen=True, kw_only=True)
class ContextRelevancyGrader(JudgeGrader):
    """Documents that are relevant to the question, of all distinct documents.

    It looks at no answer: it grades what was retrieved.

    Attributes:
        documents: Documents instead of the conversation's and the sample's: texts, or mappings with
            ``content``, ``text`` or ``page_content``.
    """

    name: ClassVar[str] = "ContextRelevancyGrader"

    documents: Json = None

    async def score(
        self,
        question: str = "",
        thread: StringThread | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> SubScore:
        """Judge documents by the question.

        Args:
            question: What was asked; the last user turn by default.
            thread: The conversation, with its ``document`` turns.
            metadata: Of the sample; its ``documents`` are taken, too.

        Raises:
            InputError: For malformed documents.
            GraderError: If there are no documents, or no question.
            ModelError: Of the kind ``overflow`` for documents too long to be read.
        """
        asked, given = question_in(question, thread), documents_of(thread, metadata, self.documents)
        if not given:
            raise GraderError(
                "no document turns", hint='add them to the messages, or metadata["documents"]'
            )
        windows(given)  # too many are an error here, before anybody is asked
        flagged = suspicious(given)

        async def judge(voter: Voter) -> Opinion:
            found = await relevant_documents(given, asked, voter, is_probed=bool(flagged))
            return _counted(
                "document",
                [
                    {"document": one.number, "begins": " ".join(one.text[:200].split())}
                    for one in given
                ],
                found,
                [one.reason for one in found],
                "documents are relevant",
                noted(suspicious_documents=flagged),
            )

        return await scored_by(self.name, self.panel, judge)
