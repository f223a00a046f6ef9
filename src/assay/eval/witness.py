"""What passed an agent's gateway, and what the agent says of itself: two witnesses of its work.

The wire cannot be forged, so it is the trace. An agent's own transcript tells what no wire shows
(what was denied to it, what a call gave that nobody was told); where the two disagree, the wire
stands and the cell is flagged.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict, deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import islice
from typing import cast

from assay.frozen import frozen
from assay.gateway import Gateway
from assay.gateway.journal import REDACTED
from assay.gateway.offered import SERVER, OfferedTools
from assay.graders.usage import INCOMPLETE, OBSERVED, UNTOLD, USAGE, RunUsage, walk
from assay.scoring.json_safe import Json, plain
from assay.types.run import Run
from assay.types.trace import (
    AgentStep,
    AnyStep,
    Step,
    SubagentStep,
    ToolCall,
    ToolStep,
    Trace,
)

_GATEWAY = "gateway"
_BEFORE_TOOLS = ("", f"{SERVER}_", f"mcp_{SERVER}_", f"mcp__{SERVER}__")
_LOOKED_AT = 32
_COMPARED = 10_000_000
_LOOKED_FOR = 2_000
"""A transcript may be made to be long: what it tells beyond such numbers of comparisons of its own
words with those that passed counts as told in no words that passed."""
_QUOTING = re.compile(r"[\s\\'\"]+")


@asynccontextmanager
async def witnessed(run: Run, gateway: Gateway) -> AsyncGenerator[None]:
    """Give a run its gateway while its agent works, and take what passed for its trace.

    Raises:
        AgentError: If the agent ended because its model could not be asked: what the work would
            have been worth, nobody knows.
    """
    offered = gateway.offered = OfferedTools(run) if run.tools else None
    async with gateway:
        run.gateway = gateway
        try:
            yield
            await gateway.find_out()
        finally:
            run.gateway = gateway.offered = None
            _settle(run, gateway)
    if offered is not None and offered.failure is not None:
        raise offered.failure
    gateway.require_answers()


def gateway_flags(trace: Trace) -> list[Json]:
    """What the gateway found odd."""
    told = trace.extra.get(_GATEWAY)
    found = told.get("flags") if isinstance(told, dict) else None
    return found if isinstance(found, list) else []


def _settle(run: Run, gateway: Gateway) -> None:
    spent, found = gateway.spent, gateway.recorded()
    flags = list(found.flags)
    trace = run.trace = _without(gateway.token, run.trace)
    # What an agent of this process asked, it has recorded itself.
    if gateway.served or gateway.is_lent:
        flags += _differences(trace, found.trace)
        trace.steps = _told_by_both(found.trace.steps, trace, run.answered)
        trace.content = trace.content or found.trace.content
        trace.extra.pop(OBSERVED, None)
        trace.extra.pop(INCOMPLETE, None)
        trace.extra.pop(UNTOLD, None)
    trace.stop_reason = trace.stop_reason or gateway.stop
    trace.extra[_GATEWAY] = {"calls": spent.calls, "flags": list[Json](flags)}
    if not (spent.calls or gateway.is_lent):
        return
    run.tokens = None if spent.unknown else spent.tokens
    run.cost_usd = spent.cost_usd
    trace.extra[USAGE] = RunUsage(tokens=run.tokens, cost_usd=run.cost_usd).to_dict()


def _without(token: str, trace: Trace) -> Trace:
    """A trace in which an agent has not told its token."""
    text = json.dumps(trace.to_dict())
    if token not in text:
        return trace
    return Trace.from_dict(json.loads(text.replace(token, REDACTED)))


def _told_by_both(wire: Iterable[AnyStep], own: Trace, answered: Sequence[Step]) -> list[AnyStep]:
    """The wire's steps, with what the agent alone could know, and what the task answered."""
    own_steps = [step for _, step in walk(own) if isinstance(step, ToolStep)]
    answers = {step.call.id: step for step in own_steps if step.call.id}
    retold = deque(step for step in own_steps if step.call.raw_name)
    steps: list[Step] = []
    for step in wire:
        if not isinstance(step, ToolStep):
            steps.append(step)
            continue
        known = (answers[one] for one in _ids(step.call) if one in answers)
        told = next(known, None) or _next_of(retold, step.call)
        if told is None:
            steps.append(step)
            continue
        result = told.result if step.result is None else step.result
        extra = {**step.extra, **told.extra}
        steps.append(replace(step, result=result, permission=told.permission, extra=extra))
    errors = [
        Step(error=step.error)
        for step in own.steps
        if step.error and not any(step is one for one in answered)
    ]
    made = defaultdict[tuple[str, str], deque[_Place]](deque)
    # A call that got no result is the last to be taken for one that the task answered.
    for place in sorted(_places(steps), key=lambda place: place.step.result is None):
        made[_written(place.step.call)].append(place)
    _insert(steps, [step for step in answered if not _passed(step, made)])
    return [
        cast("AnyStep", replace(step, step_id=number))
        for number, step in enumerate([*steps, *errors], 1)
    ]


@frozen
class _Place:
    """Where a step of a tool stands: in the agent's own work or in that of a helper."""

    steps: list[Step]
    at: int
    step: ToolStep


def _places(steps: list[Step]) -> Iterator[_Place]:
    for at, step in enumerate(steps):
        if isinstance(step, ToolStep):
            yield _Place(steps, at, step)
        elif isinstance(step, SubagentStep):
            yield from _places(cast("list[Step]", step.subagent.steps))


def _passed(step: Step, made: Mapping[tuple[str, str], deque[_Place]]) -> bool:
    """Whether the model made a call of the task's tool; its step then says what the task did.

    Agents put the name of the server before that of the tool, and tell their model of the result
    in words of their own.
    """
    if not isinstance(step, ToolStep):
        return False
    name, arguments = _written(step.call)
    for before in _BEFORE_TOOLS:
        if places := made.get((before + name, arguments)):
            place = places.popleft()
            there = place.step.call
            raw = there.name if before else there.raw_name
            call = replace(there, name=name, raw_name=raw, kind=step.call.kind)
            result = step.result and replace(step.result, id=there.id)
            place.steps[place.at] = replace(place.step, call=call, result=result, error=step.error)
            return True
    return False


def _insert(steps: list[Step], beside: Iterable[Step]) -> None:
    """Put steps that pass no gateway behind what had passed when they began."""
    at = 0
    for step in beside:
        began = step.started_at or step.ended_at or ""
        while at < len(steps) and (steps[at].ended_at or "") <= began:
            at += 1
        steps.insert(at, step)
        at += 1


def _next_of(retold: deque[ToolStep], call: ToolCall) -> ToolStep | None:
    """The first of the next few steps that tells of a call in other words; it is taken out."""
    told = _texts(call.arguments)
    for number, step in enumerate(islice(retold, _LOOKED_AT)):
        if _retells(step.call, _texts(step.call.arguments).split("\n"), call, told):
            del retold[number]
            return step
    return None


def _differences(own: Trace, wire: Trace) -> list[str]:
    """What a transcript tells that never passed the gateway."""
    if own.extra.get(OBSERVED) is False or not own.steps:
        return []  # it tells only its answer
    found: list[str] = []
    invented = _invented(own, wire)
    if invented:
        calls = "1 tool call" if len(invented) == 1 else f"{len(invented)} tool calls"
        first = invented[0].name
        found.append(f"its transcript tells of {calls} that its model never made ({first})")
    said = {_folded(text) for text in (*_said(wire), *_refused(wire))}
    whole = "\n".join(said)
    reworded = [text for text in _said(own) if _folded(text) not in said]
    unsaid = next(
        (
            text
            for at, text in enumerate(reworded)
            if at >= _LOOKED_FOR or _folded(text) not in whole
        ),
        None,
    )
    if unsaid is not None:
        found.append(f"its transcript has words that its model never said: {unsaid[:80]!r}")
    return found


def _invented(own: Trace, wire: Trace) -> list[ToolCall]:
    """The calls of a transcript that its model never made, or not as often."""
    made = list(_calls(wire))
    exact = Counter(map(_written, made))
    alike: defaultdict[tuple[str, str], list[ToolCall]] = defaultdict(list)
    left: list[ToolCall] = []
    for call in _calls(own):
        key = _written(call)
        alike[key].append(call)
        if exact[key] > 0:
            exact[key] -= 1
        else:
            left.append(call)
    if not any(call.raw_name for call in left):
        return left
    told = [(call, _texts(call.arguments)) for call in made]
    most = _COMPARED // (len(told) or 1)
    allowed: dict[tuple[str, str], int] = {}
    invented: list[ToolCall] = []
    # The last of those that are alike first: what a call may be told as, the others took.
    for call in reversed(left):
        key = _written(call)
        if key not in allowed:
            is_looked_at = bool(call.raw_name) and len(allowed) < most
            allowed[key] = _retold(alike[key], told) if is_looked_at else 0
        # What the provider runs itself is no call on the wire.
        if call.raw_name and call.kind == "fetch":
            continue
        if len(alike[key]) > allowed[key]:
            alike[key].pop()
            invented.append(call)
    return invented[::-1]


def _retold(alike: Sequence[ToolCall], told: Sequence[tuple[ToolCall, str]]) -> int:
    """How many of the calls that were made these could tell of, which say the same."""
    words = _texts(alike[0].arguments).split("\n")
    ids = {call.id: call for call in alike}

    def teller(made: ToolCall) -> ToolCall:
        return next((ids[one] for one in _ids(made) if one in ids), alike[0])

    return sum(_retells(teller(made), words, made, text) for made, text in told)


def _retells(call: ToolCall, words: Sequence[str], made: ToolCall, told: str) -> bool:
    """Whether a call is another's in an agent's own words: nothing is in it that was not there.

    Args:
        call: That of the transcript.
        words: The texts in its arguments.
        made: That of the model.
        told: The texts in that one's arguments.
    """
    if not any(words):  # it tells no more than that there was one
        return made.name.endswith(call.name) or call.id in _ids(made)
    if all(word in told for word in words):
        return True
    # An agent may fill in what its tool takes by default, such as the directory.
    return call.id == made.id and set(told.split("\n")) <= set(words)


def _ids(call: ToolCall) -> tuple[str, ...]:
    """The ids by which an agent may tell of a call: some put the tool's name before."""
    return (call.id, f"{call.name}__{call.id}") if call.id else ()


def _texts(value: Json | Mapping[str, Json]) -> str:
    """All texts of a value, a line each, without what quoting adds; of a path its last part."""
    found: list[str] = []
    waiting: list[object] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            is_path = one.startswith("/") and not any(map(str.isspace, one))
            bare = _QUOTING.sub("", one.rpartition("/")[2] if is_path else one)
            found.append(bare.casefold())
        elif isinstance(one, Mapping):
            waiting += cast("Mapping[str, Json]", one).values()
        elif isinstance(one, list | tuple):
            waiting += cast("list[Json]", one)
    return "\n".join(found)


def _written(call: ToolCall) -> tuple[str, str]:
    return call.name, json.dumps(plain(call.arguments), sort_keys=True)


def _calls(trace: Trace) -> Iterator[ToolCall]:
    for _, step in walk(trace):
        if isinstance(step, AgentStep):
            yield from step.tool_calls


def _said(trace: Trace) -> list[str]:
    return [step.content for _, step in walk(trace) if isinstance(step, AgentStep) and step.content]


def _refused(trace: Trace) -> list[str]:
    """What a model said on refusing, which an agent may have been told as a text of its."""
    return [step.refusal for _, step in walk(trace) if isinstance(step, AgentStep) and step.refusal]


def _folded(text: str) -> str:
    return "".join(text.split())
