"""`Panel`: who is asked a question and how often, and how their votes make one decision.

A vote that could not be had, read or believed is an error and no number. A decision needs a quorum
of votes, so that a panel does not quietly shrink to those who answered.
"""

from __future__ import annotations

import asyncio
import math
import statistics
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, TypeVar, cast

from assay.errors import InputError, ModelError
from assay.graders.judges.prompt import Prompt
from assay.models import current_client
from assay.models.messages import Reply, Request
from assay.scoring.json_safe import Json

__all__ = [
    "DEFAULT_MODEL",
    "FAR_APART",
    "Decision",
    "Form",
    "Opinion",
    "Panel",
    "RefutedError",
    "Vote",
    "poll",
    "together",
]

_T = TypeVar("_T")

DEFAULT_MODEL = "claude-haiku-4-5"
Aggregate: TypeAlias = Literal["majority", "mean", "median", "min"]
Tie: TypeAlias = Literal["fail", "na", "error"]

FAR_APART = 0.25
"""Scores whose range is more than this disagree."""


class RefutedError(Exception):
    """What a judge says is well-formed, and refuted by what can be checked.

    Attributes:
        complaint: What is wrong, for the judge to mend.
    """

    def __init__(self, complaint: str) -> None:
        super().__init__(complaint)
        self.complaint = complaint


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one reply says.

    Attributes:
        word: The verdict: ``MET``, ``PASS``, ``B``, the name of a level; "" where it is a number.
        value: What that is worth, in [0, 1]; None where the question does not apply.
        reason: Why.
        evidence: Quotes.
    """

    word: str
    value: float | None
    reason: str = ""
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Form:
    """What shape a reply has and what it says.

    Attributes:
        name: Of the schema, for providers.
        schema: JSON Schema; evidence and reasoning before the verdict, so that it rests on them.
        read: The opinion in a reply that has the shape.
        is_fault: Whether a high value speaks against what is judged, and not for it.

    ``read`` raises `RefutedError` for an opinion that is not believed.
    """

    name: str
    schema: Mapping[str, Json]
    read: Callable[[Mapping[str, Json]], Opinion]
    is_fault: bool = False

    def against(self, opinions: Iterable[Opinion]) -> Opinion:
        """Of opinions that have a value, the one that speaks most against what is judged."""
        return (max if self.is_fault else min)(opinions, key=lambda one: one.value or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Who is asked, and how votes are counted.

    Attributes:
        models: Model references; each is asked.
        repeats: How often each is asked. The repeats are apart in the cache.
        aggregate: ``majority`` of the words, or ``mean``, ``median`` or ``min`` of the values.
            A mean has no bound under one broken judge; a median has. ``min`` is what speaks most
            against the answer: of a fault (a `Form` that says so), the highest value.
        quorum: Fewest votes that decide; more than half of those asked by default (0).
        tie: What an even split of words is: ``fail`` (that which speaks most against the answer),
            ``na`` (does not apply) or ``error``.
        escalate: A model that decides alone where the votes disagree; none by default. With a
            cheap model in ``models`` this is a cascade.
        temperature: As in a request.
        max_tokens: Likewise; judges that reason need room.
        timeout_seconds: For one vote, all tries together.

    Raises:
        InputError: For a panel of nobody, the same model twice, or numbers out of range.
    """

    models: tuple[str, ...] = (DEFAULT_MODEL,)
    repeats: int = 1
    aggregate: Aggregate = "majority"
    quorum: int = 0
    tie: Tie = "fail"
    escalate: str = ""
    temperature: float | None = 0.0
    max_tokens: int = 4096
    timeout_seconds: float = 180.0

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
            raise InputError(
                f"aggregate: {self.aggregate!r} is none of majority, mean, median, min"
            )
        if self.tie not in ("fail", "na", "error"):
            raise InputError(f"tie: {self.tie!r} is none of fail, na, error")
        temperature = self.temperature
        if temperature is not None and not 0.0 <= temperature <= 2.0:
            raise InputError(f"temperature must be in 0..2, or null, got {temperature}")
        if not (math.isfinite(self.timeout_seconds) and self.timeout_seconds > 0):
            raise InputError(f"timeout_seconds must be more than 0, got {self.timeout_seconds}")
        if self.max_tokens < 1:
            raise InputError(f"max_tokens must be 1 or more, got {self.max_tokens}")

    def request(
        self, prompt: Prompt, name: str, schema: Mapping[str, Json], *, model: str, repeat: int
    ) -> Request:
        """One asking of one of its models, with the panel's limits.

        Args:
            prompt: The question.
            name: What providers are told the schema is called.
            schema: JSON Schema of the reply.
            model: Whom to ask.
            repeat: Which asking, from 0.
        """
        return Request(
            model=model,
            messages=prompt.messages,
            schema=schema,
            schema_name=name,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            repeat=repeat,
            volatile=prompt.volatile,
            timeout_seconds=self.timeout_seconds,
        )

    @property
    def asked(self) -> int:
        """How many votes are asked for."""
        return len(self.models) * self.repeats

    @property
    def needed(self) -> int:
        """How many votes decide."""
        return self.quorum or self.asked // 2 + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One model's answer to one asking.

    Attributes:
        model: Whom.
        repeat: Which asking, from 0.
        opinion: What it says; None where it could not be had.
        error: Why not.
        reply: How it was had.
    """

    model: str
    repeat: int = 0
    opinion: Opinion | None = None
    error: ModelError | None = None
    reply: Reply | None = None

    def to_dict(self) -> dict[str, Json]:
        """What is kept of it: what was said, and everything needed to find the call again."""
        kept: dict[str, Json] = {"model": self.model}
        if self.repeat:
            kept["repeat"] = self.repeat
        if self.opinion is not None:
            if self.opinion.word:
                kept["verdict"] = self.opinion.word
            kept["value"] = self.opinion.value
            kept["reason"] = self.opinion.reason
            if self.opinion.evidence:
                kept["evidence"] = list(self.opinion.evidence)
        if self.error is not None:
            kept["error"] = str(self.error)
            kept["error_kind"] = self.error.kind
        if self.reply is not None:
            kept.update(_record(self.reply))
        return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a panel decided.

    Attributes:
        word: As in `Opinion`.
        value: In [0, 1]; None where the question does not apply, or there is an error.
        reason: Of a vote that agrees with the decision.
        evidence: Likewise.
        agreement: Share of the votes that say the same, in [0, 1]; None without votes.
        votes: All of them.
        error: Why nothing was decided; None where something was.
    """

    word: str = ""
    value: float | None = None
    reason: str = ""
    evidence: tuple[str, ...] = ()
    agreement: float | None = None
    votes: tuple[Vote, ...] = ()
    error: ModelError | None = None

    def told(self) -> list[Json]:
        """The votes as plain JSON."""
        return [vote.to_dict() for vote in self.votes]


async def together(calls: Iterable[Awaitable[_T]]) -> list[_T]:
    """Await all calls, then raise the first error: none is left to run, and to cost, alone."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return cast("list[_T]", results)


async def poll(prompt: Prompt, form: Form, panel: Panel) -> Decision:
    """Ask a panel one question.

    Args:
        prompt: The question.
        form: What shape an answer has.
        panel: Who is asked.

    Returns:
        The decision; its ``error`` says why there is none.
    """
    if panel.asked == 1:
        votes = [await _ask(prompt, form, panel, panel.models[0], 0)]
    else:
        calls = (
            _ask(prompt, form, panel, model, repeat)
            for model in panel.models
            for repeat in range(panel.repeats)
        )
        votes = await together(calls)
    decision = _decide(votes, form, panel)
    if panel.escalate and _is_doubtful(votes):
        final = await _ask(prompt, form, panel, panel.escalate, 0)
        alone = replace(panel, models=(panel.escalate,), repeats=1, quorum=0, escalate="")
        return replace(
            _decide([final], form, alone), votes=(*votes, final), agreement=decision.agreement
        )
    return decision


@dataclass(slots=True)
class _Reading:
    """Reads a reply while it is checked, so that it is not read twice."""

    form: Form
    opinion: Opinion | None = field(default=None)

    def check(self, data: Json) -> str:
        try:
            self.opinion = self.form.read(cast("Mapping[str, Json]", data))
        except RefutedError as error:
            self.opinion = None
            return error.complaint
        return ""


async def _ask(prompt: Prompt, form: Form, panel: Panel, model: str, repeat: int) -> Vote:
    request = panel.request(prompt, form.name, form.schema, model=model, repeat=repeat)
    reading = _Reading(form)
    try:
        reply = await current_client().ask(request, reading.check)
    except ModelError as error:
        return Vote(model=model, repeat=repeat, error=error)
    return Vote(model=model, repeat=repeat, opinion=reading.opinion, reply=reply)


def _decide(votes: Sequence[Vote], form: Form, panel: Panel) -> Decision:
    if len(votes) == 1 and (opinion := votes[0].opinion) is not None:
        return _decision(opinion, [opinion], votes)
    valid = [(vote, vote.opinion) for vote in votes if vote.opinion is not None]
    if len(valid) < panel.needed:
        return Decision(votes=tuple(votes), error=_missing(votes, panel))
    opinions = [opinion for _, opinion in valid]
    if panel.aggregate == "majority" and all(opinion.word for opinion in opinions):
        return _most(opinions, votes, form, panel)
    applied = [opinion for opinion in opinions if opinion.value is not None]
    values = [cast("float", opinion.value) for opinion in applied]
    if 2 * len(values) < len(opinions):  # most say that it does not apply
        first = next(opinion for opinion in opinions if opinion.value is None)
        return _decision(first, opinions, votes)
    if 2 * len(values) == len(opinions) and panel.tie != "fail":
        return _undecided(f"{len(values)} of {len(opinions)} say that it applies", votes, panel)
    if panel.aggregate == "min":
        value = cast("float", form.against(applied).value)
    elif panel.aggregate == "mean":
        value = min(max(math.fsum(values) / len(values), min(values)), max(values))
    else:  # the majority of numbers is their median
        value = statistics.median(values)
    nearest = min(applied, key=lambda opinion: abs(cast("float", opinion.value) - value))
    word = nearest.word if nearest.value == value else ""  # between words there is none
    return _decision(replace(nearest, word=word, value=value), opinions, votes)


def _most(opinions: Sequence[Opinion], votes: Sequence[Vote], form: Form, panel: Panel) -> Decision:
    """The word that most opinions have."""
    counts = Counter(opinion.word for opinion in opinions)
    top = max(counts.values())
    words = [word for word, count in counts.items() if count == top]
    tied = [opinion for opinion in opinions if opinion.word in words]
    if len(words) == 1:
        return _decision(tied[0], opinions, votes)
    if panel.tie != "fail":
        told = " and ".join(f"{top} for {word}" for word in words)
        return _undecided(told, votes, panel)
    # Not applicable is worth no more than the worst: else a split would be a way out.
    applied = [opinion for opinion in tied if opinion.value is not None]
    return _decision(form.against(applied), opinions, votes)


def _undecided(told: str, votes: Sequence[Vote], panel: Panel) -> Decision:
    """What an even split is, where it is no failure."""
    if panel.tie == "error":
        error = ModelError(f"the judges are split: {told}", kind="unbelievable")
        return Decision(votes=tuple(votes), error=error)
    return Decision(word="NA", reason=f"the judges are split: {told}", votes=tuple(votes))


def _decision(chosen: Opinion, opinions: Sequence[Opinion], votes: Sequence[Vote]) -> Decision:
    same = sum(opinion.word == chosen.word and _alike(opinion, chosen) for opinion in opinions)
    return Decision(
        word=chosen.word,
        value=chosen.value,
        reason=chosen.reason,
        evidence=chosen.evidence,
        agreement=same / len(opinions),
        votes=tuple(votes),
    )


def _alike(one: Opinion, other: Opinion) -> bool:
    if one.word or one.value is None or other.value is None:
        return one.word != "" or one.value == other.value
    return abs(one.value - other.value) <= FAR_APART


def _is_doubtful(votes: Sequence[Vote]) -> bool:
    """Whether votes disagree, or some are missing."""
    opinions = [vote.opinion for vote in votes]
    first = opinions[0]
    return first is None or any(
        one is None or one.word != first.word or not _alike(one, first) for one in opinions
    )


def _missing(votes: Sequence[Vote], panel: Panel) -> ModelError:
    errors = [vote.error for vote in votes if vote.error is not None]
    if panel.asked == 1 and errors:
        return errors[0]
    told = "; ".join(dict.fromkeys(f"{vote.model}: {vote.error}" for vote in votes if vote.error))
    given = len(votes) - len(errors)
    return ModelError(
        f"{given} of {len(votes)} judges gave a verdict, and {panel.needed} decide: {told}",
        kind=errors[0].kind if errors else "unreadable",
    )


def _record(reply: Reply) -> dict[str, Json]:
    usage = reply.usage
    kept: dict[str, Json] = {"served": reply.model, "request": reply.digest, "rung": reply.rung}
    if usage.input_tokens is not None or usage.output_tokens is not None:
        kept["tokens"] = [usage.input_tokens, usage.output_tokens]
    kept["cost_usd"] = reply.cost_usd
    if reply.is_hit:
        kept["from_cache"] = True
    if reply.repairs:
        kept["repairs"] = reply.repairs
    if reply.attempts:
        kept["tries"] = [[a.reason, a.status, round(a.waited, 3)] for a in reply.attempts]
    if reply.dropped:
        kept["dropped"] = list(reply.dropped)
    if reply.fingerprint:
        kept["fingerprint"] = reply.fingerprint
    return kept
