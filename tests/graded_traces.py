"""Traces in a few words, and what graders of traces make of them."""

from __future__ import annotations

import asyncio
from typing import Any

from assay.graders.base import Grader
from assay.graders.trace import TraceGrader
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.types.trace import AnyStep, ToolCall, ToolKind, ToolResult, ToolStep, Trace

__all__ = ["checked", "did", "failing", "graded", "trace"]


def did(name: str, kind: ToolKind | None = "execute", **arguments: Json) -> ToolStep:
    """A tool call that was made."""
    call = ToolCall(name=name, kind=kind, arguments=arguments)
    return ToolStep(call=call, result=ToolResult(content=""))


def trace(*steps: AnyStep, said: str | None = None, **extra: Json) -> Trace:
    """A trace."""
    return Trace(steps=[*steps], content=said, extra=extra)


def graded(grader: type[Grader], of: Trace, **options: Any) -> SubScore:
    """Grade a trace."""
    return asyncio.run(grader.grade(trace=of, **options))


def checked(of: Trace, **options: Any) -> SubScore:
    """Check the assertions over a trace."""
    return graded(TraceGrader, of, **options)


def failing(score: SubScore) -> list[str]:
    """Names of the assertions that do not hold."""
    checks = (score.metadata or {})["checks"]
    assert isinstance(checks, list)
    return [str(c["check"]) for c in checks if isinstance(c, dict) and not c["ok"]]
