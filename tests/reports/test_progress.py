"""Progress: what a log and what a terminal get to see."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from assay.reports.page import TextPage, page_on
from assay.reports.progress import Progress
from assay.store.records import CellRecord


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def cell(reward: float | None = 1.0) -> CellRecord:
    if reward is None:
        return CellRecord(run_id="r", case="c", status="error", error="x")
    return CellRecord(run_id="r", case="c", status="graded", reward=reward)


def console(*, terminal: bool = False, encoding: str = "utf-8") -> tuple[TextPage, io.BytesIO]:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    return TextPage(file, width=100, styled=terminal), raw


def beside(shown: Progress) -> str:
    return "".join(words for words, _ in shown.beside()).strip()


def lines_of(total: int, cells: list[CellRecord], *, encoding: str = "utf-8") -> list[str]:
    target, raw = console(encoding=encoding)
    clock = Clock()
    with Progress(target, total, clock=clock) as shown:
        for each in cells:
            clock.now += 2.0
            shown.cell(each)
    return raw.getvalue().decode(encoding).splitlines()


def test_a_log_gets_one_line_per_tenth() -> None:
    lines = lines_of(200, [cell()] * 200)
    assert len(lines) == 10
    assert lines[0] == " 10 %  20 of 200 cells  ✓ 20 passed  ✗ 0 failed  about 6 min 0 s left"
    assert lines[-1] == "100 %  200 of 200 cells  ✓ 200 passed  ✗ 0 failed"
    # An unknown total and more cells than were planned do no harm.
    assert len(lines_of(0, [cell()] * 250)) == 2
    assert lines_of(2, [cell()] * 3)[-1].startswith("150 %")


def test_few_cells_get_a_line_each_that_says_how_they_ended() -> None:
    lines = lines_of(3, [cell(), cell(0.0), cell(None)])
    assert [line.split("  ")[0].strip() for line in lines] == ["33 %", "66 %", "100 %"]
    assert lines[-1].endswith("✓ 1 passed  ✗ 1 failed  ! 1 error")
    # What could not fail is scored, and nothing more.
    free = CellRecord(run_id="r", case="c", status="graded", reward=0.5, threshold=0.0)
    assert lines_of(2, [free, free])[-1] == "100 %  2 of 2 cells  · 2 scored"
    assert lines_of(2, [cell(), free])[-1].endswith("✓ 1 passed  · 1 scored")
    # Errors are said where there are any, and in ASCII where the log has no more.
    assert lines_of(1, [cell()], encoding="ascii") == ["100 %  1 of 1 cell  + 1 passed  x 0 failed"]


def test_no_time_is_promised_while_nothing_succeeds_or_nobody_could_measure() -> None:
    assert all("left" not in line for line in lines_of(4, [cell(None)] * 3))
    assert "about 4.0 s left" in lines_of(4, [cell(None), cell(0.0)])[-1]
    target, raw = console()
    with Progress(target, 4, clock=lambda: 0.0) as shown:
        shown.cell(cell())
    assert "left" not in raw.getvalue().decode()


def test_the_time_left_runs_down_between_ends_and_is_not_guessed_when_it_is_over() -> None:
    target, _ = console(terminal=True)
    clock = Clock()
    with Progress(target, 4, clock=clock) as shown:
        clock.now = 10.0
        shown.cell(cell())
        said: list[str] = []
        for now in (10.0, 20.0, 39.0, 41.0, 500.0):
            clock.now = now
            said.append(shown.time_left())
    assert said == ["about 30 s left", "about 20 s left", "about 1.0 s left", "", ""]


def test_what_runs_is_named_until_it_has_ended_and_what_there_is_to_note_while_none_ends() -> None:
    target, raw = console(terminal=True)
    said = [""]
    breaks = pytest.raises(KeyboardInterrupt)
    with breaks, Progress(target, 4, note=lambda: said[0]) as shown:
        shown.begin(("c", "", "", 1))
        shown.begin(("sort", "replay", "gpt-5", 1))
        assert beside(shown) == "c and 1 more"
        shown.cell(cell())
        assert "sort · replay · gpt-5" in beside(shown)
        assert "more" not in beside(shown)
        said[0] = "nobody answers"
        assert "nobody answers" in beside(shown)
        raise KeyboardInterrupt
    assert "nobody answers" in raw.getvalue().decode()
    assert raw.getvalue().decode().count("\x1b[?25h") == 1, "the terminal is restored"


def test_a_terminal_gets_a_bar_that_is_gone_at_the_end() -> None:
    target, raw = console(terminal=True)
    clock = Clock()
    with Progress(target, 4, clock=clock) as shown:
        for each in (cell(), cell(0.0), cell(None)):
            clock.now += 1.0
            shown.cell(each)
    text = raw.getvalue().decode()
    assert "3/4" in text
    assert "1 error" in text
    assert "about 1.0 s left" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert page_on(io.StringIO()).is_live
    monkeypatch.setenv("TERM", "dumb")
    assert not page_on(io.StringIO()).is_live


def test_reports_load_no_third_party_package_until_they_draw() -> None:
    code = (
        "import sys, assay.reports.table, assay.reports.html, assay.reports.junit, "
        "assay.reports.json_report, assay.reports.progress\n"
        "print([name for name in ('rich', 'pydantic', 'sqlalchemy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_ended_before_is_told_apart_from_what_ended_now() -> None:
    """Of a run that goes on, "80 %, 53 passed" read like 27 % of failures."""
    target, raw = console()
    with Progress(target, 10, before=7, clock=Clock()) as shown:
        shown.cell(cell())
    said = raw.getvalue().decode().strip()
    assert said == "80 %  8 of 10 cells  7 before  ✓ 1 passed  ✗ 0 failed"
