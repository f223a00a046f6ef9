"""Parameters that many routes take."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import Path, Query

from assay.server.models.base import KEY_PATTERN
from assay.server.paging import MAX_LIMIT

__all__ = ["Cursor", "DatasetKey", "Force", "GraderKey", "JobId", "Limit", "Project", "Search"]

Project: TypeAlias = Annotated[
    str, Path(pattern=KEY_PATTERN, description="Key of the project.", examples=["default"])
]
GraderKey: TypeAlias = Annotated[
    str, Path(pattern=KEY_PATTERN, description="Key of the grader.", examples=["four"])
]
DatasetKey: TypeAlias = Annotated[
    str, Path(pattern=KEY_PATTERN, description="Key of the dataset.", examples=["arithmetic"])
]
JobId: TypeAlias = Annotated[
    str,
    Path(
        pattern=r"^[A-Za-z0-9-]{1,64}$",
        description="Id of the job.",
        examples=["20261121-090830-ab12cd34"],
    ),
]
Limit: TypeAlias = Annotated[
    int, Query(ge=1, le=MAX_LIMIT, description="Most items of the page.", examples=[50])
]
Cursor: TypeAlias = Annotated[
    str | None,
    Query(max_length=400, description="Where the list goes on: `next_cursor` of the page before."),
]
Force: TypeAlias = Annotated[bool, Query(description="Even if it is in use.")]
Search: TypeAlias = Annotated[
    str, Query(max_length=200, description="Part of the key, name or description.")
]
