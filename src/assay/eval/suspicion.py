"""Audit what was graded, and act on suspicious work as the case says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assay.graders.apply import grade_alone
from assay.graders.audit import AuditGrader, beside
from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult, SubScore
from assay.store.labels import HELD
from assay.tasks.permitted import Suspicion
from assay.types.submission import Submission

__all__ = ["audited"]


async def audited(
    specs: Sequence[GraderSpec],
    submission: Submission,
    result: EvaluationResult,
    policy: Suspicion,
) -> EvaluationResult:
    """Put the audit beside a result, and follow the policy where it found something.

    It is left out where every score was given by a judge apart and the policy is to flag. Where it
    found nothing it leaves no node: it is not a score.
    """
    nodes = list(result.subscores or ())
    graded = zip(specs, nodes, strict=False)  # nodes of gates inside of others come after
    audits = [node for spec, node in graded if spec.type == AuditGrader.name]
    spec = beside(specs)
    if spec is not None:
        scored = [node for node in nodes if node.status == "scored"]
        if policy == "flag" and scored and all(map(_is_separate, scored)):
            return result
        audits = [await grade_alone(spec, submission)]
        if _says_something(audits[0]):
            result = replace(result, subscores=(*nodes, audits[0]))
    if policy == "flag":
        return result
    found = sum(len(node.flags) for node in audits if node.value == 0.0)
    if not found:
        broken = [node for node in audits if node.status == "error"]
        return _unaudited(result, broken[0]) if broken else result
    return _zeroed(result, found) if policy == "zero" else _held(result, found)


def _is_separate(node: SubScore) -> bool:
    """Whether a score was given where the submission could not speak to who gave it."""
    return node.weakest_assurance == "separate"


def _says_something(node: SubScore) -> bool:
    return node.value != 1.0 or bool((node.metadata or {}).get("not_read"))


def _unaudited(result: EvaluationResult, node: SubScore) -> EvaluationResult:
    """A reward that depends on an audit cannot stand without it."""
    return replace(result, isError=True, content=f"audit: {node.reason}")


def _zeroed(result: EvaluationResult, found: int) -> EvaluationResult:
    """As a gate that fails: no broken sibling turns it into an error."""
    why = f"reward 0: the audit found {_signs(found)} (on_suspicion: zero)"
    return replace(result, reward=0.0, isError=False, content=why)


def _held(result: EvaluationResult, found: int) -> EvaluationResult:
    """No reward until somebody decides. A 0 stays: a sign must not be a way out of it."""
    if not result.reward:
        return result
    held: Json = {"reward": result.reward, "assurance": result.assurance}
    why = f"held for review: the audit found {_signs(found)}; decide with `assay review`"
    return replace(result, reward=None, content=why, info={**result.info, HELD: held})


def _signs(found: int) -> str:
    return "1 sign" if found == 1 else f"{found} signs"
