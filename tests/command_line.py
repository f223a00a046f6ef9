"""Run the `assay` command as a real process, on cases written for a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import cast

from assay.scoring.json_safe import Json

__all__ = [
    "COMMAND",
    "assay",
    "cells",
    "echo_case",
    "environment",
    "result",
    "summary",
    "write_case",
]

COMMAND = [sys.executable, "-c", "from assay.cli.main import main; main()"]


def assay(
    *arguments: str, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, with its state in `cwd`."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env={**environment(cwd), **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def environment(cwd: Path) -> dict[str, str]:
    return {**os.environ, "ASSAY_HOME": str(cwd / ".assay"), "COLUMNS": "100"}


def write_case(root: Path, text: str, name: str = "c1") -> Path:
    """Write a case below ``root/evals``."""
    case = root / "evals" / name
    case.mkdir(parents=True, exist_ok=True)
    (case / "case.yaml").write_text(textwrap.dedent(text), "utf-8")
    return case


_ECHO = """
    id: {id}
    task: {{prompt: "hello"}}
    matrix: {{harnesses: [echo], models: [m], trials: {trials}}}
    graders:
      - {{type: files, patterns: ["{pattern}"]}}
"""


def echo_case(root: Path, *, trials: int = 1, pattern: str = "hello", name: str = "c1") -> Path:
    """A case that `echo` passes if the pattern is in the prompt."""
    return write_case(root, _ECHO.format(id=name, trials=trials, pattern=pattern), name)


def result(done: subprocess.CompletedProcess[str]) -> dict[str, Json]:
    """The one JSON object on standard output."""
    return cast("dict[str, Json]", json.loads(done.stdout))


def cells(done: subprocess.CompletedProcess[str]) -> list[dict[str, Json]]:
    """The cells of a JSON report."""
    return cast("list[dict[str, Json]]", result(done)["cells"])


def summary(done: subprocess.CompletedProcess[str]) -> dict[str, Json]:
    """The summary of a JSON report."""
    return cast("dict[str, Json]", result(done)["summary"])
