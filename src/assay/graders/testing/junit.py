"""Read JUnit XML reports: one outcome per ``<testcase>``, whatever the totals claim.

The files are written where the submission can write, so they are parsed as hostile: no document
type and so no entities, bounded in size, depth and number, and a report that makes no sense is an
outcome of its own (an error under the file's name) instead of an exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.graders.testing.outcomes import Outcome, TestOutcome

MOST_REPORT_BYTES = 32 * 1024 * 1024
"""Bytes of one report."""

_DEEPEST = 64
_MOST_CASES = 100_000
_LONGEST_NAME = 1_000
_LONGEST_MESSAGE = 4_000
_ROOTS = frozenset({"testsuites", "testsuite"})
_BAD: Mapping[str, Outcome] = {
    "error": "error",
    "failure": "failed",
    # The last try of Surefire's reruns; a test that passed in the end has flaky... instead.
    "rerunError": "error",
    "rerunFailure": "failed",
}
_NOT_RUN = frozenset({"disabled", "filtered", "ignored", "notrun", "pending", "skipped"})
_RANK: Mapping[Outcome, int] = {
    "error": 0,
    "failed": 1,
    "xpassed": 2,
    "xfailed": 3,
    "skipped": 4,
    "passed": 5,
}


def read_junit(files: Mapping[str, bytes]) -> dict[str, TestOutcome]:
    """Read the outcomes out of reports.

    The id of a test is ``classname::name``, or its name where no class is given. Of several with
    one id the second is called ``id#2`` and so on, and where one of them failed all did. XML of
    another kind holds no tests.
    """
    groups: dict[str, list[TestOutcome]] = {}
    for path, content in sorted(files.items()):
        for found in _read(path, content):
            groups.setdefault(found.id, []).append(found)
    outcomes: dict[str, TestOutcome] = {}
    for name, group in groups.items():
        worst = min(group, key=lambda one: _RANK[one.outcome])
        failed = worst.outcome in ("error", "failed")
        for number, one in enumerate(group, 1):
            own = name if number == 1 else f"{name}#{number}"
            told = worst if failed else one
            outcomes[own] = TestOutcome(
                id=own, outcome=told.outcome, seconds=one.seconds, message=told.message
            )
    return outcomes


class _RefusedError(Exception):
    """The report is not one we read."""


@dataclass(slots=True)
class _Case:
    """A ``<testcase>`` that is being read, or a suite's own failure."""

    id: str
    outcome: Outcome = "passed"
    seconds: float | None = None
    message: str = ""

    def add(self, outcome: Outcome, message: str) -> None:
        if _RANK[outcome] < _RANK[self.outcome]:
            self.outcome, self.message = outcome, message[:_LONGEST_MESSAGE]


@dataclass(slots=True)
class _Reader:
    """Handlers for the parser's events."""

    cases: list[_Case] = field(default_factory=list[_Case])
    path: list[str] = field(default_factory=list[str])
    suites: list[str] = field(default_factory=list[str])
    case: _Case | None = None
    collecting: _Case | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        above = self.path[-1] if self.path else ""
        self.path.append(tag)
        if len(self.path) > _DEEPEST:
            raise _RefusedError(f"it is nested deeper than {_DEEPEST}")
        if self.path[0] not in _ROOTS:
            return
        if tag == "testsuite":
            self.suites.append(attributes.get("name", ""))
        elif tag == "testcase":
            self.case = _case(attributes)
            self.cases.append(self.case)
            if len(self.cases) > _MOST_CASES:
                raise _RefusedError(f"it has more than {_MOST_CASES} tests")
        elif above == "testcase" and self.case is not None:
            self._mark(self.case, tag, attributes)
        elif above == "testsuite" and tag in ("error", "failure"):
            # A suite that could not even be loaded.
            self.cases.append(_Case(id=(self.suites[-1] or "(suite)")[:_LONGEST_NAME]))
            self._mark(self.cases[-1], tag, attributes)

    def _mark(self, case: _Case, tag: str, attributes: dict[str, str]) -> None:
        message = attributes.get("message", "")
        if tag in _BAD:
            case.add(_BAD[tag], message)
            self.collecting = None if message else case
        elif tag == "skipped":
            expected = attributes.get("type") == "pytest.xfail"
            case.add("xfailed" if expected else "skipped", message)

    def text(self, text: str) -> None:
        if self.collecting is not None and len(self.collecting.message) < _LONGEST_MESSAGE:
            self.collecting.message = (self.collecting.message + text)[:_LONGEST_MESSAGE]

    def end(self, tag: str) -> None:
        self.path.pop()
        self.collecting = None
        tag = tag.rpartition(":")[2]
        if tag == "testcase":
            self.case = None
        elif tag == "testsuite" and self.suites:
            self.suites.pop()


def _case(attributes: Mapping[str, str]) -> _Case:
    name = attributes.get("name", "") or "(unnamed)"
    group = attributes.get("classname", "") or attributes.get("class", "")
    found = _Case(
        id=(f"{group}::{name}" if group else name)[:_LONGEST_NAME],
        seconds=_seconds(attributes.get("time", "")),
    )
    # GoogleTest and its kin say it in attributes instead.
    if {attributes.get("status", "").lower(), attributes.get("result", "").lower()} & _NOT_RUN:
        found.outcome = "skipped"
    return found


def _seconds(text: str) -> float | None:
    digits = text.replace(",", "").strip()
    if not digits.isascii() or not digits.replace(".", "", 1).isdigit() or len(digits) > 20:
        return None
    return float(digits)


def _read(path: str, content: bytes) -> list[TestOutcome]:
    from xml.parsers import expat

    def refuse(*_: object) -> None:
        raise _RefusedError("it has a document type, which reports never need")

    reader = _Reader()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    if len(content) > MOST_REPORT_BYTES:
        return [_unreadable(path, f"it is larger than {MOST_REPORT_BYTES} bytes")]
    try:
        parser.Parse(content, True)
    except (_RefusedError, expat.ExpatError, ValueError, LookupError) as error:
        return [_unreadable(path, str(error))]
    return [
        TestOutcome(
            id=one.id, outcome=one.outcome, seconds=one.seconds, message=one.message.strip()
        )
        for one in reader.cases
    ]


def _unreadable(path: str, why: str) -> TestOutcome:
    message = f"{path} is not a JUnit report: {why}"[:_LONGEST_MESSAGE]
    return TestOutcome(id=path, outcome="error", message=message)
