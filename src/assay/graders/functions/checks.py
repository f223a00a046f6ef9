"""The checks that a function goes through before it may grade.

Size first; then five, of which the first to fail is the last to run: `syntax`, `structure`,
`signature`, `execution`, `test_run`. Nothing of the source is parsed or run in our own process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from assay.errors import SandboxError
from assay.graders.empty_answers import Hollow, doubts, hollow_items
from assay.graders.functions.apart import examined_apart
from assay.graders.functions.grading import call_of, graded_from, payload_of
from assay.graders.functions.source import MAX_SOURCE_BYTES, FunctionSource, Isolation
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.validation import PLACE_NAMED, Check, ValidationReport
from assay.types.submission import Submission
from assay.types.thread import StringThread

if TYPE_CHECKING:
    from assay.sandbox.functions.program import (
        FunctionLimits,
        LoadReport,
        Outcome,
        TierChoice,
    )

__all__ = ["EXAMPLE", "Check", "ValidationReport", "validate_function"]


EXAMPLE = StringThread([("user", "What is 2+2?"), ("assistant", "4")])
"""What every function is tried on, whatever samples are given."""

_NAMED = "the example thread (user 'What is 2+2?', assistant '4', no metadata)"
_PLACE = re.compile(r", line (\d+)$")
LATE = "not tried: those before it took too long"
_FOR_EVERY = "handle it: 'grade' must return a number for every thread"
_FROM_HERE = "; look at what the file does by itself from here on, and do it in 'grade'"


async def validate_function(
    source: str,
    *,
    samples: Sequence[Submission | tuple[str, Submission]] = (),
    limits: FunctionLimits | None = None,
    range: tuple[float, float] | None = None,  # noqa: A002 - what everybody calls it
    isolation: Isolation = "call",
    tier: TierChoice = "auto",
    seconds: float | None = None,
    runs: bool = True,
) -> ValidationReport:
    """Check a function, run it on an example and on samples, and say what came of it.

    It is valid if every check passes; the last asks for a finite number in its range for the
    example and for every sample. What a sample alone is to blame for (it has no answer, or the
    function ran out of time on it) is a warning. Where a sample's error has a line, it is among
    its details. The first sample, or the example, is also tried with answers that say nothing
    (`assay.graders.empty_answers`): a warning names those that are paid, or cannot be graded.

    Args:
        source: The function's source.
        samples: What it is tried on beside the example.
        limits: How much a call may use.
        range: Lowest and highest score that it may return.
        isolation: As it will be graded with.
        tier: What isolates.
        seconds: How long samples are begun; those after that are skipped. None for no limit.
        runs: Whether it is run; else only what can be said without that is checked.

    Raises:
        InputError: For an invalid range.
        SandboxError: If the sandbox fails, or this machine has none.
    """
    from assay.sandbox.functions import FunctionLimits

    function = FunctionSource(text=source, isolation=isolation, range=range)
    source = function.text
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > MAX_SOURCE_BYTES:
        within = source.encode("utf-8", "surrogatepass")[:MAX_SOURCE_BYTES]
        line = within.count(b"\n") + 1
        message = f"line {line}: source: {size} bytes; limit {MAX_SOURCE_BYTES}, which ends here; "
        message += "make it shorter, or let the data come with the samples' metadata"
        check = Check(name="size", passed=False, message=message, line=line)
        return ValidationReport(valid=False, checks=(check,))
    named = [s if isinstance(s, tuple) else (str(n), s) for n, s in enumerate(samples, 1)]
    trial = _Trial(function, limits or FunctionLimits(), tier, seconds)
    if await trial.examine() and runs:
        await trial.run(named)
    return ValidationReport(
        valid=all(check.passed for check in trial.checks),
        checks=tuple(trial.checks),
        warnings=tuple(dict.fromkeys(trial.warnings)),
        samples=tuple(trial.samples),
        tier=trial.isolated_by,
    )


@dataclass(slots=True)
class _Trial:
    """One function on its way through the checks."""

    function: FunctionSource
    limits: FunctionLimits
    tier: TierChoice
    seconds: float | None
    checks: list[Check] = field(default_factory=list[Check])
    warnings: list[str] = field(default_factory=list[str])
    samples: list[Graded] = field(default_factory=list[Graded])
    lines: dict[str, int] = field(default_factory=dict[str, int])
    isolated_by: str = ""

    def passes(self, name: str) -> None:
        self.checks.append(Check(name=name, passed=True))

    def fails(self, name: str, message: str, line: int | None = None) -> None:
        place = PLACE_NAMED.match(message)
        column = int(place[1]) if place and place[1] else None
        failed = Check(name=name, passed=False, message=message, line=line, column=column)
        self.checks.append(failed)

    async def examine(self) -> bool:
        """Syntax, structure, signature, and whether every name and import can be there."""
        found = await _examined(self.function.text, self.tier)
        self.warnings += cast("list[str]", found["warnings"])
        self.lines = cast("dict[str, int]", found["lines"])
        for name in cast("list[str]", found["passed"]):
            self.passes(name)
        failed = cast("dict[str, Json] | None", found["failed"])
        if failed is None:
            return True
        self.fails(str(failed["check"]), str(failed["message"]), cast("int | None", failed["line"]))
        return False

    async def run(self, samples: Sequence[tuple[str, Submission]]) -> None:
        """Load the function and call it with the example and with every sample."""
        prepared = [self._prepare(item, submission) for item, submission in samples]
        hollow = self._hollow(
            [s for (_, s), p in zip(samples, prepared, strict=True) if isinstance(p, bytes)]
        )
        payloads = [p for p in prepared if isinstance(p, bytes)]
        loaded = await self._load([*payloads, *(payload for _, payload in hollow)])
        self.isolated_by = loaded.tier
        if loaded.error:
            line = loaded.line or self.lines["loads"]
            advice = _FROM_HERE
            if loaded.line:
                advice = "" if "; " in loaded.error else "; fix that so that the file loads"
            self.fails("execution", f"line {line}: {loaded.error}{advice}", line)
            return
        self.passes("execution")
        outcomes = iter(loaded.outcomes)
        example = self._graded("example", next(outcomes))
        for (item, _), made in zip(samples, prepared, strict=True):
            outcome = None if isinstance(made, Graded) else next(outcomes, None)
            if isinstance(made, Graded):
                self.samples.append(made)
            elif outcome is None:
                self.samples.append(
                    Graded(id=item, status="skipped", outcome="no_time", reason=LATE)
                )
            else:
                self.samples.append(self._graded(item, outcome))
        untried = {graded.id for graded in prepared if isinstance(graded, Graded)}
        self._judge(example, untried)
        if not all(check.passed for check in self.checks):
            return
        if await self._repeats(example):
            tried = [
                (one, self._graded(one.id, outcome))
                for (one, _), outcome in zip(hollow, outcomes, strict=False)  # as far as time went
            ]
            self.warnings += doubts(tried, self.function.range or (0.0, 1.0))

    def _hollow(self, samples: Sequence[Submission]) -> list[tuple[Hollow, bytes]]:
        """What the function is called with to see whether it pays for nothing."""
        like = samples[0] if samples else Submission(thread=EXAMPLE)
        items = hollow_items(like, self.function.text)
        made = ((one, self._prepare(one.id, submission)) for one, submission in items)
        return [(one, payload) for one, payload in made if isinstance(payload, bytes)]

    async def _load(self, payloads: Sequence[bytes]) -> LoadReport:
        from assay.sandbox.functions import load_once

        program = self.function.program()
        whole = [payload_of(EXAMPLE), *payloads]
        return await load_once(
            program, whole, limits=self.limits, tier=self.tier, seconds=self.seconds
        )

    async def _repeats(self, example: Graded) -> bool:
        """Ask a new process for the example again, where any other score would be chance."""
        again = [self._graded("example", o).score for o in (await self._load([])).outcomes]
        if again == [example.score]:
            return True
        shown = again[0] if again else "nothing"
        self.warnings.append(
            f"called again with the same thread it returned {shown}, not {example.score}"
        )
        return False

    def _prepare(self, item: str, submission: Submission) -> bytes | Graded:
        return call_of(item, submission, self.limits.payload_bytes, self.function)

    def _graded(self, item: str, outcome: Outcome) -> Graded:
        if outcome.status == "sandbox_error":
            raise SandboxError(f"the sandbox failed: {outcome.message}")
        graded = graded_from(item, outcome, self.function)
        line = self._line(graded)
        return graded if line is None else replace(graded, details={**graded.details, "line": line})

    def _line(self, graded: Graded) -> int | None:
        """The line to look at for what came of a call; None where nothing is wrong."""
        if graded.status != "error":
            return self.lines.get("grade") if graded.flags else None
        if found := _PLACE.search(graded.error):
            return int(found[1])
        if graded.outcome == "bad_return" and graded.error.startswith("it returned NoneType"):
            return self.lines["nothing"]
        where = "returns" if graded.outcome in ("bad_return", "out_of_range") else "grade"
        return self.lines[where]

    def _judge(self, example: Graded, untried: set[str]) -> None:
        """The last check: a number for the example, and for each sample."""
        failed = (g for g in self.samples if g.status == "error" and g.id not in untried)
        failing = next(failed, None)
        if example.status == "error":
            self._fails_for(_NAMED, example)
        elif example.flags:
            line = self.lines["grade"]
            why = f"line {line}: for {_NAMED}: {example.reason}; a call must be short"
            self.fails("test_run", why, line)
        elif failing is not None:
            self._fails_for(f"sample {failing.id!r}", failing)
        else:
            self.passes("test_run")
        self.warnings += _doubts([example, *self.samples], self.function)
        self.warnings += [
            f"sample {g.id!r} could not be tried: {g.error}"
            for g in self.samples
            if g.id in untried
        ]

    def _fails_for(self, item: str, graded: Graded) -> None:
        """Fail the last check, with the line to look at and how to fix it."""
        error, line = graded.error, self._line(graded)
        if found := _PLACE.search(error):
            error = error[: found.start()]
            keys = "read metadata with .get()" if error.startswith("KeyError") else ""
            error += f"; {keys or _FOR_EVERY}"
        self.fails("test_run", f"line {line}: for {item}: {error}", line)


def _doubts(graded: Sequence[Graded], function: FunctionSource) -> Iterable[str]:
    """What scores and samples give reason to look at."""
    scores = [g.score for g in graded if g.score is not None]
    beyond = [score for score in scores if not 0.0 <= score <= 1.0]
    if beyond and function.range is None:
        yield (
            f"it returned {beyond[0]:g}, outside [0, 1]; declare its range, so that the worst score"
            " is known"
        )
    for g in graded[1:]:
        if g.flags:
            yield f"sample {g.id!r}: {g.reason}"
    tried = [g.score for g in graded[1:] if g.score is not None and not g.flags]
    if len(tried) > 2 and len(set(tried)) == 1:
        yield f"all {len(tried)} samples got {tried[0]:g}"


async def _examined(source: str, tier: TierChoice) -> dict[str, Json]:
    """What `static.examine` says, asked in the sandbox."""
    found = await examined_apart(source, "functions.static", "functions.reading", tier=tier)
    if not isinstance(found, str):
        return found
    lines = source.split("\n")
    line = max(range(len(lines)), key=lambda number: len(lines[number])) + 1
    message = f"line {line}: Python cannot read the file within bounds ({found}); write it more "
    message += "simply, beginning with this line, which is its longest"
    failed: dict[str, Json] = {"check": "syntax", "message": message, "line": line}
    return {"passed": [], "failed": failed, "warnings": [], "lines": {}}
