"""Rows with the id of an earlier one, in datasets that are graded into parts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from assay.errors import InputError
from assay.eval.rows import datasets, repeated_ids
from assay.eval.rows.directory_sink import PartDirectory
from assay.eval.rows.grades import RowTally
from assay.eval.rows.recorded import grade_rows, plan_rows
from assay.graders.spec import GraderSpec
from assay.scoring import Json
from assay.tasks.row_files import RowReading

EXACT = (GraderSpec(type="exact_match"),)
SKIP = RowReading(on_bad_row=lambda _: None)


def write(folder: Path, name: str, rows: Sequence[str | dict[str, Any]]) -> None:
    """Rows of JSON, some as they are spelt; or of a table."""
    folder.mkdir(exist_ok=True)
    if name.endswith((".parquet", ".arrow")):
        pa: Any = import_module("pyarrow")
        table = pa.Table.from_pylist(rows)
        if name.endswith(".parquet"):
            import_module("pyarrow.parquet").write_table(table, folder / name, row_group_size=2)
        else:
            with pa.ipc.new_file(folder / name, table.schema) as file:
                file.write_table(table, max_chunksize=2)
        return
    texts = [one if isinstance(one, str) else json.dumps(one) for one in rows]
    (folder / name).write_text("\n".join(texts) + "\n")


def grade(
    tmp_path: Path, reading: RowReading | None = None, rows: int = 2
) -> tuple[str, tuple[RowTally, Json]]:
    """The answers of the parts, one after the other, what they come to, and what was left out."""
    out = tmp_path / "out"
    to = PartDirectory(str(out), rows=rows)
    with plan_rows(str(tmp_path / "data"), EXACT, to, reading=reading or RowReading()) as plan:
        asyncio.run(grade_rows(plan, workers=1))
    tally = to.tally(), to.summary["left_out"]
    texts = [part.read_text() for part in sorted((out / "parts").iterdir())]
    found = "".join(texts).splitlines()
    return "".join(json.loads(line)["answer"] for line in found), tally


def row(answer: str, identity: object = None, **more: object) -> dict[str, Any]:
    given = {} if identity is None else {"id": identity}
    return {**given, "answer": answer, "expected": "a", **more}


@pytest.mark.parametrize(
    ("earlier", "later", "said"),
    [
        (row("a", "x"), row("b", "x"), "'x'"),
        (row("a", "x"), '{"answer": "b", "\\u0069d": "\\u0078"}', "'x'"),
        (row("a", "é"), row("b", "é"), "'é'"),
        (row("a", 5), row("b", "5"), "'5'"),
        (row("a", "4"), row("b"), "'4'"),  # the number of the later one's line
        (
            '{"id": "x", "answer": "a"}',
            '{"answer": "b", "metadata": {"id": "y"}, "id": "x"}',
            "'x'",
        ),
    ],
)
def test_an_id_of_an_earlier_row_ends_all_before_anything_is_graded(
    tmp_path: Path, earlier: Any, later: Any, said: str
) -> None:
    write(tmp_path / "data", "rows.jsonl", [row("c", "one"), earlier, row("d", "id"), later])
    with pytest.raises(InputError, match=rf"rows.jsonl:4: id {said} is also that of .*:2 "):
        grade(tmp_path)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "rows",
    [
        [row("a", "x"), row("b", "X"), row("c", metadata={"id": "x"}), row("d", id="e", id2="x")],
        [row("a"), row("b", None), row("c", None, text='{"id": "1"}'), row("d", "id")],
        [row("a", "5"), row("b", "05"), row("c", "5 "), row("d", -5)],
    ],
)
def test_other_ids_are_no_twins(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    write(tmp_path / "data", "rows.jsonl", rows)
    assert grade(tmp_path)[0] == "abcd"


@pytest.mark.parametrize("name", ["b.jsonl", "b.parquet", "b.arrow", "b.csv"])
def test_twins_in_another_file_are_told_with_both_places(tmp_path: Path, name: str) -> None:
    write(tmp_path / "data", "a.jsonl", [row("a", "x"), row("b", "5")])
    later: list[str | dict[str, Any]] = [row("c", "y"), row("d", "z"), row("e", "x")]
    if name.endswith("csv"):
        later = ["id,answer", "y,c", "z,d", "x,e"]
    write(tmp_path / "data", name, later)
    with pytest.raises(InputError, match=rf"{name}:.*: id 'x' is also that of .*a.jsonl:1 "):
        grade(tmp_path)
    if name == "b.parquet":  # without ids, a table has the numbers of its rows
        write(tmp_path / "data", name, [row("c"), row("d"), row("e")])
        with pytest.raises(InputError, match=rf"{name}: row 3: id '5' is also that of .*:2"):
            grade(tmp_path)


def test_ids_are_those_of_mapped_fields(tmp_path: Path) -> None:
    keys = [row("a", key={"of": "x"}), row("b", key={"of": "y"}), row("c", key={"of": 9})]
    write(tmp_path / "data", "a.jsonl", keys)
    write(tmp_path / "data", "b.parquet", [{"answer": "d", "key": {"of": "z"}}])
    mapped = RowReading(mapping={"id": "key.of"})
    assert grade(tmp_path, mapped)[0] == "abcd"
    (tmp_path / "out").rename(tmp_path / "done")
    write(tmp_path / "data", "c.parquet", [{"answer": "d", "key": {"of": "9"}}])
    with pytest.raises(InputError, match=r"c.parquet: row 1: id '9' is also that of .*a.jsonl:3"):
        grade(tmp_path, mapped)


def test_twins_are_left_out_where_malformed_rows_are(tmp_path: Path) -> None:
    """The first well-formed row of an id stays, wherever it is: what is malformed is nobody's."""
    bad = row("!", "x", metadata=3)
    write(tmp_path / "data", "a.jsonl", [bad, row("a", "x"), row("b", "y"), row("!", "y"), bad])
    write(tmp_path / "data", "b.jsonl", [row("!", "x"), row("!", "y"), row("c", "z"), row("d")])
    found, tally = grade(tmp_path, SKIP)
    assert (found, tally[0].rows, tally[1]) == ("abcd", 4, 5)
    assert grade(tmp_path, SKIP)[1] == tally
    for one in (tmp_path / "out" / "parts").iterdir():
        one.unlink()
    assert grade(tmp_path, SKIP)[0] == "abcd"


def test_many_ids_are_compared_in_parts_by_several_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "_FEW", 10)
    monkeypatch.setattr(repeated_ids, "_AT_ONCE", 100)
    monkeypatch.setattr(repeated_ids, "_READ", 64)
    rows = [row("a", f"r{n % 1_990}") for n in range(2_000)]
    write(tmp_path / "data", "rows.jsonl", rows)
    found, tally = grade(tmp_path, SKIP, rows=150)
    assert (len(found), tally[1]) == (1_990, 10)


def test_ids_of_one_hash_are_no_twins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def same(_: object) -> int:
        return 7

    monkeypatch.setattr(repeated_ids, "hash", same, raising=False)
    write(tmp_path / "data", "rows.jsonl", [row(one, one) for one in "abcd"])
    assert grade(tmp_path)[0] == "abcd"
    write(tmp_path / "data", "rows.jsonl", [row(one, one) for one in "abcda"])
    with pytest.raises(InputError, match=r"rows.jsonl:5: id 'a' is also"):
        grade(tmp_path)
