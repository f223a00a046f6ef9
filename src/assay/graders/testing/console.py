"""Read what a test runner printed, in the format that the case declares.

Everything here is read from text that the submission can print into, so it proves the least of all
channels: what contradicts itself counts as failed, and a runner that reports to us or writes JUnit
files is always to be preferred. The format is never guessed.

Where a runner names its tests, their names are the ids. Where it only counts them, ids are made
up: ``passed 1`` to ``passed 7``, ``failed 1`` to ``failed 3``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

from assay.errors import InputError, nearest
from assay.graders.testing.console_lines import (
    ConsoleTally,
    read_cargo,
    read_go_json,
    read_tap,
    read_unittest,
)
from assay.graders.testing.outcomes import Outcome, TestOutcome

_TICKS = "\u2713\u2714\u221a"
_CROSSES = "\u2715\u2717\u2718\u00d7\u2716"
_WORDS: Mapping[str, Outcome] = {
    "cancelled": "failed",
    "ERROR": "error",
    "error": "error",
    "errors": "error",
    "fail": "failed",
    "FAILED": "failed",
    "failed": "failed",
    "failing": "failed",
    "pass": "passed",
    "PASSED": "passed",
    "passed": "passed",
    "passing": "passed",
    "pending": "skipped",
    "SKIPPED": "skipped",
    "skipped": "skipped",
    "XFAIL": "xfailed",
    "xfailed": "xfailed",
    "XPASS": "xpassed",
    "xpassed": "xpassed",
}
"""What the words of all runners mean; only ``todo`` differs."""


def _counts(text: str, todo: Outcome = "skipped") -> dict[Outcome, int]:
    """Read ``1 failed, 9 passed``: sums by outcome of the words that are known."""
    found: dict[Outcome, int] = {}
    for number, word in re.findall(r"(\d{1,9}) (\w+)", text):
        outcome = todo if word == "todo" else _WORDS.get(word)
        if outcome:
            found[outcome] = found.get(outcome, 0) + int(number)
    return found


def _last(lines: Iterable[str], pattern: re.Pattern[str]) -> re.Match[str] | None:
    found = None
    for line in lines:
        found = pattern.match(line) or found
    return found


_JEST_TOTAL = re.compile(r"^Tests: +(?P<counts>.*\b\d+ total)\s*$")
_JEST_FILE = re.compile(r"^(?:PASS|FAIL) (?:\S+ )?(?P<path>\S+\.\w+)")
_JEST_TEST = re.compile(
    rf"^(?P<indent> +)(?P<mark>[{_TICKS}{_CROSSES}\u25cb\u270e]) "
    r"(?P<name>.+?)(?: \(\d[\d.]* m?s\))?$"
)
_JEST_GROUP = re.compile(r"^(?P<indent> +)(?P<name>\S.*)$")


def _read_jest(lines: list[str]) -> ConsoleTally:
    """Jest: the line ``Tests:`` (never ``Test Suites:``), and the tests' own lines if verbose.

    A named test's id is ``file > describe > name``.
    """
    tally = ConsoleTally()
    path, groups = "", list[tuple[int, str]]()
    for line in lines:
        if file := _JEST_FILE.match(line):
            path, groups = file["path"], []
        elif line.strip() == "\u25cf Test suite failed to run":
            tally.add(f"{path or 'suite'} failed to run", "error", again=True)
        elif not line.strip() or line.startswith("  \u25cf"):
            path = "" if line.startswith("  \u25cf") else path  # details of failures follow
        elif path and (test := _JEST_TEST.match(line)):
            indent = len(test["indent"])
            groups = [group for group in groups if group[0] < indent]
            outcome: Outcome = "passed" if test["mark"] in _TICKS else "skipped"
            outcome = "failed" if test["mark"] in _CROSSES else outcome
            name = test["name"].removeprefix("skipped ").removeprefix("todo ")
            words = [path, *(group for _, group in groups), name]
            tally.add(" > ".join(words), outcome, again=True)
        elif path and (group := _JEST_GROUP.match(line)):
            indent = len(group["indent"])
            groups = [*(one for one in groups if one[0] < indent), (indent, group["name"])]
    if total := _last(lines, _JEST_TOTAL):
        tally.count(_counts(total["counts"]))
    return tally


_VITEST_TOTAL = re.compile(r"^ +Tests +(?P<counts>\d.*)\(\d+\)\s*$")
_VITEST_TEST = re.compile(
    rf"^ +(?P<mark>[{_TICKS}{_CROSSES}\u2193]) (?P<name>(?:\|[^|]+\| )?\S+\.[cm]?[jt]sx? > .+?)"
    r"(?: \[skipped\])?(?: \d+ ?ms)?$"
)


def _read_vitest(lines: list[str]) -> ConsoleTally:
    """Vitest: the line ``Tests`` (never ``Test Files``), and the tests' own lines if verbose."""
    tally = ConsoleTally()
    for line in lines:
        if test := _VITEST_TEST.match(line):
            outcome: Outcome = "passed" if test["mark"] in _TICKS else "skipped"
            tally.add(test["name"], "failed" if test["mark"] in _CROSSES else outcome)
    if total := _last(lines, _VITEST_TOTAL):
        tally.count(_counts(total["counts"]))
    return tally


def _last_block(lines: Iterable[str], pattern: re.Pattern[str], first: str) -> ConsoleTally:
    """Totals that have a line each; a block of them begins with the word `first`."""
    tally, block = ConsoleTally(), list[str]()
    for line in lines:
        if total := pattern.match(line):
            block = [] if total["word"] == first else block
            block.append(f"{total['number']} {total['word']}")
    if block:
        tally.count(_counts(", ".join(block), todo="xfailed"))
    return tally


# ``9 passing``, ``1 failing``, ``2 pending``; of both, the last block counts.
_MOCHA_TOTAL = re.compile(r"^ {2}(?P<number>\d{1,9}) (?P<word>passing|failing|pending)\b")
_NODE_TOTAL = re.compile(
    r"^\u2139 (?P<word>tests|pass|fail|cancelled|skipped|todo) (?P<number>\d{1,9})$"
)


_SUREFIRE_TOTAL = re.compile(
    r"^(?:\[\w+\] +)?Tests run: (\d{1,9}), Failures: (\d{1,9}), Errors: (\d{1,9})"
    r"(?:, Skipped: (\d{1,9}))?(?:, Flakes: \d{1,9})?\s*$"
)


def _read_surefire(lines: list[str]) -> ConsoleTally:
    """Maven Surefire: the last total (``Tests run: 3, Failures: 1, ...`` without a time)."""
    tally = ConsoleTally()
    if total := _last(lines, _SUREFIRE_TOTAL):
        ran, failures, errors, skipped = (int(number or 0) for number in total.groups())
        passed = max(ran - failures - errors - skipped, 0)
        tally.count({"passed": passed, "failed": failures, "error": errors, "skipped": skipped})
    return tally


_GRADLE_TOTAL = re.compile(r"^(\d{1,9}) tests? completed(?P<rest>(?:, \d{1,9} \w+)*)\s*$")
_GRADLE_TEST = re.compile(r"^(?P<name>\S.*) (?P<word>PASSED|FAILED|SKIPPED)(?: \([^()]*\))?$")


def _read_gradle(lines: list[str]) -> ConsoleTally:
    """Gradle: ``10 tests completed, 3 failed``, and the lines of tests where it logs them.

    Gradle prints no total when nothing failed: a build must log its tests (``testLogging``) or be
    read from its JUnit files.
    """
    tally = ConsoleTally()
    for line in lines:
        if (test := _GRADLE_TEST.match(line)) and " > " in test["name"]:
            tally.add(test["name"], _WORDS[test["word"]])
    if total := _last(lines, _GRADLE_TOTAL):
        counts = _counts(total["rest"])
        tally.count({**counts, "passed": max(int(total[1]) - sum(counts.values()), 0)})
    return tally


_PYTEST_TOTAL = re.compile(
    r"^(?:=+ )?(?P<counts>\d{1,9} \w+(?:, \d{1,9} \w+)*) in [\d.:]+ ?s?.*?(?: =+)?$"
)
_PYTEST_LINE = re.compile(r"^(?P<word>PASSED|FAILED|ERROR|XFAIL|XPASS) (?P<name>.+?)(?: - .*)?$")


def _read_pytest(lines: list[str]) -> ConsoleTally:
    """Pytest: the lines below its last ``short test summary info``, and its last total.

    Whatever tests printed stands above those.
    """
    tally = ConsoleTally()
    heads = [n for n, line in enumerate(lines) if line.strip("= ") == "short test summary info"]
    for line in lines[heads[-1] :] if heads else []:
        if test := _PYTEST_LINE.match(line):
            tally.add(test["name"], _WORDS[test["word"]])
    if total := _last(lines, _PYTEST_TOTAL):
        tally.count(_counts(total["counts"]))
    return tally


_Reader: TypeAlias = Callable[[list[str]], ConsoleTally]

FORMATS: Mapping[str, _Reader] = {
    "cargo": read_cargo,
    "go-json": read_go_json,
    "gradle": _read_gradle,
    "jest": _read_jest,
    "mocha": partial(_last_block, pattern=_MOCHA_TOTAL, first="passing"),
    "node-spec": partial(_last_block, pattern=_NODE_TOTAL, first="tests"),
    "pytest": _read_pytest,
    "surefire": _read_surefire,
    "tap": read_tap,
    "unittest": read_unittest,
    "vitest": _read_vitest,
}
"""The formats by name, with what reads their lines."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_LINE_END = re.compile(r"\r\n|\r|\n")
_LONGEST_LINE = 4_000


def read_console(name: str, text: str) -> dict[str, TestOutcome]:
    """Read the outcomes out of console text."""
    if name not in FORMATS:
        raise InputError(f"unknown console format {name!r}", hint=nearest(name, list(FORMATS)))
    plain = _ESCAPES.sub("", text)
    longest = None if name == "go-json" else _LONGEST_LINE
    lines = [line[:longest] for line in _LINE_END.split(plain)]
    return FORMATS[name](lines).outcomes()
