"""Which option of a multiple-choice question an answer chose."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from assay.errors import InputError
from assay.text.extract import Pick, answer_text, check_pick, choose, statements
from assay.text.normal_form import as_text, same_answer

__all__ = ["Choices", "choice_match", "chosen_label"]

Choices: TypeAlias = "str | Sequence[str] | Mapping[str, str]"
"""The labels: ``"ABCD"``, a list of labels, or a mapping of label to the option's text."""

_MOST_CHOICES = 100
_LISTED_ALL = 3  # with two options, to weigh both in passing is not a list


def choice_match(
    answer: object,
    expected: object,
    *,
    choices: Choices = "ABCD",
    pick: Pick | None = None,
    extract: str | None = None,
) -> float:
    r"""Whether the answer chose the expected option.

    The choice is looked for in this order, and the first kind that occurs decides:

    1. a statement: ``Answer: B``, ``the answer is (b)``, ``\boxed{B}``, ``I choose B``;
    2. a line that is only a label: ``B``, ``(B)``, ``**B**``, ``B.``;
    3. a line that begins with a marked label: ``B) Paris``, ``B. Paris``;
    4. a label in brackets or bold: ``... so (B)``;
    5. where ``choices`` maps labels to texts: an answer, or a statement, that is the text of one.

    A statement of several options (``Answer: A, B or C``) chooses none; nor does an answer that
    names all of three or more options in one of the kinds 2 to 4. The article *A* in prose is no
    label: after it, a statement must end or go on with *because* or the like. A denial (``the
    answer is not B``) is not a statement.

    Args:
        answer: What the model said.
        expected: The right label, or (where ``choices`` is a mapping) the text of the right option.
        choices: The labels, told apart regardless of case.
        pick: Which of several choices of one kind counts: the ``last`` (default), the ``first``,
            or ``only``: no match where they differ.
        extract: Where in the answer to look (see `extract_answer`).

    Returns:
        1.0 or 0.0.

    Raises:
        InputError: ``choices`` are invalid, ``expected`` is none of them, or ``pick`` or
            ``extract`` is invalid.
    """
    check_pick(pick)
    options = _options(choices)
    wanted = _wanted(expected, options)
    text = answer_text(answer, extract, pick if extract else None)
    if text is None:
        return 0.0
    return float(_chosen(text, options, pick or "last") == wanted)


def chosen_label(text: str, choices: Choices, pick: Pick | None = None) -> str:
    """The label of the option that a text chose, as `choice_match` reads it; "" for none."""
    chosen = _chosen(text, _options(choices), pick or "last")
    return next((str(label) for label in choices if str(label).casefold() == chosen), "")


def _options(choices: Choices) -> dict[str, str]:
    """Return each label (casefolded) with the text of its option, empty where there is none."""
    if isinstance(choices, Mapping):
        options = {str(label).casefold(): str(text) for label, text in choices.items()}
    else:
        options = {str(label).casefold(): "" for label in choices}
    if len(options) != len(choices):
        raise InputError(
            f"choices {choices!r} hold a label twice", hint="case does not tell labels apart"
        )
    if not 2 <= len(options) <= _MOST_CHOICES:
        raise InputError(f"choices must be 2 to {_MOST_CHOICES} labels, not {len(options)}")
    for label in options:
        if not re.fullmatch(r"\w{1,20}", label):
            raise InputError(f"a label is 1 to 20 letters or digits, not {label!r}")
    return options


def _wanted(expected: object, options: Mapping[str, str]) -> str:
    text = as_text(expected).strip()
    if text.casefold() in options:
        return text.casefold()
    named = [label for label, option in options.items() if option and same_answer(option, text)]
    if len(named) != 1:
        labels = ", ".join(options)
        raise InputError(
            f"expected {expected!r} is not one of the choices", hint=f"labels: {labels}"
        )
    return named[0]


# --- Finding -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Patterns:
    """What marks a choice, for one set of labels; every repetition is bounded or possessive."""

    stated: re.Pattern[str]
    alone: re.Pattern[str]
    listed: re.Pattern[str]
    marked: re.Pattern[str]
    label: re.Pattern[str]


@functools.lru_cache(maxsize=128)
def _patterns(labels: tuple[str, ...]) -> _Patterns:
    names = sorted(labels, key=len, reverse=True)
    label = "(?:" + "|".join(map(re.escape, names)) + ")"
    capital = "(?-i:" + "|".join(re.escape(name.upper()) for name in names) + ")"
    article = "|".join(name for name in ("a", "i") if name in labels)
    opening, closing = r"[*_(\[{\"'`$ ]{0,6}", r"[*_)\]}\"'`$]{0,6}"
    one = rf"{opening}(?<!\w){label}(?!['\w]){closing}"
    joint = r"(?:[,;/&+|]|\bor\b|\band\b)"
    more = (
        rf"(?:\ {{0,2}}{joint}{{1,2}}\ {{0,2}}(?:or\b|and\b)?{one}"
        rf"|\ {{0,2}}[(\[*]{{1,3}}{label}[)\]*]{{1,3}}"
        rf"|\ {{1,3}}{capital}(?!\w|(?-i:\ [a-z]))"
        rf"){{0,{len(labels)}}}+"
    )
    # "The answer is a dog" chooses nothing, "the answer is A because ..." does.
    no_article = (
        rf"(?!(?<=\b(?:{article}))\ +"
        r"(?!because|since|as\b|for\b|which|with|and\b|or\b|is\b|due)[^\W_])"
        if article
        else ""
    )
    flags = re.IGNORECASE | re.MULTILINE
    return _Patterns(
        stated=re.compile(
            rf"(?:\b(?:answer|choice|option|(?:choose|chose|pick|select)(?:\ option)?)\b"
            rf"[*_\"']{{0,3}}(?:\s(?:is|was|(?:would|must|should)\ be))?"
            rf"(?:\s(?:option|choice))?"
            rf"\s?[:=]?[*_]{{0,3}}\s{{0,3}}|\\boxed\{{\s?(?:\\text(?:bf)?\{{)?)"
            rf"(?P<labels>{one}{more}){no_article}",
            flags,
        ),
        alone=re.compile(rf"^[ \t]{{0,8}}(?P<labels>{one})[.:]?{closing}[ \t]*$", flags),
        listed=re.compile(rf"^[ \t]{{0,8}}[*_]{{0,3}}(?P<labels>{label})[*_]{{0,3}}[).:]", flags),
        marked=re.compile(rf"(?:[(\[]|\*\*)(?P<labels>{label})(?:[)\]]|\*\*)", flags),
        label=re.compile(rf"(?<!\w){label}(?!\w)", re.IGNORECASE),
    )


_DENIED = re.compile(
    r"(?:\b(?:wrong|incorrect|false|not|never)|n['\u2019]t)\s+(?:(?:the|my|correct|right|best)\s+)*\Z",
    re.IGNORECASE,
)


def _chosen(text: str, options: Mapping[str, str], pick: Pick) -> str | None:
    """Return the label the answer chose, or None."""
    patterns = _patterns(tuple(options))
    statements = [
        _named(match, patterns)
        for match in patterns.stated.finditer(text)
        if not _DENIED.search(text, max(0, match.start() - 40), match.start())
    ]
    if statements:
        named = choose(statements, pick, key=frozenset)
        return _single(named)
    for pattern in (patterns.alone, patterns.listed, patterns.marked):
        found = [label for match in pattern.finditer(text) for label in _named(match, patterns)]
        if found:
            if len(options) >= _LISTED_ALL and len(set(found)) == len(options):
                return None
            return choose(found, pick, key=str)
    return _by_text(text, options)


def _named(match: re.Match[str], patterns: _Patterns) -> list[str]:
    return [label.casefold() for label in patterns.label.findall(match["labels"])]


def _single(labels: list[str] | None) -> str | None:
    return labels[0] if labels and len(set(labels)) == 1 else None


def _by_text(text: str, options: Mapping[str, str]) -> str | None:
    """Return the label whose option's text the answer, or its last statement, is."""
    for said in (text, *(part for _, part in statements(text)[-1:])):
        named = [label for label, option in options.items() if option and same_answer(said, option)]
        if len(named) == 1:
            return named[0]
    return None
