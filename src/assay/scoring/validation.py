"""What came of the checks that a grader goes through before it may grade."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from assay.frozen import frozen
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.records import as_json

PLACE_NAMED = re.compile(r"line \d+(?:, column (\d+))?: ")
"""How a message begins that names its place."""


@frozen(kw_only=True)
class Check:
    """One check that a function went through.

    Attributes:
        name: ``syntax``, ``structure``, ``signature``, ``execution`` or ``test_run``; ``size``
            before them, where the source is too long.
        passed: Whether it passed.
        message: What is wrong and how to fix it; empty if nothing is. It begins with the line
            where that is known, so nobody needs to prepend it.
        line: 1-based line of the source, where it is known.
        column: 1-based column in it, likewise.
    """

    name: str
    passed: bool
    message: str = ""
    line: int | None = None
    column: int | None = None

    def at(self, file: str) -> str:
        """The message with its place in a file, as compilers write it.

        ``file``: A Python file that is the source. Of any other file the source is only a part:
        then the line is told as the source's.
        """
        if not file or self.line is None:
            return self.message
        if not file.endswith(".py"):
            return f"{file}: {self.message}"
        place = PLACE_NAMED.match(self.message)
        column = f":{place[1]}" if place and place[1] else ""
        said = self.message[place.end() :] if place else self.message
        return f"{file}:{self.line}{column}: {said}"


@frozen(kw_only=True)
class ValidationReport:
    """Whether a function can grade, and what it says to some samples.

    Attributes:
        valid: Whether every check passed.
        checks: The checks in their order, up to the first that failed.
        warnings: What is not wrong, but worth a look.
        samples: What came of each sample that was given.
        tier: What isolated the function; empty where it did not come to that.
    """

    valid: bool
    checks: tuple[Check, ...]
    warnings: tuple[str, ...] = ()
    samples: tuple[Graded, ...] = ()
    tier: str = ""

    @property
    def failed(self) -> Check | None:
        """The check that failed."""
        return next((check for check in self.checks if not check.passed), None)

    def to_dict(self) -> dict[str, Json]:
        """The report as plain JSON."""
        return cast("dict[str, Json]", as_json(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> ValidationReport:
        """Read back what `to_dict` wrote."""
        checks, warnings, samples = data.get("checks"), data.get("warnings"), data.get("samples")
        return cls(
            valid=data.get("valid") is True,
            checks=tuple(_check(c) for c in checks if isinstance(c, dict))
            if isinstance(checks, list)
            else (),
            warnings=tuple(map(str, warnings)) if isinstance(warnings, list) else (),
            samples=tuple(Graded.from_dict(s) for s in samples if isinstance(s, dict))
            if isinstance(samples, list)
            else (),
            tier=str(data.get("tier") or ""),
        )


def _check(data: Mapping[str, Json]) -> Check:
    line, column = data.get("line"), data.get("column")
    return Check(
        name=str(data.get("name") or ""),
        passed=data.get("passed") is True,
        message=str(data.get("message") or ""),
        line=line if isinstance(line, int) else None,
        column=column if isinstance(column, int) else None,
    )
