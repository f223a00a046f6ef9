"""The evidence rule: a judge that says something is there quotes it, and the quote is looked up.

It is refuted by comparing strings, so no wording of an answer gets around it. It does not stop an
answer that states a lie worth quoting.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import combinations_with_replacement, pairwise

from assay.graders.judges.fence import composed, unescaped, unhidden
from assay.graders.judges.gate import emptiness
from assay.graders.judges.small_words import are_small

_LEAST_CHARACTERS = 3
_MOST_QUOTES = 50
_WORD = re.compile(r"\w+")
# No primes: they are feet and minutes. No ASCII either: `normalised` has a faster way with it.
_ALIKE = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f", "'"),
        # Unicode's dashes, but for waves, and what else looks like one.
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u058a\u05be\u1806\u2e17\u2e1a", "-"),
        **dict.fromkeys("\u2e3a\u2e3b\u2e40\u2e5d\u30a0\ufe31\ufe32\ufe58\ufe63\uff0d", "-"),
        **dict.fromkeys("\u2212\u02d7\u2043\u2796\u2500\u2501\U00010ead", "-"),
    }
)
_DASHES = re.compile(r"-{2,}")
_RAISED = re.compile("(?<=\\d)[\u00b2\u00b3\u00b9\u2070\u2074-\u207e]+")
_LOWERED = re.compile("(?<=\\d)[\u2080-\u208e]+")
_PART = re.compile("(?<=\\d)(?=[\u00bc-\u00be\u2150-\u215e\u2189])")
_DOTS = re.compile(r" ?\.(?: ?\.){2,} ?")
_EMPHASIS = re.compile(r"[*_`~]+")
_OF_THE_ANSWER = re.compile(r"(?i)\b(response|answer|submission|completion|output|text|reply)\b")

_IDEOGRAPHS = "\u3400-\u9fff\U00020000-\U0003ffff"
_UNSPACED = f"\u3005\u3040-\u30ff{_IDEOGRAPHS}\uac00-\ud7af"
_TELLING = re.compile(rf"[{_IDEOGRAPHS}]|[{_UNSPACED}]{{2}}|\d[{_IDEOGRAPHS}]")
_PARTICLES = frozenset("\u7684\u4e86\u662f\u5728\u4e0d\u6709\u548c\u4e5f\u5c31\u4e4b")
_SPACED = rf"(?![{_UNSPACED}])[^\W_]"
# Words stand side by side in these, and in Thai, Lao, Tibetan, Burmese and Khmer.
_RUNNING = re.compile(
    f"[{_UNSPACED}\u0e00-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf]"
)

_LONGEST_NUMBER = 40
_MOST_TRIES = 100
_CURRENCY = "$\u00a2-\u00a5\u20a0-\u20cf"
_UNITS = rf"%\u2030{_CURRENCY}"
_SIGN = r"[-+\u00b1]"
_TIMES = r"[x\u00d7\u00f7\u00b7\u22c5\u2219*+\u00b1\u2213]|\\(?:times|cdot|div|pm|mp|ast)(?![a-z])"
# Of any other character between two digits they are one number, but for these.
_APART = (
    rf"\s\w;=<>|(){{}}\[\]&@#\\~?/x\u00d7\u00f7*+^{_UNITS}\u2190-\u21ff\u223c-\u228b\u27f0-\u27ff-"
)
_AMOUNT = (
    rf"(?:[{_CURRENCY}] ?{_SIGN}?)?(?:(?<![\w.])\.)?"
    r"(?:\d{1,3}(?: \d{3})++(?!\d)|\d++(?: \d\d?[/\u2044]\d\d?(?![\d/]))?+)"
    rf"(?:(?:_|[^{_APART}])\d++)*+(?: ?[{_UNITS}](?!\d))?+"
)
_POWER = rf"\^ ?(?:[({{] ?{_SIGN}?{_AMOUNT} ?[)}}]|{_SIGN}?{_AMOUNT})"
_MORE = (
    rf"(?:[-/]{_AMOUNT}|{_POWER}|(?:{_TIMES}| (?:{_TIMES}) ){_SIGN}?{_AMOUNT})*+(?:!++|\+(?!\d))?+"
)
_NUMBER = re.compile(rf"{_SIGN}?{_AMOUNT}{_MORE}")
_OPERATED = re.compile(rf"[!^]|{_TIMES}")
# Beside a number these make another one of it; so does "million".
_BINDS = "*^\u00d7\u00f7\u2044\u2200-\u2233\u2236-\u223b\u2260\u2264\u2265"
_SCALE = (
    r" ?(?:(?:hundred|thousand|dozen|tausend|mil|mille|lakh|crore)s?"
    r"|(?:[mb]|tr)il+[ijy]?[ao\u00f3](?:e?n\w{0,2}|rd?\w{0,2})|\u0442\u044b\u0441\u044f\u0447\w*"
    r"|\u043c\u0438\u043b\u043b\u0438\w*)\b"
    r"| ?[\u5341\u767e\u5343\u4e07\u842c\u4ebf\u5104\u5146\ub9cc\uc5b5\uc870\ucc9c\ubc31]"
)
_BEHIND = rf"{_SPACED}|\+\d|[!\u00b7{_BINDS}]|{_SCALE}"
# A number begins with its sign, and goes on as far as it can; "B2", "COVID-19" and "2b" hold none.
_NUMBERS = re.compile(
    rf"(?:(?<!{_SPACED}){_SIGN}|(?=[{_CURRENCY}])|(?<!{_SPACED})(?<![-+\u00b1/{_BINDS}])"
    rf"(?<![{_BINDS[2:]}] )(?<!sqrt{{)(?<!frac{{)(?<!\d[.,:])){_AMOUNT}{_MORE}(?P<more>{_BEHIND})?"
)
_UNIT = re.compile(rf"[{_UNITS}]")
_BEFORE_UNIT = re.compile(rf"[{_CURRENCY}] ?")
_BEHIND_UNIT = re.compile(rf" ?[{_UNITS}]\Z")
_DASH = re.compile(rf"(?<=[\d{_UNITS}])-(?=[\d.{_CURRENCY}])")
_FRACTION = re.compile(r"(?!\d{4}/(?:\d\d){1,2}\Z)[^/]+/[^/]+")  # "2024/25" is none
_CUT_BEFORE = re.compile(rf"(?:(?:\A|[^\w)\]])-|\d[.,]?|[{_BINDS}]|[{_BINDS[2:]}] )\Z")

_NOT = re.compile(r"'t\b")

_SHORT = 80
_CUT_OFF = 60
"""From which length on a quote may end inside a word: judges cut long ones by their length."""
_OPENING = "([{'` "
_CLOSING = ".,;:!?)]}'` "


def normalised(text: str) -> str:
    """A text as quotes are compared.

    Alike are case, spaces, quotation marks, dashes, forms of letters, and dots of an ellipsis with
    and without spaces. Without what cannot be seen, and without Markdown's emphasis but for what
    stands inside a word (``x*y``) or between spaces (``2 * 3``). Raised digits behind a digit are
    a power.
    """
    text = unhidden(unescaped(text))
    if not text.isascii():
        text = _PART.sub(" ", _LOWERED.sub(r"_\g<0>", _RAISED.sub(r"^\g<0>", text)))
        text = composed(text.translate(_ALIKE)).translate(_ALIKE)
    text = " ".join(text.split())
    if "--" in text:
        text = _DASHES.sub("-", text)
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
    """A text in which quotes are looked for."""

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
        """Whether a quote stands in it word for word, as whole words, and nothing left out of it.

        A quote has at least three letters or digits, unless the whole text has fewer, or it is a
        number that stands alone there, or of a script in which fewer make a word. A number is
        quoted whole: "-5", "5!" and "5 * 10^9" do not hold "5", nor "1908" "190". A range holds
        its ends. The whole of what a text says may always be quoted.
        """
        wanted = _trimmed(quote)
        if self._is_all(quote):
            return True
        if (number := _number(wanted)) is not None:
            return number in self._numbers
        letters = _letters(wanted)
        if letters < min(_LEAST_CHARACTERS, max(1, self._letters)) and not _tells(wanted):
            return False
        return self._holds(wanted)

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

    def _holds(self, wanted: str) -> bool:
        """Whether it has a quote somewhere that does not begin or end inside a word or number."""
        place = -1
        for _ in range(_MOST_TRIES):
            place = self._text.find(wanted, place + 1)
            if place < 0:
                return False
            if not self._cuts_before(place) and not self._cuts_behind(place, len(wanted)):
                return True
        return False

    def _cuts_before(self, place: int) -> bool:
        """Whether what begins at a place begins inside a word or a number."""
        text = self._text
        if _is_in_word(text, place):
            return True
        if text[place].isdigit() and _CUT_BEFORE.search(text[max(0, place - 2) : place]):
            return True
        number = self._number_at(place)
        return number is not None and place not in number.begins

    def _cuts_behind(self, start: int, length: int) -> bool:
        """Whether a quote ends inside a word or a number; in a word a long one may."""
        end = start + length
        number = self._number_at(end - 1)
        if number is not None and end not in number.ends:
            return True
        if length >= _CUT_OFF and self._text[end : end + 1].isalpha():
            return False
        return _is_in_word(self._text, end)

    def _number_at(self, place: int) -> _Number | None:
        """The number of which the character at a place is a part."""
        found = bisect_right(self._found, place, key=lambda number: number.start) - 1
        return self._found[found] if found >= 0 and place < self._found[found].end else None

    @cached_property
    def _found(self) -> list[_Number]:
        return [_Number(found) for found in _NUMBERS.finditer(self._text)]

    @cached_property
    def _numbers(self) -> frozenset[str]:
        """The numbers that stand in it, as `_number` writes them."""
        numbers: set[str] = set()
        for found in self._found:
            for number in found.written():
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
        if any("..." in _trimmed(quote) for quote in told):
            return (
                "the evidence leaves something out where it has dots; quote one passage as it "
                "stands, or several quotes, each word for word"
            )
        if any(map(self._has_part, told)):
            return (
                "what the evidence quotes is too short, or a part of a number or of a word; quote "
                "three letters or more, word for word, and a number whole, with the words around it"
            )
        return "no quote in evidence stands in the answer word for word"

    def _has_part(self, quote: str) -> bool:
        """Whether a quote that does not count stands there all the same."""
        wanted = _trimmed(quote)
        return _letters(wanted) > 0 and wanted in self._text

    def _says_something(self, quote: str) -> bool:
        """Whether a quote is more than the small words that stand in every text."""
        plain = normalised(quote)
        words = _WORD.findall(plain)
        is_much = len(words) >= 3 or any(
            len(w) > 3 or not w.isascii() or w.isdigit() for w in words
        )
        if is_much and not are_small(plain):
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
    """A text without punctuation at its ends; behind a digit ``!`` is none."""
    text = text.lstrip(_OPENING)
    bare = text.rstrip(_CLOSING)
    if bare[-1:].isdigit():
        return bare + "!" * (len(text) - len(bare) - len(text[len(bare) :].lstrip("!")))
    return bare


def _number(wanted: str) -> str | None:
    """The number that a quote is, without spaces and punctuation at its ends, or None."""
    if len(wanted) > _LONGEST_NUMBER:
        return None
    for said in (wanted, _bared(wanted)):
        if _NUMBER.fullmatch(said):
            return said.replace(" ", "")
    return None


def _is_in_word(text: str, place: int) -> bool:
    """Whether a place is inside a word; "can't" is one, and so is the name of a variable."""
    if not 0 < place < len(text):
        return False
    before, behind = text[place - 1], text[place]
    if behind == "'":
        return before.isalpha() and _NOT.match(text, place) is not None
    return _is_of_word(before) and _is_of_word(behind)


def _is_of_word(character: str) -> bool:
    if character.isascii():
        return character.isalnum() or character == "_"
    is_letter = character.isalnum() or unicodedata.category(character)[0] == "M"
    return is_letter and _RUNNING.match(character) is None


class _Number:
    """A number that was found in a text, with the numbers that a range or a date consists of."""

    __slots__ = ("_is_more", "_text", "end", "start")

    def __init__(self, found: re.Match[str]) -> None:
        self._is_more = found["more"] is not None
        self.start = found.start()
        self.end = found.start("more") if self._is_more else found.end()
        self._text = found.string

    @property
    def _parts(self) -> list[tuple[int, int]]:
        """Where they begin and end in the text; what more belongs to the last is not in it."""
        joints = [self.start - 1, *self._joints(), self.end]
        return [(before + 1, behind) for before, behind in pairwise(joints)]

    def _joints(self) -> Iterator[int]:
        """Where it can be parted: not in a fraction, a power or a product."""
        text = self._text[self.start : self.end]
        if _OPERATED.search(text, 1):
            return
        dashes = [found.start() for found in _DASH.finditer(text)]
        for before, behind in pairwise((-1, *dashes, len(text))):
            run = text[before + 1 : behind]
            if not _FRACTION.fullmatch(run):
                slashes = (n for n, character in enumerate(run, before + 1) if character == "/")
                yield from (self.start + slash for slash in slashes)
            if behind < len(text):
                yield self.start + behind

    @property
    def begins(self) -> set[int]:
        """Where a quote may begin, with the unit of what begins there or without it."""
        begins = {begin for begin, _ in self._parts}
        units = (_BEFORE_UNIT.match(self._text, begin) for begin in begins)
        return begins.union(unit.end() for unit in units if unit)

    @property
    def ends(self) -> set[int]:
        """Where one may end, likewise."""
        whole = self._parts[:-1] if self._is_more else self._parts
        ends = {end for _, end in whole}
        units = (_BEHIND_UNIT.search(self._text, begin, end) for begin, end in whole)
        return ends.union(unit.start() for unit in units if unit)

    def written(self) -> Iterator[str]:
        """The numbers, without spaces; of a very long row, each alone."""
        spans = self._parts[:-1] if self._is_more else self._parts
        if len(spans) > _LONGEST_NUMBER // 2:
            runs = iter(spans)
        else:
            runs = ((a[0], b[1]) for a, b in combinations_with_replacement(spans, 2))
        for begin, end in runs:
            yield self._text[begin:end].replace(" ", "")


def _tells(wanted: str) -> bool:
    """Whether fewer letters than three say something: a word of another script does."""
    return _TELLING.fullmatch(wanted) is not None and wanted not in _PARTICLES


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text)) if len(text) < 200 else 200
