"""Parquet, Arrow, directories of files and the `datasets` library as rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from assay.errors import InputError, MissingExtraError
from assay.tasks.row_files import AS_IT_IS, RowReading, opened
from assay.tasks.row_sets import files_of
from assay.tasks.rows import read_rows
from assay.tasks.tables import ColumnFile
from tests.children import of_peers

pa: Any = import_module("pyarrow")
ipc: Any = import_module("pyarrow.ipc")
pq: Any = import_module("pyarrow.parquet")

CHAT = [{"role": "user", "content": "q?"}, {"role": "assistant", "content": "a"}]


def table(count: int = 10) -> Any:
    return pa.table(
        {
            "id": [f"r{n}" for n in range(count)],
            "answer": [None if n == 3 else f"a{n}" for n in range(count)],
            "expected": pa.array([["a0", "b"]] * count),
        }
    )


def write(file: Path, data: Any, *, rows: int = 4) -> str:
    """Write a table as the file's name says; `.stream` is a stream of Arrow."""
    if file.suffix == ".parquet":
        pq.write_table(data, file, row_group_size=rows)
        return str(file)
    make = ipc.new_stream if file.suffix == ".stream" else ipc.new_file
    with pa.OSFile(str(file), "wb") as to, make(to, data.schema) as writer:
        writer.write_table(data, max_chunksize=rows)
    return str(file)


def lines(file: str, reading: RowReading = AS_IT_IS) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = []
    for one in files_of(file) or [file]:
        with opened(one, reading) as found:
            read += [json.loads(line) for _, line in found.lines if isinstance(line, bytes)]
    return read


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.feather", "t.stream", "unnamed"])
def test_tables_are_read_by_what_is_in_them(tmp_path: Path, name: str) -> None:
    file = write(tmp_path / name, table())
    rows = list(read_rows(file))
    assert [row.id for row in rows] == [f"r{n}" for n in range(10)]
    assert [row.submission.answer for row in rows[2:5]] == ["a2", None, "a4"]
    assert rows[0].submission.expected == ["a0", "b"]
    assert rows[4].file == f"{file}: row 5"


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.stream"])
def test_any_stretch_of_a_table_can_be_read_alone(tmp_path: Path, name: str) -> None:
    file = write(tmp_path / name, table(), rows=3)
    for start in range(10):
        for size in (1, 3, 4, 20):
            found = [
                (place + offset, row["id"])
                for place, batch in ColumnFile(file, file).batches(start, size)
                for offset, row in enumerate(batch.to_pylist())
            ]
            assert found == [(n, f"r{n}") for n in range(start, min(10, start + size))]
    assert ColumnFile(file, file).count() == 10


def test_what_columns_hold_becomes_json(tmp_path: Path) -> None:
    when = datetime(2026, 11, 23, 9, 30, tzinfo=UTC)
    data = pa.table(
        {
            "answer": ["a"],
            "messages": [json.dumps(CHAT)],
            "metadata": pa.array([{"k": None, "n": [1, 2]}]),
            "when": [when],
            "day": [date(2026, 11, 23)],
            "price": [Decimal("1.50")],
            "kind": pa.array(["x"]).dictionary_encode(),
            "fine": pa.array([1_500], pa.timestamp("ns")),
            "small": pa.array([7], pa.uint8()),
            "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        }
    )
    (row,) = lines(write(tmp_path / "t.parquet", data))
    assert row["messages"] == CHAT
    assert row["metadata"] == {"k": None, "n": [1, 2]}
    assert (row["when"], row["day"]) == ("2026-11-23T09:30:00+00:00", "2026-11-23")
    assert (row["price"], row["kind"], row["small"]) == ("1.50", "x", 7)
    assert row["fine"] == "1970-01-01T00:00:00.000001"
    assert row["map"] == [["k", 1]]


def test_what_no_row_can_hold_is_refused_by_column_or_row(tmp_path: Path) -> None:
    for column, said in (
        (pa.array([b"1"]), "holds binary, which no row can have"),
        (pa.array([{"bytes": b"1"}]), r"'odd.bytes' holds binary"),
        (pa.array([5], pa.duration("s")), r"holds duration\[s\]"),
    ):
        file = write(tmp_path / "t.parquet", pa.table({"answer": ["a"], "odd": column}))
        with pytest.raises(InputError, match=said):
            lines(file)
    file = write(
        tmp_path / "n.parquet", pa.table({"answer": ["a", "b"], "score": [1.0, float("nan")]})
    )
    with pytest.raises(InputError, match=r"n.parquet: row 2: the column 'score' holds NaN"):
        list(read_rows(file))
    left_out: list[InputError] = []
    kept = list(read_rows(file, reading=RowReading(on_bad_row=left_out.append)))
    assert ([row.submission.answer for row in kept], len(left_out)) == (["a"], 1)


def test_columns_are_renamed_also_from_inside(tmp_path: Path) -> None:
    data = pa.table({"response": ["a"], "reward_model": [{"ground_truth": "a"}]})
    file = write(tmp_path / "t.parquet", data)
    by = RowReading(mapping={"answer": "response", "expected": "reward_model.ground_truth"})
    (row,) = read_rows(file, reading=by)
    assert (row.submission.answer, row.submission.expected) == ("a", "a")


@pytest.mark.parametrize("cut", [0, 3, 40, -40])
def test_a_table_that_was_cut_off_is_told(tmp_path: Path, cut: int) -> None:
    for name in ("t.parquet", "t.arrow"):
        file = Path(write(tmp_path / name, table()))
        file.write_bytes(file.read_bytes()[:cut])
        with pytest.raises(InputError, match=rf"{name} is (damaged or not a table|neither)"):
            lines(str(file))


def test_without_pyarrow_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "t.parquet", table())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'assay\[data\]'"):
        lines(file)


def test_a_reading_that_is_given_up_needs_nothing_more_of_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Collected in a process that is ending, or in another test, it was an error of that one."""
    rows = read_rows(str(write(tmp_path / "t.parquet", table())))
    next(rows)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    cast("Generator[object]", rows).close()


def test_a_directory_and_a_pattern_are_read_in_the_order_of_names(tmp_path: Path) -> None:
    for number, name in enumerate(("train-00001-of-00002", "train-00000-of-00002")):
        data = pa.table({"answer": [f"{number}.{n}" for n in range(2)]})
        write(tmp_path / f"{name}.parquet", data)
    (tmp_path / "README.md").touch()
    (tmp_path / "_part.parquet").touch()
    wanted = ["1.0", "1.1", "0.0", "0.1"]
    for given in (str(tmp_path), f"{tmp_path}/train-*.parquet"):
        rows = list(read_rows(given))
        assert [row.submission.answer for row in rows] == wanted
        assert [row.id for row in rows] == ["1", "2", "3", "4"]
        assert rows[2].file == f"{tmp_path}/train-00001-of-00002.parquet: row 1"
    write(tmp_path / "test-00000-of-00001.parquet", pa.table({"answer": ["x"]}))
    with pytest.raises(InputError, match=r"has several splits: test, train \(name one:"):
        list(read_rows(str(tmp_path)))


def test_the_same_id_in_two_files_is_told_with_both_places(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.parquet", pa.table({"id": ["one"], "answer": ["x"]}))
    with pytest.raises(InputError, match=r"b.parquet: row 1: id 'one' is also that of .*a.parquet"):
        list(read_rows(str(tmp_path)))


def test_what_save_to_disk_wrote_is_read_without_its_library(tmp_path: Path) -> None:
    for split in ("train", "test"):
        folder = tmp_path / "all" / split
        folder.mkdir(parents=True)
        names = [f"data-0000{n}-of-00002.arrow" for n in range(2)]
        for name in names:
            made = write(folder / "x.stream", pa.table({"answer": [name]}))
            Path(made).rename(folder / name)
        state = {"_data_files": [{"filename": name} for name in reversed(names)]}
        (folder / "state.json").write_text(json.dumps(state))
        rows = lines(str(folder))
        assert [row["answer"] for row in rows] == list(reversed(names))
    (tmp_path / "all" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(InputError, match=r"has several splits: train, test \(name one: .*train\)"):
        lines(str(tmp_path / "all"))


def test_a_dataset_of_the_hub_needs_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"library `datasets`, which is not installed \(pip"):
        lines("hf:openai/gsm8k:test")


_HUB_ROWS = """
import json, sys
from pathlib import Path
from datasets import Array2D, Dataset, Features, Value
from assay.errors import InputError
from assay.tasks.row_files import opened

def write(name, file="train.jsonl", rows=({"answer": "yes", "n": 1},)):
    Path("acme", name, file).parent.mkdir(parents=True, exist_ok=True)
    Path("acme", name, file).write_text("".join(json.dumps(row) + "\\n" for row in rows))

write("one")
write("two"), write("two", "test.jsonl")
write("several", "a.jsonl"), write("several", "b.jsonl")
configs = [f"- config_name: {c}\\n  data_files: {c}.jsonl\\n" for c in "ab"]
Path("acme/several/README.md").write_text("---\\nconfigs:\\n" + "".join(configs) + "---\\n")
for name, column, kind, value in (
    ("square", "m", Array2D((2, 2), "int32"), [[1, 2], [3, 4]]),
    ("bytes", "b", Value("binary"), b"x"),
):
    features = Features({"answer": Value("string"), column: kind})
    made = Dataset.from_dict({"answer": ["yes"], column: [value]}, features=features)
    Path("acme", name).mkdir()
    made.to_parquet(f"acme/{name}/train.parquet")
for name in ("one", "two", "two/:", "two:test", "several", "several/b", "square", "bytes", "none"):
    try:
        with opened(f"hf:acme/{name}") as found:
            print(name, [json.loads(line) for _, line in found.lines])
    except InputError as error:
        print(name, error)
"""


@pytest.mark.real
def test_datasets_of_the_hub_are_read_by_their_library(tmp_path: Path) -> None:
    python = of_peers("trainers", "TRL, which brings datasets,")
    done = subprocess.run(
        [str(python), "-c", _HUB_ROWS],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    row = "[{'answer': 'yes', 'n': 1}]"
    splits = "has several splits: train, test (name one: hf:acme/two:train)"
    assert said["one"] == said["two:test"] == said["several/b"] == row
    assert said["two"] == f"hf:acme/two {splits}"
    assert said["two/:"] == f"hf:acme/two/: {splits}"
    assert "pick one among the available configs: ['a', 'b']" in said["several"]
    assert said["square"] == "[{'answer': 'yes', 'm': [[1, 2], [3, 4]]}]"
    assert said["bytes"].startswith("hf:acme/bytes: the column 'b' holds binary, which no row can")
    assert said["none"].startswith("cannot load hf:acme/none: ConnectionError: ")


def test_nothing_found_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file matches"):
        lines(f"{tmp_path}/*.parquet")
    with pytest.raises(InputError, match=r"has no files of rows \(those are called"):
        lines(str(tmp_path))


def patched(file: Path, data: Any, old: bytes, new: bytes) -> str:
    """A table of Arrow with other bytes in the place of some."""
    written = Path(write(file, data))
    found = written.read_bytes()
    assert found.count(old) >= 1
    written.write_bytes(found.replace(old, new))
    return str(file)


@pytest.mark.parametrize("far", [b"\0\1\0", b"\0\0\x70"])
def test_a_table_that_points_outside_itself_reads_no_memory_of_ours(
    tmp_path: Path, far: bytes
) -> None:
    # With 256 for an end, what else was in memory became the answer; with more, the process died.
    data = pa.table({"answer": ["a", "b", "c"], "expected": ["d", "e", "f"]})
    ends = [b"\0\0\0\0", b"\1\0\0\0", b"\2\0\0\0", b"\3\0\0\0"]
    beyond = [ends[0], b"\0" + far, b"\1" + far, b"\2" + far]
    file = patched(tmp_path / "t.arrow", data, b"".join(ends), b"".join(beyond))
    with pytest.raises(InputError, match=r"is damaged or not a table: .*out of bounds"):
        lines(file)


def test_a_cell_that_python_cannot_hold_is_the_fault_of_its_row_alone(tmp_path: Path) -> None:
    ends = bytes([0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0])
    cells = pa.StringArray.from_buffers(3, pa.py_buffer(ends), pa.py_buffer(b"a\xffc"))
    whens = pa.array([0, 0, 2**62], pa.timestamp("s"))
    file = write(tmp_path / "t.parquet", pa.table({"answer": cells}))
    later = write(tmp_path / "t.arrow", pa.table({"answer": ["a", "b", "c"], "when": whens}))
    for path, bad, column in ((file, 1, "answer"), (later, 2, "when")):
        with opened(path) as found:
            read = [line for _, line in found.lines]
        assert [isinstance(line, InputError) for line in read] == [n == bad for n in range(3)]
        assert f"the column {column!r} holds something that cannot be read" in str(read[bad])


def test_two_columns_of_one_name_are_refused_and_neither_is_graded(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array(["no"]), pa.array(["yes"])], names=["answer"] * 2)
    with pytest.raises(InputError, match="two columns are called 'answer'"):
        lines(write(tmp_path / "t.parquet", twice))
    inner = pa.StructArray.from_arrays([pa.array(["no"]), pa.array(["yes"])], names=["x"] * 2)
    with pytest.raises(InputError, match=r"two columns are called 'metadata\.x'"):
        lines(write(tmp_path / "t.arrow", pa.table({"answer": ["a"], "metadata": inner})))


def test_a_dataset_of_the_hub_runs_no_code_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    library = ModuleType("datasets")
    config = library.__dict__["config"] = SimpleNamespace(HF_DATASETS_TRUST_REMOTE_CODE=True)

    def load(*_: object, **options: object) -> object:
        assert not config.HF_DATASETS_TRUST_REMOTE_CODE
        assert not options.get("trust_remote_code")
        raise ValueError("it has a script")

    library.__dict__["load_dataset"] = load
    monkeypatch.setitem(sys.modules, "datasets", library)
    with pytest.raises(InputError, match="cannot load hf:openai/gsm8k: ValueError: it has a"):
        lines("hf:openai/gsm8k")


def test_one_batch_of_a_table_is_in_memory_at_a_time_and_of_long_rows_a_few(tmp_path: Path) -> None:
    long = pa.table({"answer": [str(n) * (1 << 19) for n in range(10, 58)]})
    for data, most in ((table(5_000), 1_024), (long, 32)):
        file = write(tmp_path / "t.parquet", data, rows=data.num_rows)
        sizes = [batch.num_rows for _, batch in ColumnFile(file, "t").batches()]
        assert sum(sizes) == data.num_rows
        assert max(sizes) <= most


@pytest.mark.parametrize("name", ["t.parquet", "plain.parquet", "t.arrow"])
@pytest.mark.parametrize("inside", ["", "object", "list"])
def test_a_text_that_a_small_file_repeats_does_not_fill_the_memory(
    tmp_path: Path, name: str, inside: str
) -> None:
    # 774 bytes with 10 MB of text for each of 2,000 rows asked for 20 GB.
    places = pa.array([0] * 10 + [1] * 290, pa.int32())
    texts = pa.DictionaryArray.from_arrays(places, pa.array(["a", "b" * (2 << 20)]))
    given = texts
    if inside == "object":
        given = pa.StructArray.from_arrays([texts], names=["x"])
    elif inside:
        given = pa.ListArray.from_arrays(pa.array(range(301), pa.int32()), texts)
    data = pa.table({"answer": ["a"] * 300, "note": given})
    file = tmp_path / name
    if name == "t.arrow":
        write(file, data, rows=300)
    else:  # "plain": nothing says that it is a dictionary
        pq.write_table(data, file, compression="zstd", store_schema=name == "t.parquet")
    batches = [batch for _, batch in ColumnFile(str(file), "t").batches(5, 200)]
    assert sum(batch.num_rows for batch in batches) == 200
    assert max(batch.num_rows for batch in batches) <= 32
    (last,) = batches[-1].slice(batches[-1].num_rows - 1, 1).to_pylist()
    assert len(str(last["note"])) >= 2 << 20
