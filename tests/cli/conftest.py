"""What tests of commands that need no process of their own share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import Command


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, with the store in it."""
    monkeypatch.delenv("ASSAY_DB", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], here: Path) -> Command:
    """`assay` in that directory."""
    assert here == Path.cwd()
    return Command(capsys)
