"""The sessions that Codex keeps (``~/.codex/sessions/**/rollout-*.jsonl``).

A line is ``{"timestamp", "type", "payload"}``. Those of type ``response_item`` are what the model
was given and what it said, as items of OpenAI's responses; ``event_msg`` says most of it once more,
for people, and alone tells the tokens: those of the whole session so far. ``compacted`` replaces
what was said before: it is told, and what went before it stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from assay.agents.transcripts.document import Notes, count, listing, mapping, text_of, total_of
from assay.agents.transcripts.exchanges import Exchange, read_exchanges
from assay.agents.transcripts.provider import turns_of
from assay.agents.transcripts.transcript import Transcript
from assay.graders.usage import RunUsage
from assay.scoring.json_safe import Json

FORMAT = "codex-session"

_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_CONTEXT = ("<environment_context>", "<user_instructions>", "# AGENTS.md")
_COUNTED = ("input_tokens", "output_tokens")


def is_line(value: Json) -> bool:
    """Whether a value can only be a line of such a session."""
    line = mapping(value)
    return text_of(line.get("type")) in _TYPES and isinstance(line.get("payload"), dict)


def _item(payload: Mapping[str, Json]) -> Json:
    """An item as it is; what the program says in the user's name is nothing that a user asked."""
    said = payload.get("content")
    first = mapping(listing(said)[0]).get("text") if listing(said) else said
    is_context = isinstance(first, str) and first.startswith(_CONTEXT)
    return {**payload, "role": "developer"} if is_context else dict(payload)


def read(values: Iterable[Json], notes: Notes) -> Transcript:
    """Read the lines of a session."""
    items: list[Json] = []
    session: dict[str, Json] = {}
    used: Mapping[str, Json] = {}
    error = ""
    for value in values:
        line = mapping(value)
        kind, payload = line.get("type"), mapping(line.get("payload"))
        if kind == "response_item":
            items.append(_item(payload))
        elif kind == "session_meta":
            session |= {
                "session_id": text_of(payload.get("id")),
                "cwd": text_of(payload.get("cwd")),
            }
        elif kind == "turn_context":
            session["model"] = text_of(payload.get("model")) or session.get("model")
        elif kind == "event_msg":
            used = mapping(mapping(payload.get("info")).get("total_token_usage")) or used
            if payload.get("type") == "error":
                error = text_of(payload.get("message")) or "no reason given"
            elif payload.get("type") in ("task_complete", "agent_message"):
                error = ""
        elif kind == "compacted":
            notes.add("the context was compacted")
        else:
            notes.add(f"a line of type {str(kind)[:40]!r}")
    counts = [count(used.get(part), notes, part) for part in _COUNTED]
    exchange = Exchange(turns=turns_of(items, "responses", notes), error=error[:2000])
    return read_exchanges(
        FORMAT, [exchange], notes, session=session, totals=RunUsage(tokens=total_of(counts))
    )
