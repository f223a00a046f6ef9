"""Files of rows as people have them: formats, packing, names; and what attacks a reader."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from assay.errors import InputError
from assay.scoring import Json
from assay.tasks import json_rows, text_tables
from assay.tasks.row_files import AS_IT_IS, RowReading
from assay.tasks.rows import Row, as_json_lines, parse_row, read_rows
from tests.each import each

_ROWS: list[Json] = [
    {"id": "a", "answer": "it is\n4, “four”", "expected": "4"},
    {"id": "b", "answer": "", "expected": "5"},
]
_CSV = 'id,answer,expected\r\na,"it is\n4, “four”",4\r\nb,,5\r\n'


def read(file: Path, data: bytes | str, reading: RowReading = AS_IT_IS) -> list[Row]:
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    return list(read_rows(str(file), reading=reading))


def wrong(file: Path, data: bytes | str, reading: RowReading = AS_IT_IS) -> str:
    """What is wrong with a file, after its name."""
    with pytest.raises(InputError) as caught:
        read(file, data, reading)
    return str(caught.value).removeprefix(str(file))


_FORMS = {
    "rows.jsonl": "\n".join(json.dumps(row) for row in _ROWS),
    "rows.json": json.dumps(_ROWS),
    "pretty.json": json.dumps(_ROWS, indent=2, ensure_ascii=False),
    "array-in.jsonl": json.dumps(_ROWS),
    "rows.csv": _CSV,
    "rows.tsv": _CSV.replace(",", "\t").replace("4\t ", "4, "),
    "marked.csv": f"\ufeff{_CSV}",
    "marked.json": f"\ufeff{json.dumps(_ROWS)}",
}


@each("packed", ["", ".gz", ".zst"])
@each("name", _FORMS)
def test_the_same_rows_are_read_from_every_format(name: str, packed: str, tmp_path: Path) -> None:
    data = _FORMS[name].encode()
    if packed:
        data = gzip.compress(data) if packed == ".gz" else zstandard.compress(data)
    found = read(tmp_path / f"{name}{packed}", data)
    assert [row.fields for row in found] == _ROWS


def test_arrays_are_read_however_they_are_spelt(tmp_path: Path) -> None:
    deep: Json = {"answer": '\\"é\U0001f600 ]}', "n": [1.5e-3, -12, {"a": [True, None, {}]}]}
    rows: list[Json] = [deep, deep, {"answer": "b", "x": 123456789}]
    for indent in (None, 1):
        for is_ascii in (True, False):
            text = json.dumps(rows, indent=indent, ensure_ascii=is_ascii)
            assert [row.fields for row in read(tmp_path / "a.json", text)] == rows


def test_rows_are_named_by_line_or_by_item_as_the_file_has_them(tmp_path: Path) -> None:
    csv = read(tmp_path / "rows.csv", 'answer\n"a\nb"\n\nc\n')
    assert [(row.id, row.file.rpartition("/")[2]) for row in csv] == [
        ("2", "rows.csv:2"),
        ("5", "rows.csv:5"),
    ]
    items = read(tmp_path / "rows.json", '[{"answer": "a"}, {"answer": "b"}]')
    assert [row.file.rpartition("/")[2] for row in items] == [
        "rows.json: item 1",
        "rows.json: item 2",
    ]
    for name, found in (("rows.csv", csv), ("rows.json", items)):  # as they are graded
        with as_json_lines(str(tmp_path / name)) as (path, unit):
            lines = enumerate(Path(path).read_bytes().splitlines(), 1)
            full = str(tmp_path / name)
            again = [parse_row(line, n, full, unit=unit) for n, line in lines if line]
        assert [(row.id, row.file) for row in again] == [(r.id, r.file) for r in found]


def test_cells_are_text_but_labels_and_json_columns(tmp_path: Path) -> None:
    text = (
        "messages,metadata,expected,good,note,\n"
        '"[{""role"": ""assistant"", ""content"": ""7""}]","{""a"": 1}",7,true,1,x\n'
        '"[{""role"": ""assistant"", ""content"": ""8""}]",,,0.5,,y\n'
    )
    first, second = read(tmp_path / "rows.csv", text, RowReading(labels=("good",)))
    assert first.submission.answer == "7"
    assert first.submission.expected == "7"
    assert first.submission.metadata == {"a": 1, "good": True, "note": "1"}
    assert second.submission.expected is None  # an empty cell is nothing given
    assert second.submission.metadata == {"good": 0.5}
    assert "'messages' must hold JSON" in wrong(tmp_path / "rows.csv", "messages\nhello\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.jsonl", '{"response": "a", "target": {"value": "b"}}'),
        ("rows.json", '[{"response": "a", "target": {"value": "b"}}]'),
        ("rows.csv", "response,target.value\na,b\n"),
    ],
)
def test_fields_are_renamed_also_from_inside_objects(name: str, text: str, tmp_path: Path) -> None:
    reading = RowReading(mapping={"answer": "response", "expected": "target.value"})
    (row,) = read(tmp_path / name, text, reading)
    assert (row.submission.answer, row.submission.expected) == ("a", "b")
    nobody = RowReading(mapping={"answer": "response", "expected": "targt"})
    assert "'targt' (" in wrong(tmp_path / name, text, nobody)


def test_a_field_that_is_mapped_to_one_that_is_there_is_refused(tmp_path: Path) -> None:
    reading = RowReading(mapping={"answer": "response"})
    both = wrong(tmp_path / "rows.jsonl", '{"answer": "a", "response": "b"}', reading)
    assert "the row has 'answer', and --map would rename 'response' to that" in both
    assert "two columns are called 'answer'" in wrong(
        tmp_path / "r.csv", "answer,response\na,b", reading
    )


def test_names_of_other_systems_get_a_hint(tmp_path: Path) -> None:
    row = '{"response": "a", "target": "b", "prompt": "c"}'
    hint = "--map answer=response,expected=target,question=prompt"
    assert hint in wrong(tmp_path / "rows.jsonl", row)
    assert hint in wrong(tmp_path / "rows.csv", "prompt,response,target\nc,a,b\n")


_WRONG: list[tuple[str, bytes | str, str]] = [
    ("r.jsonl", '{"answer": "a"}\n{"answer": "b",, }\n', ":2:16: not a JSON object: "),
    ("r.jsonl", '{\n  "answer": "a"\n}\n', "rows of several lines stand in an array"),
    ("r.txt", "answer,expected\na,b\n", "a table is called .csv or .tsv"),
    ("r.jsonl", '{"answer": "a"}\n{"answer": "a\0b"}\n', ":2:14: not a JSON object: Invalid con"),
    ("r.json", '[\n {"answer": "a"},\n {"answer": b}\n]', ":3:13: not JSON: Expecting value"),
    ("r.json", '[\n {"answer": "a"}\n {"answer": "b"}]', ":3:2: not JSON: expecting ',' or ']'"),
    ("r.json", '[{"answer": "a"},]', ":1:18: not JSON: Expecting value"),
    ("r.json", '[{"answer": "a"}', ":1:17: not JSON: expecting ',' or ']'"),
    ("r.json", '[{"answer": "a"}, {"answer": "bc', ": not JSON: Unterminated string"),
    ("r.json", "[", ":1:2: not JSON: the array has no end"),
    ("r.json", '[{"answer": "a"}]\n[]', ":2:1: not JSON: there is more after the array"),
    ("r.json", b'[{"answer": "a"},\n{"answer": "\xff"}]', ":2:13: not UTF-8"),
    ("r.json", "[" * 200_000, "nested too deeply"),
    ("r.json", '[{"answer": "a", "n": 1e999}]', ": item 1: not a JSON object: 1e999 is too large"),
    ("r.json", '[{"answer": "a", "answer": "b"}]', ": item 1: the key 'answer' stands twice"),
    ("r.json", "[4]", ": item 1: a row must be a JSON object"),
    ("r.json", '[{"answer": 4.0}]', ": item 1: 'answer' must be text, got float"),
    ("r.csv", "answer,expected\na,b\nc\n", ":3: the row has 1 cells, and the header 2"),
    ("r.csv", 'answer\n"a" b\n', ":2: not a row of a table: ',' expected after '\"'"),
    ("r.csv", 'answer\n"a\nb\n', ":2: not a row of a table: unexpected end of data"),
    ("r.csv", b"answer\na\0b\n", ":2:2: a NUL is no text"),
    ("r.csv", b"answer\n\xc3\xa9\xff\n", ":2:2: not UTF-8"),
    ("r.csv", "answer,answer\na,b\n", ":1: two columns are called 'answer'"),
    ("r.csv", "4,5\n6,7\n", ":1: the first row names the columns, and 'answer' is not among them"),
    ("r.csv", "answer;expected\na;b\n", "are separated by ';': save it with commas, or with tabs"),
    ("r.csv", "a,b\n1,2\n", "its fields are 'a', 'b'; on the command line: --map answer=FIELD"),
    ("r.jsonl", '{"answer": "a"}\n'.encode("utf-16"), ":1:1: UTF-16, not UTF-8"),
    ("r.csv", "id,answer\na,b\na,c\n", ":3: id 'a' is also that of line 2"),
    ("r.gz", gzip.compress(b'{"answer": "a"}\n' * 9, mtime=0)[:-9], " cannot be unpacked: "),
    ("r.zst", zstandard.compress(b'{"answer": "a"}\n' * 9)[:-3], " cannot be unpacked: it ends in"),
    ("r.zst", b"\x28\xb5\x2f\xfd" + b"\xff" * 40, " cannot be unpacked: "),
]


@each(("name", "data", "why"), _WRONG)
def test_what_is_wrong_is_named_by_its_place(
    name: str, data: bytes | str, why: str, tmp_path: Path
) -> None:
    assert why in wrong(tmp_path / name, data)


def test_frames_of_zstd_that_follow_each_other_are_one_file(tmp_path: Path) -> None:
    frames = b"".join(zstandard.compress(json.dumps(row).encode() + b"\n") for row in _ROWS)
    assert [row.fields for row in read(tmp_path / "rows.jsonl.zst", frames)] == _ROWS


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_attack_a_bomb_fills_neither_memory_nor_disk(
    pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.tasks.packed._UNPACKED_FREE", 1 << 16)
    line = b'{"answer": "' + b"a" * 1_000 + b'"}\n'
    bomb = pack(line * 2_000)
    assert "grows to more than 200 times its size" in wrong(tmp_path / "rows.jsonl.gz", bomb)
    assert len(read(tmp_path / "honest.gz", pack(line * 50))) == 50


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("r.jsonl.gz", '{"answer": "%s"}', "the row is longer than 100 bytes"),
        ("r.json", '[{"answer": "%s', " is an array of more than 100 bytes (write each row on a"),
        ("r.json.gz", '[{"answer": "%s"}]', " is an array of more than 100 bytes"),
        ("r.csv", 'answer\n"%s"\n', ":2: the row is longer than 100 bytes"),
    ],
)
def test_attack_a_row_without_end_is_refused_before_it_is_in_memory(
    name: str, text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (json_rows, text_tables):
        monkeypatch.setattr(module, "MAX_LINE_BYTES", 100)
    data = (text % (("x\n" if "csv" in name else "xx") * 300)).encode()
    assert why in wrong(tmp_path / name, gzip.compress(data) if name.endswith("gz") else data)


def test_what_is_malformed_is_left_out_where_that_is_asked(tmp_path: Path) -> None:
    told: list[str] = []
    reading = RowReading(on_bad_row=lambda error: told.append(str(error)))
    text = (
        '{"answer": "a", "id": 1}\n{\n{"answer": 4.0}\n{"answer": "b", "id": 1}\n{"answer": "c"}\n'
    )
    assert [row.id for row in read(tmp_path / "r.jsonl", text, reading)] == ["1", "5"]
    assert [one.rpartition("r.jsonl")[2][:3] for one in told] == [":2:", ":3:", ":4:"]
    told.clear()
    assert len(read(tmp_path / "r.csv", "answer,x\na,b\nc\nd,e\n", reading)) == 2
    assert "r.csv:3: the row has 1 cells" in told[0]
    told.clear()
    with as_json_lines(str(tmp_path / "r.csv"), reading=reading) as (path, _):
        assert len(list(filter(None, Path(path).read_text().splitlines()))) == 2
    assert len(told) == 1


def test_each_row_of_a_file_that_holds_everything_twice_is_told_with_its_earlier_one(
    tmp_path: Path,
) -> None:
    told: list[str] = []
    reading = RowReading(on_bad_row=lambda error: told.append(str(error)))
    once = "".join(f'{{"answer": "a", "id": "r{n}"}}\n' for n in range(100))
    assert len(read(tmp_path / "r.jsonl", once + once, reading)) == len(told) == 100
    assert ":101: id 'r0' is also that of line 1" in told[0]
    assert ":200: id 'r99' is also that of line 100" in told[-1]


def test_what_was_unpacked_is_gone_afterwards(tmp_path: Path) -> None:
    plain, packed = tmp_path / "rows.jsonl", tmp_path / "rows.jsonl.gz"
    read(plain, '{"answer": "a"}\n')
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    with as_json_lines(str(packed)) as (path, _):
        assert Path(path).read_bytes() == plain.read_bytes()
    assert not Path(path).exists()


def test_a_packed_file_is_read_as_it_comes(tmp_path: Path) -> None:
    """Whatever the reader is given at once, it is what is packed."""
    data = b"".join(b'{"answer": "%d"}\n' % n for n in range(20_000))
    with (
        io.BytesIO() as raw,
        zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as packer,
    ):
        packer.write(data)
        packer.flush(zstandard.FLUSH_FRAME)
        packed = raw.getvalue()
    assert len(read(tmp_path / "r.zst", packed)) == 20_000
