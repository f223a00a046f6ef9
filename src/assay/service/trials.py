"""Trying a grader that is not stored yet: on samples, beside a version that is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from assay.errors import InputError, Location
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.scoring.results import Status
from assay.scoring.validation import Check, ValidationReport
from assay.service.graders import of_graders, permitted, version_to_run
from assay.service.items import read_items
from assay.service.operation import KEY_PATTERN, Desk, Host, InProject, Row, Spec
from assay.store.datasets import DamagedRow, DatasetRow, Datasets
from assay.types.submission import Submission

if TYPE_CHECKING:
    from assay.registry.definitions import Definition

MOST_SAMPLES = 200
SECONDS = 30.0
_SHOWN = 600
_OUTPUT = 20_000
_SAME = 1e-9
_LINE = re.compile(r"line (\d+)(?:, column (\d+))?: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Something to look at in a function's source.

    Attributes:
        line: 1-based line.
        column: 1-based column; null where only the line is known.
        severity: ``error``, or ``warning`` for what does not keep it from grading.
        source: The check that says so, or the sample's id.
        message: What it is, without the line.
    """

    line: int
    column: int | None
    severity: Literal["error", "warning"]
    source: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What one grader made of a sample.

    Attributes:
        status: ``scored``, ``skipped`` or ``error``.
        score: Where it is scored.
        outcome: What happened in one word, such as ``cpu_timeout``.
        reason: Why, or what went wrong.
        flags: What people should look at.
        output: What a function printed, its beginning.
        milliseconds: Of the call; null where nobody measured it.
        line: Line of the function's source that is to blame; null where none is known.
    """

    status: Status
    score: float | None
    outcome: str
    reason: str
    flags: tuple[str, ...]
    output: str
    milliseconds: float | None
    line: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedSample:
    """One sample, and what came of it.

    Attributes:
        id: Its id.
        row: Its number in the dataset; null where it was sent.
        question: What was asked, its beginning.
        answer: What was answered, likewise.
        expected: The reference answer, likewise.
        draft: What the draft made of it; null where the checks before kept it from being run.
        saved: What the stored version made of it; null where none was asked for.
        change: In words, how the draft differs from the stored version; empty where it does not.
        wanted: The score that it should get; null where nobody said.
        miss: In words, that it did not get it; empty where it did, and where nobody said.
    """

    id: str
    row: int | None
    question: str
    answer: str
    expected: str
    draft: Tried | None
    saved: Tried | None
    change: str
    wanted: float | None
    miss: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What came of a draft.

    Attributes:
        valid: Whether every check passed, so that it can be stored.
        ran: Whether it was run; else it was only read.
        checks: The checks in their order, up to the first that failed.
        warnings: What is not wrong, but worth a look.
        marks: What of all that has a place in the source.
        samples: What came of each sample: those that changed or were missed first.
        saved: The version that it is compared with, ``KEY@NUMBER``; empty for none.
        summary: All of it in one line.
    """

    valid: bool
    ran: bool
    checks: tuple[Check, ...]
    warnings: tuple[str, ...]
    marks: tuple[Mark, ...]
    samples: tuple[TriedSample, ...]
    saved: str
    summary: str


@dataclass(frozen=True, slots=True)
class _Sample:
    """A sample, or what is wrong with it."""

    id: str
    row: int | None
    submission: Submission
    problem: str = ""


@of_graders("POST", "/try", lasts=False)
async def try_grader(
    host: Host,
    kind: Annotated[str, Spec("What kind it is.", max_length=50, example="function")],
    definition: Annotated[
        Mapping[str, Json],
        Spec(
            "What it does; the fields of its kind.",
            example={"source": "async def grade(thread: StringThread) -> float:\n    return 1.0\n"},
        ),
    ],
    samples: Annotated[
        Sequence[Row],
        Spec(
            f"Rows to grade, with those of a dataset at most {MOST_SAMPLES}.",
            max_length=MOST_SAMPLES,
            example=[{"id": "a", "question": "2 + 2?", "answer": "4"}],
        ),
    ] = (),
    *,
    dataset: Annotated[
        str | None, Spec("A stored dataset to take rows of.", pattern=KEY_PATTERN)
    ] = None,
    rows: Annotated[Sequence[int], Spec("Numbers of its rows.", max_length=MOST_SAMPLES)] = (),
    take: Annotated[
        int, Spec("So many more of its rows, from the first.", ge=0, le=MOST_SAMPLES)
    ] = 0,
    saved: Annotated[
        str | None, Spec("A stored grader to compare with.", pattern=KEY_PATTERN)
    ] = None,
    version: Annotated[
        int | None, Spec("Its latest version by default.", ge=1, le=2**31 - 1)
    ] = None,
    wanted: Annotated[
        Mapping[str, float] | None,
        Spec("Scores that samples should get, by their ids.", example={"a": 1.0}),
    ] = None,
    runs: Annotated[bool, Spec("Run it; else a function is only read, which is quick.")] = True,
    project: InProject = None,
) -> Trial:
    """Try a draft on samples, beside a stored version; nothing is stored.

    Samples that a function takes too long for are cut off, and after half a minute no more are
    begun.
    """
    from assay.registry.definitions import definition_of
    from assay.registry.validation import validate

    async def read() -> tuple[Definition, list[_Sample]]:
        draft = permitted(host.permissions, kind, definition)
        return draft, [_Sample(item, None, one) for item, one in read_items(samples, "samples")]

    draft, chosen = await host.apart(read)
    if dataset is not None:
        found = await host.run(lambda desk: _rows(desk, dataset, rows, take))
        chosen += _of_dataset(found, {one.id for one in chosen})
    if len(chosen) > MOST_SAMPLES:
        raise InputError(
            f"{len(chosen)} samples",
            location=Location(field="samples"),
            hint=f"try up to {MOST_SAMPLES} at once; a job grades whole datasets",
        )
    items = [(one.id, one.submission) for one in chosen if not one.problem]
    stored = None
    if saved is not None:
        stored = await host.run(lambda desk: version_to_run(desk, saved, version))
    report = await host.apart(
        lambda: validate(draft, items, host.permissions, seconds=SECONDS, runs=runs)
    )
    before: Mapping[str, Graded] = {}
    if stored is not None and runs and items:
        known = stored
        past = await host.apart(
            lambda: validate(
                definition_of(known), items, host.permissions, known.key, seconds=SECONDS
            )
        )
        before = {one.id: one for one in past.samples}
    name = f"{stored.key}@{stored.number}" if stored else ""
    trial = _trial(report, chosen if runs else [], before, wanted or {}, name, runs=runs)
    return await host.finish(lambda _: trial)


def _rows(desk: Desk, key: str, numbers: Sequence[int], take: int) -> list[DatasetRow]:
    """The rows of a dataset that were asked for, in their order."""
    datasets = Datasets(desk.database)
    count = datasets.get(desk.project, key).rows
    for place, number in enumerate(numbers):
        if not 1 <= number <= count:
            raise InputError(
                f"there is no row {number} in dataset {key!r}",
                location=Location(field=f"rows[{place}]"),
                hint=f"they are 1 to {count}",
            )
    chosen = set(numbers)
    rest = [number for number in range(1, count + 1) if number not in chosen]
    chosen.update(rest[:take])
    return datasets.numbered(desk.project, key, list(chosen))


def _of_dataset(rows: Sequence[DatasetRow], taken: set[str]) -> list[_Sample]:
    from assay.tasks.rows import read_row

    made: list[_Sample] = []
    for row in rows:
        place = Location(field=f"rows[{row.number}]")
        if row.id in taken:
            raise InputError(
                f"row {row.number} has the id {row.id!r:.100}, which a sample has too",
                location=place,
                hint="give the sample another id",
            )
        if isinstance(row.data, DamagedRow):
            made.append(_Sample(row.id, row.number, Submission(), "it is damaged in the store"))
            continue
        try:
            read, problem = read_row(row.data, row.number, place).submission, ""
        except InputError as error:  # others can be tried
            read, problem = Submission(), str(error)
        made.append(_Sample(row.id, row.number, read, problem))
    return made


def _trial(
    report: ValidationReport,
    samples: Sequence[_Sample],
    before: Mapping[str, Graded],
    wanted: Mapping[str, float],
    saved: str,
    *,
    runs: bool,
) -> Trial:
    now = {one.id: one for one in report.samples}
    now |= {
        one.id: Graded.failed(one.id, one.problem, outcome="bad_item")
        for one in samples
        if one.problem
    }
    shown = [_sample(one, now.get(one.id), before.get(one.id), wanted) for one in samples]
    shown.sort(key=lambda one: (not one.miss, not one.change))  # the rest stays in its order
    return Trial(
        valid=report.valid,
        ran=runs,
        checks=report.checks,
        warnings=report.warnings,
        marks=tuple(_marks(report)),
        samples=tuple(shown),
        saved=saved,
        summary=_summary(shown, saved),
    )


def _sample(
    sample: _Sample, draft: Graded | None, saved: Graded | None, wanted: Mapping[str, float]
) -> TriedSample:
    given = sample.submission
    question, answer = given.question, given.answer
    if given.thread is not None:
        asked = [text for role, text in given.thread.turns if role == "user"]
        question = question if question is not None else (asked[-1] if asked else None)
        answer = answer if answer is not None else given.thread.completion()
    want = wanted.get(sample.id)
    return TriedSample(
        id=sample.id,
        row=sample.row,
        question=_short(question),
        answer=_short(answer),
        expected=_short(given.expected),
        draft=None if draft is None else _tried(draft),
        saved=None if saved is None else _tried(saved),
        change="" if draft is None or saved is None else _change(saved, draft),
        wanted=want,
        miss="" if draft is None or want is None else _miss(draft, want),
    )


def _short(value: Json) -> str:
    text = "" if value is None else value if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _tried(graded: Graded) -> Tried:
    details = graded.details
    seconds, line, output = details.get("wall_seconds"), details.get("line"), details.get("output")
    return Tried(
        status=graded.status,
        score=graded.score,
        outcome=graded.outcome,
        reason=(graded.error or graded.reason).removesuffix(f", line {line}"),
        flags=graded.flags,
        output=output[:_OUTPUT] if isinstance(output, str) else "",
        milliseconds=round(seconds * 1000, 2) if isinstance(seconds, int | float) else None,
        line=line if isinstance(line, int) else None,
    )


def _change(old: Graded, new: Graded) -> str:
    if old.score is not None and new.score is not None:
        step = new.score - old.score
        return "" if abs(step) <= _SAME else f"{step:+.3g}"
    if old.status == new.status:
        return ""
    return f"was {old.status}" if old.score is None else f"was {old.score:g}"


def _miss(graded: Graded, wanted: float) -> str:
    if graded.score is not None and abs(graded.score - wanted) <= _SAME:
        return ""
    got = graded.status if graded.score is None else f"{graded.score:g}"
    return f"wanted {wanted:g}, got {got}"


def _marks(report: ValidationReport) -> list[Mark]:
    """Everything with a line: the check that failed, warnings, samples that could not be graded."""
    marks = [
        Mark(
            line=check.line,
            column=check.column,
            severity="error",
            source=check.name,
            message=_LINE.sub("", check.message, count=1),
        )
        for check in report.checks
        if not check.passed and check.line is not None
    ]
    marks += [
        Mark(
            line=int(place[1]),
            column=int(place[2]) if place[2] else None,
            severity="warning",
            source="warning",
            message=warning[place.end() :],
        )
        for warning in report.warnings
        if (place := _LINE.match(warning))
    ]
    seen = {mark.line for mark in marks if mark.severity == "error"}
    for sample in report.samples:
        line = sample.details.get("line")
        if isinstance(line, int) and line not in seen:
            seen.add(line)
            said = sample.error or sample.reason
            message = f"for sample {sample.id!r:.80}: {said}"
            severity = "error" if sample.status == "error" else "warning"
            marks.append(
                Mark(line=line, column=None, severity=severity, source="sample", message=message)
            )
    return marks


def _summary(samples: Sequence[TriedSample], saved: str) -> str:
    if not samples:
        return ""
    statuses = [one.draft.status for one in samples if one.draft is not None]
    said = [f"{statuses.count(name)} {name}" for name in ("scored", "skipped") if name in statuses]
    if errors := statuses.count("error"):
        said.append(f"{errors} error{'s' if errors > 1 else ''}")
    if untried := len(samples) - len(statuses):
        said.append(f"{untried} not run")
    if saved:
        said.append(f"{sum(1 for one in samples if one.change)} changed since {saved}")
    if any(one.wanted is not None for one in samples):
        said.append(f"{sum(1 for one in samples if one.miss)} not as wanted")
    return f"{len(samples)} sample{'s' if len(samples) > 1 else ''}: {', '.join(said)}"
