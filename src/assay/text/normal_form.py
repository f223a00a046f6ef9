"""What two texts must share to count as the same answer.

`normalize` is the lenient form known from question answering: words only. `answer_key` is the
strict one behind `exact_match`: it forgives how an answer is *written* and keeps whatever carries
*meaning* (signs, operators, currency, per cent, decimal points).

Everything here is linear in the length of the text, whatever the text says.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, cast

from assay.errors import InputError

ARTICLES = frozenset({"a", "an", "the"})


def reference_text(name: str, value: object) -> str:
    """The text of one right answer; a list of one is that one.

    Raises `InputError` for None, and for several and for an object: no answer is like their text,
    and every one would be wrong.
    """
    if isinstance(value, list | tuple) and len(several := cast("Sequence[object]", value)) == 1:
        value = several[0]
    if value is None:
        raise InputError(f"{name} is missing (None)", hint="an empty answer is written ''")
    if isinstance(value, Mapping):
        hint = "json_match compares JSON; of an answer in a field, name the field"
        raise InputError(f"{name} is an object, not text: {value!r:.80}", hint=hint)
    if isinstance(value, list | tuple | set | frozenset):
        hint = "give one; exact_match, f1_score and contains_any take a list of right answers"
        raise InputError(f"{name} is a list, not text: {value!r:.80}", hint=hint)
    return as_text(value)


def as_text(answer: object) -> str:
    """Read an answer as text: ``None`` is not an answer (empty), anything else its `str`.

    An integer too long for Python to print is not an answer either.
    """
    if isinstance(answer, str):
        return answer
    if answer is None:
        return ""
    try:
        return str(answer)
    except ValueError:
        return ""


# --- Unicode -------------------------------------------------------------------------------------

# `unicodedata.normalize` sorts each run of combining marks in quadratic time (6 s for 80,000
# marks), so text goes through it in pieces of at most this many characters.
_PIECE = 256


_INVISIBLE = (
    "\u00ad\u180e\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
    "\u2060\u2066\u2067\u2068\u2069\ufe0e\ufe0f\ufeff"
)
_TYPED = str.maketrans(
    {
        **dict.fromkeys("\u00a0\u2007\u2009\u200a\u202f", " "),
        **dict.fromkeys("\u2010\u2011", "-"),
        "\u2019": "'",
    },
) | dict.fromkeys(map(ord, _INVISIBLE))


def fold(text: str) -> str:
    """Compose (NFC) and casefold, so that letters compare regardless of case and encoding."""
    if text.isascii():
        return text.lower()
    return compose(compose(typed(text)).casefold())


def typed(text: str) -> str:
    """A text as one types it: plain spaces, hyphens and apostrophes, and nothing that is unseen."""
    return text if text.isascii() else text.translate(_TYPED)


def compose(text: str, form: Literal["NFC", "NFKC"] = "NFC") -> str:
    """Return the composed form of a text in linear time."""
    if text.isascii():
        return text
    return "".join(unicodedata.normalize(form, piece) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _PIECE:
        end = start + _PIECE
        while end > start + 1 and not _begins_afresh(text[end]):
            end -= 1
        if end == start + 1:
            end = start + _PIECE  # 256 marks on one letter: not language, cut anywhere
        yield text[start:end]
        start = end
    yield text[start:]


def _begins_afresh(character: str) -> bool:
    """Whether no form joins this character to the one before it."""
    first = unicodedata.normalize("NFKD", character)[0]
    is_mark = unicodedata.category(first)[0] == "M"
    return not (is_mark or "\u1160" <= first <= "\u11ff")  # vowels and finals of Hangul syllables


_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")
_SPACED_THOUSANDS = re.compile(
    r"(?<![0-9.,] )(?<![\w.,])[0-9]{1,3}(?: [0-9]{3}){1,9}+(?!\w|[.,][0-9]| [0-9])"
)


def ascii_digits(text: str) -> str:
    """A text whose digits of other scripts are 0 to 9."""
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


def spaced_thousands(text: str, separator: str) -> str:
    """A text whose numbers have a separator of their own for spaces between thousands.

    Only numbers with a group that begins with a nought, as none does by itself: ``50 000`` is one
    number, ``5 123`` may be two.
    """
    if " 0" not in text:
        return text
    return _SPACED_THOUSANDS.sub(
        lambda number: number[0].replace(" ", separator) if " 0" in number[0] else number[0], text
    )


# --- The lenient form ----------------------------------------------------------------------------

_NOT_A_WORD = re.compile(r"[^\w\s]")
_ASCII_WORDS = {
    code: (chr(code).lower() if chr(code).isalnum() or chr(code) == "_" else " ")
    for code in range(128)
}
_ASCII_WORDS_TABLE = str.maketrans(_ASCII_WORDS)


def normalize(text: object) -> str:
    """Reduce a text to its words: the normal form of question answering.

    Composes (NFC) and casefolds, turns every character that is neither a letter, digit, underscore
    nor white space into a space, drops the words *a*, *an* and *the*, and joins what is left by
    single spaces. So ``"The U.S. Dollar!"`` becomes ``"u s dollar"`` and ``"-5"`` becomes ``"5"``:
    use `answer_key` where signs and symbols matter.

    Args:
        text: Any value; what is not a string is read by `str` (so ``None`` gives ``"none"``).
    """
    return " ".join(words(text if isinstance(text, str) else str(text)))


def words(text: str) -> list[str]:
    """Return the words of the normal form, in order."""
    if text.isascii():
        found = text.translate(_ASCII_WORDS_TABLE).split()
    else:
        found = _NOT_A_WORD.sub(" ", fold(text)).split()
    if "the" in found or "a" in found or "an" in found:
        return [word for word in found if word not in ARTICLES]
    return found


# --- The strict form -----------------------------------------------------------------------------

WIDE = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
"""Full-width characters as ASCII has them."""
RAISED = str.maketrans(
    "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207a\u207b", "0123456789+-"
)
LOWERED = {code: chr(code - 0x2050) for code in range(0x2080, 0x208A)}
_LOOKALIKES = WIDE | str.maketrans(
    {
        **dict.fromkeys("\u2212\ufe63", "-"),  # minus signs
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc", "'"),
        **dict.fromkeys("\u00a1\u00bf", " "),  # what begins with them ends with ! or ?
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u300c\u300d\u300e\u300f", '"'),
        "\u2026": "...",
        **dict.fromkeys("\u0964\u3002", ". "),  # full stops that need no space after them
        **dict.fromkeys("\uff0c\u3001\u060c", ", "),
        **dict.fromkeys("\uff1b\u061b", "; "),
        "\uff01": "! ",
        **dict.fromkeys("\uff1f\u061f", "? "),
    }
)
_FORMULA = re.compile("(?<=[^\\W\\d_])[\u2080-\u2089]+")  # of H2O, but not of 10 to the base 2
_DATED = re.compile("\u2013(?=\\d)")
_QUOTES = str.maketrans('"`', "  ")
_SEPARATORS = str.maketrans(",;", "  ")

# Each pattern begins with the literal it is about and looks back afterwards: `re` finds a literal
# several times faster than it tries a look-behind at every place.
_IN_WORD_APOSTROPHE = re.compile(r"'(?<=[^\W\d_]')(?=[^\W\d_])")
_QUOTED_CHARACTER = re.compile(r"'(?<![\w']')(\w)'(?![\w'])")
_QUOTING_APOSTROPHE = re.compile(r"'(?<!\b[^\W_]')(?<!\b[^\W_]'')")
_EMPHASIS = re.compile(r"(\*(?<![\w*]\*)\*{0,2})(?=[^\s*])([^*\n]+)(?<=\S)\1(?![\w*])")
_WORDS_IN_BRACKETS = re.compile(r"\((?<!\S\()([^\W\d_][\w ]*)\)(?![\w^!(])")
_COMMA_BEFORE_THREE = re.compile(r",(?<=\d,)\d{3}")
_THOUSANDS = re.compile(r"[0-9](?<![0-9.,][0-9])[0-9]{0,2}(?:,[0-9]{3})++(?![0-9]|,[0-9])")
_BEFORE_A_WORD = re.compile(r"\w\w|[\d_$#(\u20ac\u00a3\u00a5]|[-+.]\d")
# A run of punctuation that ends a word; one that begins with "!" only on its own or after two
# letters ("5!" and "n!" are factorials). A run is entered at its first character only, so that
# none is read twice.
_ENDING = re.compile(r"[.,;:?](?<![.,;:?!].)[.,;:?!]*+(?!\S)")
_EXCLAMATION = re.compile(
    r"!(?<![.,;:?!].)(?:(?<=[^\W\d_][^\W\d_]!)|(?<!\S!))[.,;:?!]*+(?!\S)"
    r"|(?<=[\w)]!)[.,;:?][.,;:?!]*+(?!\S)"
)
_ELLIPSIS = re.compile(r"\.\.\.+")
_FULL_STOP = re.compile(r"\.(?!\w)")
_SPACED_OPERATOR = re.compile(r" ([-+*/^=<>\u2264\u2265\u2260\u00d7\u00f7&|~]{1,3}) ")
_SPACED_PERCENT = re.compile(r" %(?<=\d %)")
_SPACED_CURRENCY = re.compile(r"([$\u20ac\u00a3\u00a5]) (?=[\d.])")


def answer_key(text: str) -> str:
    """Reduce an answer to what it says; two answers with one key are the same answer.

    Forgiven:

    * case, NFC or NFD, characters that cannot be seen, look-alike minus signs, hyphens, spaces and
      quotes, digits of other scripts, subscripts after a letter;
    * white space: runs of it, around the answer, on both sides of an operator (``x >= 1``);
    * sentence punctuation: commas and semicolons; full stops, colons, question and exclamation
      marks at the end of a word; three points or more;
    * quotes, ``*emphasis*``, apostrophes within a word (``don't``), round brackets around words;
    * the articles *a*, *an*, *the* before a word of two letters or more;
    * thousands separators in well-formed groups: ``1,000`` and ``1 000`` are ``1000``.

    Kept, since they change what is said: ``+ - * / = < > % $ € # & ^`` and every other symbol, the
    decimal point, a point or colon inside a word (``example.com``, ``3:45``), the hyphen,
    brackets around anything but words, ``!`` after a digit or a single letter (a factorial), a
    prime after a single letter (``f'``), and an article that stands last (``Vitamin A``).
    """
    key = fold(text)
    if not key.isascii():
        key = ascii_digits(key.translate(_LOOKALIKES))
        key = _DATED.sub("-", _FORMULA.sub(lambda run: run[0].translate(LOWERED), key))
    key = _without_wrapping(key)
    if "," in key and _COMMA_BEFORE_THREE.search(key):
        key = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), key)
    key = _without_articles(spaced_thousands(key, ""))
    key = " ".join(_without_punctuation(key).split())
    key = _SPACED_OPERATOR.sub(r"\1", key)
    if "%" in key:
        key = _SPACED_PERCENT.sub("%", key)
    if "$" in key or not key.isascii():
        key = _SPACED_CURRENCY.sub(r"\1", key)
    return key


def _without_wrapping(key: str) -> str:
    """Drop quotes, emphasis and brackets around words."""
    if '"' in key or "`" in key:
        key = key.translate(_QUOTES)
    if "'" in key:
        key = _IN_WORD_APOSTROPHE.sub("", key)
        key = _QUOTED_CHARACTER.sub(r"\1", key)
        key = _QUOTING_APOSTROPHE.sub(" ", key)
    if "*" in key:
        key = _EMPHASIS.sub(r"\2", key)
    if "(" in key:
        key = _WORDS_IN_BRACKETS.sub(r"\1", key)
    return key


def _without_articles(key: str) -> str:
    """Drop *a*, *an*, *the* before a number or a word of two letters or more."""
    tokens = key.split()
    if ARTICLES.isdisjoint(tokens):
        return key
    return " ".join(
        token
        for token, following in zip(tokens, [*tokens[1:], ""], strict=True)
        if token not in ARTICLES or not _BEFORE_A_WORD.match(following)
    )


def _without_punctuation(key: str) -> str:
    """Turn the punctuation of sentences into spaces."""
    key = _ENDING.sub(" ", key)
    if "!" in key:
        key = _EXCLAMATION.sub(" ", key)
    if "." in key:
        key = _FULL_STOP.sub(" ", _ELLIPSIS.sub(" ", key) if "..." in key else key)
    return key.translate(_SEPARATORS)


_JOINING = re.compile(
    r"(?<=[^\W\d_][^\W\d_])-(?=[^\W\d_][^\W\d_])"  # Jean-Luc; but not x-y
    r"|(?<=[^\W\d_][^\W\d_]) & (?=[^\W\d_][^\W\d_])"  # Rock & Roll; but not a & b
    r"|(?<=[^\W\d_])[.:\u2013\u2014](?=[^\W\d_])"  # U.S., example.com; but not 3.14
    r"|(?<=\s)[\u2013\u2014](?=\s)"
)
"""What stands between words and carries no meaning: `normalize` makes a space of it."""
_INITIALS = re.compile(
    r"(?<![\w.])(?:[A-Z][a-z]?\.){1,9}(?:[A-Z][a-z]?\.?)(?!\w)|(?<=\d )[ap]\.m\b\.?"
)
"""U.S., Ph.D., 3 p.m.; but not i.e., and no sentence that ends in a letter."""


def same_words(one: str, other: str) -> bool:
    """Whether two texts say the same but for what joins their words.

    So may initials: ``U.S.`` is ``U S`` and ``US``. Signs, currency and operators keep
    their meaning: ``-5`` is not ``5``, ``C++`` is not ``C``.
    """
    texts = [one, other]
    for read in (str, _without_points):
        bare = [_JOINING.sub(" ", read(text)) for text in texts]
        if bare != texts and (key := answer_key(bare[0])) and key == answer_key(bare[1]):
            return True
    return False


def _without_points(text: str) -> str:
    return _INITIALS.sub(lambda initials: initials[0].replace(".", ""), text)


def same_answer(one: str, other: str) -> bool:
    """Whether two texts say the same by `answer_key`, or but for what joins their words.

    Where the rule would leave nothing of either (``"???"``, ``"..."``), their casefolded text
    itself is compared.
    """
    key = answer_key(one)
    if key != answer_key(other):
        return same_words(one, other)
    return bool(key) or fold(one).split() == fold(other).split()


_SKELETON = str.maketrans(
    {
        chr(code): chr(code).lower()
        if (chr(code).isalnum() and chr(code).lower() not in "anthe")
        else None
        for code in range(128)
    }
)


def skeleton(text: str) -> str:
    """Return what `answer_key` can never drop of an ASCII text: a cheap way to say "different".

    Equal keys imply equal skeletons (letters other than those of the articles, and digits), not
    the reverse.
    """
    return text.translate(_SKELETON)
