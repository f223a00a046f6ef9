"""The events of Gemini CLI (``gemini --output-format stream-json``).

What they are like decides how they are read:

* What the model says comes in pieces that are joined as they are, and thoughts are not told.
* Nothing tells where a turn of the model ends: the first word or call after a result begins one.
* A call's id is the model's own behind the tool's name, or a new one where it gave none.
* A session that is gone on with begins by ``init`` again, and its result counts what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assay.agents.transcripts.document import Notes, count, mapping, text_of, total_of
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
from assay.types.trace import last_words

FORMAT = "gemini-cli"

_DENIED = "policy_violation"


def is_event(value: Json) -> bool:
    """Whether a value can only be a line of such a stream."""
    event = mapping(value)
    if not isinstance(event.get("timestamp"), str):
        return False
    kind = event.get("type")
    if kind == "init":
        return isinstance(event.get("session_id"), str) and "model" in event
    if kind == "tool_use":
        return isinstance(event.get("tool_name"), str) and isinstance(event.get("tool_id"), str)
    return kind == "result" and "status" in event and isinstance(event.get("stats"), dict)


def read(values: Iterable[Json], notes: Notes) -> Transcript:
    """Read the lines of a stream."""
    return _Stream(notes).read(values)


class _Stream(StreamReader):
    def __init__(self, notes: Notes) -> None:
        super().__init__(notes)
        self.turn: TurnDraft | None = None
        self.pieces: list[str] = []
        self.model: str | None = None
        self.session: dict[str, Json] = {}
        self.tokens: list[int | None] = []
        self.warning = ""
        self.is_open = False

    def take(self, event: Mapping[str, Json]) -> None:
        """Take in one line."""
        kind = str(event.get("type"))
        if kind == "init":
            self._end_turn()
            self.is_open = True
            self.model = text_of(event.get("model"))
            self.session.setdefault("session_id", text_of(event.get("session_id")))
        elif kind == "message":
            if event.get("role") == "assistant":
                self._speaking()
                self.pieces.append(text_of(event.get("content")) or "")
        elif kind == "tool_use":
            name = text_of(event.get("tool_name")) or ""
            self.agent.call(
                self._speaking(),
                name=name,
                arguments=arguments_of(event.get("parameters"), self.notes),
                call_id=text_of(event.get("tool_id")) or "",
            )
        elif kind == "tool_result":
            self._end_turn()
            self._result(event)
        elif kind == "error":
            self.warning = text_of(event.get("message")) or self.warning
        elif kind == "result":
            self._finished(event)
        else:
            self.notes.add(f"a line of type {kind!r}")

    def _speaking(self) -> TurnDraft:
        if self.turn is None:
            self.turn = self.agent.turn()
            self.turn.model = self.model
        return self.turn

    def _end_turn(self) -> None:
        said = "".join(self.pieces)
        if self.turn is not None and said:
            self.turn.texts.append(said)
        self.turn, self.pieces = None, []

    def _result(self, event: Mapping[str, Json]) -> None:
        call_id = text_of(event.get("tool_id")) or ""
        error = mapping(event.get("error"))
        said = text_of(event.get("output")) or text_of(error.get("message"))
        if error and (drafts := self.calls.by_id.get(call_id)):
            kind = text_of(error.get("type")) or "error"
            drafts[-1].extra = {"error_type": kind}
            if kind == _DENIED:
                drafts[-1].permission = "denied"
        self.calls.answer(call_id, said, is_error=event.get("status") == "error")

    def _finished(self, event: Mapping[str, Json]) -> None:
        self._end_turn()
        self.is_open = False
        stats = mapping(event.get("stats"))
        self.tokens.append(count(stats.get("total_tokens"), self.notes, "total_tokens"))
        if event.get("status") != "success":
            said = text_of(mapping(event.get("error")).get("message")) or self.warning
            self.fail(said or "no reason given")

    def finish(self) -> Transcript:
        """The transcript, after the last line."""
        self._end_turn()
        self.calls.close()
        if self.is_open or not self.tokens:
            self.notes.lack("the stream was cut off: it has no result")
        self.notes.refuse_gaps({"tokens": self.tokens}, "result")
        is_whole = not self.is_open and bool(self.tokens) and not self.failure
        steps = self.agent.steps()
        outcome = TranscriptEnd(
            answer=last_words(steps),
            status="error" if self.failure else "completed" if is_whole else None,
            stop_reason="done" if is_whole else None,
            totals=RunUsage(tokens=total_of(self.tokens)),
            failure=self.failure if self.never_answered() else "",
            session=self.session,
        )
        return make_transcript(FORMAT, steps, outcome, self.notes)
