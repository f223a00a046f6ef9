"""Whether documents, or claims, have to do with the question that was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from assay.graders.judges.claims import Claim, batches, each_of, fenced_claims, misnumbered
from assay.graders.judges.documents import Document, Window, windows
from assay.graders.judges.panel import TEXT, Form, RefutedError, Voter, list_schema, together
from assay.graders.judges.probe import captured, probe_word, unguessable
from assay.graders.judges.prompt import Part, Untrusted, compose
from assay.scoring.json_safe import Json

__all__ = ["Relevance", "relevant_claims", "relevant_documents"]


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
    """Whether one thing is relevant.

    Attributes:
        number: Of the document or claim.
        is_relevant: Whether it is.
        reason: Why.
    """

    number: int
    is_relevant: bool
    reason: str = ""


async def relevant_documents(
    documents: Sequence[Document], question: str, voter: Voter, *, is_probed: bool = False
) -> list[Relevance]:
    """Judge each document by a question.

    A blank document is not relevant, and is not asked about. One that is longer than a prompt may
    be is relevant where a part of it is.

    Args:
        documents: What was retrieved.
        question: What was asked.
        voter: Whom to ask.
        is_probed: Whether a document about nothing goes with them, to probe the judge.

    Returns:
        One for each document, in order.

    Raises:
        ModelError: If the verdicts could not be had, read or believed.
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
    """Judge each claim of an answer by the question, and each variant as a claim of its own.

    Args:
        claims: What the answer claims.
        question: What was asked.
        voter: Whom to ask.
        is_probed: Whether a claim that nobody asked for goes with them, to probe the judge.

    Returns:
        One for each claim, in order: it is relevant where a variant of it is.

    Raises:
        ModelError: If the verdicts could not be had, read or believed.
    """

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
    """The verdicts without that on the probe, which is the last one.

    Raises:
        ModelError: If the judge says that the probe is relevant.
    """
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
