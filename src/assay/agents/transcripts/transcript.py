"""One recording as a trace: its turns, its tools and what it says of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from assay.agents.transcripts.document import Notes, clean, mapping, shortened, total_of
from assay.frozen import frozen
from assay.graders.usage import INCOMPLETE, OBSERVED, UNTOLD, USAGE, RunUsage
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json
from assay.types.trace import (
    AgentStep,
    AnyStep,
    Step,
    StopReason,
    TokenSample,
    ToolCall,
    ToolResult,
    ToolStep,
    Trace,
    TraceStatus,
    Usage,
    tool_kind,
)

_LONGEST_REASON = 2_000
IMPORTER_VERSION = 3
"""Counts up whenever the same transcript would be read into another trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A transcript, read.

    Attributes:
        format: ``claude-code``, ``openai-chat`` or ``atif``.
        trace: The trajectory. Its ``extra`` has ``observed``, ``usage``, ``importer``,
            ``not_understood``, ``session`` and, where a part is missing or never told,
            ``incomplete`` and ``untold``.
        totals: What the whole run used, subagents included.
        failure: Why the agent's model never answered at all; empty where it did.
    """

    format: str
    trace: Trace
    totals: RunUsage
    failure: str = ""


@frozen(kw_only=True)
class Recording:
    """One run of an agent in a file that may hold several.

    Attributes:
        id: What the file calls it; empty where it has no name.
        transcript: What was done.
        question: What was asked; None where that is not told.
        expected: What was expected; None where that is not told.
        metadata: What else is told, such as the scores that another system gave.
    """

    id: str = ""
    transcript: Transcript
    question: str | None = None
    expected: Json = None
    metadata: Mapping[str, Json] = field(default_factory=dict[str, Json])


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptEnd:
    """How a transcript ends.

    Attributes:
        answer: The final answer.
        status: How the run ended, where it is said.
        stop_reason: Why it stopped, where it is said.
        totals: What was used.
        failure: Why the model never answered.
        session: What is said about the run as a whole.
    """

    answer: str | None = None
    status: TraceStatus | None = None
    stop_reason: StopReason | None = None
    totals: RunUsage = field(default_factory=RunUsage)
    failure: str = ""
    session: Mapping[str, Json] = field(default_factory=dict[str, Json])


def make_transcript(
    name: str, steps: Sequence[Step], outcome: TranscriptEnd, notes: Notes
) -> Transcript:
    """Put a transcript together."""
    unknown = [name for name, known in outcome.totals.to_dict().items() if known is None]
    totals = replace(
        outcome.totals, refused=tuple(name for name in notes.refused if name in unknown)
    )
    extra: dict[str, Json] = {
        OBSERVED: True,
        USAGE: totals.to_dict(),
        "importer": {"name": name, "version": IMPORTER_VERSION},
        "not_understood": notes.to_list(),
        "session": {key: item for key, item in outcome.session.items() if item is not None},
    }
    if notes.missing:
        extra[INCOMPLETE] = notes.missing
    if notes.untold:
        extra[UNTOLD] = notes.untold
    trace = Trace(
        steps=numbered(steps),
        status=outcome.status,
        stop_reason=outcome.stop_reason,
        content=outcome.answer,
        extra=extra,
    )
    return Transcript(format=name, trace=trace, totals=totals, failure=outcome.failure)


MOST_STEPS = 50_000
"""Steps that are read of one transcript, subagents included."""


@dataclass(slots=True, kw_only=True)
class TurnDraft:
    """A turn of the model that may still grow."""

    texts: list[str] = field(default_factory=list[str])
    reasoning: list[str] = field(default_factory=list[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    usage: Usage | None = None
    model: str | None = None
    finish_reason: str | None = None
    refusal: str | None = None
    error: str | None = None
    sample: TokenSample | None = None
    started_at: str | None = None
    extra: dict[str, Json] = field(default_factory=dict[str, Json])

    def step(self) -> AgentStep:
        """The turn as it is now."""
        return AgentStep(
            content="\n".join(self.texts) or None,
            reasoning="\n".join(self.reasoning) or None,
            tool_calls=tuple(self.calls),
            usage=self.usage,
            model=self.model,
            finish_reason=self.finish_reason,
            refusal=self.refusal,
            error=self.error,
            sample=self.sample,
            started_at=self.started_at,
            extra=self.extra,
        )


@dataclass(slots=True, kw_only=True)
class CallDraft:
    """A tool call whose result may still come."""

    call: ToolCall
    result: ToolResult | None = None
    permission: Literal["allowed", "denied"] | None = None
    extra: dict[str, Json] = field(default_factory=dict[str, Json])

    def answer(self, content: Json, *, is_error: bool, notes: Notes) -> None:
        """Take in a result; of several one error is enough."""
        if self.result is not None:
            notes.add("a tool call has more than one result")
            self.result = replace(self.result, is_error=self.result.is_error or is_error)
            return
        self.result = ToolResult(content=shortened(content), is_error=is_error, id=self.call.id)

    def step(self) -> ToolStep:
        """The call as it is now."""
        return ToolStep(
            call=self.call, result=self.result, permission=self.permission, extra=self.extra
        )


Draft = TurnDraft | CallDraft | Step


class Calls:
    """The calls of a whole transcript by id; a result may come before its call."""

    def __init__(self, notes: Notes) -> None:
        self.by_id: dict[str, list[CallDraft]] = {}
        self._notes = notes
        self._left = MOST_STEPS
        self._open: dict[str, deque[CallDraft]] = {}
        self._early: dict[str, list[tuple[Json, bool]]] = {}

    def room(self) -> bool:
        """Take a place for one more step, if there is any."""
        self._left -= 1
        if self._left < 0:
            self._notes.lack(f"only the first {MOST_STEPS} steps were read")
        return self._left >= 0

    def add(self, draft: CallDraft) -> None:
        """Take in a call, and give it the results that came before it."""
        call_id = draft.call.id
        self.by_id.setdefault(call_id, []).append(draft)
        self._open.setdefault(call_id, deque()).append(draft)
        for content, is_error in self._early.pop(call_id, ()):
            self.answer(call_id, content, is_error=is_error)

    def answer(self, call_id: str, content: Json, *, is_error: bool) -> None:
        """Give a result to the first call of that id that has none."""
        if call_id not in self.by_id:
            self._early.setdefault(call_id, []).append((content, is_error))
            return
        waiting = self._open[call_id]
        draft = waiting.popleft() if waiting else self.by_id[call_id][0]
        draft.answer(content, is_error=is_error, notes=self._notes)

    def close(self) -> None:
        """No more entries come: a result without a call means that the call is missing."""
        if self._early:
            self._notes.lack(f"{len(self._early)} results belong to calls that are not there")
            self._early.clear()


class Drafts:
    """The entries of one agent in order."""

    def __init__(self, calls: Calls) -> None:
        self.entries: list[Draft] = []
        self._calls = calls

    def turn(self) -> TurnDraft:
        """Begin a turn of the model."""
        turn = TurnDraft()
        self._append(turn)
        return turn

    def add(self, step: Step) -> None:
        """Add a step that is complete."""
        self._append(step)

    def call(
        self, turn: TurnDraft, *, name: str, arguments: Mapping[str, Json], call_id: str
    ) -> CallDraft:
        """Add a call that a turn asked for."""
        call = ToolCall(name=name, arguments=arguments, id=call_id, kind=tool_kind(name))
        draft = CallDraft(call=call)
        if self._append(draft):
            turn.calls.append(call)
            self._calls.add(draft)
        return draft

    def _append(self, entry: Draft) -> bool:
        has_room = self._calls.room()
        if has_room:
            self.entries.append(entry)
        return has_room

    def answer(self, call_id: str, content: Json) -> None:
        """Give a result to a call of any step."""
        self._calls.answer(call_id, content, is_error=False)

    def steps(self) -> list[AnyStep]:
        """The entries as steps."""
        return [
            cast("AnyStep", entry if isinstance(entry, Step) else entry.step())
            for entry in self.entries
        ]


class StreamReader(ABC):
    """An agent's own stream of events in the course of being read."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.calls = Calls(notes)
        self.agent = Drafts(self.calls)
        self.failure = ""

    def read(self, values: Iterable[Json]) -> Transcript:
        """Read all lines of a stream."""
        for value in values:
            self.take(mapping(value))
        return self.finish()

    def never_answered(self) -> bool:
        """Whether the model has neither said anything nor called a tool."""
        turns = (step for step in self.agent.steps() if isinstance(step, AgentStep))
        return not self.calls.by_id and not any(turn.content for turn in turns)

    def fail(self, reason: str) -> None:
        """The agent says that it failed."""
        self.failure = reason[:_LONGEST_REASON]
        self.agent.add(Step(source="system", error=self.failure))

    @abstractmethod
    def take(self, event: Mapping[str, Json]) -> None:
        """Take in one line."""

    @abstractmethod
    def finish(self) -> Transcript:
        """The transcript, after the last line."""


def tokens_of(usages: Iterable[Usage | None]) -> int | None:
    """What was read and written together; None for none of them, or where one does not say."""
    each = [usage or Usage() for usage in usages]
    return total_of([n for one in each for n in (one.prompt_tokens, one.completion_tokens)])


def arguments_of(given: Json, notes: Notes) -> dict[str, Json]:
    """The arguments of a call, also where they are JSON in a text, or are not what they should be.

    What is not a mapping is kept under the key ``_``, so that no path in it is lost.
    """
    if isinstance(given, str) and given.strip():
        try:
            given = decode_json(given, nan=True)
        except NotJsonError:
            notes.add("the arguments of a call are broken JSON")
            return {"_": given}
        given = clean(given, notes)
    if isinstance(given, dict):
        return given
    if given is None or given == "":
        return {}
    notes.add("the arguments of a call are not a mapping")
    return {"_": given}


def numbered(steps: Sequence[Step]) -> list[AnyStep]:
    """The steps, numbered from 1."""
    return [cast("AnyStep", replace(step, step_id=n)) for n, step in enumerate(steps, 1)]
