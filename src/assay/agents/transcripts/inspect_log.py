"""Logs of Inspect: ``.eval`` (a ZIP, today packed with zstd) and ``.json``; a trace for a sample.

What a sample's ``messages`` say is its trajectory, and its ``output`` the answer. Texts that occur
often stand apart: ``attachment://DIGEST`` (``tc://`` in older logs) refers to them. Each scorer's
verdict is kept beside the trace: C is 1, P a half, I and N are 0.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import cast

from assay.agents.transcripts.document import (
    MOST_LINE,
    Notes,
    amount,
    clean,
    count,
    listing,
    mapping,
    text_of,
    texts_of,
    total_of,
)
from assay.agents.transcripts.exchanges import Exchange, read_exchanges
from assay.agents.transcripts.transcript import Recording
from assay.conversation.turns import Call, Part, Result, Speaker, Text, Thought, Turn
from assay.errors import InputError
from assay.graders.usage import RunUsage
from assay.scoring.json_safe import Json
from assay.scoring.strict_json import NotJsonError, decode_json

FORMAT = "inspect"

_ZSTD = 93
_MOST_SAMPLES = 100_000
_MOST_HEADER = 64 << 20
_VALUES: Mapping[str, float | None] = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "nan": None}
_REFERENCES = ("attachment://", "tc://")
_DEEPEST = 32


def is_archive(head: bytes) -> bool:
    """Whether a file can be such a ZIP, by its first bytes."""
    return head.startswith(b"PK\x03\x04")


def is_log(value: Json) -> bool:
    """Whether a value can only be a whole log."""
    log = mapping(value)
    return isinstance(log.get("eval"), dict) and "task" in mapping(log["eval"]) and "version" in log


def is_sample(value: Json) -> bool:
    """Whether a value can only be a sample."""
    sample = mapping(value)
    return {"id", "epoch", "input", "messages"} <= sample.keys()


def is_recording(value: Json) -> bool:
    """Whether a value can only be a log or a sample of one."""
    return is_log(value) or is_sample(value)


def samples_of_log(value: Json) -> Iterator[Recording]:
    """The samples of a log that is one JSON document."""
    log = mapping(value)
    model = _model_of(value)
    samples = [value] if is_sample(value) else listing(log.get("samples"))
    for sample in samples[:_MOST_SAMPLES]:
        yield _sample(mapping(sample), model)


def sample_of(value: Json) -> Recording:
    """One sample that stands in no log."""
    return _sample(mapping(value), None)


def _model_of(header: Json) -> str | None:
    return text_of(mapping(mapping(header).get("eval")).get("model"))


def samples_of_archive(file: str) -> Iterator[Recording | InputError]:
    """The samples of an ``.eval`` file; what is wrong with one that cannot be read.

    Raises:
        InputError: If it is no such file.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            yield from _samples(archive)
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"{file} is not a ZIP that can be read: {error}") from error


def _samples(archive: zipfile.ZipFile) -> Iterator[Recording | InputError]:
    names = [info for info in archive.infolist() if info.filename.startswith("samples/")]
    heads = {info.filename: info for info in archive.infolist()}
    head = heads.get("header.json") or heads.get("_journal/start.json")
    model: str | None = None
    if head is None:
        raise InputError(f"{archive.filename} is a ZIP, but no log of Inspect")
    with suppress(InputError):  # an interrupted log
        model = _model_of(_content(archive, head))
    for info in names[:_MOST_SAMPLES]:
        try:
            value = _content(archive, info)
        except InputError as error:
            yield error
            continue
        yield _sample(mapping(value), model)


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Json:
    """One file inside, bounded whatever its entry says."""
    where = f"{archive.filename}: {info.filename[:100]}"
    packed = info.compress_type == _ZSTD
    try:
        data = _zstd(archive, info) if packed else _plain(archive, info)
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, ValueError) as error:
        raise InputError(f"{where} cannot be unpacked: {error}") from error
    except Exception as error:  # zlib's and zstandard's own errors share no base
        raise InputError(f"{where} cannot be unpacked: {type(error).__name__}") from error
    if len(data) > _MOST_HEADER:
        raise InputError(f"{where} is longer than {_MOST_HEADER:,} bytes")
    try:
        return decode_json(data, nan=True)
    except NotJsonError as error:
        raise InputError(f"{where} is not JSON: {error}") from error


def _plain(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    with archive.open(info) as file:
        return file.read(_MOST_HEADER + 1)


def _zstd(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """A file packed with zstd, which the standard library learns in 3.14."""
    import zstandard

    # Its local header says where it begins; names and extra fields there may be of other lengths.
    file = cast("io.BufferedReader", archive.fp)
    file.seek(info.header_offset)
    header = file.read(30)
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise ValueError("it has no local header")
    skipped = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    file.seek(info.header_offset + 30 + skipped)
    packed = file.read(min(info.compress_size, _MOST_HEADER))
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)) as unpacked:
        return unpacked.read(_MOST_HEADER + 1)


def _sample(sample: Mapping[str, Json], model: str | None) -> Recording:
    notes = Notes()
    attached: dict[str, str] = {}
    for held in (sample.get("attachments"), mapping(sample.get("transcript")).get("content")):
        texts = ((key, text_of(one)) for key, one in mapping(held).items())
        attached |= {key: text for key, text in texts if text is not None}
    left = [MOST_LINE]
    resolved = mapping(_resolved(clean(_needed(sample), notes), attached, left, notes))
    turns = _turns(listing(resolved.get("messages")), notes)
    output = mapping(resolved.get("output"))
    error = mapping(resolved.get("error"))
    failed = text_of(error.get("message")) or ""
    if not turns and not failed:
        notes.lack("a sample without messages")
    transcript = read_exchanges(
        FORMAT,
        [Exchange(turns=turns, error=failed[:2000])],
        notes,
        session={"model": text_of(output.get("model")) or model},
        totals=_totals(resolved, output, notes),
    )
    if not failed and (answer := _answer(output)) is not None:
        transcript.trace.content, transcript.trace.status = answer, "completed"
    given = resolved.get("input")
    asked = given if isinstance(given, str) else None
    if asked is None:
        users = [m for m in map(mapping, listing(given)) if m.get("role") == "user"]
        asked = texts_of(users[-1].get("content")) if users else None
    epoch = resolved.get("epoch")
    identity = str(resolved.get("id"))
    return Recording(
        id=identity if epoch in (1, None) else f"{identity} epoch {epoch}",
        transcript=transcript,
        question=asked,
        expected=_expected(resolved.get("target")),
        metadata={**mapping(resolved.get("metadata")), "scores": _scores(resolved)},
    )


def _expected(target: Json) -> Json:
    """What was expected; a list for several right answers, None for none."""
    if target in ("", []):
        return None
    return target[0] if isinstance(target, list) and len(target) == 1 else target


def _answer(output: Mapping[str, Json]) -> str | None:
    """What Inspect's own scorers take for the answer: an agent submits one that is no message.

    An output that is empty is an empty answer, whatever the messages say.
    """
    choices = listing(output.get("choices"))
    said = mapping(mapping(choices[0] if choices else None).get("message"))
    answer = text_of(output.get("completion")) or texts_of(said.get("content"))
    return answer or ("" if output.keys() & {"choices", "completion"} else None)


def _needed(sample: Mapping[str, Json]) -> Json:
    """The parts that are read: events and stores may be a thousand times as long."""
    kept = ("id", "epoch", "input", "target", "messages", "output", "metadata", "error")
    kept = (*kept, "scores", "score", "model_usage", "total_time")
    return {key: sample[key] for key in kept if key in sample}


def _resolved(
    value: Json, attached: Mapping[str, str], left: list[int], notes: Notes, depth: int = 0
) -> Json:
    """A value with the texts that it refers to, as many as fit."""
    if isinstance(value, str):
        return _text(value, attached, left, notes) if value.startswith(_REFERENCES) else value
    if isinstance(value, list) and depth <= _DEEPEST:
        return [_resolved(one, attached, left, notes, depth + 1) for one in value]
    if isinstance(value, dict) and depth <= _DEEPEST:
        return {k: _resolved(one, attached, left, notes, depth + 1) for k, one in value.items()}
    return value


def _text(reference: str, attached: Mapping[str, str], left: list[int], notes: Notes) -> str:
    text = attached.get(reference.partition("://")[2])
    if text is None:
        notes.add("an attachment is not in the sample")
        return reference
    left[0] -= len(text)
    if left[0] < 0:
        notes.lack("attachments are too long together")
        return reference
    return text.encode("utf-8", "replace").decode("utf-8")


_ROLES: Mapping[str, Speaker] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


def _turns(messages: list[Json], notes: Notes) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    for message in map(mapping, messages):
        role = _ROLES.get(text_of(message.get("role")) or "")
        if role is None:
            notes.lack("a message of an unknown role")
            continue
        parts: list[Part] = []
        if role == "tool":
            error = mapping(message.get("error"))
            said = texts_of(message.get("content")) or text_of(error.get("message")) or ""
            call_id = text_of(message.get("tool_call_id")) or ""
            parts.append(Result(call_id, (Text(said),), is_error=bool(error)))
        else:
            parts += _content_parts(message.get("content"), notes)
        for call in map(mapping, listing(message.get("tool_calls"))):
            given = call.get("arguments")
            written = given if isinstance(given, str) else json.dumps(given or {})
            function = call.get("function")
            name = text_of(function) or text_of(mapping(function).get("name")) or ""
            parts.append(Call(text_of(call.get("id")) or "", name, written))
        if turns and role == "tool" == turns[-1].speaker:
            turns[-1] = Turn(role, (*turns[-1].parts, *parts))
        else:
            turns.append(Turn(role, tuple(parts)))
    return tuple(turns)


def _content_parts(content: Json, notes: Notes) -> Iterator[Part]:
    if isinstance(content, str):
        yield Text(content)
    for part in map(mapping, listing(content)):
        kind = part.get("type")
        if kind == "text":
            yield Text(text_of(part.get("text")) or "")
        elif kind == "reasoning":
            yield Thought(text_of(part.get("reasoning")) or "")
        elif kind == "tool_use":  # of a tool that the provider runs
            arguments = text_of(part.get("arguments")) or json.dumps(part.get("arguments"))
            yield Call(text_of(part.get("id")) or "", text_of(part.get("name")) or "", arguments)
        else:
            notes.add(f"a part of type {str(kind)[:40]!r}")


def _totals(sample: Mapping[str, Json], output: Mapping[str, Json], notes: Notes) -> RunUsage:
    """What all models used: told for each of them, or for the last reply alone."""
    by_model = [mapping(one) for one in mapping(sample.get("model_usage")).values()]
    if not by_model:
        replies = sum(
            mapping(m).get("role") == "assistant" for m in listing(sample.get("messages"))
        )
        by_model = [mapping(output.get("usage"))] if replies == 1 and output.get("usage") else []
    counts = [count(usage.get("total_tokens"), notes, "total_tokens") for usage in by_model]
    return RunUsage(
        tokens=total_of(counts),
        seconds=amount(sample.get("total_time"), notes, "the time", "seconds"),
    )


def _scores(sample: Mapping[str, Json]) -> dict[str, Json]:
    """Each scorer's verdict, as a number where it is one of Inspect's letters."""
    found = dict(mapping(sample.get("scores")))
    if not found and isinstance(sample.get("score"), dict):
        found = {"score": sample["score"]}
    scores: dict[str, Json] = {}
    for name, score in found.items():
        told = mapping(score)
        value = told.get("value")
        kept = {key: told[key] for key in ("answer", "explanation") if told.get(key) is not None}
        scores[name] = {
            "value": _VALUES.get(value, value) if isinstance(value, str) else value,
            **kept,
        }
    return scores
