"""The evidence rule: a judge that says something is there quotes it, and the quote is looked up.

It is refuted by comparing strings, so no wording of an answer gets around it. It does not stop an
answer that states a lie worth quoting.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property, lru_cache

from assay.graders.judges.fence import unescaped, visible

__all__ = ["Sought", "normalised"]

_LEAST_CHARACTERS = 3
_MOST_QUOTES = 50
_LONGEST_NORMALISED = 100_000
_WORD = re.compile(r"\w+")
_QUOTES = str.maketrans(
    {**dict.fromkeys("\u201c\u201d\u201e", '"'), **dict.fromkeys("\u2018\u2019\u201a", "'")}
)
_GAP = re.compile(r"\s*(?:\.\.\.|\[\.\.\.\])\s*")
_OF_THE_ANSWER = re.compile(r"(?i)\b(response|answer|submission|completion|output|text|reply)\b")


def normalised(text: str) -> str:
    """A text as quotes are compared: case, spaces, quotation marks and forms of letters alike."""
    text = unescaped(text)
    if not text.isascii():
        text = visible(text).translate(_QUOTES)
        if len(text) <= _LONGEST_NORMALISED:  # one character can stand for eighteen
            text = unicodedata.normalize("NFKC", text)
    return " ".join(text.split()).casefold()


class Sought:
    """A text in which quotes are looked for.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self._given = text

    @property
    def text(self) -> str:
        """The text, as it was given."""
        return self._given

    @cached_property
    def _text(self) -> str:
        return normalised(self._given)

    @cached_property
    def _letters(self) -> int:
        return _letters(self._text)

    def has(self, quote: str) -> bool:
        """Whether a quote stands in it word for word, its parts in order where it has ``...``.

        A quote has at least three letters or digits, unless the whole text has fewer.
        """
        if quote in self._given and _letters(quote) >= _LEAST_CHARACTERS:
            return True
        wanted = normalised(quote).strip("\"'` ")
        if _letters(wanted) < min(_LEAST_CHARACTERS, max(1, self._letters)):
            return False
        if wanted in self._text:
            return True
        place = 0
        parts = [part for part in _GAP.split(wanted) if part]
        if len(parts) < 2 or any(_letters(part) < _LEAST_CHARACTERS for part in parts):
            return False
        for part in parts:
            found = self._text.find(part, place)
            if found < 0:
                return False
            place = found + len(part)
        return True

    def complaint(self, quotes: Sequence[str], criterion: str = "") -> str:
        """What is wrong with the evidence for a criterion, or "".

        Args:
            quotes: What the judge quotes.
            criterion: The criterion; where it speaks of the answer, its own words are no evidence.
        """
        own = _own_words(criterion)
        if len(quotes) > _MOST_QUOTES:
            return (
                f"there are {len(quotes)} quotes; give the few that decide, {_MOST_QUOTES} at most"
            )
        told = [quote for quote in quotes if not (own and own in normalised(quote))]
        there = [quote for quote in told if self.has(quote)]
        if any(map(self._says_something, there)):
            return ""
        if not quotes:
            return "there is no quote in evidence; quote the passage word for word"
        if there:
            return "what the evidence quotes says too little; quote the passage that decides"
        if not told:
            return "the evidence is the criterion's own text; quote a passage that meets it"
        # Without the quote itself: it may be the answer's words, and this is said outside fences.
        return "none of the quotes in evidence stands in the answer word for word"

    def _says_something(self, quote: str) -> bool:
        """Whether a quote is more than the small words that stand in every text."""
        words = _WORD.findall(quote)
        if len(words) >= 3 or any(len(w) > 3 or not w.isascii() or w.isdigit() for w in words):
            return True
        return 2 * _letters(quote) >= self._letters


@lru_cache(maxsize=4_096)
def _own_words(criterion: str) -> str:
    return normalised(criterion).strip(". ") if _OF_THE_ANSWER.search(criterion) else ""


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text)) if len(text) < 200 else 200
