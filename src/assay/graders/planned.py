"""Options of the kinds that cases may already declare but this version cannot run yet.

They are checked like any other's, so that a case written for them is known to be well-formed. To
run one is refused before any agent starts, naming the kind.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import cast

from assay.graders.base import Parameter
from assay.graders.paths import CasePath

__all__ = ["ModelJudge", "planned_parameters"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelJudge:
    """Open-ended quality, judged by one model or a jury."""

    rubric: CasePath
    model: str | None = None
    models: list[str] | None = None
    pass_threshold: float = 0.8
    include_trace: bool = False


def planned_parameters(options: type[object]) -> Mapping[str, Parameter]:
    """The parameters that an options class of this module declares."""
    kind = cast("type[ModelJudge]", options)
    hints = typing.get_type_hints(kind, include_extras=True)
    return {
        field.name: Parameter(
            name=field.name,
            annotation=hints[field.name],
            required=field.default is MISSING,
            default=None if field.default is MISSING else field.default,
        )
        for field in fields(kind)
    }
