"""Datasets in parts: planned once, each part there or not, the same bytes however it came about."""

from __future__ import annotations

import asyncio
import errno
import gzip
import json
import os
import pickle
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest

from assay.errors import InputError, StoreError
from assay.eval.rows import parts as parts_module
from assay.eval.rows.directory_sink import PartDirectory
from assay.eval.rows.parts import PartForm, read_part
from assay.eval.rows.recorded import RowPlan, grade_rows, plan_rows
from assay.eval.rows.shards import Shard, read_shard
from assay.graders import Grader
from assay.graders.spec import GraderSpec
from assay.scoring import Json
from assay.tasks.row_files import RowReading
from tests.each import each
from tests.written_files import write_files, write_rows

pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")

EXACT = (GraderSpec(type="exact_match"),)
SKIP = RowReading(on_bad_row=lambda _: None)
ROWS = 25


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", map(row, range(ROWS)))


def row(number: int) -> dict[str, Json]:
    """Two of three are right; the seventh has nothing to be compared with."""
    answer = "Oslo" if number % 3 else "Rome"
    return {"id": f"r{number}", "answer": answer, "expected": None if number == 7 else "Oslo"}


def grade(
    data: Path | str,
    directory: Path,
    graders: tuple[GraderSpec, ...] = EXACT,
    *,
    rows: int = 4,
    workers: int = 1,
    **more: Any,
) -> dict[str, Json]:
    """Plan, grade and sum up."""
    with planned(data, directory, graders, rows=rows, **more) as (plan, to):
        asyncio.run(grade_rows(plan, workers=workers))
        return to.summary


@contextmanager
def planned(
    data: Path | str,
    directory: Path,
    graders: tuple[GraderSpec, ...] = EXACT,
    *,
    rows: int | None = None,
    **more: Any,
) -> Generator[tuple[RowPlan, PartDirectory]]:
    """Plan, for parts."""
    to = PartDirectory(str(directory), rows=rows)
    with plan_rows(str(data), graders, to, **more) as plan:
        yield plan, to


def parts(directory: Path) -> dict[str, bytes]:
    """Every file of parts, as it is; also those that should not be there."""
    return {one.name: one.read_bytes() for one in (directory / "parts").iterdir()}


def lines(directory: Path) -> list[dict[str, Any]]:
    """The rows of all parts, in their order."""
    texts = (text for _, text in sorted(parts(directory).items()))
    return [json.loads(line) for text in texts for line in text.splitlines()]


@pytest.mark.parametrize("workers", [1, 2])
def test_every_row_stands_in_a_part_with_its_grade(
    data: Path, tmp_path: Path, workers: int
) -> None:
    summary = grade(data, tmp_path / "out", workers=workers)
    found = lines(tmp_path / "out")
    assert [one["id"] for one in found] == [f"r{n}" for n in range(ROWS)]
    assert [one["grade"]["reward"] for one in found[5:9]] == [1.0, 0.0, None, 1.0]
    error = found[7]["grade"]
    told = (error["status"], error["passed"], error["scores"])
    assert told == ("error", None, {"exact_match": None})
    assert "needs 'expected'" in error["error"]
    assert (summary["rows"], summary["graded"], summary["errors"]) == (ROWS, ROWS - 1, 1)
    assert summary["causes"] == {error["error"]: 1}
    assert len(parts(tmp_path / "out")) == -(-ROWS // 4)


def test_only_what_is_missing_is_graded_again(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    grade(data, out)
    first = parts(out)
    names = sorted(first)
    (out / "parts" / names[2]).unlink()
    (out / "tallies" / f"{names[4]}.json").write_text("{", "utf-8")  # torn: the part tells it
    with planned(data, out, rows=4) as (plan, to):
        assert [shard.part for shard in to.missing if not shard.again] == [names[2]]
        ended: list[int] = []
        asyncio.run(grade_rows(plan, on_ended=lambda some: ended.append(some.total()), workers=1))
        assert sum(ended) < ROWS
        assert to.tally().rows == ROWS
    assert parts(out) == first


def test_a_directory_of_others_of_one_at_work_or_of_another_plan_is_refused(
    data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").touch()
    with pytest.raises(InputError, match=r"holds 'thesis.tex' and no parts"):
        grade(data, out)
    (out / "thesis.tex").unlink()
    at_work = pytest.raises(InputError, match="another command is grading into it")
    with planned(data, out), at_work:
        grade(data, out)
    grade(data, out)
    for graders, more, said in (
        (EXACT, {"rows": 5}, "shard_rows is 5 and was 4"),
        (EXACT, {"threshold": 0.5}, "threshold is 0.5 and was 1.0"),
        ((GraderSpec(type="f1_score"),), {}, "the graders are different"),
    ):
        with pytest.raises(InputError, match=said):
            grade(data, out, graders, **cast("dict[str, Any]", more))
    data.write_text(data.read_text() + json.dumps(row(99)) + "\n")
    with pytest.raises(InputError, match=r"rows.jsonl has changed"):
        grade(data, out)


def test_a_plan_that_nothing_came_of_binds_nobody(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with planned(data, out, rows=4):
        pass
    with planned(data, out, rows=5) as (_, to):
        assert len(to.parts) == 5
    (empty := tmp_path / "none.jsonl").touch()
    new = tmp_path / "new"
    with pytest.raises(InputError, match="has no rows"), planned(empty, new):
        pass
    assert not new.exists()


def test_of_two_that_grade_one_shard_the_first_commit_stays(data: Path, tmp_path: Path) -> None:
    """What a cluster may do whose machine came back: the other's part must not change any more."""
    with planned(data, tmp_path / "out", rows=4) as (plan, to):
        shard = to.missing[1]
        work = pickle.loads(pickle.dumps(plan.work))  # as it travels
        first = work(shard)
        target = tmp_path / "out" / "parts" / shard.part
        stamp = target.stat()
        second = work(shard)
        assert target.stat().st_ino == stamp.st_ino
        assert target.stat().st_mtime_ns == stamp.st_mtime_ns
        assert first == second
        assert list(parts(tmp_path / "out")) == [shard.part]


def test_rows_that_are_handed_out_need_no_file(data: Path, tmp_path: Path) -> None:
    """As those of a cluster's actor, which cannot read what only this process can."""
    packed = tmp_path / "rows.jsonl.gz"
    packed.write_bytes(gzip.compress(data.read_bytes()))
    grade(data, tmp_path / "plain")
    with planned(packed, tmp_path / "out", rows=4) as (plan, _):

        async def elsewhere(shard: Shard) -> object:
            lines = [one for some, _ in read_shard(shard) for one in some]
            nowhere = replace(shard.source, path="/nowhere")
            return plan.work(replace(shard, source=nowhere, lines=lines))

        asyncio.run(grade_rows(plan, hands=elsewhere))
    assert list(parts(tmp_path / "out").values()) == list(parts(tmp_path / "plain").values())


def test_a_table_that_only_this_process_can_read_becomes_json_lines(
    data: Path, tmp_path: Path
) -> None:
    """As one that came by standard input: whoever grades elsewhere is sent the rows as JSON."""
    with table_of(data).open("rb") as table:
        grade(f"/proc/self/fd/{table.fileno()}", tmp_path / "out")
    assert len(lines(tmp_path / "out")) == ROWS


def table_of(file: Path) -> Path:
    """The same rows as Parquet."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    made = file.with_suffix(".parquet")
    pq.write_table(pa.Table.from_pylist(rows), made)
    return made


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_parts_of_either_form_are_the_same_bytes_twice_and_hold_the_same_grades(
    data: Path, tmp_path: Path, form: PartForm
) -> None:
    given = table_of(data) if form == "parquet" else data
    for name in ("one", "two"):
        grade(given, tmp_path / name, rows=10)
    assert parts(tmp_path / "one") == parts(tmp_path / "two")
    found = [
        one
        for part in sorted((tmp_path / "one" / "parts").iterdir())
        for one in read_part(part, form)
    ]
    assert [case for case, _, _ in found] == [f"r{n}" for n in range(ROWS)]
    assert [one.reward for _, one, _ in found[5:9]] == [1.0, 0.0, None, 1.0]
    assert [one.scores for _, one, _ in found[6:8]] == [(0.0,), (None,)]


def test_parts_are_tables_where_all_files_are(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    table_of(data).rename(folder / "a.parquet")
    grade(folder, tmp_path / "tables", rows=10)
    (folder / "b.jsonl").write_text('{"id": "more", "answer": "Oslo", "expected": "Oslo"}\n')
    grade(folder, tmp_path / "mixed", rows=10)
    for name, form, count in (("tables", "parquet", ROWS), ("mixed", "jsonl", ROWS + 1)):
        made = sorted((tmp_path / name / "parts").iterdir())
        assert {part.suffix for part in made} == {f".{form}"}
        assert sum(len(list(read_part(part, cast("PartForm", form)))) for part in made) == count


def test_malformed_rows_end_it_or_are_left_out_and_counted_also_where_their_count_is_lost(
    data: Path, tmp_path: Path
) -> None:
    data.write_text(data.read_text() + '{"answr": 1}\n' + json.dumps(row(50)) + "\n")
    with pytest.raises(InputError, match=r"rows.jsonl:26: a row needs 'answer'"):
        grade(data, tmp_path / "stop")
    out = tmp_path / "skip"
    told = [grade(data, out, reading=SKIP)]
    for tally in (out / "tallies").iterdir():
        tally.unlink()  # what they said is known from the plan and the parts
    told.append(grade(data, out, reading=SKIP))
    assert [(one["left_out"], one["graded"]) for one in told] == [(1, ROWS)] * 2
    assert told[0]["first_left_out"] == told[1]["first_left_out"]
    (out / "parts" / max(parts(out))).write_bytes(b"")
    with pytest.raises(StoreError, match="is damaged"):
        grade(data, out, reading=SKIP)


def test_a_full_disk_is_said_and_neither_it_nor_an_interrupt_leaves_a_piece_of_a_part(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.fsync
    left = iter([None] * 4)

    def full(descriptor: int) -> None:
        if next(left, "none") is not None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        whole(descriptor)

    monkeypatch.setattr(parts_module.os, "fsync", full)
    with pytest.raises(StoreError, match=r"No space left on device \(make room"):
        grade(data, tmp_path / "out")
    monkeypatch.undo()
    assert all(not name.startswith(".") for name in parts(tmp_path / "out"))

    def interrupted() -> None:
        with planned(data, tmp_path / "out", rows=4):
            # As of a worker that was ended.
            (tmp_path / "out" / "parts" / ".00000.jsonl.0123.tmp").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert all(not name.startswith(".") for name in parts(tmp_path / "out"))
    grade(data, tmp_path / "out")
    grade(data, tmp_path / "again")
    assert parts(tmp_path / "out") == parts(tmp_path / "again")


class Moody(Grader):
    """Fails while a file is there; counts the answers that it was asked about."""

    mood: str

    @classmethod
    async def compute_score(cls, answer: str, mood: str) -> float:
        """1, or an error."""
        asked = Path(mood, "asked")
        asked.write_text(f"{asked.read_text() if asked.exists() else ''}{answer}\n")
        if answer == "4" and Path(mood, "bad").exists():
            raise RuntimeError("out of order")
        return 1.0


def test_errors_are_graded_again_by_the_same_command_and_nothing_else_is(tmp_path: Path) -> None:
    file, out = tmp_path / "rows.jsonl", tmp_path / "out"
    write_rows(file, ({"answer": str(n)} for n in range(8)))
    place = f"python:{Moody.__module__}:Moody"
    graders = (GraderSpec(type=place, options={"mood": str(tmp_path)}),)
    (tmp_path / "bad").touch()
    assert grade(file, out, graders, rows=3)["errors"] == 1
    (tmp_path / "bad").unlink()
    (tmp_path / "asked").unlink()
    again = grade(file, out, graders, rows=3)
    assert (again["errors"], again["graded_now"]) == (0, 1)  # its siblings were graded before
    assert (tmp_path / "asked").read_text() == "4\n"
    grade(file, tmp_path / "fresh", graders, rows=3)
    assert parts(out) == parts(tmp_path / "fresh")


@pytest.mark.parametrize("grader", ["exact_match", "math_equal"])
def test_a_table_that_is_broken_inside_is_named_by_whoever_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grader: str
) -> None:
    monkeypatch.setattr("assay.eval.rows.datasets._FEW", 0)  # in processes of their own
    file = tmp_path / "rows.parquet"
    rows = [{"id": f"r{n}", "answer": "a" * n, "expected": "a"} for n in range(300)]
    plain = {"row_group_size": 100, "compression": "none", "use_dictionary": False}
    pq.write_table(pa.Table.from_pylist(rows), file, **plain)
    column = pq.ParquetFile(file).metadata.row_group(1).column(0)
    text = bytearray(file.read_bytes())
    text[column.data_page_offset : column.data_page_offset + 60] = b"\xff" * 60
    file.write_bytes(text)
    with pytest.raises(InputError, match=r"rows\.parquet"):
        grade(file, tmp_path / "out", (GraderSpec(type=grader),), rows=50)


def test_each_row_is_read_once_before_the_first_is_graded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For malformed rows and ids that stand twice together."""
    read: list[int] = []

    def counted(shard: Shard) -> Any:
        read.append(shard.number)
        return read_shard(shard)

    monkeypatch.setattr("assay.eval.rows.datasets.read_shard", counted)
    monkeypatch.setattr("assay.eval.rows.repeated_ids.read_shard", counted)
    folder = tmp_path / "data"
    folder.mkdir()
    for name in "ab":
        rows = [{**row(n), "id": f"{name}{n}", name: n} for n in range(8)]
        write_rows(folder / f"{name}.jsonl", rows)
    graders = (GraderSpec(type="math_equal"),)
    with planned(folder, tmp_path / "out", graders, rows=4):
        pass
    assert read == [0, 1, 2, 3]


def test_ids_and_places_are_counted_through_the_files_of_a_dataset(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    for name in ("b", "a"):
        line = json.dumps({"answer": name, "expected": "a"})
        write_files(folder, {f"{name}.jsonl": f"{line}\n" * 3 + "\n"})
    grade(folder, tmp_path / "out", rows=2)
    found = lines(tmp_path / "out")
    assert [(one["answer"], one["grade"]["id"]) for one in found] == [
        *(("a", str(n)) for n in (1, 2, 3)),
        *(("b", str(n)) for n in (4, 5, 6)),
    ]
    (folder / "b.jsonl").write_text('{"answer": "x"}\n{\n')
    with pytest.raises(InputError, match=r"b.jsonl:2:2: not a JSON object"):
        grade(folder, tmp_path / "other")


def test_a_grade_that_a_row_brings_along_is_never_read_for_ours(tmp_path: Path) -> None:
    # Whoever reads the first of two equal keys would have believed it.
    forged = '{"gr\\u0061de": {"reward": 1.0}, "answer": "Rome", "expected": "Oslo"}\n'
    data = tmp_path / "rows.jsonl"
    theirs = '{"answer": "Oslo", "Grade": {"reward": 0.0}, "expected": "Oslo"}\n'
    data.write_text(forged + theirs)
    grade(data, tmp_path / "out")
    (written,) = parts(tmp_path / "out").values()
    for line, reward in zip(written.splitlines(), (0.0, 1.0), strict=True):
        keys = json.loads(line, object_pairs_hook=lambda pairs: [key for key, _ in pairs])
        assert sorted(keys) == ["answer", "expected", "grade"]
        assert json.loads(line)["grade"]["reward"] == reward


def test_a_column_that_differs_from_a_grades_in_capitals_alone_is_not_written(
    tmp_path: Path,
) -> None:
    columns = {
        "answer": ["Rome"],
        "expected": ["Oslo"],
        "Grade_Reward": [1.0],
        "GRADE_SCORE_x": [1],
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    grade(tmp_path / "t.parquet", tmp_path / "out")
    (part,) = (tmp_path / "out" / "parts").iterdir()
    found = pq.read_table(part).to_pydict()
    assert len({one.casefold() for one in found}) == len(found)
    assert "GRADE_SCORE_x" not in found
    assert found["grade_reward"] == [0.0]


@pytest.mark.parametrize("is_counted", [True, False])
@pytest.mark.parametrize("rows", [0, 2])
def test_a_part_that_was_cut_off_is_not_taken_for_a_whole_one(
    data: Path, tmp_path: Path, rows: int, is_counted: object
) -> None:
    grade(data, tmp_path / "out")
    part = tmp_path / "out" / "parts" / min(parts(tmp_path / "out"))
    tally = tmp_path / "out" / "tallies" / f"{part.name}.json"
    whole = part.read_bytes()
    part.write_bytes(b"".join(whole.splitlines(keepends=True)[:rows]))
    if not is_counted:
        tally.unlink()
    with pytest.raises(StoreError, match=f"is damaged: it has {rows} of 4 rows"):
        grade(data, tmp_path / "out")
    part.write_bytes(whole)
    told = json.loads(tally.read_text()) if is_counted else None
    if told is not None:  # nor is a count that cannot be of it
        tally.write_text(json.dumps({**told, "passed": 1_000}))
        assert grade(data, tmp_path / "out")["graded"] == ROWS - 1
    part.unlink()
    assert grade(data, tmp_path / "out")["graded"] == ROWS - 1
    assert part.read_bytes() == whole


@each(
    "wrong",
    [
        {"reward": True},
        {"reward": float("inf")},
        {"reward": 10**400},
        {"scores": {"x": "1"}},
        {"scores": {"x": float("nan")}},
        {"scores": [1.0]},
    ],
)
def test_attack_a_part_says_true_where_a_number_belongs(
    data: Path, tmp_path: Path, wrong: dict[str, Json]
) -> None:
    grade(data, tmp_path / "out")
    part = tmp_path / "out" / "parts" / min(parts(tmp_path / "out"))
    row = json.loads(part.read_text().splitlines()[0])
    assert len(list(read_part(part, "jsonl"))) == 4
    forged = tmp_path / part.name
    forged.write_text(json.dumps({**row, "grade": {**row["grade"], **wrong}}) + "\n")
    with pytest.raises(StoreError, match=f"is damaged.*{next(iter(wrong))}"):
        list(read_part(forged, "jsonl"))


def test_a_table_that_cannot_be_parquet_becomes_json_lines(tmp_path: Path) -> None:
    columns = {"answer": ["a"], "expected": ["a"], "odd": pa.array([{}], pa.struct([]))}
    data = tmp_path / "t.arrow"
    with pa.OSFile(str(data), "wb") as to, pa.ipc.new_file(to, pa.table(columns).schema) as writer:
        writer.write_table(pa.table(columns))
    grade(data, tmp_path / "out")
    assert [(one["odd"], one["grade"]["reward"]) for one in lines(tmp_path / "out")] == [({}, 1.0)]


@pytest.mark.slow
def test_a_function_grades_a_dataset_of_one_shard(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text("async def grade(answer):\n    return 1.0\n")
    function = (GraderSpec(type="function", options={"file": str(file)}),)
    assert grade(data, tmp_path / "out", function, rows=100, workers=2)["graded"] == ROWS


def test_a_row_nested_too_deeply_is_an_error_and_its_siblings_are_graded(tmp_path: Path) -> None:
    data, deep = tmp_path / "rows.jsonl", '{"a":' * 900 + "1" + "}" * 900
    good = '{"answer": "a", "expected": "a"}\n'
    data.write_text(f'{good}{{"answer": "a", "expected": {deep}}}\n{good}')
    grade(data, tmp_path / "out")
    found = [one["grade"] for one in lines(tmp_path / "out")]
    assert [one["reward"] for one in found] == [1.0, None, 1.0]
    assert "nested too deeply" in found[1]["error"]


def test_no_part_of_rows_that_changed_meanwhile_is_left_for_those_that_are_put_back(
    data: Path, tmp_path: Path
) -> None:
    original, out = data.read_text(), tmp_path / "out"
    with planned(data, out, rows=4) as (plan, to):
        data.write_text(original.replace("Rome", "Oslo"))
        grades = [plan.work(shard) for shard in to.missing]  # all before the first is looked at
        given = iter(grades)

        async def done(_: object) -> object:
            return next(given)

        with pytest.raises(InputError, match="changed while it was being graded"):
            asyncio.run(grade_rows(plan, hands=done))
    assert not parts(out)
    data.write_text(original)
    grade(data, out)
    assert [one["answer"] for one in lines(out)] == [row(n)["answer"] for n in range(ROWS)]


def test_what_never_ends_or_never_begins_is_no_dataset_and_holds_up_no_other(
    data: Path, tmp_path: Path
) -> None:
    (folder := tmp_path / "folder").mkdir()
    os.mkfifo(pipe := folder / "a.jsonl")
    for given in (pipe, "/dev/zero"):
        with pytest.raises(InputError, match="is not a regular file"):
            grade(given, tmp_path / "out")
    data.rename(folder / "b.jsonl")
    assert grade(folder, tmp_path / "out")["rows"] == ROWS


def test_a_table_of_rows_that_are_all_left_out_is_an_empty_part(tmp_path: Path) -> None:
    nested = [[float("nan")]] * 3 + [[1.0]]
    pq.write_table(pa.table({"answer": ["a"] * 4, "x": nested}), tmp_path / "t.parquet")
    for _ in range(2):
        summary = grade(tmp_path / "t.parquet", tmp_path / "out", rows=3, reading=SKIP)
        assert (summary["left_out"], summary["errors"]) == (3, 1)
