r"""Compare mathematics: ``\frac{1}{2}`` and ``0.5``, ``2\sqrt{3}`` and ``\sqrt{12}``.

Most answers are decided here, by their text or as numbers. The rest goes to math-verify in a
process of its own, kept warm and killed when it takes too long: an answer such as ``9^{9^{9^9}}``
would otherwise hold the grader for good. Signals are not used, so any thread may compare.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from assay.errors import InputError
from assay.text.extract import Pick, check_pick, extract_answer, extractions, last_line, statements
from assay.text.normal_form import as_text, reference_text
from assay.text.numbers import Number, check_finite, parse_number

__all__ = ["answer_proper", "math_decided", "math_equal"]

_MOST_CHARACTERS = 20_000
_ROUNDING = Fraction(1, 10**5)  # math-verify compares decimals rounded to six places


def math_equal(
    answer: object,
    expected: object,
    *,
    timeout_seconds: float = 5.0,
    pick: Pick | None = None,
    extract: str | None = None,
) -> float:
    r"""Whether the answer is mathematically equal to the expected one.

    Without ``extract`` the answer proper is, in this order: the content of the last ``\boxed{}``;
    of the last ``<answer>`` tag; what the last *answer is* or *answer:* says; the last line. Where
    there is a box, nothing outside it counts, and an empty box equals nothing.

    Equal are: the same text but for spacing; the same number; and what math-verify finds equal
    (algebra, sets, intervals, equations). A per cent equals its number and its fraction.

    Args:
        answer: What the model said; an answer proper of more than 20,000 characters scores 0.0.
        expected: The right answer: LaTeX (with or without dollars or a box) or a number.
        timeout_seconds: CPU seconds one comparison may take (four times as long by the clock).
            An answer that takes longer scores 0.0.
        pick: Which box, tag or extraction counts where there are several; the last by default.
        extract: Where in the answer to look (see `extract_answer`).

    Returns:
        1.0 or 0.0.

    Raises:
        InputError: ``expected`` is blank or cannot be read in time, or an option is invalid.
        MissingExtraError: math-verify is needed and not installed.
        GraderError: The process that does the mathematics could not be started.
    """
    read = _read(answer, expected, timeout_seconds, pick, extract)
    if not isinstance(read, tuple):
        return read
    from assay.text.killable import MATHEMATICS  # costs more than most answers to compare

    return float(MATHEMATICS.compare(*read, timeout_seconds))


def math_decided(
    answer: object,
    expected: object,
    *,
    timeout_seconds: float = 5.0,
    pick: Pick | None = None,
    extract: str | None = None,
) -> float | None:
    """What `math_equal` says where that takes no algebra, and no other process; else None.

    Raises:
        InputError: As there.
    """
    read = _read(answer, expected, timeout_seconds, pick, extract)
    return None if isinstance(read, tuple) else read


def _read(
    answer: object,
    expected: object,
    timeout_seconds: float,
    pick: Pick | None,
    extract: str | None,
) -> float | tuple[str, str]:
    """Whether they are equal, or what algebra is to compare: the expected answer and the other."""
    gold = _gold(expected)
    check_finite("timeout_seconds", timeout_seconds, above=0.0)
    check_pick(pick)
    found = _answer_proper(as_text(answer), extract, pick)
    if found is None or not found.text.strip() or len(found.text) > _MOST_CHARACTERS:
        return 0.0
    decided = _decide(found.text, gold)
    return (_in_dollars(gold), found.latex()) if decided is None else float(decided)


def _gold(expected: object) -> str:
    if expected is None or not (gold := reference_text("expected", expected).strip()):
        raise InputError("expected is blank", hint="write the right answer, such as '\\frac{1}{2}'")
    boxes = extractions(gold, "boxed")
    return boxes[-1] if boxes and boxes[-1] else gold


# --- What to compare -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    """The answer proper, and the sentence it stands in where that is prose."""

    text: str
    sentence: str = ""

    def latex(self) -> str:
        return self.sentence or _in_dollars(self.text)


def answer_proper(answer: object, extract: str | None, pick: Pick | None) -> str | None:
    """What of an answer `math_equal` compares, or None."""
    found = _answer_proper(as_text(answer), extract, pick)
    return None if found is None else found.text


def _answer_proper(text: str, extract: str | None, pick: Pick | None) -> _Found | None:
    if extract is not None:
        found = extract_answer(text, extract, pick=pick)
        return None if found is None else _Found(found)
    for place in ("boxed", "answer_tag"):
        if extractions(text, place):
            found = extract_answer(text, place, pick=pick)
            return None if found is None else _Found(found)
    said = statements(text)
    if said:
        sentence, part = said[-1]
        return _Found(part, sentence if _is_prose(part) else "")
    last = last_line(text)
    return _Found(last, last if _is_prose(last) else "")


_WORD = re.compile(r"(?<![\\A-Za-z])(?!(?:sin|cos|tan|log|ln|exp|sqrt|pi)\b)[A-Za-z]{2,}")


def _is_prose(text: str) -> bool:
    """Whether there are words about the formula, which math-verify must look for."""
    return _WORD.search(text) is not None


def _in_dollars(text: str) -> str:
    if "$" in text or "\\(" in text or "\\[" in text:
        return text
    return f"${text.strip().removesuffix('.')}$"


_SPACING = re.compile(r"\\(?:left|right)(?![A-Za-z])|\\[!,;: ]|(?<!\w)\s+|\s+(?!\w)")


_AROUND = " \t\r\n$*"


def _plain(text: str) -> str:
    text = text.strip(_AROUND).removesuffix(".").strip(_AROUND)
    text = text.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac")
    return _SPACING.sub("", text)


def _decide(text: str, gold: str) -> bool | None:
    """Say whether two answers are equal where that takes no algebra, or None."""
    one, other = _plain(text), _plain(gold)
    if one == other:
        return True
    if _contradicts(text, gold):
        return False
    mine, theirs = _number(one), _number(other)
    if mine is None or theirs is None or mine.percent or theirs.percent:
        return None
    if mine.value is None or theirs.value is None:
        return None
    difference = abs(mine.value - theirs.value)
    if difference <= _ROUNDING and difference:
        return None
    return not difference


_FRACTION = re.compile(r"(-?)\\frac\{(-?[0-9]{1,18})\}\{([0-9]{1,18})\}")


def _number(text: str) -> Number | None:
    """A text that is one number, or one fraction of whole numbers in LaTeX."""
    if fraction := _FRACTION.fullmatch(text):
        sign, over, under = fraction.groups()
        text = over.removeprefix("-") if sign and over.startswith("-") else f"{sign}{over}"
        text = f"{text}/{under}"
    return parse_number(text)


_UNIT = re.compile(r"\\(?:text|mathrm|textrm|textit)\s*\{([^{}]*)\}")
_OR = re.compile(r"\b(?:or|maybe|perhaps)\b|\\text\s*\{\s*or\s*\}")


def _contradicts(text: str, gold: str) -> bool:
    """Whether an answer is wrong on its face, in ways that algebra looks past.

    Two units that differ, a choice left open where the expected answer has none, and an equation
    of two numbers that are not equal (``7=2``, of which algebra would take the right side).
    """
    units, wanted = (
        {unit.strip().lower() for unit in _UNIT.findall(part) if unit.strip()}
        for part in (text, gold)
    )
    if units and wanted and units != wanted:
        return True
    if _OR.search(text) and not _OR.search(gold):
        return True
    sides = [parse_number(side) for side in _plain(text).split("=")]
    values = {side.value for side in sides if side is not None}
    return len(sides) == 2 and None not in sides and len(values) == 2
