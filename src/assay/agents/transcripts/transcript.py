"""`Transcript`: what a reader makes of another agent's record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.agents.transcripts.document import Notes
from assay.agents.transcripts.turns import numbered
from assay.graders.usage import INCOMPLETE, OBSERVED, USAGE, Totals
from assay.scoring.json_safe import Json
from assay.types.steps import Step
from assay.types.trace import StopReason, Trace, TraceStatus

__all__ = ["IMPORTER_VERSION", "Outcome", "Transcript", "make_transcript"]

IMPORTER_VERSION = 1
"""Counts up whenever the same transcript would be read into another trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A transcript, read.

    Attributes:
        format: ``claude-code``, ``openai-chat`` or ``atif``.
        trace: The trajectory. Its ``extra`` has ``observed``, ``usage``, ``importer``,
            ``not_understood``, ``session`` and, where a part is missing, ``incomplete``.
        totals: What the whole run used, subagents included.
        failure: Why the agent's model never answered at all; empty where it did.
    """

    format: str
    trace: Trace
    totals: Totals
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a transcript ends.

    Attributes:
        answer: The final answer.
        status: How the run ended, where it is said.
        stop_reason: Why it stopped, where it is said.
        totals: What was used.
        failure: Why the model never answered.
        session: What is said about the run as a whole.
    """

    answer: str | None = None
    status: TraceStatus | None = None
    stop_reason: StopReason | None = None
    totals: Totals = field(default_factory=Totals)
    failure: str = ""
    session: Mapping[str, Json] = field(default_factory=dict[str, Json])


def make_transcript(name: str, steps: Sequence[Step], outcome: Outcome, notes: Notes) -> Transcript:
    """Put a transcript together."""
    extra: dict[str, Json] = {
        OBSERVED: True,
        USAGE: outcome.totals.to_dict(),
        "importer": {"name": name, "version": IMPORTER_VERSION},
        "not_understood": notes.to_list(),
        "session": {key: item for key, item in outcome.session.items() if item is not None},
    }
    if notes.missing:
        extra[INCOMPLETE] = notes.missing
    trace = Trace(
        steps=numbered(steps),
        status=outcome.status,
        stop_reason=outcome.stop_reason,
        content=outcome.answer,
        extra=extra,
    )
    return Transcript(format=name, trace=trace, totals=outcome.totals, failure=outcome.failure)
