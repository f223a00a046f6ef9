"""What a definition gives, and the two ways in which it gives nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from assay.errors import GraderError

Flag: TypeAlias = Literal[
    "formula_parse_error",
    "invalid_variable_error",
    "model_grader_parse_error",
    "model_grader_refusal_error",
    "model_grader_server_error",
    "other_error",
    "python_grader_runtime_error",
    "python_grader_server_error",
    "sample_parse_error",
    "truncated_observation_error",
    "unresponsive_reward_error",
]
"""OpenAI's names of what can go wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenReward:
    """What a definition gave."""

    value: float
    # Whether that is a pass; None where the definition does not say what passes.
    passed: bool | None = None
    details: Mapping[str, object] = field(default_factory=dict[str, object])
    flags: tuple[str, ...] = ()
    parts: Mapping[str, float] = field(default_factory=dict[str, float])


class FaultError(GraderError):
    """The grader or its item is at fault: an error, and no score.

    ``outcome``: What happened in one word; see `assay.scoring.graded.Graded.outcome`.
    """

    def __init__(
        self,
        message: str,
        *,
        flag: Flag,
        outcome: str = "error",
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.flag: Flag = flag
        self.outcome = outcome
        self.details = details or {}
        self.parts: Mapping[str, float] = {}


class SubmissionFaultError(FaultError):
    """The submission is at fault: a score of 0 whose flags say why.

    Where a formula combines several graders, the whole is a 0: a penalty that cannot be computed
    must not be a penalty saved. Its outcome, by default the flag's name, tells it from a 0 that was
    computed.
    """

    def __init__(
        self,
        message: str,
        *,
        flag: Flag,
        outcome: str = "",
        details: Mapping[str, object] | None = None,
        signs: tuple[str, ...] = (),
    ) -> None:
        # Never "ok": of a penalty, what could not be computed is the whole.
        outcome = outcome or flag.removesuffix("_error")
        super().__init__(message, flag=flag, outcome=outcome, details=details)
        self.signs = signs or (flag,)
