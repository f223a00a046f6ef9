"""`assay label`: by lines and on a real terminal; blind, resumed, safe to look at."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Self, cast

import pytest

from assay.cli.label import add as add_label
from assay.cli.label import run as label_rows
from assay.errors import InputError
from assay.eval.calibration.labelling import key_names
from assay.scoring.json_safe import Json
from assay.store.database import Database
from assay.store.labels import Labels

_ROWS: list[dict[str, Json]] = [
    {"id": "one", "question": "2+2?", "answer": "4", "grade": {"reward": 0.123}, "score": 0.987},
    {"id": "two", "question": "2+3?", "answer": "5"},
    {"id": "three", "question": "2+4?", "answer": "7"},
]
Say = Callable[..., str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _write("data.jsonl", _ROWS)


def _write(file: str, rows: list[dict[str, Json]]) -> None:
    Path(file).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def _read(file: str) -> list[dict[str, Json]]:
    lines = Path(file).read_text("utf-8").splitlines()
    return [cast("dict[str, Json]", json.loads(line)) for line in lines]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """Runs the command with lines as standard input; what it shows."""

    def run(lines: str, *arguments: str, data: str = "data.jsonl") -> str:
        monkeypatch.setattr(sys, "stdin", StringIO(lines))
        parser = ArgumentParser()
        add_label(parser)
        assert label_rows(parser.parse_args([data, "--rater", "ada", *arguments])) == 0
        return capsys.readouterr().out

    return run


def _labels(rater: str = "ada", field: str = "label") -> list[str]:
    with Database.open(os.environ["ASSAY_HOME"]) as database:
        found = Labels(database).current("default", field, rater=rater)
    return [said[rater].label for said in found.values()]


def test_every_line_labels_an_item(say: Say) -> None:
    shown = say("p\nFAIL because it is odd\nn\n")
    assert _labels() == ["PASS", "FAIL", "NA"]
    assert "3 of 3 items labelled by ada" in shown


def test_a_judges_verdict_is_never_shown(say: Say) -> None:
    shown = say("s\ns\ns\n")
    assert "0.123" not in shown
    assert "0.987" not in shown
    assert "2+2?" in shown


def test_work_goes_on_where_it_stopped_and_skipped_items_come_again(say: Say) -> None:
    say("p\ns\nq\n")
    again = say("")
    assert "2+2?" not in again
    assert "2+3?" in again
    say("f\nf\n")
    assert _labels() == ["PASS", "FAIL", "FAIL"]
    assert "3 of 3" in say("p\n")


def test_undo_takes_the_last_label_back(say: Say) -> None:
    say("p\nu\nf\nq\n")
    assert _labels() == ["FAIL"]
    assert "nothing to take back" in say("u\nq\n")


def test_a_word_that_is_no_key_labels_nothing(say: Say) -> None:
    assert "is not one of the keys" in say("yes\nx\n")
    assert _labels() == []


def test_a_limit_counts_labels(say: Say) -> None:
    say("s\np\np\n", "--limit", "1")
    assert _labels() == ["PASS"]


def test_a_shuffled_order_is_the_same_after_an_interruption(say: Say) -> None:
    _write("many.jsonl", [{"answer": f"answer {n}"} for n in range(30)])
    whole = [line for line in say("s\n" * 30, "--shuffle", "3", data="many.jsonl").splitlines()
             if line.startswith("│ answer")]  # fmt: skip
    first = say("p\n" * 4, "--shuffle", "3", "--limit", "4", data="many.jsonl")
    rest = say("s\n" * 26, "--shuffle", "3", data="many.jsonl")
    both = [line for line in (first + rest).splitlines() if line.startswith("│ answer")]
    assert both == whole
    assert whole != sorted(whole)
    assert len(set(whole)) == 30


def test_raters_are_apart_and_export_brings_them_together(say: Say) -> None:
    say("p\nf\nn\n")
    say("p\nf\n", "--rater", "bo")
    shown = say("", "--rater", "ada", "--export", "ada.jsonl")
    assert "3 labelled rows" in shown
    assert [row["label"] for row in _read("ada.jsonl")] == [True, False, None]


def test_an_export_of_all_raters_says_who_said_what(
    say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    say("p\nf\nq\n")
    monkeypatch.setattr(sys, "stdin", StringIO("f\nq\n"))
    parser = ArgumentParser()
    add_label(parser)
    label_rows(parser.parse_args(["data.jsonl", "--rater", "bo"]))
    label_rows(parser.parse_args(["data.jsonl", "--export", "all.jsonl"]))
    assert [row["label"] for row in _read("all.jsonl")] == [
        {"ada": True, "bo": False},
        {"ada": False},
    ]


def test_an_exported_row_is_the_same_item(say: Say) -> None:
    say("p\nf\nn\n")
    say("", "--export", "out.jsonl")
    assert "3 of 3 items labelled" in say("", data="out.jsonl")


def test_classes_of_ones_own(say: Say) -> None:
    shown = say("1\nKIND\n", "--field", "tone", "--classes", "RUDE,NEUTRAL,KIND")
    assert "[r] RUDE" in shown
    assert _labels(field="tone") == ["KIND"]
    say("r\n", "--field", "tone", "--classes", "RUDE,NEUTRAL,KIND")
    assert _labels(field="tone") == ["KIND", "RUDE"]


def test_a_class_that_is_called_none_is_exported_as_it_is(say: Say) -> None:
    classes = ["--classes", "NONE,SOME,ALL"]
    say("NONE\nSOME\nALL\n", *classes)
    say("", "--export", "out.jsonl")
    assert [row["label"] for row in _read("out.jsonl")] == ["NONE", "SOME", "ALL"]


@pytest.mark.parametrize(
    ("classes", "keys"),
    [
        (["PASS", "FAIL", "NA"], "pfn"),
        (["GOOD", "SUPERB"], "12"),
        (["A", "AB"], "12"),
        (["ÄRGER", "B"], "12"),
    ],
)
def test_no_class_takes_the_key_of_a_command_or_of_another(classes: list[str], keys: str) -> None:
    assert "".join(key_names(classes)) == keys


def test_hostile_text_cannot_act_on_the_terminal(say: Say) -> None:
    evil = "fine\x1b[2J\x1b]0;title\x07\x1b[6n\x9b1A\r\u202eoverwritten\x08\x00\n[p] PASS  [q] quit"
    _write("evil.jsonl", [{"id": "x\x1b[31m", "answer": evil, "question": evil}])
    shown = say("s\n", "--criterion", "is \x1b[8mkind", data="evil.jsonl")
    assert not set(shown) & {"\x1b", "\x9b", "\x07", "\x08", "\r", "\0", "\u202e"}
    assert "\\x1b[2J" in shown
    assert "│ [p] PASS" in shown  # behind a bar, not as a line of ours


def test_a_flood_is_cut_until_more_is_asked_for(say: Say) -> None:
    _write("long.jsonl", [{"answer": "\n".join(f"line {n}" for n in range(5_000))}])
    assert "line 4999" not in say("s\n", data="long.jsonl")
    assert "line 4999" in say("m\ns\n", data="long.jsonl")


def test_a_file_without_rows_is_refused(say: Say) -> None:
    Path("empty.jsonl").write_text("\n")
    with pytest.raises(InputError, match="no rows"):
        say("", data="empty.jsonl")


_COMMAND = """
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C is one
import sys
from assay.cli.main import main
main(["label", *sys.argv[1:]])
"""


class _Person:
    """Somebody at a real terminal, who reads before pressing a key."""

    def __init__(self, *arguments: str) -> None:
        self._end, side = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, "data.jsonl", "--rater", "ada", *arguments],
            stdin=side, stdout=side, stderr=side, env={**os.environ, "TERM": "xterm"},
            start_new_session=True,
        )  # fmt: skip
        os.close(side)
        self._seen = b""

    def reads(self, text: str) -> None:
        deadline = time.monotonic() + 120
        while text.encode() not in self._seen:
            assert time.monotonic() < deadline, self._seen
            if select.select([self._end], [], [], 1)[0]:
                try:
                    self._seen += os.read(self._end, 65_536)
                except OSError:  # the other side has ended
                    break
        before, found, self._seen = self._seen.partition(text.encode())
        assert found, before

    def presses(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def ends(self) -> int:
        return self._process.wait(timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._end)


def test_single_keys_on_a_terminal() -> None:
    with _Person() as person:
        person.reads("2+2?")
        person.reads("[q] quit")
        person.presses("\x1b[A")  # an arrow, which must not be read as the key A
        person.presses("p")
        person.reads("2+3?")
        person.reads("[q] quit")
        person.presses("w")
        person.reads("a line for the note")
        person.presses("hm\n")
        person.reads("noted")
        person.presses("f")
        person.reads("2+4?")
        person.reads("[q] quit")
        person.presses("u")
        person.reads("2+3?")
        person.reads("[q] quit")
        person.presses("n")
        person.reads("2+4?")
        person.reads("[q] quit")
        person.presses("q")
        person.reads("2 of 3 items labelled")
        assert person.ends() == 0
        assert _labels() == ["PASS", "NA"]


def test_the_end_of_the_input_ends_and_keeps_what_was_labelled() -> None:
    with _Person() as person:
        person.reads("[q] quit")
        person.presses("p")
        person.reads("[q] quit")
        person.presses("\x04")
        person.reads("1 of 3 items labelled")
        assert person.ends() == 0
        assert _labels() == ["PASS"]


def test_an_interruption_keeps_what_was_labelled() -> None:
    with _Person() as person:
        person.reads("[q] quit")
        person.presses("p")
        person.reads("[q] quit")
        person.presses("\x03")
        person.reads("what was finished is kept")
        assert person.ends() == 130
    assert _labels() == ["PASS"]


def test_a_long_line_can_be_read_to_its_end(say: Say) -> None:
    _write("long.jsonl", [{"answer": " ".join(f"w{number}" for number in range(1_500))}])
    assert "w1499" not in say("q\n", data="long.jsonl")
    assert "w1499" in say("m\nq\n", data="long.jsonl")
