"""The report on a terminal, as the text that a reader sees."""

# ruff: noqa: RUF001 - the report holds dashes and multiplication signs

from __future__ import annotations

import io
import re
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from assay.errors import InputError
from assay.reports.page import TextPage, page_on
from assay.reports.plain import plain
from assay.reports.review import review
from assay.reports.summary import verdict
from assay.reports.table import render
from assay.scoring.results import SubScore
from assay.store.records import CellRecord, RunRecord
from tests.each import each

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


def test_a_failing_cell_is_explained_down_to_its_evidence() -> None:
    text = shown(cell("ok"), failing(answer="Paris?"))
    assert "0.33 = 0.50×0.25 tests + 0.50×0.40 judge" in re.sub(r"\s+", " ", text)
    assert "exit code: 1" in text
    assert "│ 3 failed" in text
    assert "verdict: UNMET" in text
    assert "reason: no city" in text
    assert "│ Paris?" in text
    assert "unremarkable" not in text
    assert "✗ FAIL: 1 of 2 graded cells failed" in text


def test_the_printed_verdict_is_the_one_that_is_returned() -> None:
    kept = review(RUN, [cell(), cell("b", None, error="x")])
    assert render(TextPage(io.StringIO()), kept) == verdict(kept.summary)


def test_four_outcomes_differ_by_shape_and_word() -> None:
    text = shown(
        cell("a"), cell("b", 0.0), cell("c", None, error="x"), cell("d", None, status="skipped")
    )
    assert "✓ 1 passed   ✗ 1 failed   ! 1 error   – 1 skipped" in text


def test_every_mean_and_rate_shows_its_interval_and_denominator() -> None:
    text = shown(cell("a"), cell("b", 0.5), cell("c", None, error="x"))
    assert re.search(r"Reward +0\.75  95 % interval 0\.00–1\.00 over 2 cases; 2 of 3 cells", text)
    assert re.search(r"Pass rate +50 %  1 of 2 graded; 95 % interval 9–91 %", text)


def test_an_unknown_cost_is_not_printed_as_zero() -> None:
    text = shown(cell())
    assert re.search(r"Agent cost +unknown; unknown tokens", text)
    assert "$0" not in text


def test_errors_are_grouped_by_cause() -> None:
    text = shown(*(cell(f"c{n}", None, error=f"GraderError: try {n}") for n in range(3)))
    assert "! 3× GraderError: try 0" in text
    assert "NO VERDICT" in text
    assert "assay run --resume 20261121-090830-ab12" in text


def test_only_some_failing_cells_are_opened_and_the_rest_is_counted() -> None:
    cells = [failing(case=f"c{n}") for n in range(7)]
    text = shown(*cells, shown=2)
    assert text.count("exit code: 1") == 2
    assert "… and 5 more: assay report 20261121-090830-ab12 --all" in text
    everything = shown(*cells, shown=None)
    assert everything.count("exit code: 1") == 7
    assert "--all" not in everything


def test_different_cases_are_opened_before_repeats_of_one() -> None:
    cells = [failing(case="a", trial=t) for t in (1, 2, 3)] + [failing(case="b")]
    opened = shown(*cells, shown=2).split("Failed: 4")[1]
    assert "✗ a" in opened
    assert "✗ b" in opened


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


def test_agents_are_columns_where_they_fit_and_rows_where_not() -> None:
    few = shown(*(cell(model=f"m{n}") for n in range(2)))
    assert re.search(r"^case +m0 +m1", few, re.MULTILINE)
    many = shown(*(cell(model=f"model-number-{n}") for n in range(9)))
    assert re.search(r"^case +agent +passed +reward", many, re.MULTILINE)
    assert max(map(len, many.splitlines())) <= 80


def test_cases_that_need_attention_come_first() -> None:
    text = shown(cell("fine"), cell("broken", None, error="x"), cell("wrong", 0.0))
    places = [text.index(f" {case} ") for case in ("wrong", "broken", "fine")]
    assert places == sorted(places)


def test_repeats_are_one_row_with_a_strip_and_flaky_is_said() -> None:
    text = shown(cell(trial=1), cell(trial=2, reward=0.0), cell(trial=3, reward=None, error="x"))
    assert re.search(r"✗ sort +1/3 !1 ~ +0\.50 .* 2/3 +✓✗!", text)
    assert "~ flaky" in text
    assert "no case has 3 graded trials" in text


def test_grades_of_different_graders_are_marked() -> None:
    text = shown(cell(trial=1, digest="d1"), cell(trial=2, digest="d2"))
    assert "≠ graded by different versions of the graders: sort" in text
    assert "assay regrade" in text


def test_labels_show_agreement_beside_chance() -> None:
    console_file = io.StringIO()
    cells = [cell("a", notes={"label": True}), cell("b", 0.0, notes={"label": False})]
    kept = review(RUN, cells)
    render(TextPage(console_file, width=200), kept)
    assert "kappa 1.00, accuracy 1.00 (always the commoner label: 0.50)" in console_file.getvalue()


def test_numeric_labels_show_correlation_beside_the_median() -> None:
    file = io.StringIO()
    cells = [
        cell(name, label, notes={"label": label})
        for name, label in {"a": 0.1, "b": 0.5, "c": 0.9}.items()
    ]
    cells.append(cell("d", None, error="x", notes={"label": 1.0}))
    render(TextPage(file, width=200), review(RUN, cells))
    assert "correlation 1.00, mean error 0.00 (always the median label: 0.27)" in file.getvalue()
    assert "3 labelled, 1 more without a grade" in file.getvalue()


def test_floods_are_cut_and_the_rest_is_counted() -> None:
    cases = [cell(f"c{n}", None, error=f"cause {'x' * n}") for n in range(70)]
    text = shown(*cases)
    assert "… and 60 more cases (! 60 errors): assay report 20261121-090830-ab12 --all" in text
    assert "… and 65 more causes" in text
    many = tuple(SubScore(f"p{n}", 0.0).to_dict() for n in range(9))
    assert "… and 3 more parts" in shown(cell("a", 0.0, subscores=many))
    trials = [cell(trial=n, tokens=5 if n else None, flags=("odd",)) for n in range(12)]
    text = shown(*trials)
    assert re.search(r"✓{10}…", text)
    assert "55 tokens + 1 cell unknown" in text
    assert "12 cells, whose flags say why" in text


def test_hundreds_of_rows_are_no_wall_of_lines() -> None:
    rows = [cell(f"r{n:03}", float(n % 3 == 0), model="") for n in range(300)]
    text = " ".join(shown(*rows).split())
    assert text.count("0/1 0.00") == 10
    assert "… and 290 more cases (✓ 100 passed, ✗ 190 failed)" in text
    assert shown(*rows, shown=None).count("0/1") == 200
    rows = [cell(f"r{n:03}", float(n % 7 == 0), model="") for n in range(300)]
    text = " ".join(shown(*rows).split())
    assert "… and 290 more cases (✓ 43 passed, ✗ 247 failed)" in text, "also beyond the first 200"


def test_an_agent_that_did_not_run_a_case_is_shown_as_not_run() -> None:
    text = shown(cell("a"), cell("b"), cell("a", model="large"))
    assert re.search(r"^b +✓ 1/1 1\.00 +·", text, re.MULTILINE)


def test_fail_under_reaches_the_verdict() -> None:
    assert "✓ PASS: mean reward" in shown(cell("a", 0.5), fail_under=0.4)
    with pytest.raises(InputError):
        shown(cell(), fail_under=2.0)


def test_a_run_without_cells_is_no_pass() -> None:
    assert "! NO VERDICT: nothing was graded: there are no cells" in shown()


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


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_ascii_where_the_encoding_has_no_more(encoding: str) -> None:
    cells = [failing(case=f"caf\xe9 漢 {n}", model=f"m{n}", answer="→ 漢") for n in range(3)]
    text = shown(*cells, cell("ok", trial=2), encoding=encoding, width=60)
    assert text.isascii()
    assert "x FAIL: 3 of 4" in text
    assert "| -> \\u6f22" in text


@pytest.mark.parametrize("width", [20, 40, 80])
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


def hostile_cells() -> Iterator[CellRecord]:
    node = SubScore(
        HOSTILE,
        0.0,
        metadata={"stdout": HOSTILE, HOSTILE: HOSTILE},
        reason=HOSTILE,
        flags=(HOSTILE,),
    )
    for state in ("graded", "error", "skipped"):
        for trial in (1, 2):
            yield CellRecord(
                run_id="r",
                case=HOSTILE + state,
                harness=HOSTILE,
                model=HOSTILE,
                trial=trial,
                status=state,
                reward=0.0 if state == "graded" else None,
                passed=False if state == "graded" else None,
                error=HOSTILE,
                flags=(HOSTILE,),
                subscores=(node.to_dict(),),
                content=HOSTILE,
                answer=HOSTILE,
                file=HOSTILE,
                digest=HOSTILE + str(trial),
            )


def hostile_text(**options: Any) -> str:
    run = RunRecord(id=HOSTILE, created_at=HOSTILE, label=HOSTILE, planned=99)
    return shown(*hostile_cells(), run=run, **options)


@pytest.mark.parametrize("terminal", [False, True])
def test_escape_sequences_in_what_is_graded_do_not_reach_the_terminal(terminal: bool) -> None:  # noqa: FBT001 - parametrized
    text = hostile_text(terminal=terminal)
    left = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert "\x1b" not in left
    assert "evil.test" not in re.sub(r"\[link=https://evil\.test\]", "", left)
    assert not set("\r\b\x07\u202e\u2066") & set(left)


def test_markup_in_what_is_graded_is_shown_and_not_obeyed() -> None:
    assert "[bold red]markup[/]" in hostile_text(width=200)
    assert ":boom:" in hostile_text(width=200)


def test_output_cannot_pose_as_a_line_of_the_report() -> None:
    lines = hostile_text().splitlines()
    assert [line for line in lines if re.match(r"[✓✗!] (PASS|FAIL|NO VERDICT)", line)] == [
        line for line in lines if line.startswith("! NO VERDICT")
    ]
    assert "│ ✓ PASS: all of 9 graded cells passed" in "\n".join(lines)


def test_a_case_id_cannot_give_commands_to_a_build_service() -> None:
    rows = shown(cell("::stop-commands::t"), cell("::stop-commands::t", model="large"))
    assert "\n::" not in rows
    assert "stop-commands" in rows


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


def test_rows_that_could_not_fail_show_no_passing_anywhere() -> None:
    free = [
        cell(case, 0.5, threshold=0.0, model=model, trial=trial)
        for case in ("a", "b")
        for model in ("small", "large")
        for trial in (1, 2)
    ]
    for width in (80, 40):
        text = shown(*free, width=width)
        assert "· 8 scored" in text
        assert "✓" not in text.split("PASS:")[0].rsplit("\n", 1)[0]
        assert "2/2 " not in text.split("agent ")[0]
    assert "a     · 0.50  · 0.50" in shown(*free)
    assert "passed/trials" not in shown(*free)
    mixed = shown(*free, cell("c"))
    assert "✓ 1 passed   ✗ 0 failed   · 8 scored   ! 0 errors" in mixed
    assert "9 of 9 graded" in mixed
    assert "8 scored without a threshold count as passed" in " ".join(mixed.split())


def test_rows_stand_in_the_order_in_which_people_count() -> None:
    """1, 10, 100 and then 2: nobody finds a row in such a list."""
    found = shown(*(cell(str(number), 0.0, threshold=1.0) for number in (1, 10, 11, 2, 9)))
    in_table = [line.split()[1] for line in found.split("Failed")[0].splitlines() if "✗" in line]
    opened = [line.split()[1] for line in found.split("Failed")[1].splitlines() if "✗ " in line]
    assert in_table == ["1", "2", "9", "10", "11"]
    assert opened[:5] == ["1", "2", "9", "10", "11"]
