"""JSON in answers: found, read by the standard, compared and validated."""

from __future__ import annotations

import json
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.text import json_match, json_schema, parse_json, structure
from tests.each import each

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
NUMBER = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@each(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        (" [1, 2] \n", [1, 2]),
        ("5", 5),
        ('Sure:\n```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ("```\n[1]\n```", [1]),
        ("```python\n[0]\n```\n```JSON\n[1]\n```", [1]),
        ("```json\n[1]\n```\n```json\n[2]\n```", [2]),
        ('I say {"a": "}"} and leave', {"a": "}"}),
        ('he said "hi: {"a": 1}', {"a": 1}),
        ("first [1] then [2]", [2]),
        ('{"a": 1}, see [1].', {"a": 1}),
        ('{"a": [1, 2, ], }', {"a": [1, 2]}),
        ('{\n  // its name\n  "a": "//,}", /* , */\n}', {"a": "//,}"}),
        ('{\n  # its name\n  "a": "#,}", # 1,\n}', {"a": "#,}"}),
        ('```json\n{"a": "x\ny",}\n```', {"a": "x\ny"}),
        ('So {"a": 1,} it is', {"a": 1}),
        ('<think>{"a": 2} and</think> so {"a": 1} <think>', {"a": 1}),
        ('{"a": "```"}', {"a": "```"}),
        ("[}] [1]", [1]),
        ("null", None),
    ],
)
def test_where_json_is_looked_for(text: str, value: Json) -> None:
    parsed = parse_json(text)
    assert parsed.ok
    assert parsed.value == value


@each(
    ("text", "reason"),
    [
        ("", "empty"),
        ("no json", "not JSON"),
        ('{"a": 1, "a": 2}', "twice"),
        ("NaN", "NaN"),
        ("[Infinity]", "Infinity"),
        ("1e999", "too large"),
        ("[" * 100_000, "levels"),
        ("1" * 5_000, "digits"),
        ("```python\n[0]\n```", "not JSON"),
    ],
)
def test_what_is_no_json(text: str, reason: str) -> None:
    if text.startswith("```"):
        text = text.replace("[0]", "x")
    parsed = parse_json(text)
    assert not parsed.ok
    assert parsed.value is None
    assert reason in parsed.error


def test_pick_among_fences_and_strict_without_prose() -> None:
    two = "```json\n[1]\n```\n```json\n[2]\n```"
    assert parse_json(two, pick="first").value == [1]
    assert not parse_json(two, pick="only").ok
    assert parse_json(two.replace("2", "1"), pick="only").value == [1]
    assert json_match("[1] or [2]", [2], pick="only") == 0.0
    assert "several values" in parse_json("[1] or [2]", pick="only").error
    assert json_match("[1] <answer>[2]</answer> [3]", [2], extract="answer_tag") == 1.0
    assert parse_json("see [1]", strict=True).ok is False
    assert parse_json("[1,]", strict=True).ok is False
    assert json_match("see [1]", [1], strict=True) == 0.0
    assert json_match(" [1] ", [1], strict=True) == 1.0


@given(JSON)
def test_json_equals_itself_in_every_dress(value: Json) -> None:
    text = json.dumps(value)
    expected = text if isinstance(value, str) else value  # a string is read as JSON text
    assert json_match(text, expected) == 1.0
    assert json_match(f"Here:\n```json\n{text}\n```\n", expected) == 1.0
    assert json_match(json.dumps(value, indent=2), text) == 1.0
    assert json_match(text, expected, partial=True) == 1.0


@given(st.text(alphabet='[]{}",:1a \\`\nnull'))
def test_no_answer_raises(text: str) -> None:
    assert json_match(text, {"a": 1}) in (0.0, 1.0)
    assert json_schema(text, {"type": "object"}) in (0.0, 1.0)


@each(
    ("answer", "expected", "score"),
    [
        ('{"b": 2, "a": 1}', {"a": 1.0, "b": 2}, 1.0),
        ("[true]", [1], 0.0),
        ("[1]", [True], 0.0),
        ('["1"]', [1], 0.0),
        ("[2, 1]", [1, 2], 0.0),
        ('{"a": 1, "b": 2}', {"a": 1}, 0.0),
        ("[]", {}, 0.0),
        ("null", None, 1.0),
        ("1e308", 10**400, 0.0),
        ('"Paris"', '"Paris"', 1.0),
        ("(1, 2) is [1, 2]", (1, 2), 1.0),
    ],
)
def test_json_match(answer: str, expected: Any, score: float) -> None:
    assert json_match(answer, expected) == score


def test_tolerance() -> None:
    assert json_match("[0.5]", [0.6], tolerance=0.2) == 1.0
    assert json_match("[0.5]", [0.8], tolerance=0.2) == 0.0
    assert json_match("[true]", [1], tolerance=1) == 0.0


@each(
    ("answer", "expected", "score"),
    [
        ('{"a": 1, "b": [1, 2]}', {"a": 1, "b": [1, 2]}, 1.0),
        ('{"a": 1, "b": [1, 3]}', {"a": 1, "b": [1, 2]}, 2 / 3),
        ('{"a": 1}', {"a": 1, "b": [1, 2]}, 1 / 3),
        ('{"b": [2, 1]}', {"a": 1, "b": [1, 2]}, 0.0),
        ('{"a": {"x": 1}, "b": [1, 2]}', {"a": 1, "b": [1, 2]}, 2 / 3),
        ("[]", {"a": 1, "b": [1, 2]}, 0.0),
        # Padding costs.
        ("[1, 2, 3, 4]", [1, 2], 0.5),
        ('{"a": 1, "b": 1}', {"a": 1}, 0.5),
        *[("[1]", [1, None], 0.5), ("[1, null]", [1], 0.5), ('{"a": 1}', {"a": 1, "b": None}, 0.5)],
    ],
)
def test_partial_scores_the_share_of_leaves(answer: str, expected: Json, score: float) -> None:
    assert json_match(answer, expected, partial=True) == pytest.approx(score)


@each(
    ("expected", "options"),
    [
        *[("Paris", {}), ("see [1]", {}), ("[1,]", {})],
        ({1, 2}, {}),
        (float("nan"), {}),
        ([1], {"tolerance": -1}),
        ([1], {"tolerance": float("nan")}),
        ([1], {"pick": "best"}),
    ],
)
def test_a_bad_expectation_is_refused(expected: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        json_match("[1]", expected, **options)


# --- schemas -------------------------------------------------------------------------------------


def test_json_schema() -> None:
    schema: dict[str, Json] = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "integer"}},
    }
    assert json_schema('Here: {"a": 1}', schema) == 1.0
    assert json_schema('{"a": "1"}', schema) == 0.0
    assert json_schema("no json", schema) == 0.0
    assert json_schema('{"a": 1} or {"a": 2}', schema, extract="boxed") == 0.0
    assert json_schema(r"\boxed{[1]}", {"type": "array"}, extract="boxed") == 1.0
    assert json_schema("5", schema=True) == 1.0
    assert json_schema('Here: {"a": 1}', schema, strict=True) == 0.0


def test_patterns_run_in_linear_time_and_half_a_character_is_one() -> None:
    assert json_schema(json.dumps("a" * 5_000 + "!"), {"pattern": "^(a+)+$"}) == 0.0
    assert json_schema('"\\ud800"', {"type": "string", "maxLength": 1}) == 1.0


@each(
    "schema",
    [
        {"type": "nope"},
        {"pattern": "(?=a)"},
        {"$ref": "#/missing"},
        {"$ref": "http://localhost:9/x"},
        {"$ref": "file:///etc/hostname"},
        {"$schema": "http://localhost:9/draft"},
        {"minimum": float("nan")},
        {"const": {1}},
        [1],
        "{}",
    ],
)
def test_a_bad_schema_is_refused(schema: Any) -> None:
    with pytest.raises(InputError):
        json_schema("1", schema)


def exploding(levels: int) -> dict[str, Json]:
    """A schema of a few kilobytes that is looked at once for each of two to the power of levels."""
    parts: dict[str, Json] = {f"a{levels}": {}}
    for n in range(levels):
        twice: list[Json] = [{"$ref": f"#/$defs/a{n + 1}"}] * 2
        parts[f"a{n}"] = {"allOf": twice}
    return {"$defs": parts, "$ref": "#/$defs/a0"}


def test_a_schema_that_never_ends_is_its_authors_fault_and_told_at_once_the_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(structure, "_SECONDS", 0.05)
    for _ in range(50):  # of which one costs time
        with pytest.raises(InputError, match="cannot be read in time"):
            json_schema("1", exploding(34))
    assert json_schema("1", exploding(3)) == 1.0  # by another process


def test_an_answer_that_makes_a_pattern_take_too_long_is_not_valid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(structure, "_SECONDS", 0.5)
    pattern: dict[str, Json] = {"pattern": "^[ab]*a[ab]{400}c"}
    end = "a" + "b" * 400 + "c"
    assert json_schema(json.dumps(end), pattern) == 1.0
    mixed = "".join(Random(1).choices("ab", k=1_000_000))
    assert json_schema(json.dumps(mixed + end), pattern) == 0.0
    nested: dict[str, Json] = {}
    for _ in range(40):
        nested = {"unevaluatedProperties": False, "anyOf": [nested], "allOf": [{}]}
    with pytest.raises(InputError, match="cannot be read in time"):
        json_schema("{}", nested)


@each("size", [1, 1_000_000])
def test_both_ways_of_validating_agree(size: int) -> None:
    schema: dict[str, Json] = {"anyOf": [{"type": "string", "maxLength": size}, {"const": None}]}
    assert json_schema(json.dumps("a" * size), schema) == 1.0
    assert json_schema(json.dumps("a" * (size + 1)), schema) == 0.0
    assert json_schema("null", schema) == 1.0


@given(st.integers(2**53 - 5, 2**70), st.integers(-2, 2), st.sampled_from([".0", ".00", "e0", ""]))
def test_attack_whole_numbers_that_a_float_would_round(number: int, off: int, end: str) -> None:
    """9007199254740993.0 was 9007199254740992."""
    assert json_match(f'{{"n": {number}{end}}}', {"n": number + off}) == float(not off)
    for text in ("1e300", "1e20", "0.1", "12345678901234567.5", "9007199254740992.0"):
        assert isinstance(parse_json(text).value, float)  # other numbers stay floats


def test_an_expected_value_that_is_no_json_is_its_authors_fault() -> None:
    deep: Json = []
    for _ in range(300):
        deep = [deep]
    for expected, said in (
        ("{", r"^expected is a text that is not JSON: not JSON: Expec"),
        (object(), r"^expected is not JSON: Object of type object is not JSON"),
        (deep, "levels"),
    ):
        with pytest.raises(InputError, match=said):
            json_match("1", cast("Json", expected))
