"""What is worth a look in the templates of judges, told once before they grade."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from assay.graders.spec import GraderSpec
from assay.reports.plain import one_line

__all__ = ["file_warnings", "tell_warnings"]

_MOST = 1_000


def file_warnings(specs: Sequence[GraderSpec]) -> tuple[str, ...]:
    """The warnings of a file's judges; the registry is loaded only where there is one."""
    if not any(spec.type == "binary_judge" for spec in specs):
        return ()
    from assay.registry.validation import template_warnings

    return tuple(dict.fromkeys(template_warnings(specs)))


def tell_warnings(where: str, warnings: Iterable[str]) -> None:
    """Write warnings to standard error.

    Args:
        where: The file or the stored grader that they are about.
        warnings: What is worth a look.
    """
    for warning in warnings:
        print(f"warning: {where}: {one_line(warning, _MOST)}", file=sys.stderr)
