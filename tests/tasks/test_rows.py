"""Dataset rows: what is read, and that what is wrong is named by file and line."""

from __future__ import annotations

import contextlib
import json
import re
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError, Location
from assay.scoring import Json
from assay.tasks import json_rows, rows
from assay.tasks.rows import Row, read_row, read_rows
from tests.each import each


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data.jsonl"


def read(file: Path, *lines: Json | str, label: str | None = None) -> list[Row]:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    file.write_text("\n".join(texts))
    return list(read_rows(str(file), label=label))


def test_a_row_is_an_answer_and_what_it_is_graded_against(file: Path) -> None:
    about: dict[str, Json] = {"metadata": {"a": 1}, "topic": "sums"}
    (row,) = read(file, {"id": "q1", "answer": "4", "question": "2+2?", "expected": [4], **about})
    assert (row.id, row.file) == ("q1", f"{file}:1")
    assert row.submission.answer == "4"
    assert row.submission.question == "2+2?"
    assert row.submission.expected == [4]
    assert row.submission.metadata == {"a": 1, "topic": "sums"}
    assert row.fields["topic"] == "sums"


def test_rows_without_an_id_are_named_by_their_line_and_blank_lines_are_passed_over(
    file: Path,
) -> None:
    found = read(file, "", {"answer": "a"}, "  \t", {"answer": "", "id": 7}, "")
    assert [(row.id, row.file) for row in found] == [("2", f"{file}:2"), ("7", f"{file}:4")]
    assert found[1].submission.answer == ""  # an empty answer is one


@each(
    ("row", "expected"),
    [
        ({"expected": "4"}, "4"),
        ({"metadata": {"expected": "4"}}, "4"),
        ({"expected": None, "metadata": {"expected": [4]}}, [4]),
        ({"expected": 4, "metadata": {"expected": None}}, 4),
        (
            {"expected": {"a": 1, "b": 2}, "metadata": {"expected": {"b": 2, "a": 1}}},
            {"a": 1, "b": 2},
        ),
        ({}, None),
    ],
)
def test_what_is_expected_is_the_same_for_every_grader_wherever_it_stands(
    row: dict[str, Json], expected: Json
) -> None:
    assert read_row({"answer": "4", **row}).submission.expected == expected


@each(
    ("given", "other"), [("4", "5"), (True, 1), ([True], [1]), ({"a": 0}, {"a": False}), (0, "0")]
)
def test_a_row_that_expects_two_things_is_refused(given: Json, other: Json) -> None:
    row: dict[str, Json] = {"answer": "4", "expected": given, "metadata": {"expected": other}}
    with pytest.raises(InputError) as caught:
        read_row(row)
    assert f"'expected' is {given!r}, and 'metadata.expected' is {other!r}" in str(caught.value)


@each(
    ("row", "hint"),
    [
        ({"question": "?", "anser": "4"}, "'anser': did you mean 'answer'?"),
        ({"message": []}, "'message': did you mean 'messages'?"),
        (
            {"question": "?", "topic": "sums"},
            "its fields are 'question', 'topic'; on the command line: --map answer=FIELD",
        ),
        ({}, ""),
        ({"answer" * 9: "4"}, ""),
        (
            {f"{n}": 0 for n in range(100)} | {"anser": "4"},  # not looked for for ever
            "its fields are "
            + ", ".join(f"'{n}'" for n in range(8))
            + ", ...; on the command line: --map answer=FIELD",
        ),
    ],
)
def test_a_misspelt_answer_comes_with_the_nearest_name(row: dict[str, Json], hint: str) -> None:
    with pytest.raises(InputError, match="needs 'answer' or 'messages'") as caught:
        read_row(row)
    assert caught.value.hint == hint


def test_a_conversation_brings_its_answer_and_its_question(file: Path) -> None:
    talk: list[Json] = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
    with_answer, open_end, completed = read(
        file, {"messages": talk}, {"messages": talk[:1]}, {"messages": talk[:1], "completion": "5"}
    )
    assert (with_answer.submission.answer, with_answer.submission.question) == ("4", "2+2?")
    assert with_answer.submission.thread is not None
    assert open_end.submission.answer is None
    assert completed.submission.answer == "5"


def test_labels_are_looked_for_in_the_row_and_its_metadata(file: Path) -> None:
    found = read(
        file,
        {"answer": "a", "good": True},
        {"answer": "a", "metadata": {"good": 0.5}},
        {"answer": "a", "good": None},
        label="good",
    )
    assert [row.label for row in found] == [True, 0.5, None]


@each(
    ("row", "answer"),
    [
        ({"answer": "4"}, "4"),
        ({"answer": 4}, "4"),
        ({"completion": "4"}, "4"),
        ({"answer": "4", "completion": "5"}, "4"),
        ({"answer": "", "metadata": None}, ""),
        ({"answer": None}, None),  # which is none, and not an empty one
    ],
)
def test_an_answer_is_text_a_whole_number_or_called_completion(
    row: dict[str, Json], answer: str | None, file: Path
) -> None:
    (found,) = read(file, row)
    assert (found.submission.answer, found.submission.metadata) == (answer, {})


BAD: list[tuple[str, str]] = [
    ("{", "not a JSON object"),
    ("[]", "a row must be a JSON object"),
    ('{"answer": 4.0}', "'answer' must be text, got float (quote it)"),
    ('{"answer": "a", "metadata": "x"}', "'metadata' must be an object"),
    ('{"answer": "a", "question": 1}', "'question' must be text"),
    ('{"answer": "a", "id": 1.5}', "'id' must be text or a number"),
    ('{"answer": "a", "id": true}', "'id' must be text or a number"),
    ('{"messages": "hi"}', "needs 'messages'"),
    ('{"messages": [{"content": "a"}]}', "messages[0] needs a 'role'"),
    ('{"answer": "a", "expected": NaN}', "NaN is not a JSON number"),
    ('{"answer": "a", "good": "yes"}', "label 'good' must be true, false or a number"),
    ('{"answer": "a"} {"answer": "b"}', "not a JSON object"),
    ("[" * 100_000, "not a JSON object"),
    ('{"answer": "a", "n": ' + "9" * 5_000 + "}", "more than 4,300 digits (write it as text)"),
    ('{"answer": "x", "answer": "yy"}', "the key 'answer' stands twice in one object (keep one"),
]


@each(("line", "why"), BAD)
def test_a_malformed_row_is_named_by_file_and_line(line: str, why: str, file: Path) -> None:
    good: Json = {"answer": "a", "good": 1}
    with pytest.raises(InputError) as caught:
        read(file, good, "", line, good, label="good")
    assert re.match(rf"{re.escape(str(file))}:3(:\d+)?: ", str(caught.value))
    assert why in str(caught.value)


def test_ids_are_unique_also_with_line_numbers_and_among_many(file: Path) -> None:
    with pytest.raises(InputError, match=r":2: id '2' is also that of line 1"):
        read(file, {"answer": "a", "id": 2}, {"answer": "b"})
    lines: list[Json] = [{"answer": "a", "id": f"row {n}"} for n in range(3_000)]
    assert len(read(file, *lines)) == 3_000
    with pytest.raises(InputError, match=r":3001: id 'row 1234' is also that of line 1235"):
        read(file, *lines, lines[1_234])


def test_a_line_that_is_too_long_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rows, "MAX_LINE_BYTES", 100)
    assert len(read(file, {"answer": "x" * 80})) == 1
    with pytest.raises(InputError, match=r":2: the row is longer than 100 bytes"):
        read(file, {"answer": "a"}, {"answer": "x" * 200})


def test_a_file_that_is_not_there_or_no_utf8(file: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*data.jsonl"):
        list(read_rows(str(file)))
    file.write_bytes(b'{"answer": "a"}\n{"answer": "\xff"}\n')
    with pytest.raises(InputError, match=r":2:13: not UTF-8"):
        list(read_rows(str(file)))
    file.unlink()
    with pytest.raises(InputError, match="has no files of rows"):
        list(read_rows(str(file.parent)))


def test_rows_are_read_one_at_a_time(file: Path) -> None:
    file.write_text('{"answer": "a"}\nbroken')
    found = read_rows(str(file))
    assert next(found).submission.answer == "a"
    with pytest.raises(InputError, match=":2:"):
        next(found)


@given(st.binary() | st.text('{}[]":,answer messages null\n\\u0d8').map(str.encode))
def test_any_file_is_read_or_refused_by_line(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.jsonl"
    file.write_bytes(data)
    with contextlib.suppress(InputError):
        list(read_rows(str(file)))


def test_a_look_at_a_row_refuses_and_tells_what_reading_it_does() -> None:
    chat: list[Json] = [{"role": "user", "content": "2?"}, {"role": "assistant", "content": "4"}]
    objects: list[Json] = [{"expected": "c"}, {"steps": [1]}, {"steps": list[Json]()}]
    values: tuple[Json, ...] = (None, "", "\ud800", 3, True, chat, *objects)
    names = ["id", "answer", "messages", "input", "completion", "question", "expected", "metadata"]
    names += ["trace", "group", "human"]
    fields: list[tuple[str, Json]] = [(name, value) for name in names for value in values]
    for one, other in combinations(fields, 2):
        row: dict[str, Json] = {"answer": "a"} | dict([one, other])
        for label in (None, "human"):
            assert looked_at(row, label) == read_whole(row, label)


def looked_at(row: dict[str, Json], label: str | None) -> object:
    try:
        return tuple(rows.glance_at(json.dumps(row).encode(), 7, "data.jsonl", label=label))
    except InputError as error:
        return str(error)


def read_whole(row: dict[str, Json], label: str | None) -> object:
    try:
        read = rows.parse_row(json.dumps(row).encode(), 7, "data.jsonl", label=label)
    except InputError as error:
        return str(error)
    return read.id, read.label is not None, read.submission.trace is not None


def test_a_row_that_is_json_already_is_read_like_a_line() -> None:
    row = read_row({"input": [{"role": "user", "content": "2+2?"}], "completion": "4", "k": 1}, 7)
    assert (row.id, row.file) == ("7", "")
    assert row.submission.answer == "4"
    assert row.submission.question == "2+2?"
    assert row.submission.metadata == {"k": 1}
    assert read_row({"id": 3, "answer": "x", "input": ["kept"]}).submission.metadata == {
        "input": ["kept"]
    }
    with pytest.raises(InputError, match="'completion' must be text, got int"):
        read_row({"messages": [], "completion": 3})
    with pytest.raises(InputError, match=r"rows\.jsonl:2: a row needs"):
        read_row({}, 2, Location(file="rows.jsonl", line=2))
    with pytest.raises(InputError, match=r"^line 2: a row needs"):
        read_row({}, 2, Location(line=2))


@each("field", ["topic", "group"])
def test_a_field_that_a_row_gives_twice_has_to_be_the_same(field: str) -> None:
    data: dict[str, Json] = {"answer": "4", field: "a", "metadata": {field: "b"}}
    with pytest.raises(InputError) as caught:
        read_row(data)
    assert f"'{field}' is 'a', and 'metadata.{field}' is 'b'" in str(caught.value)
    for one, other in (("a", "a"), ("a", None), (None, "a")):
        row = read_row({"answer": "4", field: one, "metadata": {field: other}})
        assert row.submission.metadata[field] == "a"
