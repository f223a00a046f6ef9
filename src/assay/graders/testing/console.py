"""Read what a test runner printed, in the format that the case declares.

Everything here is read from text that the submission can print into, so it proves the least of all
channels: what contradicts itself counts as failed, and a runner that reports to us or writes JUnit
files is always to be preferred. The format is never guessed.

Where a runner names its tests, their names are the ids. Where it only counts them, ids are made
up: ``passed 1`` to ``passed 7``, ``failed 1`` to ``failed 3``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from assay.errors import InputError, nearest
from assay.graders.testing.console_lines import (
    read_cargo,
    read_go_json,
    read_tap,
    read_unittest,
)
from assay.graders.testing.console_summaries import (
    read_gradle,
    read_jest,
    read_mocha,
    read_node_spec,
    read_pytest,
    read_surefire,
    read_vitest,
)
from assay.graders.testing.outcomes import TestOutcome
from assay.graders.testing.tally import Tally

__all__ = ["FORMATS", "read_console"]

_Reader: TypeAlias = Callable[[list[str]], Tally]

FORMATS: Mapping[str, _Reader] = {
    "cargo": read_cargo,
    "go-json": read_go_json,
    "gradle": read_gradle,
    "jest": read_jest,
    "mocha": read_mocha,
    "node-spec": read_node_spec,
    "pytest": read_pytest,
    "surefire": read_surefire,
    "tap": read_tap,
    "unittest": read_unittest,
    "vitest": read_vitest,
}
"""The formats by name, with what reads their lines."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_LINE_END = re.compile(r"\r\n|\r|\n")
_LONGEST_LINE = 4_000


def read_console(name: str, text: str) -> dict[str, TestOutcome]:
    """Read the outcomes out of console text.

    Args:
        name: The format, of `FORMATS`.
        text: What the command printed. Colours are ignored.

    Returns:
        Outcomes by id; none where the text has no results in that format.

    Raises:
        InputError: For a format that there is not.
    """
    if name not in FORMATS:
        raise InputError(f"there is no console format {name!r}", hint=nearest(name, list(FORMATS)))
    plain = _ESCAPES.sub("", text)
    longest = None if name == "go-json" else _LONGEST_LINE
    lines = [line[:longest] for line in _LINE_END.split(plain)]
    return FORMATS[name](lines).outcomes()
