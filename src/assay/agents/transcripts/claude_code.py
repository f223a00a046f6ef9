"""The stream of Claude Code (``--output-format stream-json --verbose``).

What the stream is like decides how it is read:

* A message comes as one line per content block, all with the same id and the same ``usage``, whose
  output tokens are those of the moment it began. Only the last line, ``result``, tells totals.
* The prompt is not in it. Subagents are told apart by ``parent_tool_use_id`` alone.
* ``usage`` of the result is the main agent's; ``modelUsage`` is everybody's.
* A success may carry ``is_error``. A stream that was cut off has no result.
* Lines of hooks hold what the user's own programs said, which is nobody's business: dropped.

The sessions that Claude Code keeps (``~/.claude/projects/*/*.jsonl``) are of the same lines, but
for these traits: the prompt is in them; there is no result line, and so no end that could be
missing; the last line of a message has its whole usage; and a subagent is told by ``isSidechain``
and ``agentId``, which a result of its call names. A line that was copied may come again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import cast

from assay.agents.transcripts.document import (
    Notes,
    amount,
    count,
    listing,
    mapping,
    text_of,
    texts_of,
    total_of,
)
from assay.agents.transcripts.transcript import (
    CallDraft,
    Calls,
    Drafts,
    Transcript,
    TranscriptEnd,
    TurnDraft,
    arguments_of,
    make_transcript,
    numbered,
    tokens_of,
)
from assay.graders.usage import RunUsage
from assay.scoring.json_safe import Json
from assay.types.trace import AnyStep, Step, StopReason, SubagentStep, Trace, Usage

FORMAT = "claude-code"

_SESSION = ("session_id", "model", "cwd", "claude_code_version")
_SILENT = frozenset(
    {"stream_event", "rate_limit_event", "tool_progress", "keep_alive", "auth_status"}
)
_SILENT_BLOCKS = frozenset({"redacted_thinking", "image", "document"})
_SUBAGENT_TOOLS = ("Task", "Agent")
_DEEPEST = 8
_LIKE = 8
_SILENT_SYSTEM = ("hook", "task_", "status", "compact_boundary", "api_retry")
_STOPS: Mapping[str, StopReason] = {"error_max_turns": "max_steps", "success": "done"}


def is_event(value: Json) -> bool:
    """Whether a value can only be a line of such a stream."""
    event = mapping(value)
    kind = event.get("type")
    if kind in ("assistant", "user"):
        return isinstance(event.get("message"), dict)
    if kind == "result":
        return "subtype" in event or "result" in event
    return kind == "system" and isinstance(event.get("subtype"), str)


def read(values: Iterable[Json], notes: Notes) -> Transcript:
    """Read the lines of a stream."""
    stream = _Stream(notes)
    for value in values:
        line = mapping(value)
        if is_session_line(value):
            stream.take_kept(line)
        else:
            stream.take(line)
    return stream.finish()


def is_session_line(value: Json) -> bool:
    """Whether a value is a line of a session that was kept."""
    line = mapping(value)
    return isinstance(line.get("sessionId"), str) and isinstance(line.get("uuid"), str)


class _Stream:
    """A stream in the course of being read."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.calls = Calls(notes)
        self.agents: dict[str, Drafts] = {"": Drafts(self.calls)}
        self.turns: dict[tuple[str, str], TurnDraft] = {}
        self.results: list[Mapping[str, Json]] = []
        self.session: dict[str, Json] = {}
        self.unseen: dict[str, bool] = {}
        self.is_kept = False
        self.seen: set[str] = set()
        self.side: dict[str, str] = {}
        self.prompts: dict[str, str] = {}

    def take_kept(self, line: Mapping[str, Json]) -> None:
        """Take in one line of a session that was kept."""
        self.is_kept = True
        identity = str(line.get("uuid"))
        if identity in self.seen:
            return
        self.seen.add(identity)
        names = {"session_id": "sessionId", "cwd": "cwd", "claude_code_version": "version"}
        for ours, theirs in names.items():
            self.session.setdefault(ours, text_of(line.get(theirs)))
        kind = line.get("type")
        if kind == "system" or line.get("isMeta") is True:
            return
        if line.get("isCompactSummary") is True:
            self.notes.add("the context was compacted")
        if kind == "assistant":
            self.session.setdefault("model", text_of(mapping(line.get("message")).get("model")))
        event = dict(line)
        event["tool_use_result"] = line.get("toolUseResult")
        agent = text_of(mapping(line.get("toolUseResult")).get("agentId"))
        if agent and line.get("isSidechain") is not True:
            for block in listing(mapping(line.get("message")).get("content")):
                self.side[agent] = text_of(mapping(block).get("tool_use_id")) or ""
        if line.get("isSidechain") is True:
            event["parent_tool_use_id"] = self._sidechain(line)
        self.take(event)

    def _sidechain(self, line: Mapping[str, Json]) -> str:
        """By what a subagent's line is known: its agent's id, else the line that began it."""
        agent = text_of(line.get("agentId"))
        if agent is not None:
            return f"agent {agent}"
        parent, own = text_of(line.get("parentUuid")) or "", str(line.get("uuid"))
        root = self.prompts.get(parent, f"agent {own}")
        self.prompts[own] = root
        return root

    def _adopt(self) -> None:
        """Give each subagent of a kept session to the call that started it."""
        waiting = [
            draft.call
            for draft in chain.from_iterable(self.calls.by_id.values())
            if draft.call.name in _SUBAGENT_TOOLS and draft.call.id not in self.agents
        ]
        for name in [name for name in self.agents if name.startswith("agent ")]:
            call_id = self.side.get(name.removeprefix("agent "), "")
            if not call_id:  # older sessions: it begins with the prompt that its call gave
                entry = next(iter(self.agents[name].entries), None)
                said = mapping(entry.messages[0] if isinstance(entry, Step) else None).get(
                    "content"
                )
                given = (call for call in waiting if call.arguments.get("prompt") == said)
                call_id = next((call.id for call in given), "")
            if call_id and call_id not in self.agents:
                self.agents[call_id] = self.agents.pop(name)

    def take(self, event: Mapping[str, Json]) -> None:
        """Take in one line."""
        kind = text_of(event.get("type"))
        if kind == "assistant":
            self._message(event)
        elif kind == "user":
            self._user(event)
        elif kind == "system":
            self._system(event)
        elif kind == "result":
            self.results.append(event)
        elif kind not in _SILENT:
            self.notes.add(f"a line of type {kind!r}")

    def _system(self, event: Mapping[str, Json]) -> None:
        if event.get("subtype") == "init":
            found = {key: text_of(event.get(key)) for key in _SESSION}
            self.session = {**found, **self.session}
        elif not str(event.get("subtype")).startswith(_SILENT_SYSTEM):
            self.notes.add(f"a system line {event.get('subtype')!r}")

    def _agent(self, event: Mapping[str, Json]) -> tuple[str, Drafts]:
        parent = text_of(event.get("parent_tool_use_id")) or ""
        if parent not in self.agents:
            self.agents[parent] = Drafts(self.calls)
        return parent, self.agents[parent]

    def _message(self, event: Mapping[str, Json]) -> None:
        message = mapping(event.get("message"))
        parent, agent = self._agent(event)
        key = (parent, text_of(message.get("id")) or f"without id {len(self.turns)}")
        turn = self.turns.get(key)
        if turn is None:
            turn = self.turns[key] = agent.turn()
            turn.started_at = text_of(event.get("timestamp"))
        turn.model = text_of(message.get("model")) or turn.model
        turn.finish_reason = text_of(message.get("stop_reason")) or turn.finish_reason
        turn.error = text_of(event.get("error")) or turn.error
        if isinstance(message.get("usage"), dict):
            usage = mapping(message.get("usage"))
            turn.usage = _usage_so_far(usage, self.notes)
            if self.is_kept:
                wrote = count(usage.get("output_tokens"), self.notes, "output_tokens")
                turn.usage = replace(turn.usage, completion_tokens=wrote)
        content = message.get("content")
        if isinstance(content, str):
            turn.texts.append(content)
        for block in listing(content):
            self._block(agent, turn, mapping(block))

    def _block(self, agent: Drafts, turn: TurnDraft, block: Mapping[str, Json]) -> None:
        kind = str(block.get("type"))
        if kind == "text":
            turn.texts.append(text_of(block.get("text")) or "")
        elif kind == "thinking":
            turn.reasoning.append(text_of(block.get("thinking")) or "")
        elif kind.endswith("tool_use"):
            self._call(agent, turn, block)
        elif kind.endswith("tool_result"):
            self._result(block)
        elif kind not in _SILENT_BLOCKS:
            self.notes.add(f"a content block of type {kind!r}")

    def _call(self, agent: Drafts, turn: TurnDraft, block: Mapping[str, Json]) -> None:
        name, call_id = text_of(block.get("name")) or "", text_of(block.get("id")) or ""
        arguments = arguments_of(block.get("input"), self.notes)
        for known in self.calls.by_id.get(call_id, [])[-_LIKE:] if call_id else ():
            if (known.call.name, known.call.arguments) == (name, arguments):
                self.notes.add("a tool call is repeated")
                return
        agent.call(turn, name=name, arguments=arguments, call_id=call_id)

    def _result(self, block: Mapping[str, Json]) -> None:
        call_id = text_of(block.get("tool_use_id")) or ""
        self.calls.answer(call_id, block.get("content"), is_error=block.get("is_error") is True)

    def _user(self, event: Mapping[str, Json]) -> None:
        _, agent = self._agent(event)
        message = mapping(event.get("message"))
        blocks = [mapping(block) for block in listing(message.get("content"))]
        for block in blocks:
            if str(block.get("type")).endswith("tool_result"):
                self._result(block)
                used = mapping(event.get("tool_use_result")).get("totalToolUseCount")
                self.unseen[text_of(block.get("tool_use_id")) or ""] = used != 0
        said = texts_of([cast("Json", b) for b in blocks if b.get("type") == "text"])
        said = said or text_of(message.get("content"))
        if said:
            shown: Json = {"role": "user", "content": said}
            agent.add(Step(source="user", messages=(shown,)))

    def finish(self) -> Transcript:
        """The transcript, after the last line."""
        if self.is_kept:
            self._adopt()
        elif not self.results:
            self.notes.lack("the stream was cut off: it has no result line")
        if len(self.results) > 1:
            self.notes.add("more than one result line")
        last: Mapping[str, Json] = self.results[-1] if self.results else {}
        self._deny(last)
        self.calls.close()
        several = self._expect_subagents()
        totals = _totals(self.results, self.notes, several=several)
        outcome = self._outcome(last, self._added() if self.is_kept else totals)
        steps = self._steps("", 0)
        while self.agents:  # whose call is not in the stream
            self.notes.add("a subagent that no call asked for")
            steps.append(_subagent(self._steps(next(iter(self.agents)), _DEEPEST), ""))
        if outcome.status == "error":
            said = outcome.answer or texts_of(last.get("errors")) or "no reason given"
            error = f"{text_of(last.get('subtype'))}: {said}"[:2000]
            steps.append(Step(source="system", error=error))
            if outcome.totals.tokens == 0 and not self.calls.by_id:
                outcome = replace(outcome, failure=error)
        return make_transcript(FORMAT, steps, outcome, self.notes)

    def _added(self) -> RunUsage:
        """What the messages of a kept session used together."""
        turns = [
            entry
            for agent in self.agents.values()
            for entry in agent.entries
            if isinstance(entry, TurnDraft)
        ]
        return RunUsage(tokens=tokens_of(turn.usage for turn in turns))

    def _outcome(self, last: Mapping[str, Json], totals: RunUsage) -> TranscriptEnd:
        turns = [entry for entry in self.agents[""].entries if isinstance(entry, TurnDraft)]
        answer = text_of(last.get("result"))
        if answer is None and last.get("structured_output") is not None:
            answer = json.dumps(last["structured_output"], ensure_ascii=False)
        if answer is None:
            answer = next(("\n".join(t.texts) for t in reversed(turns) if any(t.texts)), None)
        subtype = str(last.get("subtype"))
        is_error = last.get("is_error") is True or subtype.startswith("error")
        stop = None if is_error and subtype == "success" else _STOPS.get(subtype)
        if turns and turns[-1].finish_reason == "max_tokens":
            stop = "length"
        return TranscriptEnd(
            answer=answer,
            status="error" if is_error else "completed" if last or self.is_kept else None,
            stop_reason=stop,
            totals=totals,
            session={**self.session, "terminal_reason": text_of(last.get("terminal_reason"))},
        )

    def _deny(self, result: Mapping[str, Json]) -> None:
        """Mark the calls that were denied, and add those that are told of only there."""
        for entry in listing(result.get("permission_denials")):
            denial = mapping(entry)
            call_id = text_of(denial.get("tool_use_id")) or ""
            drafts = self.calls.by_id.get(call_id, []) if call_id else []
            if not drafts:
                root = self.agents[""]
                name = text_of(denial.get("tool_name")) or ""
                arguments = arguments_of(denial.get("tool_input"), self.notes)
                drafts = [root.call(root.turn(), name=name, arguments=arguments, call_id=call_id)]
            for draft in drafts:
                draft.permission = "denied"

    def _expect_subagents(self) -> bool:
        """Whether there were subagents; one in the background leaves no call in the stream."""
        several = len(self.agents) > 1
        for draft in chain.from_iterable(self.calls.by_id.values()):
            failed = draft.result is not None and draft.result.is_error
            if draft.call.name not in _SUBAGENT_TOOLS or draft.permission == "denied" or failed:
                continue
            several = True
            if draft.call.id not in self.agents and self.unseen.get(draft.call.id, True):
                self.notes.lack("the work of a subagent is not in the stream")
        return several

    def _steps(self, parent: str, depth: int) -> list[AnyStep]:
        steps: list[AnyStep] = []
        for entry, step in self._placed(parent):
            steps.append(step)
            if isinstance(entry, CallDraft) and entry.call.id in self.agents and depth < _DEEPEST:
                name = text_of(entry.call.arguments.get("subagent_type")) or ""
                steps.append(_subagent(self._steps(entry.call.id, depth + 1), name))
        return steps

    def _placed(self, parent: str) -> list[tuple[object, AnyStep]]:
        agent = self.agents.pop(parent)  # each has one place, so that a circle ends
        return list(zip(agent.entries, agent.steps(), strict=True))


def _subagent(steps: list[AnyStep], name: str) -> SubagentStep:
    return SubagentStep(subagent=Trace(steps=numbered(steps)), name=name)


def _usage_so_far(usage: Mapping[str, Json], notes: Notes) -> Usage:
    """The usage on a message: its output tokens are not final, so they are unknown."""
    parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    counts = [count(usage.get(part), notes, part) for part in parts]
    wrong = counts[0] is None or any(
        known is None and usage.get(part) for part, known in zip(parts, counts, strict=True)
    )
    return Usage(
        prompt_tokens=None if wrong else sum(part or 0 for part in counts),
        cached_tokens=counts[2],
        llm_call_count=1,
    )


_MAIN = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
)
_BY_MODEL = ("inputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "outputTokens")


def _totals(results: list[Mapping[str, Json]], notes: Notes, *, several: bool) -> RunUsage:
    """What the result lines say: usage is of one line's own work, the others of all so far."""
    main = [_tokens(result.get("usage"), _MAIN, notes) for result in results]
    tokens = total_of(main)
    if several or tokens is None:
        models = mapping(results[-1].get("modelUsage") if results else None)
        everybody = [_tokens(usage, _BY_MODEL, notes) for usage in models.values()]
        total = total_of(everybody)
        tokens = total if None not in everybody and (total or 0) >= (tokens or 0) else tokens
        if several and not everybody:
            notes.add("the tokens of subagents are not told apart; they may be missing")
    costs = [
        amount(result.get("total_cost_usd", result.get("cost_usd")), notes, "the cost")
        for result in results
    ]
    spent = [
        amount(result.get("duration_ms"), notes, "the duration", "seconds") for result in results
    ]
    notes.refuse_gaps({"tokens": main, "cost_usd": costs, "seconds": spent}, "result line")
    return RunUsage(
        tokens=tokens,
        cost_usd=None if None in costs else max((c for c in costs if c is not None), default=None),
        seconds=None if not spent or None in spent else sum(s or 0 for s in spent) / 1000,
    )


def _tokens(usage: Json, parts: tuple[str, ...], notes: Notes) -> int | None:
    told = mapping(usage)
    first, *cached, last = (count(told.get(part), notes, part) for part in parts)
    if first is None or last is None:
        return None
    wrong = [n for n, known in enumerate(cached) if known is None and told.get(parts[n + 1])]
    return None if wrong else first + last + sum(known or 0 for known in cached)
