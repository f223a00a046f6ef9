"""Judges that come to a score in several steps: each voter goes through all of them alone.

Where `panel.poll` counts words, this takes numbers: the mean of each model's repeats, and of the
models what the panel's ``aggregate`` says.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

from assay.errors import ModelError
from assay.graders.judges.panel import FAR_APART, Panel, RefutedError, Vote, together
from assay.graders.judges.prompt import Prompt
from assay.models import current_client
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore

__all__ = ["Finding", "ListForm", "Voter", "heard"]

_T = TypeVar("_T")

MAX_CALLS = 512
"""Most questions of one voter about one sample: what it costs is bounded, whatever is graded."""


@dataclass(frozen=True, slots=True)
class ListForm:
    """What shape a reply has.

    Attributes:
        name: Of the question; also of the schema, for providers.
        schema: JSON Schema. One object for all questions of the kind.
    """

    name: str
    schema: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one voter found.

    Attributes:
        value: In [0, 1]; None where there is nothing to score.
        reason: One line.
        metadata: The evidence.
        children: A node for each thing that was judged.
    """

    value: float | None
    reason: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict[str, Json])
    children: tuple[SubScore, ...] = ()


@dataclass(slots=True)
class Voter:
    """One asking of one model, which may take several calls.

    Attributes:
        panel: Whose voter it is.
        model: Whom to ask.
        repeat: Which asking, from 0.
        calls: What was asked so far: the name of the question and how the reply was had.
    """

    panel: Panel
    model: str
    repeat: int = 0
    calls: list[tuple[str, Vote]] = field(default_factory=list[tuple[str, Vote]])

    async def ask(
        self, prompt: Prompt, form: ListForm, read: Callable[[Mapping[str, Json]], _T]
    ) -> _T:
        """Ask one question.

        Args:
            prompt: The question.
            form: What shape an answer has.
            read: What a reply of that shape says; raises `RefutedError` where it is not believed,
                which gives the model one chance to mend it.

        Raises:
            ModelError: If no reply could be had, read or believed.
        """
        self.plan(1)
        request = self.panel.request(
            prompt, form.name, form.schema, model=self.model, repeat=self.repeat
        )
        place = len(self.calls)
        vote = Vote(model=self.model, repeat=self.repeat)
        self.calls.append((form.name, vote))
        found: list[_T] = []

        def check(data: Json) -> str:
            found.clear()
            try:
                found.append(read(cast("Mapping[str, Json]", data)))
            except RefutedError as error:
                return error.complaint
            return ""

        try:
            reply = await current_client().ask(request, check)
        except ModelError as error:
            vote = Vote(model=self.model, repeat=self.repeat, error=error)
            self.calls[place] = (form.name, vote)
            raise
        vote = Vote(model=self.model, repeat=self.repeat, reply=reply)
        self.calls[place] = (form.name, vote)
        return found[0]

    def plan(self, questions: int) -> None:
        """Refuse to ask more questions than one sample may cost, before any of them is asked.

        Raises:
            ModelError: Of the kind ``overflow`` where all together are more than `MAX_CALLS`.
        """
        if len(self.calls) + questions > MAX_CALLS:
            raise ModelError(
                f"this takes {len(self.calls) + questions} questions to one judge, or more; "
                f"at most {MAX_CALLS} are asked about a sample",
                kind="overflow",
                hint="give fewer documents, a smaller max_claims, or a larger max_tokens",
            )

    def told(self) -> list[Json]:
        """The calls as plain JSON."""
        return [_call(name, vote) for name, vote in self.calls]


def _call(name: str, vote: Vote) -> Json:
    kept = vote.to_dict()
    del kept["model"]
    return {"asked": name, **kept}


Judge = Callable[[Voter], Awaitable[Finding]]


@dataclass(frozen=True, slots=True)
class _Ballot:
    voter: Voter
    finding: Finding | None
    error: ModelError | None = None

    def told(self) -> dict[str, Json]:
        kept: dict[str, Json] = {"model": self.voter.model}
        if self.voter.repeat:
            kept["repeat"] = self.voter.repeat
        if self.finding is not None:
            kept.update({"value": self.finding.value, **self.finding.metadata})
        if self.error is not None:
            kept.update({"error": str(self.error), "error_kind": self.error.kind})
        kept["calls"] = self.voter.told()
        return kept


async def heard(name: str, panel: Panel, judge: Judge) -> SubScore:
    """Hear all voters of a panel, and make one node of what they found.

    Its children and the evidence at its top are those of the voter nearest to the score; every
    voter's own evidence and calls stand under ``votes``.

    Args:
        name: Of the node.
        panel: Who is asked. Of an even number, the ``majority`` and the ``median`` lie in between.
        judge: What one voter does.

    Returns:
        A node that is scored, skipped where most voters found nothing to score, or an error where
        fewer than the quorum came to a finding. Where as many found nothing to score as something,
        the panel's ``tie`` decides: ``fail`` is the score of the others.
    """
    voters = [Voter(panel, model, n) for model in panel.models for n in range(panel.repeats)]
    ballots = await together(_ballot(voter, judge) for voter in voters)
    deciding, needed = ballots, panel.needed
    if panel.escalate and _is_doubtful(ballots):
        deciding, needed = [await _ballot(Voter(panel, panel.escalate), judge)], 1
        ballots = [*ballots, *deciding]
    return _node(name, panel, ballots, deciding, needed)


async def _ballot(voter: Voter, judge: Judge) -> _Ballot:
    try:
        return _Ballot(voter, await judge(voter))
    except ModelError as error:
        return _Ballot(voter, None, error)


def _node(
    name: str, panel: Panel, ballots: Sequence[_Ballot], deciding: Sequence[_Ballot], needed: int
) -> SubScore:
    metadata: dict[str, Json] = {"model": panel.models[0], "models": list(panel.models)}
    found = [ballot.finding for ballot in deciding if ballot.finding is not None]
    if len(found) < needed:
        metadata["votes"] = [ballot.told() for ballot in ballots]
        failed = next((ballot.error for ballot in deciding if ballot.error is not None), None)
        metadata["_outcome"] = failed.kind if failed else "unbelievable"
        reason = _missing(deciding, len(found), needed)
        return SubScore.error(name, reason, metadata=metadata)
    scored = sum(finding.value is not None for finding in found)
    is_split = 2 * scored == len(found)
    if is_split and panel.tie == "error":
        metadata["votes"] = [ballot.told() for ballot in ballots]
        reason = f"the judges are split: {scored} of {len(found)} found something to score"
        return SubScore.error(name, reason, metadata=metadata)
    is_scored = 2 * scored > len(found) or (is_split and panel.tie == "fail")
    value = _value(deciding, panel) if is_scored else None
    chosen = min(found, key=lambda one: _distance(one.value, value))
    metadata.update(chosen.metadata)
    if len(ballots) > 1:
        metadata["votes"] = [ballot.told() for ballot in ballots]
        near = [one for one in found if _distance(one.value, value) <= FAR_APART]
        metadata["agreement"] = len(near) / len(found)
    else:
        metadata["calls"] = ballots[0].voter.told()
    return SubScore(
        name,
        value,
        metadata=metadata,
        children=chosen.children,
        status="skipped" if value is None else "scored",
        reason=chosen.reason,
    )


def _value(ballots: Sequence[_Ballot], panel: Panel) -> float:
    by_model: dict[str, list[float]] = {}
    for ballot in ballots:
        if ballot.finding is not None and ballot.finding.value is not None:
            by_model.setdefault(ballot.voter.model, []).append(ballot.finding.value)
    means = [_mean(values) for values in by_model.values()]
    if panel.aggregate == "min":
        return min(means)
    return _mean(means) if panel.aggregate == "mean" else statistics.median(means)


def _mean(values: Sequence[float]) -> float:
    return min(max(math.fsum(values) / len(values), min(values)), max(values))


def _distance(one: float | None, other: float | None) -> float:
    if one is None or other is None:
        return 0.0 if one is other else 2.0
    return abs(one - other)


def _is_doubtful(ballots: Sequence[_Ballot]) -> bool:
    """Whether findings lie far apart, or some are missing."""
    found = [ballot.finding for ballot in ballots]
    first = found[0]
    return first is None or any(
        one is None or _distance(one.value, first.value) > FAR_APART for one in found
    )


def _missing(ballots: Sequence[_Ballot], given: int, needed: int) -> str:
    errors = [ballot for ballot in ballots if ballot.error is not None]
    if len(ballots) == 1:
        return str(errors[0].error)
    told = "; ".join(dict.fromkeys(f"{one.voter.model}: {one.error}" for one in errors))
    return f"{given} of {len(ballots)} judges came to a score, and {needed} decide: {told}"
