"""The evidence rule: a judge that says something is there quotes it, and the quote is looked up.

It is refuted by comparing strings, so no wording of an answer gets around it. It does not stop an
answer that states a lie worth quoting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import combinations

from assay.graders.judges.fence import composed, unescaped, unhidden
from assay.graders.judges.gate import emptiness

__all__ = ["Sought", "normalised"]

_LEAST_CHARACTERS = 3
_MOST_QUOTES = 50
_WORD = re.compile(r"\w+")
# No primes: they are feet and minutes. No ASCII either: `normalised` has a faster way with it.
_ALIKE = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2e3a\u2e3b", "-"),
    }
)
_DOTS = re.compile(r" ?\.(?: ?\.){2,} ?")
_EMPHASIS = re.compile(r"[*_`~]+")
_GAP = re.compile(r"\s*(?:\.\.\.|\[\.\.\.\])\s*")
_OF_THE_ANSWER = re.compile(r"(?i)\b(response|answer|submission|completion|output|text|reply)\b")

_IDEOGRAPHS = "\u3400-\u9fff\U00020000-\U0003ffff"
_UNSPACED = f"\u3005\u3040-\u30ff{_IDEOGRAPHS}\uac00-\ud7af"
_TELLING = re.compile(rf"[{_IDEOGRAPHS}]|[{_UNSPACED}]{{2}}|\d[{_IDEOGRAPHS}]")
_PARTICLES = frozenset("\u7684\u4e86\u662f\u5728\u4e0d\u6709\u548c\u4e5f\u5c31\u4e4b")
_SPACED = rf"(?![{_UNSPACED}])[^\W_]"

_LONGEST_NUMBER = 40
_MOST_TRIES = 100
_CURRENCY = "$\u00a2-\u00a5\u20a0-\u20cf"
_SIGN = r"[-+\u00b1]"
_AMOUNT = (
    rf"(?:[{_CURRENCY}] ?{_SIGN}?)?(?:(?<![\w.])\.)?\d++(?:[.,:]\d++)*+"
    rf"(?: ?[%{_CURRENCY}](?!\d))?+"
)
_NUMBER = re.compile(rf"{_SIGN}?{_AMOUNT}(?:[-/]{_AMOUNT})*+")
# A number begins with its sign, and goes on as far as it can; "B2", "COVID-19" and "2b" hold none.
_NUMBERS = re.compile(
    rf"(?:(?<!{_SPACED}){_SIGN}|(?=[{_CURRENCY}])|(?<!{_SPACED})(?<![-+\u00b1/])(?<!\d[.,:]))"
    rf"{_AMOUNT}(?:[-/]{_AMOUNT})*+(?!{_SPACED}|\+\d)"
)
_UNIT = re.compile(rf"[%{_CURRENCY}]")
_DASH = re.compile(rf"(?<=[\d%{_CURRENCY}])-(?=[\d.{_CURRENCY}])")
_FRACTION = re.compile(r"(?!\d{4}/(?:\d\d){1,2}\Z)[^/]+/[^/]+")  # "2024/25" is none
_CUT_BEFORE = re.compile(r"(?:(?:\A|[^\w)\]])-|\d[.,]?)\Z")

_SHORT = 80
_OPENING = "([{'` "
_CLOSING = ".,;:!?)]}'` "


def normalised(text: str) -> str:
    """A text as quotes are compared.

    Alike are case, spaces, quotation marks, dashes, forms of letters, and dots of an ellipsis with
    and without spaces. Without what cannot be seen, and without Markdown's emphasis but for what
    stands inside a word (``x*y``) or between spaces (``2 * 3``).
    """
    text = unhidden(unescaped(text))
    if not text.isascii():
        text = composed(text.translate(_ALIKE)).translate(_ALIKE)
    text = " ".join(text.split())
    if '"' in text:
        text = text.replace('"', "'")
    if "*" in text or "_" in text or "`" in text or "~~" in text:
        text = " ".join(_EMPHASIS.sub(_unemphasised, text).split())
    if ".." in text or ". ." in text:
        text = _DOTS.sub("...", text)
    return text.casefold()


def _unemphasised(found: re.Match[str]) -> str:
    if found[0] == "~":
        return "~"  # about
    text, start, end = found.string, found.start(), found.end()
    before = text[start - 1] if start else " "
    behind = text[end] if end < len(text) else " "
    if before.isalnum() or behind.isalnum():
        is_kept = before.isalnum() and behind.isalnum()
    elif before == " " or behind == " ":
        is_kept = before == behind
    else:  # count(*)
        is_kept = found[0] in "*_"
    return found[0] if is_kept else ""


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

        A quote has at least three letters or digits, unless the whole text has fewer, or it is a
        number that stands alone there, or of a script in which fewer make a word. A number is
        quoted whole and with its sign: "-5" does not hold "5", nor "1908" "190". A range holds
        its ends. The whole of what a text says may always be quoted.
        """
        is_plain = not (quote[:1].isdigit() or _NUMBER.fullmatch(_bared(quote)))
        if is_plain and quote in self._given and _letters(unhidden(quote)) >= _LEAST_CHARACTERS:
            return True
        wanted = _trimmed(quote)
        if self._is_all(quote):
            return True
        if (number := _number(wanted)) is not None:
            return number in self._numbers
        letters = _letters(wanted)
        if letters < min(_LEAST_CHARACTERS, max(1, self._letters)) and not _tells(wanted):
            return False
        return self._holds(wanted) or self._holds_parts(wanted)

    def _is_all(self, quote: str) -> bool:
        """Whether a quote is the whole text, or all that a short one says behind "Answer:"."""
        wanted = normalised(quote)
        if wanted == self._text or len(self._text) > _SHORT:
            return wanted != "" and wanted == self._text
        core, said = _bared(wanted), _bared(self._text)
        if not core or not said.endswith(core):
            return False
        before = said.removesuffix(core)
        return not before or (before[-1] in f"{_OPENING}:" and emptiness(before) != "")

    def _holds_parts(self, wanted: str) -> bool:
        """Whether it has the parts of a quote between ``...``, in order."""
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

    def _holds(self, wanted: str) -> bool:
        """Whether it has a quote, and a number at its beginning is not cut out of another."""
        text = self._text
        place = text.find(wanted)
        if not wanted[0].isdigit():
            return place >= 0
        for _ in range(_MOST_TRIES):
            if place < 0:
                return False
            if _CUT_BEFORE.search(text[max(0, place - 2) : place]) is None:
                return True
            place = text.find(wanted, place + 1)
        return False

    @cached_property
    def _numbers(self) -> frozenset[str]:
        """The numbers that stand in it, as `_number` writes them."""
        numbers: set[str] = set()
        for found in _NUMBERS.finditer(self._text):
            for number in _numbers_of(found[0].replace(" ", "")):
                if len(number) <= _LONGEST_NUMBER:
                    numbers.update((number, _UNIT.sub("", number)))
        return frozenset(numbers)

    def complaint(self, quotes: Sequence[str], criterion: str = "") -> str:
        """What is wrong with the evidence for a criterion, or ""."""
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
        if not told:
            return "the evidence is the criterion's own text; quote a passage that meets it"
        return self._refusal(told, is_there=bool(there))

    def _refusal(self, told: Sequence[str], *, is_there: bool) -> str:
        # Without the quote itself: it may be the answer's words, and this is said outside fences.
        if is_there:
            return "what the evidence quotes says too little; quote the passage that decides"
        if any(map(self._has_part, told)):
            return (
                "what the evidence quotes is too short, or a part of a number; quote three letters "
                "or more, word for word, and a number whole, with the words around it"
            )
        return "no quote in evidence stands in the answer word for word"

    def _has_part(self, quote: str) -> bool:
        """Whether a quote that does not count stands there all the same."""
        wanted = _trimmed(quote)
        return _letters(wanted) > 0 and wanted in self._text

    def _says_something(self, quote: str) -> bool:
        """Whether a quote is more than the small words that stand in every text."""
        words = _WORD.findall(quote)
        if len(words) >= 3 or any(len(w) > 3 or not w.isascii() or w.isdigit() for w in words):
            return True
        return 2 * _letters(quote) >= self._letters or self._is_all(quote)


@lru_cache(maxsize=4_096)
def _own_words(criterion: str) -> str:
    return normalised(criterion).strip(". ") if _OF_THE_ANSWER.search(criterion) else ""


def _trimmed(quote: str) -> str:
    """A quote as it is looked for: without quotation marks, and dots that say it is cut there."""
    wanted = normalised(quote).strip("'` ").removeprefix("[...]").removesuffix("[...]")
    wanted = wanted.rstrip("'` .")
    return wanted.lstrip("'` .") if wanted.startswith("...") else wanted.lstrip()


def _bared(text: str) -> str:
    return text.lstrip(_OPENING).rstrip(_CLOSING)


def _number(wanted: str) -> str | None:
    """The number that a quote is, without spaces and punctuation at its ends, or None."""
    if len(wanted) > _LONGEST_NUMBER:
        return None
    wanted = _bared(wanted)
    return wanted.replace(" ", "") if _NUMBER.fullmatch(wanted) else None


def _numbers_of(written: str) -> Iterator[str]:
    """A number, and those that a range or a date consists of; a fraction is one number."""
    for span in _runs(_DASH.split(written), "-"):
        yield span
        if not _DASH.search(span) and not _FRACTION.fullmatch(span):
            yield from _runs(span.split("/"), "/")


def _runs(parts: list[str], joint: str) -> Iterator[str]:
    """The parts that stand side by side, joined; of very many, each alone."""
    if len(parts) > _LONGEST_NUMBER // 2:
        yield from parts
        return
    for start, end in combinations(range(len(parts) + 1), 2):
        yield joint.join(parts[start:end])


def _tells(wanted: str) -> bool:
    """Whether fewer letters than three say something: a word of another script does."""
    return _TELLING.fullmatch(wanted) is not None and wanted not in _PARTICLES


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text)) if len(text) < 200 else 200
