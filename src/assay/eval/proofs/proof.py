"""What was found of cases on trial, and the rules by which runs are judged to come to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeAlias

from assay.eval.proofs.isolation import Isolated
from assay.scoring.json_safe import Json
from assay.scoring.results import Assurance, SubScore, reaches
from assay.types.run import Run

Verdict: TypeAlias = Literal["held", "failed", "error", "skipped"]

NO_RIGHT_WORK = "no right work was tried"
STEADY = "make the grader, or the recording's run.sh, independent of time, chance and order"
"""What is done where the same work is graded differently."""
LOADING, BEGINNING = "load", "begin"
"""Checks of a case whose files are wrong, and of one that cannot be begun."""
NO_REFERENCE = "reference"
"""The check of a case that has no reference."""
_NOT_GRADED, _SKIPPED = "could not be graded", "was skipped"
_OF_FAILURES = {
    "reference ": "right work fails",
    NO_REFERENCE: "has no reference",
    "repeats": "is graded differently each time",
    "floor no-op": "doing nothing passes",
    "floor": "work that deserves nothing passes",
    "bad": "known bad work is not caught",
}
"""Causes by how the names of the checks begin that failed; the first that fits."""
_OF_ERRORS = {LOADING: "cannot be loaded", BEGINNING: "cannot be built"}
_CAUSES = (*_OF_FAILURES.values(), *_OF_ERRORS.values(), _NOT_GRADED, _SKIPPED, NO_RIGHT_WORK)

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofCheck:
    """One thing that a case has to show.

    Attributes:
        name: Such as ``reference fix`` or ``floor echo``.
        verdict: ``held``, ``failed``, ``error`` (could not be graded) or ``skipped``.
        reward: What was earned; None where nothing could be, or several things were compared.
        said: What was found, in one sentence.
        fix: What to do about it; empty where it held.
        times: How many runs it is judged by.
        seconds: How long they took; 0 where they are another check's.
    """

    name: str
    verdict: Verdict
    reward: float | None = None
    said: str = ""
    fix: str = ""
    times: int = 1
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """Where right work stands that whoever works can read.

    Attributes:
        places: Where: paths in the workspace, and ``the prompt``.
        looked: How many files were looked through beside the prompt.
        unseen: What they can read and nobody looked through; empty for nothing.
    """

    places: tuple[str, ...] = ()
    looked: int = 0
    unseen: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseProof:
    """What trials found of one case.

    Attributes:
        case: Its id.
        file: Its file.
        threshold: Reward that passes.
        floor: What doing nothing gets; None where that could not be graded.
        checks: In the order in which they were made.
        open: What the case's weights leave open, in sentences; no failure by itself.
        isolation: How the tests of its graders are isolated.
        sight: Whether right work stands where whoever works can read it; None where that is not
            told.
    """

    case: str
    file: str
    threshold: float
    floor: float | None = None
    checks: tuple[ProofCheck, ...] = ()
    open: tuple[str, ...] = ()
    isolation: tuple[Isolated, ...] = ()
    sight: Sight | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst of its checks; where nothing was tried, it is skipped."""
        found = {check.verdict for check in self.checks} or {"skipped"}
        order: tuple[Verdict, ...] = ("failed", "error", "skipped")
        for verdict in order:
            if verdict in found:
                return verdict
        return "held"

    @property
    def causes(self) -> dict[str, ProofCheck]:
        """Why it is not proven, each with the first check that says so."""
        found: dict[str, ProofCheck] = {}
        for check in self.checks:
            if check.verdict != "held":
                found.setdefault(_cause(check), check)
        return found or (
            {NO_RIGHT_WORK: ProofCheck(name="", verdict="held")} if self.is_untried else {}
        )

    @property
    def is_untried(self) -> bool:
        """Whether nothing in it is wrong, and no right work, nor a cheat, was there to be tried."""
        own = [one for one in self.checks if not one.name.startswith(("floor", "bad ", "repeats "))]
        return self.verdict == "held" and not own


@dataclass(frozen=True, slots=True)
class Proof:
    """What trials found of every case."""

    cases: tuple[CaseProof, ...]

    @property
    def causes(self) -> dict[str, list[CaseProof]]:
        """Why cases are not proven, in the order in which they are told, each with its cases."""
        found: dict[str, list[CaseProof]] = {}
        for cause in _CAUSES:
            if cases := [case for case in self.cases if cause in case.causes]:
                found[cause] = cases
        return found

    @property
    def code(self) -> int:
        """Exit code: 0 all is well, 1 something failed, 3 something was not graded or tried."""
        found = {case.verdict for case in self.cases}
        if "failed" in found:
            return 1
        is_tried = any(case.verdict == "held" and not case.is_untried for case in self.cases)
        return 0 if is_tried and "error" not in found else 3

    def to_dict(self) -> dict[str, Json]:
        """The findings as plain JSON."""
        return {"cases": [_case_dict(case) for case in self.cases]}

    def causes_dict(self) -> dict[str, Json]:
        """The ids of cases by why they are not proven, as plain JSON."""
        return {cause: [case.case for case in cases] for cause, cases in self.causes.items()}


def _cause(check: ProofCheck) -> str:
    """Why a case is not proven, by a check that did not hold."""
    if check.verdict == "skipped":
        return _SKIPPED
    if check.verdict == "error":
        return _OF_ERRORS.get(check.name, _NOT_GRADED)
    return next(cause for begin, cause in _OF_FAILURES.items() if check.name.startswith(begin))


def failed(name: str, said: str, fix: str, reward: float | None = None) -> ProofCheck:
    """A check that failed."""
    return ProofCheck(name=name, verdict="failed", reward=reward, said=said, fix=fix)


def reference_check(name: str, runs: Sequence[Run], least: Assurance | None = None) -> ProofCheck:
    """Whether right work gets everything, with the least assurance that the case asks for."""
    run = runs[0]
    if (broken := not_graded(name, run)) is not None:
        return broken
    reward = run.reward or 0.0
    below = _below(run)
    if below or reward < 1.0 - _ROUNDING:
        why = f"below full: {', '.join(below)}" if below else "no grader gave less than full marks"
        said = f"right work gets {reward:.2f} instead of 1.00; {why}"
        fix = "correct the reference if it is wrong, else the grader that marks it down"
        return failed(name, said, fix, reward)
    if not reaches(word := run.grade.result.assurance, least):
        said = f"right work cannot pass: its assurance is {word or 'unknown'}, below {least}"
        fix = "let graders that reach it give the credit, or lower expect.min_assurance"
        return failed(name, said, fix, reward)
    skipped = [node.name for node in run.grade.subscores if node.status == "skipped"]
    said = f"full marks; skipped: {', '.join(skipped)}" if skipped else "full marks"
    return ProofCheck(name=name, verdict="held", reward=reward, said=said)


def must_fail(name: str, run: Run, threshold: float, reason: str = "") -> ProofCheck:
    """Whether bad work does not pass, and for the reason that the case names, if it names one."""
    if (broken := not_graded(name, run)) is not None:
        return broken
    reward = run.reward or 0.0
    below = _below(run)
    if reward >= threshold - _ROUNDING:
        fix = "raise expect.pass_threshold, or weigh and sharpen the graders that gave it"
        return failed(name, f"passes with {reward:.2f} but must not", fix, reward)
    if reason and (problem := _other_reason(reason, run, below)):
        return failed(name, *problem, reward)
    said = f"stopped by {', '.join(below[:4])}" if below else "does not pass"
    return ProofCheck(name=name, verdict="held", reward=reward, said=said)


_NEVER_AN_ERROR = (
    "where a model or a program was missing, give it and prove again; else the grader fails on "
    "what a submission does, and must give it a 0"
)


def not_graded(name: str, run: Run) -> ProofCheck | None:
    """What is said of work that could not be graded; None where it was."""
    if run.grade.is_error:
        why = run.grade.content or run.trace.error or "no cause was recorded"
        fix = _NEVER_AN_ERROR if "floor" in name else ""
        return ProofCheck(name=name, verdict="error", said=f"could not be graded: {why}", fix=fix)
    if run.reward is None:
        return ProofCheck(
            name=name, verdict="skipped", said=run.grade.content or "does not apply here"
        )
    return None


def repeats_check(name: str, runs: Sequence[Run]) -> ProofCheck:
    """Whether the same work always gets the same, in every node of the score tree."""
    if any(run.grade.is_error or run.reward is None for run in runs):
        broken = next(run for run in runs if run.grade.is_error or run.reward is None)
        return not_graded(name, broken) or ProofCheck(name=name, verdict="error")
    readings = [
        dict(_reading(run.grade.subscores)) or {"the reward": ("graded", run.reward, ())}
        for run in runs
    ]
    nodes = dict.fromkeys(node for reading in readings for node in reading)
    unlike = [node for node in nodes if len({str(r.get(node)) for r in readings}) > 1]
    if not unlike:
        said = f"{len(runs)} times the same" if len(runs) > 1 else "graded once: nothing to compare"
        return ProofCheck(name=name, verdict="held", said=said, times=len(runs))
    shown = "; ".join(
        f"{node}: {', '.join(_shown(r.get(node)) for r in readings)}" for node in unlike[:4]
    )
    found = failed(name, f"the same work is graded differently: {shown}", STEADY)
    return replace(found, times=len(runs))


_Reading: TypeAlias = "tuple[str, float | None, tuple[str, ...]]"


def _reading(nodes: Sequence[SubScore], above: str = "") -> Iterator[tuple[str, _Reading]]:
    """Status, value and flags of every node of a score tree, by path."""
    for node in nodes:
        path = f"{above}{node.name}"
        yield path, (node.status, node.value, tuple(node.flags))
        yield from _reading(node.children or (), f"{path}/")


def _shown(reading: _Reading | None) -> str:
    if reading is None:
        return "absent"
    status, value, flags = reading
    text = status if value is None else f"{value:.4g}"
    return f"{text} ({', '.join(flags)})" if flags else text


def _below(run: Run) -> list[str]:
    """Graders that kept something back: a value below 1, or a penalty that applied."""
    found: list[str] = []
    for node in run.grade.subscores:
        if node.value is None or (node.weight == 0 and not node.gate):
            continue
        penalty = node.weight < 0 and not node.gate
        if node.value > 0.0 if penalty else node.value < 1.0:
            found.append(node.name)
    return found


def _other_reason(reason: str, run: Run, below: Sequence[str]) -> tuple[str, str] | None:
    """What is wrong with the reason that a case names, and how to fix it; None if it is right."""
    nodes = [node.name for node in run.grade.subscores]
    said = reason.casefold()
    named = [name for name in nodes if _mentions(said, name) or _mentions(said, _plain(name))]
    # The longest names first: "tests" in "hidden-tests failed" is not a grader of its own.
    named = [n for n in named if not any(n != o and n in o and _mentions(said, o) for o in named)]
    flags = [flag for flag in run.grade.result.flags if flag.casefold() in said]
    flags += [flag for flag in run.grade.result.flags if said in flag.casefold()]
    if flags:
        return None
    if not named:
        return (
            f"the reason {reason!r} names no grader and no flag that was raised",
            f"name what must catch it, one of: {', '.join(nodes)}",
        )
    open_ = [
        name for name in {_plain(n) for n in named} if not any(_plain(b) == name for b in below)
    ]
    if open_:
        return (
            f"does not pass, but {', '.join(sorted(open_))}, named as the reason, gave full marks",
            f"it was stopped by {', '.join(below) or 'nothing'}: correct the grader or the reason",
        )
    return None


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name.casefold())}(?![\w-])", text) is not None


def _plain(name: str) -> str:
    """A grader's name without the number that tells graders of one name apart."""
    return re.sub(r"-\d+$", "", name)


def _case_dict(case: CaseProof) -> dict[str, Json]:
    isolation: list[Json] = [
        {
            "grader": one.grader,
            "isolation": one.isolation,
            "allow_equality": list[Json](one.allow_equality),
            "why": one.why,
            "objects": list[Json](one.contract.objects if one.contract else ()),
            "skips": list[Json](one.contract.skips if one.contract else ()),
        }
        for one in case.isolation
    ]
    return {**asdict(case), "verdict": case.verdict, "isolation": isolation}
