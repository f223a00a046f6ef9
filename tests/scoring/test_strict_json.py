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

REFUSED = [
    ('{"a": 1, "a": 2}', "the key 'a' stands twice in one object (keep one of them)"),
    ('[{"b": {"score": 0.0, "c": [], "score": 1.0}}]', "the key 'score' stands twice"),
    (r'{"a": 1, "\u0061": 2}', "the key 'a' stands twice"),
    ('{"n": ' + "9" * 5_000 + "}", "has more than 4,300 digits (write it as text)"),
    ("NaN", "not JSON: NaN is not a JSON number"),
    ("-Infinity", "not JSON: -Infinity is not a JSON number"),
    ("[" * 100_000, "not JSON: it is nested too deeply"),
    ('{"rows": [1e999]}', "not JSON: 1e999 is too large a number"),
    ("{", "not JSON: Expecting"),
    ("1 2", "not JSON: Extra data"),
    (b'"\xff"', "not JSON: 'utf-8' codec"),
]


@each(("text", "said"), REFUSED)
def test_what_could_mean_something_else_is_refused_with_its_place(
    text: str | bytes, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_json(text, Location(file="x.jsonl", line=3))
    assert str(caught.value).startswith("x.jsonl:3: ")
    assert said in str(caught.value)
    assert "set_int_max_str_digits" not in str(caught.value)


@given(VALUES)
def test_all_else_is_read_as_python_reads_it(value: Json) -> None:
    text = json.dumps(value)
    assert read_json(text) == read_json(text.encode()) == value


def test_numbers_that_are_none_are_let_through_where_asked() -> None:
    assert str(read_json("[NaN, -Infinity]", nan=True)) == "[nan, -inf]"
    with pytest.raises(InputError, match="stands twice"):
        read_json('{"a": NaN, "a": 1}', nan=True)


def test_a_depth_that_is_allowed_is_read_and_one_more_is_not() -> None:
    assert decode_json('[{"a": [1]}]', max_depth=3) == [{"a": [1]}]
    with pytest.raises(NotJsonError, match="deeper than 2 levels"):
        decode_json('[{"a": [1]}]', max_depth=2)


def test_the_place_of_what_is_not_a_number_is_told() -> None:
    with pytest.raises(NotJsonError) as caught:
        decode_json('{"rows": [{"score": 1}, {"score": -1e999}]}')
    assert caught.value.path == "rows[1].score"


def test_too_many_values_are_refused_before_they_are_read() -> None:
    text = "[" + "{}," * 99 + "{}]"
    assert decode_json(text, max_values=300) == [{}] * 100
    with pytest.raises(NotJsonError, match="more than 150 values"):
        decode_json(text, max_values=150)
    assert decode_json(json.dumps({"csv": '1,[{"' * 500}), max_values=10)
