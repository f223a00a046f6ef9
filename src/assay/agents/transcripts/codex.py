"""The events of Codex (``codex exec --json``).

What they are like decides how they are read:

* They tell a command, a patch or a call of an MCP server in Codex's own words: not by which of its
  tools the model asked for it, with which arguments and under which id.
* An item is told of when it begins and when it is completed; one that was cut off is only begun.
* An ``error`` item does not end a turn: it may be a mere warning. ``turn.failed`` does.
* Usage is of the whole session so far. Neither model, nor cost, nor time is told.
* A session that is resumed tells its thread again, with items numbered anew.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace

from assay.agents.transcripts.document import (
    Notes,
    count,
    listing,
    mapping,
    text_of,
    texts_of,
    total_of,
)
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
from assay.types.trace import ToolKind, last_words

FORMAT = "codex"

_EVENTS = frozenset(
    {"thread.started", "turn.started", "turn.completed", "turn.failed", "error"}
    | {"item.started", "item.updated", "item.completed"}
)
_KINDS: Mapping[str, tuple[str, ToolKind]] = {
    "command_execution": ("shell", "execute"),
    "file_change": ("apply_patch", "write"),
    "mcp_tool_call": ("", "other"),
    "collab_tool_call": ("", "other"),
    "web_search": ("web_search", "fetch"),
    "todo_list": ("update_plan", "other"),
}
"""Items that are calls of tools: what they are called here, unless they say it themselves."""

_SHELL_WORDS = 3
_FAILED = frozenset({"failed", "declined"})


def is_event(value: Json) -> bool:
    """Whether a value can only be a line of such a stream."""
    event = mapping(value)
    kind = text_of(event.get("type"))
    if kind == "thread.started":
        return isinstance(event.get("thread_id"), str)
    return kind in _EVENTS and str(kind).startswith("item.") and isinstance(event.get("item"), dict)


def read(values: Iterable[Json], notes: Notes) -> Transcript:
    """Read the lines of a stream."""
    return _Stream(notes).read(values)


class _Stream(StreamReader):
    def __init__(self, notes: Notes) -> None:
        super().__init__(notes)
        self.turn: TurnDraft | None = None
        self.session: dict[str, Json] = {}
        self.begun: dict[str, Mapping[str, Json]] = {}
        self.threads = 0
        self.usage: Mapping[str, Json] = {}
        self.warning = ""
        self.is_open = False

    def take(self, event: Mapping[str, Json]) -> None:
        """Take in one line."""
        kind = str(event.get("type"))
        if kind == "thread.started":
            self._end_turn()
            self.threads += 1
            self.session.setdefault("session_id", text_of(event.get("thread_id")))
        elif kind == "turn.started":
            self.is_open = True
        elif kind == "turn.completed":
            self._end_turn()
            self.usage = mapping(event.get("usage")) or self.usage
        elif kind == "turn.failed":
            self._end_turn()
            said = texts_of(mapping(event.get("error")).get("message"))
            self.fail(said or self.warning or "no reason given")
        elif kind == "error":
            self.warning = texts_of(event.get("message")) or self.warning
        elif kind == "item.completed":
            self._item(mapping(event.get("item")))
        elif kind in ("item.started", "item.updated"):
            item = mapping(event.get("item"))
            self.begun[self._id(item)] = item
        else:
            self.notes.add(f"a line of type {kind!r}")

    def _id(self, item: Mapping[str, Json]) -> str:
        return f"{self.threads}/{text_of(item.get('id')) or ''}"

    def _item(self, item: Mapping[str, Json]) -> None:
        self.begun.pop(self._id(item), None)
        kind = str(item.get("type"))
        if kind == "agent_message":
            self._speaking().texts.append(text_of(item.get("text")) or "")
        elif kind == "reasoning":
            self._speaking().reasoning.append(text_of(item.get("text")) or "")
        elif kind == "error":
            self.warning = text_of(item.get("message")) or self.warning
        elif kind in _KINDS:
            self._call(kind, item, is_done=True)
        else:
            self.notes.lack(f"an item of type {kind!r}")

    def _speaking(self) -> TurnDraft:
        """The turn of the model that a thought or a text is of: both come before its calls."""
        if self.turn is None or self.turn.texts or self.turn.calls:
            self.turn = self.agent.turn()
        return self.turn

    def _call(self, kind: str, item: Mapping[str, Json], *, is_done: bool) -> None:
        self.turn = self.turn or self.agent.turn()
        call_id = self._id(item)
        name, tool_kind = _KINDS[kind]
        draft = self.agent.call(
            self.turn,
            name=name or text_of(item.get("tool")) or kind,
            arguments=self._arguments(kind, item),
            call_id=call_id,
        )
        known = draft.call
        draft.call = replace(known, raw_name=kind, kind=tool_kind)
        self.turn.calls = [draft.call if one is known else one for one in self.turn.calls]
        if not is_done:
            return
        status, code = text_of(item.get("status")), item.get("exit_code")
        if code is not None:
            draft.extra = {"exit_code": code}
        if status == "declined":
            draft.permission = "denied"
        is_error = status in _FAILED or item.get("error") is not None
        self.calls.answer(call_id, _result(kind, item), is_error=is_error)

    def _arguments(self, kind: str, item: Mapping[str, Json]) -> dict[str, Json]:
        if kind == "command_execution":
            return {"command": _line(text_of(item.get("command")) or "")}
        if kind == "file_change":
            return {"changes": listing(item.get("changes"))}
        if kind == "web_search":
            return {"query": item.get("query")}
        if kind == "todo_list":
            return {"items": listing(item.get("items"))}
        if kind == "collab_tool_call":
            return {"prompt": item.get("prompt")}
        return arguments_of(item.get("arguments"), self.notes)

    def _end_turn(self) -> None:
        """A turn is over: what was only begun was cut off."""
        for item in self.begun.values():
            kind = str(item.get("type"))
            if kind in _KINDS:
                self._call(kind, item, is_done=kind == "todo_list")
        self.begun.clear()
        self.turn, self.is_open = None, False

    def finish(self) -> Transcript:
        """The transcript, after the last line."""
        was_cut_off = self.is_open
        self._end_turn()
        self.calls.close()
        if was_cut_off or not (self.usage or self.failure):
            self.notes.lack("the stream was cut off: its last turn has no end")
        parts = [count(self.usage.get(part), self.notes, part) for part in _COUNTED]
        steps = self.agent.steps()
        outcome = TranscriptEnd(
            answer=last_words(steps),
            status="error" if self.failure else "completed" if self.usage else None,
            stop_reason=None if self.failure or not self.usage else "done",
            totals=RunUsage(tokens=total_of(parts)),
            failure=self.failure if self.never_answered() else "",
            session=self.session,
        )
        return make_transcript(FORMAT, steps, outcome, self.notes)


_COUNTED = ("input_tokens", "output_tokens")


def _line(command: str) -> str:
    """The line that a shell was given, without the shell around it."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if len(words) == _SHELL_WORDS and words[0].endswith("sh") and words[1] in ("-c", "-lc"):
        return words[2]
    return command


def _result(kind: str, item: Mapping[str, Json]) -> Json:
    if kind == "command_execution":
        return item.get("aggregated_output")
    error = mapping(item.get("error")).get("message")
    if error is not None:
        return error
    found = item.get("result")
    return mapping(found).get("content", found) if found is not None else item.get("status")
