"""`FaithfulnessGrader`: the kind ``faithfulness``, how much of an answer its documents support."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias, cast

from assay.errors import GraderError
from assay.graders.judges.base import answer_in
from assay.graders.judges.claims import (
    Claim,
    ClaimGrader,
    Claims,
    batches,
    each_of,
    fenced_claims,
    misnumbered,
)
from assay.graders.judges.documents import ContextChunk, Window, documents_of, suspicious, windows
from assay.graders.judges.fence import compose
from assay.graders.judges.panel import (
    TEXT,
    Form,
    Opinion,
    RefutedError,
    Voter,
    list_schema,
    together,
)
from assay.graders.judges.passages import telling_words, words
from assay.graders.judges.votes import captured, probe_word, unguessable
from assay.scoring.json_safe import Json, noted
from assay.scoring.results import SubScore
from assay.types.thread import StringThread

Support: TypeAlias = Literal["supported", "contradicted", "absent"]
_LEAST_WORDS = 3
"""A quote has so many words, or a telling one that the claim has, too."""

_STRENGTH: Mapping[Support, int] = {"supported": 2, "contradicted": 1, "absent": 0}

_SCHEMA = list_schema(
    "verdicts",
    claim={"type": "integer"},
    quote=TEXT,
    document={"type": ["integer", "null"]},
    reasoning=TEXT,
    verdict={"type": "string", "enum": list[Json](_STRENGTH)},
)

_ASKED = """\
Compare each numbered claim with the documents, and with nothing else: what you know yourself does \
not count, and the claims are no evidence for each other.

supported: where one document says all of it, in whatever words, or it follows from what that \
document says without any further knowledge. A claim of which only a part is there does not count.
contradicted: where a document says something that cannot be true together with the claim.
absent: where neither is the case.

For each claim, exactly once: its number; the quote, a passage of one document that decides it, \
copied word for word, and empty where the claim is absent; the number of that document, or null; \
the reasoning, in a sentence; then the verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimVerdict:
    """What documents say of one claim."""

    claim: Claim
    support: Support = "absent"
    # Number of the document that decides it; None where the claim is absent.
    document: int | None = None
    quote: str = ""
    reason: str = ""
    # Texts of its variants of which the documents say as much; they count with it.
    alike: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """As plain JSON."""
        kept: dict[str, Json] = {
            "claim": self.claim.text,
            "span": self.claim.span,
            "verdict": self.support,
            "document": self.document,
            "quote": self.quote,
            "reason": self.reason,
        }
        return kept | noted(alike=list(self.alike))


async def verified(
    claims: Sequence[Claim],
    documents: Sequence[ContextChunk],
    voter: Voter,
    *,
    is_probed: bool = False,
) -> list[ClaimVerdict]:
    """Compare claims with documents, and each variant of a claim as one of its own.

    Many claims are asked about in batches, and long contexts in windows. A claim is supported where
    it is in any window, and contradicted where it is in one and supported in none. What takes two
    documents together to support is found only where they stand in one window.
    """
    by_number = {document.number: document for document in documents}
    each, read = each_of(claims), windows(documents)
    asked = [(batch, window) for batch in batches(each) for window in read]
    voter.plan(len(asked))
    lists = await together(
        _asked(batch, window, by_number, voter, is_probed=is_probed) for batch, window in asked
    )
    best = {claim.number: ClaimVerdict(claim=claim) for claim in each}
    for verdict in (verdict for one in lists for verdict in one):
        held = best[verdict.claim.number]
        if _STRENGTH[verdict.support] > _STRENGTH[held.support] or not held.reason:
            best[verdict.claim.number] = verdict
    return [verdict for claim in claims for verdict in _counted(claim, best)]


def _counted(claim: Claim, found: Mapping[int, ClaimVerdict]) -> list[ClaimVerdict]:
    """Of the verdicts on a claim and its variants, one of each kind."""
    kept: dict[Support, ClaimVerdict] = {}
    for one in (claim, *claim.variants):
        verdict = found[one.number]
        if (held := kept.get(verdict.support)) is not None:
            verdict = replace(held, alike=(*held.alike, one.text))
        kept[verdict.support] = verdict
    return list(kept.values())


async def _asked(
    claims: Sequence[Claim],
    window: Window,
    documents: Mapping[int, ContextChunk],
    voter: Voter,
    *,
    is_probed: bool,
) -> list[ClaimVerdict]:
    word = probe_word(fenced_claims(claims).text) if is_probed else ""
    if word:
        text = f"One of the documents contains the word {word}."
        claims = [*claims, Claim(number=claims[-1].number + 1, text=text, span="")]
    parts = ["The claims:", fenced_claims(claims), "The documents:", *window.material()]
    here = {number: documents[number] for number in window.numbers}

    def read(data: Mapping[str, Json]) -> list[ClaimVerdict]:
        given = cast("list[Mapping[str, Json]]", data["verdicts"])
        by_number = {int(cast("int", one["claim"])): one for one in given}
        numbers = [int(cast("int", one["claim"])) for one in given]
        if wrong := misnumbered(numbers, [claim.number for claim in claims], "claim"):
            raise RefutedError(wrong)
        return [_verdict(claim, by_number[claim.number], here) for claim in claims]

    prompt = unguessable(compose("verify", parts, _ASKED), word)
    verdicts = await voter.ask(prompt, Form("verify", _SCHEMA, read))
    if word and verdicts.pop().support == "supported":
        raise captured("a document contains it")
    return verdicts


def _verdict(
    claim: Claim, said: Mapping[str, Json], documents: Mapping[int, ContextChunk]
) -> ClaimVerdict:
    support = cast("Support", said["verdict"])
    named, quote = cast("int | None", said["document"]), str(said["quote"])
    document = None if named is None else int(named)
    reason = str(said["reasoning"])
    if support != "absent":
        wrong = _unfounded(claim.text, document, quote, documents)
        if wrong and support == "supported":
            raise RefutedError(f"claim {claim.number} is not shown to be supported: {wrong}")
        if wrong:  # worth no more than an absent one, and not believed to be worse
            support, reason = "absent", f"{reason} (said to be contradicted, but {wrong})".strip()
    if support == "absent":
        return ClaimVerdict(claim=claim, reason=reason)
    return ClaimVerdict(claim=claim, support=support, document=document, quote=quote, reason=reason)


def _unfounded(
    claim: str, number: int | None, quote: str, documents: Mapping[int, ContextChunk]
) -> str:
    if number is None:
        return "no document is named"
    if (document := documents.get(number)) is None:
        return f"there is no document {number} here"
    if not document.sought.has(quote):
        return f"its quote does not stand in document {number} word for word"
    if not _says_something(quote, claim, document.text):
        return "its quote is too short to say it; quote the whole sentence"
    return ""


def _says_something(quote: str, claim: str, document: str) -> bool:
    """Whether a quote has something of a claim in it; "the" stands in every document."""
    said = words(quote)
    if len(said) >= _LEAST_WORDS or telling_words(quote) & telling_words(claim):
        return True
    return said == words(document)  # there is no more of it to quote


@dataclass(frozen=True, kw_only=True)
class FaithfulnessGrader(ClaimGrader):
    """Claims of an answer that the documents support, of all its claims.

    One question lists the claims, another compares them with the documents and quotes the passage
    that supports each. Only quotes that stand in the document count.

    Attributes:
        documents: Documents instead of the conversation's and the sample's: texts, or mappings with
            ``content``, ``text`` or ``page_content``.
        strict_contradiction: Whether one claim that a document contradicts makes the score 0.
    """

    name: ClassVar[str] = "FaithfulnessGrader"

    documents: Json = None
    strict_contradiction: bool = False

    async def score(
        self,
        answer: str | None = None,
        question: str = "",
        thread: StringThread | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> SubScore:
        """Judge an answer by documents.

        Args:
            answer: What is judged; the final assistant turn by default.
            question: What was asked; the last user turn by default. It may be empty.
            thread: The conversation, with its ``document`` turns.
            metadata: Of the sample; its ``documents`` are taken, too.

        Raises:
            InputError: For malformed documents.
            GraderError: If there are no documents, whatever the answer says: what a sample is worth
                without them may not hang on its answer.
            ModelError: Of the kind ``overflow`` for an answer or documents too long to be read.
        """
        given = documents_of(thread, metadata, self.documents)
        if not windows(given):
            raise GraderError(
                "no document turns", hint='add them to the messages, or metadata["documents"]'
            )
        asked = question or (thread.last_user_turn() if thread is not None else None) or ""
        flagged = suspicious(given)

        async def judge(claims: Claims, voter: Voter, *, is_probed: bool) -> Opinion:
            verdicts = await verified(claims.items, given, voter, is_probed=is_probed)
            return _found(claims, verdicts, given, is_strict=self.strict_contradiction)

        flags = noted(suspicious_documents=flagged)
        return await self.score_claims(answer_in(answer, thread), asked, judge, flags)


def _found(
    claims: Claims,
    verdicts: Sequence[ClaimVerdict],
    documents: Sequence[ContextChunk],
    *,
    is_strict: bool,
) -> Opinion:
    counts = Counter(verdict.support for verdict in verdicts)
    metadata: dict[str, Json] = {
        "claims": [verdict.to_json() for verdict in verdicts],
        "total": len(verdicts),
        "supported": counts["supported"],
        "contradicted": counts["contradicted"],
        "absent": counts["absent"],
        "documents": len(documents),
        **claims.to_json(),
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


def _child(verdict: ClaimVerdict) -> SubScore:
    return SubScore(
        f"claim {verdict.claim.number}",
        float(verdict.support == "supported"),
        reason=f"{verdict.support}: {verdict.claim.text}",
    )
