"""``score_model`` and ``label_model``: what is asked of a judge, and what its reply is worth.

`prompt` renders what to ask (`assay.graders.openai.messages`), `verdict` reads what comes back, and
`reward` asks in between.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Literal, TypeAlias

from assay.conversation.messages import Reply, Request
from assay.errors import InputError, ModelError, ModelFault
from assay.graders.judges.fence import Prompt
from assay.graders.judges.gate import emptiness
from assay.graders.judges.panel import TEXT, object_schema
from assay.graders.openai.base import (
    OpenAIDefinition,
    OpenAIGrader,
    Ranged,
    template_of,
    wrong,
)
from assay.graders.openai.messages import Fences, JudgeMessage, described, reference_of
from assay.graders.openai.rewards import FaultError, Flag, GivenReward, SubmissionFaultError
from assay.graders.openai.template import TemplateScope
from assay.models import current_client
from assay.scoring.json_safe import Json
from assay.scoring.results import Assurance
from assay.scoring.strict_json import NotJsonError, decode_json

__all__ = [
    "Fence",
    "JudgeMessage",
    "LabelModel",
    "LabelModelGrader",
    "ModelDefinition",
    "SamplingParams",
    "ScoreModel",
    "ScoreModelGrader",
]

Fence: TypeAlias = "bool | Literal['all']"
"""What of a prompt stands in fences: true, what the model said; ``all``, the row's fields as well;
false, nothing, as over there."""

_SAID = ("output_text", "output_json", "choices")
_STEPS: Json = {"type": "array", "items": object_schema(description=TEXT, conclusion=TEXT)}

_FLAGS: Mapping[ModelFault, Flag] = {
    "refused": "model_grader_refusal_error",
    "truncated": "model_grader_parse_error",
    "unreadable": "model_grader_parse_error",
    "unbelievable": "model_grader_parse_error",
}
"""Anything else is an error of the server's: also that it has no time for us, or no room."""

_MOST_TOKENS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How the judge samples, by OpenAI's names."""

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    max_completions_tokens: int | None = None
    max_completion_tokens: int | None = None


class ModelDefinition(OpenAIDefinition):
    """A grader that asks a model."""

    __slots__ = ()

    model: str
    input: tuple[JudgeMessage, ...]
    sampling_params: SamplingParams | None
    fence: Fence

    @property
    def assurance(self) -> Assurance:
        """A model's word."""
        return "model"

    @property
    def response_format(self) -> dict[str, Json]:
        """The JSON Schema that the reply has to have."""
        raise NotImplementedError

    def verdict(self, reply: str) -> GivenReward:
        """What a judge's reply is worth."""
        raise NotImplementedError

    def prompt(self, scope: TemplateScope) -> Prompt:
        """What to ask about a sample."""
        fences = Fences(of_items=self.fence == "all") if self.fence else None
        messages = [message.render(scope, fences) for message in self.input]
        if fences is not None and fences.names:
            messages.insert(0, fences.explained())
        return Prompt(tuple(messages), tuple(fences.names) if fences is not None else ())

    async def reward(self, scope: TemplateScope) -> GivenReward:
        """Ask the judge.

        Nobody is asked about a sample whose text is shown to the judge and has no content. That is
        the grader's lowest reward; of a formula it is the whole, so that it saves no penalty.
        """
        prompt = self.prompt(scope)
        if self._shows_text and (why := _silence(scope)):
            details = {"model": self.model, "asked": False, "why": why}
            raise SubmissionFaultError(
                why, flag="sample_parse_error", outcome="empty", details=details
            )
        reply = await self._ask(prompt)
        found = self.verdict(json.dumps(reply.data))
        return replace(found, details={**found.details, **described(reply)})

    async def _ask(self, prompt: Prompt) -> Reply:
        sampling = self.sampling_params or SamplingParams()
        limit = sampling.max_completions_tokens or sampling.max_completion_tokens
        try:
            return await current_client().ask(
                Request(
                    model=reference_of(self.model),
                    messages=prompt.messages,
                    schema=self.response_format,
                    schema_name="grade",
                    max_tokens=limit or _MOST_TOKENS,
                    temperature=sampling.temperature,
                    top_p=sampling.top_p,
                    seed=sampling.seed,
                    reasoning_effort=sampling.reasoning_effort,
                    volatile=prompt.volatile,
                )
            )
        except ModelError as error:
            flag = _FLAGS.get(error.kind, "model_grader_server_error")
            details = {"model": self.model, "error_kind": error.kind, "status": error.status}
            raise FaultError(str(error), flag=flag, outcome=error.kind, details=details) from error
        except InputError as error:
            raise FaultError(str(error), flag="model_grader_server_error") from error

    @property
    def _shows_text(self) -> bool:
        """Whether the judge is shown what the model said, and not the row alone."""
        texts = [part.get("text") for message in self.input for part in message.parts()]
        return any(
            reference.namespace == "sample" and (not reference.steps or reference.steps[0] in _SAID)
            for text in texts
            if isinstance(text, str)
            for reference in template_of("content", text).references
        )


def _silence(scope: TemplateScope) -> str:
    """Why a sample has no content, or ""; a tool call and a sound are some."""
    said = scope.sample.get("output_text")
    if not isinstance(said, str) or scope.sample.get("output_tools"):
        return ""
    return "" if scope.sample.get("output_audio") else emptiness(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreModel(Ranged, ModelDefinition):
    """A number from a judge model (OpenAI's ``score_model``).

    Attributes:
        input: What it is asked, as messages of templates.
        model: Which model.
        range: The scale, ``[0, 1]`` by default; what the judge says beyond it is cut to it.
        pass_threshold: Number from which it passes.
        sampling_params: How the judge samples.
        fence: What stands in fences; see `Fence`.
        pass_fail: Whether it is worth 1 where it passes and 0 where it does not; its reward stays
            in the evidence.
        name: What it is called.
    """

    TAG: ClassVar[str] = "score_model"

    input: tuple[JudgeMessage, ...]
    model: str
    range: tuple[float, ...] | None = None
    pass_threshold: float | None = None
    pass_fail: bool = False
    sampling_params: SamplingParams | None = None
    fence: Fence = True
    name: str = ""

    def __post_init__(self) -> None:
        _check_asked(self.input, self.model)
        _check_fenced(self.input, self.fence)
        self.check_scale()

    @property
    def response_format(self) -> dict[str, Json]:
        """Steps, then ``result``, a number."""
        return _format()

    def verdict(self, reply: str) -> GivenReward:
        """The number in ``result``, cut to the range."""
        result = _result(reply)
        if isinstance(result, bool) or not isinstance(result, int | float):
            raise _unreadable("the judge's result is not a number")
        try:
            given = float(result)
        except OverflowError as error:
            raise _unreadable("the judge's result is a number beyond all scales") from error
        if not math.isfinite(given):
            raise _unreadable("the judge's result is not finite")
        lowest, highest = self.bounds
        value = min(max(given, lowest), highest) + 0.0  # -0.0 is 0.0
        return GivenReward(
            value=value,
            passed=self.passed(value),
            details={"reply": reply, "model": self.model},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelModel(ModelDefinition):
    """A label from a judge model, right or wrong (OpenAI's ``label_model``).

    Attributes:
        input: What it is asked, as messages of templates.
        model: Which model.
        labels: What it may answer.
        passing_labels: Which of them are worth 1; the others are worth 0.
        sampling_params: How the judge samples.
        fence: What stands in fences; see `Fence`.
        name: What it is called.
    """

    TAG: ClassVar[str] = "label_model"

    input: tuple[JudgeMessage, ...]
    model: str
    labels: tuple[str, ...]
    passing_labels: tuple[str, ...]
    sampling_params: SamplingParams | None = None
    fence: Fence = True
    name: str = ""

    def __post_init__(self) -> None:
        _check_asked(self.input, self.model)
        _check_fenced(self.input, self.fence)
        if len(set(self.labels)) < len(self.labels) or not self.labels:
            raise wrong("labels", "must be different, and at least one")
        strange = [label for label in self.passing_labels if label not in self.labels]
        if strange or not self.passing_labels:
            listed = f"{strange[0]!r} is not one of labels" if strange else "is empty"
            raise wrong("passing_labels", listed, "some of " + ", ".join(self.labels))

    @property
    def response_format(self) -> dict[str, Json]:
        """Steps, then ``result``, one of the labels."""
        return _format(self.labels)

    def verdict(self, reply: str) -> GivenReward:
        """1.0 for a passing label, 0.0 for another one."""
        result = _result(reply)
        if result not in self.labels:
            raise _unreadable("the judge's result is not one of the labels")
        passed = result in self.passing_labels
        details = {"reply": reply, "model": self.model, "label": result}
        return GivenReward(value=float(passed), passed=passed, details=details)


def _check_asked(messages: Sequence[JudgeMessage], model: str) -> None:
    if not messages:
        raise wrong("input", "has no message")
    if not model.strip():
        raise wrong("model", "is empty")


def _check_fenced(messages: Sequence[JudgeMessage], fence: Fence) -> None:
    """Where rows stand in fences, too, they choose no image either."""
    if fence == "all":
        for message in messages:
            message.check_unchosen("item")


@lru_cache(maxsize=256)
def _format(labels: tuple[str, ...] = ()) -> dict[str, Json]:
    """One object for each set of labels: what is compiled from it is kept by the object."""
    result: Json = {"type": "string", "enum": list[Json](labels)} if labels else {"type": "number"}
    return object_schema(steps=_STEPS, result=result)


def _unreadable(message: str) -> FaultError:
    return FaultError(message, flag="model_grader_parse_error", outcome="unreadable")


def _result(reply: str) -> Json:
    try:
        data = decode_json(reply)
    except NotJsonError as error:
        raise _unreadable("the judge's reply is not JSON") from error
    if not isinstance(data, dict) or "result" not in data:
        raise _unreadable("the judge's reply has no result")
    return data["result"]


class _ModelGrader(OpenAIGrader):
    """What asks a judge model."""

    waits: ClassVar[bool] = True
    most_at_once: ClassVar[int] = 256

    @classmethod
    def models_of(cls, options: Mapping[str, Json]) -> Sequence[str]:
        """That of the definition."""
        return (reference_of(str(options["model"])),)


class ScoreModelGrader(_ModelGrader):
    """A number from a judge model (OpenAI's ``score_model``)."""

    name: ClassVar[str] = "score_model"
    definition: ClassVar[type[OpenAIDefinition]] = ScoreModel


class LabelModelGrader(_ModelGrader):
    """A label from a judge model, right or wrong (OpenAI's ``label_model``)."""

    name: ClassVar[str] = "label_model"
    definition: ClassVar[type[OpenAIDefinition]] = LabelModel
