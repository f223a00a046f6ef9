"""Judges that judge their own kin: who did the work, and which judges are of the same family.

Models prefer texts of their own kind (Panickssery et al. 2024, "LLM Evaluators Recognize and Favor
Their Own Generations", arXiv:2404.13076). It is noted, and changes no score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.graders.usage import walk
from assay.models import family_of
from assay.scoring.json_safe import Json
from assay.types.steps import AgentStep
from assay.types.trace import Trace

__all__ = ["judged_model", "kin"]


def judged_model(trace: Trace | None, metadata: Mapping[str, Json] | None) -> str:
    """The model whose work it is, as the trace or the metadata say; "" where neither does."""
    if trace is not None:
        steps = [step for _, step in walk(trace) if isinstance(step, AgentStep)]
        if found := next((step.model for step in reversed(steps) if step.model), None):
            return found
        if isinstance(found := trace.extra.get("model"), str):
            return found
    found = (metadata or {}).get("model")
    return found if isinstance(found, str) else ""


def kin(judges: Sequence[str], judged: str) -> list[str]:
    """The judges that are of the same family as the model whose work they judge."""
    family = family_of(judged) if judged else ""
    return [judge for judge in judges if family and family_of(judge) == family]
