"""Whether a text says something: not denied, not asked, and not merely one of several guesses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from assay.testing.vocabulary import (
    AUXILIARY,
    DENIALS,
    GUESSES,
    NO_DENIALS,
    POINTING,
    REFUTING,
    STOP,
    SUPPOSING,
    TURNING,
)
from assay.testing.words import Word, sentences, words

__all__ = ["Reading", "Sentence"]

_ABOUT_ITSELF = re.compile(
    r"\b(?:response|submission|rubric|criteri(?:on|a)|requirements?|grader|judge|evaluator)\b"
    r"|\b(?:this|my|the) answer (?:clearly |correctly |explicitly |fully )*"
    r"(?:states|says|mentions|names|identifies|explains|contains|includes|satisfies|meets)\b",
    re.IGNORECASE,
)
_BREAK = re.compile(r"[,;:()\[\]{}\u2013\u2014]|\s-\s")  # dashes too
_ALTERNATIVES = re.compile(
    r"^\W*(?:options|choices|candidates|possibilities)\b|\b(?:might|could|may) (?:also|equally)\b"
    r"|\balternatively\b|\bor (?:maybe|perhaps|possibly)\b",
    re.IGNORECASE,
)
_FAR = 5
_SHORT_ITEM = 3


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence: where it begins and ends in its text, and its words."""

    start: int
    end: int
    text: str
    words: tuple[Word, ...]


class Reading:
    """A text, read once, to be asked what it says.

    Args:
        text: The text.
        about: Stems of what it is read for, such as a criterion's and its question's: denying
            something else of a thing does not deny it.
    """

    def __init__(self, text: str, about: Iterable[str] = ()) -> None:
        self.text = text
        self.sentences = [
            Sentence(start, end, text[start:end], tuple(words(text[start:end])))
            for start, end in sentences(text)
        ]
        self.stems = frozenset(word.stem for one in self.sentences for word in one.words)
        self._about = frozenset(about)

    def says(self, stems: frozenset[str], *, is_one_value: bool = False) -> Sentence | None:
        """The first sentence that asserts one of some words.

        Args:
            stems: Their stems.
            is_one_value: Whether the word is the one value of something, so that to list it among
                others is to guess.
        """
        if not stems & self.stems:
            return None
        for number, sentence in enumerate(self.sentences):
            found = [at for at, word in enumerate(sentence.words) if word.stem in stems]
            if not found or self._is_no_statement(sentence):
                continue
            if self._is_refuted_next(number):
                continue
            for at in found:
                if _is_denied(sentence, at, self._about) or _is_guess(sentence, at):
                    continue
                if is_one_value and (_is_listed(sentence, at) or self._is_rivalled(number, at)):
                    continue
                return sentence
        return None

    def mentions(self, stems: frozenset[str]) -> Sentence | None:
        """The first sentence with one of some words, however it is meant."""
        return next((one for one in self.sentences if stems & {w.stem for w in one.words}), None)

    @staticmethod
    def _is_no_statement(sentence: Sentence) -> bool:
        text = sentence.text
        is_question = text.rstrip("\"') ").endswith("?")
        return is_question or bool(_ABOUT_ITSELF.search(text) or _ALTERNATIVES.search(text))

    def _is_refuted_next(self, number: int) -> bool:
        """Whether the next sentence takes this one back, as in "That is wrong."."""
        if number + 1 >= len(self.sentences):
            return False
        first = [word.text.casefold() for word in self.sentences[number + 1].words[:6]]
        if not first or first[0] not in POINTING | REFUTING | {"no"}:
            return False
        wrong = next((at for at, word in enumerate(first) if word in REFUTING), -1)
        after = first[wrong + 1 : wrong + 2]
        return wrong >= 0 and after not in (["to"], ["that"]) and "not" not in first[:wrong]

    def _is_rivalled(self, number: int, at: int) -> bool:
        """Whether another sentence says the same of another value, or is another bare value."""
        own = self.sentences[number]
        frame = [word.stem for word in own.words]
        kind = _kind(own.words[at])
        for sentence in self.sentences:
            other = [word.stem for word in sentence.words]
            if len(other) != len(frame) or other[at] == frame[at] or other[at] in self._about:
                continue
            is_same = other[:at] + other[at + 1 :] == frame[:at] + frame[at + 1 :]
            is_value = _kind(sentence.words[at]) == kind and _is_content(sentence.words[at])
            if is_same and (len(frame) > 3 or (is_value and kind)):
                return True
        return False


def _is_break(sentence: Sentence, left: int, right: int) -> bool:
    """Whether a clause ends between two neighbouring words."""
    between = sentence.text[sentence.words[left].end : sentence.words[right].start]
    return bool(_BREAK.search(between)) or _folded(sentence, right) in TURNING


def _folded(sentence: Sentence, at: int) -> str:
    if not 0 <= at < len(sentence.words):
        return ""
    return sentence.words[at].text.casefold().replace("\u2019", "'")


def _is_denied(sentence: Sentence, at: int, about: frozenset[str]) -> bool:
    return (
        _is_denied_before(sentence, at)
        or _is_denied_after(sentence, at, about)
        or _is_refuted_after(sentence, at)
    )


def _is_denied_before(sentence: Sentence, at: int) -> bool:
    for back in range(at - 1, -1, -1):
        if _is_break(sentence, back, back + 1):
            return False
        word, after = _folded(sentence, back), _folded(sentence, back + 1)
        if word in SUPPOSING or word in REFUTING:
            return True
        is_denial = word in DENIALS or word.endswith("n't")
        if is_denial and after not in NO_DENIALS and (at - back <= _FAR or after == "true"):
            return True
        if (word, after) in (("rather", "than"), ("instead", "of")):
            return True
    return False


def _is_denied_after(sentence: Sentence, at: int, about: frozenset[str]) -> bool:
    """Whether a "not" behind a word takes back what is asked for: "X is not the capital"."""
    if at + 1 >= len(sentence.words) or _is_break(sentence, at, at + 1):
        return False
    first, second = _folded(sentence, at + 1), _folded(sentence, at + 2)
    if first.endswith("n't"):
        rest = at + 2
    elif first in AUXILIARY and second in ("not", "never"):
        rest = at + 3
    else:
        return False
    told: list[str] = []
    for forward in range(rest, len(sentence.words)):
        if forward > rest and _is_break(sentence, forward - 1, forward):
            break
        told.append(sentence.words[forward].stem)
    plain = {"it", "so", "right", "correct", "answer", "true", "the"}
    return not told or bool(about & set(told)) or set(told) <= plain


def _is_refuted_after(sentence: Sentence, at: int) -> bool:
    """Whether the sentence goes on to say that this is wrong."""
    is_pointing = True
    for forward in range(at + 1, len(sentence.words)):
        if _is_break(sentence, forward - 1, forward):
            near = {_folded(sentence, forward), _folded(sentence, forward + 1)}
            is_pointing = bool(near & POINTING)
        if is_pointing and _folded(sentence, forward) in REFUTING:
            return _folded(sentence, forward - 1) != "not"
    return False


def _is_guess(sentence: Sentence, at: int) -> bool:
    """Whether a word is one of several that are offered: "X, or Y, or Z", "X/Y", "maybe X"."""
    word = sentence.words[at]
    if "/" in (sentence.text[word.start - 1 : word.start], sentence.text[word.end : word.end + 1]):
        return True
    for back in range(at - 1, max(-1, at - _FAR), -1):
        if _is_break(sentence, back, back + 1):
            break
        if _folded(sentence, back) in GUESSES or sentence.words[back].text == "may":
            return True
    return _is_any_of(sentence, at) or _is_alternative(sentence, at)


def _is_any_of(sentence: Sentence, at: int) -> bool:
    """Whether a word stands in what "one of" or "any of" is about."""
    for back in range(at - 1, 0, -1):
        if _folded(sentence, back) in AUXILIARY:
            return False
        if _folded(sentence, back) == "of" and _folded(sentence, back - 1) in ("one", "any"):
            return True
    return False


def _is_alternative(sentence: Sentence, at: int) -> bool:
    items = _items(sentence)
    own = next(number for number, item in enumerate(items) if at in item.places)
    item = items[own]
    if item.joint == "or" and at - item.places[0] < _SHORT_ITEM:
        return True
    if item.places[-1] - at >= 2 and len(item.places) > _SHORT_ITEM:
        return False  # too far from what follows to be a part of a list
    for later in items[own + 1 :]:
        if later.joint == "or":
            return True
        first = sentence.words[later.places[0]]
        is_more = later.joint == "," and _kind(first) == _kind(sentence.words[at])
        if not is_more or len(later.places) > _SHORT_ITEM or first.text.casefold() in DENIALS:
            return False
    return False


@dataclass(frozen=True, slots=True)
class _Item:
    """A part of a sentence: places of its words, and how it is joined to the part before it."""

    places: list[int]
    joint: str


def _items(sentence: Sentence) -> list[_Item]:
    """The sentence cut at its punctuation, its "and"s and its "or"s, which are left out."""
    items = [_Item([], "")]
    for at, word in enumerate(sentence.words):
        folded = word.text.casefold()
        if folded in ("or", "and"):
            items.append(_Item([], folded))
            continue
        if items[-1].places and _is_break(sentence, at - 1, at):
            between = sentence.text[sentence.words[at - 1].end : word.start].strip()
            items.append(_Item([], "," if between == "," else ";"))
        items[-1].places.append(at)
    return [item for item in items if item.places]


def _is_listed(sentence: Sentence, at: int) -> bool:
    """Whether a name or number is one of three or more that merely follow each other."""
    kind = _kind(sentence.words[at])
    if not kind:
        return False
    items = _items(sentence)
    own = next(number for number, item in enumerate(items) if at in item.places)
    neighbours = 0
    if at - items[own].places[0] < 2:
        for number in range(own, 0, -1):
            if items[number].joint not in (",", "and") or len(items[number].places) > 2:
                break
            if _kind(sentence.words[items[number - 1].places[-1]]) != kind:
                break
            neighbours += 1
    if at == items[own].places[-1]:
        for item in items[own + 1 :]:
            if item.joint not in (",", "and") or len(item.places) > 2:
                break
            if _kind(sentence.words[item.places[-1]]) != kind:
                break
            neighbours += 1
    is_both = any(_folded(sentence, back) == "both" for back in range(at))
    return neighbours >= (1 if is_both else 2)


def _is_content(word: Word) -> bool:
    return word.text.casefold() not in STOP


def _kind(word: Word) -> str:
    if word.text[0].isdigit():
        return "number"
    return "name" if word.text[0].isupper() else ""
