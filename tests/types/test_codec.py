"""The codec: what it reads and refuses, and that every mistake is named with its place."""

from __future__ import annotations

import contextlib
import json
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, Optional, cast

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError, Location
from assay.scoring import Json
from assay.types.codec import (
    Count,
    Filled,
    Problem,
    Seconds,
    ShapeError,
    Share,
    Within,
    check_fields,
    from_json,
    read,
    schema,
    to_json,
)
from tests.each import each


@dataclass(frozen=True)
class Wheel:
    """A wheel.

    Attributes:
        size: Inches, across
            the rim.
        spokes: How many.
    """

    size: float
    spokes: int = 36

    def __post_init__(self) -> None:
        if self.spokes < 3:
            raise InputError("too few spokes", location=Location(field="spokes"), hint="add some")


@dataclass(frozen=True)
class Race:
    share: Share = 0.5
    laps: Count | None = None
    names: Annotated[list[str], Filled()] | None = None
    costs: Count | Mapping[str, Count] = 0

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class Bike:
    TAG: ClassVar[str] = "bike"

    wheels: tuple[Wheel, ...]
    color: Literal["red", "green"] = "red"
    owner: str | None = None
    extra: Mapping[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, kw_only=True)
class Car:
    TAG: ClassVar[str] = "car"

    seats: int = 4


@dataclass(frozen=True)
class Noted:
    note: Json = 0


ROUND = Wheel(20.0)


@each(
    ("annotation", "data", "value"),
    [
        (bool, False, False),
        (int, 3, 3),
        (float, 0.5, 0.5),
        (None, None, None),
        (Literal["a", 1], 1, 1),
        (list[int], [1, 2], [1, 2]),
        (tuple[int, ...], [1, 2], (1, 2)),
        (Sequence[str], [], []),
        (Iterable[str], ["a"], ["a"]),
        (Mapping[str, list[int]], {"a": [1]}, {"a": [1]}),
        (Optional[int], None, None),  # noqa: UP045 - the older way to say it is read too
        (int | str, "1", "1"),
        (bool | int, True, True),
        (list[int] | dict[str, int], {"a": 1}, {"a": 1}),
        (Annotated[int, "years"], 3, 3),
        (Wheel, {"size": 20}, ROUND),
        (Bike, {"type": "bike", "wheels": []}, Bike(wheels=())),
        (Bike | Car, {"type": "car"}, Car()),
        (str | Wheel, {"size": 20}, ROUND),
        (list[str] | list[int], [1], [1]),
    ],
)
def test_reads(annotation: type[object], data: Json, value: object) -> None:
    found = from_json(annotation, data)
    assert found == value
    assert type(found) is type(value)


REFUSED: list[tuple[object, Json, str]] = [
    (str, 1, "expected text, got 1 (quote it)"),
    (str, [1], "expected text, got a list"),
    (int, True, "expected a whole number, got True"),
    (int, 1.0, "expected a whole number, got 1.0"),
    (float, True, "expected a number, got True"),
    (float, 10**400, "a number that a float can hold"),
    (bool, 1, "expected true or false, got 1"),
    (Literal["read", "write"], "wriet", "'wriet' is not valid here (did you mean 'write'?)"),
    (Literal[1], True, "True is not valid here"),
    (list[int], "12", "expected a list, got '12' (such as [a, b])"),
    (list[int], [1, "x"], "[1]: expected a whole number, got 'x'"),
    (dict[str, int], [], "expected a mapping, got a list"),
    (dict[str, int], {"a": {"b": 1}}, "a: expected a whole number, got a mapping"),
    (Share, 1.5, "must be in [0, 1], got 1.5"),
    (Race, {"laps": "x"}, "laps: expected a whole number or null, got 'x'"),
    (list[Count], [3, -1], "[1]: must be 0 or more, got -1"),
    (Seconds, 0, "must be more than 0, got 0"),
    (Seconds, float("inf"), "must be more than 0, got inf"),
    (Annotated[int, Within(0, 9, above=True)], 0, "must be above 0 and at most 9, got 0"),
    (Annotated[str, Filled("say something")], " ", "must not be blank (say something)"),
    (Annotated[list[str], Filled()], [], "must not be empty"),
    (Wheel, {}, "'size' is required"),
    (Wheel, {"size": 1, "spoke": 4}, "spoke: unknown field 'spoke' (did you mean 'spokes'?)"),
    (Wheel, {"size": 1, "spokes": 2}, "spokes: too few spokes (add some)"),
    (Bike, {"type": "car", "wheels": []}, "type: unknown field 'type'"),
    (Bike | Car, {"type": "cart"}, "type: 'cart' is unknown (did you mean 'car'?)"),
    (Bike | Car, {}, "type: None is unknown"),
    (Bike, {"wheels": [{"size": 1}, {"size": "x"}]}, "wheels[1].size: expected a number"),
]


@each(("annotation", "data", "problem"), REFUSED)
def test_refuses(annotation: type[object], data: Json, problem: str) -> None:
    with pytest.raises(ShapeError) as caught:
        from_json(annotation, data)
    assert problem in str(caught.value)


def test_attack_a_value_of_python_that_fits_no_option_is_not_checked() -> None:
    assert Race(1, 0, ["a"]).laps == 0
    with pytest.raises(ShapeError) as caught:
        Race(True, -1, [])
    assert [(p.field, p.message) for p in caught.value.problems] == [
        ("share", "must be a number, got True"),
        ("laps", "must be 0 or more, got -1"),
        ("names", "must not be empty"),
    ]
    for laps in (float("inf"), float("nan"), -0.5, True, "3"):
        with pytest.raises(ShapeError, match="laps: must be"):
            Race(laps=cast("int", laps))
    with pytest.raises(ShapeError, match="names: must not be empty"):  # tuples are lists
        Race(names=cast("list[str]", ()))
    assert Race(names=cast("list[str]", ("a",))).names == ("a",)
    with pytest.raises(ShapeError, match=r"costs\.b: must be 0 or more, got inf"):
        Race(costs=MappingProxyType({"a": 1, "b": cast("int", float("inf"))}))
    assert Race(costs=MappingProxyType({"a": 1})).costs == {"a": 1}


def test_every_problem_is_collected_in_order_of_appearance() -> None:
    wheels: Json = [{"size": "x"}, {"spokes": 36}]
    with pytest.raises(ShapeError) as caught:
        from_json(Bike, {"wheels": wheels, "colour": "red", "color": "blue", "owner": 3})
    assert [(p.field, p.at_key) for p in caught.value.problems] == [
        ("wheels[0].size", False),
        ("wheels[1].size", True),
        ("colour", True),
        ("color", False),
        ("owner", False),
    ]
    assert "(and 4 more)" in str(caught.value)
    assert caught.value.location.field == "wheels[0].size"


def test_reading_at_a_path_adds_to_the_problems() -> None:
    problems = [Problem(("a",), "earlier")]
    assert read(int, "x", ("graders", 1, "weight"), problems) is None
    assert [p.field for p in problems] == ["a", "graders[1].weight"]


def test_a_shape_error_can_be_pickled_and_shows_a_huge_text_short() -> None:
    error = ShapeError([Problem(("a", 1), "wrong", "right"), Problem((), "also")])
    again = pickle.loads(pickle.dumps(error))
    assert (again.problems, str(again)) == (error.problems, str(error))
    with pytest.raises(ShapeError) as caught:
        from_json(int, "x" * 10_000)
    assert len(str(caught.value)) < 100


def test_data_that_is_nested_without_end_is_refused() -> None:
    @dataclass
    class Node:
        inner: list[Json]

    data: Json = []
    for _ in range(100_000):
        data = [data]
    assert from_json(Node, {"inner": [data]}).inner == [data]  # any JSON is taken as it is
    with pytest.raises(ShapeError, match="nested too deeply"):
        from_json(_nested_lists(5_000), data)


def _nested_lists(depth: int) -> type[object]:
    annotation: type[object] = int
    for _ in range(depth):
        annotation = cast("type[object]", list[annotation])
    return annotation


def test_an_annotation_that_no_json_can_hold_is_the_programs_fault() -> None:
    with pytest.raises(TypeError, match="cannot read"):
        from_json(set[int], [1])


NAMES = st.text("abcdefgh", min_size=1, max_size=4)
JSON_VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
BIKES = st.builds(
    Bike,
    wheels=st.lists(
        st.builds(
            Wheel, st.floats(allow_nan=False, allow_infinity=False), st.integers(min_value=3)
        ),
        max_size=3,
    ).map(tuple),
    color=st.sampled_from(["red", "green"]),
    owner=st.none() | st.text(max_size=9),
    extra=st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=3),
)
VEHICLES = BIKES | st.builds(Car, seats=st.integers())


@given(st.lists(VEHICLES, max_size=3))
def test_what_is_written_is_read_back(vehicles: list[Bike | Car]) -> None:
    written = json.loads(json.dumps(to_json(vehicles)))
    assert from_json(list[Bike | Car], written) == vehicles


def test_defaults_are_left_out_and_look_alikes_of_them_are_not() -> None:
    assert to_json(Bike(wheels=(ROUND,))) == {"type": "bike", "wheels": [{"size": 20.0}]}
    assert to_json(Noted(note=0)) == {}
    assert to_json(Noted(note=False)) == {"note": False}
    assert to_json(Noted(note=0.0)) == {"note": 0.0}
    assert to_json({1: (2, {"a": object()})}) == {"1": [2, {"a": "<object: not serializable>"}]}


ANY_BIKE = st.fixed_dictionaries(
    {},
    optional={
        "wheels": JSON_VALUES | st.lists(st.fixed_dictionaries({"size": JSON_VALUES})),
        "color": JSON_VALUES,
        "type": JSON_VALUES,
        "extra": JSON_VALUES,
    },
)


@given(JSON_VALUES | ANY_BIKE, st.sampled_from([Bike | Car, Bike, list[Bike], dict[str, Wheel]]))
def test_any_json_is_read_or_refused_with_a_place(data: Json, annotation: type[object]) -> None:
    with contextlib.suppress(ShapeError):
        from_json(annotation, data)


CLOSED: dict[str, Json] = {"type": "object", "additionalProperties": False}
CAR: Json = {"type": {"const": "car"}, "seats": {"type": "integer"}}
WHEEL: Json = {
    "size": {"type": "number", "description": "Inches, across the rim."},
    "spokes": {"type": "integer", "description": "How many."},
}


@each(
    ("annotation", "expected"),
    [
        (str, {"type": "string"}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (list[bool], {"type": "array", "items": {"type": "boolean"}}),
        (Share, {"type": "number", "minimum": 0, "maximum": 1}),
        (Seconds, {"type": "number", "exclusiveMinimum": 0}),
        (Annotated[str, Filled()], {"type": "string"}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (object, {}),
        (Wheel, {**CLOSED, "properties": WHEEL, "required": ["size"]}),
        (Car, {**CLOSED, "properties": CAR, "required": ["type"]}),
    ],
)
def test_schemas(annotation: object, expected: Json) -> None:
    assert schema(annotation) == expected


@given(VEHICLES)
def test_what_is_written_fits_its_schema(vehicle: Bike | Car) -> None:
    validator = jsonschema_rs.validator_for(schema(Bike | Car))
    assert validator.is_valid(json.loads(json.dumps(to_json(vehicle))))
