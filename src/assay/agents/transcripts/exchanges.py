"""Requests and replies as a trace: what a log of calls to a model tells.

Each request repeats what was said before it. What of it is new, and which of several conversations
goes on, is found out as the gateway finds it out; unlike there, what a request says that the model
has said before is believed: nobody else was there to hear it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import cast

from assay.agents.transcripts.document import Notes, mapping, shortened, text_of
from assay.agents.transcripts.transcript import (
    MOST_STEPS,
    Transcript,
    TranscriptEnd,
    make_transcript,
    tokens_of,
)
from assay.conversation.protocols.responses import RUN_BY_THE_ASKER
from assay.conversation.turns import (
    AssistantTurn,
    Call,
    Conversation,
    Part,
    Result,
    Text,
    Turn,
    Unknown,
)
from assay.frozen import frozen
from assay.gateway.journal import Answered, AskedEvent, Entry
from assay.gateway.record import Recorder
from assay.gateway.trace import agent_step, recorded
from assay.graders.usage import RunUsage, walk
from assay.scoring.json_safe import Json
from assay.types.trace import (
    AgentStep,
    AnyStep,
    Step,
    StopReason,
    SubagentStep,
    ToolStep,
    Trace,
    last_words,
)

_STOPS: dict[str, StopReason] = {"stop": "done", "length": "length", "refusal": "done"}


MOST_REQUESTS = 5_000
"""Requests, or calls of tools that spans tell of, in one run."""

MOST_TURNS = 500_000
"""Turns of all requests together; a chain of requests could name the same ones again and again."""

_TOLD = "told by a later request"
"""In place of the reason why a reply ended that is only known from a request after it."""


@frozen(kw_only=True)
class Exchange:
    """A request, and what came of it.

    Attributes:
        turns: What was said before, oldest first.
        reply: What the model said then; None where that is not told.
        at: When the reply had come, as ISO 8601.
        error: Why there is no reply.
    """

    turns: tuple[Turn, ...]
    reply: AssistantTurn | None = None
    at: str = ""
    error: str = ""


def read_exchanges(
    name: str,
    exchanges: Sequence[Exchange],
    notes: Notes,
    *,
    session: dict[str, Json] | None = None,
    totals: RunUsage | None = None,
) -> Transcript:
    """What some requests tell, as a transcript.

    Args:
        name: The format.
        exchanges: The requests, in order.
        notes: What was not understood until now.
        session: What is said of the run as a whole.
        totals: What was used, where that is told as a whole.
    """
    trace = steps_of(exchanges, notes)
    last = exchanges[-1].reply if exchanges else None
    failure = exchanges[-1].error if exchanges else ""
    outcome = TranscriptEnd(
        answer=trace.content,
        status="error" if failure else "completed" if last or trace.content is not None else None,
        stop_reason=None if last is None else _STOPS.get(last.stop),
        totals=totals or _sum_of(trace),
        session=session or {},
    )
    return make_transcript(name, trace.steps, outcome, notes)


def steps_of(exchanges: Sequence[Exchange], notes: Notes) -> Trace:
    """The steps that some requests tell of; ``content`` is what the model said last."""
    recorder = Recorder()
    entries: list[Entry] = []
    for exchange in exchanges[:MOST_REQUESTS]:
        turns = _limited(told_turns(exchange.turns, notes), notes)
        entries += _heard(recorder, Conversation(model="", turns=turns), exchange, notes)
    if len(exchanges) > MOST_REQUESTS:
        notes.lack(f"only the first {MOST_REQUESTS} requests were read")
    trace = recorded(entries).trace if any(one.turns for one in exchanges) else _replies(exchanges)
    instructions = next((turn for one in exchanges for turn in one.turns), None)
    steps: list[Step] = []
    if instructions is not None and instructions.speaker == "system" and instructions.text:
        shown: Json = {"role": "system", "content": instructions.text}
        steps.append(Step(source="system", messages=(shown,)))
    trace.steps = [cast("AnyStep", _plain(step, notes)) for step in (*steps, *trace.steps)]
    return trace


def _replies(exchanges: Sequence[Exchange]) -> Trace:
    """Replies to requests of which nothing is told, as the turns of one conversation."""
    trace = Trace()
    for one in exchanges[:MOST_REQUESTS]:
        reply = one.reply or AssistantTurn(turn=Turn("assistant", ()))
        step = agent_step(Answered(number=0, at=one.at, reply=reply))
        trace.steps += [step, *(ToolStep(call=call) for call in step.tool_calls)]
    trace.content = last_words(trace.steps)
    return trace


def _heard(
    recorder: Recorder, asked: Conversation, exchange: Exchange, notes: Notes
) -> Iterator[Entry]:
    """A request as the gateway would have heard it, what the model has said before as replies."""
    number = recorder.asked(asked, "")
    entry = recorder.entries.pop()
    if not isinstance(entry, AskedEvent):  # it is what was just kept
        raise TypeError(entry)
    entry = replace(entry, at=exchange.at)
    said: list[Turn] = []
    for turn in entry.turns:
        if turn.speaker != "assistant":
            said.append(turn)
            continue
        yield replace(entry, turns=tuple(said))
        yield Answered(
            number=number,
            at=exchange.at,
            reply=AssistantTurn(turn=turn, stopped=_TOLD),
            cost_usd=None,
            seconds=0.0,
        )
        said = []
    yield replace(entry, turns=tuple(said))
    if exchange.reply is not None:
        turn, *results = told_turns([exchange.reply.turn], notes) or (Turn("assistant", ()),)
        heard = replace(exchange.reply, turn=turn)
        recorder.answered(number, heard, cost_usd=None, seconds=0.0)
        recorder.entries.pop()
        yield Answered(number=number, at=exchange.at, reply=heard, cost_usd=None, seconds=0.0)
        if results:  # of tools that the provider runs itself
            further = Conversation(model="", turns=(*asked.turns, turn, *results))
            yield from _heard(recorder, further, Exchange(turns=(), at=exchange.at), notes)


def _limited(turns: tuple[Turn, ...], notes: Notes) -> tuple[Turn, ...]:
    if len(turns) > MOST_STEPS:
        notes.lack(f"only the first {MOST_STEPS} turns of a request were read")
    return turns[:MOST_STEPS]


def _plain(step: Step, notes: Notes) -> Step:
    """A step without times that nobody told, and with results of bounded length."""
    if isinstance(step, SubagentStep):
        inner = [cast("AnyStep", _plain(one, notes)) for one in step.subagent.steps]
        step = replace(step, subagent=replace(step.subagent, steps=inner))
    if isinstance(step, ToolStep) and step.result is not None:
        content = shortened(step.result.content)
        step = replace(step, result=replace(step.result, content=content))
    if step.extra.get("uncalled") is True:
        notes.lack("a result belongs to a call that is not there")
    if isinstance(step, AgentStep) and step.finish_reason == _TOLD:
        step = replace(step, done=False, finish_reason=None)
    started, ended = step.started_at or None, step.ended_at or None
    return replace(step, started_at=None if started == ended else started, ended_at=ended)


def _sum_of(trace: Trace) -> RunUsage:
    """What the replies used together; unknown where one of them does not say."""
    steps = (step for _, step in walk(trace) if isinstance(step, AgentStep))
    return RunUsage(tokens=tokens_of(step.usage for step in steps))


# ---- what only one protocol knows -------------------------------------------------------------

_CALL, _USE = "_call", "_use"
_ANSWERS = ("_output", "_result", "_response")
_BESIDE = frozenset({"id", "call_id", "type", "status", "name", "server_label"})


def told_turns(turns: Iterable[Turn], notes: Notes) -> tuple[Turn, ...]:
    """Turns in which the calls of a provider's own tools are calls, and their results results.

    A call that was left out would be one that no ban sees.
    """
    told: list[Turn] = []
    for turn in turns:
        if not any(isinstance(part, Unknown) for part in turn.parts):
            told.append(turn)
            continue
        parts: list[Part] = []
        results: list[Part] = []
        for part in turn.parts:
            found = _told(part, notes) if isinstance(part, Unknown) else (part,)
            parts += [one for one in found if not isinstance(one, Result)]
            results += [one for one in found if isinstance(one, Result)]
        if parts:
            told.append(Turn("assistant" if turn.speaker == "tool" else turn.speaker, tuple(parts)))
        if results:
            told.append(Turn("tool", tuple(results)))
    return tuple(told)


def _told(part: Unknown, notes: Notes) -> tuple[Part, ...]:
    """A part of a protocol's own."""
    data = part.data
    kind = text_of(data.get("type")) or ""
    call_id = text_of(data.get("call_id")) or text_of(data.get("id")) or ""
    if kind.endswith(_ANSWERS):
        of = text_of(data.get("call_id")) or text_of(data.get("tool_use_id")) or call_id
        given = data.get("output", data.get("content"))
        said = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        return (Result(of, (Text(said),), is_error=data.get("is_error") is True),)
    if kind.endswith((_CALL, _USE)):
        given = mapping(data.get("action")) or mapping(data.get("input"))
        given = given or {key: data[key] for key in data if key not in _BESIDE}
        name = text_of(data.get("name")) or kind.removesuffix(_CALL)
        call = Call(call_id, name, json.dumps(dict(given)))
        said = text_of(data.get("output"))
        is_over = data.get("status") == "completed" or said is not None
        if kind.endswith(_USE) or kind in RUN_BY_THE_ASKER or not is_over:
            return (call,)
        # The provider has run it: what came of it is told here, or not at all.
        return call, Result(call_id, (Text(said or ""),), is_error=bool(data.get("error")))
    notes.add(f"a part of type {kind[:40]!r}")
    return ()
