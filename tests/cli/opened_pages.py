"""Commands that open the page, as processes."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.command_line import COMMAND, environment

__all__ = ["SILENT", "opened_page"]

SILENT = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": ""}
"""Variables of a machine without a screen, where no browser is opened."""


@contextmanager
def opened_page(home: Path, *words: str) -> Generator[str]:
    """The link that a command prints and serves, until the block ends."""
    process = subprocess.Popen(
        [*COMMAND, *words], cwd=home, env={**environment(home), **SILENT},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        process.stdout.readline()
        yield process.stdout.readline().rpartition(" ")[2].strip()
    finally:
        process.terminate()
        process.communicate(timeout=60)
