"""Spans of any tracer as a trace.

Spans end, and so are told, before those that they are in; so they are put in order first. A call
of a model tells the conversation, or only that there was one; a span of a tool tells what came of
a call. Usage counts on calls of models alone: turns, agents and workflows say it again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from assay.agents.transcripts.document import Notes, total_of
from assay.agents.transcripts.exchanges import MOST_REQUESTS, MOST_TURNS, Exchange, steps_of
from assay.agents.transcripts.transcript import (
    MOST_STEPS,
    Transcript,
    TranscriptEnd,
    make_transcript,
    numbered,
)
from assay.conversation.turns import AssistantTurn, Turn
from assay.frozen import frozen
from assay.graders.usage import RunUsage
from assay.scoring.json_safe import Json
from assay.types.trace import (
    AgentStep,
    AnyStep,
    Step,
    SubagentStep,
    ToolCall,
    ToolResult,
    ToolStep,
)


@frozen(kw_only=True)
class ModelSpan:
    """A call of a model.

    Attributes:
        turns: What was said before; empty where the tracer keeps no contents.
        reply: What came; without parts where that is not kept.
        start: When it began, for the order.
        at: When it ended, as ISO 8601.
        error: What went wrong.
        goes_on: Whether `turns` are only what is new since the call before in the same agent.
        parent: The span around it.
    """

    turns: tuple[Turn, ...]
    reply: AssistantTurn
    start: float = 0.0
    at: str = ""
    error: str = ""
    goes_on: bool = False
    parent: str = ""


@frozen(kw_only=True)
class ToolSpan:
    """A tool at work.

    Attributes:
        call: What was asked; its id is empty where it is not told.
        is_told: Whether its arguments are told, be it that there are none.
        result: What came of it; None where that is not kept.
        start: When it began, for the order.
        at: When it ended, as ISO 8601.
    """

    call: ToolCall
    is_told: bool
    result: ToolResult | None
    start: float = 0.0
    at: str = ""


@dataclass(slots=True)
class Spans:
    """The spans of one trace, in whatever order they came.

    Attributes:
        models: Calls of models.
        tools: Tools at work.
        no_calls: Ids under which a conversation tells what is no call of a tool, and whether that
            also holds where it tells a result.
        session: What is said of the run as a whole.
        seconds: From the first beginning to the last end.
        answer: What a span around all others says in the end.
        error: Why the outermost span failed.
    """

    notes: Notes
    models: list[ModelSpan] = field(default_factory=list[ModelSpan])
    tools: list[ToolSpan] = field(default_factory=list[ToolSpan])
    no_calls: dict[str, bool] = field(default_factory=dict[str, bool])
    session: dict[str, Json] = field(default_factory=dict[str, Json])
    seconds: float | None = None
    answer: str | None = None
    error: str = ""

    def transcript(self, name: str) -> Transcript:
        """The trace that they tell of."""
        models = sorted(self.models, key=lambda span: span.start)
        tools = sorted(self.tools, key=lambda span: span.start)
        if not self._tell_contents():
            self.notes.leave_out("the spans do not tell what was said")
        exchanges: list[Exchange] = []
        left = MOST_TURNS
        said: dict[str, tuple[Turn, ...]] = {}
        for span in models:
            before = said.get(span.parent, ()) if span.goes_on else ()
            left -= len(before)
            if left < 0:
                self.notes.lack("more turns than are read")
                break
            turns = (*before, *span.turns)
            said[span.parent] = (*turns, span.reply.turn)
            exchanges.append(Exchange(turns=turns, reply=span.reply, at=span.at, error=span.error))
        trace = steps_of(exchanges, self.notes)
        waiting = _Waiting(tools[:MOST_REQUESTS])
        if len(tools) > MOST_REQUESTS:
            self.notes.lack(f"only the first {MOST_REQUESTS} calls of tools were read")
        steps = [_answered(step, waiting) for step in _settled(trace.steps, waiting)]
        steps = list(_without(self.no_calls, steps))
        steps = _placed(steps, waiting.left(), models)[:MOST_STEPS]
        if self.error:
            steps.append(Step(source="system", error=self.error[:2000]))
        usages = [one.reply.usage for one in models]
        counts = [n for usage in usages for n in (usage.input_tokens, usage.output_tokens)]
        answer = trace.content if trace.content is not None else self.answer
        return make_transcript(
            name,
            cast("list[Step]", numbered(steps)),
            TranscriptEnd(
                answer=answer,
                status="error" if self.error else "completed" if answer is not None else None,
                totals=RunUsage(tokens=total_of(counts), seconds=self.seconds),
                session=self.session,
            ),
            self.notes,
        )

    def _tell_contents(self) -> bool:
        """Whether the tracer keeps contents; one that does begins with what the user said."""
        if self.models:
            return any(span.turns or span.reply.turn.parts for span in self.models)
        results = [span.result for span in self.tools]
        told = [result for result in results if result is not None and not result.is_error]
        return not self.tools or bool(told) or any(span.is_told for span in self.tools)


class _Waiting:
    """Spans of tools for whose calls steps are looked for, in the order in which they began.

    They are found by what a call says: a conversation of thousands of calls has as many spans.
    """

    def __init__(self, spans: Sequence[ToolSpan]) -> None:
        self._left = dict(enumerate(spans))
        self._places: dict[Hashable, deque[int]] = {}
        for number, span in self._left.items():
            call = span.call
            if call.id:
                self._places.setdefault(call.id, deque()).append(number)
            said = (call.name, _comparable(call.arguments), bool(call.id))
            self._places.setdefault(said, deque()).append(number)

    def take(self, call: ToolCall) -> ToolSpan | None:
        """The span of a call, which is not waited for any more: by its id, else by what it says."""
        found = self._first(call.id) if call.id else None
        if found is None:
            arguments = {_comparable({}), _comparable(call.arguments)}
            has_id = (False,) if call.id else (False, True)
            said = ((call.name, each, has) for each in arguments for has in has_id)
            found = min((n for n in map(self._first, said) if n is not None), default=None)
        return None if found is None else self._left.pop(found)

    def left(self) -> list[ToolSpan]:
        """Those that no step was found for."""
        return [*self._left.values()]

    def _first(self, said: Hashable) -> int | None:
        places = self._places.get(said, deque())
        while places and places[0] not in self._left:
            places.popleft()
        return places[0] if places else None


def _comparable(value: Json | Mapping[str, Json]) -> Hashable:
    """What is equal for equal values, and can be looked up."""
    if isinstance(value, Mapping):
        return frozenset((key, _comparable(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(map(_comparable, value))
    return value


def _settled(steps: Sequence[AnyStep], waiting: _Waiting) -> Iterator[AnyStep]:
    """Steps, and no longer waited for: the spans of calls whose result the conversation tells."""
    for step in steps:
        if isinstance(step, ToolStep) and step.result is not None:
            span = waiting.take(step.call)
            failed = span is not None and span.result is not None and span.result.is_error
            result = replace(step.result, is_error=step.result.is_error or failed)
            yield replace(step, result=result)
        elif isinstance(step, SubagentStep):
            inner = list(_settled(step.subagent.steps, waiting))
            yield replace(step, subagent=replace(step.subagent, steps=inner))
        else:
            yield step


def _without(no_calls: Mapping[str, bool], steps: Iterable[AnyStep]) -> Iterator[AnyStep]:
    """The steps without what a conversation tells like calls of tools, and spans know as none."""
    listed = list(steps)
    gone = {
        step.call.id
        for step in listed
        if isinstance(step, ToolStep)
        and step.call.id in no_calls
        and (step.result is None or no_calls[step.call.id])
    }
    for step in listed:
        if isinstance(step, SubagentStep):
            inner = list(_without(no_calls, step.subagent.steps))
            yield replace(step, subagent=replace(step.subagent, steps=inner))
        elif isinstance(step, AgentStep):
            calls = tuple(call for call in step.tool_calls if call.id not in gone)
            yield replace(step, tool_calls=calls)
        elif not (isinstance(step, ToolStep) and step.call.id in gone):
            yield step


def _answered(step: AnyStep, waiting: _Waiting) -> AnyStep:
    """A call whose result only its span tells."""
    if isinstance(step, SubagentStep):
        inner = [_answered(one, waiting) for one in step.subagent.steps]
        return replace(step, subagent=replace(step.subagent, steps=inner))
    if not isinstance(step, ToolStep) or step.result is not None:
        return step
    span = waiting.take(step.call)
    if span is None:
        return step
    result = span.result and replace(span.result, id=step.call.id)
    return replace(step, result=result, ended_at=span.at or None)


def _placed(
    steps: Sequence[AnyStep], waiting: Sequence[ToolSpan], models: Sequence[ModelSpan]
) -> list[Step]:
    """Tools that no conversation tells of, each after the calls of models that began before it.

    Both are in the order in which they began.
    """
    ends = [number for number, step in enumerate(steps, 1) if isinstance(step, AgentStep)]
    whole = len(ends) == len(models)
    starts = [model.start for model in models]
    coming: dict[int, list[Step]] = {}
    for span in waiting:
        before = bisect_right(starts, span.start)
        at = len(steps)
        if whole and before < len(ends):
            at = ends[before - 1] if before else 0
        step = ToolStep(call=span.call, result=span.result, ended_at=span.at or None)
        coming.setdefault(at, []).append(step)
    placed = list(coming.get(0, ()))
    for number, step in enumerate(steps, 1):
        placed += (step, *coming.get(number, ()))
    return placed
