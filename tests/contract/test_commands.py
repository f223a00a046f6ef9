"""Every command: what it says to who asks for help and to who is wrong, whole, in snapshots.

Whoever changes a word sees it in `__snapshots__`, which `pytest tests/contract --snapshot-update`
writes. What is wrong leaves the directory and the store as they were.
"""

from __future__ import annotations

import re
import shlex
import sqlite3
import sys
from itertools import takewhile
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from tools.commands import leaves, options

from assay.cli.main import COMMANDS
from assay.cli.options import store_place
from assay.errors import InputError
from tests.command_line import assay, echo_case
from tests.contract.places import PLACES

MOST_LEAVES = 45
MOST_OPTIONS = 193


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="argparse lays help out otherwise")
def test_help_of_every_command(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    for command in sorted({"", *COMMANDS, *leaves()}):
        done = assay(*command.split(), "--help", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"usage: assay {command}".rstrip())
        assert done.stdout == snapshot(name=command or "assay")


@pytest.mark.parametrize("name", PLACES)
def test_what_makes_no_sense_is_refused(
    name: str, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    here = PLACES[name].lay(tmp_path)
    before = _held(here)
    said = [_refused(line, here) for line in PLACES[name].wrong.split("\n")[1:-1]]
    assert "\n".join(said) == snapshot
    assert _held(here) == before


def _refused(line: str, here: Path) -> str:
    """A command as somebody types it, its exit status, and what it says."""
    words = shlex.split(line)
    given = takewhile(re.compile(r"[A-Z_]+=").match, words)
    env = dict(word.split("=", 1) for word in given)
    done = assay(*words[len(env) :], cwd=here, env=env)
    assert done.returncode in (2, 3), (line, done.stdout)
    assert "Traceback" not in done.stderr, line
    said = f"{done.stdout}{done.stderr}".replace(str(here), "HERE")
    said = re.sub(r"\(choose from [^)]*\)", "(choose from …)", said)  # Pythons quote these or not
    said = re.sub(r"\d{8}-\d{6}-\w{4}", "RUN", said)
    return f"$ assay {line}\n{done.returncode}\n{said}"


def _held(here: Path) -> tuple[dict[Path, bytes], dict[str, int]]:
    """Every file that is no store's, and how many rows the store's tables have."""
    files = {
        path: path.read_bytes()
        for path in here.rglob("*")
        if path.is_file() and ".assay" not in path.parts and "__pycache__" not in path.parts
    }
    if not (here / ".assay/assay.db").exists():
        return files, {}
    connection = sqlite3.connect(here / ".assay/assay.db")
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    counts: dict[str, int] = {
        name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
        for (name,) in tables
        if name != "project"  # the first one comes with the store, which some commands make
    }
    connection.close()
    return files, {name: number for name, number in counts.items() if number}


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
