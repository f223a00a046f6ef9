"""Labels as they are written, and the one scale that they and the scores are compared on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, TypeAlias

from assay.errors import InputError, ScoreError, nearest
from assay.scoring.json_safe import Json
from assay.scoring.results import finite_number

ScaleKind: TypeAlias = Literal["verdict", "levels", "number"]

Label: TypeAlias = "bool | float | str"
"""One rater's label: yes or no, a number, or the name of a level."""

_YES = frozenset({"pass", "met", "yes", "true"})
_NO = frozenset({"fail", "unmet", "no", "false"})
_NONE = frozenset({"", "na", "n/a", "none", "null"})
_WINNERS = ("B", "TIE", "A")
_MOST_LEVELS = 20
_WORDS = ["PASS", "FAIL", "MET", "UNMET", "YES", "NO", "TRUE", "FALSE", "NA", "NONE"]
_MOST_ODD = 5


def as_label(value: Json, levels: Sequence[str] = ()) -> Label | None:
    """One label as it is written; None where it says that there is none.

    ``PASS``, ``MET``, ``yes`` and ``true`` mean the same, as do their opposites; ``NA``, ``NONE``,
    null and an empty text are not a label.

    Raises:
        InputError: For what cannot be a label.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        try:
            return finite_number(value, what="a label")
        except ScoreError as error:
            raise InputError(error.message, hint=error.hint) from error
    if isinstance(value, str):
        word = value.strip()
        known = word.casefold()
        if known in _NONE:
            # Also in other letters: a label that is no level is refused, and never just left out.
            return word if known and known in map(str.casefold, levels) else None
        return known in _YES if known in _YES | _NO else word
    raise InputError(
        f"a label is {type(value).__name__}: {value!r:.60}",
        hint="true or false, PASS or FAIL, MET or UNMET, a number, or a level",
    )


def raters_of(value: Json, levels: Sequence[str] = ()) -> dict[str, Label | None]:
    """The labels of a row by rater: of a list by place, of a mapping by name, else of one rater.

    Raises:
        InputError: For what cannot be a label.
    """
    return {who: _as_said(said, levels) for who, said in written_by(value).items()}


def written_by(value: Json) -> dict[str, Json]:
    """What is written of a row by rater; see `raters_of`."""
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list):
        return {f"rater {place}": said for place, said in enumerate(value, 1)}
    return {"": value}


def _as_said(value: Json, levels: Sequence[str]) -> Label | None:
    """One label; where levels are told a word is a level's name, and no verdict."""
    said = as_label(value, levels)
    return value.strip() if levels and isinstance(value, str) and said is not None else said


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What labels can be.

    Attributes:
        kind: ``verdict`` (yes or no), ``levels`` (a few, in order) or ``number`` (in [0, 1]).
        classes: Names of the classes, lowest first; empty for numbers.
        places: What each label of a level stands for: its place among the classes.
    """

    kind: ScaleKind
    classes: tuple[str, ...]
    places: Mapping[Label, int]

    def value(self, label: Label) -> float:
        """A label as a number in [0, 1]."""
        if self.kind == "number":
            return float(label)
        if self.kind == "verdict":
            return float(bool(label))
        return self.places[label] / (len(self.classes) - 1)

    def truth(self, labels: Sequence[Label]) -> float | None:
        """What several raters say together, in [0, 1].

        Of verdicts the majority's, of levels the lower median, of numbers the mean.

        Returns:
            None for no labels, or where as many say yes as no.
        """
        values = sorted(self.value(label) for label in labels)
        if not values:
            return None
        if self.kind == "number":
            return fmean(values)
        if self.kind == "levels":
            return values[(len(values) - 1) // 2]
        share = fmean(values)
        return None if share == 0.5 else float(share > 0.5)

    @property
    def compared(self) -> Scale:
        """The classes that scores and labels are compared in: of numbers, whether they pass."""
        return self if self.kind == "levels" else VERDICTS

    def bar(self, threshold: float) -> float:
        """The value from which a label passes: a number as a score does, a verdict as it says."""
        return threshold if self.kind == "number" else 0.5

    def place(self, value: float, threshold: float) -> int:
        """The place among the classes that a score or a label in [0, 1] stands for.

        A verdict is yes from the threshold up; of levels it is the nearest, and half way between
        two the higher.
        """
        if self.kind == "verdict":
            return int(value >= threshold - 1e-9)
        return min(len(self.classes) - 1, math.floor(value * (len(self.classes) - 1) + 0.5))


VERDICTS = Scale(kind="verdict", classes=("no", "yes"), places={})
"""Yes and no."""


def scale_of(
    labels: Sequence[tuple[Label, str]],
    levels: Sequence[str] = (),
    written: Sequence[Json] = (),
) -> Scale:
    """Find the scale that labels are on.

    Raises:
        InputError: For no labels, labels of several kinds, or levels that nobody named: those that
            labels happen to have are perhaps not all, and scores would stand for others.
    """
    if levels:
        return _declared(labels, levels, written)
    if not labels:
        raise InputError("no row has a label", hint="--label names another field")
    first, where = labels[0]
    _require_one_kind(labels, written or [label for label, _ in labels])
    values = {label for label, _ in labels}
    if isinstance(first, bool):
        return VERDICTS
    if isinstance(first, str):
        names = {str(value) for value in values}
        if names <= set(_WINNERS):
            return Scale(kind="levels", classes=_WINNERS, places=_by_place(_WINNERS))
        raise InputError(
            f"{where}: label {first!r} is the name of a level",
            hint="give the order with --levels LOWEST,...,HIGHEST",
        )
    return _numeric({float(value) for value in values}, labels)


def _require_one_kind(labels: Sequence[tuple[Label, str]], written: Sequence[Json]) -> None:
    """Refuse labels of several kinds: those that are of another than most."""
    kinds = [type(label) for label, _ in labels]
    usual = max(dict.fromkeys(kinds), key=kinds.count)
    odd = [number for number, kind in enumerate(kinds) if kind is not usual]
    if not odd:
        return
    example = kinds.index(usual)
    shown = [f"{labels[number][1]}: label {_quoted(written[number])}" for number in odd]
    more = f"; and {len(shown) - _MOST_ODD} more" if len(shown) > _MOST_ODD else ""
    is_one = len(odd) == 1
    hint = "labels of one field are all verdicts, all numbers, or all levels"
    word = written[odd[0]]
    if usual is bool and isinstance(word, str):
        near = nearest(word.upper(), _WORDS)
        hint = f"{near} {hint}" if near.startswith("did you mean") else hint
    raise InputError(
        f"{'; '.join(shown[:_MOST_ODD])}{more} {'is' if is_one else 'are'} of another kind than "
        f"{_quoted(written[example])} of {labels[example][1]}",
        hint=hint,
    )


def _quoted(written: Json) -> str:
    """A label as it stands in the file."""
    return f"{written!r:.60}" if isinstance(written, str) else f"{json.dumps(written):.60}"


def _numeric(values: set[float], labels: Sequence[tuple[Label, str]]) -> Scale:
    if values <= {0.0, 1.0}:
        return VERDICTS
    if all(0.0 <= value <= 1.0 for value in values):
        return Scale(kind="number", classes=(), places={})
    low, high = min(values), max(values)
    odd, where = next((label, w) for label, w in labels if not 0.0 <= float(label) <= 1.0)
    if not all(value.is_integer() for value in values) or high - low >= _MOST_LEVELS:
        raise InputError(
            f"{where}: label {odd} is neither in [0, 1] nor one of a few levels",
            hint="divide by the largest, or name the levels with --levels",
        )
    # The scale is not what labels happen to use: on 1 to 5 with labels of 2 to 4 alone, a score of
    # 0.25 means 2, and would be read as 3.
    used = ",".join(str(number) for number in range(int(low), int(high) + 1))
    such = f": --levels {used} if these are all" if low < high else ""
    raise InputError(
        f"{where}: label {odd:g} is a level, and labels alone do not show which levels exist",
        hint=f"name all levels with --levels, lowest first, also those that no label uses{such}",
    )


def _declared(
    labels: Sequence[tuple[Label, str]], levels: Sequence[str], written: Sequence[Json]
) -> Scale:
    """The scale that was told; a label is written as one of its levels."""
    if len(set(levels)) != len(levels) or not 2 <= len(levels) <= _MOST_LEVELS:
        raise InputError(f"{len(levels)} levels", hint=f"2 to {_MOST_LEVELS}, each once")
    if "" in levels:
        raise InputError("a level has no name", hint="--levels LOWEST,...,HIGHEST")
    places = _by_place(levels)
    verdicts: dict[bool, int] = {}
    for place, name in enumerate(levels):
        if isinstance(said := as_label(name), bool):
            verdicts[said] = place
        try:
            places[float(name)] = place
        except ValueError:
            continue
    for number, (label, where) in enumerate(labels):
        # True is 1 to Python, but yes is no level 1: a verdict is a level by its word alone.
        said = as_label(label)
        if isinstance(said, bool) and said in verdicts:
            places[label] = verdicts[said]
        elif isinstance(label, bool) or label not in places:
            quoted = _quoted(written[number] if written else label)
            raise InputError(
                f"{where}: label {quoted} is not one of {', '.join(levels)}",
                hint="--levels names all levels that labels may have, lowest first",
            )
    return Scale(kind="levels", classes=tuple(levels), places=places)


def _by_place(names: Sequence[str]) -> dict[Label, int]:
    return {name: place for place, name in enumerate(names)}
