"""`Panel`: who is asked a question and how often, and `Voter`: how one of them is asked.

A vote that could not be had, read or believed is an error and no number.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeAlias, TypeVar, cast

from assay.conversation.messages import Reply, Request
from assay.errors import InputError, ModelError
from assay.graders.judges.fence import Prompt
from assay.graders.judges.gate import Unasked
from assay.graders.judges.pictures import Shown, require_sight, with_pictures
from assay.models import current_client
from assay.scoring.json_safe import Json, noted
from assay.scoring.results import SubScore

_T = TypeVar("_T")

DEFAULT_MODEL = "claude-haiku-4-5"
MAX_CALLS = 512
"""Most questions of one voter about one sample: what it costs is bounded, whatever is graded."""

TEXT: Json = {"type": "string"}

Aggregate: TypeAlias = Literal["majority", "mean", "median", "min"]
Tie: TypeAlias = Literal["fail", "na", "error"]


class RefutedError(Exception):
    """What a judge says is well-formed, and refuted by what can be checked."""

    def __init__(self, complaint: str) -> None:
        super().__init__(complaint)
        self.complaint = complaint


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one voter says."""

    # The verdict: ``MET``, ``PASS``, ``B``, the name of a level; "" where it is a number.
    word: str = ""
    # What that is worth, in [0, 1]; None where the question does not apply.
    value: float | None = None
    reason: str = ""
    evidence: tuple[str, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict[str, Json])
    children: tuple[SubScore, ...] = ()


@dataclass(frozen=True, slots=True)
class Form(Generic[_T]):
    """What shape a reply has and what it says."""

    name: str
    # JSON Schema; evidence and reasoning before the verdict, so that it rests on them. One object
    # for all questions of a kind.
    schema: Mapping[str, Json]
    # What a reply of that shape says; raises `RefutedError` where it is not believed, which gives
    # the model one chance to fix it.
    read: Callable[[Mapping[str, Json]], _T]


def object_schema(**properties: Json) -> dict[str, Json]:
    """The JSON Schema of an object that has these properties in this order, and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list[Json](properties),
        "additionalProperties": False,
    }


def list_schema(name: str, **properties: Json) -> dict[str, Json]:
    """The JSON Schema of an object with one list, of objects that have these properties."""
    items: Json = {"type": "array", "items": object_schema(**properties)}
    return object_schema(**{name: items})


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Who is asked, and how votes are counted."""

    models: tuple[str, ...] = (DEFAULT_MODEL,)
    repeats: int = 1
    # ``majority`` of the words, or ``mean``, ``median`` or ``min`` of the values. It is taken over
    # the votes, as quorum and agreement are: a model's repeats count as votes of their own. A mean
    # has no bound under one broken judge; a median has. ``min`` is what speaks most against the
    # answer: of a fault, the highest value.
    aggregate: Aggregate = "majority"
    # Fewest votes that decide; more than half of those asked by default (0).
    quorum: int = 0
    tie: Tie = "fail"
    # A model that decides alone where the votes disagree; none by default. With a cheap model in
    # ``models`` this is a cascade.
    escalate: str = ""
    temperature: float | None = 0.0
    max_tokens: int = 4096
    timeout_seconds: float = 180.0
    # What is shown with every question.
    pictures: tuple[Shown, ...] = ()
    # How many more there are, which are not.
    unshown: int = 0

    def __post_init__(self) -> None:
        if not self.models or not all(model.strip() for model in self.models):
            raise InputError("models: a judge needs a model", hint=f"such as {DEFAULT_MODEL}")
        if len(set(self.models)) < len(self.models):
            raise InputError("models: the same model twice", hint="use repeats to ask one again")
        if self.escalate in self.models:
            raise InputError("escalate: must be a model that has not voted yet")
        if not 1 <= self.repeats <= 100:
            raise InputError(f"repeats must be in 1..100, got {self.repeats}")
        if not 0 <= self.quorum <= self.asked:
            raise InputError(f"quorum must be in 1..{self.asked}, got {self.quorum}")
        if self.aggregate not in ("majority", "mean", "median", "min"):
            names = "majority, mean, median, min"
            raise InputError(f"aggregate: {self.aggregate!r} must be one of {names}")
        if self.tie not in ("fail", "na", "error"):
            raise InputError(f"tie: {self.tie!r} must be one of fail, na, error")
        temperature = self.temperature
        if temperature is not None and not 0.0 <= temperature <= 2.0:
            raise InputError(f"temperature must be in 0..2, or null, got {temperature}")
        if not (math.isfinite(self.timeout_seconds) and self.timeout_seconds > 0):
            raise InputError(f"timeout_seconds must be more than 0, got {self.timeout_seconds}")
        if self.max_tokens < 1:
            raise InputError(f"max_tokens must be 1 or more, got {self.max_tokens}")

    @property
    def asked(self) -> int:
        """How many votes are asked for."""
        return len(self.models) * self.repeats

    def leaves(self, found: Unasked) -> bool:
        """Whether an answer is worth nothing unasked: one in a picture needs no words."""
        return found.is_overlong or not self.is_shown_answer

    @property
    def is_shown_answer(self) -> bool:
        """Whether a picture is a part of what is judged."""
        return any(one.is_own for one in self.pictures)

    @property
    def needed(self) -> int:
        """How many votes decide."""
        return self.quorum or self.asked // 2 + 1


@dataclass(frozen=True, slots=True)
class JudgeCall:
    """One question to a model: its name, and the reply or why there is none."""

    name: str
    reply: Reply | None = None
    error: ModelError | None = None

    def to_dict(self) -> dict[str, Json]:
        """What of it is written down."""
        kept: dict[str, Json] = {"asked": self.name}
        if self.error is not None:
            kept.update({"error": str(self.error), "error_kind": self.error.kind})
        return kept if self.reply is None else {**kept, **_record(self.reply)}


@dataclass(slots=True)
class Voter:
    """One asking of one model, which may take several calls."""

    panel: Panel
    model: str
    repeat: int = 0
    calls: list[JudgeCall] = field(default_factory=list[JudgeCall])

    async def ask(self, prompt: Prompt, form: Form[_T]) -> _T:
        """Ask one question."""
        self.plan(1)
        if self.panel.pictures:
            await require_sight(self.model)
        place, found = len(self.calls), list[_T]()
        self.calls.append(JudgeCall(form.name))

        def check(data: Json) -> str:
            found.clear()
            try:
                found.append(form.read(cast("Mapping[str, Json]", data)))
            except RefutedError as error:
                return error.complaint
            return ""

        try:
            reply = await current_client().ask(self._request(prompt, form), check)
        except ModelError as error:
            self.calls[place] = JudgeCall(form.name, error=error)
            raise
        self.calls[place] = JudgeCall(form.name, reply)
        return found[0]

    def plan(self, questions: int) -> None:
        """Refuse to ask more questions than one sample may cost, before any of them is asked."""
        if len(self.calls) + questions > MAX_CALLS:
            raise ModelError(
                f"this takes {len(self.calls) + questions} questions to one judge, or more; "
                f"at most {MAX_CALLS} are asked about a sample",
                kind="overflow",
                hint="give fewer documents, a smaller max_claims, or a larger max_tokens",
            )

    def _request(self, prompt: Prompt, form: Form[_T]) -> Request:
        return Request(
            model=self.model,
            messages=with_pictures(prompt.messages, self.panel.pictures, self.panel.unshown),
            schema=form.schema,
            schema_name=form.name,
            max_tokens=self.panel.max_tokens,
            temperature=self.panel.temperature,
            repeat=self.repeat,
            volatile=prompt.volatile,
            timeout_seconds=self.panel.timeout_seconds,
        )


Judge: TypeAlias = Callable[[Voter], Awaitable[Opinion]]
"""What each voter of a panel does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """What one voter came to."""

    model: str
    repeat: int = 0
    opinion: Opinion | None = None
    error: ModelError | None = None
    calls: tuple[JudgeCall, ...] = ()

    @classmethod
    async def of(cls, voter: Voter, judge: Judge) -> Vote:
        """Have a voter vote."""
        opinion, failed = None, None
        try:
            opinion = await judge(voter)
        except ModelError as error:
            failed = error
        return cls(
            model=voter.model,
            repeat=voter.repeat,
            opinion=opinion,
            error=failed,
            calls=tuple(voter.calls),
        )

    def to_dict(self, *, in_steps: bool = False) -> dict[str, Json]:
        """What is kept of it: what was said, and everything needed to find the calls again."""
        kept: dict[str, Json] = {"model": self.model, **noted(repeat=self.repeat)}
        if self.opinion is not None:
            kept.update(self._said(in_steps=in_steps))
        if self.error is not None:
            kept.update({"error": str(self.error), "error_kind": self.error.kind})
        if in_steps:
            kept["calls"] = self.calls_to_list()
        elif self.calls and (reply := self.calls[-1].reply) is not None:
            kept.update(_record(reply))
        return kept

    def _said(self, *, in_steps: bool) -> dict[str, Json]:
        said = self.opinion
        if said is None:
            return {}
        if in_steps:
            return {"value": said.value, **said.metadata}
        told: dict[str, Json] = {"value": said.value, "reason": said.reason}
        return {**noted(verdict=said.word), **told, **noted(evidence=list(said.evidence))}

    def calls_to_list(self) -> list[Json]:
        """The calls as plain JSON."""
        return [call.to_dict() for call in self.calls]


async def together(calls: Iterable[Awaitable[_T]]) -> list[_T]:
    """Await all calls, then raise the first error: none is left to run, and to cost, alone."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return cast("list[_T]", results)


def _record(reply: Reply) -> dict[str, Json]:
    usage = reply.usage
    kept: dict[str, Json] = {"served": reply.model, "request": reply.digest, "rung": reply.rung}
    if usage.input_tokens is not None or usage.output_tokens is not None:
        kept["tokens"] = [usage.input_tokens, usage.output_tokens]
    kept["cost_usd"] = reply.cost_usd
    return kept | noted(
        from_cache=reply.is_hit,
        repairs=reply.repairs,
        tries=[[a.reason, a.status, round(a.waited, 3)] for a in reply.attempts],
        dropped=list(reply.dropped),
        fingerprint=reply.fingerprint,
    )
