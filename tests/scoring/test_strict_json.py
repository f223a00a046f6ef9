"""JSON that means the same to every reader: what else it could mean is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError, Location
from assay.scoring import Json
from assay.scoring.strict_json import NotJsonError, decode_json, read_json
from tests.each import each

VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)  # fmt: skip


@each(
    ("text", "said"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' stands twice in one object (keep one of them)"),
        ('{"n": ' + "9" * 5_000 + "}", "a number has more than 4,300 digits (write it as text)"),
        ("NaN", "not JSON: NaN is not a JSON number"),
        ("1\n\n 2", "not JSON: Extra data: line 3 column 2"),
    ],
)
def test_what_could_mean_something_else_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_json(text, Location(file="x.jsonl", line=3))
    assert str(caught.value) == f"x.jsonl:3: {said}"


@given(VALUES)
def test_all_else_is_read_as_python_reads_it(value: Json) -> None:
    text = json.dumps(value)
    assert read_json(text) == read_json(text.encode()) == value


def test_numbers_that_are_none_are_let_through_where_asked() -> None:
    assert str(read_json("[NaN, -Infinity]", nan=True)) == "[nan, -inf]"
    with pytest.raises(InputError, match="stands twice"):
        read_json('{"a": NaN, "a": 1}', nan=True)


DIGITS = "9" * 5_000
CODEC = "'utf-8' codec can't decode byte 0xff in position 3: invalid start byte"
MANY = f"[{'{},' * 99}{{}}]"


TWICE = "the key 'a' stands twice in one object"


@each(
    ("text", "bounds", "told", "said"),
    [
        ('[{"b": {"a": 0.0, "c": [], "a": 1.0}}]', {}, ("repeated key", 0, 0, 0, "a"), TWICE),
        (r'{"a": 1, "\u0061": 2}', {}, ("repeated key", 0, 0, 0, "a"), TWICE),
        ("[1,\n NaN]", {}, ("number", 0, 0, 0, "[1]"), "NaN is not a JSON number"),
        ("[1, NaN", {}, ("number", 0, 0, 0, ""), "NaN is not a JSON number"),
        (
            '{"r": [1.5, {"s": -Infinity}]}',
            *({}, ("number", 0, 0, 0, "r[1].s"), "-Infinity is not a JSON number"),
        ),
        (
            f"[1e{DIGITS[:30]}]",
            *({}, ("number", 0, 0, 0, "[0]"), f"1e{DIGITS[:18]} is too large a number"),
        ),
        ('{"a": 1}\n\n x', {}, ("syntax", 11, 3, 2, ""), "Extra data"),
        ('["a\nb"]', {}, ("syntax", 3, 1, 4, ""), "Invalid control character at"),
        (b'"ab\xff"', {}, ("encoding", 3, 0, 0, ""), CODEC),
        (DIGITS, {}, ("digits", 0, 0, 0, ""), "a number has more than 4,300 digits"),
        ("[[[]]]", {"max_depth": 2}, ("depth", 0, 0, 0, ""), "it is nested deeper than 2 levels"),
        ("[" * 100_000, {}, ("depth", 0, 0, 0, ""), "it is nested too deeply"),
        ("[1, 2, 3]", {"max_values": 3}, ("values", 0, 0, 0, ""), "it holds more than 3 values"),
        (MANY, {"max_values": 150}, ("values", 0, 0, 0, ""), "it holds more than 150 values"),
        ("[0]" * 400, {"max_values": 1_000}, ("syntax", 3, 1, 4, ""), "Extra data"),
    ],
)
def test_who_asks_is_told_what_is_wrong_and_where(
    text: str | bytes, bounds: dict[str, int], told: tuple[object, ...], said: str
) -> None:
    with pytest.raises(NotJsonError) as caught:
        decode_json(text, max_depth=bounds.get("max_depth"), max_values=bounds.get("max_values"))
    error = caught.value
    assert (error.kind, error.offset, error.line, error.column, error.path) == told
    assert str(error) == said


@given(
    VALUES,
    st.sampled_from(
        ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"]
    ),
)
def test_json_is_read_in_every_encoding_that_it_may_have(value: Json, encoding: str) -> None:
    for text in (json.dumps(value, ensure_ascii=False), json.dumps({"": value}, indent=1)):
        if not text.isascii() or len(text) > 3:  # the encoding of less could not be told
            assert decode_json(text.encode(encoding, "surrogatepass")) == json.loads(text)


def test_what_is_around_a_value_and_in_a_text_is_as_json_has_it() -> None:
    assert [decode_json(f" {text}\n\n") for text in ("[1]", '{"a": 2}', "3")] == [[1], {"a": 2}, 3]
    assert decode_json('["a\nb"]', line_breaks=True) == ["a\nb"]
    assert decode_json("[1, 2, 3]", max_values=4, max_depth=1) == [1, 2, 3]
    assert decode_json('[{"a": [1]}]', max_depth=3) == [{"a": [1]}]
    assert decode_json(MANY, max_values=300) == [{}] * 100
    assert decode_json(json.dumps({"csv": '1,[{"' * 500}), max_values=10)  # in a text are none
    numbers = ["9007199254740993.0", "-9007199254740993E+0", "1e23", "9007199254740993.5", "0.5"]
    assert repr(decode_json(f"[{', '.join(numbers)}]")) == (
        "[9007199254740993, -9007199254740993, 1e+23, 9007199254740994.0, 0.5]"
    )
    with pytest.raises(InputError, match=r"^not a row: Extra data"):
        read_json("1 2", wrong="not a row")
