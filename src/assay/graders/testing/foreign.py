"""What is known beforehand of a run by a foreign runner: the tests in its sources, and a canary."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from assay.errors import GraderError
from assay.graders.testing.attempt import TestCommand
from assay.graders.testing.canaries import Canary, plant_canary, without_canaries
from assay.graders.testing.commands import Invocation
from assay.graders.testing.hidden import source_text
from assay.graders.testing.left_out import Declared, declared_tests, left_out
from assay.graders.testing.outcomes import TestOutcome
from assay.graders.testing.static_ids import (
    language_of,
    matches_id,
    read_static_tests,
    unheard,
)

__all__ = ["Foreknown", "foresee"]

_NAMING = frozenset({"cargo", "go-json", "tap"})
"""Console formats that name every test, so that a canary is seen in them."""

_STOPS_EARLY = re.compile(r"(?:^|\s)(?:-b|--bail|-failfast|--fail-fast)\b")
_MOST_FILES = 2_000
_LARGEST = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreknown:
    """What is known of a run before it.

    Attributes:
        names: Tests that the hidden sources declare, and that must be heard of.
        declared: All of them, with what their authors leave out.
        planted: Hidden sources with a canary in them, by path in the workspace.
        canary: What was planted.
        known: Every Go test of the author, hidden or not; None where other languages are tested
            too, whose tests cannot all be found by reading.
    """

    names: tuple[str, ...] = ()
    declared: Sequence[Declared] = ()
    planted: Mapping[str, str] = field(default_factory=dict[str, str])
    canary: Canary
    known: frozenset[str] | None = None

    def sift(self, outcomes: Mapping[str, TestOutcome]) -> tuple[dict[str, TestOutcome], str]:
        """Take canaries and, where they can be told, the submission's own tests out of a report.

        Returns:
            The author's tests, and what is wrong with the canaries; empty if nothing is.
        """
        real, wrong = without_canaries(outcomes, self.canary, planted=len(self.planted))
        if self.known is None:
            return real, wrong
        known = self.known
        return {
            name: one
            for name, one in real.items()
            if one.outcome != "passed" or any(matches_id(test, name) for test in known)
        }, wrong

    def left_out(self, outcomes: Mapping[str, TestOutcome]) -> set[str]:
        """The ids that stand for tests which their author leaves out."""
        return left_out(self.declared, outcomes)

    def missing(self, ids: Collection[str]) -> tuple[str, ...]:
        """Tests of which nothing was heard.

        Runners may name a test differently than its source, or only count. So no more tests are
        missed than were too few.
        """
        return unheard(self.names, ids)[: max(len(self.names) - len(ids), 0)]


def foresee(
    command: TestCommand, invocation: Invocation, files: Mapping[str, str], source: str | None
) -> Foreknown:
    """Read the hidden sources, and plant canaries where one will be seen and harms nothing.

    Args:
        command: What will be run.
        invocation: How it starts its tests.
        files: The hidden files, by path in the workspace.
        source: The pristine tree; None where it is unknown.
    """
    canary = Canary(name=f"c{secrets.token_hex(8)}", planted=secrets.token_hex(16))
    names: list[str] = []
    planted: dict[str, str] = {}
    languages: set[str] = set()
    sources = {
        path: text
        for path, place in files.items()
        if (language_of(path) or path.endswith(".py")) and (text := _text(place)) is not None
    }
    for path, text in sources.items():
        language = language_of(path)
        if language is None:
            continue
        found = read_static_tests(path, text)
        names += found.names
        languages |= {language} if found.names or found.skipped else set()
        with_canary = plant_canary(path, text, canary, number=len(planted))
        if with_canary is not None:
            planted[path] = with_canary
    if not _bears_canaries(command, invocation, planted):
        planted = {}
    known = _go_tests(source, names) if languages == {"go"} and source else None
    return Foreknown(
        names=tuple(names),
        declared=declared_tests(sources),
        planted=planted,
        canary=canary,
        known=known,
    )


def _text(place: str) -> str | None:
    try:
        return source_text(place)
    except GraderError:  # it is data, whatever its suffix says
        return None


def _bears_canaries(command: TestCommand, invocation: Invocation, planted: Collection[str]) -> bool:
    """Whether a test that fails on purpose will be named, and keep no other from running."""
    named = bool(command.junit_xml) or command.format in _NAMING
    ends = "&&" not in command.cmd.rpartition(invocation.program)[2]
    several = sum(path.endswith(".rs") for path in planted) > 1
    # cargo stops after the first program of tests that fails.
    stops = _STOPS_EARLY.search(command.cmd) or (several and "--no-fail-fast" not in command.cmd)
    return named and invocation.runner is None and ends and not stops


def _go_tests(source: str, hidden: Collection[str]) -> frozenset[str] | None:
    """The names of all Go tests of a tree; None if there are too many files to read."""
    names = {*hidden}
    read = 0
    for parent, _, files in os.walk(source):
        for name in files:
            if not PurePosixPath(name).match("*_test.go"):
                continue
            place = Path(parent, name)
            read += 1
            if read > _MOST_FILES or place.is_symlink() or place.stat().st_size > _LARGEST:
                return None
            text = place.read_text(encoding="utf-8", errors="replace")
            found = read_static_tests(name, text)
            names.update(found.names, found.skipped)
    return frozenset(names)
