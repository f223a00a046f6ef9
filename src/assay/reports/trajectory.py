"""What was said and done in a cell, moment by moment, with what each took and cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeAlias

from assay.frozen import frozen
from assay.reports.explain import in_words
from assay.reports.pictures import described
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json
from assay.types.trace import (
    PROMPT,
    ActionStep,
    AgentStep,
    AnyStep,
    SubagentStep,
    ToolStep,
    Trace,
    Usage,
)

MomentKind: TypeAlias = Literal[
    "told",
    "thought",
    "said",
    "turn",
    "call",
    "result",
    "action",
    "seen",
    "subagent",
    "error",
    "end",
]
"""``turn`` is a reply of the model in which nothing was said, ``seen`` what an action led to."""


@frozen
class Moment:
    """One thing that was said or done.

    Attributes:
        label: Who did what, such as ``called bash``.
        text: What was said, given or answered.
        is_error: Whether something went wrong.
        kind: What sort of thing it was.
        at: Seconds since the first thing that has a time; None is unknown, here and below.
        seconds: How long it took.
        tokens: Tokens of the model's reply that it was the first thing of.
        cost_usd: What that reply cost.
        parent: Place of the subagent in whose work it happened; None for the agent itself.
    """

    label: str
    text: str
    is_error: bool = False
    kind: MomentKind = "said"
    at: float | None = None
    seconds: float | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    parent: int | None = None

    def to_dict(self) -> dict[str, Json]:
        """As plain JSON."""
        return {"label": self.label, "text": self.text, "is_error": self.is_error}


_STOPPED: Mapping[str | None, str] = {
    "max_steps": "it had no more replies",
    "length": "it had no more room: its context, a reply or its tokens were used up",
    "timeout": "it had no more time",
    "malformed_tool_call": "what it called could not be called, again and again",
}

_Said: TypeAlias = "tuple[MomentKind, str, str, bool]"
"""A kind, a label, a text, and whether it was an error."""


def moments(trace: Trace, prompt: str, *, whole: bool = False) -> Iterator[Moment]:
    """What a trace tells, in order; what subagents did stands below them.

    Args:
        trace: The trace.
        prompt: What was asked, which is not told again.
        whole: Also tell what says nothing new to whoever reads a report: the last reply, which is
            the answer, and replies that only called tools, for their tokens and their time.
    """
    from assay.graders.usage import cost_of, tokens_of, walk

    steps = list(walk(trace))
    done = {s.call.id for _, s in steps if isinstance(s, ToolStep) and s.call.id}
    clock = _Clock([step for _, step in steps])
    parents: dict[int, int | None] = {0: None}
    place = 0
    for level, step in steps:
        at, seconds = clock.of(step)
        usage = step.usage if isinstance(step, AgentStep) else None
        tokens, cost = tokens_of(usage), cost_of(usage)
        said: list[_Said] = [
            *_told(step, prompt),
            *_step(step, trace.content, done, whole=whole),
        ]
        if whole and not said and _took(usage):
            said = [("turn", "replied", "", False)]
        if isinstance(step, SubagentStep):
            parents[len(parents)] = place  # walk numbers the traces as it comes to them
        for kind, label, text, is_error in said:
            yield Moment(
                label,
                text,
                is_error,
                kind,
                at,
                seconds,
                None if tokens is None else int(tokens),
                cost,
                parents[level],
            )
            place += 1
            seconds = tokens = cost = None  # they are the step's, once
    yield from _ended(trace)


def _took(usage: Usage | None) -> bool:
    return usage is not None and (usage.completion_tokens or usage.cost_usd or 0) > 0


def _ended(trace: Trace) -> Iterator[Moment]:
    if why := _STOPPED.get(trace.stop_reason):
        yield Moment("stopped", why, kind="end")
    code, said = trace.extra.get("exit_code"), trace.extra.get("stderr")
    if isinstance(said, str) and said.strip():
        ended = f", which ended with {code}" if code not in (0, None) else ""
        yield Moment(f"standard error of the agent{ended}", said, bool(ended), "end")
    script = trace.extra.get("run.sh")
    if isinstance(script, dict) and any(script.values()):  # it failed, or printed something
        told = {name: value for name, value in script.items() if value}
        yield Moment("ran run.sh", "\n".join(in_words(told)), "exit_code" in told, "end")


def _told(step: AnyStep, prompt: str) -> Iterator[_Said]:
    """What an agent was told besides the prompt: by its own system prompt, by a user's turns."""
    if step.extra.get(PROMPT) is True:
        return
    for message in step.messages:
        said = message.get("content") if isinstance(message, dict) else message
        text = said if isinstance(said, str) else "\n".join(in_words(described(said)))
        if text.strip() and text.strip() not in prompt:
            role = str(message.get("role") or "") if isinstance(message, dict) else ""
            yield "told", f"told by the {one_line(role or step.source, 20)}", text, False


def _step(step: AnyStep, answer: str | None, done: set[str], *, whole: bool) -> Iterator[_Said]:
    if isinstance(step, AgentStep):
        yield from _replied(step, answer, done, whole=whole)
    elif isinstance(step, ToolStep):
        did = "was denied" if step.permission == "denied" else "called"
        name, arguments = one_line(step.call.name, 60), _value(dict(step.call.arguments))
        yield "call", f"{did} {name}", arguments, did != "called"
        if step.result is not None:
            how = "failed with" if step.result.is_error else "got"
            yield "result", how, _value(step.result.content), step.result.is_error
    elif isinstance(step, ActionStep):
        yield "action", "acted", step.action, False
        if step.observation:
            yield "seen", "observed", _value(step.observation), False
    elif isinstance(step, SubagentStep):
        name = one_line(step.name, 60)
        yield "subagent", f"sent {name or 'a subagent'}", "", False
    if step.error:
        yield "error", "error", step.error, True
        if isinstance(trace := step.extra.get("traceback"), str):
            yield "error", "traceback", trace, True


def _replied(
    step: AgentStep, answer: str | None, done: set[str], *, whole: bool
) -> Iterator[_Said]:
    if step.reasoning:
        yield "thought", "thought", step.reasoning, False
    if step.content and step.content.strip() != (answer or "").strip():
        yield "said", "said", step.content, False
    elif step.content and whole:
        yield "said", "answered", step.content, False
    for call in step.tool_calls:
        if call.id not in done:  # else the step of the tool says it, and what came of it
            name = one_line(call.name, 60)
            yield "call", f"asked for {name}", _value(dict(call.arguments)), False


def _value(value: Json | dict[str, Json]) -> str:
    return value if isinstance(value, str) else "\n".join(in_words(described(value)))


class _Clock:
    """When steps were, counted from the earliest time that one has."""

    def __init__(self, steps: Sequence[AnyStep]) -> None:
        times = [_time(step.started_at) or _time(step.ended_at) for step in steps]
        known = [time for time in times if time is not None]
        try:
            self._first = min(known, default=None)
        except TypeError:  # only some of them have a time zone
            self._first = None

    def of(self, step: AnyStep) -> tuple[float | None, float | None]:
        """When a step began, and how long it took."""
        if self._first is None:
            return None, None
        started, ended = _time(step.started_at), _time(step.ended_at)
        began = started or ended
        took = _between(started, ended)
        return _between(self._first, began), took


def _time(said: str | None) -> datetime | None:
    if said is None:
        return None
    try:
        return datetime.fromisoformat(said)
    except ValueError:
        return None


def _between(start: datetime | None, end: datetime | None) -> float | None:
    if start is None or end is None:
        return None
    try:
        return max(0.0, (end - start).total_seconds())
    except TypeError:  # only one of them has a time zone
        return None
