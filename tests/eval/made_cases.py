"""Cases in a few words, and an agent that is a command."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from assay.agents import CommandAgent
from assay.tasks.blocks import HarnessSpec
from tests.written_files import write_files

__all__ = ["command", "make_case"]

_WHOLE = {
    "id": "id: c",
    "task": "task: {prompt: p}",
    "matrix": "matrix: {harnesses: [echo], models: [m]}",
    "graders": "graders: [{type: files, patterns: [x]}]",
}


def make_case(root: Path, text: str, files: Mapping[str, str] | None = None) -> Path:
    """Write a case with a source; blocks that it does not say are the least that a case has."""
    said = textwrap.dedent(text).lstrip("\n")
    rest = [line for block, line in _WHOLE.items() if f"\n{block}:" not in f"\n{said}"]
    (root / "case.yaml").write_text("".join(f"{line}\n" for line in rest) + said, "utf-8")
    write_files(root / "source", files or {})
    return root


def command(*argv: str, timeout_s: float = 60.0) -> CommandAgent:
    """An agent that is a command."""
    return CommandAgent(spec=HarnessSpec(argv=argv, timeout_s=timeout_s))
