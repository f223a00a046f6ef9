"""Transcripts of other agents, read into a `Trace`: recognised by content, never by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.on_demand import names_on_demand

if TYPE_CHECKING:
    from assay.agents.transcripts.document import MOST_BYTES
    from assay.agents.transcripts.reading import detect, read_transcript
    from assay.agents.transcripts.transcript import Transcript

__all__ = ["MOST_BYTES", "Transcript", "detect", "read_transcript"]

_HOMES = {
    "MOST_BYTES": ".document",
    "Transcript": ".transcript",
    "detect": ".reading",
    "read_transcript": ".reading",
}

__getattr__ = names_on_demand(__name__, _HOMES)
