"""``assay graders test``: grade rows with a stored grader, and record nothing."""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import cast

from rich.console import Console

from assay.cli.graders_definition import key_and_version, opened, standing_of
from assay.cli.graders_output import print_grades
from assay.cli.judging import cost_so_far
from assay.cli.options import NOT_GRADED, is_trusted, tell_warnings
from assay.errors import InputError
from assay.eval.batch import in_batches, run_batches
from assay.registry import FunctionDefinition, Registry
from assay.registry.validation import version_warnings
from assay.reports.progress import progress
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json
from assay.store.catalog import GraderVersion
from assay.tasks.rows import read_rows
from assay.types.submission import Submission

_NOT_PASSED = 1
_AT_ONCE = 2_000
"""Rows that are graded together: workers are warmed once, and endpoints get whole batches."""
_JUDGES = ("binary_judge", "prebuilt_judge", "declared")
_JUDGED = (32, 2)
"""Rows that a judge is asked about together, and how many such parts at once: to show progress."""


def try_grader(given: Namespace) -> int:
    """Grade rows."""
    key, number = key_and_version(given)
    started = time.monotonic()
    with opened(given, trusted=is_trusted(given)) as registry:
        registry.get(key)  # first: a version outlives its grader
        version = registry.version(key, number)
        rows = [(row.id, row.submission, row.file) for row in read_rows(given.data, graders=())]
        if not rows:
            raise InputError(f"{given.data} has no rows")
        items = [(item, submission) for item, submission, _ in rows]
        name = f"{version.key}@{version.number}"
        tell_warnings(name, version_warnings(version))
        console = Console(stderr=True, highlight=False)
        bar = progress(console, len(items), things="rows", note=cost_so_far)
        with redirect_stdout(sys.stderr), bar as shown:
            graded = asyncio.run(_in_parts(registry, version, items, shown.graded))
    summary = _summary(graded)
    standing = standing_of(given, version)
    if given.json:
        written: list[Json] = [
            {**one.to_dict(), "file": file} for one, (_, _, file) in zip(graded, rows, strict=True)
        ]
        found: dict[str, Json] = {
            "rows": written,
            "summary": summary,
            "grader": name,
            "digest": graded[0].digest,
            "calibration": None if standing is None else standing.to_dict(),
            **_sandbox(version),
            "seconds": round(time.monotonic() - started, 3),
        }
        print(json.dumps(found))
    else:
        card = None if standing is None else standing.line
        print_grades(graded, summary, grader=name, card=card)
    return _verdict(summary, given.fail_under)


async def _in_parts(
    registry: Registry,
    version: GraderVersion,
    items: Sequence[tuple[str, Submission]],
    on_done: Callable[[Graded], None],
) -> list[Graded]:
    size, at_once = _JUDGED if version.kind in _JUDGES else (_AT_ONCE, 1)
    found: dict[int, list[Graded]] = {}

    def keep(numbered: tuple[int, object], graded: list[Graded]) -> None:
        found[numbered[0]] = graded
        for one in graded:
            on_done(one)

    await run_batches(
        enumerate(in_batches(items, size)),
        lambda numbered: registry.grade_with(version, numbered[1]),
        keep,
        at_once=at_once,
    )
    return [one for _, graded in sorted(found.items()) for one in graded]


def _sandbox(version: GraderVersion) -> dict[str, Json]:
    """What isolated a function, and what a call of it might use."""
    if version.kind != FunctionDefinition.kind:
        return {}
    from assay.sandbox.functions import FunctionLimits
    from assay.sandbox.functions.tiers import function_tier

    return {"tier": function_tier(), "limits": asdict(FunctionLimits())}


def _summary(graded: Sequence[Graded]) -> dict[str, Json]:
    scores = [one.score for one in graded if one.score is not None]
    return {
        "rows": len(graded),
        "scored": len(scores),
        "errors": sum(one.status == "error" for one in graded),
        "skipped": sum(one.status == "skipped" for one in graded),
        "flagged": sum(bool(one.flags) for one in graded),
        "mean": math.fsum(scores) / len(scores) if scores else None,
    }


def _verdict(summary: Mapping[str, Json], fail_under: float | None) -> int:
    mean = summary["mean"]
    if summary["errors"]:
        return NOT_GRADED
    is_under = fail_under is not None and (mean is None or cast("float", mean) < fail_under)
    return _NOT_PASSED if is_under else 0
