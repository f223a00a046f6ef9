r"""Numbers as people and models write them, read exactly.

What is read: ``1234``, ``1,234.50``, ``1_000``, ``1'000``, ``50 000``, ``-5`` (also with U+2212),
``.5``, ``5.``, ``1e3``, ``1.5 x 10^3``, ``10⁶``, ``3/4``, ``\\frac{3}{4}``, ``1 3/4``, ``½``,
``5 million``, ``5k``, ``$5M``, ``50%``, ``$5``, digits of any script. What is not: words
(``seven``), hexadecimal, and digits glued to a Latin letter before them (the 2 of ``v2`` and
``H2O`` is part of a name).

What is part of something larger is no number: the 5 of ``5!``, ``5^2``, ``√5``, ``5π``, ``5x``,
``5±1``, ``5:4``, ``>5``, ``5-3``, ``5,6`` and ``1.5.2``. It has no value, so that it equals
nothing, rather than being left out or read by half. Nor has a number that is denied, the 5 of
``not 5``: whoever says what it is not has not said what it is.

A comma separates thousands only in well-formed groups of three: ``1,234`` is one number.

A currency sign and a per-cent sign are units: ``$5`` is 5 and ``50%`` is 50 (not 0.5). ``k`` right
behind a number, and ``bn`` and the like, are thousands and billions; ``K``, ``M`` and ``B`` are so
behind an amount of money alone, since elsewhere they are kelvins, mols a litre and bytes.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from assay.errors import InputError
from assay.text.extract import NOT, Pick, answer_text, check_pick, choose, in_parts, said
from assay.text.normal_form import RAISED, WIDE, as_text, ascii_digits, spaced_thousands

_MOST_DIGITS = 1_000
"""A number with more digits, or an exponent beyond this, is not a finite number to us."""

_LOOKALIKES = WIDE | str.maketrans(
    {
        **dict.fromkeys("\u2212\ufe63\u2013\u2010\u2011", "-"),
        "\u066b": ".",
        "\u066c": ",",
        "\u066a": "%",
        **dict.fromkeys("\u2044\u2215", "/"),
        "\u2236": ":",
        **dict.fromkeys("\u202f\u2009\u2007", "\u00a0"),
        "\u2019": "'",
    }
)
_MINUS = re.compile(r"(?<![\d)%] )\b(?:[Mm]inus|[Nn]egative) (?=[$\u20ac\u00a3]?\.?\d)")
_RAISED = re.compile("[\u207a\u207b]?[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]{1,20}+")
_FRACTION = re.compile(
    r"(?:([-+])|(?<![-+]))\\[dtc]?frac\s?"
    r"(?:\{((?(1)|-?)[0-9]{1,18})\}|([0-9]))\s?(?:\{([0-9]{1,18})\}|([0-9]))"
)
_SPACED_MINUS = re.compile(r"([=\u2248(] ?)- (?=[$\u20ac\u00a3]?\.?\d|\\[dtc]?frac)")
_IN_LATEX = re.compile(r"(?<=[0-9])(?:\\[,;]|\{,\})(?=[0-9]{3}(?![0-9]))")
_EUROPEAN = re.compile(
    r"""
    (?<![\w.,])[0-9]{1,3}(?:(?:\.[0-9]{3}){1,9}+,[0-9]{1,9}+|(?:\.[0-9]{3}){2,9}+)(?!\w|[.,][0-9])
    | (?<![\w.,])[0-9]{1,3}(?:[ \u00a0]?[0-9]{3}){0,9}+,[0-9]{2}
      (?=[ \u00a0]?(?:\u20ac|EUR\b|PLN\b|z\u0142|kr\b))
    | (?<=\u20ac)[0-9]{1,9}+,[0-9]{2}(?!\w|[.,][0-9])
    """,
    re.VERBOSE,
)
"""What can only be a decimal comma, or points between thousands: several, or a comma behind."""
_IN_ENGLISH = str.maketrans(",", ".", ". \u00a0")
_INDIAN = re.compile(r"(?<![\w.,])[0-9]{1,2}(?:,[0-9]{2}){1,9},[0-9]{3}(?!\w|,[0-9])")
SCALES = {
    "hundred": 10**2,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "dozen": 12,
    "mrd": 10**9,
    "milliarde": 10**9,
    "lakh": 10**5,
    "crore": 10**7,
}
_SCALE = re.compile("|".join(SCALES))
_SHORT = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
"""What a short form begins with, in small letters, whether it is ``$5M``, ``5bn`` or ``5 Mio``."""
_MONEY = "$\u20ac\u00a3\u00a5\u20b9"
_VULGAR = "\u00bc-\u00be\u2150-\u215e\u2189"
_LATIN = "A-Za-z_\u00c0-\u024f\u0370-\u052f"

# Every repetition is possessive or bounded, so that no text makes the search more than linear.
_NUMBER = re.compile(
    rf"""
    (?P<sign>(?<![\w)\]}}.%])[-+])? (?P<money>[{_MONEY}])?+
    (?<![{_LATIN}0-9{_VULGAR}]) (?<![0-9]\.)
    (?:
        (?P<hexadecimal>0[xX][0-9A-Fa-f]++)
      | (?P<whole>[0-9]{{1,{_MOST_DIGITS}}}+)[ \u00a0]?(?P<vulgar>[{_VULGAR}])
      | (?P<vulgar_only>[{_VULGAR}])
      | (?:(?P<mixed>[0-9]{{1,18}}+)[ \u00a0])?
        (?<!/)(?P<over>[0-9]++)[ ]?/[ ]?(?P<under>[0-9]++)(?![./]?[0-9/])
      | 10[ ]?\^[ ]?\{{?(?P<of_ten>[-+]?[0-9]++)\}}?
      | (?P<mantissa>
            (?:
                (?<![0-9],)[0-9]{{1,3}}(?:(?P<comma>[,_'\u00a0])[0-9]{{3}}(?:(?P=comma)[0-9]{{3}})*+)
                (?!(?P=comma)?[0-9])
              | [0-9]++
            )
            (?:\.[0-9]++)?+
          | (?<!\.)\.[0-9]++
        )
        (?:[eE](?P<exponent>[-+]?[0-9]++)
          |[ ]?(?:[*x\u00d7\u00b7]|\\times|\\cdot)[ ]?10[ ]?\^[ ]?\{{?(?P<power>[-+]?[0-9]++)\}}?)?+
    )
    (?P<scale>(?:[ \u00a0-](?i:{"|".join(SCALES)})s?\b){{1,2}}+
      |(?P<short>k|[ \u00a0]?(?:bn|[mb]ln|[Mm]io|(?(money)(?:[KkMmBbTt]|mn)|(?!))))
        (?![\w\u00b2\u00b3\u00b7*^-]|/[0-9]))?+
    (?P<percent>[ \u00a0]?\\?%)?
    """,
    re.VERBOSE,
)

# --- What a number is only a part of -------------------------------------------------------------

_TIMES = r"*\u00d7\u00f7\u00b7"
_FUNCTIONS = "log|ln|exp|sin|cos|tan"
_MACROS = "pm|mp|times|cdot|div"
_BEFORE = re.compile(
    rf"""
    (?: \b(?:more|less|greater|fewer|larger|smaller|higher|lower)[ ]than[ ]
    | [<\u2264\u2265][ ]? | \w[ ]>[ ] | (?:\u2260|!=|\u00b1|\+/-)[ ]?       # a bound
    | [\^\u221a\u221b\u03c0] | (?<!\w)[^\W\d_]/                         # x/5
    | (?<![A-Za-z])(?:sqrt|cbrt|abs|{_FUNCTIONS})(?:[ ]?\(|[ ])
    | \d[.,:] | \d\.{{2,3}} | \d\u2026[ ]?                           # a range, a version
    | [\d)][ ]?[{_TIMES}][ ] | [\d)%][-+/{_TIMES}] | \d\*\* | \d[ ](?:x|mod)[ ]
    | \\(?:sqrt(?:\[\d{{1,3}}\])?|[dt]?binom(?:\{{\w{{1,9}}\}})?|log_\{{?\w{{1,3}}\}}?|{_FUNCTIONS})
      \s?[{{(_]?
    | \\(?:{_MACROS})[ ]?
    | (?:\\[dtc]?frac\s?\{{[^{{}}]{{0,40}} | \}}\{{[ ]?) )\Z             # an argument of a macro
    """,
    re.VERBOSE,
)
_AFTER = re.compile(
    rf"""
    [ ]?\^(?!\s?\{{?\s?(?:\\circ|\u00b0)) | [ ]?[\u00b1\u221a\u03c0] | [\u0300-\u036f\u2080-\u2089]
    | (?:pi|[xiej])(?![^\W\d_]) | [CP]\d | \+(?![\w+])
    | [ ](?:x[ ]\d|mod[ ]|choose[ ]|squared\b|cubed\b)
    | [ ]is[ ](?:wrong|incorrect)\b | [ ]is(?:[ ]not|n't)[ ](?:the|right|correct)\b
    | [.,:]\d | \.\.(?!\.) | (?:\.\.\.|\u2026)[ ]?\d                   # a range, a version
    | [<>\u2264\u2265](?!/?[A-Za-z])                                 # a bound, but no tag
    | [ ]?(?:\+/-|[-=]>|!=|[\u2192\u21d2\u2260{_TIMES}])[ ]?\d
    | (?:[-+/{_TIMES}]|\*\*)[\d(\u221a]
    | [ ]?\\(?:pi|sqrt|{_MACROS}|bmod|binom)(?![A-Za-z])
    """,
    re.VERBOSE,
)
_OR = r"(?:(?:or[ ])?(?:maybe|perhaps|possibly|alternatively),?|or)[ ]"
_HEDGED = re.compile(
    rf"[,;.?]?[ ]\(?{_OR}|,?[ ]to[ ](?=[$\u20ac\u00a3]?[-.\d])",
    re.IGNORECASE,
)
_EITHER = re.compile(
    rf"(?<=\d)%?[,;.?]?[ ]\(?{_OR}\Z|\bbetween[ ](?:\S{{1,20}}[ ]and[ ])?\Z", re.IGNORECASE
)
_NEARLY = Fraction(1, 100)  # 0.33 says 1/3 again
_DENIED = re.compile(
    rf"(?:{NOT}|\b(?:except|unlike|thing\ but))\s{{1,3}}[*_\"'(]{{0,3}}\Z", re.IGNORECASE
)
_TAG = re.compile(r"<[/A-Za-z][^<>]{0,60}>\Z")
_WORD_BEFORE = re.compile(r"[^\W\d_]{2}[^\n]*\Z")
_NEAR = 64  # characters before a number that may make it a part of something, or deny it


def _is_part(match: re.Match[str]) -> bool:
    """Whether a number touches what makes it a part of something larger."""
    text, start, end = match.string, match.start(), match.end()
    if _AFTER.match(text, end):
        return True
    before = text[max(0, start - _NEAR) : start]
    if _is_one_of_two(match, before):
        return True
    if text.startswith("!", end) and not text.startswith("!=", end):
        # "It is 5!" is an exclamation; "5!" and "5!/2" are factorials.
        ends = not text[end + 1 : end + 2].strip()
        if not (ends and _WORD_BEFORE.search(before)):
            return True
    if before.endswith(">"):
        return not (_TAG.search(before) or before.endswith(("->", "=>")))
    return _BEFORE.search(before) is not None


def _is_one_of_two(match: re.Match[str], before: str) -> bool:
    """Whether it is said to be this number or another: *5 or 6*, but not *1/2 or 50%*."""
    text = match.string
    if hedged := _HEDGED.match(text, match.end()):
        other = _NUMBER.match(text, hedged.end())
        return other is not None and not restates(_read(match), _read(other))
    if either := _EITHER.search(before):
        numbers = [_read(other) for other in _NUMBER.finditer(before[: either.end()])]
        return not numbers or not restates(numbers[-1], _read(match))
    return False


def restates(one: Number, other: Number) -> bool:
    """Whether a number is the other in another form: as a per cent, or rounded."""
    if one.value is None or other.value is None:
        return False
    if one.percent == other.percent and _is_counted(one) and _is_counted(other):
        return one.value == other.value
    values = {one.value / 100 if one.percent else one.value, one.value}
    others = {other.value / 100 if other.percent else other.value, other.value}
    return any(abs(a - b) <= _NEARLY * abs(a) for a in values for b in others)


def _is_counted(number: Number) -> bool:
    """Whether a number is whole and written out: it is no other one rounded, as 1.2 million is."""
    is_whole = number.value is not None and number.value.denominator == 1
    return is_whole and not any(map(str.isalpha, number.text))


def _denied(match: re.Match[str]) -> re.Match[str] | None:
    """What says that it is not this number, where that is said."""
    start = match.start()
    return _DENIED.search(match.string, max(0, start - _NEAR), start)


@dataclass(frozen=True, slots=True)
class Number:
    """A number written in a text."""

    text: str
    # Its exact value, or None where it has more digits than we read (1,000), divides by zero or is
    # part of something larger (``5!``); such a number equals nothing.
    value: Fraction | None
    # Whether a per-cent sign follows; the value is what stands before it.
    percent: bool = False


def find_numbers(text: str) -> list[Number]:
    """Find every number in a text, in order."""
    return [_found(match) for match in _matches(text)]


def parse_number(text: str) -> Number | None:
    """Read a text that is one number and nothing else, but for white space."""
    text = _plain(text.strip())
    match = _NUMBER.fullmatch(text) or _NUMBER.fullmatch(text.removesuffix("."))
    if match is None or match["hexadecimal"]:
        return None
    return _read(match)


def _matches(text: str) -> Iterator[re.Match[str]]:
    return (match for match in in_parts(_NUMBER, _plain(text)) if not match["hexadecimal"])


def _plain(text: str) -> str:
    """Write digits, signs and separators in ASCII; every other character stays."""
    if not text.isascii():
        text = ascii_digits(text.translate(_LOOKALIKES))
        text = _RAISED.sub(lambda raised: f"^{raised[0].translate(RAISED)}", text)
    if "- " in text:
        text = _SPACED_MINUS.sub(r"\1-", text)
    if "frac" in text:
        text = _FRACTION.sub(lambda f: f"{f[1] or ' '}{f[2] or f[3]}/{f[4] or f[5]}", text)
    text = spaced_thousands(text, "\u00a0")
    if "\\" in text or "{" in text:
        text = _IN_LATEX.sub(",", text)
    if "." in text or "," in text:
        text = _EUROPEAN.sub(lambda number: number[0].translate(_IN_ENGLISH), text)
        text = _INDIAN.sub(lambda number: number[0].replace(",", ""), text)
    if "inus" in text or "egative" in text:  # "minus 42" is not 42; "50 minus 8" stays two numbers
        text = _MINUS.sub("-", text)
    return text


def _found(match: re.Match[str]) -> Number:
    """Read a number that stands among other things."""
    denied = _denied(match)
    if not denied and not _is_part(match):
        return _read(match)
    start, end = match.span()
    start, end = (denied.start(), end) if denied else (max(0, start - 1), end + 1)
    return Number(text=match.string[start:end].strip(), value=None)


def _read(match: re.Match[str]) -> Number:
    value = _magnitude(match)
    if value is not None and match["short"]:
        value *= _SHORT[match["short"].strip("\u00a0 ")[0].lower()]
    elif value is not None and match["scale"]:
        value *= math.prod(SCALES[name] for name in _SCALE.findall(match["scale"].lower()))
    if value is not None and match["sign"] == "-":
        value = -value
    return Number(text=match[0].strip(), value=value, percent=match["percent"] is not None)


def _magnitude(match: re.Match[str]) -> Fraction | None:
    vulgar = match["vulgar"] or match["vulgar_only"]
    if vulgar:
        part = Fraction(unicodedata.numeric(vulgar)).limit_denominator(100)
        return part + int(match["whole"] or 0)
    if match["under"]:
        if max(len(match["over"]), len(match["under"])) > _MOST_DIGITS or not int(match["under"]):
            return None
        return Fraction(int(match["over"]), int(match["under"])) + int(match["mixed"] or 0)
    digits = match["mantissa"] or "1"
    exponent = match["exponent"] or match["power"] or match["of_ten"] or "0"
    if len(digits) > _MOST_DIGITS or len(exponent) > 6 or abs(int(exponent)) > _MOST_DIGITS:
        return None
    if match["comma"]:
        digits = digits.replace(match["comma"], "")
    return Fraction(Decimal(f"{digits}e{exponent}"))


# --- Comparing -----------------------------------------------------------------------------------

_PRINTED_DIGITS = 15
_NOISE = Fraction(1, 10**12)


def numeric_match(
    answer: object,
    expected: float | str | Decimal | Fraction,
    *,
    tolerance: float = 0.0,
    relative_tolerance: float = 0.0,
    pick: Pick | None = None,
    extract: str | None = None,
) -> float:
    """Compare a number in the answer with the expected one, in exact decimal arithmetic.

    What is only a part of something larger is no number: with the 5 of ``5!``, ``5^2``, ``√5``,
    ``5±1``, ``5:4``, ``>5``, ``5-3`` or ``5,6`` the answer scores 0.0, and is not judged by its
    next number.

    A number printed at the full precision of a float (15 digits or more, on either side) also
    matches within a relative 1e-12 where one of the two is not whole, so that
    ``0.30000000000000004`` is 0.3. Whole numbers are always compared exactly.

    Args:
        answer: What the model said.
        expected: The right number; a string is read as in an answer (``"1,234.5"``, ``"3/4"``).
        tolerance: Greatest accepted difference, in the unit of the number.
        relative_tolerance: Greatest accepted difference as a share of the expected number. The
            wider of the two tolerances holds.
        pick: Which number counts: the ``first`` (default), the ``last``, or ``only``: no match
            where the answer holds two different numbers (the default for an answer that is nothing
            but numbers). It also picks among extractions.
        extract: Where in the answer to look (see `extract_answer`).

    Returns:
        1.0 or 0.0; 0.0 where there is no number.

    Raises:
        InputError: ``expected`` is not a finite number, a tolerance is negative or not finite, or
            ``pick`` or ``extract`` is invalid.
    """
    wanted, precise = _expected(expected)
    slack = max(
        _exactly(check_finite("tolerance", tolerance)),
        _exactly(check_finite("relative_tolerance", relative_tolerance)) * abs(wanted),
    )
    check_pick(pick)
    text = answer_text(answer, extract, pick if extract else None)
    if text is None:
        return 0.0
    found = picked_number(text, pick)
    if found is None or found.value is None:
        return 0.0
    difference = abs(found.value - wanted)
    if difference <= slack:
        return 1.0
    if precise or _digits(found.text) >= _PRINTED_DIGITS:
        whole = found.value.denominator == 1 and wanted.denominator == 1
        return float(not whole and difference <= _NOISE * abs(wanted))
    return 0.0


_BARE_LIST = re.compile(
    r"[\s$*]{0,20}(?:\\?[(\[{])?(?:[-+0-9.,;:|?\s]|\band\b){1,1000}+(?:\\?[)\]}])?[\s$*.]{0,20}"
)


def picked_number(text: str, pick: Pick | None = None) -> Number | None:
    """The number of a text that `numeric_match` compares, or None."""
    text = said(text)
    if pick is None and _BARE_LIST.fullmatch(text):  # who lists numbers names none
        pick = "only"
    matches = _matches(text)
    if pick == "only":
        matches = _distinct(matches)
    match = choose(matches, pick or "first", key=lambda match: _found(match).value)
    return _found(match) if match else None


def _distinct(matches: Iterator[re.Match[str]]) -> Iterator[re.Match[str]]:
    """Leave out what was written before: reading a number costs more than finding it."""
    seen: set[tuple[str, bool]] = set()
    for match in matches:
        written = match[0], _is_part(match) or _denied(match) is not None
        if written not in seen:
            seen.add(written)
            yield match


def _expected(expected: object) -> tuple[Fraction, bool]:
    """Return the expected value, and whether it was written at the precision of a float."""
    if isinstance(expected, bool) or not isinstance(
        expected, int | float | str | Decimal | Fraction
    ):
        raise InputError(f"expected must be a number, not {expected!r}")
    if isinstance(expected, str):
        number = parse_number(expected)
        if number is None or number.value is None:
            raise InputError(
                f"expected {expected[:80]!r} is not a number",
                hint="write one number, such as '1,234.5'",
            )
        return number.value, _digits(number.text) >= _PRINTED_DIGITS
    if isinstance(expected, int | Fraction):
        return Fraction(expected), False
    try:
        return Fraction(Decimal(as_text(expected))), _digits(as_text(expected)) >= _PRINTED_DIGITS
    except (InvalidOperation, ValueError, OverflowError):
        raise InputError(f"expected must be a finite number, not {expected!r}") from None


def check_finite(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    least: float = 0.0,
    most: float = math.inf,
) -> float:
    """Return an author's option that must be a finite number in a range."""
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if math.isfinite(number) and least <= number <= most and number > above:
        return float(number)
    ranges = f"above {above:g}" if above > -math.inf else f"of at least {least:g}"
    ranges += f" and at most {most:g}" if most < math.inf else ""
    raise InputError(f"{name} must be a finite number {ranges}, not {value!r}")


def _exactly(number: float) -> Fraction:
    """A float means what it prints: 0.1 is one tenth, not the binary fraction nearest to it."""
    return Fraction(Decimal(repr(number)))


def _digits(text: str) -> int:
    return sum(character.isdigit() for character in text)
