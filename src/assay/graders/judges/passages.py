"""When two texts say the same, and which passages of an answer a claim is about.

Who repeats one true sentence must not be paid for each copy, however it is decorated; and no false
statement may be dropped because a true one looks like it. So there are two measures. `same` leaves
out what means nothing. `alike` leaves out also what seldom means something, such as the sign in
"C#": of texts that are only alike, one does not stand for another, and each is judged.

Whoever lists the claims of an answer may be talked into leaving some out. What is left out is found
here, by comparing strings: a passage is claimed where the claims that are said to come from it have
half of its words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from assay.graders.judges.evidence import Sought, normalised
from assay.graders.judges.fence import unescaped, unhidden

__all__ = [
    "Spans",
    "alike",
    "is_wordless",
    "left_out",
    "same",
    "seen",
    "telling_words",
    "touches",
    "words",
]

_MOST_MARKS = 8
"""Combining marks in a row that are read: to order n of them takes time in the square of n."""

_LONGEST = 100_000
"""Characters of a text whose forms are made one: a character can stand for eighteen."""

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_FILLERS = frozenset(  # of other categories, and drawn as nothing
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\ufffc"
    "\ufe00\ufe01\ufe02\ufe03\ufe04\ufe05\ufe06\ufe07\ufe08\ufe09\ufe0a\ufe0b\ufe0c\ufe0d\ufe0e\ufe0f"
)
_FOLDED = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2e3a\u2e3b", "-"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u300c\u300d\u300e\u300f", '"'),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2039\u203a\u02bc", "'"),
        **dict.fromkeys("\u2022\u2023\u2043\u25aa\u25ab\u25cf\u25e6\u25a0\u25a1\u27a2", "*"),
    }
)
_POWERS = [f"^{digit}" for digit in range(10)]
_RAISED = str.maketrans(  # 2\u00b3 is not 23
    dict(zip("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", _POWERS, strict=True))
)
_TWINS = str.maketrans(  # letters of other scripts, and the Latin ones that they look like
    "\u0430\u0432\u0435\u0456\u0458\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455"
    "\u04bb\u0501\u04cf\u051b\u051d\u03b1\u03b5\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7",
    "abeijkmhopctyxshdlqwaeikvoptux",
)
_LATIN = re.compile("[a-z]")

# In front of a statement, and no part of it: "(3)", "b)", "Again:", "Fact 3:". Not "3.", which is
# a date in some languages.
_LEAD = re.compile(
    r"\A(?:[\s*_#~`\"'-]*(?:[(\[]\d{1,4}[)\]]|\d{1,4}\)|\(?[a-z]\)|"
    r"(?:fact|claim|statement|sentence|remark|reminder|repetition) #?\d{1,6} ?[.:)-]|"
    r"(?:again|also|moreover|furthermore|additionally|besides|in addition|in fact|indeed|"
    r"once more|once again|to repeat|i repeat|as (?:i )?(?:said|stated|mentioned)(?: before)?)"
    r" ?[,:-])[*_~`]*)+(?=\s)"
)
_SOURCE = re.compile(r"(?:^|(?<=\s))\[\d{1,4}\](?=[\s.,;:!?]|$)")
_CITED = re.compile(r"(?<=\s)(?:\[\d{1,4}\][\s.,;:!?]*){1,20}$")  # in front of more, it is an index
# Behind a number, the case of a short word can mean something: 5 mW, 5 MW.
_UNIT = re.compile(r"(?<=\d)\s?[^\W\d_]{1,3}(?!\w)")
_PAIRED = re.compile(r"(?<![\w*~`])(\*{1,3}|~~|`{1,3})(\w[^*~`]{0,500}[^\W_])\1(?![\w*~`])")
_QUOTED = re.compile(r"(?<!\w)([\"'])(\w[^\"']{0,500}\w)\1(?!\w)")
_BULLET = re.compile(r"\A[#*-]+\s+(?!\d)")
# Behind a digit or a letter alone, a sign can mean something: 5!, C#, A-, f'; and so can one dash
# directly behind any word: Cl-.
_MEANT = re.compile(r"(?:\d|(?<![^\W\d_])[^\W\d_])[!'\"*_#~-]{1,2}$|[^\W\d_]-$")

_COUNT = re.compile(r"\A[\s*_#~`\"'-]*\d{1,4}\.[*_~`]*(?=\s)|(?<=\s)\(\d{1,4}\)(?=\W*$)")
# On letters, of European scripts alone: in others marks are vowels, and a struck "=" is no "=".
_ACCENTS = re.compile("([^\\W\\d_])[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]+")
_SIGNS = re.compile(r"(?:[^\w\s]|_)+")
_OPERATORS = re.compile(r"[<>=+*/^&\u2260\u2264\u2265\u00b1\u00d7\u00f7\u2190-\u2194\u2208]{1,3}")
_SHORT_BEFORE = re.compile(r"(?:\d|(?<![^\W\d_])[^\W\d_])\s?$")
_SHORT_AFTER = re.compile(r"\s?(?:\d|[^\W\d_](?![^\W\d_]))")
_GAPS = re.compile(r"(?<!\d)\s+|\s+(?!\d)")  # all but those between numbers


def seen(text: str) -> str:
    """A text without what cannot be seen, fillers and joiners too."""
    plain = unhidden(unescaped(text))
    if plain.isascii() and plain.isprintable():
        return plain
    return "".join(one for one in plain if one.isspace() or not _is_unseen(one))


def _is_unseen(character: str) -> bool:
    return character in _FILLERS or unicodedata.category(character) in _UNSEEN


def is_wordless(text: str) -> bool:
    """Whether a text has neither a letter nor a digit that can be seen."""
    return not any(map(str.isalnum, seen(text)))


def same(text: str) -> str:
    """What is equal in texts that differ in decoration alone.

    Decoration is what cannot be seen; case (but not of a unit behind its number), spaces and the
    form of a character; quotation marks and paired Markdown around words; in front bullets, numbers
    of a list and openers such as "Again:"; and behind the last word numbers of a source,
    punctuation, dashes, Markdown and pictures.
    """
    plain = _CITED.sub(" ", _LEAD.sub(" ", _folded(text)))
    for pattern in (_PAIRED, _QUOTED):
        plain = pattern.sub(r"\2", plain)
    plain = _BULLET.sub("", _without_pictures(plain).strip()).lstrip(" \"'")
    ended = plain.rstrip(" .,;:?")
    bare = plain if not ended else ended if _MEANT.search(ended) else _unsigned(ended)
    return " ".join(bare.split())


def alike(text: str) -> str:
    """What is equal in texts that look much the same.

    It leaves out, besides what `same` does: the case of units, accents, which of two like letters
    it is, pictures, a number as of a list at either end, that of a source anywhere, the spaces
    between words, and each sign but operators inside and those between or before numbers.
    """
    plain = _COUNT.sub(" ", _SOURCE.sub(" ", same(text).casefold()))
    if not plain.isascii():
        if _LATIN.search(plain):
            plain = plain.translate(_TWINS)
        plain = _ACCENTS.sub(r"\1", unicodedata.normalize("NFD", plain))
        plain = unicodedata.normalize("NFC", plain)
    plain = _SIGNS.sub(lambda found: _meant(plain, found), plain)
    return _GAPS.sub("", plain.strip())


def _folded(text: str) -> str:
    plain = seen(text)
    if not plain.isascii():
        plain = _with_few_marks(plain.translate(_RAISED))
        if len(plain) <= _LONGEST:
            plain = unicodedata.normalize("NFKC", plain)
        plain = seen(plain).translate(_FOLDED)
    plain, kept, end = " ".join(plain.split()), list[str](), 0
    for unit in _UNIT.finditer(plain):
        kept += [plain[end : unit.start()].casefold(), unit[0]]
        end = unit.end()
    return "".join([*kept, plain[end:].casefold()])


def _with_few_marks(text: str) -> str:
    kept: list[str] = []
    row = 0
    for character in text:
        row = row + 1 if unicodedata.combining(character) else 0
        if row <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)


def _unsigned(text: str) -> str:
    return text.rstrip(" !?.,;:\"'*_#~`-") or text


def _without_pictures(text: str) -> str:
    """The text without pictures behind its full stop; in a sentence, they may be what it says."""
    end = len(text)
    while end and (text[end - 1].isspace() or _is_picture(text[end - 1])):
        end -= 1
    return text[:end] if text[:end].endswith((".", "!", "\u3002")) else text


# A cross or a thumb behind a statement may deny it.
_VERDICTS = frozenset(
    "\u2705\u2713\u2714\u2611\u2717\u2718\u274c\u274e\u2612\u26d4\u2753\u2754\U0001f44d\U0001f44e"
    "\U0001f6ab\U0001f645\U0001f197\U0001f196"
)


def _is_picture(character: str) -> bool:
    is_one = character > "\u2300" and unicodedata.category(character) in ("So", "Sk")
    return is_one and character not in _VERDICTS


def _meant(text: str, found: re.Match[str]) -> str:
    """The signs, where they stand for something: between numbers or letters, as in 3.14 and x-1."""
    signs, start, end = found[0], *found.span()
    if len(signs) == 1 and text[end : end + 1].isdigit() and signs in "-~#":
        return signs if not (start and text[start - 1].isalpha()) else ""
    if len(signs) == 1 and text[start - 1 : start].isdigit() and signs == "%":
        return signs
    has_both = start > 0 and end < len(text)
    if has_both and _OPERATORS.fullmatch(signs) and signs != "*":
        return signs
    before = _SHORT_BEFORE.search(text, max(0, start - 3), start)
    return signs if before and _SHORT_AFTER.match(text, end) and len(signs) <= 2 else ""


Pair = tuple[str, str]
"""A claim, and the passage that is said to make it."""

_PASSAGE = re.compile(r"(?<=[.!?;])[\"')\]]*\s+|(?<=[。！？；])|\n+")  # noqa: RUF001 - other scripts
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # a character of these tells what a word does
_WORD = re.compile(rf"\d+|[{_UNSPACED}]|[^\W\d_{_UNSPACED}]+")
_LETTERS = 4
"""Letters of a word that tells something; so many also tell it from others, whatever its ending."""

_LEAST_WORDS = 3
_LEAST_LETTERS = 3
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
    """Where spans are looked for. Other than evidence, they may be a single word, such as "C"."""

    def __init__(self, text: str) -> None:
        self._sought, self._plain = Sought(text), normalised(text)

    def has(self, span: str) -> bool:
        """Whether a span stands in it word for word."""
        if self._sought.has(span):
            return True
        word = normalised(span).strip("\"'` ")
        if not any(map(str.isalnum, word)):
            return False
        if self._has_in_order(_parts(span)):
            return True
        return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self._plain) is not None

    def _has_in_order(self, parts: Sequence[str]) -> bool:
        """Whether it has the parts of a span between ``...``, one behind the other."""
        place = 0
        for part in parts:
            found = self._plain.find(part, place)
            if found < 0 or sum(map(str.isalnum, part)) < _LEAST_LETTERS:
                return False
            place = found + len(part)
        return bool(parts)


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
    """Whether a span has to do with a passage: one holds the other, or a part of it."""
    plain = normalised(passage)
    return any(part in plain or plain.strip(" .!") in part for part in _parts(span))


def left_out(answer: str, pairs: Iterable[Pair], most: int) -> list[str]:
    """The passages of an answer that no claim was made of.

    Questions and courtesies are not claims, nor is what has fewer than three words.
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
