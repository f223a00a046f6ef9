"""`assay grade`: recorded answers, labels, malformed rows."""

from __future__ import annotations

import gzip
import io
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from assay.cli.main import parse
from assay.cli.rows import rows_given
from assay.scoring.json_safe import Json
from assay.tasks.rows import read_rows
from tests.command_line import COMMAND, assay, cells, environment, summary
from tests.each import each

_GRADERS = "- {type: numeric_match, pick: last}\n"


def write(root: Path, rows: list[dict[str, Json]], graders: str = _GRADERS) -> None:
    """Write a dataset and its graders."""
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (root / "rows.jsonl").write_text(text, "utf-8")
    (root / "graders.yaml").write_text(graders, "utf-8")


def test_rows_on_which_people_and_graders_differ_are_shown_with_their_answers(
    tmp_path: Path,
) -> None:
    rows: list[dict[str, Json]] = [
        {"id": "low", "answer": "it is 41", "expected": 42, "correct": True},
        {"id": "high", "answer": "it is 42", "expected": 42, "correct": False},
        {"id": "same", "answer": "it is 42", "expected": 42, "correct": True},
    ]
    write(tmp_path, rows)
    done = assay("grade", "rows.jsonl", "graders.yaml", "--label", "correct", cwd=tmp_path)
    shown = done.stdout.partition("people and the graders differ")[2]
    assert "high  people fail, graders pass (1.00)  rows.jsonl:2" in shown
    assert "low  people pass, graders fail (0.00)  rows.jsonl:1" in shown
    assert "answer: it is 41" in shown
    assert "same  people" not in shown


_CSV = "id,response,target,right\na,it is 42,42,true\nb,41,42,true\nc\n"


def test_a_packed_table_is_graded_with_its_fields_renamed_and_bad_rows_left_out(
    tmp_path: Path,
) -> None:
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(_CSV.encode()))
    (tmp_path / "graders.yaml").write_text(_GRADERS)
    by = ("grade", "rows.csv.gz", "graders.yaml", "--map", "answer=response,expected=target")
    stopped = assay(*by, cwd=tmp_path)
    assert stopped.returncode == 2
    assert "rows.csv.gz:4: the row has 1 cells, and the header 4" in stopped.stderr
    by = (*by, "--on-bad-row", "skip", "--label", "right")
    done = assay(*by, "--json", "--out", "out.jsonl", cwd=tmp_path)
    assert done.returncode == 1  # of the rows that are left
    assert "left out: rows.csv.gz:4: the row has 1 cells" in done.stderr
    assert {str(c["case"]): (c["reward"], c["file"]) for c in cells(done)} == {
        "a": (1.0, "rows.csv.gz:2"),
        "b": (0.0, "rows.csv.gz:3"),
    }
    assert summary(done)["malformed"] == 1
    assert summary(done)["agreement"]["n"] == 2
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert (first["answer"], first["expected"], first["right"]) == ("it is 42", "42", True)
    shown = assay("report", cwd=tmp_path)
    assert "1 of 2 graded cells failed; 1 malformed row left out" in shown.stdout
    again = assay("regrade", "latest", "graders.yaml", "--json", cwd=tmp_path)
    assert [cell["reward"] for cell in cells(again)] == [1.0, 0.0]


def test_rows_are_read_from_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = parse(["grade", "-", "g.yaml", "--map", "answer=a"])
    text = io.TextIOWrapper(io.BytesIO(b"a,b\nyes,no\n"))
    monkeypatch.setattr("sys.stdin", text)
    with rows_given(given, "-") as found:
        (row,) = read_rows(found.path, reading=found.reading)
    assert (row.submission.answer, row.file) == ("yes", "stdin:2")
    assert not Path(found.path).exists()


def test_rows_and_graders_may_stand_in_each_others_place(tmp_path: Path) -> None:
    write(tmp_path, [{"answer": "1"}])
    done = assay("grade", "graders.yaml", "rows.jsonl", cwd=tmp_path)
    assert done.returncode == 3, "the row has no expected answer"


def test_nothing_is_left_of_rows_on_standard_input_though_it_is_told_to_end(tmp_path: Path) -> None:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    (tmp_path / "g.yaml").write_text("[{type: exact_match}]", "utf-8")
    env = {**environment(tmp_path), "TMPDIR": str(scratch)}
    with subprocess.Popen(
        [*COMMAND, "grade", "-", "g.yaml"], cwd=tmp_path, env=env, stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"answer": "4", "expected": "4"}\n' * 10_000)
        process.stdin.flush()  # more than a pipe holds: some of it is kept by now
        process.terminate()
        assert process.wait(30) == -signal.SIGTERM
        process.stdin.close()
    assert list(scratch.iterdir()) == []


def unread(*words: str, cwd: Path, stream: str) -> subprocess.CompletedProcess[str]:
    """Run a command one of whose streams nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    out, err = (writing if name == stream else subprocess.PIPE for name in ("stdout", "stderr"))
    env = {**environment(cwd), "PYTHONUNBUFFERED": ""}
    command = [*COMMAND, *words]
    try:
        return subprocess.run(
            command, cwd=cwd, env=env, stdout=out, stderr=err, text=True, check=False, timeout=120
        )
    finally:
        os.close(writing)


def test_a_run_whose_progress_nobody_reads_is_run_all_the_same(tmp_path: Path) -> None:
    write(tmp_path, [{"answer": "4", "expected": 4}, {"answer": "5", "expected": 4}])
    words = ("grade", "rows.jsonl", "graders.yaml", "--db", "new")
    done = unread(*words, cwd=tmp_path, stream="stderr")
    assert done.returncode == 1
    assert "FAIL: 1 of 2" in done.stdout
    assert "1 passed, 1 failed" in assay("runs", "--db", "new", cwd=tmp_path).stdout


@each("words", [("validate", "graders.yaml"), ("--help",), ("grade", "--help")])
def test_a_list_that_nobody_reads_keeps_its_status_and_says_nothing_of_that(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    write(tmp_path, [])
    done = unread(*words, cwd=tmp_path, stream="stdout")
    assert (done.returncode, done.stderr) == (0, "")


@each(
    ("closed", "words", "status"),
    [(1, "validate graders.yaml", 0), (1, "--help", 0), (1, "report", 2), (2, "report", 2)],
)
def test_a_stream_that_was_closed_from_the_first_changes_no_status(
    tmp_path: Path, closed: int, words: str, status: int
) -> None:
    write(tmp_path, [])
    line = f"exec {shlex.join(COMMAND)} {words} {closed}>&-"
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (status, False)


def test_an_error_behind_a_list_that_nobody_reads_is_no_success(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom assay.cli.main import _exit_status\nfrom assay.errors import InputError\n"
        "def command():\n    print('a row')\n    raise InputError('wrong')\n"
        "sys.exit(_exit_status(command))\n"
    )
    reading, writing = os.pipe()
    os.close(reading)
    env = {**environment(tmp_path), "PYTHONUNBUFFERED": ""}
    done = subprocess.run([sys.executable, "-c", program], env=env, stdout=writing, check=False)
    os.close(writing)
    assert done.returncode != 0


@each("given", ["validate graders.yaml", "--version"])
def test_a_disk_that_is_full_is_told_of_in_a_line(tmp_path: Path, given: str) -> None:
    write(tmp_path, [])
    env = {**environment(tmp_path), "PYTHONUNBUFFERED": ""}
    words = [*COMMAND, *given.split()]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            words,
            cwd=tmp_path,
            env=env,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (3, "error: [Errno 28] No space left on device\n")


def test_a_store_that_is_named_is_told_of_where_it_is_new_and_stands_in_what_is_next(
    tmp_path: Path,
) -> None:
    write(tmp_path, [{"answer": "4", "expected": 4}])
    for is_new in (True, False):
        done = assay("grade", "rows.jsonl", "graders.yaml", "--db", "kept here", cwd=tmp_path)
        told = "note: there was no store at kept here: it is made now" in done.stderr
        assert told is is_new
        following = " ".join(done.stdout.partition("Next")[2].split())
        assert following.count("--db 'kept here'") == 3
    default = assay("grade", "rows.jsonl", "graders.yaml", cwd=tmp_path)
    assert "note: there was" not in default.stderr
    assert "--db" not in default.stdout


def test_the_example_of_conversations_scores_each_turn(tmp_path: Path) -> None:
    talks = Path(__file__).parents[2] / "examples" / "conversations"
    rows, graders = str(talks / "rows.jsonl"), str(talks / "graders.yaml")
    done = assay("grade", rows, graders, "--json", cwd=tmp_path)
    cells = json.loads(done.stdout)["cells"]
    turns = {
        cell["case"]: [turn["value"] for turn in cell["record"]["subscores"][0]["children"]]
        for cell in cells
    }
    assert turns == {
        "kind": [1.0, 1.0],
        "cold": [1.0, 0.0],
        "silent": [0.0, 1.0],
        "forged": [1.0, 0.0],
    }
    rewards = {cell["case"]: cell["reward"] for cell in cells}
    assert rewards == {"kind": 1.0, "cold": 0.5, "silent": 0.0, "forged": 0.0}
