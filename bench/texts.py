"""Answers and references to compare: made up, different in every call, the same for everybody."""

from __future__ import annotations

import random
from collections.abc import Iterator

__all__ = ["pairs"]

_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"
_SYLLABLES = [consonant + vowel for consonant in _CONSONANTS for vowel in _VOWELS]


def pairs(
    *, seed: int, words: int, correct: bool, sharing: int, count: int
) -> list[tuple[str, str]]:
    """Make answers, each with the reference that it is compared with.

    An answer is prose: capitals, commas, full stops, an article in every other sentence. Its
    reference has the same words in capitals and without punctuation, so equal texts are never
    equal strings. Where the answer is to be wrong, every eighth word of it (at least one) is
    another.

    Args:
        seed: Decides every character.
        words: Length of an answer; 160 are about one kilobyte.
        correct: Whether answer and reference say the same.
        sharing: Answers in a row that have one reference, as a training group has.
        count: How many pairs.
    """
    draw = random.Random(seed)
    made: list[tuple[str, str]] = []
    while len(made) < count:
        said = [_word(draw) for _ in range(words)]
        reference = " ".join(said).upper()
        for _ in range(min(sharing, count - len(made))):
            answer = said if correct else _spoilt(said, draw)
            made.append((_prose(answer, draw), reference))
    return made


def _word(draw: random.Random) -> str:
    return "".join(draw.choices(_SYLLABLES, k=draw.choice((1, 2, 2, 3, 3))))


def _spoilt(words: list[str], draw: random.Random) -> list[str]:
    spoilt = list(words)
    for place in draw.sample(range(len(words)), max(1, len(words) // 8)):
        spoilt[place] = f"{spoilt[place]}x"
    return spoilt


def _prose(words: list[str], draw: random.Random) -> str:
    return " ".join(_sentences(words, draw))


def _sentences(words: list[str], draw: random.Random) -> Iterator[str]:
    start = 0
    while start < len(words):
        end = start + draw.randint(6, 14)
        sentence = [word + "," if draw.random() < 0.1 else word for word in words[start:end]]
        if draw.random() < 0.5:
            sentence.insert(0, "the")
        said = " ".join(sentence).rstrip(",")
        yield f"{said[0].upper()}{said[1:]}."
        start = end
