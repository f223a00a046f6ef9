"""Options of the kinds that cases may already declare but this version cannot run yet.

They are checked like any other's, so that a case written for them is known to be well-formed. To
run one is refused before any agent starts, naming the kind.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Literal, cast

from assay.errors import InputError
from assay.graders.base import Parameter
from assay.graders.paths import CasePath

__all__ = [
    "Efficiency",
    "Implemented",
    "Injected",
    "ModelJudge",
    "SweBench",
    "Tests",
    "ToolCorrectness",
    "ToolMatcher",
    "TraceBudget",
    "planned_parameters",
]

ToolKindName = Literal["read", "write", "execute", "search", "fetch", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """A hidden file and where it goes.

    Attributes:
        src: File or directory of the case.
        dest: Path inside the workspace.
    """

    src: CasePath
    dest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMatcher:
    """Which tool calls are meant; every given field must match.

    Attributes:
        kind: Kind of work.
        name: Tool name.
        raw_name: The harness's own tool name.
        path_glob: Glob over any path in the tool's input.
    """

    kind: ToolKindName | None = None
    name: str | None = None
    raw_name: str | None = None
    path_glob: str | None = None

    def __post_init__(self) -> None:
        if not any((self.kind, self.name, self.raw_name, self.path_glob)):
            raise InputError("a tool matcher needs kind, name, raw_name or path_glob")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tests:
    """Fraction of hidden tests that pass."""

    __test__ = False

    cmd: str | None = None
    inject: list[CasePath | Injected] | None = None
    junit_xml: str | list[str] | None = None
    format: str | None = None
    pass_threshold: float = 1.0
    timeout_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SweBench:
    """A bug's tests for credit, existing tests as a gate."""

    fail_to_pass: list[str]
    pass_to_pass: list[str] | None = None
    inject: list[CasePath | Injected] | None = None
    cmd_prefix: str = "python3 -m pytest -q -p no:cacheprovider"
    pass_threshold: float = 1.0
    timeout_s: float = 600.0
    gate_weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Implemented:
    """Whether anything real was written."""

    files: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelJudge:
    """Open-ended quality, judged by one model or a jury."""

    rubric: CasePath
    model: str | None = None
    models: list[str] | None = None
    pass_threshold: float = 0.8
    include_trace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceBudget:
    """Assertions over what the agent did."""

    require_tools: list[ToolMatcher] | None = None
    forbid_tools: list[ToolMatcher] | None = None
    max_tool_calls: int | dict[str, int] | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    require_no_denied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCorrectness:
    """Agreement of the tools that were used with those expected."""

    expected: list[str | ToolMatcher]
    match: Literal["kind", "name", "raw_name"] = "kind"
    ordered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """How cheaply the result was reached."""

    target_cost_usd: float | None = None
    target_tokens: int | None = None
    target_tool_calls: int | None = None
    pass_threshold: float = 0.8


def planned_parameters(options: type[object]) -> Mapping[str, Parameter]:
    """The parameters that an options class of this module declares."""
    kind = cast("type[Tests]", options)
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
