"""Passages of an answer, and the words by which a claim is known to be about one.

Whoever lists the claims of an answer may be talked into leaving some out. What is left out is found
here, by comparing strings: a passage is claimed where the claims that are said to come from it have
half of its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from assay.graders.judges.evidence import Sought, normalised

__all__ = ["Spans", "is_courtesy", "left_out", "telling_words", "touches", "words"]

Pair = tuple[str, str]
"""A claim, and the passage that is said to make it."""

_PASSAGE = re.compile(r"(?<=[.!?;])[\"')\]]*\s+|(?<=[。！？；])|\n+")  # noqa: RUF001 - other scripts
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # a character of these tells what a word does
_WORD = re.compile(rf"\d+|[{_UNSPACED}]|[^\W\d_{_UNSPACED}]+")
_LETTERS = 4
"""Letters of a word that tells something; so many also tell it from others, whatever its ending."""

_LEAST_WORDS = 3
_THIS = "(?:this|that|it|you|your question)"
_COURTESY = re.compile(
    r"(?:hello|hi|hey|dear|greetings|good (?:morning|afternoon|evening|day))(?:[ ,]+\w+){0,2}"
    r"|(?:many thanks|thanks|thank you)(?: (?:so much|very much|a lot|for asking))?"
    rf"|(?:i )?hope {_THIS} (?:helps|is helpful|was helpful|answers {_THIS})"
    r"|(?:please )?(?:let me know|feel free to ask)(?: if you (?:have|need|want)(?: \w+){1,4})?"
    r"|(?:i am|i'm) (?:sorry|not (?:entirely )?(?:sure|certain))(?: about (?:this|that|it))?"
    rf"|i (?:do not|don't) know(?: {_THIS})?"
    rf"|(?:sorry, )?i (?:cannot|can't|can not) (?:help|say|answer|tell)(?: with)?(?: {_THIS})?"
    r"|(?:best|kind|warm) regards(?:[ ,]+\w+){0,2}"
)
"""Greetings, thanks, offers and hedges, of which nothing else is a part: a longer list of what is
no claim would be a list of places to hide one."""


class Spans:
    """Where spans are looked for. Other than evidence, they may be a single word, such as "C".

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self._sought, self._plain = Sought(text), normalised(text)

    def has(self, span: str) -> bool:
        """Whether a span stands in it word for word."""
        if self._sought.has(span):
            return True
        word = normalised(span).strip("\"'` ")
        if not any(map(str.isalnum, word)):
            return False
        return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self._plain) is not None


def words(text: str) -> list[str]:
    """The words and numbers of a text; a character each where a script has no spaces."""
    return _WORD.findall(normalised(text))


def telling_words(text: str) -> set[str]:
    """The beginnings of words that tell something: numbers, and words of four letters or more."""
    return {
        word if word[0].isdigit() else word[:_LETTERS]
        for word in words(text)
        if len(word) >= _LETTERS or word[0].isdigit() or re.match(f"[{_UNSPACED}]", word)
    }


def touches(span: str, passage: str) -> bool:
    """Whether a span has to do with a passage: one holds the other, or a part of it.

    Args:
        span: With ``...`` between its parts.
        passage: As it came.
    """
    plain = normalised(passage)
    return any(part in plain or plain.strip(" .!") in part for part in _parts(span))


def left_out(answer: str, pairs: Iterable[Pair], most: int) -> list[str]:
    """The passages of an answer that no claim was made of.

    Questions and courtesies are none, nor is what has fewer than three words.

    Args:
        answer: All of it, or a piece.
        pairs: The claims that were listed, each with its span.
        most: How many are looked for.
    """
    made = _Made(pairs)
    seen, found = set[str](), list[str]()
    for given in _PASSAGE.split(answer):
        plain = normalised(given)
        if plain in seen or plain.endswith(("?", "\uff1f")) or is_courtesy(plain):
            continue
        seen.add(plain)
        said = words(plain)
        if len(said) >= _LEAST_WORDS and not made.has(plain, telling_words(plain) or set(said)):
            found.append(" ".join(given.split()))
        if len(found) == most:
            break
    return found


class _Made:
    """What claims say, by the parts of their spans."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._said: dict[str, set[str]] = {}
        self._by_word: dict[str, set[str]] = {}
        for text, span in pairs:
            has = telling_words(text) | set(words(text))
            for part in _parts(span):
                self._said.setdefault(part, set()).update(has)
                for word in has:
                    self._by_word.setdefault(word, set()).add(part)

    def has(self, plain: str, wanted: set[str]) -> bool:
        """Whether claims from a passage say half of its words."""
        missing, bare = set(wanted), plain.strip(" .!")
        tried = set[str]()
        for word in wanted:
            for part in self._by_word.get(word, ()):
                if part in tried:
                    continue
                tried.add(part)
                if part in plain or bare in part:
                    missing -= self._said[part]
                    if 2 * len(missing) <= len(wanted):
                        return True
        return False


def is_courtesy(passage: str) -> bool:
    """Whether a passage is a greeting, a hedge or an offer, and nothing else."""
    return _COURTESY.fullmatch(normalised(passage).strip(" .!,;:")) is not None


def _parts(span: str) -> Sequence[str]:
    return [part for one in normalised(span).split("...") if (part := one.strip())]
