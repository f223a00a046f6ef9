"""Which option of a multiple-choice question an answer chose."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from assay.errors import InputError
from assay.text.extract import (
    Pick,
    answer_text,
    check_pick,
    choose,
    extractions,
    in_parts,
    said,
    statements,
)
from assay.text.normal_form import as_text, same_answer

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


_ANSWERS = (
    r"answers?(?:\ to\ (?:this|the)\ (?:question|problem)|\ here)?|\bans\b\.?"
    r"|(?:choice|option|letter|(?:correct|right|best)\ one)(?:\ here)?"
    r"(?=[*_\"']{0,3}\s?(?:[:=]|is\b|was\b|\w{2,7}\ be\b))"
    r"|guess|(?:choose|chose|choosing|pick|select)(?:\ option)?"
    r"|respuesta(?:\ correcta)?|r\u00e9ponse|antwort|risposta(?:\ corretta)?|resposta(?:\ correta)?"
    r"|antwoord|odpowied\u017a|\bsvar|jawaban|cevap|\u0111\u00e1p\ \u00e1n"
    r"|\u043e\u0442\u0432\u0435\u0442|\u7b54\u6848|\u6b63\u786e\u7b54\u6848|\u9009\u62e9?|\u6b63\u89e3|\u7b54\u3048"
    r"|\uc815\ub2f5|\u0627\u0644\u0625\u062c\u0627\u0628\u0629|\u0909\u0924\u094d\u0924\u0930"
)
"""What names the answer, also in other languages than English."""
_IS = (
    r"is|was|(?:would|must|should|has\ to)\ be|es|est|ist|lautet"
    r"|\u00e8|\u00e9|\u662f|\u4e3a|\u9009|\u306f|\uc740"
)
_CERTAIN = r"is|must\ be|should\ be|would\ be|has\ to\ be|has\ got\ to\ be"
_SURELY = (
    r"(?:,?\ (?:(?:most\ |very\ )?(?:likely|probably|certainly|surely|definitely|clearly|obviously)"
    r"|indeed|simply|actually|then|thus|therefore|of\ course),?)"
)
_HOLDS = (
    r"(?:is|are|(?:must|should|would|has\ to)\ be|(?:seems|appears|looks)(?:\ to\ be)?)"
    rf"{_SURELY}?\s"
)
_RIGHT = (
    r"(?:correct|right|true|most\ (?:plausible|likely)|the\ (?!wrong|incorrect|false|worst|least)"
    r"(?:(?:most\ )?\w{1,12}\ )?(?:answer|choice|option|one))\b"
)
_TITLES = (
    "correct|correction|elimination|final|solution|result|response|output|prediction|label"
    "|decision|conclusion|verdict"
)
_TURNS = r"actually|rather|sorry|scratch\sthat|second\sthought|I\smean|edit|hmm+"
_IT_IS = re.compile(r"\b(?:it|that|this)(?:['\u2019]s|\ is)\s(?P<text>[^\n]{1,200})", re.IGNORECASE)
_BEFORE = (
    r"(?:[ \t]{0,8}(?:(?:\#{1,6}|[-*>\u2022\u2705\u2714\u2192]|=>|\U0001f449|[0-9]\.)\ |<b>|__?))?"
    r"[ \t]{0,8}"
)
"""What may stand before a label on its line."""
_SIGNS = r"(?:\s?(?:[\u2705\u2714]\ufe0f?|</b>|__?))?"
_DRESS = r"\\(?:(?:text|mathrm|mathbf)(?:bf|rm|it|sf)?\s?\{|(?:bf|rm|it)\s)"


@functools.lru_cache(maxsize=128)
def _patterns(labels: tuple[str, ...]) -> _Patterns:
    names = sorted(labels, key=len, reverse=True)
    label = "(?:" + "|".join(map(re.escape, names)) + ")"
    # In prose a letter is a label only where it is a capital; a word always is.
    capital = "|".join(f"(?-i:{name.upper()})" if len(name) == 1 else name for name in names)
    capital = f"(?:{capital})"
    article = "|".join(name for name in ("a", "i") if name in labels)
    opening, closing = r"(?:\\\(|[*_(\[{\"'`$ \u3010]){0,6}", r"[*_)\]}\"'`$\u3011]{0,6}+"
    ended = r"(?!'?[^\W_]|_[^\W_]|[.:/\u2013-]\d|[\u0300-\u036f])"
    one = rf"{opening}(?<!\w){label}{ended}{closing}"
    marked = rf"{opening}(?<!\w){capital}{ended}{closing}"
    elsewhere = r"(?!\ (?:is|was|isn|wasn|can|does|would|has|fails)\b)"
    no_word = r"(?!\ *(?-i:[ai])\ [A-Za-z]{2})"
    joint = r"(?:[,;/&+|]|\bor\b|\band\b)"
    more = (
        rf"(?:\ {{0,2}}{joint}{{1,2}}\ {{0,2}}(?:or\b|and\b)?{no_word}{one}{elsewhere}"
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
    ends = r"(?=\ {0,2}(?:[.!,;:<\n\u2014\u2013-]|because\b|since\b|as\b|by\b|$))"
    flags = re.IGNORECASE | re.MULTILINE
    stated = [
        # The answer is B; Answer: B; I choose B; \boxed{B}; <answer>B
        (
            rf"(?:(?<![A-Za-z])(?:{_ANSWERS})[*_\"'\u3011]{{0,3}}(?:\s?(?:{_IS})"
            rf"{_SURELY}?)?(?:\s(?:option|choice|letter|la|(?:a\ )?letra))?"
            rf"\s?(?:[-=]>|[:=\u2192\u21d2\u2014\u2013-])?[*_]{{0,3}}\s{{0,3}}"
            rf"(?:\u2026|\.\.\.|<(?:b|strong|em)>)?\s?"
            rf"|\\f?box(?:ed)?\{{\s?(?:{_DRESS})?|<(?:final_?)?(?:answer|choice|response)>\s{{0,3}})"
            rf"(?P<said>{one}{more}){no_article}"
        ),
        # after a title, as in "Correct: B"
        (
            rf"\b(?:{_TITLES})[*_]{{0,3}}\s?[:=][*_]{{0,3}}\s{{0,3}}"
            rf"(?P<titled>{marked}{more}){no_article}"
        ),
        # It must be B; I go with B; I think B; so, B; not A but B
        (
            rf"(?:\b(?:it|that|this)(?:['\u2019]s|\s(?:{_CERTAIN})){_SURELY}?|^(?:must|has\sto)\sbe"
            rf"|\b(?:option|choice|letter)(?=\s{marked}(?!:))|\b(?:go|going|went)\swith"
            rf"|^(?:definitely|certainly|clearly|probably|most\slikely|surely|in\sconclusion,)"
            rf"|\b(?:leaves|gives|corresponds\sto|(?:exception|odd\sone\sout|key)\sis)|\u2192"
            rf"|\b(?:(?:(?:in)?correct|true|false|wrong)\s)?statement\sis"
            rf"|\b(?:no(?:\swait)?[,:.]|(?:{_TURNS})[,:.]?)(?:\smaybe|\sperhaps)?"
            rf"|\bI(?:['\u2019]d|\swould)?\s(?:say|think|believe|guess)"
            rf"|\b(?:therefore|thus|hence|so)[,:]?"
            rf"|(?:\bnot|n['\u2019]t)\s{marked},?\ but(?:\srather)?)"
            rf"\s(?P<told>{marked}{more}){ends}"
        ),
        # B is correct
        (
            rf"(?<![\w'])(?P<held>{marked}{more})\s(?:{_HOLDS}{_RIGHT}|it\sis\b)"
            r"(?!,?\s(?:only\ )?(?:if|when)\b)"
        ),
        rf"\bonly\s(?:option\s)?(?P<lone>{marked})\s[a-z]{{3,9}}s\b",
    ]
    return _Patterns(
        stated=re.compile("|".join(stated), flags),
        alone=re.compile(
            rf"^{_BEFORE}(?:\\\()?(?P<labels>{one})(?:\\\))?\s?[.:!;,]?{closing}{_SIGNS}[ \t\r]*$",
            flags,
        ),
        listed=re.compile(
            rf"^{_BEFORE}[*_]{{0,3}}(?:(?:option\ |choice\ )?"
            rf"(?P<labels>{label})[*_]{{0,3}}(?:[).:](?!\d)|\ [(](?!{label}\)))"
            rf"|(?P<capital>{capital})(?:[,;!](?!\ ?{label}\b)|\ (?:since|because)\b"
            rf"|\ [\u2013\u2014-]\ (?!{label}\b)))",
            flags,
        ),
        marked=re.compile(
            rf"(?:[(\[\u3010]|\*\*|<b>|__)(?P<labels>{label})(?:[)\]\u3011]|\*\*|</b>|__)", flags
        ),
        joined=re.compile(r"[)\]*\s]*(?:[,;/&+|]|\bor\b|\band\b|,\s(?:or|and)\b)[(\[*\s]*"),
        label=re.compile(rf"(?<!\w){label}(?!\w)", re.IGNORECASE),
        another=re.compile(
            rf"(?:[.,;:/&+|=?(\[>\u2014\u2013-]"
            rf"|\b(?:or|and|but|maybe|perhaps|possibly|probably|alternatively|also|be|even|likely"
            rf"|otherwise|else|then|plus|well\ as|along\ with|failing\ that|though))"
            rf"\s{{0,2}}\}}?\s?{marked}(?=\s{{0,2}}(?:[.,;:!?/=)}}\n]|--|$)|(?:\s(?:is|are|might|could|may))?"
            r"\s(?:also|equally|just\ as|correct|right|possible|plausible|too|as\ well|be)\b)",
            flags,
        ),
    )


_DENIED = re.compile(
    r"(?:\b(?:wrong|incorrect|false|not|never|neither|doubt|unlikely|worst|least(?:\ likely)?)"
    r"|n['\u2019]t)\s*"
    r"(?:(?:the|my|correct|right|best|think|believe|say|that)\s+)*\Z",
    re.IGNORECASE,
)
_REFUTED = re.compile(
    r"[^\w\n]{0,4}\s(?:(?:is|was|seems|looks)\s(?:also\ |clearly\ |definitely\ )?"
    r"(?:the\ )?(?:wrong|incorrect|false|worst|least|not|out|invalid|impossible)\b"
    r"|(?:is|was|does|ca)n['\u2019]t\b|cannot\b|can\ be\ (?:ruled|eliminated|excluded))"
    r"|\s?\?\s{1,3}(?:no\b|not\b|I\ (?:don|doubt))",
    re.IGNORECASE,
)
"""What denies an option after it was named: *is wrong*, *? No*."""
_REST = re.compile(
    r"(?:(?!\.(?:\s|\Z)(?!\s?(?:or|also|alternatively|otherwise|maybe|perhaps|possibly"
    r"|\w{1,3}\ (?:is|would\ be|could\ be)\ (?:also|equally))\b)"
    r"|\b(?:because|since|(?<!well\ )as(?!\ well)|for|due|not|rather|instead)\b)[^\n]){0,200}",
    re.IGNORECASE,
)
"""What goes on with a statement: to the end of the sentence, or to its reasons or a denial."""
_TAKEN_BACK = re.compile(
    r"\b(?:wait|actually|no|not|correction|wrong|incorrect|mistaken?|sorry|instead|rather|scratch"
    r"|second\ thought|I\ mean|edit|hmm+)\b"
    r"|n['\u2019]t\b",
    re.IGNORECASE,
)
_WIDE_SPACES = re.compile(r"(?<=\S) {2,}")
_WIDE = re.compile("[\uff01-\uff5e\u3002]")
_CJK = "[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_BETWEEN_SCRIPTS = re.compile(rf"(?<={_CJK})(?=[A-Za-z0-9(])|(?<=[A-Za-z0-9)])(?={_CJK})")


def _narrow(text: str) -> str:
    """Full-width characters as ASCII has them, labels apart from words, single spaces."""
    if "  " in text:
        text = _WIDE_SPACES.sub(" ", text)
    if text.isascii():
        return text
    text = _WIDE.sub(lambda wide: "." if wide[0] == "\u3002" else chr(ord(wide[0]) - 0xFEE0), text)
    return _BETWEEN_SCRIPTS.sub(" ", text)


def _chosen(text: str, options: Mapping[str, str], pick: Pick) -> str | None:
    """Return the label the answer chose, or None."""
    text = _narrow(said(text))
    patterns = _patterns(tuple(options))
    statements = list(_statements(text, patterns))
    if statements:
        stated = {"last": statements[-1:], "first": statements[:1], "only": statements}[pick]
        named = [_named(match, patterns) + _others(match, patterns, options) for match in stated]
        return _single(choose(named, pick, key=frozenset))
    for pattern in (patterns.alone, patterns.listed, patterns.marked):
        found = [match for match in in_parts(pattern, text) if not _denied(match)]
        if not found:
            continue
        named = [_named(match, patterns) for match in found]
        if len(options) >= _LISTED_ALL and len({label for one in named for label in one}) == len(
            options
        ):
            return None
        if pick == "last" and _are_joined(found[-2:], patterns):
            return None
        named = [
            one + _others(match, patterns, options) for one, match in zip(named, found, strict=True)
        ]
        return _single(choose(named, pick, key=frozenset))
    return _by_text(text, options)


def _are_joined(found: list[re.Match[str]], patterns: _Patterns) -> bool:
    """Whether nothing but *and*, *or* or the like stands between two."""
    one, other = found[0], found[-1]
    return patterns.joined.fullmatch(one.string, one.end(), other.start()) is not None


def _statements(text: str, patterns: _Patterns) -> Iterator[re.Match[str]]:
    """What states a choice.

    After a firm statement a loose one (*it is B*) counts only where the text has taken it back.
    """
    is_firm, read = False, 0
    for match in in_parts(patterns.stated, text):
        if _denied(match):
            continue
        if match["said"] or match["titled"]:
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


def _others(match: re.Match[str], patterns: _Patterns, options: Mapping[str, str]) -> list[str]:
    """Other options that the sentence goes on to name: a statement that takes itself back."""
    start = match.end()
    for option in options.values():
        place = match.string.find(option, start, start + len(option) + 4) if option else -1
        if place >= 0:
            start = place + len(option)
            break
    rest = _REST.match(match.string, start)
    return (
        []
        if rest is None
        else [
            label.casefold()
            for other in patterns.another.finditer(match.string, start, rest.end())
            for label in patterns.label.findall(other[0])
        ]
    )


def _named(match: re.Match[str], patterns: _Patterns) -> list[str]:
    said = next(part for part in match.groups() if part is not None)
    return [label.casefold() for label in patterns.label.findall(said)]


def _single(labels: list[str] | None) -> str | None:
    return labels[0] if labels and len(set(labels)) == 1 else None


def _by_text(text: str, options: Mapping[str, str]) -> str | None:
    """Return the label whose option's text the answer is, or its last box, tag or statement."""
    parts = [*extractions(text, "boxed")[-1:], *extractions(text, "answer_tag")[-1:]]
    parts += [match["text"] for match in _IT_IS.finditer(text)][-1:]
    for part in (text, *(part.strip("*_ ") for _, part in statements(text)[-1:]), *parts):
        named = [label for label, option in options.items() if option and same_answer(part, option)]
        if len(named) == 1:
            return named[0]
    return None
