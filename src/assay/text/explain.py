"""Where the number of a comparison comes from, in words.

A comparison returns a number as fast as it can. What it read in the answer, what was expected and
how that decided is said here, afterwards, where somebody may look.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from typing import Literal, TypeAlias, cast

from assay.text.extract import Pick, answer_text
from assay.text.normal_form import as_text, compose, fold

Explanation: TypeAlias = "dict[str, str]"
"""``read``: what of the answer was compared; ``expected``; ``decided``: how one met the other."""

_JSON = json.JSONEncoder(ensure_ascii=False, default=str)
"""Made once: `json.dumps` makes one for each call that asks for anything."""

_SHOWN = 400
_AROUND = 40
_LOOKED_AT = 100_000
_LISTED = 5


def explain(comparison: str, value: float, arguments: Mapping[str, object]) -> Explanation:
    """Say what a comparison of `assay.text` read, expected and decided.

    Args:
        comparison: Its name.
        value: What it returned.
        arguments: What it was called with.

    Returns:
        Nothing of a comparison that is not known here.
    """
    explained, given = _EXPLAINED.get(comparison), _Given(arguments)
    try:
        return {} if explained is None else explained(value, given)
    except _NothingReadError as nothing:
        return _said(None, str(nothing), given.not_found())


class _NothingReadError(Exception):
    """There is nothing to compare with what is expected, which is its message."""


class _Given:
    """The arguments of a comparison."""

    def __init__(self, arguments: Mapping[str, object]) -> None:
        self._arguments = arguments
        self.answer = arguments.get("answer")
        self.pick: Pick | None = cast("Pick | None", arguments.get("pick"))
        self.extract: str | None = cast("str | None", arguments.get("extract"))

    def get(self, name: str, default: object = None) -> object:
        """An argument, or its default."""
        return self._arguments.get(name, default)

    def read(self, expected: str, pick: Pick | None) -> str:
        """The text that is compared with what is expected, if ``extract`` finds one."""
        text = answer_text(self.answer, self.extract, pick)
        if text is None:
            raise _NothingReadError(expected)
        return text

    def texts(self, name: str) -> list[str]:
        """An argument that is one text or a list of them."""
        given = self.get(name)
        if isinstance(given, str) or not isinstance(given, Iterable):
            return [as_text(given)]
        return [as_text(item) for item in cast("Iterable[object]", given)]

    def number(self, name: str) -> float:
        """An argument that is a number; 0 where it is not given."""
        given = self.get(name)
        return float(given) if isinstance(given, int | float) else 0.0

    def not_found(self) -> str:
        """Why there was nothing to compare."""
        several = ", or finds several that differ" if self.pick == "only" else ""
        return f"extract={self.extract!r} finds nothing in the answer{several}"


def _said(read: str | None, expected: str, decided: str) -> Explanation:
    shown = "nothing" if read is None else _short(read)
    return {"read": shown, "expected": _short(expected), "decided": decided}


def _short(text: str, most: int = _SHOWN) -> str:
    """The beginning and the end of a text, and how much is left out between them."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} … {len(text) - 2 * half:,} characters … {text[-half:]}"


def _quoted(text: str, most: int = 80) -> str:
    return _JSON.encode(_short(text, most))


def _listed(texts: Iterable[str], most: int = _LISTED) -> str:
    every = list(islice(texts, most + 1))
    return ", ".join(every[:most]) + (" …" if len(every) > most else "")


# --- Words ---------------------------------------------------------------------------------------


def _exact_match(value: float, given: _Given) -> Explanation:
    wanted = given.texts("expected")
    expected = " or ".join(wanted[:_LISTED]) + (" or …" if len(wanted) > _LISTED else "")
    text = given.read(expected, given.pick)
    if text in wanted:
        decided = "they are the same"
    elif value:
        decided = "they say the same: what differs does not count"
    elif not text.strip():
        decided = "the answer is empty"
    elif len(wanted) > 1:
        decided = f"it is none of the {len(wanted)} right answers"
    else:
        decided = _apart(fold(text.strip()), fold(wanted[0].strip()))
    return _said(text, expected, decided)


def _apart(one: str, other: str) -> str:
    """Where two texts begin to differ."""
    pairs = zip(one, other, strict=False)
    same = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
    mine, theirs = (text[same : same + _AROUND] for text in (one, other))
    mine, theirs = (_quoted(text) if text else "its end" for text in (mine, theirs))
    return f"they differ from character {same + 1:,}: {mine} instead of {theirs}"


def _contains(
    value: float, given: _Given, name: str = "substrings", which: str = ""
) -> Explanation:
    wanted = given.texts(name)
    expected = f"{which}{_listed(map(_quoted, wanted), 20)}"
    text = given.read(expected, given.pick)
    form = compose if given.get("case_sensitive") else fold
    haystack = form(text)
    places = {each: haystack.find(form(each)) for each in wanted}
    missing = [_quoted(each) for each, place in places.items() if place < 0]
    if value:
        found = next((each, place) for each, place in places.items() if place >= 0)
        start = max(0, found[1] - _AROUND)
        around = haystack[start : found[1] + len(found[0]) + _AROUND]
        every = "all are there; " if len(wanted) > 1 and not missing else ""
        decided = f"{every}{_quoted(found[0])} stands in {_quoted(around, 200)}"
    else:
        decided = f"{_listed(missing)} {'does' if len(missing) == 1 else 'do'} not occur in it"
    return _said(text, expected, decided)


def _regex_match(value: float, given: _Given) -> Explanation:
    from assay.text.compare import match_of

    pattern = as_text(given.get("pattern"))
    whole = bool(given.get("full"))
    expected = f"{'the whole is' if whole else 'somewhere'} /{pattern}/"
    text = given.read(expected, given.pick)
    ignore_case = bool(given.get("ignore_case"))
    match = None if whole else match_of(pattern, text, full=False, ignore_case=ignore_case)
    if match is not None:
        decided = f"{_quoted(match.group(0) or '', 200)} matches"
    else:
        decided = "it matches" if value else "nothing in it matches"
        if whole and not value:
            decided = "the whole does not match"
    return _said(text, expected, decided)


def _f1_score(value: float, given: _Given) -> Explanation:
    from assay.text.compare import tokens_of

    wanted = given.texts("reference")
    text = given.read(wanted[0], given.pick)
    spoken = Counter(tokens_of(text))
    best = max(wanted, key=lambda reference: (spoken & Counter(tokens_of(reference))).total())
    tokens = Counter(tokens_of(best))
    shared = (spoken & tokens).total()
    words = "word" if shared == 1 else "words"
    decided = (
        f"{shared:,} {words} in common; the answer has {spoken.total():,}, "
        f"the reference {tokens.total():,}"
    )
    if value < 1 and (missing := [_quoted(word, 40) for word in tokens - spoken]):
        decided += f"; missing: {_listed(missing)}"
    return _said(text, best, decided)


def _similarity(value: float, given: _Given) -> Explanation:
    from assay.text.likeness import MAX_CHARACTERS, MAX_FUZZY_CHARACTERS, Metric, similarity

    metric = cast("Metric", given.get("metric", "fuzzy"))
    reference = as_text(given.get("reference"))
    text = given.read(reference, given.pick)
    longest = MAX_FUZZY_CHARACTERS if metric == "fuzzy" else MAX_CHARACTERS
    if len(text) > longest:
        decided = f"the answer is longer than the {longest:,} characters of {metric}"
        return _said(text, reference, decided)
    threshold = given.get("threshold")
    decided = f"{value:.2f} by {metric}"
    if isinstance(threshold, int | float):
        decided = f"{similarity(text, reference, metric=metric):.2f} by {metric}"
        decided += f", and {threshold:g} is needed"
    return _said(text, reference, decided)


# --- Numbers, options, mathematics ---------------------------------------------------------------


def _numeric_match(value: float, given: _Given) -> Explanation:
    from assay.text.numbers import find_numbers, parse_number, picked_number

    expected = as_text(given.get("expected"))
    text = given.read(expected, given.pick if given.extract else None)
    found = picked_number(text, given.pick)
    if found is None:
        several = find_numbers(text[:_LOOKED_AT])
        numbers = _listed(dict.fromkeys(number.text for number in several))
        decided = f"it has different numbers: {numbers}" if numbers else "there is no number in it"
        return _said(text, expected, decided)
    which = "" if given.extract and found.text == text.strip() else f" (the {given.pick or 'first'}"
    read = f"{found.text}{f'{which} number of the answer)' if which else ''}"
    wanted = parse_number(expected)
    if value:
        decided = f"{found.text} is {expected}"
        if wanted is not None and found.value != wanted.value:
            decided = f"{found.text} is near enough to {expected}"
    elif found.value is None and parse_number(found.text):
        decided = f"{found.text} is only a part of what is said"
    elif found.value is None or wanted is None or wanted.value is None:
        decided = f"{_short(found.text, 80)} is not {expected}"
    else:
        decided = (
            f"{found.text} is not {expected}: they are {_plain(found.value - wanted.value)} apart"
        )
        tolerances = [
            f"{given.number(name):g}{unit}"
            for name, unit in (("tolerance", ""), ("relative_tolerance", " of it"))
            if given.number(name)
        ]
        if tolerances:
            decided += f", and {' or '.join(tolerances)} is accepted"
    return _said(read, expected, decided)


def _plain(difference: object) -> str:
    try:
        return f"{abs(float(cast('float', difference))):.6g}"
    except OverflowError:
        return "very far"


def _choice_match(value: float, given: _Given) -> Explanation:
    from assay.text.choice import Choices, chosen_label

    choices = cast("Choices", given.get("choices", "ABCD"))
    expected = as_text(given.get("expected"))
    text = given.read(expected, given.pick if given.extract else None)
    label = chosen_label(text, choices, given.pick)
    if not label:
        return _said(text, expected, "no single option is chosen in it")
    option = choices[label] if isinstance(choices, Mapping) and label in choices else ""
    read = f"option {label}{f': {option}' if option else ''}"
    return _said(read, expected, f"{label} is {'' if value else 'not '}the right option")


def _math_equal(value: float, given: _Given) -> Explanation:
    from assay.text.math import answer_proper, fault

    expected = as_text(given.get("expected"))
    read = answer_proper(given.answer, given.extract, given.pick)
    if read is None or not read.strip():
        why = given.not_found() if given.extract else "the answer says nothing"
        return _said(None, expected, why)
    decided = "they are equal" if value else "no way was found in which they are equal"
    form = cast("Literal['computed', 'any'] | None", given.get("form"))
    where = given.extract, given.pick
    if not value and (why := fault(given.answer, given.get("expected"), form, *where)):
        decided = f"it is refused for {why}"
    return _said(read, expected, decided)


# --- JSON ----------------------------------------------------------------------------------------


def _of_json(
    value: float, given: _Given, name: str, faults: Callable[[object, _Given], Iterable[str]]
) -> Explanation:
    from assay.text.structure import json_of

    wanted = given.get(name)
    expected = wanted if isinstance(wanted, str) else _JSON.encode(wanted)
    parsed = json_of(
        given.answer, strict=bool(given.get("strict")), pick=given.pick, extract=given.extract
    )
    if not parsed.ok:
        return _said(None, expected, f"no JSON: {parsed.error}")
    if value >= 1:
        decided = "it is valid" if name == "schema" else "they are equal"
    else:
        wrong = "; ".join(
            _short(fault, 200) for fault in islice(faults(parsed.value, given), _LISTED)
        )
        decided = f"{value:.2f} of the leaves agree; {wrong}" if value else wrong
    return _said(_JSON.encode(parsed.value), expected, decided)


def _differences(found: object, given: _Given) -> Iterable[str]:
    from assay.text.structure import differences

    return differences(
        cast("None", found), cast("None", given.get("expected")), given.number("tolerance")
    )


def _faults(found: object, given: _Given) -> Iterable[str]:
    from assay.text.structure import schema_faults

    return schema_faults(cast("None", found), cast("bool", given.get("schema")))


_EXPLAINED: dict[str, Callable[[float, _Given], Explanation]] = {
    "choice_match": _choice_match,
    "contains": partial(_contains, name="substring"),
    "contains_all": partial(_contains, which="all of "),
    "contains_any": partial(_contains, which="any of "),
    "exact_match": _exact_match,
    "f1_score": _f1_score,
    "json_match": partial(_of_json, name="expected", faults=_differences),
    "json_schema": partial(_of_json, name="schema", faults=_faults),
    "math_equal": _math_equal,
    "numeric_match": _numeric_match,
    "regex_match": _regex_match,
    "similarity": _similarity,
}
