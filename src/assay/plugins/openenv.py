"""OpenEnv's validation: a package's assay cases as its semantic checks (written for 0.10).

    from assay.plugins.openenv import graders

    registry = GraderRegistry()
    for grader in graders():
        registry.register(grader)

Each is what `assay selftest` finds of the cases in ``evals/`` of the package. A case that could not
be graded is an error, which OpenEnv's policy fails; without cases a check is skipped.

None of them is an entry point of assay's own: OpenEnv ends with an error where two packages give
the same check, so that installing assay would break the validation of whoever has another.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from assay.errors import AssayError
from assay.graders.threads import wait_for
from assay.training.trainers import module_of

if TYPE_CHECKING:
    from assay.eval.proof import Proof, ProofCheck

_PROVED_BY: Mapping[str, tuple[str, str]] = {
    "semantic.oracle_max": ("reference", "right work gets everything"),
    "semantic.floor_gap": ("floor ", "nothing that is no work passes"),
    "semantic.canary_floor": ("bad ", "no work that is known to be bad passes"),
    "semantic.verifier_determinism": ("repeats ", "the same work gets the same reward"),
}
"""The checks that a self-test makes: what its parts for them begin with, and what holds then."""

_LEFT = shutil.ignore_patterns(".git", ".venv", "__pycache__", "outputs")


class _Subject(Protocol):
    """Of OpenEnv's ``Subject``, what is read."""

    root: Path


def graders(cases: str = "evals") -> list[Any]:
    """Make OpenEnv's graders for what a self-test can say.

    They are ``semantic.oracle_max``, ``floor_gap``, ``canary_floor`` and ``verifier_determinism``.

    Args:
        cases: Where cases are in a package.
    """
    types = module_of("openenv", "openenv.validation")

    @lru_cache(maxsize=8)
    def proof_of(root: str) -> Proof | str:
        return _proof(Path(root), cases)

    return [_Check(types, check_id, proof_of, cases) for check_id in _PROVED_BY]


def _proof(root: Path, cases: str) -> Proof | str:
    """What is found of a package, or why nothing; "" where it has no cases.

    Nothing is written into it, as OpenEnv compares it afterwards.
    """
    from assay.eval.selftest import plan_selftest
    from assay.eval.work import load_tasks
    from assay.scratch import scratch

    if not (root / cases).is_dir():
        return ""
    with scratch("assay-openenv-") as place:
        copied = shutil.copytree(root, place / "package", symlinks=True, ignore=_LEFT)
        try:
            plan = plan_selftest(load_tasks([str(copied / cases)]))
            cache, workers = str(place / "cache"), os.cpu_count() or 1
            return wait_for(plan.go(cache=cache, workers=workers, begin=lambda _: lambda _: None))
        except AssayError as error:
            return str(error).replace(f"{copied}/", "")


class _Check:
    """One of OpenEnv's checks."""

    requires_capabilities: ClassVar[frozenset[str]] = frozenset()
    requires_provider: ClassVar[frozenset[object]] = frozenset()
    depends_on: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        types: Any,  # noqa: ANN401 - a module
        check_id: str,
        proof_of: Callable[[str], Proof | str],
        cases: str,
    ) -> None:
        self._types, self._proof_of, self._cases = types, proof_of, cases
        self.check_id, self.level = check_id, types.Level.SEMANTIC

    def applies_to(self, manifest: object) -> bool:
        """Whether a package of this manifest may have it: any may have cases."""
        del manifest
        return True

    def run(self, subject: _Subject) -> object:
        """Prove the cases, unless another check did; OpenEnv's ``CheckResult``."""
        began = time.monotonic()
        begins, holds = _PROVED_BY[self.check_id]
        proof = self._proof_of(str(subject.root))
        found: list[tuple[str, ProofCheck]] = []
        status, said = "skip", f"there are no cases of assay in {self._cases}/"
        if isinstance(proof, str):
            status, said = ("error", proof) if proof else (status, said)
        else:
            each = [(case.case, check) for case in proof.cases for check in case.checks]
            found = [(case, check) for case, check in each if check.name.startswith(begins)]
            status, said = _status(found, holds)
        wrong = [(case, check) for case, check in found if check.verdict in ("failed", "error")]
        fixes = [f"{case}: {check.fix}" for case, check in wrong if check.fix]
        return self._types.CheckResult(
            check_id=self.check_id,
            status=self._types.CheckStatus(status),
            measured={f"{case}: {check.name}": check.reward for case, check in found},
            evidence=[f"{case}: {check.name}: {check.said}" for case, check in wrong] or [said],
            remediation="; ".join(fixes) or None,
            duration_s=time.monotonic() - began,
        )


def _status(found: list[tuple[str, ProofCheck]], holds: str) -> tuple[str, str]:
    """The worst that was found, in OpenEnv's word, and what it means."""
    verdicts = {check.verdict for _, check in found}
    if "failed" in verdicts:
        return "fail", ""
    if "error" in verdicts:
        return "error", ""
    if "held" in verdicts:
        return "pass", f"{holds} (trials: {sum(check.verdict == 'held' for _, check in found)})"
    return "skip", "no case has work of this kind to be tried"
