"""``python -m bench.beside``: the table of who pays what, with those who are here, and its page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import pytest
from bench.beside.__main__ import CASES, Column, ask, main, named, table
from bench.beside.cases import Kind
from bench.peers import Peer

_PAGE = Path(__file__).parents[1] / "bench" / "beside" / "README.md"


def test_what_is_wrong_is_bold_and_counted() -> None:
    ids = {case.name: name for name, case in named(["tools"]).items()}
    told = {
        ids["refunds twice"]: True,
        ids["as asked"]: "no such tool",
        ids["its refund fails"]: False,
    }
    column = Column("peer 1", told)
    assert column.faults() == (1, 1, 3)
    rows = table([column], ["tools"])
    assert "| tools | refunds twice | no | **paid** |" in rows
    assert "| tools | as asked | paid | **error** |" in rows
    assert "| tools | its refund fails | no | no |" in rows
    assert "| tools | looks twice before | paid | - |" in rows


def test_the_page_has_every_case_once() -> None:
    table_of_cases = _PAGE.read_text("utf-8").partition("## Each case")[2]
    rows = [line for line in table_of_cases.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[1] for row in rows[1:]] == [case.shown for case in CASES]


def test_a_peer_that_does_not_exist_and_an_environment_that_none_sees_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--peer", "nosuch"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "nosuch" in said
    assert "touchstone" in said  # one of those that do
    monkeypatch.setattr(sys, "executable", "/tmp/assay/.venv/bin/python")
    assert main(["--no-install", "--peer", "touchstone", "--only", "tools"]) == 1
    assert "/tmp/assay/.venv/bin/python" in capsys.readouterr().err


@pytest.mark.sandbox
@pytest.mark.slow
def test_the_page_says_what_assay_pays_today() -> None:
    """Of the peers, their versions are pinned."""
    told = ask(Peer("assay", "", Path(sys.executable).parent), list(get_args(Kind)))
    lines = table([Column("assay", told)]).splitlines()[2:]
    page = _PAGE.read_text("utf-8")
    for line in lines:
        assert f"\n{line}" in page


@pytest.mark.sandbox
@pytest.mark.slow
def test_peers_that_are_not_here_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--no-install", "--only", "tools", "--peer", "assay", "--peer", "touchstone"]
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert "| tools | refunds twice | no | no |" in said
    assert "| tools | as asked | paid | paid |" in said
