r"""How a formula is written, and what in it is left to be done.

`spelled` brings the ways to write one formula to one: ``2√3``, ``2*sqrt(3)`` and
``2\mathbf{\sqrt3}`` are ``2\sqrt{3}``. `left_to_do` tells an answer from the question restated.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, TypeAlias

from assay.text.extract import IN_WORDS
from assay.text.normal_form import LOWERED, RAISED
from assay.text.numbers import SCALES, parse_number

Form: TypeAlias = Literal["computed", "any"]
"""Whether an answer must be computed as far as the expected one is."""

# --- How it is written ---------------------------------------------------------------------------

_CHARACTERS = {
    "\u2212\u2013\u2010\u2011\ufe63": "-",
    "\u00d7": r"\times ",
    "\u00b7\u22c5\u2219": r"\cdot ",
    "\u00f7": r"\div ",
    "\u221a": r"\sqrt",
    "\u221b": r"\sqrt[3]",
    "\u00b1": r"\pm ",
    "\u221e": r"\infty ",
    "\u2264\u2a7d": r"\le ",
    "\u2265\u2a7e": r"\ge ",
    "\u2260": r"\ne ",
    "\u2248": r"\approx ",
    "\u2208": r"\in ",
    "\u222a": r"\cup ",
    "\u2229": r"\cap ",
    "\u2205": r"\emptyset ",
    "\u2192": r"\to ",
    "\u21d2": r"\Rightarrow ",
    "\u2227": r"\land ",
    "\u2228": r"\lor ",
    "\u00ac": r"\neg ",
    "\u2223": r"\mid ",
    "\u2211": r"\sum ",
    "\u220f": r"\prod ",
    "\u222b": r"\int ",
    "\u230a": r"\lfloor ",
    "\u230b": r"\rfloor ",
    "\u2308": r"\lceil ",
    "\u2309": r"\rceil ",
    "\u27e8\u3008\u2329": "(",
    "\u27e9\u3009\u232a": ")",
    "\u2044\u2215": "/",
    "\u00b0\u00ba": r"^{\circ}",
    "\u211d": r"\mathbb{R}",
    "\u2124": r"\mathbb{Z}",
    "\u2115": r"\mathbb{N}",
    "\u211a": r"\mathbb{Q}",
    "\u200b\u200c\u200d\u2061\u2062\u2063\ufeff\u00ad": "",
}
_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho "
    "sigma tau upsilon phi chi psi omega"
)
_TRANSLATED = str.maketrans(
    {character: latex for several, latex in _CHARACTERS.items() for character in several}
    | {
        unicodedata.lookup(f"GREEK SMALL LETTER {n.upper().replace('LAMBDA', 'LAMDA')}"): rf"\{n} "
        for n in _GREEK.split()
    }
    | {"\u0394": r"\Delta ", "\u03a3": r"\Sigma ", "\u03a9": r"\Omega ", "\u03a6": r"\Phi "}
)
_RAISED = RAISED | str.maketrans("\u207f\u02e3", "nx")
_RAISED_RUN, _LOWERED_RUN = (
    re.compile(f"[{''.join(map(chr, marks))}]+") for marks in (_RAISED, LOWERED)
)
_STYLED = re.compile("[\U0001d400-\U0001d7ff\uff01-\uff5e\u00bc-\u00be\u2150-\u215e]")

_INSIDE = r"((?:[^{}]|\{(?:[^{}]|\{[^{}]*+\})*+\})*+)"
"""What stands in braces, with braces in braces in it."""
_END = "(?![A-Za-z])"


def _repeating(match: re.Match[str]) -> str:
    whole, digits, again = match.groups()
    value = Fraction(int(whole or "0") * 10 ** len(digits) + int(digits or "0"), 10 ** len(digits))
    value += Fraction(int(again), (10 ** len(again) - 1) * 10 ** len(digits))
    if value.denominator == 1:
        return str(value.numerator)
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"


_MACROS = {
    "displaystyle|textstyle|(?:no)?limits": "",
    "(?:[dtcs]|nice)frac": r"\\frac",
    "colon": ":",
    "varnothing|empty": r"\\emptyset ",
    "lbrace": r"\\{",
    "rbrace": r"\\}",
    "langle": "(",
    "rangle": ")",
    "[lr]?vert": "|",
    "leq(?:slant)?": r"\\le ",
    "geq(?:slant)?": r"\\ge ",
    "neq": r"\\ne ",
    "lor|vee": r"\\text{ or }",
    "(?:long)?rightarrow": r"\\to ",
    "lnot": r"\\neg ",
    "lg": r"\\log_{10}",
}
"""What macros with another name are, as patterns."""
_SIGNS = {"<=": r"\\le ", ">=": r"\\ge ", "!=": r"\\ne ", r"\+/?-": r"\\pm ", "->": r"\\to "}
_SPELLINGS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(written), meant)
    for written, meant in (
        (r"(?<!\\)\\[()\[\]]|(?<!\\)\$", " "),
        (r"\\(?:begin|end)\{(?:(?:align|gather)(?:ed)?|equation|split|math)\*?\}", " "),
        (r"&(?=\s*=)", " "),
        (rf"\\(?:left|right|[bB]igg?[lrm]?){_END}\.?", ""),
        *((rf"\\(?:{macro}){_END}", meant) for macro, meant in _MACROS.items()),
        (rf"\\(?:boldsymbol|bm|pmb|math(?:bf|it|sf|tt)|underline)\s*\{{{_INSIDE}\}}", r"\1"),
        (r"\\(?:mathrm|text(?:rm|bf|it)?)\s*\{(\s*[-+]?[0-9][0-9.,]*\s*)\}", r"\1"),
        (r"\\\$|[\u20ac\u00a3\u00a5](?=[0-9])", ""),
        (r"\{,\}", ","),
        (r",(?:\\[,;: ]|~)+", ", "),
        (rf"\\(?:text)?color\s*\{{(?!white)\w+\}}\s*\{{{_INSIDE}\}}", r"\1"),
        (r"\\color\s*\{(?!white)\w+\}", ""),
        (r"(?i)^(?:\\text\s*\{)?\s*all\ real\ numbers\s*\}?$", r"\\mathbb{R}"),
        (r"(?i)^(?:\\text\s*\{)?\s*does\ not\ exist\s*\}?$", "DNE"),
        (r"(?<=[0-9)}])\s+and\s+(?=[-0-9(\\])", ", "),
        (r"\\not\s*=", r"\\ne "),
        (rf"\\[hv]?phantom\s*\{{{_INSIDE}\}}", ""),
        (r"~", r"\\ "),
        (r"^\s*\\(?:text|mathrm)\s*\{[^{}]*\}\s*=", ""),
        (r"(^|[=(,])\s*\+\s*(?=[0-9]|\\infty)", r"\1"),
        (r"([0-9)}])\s+(?=i(?![A-Za-z]))", r"\1"),
        (r"(?<![\w.])([0-9]{0,18})\.([0-9]{0,18})\(([0-9]{1,18})\)$", _repeating),
        (r"([0-9]{0,18})\.([0-9]{0,9}?)([0-9])\3{2,18}(?:\\l?dots|\.{2,3})", _repeating),
        (r"\\(frac|sqrt)\s*([0-9a-z])", r"\\\1{\2}"),
        (r"\\frac\s*(\{[^{}]*\})\s*([0-9a-z])", r"\\frac\1{\2}"),
        (r"([0-9]{0,18})\.([0-9]{0,18})\\(?:overline|bar|dot)\s*\{?([0-9]{1,18})\}?", _repeating),
        (r"\\\{\s*\\\}", r"\\emptyset "),
        *_SIGNS.items(),
        (rf"\^\s*\{{?\s*\\circ\s*\}}?|\\degree{_END}", r"^{\\circ}"),
        (r"(?<=[\w)\]}])\*\*(?=[\w({\\+-])", "^"),
        (r"(?<=[\w)\]}])\s*\*\s*(?=[\w(\\{])", r"\\cdot "),
        (r"(?<![\\A-Za-z{])(?:infinity|inf|oo)(?![A-Za-z])", r"\\infty "),
        (rf"(?<![\\A-Za-z{{])(pi|theta|alpha|beta|lambda){_END}", r"\\\1 "),
        (r"(?<![\\A-Za-z{])((?:arc)?(?:sin|cos|tan)|log|ln|exp)(?=\s?[(0-9^\\])", r"\\\1"),
        (r"\^\s*([-+]?[0-9]{2,}|[-+][0-9])", r"^{\1}"),
        (r"([\^_])\s*\{\s*(\w)\s*\}", r"\1\2"),
        (r"([0-9])\s*\\cdot\s*(?=\\(?:sqrt|pi|ln|log)(?![A-Za-z])|[A-Za-z])", r"\1"),
    )
)
_CALL = re.compile(r"(?:(?<![\\A-Za-z])(sqrt|cbrt)|\\sqrt|(\^))\s?(\()")
_ROOT = re.compile(r"([\u221a\u221b])\s?([0-9]+|[A-Za-z])")
_MOST_CALLS = 100  # each takes a search through all of the text


def spelled(text: str) -> str:
    """A formula in LaTeX, in one spelling."""
    if not text.isascii():
        text = _in_ascii(text)
    text = scaled(" ".join(text.split()))
    for written, meant in _SPELLINGS:
        text = written.sub(meant, text)
    for _ in range(_MOST_CALLS):  # sqrt(...), x^(...)
        if (call := _CALL.search(text)) is None or (end := _closing(text, call.end())) < 0:
            break
        macro = "^" if call[2] else r"\sqrt[3]" if call[1] == "cbrt" else r"\sqrt"
        text = f"{text[: call.start()]}{macro}{{{text[call.end() : end]}}}{text[end + 1 :]}"
    return text.strip()


_SCALED = re.compile(
    r"(?<![\w.,])([0-9][0-9.,]{0,30}+)"
    rf"(?:\s|\\[ ,;])*(?P<macro>{IN_WORDS}\s*)?"
    rf"({'|'.join(SCALES)})s?\b(?P<end>\s*\}}|)"
)


def scaled(text: str) -> str:
    """A text with whole numbers in digits: *5 million* is no five with a unit."""
    return _SCALED.sub(_in_digits, text)


def _in_digits(match: re.Match[str]) -> str:
    number = parse_number(f"{match[1]} {match[3]}")
    if number is None or number.value is None or number.value.denominator != 1:
        return match[0]
    macro, end = match["macro"] or "", match["end"]
    return f"{number.value}" if macro and end else f"{number.value}{macro}{end}"


def _closing(text: str, start: int) -> int:
    """Where the bracket that was opened before ``start`` is closed; -1 for nowhere."""
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at
    return -1


def _in_ascii(text: str) -> str:
    text = _RAISED_RUN.sub(lambda run: f"^{{{run[0].translate(_RAISED)}}}", text)
    text = _LOWERED_RUN.sub(lambda run: f"_{{{run[0].translate(LOWERED)}}}", text)
    text = _STYLED.sub(_unstyled, text)
    return _ROOT.sub(r"\1{\2}", text).translate(_TRANSLATED)


def _unstyled(match: re.Match[str]) -> str:
    plain = unicodedata.normalize("NFKC", match[0])
    over, slash, under = plain.partition("\u2044")
    return rf"\frac{{{over}}}{{{under}}}" if slash else plain


# --- What it is made of --------------------------------------------------------------------------

_UNITS = {
    name: base
    for base, names in {
        "m": "meter meters metre metres",
        "cm": "centimeter centimeters centimetre centimetres",
        "mm": "millimeter millimeters millimetre millimetres",
        "km": "kilometer kilometers kilometre kilometres",
        "in": "inch inches",
        "ft": "foot feet",
        "yd": "yard yards",
        "mi": "mile miles",
        "g": "gram grams",
        "kg": "kilogram kilograms",
        "mg": "milligram milligrams",
        "lb": "lbs pound pounds",
        "oz": "ounce ounces",
        "s": "sec second seconds",
        "min": "minute minutes",
        "h": "hr hrs hour hours",
        "day": "days",
        "week": "weeks",
        "month": "months",
        "year": "years",
        "L": "l liter liters litre litres",
        "mL": "ml milliliter milliliters",
        "km/h": "kmh",
        "N": "newton newtons",
        "J": "joule joules",
        "W": "watt watts",
        "V": "volt volts",
        "Hz": "hertz",
        **dict.fromkeys(("dm", "ms", "m/s", "mph", "kJ", "kW", "Pa"), ""),
        "mol": "mole moles",
        "degree": "degrees deg",
        "rad": "radian radians",
        "dollar": "dollars",
        "cent": "cents",
        "unit": "units",
    }.items()
    for name in (base, *names.split())
}
_TEXT = re.compile(rf"{IN_WORDS}([^{{}}]*)\}}(\s*\^\s*\{{?[0-9]\}}?)?")
_BARE = re.compile(
    r"(?<=[0-9)}\s])\s*("
    + "|".join(sorted(_UNITS, key=len, reverse=True))
    + r")(\s*\^\s*\{?[0-9]\}?)?$"
)
_DEGREE = re.compile(r"\^\{\\circ\}\s*(?:\\?(?:text|mathrm)?\s*\{?\s*[CF]\s*\}?)?$")
_JOINS = frozenset({"or", "and", "", ","})


def split_unit(text: str) -> tuple[str, frozenset[str]]:
    """A spelled formula without its units, and these."""
    units: set[str] = set()

    def take(match: re.Match[str]) -> str:
        name = match[1].strip().rstrip(".")
        if name.lower() in _JOINS:
            return match[0]
        units.add(f"{_UNITS.get(name) or name.lower()}{re.sub(r'[^0-9]', '', match[2] or '')}")
        return " "

    rest = _TEXT.sub(take, text)
    if degree := _DEGREE.search(rest):
        units.add("degree")
        rest = rest[: degree.start()]
    elif (bare := _BARE.search(rest)) and (
        len(bare[1]) > 1
        or re.fullmatch(r"[-+0-9.,\s]+(?:\\frac\{[0-9]+\}\{[0-9]+\})?\s+", rest[: bare.start(1)])
    ):
        rest = rest[: bare.start()] + take(bare)
    return rest.strip().removesuffix("\\").strip(), frozenset(units)


_MACRO = re.compile(rf"\\(?!(?:{_GREEK.replace(' pi', '').replace(' ', '|')}){_END})[A-Za-z]+")
_LETTER = re.compile(r"(?<![A-Za-z])(?![ei](?![A-Za-z]))[A-Za-z]")


def has_variables(text: str) -> bool:
    """Whether a spelled formula without units has letters other than e and i, or words."""
    return _LETTER.search(_MACRO.sub(" ", _TEXT.sub(" ", text))) is not None


def sides(text: str) -> list[str]:
    """What stands on the sides of equality signs that are in no brackets."""
    found: list[str] = []
    depth = start = 0
    for match in _SIDE.finditer(text):
        sign = match[0].removeprefix("\\")  # of a set's braces, too
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif depth <= 0:
            found.append(text[start : match.start()])
            start = match.end()
    return [*found, text[start:]]


_SIDE = re.compile(r"\\[{}]|[(\[{)\]}]|(?<![<>!:])=|\\(?:approx|equiv)(?![A-Za-z])")
_BRACKETED = re.compile(r"(\\\{|[(\[])(.*)(\\\}|[)\]])", re.DOTALL)


def bracket(text: str) -> str:
    """The kind of brackets around a list of several: ``()``, ``[)``, ``{}``; empty for none."""
    whole = _BRACKETED.fullmatch(text.strip())
    if whole is None or "," not in whole[2]:
        return ""
    depth = 0
    for match in re.finditer(r"[(\[{)\]}]", whole[2]):
        depth += 1 if match[0] in "([{" else -1
        if depth < 0:  # two pairs beside each other
            return ""
    return f"{whole[1][-1]}{whole[3][-1]}"


# --- What is left to be done ---------------------------------------------------------------------

_NUMERAL = r"[0-9][\s)}\]]*"
_D = r"\s*(?:\\mathrm\s*\{d\}|d)\s*"
_WORK = {
    kind: re.compile(signs)
    for kind, signs in {
        "a sum, a limit, an integral, a derivative or a determinant": (
            rf"\\(?:sum|prod|i*int|oint|lim|limsup|liminf|sup|inf|det|partial|nabla){_END}|[vV]matrix"
            rf"|\\frac\s*\{{{_D}(?:\^\s*\{{?\w\}}?)?\s*\w?(?:\([^(){{}}]*\))?\s*\}}\s*\{{{_D}\w"
        ),
        "a binomial coefficient": rf"\\(?:[dt]?binom|choose){_END}",
        "a function of several numbers": (
            rf"\\(?:gcd|lcm|max|min|operatorname|Gamma){_END}"
            r"|\b(?:gcd|lcm|max|min|floor|ceil|round|abs)\s?\("
        ),
        "a remainder": rf"\\[bp]?mod{_END}|[0-9)]\s*%\s*[0-9(]|\bmod\b",
        "a factorial": r"[\w)}\]]\s*!(?!=)",
        "a root": rf"\\sqrt{_END}",
        "a logarithm": rf"\\(?:log|ln|lg){_END}",
        "a function of an angle": rf"\\(?:arc)?(?:sin|cos|tan|cot|sec|csc)h?{_END}",
        "a power": rf"\^|\\exp{_END}",
        "a product": (
            rf"{_NUMERAL}(?:\\(?:times|cdot|div|ast){_END}|\*)[\s({{\[]*(?:\\frac\s*\{{)?[-+]?[0-9]"
            r"|\)\s*\(|[0-9]\s*\(\s*[-+]?[0-9.]+\s*\)|\)\s*[0-9]"
        ),
        "a number to another base": r"(?<![\w\\}])[0-9]+\s*_\s*\{?\s*[0-9a-z}]",
        "an operation on sets": r"\\\}\s*\\(?:cup|cap|setminus)\s*\\\{",
        "a fraction of fractions": r"\\frac\s*\{(?:[^{}]*\}\s*\{)?[^{}]*\\frac",
        "an absolute value or a rounding": r"\\lfloor|\\lceil|\|",
    }.items()
}
_INSTRUCTION = next(iter(_WORK))
_ALIKE = {"a root": "a power", "a power": "a root"}
_RELATION = re.compile(
    rf"\\(?:to|(?:[lL]ong)?(?:[lL]eft|[rR]ight|[lL]eftright)arrow|mapsto"
    rf"|implies|iff|mid|not|neg|lnot|land|wedge){_END}|\?"
)
_LIMIT = re.compile(r"\\lim\s*_\s*\{[^{}]*\}")
_ORDER = re.compile(rf"\\(?:le|ge|ne|ll|gg|lt|gt|n(?:less|gtr|[lg]eq\w*)){_END}|[<>]")
_SCIENTIFIC = re.compile(
    r"(?:[0-9.]\s*(?:\\(?:times|cdot)\s*|[x*]\s*))?"
    r"(?<![0-9.])10\s*\^\s*(?:\{\s*[-+]?[0-9]{1,4}\s*\}|[-+]?[0-9])(?!\s*[!^])"
)
_TERM = re.compile(r"(?<=[\w)}\]|!])\s*(?:[-+]|\\pm|\\mp)\s*(?=[\w\\({\[|.])")
_SIGNED_POWER = re.compile(r"(?<=\^)\{\s*[-+]|(?<=[0-9][eE])[-+]")
_SET = re.compile(r"[\[,;]|\\(?:\{|(?:infty|cup|cap|in|emptyset|mathbb)(?![A-Za-z]))")


def left_to_do(text: str, wanted: str, form: Form | None) -> str:
    """What a spelled answer leaves to be done that the expected one does not; empty for nothing.

    ``form``: `Form`, or None: as far as the expected answer where that is a number; where it has
    variables, no more than an instruction (a sum, a derivative ...) is refused.
    """
    if (relation := _RELATION.search(_LIMIT.sub("", text))) and not _RELATION.search(wanted):
        return f"a relation ({relation[0]})"
    is_number = not has_variables(wanted)
    order_is_told = _ORDER.search(wanted) or _SET.search(wanted)
    if is_number and not order_is_told and (_ORDER.search(text) or _LEFT_OPEN.search(text)):
        return "a relation"
    if form == "any":
        return ""
    mine, theirs = (_SCIENTIFIC.sub("0", _DEGREES.sub("", part)) for part in (text, wanted))
    kinds = _WORK if form == "computed" or is_number else (_INSTRUCTION,)
    there = {kind for kind in _WORK if _WORK[kind].search(theirs)}
    there |= {_ALIKE[kind] for kind in there & _ALIKE.keys()}
    for kind in kinds:
        if kind not in there and _WORK[kind].search(mine):
            return kind
    if len(kinds) > 1 and _terms(mine) > _terms(theirs):
        return "a further term"
    return ""


_IN_NUMBERS = (
    r"frac|over|sqrt|times|cdot|div|ast|pi|p?m[pm]|ln|log|exp|(?:arc)?(?:sin|cos|tan)|infty"
    r"|approx|equiv|q?quad|text\w*|mathrm|overline|[bp]?mod|[dt]?binom|choose|sum|prod|i*int"
    r"|lim|max|min|gcd|det|[lr](?:floor|ceil)|begin|end|operatorname"
)
_LEFT_OPEN = re.compile(
    # a parameter of any value
    rf"[0-9)}}]\s*([a-z]){_END}[^,]{{0,80}},[^,]{{0,80}}\1\s*\\in{_END}"
    # an operation without its second number, a range, a list that goes on
    rf"|(?:\\(?:cdot|times){_END}|[-+*/])\s*$|\S\s*\\sim{_END}"
    r"|(?<![.0-9])[0-9]+\s*,?\s*(?:\\[lc]?dots|\.\.)"
    # two numbers with anything between them that numbers do not have
    rf"|[0-9)}}]\s*(?:[@#?]|\\(?!(?:{_IN_NUMBERS}){_END})[A-Za-z]+)"
    r"\s*(?:\{[^{}]*\}\s*)?\\?\{?[0-9]"
)
_DEGREES = re.compile(r"\^\{\\circ\}")


def _terms(text: str) -> int:
    text = _SIGNED_POWER.sub("{", text)
    return sum(1 + ("m" in sign[0]) for sign in _TERM.finditer(text))
