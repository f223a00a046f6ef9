"""What a self-test found, in the report of OpenEnv's RFC 008 (environment auto-validation).

One report is of one case or task. Of its checks those are told that a self-test measures, level 3
(semantic); the others of that level are skipped, each with why. What could not be told never
passes. Where the same work is not graded alike, nothing else is told of it: their checks depend on
that. The report has the form of schema version 2, and its verdict follows their policy ``v2``: an
error fails, and what is skipped makes a pass a warning.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias, cast

from assay.errors import InputError
from assay.eval.proofs.proof import LOADING, NO_REFERENCE, CaseProof, Proof, ProofCheck
from assay.eval.proofs.trials import FLOOR
from assay.sandbox.host import open_inside
from assay.scoring.json_safe import Json

Status: TypeAlias = Literal["pass", "fail", "skip", "error"]

_SCHEMA, _POLICY, _SEMANTIC = "2", "v2", 3
_MARGIN = 0.1
"""The least gap between the floor and the most, as their policy bounds what is declared."""
_TOLERANCE = 0.0
_ROUNDING = 1e-9
_PASSED_OVER = frozenset({".git", "__pycache__", ".venv", ".worktrees", "outputs"})
_MANIFEST, _ORACLE, _GAP = "static.manifest", "semantic.oracle_max", "semantic.floor_gap"
_CANARY, _SIGHT = "semantic.canary_floor", "semantic.no_solution_leakage"
_ALIKE = "semantic.verifier_determinism"
_NOT_MEASURED = {
    "semantic.verifier_portability": "assay grades on this machine only",
    "semantic.resource_envelope": "no resources are declared that could be compared",
    "semantic.replayability": "assay replays its own recordings, and no trajectories of OpenEnv",
}
_PARTIAL = "bad partial"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Check:
    """One check of theirs."""

    id: str
    status: Status
    evidence: Sequence[str]
    measured: dict[str, Json] = field(default_factory=dict[str, Json])
    remediation: str = ""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Json]:
        return {
            "check_id": self.id,
            "status": self.status,
            "measured": self.measured,
            "evidence": [*self.evidence],
            "remediation": self.remediation or None,
            "duration_s": round(self.seconds, 3),
        }


def openenv_reports(proof: Proof) -> list[dict[str, Json]]:
    """A report of every case, in their order."""
    return [_report(case) for case in proof.cases]


def openenv_code(reports: Sequence[dict[str, Json]]) -> int:
    """Their exit status: 1 if a verdict is ``fail``, else 0; 3 where no right work got full marks.

    Their policy takes what is skipped for a warning, with which nothing at all may have been tried.
    """
    if any(report["verdict"] == "fail" for report in reports):
        return 1
    passed = [(one["check_id"], one["status"]) for report in reports for one in _results(report)]
    return 0 if (_ORACLE, "pass") in passed else 3


def _results(report: Mapping[str, Json]) -> list[dict[str, Json]]:
    return cast("list[dict[str, Json]]", report["results"])


def _report(case: CaseProof) -> dict[str, Json]:
    is_file = bool(case.file) and Path(case.file).is_file()
    is_case = is_file and not case.file.endswith(".py")
    digest, undigested = _source_digest(case.file, whole=is_case) if is_file else ("", "")
    checks = [
        replace(one, evidence=[*one.evidence, undigested])
        if undigested and one.id == _MANIFEST
        else one
        for one in _checks(case)
    ]
    found = {check.status for check in checks}
    verdict = "fail" if found & {"fail", "error"} else "warn" if "skip" in found else "pass"
    return {
        "report_schema_version": _SCHEMA,
        "target": _target(case, is_case=is_case),
        "source_digest": digest,
        # Their list of package formats has neither of assay's: where it is from says `target`.
        "signature": "task.toml" if is_case else "openenv.yaml",
        "manifest": None,
        "policy_version": _POLICY,
        "lane": "local",
        "levels_run": [_SEMANTIC],
        "results": [check.to_dict() for check in checks],
        "verdict": verdict,
    }


def _target(case: CaseProof, *, is_case: bool) -> str:
    if is_case:
        return str(Path(case.file).parent)
    return f"{case.file}#{case.case}" if case.file else case.case


def _checks(case: CaseProof) -> list[_Check]:
    broken = next((one for one in case.checks if one.name == LOADING), None)
    if broken is not None:
        why = "unmet dependency: a case that can be read"
        return [
            _of(_MANIFEST, broken, status="fail"),
            *(_skipped(one, why) for one in (_ORACLE, _GAP, _CANARY, _SIGHT, _ALIKE)),
            *(_skipped(one, why) for one in _NOT_MEASURED),
        ]
    alike = _alike(case)
    told = [_oracle(case), _gap(case), _canary(case)]
    if alike.status != "pass":
        by_chance = ("pass", "fail") if alike.status == "fail" else ("pass",)
        why = f"unmet dependency: {_ALIKE}"
        told = [_skipped(one.id, why) if one.status in by_chance else one for one in told]
    return [
        _skipped(_MANIFEST, "what assay proves declares no manifest of OpenEnv's"),
        *told,
        _sight(case),
        alike,
        *(_skipped(one, why) for one, why in _NOT_MEASURED.items()),
    ]


def _of(name: str, check: ProofCheck, *, status: Status | None = None) -> _Check:
    """A check of theirs by one of ours."""
    words: dict[str, Status] = {"held": "pass", "failed": "fail", "skipped": "skip"}
    return _Check(
        id=name,
        status=status or words.get(check.verdict, "error"),
        evidence=[check.said],
        remediation=check.fix,
        seconds=check.seconds,
    )


def _skipped(name: str, why: str) -> _Check:
    return _Check(id=name, status="skip", evidence=[why])


def _untried(name: str, case: CaseProof) -> _Check:
    """A check of a case of which nothing could be tried, or not what it takes."""
    for check in case.checks:
        if check.verdict == "error":
            return _of(name, check)
    return _skipped(name, "nothing was tried that tells it")


def _oracle(case: CaseProof) -> _Check:
    check = next((one for one in case.checks if one.name.startswith(NO_REFERENCE)), None)
    if check is None and not case.is_untried:
        return _untried(_ORACLE, case)
    if check is None:
        fix = "put a known-good answer into the task's metadata, as solution"
        said = "there is no right work that could show that full marks can be had"
        return _Check(id=_ORACLE, status="fail", evidence=[said], remediation=fix)
    found = _of(_ORACLE, check)
    if check.reward is None:
        return found
    measured: dict[str, Json] = {"oracle_reward": check.reward, "declared_tolerance": _TOLERANCE}
    return replace(found, measured=measured)


def _gap(case: CaseProof) -> _Check:
    check = next((one for one in case.checks if one.name == FLOOR), None)
    if check is None:
        return _untried(_GAP, case)
    found = _of(_GAP, check)
    if case.floor is None:
        return found
    margin = max(_MARGIN, 1.0 - case.threshold)
    is_wide = 1.0 - case.floor >= margin - _ROUNDING
    measured: dict[str, Json] = {"measured_floor": case.floor, "declared_margin": margin}
    said = f"doing nothing gets {case.floor:.4g}; the gap to 1 is {1.0 - case.floor:.4g}"
    status: Status = "pass" if is_wide and found.status == "pass" else "fail"
    fix = "" if status == "pass" else check.fix or "sharpen the graders that pay for nothing"
    return _Check(
        id=_GAP,
        status=status,
        evidence=[f"{said}, the margin {margin:.4g}"],
        measured=measured,
        remediation=fix,
        seconds=check.seconds,
    )


def _canary(case: CaseProof) -> _Check:
    """Work that deserves nothing gets what doing nothing gets; partial work may get a part."""
    played = [
        one for one in case.checks if one.name != FLOOR and one.name.startswith(("floor ", "bad "))
    ]
    if not played or case.floor is None:
        return _untried(_CANARY, case)
    seconds = sum(one.seconds for one in played)
    measured: dict[str, Json] = {one.name: one.reward for one in played}
    measured["measured_floor"] = case.floor
    above = [
        one
        for one in played
        if one.reward is not None
        and one.reward > case.floor + _ROUNDING
        and (one.verdict == "failed" or not one.name.startswith(_PARTIAL))
    ]
    failed = [*above, *(o for o in played if o.verdict == "failed" and o not in above)]
    errors = [one for one in played if one.verdict == "error"]
    skipped = [one for one in played if one.verdict == "skipped"]
    status: Status = "fail" if failed else "error" if errors else "skip" if skipped else "pass"
    told = failed or errors or skipped
    evidence = [f"{one.name}: {one.said}" for one in told]
    fix = next((one.fix for one in told if one.fix), "") or (
        "let the graders pay it no more than doing nothing" if failed else ""
    )
    return _Check(
        id=_CANARY,
        status=status,
        evidence=evidence or [f"{len(played)} canaries get what doing nothing gets"],
        measured=measured,
        remediation=fix,
        seconds=seconds,
    )


def _alike(case: CaseProof) -> _Check:
    """Both right work and none are graded the same again and again."""
    found = [one for one in case.checks if one.name.startswith("repeats ")]
    worst = next((o for v in ("failed", "error", "skipped") for o in found if o.verdict == v), None)
    if worst is not None:
        return _of(_ALIKE, worst)
    if len(found) < 2:
        return _untried(_ALIKE, case)
    times = min(one.times for one in found)
    if times < 2:
        return _skipped(_ALIKE, "the graders ran once: nothing to compare (--repeats 3)")
    seconds = sum(o.seconds for o in case.checks if o.name.startswith((NO_REFERENCE, FLOOR)))
    return _Check(
        id=_ALIKE,
        status="pass",
        evidence=[f"{one.name}: {one.said}" for one in found],
        measured={"repeats": times},
        seconds=seconds,
    )


def _sight(case: CaseProof) -> _Check:
    sight = case.sight
    if sight is None:
        return _skipped(_SIGHT, "no right work was tried that is long enough to be looked for")
    measured: dict[str, Json] = {"files": sight.looked, "found_in": [*sight.places]}
    looked = f"looked for word for word in the prompt and {sight.looked} files"
    if sight.places:
        fix = "take the solution out of what the agent can read"
        said = f"all that right work adds stands in {', '.join(sight.places[:20])}"
        return _Check(id=_SIGHT, status="fail", evidence=[said], measured=measured, remediation=fix)
    if sight.unseen:
        said = f"{looked}: not found; not looked through: {sight.unseen}"
        return _Check(id=_SIGHT, status="skip", evidence=[said], measured=measured)
    return _Check(id=_SIGHT, status="pass", evidence=[f"{looked}: not found"], measured=measured)


def _source_digest(file: str, *, whole: bool) -> tuple[str, str]:
    """Their digest of a package, or why there is none.

    It is of its files by path, each path and content with a NUL behind it. Like theirs, it is of
    files and directories alone: what a link leads to may be any file, and a pipe may never end.

    Raises:
        InputError: A file of it cannot be read.
    """
    digest = hashlib.sha256()
    root = Path(file).parent
    try:
        paths = _files(root) if whole else [Path(file).name]
        for path in sorted(paths):
            mode = (root / path).lstat().st_mode
            if not stat.S_ISREG(mode):
                what = "a link" if stat.S_ISLNK(mode) else "neither a file nor a directory"
                return "", f"there is no source_digest: {root / path} is {what}"
            digest.update(path.encode("utf-8", "surrogateescape") + b"\0")
            opened = open_inside(str(root), path, os.O_RDONLY)
            with os.fdopen(opened, "rb") as stream:
                digest.update(stream.read() + b"\0")
    except OSError as error:
        raise InputError(f"{root} cannot be read: {error.strerror or error}") from error
    return digest.hexdigest(), ""


def _files(root: Path) -> list[str]:
    found: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in _PASSED_OVER]
        links = [name for name in folders if Path(folder, name).is_symlink()]
        found += [Path(folder, name).relative_to(root).as_posix() for name in [*names, *links]]
    return found
