"""`assay grade --out DIR/` and tables in and out, as people type it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from assay.cli import grade as grade_command
from assay.cli.main import main
from assay.errors import StoreError
from assay.eval.rows.directory_sink import PartDirectory
from assay.eval.rows.recorded import plan_rows
from assay.store.runs import Store
from assay.tasks.grader_files import load_graders
from assay.tasks.row_files import RowReading
from tests.command_line import assay, numbers_of

_MAP = ("--map", "answer=response,expected=target")


def write(root: Path, rows: Sequence[Mapping[str, object]], name: str) -> None:
    """Write a table, and graders for it."""
    pa: Any = import_module("pyarrow")
    import_module("pyarrow.parquet").write_table(pa.Table.from_pylist(list(rows)), root / name)
    write_graders(root)


def write_graders(root: Path, rows: str = "") -> None:
    """Graders, and rows of JSON where there are some."""
    (root / "graders.yaml").write_text("- {type: numeric_match}\n", "utf-8")
    (root / "other.yaml").write_text("- {type: exact_match}\n", "utf-8")
    if rows:
        (root / "rows.jsonl").write_text(rows, "utf-8")


def read(file: Path) -> list[dict[str, Any]]:
    """The rows of a table."""
    return import_module("pyarrow.parquet").read_table(file).to_pylist()


def test_parts_are_gone_on_with_by_the_same_command_and_by_no_other(tmp_path: Path) -> None:
    rows = [{"response": str(n), "target": n if n % 2 else None} for n in range(6)]
    write(tmp_path, rows, "rows.parquet")
    command = ("grade", "rows.parquet", *_MAP, "--shard-rows", "2", "--out")
    first = assay(*command, "graded/", "graders.yaml", cwd=tmp_path)
    assert (first.returncode, "resuming" in first.stderr) == (3, False), first.stderr
    assert "3 x numeric_match: needs 'expected'" in first.stdout
    assert "3 parts in graded/parts; 6 rows in" in first.stdout
    graded = read(tmp_path / "graded" / "parts")
    assert [one["grade_reward"] for one in graded] == [None, 1.0] * 3
    assert [one["response"] for one in graded] == list("012345")

    part = sorted((tmp_path / "graded" / "parts").iterdir())[1]
    made = part.read_bytes()
    part.unlink()
    again = assay(*command, "graded", "graders.yaml", cwd=tmp_path)  # no slash: it is there
    assert "3 parts in graded/parts; 4 rows in" in again.stdout, "a part, and two errors"
    assert (again.returncode, part.read_bytes()) == (3, made)

    shown = assay("report", "graded/", cwd=tmp_path)
    assert (shown.returncode, shown.stdout.splitlines()[-2]) == (3, "3 parts in graded/parts")
    assert shown.stdout.splitlines()[0] == again.stdout.splitlines()[0]
    told = json.loads(assay("report", "graded", "--json", cwd=tmp_path).stdout)
    summary = numbers_of(told)
    assert (summary["graded"], summary["errors"], summary["code"]) == (3, 3, 3)
    assert told["parts"]["parts"] == 3
    refused = assay("report", "graded", "--html", "x.html", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--html goes with a stored run, and graded is" in refused.stderr
    part.unlink()
    assert "graded has 2 of 3 parts" in assay("report", "graded", cwd=tmp_path).stderr
    part.write_bytes(made)

    other = assay(*command, "graded/", "other.yaml", cwd=tmp_path)
    assert (other.returncode, other.stdout) == (2, "")
    assert "of a different grading: the graders are different" in other.stderr


def test_rows_that_parts_leave_out_are_told_with_the_first_of_them(tmp_path: Path) -> None:
    write_graders(tmp_path, '{"answer": "4", "expected": 4}\n{\n{\n')
    command = ("grade", "rows.jsonl", "graders.yaml", "--out", "p/", "--on-bad-row", "skip")
    done = assay(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "PASS: the 1 graded cell passed; 2 malformed rows left out" in done.stdout
    assert "left out, the first: rows.jsonl:2" in done.stdout
    said = json.loads(assay(*command, "--json", cwd=tmp_path).stdout)
    assert (said["overview"]["malformed"], said["parts"]["graded_now"]) == (2, 0)


def test_parts_are_a_dataset_again_and_the_directory_around_them_says_so(tmp_path: Path) -> None:
    write_graders(tmp_path, '{"answer": "4", "expected": 4}\n')
    by = ("graders.yaml",)
    assert assay("grade", "rows.jsonl", *by, "--out", "p/", cwd=tmp_path).returncode == 0
    done = assay("grade", "p", *by, cwd=tmp_path)
    assert (done.returncode, "their rows are in p/parts" in done.stderr) == (2, True), done.stderr
    assert assay("grade", "p/parts", *by, cwd=tmp_path).returncode == 0


def test_a_summary_that_is_stale_or_forged_is_not_reported(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"answer": "a", "expected": "a"}\n{"answer": "b"}\n')
    (tmp_path / "g.yaml").write_text("- type: exact_match\n")
    command = ("grade", "rows.jsonl", "g.yaml", "--out", "out/")
    assert assay(*command, cwd=tmp_path).returncode == 3
    summary = tmp_path / "out" / "summary.json"
    told = json.loads(summary.read_text())
    forged: list[Any] = [
        [],
        {},
        {**told, "passed": "2"},
        {**told, "left_out": None},
        {**told, "causes": [1]},
        {name: told[name] for name in told if name != "first_left_out"},
    ]
    for one in forged:
        summary.write_text(json.dumps(one))
        done = assay("report", "out/", cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert "out cannot be read" in done.stderr
    # What ends while errors are graded again is not summed up by what was there before.
    summary.write_text(json.dumps(told))
    with plan_rows(
        str(tmp_path / "rows.jsonl"),
        load_graders(str(tmp_path / "g.yaml"), alone=True),
        PartDirectory(str(tmp_path / "out")),
        reading=RowReading(name="rows.jsonl"),
    ):
        pass
    done = assay("report", "out/", cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert "the same `assay grade` goes on" in done.stderr


def test_grades_whose_file_cannot_be_written_are_kept_and_the_message_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another such command would grade, and pay for, all of them again."""
    write_graders(tmp_path, '{"answer": "4", "expected": 4}\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASSAY_DB", raising=False)

    def full(*_: object) -> None:
        raise StoreError("the disk is full", hint="the same command goes on")

    monkeypatch.setattr(grade_command, "write_rows", full)
    with pytest.raises(SystemExit) as ended:
        main(["grade", "rows.jsonl", "graders.yaml", "--out", "graded.jsonl"])
    with Store.open(str(tmp_path / ".assay")) as store:
        (run,) = store.runs()
    kept = f"every grade is kept: assay runs export {run.id} --out DIR"
    assert ended.value.code == 3
    assert capsys.readouterr().err.endswith(f"error: the disk is full ({kept})\n")


@pytest.mark.parametrize("name", ["parts", "tallies"])
def test_a_link_in_an_output_directory_leads_nowhere(tmp_path: Path, name: str) -> None:
    write(tmp_path, [{"response": "4", "target": 4}], "rows.parquet")
    theirs, ours = tmp_path / "theirs", tmp_path / "graded"
    theirs.mkdir()
    ours.mkdir()
    (theirs / ".a.tmp").touch()
    (ours / name).symlink_to(theirs)
    done = assay("grade", "rows.parquet", *_MAP, "graders.yaml", "--out", "graded/", cwd=tmp_path)
    assert (done.returncode, f"graded/{name} is a symbolic link" in done.stderr) == (2, True)
    assert [one.name for one in theirs.iterdir()] == [".a.tmp"]
