"""Grade imported rows again, and compare with what was recorded over there.

A criterion that could not be graded for a row is not replayed there: it counts neither as agreeing
nor as disagreeing, and the reason is kept.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.errors import MissingExtraError, SandboxError
from assay.graders.openai.base import OpenAIDefinition
from assay.graders.openai.rewards import FaultError, SubmissionFaultError
from assay.graders.openai.template import TemplateScope, scope_of
from assay.interop.openai_read import RecordedResult, RecordedRow
from assay.interop.openai_suite import Suite, SuiteGrader
from assay.scoring.json_safe import Json
from assay.statistics.agreement import Confusion, agreement
from assay.tasks.rows import read_row

_SAME = 1e-6
"""How far scores of an exact criterion may be apart: what writing them as decimals may cost."""

_AT_ONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDisagreement:
    """One row on which the two do not agree.

    Attributes:
        row: Its id.
        recorded_score: What was recorded.
        recorded_passed: Likewise.
        score: What the replay gave.
        passed: Likewise; None where the criterion does not say what passes.
        why: What was said of the two, where something was.
    """

    row: str
    recorded_score: float | None
    recorded_passed: bool | None
    score: float
    passed: bool | None
    why: str = ""


@dataclass(slots=True, kw_only=True)
class Replay:
    """How a criterion's replay agrees with its recorded results.

    It agrees on a row if the verdict is the same (where both give one) and, unless the criterion
    is only approximate, so is the score.

    Attributes:
        criterion: Its name.
        recorded: Rows that have a result of it.
        agreed: Rows on which the two agree.
        disagreements: The rows on which they do not.
        not_replayed: Reasons why rows could not be graded, with their number.
        kappa: Cohen's kappa of the verdicts; None where there are none or all are alike.
        largest_difference: Of two scores; None where nothing was compared.
    """

    criterion: str
    recorded: int = 0
    agreed: int = 0
    disagreements: list[RowDisagreement] = field(default_factory=list[RowDisagreement])
    not_replayed: Counter[str] = field(default_factory=Counter[str])
    kappa: float | None = None
    largest_difference: float | None = None

    @property
    def replayed(self) -> int:
        """Rows that were compared."""
        return self.agreed + len(self.disagreements)

    def to_dict(self) -> dict[str, Json]:
        """It as plain JSON."""
        return {
            "criterion": self.criterion,
            "recorded": self.recorded,
            "replayed": self.replayed,
            "agreed": self.agreed,
            "kappa": self.kappa,
            "largest_difference": self.largest_difference,
            "not_replayed": dict(self.not_replayed),
            "disagreements": [
                {
                    "row": one.row,
                    "recorded": {"score": one.recorded_score, "passed": one.recorded_passed},
                    "replayed": {"score": one.score, "passed": one.passed},
                    "why": one.why,
                }
                for one in self.disagreements
            ],
        }


@dataclass(frozen=True, slots=True)
class Given:
    """What the replay gave for a row, and what it says of that."""

    score: float
    passed: bool | None
    why: str = ""


async def replay(suite: Suite) -> list[Replay]:
    """Grade every row that has results again.

    Returns:
        One replay for each criterion with recorded results, in the order of the suite.
    """
    pairs: dict[str, list[tuple[RecordedRow, RecordedResult]]] = {}
    for row in suite.rows:
        for result in row.results:
            if (criterion := suite.criterion_of(result.name)) is not None:
                pairs.setdefault(criterion.name, []).append((row, result))
    scopes = {row.id: _scope(row) for row in suite.rows if row.results}
    return [
        await _replayed(criterion, pairs[criterion.name], scopes)
        for criterion in suite.criteria
        if criterion.name in pairs
    ]


def _scope(row: RecordedRow) -> TemplateScope:
    """What `assay grade` makes of the row as it is written."""
    submission = read_row({"id": row.id, **row.data}).submission
    return scope_of(
        answer=submission.answer,
        question=submission.question,
        expected=submission.expected,
        thread=submission.thread,
        metadata=submission.metadata,
    )


async def _replayed(
    criterion: SuiteGrader,
    pairs: Sequence[tuple[RecordedRow, RecordedResult]],
    scopes: Mapping[str, TemplateScope],
) -> Replay:
    found = Replay(criterion=criterion.name, recorded=len(pairs))
    if criterion.definition is None or criterion.fidelity == "needs you":
        found.not_replayed["; ".join(criterion.notes)] = len(pairs)
        return found
    verdicts: list[tuple[bool, bool]] = []
    waiting = iter(pairs)
    while batch := list(itertools.islice(waiting, _AT_ONCE)):
        given = [_graded(criterion.definition, scopes[row.id]) for row, _ in batch]
        outcomes = await asyncio.gather(*given)
        for (row, result), outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, str):
                found.not_replayed[outcome] += 1
                continue
            compare(found, row.id, result, outcome, exact=criterion.fidelity == "exact")
            if outcome.passed is not None and result.passed is not None:
                verdicts.append((outcome.passed, result.passed))
    found.kappa = kappa_of(verdicts)
    return found


def kappa_of(verdicts: Sequence[tuple[bool, bool]]) -> float | None:
    """Cohen's kappa of pairs of verdicts; None where there are none or all are alike."""
    measure = agreement([ours for ours, _ in verdicts], [theirs for _, theirs in verdicts]).measure
    return measure.kappa if isinstance(measure, Confusion) else None


async def _graded(definition: OpenAIDefinition, scope: TemplateScope) -> Given | str:
    """What a row is worth, or why that cannot be said."""
    try:
        reward = await definition.graded(scope)
    except SubmissionFaultError:
        return Given(0.0, passed=False)
    except (FaultError, SandboxError, MissingExtraError) as error:
        return str(error)
    return Given(reward.value, reward.passed)


def compare(found: Replay, row: str, result: RecordedResult, given: Given, *, exact: bool) -> None:
    """Compare what was recorded for a row with what the replay gave, and note it."""
    difference = None if result.score is None else abs(given.score - result.score)
    if difference is not None:
        found.largest_difference = max(found.largest_difference or 0.0, difference)
    compared: list[bool] = []
    if given.passed is not None and result.passed is not None:
        compared.append(given.passed == result.passed)
    if difference is not None and (exact or not compared):
        compared.append(difference <= _SAME)
    if not compared:
        found.not_replayed["neither a score nor a verdict was recorded"] += 1
    elif all(compared):
        found.agreed += 1
    else:
        found.disagreements.append(
            RowDisagreement(
                row=row,
                recorded_score=result.score,
                recorded_passed=result.passed,
                score=given.score,
                passed=given.passed,
                why=given.why,
            )
        )
