"""The events of OpenCode (``opencode run --format json``).

A line tells a part of a message when that is complete: a text, a thought, a call of a tool with its
result. A call that never ended is not told. Helpers work in sessions of their own, of which nothing
is told but the call of ``task`` that started them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from assay.agents.transcripts.document import Notes, amount, count, mapping, text_of, total_of
from assay.agents.transcripts.transcript import (
    StreamReader,
    Transcript,
    TranscriptEnd,
    TurnDraft,
    arguments_of,
    make_transcript,
)
from assay.graders.usage import RunUsage
from assay.scoring.json_safe import Json
from assay.types.trace import Usage, last_words

FORMAT = "opencode"

_EVENTS = frozenset({"step_start", "step_finish", "text", "reasoning", "tool_use", "error"})
_MILLISECONDS = 1000
_LATEST = 4_102_444_800_000
_REJECTED = "rejected permission"
_HELPERS = "task"


def is_event(value: Json) -> bool:
    """Whether a value can only be a line of such a stream."""
    event = mapping(value)
    has_body = isinstance(event.get("part"), dict) or isinstance(event.get("error"), dict)
    return (
        text_of(event.get("type")) in _EVENTS
        and has_body
        and isinstance(event.get("sessionID"), str)
    )


def read(values: Iterable[Json], notes: Notes) -> Transcript:
    """Read the lines of a stream."""
    return _Stream(notes).read(values)


class _Stream(StreamReader):
    def __init__(self, notes: Notes) -> None:
        super().__init__(notes)
        self.turns: dict[str, TurnDraft] = {}
        self.tokens: list[int | None] = []
        self.costs: list[float | None] = []
        self.session = ""
        self.reason = ""

    def take(self, event: Mapping[str, Json]) -> None:
        """Take in one line."""
        kind = str(event.get("type"))
        part = mapping(event.get("part"))
        self.session = self.session or text_of(event.get("sessionID")) or ""
        if kind == "error":
            self._failed(mapping(event.get("error")))
            return
        if kind not in _EVENTS:
            self.notes.add(f"a line of type {kind!r}")
            return
        turn = self._turn(part, event)
        if kind == "text":
            turn.texts.append(text_of(part.get("text")) or "")
        elif kind == "reasoning":
            turn.reasoning.append(text_of(part.get("text")) or "")
        elif kind == "tool_use":
            self._call(turn, part)
        elif kind == "step_finish":
            self._finished(turn, part)

    def _turn(self, part: Mapping[str, Json], event: Mapping[str, Json]) -> TurnDraft:
        key = text_of(part.get("messageID")) or ""
        if key not in self.turns:
            turn = self.turns[key] = self.agent.turn()
            turn.started_at = _time(event.get("timestamp"))
        return self.turns[key]

    def _call(self, turn: TurnDraft, part: Mapping[str, Json]) -> None:
        state = mapping(part.get("state"))
        call_id = text_of(part.get("callID")) or ""
        name = text_of(part.get("tool")) or ""
        draft = self.agent.call(
            turn, name=name, arguments=arguments_of(state.get("input"), self.notes), call_id=call_id
        )
        if title := text_of(state.get("title")):
            draft.extra = {"title": title}
        failed = state.get("status") == "error"
        said = state.get("error") if failed else state.get("output")
        if failed and _REJECTED in str(said):
            draft.permission = "denied"
        elif name == _HELPERS and not failed:
            self.notes.lack("the work of a subagent is not in the stream")
        self.calls.answer(call_id, said, is_error=failed)

    def _finished(self, turn: TurnDraft, part: Mapping[str, Json]) -> None:
        turn.finish_reason = self.reason = text_of(part.get("reason")) or ""
        told = mapping(part.get("tokens"))
        cached = mapping(told.get("cache"))
        counts = [count(told.get(name), self.notes, name) for name in ("input", "output")]
        counts.append(count(cached.get("read") or 0, self.notes, "cache"))
        read = counts[2]
        cost = amount(part.get("cost"), self.notes, "the cost")
        self.tokens.append(total_of(counts))
        self.costs.append(cost)
        turn.usage = Usage(
            prompt_tokens=None if counts[0] is None or read is None else counts[0] + read,
            completion_tokens=counts[1],
            cached_tokens=read,
            llm_call_count=1,
        )

    def _failed(self, error: Mapping[str, Json]) -> None:
        said = text_of(mapping(error.get("data")).get("message"))
        self.fail(f"{text_of(error.get('name')) or 'error'}: {said or 'no reason given'}")

    def finish(self) -> Transcript:
        """The transcript, after the last line."""
        self.calls.close()
        is_whole = self.reason not in ("", "tool-calls")
        if not is_whole and not self.failure:
            self.notes.lack("the stream was cut off: its last step goes on")
        steps = self.agent.steps()
        costs = [one for one in self.costs if one]  # it says 0 where it knows no price
        outcome = TranscriptEnd(
            answer=last_words(steps),
            status="error" if self.failure else "completed" if is_whole else None,
            stop_reason="length" if self.reason == "length" else "done" if is_whole else None,
            totals=RunUsage(
                tokens=total_of(self.tokens),
                cost_usd=sum(costs) if costs and len(costs) == len(self.costs) else None,
            ),
            failure="" if self.tokens else self.failure,
            session={"session_id": self.session or None},
        )
        return make_transcript(FORMAT, steps, outcome, self.notes)


def _time(value: Json) -> str | None:
    if not isinstance(value, int | float) or not 0 <= value < _LATEST:
        return None
    when = datetime.fromtimestamp(value / _MILLISECONDS, UTC)
    return when.isoformat(timespec="milliseconds")
