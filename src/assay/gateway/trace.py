"""What passed a gateway, as a trace."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from assay.conversation.messages import ReplyUsage as ModelUsage
from assay.conversation.turns import Call, Image, Result, Text, Turn
from assay.frozen import frozen
from assay.gateway.journal import Answered, AskedEvent, Begun, Entry, Refused
from assay.scoring.json_safe import Json
from assay.types.trace import (
    AgentStep,
    AnyStep,
    Citation,
    Source,
    Step,
    SubagentStep,
    TokenSample,
    ToolCall,
    ToolResult,
    ToolStep,
    Trace,
    Usage,
    last_words,
    tool_kind,
)


@frozen(kw_only=True)
class Recorded:
    """What passed, as a trace.

    Attributes:
        trace: The steps; ``content`` is what the model said last.
        usage: Of all replies.
        flags: What does not go with work that is honest.
    """

    trace: Trace
    usage: Usage
    flags: tuple[str, ...] = ()


@dataclass(slots=True)
class _Thread:
    """The steps of one line."""

    steps: list[Step] = field(default_factory=list[Step])
    waiting: dict[str, list[ToolCall]] = field(default_factory=dict[str, list[ToolCall]])
    calls: int = 0
    first: int = 0

    def take(self, entry: AskedEvent) -> None:
        """Take in what a request adds."""
        for turn in entry.turns:
            if turn.speaker == "tool":
                for result in turn.results:
                    self._result(result, entry)
                self._settle(entry)
                continue
            shown: Json = {"role": turn.speaker, "content": _shown(turn)}
            extra: dict[str, Json] = {}
            if turn.speaker == "assistant":
                extra["unsaid"] = True  # the agent says that the model said it
            source: Source = "user" if turn.speaker == "user" else "system"
            self.steps.append(
                Step(source=source, messages=(shown,), ended_at=entry.at, extra=extra)
            )
        self._settle(entry)

    def _result(self, result: Result, entry: AskedEvent) -> None:
        calls = self.waiting.get(result.id)
        if not calls and entry.protocol == "google":  # in which results are told by their tools
            tool = result.id.rpartition(":")[0]
            every = self.waiting.values()
            calls = next((one for one in every if one and one[0].name == tool), None)
        content: Json = result.text
        if not calls:
            shown: Json = {"role": "tool", "content": content}
            self.steps.append(
                Step(source="tool", messages=(shown,), ended_at=entry.at, extra={"uncalled": True})
            )
            return
        call = calls.pop(0)
        answer = ToolResult(content=content, is_error=result.is_error, id=result.id)
        self.steps.append(ToolStep(call=call, result=answer, ended_at=entry.at))

    def _settle(self, entry: AskedEvent | None) -> None:
        """Calls that got no result before the agent went on."""
        at = None if entry is None else entry.at
        left = (call for calls in self.waiting.values() for call in calls)
        self.steps += [ToolStep(call=call, ended_at=at) for call in left]
        self.waiting.clear()

    def answer(self, step: AgentStep) -> None:
        """Take in a reply."""
        self.steps.append(step)
        for call in step.tool_calls:
            self.waiting.setdefault(call.id, []).append(call)
        self.calls += len(step.tool_calls)

    def end(self) -> None:
        """No more comes."""
        self._settle(None)


class Lines:
    """What passes a gateway as steps of the conversations that it belongs to, entry by entry."""

    def __init__(self) -> None:
        self.threads: list[_Thread] = []
        self.flags: list[str] = []
        self.usages: list[Usage] = []
        self._line_of: dict[int, int] = {}
        self._began: dict[int, str] = {}
        self._count = 0

    def take(self, entry: Entry) -> tuple[int, Sequence[Step]]:
        """The conversation that an entry goes on with, and the steps that it adds to it."""
        self._count += 1
        if isinstance(entry, AskedEvent):
            self._line_of[entry.number], self._began[entry.number] = entry.line, entry.at
            while len(self.threads) <= entry.line:
                self.threads.append(_Thread(first=self._count))
        elif isinstance(entry, Refused) and entry.cause == "limit" and entry.why not in self.flags:
            self.flags.append(entry.why)
        line = -1 if isinstance(entry, Begun) else self._line_of.get(entry.number, -1)
        if line < 0:
            return 0, ()
        thread = self.threads[line]
        before = len(thread.steps)
        if isinstance(entry, AskedEvent):
            thread.take(entry)
        elif isinstance(entry, Answered):
            step = agent_step(entry, started_at=self._began.get(entry.number))
            self.usages += [step.usage] if step.usage is not None else []
            thread.answer(step)
        elif isinstance(entry, Refused):
            step = Step(error=entry.why, ended_at=entry.at, extra={"refused": entry.cause})
            thread.steps.append(step)
        return line, thread.steps[before:]

    def end(self) -> Iterator[tuple[int, Sequence[Step]]]:
        """What is left once no more comes: the calls that got no result."""
        for line, thread in enumerate(self.threads):
            before = len(thread.steps)
            thread.end()
            yield line, thread.steps[before:]


def recorded(entries: Iterable[Entry]) -> Recorded:
    """What passed, as a trace: the agent's own work, and within it the work of its helpers."""
    lines = Lines()
    for entry in entries:
        lines.take(entry)
    for _ in lines.end():
        pass
    threads = lines.threads
    trace = Trace()
    if threads:
        main = max(threads, key=lambda thread: (thread.calls, -thread.first))
        trace.steps = list(_numbered(_woven(main, [one for one in threads if one is not main])))
        trace.content = last_words(main.steps)
    return Recorded(trace=trace, usage=_sum(lines.usages), flags=tuple(lines.flags))


def _woven(main: _Thread, others: Sequence[_Thread]) -> list[Step]:
    """The main line, and each other one as a helper's work where it ended."""
    steps = list(main.steps)
    ends = sorted(step.ended_at for step in steps if step.ended_at is not None)
    undated = len(steps) - len(ends)
    for other in others:
        inner = Trace(
            steps=list(_numbered(other.steps)), status="completed", content=last_words(other.steps)
        )
        ended = next((step.ended_at for step in reversed(other.steps) if step.ended_at), None)
        step = SubagentStep(subagent=inner, ended_at=ended)
        if ended is None:
            steps.append(step)
            undated += 1
            continue
        steps.insert(undated + bisect_right(ends, ended), step)
        insort(ends, ended)
    return steps


def _numbered(steps: Iterable[Step]) -> Iterator[AnyStep]:
    return (cast("AnyStep", replace(step, step_id=number)) for number, step in enumerate(steps, 1))


def agent_step(entry: Answered, *, started_at: str | None = None) -> AgentStep:
    """The model's turn, as a step of a trace."""
    reply = entry.reply
    turn = reply.turn
    calls = tuple(map(tool_call, turn.calls))
    tokens = reply.tokens
    return AgentStep(
        content=turn.text or None,
        reasoning=turn.thought or None,
        tool_calls=calls,
        done=reply.stop == "stop" and not calls,
        finish_reason=reply.stopped or reply.stop,
        refusal=reply.refusal or None,
        citations=_citations(turn),
        model=reply.model or None,
        usage=_usage(reply.usage, entry.cost_usd),
        sample=None
        if tokens is None
        else TokenSample(
            prompt_token_ids=tokens.prompt_ids,
            output_token_ids=tokens.output_ids,
            output_logprobs=tokens.logprobs,
        ),
        started_at=started_at,
        ended_at=entry.at,
    )


def tool_call(call: Call) -> ToolCall:
    """A call, as a trace has it; arguments that are no object stand under the key ``_``."""
    given = call.given
    return ToolCall(
        name=call.name,
        arguments={"_": call.arguments} if given is None else given,
        id=call.id,
        kind=tool_kind(call.name),
    )


def _citations(turn: Turn) -> tuple[Citation, ...] | None:
    cited = (one for part in turn.parts if isinstance(part, Text) for one in part.citations)
    return tuple(_citation(one) for one in cited if isinstance(one, dict)) or None


def _citation(cited: dict[str, Json]) -> Citation:
    def text(*names: str) -> str:
        return next((str(cited[name]) for name in names if isinstance(cited.get(name), str)), "")

    def number(name: str) -> int | None:
        value = cited.get(name)
        return value if type(value) is int else None

    return Citation(
        type=text("type") or "citation",
        text=text("cited_text", "quote", "text"),
        source=text("url", "file_id", "source"),
        title=text("title", "document_title", "filename") or None,
        start_index=number("start_index"),
        end_index=number("end_index"),
    )


def _usage(usage: ModelUsage, cost: float | None) -> Usage:
    return Usage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cost_usd=cost,
        llm_call_count=1,
    )


def _sum(usages: Sequence[Usage]) -> Usage:
    def of(name: str) -> float | None:
        found = [getattr(usage, name) for usage in usages]
        return None if None in found else sum(found)

    read, written, cached = of("prompt_tokens"), of("completion_tokens"), of("cached_tokens")
    return Usage(
        prompt_tokens=None if read is None else int(read),
        completion_tokens=None if written is None else int(written),
        cached_tokens=None if cached is None else int(cached),
        cost_usd=of("cost_usd"),
        llm_call_count=len(usages),
    )


def _shown(turn: Turn) -> str:
    pictures = sum(isinstance(part, Image) for part in turn.parts)
    calls = "".join(f"\n[calls {call.name}: {call.arguments}]" for call in turn.calls)
    return f"{turn.text}{calls}{' [picture]' * pictures}"
