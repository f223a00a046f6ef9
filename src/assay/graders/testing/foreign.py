"""What is known beforehand of a run by a foreign runner: the tests in its sources, and a canary."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from assay.errors import GraderError
from assay.graders.testing.attempt import TestCommand
from assay.graders.testing.canaries import Canary, plant_canary, without_canaries
from assay.graders.testing.claims import kind_of
from assay.graders.testing.commands import Invocation
from assay.graders.testing.hidden import source_text
from assay.graders.testing.left_out import Declared, declared_tests, left_out
from assay.graders.testing.outcomes import TestOutcome
from assay.graders.testing.static_ids import (
    language_of,
    read_static_tests,
    unheard,
)

__all__ = ["Foreknown", "foresee"]

_NAMING = frozenset({"cargo", "go-json", "tap"})
"""Console formats that name every test, so that a canary is seen in them."""

_STOPS_EARLY = re.compile(r"(?:^|\s)(?:-b|--bail|-failfast|--fail-fast)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreknown:
    """What is known of a run before it.

    Attributes:
        names: Tests that the hidden sources declare, and that must be heard of.
        declared: All of them, with what their authors leave out.
        planted: Hidden sources with a canary in them, by path in the workspace.
        canary: What was planted.
        hidden: Text of the hidden files that can be read, by path in the workspace.
    """

    names: tuple[str, ...] = ()
    declared: Sequence[Declared] = ()
    planted: Mapping[str, str] = field(default_factory=dict[str, str])
    canary: Canary
    hidden: Mapping[str, str] = field(default_factory=dict[str, str])

    def sift(self, outcomes: Mapping[str, TestOutcome]) -> tuple[dict[str, TestOutcome], str]:
        """Take canaries out of a report.

        Returns:
            The real tests, and what is wrong with the canaries; empty if nothing is.
        """
        return without_canaries(outcomes, self.canary, planted=len(self.planted))

    def left_out(self, outcomes: Mapping[str, TestOutcome]) -> set[str]:
        """The ids that stand for tests which their author leaves out."""
        return left_out(self.declared, outcomes)

    def missing(self, ids: Collection[str]) -> tuple[str, ...]:
        """Tests of which nothing was heard.

        Runners may name a test differently than its source, or only count. So no more tests are
        missed than were too few.
        """
        return unheard(self.names, ids)[: max(len(self.names) - len(ids), 0)]


def foresee(command: TestCommand, invocation: Invocation, files: Mapping[str, str]) -> Foreknown:
    """Read the hidden sources, and plant canaries where one will be seen and harms nothing.

    Args:
        command: What will be run.
        invocation: How it starts its tests.
        files: The hidden files, by path in the workspace.
    """
    canary = Canary(name=f"c{secrets.token_hex(8)}", planted=secrets.token_hex(16))
    names: list[str] = []
    planted: dict[str, str] = {}
    sources = {
        path: text
        for path, place in files.items()
        if _is_source(path) and (text := _text(place)) is not None
    }
    for path, text in sources.items():
        if language_of(path) is None:
            continue
        found = read_static_tests(path, text)
        names += found.names
        with_canary = plant_canary(path, text, canary, number=len(planted))
        if with_canary is not None:
            planted[path] = with_canary
    if not _bears_canaries(command, invocation, planted):
        planted = {}
    return Foreknown(
        names=tuple(names),
        declared=declared_tests(sources),
        planted=planted,
        canary=canary,
        hidden=sources,
    )


def _is_source(path: str) -> bool:
    return bool(language_of(path) or kind_of(path)) or PurePosixPath(path).name == "go.mod"


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
