"""``string_check`` and ``text_similarity``: whether two texts are equal, or how alike they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, cast

from assay.errors import InputError
from assay.graders.openai.base import OpenAIDefinition, OpenAIGrader, PassingDefinition, template_of
from assay.graders.openai.rewards import FaultError, GivenReward, SubmissionFaultError
from assay.graders.openai.template import TemplateScope
from assay.text.likeness import MAX_CHARACTERS, MAX_FUZZY_CHARACTERS, Metric, similarity


@dataclass(frozen=True, slots=True, kw_only=True)
class StringCheck(OpenAIDefinition):
    """Compares two texts as they are: nothing is trimmed, and there are no wildcards.

    Attributes:
        input: A template.
        reference: A template.
        operation: ``eq``: they are equal; ``ne`` (or ``neq``): they are not; ``like``: the input
            contains the reference; ``ilike``: it does when case does not count.
        name: What it is called.
    """

    TAG: ClassVar[str] = "string_check"

    input: str
    reference: str
    operation: Literal["eq", "ne", "neq", "like", "ilike"]
    name: str = ""

    def __post_init__(self) -> None:
        template_of("input", self.input)
        template_of("reference", self.reference)

    async def reward(self, scope: TemplateScope) -> GivenReward:
        """1.0 or 0.0; flagged where any input would contain an empty reference."""
        text = template_of("input", self.input).render(scope)
        wanted = template_of("reference", self.reference).render(scope)
        holds = _holds(self.operation, text, wanted)
        empty = self.operation in ("like", "ilike") and not wanted
        return GivenReward(
            value=float(holds),
            passed=holds,
            details={"input": text, "reference": wanted, "operation": self.operation},
            flags=("empty_reference",) if empty else (),
        )


def _holds(operation: str, text: str, wanted: str) -> bool:
    if operation == "eq":
        return text == wanted
    if operation == "like":
        return wanted in text
    if operation == "ilike":
        return wanted.casefold() in text.casefold()
    return text != wanted


class StringCheckGrader(OpenAIGrader):
    """Two texts are equal, or one contains the other (OpenAI's ``string_check``)."""

    name: ClassVar[str] = "string_check"
    definition: ClassVar[type[OpenAIDefinition]] = StringCheck


_LONG = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSimilarity(PassingDefinition):
    """Compares the wording of two texts (see `assay.text.likeness`).

    Attributes:
        input: A template.
        reference: A template.
        evaluation_metric: ``fuzzy_match``, ``bleu``, ``gleu``, ``meteor``, ``rouge_1`` to
            ``rouge_5`` or ``rouge_l``; ``cosine`` needs embeddings and cannot be computed yet.
        pass_threshold: Similarity from which it passes.
        pass_fail: Whether it is worth 1 where it passes and 0 where it does not; its reward stays
            in the evidence.
        name: What it is called.
    """

    TAG: ClassVar[str] = "text_similarity"

    input: str
    reference: str
    evaluation_metric: Literal[
        "fuzzy_match",
        "bleu",
        "gleu",
        "meteor",
        "rouge_1",
        "rouge_2",
        "rouge_3",
        "rouge_4",
        "rouge_5",
        "rouge_l",
        "cosine",
    ]
    pass_threshold: float | None = None
    pass_fail: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        template_of("input", self.input)
        template_of("reference", self.reference)
        self.check_threshold()

    async def reward(self, scope: TemplateScope) -> GivenReward:
        """The similarity, from 0.0 to 1.0."""
        if self.evaluation_metric == "cosine":
            raise FaultError(
                "cosine needs an embedding model, which this version does not have",
                flag="model_grader_server_error",
            )
        fuzzy = self.evaluation_metric == "fuzzy_match"
        longest = MAX_FUZZY_CHARACTERS if fuzzy else MAX_CHARACTERS
        texts = [self._side(name, longest, scope) for name in ("input", "reference")]
        metric = "fuzzy" if fuzzy else cast("Metric", self.evaluation_metric)
        try:
            if max(map(len, texts)) > _LONG:  # which may take seconds
                import asyncio

                value = await asyncio.to_thread(similarity, *texts, metric=metric)
            else:
                value = similarity(*texts, metric=metric)
        except InputError as error:
            raise FaultError(error.message, flag="other_error") from error
        return GivenReward(
            value=value,
            passed=self.passed(value),
            details={
                "input": texts[0],
                "reference": texts[1],
                "evaluation_metric": self.evaluation_metric,
            },
        )

    def _side(self, field: str, longest: int, scope: TemplateScope) -> str:
        """One of the texts; whose fault it is that it is too long decides what that costs."""
        template = template_of(field, self.input if field == "input" else self.reference)
        text = template.render(scope)
        if len(text) > longest:
            fault = SubmissionFaultError if template.is_by_the_model else FaultError
            message = f"{field} is longer than the {longest:,} characters of"
            message = f"{message} {self.evaluation_metric}"
            raise fault(message, flag="other_error", outcome="too_long")
        return text


class TextSimilarityGrader(OpenAIGrader):
    """How alike two texts read (OpenAI's ``text_similarity``)."""

    name: ClassVar[str] = "text_similarity"
    definition: ClassVar[type[OpenAIDefinition]] = TextSimilarity
