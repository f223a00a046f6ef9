"""Console formats in which every test has a line: go test -json, cargo test, TAP, unittest -v.

What they, and the formats of `console`, come to is collected in a `ConsoleTally`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from assay.graders.testing.outcomes import Outcome, TestOutcome
from assay.scoring.json_safe import Json

MOST_COUNTED = 100_000
"""The largest number of tests that a line is believed to count."""

_LONGEST_ID = 1_000
_LONGEST_MESSAGE = 4_000
_ORDER: tuple[Outcome, ...] = ("passed", "skipped", "xfailed", "xpassed", "failed", "error")


@dataclass(slots=True)
class ConsoleTally:
    """Tests by name, and numbers of tests."""

    named: dict[str, TestOutcome] = field(default_factory=dict[str, TestOutcome])
    # How many tests had each outcome, by the runner's own count; None if it gave none.
    counted: dict[Outcome, int] | None = None
    _used: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, name: str, outcome: Outcome, message: str = "", *, again: bool = False) -> None:
        """Note a named test.

        ``again``: Whether another test may rightly have the same name. If not, two lines about one
        name contradict each other, and the worse holds.
        """
        name = name.strip()[:_LONGEST_ID]
        if again:
            name = self._fresh(name)
        before = self.named.get(name)
        if before is None or _ORDER.index(outcome) > _ORDER.index(before.outcome):
            cut = message.strip()[:_LONGEST_MESSAGE]
            self.named[name] = TestOutcome(id=name, outcome=outcome, message=cut)

    def count(self, counts: Mapping[Outcome, int]) -> None:
        """Note the runner's own count of all tests."""
        self.counted = {
            outcome: min(number, MOST_COUNTED) for outcome, number in counts.items() if number > 0
        }

    def outcomes(self) -> dict[str, TestOutcome]:
        """All of them by id; made-up ids stand for tests that are counted but not named.

        Where more tests are named as passed than the runner counts, names were forged, and only
        the count and the named failures hold.
        """
        if self.counted is None:
            return dict(self.named)
        named = dict(self.named)
        passed = sum(one.outcome == "passed" for one in named.values())
        if passed > self.counted.get("passed", 0):
            named = {name: one for name, one in named.items() if one.outcome in ("failed", "error")}
        for outcome, number in self.counted.items():
            have = sum(one.outcome == outcome for one in named.values())
            for index in range(1, number - have + 1):
                name = f"{outcome} {index}"
                named.setdefault(name, TestOutcome(id=name, outcome=outcome))
        return named

    def _fresh(self, name: str) -> str:
        fresh = name
        while fresh in self.named:
            self._used[name] = self._used.get(name, 1) + 1
            fresh = f"{name} #{self._used[name]}"
        return fresh


_GO: dict[str, Outcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}
# Before Go 1.20 there is no event for a line that does not begin with these words.
_GO_LATE = re.compile(r".+--- (PASS|FAIL|SKIP): (\S+) \(\d+\.\d+s\)\n?")


def read_go_json(lines: list[str]) -> ConsoleTally:
    """``go test -json``: events per test and per package.

    A test's id is ``package::Test/subtest``. A package that fails although no test of it did (it
    does not compile, it panicked) is an error with the package as its id. The verdict on a test
    may stand behind what the test printed without a line end.
    """
    tally = ConsoleTally()
    running: set[str] = set()
    broken: dict[str, str] = {}
    for line in lines:
        event = _go_event(line)
        action = event.get("Action")
        package, test = event.get("Package"), event.get("Test")
        if action == "build-fail":
            package = str(event.get("ImportPath", "")).partition(" ")[0]
        if not isinstance(package, str) or not isinstance(action, str):
            continue
        if isinstance(test, str):
            name = f"{package}::{test}"
            if action == "run":
                running.add(name)
            elif action in _GO:
                running.discard(name)
                tally.add(name, _GO[action])
            elif late := _GO_LATE.fullmatch(str(event.get("Output", ""))):
                name = f"{package}::{late[2]}"
                if name in running:
                    running.discard(name)
                    tally.add(name, _GO[late[1].lower()])
        elif action in ("fail", "build-fail"):
            broken[package] = "the package failed"
    for name in running:
        tally.add(name, "failed", "it did not come to an end")
    failed = {
        name.partition("::")[0] for name, one in tally.named.items() if one.outcome == "failed"
    }
    for package in broken.keys() - failed:
        tally.add(package, "error", broken[package])
    return tally


def _go_event(line: str) -> dict[str, Json]:
    if not line.startswith("{"):
        return {}
    try:
        event: object = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Json]", event) if isinstance(event, dict) else {}


_CARGO_TEST = re.compile(r"^test (?P<name>.+?)(?: - should panic)? \.\.\. (?P<rest>.*)$")
_CARGO_LATE = re.compile(r"^(ok|FAILED|ignored)(?: <[\d.]+s>)?$")
_CARGO_BEHIND = re.compile(r".test (?P<name>[\w:]+)(?: - should panic)? \.\.\. (?P<rest>\w+)$")
_CARGO_GLUED = re.compile(r"(?:ok|FAILED)$")
_CARGO_WORD = re.compile(r"(?:^|\s)(ok|FAILED|ignored(?:, .*)?)(?: <[\d.]+s>)?$")
_CARGO_TOTAL = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
_CARGO_PLAN = re.compile(r"^running (\d+) tests?$")
_CARGO: dict[str, Outcome] = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}


def read_cargo(lines: list[str]) -> ConsoleTally:
    """``cargo test``: the test harness's line for each test.

    More tests announced (``running 3 tests``) than reported means that the process ended before
    they did: each is a failure. Where there are only totals (``-q``), they are taken. A test's line
    or its last word may stand behind what was printed without a line end.
    """
    tally = ConsoleTally()
    glued: dict[str, str] = {}
    planned, totals, open_test, reported = 0, [0, 0, 0], "", 0
    for line in lines:
        if match := _CARGO_PLAN.match(line):
            planned += min(int(match[1]), MOST_COUNTED)
        elif match := _CARGO_TOTAL.match(line):
            totals = [have + int(more) for have, more in zip(totals, match.groups(), strict=True)]
        elif match := _CARGO_TEST.match(line) or _CARGO_BEHIND.search(line):
            word = _CARGO_WORD.search(match["rest"])
            open_test = "" if word else match["name"]
            if word:
                reported += 1
                tally.add(match["name"], _CARGO[word[1].partition(",")[0]])
        elif open_test and (late := _CARGO_LATE.match(line)):
            # With --nocapture the test's own output stands between.
            reported += 1
            tally.add(open_test, _CARGO[late[1]])
            open_test = ""
        if open_test and (end := _CARGO_GLUED.search(line)):
            glued[open_test] = min(end[0], glued.get(open_test, "ok"))  # the worse word
    for name in glued.keys() - tally.named.keys():
        reported += 1
        tally.add(name, _CARGO[glued[name]])
    if not tally.named:
        tally.count({"passed": totals[0], "failed": totals[1], "skipped": totals[2]})
        reported = sum(totals)
    elif totals[1] > sum(one.outcome == "failed" for one in tally.named.values()):
        tally.add("failed without a name", "failed", f"the totals say {totals[1]} failed")
    for index in range(1, planned - reported + 1):
        tally.add(f"unreported {index}", "failed", "it did not come to an end")
    return tally


_UNITTEST_START = re.compile(r"^(?P<test>\w+) \((?P<where>[\w.<>]+)\)(?P<rest>.*)$")
_UNITTEST_WORD = re.compile(
    r"(?:^|\.\.\. |\s)(ok|FAIL|ERROR|skipped(?: .*)?|expected failure|unexpected success)$"
)
_UNITTEST_RAN = re.compile(r"^Ran (\d+) tests? in ")
_UNITTEST_END = re.compile(r"^(?:OK|FAILED)(?: \((?P<counts>[\w =,]*)\))?$")
_UNITTEST: dict[str, Outcome] = {
    "ok": "passed",
    "FAIL": "failed",
    "ERROR": "error",
    "skipped": "skipped",
    "expected failure": "xfailed",
    "unexpected success": "xpassed",
}
_UNITTEST_COUNTS: dict[str, Outcome] = {
    "failures": "failed",
    "errors": "error",
    "skipped": "skipped",
    "expected failures": "xfailed",
    "unexpected successes": "xpassed",
}


def read_unittest(lines: list[str]) -> ConsoleTally:
    """``python -m unittest``: its verbose lines, else its last totals.

    A test's id is ``module.Class.test``. Without ``-v`` only the totals are known.
    """
    tally = ConsoleTally()
    ran: int | None = None
    counts: dict[Outcome, int] = {}
    name = ""
    for line in lines:
        start = _UNITTEST_START.match(line)
        if start:
            where, test = start["where"], start["test"]
            name = where if where.endswith(f".{test}") else f"{where}.{test}"
        if name and (word := _UNITTEST_WORD.search(start["rest"] if start else line)):
            tally.add(name, _UNITTEST[word[1] if word[1] in _UNITTEST else "skipped"])
            name = ""
        if total := _UNITTEST_RAN.match(line):
            ran, name = int(total[1]), ""
        elif ran is not None and (end := _UNITTEST_END.match(line)):
            counts = _unittest_counts(end["counts"] or "")
    if ran is not None:
        bad = sum(counts.values())
        tally.count({**counts, "passed": max(ran - bad, 0)})
    return tally


def _unittest_counts(text: str) -> dict[Outcome, int]:
    pairs = (part.split("=") for part in text.split(",") if part.count("=") == 1)
    return {
        _UNITTEST_COUNTS[key.strip()]: int(value)
        for key, value in pairs
        if key.strip() in _UNITTEST_COUNTS and value.isdecimal()
    }


_TAP_POINT = re.compile(
    r"^(?P<indent> *)(?P<word>not ok|ok)\b *(?P<number>\d{1,9})?(?: *- | +|$)(?P<name>.*)$",
    re.IGNORECASE,
)
_TAP_DIRECTIVE = re.compile(r"\s*(skip|todo)", re.IGNORECASE)
_TAP_PLAN = re.compile(r"^(?P<indent> *)1\.\.(?P<last>\d+)")
_TAP_TITLE = re.compile(r"^(?P<indent> *)# Subtest(?:: *(?P<name>.*))?$")


@dataclass(slots=True)
class _Level:
    """The test points of one depth of subtests, until the point that sums them up."""

    points: list[tuple[str, Outcome]] = field(default_factory=list["tuple[str, Outcome]"])
    planned: int = 0
    seen: int = 0


def read_tap(lines: list[str]) -> ConsoleTally:
    """TAP 13 and 14, with subtests.

    A test's id is its description, behind those of the points around it (``outer > inner``), or
    its number. A point that sums up subtests counts only where it failed and none of them did.
    Points that a plan promised and that never came are failures.
    """
    tally = ConsoleTally()
    levels: list[_Level] = [_Level()]
    in_yaml = ""
    for line in lines:
        if in_yaml:
            in_yaml = "" if line.rstrip() == in_yaml else in_yaml
        elif line.strip() == "---" and line.startswith("  "):
            in_yaml = line.rstrip().replace("---", "...")
        elif line.lower().startswith("bail out!"):
            tally.add("bail out", "error", line[9:])
        elif plan := _TAP_PLAN.match(line):
            level = _level(levels, len(plan["indent"]))
            level.planned = max(level.planned, min(int(plan["last"]), MOST_COUNTED))
        elif not _TAP_TITLE.match(line) and (point := _TAP_POINT.match(line)):
            _take_point(levels, point)
    while len(levels) > 1:
        _fold(levels, "unfinished", "failed")
    for name, outcome in _complete(levels[0]):
        tally.add(name, outcome, again=True)
    return tally


def _level(levels: list[_Level], indent: int) -> _Level:
    depth = min(indent // 4, 64)
    while len(levels) <= depth:
        levels.append(_Level())
    return levels[depth]


def _take_point(levels: list[_Level], point: re.Match[str]) -> None:
    ok, name = point["word"].lower() == "ok", point["name"].rstrip()
    before, hash_, after = name.rpartition("#")
    directive = _TAP_DIRECTIVE.match(after)
    if hash_ and directive and not before.endswith("\\"):
        name, word = before.rstrip(), directive[1].lower()
    else:
        word = ""
    outcome: Outcome = "passed" if ok else "failed"
    if word == "skip":
        outcome = "skipped" if ok else "failed"
    elif word == "todo":
        outcome = "xpassed" if ok else "xfailed"
    level = _level(levels, len(point["indent"]))
    level.seen += 1
    name = name or f"test {point['number'] or level.seen}"
    while len(levels) > levels.index(level) + 2:
        _fold(levels, "unfinished", "failed")
    if levels[-1] is level:
        level.points.append((name, outcome))
    else:
        _fold(levels, name, outcome)


def _fold(levels: list[_Level], name: str, outcome: Outcome) -> None:
    """Hang the points of the innermost level below the point that sums them up."""
    points = _complete(levels.pop())
    levels[-1].points.extend((f"{name} > {inner}", verdict) for inner, verdict in points)
    explained = any(verdict == "failed" for _, verdict in points)
    if not points or (outcome == "failed" and not explained):
        levels[-1].points.append((name, outcome))


def _complete(level: _Level) -> list[tuple[str, Outcome]]:
    missing = range(level.seen + 1, level.planned + 1)
    failed: Outcome = "failed"
    return [*level.points, *((f"test {number} (missing)", failed) for number in missing)]
