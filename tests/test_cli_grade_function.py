"""`assay grade --function`: a dataset through one function, as a process."""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import signal
from pathlib import Path
from typing import cast

import pytest

from assay.cli.kept_rows import keep_rows
from assay.scoring import Json
from assay.scoring.graded import Graded
from tests.children import Children, until
from tests.command_line import COMMAND, assay, environment, result

HEAD = "async def grade(thread: StringThread) -> float:\n"
EXACT = """
from adaptive_harmony import StringThread

async def grade(thread: StringThread) -> float:
    completion = thread.completion() or ""
    expected = thread.metadata.get("expected", "")
    return 1.0 if completion.strip() == expected.strip() else 0.0
"""

pytestmark = pytest.mark.sandbox


def write(root: Path, rows: list[dict[str, Json]], function: str = EXACT) -> None:
    """Write a dataset and a function."""
    (root / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (root / "grade.py").write_text(function, "utf-8")


def graded(root: Path, *more: str) -> tuple[int, list[dict[str, Json]], dict[str, Json]]:
    """Grade, and give the exit status, the rows and everything else."""
    done = assay("grade", "rows.jsonl", "--function", "grade.py", "--json", *more, cwd=root)
    assert done.stdout, done.stderr
    found = result(done)
    return done.returncode, cast("list[dict[str, Json]]", found.pop("rows")), found


def message(completion: str, expected: str, **more: Json) -> dict[str, Json]:
    return {
        "messages": [{"role": "user", "content": "2+2?"}],
        "completion": completion,
        "metadata": {"expected": expected},
        **more,
    }


def test_rows_of_every_form_are_graded(tmp_path: Path) -> None:
    whole: list[Json] = [
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": " 4 "},
    ]
    rows: list[dict[str, Json]] = [
        message("4", "4", id="a"),
        message("5", "4"),
        {"id": "whole", "input": whole, "metadata": {"expected": "4"}},
        {"id": "answer", "answer": "4", "expected": "4"},
    ]
    write(tmp_path, rows)
    code, found, rest = graded(tmp_path)
    assert code == 0
    assert [(r["id"], r["status"], r["score"]) for r in found] == [
        ("a", "scored", 1.0),
        ("2", "scored", 0.0),
        ("whole", "scored", 1.0),
        ("answer", "scored", 1.0),
    ]
    assert found[1]["file"] == "rows.jsonl:2"
    summary = cast("dict[str, Json]", rest["summary"])
    assert (summary["scored"], summary["errors"], summary["skipped"]) == (4, 0, 0)
    assert summary["mean"] == 0.75
    assert rest["tier"] in ("bwrap", "landlock")
    assert cast("dict[str, Json]", rest["limits"])["cpu_seconds"] == 2.0
    assert rest["function"] == found[0]["digest"]


def test_errors_and_flags_are_told_apart(tmp_path: Path) -> None:
    function = HEAD + (
        "    word = thread.completion()\n    print('saw', word)\n"
        "    if word == 'boom': raise ValueError('bad')\n"
        "    if word == 'die': import os; os._exit(1)\n"
        "    return 'x' if word == 'text' else 0.5\n"
    )
    rows: list[dict[str, Json]] = [
        {"id": word, "answer": word} for word in ("ok", "boom", "die", "text")
    ]
    write(tmp_path, [*rows, {"id": "null", "answer": None}], function)
    code, found, rest = graded(tmp_path)
    assert code == 3
    assert [(r["status"], r["score"], r["outcome"], r["flags"]) for r in found] == [
        ("scored", 0.5, "ok", []),
        ("error", None, "error", []),
        ("scored", 0.0, "crash", ["crashed"]),
        ("error", None, "bad_return", []),
        ("error", None, "no_answer", []),
    ]
    assert "ValueError: bad" in str(found[1]["error"])
    assert cast("dict[str, Json]", found[1]["details"])["output"] == "saw boom\n"
    assert cast("dict[str, Json]", rest["summary"])["mean"] == 0.25


def test_a_table_for_people(tmp_path: Path) -> None:
    write(tmp_path, [message("4", "4"), message("5", "4")])
    done = assay("grade", "rows.jsonl", "--function", "grade.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mean 0.50" in done.stdout
    assert "2 scored, 0 errors" in done.stdout


@pytest.mark.parametrize("kind", [("--json",), ()])
def test_an_invalid_function_is_refused_with_its_checks(
    tmp_path: Path, kind: tuple[str, ...]
) -> None:
    write(tmp_path, [message("4", "4")], "def grade(thread):\n    return 1\n")
    done = assay("grade", "rows.jsonl", "--function", "grade.py", *kind, cwd=tmp_path)
    assert done.returncode == 2
    assert "grade.py: structure: line 1: 'grade' must be 'async def'" in done.stderr
    if kind:
        found = result(done)
        assert (found["valid"], found["rows"]) == (False, [])
        assert [check["name"] for check in cast("list[dict[str, Json]]", found["checks"])] == [
            "syntax",
            "structure",
        ]
    else:
        assert done.stdout == ""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not a JSON object"),
        ('{"question": "?"}', "needs 'answer' or 'messages'"),
        ('{"messages": ["hi"]}', "messages[0] needs a 'role'"),
        ('{"messages": [], "completion": 3}', "'completion' must be text, got int"),
    ],
)
def test_a_malformed_row_is_named_and_nothing_is_graded(
    tmp_path: Path, line: str, said: str
) -> None:
    write(tmp_path, [message("4", "4")])
    with (tmp_path / "rows.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    done = assay("grade", "rows.jsonl", "--function", "grade.py", "--json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "rows.jsonl:2" in done.stderr
    assert said in done.stderr


def test_many_rows_keep_their_order_and_go_to_a_file(tmp_path: Path) -> None:
    rows: list[dict[str, Json]] = [{"answer": "x" * (n % 5), "n": n} for n in range(2_100)]
    write(tmp_path, rows, HEAD + "    return len(thread.completion())\n")
    code, found, rest = graded(tmp_path, "--out", "graded.jsonl", "--isolation", "batch")
    assert code == 0
    assert [r["id"] for r in found] == [str(n + 1) for n in range(2_100)]
    assert [r["score"] for r in found] == [float(n % 5) for n in range(2_100)]
    assert rest["isolation"] == "batch"
    written = (tmp_path / "graded.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["grade"]["score"] for line in written[:6]] == [0, 1, 2, 3, 4, 0]
    assert len(written) == 2_100


def test_a_range_and_a_mean_to_reach(tmp_path: Path) -> None:
    write(tmp_path, [{"answer": "abc"}], HEAD + "    return len(thread.completion())\n")
    assert graded(tmp_path, "--range", "0,3", "--fail-under", "0.9")[0] == 0
    code, found, _ = graded(tmp_path, "--range=0,2")
    assert (code, found[0]["outcome"], found[0]["score"]) == (3, "out_of_range", None)


def test_scores_beyond_an_undeclared_range_are_told(tmp_path: Path) -> None:
    rows: list[dict[str, Json]] = [{"answer": "abc"}, {"answer": "a"}, {"answer": ""}]
    write(tmp_path, rows, HEAD + "    return len(thread.completion())\n")
    told = "1 of 3 scores lies outside of [0, 1], such as 3, and no range is declared"
    done = assay("grade", "rows.jsonl", "--function", "grade.py", "--json", cwd=tmp_path)
    assert f"warning: grade.py: {told}" in done.stderr
    assert told in str(result(done)["warnings"])
    done = assay("grade", "rows.jsonl", "--function", "grade.py", "--range", "0", "3", cwd=tmp_path)
    assert "warning" not in done.stderr


def test_options_of_the_other_way_are_refused(tmp_path: Path) -> None:
    write(tmp_path, [message("4", "4")])
    done = assay("grade", "rows.jsonl", "--function", "grade.py", "--label", "x", cwd=tmp_path)
    assert done.returncode == 2
    assert "--label goes with --graders" in done.stderr
    done = assay("grade", "rows.jsonl", "-g", "x.yaml", "--isolation", "call", cwd=tmp_path)
    assert "--isolation goes with --function" in done.stderr
    done = assay("grade", "rows.jsonl", "--function", "grade.py", "--out", "grade.py", cwd=tmp_path)
    assert "would be overwritten" in done.stderr


SLOW = (
    HEAD
    + """    import time
    if thread.completion() == 'slow':
        time.sleep(1)
    return time.time()
"""
)
"""Gives another score each time, so that what was graded twice shows."""

FAST: dict[str, Json] = {"answer": "fast"}
LATE: dict[str, Json] = {"answer": "slow"}
ROWS = [FAST] * 60 + [LATE] * 60


def interrupted(root: Path, how: int, *more: str, kept: int = 40) -> tuple[int, str, str]:
    """Grade until some rows are kept, or shown; then end the process."""
    partial, early = root / "out.jsonl.partial", ""
    with Children() as started:
        process = started.start(
            [*COMMAND, "grade", "rows.jsonl", "--function", "grade.py", *more],
            cwd=root,
            env=environment(root),
        )
        assert process.stderr is not None
        if "--out" in more:
            until(lambda: partial.exists() and partial.read_bytes().count(b"\n") > kept)
        else:
            while "33 %" not in early and (line := process.stderr.readline()):
                early += line
        process.send_signal(how)
        out, error = process.communicate()
    return process.returncode, out, early + error


def scores(file: Path, *, head: int = 0) -> list[float]:
    """The scores of whole lines: a kill may tear the last one."""
    *lines, _ = file.read_text("utf-8").split("\n")
    return [json.loads(line)["grade"]["score"] for line in lines[head:]]


def finish(root: Path, *more: str) -> str:
    """Grade to the end, where what was slow is fast; and what was said."""
    done = assay(
        "grade", "rows.jsonl", "--function", "grade.py", "--out", "out.jsonl", *more, cwd=root
    )
    assert done.returncode == 0, done.stderr
    assert not (root / "out.jsonl.partial").exists()
    return done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_what_was_graded_before_an_interruption_is_not_graded_again(
    tmp_path: Path, how: int
) -> None:
    rows: list[dict[str, Json]] = [*ROWS[:60], *ROWS[60:64]]
    write(tmp_path, rows, SLOW)
    code, out, error = interrupted(tmp_path, how, "--json", "--out", "out.jsonl")
    partial = tmp_path / "out.jsonl.partial"
    assert (code, out) == (130 if how == signal.SIGINT else -signal.SIGKILL, ""), error
    if how == signal.SIGINT:
        assert "of 64 rows are kept in out.jsonl.partial" in error
    assert not (tmp_path / "out.jsonl").exists()
    before = scores(partial, head=1)
    assert 40 <= len(before) <= 60
    torn = partial.read_bytes()
    partial.write_bytes(torn[: torn.rindex(b"\n") + 1] + b'{"answer": "fast", "grade": {"id": "')
    said = finish(tmp_path, "--json")
    assert f"going on after {len(before)} of 64 rows" in said
    after = scores(tmp_path / "out.jsonl")
    assert after[: len(before)] == before
    assert (len(after), len(set(after))) == (64, 64)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a grading of some rows was killed."""
    place = tmp_path_factory.mktemp("killed")
    write(place, ROWS[38:62], SLOW)
    interrupted(place, signal.SIGKILL, "--out", "out.jsonl", kept=10)
    return place


@pytest.mark.parametrize(
    ("change", "more"),
    [("function", ()), ("data", ()), ("", ("--isolation", "batch")), ("", ("--range", "0,1e12"))],
)
def test_rows_that_something_else_made_are_not_gone_on_with(
    tmp_path: Path, killed: Path, change: str, more: tuple[str, ...]
) -> None:
    rows = ROWS[38:62]
    shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
    before = set(scores(tmp_path / "out.jsonl.partial", head=1))
    assert before
    rows += [FAST] * (change == "data")
    write(tmp_path, rows, SLOW + ("# another" if change == "function" else ""))
    assert "starting anew" in finish(tmp_path, *more)
    after = scores(tmp_path / "out.jsonl")
    assert len(after) == len(rows)
    assert not before & set(after)


def graded_as(name: str, score: float) -> Graded:
    return Graded(id=name, status="scored", score=score)


def test_kept_rows_are_read_back_as_far_as_they_are_whole(tmp_path: Path) -> None:
    out, made_by = str(tmp_path / "out"), {"data": "1"}
    with keep_rows(out, made_by) as kept:
        assert (list(kept.earlier(9)), kept.is_anew) == ([], False)
        for n in range(4):
            kept.add({"n": n}, graded_as(f"{n}", n))
        kept.flush()
    lines = Path(kept.path).read_bytes().splitlines(keepends=True)
    assert len(lines) == 5
    for content, found in (
        (b"".join(lines), 4),
        (b"".join(lines)[:-1], 3),
        (b"".join([*lines[:3], b"\0\0\0\n", *lines[3:]]), 2),
        (b"".join([*lines[:2], b'{"grade": {"status": "scored", "score": "x"}}\n']), 1),
        (b"".join([*lines, lines[-1]]), 4),
        (lines[0][:20], 0),
        (b"", 0),
    ):
        Path(kept.path).write_bytes(content)
        with keep_rows(out, made_by) as again:
            assert [g.score for g in again.earlier(4)] == [float(n) for n in range(found)]
            assert not again.is_anew
            for n in range(found, 4):
                again.add({"n": n}, graded_as(f"{n}", n))
            again.finish()
        assert Path(out).read_bytes() == b"".join(lines[1:])
        assert not Path(kept.path).exists()


def test_nothing_is_left_where_nothing_was_graded(tmp_path: Path) -> None:
    with keep_rows(str(tmp_path / "out"), {}) as kept:
        assert list(kept.earlier(9)) == []
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    write(tmp_path, ROWS[:3])
    partial = tmp_path / "out.jsonl.partial"
    words = ["grade", "rows.jsonl", "--function", "grade.py", "--out", "out.jsonl"]
    partial.write_text("a diary\n")
    done = assay(*words, cwd=tmp_path)
    assert (done.returncode, partial.read_text()) == (2, "a diary\n")
    assert "another program's" in done.stderr
    partial.unlink()
    (tmp_path / "diary").write_text("")
    partial.symlink_to("diary")
    assert assay(*words, cwd=tmp_path).returncode == 2
    partial.unlink()
    with partial.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = assay(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert "another process writes 'out.jsonl.partial'" in done.stderr


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_interrupted_without_a_file_it_says_what_was_graded(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    write(tmp_path, ROWS, SLOW)
    code, out, error = interrupted(tmp_path, signal.SIGINT, *more)
    assert (code, out) == (130, ""), error
    assert re.search(r"interrupted after \d\d of 120 rows", error)
    assert re.search(r"mean [\d.,]+  \d\d scored, 0 errors, 0 flagged", error)
    assert [p.name for p in tmp_path.iterdir() if "partial" in p.name] == []


def test_progress_counts_what_a_function_gives(tmp_path: Path) -> None:
    """It has no threshold: there is nothing to pass."""
    function = (
        HEAD + "    import os\n    if thread.completion() == 'die': os._exit(1)\n    return 7\n"
    )
    rows: list[dict[str, Json]] = [{"answer": "a"}, {"answer": "die"}, {"answer": None}]
    write(tmp_path, rows, function)
    done = assay("grade", "rows.jsonl", "--function", "grade.py", cwd=tmp_path)
    assert "100 %  3 of 3 rows  2 scored, 1 errors, 1 flagged" in done.stderr
    assert "passed" not in done.stderr


def test_a_row_that_expects_two_things_is_refused_before_anything_is_graded(tmp_path: Path) -> None:
    write(tmp_path, [message("4", "4"), message("4", "4") | {"expected": "5"}])
    done = assay("grade", "rows.jsonl", "--function", "grade.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "rows.jsonl:2: 'expected' is '5', and 'metadata.expected' is '4'" in done.stderr
    write(tmp_path, [message("4", "4")])
    (tmp_path / "graders.yaml").write_text("- type: exact_match\n")
    done = assay("grade", "rows.jsonl", "-g", "graders.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
