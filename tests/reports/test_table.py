"""The report on a terminal, as the text that a reader sees."""

from __future__ import annotations

import io
import re
import tracemalloc
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from assay.errors import InputError
from assay.reports.page import TextPage, page_on
from assay.reports.plain import plain
from assay.reports.review import review
from assay.reports.summary import verdict
from assay.reports.table import render
from assay.scoring.results import SubScore
from assay.store.records import CellRecord, RunRecord
from tests.each import each
from tests.reports.made import hostile_cells, hostile_run

RUN = RunRecord(id="20261121-090830-ab12", created_at="2026-11-21T09:08:30Z", label="nightly")


def cell(case: str = "sort", reward: float | None = 1.0, **more: Any) -> CellRecord:
    status = "graded" if reward is not None else "error"
    fields: dict[str, Any] = {"harness": "echo", "model": "small", "status": status, **more}
    return CellRecord(run_id="r", case=case, reward=reward, **fields)


def failing(**more: Any) -> CellRecord:
    parts = (
        SubScore(
            "tests",
            0.25,
            weight=0.5,
            metadata={"exit_code": 1, "stdout": "1 passed\n3 failed", "_parameters": {"cmd": "x"}},
        ),
        SubScore("judge", 0.4, weight=0.5, metadata={"verdict": "UNMET", "reason": "no city"}),
        SubScore("style", 1.0, weight=0.0, metadata={"note": "unremarkable"}),
    )
    subscores = tuple(part.to_dict() for part in parts)
    fields: dict[str, Any] = {"reward": 0.325, "threshold": 0.7, "subscores": subscores, **more}
    return cell(**fields)


def shown(
    *cells: CellRecord,
    width: int = 80,
    encoding: str = "utf-8",
    run: RunRecord = RUN,
    terminal: bool = False,
    **options: Any,
) -> str:
    """What the report of these cells looks like."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, errors="strict", newline="\n")
    render(TextPage(file, width=width, styled=terminal), review(run, iter(cells)), **options)
    file.flush()
    return raw.getvalue().decode(encoding)


_FREE = [
    cell(case, 0.5, threshold=0.0, model=model, trial=trial)
    for case in ("a", "b")
    for model in ("small", "large")
    for trial in (1, 2)
]
_LABELS = {"a": 0.1, "b": 0.5, "c": 0.9}
SEEN: dict[str, tuple[list[CellRecord], dict[str, Any]]] = {
    "no cells": ([], {}),
    "a failure, down to its evidence": ([cell("ok"), failing(answer="Paris?")], {}),
    "each outcome, what needs attention first": (
        [cell("a"), cell("b", 0.0), cell("c", None, error="x"), cell("d", None, status="skipped")],
        {},
    ),
    "an interval and a denominator": ([cell("a"), cell("b", 0.5), cell("c", None, error="x")], {}),
    "causes of errors": ([cell(f"c{n}", None, error=f"GraderError: try {n}") for n in "012"], {}),
    "two of seven failures": ([failing(case=f"c{n}") for n in range(7)], {"shown": 2}),
    "all of seven failures": ([failing(case=f"c{n}") for n in range(7)], {"shown": None}),
    "different cases before repeats of one": (
        [*(failing(case="a", trial=t) for t in (1, 2, 3)), failing(case="b")],
        {"shown": 2},
    ),
    "agents as columns": ([cell(model="m0"), cell(model="m1"), cell("b", model="m0")], {}),
    "agents as rows": ([cell(model=f"model-number-{n}") for n in range(9)], {}),
    "trials that differ": ([cell(trial=1), cell(trial=2, reward=0.0), cell("b", None)], {}),
    "other graders": ([cell(trial=1, digest="d1"), cell(trial=2, digest="d2")], {}),
    "labels": ([cell(n, float(n == "a"), notes={"label": n == "a"}) for n in "ab"], {"width": 200}),
    "labels that are numbers": (
        [
            *(cell(name, label, notes={"label": label}) for name, label in _LABELS.items()),
            cell("d", None, error="x", notes={"label": 1.0}),
        ],
        {"width": 200},
    ),
    "very many causes": ([cell(f"c{n}", None, error=f"cause {'x' * n}") for n in range(70)], {}),
    "very many parts": (
        [cell("a", 0.0, subscores=tuple(SubScore(f"p{n}", 0.0).to_dict() for n in range(9)))],
        {},
    ),
    "very many trials": (
        [cell(trial=n, tokens=5 if n else None, flags=("odd",)) for n in range(12)],
        {},
    ),
    "what could not fail": (_FREE, {}),
    "what could not fail beside what could": ([*_FREE, cell("c")], {}),
    "names in the order in which people count": (
        [cell(str(number), 0.0, threshold=1.0) for number in (1, 10, 11, 2, 9)],
        {},
    ),
}


def test_what_a_reader_sees(snapshot: SnapshotAssertion) -> None:
    for name, (cells, options) in SEEN.items():
        assert shown(*cells, **options) == snapshot(name=name)


def test_the_printed_verdict_is_the_one_that_is_returned() -> None:
    kept = review(RUN, [cell(), cell("b", None, error="x")])
    assert render(TextPage(io.StringIO()), kept) == verdict(kept.summary)
    assert "✓ PASS: mean reward" in shown(cell("a", 0.5), fail_under=0.4)
    with pytest.raises(InputError):
        shown(cell(), fail_under=2.0)


def test_a_review_keeps_few_whole_cells_in_memory() -> None:
    cells = (failing(trial=n, answer=f"{n}" + "x" * 40_000) for n in range(600))
    tracemalloc.start()
    try:
        kept = review(RUN, cells, limit=20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept.cells) == 20
    assert peak < 4_000_000  # of 24,000,000 characters


def test_hundreds_of_rows_are_no_wall_of_lines() -> None:
    rows = [cell(f"r{n:03}", float(n % 3 == 0), model="") for n in range(300)]
    text = " ".join(shown(*rows).split())
    assert text.count("0/1 0.00") == 10
    assert "… and 290 more cases (✓ 100 passed, ✗ 190 failed)" in text
    assert shown(*rows, shown=None).count("0/1") == 200
    rows = [cell(f"r{n:03}", float(n % 7 == 0), model="") for n in range(300)]
    text = " ".join(shown(*rows).split())
    assert "… and 290 more cases (✓ 43 passed, ✗ 247 failed)" in text, "also beyond the first 200"


def test_plain_where_there_is_no_terminal_and_where_colour_is_not_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" not in shown(failing())
    assert "\x1b[" in shown(failing(), terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    uncoloured = shown(failing(), terminal=True)
    assert "\x1b[1m" in uncoloured
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", uncoloured)


@each("encoding", ["ascii", "latin-1"])
def test_ascii_where_the_encoding_has_no_more(encoding: str) -> None:
    cells = [failing(case=f"caf\xe9 漢 {n}", model=f"m{n}", answer="→ 漢") for n in range(3)]
    text = shown(*cells, cell("ok", trial=2), encoding=encoding, width=60)
    assert text.isascii()
    assert "x FAIL: 3 of 4" in text
    assert "| -> \\u6f22" in text


@each("width", [20, 40, 80])
def test_no_line_is_wider_than_the_console(width: int) -> None:
    cells = [failing(case="x" * 300, model="漢" * 100, answer="y" * 900, content="z " * 300)]
    from rich.cells import cell_len

    text = shown(*cells, cell(trial=2), width=width)
    assert max(cell_len(line) for line in text.splitlines()) <= max(width, 40)


HOSTILE = (
    "\x1b[2J\x1b[H\x1b]8;;https://evil.test\x1b\\link\x1b]8;;\x1b\\"
    "[bold red]markup[/] [link=https://evil.test]x[/link] :boom:\n"
    "✓ PASS: all of 9 graded cells passed\r\u202eetirw\n::stop-commands::t\n##vso[task.x]y"
)


def hostile_text(**options: Any) -> str:
    return shown(*hostile_cells(HOSTILE), run=hostile_run(HOSTILE), **options)


@each("terminal", [False, True])
def test_escape_sequences_in_what_is_graded_do_not_reach_the_terminal(terminal: bool) -> None:  # noqa: FBT001 - parametrized
    text = hostile_text(terminal=terminal)
    left = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert "\x1b" not in left
    assert "evil.test" not in re.sub(r"\[link=https://evil\.test\]", "", left)
    assert not set("\r\b\x07\u202e\u2066") & set(left)
    # Markup is shown, and not obeyed.
    wide = hostile_text(terminal=terminal, width=200)
    assert "[bold red]markup[/]" in wide
    assert ":boom:" in wide


def test_output_cannot_pose_as_a_line_of_the_report() -> None:
    lines = hostile_text().splitlines()
    assert [line for line in lines if re.match(r"[✓✗!] (PASS|FAIL|NO VERDICT)", line)] == [
        line for line in lines if line.startswith("! NO VERDICT")
    ]
    assert "│ ✓ PASS: all of 9 graded cells passed" in "\n".join(lines)


def test_a_line_stays_one_line_whatever_it_is_given() -> None:
    file = io.StringIO()
    TextPage(file, width=80).line("a\nb", ("\r\nc", "red"))
    assert file.getvalue() == "a b c\n"


@each("width", [23, 31, 40, 57, 80, 133])
def test_output_cannot_give_commands_to_a_build_service(width: int) -> None:
    for line in hostile_text(width=width).splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
        assert "##vso[" not in line
    rows = shown(cell("::stop-commands::t"), cell("::stop-commands::t", model="large"))
    assert ("\n::" in rows, "stop-commands" in rows) == (False, True)


@each(
    "text",
    [
        "",
        "   ",
        "one  two   three four five six seven eight nine",
        "a word-of-more-than-twenty-columns here",
        "wide 日本語のテキスト and on and on and on",
        "✓ 3 passed   ✗ 0 failed, and more than fits  ",
        "tab\tand [markup] and \x1b[31m escapes, and more",
        "::error:: a command that is not one",
    ],
)
def test_no_piece_of_a_line_is_wider_than_its_page_and_no_word_is_lost(text: str) -> None:
    from rich.cells import cell_len

    for styled in (False, True):
        file = io.StringIO()
        page = TextPage(file, width=20, styled=styled)
        page.line(text, (" bold", "bold"), indent=2, hanging=3)
        page.quote([text, "", f"{text}\n{text}"], indent=1)
        page.table([page.text("case"), page.text("n")], [[text, "1"]], left=1)
        page.table(["x", page.stacked("a", "[b]")], [["y", "y"]], left=1)
        written = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())
        assert max(map(cell_len, written.splitlines())) <= 20
        squeezed = re.sub(r"[\s│]", "", written)
        assert squeezed.count(re.sub(r"\s", "", plain(text))) >= 4 or not text.strip()


def test_styles_are_shown_where_they_are_seen_or_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")

    def written() -> str:
        file = io.StringIO()
        page_on(file).line(("x", "bold red"))
        return file.getvalue()

    assert written() == "x\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert written() == "\x1b[1;31mx\x1b[0m\n"
    monkeypatch.setenv("TERM", "dumb")
    assert written() == "x\n"
