"""Words of a text: stems, synonyms, sentences. English, simple, and the same every time."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from assay.testing.vocabulary import NUMBERS, STOP, SYNONYMS

__all__ = ["Word", "content_stems", "sentences", "stem", "words"]

_WORD = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+(?:['\u2019-][^\W_]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=\S)|\n+|(?<=[。！？])")  # noqa: RUF001
_NO_END = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|etc|e\.g|i\.e|approx)|\b[a-z])\.$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Word:
    """One word: its stem, as it is written, and where."""

    stem: str
    text: str
    start: int
    end: int


def words(text: str) -> list[Word]:
    """Every word of a text, in order."""
    return [
        Word(stem(match[0]), match[0], match.start(), match.end()) for match in _WORD.finditer(text)
    ]


def content_stems(text: str) -> list[str]:
    """The stems of a text's words that mean something by themselves, in order, each once."""
    found = [
        word.stem
        for word in words(text)
        if word.text.casefold() not in STOP and word.stem not in STOP
    ]
    return list(dict.fromkeys(found))


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """The part of a word that its forms share; words that mean the same have one."""
    folded = unicodedata.normalize("NFKD", word.casefold())
    folded = "".join(c for c in folded if not unicodedata.combining(c)).replace("\u2019", "'")
    if folded[:1].isdigit():
        number = folded.replace(",", "")
        return number if not re.fullmatch(r"\d+(st|nd|rd|th)", number) else number[:-2]
    if folded in NUMBERS:
        return str(NUMBERS.index(folded))
    folded = folded.removesuffix("'s").removesuffix("'")
    short = _shortened(folded)
    return _SHARED.get(short, short)


_ENDINGS = (
    ("ational", 4),
    ("ization", 4),
    ("ations", 4),
    ("ation", 4),
    ("ingly", 4),
    ("edly", 4),
    ("ings", 4),
    ("ions", 4),
    ("ers", 4),
    ("ors", 4),
    ("ing", 3),
    ("ion", 4),
    ("ely", 4),
    ("ed", 3),
    ("er", 4),
    ("or", 4),
    ("ly", 4),
    ("s", 3),
)
_HISSING = ("sses", "shes", "ches", "xes", "zes")


def _shortened(word: str) -> str:
    if word.endswith(("ies", "ied")) and len(word) > 5:
        word = f"{word[:-3]}y"
    elif word.endswith(_HISSING):
        word = word[:-2]
    for ending, least in _ENDINGS:
        if not word.endswith(ending) or len(word) - len(ending) < least:
            continue
        if not word.endswith(("ss", "eed")):
            word = word[: -len(ending)]
        break
    if len(word) > 4 and word[-1] in "eiy":
        word = word[:-1]
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "sl":
        word = word[:-1]
    return word


_SHARED: dict[str, str] = {
    _shortened(word): _shortened(group[0]) for group in SYNONYMS for word in group
}


def sentences(text: str) -> list[tuple[int, int]]:
    """Where each sentence, or line, of a text begins and ends; blank ones are left out."""
    found: list[tuple[int, int]] = []
    start = 0
    for end in [*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]:
        piece = text[start:end]
        if _NO_END.search(piece.rstrip()) and "\n" not in piece and end != len(text):
            continue  # an initial or a title, no end
        if piece.strip():
            lead = len(piece) - len(piece.lstrip())
            found.append((start + lead, start + len(piece.rstrip())))
        start = end
    return found
