"""Which option of a multiple-choice question an answer chose."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from assay.errors import InputError
from assay.text.extract import (
    NOT,
    Pick,
    answer_text,
    check_pick,
    choose,
    extractions,
    in_parts,
    said,
    statements,
)
from assay.text.normal_form import WIDE, as_text, same_answer, typed

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

    1. a statement: firm (``Answer: B``, ``the answer is (b)``, ``\boxed{B}``, ``I choose B``), or
       loose (``B is correct``, ``it's B``, ``therefore, B``), which after a firm one counts only
       where the text takes that back;
    2. a line that is only a label: ``B``, ``(B)``, ``**B**``, ``B.``;
    3. a line that begins with a marked label: ``B) Paris``, ``B. Paris``, ``B - Paris``;
    4. a label in brackets or bold: ``... so (B)``;
    5. where ``choices`` maps labels to texts: an answer, statement, box or tag that is one's text.

    A statement of several options (``Answer: A, B or C``) chooses none; nor does one whose sentence
    goes on to name another (``Answer: B, or perhaps C``; ``B. Or C``), unless it denies it or gives
    reasons; nor does an answer that names all of three or more options in one of the kinds 2 to 4.
    The article *A* in prose is no label: after it, a statement must end or go on with *because* or
    the like. A denial (``the answer is not B``) is not a statement.

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
    joined: re.Pattern[str]
    label: re.Pattern[str]
    another: re.Pattern[str]


_ADVERBS = "likely|probably|certainly|surely|definitely|clearly|obviously"
_BE = r"(?:is|(?:must|should|would|has\ (?:got\ )?to)\ be)"
_REASONS = r"(?:because|since|as|for|by|due)\b"
_TURNS = r"actually|rather|sorry|scratch\ that|second\ thought|I\ mean|edit|hmm+"
_WRONG = "wrong|incorrect|false"
_WORST = f"{_WRONG}|worst|least"
_ANSWERS = (
    r"answers?(?:\ to\ (?:this|the)\ (?:question|problem)|\ here)?|\bans\b\.?"
    r"|(?:choice|option|letter|(?:correct|right|best)\ one)(?:\ here)?"
    r"(?=[*_\"']{0,3}\s?(?:[:=]|is\b|was\b|\w{2,7}\ be\b))"
    r"|guess|(?:choose|chose|choosing|pick|select)(?:\ option)?"
    r"|(?:respuesta|opci\u00f3n)(?:\ correcta)?|soluci\u00f3n|r\u00e9ponse(?:\ correcte)?"
    r"|antwort|l\u00f6sung|risposta(?:\ corretta)?|resposta(?:\ correta)?|r\u0103spuns(?:ul)?"
    r"|antwoord|odpowied\u017a|odpov\u011b\u010f|\bsvar|vastaus|v\u00e1lasz|jawaban(?:nya)?|cevap"
    r"|\u0111\u00e1p\ \u00e1n|c\u00e2u\ tr\u1ea3\ l\u1eddi"
    r"|\u03b1\u03c0\u03ac\u03bd\u03c4\u03b7\u03c3\u03b7"
    r"|\u043e\u0442\u0432\u0435\u0442|\u0432\u0456\u0434\u043f\u043e\u0432\u0456\u0434\u044c"
    r"|\u7b54\u6848|\u56de\u7b54|\u9009\u62e9?|\u6b63\u89e3|\u7b54\u3048|\uc815?\ub2f5"
    r"|\u0627\u0644\u0625\u062c\u0627\u0628\u0629|\u0627\u0644\u062c\u0648\u0627\u0628"
    r"|\u05ea\u05e9\u05d5\u05d1\u05d4|\u0909\u0924\u094d\u0924\u0930"
    r"|\u0e04\u0e33\u0e15\u0e2d\u0e1a"
)
"""What names the answer, also in other languages than English."""
_IS = (
    rf"{_BE}|was|es|est|este|ist|lautet|l\u00e0|adalah|\u00e8|\u00e9|\u662f|\u4e3a|\u9009|\u306f|\uc740"
    r"|\u03b5\u03af\u03bd\u03b1\u03b9|\u0647[\u064a\u0648]"
)
_SURELY = (
    rf"(?:,?\ (?:(?:most\ |very\ )?(?:{_ADVERBS})"
    r"|indeed|simply|actually|then|thus|therefore|of\ course),?)"
)
_HOLDS = rf"(?:{_BE}|are|(?:seems|appears|looks)(?:\ to\ be)?){_SURELY}?\s"
_RIGHT = (
    rf"(?:correct|right|true|most\ (?:plausible|likely)|the\ (?!{_WORST})"
    r"(?:(?:most\ )?\w{1,12}\ )?(?:answer|choice|option|one))\b"
)
_TITLES = (
    "correct|correction|elimination|final|solution|result|response|output|prediction|label"
    "|decision|conclusion|verdict|selected|selection"
)
_IT_IS = rf"\b(?:it|that|this)(?:['\u2019]s|\ {_BE})"
_IT_IS_THIS = re.compile(rf"{_IT_IS}\s(?P<text>[^\n]{{1,200}})", re.IGNORECASE)
_FIRM = ("said", "boxed", "titled")
"""The groups of firm statements."""
_BEFORE = (
    r"(?:[ \t]{0,8}(?:(?:\#{1,6}|[-*>\u2022\u2705\u2714\u2192]|=>|\U0001f449|[0-9]\.)\ |<b>|__?))?"
    r"[ \t]{0,8}"
)
"""What may stand before a label on its line."""
_AFTER = r"(?:\s?(?:[\u2705\u2714]\ufe0f?|</b>|__?))?"
_DRESS = r"\\(?:(?:text|mathrm|mathbf)(?:bf|rm|it|sf)?\s?\{|(?:bf|rm|it)\s)"


@functools.lru_cache(maxsize=128)
def _patterns(labels: tuple[str, ...]) -> _Patterns:
    names = sorted(labels, key=len, reverse=True)
    label = "(?:" + "|".join(map(re.escape, names)) + ")"
    # In prose a letter is a label only where it is a capital; a word always is.
    capital = "|".join(f"(?-i:{name.upper()})" if len(name) == 1 else name for name in names)
    capital = f"(?:{capital})"
    opening = rf"(?:\\\(|{_DRESS}|[*_(\[{{\"'`$ \u3010\u201c\u201e\u00ab\u300a\u300c]){{0,6}}"
    closing = r"[*_)\]}\"'`$\u3011\u201c\u201d\u00bb\u300b\u300d]{0,6}+"
    ended = r"(?!'?[^\W_]|_[^\W_]|[.:/\u2013-]\d|(?-i:-[a-z])|[\u0300-\u036f])"
    one = rf"{opening}(?<!\w){label}{ended}{closing}"
    marked = rf"{opening}(?<!\w){capital}{ended}{closing}"
    joint = r"(?:[,;/&+|]|\bor\b|\band\b)"
    article = r"(?-i:[ai])\ [A-Za-z]{2}"
    elsewhere = r"(?:is|was|isn|wasn|can|does|would|has|fails)\b"
    more = (
        rf"(?:\ {{0,2}}{joint}{{1,2}}\ {{0,2}}(?:(?:or|and)\b)?"
        rf"(?!\ *{article}){one}(?!\ {elsewhere})"
        rf"|\ {{0,2}}[(\[*]{{1,3}}{label}[)\]*]{{1,3}}"
        rf"|\ {{1,3}}{capital}(?!\w|(?-i:\ [a-z]))"
        rf"){{0,{len(labels)}}}+"
    )
    # "The answer is a dog" chooses nothing, "the answer is A because ..." does.
    articles = "|".join(name for name in ("a", "i") if name in labels)
    no_article = (
        rf"(?!(?<=\b(?:{articles}))\ +(?!{_REASONS}|(?:which|with|and|or|is)\b)[^\W_])"
        if articles
        else ""
    )
    ends = rf"(?=\ {{0,2}}(?:[.!,;:<\n\u2014\u2013-]|{_REASONS}|$))"
    expressions = {
        "stated": (
            # The answer is B; Answer: B; I choose B
            rf"(?<![A-Za-z])(?:{_ANSWERS})[*_\"'\u3011]{{0,3}}(?:\s?(?:{_IS}){_SURELY}?)?"
            r"(?:\s(?:option|choice|letter|la|(?:a\ )?letra))?"
            r"\s?(?:[-=]>|[:=\u2192\u21d2\u2014\u2013-])?[*_]{0,3}\s{0,3}"
            rf"(?:\u2026|\.\.\.|<(?:b|strong|em)>)?\s?(?P<said>{one}{more}){no_article}"
            # \boxed{B}; <answer>B
            r"|(?:\\f?box(?:ed)?\{\s?"
            r"|<(?:final_?)?(?:answer|choice|response)>\s{0,3})"
            rf"(?P<boxed>{one}{more}){no_article}"
            # after a title, as in "Correct: B"
            rf"|\b(?:{_TITLES})[*_]{{0,3}}\s?[:=][*_]{{0,3}}\s{{0,3}}"
            rf"(?P<titled>{marked}{more}){no_article}"
            # It must be B; I go with B; I think B; so, B; not A but B
            rf"|(?:{_IT_IS}{_SURELY}?|^(?:must|has\sto)\sbe"
            rf"|\b(?:option|choice|letter)(?=\s{marked}(?!:))|\b(?:go|going|went)\s(?:with|for)"
            rf"|^(?:(?:most\s)?(?:{_ADVERBS})|in\sconclusion,)"
            r"|\b(?:leaves|gives|corresponds\sto|(?:exception|odd\sone\sout|key)\sis)|\u2192"
            r"|\b(?:(?:(?:in)?correct|true|false|wrong)\s)?statement\sis"
            rf"|\b(?:(?:no|wait|no\swait)[,:.]|(?:{_TURNS})[,:.]?)(?:\smaybe|\sperhaps)?"
            r"|\bI(?:['\u2019]d|\swould)?\s(?:say|think|believe|guess)"
            r"|\b(?:therefore|thus|hence|so)[,:]?"
            rf"|{NOT}\s{marked},?\ but(?:\srather)?)"
            rf"\s(?P<told>{marked}{more}){ends}"
            # B is correct
            rf"|(?<![\w'])(?P<held>{marked}{more})\s(?:{_HOLDS}{_RIGHT}|it\sis\b)"
            r"(?!,?\s(?:only\ )?(?:if|when)\b)"
            rf"|\bonly\s(?:option\s)?(?P<lone>{marked})\s[a-z]{{3,9}}s\b"
        ),
        "alone": (
            rf"^{_BEFORE}(?:(?:option|choice|letter)\ )?(?:\\\()?(?P<labels>{one})"
            rf"(?:\\\))?\s?[.:!;,]?{closing}{_AFTER}[ \t\r]*$"
        ),
        "listed": (
            rf"^{_BEFORE}[*_]{{0,3}}(?:(?:option\ |choice\ )?"
            rf"(?P<labels>{label})[*_]{{0,3}}(?:[).:](?!\d)|\ [(](?!{label}\)))"
            rf"|(?P<capital>{capital})(?:[,;!](?!\ ?{label}\b)|\ (?:since|because)\b"
            rf"|\ [\u2013\u2014-]\ (?!{label}\b)))"
        ),
        "marked": rf"(?:[(\[\u3010]|\*\*|<b>|__)(?P<labels>{label})(?:[)\]\u3011]|\*\*|</b>|__)",
        "joined": rf"[)\]*\s]*+(?:{joint}\s?(?:(?:or|and)\b)?)?[(\[*\s]*+",
        "label": rf"(?<!\w){label}(?!\w)",
        "another": (
            r"(?:[.,;:/&+|=?(\[>\u2014\u2013-]"
            r"|\b(?:or|and|but|maybe|perhaps|possibly|probably|alternatively|also|be|even|likely"
            r"|otherwise|else|then|plus|well\ as|along\ with|failing\ that|though))"
            rf"\s{{0,2}}\}}?\s?{marked}(?=\s{{0,2}}(?:[.,;:!?/=)}}\n]|--|$)"
            r"|(?:\s(?:is|are|might|could|may))?"
            r"\s(?:also|equally|just\ as|correct|right|possible|plausible|too|as\ well|be)\b)"
        ),
    }
    flags = re.IGNORECASE | re.MULTILINE
    return _Patterns(**{name: re.compile(text, flags) for name, text in expressions.items()})


_DENIED = re.compile(
    rf"(?:{NOT}|\b(?:{_WORST}|neither|doubt|unlikely|least\ likely))\s*"
    r"(?:(?:the|my|correct|right|best|think|believe|say|that)\s+)*\Z",
    re.IGNORECASE,
)
_REFUTED = re.compile(
    r"[^\w\n]{0,4}\s(?:(?:is|was|seems|looks)\s(?:also\ |clearly\ |definitely\ )?"
    rf"(?:the\ )?(?:{_WORST}|not|out|invalid|impossible)\b"
    r"|(?:is|was|does|ca)n['\u2019]t\b|cannot\b|can\ be\ (?:ruled|eliminated|excluded))"
    r"|\s?\?\s{1,3}(?:no\b|not\b|I\ (?:don|doubt))",
    re.IGNORECASE,
)
"""What denies an option after it was named: *is wrong*, *? No*."""
_REST = re.compile(
    r"(?:(?!\.(?:\s|\Z)(?!\s?(?:or|also|alternatively|otherwise|maybe|perhaps|possibly"
    r"|\w{1,3}\ (?:is|would\ be|could\ be)\ (?:also|equally))\b)"
    rf"|\b(?:(?<!well\ )(?!as\ well){_REASONS}|(?:not|rather|instead)\b))[^\n]){{0,200}}",
    re.IGNORECASE,
)
"""What goes on with a statement: to the end of the sentence, or to its reasons or a denial."""
_TAKEN_BACK = re.compile(
    rf"\b(?:wait|no|correction|{_WRONG}|mistaken?|instead|{_TURNS})\b|{NOT}", re.IGNORECASE
)
_WIDE_SPACES = re.compile(r"(?<=\S) {2,}")
_WIDE = WIDE | {ord("\u3002"): "."}
_CJK = "[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_BETWEEN_SCRIPTS = re.compile(rf"(?<={_CJK})(?=[A-Za-z0-9(])|(?<=[A-Za-z0-9)])(?={_CJK})")


def _narrow(text: str) -> str:
    """Full-width characters as ASCII has them, none unseen, labels apart from words, one space."""
    if "  " in text:
        text = _WIDE_SPACES.sub(" ", text)
    return text if text.isascii() else _BETWEEN_SCRIPTS.sub(" ", typed(text).translate(_WIDE))


def _chosen(text: str, options: Mapping[str, str], pick: Pick) -> str | None:
    """Return the label the answer chose, or None."""
    text = _narrow(said(text))
    patterns = _patterns(tuple(options))
    found = list(_statements(text, patterns))
    if not found:
        found = _marked(text, patterns)
        if not found:
            return _by_text(text, options)
        every = {label for match in found for label in _named(match, patterns)}
        if len(every) == len(options) >= _LISTED_ALL:
            return None
        if pick == "last" and _are_joined(found[-2:], patterns):
            return None

    def chosen(match: re.Match[str]) -> frozenset[str]:
        return _named(match, patterns) | _others(match, patterns, options)

    match = choose(found, pick, key=chosen)
    labels = chosen(match) if match else ()
    return next(iter(labels)) if len(labels) == 1 else None


def _marked(text: str, patterns: _Patterns) -> list[re.Match[str]]:
    """Labels that no words introduce: the first kind that occurs."""
    for pattern in (patterns.alone, patterns.listed, patterns.marked):
        if found := [match for match in in_parts(pattern, text) if not _denied(match)]:
            return found
    return []


def _are_joined(found: list[re.Match[str]], patterns: _Patterns) -> bool:
    """Whether nothing, or only *and*, *or* or the like, stands between two different ones."""
    one, other = found[0], found[-1]
    if _named(one, patterns) == _named(other, patterns):
        return False
    return patterns.joined.fullmatch(one.string, one.end(), other.start()) is not None


def _statements(text: str, patterns: _Patterns) -> Iterator[re.Match[str]]:
    """What states a choice.

    After a firm statement a loose one (*it is B*) counts only where the text has taken it back.
    """
    is_firm, read = False, 0
    for match in in_parts(patterns.stated, text):
        if _denied(match):
            continue
        if match.lastgroup in _FIRM:
            is_firm, read = True, match.end()
        elif is_firm:
            is_firm = _TAKEN_BACK.search(text, read, match.end()) is None
            read = match.start()
            if is_firm:
                continue
        yield match


def _denied(match: re.Match[str]) -> bool:
    start = match.start()
    if _REFUTED.match(match.string, match.end()):
        return True
    return _DENIED.search(match.string, max(0, start - 40), start) is not None


def _others(
    match: re.Match[str], patterns: _Patterns, options: Mapping[str, str]
) -> frozenset[str]:
    """Other options that the sentence goes on to name: a statement that takes itself back."""
    start = match.end()
    for option in options.values():
        place = match.string.find(option, start, start + len(option) + 4) if option else -1
        if place >= 0:
            start = place + len(option)
            break
    rest = _REST.match(match.string, start)
    others = patterns.another.finditer(match.string, start, rest.end() if rest else start)
    return frozenset(label for other in others for label in _labels(other[0], patterns))


def _named(match: re.Match[str], patterns: _Patterns) -> frozenset[str]:
    return _labels(match[match.lastgroup or 0], patterns)


def _labels(text: str, patterns: _Patterns) -> frozenset[str]:
    return frozenset(label.casefold() for label in patterns.label.findall(text))


def _by_text(text: str, options: Mapping[str, str]) -> str | None:
    """Return the label whose option's text the answer is, or its last box, tag or statement."""
    stated = [part.strip("*_ ") for _, part in statements(text)]
    told = [match["text"] for match in _IT_IS_THIS.finditer(text)]
    places = (stated, extractions(text, "boxed"), extractions(text, "answer_tag"), told)
    for part in (text, *(found[-1] for found in places if found)):
        named = [label for label, option in options.items() if option and same_answer(part, option)]
        if len(named) == 1:
            return named[0]
    return None
