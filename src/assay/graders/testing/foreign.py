"""What is done before a run by a foreign runner: its sources are read, and a canary is planted.

A run in which the planted test passes, or is not heard of, is not the run that was asked for: the
solution ended the process, replaced the assertions, or wrote the report itself. Planted are Go,
Rust, and JavaScript for Jest, Vitest and Mocha. Java is not: a method cannot be appended to a class
without understanding its source.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from assay.errors import GraderError
from assay.graders.testing.attempt import TestCommand
from assay.graders.testing.authors import kind_of
from assay.graders.testing.commands import Invocation
from assay.graders.testing.hidden import source_text
from assay.graders.testing.outcomes import TestOutcome
from assay.graders.testing.static_ids import language_of, matches_id, read_static_tests

__all__ = ["Canary", "Foreknown", "foresee", "plant_canary", "without_canaries"]

_NAMING = frozenset({"cargo", "go-json", "tap"})
"""Console formats that name every test, so that a canary is seen in them."""

_STOPS_EARLY = re.compile(r"(?:^|\s)(?:-b|--bail|-failfast|--fail-fast)\b")


_GO_PACKAGE = re.compile(r"^package\s+\w+", re.MULTILINE)
_GO_TESTING = re.compile(r'^\s*(?:import\s+)?(?:(?P<alias>\w+)\s+)?"testing"', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A test that must fail.

    Attributes:
        name: Random identifier, lower case letters and digits, a letter first.
        planted: Random value that its failure must tell where the report has messages.
    """

    name: str
    planted: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreknown:
    """What is known of a run before it.

    Attributes:
        planted: Hidden sources with a canary in them, by path in the workspace.
        canary: What was planted.
        hidden: Text of the hidden files that can be read, by path in the workspace.
    """

    planted: Mapping[str, str] = field(default_factory=dict[str, str])
    canary: Canary
    hidden: Mapping[str, str] = field(default_factory=dict[str, str])

    def sift(self, outcomes: Mapping[str, TestOutcome]) -> tuple[dict[str, TestOutcome], str]:
        """Take canaries out of a report.

        Returns:
            The real tests, and what is wrong with the canaries; empty if nothing is.
        """
        return without_canaries(outcomes, self.canary, planted=len(self.planted))


def foresee(command: TestCommand, invocation: Invocation, files: Mapping[str, str]) -> Foreknown:
    """Read the hidden sources, and plant canaries where one will be seen and harms nothing."""
    canary = Canary(name=f"c{secrets.token_hex(8)}", planted=secrets.token_hex(16))
    planted: dict[str, str] = {}
    sources = {
        path: text
        for path, place in files.items()
        if _is_source(path) and (text := _text(place)) is not None
    }
    for path, text in sources.items():
        with_canary = plant_canary(path, text, canary, number=len(planted))
        if with_canary is not None:
            planted[path] = with_canary
    if not _bears_canaries(command, invocation, planted):
        planted = {}
    return Foreknown(planted=planted, canary=canary, hidden=sources)


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


def plant_canary(path: str, text: str, canary: Canary, *, number: int = 0) -> str | None:
    """Append the canary to a test source.

    Returns:
        The source with the canary, or None where none can be planted: another language, or a file
        without tests of its own.
    """
    tests = read_static_tests(path, text)
    if not tests.names:
        return None
    name = f"{canary.name}x{number}"
    match language_of(path):
        case "go":
            return _go(text, name, canary.planted)
        case "rust":
            return f'{text}\n#[test]\nfn {name}() {{\n    panic!("{canary.planted}");\n}}\n'
        case "javascript":
            # `test` in Jest and Vitest with globals, `it` in all three.
            return (
                f"{text}\n;(typeof it === 'function' ? it : test)('{name}', () => "
                f"{{ throw new Error('{canary.planted}'); }});\n"
            )
        case _:
            return None


def _go(text: str, name: str, planted: str) -> str | None:
    found = _GO_TESTING.search(text)
    if not _GO_PACKAGE.search(text) or found is None or found["alias"] in ("_", "."):
        return None
    alias = found["alias"] or "testing"
    if alias == "import":
        alias = "testing"
    body = f'\tt.Fatal("{planted}")\n'
    return f"{text}\nfunc Test{name.capitalize()}(t *{alias}.T) {{\n{body}}}\n"


def without_canaries(
    outcomes: Mapping[str, TestOutcome], canary: Canary, *, planted: int
) -> tuple[dict[str, TestOutcome], str]:
    """Take the canaries out of a report.

    Returns:
        The outcomes of real tests, and what is wrong: ``canary passed``, ``canary missing``, or
        nothing.
    """
    real: dict[str, TestOutcome] = {}
    failed = 0
    passed = False
    for name, outcome in outcomes.items():
        if not _is_canary(name, canary):
            real[name] = outcome
        elif outcome.outcome in ("failed", "error"):
            failed += 1
        else:
            passed = True
    wrong = "canary missing" if failed < planted else ""
    return real, "canary passed" if passed else wrong


def _is_canary(name: str, canary: Canary) -> bool:
    last = re.split(r"::|\.| > |/", name)[-1]
    own = re.compile(rf"(?:Test)?{re.escape(canary.name)}x\d+", re.IGNORECASE)
    found = own.search(last)
    return found is not None and matches_id(found.group(), last)
