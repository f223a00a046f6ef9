"""When two texts say the same, and which passages of an answer a claim is about.

Who repeats one true sentence must not be paid for each copy, however it is decorated; and no false
statement may be dropped because a true one looks like it. So there are two measures. Of texts that
are the `same` one stands for the others. `alike` are texts of the same letters and digits: each is
judged, and those with one verdict count once.

Whoever lists the claims of an answer may be talked into leaving some out. What is left out is found
here, by comparing strings: a passage is claimed where the claims that are said to come from it have
half of its words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from assay.graders.judges.evidence import Sought, normalised
from assay.graders.judges.fence import composed, unescaped, unhidden

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_TWINS = str.maketrans(  # letters of other scripts, and the Latin ones that they look like
    "\u0430\u0432\u0435\u0456\u0458\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455"
    "\u04bb\u0501\u04cf\u051b\u051d\u03b1\u03b5\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7",
    "abeijkmhopctyxshdlqwaeikvoptux",
)
_LATIN = re.compile("[a-z]")

# Behind a word: behind a digit or a few letters a sign can mean something (5!, C#, O-).
_ENDING = re.compile(r"(?<=[^\W\d_]{4})[\s.,;:?!\"'*#_~`-]+$")
# In front of a statement, and no part of it: "(3)", "b)", "Again:", "Fact 3:". A space behind tells
# it from what is one: "1.5 mg", "in fact-checking".
_LEAD = re.compile(
    r"\A(?:[\W_]*(?:\d{1,4}[.)\]]|[a-z]\)"
    r"|(?:fact|claim|statement|sentence|remark|reminder|repetition) #?\d{1,6} ?[.:)-]"
    r"|(?:again|also|moreover|furthermore|additionally|besides|in addition|in fact|indeed"
    r"|once more|once again|to repeat|i repeat|as (?:i )?(?:said|stated|mentioned)(?: before)?)"
    r" ?[,:-])[*_~`]*(?=\s))+"
)
# A number of a source stands alone; directly behind a word it is an index: x[0].
_SOURCE = re.compile(r"(?<=\s)(?:(?:\[\d{1,4}\])+(?=[\s.,;:!?]|\Z)|\(\d{1,4}\)(?=[\W_]*\Z))")
# Marks on letters of European scripts. In others marks are vowels and voices, which tell words
# apart.
_ACCENTS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]")


def seen(text: str) -> str:
    """A text without what cannot be seen, fillers and joiners too."""
    plain = unhidden(unescaped(text))
    if plain.isascii() and plain.isprintable():
        return plain
    return "".join(
        one for one in plain if one.isspace() or unicodedata.category(one) not in _UNSEEN
    )


def is_wordless(text: str) -> bool:
    """Whether a text has neither a letter nor a digit that can be seen."""
    return not any(map(str.isalnum, seen(text)))


def same(text: str) -> str:
    """What is equal in texts that differ in nothing that could mean something.

    That is what cannot be seen, spaces, stops and Markdown behind the last word, and case where
    there is no number: 5 mW are not 5 MW.
    """
    plain = _ENDING.sub("", " ".join(seen(text).split()))
    return plain if any(map(str.isdigit, plain)) else plain.casefold()


def alike(text: str) -> str:
    """What is equal in texts that look much the same: letters, with their vowel signs, and digits.

    Without accents, numbers of a list and of sources, and openers such as "Again:"; of letters that
    look like Latin ones, those.
    """
    plain = composed(seen(text)).casefold()
    if _LATIN.search(plain):
        plain = plain.translate(_TWINS)
    plain = _SOURCE.sub(" ", _LEAD.sub("", plain))
    letters = _ACCENTS.sub("", "".join(unicodedata.normalize("NFD", each) for each in plain))
    return "".join(filter(_tells, letters)) or same(text)


def _tells(one: str) -> bool:
    return one.isalnum() or unicodedata.category(one)[0] == "M"


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


class PassageSpans:
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
