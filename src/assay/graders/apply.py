"""Run declared graders over a submission: the one road from a declaration to a score."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import cast

from assay.errors import AssayError, GraderError, InputError
from assay.graders.base import AskedNode
from assay.graders.comparison import Comparison
from assay.graders.digest import grader_digest
from assay.graders.kinds import KINDS
from assay.graders.spec import GraderSpec
from assay.scoring.combine import combine_scores
from assay.scoring.graded import Graded
from assay.scoring.json_safe import Json, noted
from assay.scoring.results import EvaluationResult, SubScore, checked_weight
from assay.turns import current_turn
from assay.types.submission import SUBMISSION_PARTS, Submission

__all__ = [
    "explained",
    "grade_alone",
    "grade_batch",
    "grade_many",
    "grade_submission",
    "require_parts",
]


def require_parts(specs: Sequence[GraderSpec], available: Container[str]) -> None:
    """Refuse graders that need a part which no submission of this kind has."""
    for spec in specs:
        kind = spec.kind
        for name, parameter in kind.parameters.items():
            part = kind.filled_from.get(name, name)
            if (
                parameter.required
                and not spec.gives(name)
                and part in SUBMISSION_PARTS
                and part not in available
            ):
                raise InputError(
                    f"grader {spec.label!r} needs {name!r}, which is not available here",
                    hint=f"give it as an option of the grader, or as {part!r} beside the graders",
                )


async def grade_submission(
    specs: Sequence[GraderSpec],
    submission: Submission,
    *,
    keep: Mapping[int, SubScore] | None = None,
) -> EvaluationResult:
    """Grade a submission with declared graders, in their order, and combine the scores.

    A parameter that a declaration leaves out is taken from the submission. A grader that fails
    becomes an error node; its siblings still run. A gate among the children of a node gates the
    whole. How cheaply something was done (a grader with ``needs_credit``) is scaled by what the
    graders of the work itself gave: nothing up to half, all of it for all.
    """
    kept = keep or {}
    nodes = [
        kept[number] if number in kept else await grade_alone(spec, submission)
        for number, spec in enumerate(specs)
    ]
    return _combined(specs, nodes)


async def grade_batch(
    specs: Sequence[GraderSpec], submissions: Sequence[Submission], *, explained: bool = False
) -> list[EvaluationResult]:
    """Grade many submissions, each as `grade_submission` would.

    Returns in their order; those whose every score is the same share one result unless
    ``explained``.
    """
    columns = [await _grade_each(spec, submissions, explained=explained) for spec in specs]
    known: dict[tuple[int, ...], EvaluationResult] = {}
    results: list[EvaluationResult] = []
    for nodes in zip(*columns, strict=True):
        key = tuple(map(id, nodes))
        if key not in known:
            known[key] = _combined(specs, list(nodes))
        results.append(known[key])
    return results


async def grade_alone(spec: GraderSpec, submission: Submission) -> SubScore:
    """The node of one declared grader, combined with nothing; an error node where it fails."""
    return (await _grade_each(spec, [submission], explained=True))[0]


async def grade_many(
    specs: Sequence[GraderSpec], items: Sequence[tuple[str, Submission]]
) -> list[Graded]:
    """Grade many submissions, each as `grade_submission` would; the parts of several are details.

    They are handed to each grader as one batch; give it thousands at a time, not millions. In a
    turn (`assay.turns`) the seconds of the single items are put down, where they are known.
    """
    alone = len(specs) == 1
    if alone:
        specs = [replace(specs[0], weight=1.0, gate=False)]
    results = await grade_batch(specs, [submission for _, submission in items])
    known: dict[int, Graded] = {}
    graded: list[Graded] = []
    for (name, _), result in zip(items, results, strict=True):
        if (alike := known.get(id(result))) is None:
            alike = _graded(name, result) if alone else Graded.of_result(name, result)
            known[id(result)] = alike
        graded.append(alike if alike.id == name else alike.called(name))
    return graded


def _graded(item: str, result: EvaluationResult) -> Graded:
    """What came of an item with a single grader, whose node is the first: gates in it follow."""
    node = next(iter(result.subscores or ()))
    graded = Graded.of(item, node)
    if result.reward is None or graded.status == "error":
        return graded
    # A gate below the node may have taken the score that the node itself has.
    reason = (result.content or "") if result.reward != node.value else graded.reason
    return replace(graded, score=result.reward, flags=result.flags, reason=reason)


def _combined(specs: Sequence[GraderSpec], nodes: list[SubScore]) -> EvaluationResult:
    if any(spec.kind.grader.needs_credit for spec in specs):
        nodes = _without_free_credit(specs, nodes)
    nodes = [_unescaped(node) if node.weight < 0 else node for node in nodes]
    gates = [_hoisted(node, child) for node in nodes for child in node.children or () if child.gate]
    return combine_scores([*nodes, *gates], clamp=True)


def _without_free_credit(specs: Sequence[GraderSpec], nodes: list[SubScore]) -> list[SubScore]:
    """Scale the credit for doing something cheaply by how much of it was done.

    Half of the work is worth none of it: the cheapest way to half a task is to leave out the rest.
    """
    kinds = [spec.kind.grader for spec in specs]
    work = [
        node
        for node, kind in zip(nodes, kinds, strict=True)
        if not kind.of_conduct and not node.gate and node.weight > 0 and node.status != "skipped"
    ]
    if not work or any(node.status == "error" for node in work):
        return nodes
    weight = math.fsum(node.weight for node in work)
    earned = math.fsum(node.weight * (node.value or 0.0) for node in work) / weight
    share = max(0.0, 2 * earned - 1)
    if share >= 1:
        return nodes
    reason = f"{share:.2f} of its credit, for the work itself earned {earned:.2f}"
    if not earned:
        reason = "no credit: the graders of the work itself gave none"
    return [
        replace(node, value=node.value * share, passed=False, reason=reason)
        if kind.needs_credit and node.status == "scored" and node.value
        else node
        for node, kind in zip(nodes, kinds, strict=True)
    ]


def _unescaped(node: SubScore) -> SubScore:
    """Make a penalty that the submission kept from being computed a full one.

    What hangs, crashes or overflows its grader is worth the worst score. Of a penalty the worst is
    1: with a 0, breaking the grader would be the way around it.
    """
    found = node.metadata or {}
    broken = found.get("_outcome", "ok") != "ok" or found.get("timed_out") is True
    if node.weight >= 0 or node.status != "scored" or not broken:
        return node
    reason = f"full penalty, because it could not be computed: {node.reason or 'out of time'}"
    return replace(node, value=1.0, passed=False, reason=reason)


def _hoisted(node: SubScore, gate: SubScore) -> SubScore:
    return replace(gate, name=f"{node.name}: {gate.name}")


async def _grade_each(
    spec: GraderSpec, submissions: Sequence[Submission], *, explained: bool = False
) -> list[SubScore]:
    """One grader's node for each submission; what it needs and they lack makes an error node."""
    weight = checked_weight(spec.weight, spec.label)
    node: AskedNode = {"name": spec.label, "weight": weight, "gate": spec.gate}
    grader = spec.kind.grader
    filling = _Filling(spec)
    calls = [filling.call(submission) for submission in submissions]
    complete = [call for call in calls if not isinstance(call, str)]
    now = explained or not grader.is_pure  # what takes its time is not compared again for it
    recorded: dict[str, Json] = {"type": spec.type, **grader.record(spec.options)}
    told: dict[str, Json] = {**spec.said, "_digest": grader_digest(spec)}
    told |= noted(_from=dict(spec.from_row))
    scored = iter(await grader.score_each(node, complete, recorded, told, explained=now))
    if (turn := current_turn()) is not None:
        turn.put_down([not isinstance(call, str) for call in calls])
    nodes = [
        SubScore.error(**node, reason=call) if isinstance(call, str) else _node(next(scored))
        for call in calls
    ]
    return list(map(filling.noted, nodes, calls)) if spec.open else nodes


def explained(node: SubScore, submission: Submission) -> SubScore:
    """The node of a row that was graded among many, with the evidence that was left out then.

    It is made again from the options that were recorded, and only believed where they give the
    same number: they are bounded, and a later assay may compare in another way.
    """
    recorded = (node.metadata or {}).get("_parameters")
    if node.value is None or not isinstance(recorded, dict) or recorded.get("type") not in KINDS:
        return node
    options = {name: option for name, option in recorded.items() if name != "type"}
    spec = GraderSpec(type=str(recorded["type"]), options=options)
    grader = spec.kind.grader
    call = _Filling(spec).call(submission)
    if not issubclass(grader, Comparison) or grader.slow or isinstance(call, str):
        return node
    try:
        value = grader.compared(call)
    except AssayError:  # what was cut or redacted may be no option any more
        return node
    if value != node.value:
        return node
    return replace(node, metadata={**grader.explained(node.value, call), **(node.metadata or {})})


class _Filling:
    """What a grader is called with: its options, and what the submission fills in."""

    def __init__(self, spec: GraderSpec) -> None:
        kind = spec.kind
        self._spec, self._open = spec, spec.open
        named = {name: kind.filled_from.get(name, name) for name in kind.parameters}
        self._options: dict[str, object] = dict(spec.options)
        self._filled = {
            name: part
            for name, part in named.items()
            if not spec.gives(name) and part in SUBMISSION_PARTS
        }
        self._required = [p.name for p in kind.parameters.values() if p.required]

    def call(self, submission: Submission) -> dict[str, object] | str:
        """What it is called with for a submission; what it lacks, as a text."""
        parameters = self._options.copy()
        for name, part in self._filled.items():
            try:
                value = submission.part(part)
            except RecursionError:  # the fault of this one, not of those beside it
                return f"cannot read {part!r}: it is nested too deeply"
            if value is not None:
                parameters[name] = value
        if self._open:
            try:
                parameters.update(self._spec.given_by(submission))
            except InputError as error:
                return str(error)
            except RecursionError:
                return "cannot read what the row gives: it is nested too deeply"
        if lacking := [name for name in self._required if name not in parameters]:
            said = " and ".join(map(repr, lacking))
            return f"needs {said}, which the submission does not have"
        return parameters

    def noted(self, node: SubScore, call: dict[str, object] | str) -> SubScore:
        """The node of a row, with the options that the row gave among the recorded ones."""
        told = node.metadata or {}
        if isinstance(call, str) or not isinstance(before := told.get("_parameters"), dict):
            return node
        given = {name: call[name] for name in self._open}
        recorded = {**before, **self._spec.kind.grader.record(given)}
        return replace(node, metadata={**told, "_parameters": recorded})


def _node(scored: SubScore | GraderError) -> SubScore:
    return cast("SubScore", scored.subscore) if isinstance(scored, GraderError) else scored
