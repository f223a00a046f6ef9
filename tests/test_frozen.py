"""Frozen classes are dataclasses like those of the standard library, and made without its price."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import typing
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace

import pytest

from assay.frozen import changed, frozen
from tests.each import each


@frozen
class Point:
    x: int
    y: float = 0.0
    tags: list[str] = field(default_factory=list[str], compare=False)
    secret: str = field(default="hidden", repr=False)


@dataclass(frozen=True, slots=True)
class Standard:
    x: int
    y: float = 0.0
    tags: list[str] = field(default_factory=list[str], compare=False)
    secret: str = field(default="hidden", repr=False)


@frozen(kw_only=True)
class Named:
    """A class with a rule."""

    low: int = 0
    high: int
    width: int = field(init=False, default=-1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", self.high - self.low)


@frozen(kw_only=True)
class Wider(Named):
    more: str = "more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign(Named):
    mine: int = 1


@frozen
class Own:
    word: str

    def __repr__(self) -> str:
        return "own"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and self.word.casefold() == other.word.casefold()

    def __hash__(self) -> int:
        return hash(self.word.casefold())


class Plain(Point):
    """Has a dictionary, as any class without slots."""


@frozen
class Nothing:
    pass


def test_it_shows_compares_and_hashes_as_the_standard_library_does() -> None:
    ours, theirs = Point(1, tags=["a"]), Standard(1, tags=["a"])
    assert repr(ours) == repr(theirs).replace("Standard", "Point")
    assert ours == Point(1, 0.0, ["b"])
    assert ours != Point(2)
    assert ours != theirs
    assert {ours: 1}[Point(1)] == 1
    assert [(f.name, f.type) for f in fields(ours)] == [(f.name, f.type) for f in fields(theirs)]
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert Point.__match_args__ == Standard.__match_args__
    assert typing.get_type_hints(Point) == typing.get_type_hints(Standard)
    assert str(inspect.signature(Point)) == str(inspect.signature(Standard)).replace(" -> None", "")
    assert not hasattr(ours, "__dict__")
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())
    nan = float("nan")
    assert Point(1, nan) == Point(1, nan)  # the very same, as in a tuple


def test_a_field_that_hashes_nothing_leaves_its_class_hashable() -> None:
    @frozen
    class Ours:
        name: str
        found: list[int] = field(default_factory=list[int], hash=False)
        seen: list[int] = field(default_factory=list[int], compare=False)

    assert hash(Ours("a", [1])) == hash(Ours("a", [2])) != hash(Ours("b", [1]))
    assert Ours("a", [1]) != Ours("a", [2])
    assert Ours("a", [1], [1]) == Ours("a", [1], [2])


@each("value", [Point(1, 2.0, ["a"]), Wider(high=3), Nothing()])
def test_nothing_of_it_can_be_changed_and_a_copy_is_equal(value: Point | Wider | Nothing) -> None:
    name = next((one.name for one in fields(value)), "x")
    with pytest.raises(FrozenInstanceError, match=name):
        setattr(value, name, 5)
    with pytest.raises(FrozenInstanceError, match=name):
        delattr(value, name)
    copies: list[Callable[[], object]] = [
        lambda: pickle.loads(pickle.dumps(value)),
        lambda: copy.deepcopy(value),
        lambda: copy.copy(value),
    ]
    assert all(make() == value for make in copies)


def test_each_object_has_defaults_of_its_own() -> None:
    one, other = Point(1), Point(1)
    one.tags.append("a")
    assert other.tags == []
    assert replace(one, x=2).tags is one.tags


def test_fields_taken_by_name_derived_classes_and_what_follows_the_fields() -> None:
    assert Named(high=5).width == 5
    assert Wider(high=5, low=1) == Wider(low=1, high=5, more="more")
    assert Wider(high=5).width == Foreign(high=5).width == 5
    assert Wider(high=5) != Named(high=5)
    with pytest.raises(TypeError, match="positional"):
        Named(5)  # type: ignore[misc]
    with pytest.raises(TypeError, match="high"):
        Named()  # type: ignore[call-arg]
    with pytest.raises(FrozenInstanceError):
        Foreign(high=5).mine = 2  # type: ignore[misc]


def test_methods_of_the_class_itself_stay_and_a_plain_class_may_have_more() -> None:
    value = Plain(1)  # a class without slots that derives from it may have more
    value.more = 2  # type: ignore[attr-defined]
    del value.more  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        value.x = 2  # type: ignore[misc]
    assert repr(Own("a")) == "own"
    assert Own("a") == Own("A")
    assert hash(Own("a")) == hash(Own("A"))


def test_a_changed_copy_is_what_replace_makes_and_is_not_checked() -> None:
    one = Point(1, 2.0, ["a"], "s")
    assert changed(one, y=3.0) == replace(one, y=3.0)
    assert (changed(one, y=3.0).tags is one.tags, one.y) == (True, 2.0)
    assert changed(Named(high=5), low=4).width == 5
