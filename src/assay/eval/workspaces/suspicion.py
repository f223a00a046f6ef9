"""Audit what was graded, and act on suspicious work as the case says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assay.eval.records import reaches_threshold
from assay.graders.apply import grade_alone
from assay.graders.audit import AuditGrader, beside
from assay.graders.spec import GraderSpec
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult, SubScore, reaches
from assay.store.decisions import HELD
from assay.store.records import covers
from assay.tasks.blocks import Expect
from assay.tasks.permitted import Suspicion
from assay.types.submission import Submission


async def audited(
    specs: Sequence[GraderSpec],
    submission: Submission,
    result: EvaluationResult,
    policy: Suspicion,
    expect: Expect,
) -> EvaluationResult:
    """Put the audit beside a result, and follow the policy where it found something.

    Where it found nothing it leaves no node: it is not a score. A judge apart keeps the submission
    from speaking to it, not from lying about what it is asked; so its scores are audited, too.
    """
    nodes = list(result.subscores or ())
    graded = zip(specs, nodes, strict=False)  # nodes of gates inside of others come after
    audits = [node for spec, node in graded if spec.type == AuditGrader.name]
    spec = beside(specs)
    if spec is not None:
        audits = [await grade_alone(spec, submission)]
        if _says_something(audits[0]):
            result = replace(result, subscores=(*nodes, audits[0]))
    if policy == "flag":
        return result
    found = sum(len(node.flags) for node in audits if node.value == 0.0)
    if not found:
        broken = [node for node in audits if node.status == "error"]
        return _unaudited(result, broken[0]) if broken else result
    return _zeroed(result, found) if policy == "zero" else _held(result, found, expect)


def _says_something(node: SubScore) -> bool:
    return node.value != 1.0 or bool((node.metadata or {}).get("not_read"))


def _unaudited(result: EvaluationResult, node: SubScore) -> EvaluationResult:
    """A reward that depends on an audit cannot stand without it."""
    return replace(result, isError=True, content=f"audit: {node.reason}")


def _zeroed(result: EvaluationResult, found: int) -> EvaluationResult:
    """As a gate that fails: no broken sibling turns it into an error."""
    why = f"reward 0: the audit found {_signs(found)} (on_suspicion: zero)"
    return replace(result, reward=0.0, isError=False, content=why)


def _held(result: EvaluationResult, found: int, expect: Expect) -> EvaluationResult:
    """No reward until somebody decides. What would not pass stays: a sign is no way out of it."""
    if not _would_pass(result, expect):
        return result
    held: Json = {"reward": result.reward, "assurance": result.assurance}
    why = f"held for review: the audit found {_signs(found)}; decide with `assay runs review`"
    return replace(result, reward=None, content=why, info={**result.info, HELD: held})


def _would_pass(result: EvaluationResult, expect: Expect) -> bool:
    reward = result.reward
    if reward is None or result.isError or not reaches_threshold(reward, expect.pass_threshold):
        return False
    share, graders = result.not_graded
    covered = not graders or covers(share, expect.min_coverage)
    return covered and reaches(result.assurance, expect.min_assurance)


def _signs(found: int) -> str:
    return "1 sign" if found == 1 else f"{found} signs"
