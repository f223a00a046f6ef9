"""`Criterion`: one thing that is asked of work, and the tree of them that a rubric is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, cast

from assay.errors import InputError, nearest

__all__ = ["Criteria", "Criterion", "Level", "Polarity", "leaves", "read_criteria", "signed"]

Polarity: TypeAlias = Literal["auto", "presence", "absence"]
Criteria: TypeAlias = "Sequence[str | tuple[str, float] | Mapping[str, object] | Criterion]"
"""Criteria as people write them: a requirement, that with its weight, or a mapping."""

_MOST = 5_000
_DEEPEST = 50

_ABSENCE = re.compile(
    r"(?i)\b(not|no|none|never|without|avoids?|free of|omits?|lacks?|refrains?|only|nothing"
    r"|fails?|neglects?|misses|missing|forgets?|removes?|deletes?|drops?|leaves? out|absent"
    r"|instead of|rather than"
    r"|concise|brief|short|shorter|fewer|less|at most|under \d+|stays?|exactly)\b|n['\u2019]t\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One step of a scale, with the words that anchor it."""

    name: str
    value: float
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One requirement, or a group of them."""

    # What is asked, in plain words; for a group, what the group is about.
    requirement: str
    # Its share of the score. Negative for a fault: where it is met, it costs.
    weight: float = 1.0
    name: str = ""
    required: bool = False
    # Whether it asks that something is there (``presence``: the judge must quote it) or that
    # something is not (``absence``). ``auto`` goes by its words.
    polarity: Polarity = "auto"
    # Whether the judge may say that it does not apply, which takes it out of the score. Off by
    # default: an answer could talk its way out of what it fails.
    allow_na: bool = False
    levels: tuple[Level, ...] = ()
    # For a group: what it consists of. Its value is their weighted mean.
    children: tuple[Criterion, ...] = ()

    def __post_init__(self) -> None:
        if not self.requirement.strip():
            raise InputError("requirement: a criterion needs words")
        if not math.isfinite(self.weight) or abs(self.weight) > 1e9:
            raise InputError(f"weight: must be finite, got {self.weight}")
        if self.polarity not in ("auto", "presence", "absence"):
            raise InputError(f"polarity: {self.polarity!r} must be one of auto, presence, absence")
        if self.required and self.weight < 0:
            raise InputError("required: a fault (negative weight) cannot be required")
        if self.levels and self.children:
            raise InputError("levels: a group has no levels; its children may")
        names = [level.name for level in self.levels]
        if len(names) == 1 or len(set(names)) < len(names) or not all(names):
            raise InputError("levels: at least two, with different names")
        for level in self.levels:
            if not 0.0 <= level.value <= 1.0:
                raise InputError(f"levels: {level.name!r} is worth {level.value}, not in [0, 1]")

    @property
    def label(self) -> str:
        """The name of its score."""
        return self.name or self.requirement

    @property
    def is_presence(self) -> bool:
        """Whether something is to be found that can be quoted."""
        if self.polarity == "auto":
            return _ABSENCE.search(self.requirement) is None
        return self.polarity == "presence"


def leaves(criteria: Sequence[Criterion]) -> Iterator[Criterion]:
    """The criteria that a judge is asked about, in order."""
    for criterion in criteria:
        if criterion.children:
            yield from leaves(criterion.children)
        else:
            yield criterion


def signed(
    criteria: Sequence[Criterion], *, is_fault: bool = False
) -> Iterator[tuple[Criterion, bool]]:
    """The `leaves`, each with whether it counts against the answer where it is met."""
    for criterion in criteria:
        is_against = is_fault != (criterion.weight < 0)
        if criterion.children:
            yield from signed(criterion.children, is_fault=is_against)
        else:
            yield criterion, is_against


def read_criteria(written: object, *, where: str = "criteria") -> tuple[Criterion, ...]:
    """Read criteria as people write them."""
    if isinstance(written, str):
        raise InputError(
            f"{where} must be a list of texts, or of [text, weight]",
            hint="a file of criteria is named with 'rubric'",
        )
    if not isinstance(written, Sequence):
        raise InputError(f"{where} must be a list", hint="of texts, or of [text, weight]")
    items = cast("Sequence[object]", written)
    if not items:
        raise InputError(
            f"{where}: the list is empty", hint="a rubric needs at least one criterion"
        )
    if len(items) > _MOST:
        raise InputError(f"{where}: there are more than {_MOST:,} criteria")
    if where.count(".children") >= _DEEPEST:
        raise InputError(f"{where}: groups are nested more than {_DEEPEST} deep")
    read = tuple(_read(item, f"{where}[{index}]") for index, item in enumerate(items))
    if ".children" not in where and not _weighs(read):
        raise InputError(f"{where}: all of them weigh 0", hint="nothing could score")
    return read


def _weighs(criteria: Sequence[Criterion]) -> bool:
    return any(one.weight and (not one.children or _weighs(one.children)) for one in criteria)


def _read(item: object, where: str) -> Criterion:
    if isinstance(item, Criterion):
        return item
    try:
        if isinstance(item, str):
            return Criterion(requirement=item)
        if isinstance(item, Mapping):
            return _read_mapping(cast("Mapping[str, object]", item), where)
        if isinstance(item, Sequence):
            pair = cast("Sequence[object]", item)
            if len(pair) == 2 and isinstance(pair[0], str):
                return Criterion(requirement=pair[0], weight=_number(pair[1], "weight"))
    except InputError as error:
        message = error.message if error.message.startswith(where) else f"{where}.{error.message}"
        raise InputError(message, hint=error.hint) from None
    raise InputError(f"{where} is not a criterion", hint="text, [text, weight], or a mapping")


def _read_mapping(item: Mapping[str, object], where: str) -> Criterion:
    known = [one.name for one in fields(Criterion)]
    given = {"requirement": item["criterion"], **item} if "criterion" in item else dict(item)
    given.pop("criterion", None)
    for key in given:
        if key not in known:
            raise InputError(f"{key}: a criterion has no such field", hint=nearest(key, known))
    if not isinstance(given.get("requirement"), str):
        raise InputError("requirement: is required", hint="the criterion in plain words")
    if "weight" in given:
        given["weight"] = _number(given["weight"], "weight")
    for key in ("required", "allow_na"):
        if not isinstance(given.get(key, False), bool):
            raise InputError(f"{key}: must be true or false")
    for key in ("name", "polarity"):
        if not isinstance(given.get(key, ""), str):
            raise InputError(f"{key}: must be text")
    if "levels" in given:
        given["levels"] = _read_levels(given["levels"])
    if "children" in given:
        given["children"] = read_criteria(given["children"], where=f"{where}.children")
    return Criterion(**given)  # pyright: ignore[reportArgumentType] - each field is checked above


def _read_levels(written: object) -> tuple[Level, ...]:
    if isinstance(written, Mapping):  # name: description, from worst to best
        table = cast("Mapping[object, object]", written)
        listed: list[object] = [
            {"name": str(name), "description": str(said)} for name, said in table.items()
        ]
    elif isinstance(written, Sequence) and not isinstance(written, str):
        listed = list(cast("Sequence[object]", written))
    else:
        raise InputError("levels: must be a list, from the worst to the best")
    most = max(1, len(listed) - 1)
    return tuple(_read_level(level, place / most) for place, level in enumerate(listed))


def _read_level(level: object, value: float) -> Level:
    if isinstance(level, Mapping):
        given = cast("Mapping[str, object]", level)
        if strange := [key for key in given if key not in ("name", "value", "description")]:
            hint = nearest(str(strange[0]), ["name", "value", "description"])
            raise InputError(f"levels: a level has no field {strange[0]!r}", hint=hint)
        worth = _number(given["value"], "levels") if "value" in given else value
        said = given.get("description", "")
        return Level(name=str(given.get("name", "")), value=worth, description=str(said))
    return Level(name=str(level), value=value)


def _number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{what}: must be a number, got {value!r}")
    return float(value)
