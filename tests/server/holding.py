"""Graders that are held up, as slow ones are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import pytest

from assay.graders.batch import Batch
from assay.server.context import Context, Item
from assay.store.catalog import GraderVersion

__all__ = ["before_grading"]


def before_grading(
    patch: pytest.MonkeyPatch, first: Callable[[GraderVersion, Sequence[Item]], Awaitable[None]]
) -> None:
    """Have something done before items, or a batch of a job, are graded."""
    real = Context.grade

    async def grade(
        server: Context,
        version: GraderVersion,
        items: Sequence[Item],
        deadline: float | None = None,
    ) -> Batch:
        await first(version, items)
        return await real(server, version, items, deadline)

    patch.setattr(Context, "grade", grade)
