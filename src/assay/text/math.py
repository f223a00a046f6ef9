r"""Compare mathematics: ``\frac{1}{2}`` and ``0.5``, ``2\sqrt{3}`` and ``\sqrt{12}``.

Most answers are decided here, by their text or as numbers. The rest goes to math-verify in a
process of its own, kept warm and killed when it takes too long: an answer such as ``9^{9^{9^9}}``
would otherwise hold the grader for good. Signals are not used, so any thread may compare.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from fractions import Fraction

from assay.errors import InputError, nearest
from assay.text.extract import (
    IN_WORDS,
    NOT,
    Pick,
    boxed_together,
    check_pick,
    extract_answer,
    extractions,
    in_one_line,
    last_line,
    said,
    statements,
)
from assay.text.formula import (
    Form,
    bracket,
    has_variables,
    left_to_do,
    scaled,
    sides,
    spelled,
    split_unit,
)
from assay.text.normal_form import as_text, reference_text
from assay.text.numbers import Number, check_finite, parse_number, restates

_MOST_CHARACTERS = 20_000
_ROUNDING = Fraction(1, 10**5)  # math-verify compares decimals rounded to six places


def math_equal(
    answer: object,
    expected: object,
    *,
    form: Form | None = None,
    timeout_seconds: float = 5.0,
    pick: Pick | None = None,
    extract: str | None = None,
) -> float:
    r"""Whether the answer is mathematically equal to the expected one.

    Without ``extract`` the answer proper is, in this order: the content of the last ``\boxed{}``,
    with those of the same sentence (``\boxed{2} and \boxed{3}`` is ``2, 3``); of the last
    ``<answer>`` tag; what the last *answer is* or *answer:* says, without its reasons and what it
    denies; the last line, or the displayed formula that ends the text. Where there is a box,
    nothing outside it counts, and an empty box equals nothing.

    Equal are: the same text but for spelling (``2√3``, ``2*sqrt(3)``, ``2\sqrt{3}``); the same
    number; and what math-verify finds equal (algebra, sets, intervals, equations). A per cent
    equals its number and its fraction. A unit may be left out; another unit is another answer, and
    so are other brackets around a list: ``\{1,2\}`` is not ``(1,2)``.

    An answer may not leave the work to the grader: where a number is expected, ``\binom{20}{10}``
    is not 184756. ``1.5 \times 10^3``, fractions of two whole numbers and degrees are numbers; but
    ``84/2`` is not 42. Nor may it be a relation (``4 \to 5``, ``x \ge 5``), or a chain of which it
    is one side.

    Args:
        answer: What the model said; an answer proper of more than 20,000 characters scores 0.0.
        expected: The right answer: LaTeX (with or without dollars) or a number; of several boxes,
            the list of what is in them.
        form: ``computed``: the answer leaves no kind of operation to be done that the expected one
            does not have (a sum, a root, a logarithm, a power, a product, a further term ...).
            ``any``: it may. By default numbers must be computed; where the expected answer has
            variables, an answer may not leave a sum, a limit, an integral, a derivative or a
            determinant.
        timeout_seconds: CPU seconds one comparison may take (four times as long by the clock).
            An answer that takes longer scores 0.0.
        pick: Which box, tag or extraction counts where there are several; the last by default.
        extract: Where in the answer to look (see `extract_answer`).

    Returns:
        1.0 or 0.0.

    Raises:
        InputError: ``expected`` is blank, a list or an object, or cannot be read in time, or an
            option is invalid.
        MissingExtraError: math-verify is needed and not installed.
        GraderError: The process that does the mathematics could not be started.
    """
    asked = _read(answer, expected, form, (timeout_seconds, pick, extract))
    if not isinstance(asked, _Asked):
        return asked
    from assay.text.killable import MATHEMATICS  # costs more than most answers to compare

    read = MATHEMATICS.compare(asked.wanted.latex, asked.answer, timeout_seconds)
    if asked.is_prose and isinstance(read, str):  # only now is it known what was the answer in it
        read = read.replace("*(1/100)", r"\%")
        return float(not _left(_Formula.of(read), asked.wanted, form))
    return float(bool(read))


def math_decided(
    answer: object,
    expected: object,
    *,
    form: Form | None = None,
    timeout_seconds: float = 5.0,
    pick: Pick | None = None,
    extract: str | None = None,
) -> float | None:
    """What `math_equal` says where that takes no algebra, and no other process; else None."""
    asked = _read(answer, expected, form, (timeout_seconds, pick, extract))
    return None if isinstance(asked, _Asked) else asked


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is left to algebra."""

    answer: str
    wanted: _Formula
    is_prose: bool


def _read(
    answer: object,
    expected: object,
    form: Form | None,
    options: tuple[float, Pick | None, str | None],
) -> float | _Asked:
    """Whether they are equal, or what algebra is to compare."""
    timeout_seconds, pick, extract = options
    gold = _gold(expected)
    check_finite("timeout_seconds", timeout_seconds, above=0.0)
    check_pick(pick)
    if form not in (None, "computed", "any"):
        raise InputError(f"unknown form {form!r}", hint=nearest(str(form), ["computed", "any"]))
    found = _answer_proper(as_text(answer), extract, pick)
    if found is None or not found.text.strip() or len(found.text) > _MOST_CHARACTERS:
        return 0.0
    one, other = _plain(found.text), _plain(gold)
    decided = one == other or _same_number(_number(one), _number(other))
    if decided is None:
        return _formulas(found, _wanted(gold), form)
    return float(decided and (form == "any" or not _undivided(found.text, gold)))


def _formulas(found: _Found, wanted: _Formula, form: Form | None) -> float | _Asked:
    mine, refused = _judged(found, wanted, form)
    if refused is None:
        return 1.0
    if refused:
        return 0.0
    if found.sentence:
        return _Asked(found.sentence, wanted, is_prose=True)
    decided = _same_number(mine.number, wanted.number)
    return _Asked(mine.latex, wanted, is_prose=False) if decided is None else float(decided)


def _judged(found: _Found, wanted: _Formula, form: Form | None) -> tuple[_Formula, str | None]:
    """An answer, and why it is refused whatever it is equal to; None where it reads as expected."""
    mine = _quantity(_Formula.of(found.text, is_prose=bool(found.sentence)), wanted)
    if mine.plain == wanted.plain or mine.words == wanted.words:
        return mine, None
    if (refused := _contradicts(mine, wanted)) or found.sentence:
        is_choice = _LISTED.search(found.text) and not _SEVERAL.search(wanted.text)
        return mine, refused or ("several numbers" if is_choice else "")
    return mine, _left(mine, wanted, form)


def _gold(expected: object) -> str:
    if expected is None or not (gold := reference_text("expected", expected).strip()):
        raise InputError("expected is blank", hint="write the right answer, such as '\\frac{1}{2}'")
    return (boxed_together(gold, None) if "box" in gold else None) or gold


def fault(
    answer: object,
    expected: object,
    form: Form | None,
    extract: str | None,
    pick: Pick | None,
) -> str:
    """Why an answer is refused whatever it is equal to; empty where it is not."""
    found = _answer_proper(as_text(answer), extract, pick)
    if found is None or len(found.text) > _MOST_CHARACTERS:
        return ""
    return _judged(found, _wanted(_gold(expected)), form)[1] or ""


# --- What to compare -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    """The answer proper, and the sentence it stands in where that is prose."""

    text: str
    sentence: str = ""


def answer_proper(answer: object, extract: str | None, pick: Pick | None) -> str | None:
    """What of an answer `math_equal` compares, or None."""
    found = _answer_proper(as_text(answer), extract, pick)
    return None if found is None else found.text


def _answer_proper(text: str, extract: str | None, pick: Pick | None) -> _Found | None:
    if extract is None:
        text = _QED.sub("", said(text))
        if "box" in text and (boxed := boxed_together(text, pick)) is not None:
            return _Found(boxed)
        if not extractions(text, extract := "answer_tag"):
            return _stated(in_one_line(text))
    found = extract_answer(text, extract, pick=pick)
    return None if found is None else _Found(found)


def _stated(text: str) -> _Found:
    """What the last statement of a text says, or else its last line."""
    sentence, part = stated[-1] if (stated := statements(text)) else (last_line(text),) * 2
    if (again := _RESTATED.fullmatch(part.strip())) and _is_again(again["one"], again["other"]):
        return _Found(again["one"])
    if not _WORD.search(part):
        return _Found(part)
    if len(part) <= _LONGEST_SENTENCE:
        part, sentence = (_FURTHER.sub(r"\1", scaled(words)) for words in (part, sentence))
        sentence = _DISMISSED.sub(" ", sentence)
    return _Found(part, sentence)


_LONGEST_SENTENCE = 2_000
_FORMULA = r"(?:\$[^$\n]{1,200}\$|\\\([^\n]{1,200}?\\\)|[-\u2212]?\$?[0-9]++(?:[.,/][0-9]++)*+%?)"
_FURTHER = re.compile(
    rf"\A([^\n]*?{_FORMULA}[^\n]*?)"
    r"(?:\.\s+[A-Z(]|[,;]?\s(?:since|because|where|which|when|whereas)\b|\s\((?!mod)).*",
    re.DOTALL,
)
"""The next sentence, or the reasons, behind a formula that stands before them."""
_DISMISSED = re.compile(
    rf"(?:{NOT}|\b(?:than|instead\ of|except|exceeds)|thing\ but)\s+{_FORMULA}"
    rf"|{_FORMULA}\s+(?:times|plus|minus|divided\ by|multiplied\ by)\s+{_FORMULA}"
    rf"|{_FORMULA}\s+is\s+(?:wrong|incorrect|not)\b",
    re.IGNORECASE,
)
"""Formulas in a sentence that are said not to be the answer, or not to be computed."""
_QED = re.compile(r"\$?\\(?:black)?square\$?|\u220e|\u25a0")
_RESTATED = re.compile(
    r"(?P<one>[^()]{1,40}?)\s(?:or\s|\((?:(?:about|approximately|or|i\.e\.,?)\s|[=\u2248]\s?)?)"
    r"(?P<other>[^()]{1,40})\)?[\s.!*]*"
)


def _is_again(one: str, other: str) -> bool:
    first, second = (_number(_plain(spelled(written))) for written in (one, other))
    return first is not None and second is not None and restates(first, second)


_WORD = re.compile(r"(?<![\\A-Za-z])(?!(?:sin|cos|tan|log|ln|exp|sqrt|pi|and|or)\b)[A-Za-z]{2,}")
"""A word about a formula, which math-verify must look for in such prose."""
# A comma that three digits follow after a space does not separate thousands.
_SPACING = re.compile(
    r"\\(?:left|right)(?![A-Za-z])|\\[!;: ]|(?<![,\s])\\,"
    r"|(?<![\w,])\s+|(?<=,)\s+(?![0-9]{3}(?![0-9]))|\s+(?!\w)"
)
_AROUND = " \t\r\n$*`\u3002"


def _plain(text: str) -> str:
    text = text.strip(_AROUND).removesuffix(".").strip(_AROUND)
    text = text.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac")
    return _SPACING.sub("", text)


def _same_number(mine: Number | None, theirs: Number | None) -> bool | None:
    if mine is None or theirs is None or mine.percent:
        return None
    if theirs.percent:  # a unit may be left out
        return True if mine.value == theirs.value else None
    if mine.value is None or theirs.value is None:
        return None
    difference = abs(mine.value - theirs.value)
    if difference <= _ROUNDING and difference:
        return None
    return not difference


_TURNED = re.compile(r"(?P<value>[^=]+)=\s*(?P<name>[A-Za-df-hj-z](?:_\w|_\{[^{}]*\})?)\s*")
"""An equation whose last side is a name: ``5 = x``, which is read as ``x = 5``."""
_FRACTION = re.compile(r"(-?)\\frac\{(-?[0-9]{1,18})\}\{([0-9]{1,18})\}")
_NAMES = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMERALS = {name: value for value, name in enumerate(_NAMES.split())}


def _number(text: str) -> Number | None:
    """A text that is one number, or one fraction of whole numbers in LaTeX."""
    if fraction := _FRACTION.fullmatch(text):
        sign, over, under = fraction.groups()
        text = over.removeprefix("-") if sign and over.startswith("-") else f"{sign}{over}"
        text = f"{text}/{under}"
    if text.isalpha() and (value := _NUMERALS.get(text.lower())) is not None:
        return Number(text=text, value=Fraction(value))
    # In mathematics k is a variable, and no thousand.
    return None if text.rstrip(" .").endswith("k") else parse_number(text)


@dataclass(frozen=True, slots=True)
class _Formula:
    """An answer, the expected one or the other, in one spelling."""

    text: str
    plain: str
    words: str
    latex: str
    units: frozenset[str]
    sides: list[str]
    number: Number | None

    @classmethod
    def of(cls, text: str, *, is_prose: bool = False) -> _Formula:
        """Read a text; prose has no sides, and is no number."""
        written = spelled(text.replace("\\$", "").strip(_AROUND).removesuffix(".").strip(_AROUND))
        if (turned := _TURNED.fullmatch(written)) and not has_variables(turned["value"]):
            written = f"{turned['name']}={turned['value']}"
        bare, units = split_unit(written)
        return cls(
            text=written,
            plain=_plain(written),
            words=_words(written),
            latex=f"${_both(written)}$",
            units=units,
            sides=[bare] if is_prose else [side.strip() for side in sides(bare)],
            number=None if is_prose else _number(_plain(bare)),
        )


_EITHER_SIGN = re.compile(r"(?:[^=]*=)?([^=]*(?<!\\)\{[^{}]*\\pm[^=]*)")


def _both(written: str) -> str:
    """Both values of a fraction or root with a plus-minus sign, of which algebra reads none."""
    if written.count("\\pm") != 1 or not (either := _EITHER_SIGN.fullmatch(written)):
        return written
    return ", ".join(either[1].replace("\\pm", sign) for sign in "+-")


_SPACES = re.compile(r"(?<![0-9,])\s+|\s+(?![0-9])")
_LONG_WORD = re.compile(r"[A-Za-z]{3}|\bno\b", re.IGNORECASE)
_DRESSED = re.compile(rf"{IN_WORDS}([^{{}}]*)\}}")


def _words(written: str) -> str:
    """What a text reads without spaces; of words the case does not count."""
    bare = _SPACES.sub("", _DRESSED.sub(r"\1", written).replace("\\ ", " ")).removesuffix(".")
    return bare if "\\" in bare or not _LONG_WORD.search(bare) else bare.casefold()


_SUM = re.compile(r"\|?[A-Za-z](?:\s*(?:(?:[-+/]|\\cdot|\\times)\s*)?[A-Za-z])+\|?")


def _quantity(mine: _Formula, wanted: _Formula) -> _Formula:
    """The value in ``m+n = 42``, which is no equation to be solved."""
    if len(mine.sides) != len(("name", "value")) or not _SUM.fullmatch(mine.sides[0]):
        return mine
    is_value = not has_variables(mine.sides[1]) and len(wanted.sides) == 1
    return _Formula.of(mine.sides[1]) if is_value else mine


_wanted = functools.lru_cache(maxsize=256)(_Formula.of)
_HEDGED = re.compile(r"\b(?:maybe|perhaps)\b")
_OR = re.compile(r"\bor\b")
_SEVERAL = re.compile(r",|;|\\pm|\\cup|\band\b|\bor\b")
_DENIED = re.compile(
    rf"[^0-9$\\]{{0,200}}{NOT}\s+(?:[^A-Za-z,;$]*|\$[^$]*\$|\\\([^$]*\\\))\s*[.!]?",
    re.IGNORECASE,
)
"""A sentence that says of one formula that it is not the answer, and says no more."""
_TAKEN_BACK = re.compile(
    rf"{NOT}|\?|\b(?:wrong|incorrect|false|except|but|unless|if|maybe|perhaps|possibly|probably)\b",
    re.IGNORECASE,
)
"""Words in a formula that say that it is not so."""
_WORKED_ON = re.compile(
    r"\b(?:minus|negative|twice|thrice|double|triple|half|at\ (?:most|least)|up\ to"
    r"|(?:less|more|fewer|greater|larger|smaller)\ than"
    r"|(?:half|double|triple|square|cube|root|multiple|reciprocal|inverse|opposite)\ of)\s*\Z"
    r"|\A\s*(?:squared|cubed|factorial|choose|mod|and\ a\ half)\b",
    re.IGNORECASE,
)
"""Words in a formula that make another number of the one beside them, or a bound."""
_LISTED = re.compile(r"[0-9]\$?(?:,\s+(?:and\s+)?|\s+and\s+)\$?[-+]?[0-9][0-9.]*+\$?[\s.!*]*\Z")
"""Several numbers at the end of a sentence, of which algebra takes the last."""
_ANOTHER = re.compile(rf"[0-9]\s*{IN_WORDS}[^{{}}]*\}}\s*[0-9]")
_NEAR = Fraction(1, 20)  # an approximation may be rounded to one or two digits


def _contradicts(mine: _Formula, wanted: _Formula) -> str:
    """Why an answer is wrong on its face, in ways that algebra looks past; empty if it is not."""
    brackets = bracket(mine.text), bracket(wanted.text)
    if mine.units and wanted.units and mine.units != wanted.units:
        return "another unit"
    if _HEDGED.search(mine.text) or (_OR.search(mine.text) and not _SEVERAL.search(wanted.text)):
        return "a choice left open"
    if all(brackets) and brackets[0] != brackets[1]:
        return "other brackets"
    if told := _told(mine, wanted):
        return told
    if _ANOTHER.search(mine.text) and not _SEVERAL.search(wanted.text):
        return "another number beside it"
    return "" if len(mine.sides) == 1 else _chained(mine, wanted)


def _told(mine: _Formula, wanted: _Formula) -> str:
    """Why the words in an answer make another answer of it."""
    words, theirs = (_DRESSED.findall(formula.text) for formula in (mine, wanted))
    if _DENIED.fullmatch(mine.text.strip()) or (
        any(map(_TAKEN_BACK.search, words))
        and not any(map(_TAKEN_BACK.search, theirs))
        and "{cases}" not in wanted.text
    ):
        return "a denial"
    if any(map(_WORKED_ON.search, words)) and not any(map(_WORKED_ON.search, theirs)):
        return "words that make another number of it"
    return ""


def _chained(mine: _Formula, wanted: _Formula) -> str:
    """Why an equation is no answer: its numbers differ, or a name follows what it is equal to."""
    numbers = [number.value for side in mine.sides if (number := _number(_plain(side)))]
    values = [value for value in numbers if value is not None]
    slack = _NEAR * max(map(abs, values), default=0) if "\\approx" in mine.text else 0
    if values and max(values) - min(values) > slack:
        return "an equation that does not hold"
    named = [has_variables(side) for side in mine.sides]
    if named != sorted(named, reverse=True) and not has_variables(wanted.sides[-1]):
        return "a chain of equations"
    return ""


def _left(mine: _Formula, wanted: _Formula, form: Form | None) -> str:
    """What an answer leaves to be done (see `left_to_do`)."""
    answer, expected = _proper(mine), _proper(wanted)
    if form != "any" and _undivided(answer, expected):
        return "a division"
    return left_to_do(answer, expected, form)


_DIVISION = re.compile(r"\\[dt]?frac|/|(?<=[0-9])\s*:\s*(?=[0-9])")


def _undivided(answer: str, expected: str) -> bool:
    """Whether an answer is a fraction or ratio that is whole, as the expected number is."""
    if not _DIVISION.search(answer) or _DIVISION.search(expected):
        return False
    wanted = _number(_plain(expected))
    if wanted is None or wanted.value is None or wanted.value.denominator != 1:
        return False
    number = _number(_plain(answer))
    return ":" in answer or (number is not None and number.value == wanted.value)


_NAME = re.compile(r"[\\A-Za-z0-9_{}(),' ]+")


def _proper(formula: _Formula) -> str:
    """The side of an equation that is the answer: the last, or what is roughly that."""
    *before, last = formula.sides
    if not before:
        return last
    variables = [has_variables(side) for side in formula.sides]
    if "\\approx" in formula.text and len(before) == 1 and not variables[0]:
        return before[0]
    if not any(variables) or (variables[0] and _NAME.fullmatch(before[0])):
        return last
    return "=".join(formula.sides)
