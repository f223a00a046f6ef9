"""Which tests of a foreign runner's report the author leaves out, and so nobody is graded by.

Only a test that was not run, and that the hidden source says is never run, is left out. One that
the submission keeps from running is another matter: it is expected, and has not passed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from assay.graders.testing.outcomes import TestOutcome
from assay.graders.testing.python_ids import read_python_tests
from assay.graders.testing.static_ids import language_of, matches_id, read_static_tests

__all__ = ["Declared", "declared_tests", "left_out"]

_NOT_RUN = frozenset({"skipped", "xfailed", "xpassed"})
_COUNTED = re.compile(r"(?:skipped|xfailed|xpassed) \d+")
_STEP = re.compile(r"::| [>\u203a] ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A test that a hidden source declares.

    Attributes:
        name: Its name as its language writes it.
        skipped: Whether its author always leaves it out.
        spoken: Whether the name is a sentence, so that a part of it means nothing.
    """

    name: str
    skipped: bool
    spoken: bool = False

    def means(self, test_id: str) -> bool:
        """Whether a runner's id is this test's."""
        if not self.spoken:
            dotted = self.name.replace("::", ".")
            return matches_id(self.name, test_id) or matches_id(dotted, test_id)
        # Reporters differ in what joins suites to tests, and some say the whole name twice.
        own = _STEP.sub(" ", self.name)
        tail = test_id.rpartition("::")[2] if "::" not in self.name else ""
        return own in (_STEP.sub(" ", test_id), _STEP.sub(" ", tail))


def declared_tests(files: Mapping[str, str]) -> list[Declared]:
    """The tests of hidden sources. Those of Python go by the names that JUnit files give them.

    Args:
        files: Source by path in the workspace.
    """
    found: list[Declared] = []
    for path, text in files.items():
        spoken = language_of(path) == "javascript"
        tests = read_static_tests(path, text)
        found += (Declared(name=name, skipped=False, spoken=spoken) for name in tests.names)
        found += (Declared(name=name, skipped=True, spoken=spoken) for name in tests.skipped)
    sources = {path: text for path, text in files.items() if path.endswith(".py")}
    for path, tests in read_python_tests(sources).items():
        module = PurePosixPath(path).stem
        for test in {*tests.required, *tests.possible}:
            group, _, name = test.rpartition("::")
            place = f"{module}.{group}" if group else module
            skipped = "True" in tests.skips.get(test, ())
            found.append(Declared(name=f"{place}::{name}", skipped=skipped))
    return found


def left_out(declared: Iterable[Declared], outcomes: Mapping[str, TestOutcome]) -> set[str]:
    """The ids of a report that stand for tests which their author leaves out.

    Where a report only counts, as many are left out as the author leaves out and it does not name.

    Args:
        declared: The tests of the hidden sources.
        outcomes: What was reported.
    """
    tests = list(declared)
    if not any(test.skipped for test in tests):
        return set()
    not_run = [name for name, one in outcomes.items() if one.outcome in _NOT_RUN]
    found = {name for name in not_run if _is_left_out(tests, name)}
    counted = sorted(name for name in not_run if name not in found and _COUNTED.fullmatch(name))
    unnamed = len({test.name for test in tests if test.skipped}) - len(found)
    return {*found, *counted[: max(unnamed, 0)]}


def _is_left_out(tests: Iterable[Declared], name: str) -> bool:
    """Whether what fits an id best is left out, by everybody who declares it."""
    fitting = [test for test in tests if test.means(name)]
    longest = max((len(test.name) for test in fitting), default=0)
    best = [test.skipped for test in fitting if len(test.name) == longest]
    return bool(best) and all(best)
