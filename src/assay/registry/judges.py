"""Definitions of judges: language models that grade. They are stored and versioned here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, cast

from assay.registry.definition import Definition
from assay.registry.forms import MAX_TEXT_BYTES, blank, refuse, renamed
from assay.scoring.json_safe import Json
from assay.types import codec
from assay.types.codec import Problem, ShapeError

__all__ = ["BinaryJudgeDefinition", "JudgeExample", "Message", "PrebuiltJudgeDefinition"]

_MAX_EXAMPLES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of an example's conversation.

    Attributes:
        role: Who spoke: ``system``, ``user``, ``assistant``, ``tool`` or ``document``.
        content: The text.
    """

    role: str
    content: str

    def __post_init__(self) -> None:
        if not self.role:
            raise ShapeError([Problem(("role",), "the role is empty")])


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeExample:
    """A completion that people judged, shown to the judge. ``passes`` is ``pass`` in JSON.

    Attributes:
        input: The conversation before the completion.
        output: The completion.
        passes: Whether it meets the criterion.
        reasoning: Why.
    """

    input: tuple[Message, ...]
    output: str
    passes: bool
    reasoning: str = ""

    def __post_init__(self) -> None:
        if not self.input:
            raise ShapeError([Problem(("input",), "there are no messages")])


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryJudgeDefinition(Definition):
    """A language model that says whether a criterion is met.

    Attributes:
        criteria: What makes a completion pass, in plain words.
        judge_model: Name of the model.
        examples: Judged completions to learn from.
        system_template: Template of the system prompt; assay's own by default.
        user_template: Template of the user prompt; assay's own by default.
    """

    kind: ClassVar[str] = "binary_judge"

    criteria: str
    judge_model: str
    examples: tuple[JudgeExample, ...] = ()
    system_template: str = ""
    user_template: str = ""

    def __post_init__(self) -> None:
        problems = [*blank("criteria", self.criteria), *blank("judge_model", self.judge_model)]
        for name in ("criteria", "system_template", "user_template"):
            size = len(cast("str", getattr(self, name)).encode("utf-8", "replace"))
            if size > MAX_TEXT_BYTES:
                message = f"{size} bytes; the limit is {MAX_TEXT_BYTES}"
                problems.append(Problem((name,), message))
        if len(self.examples) > _MAX_EXAMPLES:
            message = f"{len(self.examples)} examples; the limit is {_MAX_EXAMPLES}"
            problems.append(Problem(("examples",), message))
        refuse(problems)

    def to_dict(self) -> dict[str, Json]:
        """As every definition; an example's ``passes`` is written ``pass``."""
        written = Definition.to_dict(self)
        if self.examples:
            written["examples"] = [
                renamed(codec.to_json(e), "passes", "pass") for e in self.examples
            ]
        return written


PrebuiltType = Literal["FAITHFULNESS", "CONTEXT_RELEVANCY", "ANSWER_RELEVANCY"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrebuiltJudgeDefinition(Definition):
    """A judge for answers that rest on documents, of a procedure that assay brings.

    Attributes:
        type: ``FAITHFULNESS``, ``CONTEXT_RELEVANCY`` or ``ANSWER_RELEVANCY``.
        judge_model: Name of the model.
    """

    kind: ClassVar[str] = "prebuilt_judge"

    type: PrebuiltType
    judge_model: str

    def __post_init__(self) -> None:
        refuse(blank("judge_model", self.judge_model))
