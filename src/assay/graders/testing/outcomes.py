"""What a run of hidden tests came to: one outcome per test, and whether to believe it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from assay.errors import InputError
from assay.frozen import frozen
from assay.sandbox import CommandResult
from assay.scoring.json_safe import Json, noted
from assay.scoring.results import Assurance

if TYPE_CHECKING:
    from assay.graders.testing.commands import Runner

BOUNDARY = 6
"""Version of the boundary between judge and submission: what was decided for another is stale."""

Mode: TypeAlias = Literal["process", "shared"]
Isolation: TypeAlias = Literal["auto", "process", "shared"]
Fresh: TypeAlias = Literal["module", "test"]

_SEPARABLE: Mapping[Runner, str] = {
    "pytest": "pytest",
    "unittest": "unittest",
    "node": "node --test",
}
"""The runners that can be judged apart, and what people call them."""


def is_separable(cmd: str, tree: str | None = None) -> bool:
    """Whether the tests that a command runs can be judged in a process of their own."""
    from assay.graders.testing.commands import read_command

    try:
        return read_command(cmd, tree).runner in _SEPARABLE
    except InputError:  # what is wrong with it will be said when it is to be run
        return False


def separable_runners() -> str:
    """The runners that can be judged apart, as people call them."""
    *others, last = _SEPARABLE.values()
    return f"{', '.join(others)} and {last}"


def mode_of(isolation: Isolation, cmd: str, tree: str | None = None) -> Mode:
    """The mode that a command is run in."""
    if isolation not in ("auto", "process", "shared"):
        raise InputError(
            f"isolation must be auto, process or shared, got {cast('object', isolation)!r}"
        )
    if isolation != "process":
        return "shared"
    if is_separable(cmd, tree):
        return "process"
    from assay.graders.testing.commands import read_command

    program = read_command(cmd).program or cmd
    raise InputError(
        f"isolation: process is not available for {program!r}",
        hint=f"{separable_runners()} have it; leave isolation out, or say shared",
    )


Outcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
Channel = Literal["apart", "private", "junit", "console"]
"""By how outcomes are learnt: from a process of ours that never runs the submission's code, from
the one in which it runs too, from reports that its processes can write, or from printed text."""

_ASSURANCES: Mapping[Channel, Assurance] = {
    "apart": "separate",
    "private": "shared",
    "junit": "reported",
    "console": "reported",
}

#: Every word a runner may say about a test. Only ``passed`` is a pass.
OUTCOMES: frozenset[str] = frozenset({"passed", "failed", "error", "skipped", "xfailed", "xpassed"})


@frozen(kw_only=True)
class TestOutcome:
    """What the runner said about one test."""

    __test__ = False

    id: str
    outcome: Outcome
    seconds: float | None = None
    message: str = ""


@frozen(kw_only=True)
class TestRun:
    """What came out of running the hidden tests once (a crash's re-runs are part of it)."""

    __test__ = False

    # Every real test that reported, by id. Planted canaries are left out.
    outcomes: Mapping[str, TestOutcome]
    # The ids the score is divided by, sorted. One without an outcome is missing.
    expected: tuple[str, ...]
    # If the run is not complete, the reason in words for people; otherwise empty.
    why: str = ""
    # Signs that the submission tampered with the run, e.g. ``canary passed``.
    flags: tuple[str, ...] = ()
    channel: Channel
    result: CommandResult
    # Other things worth a reader's eye, e.g. a test that ended the process.
    notes: tuple[str, ...] = ()
    isolation: Mode = "shared"
    # Classes of the submission, as ``module.Class``, whose own equality or truth would have had to
    # decide a test, which therefore failed.
    undecided: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()
    # What the reference needed, by test function; told while it is proven.
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    # What a contract is to say of the numbers of tests; None but while the reference is proven.
    variants: Mapping[str, int] | None = None

    @property
    def complete(self) -> bool:
        """Whether the run reached its end and its canaries failed as planted.

        A run that did not is worth nothing, whatever its outcomes say.
        """
        return not self.why

    @property
    def value(self) -> float:
        """The share of the expected tests that passed, by their weights."""
        total = self.weight(self.expected)
        return self.weight(self.passed) / total if total else 0.0

    def weight(self, names: Iterable[str]) -> float:
        """What some of the expected tests weigh together."""
        return math.fsum(self.weights.get(name, 1.0) for name in names)

    @property
    def learned(self) -> dict[str, Json]:
        """What a contract is made of; nothing but while the reference is proven."""
        told = noted(needs={test: list[Json](entries) for test, entries in self.needs.items()})
        if self.variants is not None:
            told["variants"] = dict[str, Json](self.variants)
        return {**told, **noted(skips=list(self.skips))}

    @property
    def assurance(self) -> Assurance:
        """How far the outcomes can be trusted."""
        return _ASSURANCES[self.channel]

    @property
    def passed(self) -> tuple[str, ...]:
        """The expected ids that passed, none where the run is not to be believed."""
        if not self.complete or self.flags:
            return ()
        return tuple(name for name in self.expected if self.says(name) == "passed")

    @property
    def missing(self) -> tuple[str, ...]:
        """The expected ids that no outcome was heard of."""
        return tuple(name for name in self.expected if name not in self.outcomes)

    def says(self, name: str) -> Outcome | None:
        """The outcome heard for a test, ``None`` if none was."""
        heard = self.outcomes.get(name)
        return heard.outcome if heard else None
