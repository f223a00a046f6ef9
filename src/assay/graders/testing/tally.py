"""Collects the outcomes that a console names and those that it only counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.graders.testing.outcomes import Outcome, TestOutcome

__all__ = ["MOST_COUNTED", "Tally"]

MOST_COUNTED = 100_000
"""The largest number of tests that a line is believed to count."""

_LONGEST_ID = 1_000
_LONGEST_MESSAGE = 4_000
_ORDER: tuple[Outcome, ...] = ("passed", "skipped", "xfailed", "xpassed", "failed", "error")


@dataclass(slots=True)
class Tally:
    """Tests by name, and numbers of tests.

    Attributes:
        named: Outcomes by id.
        counted: How many tests had each outcome, by the runner's own count; None if it gave none.
    """

    named: dict[str, TestOutcome] = field(default_factory=dict[str, TestOutcome])
    counted: dict[Outcome, int] | None = None
    _used: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, name: str, outcome: Outcome, message: str = "", *, again: bool = False) -> None:
        """Note a named test.

        Args:
            name: Its id.
            outcome: What is said of it.
            message: Why.
            again: Whether another test may rightly have the same name. If not, two lines about
                one name contradict each other, and the worse holds.
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
        if self._number("passed") > self.counted.get("passed", 0):
            named = {name: one for name, one in named.items() if one.outcome in ("failed", "error")}
        for outcome, number in self.counted.items():
            have = sum(one.outcome == outcome for one in named.values())
            for index in range(1, number - have + 1):
                name = f"{outcome} {index}"
                named.setdefault(name, TestOutcome(id=name, outcome=outcome))
        return named

    def _number(self, outcome: Outcome) -> int:
        return sum(one.outcome == outcome for one in self.named.values())

    def _fresh(self, name: str) -> str:
        fresh = name
        while fresh in self.named:
            self._used[name] = self._used.get(name, 1) + 1
            fresh = f"{name} #{self._used[name]}"
        return fresh
