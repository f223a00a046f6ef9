"""The command line stays one that a user can learn."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.commands import leaves, options

from assay.cli.options import store_place
from assay.errors import InputError
from tests.command_line import assay, echo_case

MOST_LEAVES = 45
MOST_OPTIONS = 193


def test_there_are_no_more_commands_and_options_than_a_user_can_learn() -> None:
    """`python -m tools.commands` lists them: first let one go, or say it in a file."""
    assert len(leaves()) <= MOST_LEAVES
    assert options() <= MOST_OPTIONS


def test_one_option_and_one_variable_name_the_store(tmp_path: Path) -> None:
    echo_case(tmp_path)
    there = ("--db", "elsewhere")
    assert assay("run", "evals", *there, cwd=tmp_path).returncode == 0
    assert not (tmp_path / ".assay").exists()
    for words in (("report",), ("runs",), ("compare", "latest", "latest"), ("regrade", "latest")):
        done = assay(*words, *there, cwd=tmp_path)
        assert "no store" not in done.stderr, done.stderr
        done = assay(*words, cwd=tmp_path)
        assert "no store" in done.stderr or "no runs yet" in done.stdout, words
    named = assay("report", cwd=tmp_path, env={"ASSAY_DB": str(tmp_path / "elsewhere")})
    assert named.returncode == 0


def test_the_variable_of_before_is_told_its_name_of_today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSAY_DB", raising=False)
    monkeypatch.setenv("ASSAY_HOME", "/elsewhere")
    with pytest.raises(InputError, match="ASSAY_HOME is called ASSAY_DB now"):
        store_place()
