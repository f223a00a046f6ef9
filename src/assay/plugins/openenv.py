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
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from assay.errors import AssayError
from assay.graders.threads import wait_for
from assay.tasks.case_files import is_inside
from assay.training.trainers import module_of

if TYPE_CHECKING:
    from assay.eval.proofs.proof import Proof

_TOLD = ("oracle_max", "floor_gap", "canary_floor", "no_solution_leakage", "verifier_determinism")
"""What a self-test tells of level 3 (`assay.reports.openenv`)."""

_LEFT = shutil.ignore_patterns(".git", ".venv", "__pycache__", "outputs")


class _Subject(Protocol):
    """Of OpenEnv's ``Subject``, what is read."""

    root: Path


def graders(cases: str = "evals") -> list[Any]:
    """Make OpenEnv's graders for what a self-test can say.

    They are ``semantic.oracle_max``, ``floor_gap``, ``canary_floor``, ``no_solution_leakage`` and
    ``verifier_determinism``, as ``assay selftest --format openenv`` tells them.

    Args:
        cases: Where cases are in a package.
    """
    types = module_of("openenv", "openenv.validation")

    @lru_cache(maxsize=8)
    def proof_of(root: str) -> Proof | str:
        return _proof(Path(root), cases)

    return [
        _Check(types, check_id, proof_of, cases)
        for check_id in (f"semantic.{name}" for name in _TOLD)
    ]


def _proof(root: Path, cases: str) -> Proof | str:
    """What is found of a package, or why nothing; "" where it has no cases.

    Nothing is written into it, as OpenEnv compares it afterwards.
    """
    from assay.eval.proofs.selftest import plan_selftest
    from assay.eval.work import load_tasks
    from assay.scratch import scratch

    if not ((root / cases).is_dir() or (root / cases).is_symlink()):
        return ""
    with scratch("assay-openenv-") as place:
        copied = place / "package"
        try:
            shutil.copytree(root, copied, symlinks=True, ignore=_LEFT)
        except OSError as error:
            return f"the package cannot be copied: {_said(error)}"
        if (link := _link_out(copied, cases)) is not None:
            name, target = link.relative_to(copied), link.readlink()
            return (
                f"{name} is a link to {target}: only a relative link to what is in the package is "
                "followed (put the cases in its place)"
            )
        try:
            plan = plan_selftest(load_tasks([str(copied / cases)]))
            cache, workers = str(place / "cache"), os.cpu_count() or 1
            return wait_for(plan.go(cache=cache, workers=workers, begin=lambda _: lambda _: None))
        except AssayError as error:
            return str(error).replace(f"{copied}/", "")


def _said(error: OSError) -> str:
    """What keeps a tree from being copied, such as a pipe in it."""
    listed: object = error.args[0] if isinstance(error, shutil.Error) and error.args else None
    if not isinstance(listed, list):
        return str(error)
    return "; ".join(str(why) for _, _, why in cast("list[tuple[str, str, str]]", listed))


def _link_out(package: Path, cases: str) -> Path | None:
    """The first link to cases of a package that leads to nothing in it."""
    above = [package / part for part in (*reversed(Path(cases).parents), cases)]
    for one in above:
        if one.is_symlink() and not (one.is_dir() and is_inside(str(one), str(package))):
            return one
    for one in sorted(above[-1].iterdir()):
        if one.is_symlink() and not (one.exists() and is_inside(str(one), str(package))):
            return one
    return None


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
        from assay.reports.openenv import openenv_reports

        began = time.monotonic()
        proof = self._proof_of(str(subject.root))
        found: list[tuple[str, dict[str, Any]]] = []
        status, said = "skip", f"there are no cases of assay in {self._cases}/"
        if not isinstance(proof, str):
            for case, report in zip(proof.cases, openenv_reports(proof), strict=True):
                results = cast("list[dict[str, Any]]", report["results"])
                found += [(case.case, one) for one in results if one["check_id"] == self.check_id]
            each = {one["status"] for _, one in found}
            status = next(one for one in ("fail", "error", "skip", "pass") if one in each)
        elif proof:
            status, said = "error", proof
        told = [(case, one) for case, one in found if one["status"] == status]
        fixes = [f"{case}: {one['remediation']}" for case, one in told if one["remediation"]]
        return self._types.CheckResult(
            check_id=self.check_id,
            status=self._types.CheckStatus(status),
            measured={case: one["measured"] for case, one in found if one["measured"]},
            evidence=[f"{case}: {line}" for case, one in told for line in one["evidence"]]
            or [said],
            remediation="; ".join(fixes) or None,
            duration_s=time.monotonic() - began,
        )
