"""YAML and JSON documents: plain data, its places, and what a hostile one may not do."""

from __future__ import annotations

import contextlib
import itertools
import json
import pickle
import re
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.documents import (
    MAX_BYTES,
    DocumentError,
    parse_document,
    problems_to_error,
    read_document,
)
from assay.scoring.json_safe import Json
from assay.types.codec import Problem
from tests.each import each


@each(
    ("text", "expected"),
    [
        ("a: 1", 1),
        ("a: 0x1F", 31),
        ("a: 0o17", 15),
        ("a: 014", 14),
        ("a: 1.5", 1.5),
        ("a: 1e3", 1000.0),
        ("a: .5", 0.5),
        ("a: true", True),
        ("a: False", False),
        ("a: ~", None),
        ("a:", None),
        ("a: no", "no"),
        ("a: On", "On"),
        ("a: 2026-11-21", "2026-11-21"),
        ("a: 2026-11-21T10:00:00Z", "2026-11-21T10:00:00Z"),
        ("a: 12:30:45", "12:30:45"),
        ("a: 1_000", "1_000"),
        ("a: !!str 5", "5"),
        ("a: ! 5", "5"),
        ('a: ""', ""),
        ("a: [1, {b: c}]", [1, {"b": "c"}]),
        ("a: |\n  x\n  y\n", "x\ny\n"),
        ('{"a":\t"\\ud83d\\ude00 \\\\ud83d\\\\ude00"}', "😀 \\ud83d\\ude00"),
        ("x: &x {p: 1, q: 2}\na:\n  <<: *x\n  q: 3\n", {"p": 1, "q": 3}),
        ("x: &x [1, 2]\na: [*x, *x]\n", [[1, 2], [1, 2]]),
    ],
)
def test_values_are_those_of_plain_data(text: str, expected: Json) -> None:
    data = parse_document(text).data
    assert isinstance(data, dict)
    assert data["a"] == expected
    assert type(data["a"]) is type(expected)


REFUSED = {
    "unclosed": ("a: [1\nb: 2", "f.yaml:2:2: not valid YAML"),
    "tab": ("\ta: 1", "start any token (a tab: YAML is indented with spaces)"),
    "control character": ("a: b\nc: d\x01", "f.yaml:2:5: holds the control character U+0001"),
    "empty": ("", "f.yaml:1:1: is empty"),
    "two documents": ("a: 1\n---\nb: 2", "holds more than one document"),
    "repeated key": ("a: 1\nb: 2\na: 3", "f.yaml:3:1: a: the key 'a' is already used in line 1"),
    "number as key": ("1: x", 'f.yaml:1:1: ?: a key must be text (write "1" in quotes)'),
    "list as key": ("? [a]\n: b", "a key must be text, not a list"),
    "nan": ("a: .nan", "f.yaml:1:4: a: .nan is not a number"),
    "infinity": ("a: -.inf", "-.inf is not a number"),
    "json nan": ('{"a": NaN}', "NaN is not a number"),
    "overflow": ("a: 1e999", "1e999 is too large"),
    "long number": ("a: " + "9" * 5000, "a number of 5000 digits"),
    "python object": ("a: !!python/object/apply:os.system [id]", "the tag !!python/object"),
    "binary": ("a: !!binary aGk=", "the tag !!binary is not allowed"),
    "undefined alias": ("a: *x", "*x refers to an anchor that is not defined"),
    "alias to itself": ("a: &x [*x]", "*x refers to an anchor that is not defined"),
    "merge of a number": ("a: {<<: 5}", "'<<' takes a mapping"),
    "half a surrogate": ('{"a": "\\ud83d"}', "f.yaml:1"),
}


@each(("text", "expected"), list(REFUSED.values()))
def test_what_is_not_plain_data_is_refused_with_its_place(text: str, expected: str) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_document(text, file="f.yaml")
    assert expected in str(caught.value)


def test_every_problem_of_a_document_is_reported_and_survives_pickling() -> None:
    with pytest.raises(DocumentError) as caught:
        parse_document("a: .nan\nb: !x y\na: 1\n", file="f.yaml")
    assert [fault.location.line for fault in caught.value.faults] == [1, 2, 3]
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def _laughs() -> str:
    """A billion, by aliases of aliases."""
    letters = "abcdefghijklmnopqrs"
    levels = "\n".join(
        f"{letter}: &{letter} [{','.join(['*' + before] * 9)}]"
        for before, letter in itertools.pairwise(letters)
    )
    return f"a: &a [x]\n{levels}\n"


_KEYS = "x: &x {" + ", ".join(f"k{n}: {n}" for n in range(1000)) + "}\n"


_THROUGH = [f"a{n}: &a{n} [[[[[[[[*a{n - 1}]]]]]]]]" for n in range(1, 12)]


@each(
    ("bomb", "said"),
    [
        (_laughs(), "expands to more than"),
        (_KEYS + "".join(f"y{n}: {{<<: [*x, *x, *x]}}\n" for n in range(200)), "expands to more"),
        (f"a: &a '{'x' * 1_000_000}'\nb: [{', '.join(['*a'] * 1000)}]\n", "expands to more than"),
        ("[" * 300_000, "nested more than 64 deep"),
        ("{a: " * 300_000, "nested more than 64 deep"),
        ("- " * 300_000, "nested more than 64 deep"),
        ("\n".join(["a0: &a0 [x]", *_THROUGH]), "nested more than 64 deep"),
    ],
)
def test_attack_what_expands_without_end_or_is_nested_deep_is_stopped_early(
    bomb: str, said: str
) -> None:
    """Lists of lists, merged mappings, a long text that is repeated, depth through aliases."""
    started = time.process_time()
    with pytest.raises(DocumentError, match=said):
        parse_document(bomb)
    assert time.process_time() - started < 2.0


def test_a_file_may_be_missing_too_large_or_not_text(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    with pytest.raises(DocumentError, match="cannot be read"):
        read_document(str(file))
    file.write_bytes(b"a: ok\nb: \xff\n")
    with pytest.raises(DocumentError, match=r"f\.yaml:2:1: is not UTF-8"):
        read_document(str(file))
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}')  # its byte order mark is no part of a key
    assert read_document(str(file)).data == {"a": 1}
    file.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(DocumentError, match="is larger than"):
        read_document(str(file))


def test_problems_are_placed_at_keys_values_or_where_something_is_missing() -> None:
    text = "id: x\ngraders:\n  - type: command\n    expect_ext: 3\n"
    document, key = parse_document(text, file="c.yaml"), ("graders", 0, "expect_ext")
    problems = [
        Problem(key, "unknown field", "did you mean it?", at_key=True),
        Problem(key, "bad value"),
        Problem(("graders", 0, "cmd"), "'cmd' is required", at_key=True),
        Problem(("task",), "'task' is required", at_key=True),
    ]
    assert str(problems_to_error(problems, document)).splitlines() == [
        "c.yaml:1:1: task: 'task' is required",
        "c.yaml:3:5: graders[0].cmd: 'cmd' is required",
        "c.yaml:4:5: graders[0].expect_ext: unknown field (did you mean it?)",
        "c.yaml:4:17: graders[0].expect_ext: bad value",
    ]


def test_a_hostile_key_cannot_forge_lines_or_colours() -> None:
    document = parse_document('"a\\nevil.yaml:1:1: fine\\x1b[2J": 1')
    problem = Problem(tuple(document.data if isinstance(document.data, dict) else ()), "no")
    text = str(problems_to_error([problem], document))
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=50), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json_values)
def test_json_reads_as_json(value: Json) -> None:
    assert parse_document(json.dumps(value)).data == value


@given(json_values)
def test_yaml_of_another_writer_reads_back(value: Json) -> None:
    text = yaml.safe_dump(value, allow_unicode=False)
    assume(not re.search("NaN|Infinity", text))  # refused unless quoted, as JSON would not be
    assert parse_document(text).data == value


@given(st.text(alphabet="ab:-[]{}&*!|>'\"#,? \n\t%@`<~.0", max_size=60))
def test_any_text_reads_or_is_refused(text: str) -> None:
    with contextlib.suppress(DocumentError):
        json.dumps(parse_document(text).data, allow_nan=False)
