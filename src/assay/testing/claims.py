"""Claims of an answer, one fact each, and whether documents say them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from assay.testing.asserted import Reading
from assay.testing.vocabulary import AUXILIARY
from assay.testing.words import content_stems, sentences, words

__all__ = ["Claim", "Support", "is_about", "is_asked_for", "split_claims", "support"]

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
)
_DATE = re.compile(
    rf",?\s*\(?\b(?:(?:on|in|since|by|from|around|during|until|of)\s+)?(?:the\s+)?"
    rf"(?:early\s+|late\s+|mid-?)?"
    rf"(?:(?:\d{{1,2}}(?:st|nd|rd|th)?\s+)?{_MONTH}(?:\s+\d{{1,2}}(?:st|nd|rd|th)?)?,?\s+\d{{4}}|"
    rf"(?<=[a-z]\s)(?:1\d|20)\d\d(?:s\b|\b(?![-\d]))|{_MONTH}\s+\d{{1,2}}\b)\)?"
)
_CUT = re.compile(
    r"\s*[;:]\s+|\s*,\s+(?:and|but|or|while|whereas|though|although)?\s*|\s*[()\[\]]\s*|"
    r"\s+(?:and|but)\s+(?=(?:is|was|are|were|has|had|have|it|he|she|they|\w+ed)\b)|\s+[\u2013\u2014]\s+"
)
_NO_CLAIM = re.compile(
    r"^\W*(?:sorry\b|i(?:'m| am)\s+(?:sorry|unable|not\s+(?:able|sure))|"
    r"(?:i|we)\s+(?:\w+\s+)?(?:cannot|can't|can\s+not|don't|do\s+not|couldn't|won't|will\s+not|"
    r"apologi[sz]e))",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\b(?:when|what (?:year|date|month|day|time)|which (?:year|date|month))\b", re.IGNORECASE
)
_DENIAL = re.compile(r"\b(?:not|never|no|false|wrong|cannot)\b|n['\u2019]t\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Claim:
    """One fact: in words of its own, and the part of the answer that says it, verbatim."""

    text: str
    span: str


@dataclass(frozen=True, slots=True)
class Support:
    """Whether a document says a claim, which, and its sentence, verbatim."""

    verdict: Literal["supported", "contradicted", "absent"]
    document: int | None = None
    quote: str = ""


def split_claims(text: str) -> list[Claim]:
    """Split an answer into claims: a clause each, a date apart, nothing twice.

    Questions, refusals and what has no word with a meaning are no claims.
    """
    found: dict[tuple[str, ...], Claim] = {}
    for start, end in sentences(text):
        sentence = text[start:end]
        if sentence.rstrip("\"') ").endswith("?") or _NO_CLAIM.search(sentence):
            continue
        for claim in _claims_of(sentence):
            key = tuple(sorted(content_stems(claim.text)))
            if key:
                found.setdefault(key, claim)
    return list(found.values())


def _claims_of(sentence: str) -> list[Claim]:
    date = _DATE.search(sentence)
    without = sentence
    dated: list[Claim] = []
    if date and len(content_stems(sentence[: date.start()] + sentence[date.end() :])) >= 2:
        span = date[0].strip(" ,()")
        without = sentence[: date.start()] + sentence[date.end() :]
        dated = [Claim(f"{_predicate(without)} {span}", span)]
        if date.end() >= len(sentence.rstrip(".!")):
            without = sentence[: date.start()]
    claims: list[Claim] = []
    subject = _subject(without)
    for number, part in enumerate(_parts(without)):
        is_whole = number == 0 or part.startswith(subject)
        text = part if is_whole else f"{subject} {part}".strip()
        # A part from which a date was taken is no longer verbatim: the sentence says it.
        is_verbatim = not dated or part in sentence
        claims.append(Claim(text, part if is_verbatim else sentence))
    return claims + dated


def _parts(sentence: str) -> list[str]:
    parts = [part.strip(" .,!") for part in _CUT.split(sentence)]
    # A bare number in brackets is a mark, as in a list, and says nothing.
    return [part for part in parts if any(not s.isdigit() for s in content_stems(part))]


def _subject(sentence: str) -> str:
    """What a sentence speaks of: the words before its verb."""
    parts = words(sentence)
    for at, word in enumerate(parts):
        if at and (word.text.casefold() in AUXILIARY or re.fullmatch(r"[a-z]+ed", word.text)):
            return sentence[: parts[at - 1].end].strip()
    return ""


def _predicate(sentence: str) -> str:
    """What a sentence says of its subject, where that is a name."""
    subject = _subject(sentence)
    rest = sentence[len(subject) :].strip(" .,!")
    return rest if subject and len(content_stems(rest)) >= 2 else sentence.strip(" .,!")


def support(claim: str, documents: Mapping[int, str]) -> Support:
    """Look for a claim in documents.

    A claim is supported by a document that has all its words with a meaning, numbers and dates
    included, and in whose sentences they are not denied; it is contradicted where they are.
    """
    stems = content_stems(claim)
    if not stems:
        return Support("absent")
    denied: Support | None = None
    is_denial = _denies(claim)
    for number, text in documents.items():
        reading = Reading(text, stems)
        if not set(stems) <= reading.stems:
            continue
        best = max(reading.sentences, key=lambda one: len(set(stems) & {w.stem for w in one.words}))
        quote = text[best.start : best.end]
        if _denies(quote) == is_denial:
            return Support("supported", number, quote)
        denied = denied or Support("contradicted", number, quote)
    return denied or Support("absent")


def _denies(text: str) -> bool:
    return _DENIAL.search(text) is not None


def is_about(document: str, question: str) -> bool:
    """Whether a document shares a word with a meaning, other than a mere verb, with a question."""
    return bool(set(content_stems(question)) & set(content_stems(document)))


def is_asked_for(claim: str, question: str) -> bool:
    """Whether a claim is of the kind that a question asks for, and about the same things.

    A claim of a date answers "when", and no question of another kind.
    """
    is_date = bool(_DATE.search(f"{claim} ")) or bool(re.search(r"\b(?:1\d|20)\d\d\b", claim))
    if is_date != bool(_WHEN.search(question)):
        return False
    asked, told = set(content_stems(question)), set(content_stems(claim))
    return bool(asked & told) if asked else bool(told)
