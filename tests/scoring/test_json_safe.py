"""The record beside a score: whatever it is made from, it is small, plain JSON without secrets."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.scoring import Json, json_safe, record_parameters
from assay.scoring.json_safe import MAX_RECORDED_BYTES, plain, record_evidence
from tests.each import each

BOUND = 3 * MAX_RECORDED_BYTES
"""What the written record may have in characters: its text, and the marks where it was cut."""


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    label: object = None


@each(
    ("value", "copied"),
    [
        (None, None),
        (0.5, 0.5),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (10**40, "<int of 133 bits>"),
        (b"bytes \xff", "bytes \ufffd"),
        (Path("/a/b"), "/a/b"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (timedelta(minutes=1), 60.0),
        (Color.RED, "red"),
        (Point(1, Point(2)), {"x": 1, "label": {"x": 2, "label": None}}),
        ((1, [2]), [1, [2]]),
        ({3, 1, 2}, [1, 2, 3]),
        ({1: "a", (1, 2): "b"}, {"1": "a", "(1, 2)": "b"}),
        (object(), "<object: not serializable>"),
        (len, "<builtin_function_or_method: not serializable>"),
        (Point, "<type: not serializable>"),
        ("lone \ud800 surrogate", "lone ? surrogate"),
    ],
)
def test_table(value: object, copied: Json) -> None:
    assert json_safe(value) == copied


def _loop() -> object:
    loop: list[object] = []
    loop.append({"self": loop})
    return loop


def _deep() -> object:
    deep: object = "bottom"
    for _ in range(5_000):
        deep = [deep]
    return deep


def _shared() -> object:
    """A few lists that hold each other two hundred times: 200**8 items to whoever follows."""
    shared: object = []
    for _ in range(8):
        shared = [shared] * 200
    return shared


def _shared_mappings() -> object:
    shared: object = {}
    for _ in range(8):
        shared = {str(number): shared for number in range(200)}
    return shared


@each(
    "make",
    [
        _loop,
        _deep,
        _shared,
        _shared_mappings,
        lambda: "x" * 10_000_000,
        lambda: ["x" * 5_000] * 5_000,
        lambda: {f"key {n}": n for n in range(100_000)},
        lambda: {"x" * 1_000_000: "x" * 1_000_000},
        lambda: [[["y"] * 200] * 200] * 200,
        lambda: b"z" * 10_000_000,
        lambda: 10**100_000,
    ],
)
def test_bounded(make: Callable[[], object]) -> None:
    assert len(json.dumps(json_safe(make()))) < BOUND


def test_a_long_text_keeps_its_head_and_tail() -> None:
    text = "HEAD" + "x" * 100_000 + "TAIL"
    for kept, copied in ((4_096, json_safe(text)), (80_000, record_evidence({"a": text})["a"])):
        half = kept // 2
        cut = f"... [{len(text) - kept} characters cut] ..."
        assert copied == f"{text[:half]}{cut}{text[-half:]}"
    assert json_safe("x" * 4_096) == "x" * 4_096


_WRAPS: list[Callable[[object], object]] = [
    lambda one: [one],
    lambda one: {"a": one},
    lambda one: Point(1, (one,)).label,
]


@each("wrap", _WRAPS)
def test_twelve_levels_are_copied_and_what_is_deeper_is_named(
    wrap: Callable[[object], object],
) -> None:
    value: object = {"deep": 1}
    for _ in range(12):
        value = wrap(value)
    found: object = json_safe(value)
    for _ in range(12):
        assert isinstance(found, list | dict)
        (found,) = found.values() if isinstance(found, dict) else found
    assert found == "<dict: too deep>"
    levels = wrap(wrap("x"))
    evidence = json_safe({"a": levels})
    assert evidence == {"a": json_safe(levels)}
    cyclic: list[object] = [1]
    cyclic.append(cyclic)
    assert json_safe(cyclic) == [1, "<list: too deep>"]


def test_what_was_left_out_is_counted() -> None:
    assert json_safe(list(range(205)))[-1] == "... 5 more"  # type: ignore[index]
    many = json_safe({str(n): n for n in range(205)})
    assert isinstance(many, dict)
    assert many["..."] == "5 more"


class Hostile(Mapping[str, object]):
    """Fails at whatever it is asked."""

    def __getitem__(self, key: str) -> NoReturn:
        raise ZeroDivisionError

    def __iter__(self) -> Iterator[str]:
        raise ZeroDivisionError

    def __len__(self) -> int:
        raise ZeroDivisionError

    def __repr__(self) -> str:
        raise ZeroDivisionError

    def __hash__(self) -> int:
        return 1


class HostileText(str):
    __slots__ = ()

    def __len__(self) -> int:
        raise ZeroDivisionError

    def encode(self, encoding: str = "", errors: str = "") -> NoReturn:
        raise ZeroDivisionError


def test_objects_that_fail_at_everything_are_named() -> None:
    assert json_safe([Hostile(), 1]) == ["<Hostile: not serializable>", 1]
    assert json_safe({"a": HostileText("x"), "b": 2})["b"] == 2  # type: ignore[call-overload,index]
    assert json_safe({Hostile()}) in ("<set: not serializable>", ["<Hostile: not serializable>"])


@each(
    "name",
    ["api_key", "OPENAI_API_KEY", "password", "Authorization", "x-secret", "token", "auth-token"],
)
@each("secret", ["hunter2", b"hunter2", ["hunter2"], {"value": "hunter2"}])
def test_what_is_named_like_a_secret_is_redacted_at_any_depth(name: str, secret: object) -> None:
    recorded = record_parameters({"a": [{"b": {name: secret}}], name: secret})
    assert "hunter2" not in json.dumps(recorded)
    assert recorded[name] == "[redacted]"


@each(
    "kept",
    [
        *({name: "x"} for name in ("max_tokens", "tokenizer", "token_count", "tokens", "answer")),
        {"token": 7, "secret": True, "password": ""},
        {"a": "task-force-one-two-three-four"},
    ],
)
def test_what_only_sounds_like_a_secret_is_kept(kept: dict[str, object]) -> None:
    assert record_parameters(kept) == kept


PROVIDER_KEYS = ["sk-" + "a1" * 12, "ghp_" + "Z" * 24, "AKIA" + "A" * 16, "hf_" + "q" * 24]


@each("key", PROVIDER_KEYS)
def test_keys_of_providers_are_redacted_wherever_they_stand(key: str) -> None:
    assert json_safe(f"curl -H 'x: {key}' y") == "curl -H 'x: [redacted]' y"
    assert key[:12] not in json.dumps(json_safe({"cmd": [key], key: 1}))


@each("before", range(2_020, 2_049, 4))
def test_no_half_of_a_key_is_left_where_a_text_is_cut(before: int) -> None:
    copied = str(json_safe(" " * before + PROVIDER_KEYS[0] + " " * 50_000))
    assert "a1" not in copied


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.text(st.characters(categories=["Cs", "Lu"]))
    | st.dates()
    | st.decimals()
    | st.builds(object)
)


def containers(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.builds(Point, st.integers(), inner)
        | st.frozensets(st.integers() | st.text())
    )


DATA = st.recursive(SCALARS, containers)
ANYTHING = st.recursive(SCALARS | st.builds(Hostile), containers)


@given(ANYTHING)
def test_anything_becomes_small_strict_json_which_is_not_changed_again(value: object) -> None:
    once = json_safe(value)
    written = json.dumps(once, allow_nan=False)
    assert len(written) < BOUND
    written.encode()
    assert json_safe(once) == once


@given(DATA)
def test_the_uncut_copy_is_strict_json_too(value: object) -> None:
    json.dumps(plain(value), allow_nan=False)


def test_the_uncut_copy_cuts_and_hides_nothing_that_is_json() -> None:
    value: Json = {"password": "x" * 9_000, "deep": [[[[[1.5, None, True]]]]]}
    assert plain(value) == value


def test_arrays_and_scalars_are_their_values_and_images_are_not_listed() -> None:
    numpy = pytest.importorskip("numpy")
    given = {"a": numpy.array([[1, 2]]), "b": numpy.float32(0.5), "c": numpy.str_("x" * 9_000)}
    assert plain(given) == {"a": [[1, 2]], "b": 0.5, "c": "x" * 9_000}
    assert plain(numpy.zeros((300, 300))) == "<ndarray: not serializable>"
