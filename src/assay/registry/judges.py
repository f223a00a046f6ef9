"""Definitions of judges: language models that grade, and what of them decides a verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, cast

from assay.errors import InputError, nearest
from assay.graders.judges.panel import DEFAULT_MODEL
from assay.graders.spec import GraderSpec
from assay.registry.definition import MAX_TEXT_BYTES, Definition, blank, refuse, renamed
from assay.scoring.json_safe import Json
from assay.types import codec
from assay.types.codec import Problem, ShapeError

if TYPE_CHECKING:
    from assay.graders.binary_judge import BinaryJudge

__all__ = ["PANEL", "BinaryJudgeDefinition", "JudgeExample", "Message", "PrebuiltJudgeDefinition"]

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


PANEL = (
    "repeats",
    "aggregate",
    "quorum",
    "tie",
    "escalate",
    "temperature",
    "max_tokens",
    "timeout_seconds",
)
"""What ``panel`` may say; see `assay.graders.judges.panel.Panel`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryJudgeDefinition(Definition):
    """A language model that says whether a criterion is met.

    Attributes:
        criteria: What makes a completion pass, in plain words.
        judge_model: Name of the model; see `assay.models.reference`. It is always stored, so that
            a version asks the same one when the default becomes another.
        examples: Judged completions to learn from.
        system_template: Template of the system prompt; assay's own by default.
        user_template: Template of the user prompt; assay's own by default.
        template_variables: Variables of one's own for the templates.
        allow_na: Whether the judge may say that the criterion does not apply.
        few_shot: How many of the examples it is shown, at most; 0 to 8.
        panel: How often the model is asked and how votes are counted; keys as in `PANEL`.
    """

    kind: ClassVar[str] = "binary_judge"

    criteria: str
    judge_model: str = DEFAULT_MODEL
    examples: tuple[JudgeExample, ...] = ()
    system_template: str = ""
    user_template: str = ""
    template_variables: Mapping[str, Json] = field(default_factory=dict[str, Json])
    allow_na: bool = False
    few_shot: int = 8
    panel: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def __post_init__(self) -> None:
        problems = [*blank("criteria", self.criteria), *_asked_problems(self)]
        for name in ("criteria", "system_template", "user_template"):
            size = len(cast("str", getattr(self, name)).encode("utf-8", "replace"))
            if size > MAX_TEXT_BYTES:
                message = f"{size} bytes; the limit is {MAX_TEXT_BYTES}"
                problems.append(Problem((name,), message))
        if len(self.examples) > _MAX_EXAMPLES:
            message = f"{len(self.examples)} examples; the limit is {_MAX_EXAMPLES}"
            problems.append(Problem(("examples",), message))
        refuse(problems or _option_problems(self.specs()))

    def to_dict(self) -> dict[str, Json]:
        """As every definition, with the model; an example's ``passes`` is written ``pass``."""
        written = {**Definition.to_dict(self), "judge_model": self.judge_model}
        if self.examples:
            written["examples"] = [
                renamed(codec.to_json(e), "passes", "pass") for e in self.examples
            ]
        return written

    def specs(self) -> tuple[GraderSpec, ...]:
        """The one grader of the kind ``binary_judge``."""
        options = self.to_dict()
        options.pop("panel", None)
        options["model"] = options.pop("judge_model")
        return (GraderSpec(type=self.kind, options={**options, **self.panel}),)

    def warnings(self) -> tuple[str, ...]:
        """What is worth a look in its templates."""
        return self._judge().warnings()

    def preview(self) -> tuple[str, str]:
        """The system and the user prompt that the model gets, about a sample."""
        return self._judge().preview()

    def _judge(self) -> BinaryJudge:
        from assay.graders.binary_judge import judge_of

        return judge_of(self.specs()[0].options)


PREBUILT = ("FAITHFULNESS", "CONTEXT_RELEVANCY", "ANSWER_RELEVANCY")
"""The procedures that assay brings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrebuiltJudgeDefinition(Definition):
    """A judge for answers that rest on documents, of a procedure that assay brings.

    Attributes:
        type: ``FAITHFULNESS``, ``CONTEXT_RELEVANCY`` or ``ANSWER_RELEVANCY``.
        judge_model: As of a `BinaryJudgeDefinition`.
        panel: As of a `BinaryJudgeDefinition`.
    """

    kind: ClassVar[str] = "prebuilt_judge"

    type: str
    judge_model: str = DEFAULT_MODEL
    panel: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def __post_init__(self) -> None:
        if self.type not in PREBUILT:
            hint = nearest(self.type[:100].upper(), list(PREBUILT))
            message = f"there is no prebuilt judge {self.type!r:.100}"
            raise ShapeError([Problem(("type",), message, hint)])
        refuse(list(_asked_problems(self)))

    def to_dict(self) -> dict[str, Json]:
        """As every definition, with the model."""
        return {**Definition.to_dict(self), "judge_model": self.judge_model}

    def specs(self) -> tuple[GraderSpec, ...]:
        """The one grader: ``faithfulness``, ``context_relevancy`` or ``answer_relevancy``."""
        options = {"model": self.judge_model, **self.panel}
        return (GraderSpec(type=self.type.lower(), options=options),)


def _asked_problems(
    definition: BinaryJudgeDefinition | PrebuiltJudgeDefinition,
) -> Iterator[Problem]:
    """What is wrong with whom a judge asks, and how."""
    from assay.graders.judges.base import JudgeGrader, panel_of
    from assay.models import parse_reference

    if not definition.judge_model.strip():
        yield from blank("judge_model", definition.judge_model)
        return
    try:
        parse_reference(definition.judge_model)
    except InputError as error:
        yield Problem(("judge_model",), error.message, error.hint)
        return
    for name in definition.panel:
        if name not in PANEL:
            hint = nearest(name, list(PANEL))
            yield Problem(("panel", name), f"a panel has no {name!r:.60}", hint, at_key=True)
            return
    wrong: list[Problem] = []
    known, _ = JudgeGrader.parameters()
    for name, value in definition.panel.items():
        codec.read(known[name].annotation, value, ("panel", name), wrong)
    yield from wrong
    if not wrong:
        try:
            panel_of({"model": definition.judge_model, **definition.panel})
        except InputError as error:
            yield Problem(("panel",), error.message, error.hint)


def _option_problems(specs: tuple[GraderSpec, ...]) -> list[Problem]:
    """What the grader itself would refuse, so that nothing is stored that cannot run."""
    from assay.graders.binary_judge import judge_of

    try:
        judge_of(specs[0].options)
    except InputError as error:
        said = re.match(r"(\w+)(: )?", error.message)
        if said is None or said[1] not in specs[0].options:
            return [Problem((), error.message, error.hint)]
        message = error.message[said.end() :] if said[2] else error.message
        return [Problem((said[1],), message, error.hint)]
    return []
