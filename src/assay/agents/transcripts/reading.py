"""Recognise a transcript by its content and read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import chain, islice
from typing import TYPE_CHECKING, cast

from assay.agents.transcripts.document import MOST_BYTES, Notes, clean, mapping, parse, text_of
from assay.agents.transcripts.transcript import Recording, Transcript
from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.tasks.blocks import TraceFormat, TranscriptFormat

if TYPE_CHECKING:
    from assay.agents.transcripts.otel import Span

_QUOTED = 60
_LOOKED_AT = 1_000
_IS_OF: Mapping[TranscriptFormat, tuple[str, str]] = {
    "exchanges": ("provider", "is_exchange"),
    "claude-code": ("claude_code", "is_event"),
    "codex": ("codex", "is_event"),
    "codex-session": ("codex_session", "is_line"),
    "opencode": ("opencode", "is_event"),
    "gemini-cli": ("gemini_cli", "is_event"),
    "openai-agents": ("openai_agents", "is_span"),
    "otel": ("otel", "is_spans"),
    "inspect": ("inspect_log", "is_recording"),
    "atif": ("atif", "is_trajectory"),
    "openai-responses": ("provider", "is_responses"),
    "anthropic": ("provider", "is_anthropic"),
    "openai-chat": ("openai_chat", "is_message"),
}
"""Formats in the order in which they are asked for, each with its module and what tells it: a
module is loaded when it is first asked, as what an agent prints is nearly always of one format."""
_LIKE_CHAT: tuple[TranscriptFormat, ...] = ("openai-responses", "anthropic")
"""Formats in which what is said by plain text looks like a chat's."""


def detect(text: str) -> TranscriptFormat | None:
    """The format of a transcript, by the first entry that can only be of one; None if none is."""
    _, values = parse(text[:MOST_BYTES], Notes())
    return _format_of(islice(values, _LOOKED_AT))


def read_transcript(text: str, expected: TraceFormat = "auto") -> Transcript:
    """Read a transcript into a trace.

    What is not understood is left out and noted in ``trace.extra["not_understood"]``; where that
    may have been part of the work, ``trace.extra["incomplete"]`` says so.

    Raises:
        InputError: If it is too long, no transcript of that format, or one of several runs.
    """
    found = list(islice(read_recordings(text, expected), 2))
    if len(found) != 1:
        raise InputError(
            "more than one run" if found else "no run", hint="give one run per transcript"
        )
    return found[0].transcript


def read_recordings(text: str, expected: TraceFormat = "auto") -> Iterator[Recording]:
    """Read every run of a text; see `read_transcript`.

    Raises:
        InputError: If it is too long, or nothing of that format.
    """
    if len(text) > MOST_BYTES:
        raise InputError(f"a transcript of {len(text)} characters; at most {MOST_BYTES} are read")
    notes = Notes()
    document, values = parse(text, notes)
    first = list(islice(values, _LOOKED_AT))
    found: TranscriptFormat | None = None
    if expected in _IS_OF:
        named = cast("TranscriptFormat", expected)
        found = named if any(map(_tells(named), first)) else None
    found = found or _format_of(first)
    if found is None:
        if document is not None:
            whole = "one JSON document, of no known format"
        elif first:
            whole = f"{len(first)} values, one a line, of no known format"
        else:
            whole = f"no JSON; it begins {' '.join(text[:200].split())[:_QUOTED]!r}"
        broken = "".join(f"; {note}" for note in notes.to_list()[:3])
        raise InputError(
            f"not a transcript: {whole}{broken}",
            hint="the formats that are known are listed in docs/traces.md",
        )
    if expected not in ("auto", found):
        raise InputError(f"the transcript is {found}, not {expected}", hint="trace: auto takes any")
    yield from _read(found, chain(first, values), notes)


@cache
def _tells(name: TranscriptFormat) -> Callable[[Json], bool]:
    """What tells whether a value can only be of a format."""
    module, tells = _IS_OF[name]
    found: object = getattr(import_module(f"assay.agents.transcripts.{module}"), tells)
    return cast("Callable[[Json], bool]", found)


def _read(found: TranscriptFormat, values: Iterator[Json], notes: Notes) -> Iterator[Recording]:
    if found == "inspect":
        from assay.agents.transcripts import inspect_log

        for value in values:
            yield from inspect_log.samples_of_log(value)
    elif found == "otel":
        yield from _read_spans(values, notes)
    elif found == "openai-agents":
        from assay.agents.transcripts import openai_agents

        for name, group in _groups(values, openai_agents.group_of).items():
            yield _recording(openai_agents.read(group, notes.copy()), name)
    elif found == "atif":
        from assay.agents.transcripts import atif

        for value in [value for value in values if atif.is_trajectory(value)]:
            yield _recording(atif.read(value, notes.copy()), _name_of(value))
    elif found == "openai-chat":
        yield from _read_chats(values, notes)
    else:
        yield _recording(_one_run(found, values, notes))


def _one_run(found: TranscriptFormat, values: Iterator[Json], notes: Notes) -> Transcript:
    """Read a format whose files hold one run."""
    module = import_module(f"assay.agents.transcripts.{_IS_OF[found][0]}")
    read = cast("Callable[..., Transcript]", module.read)
    if found in ("exchanges", "openai-responses", "anthropic"):
        return read(values, notes, found=found)
    return read(values, notes)


def _read_spans(values: Iterable[Json], notes: Notes) -> Iterator[Recording]:
    from assay.agents.transcripts import otel

    spans = [span for value in values for span in otel.spans_of(value)]
    groups: dict[str, list[Span]] = {}
    for span in spans:
        groups.setdefault(span.trace, []).append(span)
    for name, group in groups.items():
        yield _recording(otel.read(group, notes.copy()), name)


def read_requests(requests: Iterable[Json]) -> Iterator[Recording]:
    """Read every run that requests of OTLP bring, as they say it in JSON."""
    notes = Notes()
    return _read_spans((clean(request, notes) for request in requests), notes)


def _read_chats(values: Iterable[Json], notes: Notes) -> Iterator[Recording]:
    from assay.agents.transcripts import openai_chat

    loose: list[Json] = []
    for value in list(values):
        if "messages" in mapping(value):
            yield _recording(openai_chat.read([value], notes.copy()), _name_of(value))
        else:
            loose.append(value)
    if loose:
        yield _recording(openai_chat.read(loose, notes))


def _groups(values: Iterable[Json], name_of: Callable[[Json], str]) -> dict[str, list[Json]]:
    groups: dict[str, list[Json]] = {}
    for value in values:
        groups.setdefault(name_of(value), []).append(value)
    return groups


def _name_of(value: Json) -> str:
    entry = mapping(value)
    for key in ("id", "trajectory_id", "session_id"):
        if isinstance(name := entry.get(key), str | int):
            return str(name)
    return ""


def of_spans(spans: Iterable[Mapping[str, Json]], name: str, notes: Notes) -> Recording:
    """The spans of one trace, as OTLP's JSON writes them."""
    from assay.agents.transcripts.otel import otlp_span, read

    return _recording(read(map(otlp_span, spans), notes), name)


def _recording(transcript: Transcript, name: str = "") -> Recording:
    asked = (
        text_of(mapping(message).get("content"))
        for step in transcript.trace.steps
        if step.source == "user"
        for message in step.messages
    )
    question = next((said for said in asked if said), None)
    return Recording(id=name, transcript=transcript, question=question)


def _format_of(values: Iterable[Json]) -> TranscriptFormat | None:
    chat: TranscriptFormat | None = None
    for value in values:
        for name in _IS_OF:
            if chat is None and name == "openai-chat" and _tells(name)(value):
                chat = name
            elif (chat is None or name in _LIKE_CHAT) and _tells(name)(value):
                return name
    return chat
