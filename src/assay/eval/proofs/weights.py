"""What a case's weights leave open: ways to reward that no check of it closes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from assay.graders.spec import GraderSpec
from assay.scoring.combine import unique_names
from assay.scoring.results import SubScore
from assay.tasks.case import Case
from assay.types.run import Run

_CONDUCT = frozenset({"trace", "tool_correctness", "efficiency"})
"""Kinds that look at how the work was done, not at what came of it."""
_TESTS = frozenset({"tests", "pytest", "swebench", "c_tests"})
_ROUNDING = 1e-9


def left_open(case: Case, bad: Mapping[str, Run]) -> Iterator[str]:
    """Say what the weights leave open, also by what bad work got: runs by what was tried."""
    credit = [spec for spec in case.graders if spec.weight > 0 and not spec.gate]
    total = sum(spec.weight for spec in credit)
    yield from _without_correctness(case, credit, total)
    yield from _without_the_heaviest(case, credit, total)
    for spec in case.graders:
        yield from _weak(spec, spec.weight / total if spec in credit else 0.0)
    yield from _never_refuses(case, bad.values())
    yield from _earned(bad)


def _without_correctness(case: Case, credit: Sequence[GraderSpec], total: float) -> Iterator[str]:
    conduct = [spec for spec in credit if spec.type in _CONDUCT]
    share = sum(spec.weight for spec in conduct) / total
    names = ", ".join(spec.label for spec in conduct)
    if len(conduct) == len(credit):
        yield f"no grader checks whether the result is right: all credit is for conduct ({names})"
    elif share > 0:
        passes = share >= case.expect.pass_threshold - _ROUNDING
        end = ", and that passes" if passes else ""
        yield f"up to {share:.2f} can be had with a wrong result: {names} pay for conduct{end}"


def _without_the_heaviest(case: Case, credit: Sequence[GraderSpec], total: float) -> Iterator[str]:
    threshold = case.expect.pass_threshold
    if threshold <= 0:
        yield "expect.pass_threshold is 0, so that everything passes"
        return
    heaviest = max(credit, key=lambda spec: spec.weight)
    rest = (total - heaviest.weight) / total
    if len(credit) > 1 and rest >= threshold - _ROUNDING:
        yield (
            f"{threshold:.2f} passes and can be had without the heaviest grader, "
            f"{heaviest.label}: the others give up to {rest:.2f}"
        )


def _weak(spec: GraderSpec, share: float) -> Iterator[str]:
    """What kind and options of one grader leave open."""
    options = spec.options
    if spec.type == "command" and (share > 0 or spec.gate):
        worth = "the gate" if spec.gate else f"{share:.2f} of the reward"
        yield (
            f"{spec.label}: {worth} rests on an exit status, which code of the submission that the "
            "command runs can choose"
        )
    if spec.type == "files" and options.get("patterns"):
        where = "a comment" if options.get("files") else "code that never runs"
        yield f"{spec.label}: a pattern asks for words, and is satisfied by {where}"
    if spec.type in _TESTS:
        if not options.get("inject"):
            yield f"{spec.label}: no test is hidden, so all that they ask for is known beforehand"
        format_ = options.get("format") or _implied_format(spec)
        if format_ and not options.get("junit_xml"):
            yield (
                f"{spec.label}: the verdict is read from console text ({format_}), which "
                "the submission can print too"
            )
    if spec.type == "swebench" and not options.get("pass_to_pass"):
        yield f"{spec.label}: pass_to_pass is empty, so that breaking everything else costs nothing"


def _implied_format(spec: GraderSpec) -> str | None:
    """The console format that a command's runner implies, where none is declared."""
    from assay.graders.tests import TestsGrader

    is_one = issubclass(spec.kind.grader, TestsGrader)
    report = TestsGrader.implied(spec.options) if is_one else None
    return report.format if report else None


def _never_refuses(case: Case, bad: Iterable[Run]) -> Iterator[str]:
    """Graders that gave full marks to everything bad that was tried."""
    graded = [run.grade.subscores for run in bad if run.reward is not None]
    if not graded:
        return
    names = [node.name for node in unique_names([_node(spec) for spec in case.graders])]
    for spec, name in zip(case.graders, names, strict=True):
        values = [node.value for nodes in graded for node in nodes if node.name == name]
        known = [value for value in values if value is not None]
        if not known or spec.weight < 0 or min(known) < 1.0:
            continue
        if spec.gate:
            yield f"gate {name} was open to everything tried: add bad work that it has to stop"
        else:
            yield f"{name} gave full marks to everything tried, also to no work at all"


def _node(spec: GraderSpec) -> SubScore:
    return SubScore.skipped(spec.label, "", weight=spec.weight, gate=spec.gate)


def _earned(bad: Mapping[str, Run]) -> Iterator[str]:
    """What floors earned, and by which grader."""
    for name, run in bad.items():
        reward = run.reward
        if not name.startswith("floor ") or not reward or reward <= _ROUNDING:
            continue
        paid = [
            f"{node.name} {node.value:.2f}"
            for node in run.grade.subscores
            if node.value and node.weight > 0 and not node.gate
        ]
        yield f"the floor {name.removeprefix('floor ')} earns {reward:.2f} ({', '.join(paid)})"
