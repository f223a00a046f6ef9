"""`LLMJudgeGrader`: the kind ``llm_judge``, an answer judged by weighted criteria."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, cast

from assay.errors import InputError
from assay.graders.judges.base import text_of
from assay.graders.judges.criteria import Criterion, leaves, read_criteria
from assay.graders.judges.dialogue import Dialogue, DialogueJudge, Spoken
from assay.graders.judges.rubric import judge_criteria, nothing_met, rubric_node
from assay.graders.paths import CasePath
from assay.scoring.json_safe import Json
from assay.scoring.results import SubScore
from assay.types.codec import ShapeError, Share, Within
from assay.types.thread import StringThread


@dataclass(frozen=True, kw_only=True)
class LLMJudgeGrader(DialogueJudge):
    """Weighted criteria, each judged by a model: met, unmet, or a level of a scale.

    An answer without content is worth 0, and no model is asked. A criterion that could not be
    judged makes the score an error unless ``min_coverage`` allows for it; it never counts as unmet.

    Attributes:
        criteria: Requirements, ``(requirement, weight)`` pairs, or mappings with the fields of a
            `Criterion`. Negative weights are faults. Or a mapping that could stand in a file.
        rubric: A file of criteria instead; see `assay.graders.judges.rubric_files`.
        example: Of a file of many rubrics, the id of the one that is meant.
        min_coverage: Share of the weight, in (0, 1], that must have been judged.
        canary: Share of answers, in [0, 1], on which the judge itself is probed.
        openers: Whether the mere beginning of an answer ("Solution:") is worth 0, too.
    """

    name: ClassVar[str] = "LLMJudgeGrader"
    filled_from: ClassVar[Mapping[str, str]] = {"reference": "expected"}

    criteria: object = None
    rubric: CasePath | None = None
    example: str = ""
    min_coverage: Annotated[float, Within(0, 1, above=True)] = 1.0
    canary: Share = 0.02
    openers: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        criteria_of(self.criteria, self.rubric, self.example)

    @classmethod
    async def grade(
        cls,
        weight: float = 1.0,
        name: str | None = None,
        *,
        gate: bool = False,
        **parameters: object,
    ) -> SubScore:
        """As `Grader.grade`; an answer that is not given is an empty one."""
        given = parameters if "thread" in parameters else {"answer": "", **parameters}
        return await super().grade(weight, name, gate=gate, **given)

    async def score(
        self,
        answer: str | None = None,
        question: str = "",
        reference: Json = None,
        thread: StringThread | None = None,
    ) -> SubScore:
        """Judge an answer, or the turns of a conversation.

        Args:
            answer: What is judged; what ends ``thread`` by default.
            question: What was asked for; shown to the judge.
            reference: An answer that is known to be right; shown to the judge.
            thread: The conversation; shown to the judge.

        Raises:
            InputError: For a file of criteria that cannot be read any more.
        """
        # Read for each answer: the file may be another one by now.
        read = criteria_of(self.criteria, self.rubric, self.example)
        models = self.panel.models
        metadata: dict[str, Json] = {"model": models[0], "models": list(models)}

        async def judge(spoken: Spoken) -> SubScore:
            panel, seen = self.looking_at(spoken.pictures)
            found = spoken.unasked(openers=self.openers)
            if found and panel.leaves(found):
                # Also a rubric of faults alone is worth 0: else silence would be paid.
                children = nothing_met(read, found.why)
                return found.node(self.name, {"models": list(models)}, children=children)
            judged = await judge_criteria(read, spoken, panel, canary=self.canary)
            kept = {**metadata, **seen}
            return rubric_node(self.name, judged, kept, min_coverage=self.min_coverage)

        return await self.judged(
            Dialogue.of(answer, question, thread),
            judge,
            metadata,
            reference=text_of(reference),
            questions=sum(1 for _ in leaves(read)),
        )


def criteria_of(criteria: object, rubric: object, example: str) -> tuple[Criterion, ...]:
    """The criteria that are given as an option, or by a file."""
    if rubric is not None:
        if criteria is not None:
            raise InputError("rubric: give 'criteria' or 'rubric', not both")
        return _load(str(rubric), example)
    if example:
        raise InputError("example: picks a rubric from a file, and no file is given")
    if criteria is None:
        raise InputError("criteria: is required", hint="give at least one requirement")
    if isinstance(criteria, Mapping):
        return _in_form(dict(cast("Mapping[str, Json]", criteria)))
    return read_criteria(criteria)


def _in_form(criteria: dict[str, Json]) -> tuple[Criterion, ...]:
    """Criteria in a form that files have: ours, HealthBench's or PaperBench's."""
    from assay.graders.judges.rubric_files import rubric_of

    try:
        return rubric_of(criteria)
    except ShapeError as error:
        first = error.problems[0]
        raise ShapeError([replace(first, path=("criteria", *first.path))]) from None


def _load(file: str, example: str) -> tuple[Criterion, ...]:
    from assay.graders.judges.rubric_files import load_rubric

    try:
        return load_rubric(file, example=example)
    except InputError as error:
        # Where a case is read, only the message is kept, and the place in the case.
        place = f"{error.location}: " if error.location.file else ""
        raise InputError(f"rubric: {place}{error.message}", hint=error.hint) from error
