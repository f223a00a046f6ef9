"""`Criterion`: one thing that is asked of work, and the tree of them that a rubric is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn, TypeAlias, cast

from assay.errors import InputError, Location
from assay.graders.judges.fence import RowText
from assay.scoring.json_safe import Json
from assay.types import codec
from assay.types.codec import Path, Problem, ShapeError

Polarity: TypeAlias = Literal["auto", "presence", "absence"]
Criteria: TypeAlias = "Sequence[str | tuple[str, float] | Mapping[str, object] | Criterion]"
"""Criteria as people write them: a requirement, that with its weight, or a mapping."""

MOST = 5_000
"""Criteria of one rubric: each is a question to a judge."""

DEEPEST = 30
"""How deep groups stand in each other."""

_NAMES = {"criterion": "requirement"}
_PLAIN_NAME = re.compile(r"[\w-]{1,40}")

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
        for field, message in self._wrong():
            raise InputError(message, location=Location(field=field))

    def _wrong(self) -> Iterator[tuple[str, str]]:
        if not self.requirement.strip():
            yield "requirement", "a criterion needs words"
        if not math.isfinite(self.weight) or abs(self.weight) > 1e9:
            yield "weight", f"must be finite, got {self.weight}"
        if self.required and self.weight < 0:
            yield "required", "a fault (negative weight) cannot be required"
        if self.levels and self.children:
            yield "levels", "a group has no levels; its children may"
        names = [level.name for level in self.levels]
        if len(names) == 1 or len(set(names)) < len(names) or not all(names):
            yield "levels", "at least two, with different names"
        for level in self.levels:
            if not 0.0 <= level.value <= 1.0:
                yield "levels", f"{level.name!r} is worth {level.value}, not in [0, 1]"
            # A judge is told the names outside of fences: they are what it may reply.
            if isinstance(self.requirement, RowText) and not _PLAIN_NAME.fullmatch(level.name):
                yield "levels", f"{level.name!r:.60}: of a row, a name is one word of 40 characters"

    @property
    def label(self) -> str:
        """The name of its score."""
        return str(self.name or self.requirement)

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


def read_criteria(written: object, *, path: Path = ("criteria",)) -> tuple[Criterion, ...]:
    """Read criteria as people write them; ``path`` is where they stand.

    Raises `ShapeError`, whose message begins with the place.
    """
    if isinstance(written, str):
        hint = "a file of criteria is named with 'rubric'"
        _refuse(path, "must be a list of texts, or of [text, weight]", hint)
    problems: list[Problem] = []
    read = codec.read(tuple[Criterion, ...], _listed(written, path, 0), path, problems)
    if problems:
        raise ShapeError(problems)
    criteria = cast("tuple[Criterion, ...]", read)
    if not _weighs(criteria):
        _refuse(path, "all of them weigh 0", "nothing could score")
    return criteria


def _weighs(criteria: Sequence[Criterion]) -> bool:
    return any(one.weight and (not one.children or _weighs(one.children)) for one in criteria)


def _refuse(path: Path, message: str, hint: str = "") -> NoReturn:
    raise ShapeError([Problem(path, message, hint)])


def _listed(written: object, path: Path, depth: int) -> list[Json]:
    """Criteria with all that their short forms leave out."""
    if isinstance(written, str) or not isinstance(written, Sequence):
        _refuse(path, "must be a list", "of texts, or of [text, weight]")
    items = cast("Sequence[object]", written)
    if not items:
        _refuse(path, "the list is empty", "a rubric needs at least one criterion")
    if len(items) > MOST:
        _refuse(path, f"there are more than {MOST:,} criteria")
    if depth > DEEPEST:
        _refuse(path[:3], f"groups are nested more than {DEEPEST} deep")
    return [_whole(item, (*path, place), depth) for place, item in enumerate(items)]


def _whole(item: object, path: Path, depth: int) -> Json:
    if isinstance(item, Criterion):
        return codec.to_json(item)
    if isinstance(item, str):
        return {"requirement": item}
    if isinstance(item, Mapping):
        given = {_NAMES.get(k, k): v for k, v in cast("Mapping[str, Json]", item).items()}
        if isinstance(polarity := given.get("polarity"), RowText):
            given["polarity"] = str(polarity)  # one of three words, which no judge is shown
        if "levels" in given:
            given["levels"] = _levels(given["levels"])
        if "children" in given:
            given["children"] = _listed(given["children"], (*path, "children"), depth + 1)
        return given
    if isinstance(item, Sequence) and len(pair := cast("Sequence[Json]", item)) == 2:
        return {"requirement": pair[0], "weight": pair[1]}
    _refuse(path, "is not a criterion", "text, [text, weight], or a mapping")


def _levels(written: Json) -> Json:
    """A scale from the worst to the best, each level worth as much more as the next."""
    if isinstance(written, dict):
        written = [{"name": name, "description": said} for name, said in written.items()]
    if not isinstance(written, list):
        return written
    most = max(1, len(written) - 1)
    named = [one if isinstance(one, dict) else {"name": str(one)} for one in written]
    return [{"value": place / most, **one} for place, one in enumerate(named)]
