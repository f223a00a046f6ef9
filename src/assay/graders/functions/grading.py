"""Grade many items with one function: the fast road, without a declared grader around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.graders.functions.outcome import call_of, graded_from
from assay.graders.functions.source import FunctionSource
from assay.scoring.graded import Graded
from assay.types.submission import Submission

if TYPE_CHECKING:
    from assay.sandbox.functions import FunctionPool
    from assay.sandbox.functions.program import FunctionLimits, TierChoice

__all__ = ["grade_functions"]


async def grade_functions(
    source: FunctionSource,
    items: Sequence[tuple[str, Submission]],
    *,
    limits: FunctionLimits | None = None,
    tier: TierChoice = "auto",
) -> list[Graded]:
    """Grade items with a function, on as many cores as there are.

    The workers that hold the function stay for the next call. All items are held in memory at
    once: give it thousands, not millions.

    Args:
        source: The function; it should have been checked (`validate_function`).
        items: Ids and submissions.
        limits: What a call may use; the published limits by default.
        tier: What isolates it; the strongest that works here by default.

    Returns:
        What came of each item, in their order; scores are what the function returned.

    Raises:
        InputError: For a source that is too long.
        ProgramError: If the function cannot be loaded.
        SandboxUnavailableError: If this machine has no sandbox.
    """
    from assay.sandbox.functions import FunctionLimits, pool_for

    limits = limits or FunctionLimits()
    pool = pool_for(source.program(), isolation=source.isolation, limits=limits, tier=tier)
    return await _grade(source, items, pool, limits)


async def _grade(
    source: FunctionSource,
    items: Sequence[tuple[str, Submission]],
    pool: FunctionPool,
    limits: FunctionLimits,
) -> list[Graded]:
    found: dict[int, Graded] = {}
    payloads: dict[int, bytes] = {}
    for number, (item, submission) in enumerate(items):
        made = call_of(item, submission, limits.payload_bytes, source)
        if isinstance(made, Graded):
            found[number] = made
        else:
            payloads[number] = made
    outcomes = await pool.call_many(list(payloads.values()))
    for number, outcome in zip(payloads, outcomes, strict=True):
        found[number] = graded_from(items[number][0], outcome, source)
    return [found[number] for number in range(len(items))]
