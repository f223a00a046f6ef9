"""Compare an answer with words: equal, contained, matched by a pattern, or shared (F1)."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import cast

from assay.errors import InputError
from assay.text.extract import Pick, answer_text, said
from assay.text.normal_form import (
    answer_key,
    compose,
    fold,
    reference_text,
    same_words,
    skeleton,
    typed,
    words,
)
from assay.text.pattern import Match, compile_pattern, encodable

_REMEMBERED_CHARACTERS = 10_000
"""A longer reference is prepared anew for each call, so that the cache stays small."""

# --- Equal ---------------------------------------------------------------------------------------


def exact_match(
    answer: object,
    expected: object,
    *,
    normalize_text: bool = True,
    pick: Pick | None = None,
    extract: str | None = None,
) -> float:
    """Compare the answer with the expected one by what they say (see `answer_key`).

    Case, articles, white space, sentence punctuation, quotes, thousands separators and what joins
    words (``Jean-Luc``, ``Rock & Roll``) do not count; signs, operators, currency, per cent and
    decimal points do: ``"the Paris!"`` is ``"paris"``, and ``"-5"`` is not ``"5"``.

    Args:
        answer: What the model said; None is an empty answer.
        expected: The right answer, or a list of answers any of which is right.
        normalize_text: False compares the texts as they are, but for case and the white space
            around them.
        pick: Which extraction counts where there are several (see `extract_answer`).
        extract: Where in the answer to look (see `extract_answer`).

    Returns:
        1.0 or 0.0.

    Raises:
        InputError: ``expected`` is None or an empty list, or ``pick`` or ``extract`` is invalid.
    """
    is_plain = normalize_text and extract is None and pick is None  # as most calls are
    if is_plain and isinstance(answer, str) and isinstance(expected, str):
        return 1.0 if _says_the_same(answer, expected) else 0.0
    alternatives = _alternatives("expected", expected)
    text = answer_text(answer, extract, pick)
    if text is None:
        return 0.0
    same = _says_the_same if normalize_text else _reads_the_same
    return float(any(same(text, alternative) for alternative in alternatives))


def _alternatives(name: str, expected: object) -> list[str]:
    if isinstance(expected, str):
        return [expected]
    if isinstance(expected, list | tuple | set | frozenset):
        texts = [reference_text(name, item) for item in cast("Iterable[object]", expected)]
        if not texts:
            raise InputError(f"{name} is an empty list", hint="give at least one right answer")
        return texts
    return [reference_text(name, expected)]


def _reads_the_same(text: str, expected: str) -> bool:
    return fold(text.strip()) == fold(expected.strip())


def _says_the_same(text: str, expected: str) -> bool:
    if text == expected or _read(text) == _read(expected):
        return True
    text = said(text)
    # Most wrong answers end here, after one pass in C.
    if text.isascii() and expected.isascii() and skeleton(text) != skeleton(expected):
        return False
    key = _known_key(expected) if len(expected) <= _REMEMBERED_CHARACTERS else answer_key(expected)
    return (bool(key) and answer_key(text) == key) or same_words(text, expected)


def _read(text: str) -> list[str]:
    """How a text reads, case and white space apart: what reads the same has the same key."""
    return fold(text).split()


_known_key = functools.lru_cache(maxsize=1_024)(answer_key)
"""For references: one is compared with many answers."""


# --- Contained -----------------------------------------------------------------------------------


def contains(
    answer: object,
    substring: object,
    *,
    case_sensitive: bool = False,
    pick: Pick | None = None,
    extract: str | None = None,
) -> float:
    """Whether the answer contains a text, as it is written (``cat`` is in ``category``).

    Args:
        answer: What the model said.
        substring: What to look for.
        case_sensitive: Letters must match in case.
        pick: Which extraction counts where there are several (see `extract_answer`).
        extract: Where in the answer to look (see `extract_answer`).

    Returns:
        1.0 or 0.0.

    Raises:
        InputError: ``substring`` is blank or None: every answer contains it.
    """
    wanted = _substring(substring, case_sensitive=case_sensitive)
    text = answer_text(answer, extract, pick)
    return float(text is not None and wanted in _comparable(text, case_sensitive=case_sensitive))


def contains_any(
    answer: object,
    substrings: Iterable[object],
    *,
    case_sensitive: bool = False,
    pick: Pick | None = None,
    extract: str | None = None,
) -> float:
    """Whether the answer contains any of some texts; arguments and errors as for `contains`.

    Raises:
        InputError: ``substrings`` is a string, is empty, or holds a blank text.
    """
    wanted = _substrings("contains_any", substrings, case_sensitive=case_sensitive)
    text = answer_text(answer, extract, pick)
    return float(any(_found_in(text, wanted, case_sensitive=case_sensitive)))


def contains_all(
    answer: object,
    substrings: Iterable[object],
    *,
    case_sensitive: bool = False,
    pick: Pick | None = None,
    extract: str | None = None,
) -> float:
    """Whether the answer contains all of some texts; arguments and errors as for `contains`.

    Raises:
        InputError: ``substrings`` is a string, is empty, or holds a blank text.
    """
    wanted = _substrings("contains_all", substrings, case_sensitive=case_sensitive)
    text = answer_text(answer, extract, pick)
    return float(all(_found_in(text, wanted, case_sensitive=case_sensitive)))


def _found_in(text: str | None, wanted: list[str], *, case_sensitive: bool) -> Iterator[bool]:
    """Whether each of some texts is in the answer; none is in an answer that is not there."""
    haystack = _comparable(text or "", case_sensitive=case_sensitive)
    return (substring in haystack for substring in wanted)


def _comparable(text: str, *, case_sensitive: bool) -> str:
    return compose(typed(text)) if case_sensitive else fold(text)


def _substring(substring: object, *, case_sensitive: bool) -> str:
    text = _comparable(reference_text("substring", substring), case_sensitive=case_sensitive)
    if not text.strip():
        what = "a blank" if text else "the empty"
        raise InputError(f"every answer contains {what} text", hint="write what to look for")
    return text


def _substrings(verb: str, substrings: object, *, case_sensitive: bool) -> list[str]:
    if isinstance(substrings, str | bytes) or not isinstance(substrings, Iterable):
        raise InputError(
            f"{verb} takes a list of texts, not {substrings!r}", hint="did you mean contains()?"
        )
    given = cast("Iterable[object]", substrings)
    wanted = [_substring(item, case_sensitive=case_sensitive) for item in given]
    if not wanted:
        raise InputError(f"{verb} got no texts to look for", hint="give at least one")
    return wanted


# --- Matched -------------------------------------------------------------------------------------


def regex_match(
    answer: object,
    pattern: str,
    *,
    full: bool = False,
    ignore_case: bool = False,
    pick: Pick | None = None,
    extract: str | None = None,
) -> float:
    r"""Whether a pattern is found in the answer.

    Args:
        answer: What the model said; one line end after it, and whether letters are composed (NFC)
            or not, make no difference.
        pattern: RE2 syntax (linear time, whatever the answer): as in `re`, without look-around and
            back-references; ``\d``, ``\w`` and ``\b`` mean ASCII, ``\p{L}`` is any letter.
        full: The pattern must match all of the answer, but for white space around it.
        ignore_case: Letters match in either case.
        pick: Which extraction counts where there are several (see `extract_answer`).
        extract: Where in the answer to look (see `extract_answer`).

    Returns:
        1.0 or 0.0.

    Raises:
        InputError: RE2 refuses the pattern, or ``pick`` or ``extract`` is invalid.
    """
    compile_pattern(pattern, ignore_case=ignore_case)
    text = answer_text(answer, extract, pick)
    if text is None:
        return 0.0
    return float(match_of(pattern, text, full=full, ignore_case=ignore_case) is not None)


_LINE_END = re.compile(r"\r?\n\Z")


def match_of(pattern: str, text: str, *, full: bool, ignore_case: bool) -> Match | None:
    """The match that `regex_match` finds in a text."""
    for wanted, read in _readings(pattern, encodable(text)):
        compiled = compile_pattern(wanted, ignore_case=ignore_case)
        match = compiled.fullmatch(read.strip()) if full else compiled.search(read)
        if match is not None:
            return match
    return None


def _readings(pattern: str, text: str) -> Iterator[tuple[str, str]]:
    """A pattern and a text as they are; without the line end, at which ``$`` stops; composed."""
    yield pattern, text
    bare = _LINE_END.sub("", text)
    others = dict.fromkeys(((pattern, bare), (compose(typed(pattern)), compose(typed(bare)))))
    yield from (reading for reading in others if reading != (pattern, text))


# --- Shared --------------------------------------------------------------------------------------

# Chinese and Japanese write no spaces: each character is a token. Korean does write them.
_CJK = (
    "([\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff])"
)


def f1_score(
    answer: object,
    reference: object,
    *,
    pick: Pick | None = None,
    extract: str | None = None,
) -> float:
    """Share of words the answer and the reference have in common: the F1 of SQuAD.

    Tokens are the words of `normalize`; each Chinese or Japanese character is a token of its own.
    With ``n`` tokens in common (counted as often as both have them), precision is ``n`` over the
    tokens of the answer, recall ``n`` over those of the reference, and F1 their harmonic mean.

    A reference without a word (``"the"``, ``"!!!"``) is compared by what stands between white
    space instead. A blank reference is matched by a blank answer only.

    Args:
        answer: What the model said.
        reference: The right answer, or a list of which the best match counts.
        pick: Which extraction counts where there are several (see `extract_answer`).
        extract: Where in the answer to look (see `extract_answer`).

    Returns:
        The F1, from 0.0 to 1.0.

    Raises:
        InputError: ``reference`` is None or an empty list, or ``pick`` or ``extract`` is invalid.
    """
    alternatives = _alternatives("reference", reference)
    text = answer_text(answer, extract, pick)
    if text is None:
        return 0.0
    if text in alternatives:
        return 1.0
    tokens = tokens_of(text)
    return max(_f1(text, tokens, alternative) for alternative in alternatives)


def _f1(text: str, tokens: list[str], reference: str) -> float:
    remembered = len(reference) <= _REMEMBERED_CHARACTERS
    wanted = _remembered_tokens(reference) if remembered else tokens_of(reference)
    if not wanted:  # no word: what stands between white space is compared instead
        wanted, tokens = fold(reference).split(), fold(text).split()
    if tokens == wanted:
        return 1.0
    if not wanted or not tokens:
        return 0.0
    return 2 * _shared(tokens, wanted) / (len(tokens) + len(wanted))


_FEW = 6


def _shared(tokens: list[str], wanted: list[str]) -> int:
    """Count the tokens two texts have in common, each as often as both have it."""
    shared = 0
    if len(wanted) <= _FEW:
        few = wanted.copy()
        for token in tokens:
            if token in few:
                few.remove(token)
                shared += 1
        return shared
    left = dict(Counter(wanted))
    for token in tokens:
        if left.get(token, 0):
            left[token] -= 1
            shared += 1
    return shared


def tokens_of(text: str) -> list[str]:
    """The words that `f1_score` counts."""
    found = words(text)
    if text.isascii():
        return found
    return re.sub(_CJK, r" \1 ", " ".join(found)).split()


_remembered_tokens = functools.lru_cache(maxsize=1_024)(tokens_of)
